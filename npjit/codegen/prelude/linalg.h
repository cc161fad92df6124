// Small products, for sizes where a call to BLAS costs more than it gains and for types that it
// lacks. Strides count elements. Integers wrap, b1 (stored as u8) is an or of ands, f16 sums in f32
// and rounds once, as NumPy's own loops do.

template <class T>
struct nj_product {
  typedef T stored;
  typedef T sum;
  static sum load(stored a) { return a; }
  static sum add(sum a, sum b) { return (T)(a + b); }
  static sum multiply_add(sum a, sum b, sum c) { return (T)(c + (T)(a * b)); }
  static stored finish(sum c) { return c; }
};
template <>
inline f32 nj_product<f32>::multiply_add(f32 a, f32 b, f32 c) {
  return nj_multiply_add(a, b, c);
}
template <>
inline f64 nj_product<f64>::multiply_add(f64 a, f64 b, f64 c) {
  return nj_multiply_add(a, b, c);
}
template <>
struct nj_product<u16> {
  typedef u16 stored;
  typedef u16 sum;
  static sum load(stored a) { return a; }
  static sum add(sum a, sum b) { return (u16)(a + b); }
  // u16 times u16 would be a signed multiplication of ints.
  static sum multiply_add(sum a, sum b, sum c) { return (u16)((u32)a * b + c); }
  static stored finish(sum c) { return c; }
};
template <>
struct nj_product<b1> {
  typedef u8 stored;
  typedef b1 sum;
  static sum load(stored a) { return a != 0; }
  static sum add(sum a, sum b) { return a | b; }
  static sum multiply_add(sum a, sum b, sum c) { return c | (a & b); }
  static stored finish(sum c) { return c; }
};

template <class T>
using nj_stored = typename nj_product<T>::stored;

// The order of the additions is fixed, and the compiler keeps the lanes in one or a few vectors.
template <i64 lanes, class T>
NJ_INLINE nj_stored<T> nj_dot_by_lanes(i64 n, const nj_stored<T>* a, i64 sa, const nj_stored<T>* b,
                                       i64 sb) {
  typedef nj_product<T> product;
  typename product::sum lane[lanes] = {};
  i64 i = 0;
  if (sa == 1 && sb == 1) {
    for (; i + lanes <= n; i += lanes) {
      for (i64 j = 0; j < lanes; ++j) {
        lane[j] = product::multiply_add(product::load(a[i + j]), product::load(b[i + j]), lane[j]);
      }
    }
  }
  for (; i < n; ++i) {
    typename product::sum& sum = lane[i % lanes];
    sum = product::multiply_add(product::load(a[i * sa]), product::load(b[i * sb]), sum);
  }
  for (i64 half = lanes / 2; half > 0; half /= 2) {
    for (i64 j = 0; j < half; ++j) {
      lane[j] = product::add(lane[j], lane[j + half]);
    }
  }
  return product::finish(lane[0]);
}

template <class T>
NJ_INLINE nj_stored<T> nj_dot(i64 n, const nj_stored<T>* a, i64 sa, const nj_stored<T>* b, i64 sb) {
  return n < 128 ? nj_dot_by_lanes<8, T>(n, a, sa, b, sb) : nj_dot_by_lanes<32, T>(n, a, sa, b, sb);
}

// A strip of a row of c stays in registers while k runs.
template <class T>
static inline void nj_gemm(i64 m, i64 n, i64 k, const nj_stored<T>* a, i64 sa0, i64 sa1,
                           const nj_stored<T>* b, i64 sb0, i64 sb1, nj_stored<T>* c, i64 sc0,
                           i64 sc1) {
  typedef nj_product<T> product;
  const i64 width = 32;
  for (i64 i = 0; i < m; ++i) {
    for (i64 first = 0; first < n; first += width) {
      const i64 count = n - first < width ? n - first : width;
      typename product::sum sum[width] = {};
      for (i64 p = 0; p < k; ++p) {
        const typename product::sum factor = product::load(a[i * sa0 + p * sa1]);
        const nj_stored<T>* row = b + p * sb0 + first * sb1;
        if (sb1 == 1 && count == width) {
          for (i64 j = 0; j < width; ++j) {
            sum[j] = product::multiply_add(factor, product::load(row[j]), sum[j]);
          }
        } else {
          for (i64 j = 0; j < count; ++j) {
            sum[j] = product::multiply_add(factor, product::load(row[j * sb1]), sum[j]);
          }
        }
      }
      for (i64 j = 0; j < count; ++j)
        c[i * sc0 + (first + j) * sc1] = product::finish(sum[j]);
    }
  }
}

template <class T>
static inline void nj_gemv(i64 m, i64 n, const nj_stored<T>* a, i64 sa0, i64 sa1,
                           const nj_stored<T>* x, i64 sx, nj_stored<T>* y, i64 sy) {
  if (sa0 == 1 && sa1 != 1)
    return nj_gemm<T>(1, m, n, x, 0, sx, a, sa1, sa0, y, 0, sy);
  for (i64 i = 0; i < m; ++i)
    y[i * sy] = nj_dot<T>(n, a + i * sa0, sa1, x, sx);
}
