// Divisions and roots of usual numbers, without a branch each: what they saw is asked once for all.
// The device's own take a branch for numbers whose reciprocal or remainder is not normal.

// Whether all numbers seen so far are between 2^-63 and 2^65, by their exponents.
struct nj_usual {
  u32 seen = ~0u;
  void see(f32 x) { seen &= nj_bits(x) + (1u << 29); }
  b1 holds() const { return (seen & (1u << 30)) != 0; }
};

// Takes any number.
struct nj_unusual {};

// Within one unit in the last place.
NJ_INLINE f32 nj_near_inverse(f32 x) {
#ifdef __CUDA_ARCH__
  f32 y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}

NJ_INLINE f32 nj_near_inverse_root(f32 x) {
#ifdef __CUDA_ARCH__
  f32 y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / __builtin_sqrtf(x);
#endif
}

NJ_INLINE f32 nj_inverse(nj_usual& usual, f32 x) {
  usual.see(x);
  const f32 y = nj_near_inverse(x);
  return __builtin_fmaf(y, __builtin_fmaf(-x, y, 1.0f), y);
}
NJ_INLINE f32 nj_inverse(nj_unusual&, f32 x) { return 1.0f / x; }

NJ_INLINE f32 nj_quotient(nj_usual& usual, f32 a, f32 b) {
  usual.see(a);
  const f32 y = nj_inverse(usual, b);
  const f32 q = a * y;
  return __builtin_fmaf(y, __builtin_fmaf(-b, q, a), q);
}
NJ_INLINE f32 nj_quotient(nj_unusual&, f32 a, f32 b) { return a / b; }

NJ_INLINE f32 nj_root(nj_usual& usual, f32 x) {
  usual.see(x);
  const f32 y = nj_near_inverse_root(x);
  const f32 q = x * y;
  return __builtin_fmaf(__builtin_fmaf(-q, q, x), 0.5f * y, q);
}
NJ_INLINE f32 nj_root(nj_unusual&, f32 x) { return __builtin_sqrtf(x); }
