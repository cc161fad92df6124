// A matrix whose rows are contiguous times a vector: some rows at a time share the loads of the
// vector, and their sums do not wait for each other.

// rows at a time, elements whose products are added before they join the others', and products that
// are worth a thread
#define NJ_ROWS 8
#define NJ_ROWS_BLOCK 4096
#define NJ_ROWS_GRAIN 16384

// a * b + c in each lane; a loop, since compilers know no such operation of vectors.
template <class T, class L>
NJ_INLINE L nj_lanes_multiply_add(L a, L b, L c) {
  T x[NJ_LANES(T)], y[NJ_LANES(T)], z[NJ_LANES(T)];
  __builtin_memcpy(x, &a, sizeof(L));
  __builtin_memcpy(y, &b, sizeof(L));
  __builtin_memcpy(z, &c, sizeof(L));
#pragma omp simd
  for (i64 lane = 0; lane < NJ_LANES(T); ++lane)
    z[lane] = nj_multiply_add(x[lane], y[lane], z[lane]);
  __builtin_memcpy(&c, z, sizeof(L));
  return c;
}

// found[rows] += a[rows, n] x[n]
template <i32 rows, class T>
NJ_INLINE void nj_add_some_rows(i64 n, const T* a, i64 sa, const T* x, T* found) {
  typedef T lanes __attribute__((vector_size(NJ_VECTOR_BYTES)));
  typedef T loaded __attribute__((vector_size(NJ_VECTOR_BYTES), aligned(sizeof(T))));
  typedef decltype(lanes() < lanes()) mask;
  const i64 width = NJ_LANES(T);
  if (n < width) {
    for (i64 k = 0; k < n; ++k) {
#pragma GCC unroll 8
      for (i32 r = 0; r < rows; ++r)
        found[r] += a[r * sa + k] * x[k];
    }
    return;
  }
  lanes sums[rows] = {};
  i64 k = 0;
  for (; k + width <= n; k += width) {
    const lanes factor = *(const loaded*)(x + k);
#pragma GCC unroll 8
    for (i32 r = 0; r < rows; ++r)
      sums[r] = nj_lanes_multiply_add<T, lanes>(*(const loaded*)(a + r * sa + k), factor, sums[r]);
  }
  if (k < n) {
    // the last vector again, without what has been added already
    mask is_new;
    for (i64 j = 0; j < width; ++j)
      is_new[j] = n - width + j < k ? 0 : -1;
    const lanes factor = *(const loaded*)(x + n - width);
#pragma GCC unroll 8
    for (i32 r = 0; r < rows; ++r) {
      const lanes product = *(const loaded*)(a + r * sa + n - width) * factor;
      sums[r] += (lanes)((mask)product & is_new);
    }
  }
#pragma GCC unroll 8
  for (i32 r = 0; r < rows; ++r) {
    T lane[width];
    __builtin_memcpy(lane, sums + r, sizeof(lane));
    found[r] += nj_lanes_total(lane);
  }
}

// y[rows] = a[rows, n] x[n]
template <i32 rows, class T>
NJ_INLINE void nj_some_rows(i64 n, const T* a, i64 sa, const T* x, T* y, i64 sy) {
  T found[rows] = {};
  for (i64 k = 0; k < n; k += NJ_ROWS_BLOCK)
    nj_add_some_rows<rows>(nj_size_min(n - k, NJ_ROWS_BLOCK), a + k, sa, x + k, found);
  for (i32 r = 0; r < rows; ++r)
    y[r * sy] = found[r];
}

// The same for any number of rows.
template <class T>
static NJ_NOINLINE void nj_along(i64 rows, i64 n, const T* a, i64 sa, const T* x, T* y, i64 sy) {
  i64 i = 0;
  for (; i + NJ_ROWS <= rows; i += NJ_ROWS)
    nj_some_rows<NJ_ROWS>(n, a + i * sa, sa, x, y + i * sy, sy);
  for (; i < rows; ++i)
    nj_some_rows<1>(n, a + i * sa, sa, x, y + i * sy, sy);
}

template <class T>
struct nj_rows_of {
  i64 m;
  i64 n;
  const T* a;
  i64 sa;
  const T* x;
  T* y;
  i64 sy;
};

template <class T>
static void nj_rows_chunk(void* context, npjit_int64 begin, npjit_int64 end, int) {
  const nj_rows_of<T>& all = *(const nj_rows_of<T>*)context;
  const i64 i = begin * NJ_ROWS;
  const i64 rows = nj_size_min(end * NJ_ROWS, all.m) - i;
  nj_along(rows, all.n, all.a + i * all.sa, all.sa, all.x, all.y + i * all.sy, all.sy);
}

// y[m] = a[m, n] x[n]
template <class T>
static inline void nj_rows(const npjit_api* api, i64 m, i64 n, const T* a, i64 sa, const T* x,
                           i64 sx, T* y, i64 sy) {
  if (sx != 1 && n > 1) {
    T* const held = (T*)api->scratch(n * sizeof(T));
    for (i64 k = 0; k < n; ++k)
      held[k] = x[k * sx];
    x = held;
  }
  nj_rows_of<T> all = {m, n, a, sa, x, y, sy};
  const i64 blocks = (m + NJ_ROWS - 1) / NJ_ROWS;
  const i64 grain = NJ_ROWS_GRAIN / (NJ_ROWS * nj_size_max(n, 1)) + 1;
  if (blocks <= grain)
    nj_rows_chunk<T>(&all, 0, blocks, 0);
  else
    api->parallel(nj_rows_chunk<T>, &all, blocks, grain);
}
