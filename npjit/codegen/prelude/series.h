// Math functions as branch-free series, for loops whose compiler cannot call libmvec: what they
// share. At most 4 ulp in f64, usually 1, with C's special values; f32 goes through f64. The
// methods are the classic ones of Cody and Waite (reduction in parts), Payne and Hanek (huge
// angles), Tang, and fdlibm; a number that needs more than f64 is an unevaluated sum of two
// (Dekker). The coefficients are Chebyshev fits, lowest power first, computed with 200 bits; a
// fit's error is below 1e-16.

struct nj_pair {
  f64 hi, lo;
};

NJ_INLINE f64 nj_series(f64, f64 c) { return c; }
template <class... Rest>
NJ_INLINE f64 nj_series(f64 x, f64 c, Rest... rest) {
  return nj_multiply_add(nj_series(x, rest...), x, c);
}

NJ_INLINE f32 nj_series32(f32, f32 c) { return c; }
template <class... Rest>
NJ_INLINE f32 nj_series32(f32 x, f32 c, Rest... rest) {
  return nj_multiply_add(nj_series32(x, rest...), x, c);
}

// hi + lo is exactly a + b.
NJ_INLINE nj_pair nj_two_sum(f64 a, f64 b) {
  const f64 sum = a + b;
  const f64 part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// The same, where a is 0 or not smaller than b.
NJ_INLINE nj_pair nj_ordered_sum(f64 a, f64 b) {
  const f64 sum = a + b;
  return {sum, b - (sum - a)};
}

// What rounding took from product = a * b.
NJ_INLINE f64 nj_product_rest(f64 a, f64 b, f64 product) {
#ifdef __FMA__
  return __builtin_fma(a, b, -product);
#else
  const f64 wide_a = a * 0x1.0000002p27;
  const f64 wide_b = b * 0x1.0000002p27;
  const f64 high_a = wide_a - (wide_a - a);
  const f64 high_b = wide_b - (wide_b - b);
  const f64 low_a = a - high_a;
  const f64 low_b = b - high_b;
  return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b;
#endif
}
