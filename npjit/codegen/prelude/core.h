// Casts and what needs no series: integers, rounding, bits, minimum and maximum.

NJ_INLINE b1 nj_truth(u8 byte) { return byte != 0; }

NJ_INLINE u32 nj_bits(f32 x) {
  u32 bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
NJ_INLINE u64 nj_bits(f64 x) {
  u64 bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
NJ_INLINE f32 nj_from_bits(u32 bits) {
  f32 x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
NJ_INLINE f64 nj_from_bits(u64 bits) {
  f64 x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}

// NumPy's casts are what SSE code gives: 8 and 16 bit integers are cut from an i32, and what does not
// fit becomes the smallest integer of the conversion. C++ alone leaves this undefined.
NJ_INLINE i8 nj_convert(i8*, f64 x) { return (i8)(i32)x; }
NJ_INLINE i16 nj_convert(i16*, f64 x) { return (i16)(i32)x; }
NJ_INLINE u8 nj_convert(u8*, f64 x) { return (u8)(i32)x; }
NJ_INLINE u16 nj_convert(u16*, f64 x) { return (u16)(i32)x; }
NJ_INLINE u32 nj_convert(u32*, f64 x) {
  return x >= 0x1p31 ? (u32)(i32)(x - 0x1p31) ^ (1u << 31) : (u32)(i32)x;
}
NJ_INLINE u64 nj_convert(u64*, f64 x) {
  const u64 high = (u64)(i64)(x - 0x1p63) ^ (1ull << 63);
  return x >= 0x1p63 ? high : (u64)(i64)x;
}
NJ_INLINE i8 nj_convert(i8*, f32 x) { return (i8)(i32)x; }
NJ_INLINE i16 nj_convert(i16*, f32 x) { return (i16)(i32)x; }
NJ_INLINE u8 nj_convert(u8*, f32 x) { return (u8)(i32)x; }
NJ_INLINE u16 nj_convert(u16*, f32 x) { return (u16)(i32)x; }
NJ_INLINE u32 nj_convert(u32*, f32 x) {
  return x >= 0x1p31f ? (u32)(i32)(x - 0x1p31f) ^ (1u << 31) : (u32)(i32)x;
}
NJ_INLINE u64 nj_convert(u64* to, f32 x) { return nj_convert(to, (f64)x); }
template <class To, class From> NJ_INLINE To nj_convert(To*, From x) { return (To)x; }

template <class To, class From> NJ_INLINE To nj_cast(From x) {
  return nj_convert((To*)nullptr, x);
}

template <class T> NJ_INLINE T nj_select(b1 c, T a, T b) { return c ? a : b; }

// Sizes: what Python's // and % give; a size expression never divides by zero.
NJ_INLINE i64 nj_size_floordiv(i64 a, i64 b) {
  const i64 q = a / b;
  return q - ((q * b != a) & ((a < 0) != (b < 0)));
}

NJ_INLINE i64 nj_size_mod(i64 a, i64 b) {
  const i64 r = a % b;
  return (r != 0) & ((r < 0) != (b < 0)) ? r + b : r;
}

NJ_INLINE i64 nj_size_min(i64 a, i64 b) { return a < b ? a : b; }

NJ_INLINE i64 nj_size_max(i64 a, i64 b) { return a > b ? a : b; }

// The cold path of an index check: `i` is not in 0..n-1. A negative index counts from the end.
static __attribute__((noinline, cold)) i64 nj_wrap_index(i64 i, i64 n, i32* failed) {
  const i64 wrapped = i < 0 ? i + n : i;
  if (wrapped >= 0 && wrapped < n) return wrapped;
  *failed = 1;
  return 0;
}

// Integers. A zero divisor gives 0; the smallest integer over -1 stays what it is.
template <class T> struct nj_integer {
  static const b1 is_signed = (T)-1 < (T)0;
  static const i32 width = 8 * (i32)sizeof(T);
};

template <class T> NJ_INLINE T nj_floor_divide(T a, T b) {
  if (nj_integer<T>::is_signed) {
    if (b == 0) return 0;
    if (b == (T)-1) return (T)(0 - a);
    const T q = (T)(a / b);
    return (T)(q - (((T)(q * b) != a) & ((a < 0) != (b < 0))));
  }
  return b == 0 ? (T)0 : (T)(a / b);
}

template <class T> NJ_INLINE T nj_fmod(T a, T b) {
  return b == 0 || (nj_integer<T>::is_signed && b == (T)-1) ? (T)0 : (T)(a % b);
}

template <class T> NJ_INLINE T nj_remainder(T a, T b) {
  const T r = nj_fmod(a, b);
  return (r != 0) & ((r < 0) != (b < 0)) ? (T)(r + b) : r;
}

// A shift by the width or more, or by a negative number, moves every bit out.
template <class T> NJ_INLINE T nj_left_shift(T a, T b) {
  const b1 inside = (u64)b < (u64)nj_integer<T>::width;
  return inside ? (T)((u64)a << (inside ? (u64)b : 0)) : (T)0;
}

template <class T> NJ_INLINE T nj_right_shift(T a, T b) {
  const b1 inside = (u64)b < (u64)nj_integer<T>::width;
  return inside ? (T)(a >> (inside ? (i32)b : 0)) : (T)(a < 0 ? -1 : 0);
}

// By squaring, wrapping; the exponent is not negative (NumPy raises there).
template <class T> NJ_INLINE T nj_power(T a, T b) {
  T result = (b & 1) ? a : (T)1;
  for (b = (T)(b >> 1); b > 0; b = (T)(b >> 1)) {
    a = (T)((u64)a * (u64)a);
    if (b & 1) result = (T)((u64)result * (u64)a);
  }
  return result;
}

template <class T> NJ_INLINE T nj_absolute(T a) { return a < 0 ? (T)(0 - a) : a; }

template <class T> NJ_INLINE u64 nj_magnitude(T a) { return a < 0 ? 0 - (u64)a : (u64)a; }

NJ_INLINE u64 nj_common_divisor(u64 a, u64 b) {
  while (a != 0) {
    const u64 rest = b % a;
    b = a;
    a = rest;
  }
  return b;
}

template <class T> NJ_INLINE T nj_gcd(T a, T b) {
  return (T)nj_common_divisor(nj_magnitude(a), nj_magnitude(b));
}

template <class T> NJ_INLINE T nj_lcm(T a, T b) {
  const u64 divisor = nj_common_divisor(nj_magnitude(a), nj_magnitude(b));
  return divisor == 0 ? (T)0 : (T)(nj_magnitude(a) / divisor * nj_magnitude(b));
}

template <class T> NJ_INLINE u8 nj_bitwise_count(T a) {
  return (u8)__builtin_popcountll(nj_magnitude(a));
}

template <class T> NJ_INLINE T nj_sign(T a) { return (T)((a > 0) - (a < 0)); }

template <class T> NJ_INLINE T nj_negative(T a) { return (T)(0 - a); }
NJ_INLINE f32 nj_negative(f32 a) { return -a; }
NJ_INLINE f64 nj_negative(f64 a) { return -a; }

template <class T> NJ_INLINE T nj_positive(T a) { return a; }

template <class T> NJ_INLINE T nj_square(T a) { return (T)(a * a); }

template <class T> NJ_INLINE T nj_reciprocal(T a) { return a == 0 ? (T)0 : (T)(1 / a); }
NJ_INLINE f32 nj_reciprocal(f32 a) { return 1.0f / a; }
NJ_INLINE f64 nj_reciprocal(f64 a) { return 1.0 / a; }

// A NaN is returned as it is; of two equal values the second, which tells -0.0 from 0.0.
template <class T> NJ_INLINE T nj_maximum(T a, T b) { return (a > b) | (a != a) ? a : b; }

template <class T> NJ_INLINE T nj_minimum(T a, T b) { return (a < b) | (a != a) ? a : b; }

template <class T> NJ_INLINE T nj_fmax(T a, T b) { return (a > b) | (b != b) ? a : b; }

template <class T> NJ_INLINE T nj_fmin(T a, T b) { return (a < b) | (b != b) ? a : b; }

template <class T> NJ_INLINE b1 nj_isnan(T x) { return x != x; }

NJ_INLINE b1 nj_isinf(f32 x) { return __builtin_fabsf(x) > 0x1.fffffep127f; }
NJ_INLINE b1 nj_isinf(f64 x) { return __builtin_fabs(x) > 0x1.fffffffffffffp1023; }
template <class T> NJ_INLINE b1 nj_isinf(T) { return false; }

NJ_INLINE b1 nj_isfinite(f32 x) { return __builtin_fabsf(x) <= 0x1.fffffep127f; }
NJ_INLINE b1 nj_isfinite(f64 x) { return __builtin_fabs(x) <= 0x1.fffffffffffffp1023; }
template <class T> NJ_INLINE b1 nj_isfinite(T) { return true; }

NJ_INLINE b1 nj_signbit(f32 x) { return nj_bits(x) >> 31; }
NJ_INLINE b1 nj_signbit(f64 x) { return nj_bits(x) >> 63; }

NJ_INLINE f32 nj_absolute(f32 x) { return __builtin_fabsf(x); }
NJ_INLINE f64 nj_absolute(f64 x) { return __builtin_fabs(x); }
template <class T> NJ_INLINE T nj_fabs(T x) { return nj_absolute(x); }

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
template <class T> NJ_INLINE T nj_radians(T x) { return nj_deg2rad(x); }

NJ_INLINE f32 nj_rad2deg(f32 x) { return x * (180.0f / 3.14159265358979323846f); }
NJ_INLINE f64 nj_rad2deg(f64 x) { return x * (180.0 / 3.14159265358979323846); }
template <class T> NJ_INLINE T nj_degrees(T x) { return nj_rad2deg(x); }

template <class T> NJ_INLINE T nj_heaviside(T x, T at_zero) {
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

template <class T> NJ_INLINE T nj_modf_whole(T x) { return nj_trunc(x); }

template <class T> NJ_INLINE T nj_modf_fraction(T x) {
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
template <class T> NJ_INLINE T nj_ldexp(T x, i64 n) {
  return nj_lib_ldexp(x, (i32)(n > 9999 ? 9999 : n < -9999 ? -9999 : n));
}

f32 nj_lib_fmod(f32, f32) __asm__("fmodf");
f64 nj_lib_fmod(f64, f64) __asm__("fmod");

// Exact: the quotient's nearest integer n is right to within 1/4, so x - n y is less than y and, being
// a multiple of y's last place, a float. libm takes what is beyond 2^51, not finite, or over zero.
NJ_INLINE f64 nj_fmod(f64 x, f64 y) {
  const f64 quotient = x / y;
  if (__builtin_expect(!(__builtin_fabs(quotient) < 0x1p51), 0)) return nj_lib_fmod(x, y);
  const f64 size = __builtin_fabs(y);
  const f64 rest = __builtin_fma(-__builtin_rint(quotient), y, x);
  const f64 near = (rest != 0) & ((rest < 0) != (x < 0)) ? rest + __builtin_copysign(size, x) : rest;
  return __builtin_fabs(x) < size ? x : __builtin_copysign(near, x);
}
NJ_INLINE f32 nj_fmod(f32 x, f32 y) {
  const f64 quotient = (f64)x / (f64)y;
  if (__builtin_expect(!(__builtin_fabs(quotient) < 0x1p51), 0)) return nj_lib_fmod(x, y);
  return (f32)nj_fmod((f64)x, (f64)y);
}

// npy_divmod: the remainder has the divisor's sign, the quotient is rounded down and snapped.
template <class T> NJ_INLINE T nj_float_remainder(T x, T y) {
  const T rest = nj_fmod(x, y);
  if (y == 0) return rest;
  if (rest == 0) return nj_copysign((T)0, y);
  return (y < 0) != (rest < 0) ? rest + y : rest;
}

NJ_INLINE f32 nj_remainder(f32 x, f32 y) { return nj_float_remainder(x, y); }
NJ_INLINE f64 nj_remainder(f64 x, f64 y) { return nj_float_remainder(x, y); }

template <class T> NJ_INLINE T nj_float_floor_divide(T x, T y) {
  if (y == 0) return x / y;
  const T rest = nj_fmod(x, y);
  const T quotient = (x - rest) / y - (T)((rest != 0) & ((y < 0) != (rest < 0)));
  if (quotient == 0) return nj_copysign((T)0, x / y);
  const T floored = nj_floor(quotient);
  return quotient - floored > (T)0.5 ? floored + 1 : floored;
}

NJ_INLINE f32 nj_floor_divide(f32 x, f32 y) { return nj_float_floor_divide(x, y); }
NJ_INLINE f64 nj_floor_divide(f64 x, f64 y) { return nj_float_floor_divide(x, y); }
