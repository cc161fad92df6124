// Matrix products by the BLAS that NumPy has loaded, when it is there, has the type, and the product
// is worth a call; else by the loops of linalg.h.

// How CBLAS sees a matrix: row-major (111) or transposed (112), with `leading` elements from row to
// row; 0 when neither stride is 1.
struct nj_layout {
  i32 order;
  i64 leading;
};

static inline nj_layout nj_blas_layout(i64 rows, i64 columns, i64 s0, i64 s1) {
  const i64 row = nj_size_max(1, columns);
  const i64 column = nj_size_max(1, rows);
  if ((s1 == 1 || columns <= 1) && (s0 >= row || rows <= 1))
    return {111, rows <= 1 ? row : s0};
  if ((s0 == 1 || rows <= 1) && (s1 >= column || columns <= 1)) {
    return {112, columns <= 1 ? column : s1};
  }
  return {0, 0};
}

// Where npjit_api::blas has a type's functions, and how it takes a scalar.
template <class T>
struct nj_blas {
  static const i32 gemm = -1;
  static const i32 gemv = -1;
  static const i32 syrk = -1;
  typedef T scalar;
  static scalar pass(const T& x) { return x; }
};
template <>
struct nj_blas<f64> {
  static const i32 gemm = 0;
  static const i32 gemv = 4;
  static const i32 syrk = 8;
  typedef f64 scalar;
  static scalar pass(const f64& x) { return x; }
};
template <>
struct nj_blas<f32> {
  static const i32 gemm = 1;
  static const i32 gemv = 5;
  static const i32 syrk = 9;
  typedef f32 scalar;
  static scalar pass(const f32& x) { return x; }
};

// y[m] = a[m, k] x[k]
template <class T>
static inline b1 nj_blas_gemv(const npjit_api* api, i64 m, i64 k, const T* a, i64 sa0, i64 sa1,
                              const T* x, i64 sx, T* y, i64 sy) {
  typedef typename nj_blas<T>::scalar scalar;
  typedef void (*call)(i32, i32, i64, i64, scalar, const T*, i64, const T*, i64, scalar, T*, i64);
  const nj_layout layout = nj_blas_layout(m, k, sa0, sa1);
  const call gemv = (call)api->blas[nj_blas<T>::gemv];
  if (gemv == nullptr || layout.order == 0 || sx <= 0 || sy <= 0)
    return false;
  const b1 plain = layout.order == 111;
  const T one = nj_cast<T>(1.0);
  const T zero = nj_cast<T>(0.0);
  gemv(101, layout.order, plain ? m : k, plain ? k : m, nj_blas<T>::pass(one), a, layout.leading, x,
       sx, nj_blas<T>::pass(zero), y, sy);
  return true;
}

template <class T>
static inline b1 nj_blas_gemm(const npjit_api* api, i64 m, i64 n, i64 k, const T* a, i64 sa0,
                              i64 sa1, const T* b, i64 sb0, i64 sb1, T* c, i64 sc0, i64 sc1) {
  typedef typename nj_blas<T>::scalar scalar;
  typedef void (*call)(i32, i32, i32, i64, i64, i64, scalar, const T*, i64, const T*, i64, scalar,
                       T*, i64);
  const nj_layout la = nj_blas_layout(m, k, sa0, sa1);
  const nj_layout lb = nj_blas_layout(k, n, sb0, sb1);
  const nj_layout lc = nj_blas_layout(m, n, sc0, sc1);
  const call gemm = (call)api->blas[nj_blas<T>::gemm];
  if (gemm == nullptr || la.order == 0 || lb.order == 0 || lc.order == 0)
    return false;
  const T one = nj_cast<T>(1.0);
  const T zero = nj_cast<T>(0.0);
  const scalar alpha = nj_blas<T>::pass(one);
  const scalar beta = nj_blas<T>::pass(zero);
  if (lc.order == 111) {
    gemm(101, la.order, lb.order, m, n, k, alpha, a, la.leading, b, lb.leading, beta, c,
         lc.leading);
  } else {
    // column-major: 102 exchanges what plain and transposed mean
    gemm(102, 223 - la.order, 223 - lb.order, m, n, k, alpha, a, la.leading, b, lb.leading, beta, c,
         lc.leading);
  }
  return true;
}

// c[m, m] = a[m, k] times its own transpose: half of it is computed, the other half is copied, as
// NumPy does.
template <class T>
static inline b1 nj_blas_square(const npjit_api* api, i64 m, i64 k, const T* a, i64 sa0, i64 sa1,
                                T* c, i64 sc0, i64 sc1) {
  typedef void (*call)(i32, i32, i32, i64, i64, T, const T*, i64, T, T*, i64);
  const nj_layout la = nj_blas_layout(m, k, sa0, sa1);
  const call syrk = (call)api->blas[nj_blas<T>::syrk];
  // the result is the same by rows and by columns
  const i64 row = sc1 == 1 ? sc0 : sc1;
  if (syrk == nullptr || la.order == 0 || (sc0 != 1 && sc1 != 1) || row < m)
    return false;
  syrk(101, 121, la.order, m, k, nj_cast<T>(1.0), a, la.leading, nj_cast<T>(0.0), c, row);
  nj_mirror(m, c, row);
  return true;
}

// y[m] = a[m, k] x[k]
template <class T>
static inline void nj_times_vector(const npjit_api* api, i64 m, i64 k, const nj_stored<T>* a,
                                   i64 sa0, i64 sa1, const nj_stored<T>* x, i64 sx, nj_stored<T>* y,
                                   i64 sy) {
  if constexpr (nj_blas<T>::syrk >= 0) {
    if (m > 1 && (sa1 == 1 || k <= 1))
      return nj_rows(api, m, k, a, sa0, x, sx, y, sy);
    if (m > 1 && sa0 == 1 && nj_suits_pass(api, k, m))
      return nj_across(api, m, k, a, sa1, x, sx, y, sy);
  }
  if constexpr (nj_blas<T>::gemm >= 0) {
    const b1 large = m > 1 && m * k > 4096;
    if (large && nj_blas_gemv<T>(api, m, k, a, sa0, sa1, x, sx, y, sy))
      return;
  }
  nj_gemv<T>(m, k, a, sa0, sa1, x, sx, y, sy);
}

// c[m, n] = a[m, k] b[k, n]
template <class T, i32 relation>
static inline void nj_matmul(const npjit_api* api, i64 m, i64 n, i64 k, const nj_stored<T>* a,
                             i64 sa0, i64 sa1, const nj_stored<T>* b, i64 sb0, i64 sb1,
                             nj_stored<T>* c, i64 sc0, i64 sc1) {
  if constexpr (nj_blas<T>::syrk >= 0) {
    if constexpr (relation == NJ_IN_PLACE) {
      if (a == c && k > 0)
        return nj_replace(api, m, k, c, sc0, sc1, b, sb0, sb1);
    }
    if (nj_suits_tiles<T>(m, n, k, sc0, sc1))
      return nj_tiles<T, relation>(api, m, n, k, a, sa0, sa1, b, sb0, sb1, c, sc0, sc1);
  }
  if constexpr (nj_blas<T>::gemm >= 0) {
    const b1 large = k > 0 && m * n > 0 && m * n * k > 4096;
    if constexpr (nj_blas<T>::syrk >= 0 && relation == NJ_SQUARE) {
      const b1 square = m == n && a == b && sa0 == sb1 && sa1 == sb0;
      if (large && square && nj_blas_square<T>(api, m, k, a, sa0, sa1, c, sc0, sc1))
        return;
    }
    if (large && nj_blas_gemm<T>(api, m, n, k, a, sa0, sa1, b, sb0, sb1, c, sc0, sc1))
      return;
  }
  nj_gemm<T>(m, n, k, a, sa0, sa1, b, sb0, sb1, c, sc0, sc1);
}
