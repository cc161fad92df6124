// float16: stored as bits, computed in f32 and rounded after every operation, as NumPy does.
// Its conversions are integer code, since no compiler vectorises its own.

struct f16 {
  u16 bits;
  static const b1 is_brain = false;
};
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
  return (u32)(i64)nj_widen(x);
}

NJ_INLINE f16 nj_select(b1 c, f16 a, f16 b) {
  return f16{(u16)((a.bits & (0 - (u32)c)) | (b.bits & ((u32)c - 1)))};
}

template <>
inline f16 nj_lowest<f16>() {
  return f16{0xfc00};
}

template <>
inline f16 nj_highest<f16>() {
  return f16{0x7c00};
}

NJ_INLINE b1 nj_isinf(f16 x) { return (x.bits & 0x7fff) == 0x7c00; }

NJ_INLINE b1 nj_isfinite(f16 x) { return (x.bits & 0x7fff) < 0x7c00; }

NJ_INLINE b1 nj_signbit(f16 x) { return x.bits >> 15; }

NJ_INLINE f16 nj_absolute(f16 x) { return f16{(u16)(x.bits & 0x7fff)}; }

NJ_INLINE f16 nj_negative(f16 x) { return -x; }

NJ_INLINE f16 nj_copysign(f16 x, f16 y) {
  return f16{(u16)((x.bits & 0x7fff) | (y.bits & 0x8000))};
}

// Of two equal values the first, unlike wider floats.
NJ_INLINE f16 nj_maximum(f16 a, f16 b) { return (a >= b) | (a != a) ? a : b; }

NJ_INLINE f16 nj_minimum(f16 a, f16 b) { return (a <= b) | (a != a) ? a : b; }

NJ_INLINE f16 nj_fmax(f16 a, f16 b) { return (a >= b) | (b != b) ? a : b; }

NJ_INLINE f16 nj_fmin(f16 a, f16 b) { return (a <= b) | (b != b) ? a : b; }

NJ_INLINE f16 nj_nextafter(f16 x, f16 y) {
  const b1 outward = (x < y) == !(x.bits >> 15);
  const b1 zero = (x.bits & 0x7fff) == 0;
  const u32 stepped = zero ? (y.bits & 0x8000) | 1 : outward ? x.bits + 1 : x.bits - 1;
  return (x != x) | (y != y) ? f16{0x7e00} : x == y ? x : f16{(u16)stepped};
}

// To the next value above, unlike wider floats, which step away from zero.
NJ_INLINE f16 nj_spacing(f16 x) {
  const u32 stepped = x.bits == 0x8000 ? 1 : x.bits >> 15 ? x.bits - 1 : x.bits + 1;
  const f16 next{(u16)stepped};
  return nj_isfinite(x) ? next - x : f16{0x7e00};
}

NJ_INLINE f16 nj_fma(f16 x, f16 y, f16 z) {
  return nj_narrow(nj_widen(x) * nj_widen(y) + nj_widen(z));
}

NJ_INLINE i32 nj_frexp_exponent(f16 x) { return nj_frexp_exponent(nj_widen(x)); }

NJ_INLINE f16 nj_ldexp(f16 x, i64 n) { return nj_narrow(nj_ldexp(nj_widen(x), n)); }

NJ_INLINE f16 nj_sin(f16 x) { return nj_narrow(nj_sin(nj_widen(x))); }

NJ_INLINE f16 nj_cos(f16 x) { return nj_narrow(nj_cos(nj_widen(x))); }

NJ_INLINE f16 nj_tan(f16 x) { return nj_narrow(nj_tan(nj_widen(x))); }

NJ_INLINE f16 nj_arcsin(f16 x) { return nj_narrow(nj_arcsin(nj_widen(x))); }

NJ_INLINE f16 nj_arccos(f16 x) { return nj_narrow(nj_arccos(nj_widen(x))); }

NJ_INLINE f16 nj_arctan(f16 x) { return nj_narrow(nj_arctan(nj_widen(x))); }

NJ_INLINE f16 nj_sinh(f16 x) { return nj_narrow(nj_sinh(nj_widen(x))); }

NJ_INLINE f16 nj_cosh(f16 x) { return nj_narrow(nj_cosh(nj_widen(x))); }

NJ_INLINE f16 nj_tanh(f16 x) { return nj_narrow(nj_tanh(nj_widen(x))); }

NJ_INLINE f16 nj_arcsinh(f16 x) { return nj_narrow(nj_arcsinh(nj_widen(x))); }

NJ_INLINE f16 nj_arccosh(f16 x) { return nj_narrow(nj_arccosh(nj_widen(x))); }

NJ_INLINE f16 nj_arctanh(f16 x) { return nj_narrow(nj_arctanh(nj_widen(x))); }

NJ_INLINE f16 nj_exp(f16 x) { return nj_narrow(nj_exp(nj_widen(x))); }

NJ_INLINE f16 nj_exp2(f16 x) { return nj_narrow(nj_exp2(nj_widen(x))); }

NJ_INLINE f16 nj_expm1(f16 x) { return nj_narrow(nj_expm1(nj_widen(x))); }

NJ_INLINE f16 nj_log(f16 x) { return nj_narrow(nj_log(nj_widen(x))); }

NJ_INLINE f16 nj_log2(f16 x) { return nj_narrow(nj_log2(nj_widen(x))); }

NJ_INLINE f16 nj_log10(f16 x) { return nj_narrow(nj_log10(nj_widen(x))); }

NJ_INLINE f16 nj_log1p(f16 x) { return nj_narrow(nj_log1p(nj_widen(x))); }

NJ_INLINE f16 nj_sqrt(f16 x) { return nj_narrow(nj_sqrt(nj_widen(x))); }

NJ_INLINE f16 nj_cbrt(f16 x) { return nj_narrow(nj_cbrt(nj_widen(x))); }

NJ_INLINE f16 nj_floor(f16 x) { return nj_narrow(nj_floor(nj_widen(x))); }

NJ_INLINE f16 nj_ceil(f16 x) { return nj_narrow(nj_ceil(nj_widen(x))); }

NJ_INLINE f16 nj_trunc(f16 x) { return nj_narrow(nj_trunc(nj_widen(x))); }

NJ_INLINE f16 nj_rint(f16 x) { return nj_narrow(nj_rint(nj_widen(x))); }

NJ_INLINE f16 nj_deg2rad(f16 x) { return nj_narrow(nj_deg2rad(nj_widen(x))); }

NJ_INLINE f16 nj_rad2deg(f16 x) { return nj_narrow(nj_rad2deg(nj_widen(x))); }

NJ_INLINE f16 nj_erf(f16 x) { return nj_narrow(nj_erf(nj_widen(x))); }

NJ_INLINE f16 nj_erfc(f16 x) { return nj_narrow(nj_erfc(nj_widen(x))); }

NJ_INLINE f16 nj_sign(f16 x) { return nj_narrow(nj_sign(nj_widen(x))); }

NJ_INLINE f16 nj_reciprocal(f16 x) { return nj_narrow(nj_reciprocal(nj_widen(x))); }

NJ_INLINE f16 nj_modf_fraction(f16 x) { return nj_narrow(nj_modf_fraction(nj_widen(x))); }

NJ_INLINE f16 nj_modf_whole(f16 x) { return nj_narrow(nj_modf_whole(nj_widen(x))); }

NJ_INLINE f16 nj_frexp_mantissa(f16 x) { return nj_narrow(nj_frexp_mantissa(nj_widen(x))); }

NJ_INLINE f16 nj_arctan2(f16 x, f16 y) { return nj_narrow(nj_arctan2(nj_widen(x), nj_widen(y))); }

NJ_INLINE f16 nj_power(f16 x, f16 y) { return nj_narrow(nj_power(nj_widen(x), nj_widen(y))); }

NJ_INLINE f16 nj_float_power(f16 x, f16 y) {
  return nj_narrow(nj_float_power(nj_widen(x), nj_widen(y)));
}

NJ_INLINE f16 nj_hypot(f16 x, f16 y) { return nj_narrow(nj_hypot(nj_widen(x), nj_widen(y))); }

NJ_INLINE f16 nj_logaddexp(f16 x, f16 y) {
  return nj_narrow(nj_logaddexp(nj_widen(x), nj_widen(y)));
}

NJ_INLINE f16 nj_logaddexp2(f16 x, f16 y) {
  return nj_narrow(nj_logaddexp2(nj_widen(x), nj_widen(y)));
}

NJ_INLINE f16 nj_heaviside(f16 x, f16 y) {
  return nj_narrow(nj_heaviside(nj_widen(x), nj_widen(y)));
}

NJ_INLINE f16 nj_fmod(f16 x, f16 y) { return nj_narrow(nj_fmod(nj_widen(x), nj_widen(y))); }

NJ_INLINE f16 nj_remainder(f16 x, f16 y) {
  return nj_narrow(nj_remainder(nj_widen(x), nj_widen(y)));
}

NJ_INLINE f16 nj_floor_divide(f16 x, f16 y) {
  return nj_narrow(nj_floor_divide(nj_widen(x), nj_widen(y)));
}

template <>
struct nj_product<f16> {
  typedef f16 stored;
  typedef f32 sum;
  static sum load(stored a) { return nj_widen(a); }
  static sum add(sum a, sum b) { return a + b; }
  static sum multiply_add(sum a, sum b, sum c) { return c + a * b; }
  static stored finish(sum c) { return nj_narrow(c); }
};
