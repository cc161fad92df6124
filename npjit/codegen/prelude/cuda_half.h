// float16 by the device's own conversions; see half.h.

struct f16 {
  u16 bits;
  static const b1 is_brain = false;
};
#ifdef __CUDA_ARCH__
NJ_INLINE f32 nj_widen(f16 h) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
  return x;
}
NJ_INLINE f16 nj_narrow(f32 x) {
  f16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
NJ_INLINE f16 nj_narrow(f64 x) {
  f16 h;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h.bits) : "d"(x));
  return h;
}
#else
NJ_INLINE f32 nj_widen(f16 h) {
  const u32 magnitude = (u32)(h.bits & 0x7fff) << 13;
  const u32 scaled = nj_bits(nj_from_bits(magnitude) * 0x1p112f);
  const u32 bits = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : scaled;
  return nj_from_bits(bits | (u32)(h.bits & 0x8000) << 16);
}
NJ_INLINE f16 nj_narrow(f32 x) {
  const u32 size = nj_bits(x) & 0x7fffffffu;
  const u32 large = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const u32 small = nj_bits(nj_from_bits(size) + 0.5f) - 0x3f000000u;
  const u32 normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
  const u32 half = size >= 0x47800000u ? large : size < 0x38800000u ? small : normal;
  return f16{(u16)(half | (nj_bits(x) >> 16 & 0x8000))};
}
// Rounded once: to odd in f32, whose extra bits then decide every tie of the second rounding.
NJ_INLINE f16 nj_narrow(f64 x) {
  const f32 near = (f32)x;
  const b1 away = __builtin_fabs((f64)near) > __builtin_fabs(x);
  const u32 odd = (nj_bits(near) - away) | 1;
  return nj_narrow((f64)near == x ? near : nj_from_bits(odd));
}
#endif
NJ_INLINE f16 operator+(f16 a, f16 b) { return nj_narrow(nj_widen(a) + nj_widen(b)); }
NJ_INLINE f16 operator-(f16 a, f16 b) { return nj_narrow(nj_widen(a) - nj_widen(b)); }
NJ_INLINE f16 operator*(f16 a, f16 b) { return nj_narrow(nj_widen(a) * nj_widen(b)); }
NJ_INLINE f16 operator/(f16 a, f16 b) { return nj_narrow(nj_widen(a) / nj_widen(b)); }
NJ_INLINE f16 operator-(f16 a) { return f16{(u16)(a.bits ^ 0x8000)}; }
NJ_INLINE f16& operator+=(f16& a, f16 b) { return a = a + b; }
NJ_INLINE f16& operator*=(f16& a, f16 b) { return a = a * b; }
NJ_INLINE b1 operator==(f16 a, f16 b) { return nj_widen(a) == nj_widen(b); }
NJ_INLINE b1 operator!=(f16 a, f16 b) { return nj_widen(a) != nj_widen(b); }
NJ_INLINE b1 operator<(f16 a, f16 b) { return nj_widen(a) < nj_widen(b); }
NJ_INLINE b1 operator<=(f16 a, f16 b) { return nj_widen(a) <= nj_widen(b); }
NJ_INLINE b1 operator>(f16 a, f16 b) { return nj_widen(a) > nj_widen(b); }
NJ_INLINE b1 operator>=(f16 a, f16 b) { return nj_widen(a) >= nj_widen(b); }

// Integers go through f32, so large ones round twice: NumPy does so.
template <class From>
NJ_INLINE f16 nj_convert(f16*, From x) {
  return nj_narrow((f32)x);
}
NJ_INLINE f16 nj_convert(f16*, f64 x) { return nj_narrow(x); }
template <class To>
NJ_INLINE To nj_cast(f16 x) {
  return nj_convert((To*)nullptr, nj_widen(x));
}
template <>
inline u32 nj_cast<u32>(f16 x) {
  return (u32)nj_to_i64(nj_widen(x));
}

NJ_INLINE f16 nj_shuffle(u32 mask, f16 x, i32 distance) {
  return f16{(u16)nj_shuffle(mask, (u32)x.bits, distance)};
}
