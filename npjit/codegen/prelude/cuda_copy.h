// Matrices from one place of memory to another.

// Rows of several matrices into others of other extents, a row a warp; zeros where there is no element.
template <class T>
static __global__ void __launch_bounds__(128)
    nj_copy_rows(const T* from, T* to, i64 from_step, i64 from_row, i64 from_rows, i64 from_length,
                 i64 to_step, i64 to_row, i64 to_rows, i64 to_length) {
  from += blockIdx.y * from_step;
  to += blockIdx.y * to_step;
  for (i64 row = blockIdx.x * 16 + threadIdx.x / 32; row < to_rows && row < blockIdx.x * 16 + 16;
       row += 4) {
    const T* const source = from + row * from_row;
    T* const target = to + row * to_row;
    // all loads of a part first: the compiler cannot know that stores leave what is read alone
    for (i64 first = threadIdx.x % 32; first < to_length; first += 32 * 8) {
      T held[8];
#pragma unroll
      for (int k = 0; k < 8; k++) {
        const i64 i = first + 32 * k;
        held[k] = row < from_rows && i < from_length ? source[i] : T();
      }
#pragma unroll
      for (int k = 0; k < 8; k++)
        if (first + 32 * k < to_length)
          target[first + 32 * k] = held[k];
    }
  }
}
