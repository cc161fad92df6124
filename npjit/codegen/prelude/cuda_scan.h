// Cumulative reductions along rows, and additions at indices: whole kernels, for steps that are no loops.

// What a running value starts from, and how it takes in one more.
template <class T>
struct nj_running_sum {
  static T start() { return 0; }
  static T join(T a, T b) { return a + b; }
};
template <class T>
struct nj_running_product {
  static T start() { return 1; }
  static T join(T a, T b) { return a * b; }
};
template <class T>
struct nj_running_max {
  static T start() { return nj_lowest<T>(); }
  static T join(T a, T b) { return nj_maximum(a, b); }
};
template <class T>
struct nj_running_min {
  static T start() { return nj_highest<T>(); }
  static T join(T a, T b) { return nj_minimum(a, b); }
};

// A block goes along each row in stretches of several packs a thread: scans inside packs, of the
// packs' totals inside warps, and of the warps' totals by every thread.
template <class T, class Join, i32 V, u64 A>
static __global__ void __launch_bounds__(256) nj_scan_rows(const T* from, T* to, i64 length) {
  const i32 items = 4;
  __shared__ T totals[items][8];
  const T* const source = from + (i64)blockIdx.x * length;
  T* const target = to + (i64)blockIdx.x * length;
  const i32 lane = threadIdx.x % 32;
  const i32 warp = threadIdx.x / 32;
  T carry = Join::start();
  for (i64 base = 0; base < length; base += 256 * items * V) {
    nj_pack<T, V> packs[items];
    T own[items];
#pragma unroll
    for (i32 k = 0; k < items; ++k) {
      const i64 start = base + (k * 256 + (i32)threadIdx.x) * V;
      const i64 left = length - start;
      if (left >= V)
        nj_load<A, 1>(packs[k], source + start, nj_full());
      else
        nj_load<A, 1>(packs[k], source + start, nj_some{left > 0 ? (i32)left : 0});
    }
#pragma unroll
    for (i32 k = 0; k < items; ++k) {
#pragma unroll
      for (i32 i = 1; i < V; ++i)
        packs[k].at[i] = Join::join(packs[k].at[i - 1], packs[k].at[i]);
      own[k] = packs[k].at[V - 1];
#pragma unroll
      for (i32 distance = 1; distance < 32; distance *= 2) {
        const T before = __shfl_up_sync(0xffffffffu, own[k], distance);
        if (lane >= distance)
          own[k] = Join::join(before, own[k]);
      }
      if (lane == 31)
        totals[k][warp] = own[k];
    }
    __syncthreads();
#pragma unroll
    for (i32 k = 0; k < items; ++k) {
      T before = carry;
#pragma unroll
      for (i32 w = 0; w < 8; ++w) {
        if (w == warp)
          before = carry;
        carry = Join::join(carry, totals[k][w]);
      }
      const T left_lane = __shfl_up_sync(0xffffffffu, own[k], 1);
      if (lane > 0)
        before = Join::join(before, left_lane);
#pragma unroll
      for (i32 i = 0; i < V; ++i)
        packs[k].at[i] = Join::join(before, packs[k].at[i]);
      const i64 start = base + (k * 256 + (i32)threadIdx.x) * V;
      const i64 left = length - start;
      if (left >= V)
        nj_store<A, 1>(target + start, packs[k], nj_full());
      else if (left > 0)
        nj_store<A, 1>(target + start, packs[k], nj_some{(i32)left});
    }
    __syncthreads();
  }
}

// to[index[i], j] += values[i, j], in no given order; a negative index counts from the end of `rows`.
template <class T>
static __global__ void nj_scatter_add(T* to, const T* values, const i64* index, i64 count,
                                      i64 width, i64 rows) {
  const i64 step = (i64)gridDim.x * 256;
  for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < count * width; n += step) {
    const i64 row = index[width == 1 ? n : n / width];
    const i64 column = width == 1 ? 0 : n % width;
    atomicAdd(to + (row < 0 ? row + rows : row) * width + column, values[n]);
  }
}
