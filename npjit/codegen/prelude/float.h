// Operations on floats that need no series: signs, rounding, bits, remainders.

NJ_INLINE b1 nj_isinf(f32 x) { return __builtin_fabsf(x) > 0x1.fffffep127f; }
NJ_INLINE b1 nj_isinf(f64 x) { return __builtin_fabs(x) > 0x1.fffffffffffffp1023; }
template <class T>
NJ_INLINE b1 nj_isinf(T) {
  return false;
}

NJ_INLINE b1 nj_isfinite(f32 x) { return __builtin_fabsf(x) <= 0x1.fffffep127f; }
NJ_INLINE b1 nj_isfinite(f64 x) { return __builtin_fabs(x) <= 0x1.fffffffffffffp1023; }
template <class T>
NJ_INLINE b1 nj_isfinite(T) {
  return true;
}

NJ_INLINE b1 nj_signbit(f32 x) { return nj_bits(x) >> 31; }
NJ_INLINE b1 nj_signbit(f64 x) { return nj_bits(x) >> 63; }

NJ_INLINE f32 nj_absolute(f32 x) { return __builtin_fabsf(x); }
NJ_INLINE f64 nj_absolute(f64 x) { return __builtin_fabs(x); }
template <class T>
NJ_INLINE T nj_fabs(T x) {
  return nj_absolute(x);
}

NJ_INLINE f32 nj_sign(f32 x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? 0.0f : x; }
NJ_INLINE f64 nj_sign(f64 x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x; }

NJ_INLINE f32 nj_copysign(f32 x, f32 y) { return __builtin_copysignf(x, y); }
NJ_INLINE f64 nj_copysign(f64 x, f64 y) { return __builtin_copysign(x, y); }

NJ_INLINE f32 nj_sqrt(f32 x) { return __builtin_sqrtf(x); }
NJ_INLINE f64 nj_sqrt(f64 x) { return __builtin_sqrt(x); }

NJ_INLINE f32 nj_floor(f32 x) { return __builtin_floorf(x); }
NJ_INLINE f64 nj_floor(f64 x) { return __builtin_floor(x); }

NJ_INLINE f32 nj_ceil(f32 x) { return __builtin_ceilf(x); }
NJ_INLINE f64 nj_ceil(f64 x) { return __builtin_ceil(x); }

NJ_INLINE f32 nj_trunc(f32 x) { return __builtin_truncf(x); }
NJ_INLINE f64 nj_trunc(f64 x) { return __builtin_trunc(x); }

NJ_INLINE f32 nj_rint(f32 x) { return __builtin_rintf(x); }
NJ_INLINE f64 nj_rint(f64 x) { return __builtin_rint(x); }

NJ_INLINE f32 nj_fma(f32 x, f32 y, f32 z) { return __builtin_fmaf(x, y, z); }
NJ_INLINE f64 nj_fma(f64 x, f64 y, f64 z) { return __builtin_fma(x, y, z); }

#ifdef __FMA__
NJ_INLINE f32 nj_multiply_add(f32 x, f32 y, f32 z) { return __builtin_fmaf(x, y, z); }
NJ_INLINE f64 nj_multiply_add(f64 x, f64 y, f64 z) { return __builtin_fma(x, y, z); }
#else
NJ_INLINE f32 nj_multiply_add(f32 x, f32 y, f32 z) { return x * y + z; }
NJ_INLINE f64 nj_multiply_add(f64 x, f64 y, f64 z) { return x * y + z; }
#endif

NJ_INLINE f32 nj_deg2rad(f32 x) { return x * (3.14159265358979323846f / 180.0f); }
NJ_INLINE f64 nj_deg2rad(f64 x) { return x * (3.14159265358979323846 / 180.0); }
template <class T>
NJ_INLINE T nj_radians(T x) {
  return nj_deg2rad(x);
}

NJ_INLINE f32 nj_rad2deg(f32 x) { return x * (180.0f / 3.14159265358979323846f); }
NJ_INLINE f64 nj_rad2deg(f64 x) { return x * (180.0 / 3.14159265358979323846); }
template <class T>
NJ_INLINE T nj_degrees(T x) {
  return nj_rad2deg(x);
}

template <class T>
NJ_INLINE T nj_heaviside(T x, T at_zero) {
  return x > 0 ? (T)1 : x < 0 ? (T)0 : x == 0 ? at_zero : x;
}

NJ_INLINE f32 nj_nextafter(f32 x, f32 y) {
  const u32 bits = nj_bits(x);
  const b1 outward = (x < y) == !(bits >> 31);
  const u32 stepped = x == 0 ? (nj_bits(y) & 1u << 31) | 1 : outward ? bits + 1 : bits - 1;
  return (x != x) | (y != y) ? x + y : x == y ? y : nj_from_bits(stepped);
}
NJ_INLINE f64 nj_nextafter(f64 x, f64 y) {
  const u64 bits = nj_bits(x);
  const b1 outward = (x < y) == !(bits >> 63);
  const u64 stepped = x == 0 ? (nj_bits(y) & 1ull << 63) | 1 : outward ? bits + 1 : bits - 1;
  return (x != x) | (y != y) ? x + y : x == y ? y : nj_from_bits(stepped);
}

NJ_INLINE f32 nj_spacing(f32 x) {
  const f32 step = nj_from_bits(nj_bits(x) + 1) - x;
  return x == 0 ? 0x1p-149f : nj_isfinite(x) ? step : x - x;
}
NJ_INLINE f64 nj_spacing(f64 x) {
  const f64 step = nj_from_bits(nj_bits(x) + 1) - x;
  return x == 0 ? 0x1p-1074 : nj_isfinite(x) ? step : x - x;
}

template <class T>
NJ_INLINE T nj_modf_whole(T x) {
  return nj_trunc(x);
}

template <class T>
NJ_INLINE T nj_modf_fraction(T x) {
  return nj_copysign(nj_isinf(x) ? (T)0 : x - nj_trunc(x), x);
}

// Subnormals are scaled into the normal range before their bits are read.
NJ_INLINE f32 nj_frexp_mantissa(f32 x) {
  const f32 normal = __builtin_fabsf(x) < 0x1p-126f ? x * 0x1p24f : x;
  const f32 mantissa = nj_from_bits((nj_bits(normal) & 0x807fffffu) | 0x3f000000u);
  return (x == 0) | !nj_isfinite(x) ? x : mantissa;
}
NJ_INLINE f64 nj_frexp_mantissa(f64 x) {
  const f64 normal = __builtin_fabs(x) < 0x1p-1022 ? x * 0x1p54 : x;
  const f64 mantissa = nj_from_bits((nj_bits(normal) & 0x800fffffffffffffull) | 0x3fe0ull << 48);
  return (x == 0) | !nj_isfinite(x) ? x : mantissa;
}

NJ_INLINE i32 nj_frexp_exponent(f32 x) {
  const b1 tiny = __builtin_fabsf(x) < 0x1p-126f;
  const i32 exponent = (i32)(nj_bits(tiny ? x * 0x1p24f : x) >> 23 & 255) - (tiny ? 150 : 126);
  return (x == 0) | !nj_isfinite(x) ? 0 : exponent;
}
NJ_INLINE i32 nj_frexp_exponent(f64 x) {
  const b1 tiny = __builtin_fabs(x) < 0x1p-1022;
  const i32 exponent = (i32)(nj_bits(tiny ? x * 0x1p54 : x) >> 52 & 2047) - (tiny ? 1076 : 1022);
  return (x == 0) | !nj_isfinite(x) ? 0 : exponent;
}

f32 nj_lib_ldexp(f32, i32) __asm__("ldexpf");
f64 nj_lib_ldexp(f64, i32) __asm__("ldexp");
template <class T>
NJ_INLINE T nj_ldexp(T x, i64 n) {
  return nj_lib_ldexp(x, (i32)(n > 9999 ? 9999 : n < -9999 ? -9999 : n));
}

f32 nj_lib_fmod(f32, f32) __asm__("fmodf");
f64 nj_lib_fmod(f64, f64) __asm__("fmod");

// Exact: the quotient's nearest integer n is right to within 1/4, so x - n y is less than y and,
// being a multiple of y's last place, a float. libm takes what is beyond 2^51, not finite, or over
// zero.
NJ_INLINE f64 nj_fmod(f64 x, f64 y) {
  const f64 quotient = x / y;
  if (__builtin_expect(!(__builtin_fabs(quotient) < 0x1p51), 0))
    return nj_lib_fmod(x, y);
  const f64 size = __builtin_fabs(y);
  const f64 rest = __builtin_fma(-__builtin_rint(quotient), y, x);
  const f64 near =
      (rest != 0) & ((rest < 0) != (x < 0)) ? rest + __builtin_copysign(size, x) : rest;
  return __builtin_fabs(x) < size ? x : __builtin_copysign(near, x);
}
NJ_INLINE f32 nj_fmod(f32 x, f32 y) {
  const f64 quotient = (f64)x / (f64)y;
  if (__builtin_expect(!(__builtin_fabs(quotient) < 0x1p51), 0))
    return nj_lib_fmod(x, y);
  return (f32)nj_fmod((f64)x, (f64)y);
}

// npy_divmod: the remainder has the divisor's sign, the quotient is rounded down and snapped.
template <class T>
NJ_INLINE T nj_float_remainder(T x, T y) {
  const T rest = nj_fmod(x, y);
  if (y == 0)
    return rest;
  if (rest == 0)
    return nj_copysign((T)0, y);
  return (y < 0) != (rest < 0) ? rest + y : rest;
}

NJ_INLINE f32 nj_remainder(f32 x, f32 y) { return nj_float_remainder(x, y); }
NJ_INLINE f64 nj_remainder(f64 x, f64 y) { return nj_float_remainder(x, y); }

template <class T>
NJ_INLINE T nj_float_floor_divide(T x, T y) {
  if (y == 0)
    return x / y;
  const T rest = nj_fmod(x, y);
  const T quotient = (x - rest) / y - (T)((rest != 0) & ((y < 0) != (rest < 0)));
  if (quotient == 0)
    return nj_copysign((T)0, x / y);
  const T floored = nj_floor(quotient);
  return quotient - floored > (T)0.5 ? floored + 1 : floored;
}

NJ_INLINE f32 nj_floor_divide(f32 x, f32 y) { return nj_float_floor_divide(x, y); }
NJ_INLINE f64 nj_floor_divide(f64 x, f64 y) { return nj_float_floor_divide(x, y); }
