// bfloat16: the upper half of an f32, computed in f32 and rounded after every operation, as ml_dtypes does. The names
// are those of float16, as in half.h, whose paragraphs but for this one serve both.

struct f16 {
  u16 bits;
  static const b1 is_brain = true;
};
NJ_INLINE f32 nj_widen(f16 h) { return nj_from_bits((u32)h.bits << 16); }
NJ_INLINE f16 nj_narrow(f32 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  f16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
#else
  const u32 bits = nj_bits(x);
  const u32 even = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return f16{(u16)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40 : even)};
#endif
}
NJ_INLINE f16 nj_narrow(f64 x) { return nj_narrow((f32)x); }

// Of two equal values the second, unlike float16 and wider floats.
NJ_INLINE f16 nj_maximum(f16 a, f16 b) { return (a > b) | (a != a) ? a : b; }

NJ_INLINE f16 nj_minimum(f16 a, f16 b) { return (a < b) | (a != a) ? a : b; }

NJ_INLINE f16 nj_fmax(f16 a, f16 b) { return (a > b) | (b != b) ? a : b; }

NJ_INLINE f16 nj_fmin(f16 a, f16 b) { return (a < b) | (b != b) ? a : b; }

NJ_INLINE f16 nj_nextafter(f16 x, f16 y) {
  const b1 outward = (x < y) == !(x.bits >> 15);
  const b1 zero = (x.bits & 0x7fff) == 0;
  const u32 stepped = zero ? (y.bits & 0x8000) | 1 : outward ? x.bits + 1 : x.bits - 1;
  return (x != x) | (y != y) ? f16{0x7e00} : x == y ? y : f16{(u16)stepped};
}

// Away from zero.
NJ_INLINE f16 nj_spacing(f16 x) {
  const f16 next{(u16)(x.bits + 1)};
  return nj_isfinite(x) ? next - x : f16{0x7e00};
}

NJ_INLINE f16 nj_sign(f16 x) { return x == f16{0} ? x : nj_narrow(nj_sign(nj_widen(x))); }
