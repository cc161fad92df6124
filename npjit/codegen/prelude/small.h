// Products of small matrices whose sizes are known, written out where they stand.

template <class T, i64 N>
struct nj_short_row {
  typedef T vector __attribute__((vector_size(N * sizeof(T))));
  NJ_INLINE vector load(const T* x, i64 step) {
    vector v;
    if (step == 1) {
      __builtin_memcpy(&v, x, sizeof v);
      return v;
    }
#pragma GCC unroll 16
    for (i64 j = 0; j < N; ++j)
      v[j] = x[j * step];
    return v;
  }
  NJ_INLINE void store(T* x, i64 step, vector v) {
    if (step == 1)
      __builtin_memcpy(x, &v, sizeof v);
#pragma GCC unroll 16
    for (i64 j = 0; j < N && step != 1; ++j)
      x[j * step] = v[j];
  }
};
template <class T>
struct nj_short_row<T, 1> {
  typedef T vector;
  NJ_INLINE T load(const T* x, i64) { return *x; }
  NJ_INLINE void store(T* x, i64, T v) { *x = v; }
};

// c[M, N] = a[M, K] b[K, N] by rows of N, a power of two; all is computed before any is stored
template <class T, i64 M, i64 N, i64 K>
NJ_INLINE void nj_small_matmul(const T* a, i64 a0, i64 a1, const T* b, i64 b0, i64 b1, T* c, i64 c0,
                               i64 c1) {
  typedef nj_short_row<T, N> row;
  typename row::vector given[K], sums[M];
#pragma GCC unroll 16
  for (i64 k = 0; k < K; ++k)
    given[k] = row::load(b + k * b0, b1);
#pragma GCC unroll 16
  for (i64 i = 0; i < M; ++i) {
    sums[i] = given[0] * a[i * a0];
#pragma GCC unroll 16
    for (i64 k = 1; k < K; ++k)
      sums[i] += given[k] * a[i * a0 + k * a1];
  }
#pragma GCC unroll 16
  for (i64 i = 0; i < M; ++i)
    row::store(c + i * c0, c1, sums[i]);
}

template <class T, i64 M, i64 N, i64 K>
NJ_INLINE void nj_small_columns(const T* a, i64 a0, i64 a1, const T* b, i64 b0, i64 b1, T* c,
                                i64 c0, i64 c1) {
#pragma GCC unroll 16
  for (i64 j = 0; j < N; ++j)
    nj_small_matmul<T, M, 1, K>(a, a0, a1, b + j * b1, b0, 1, c + j * c1, c0, 1);
}
