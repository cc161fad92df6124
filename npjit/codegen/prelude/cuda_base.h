// What NVRTC has under other names than gcc, and the conversions that CUDA makes otherwise than x86.

#define __builtin_fabsf fabsf

#define __builtin_fabs fabs

#define __builtin_floorf floorf

#define __builtin_floor floor

#define __builtin_ceilf ceilf

#define __builtin_ceil ceil

#define __builtin_truncf truncf

#define __builtin_trunc trunc

#define __builtin_rintf rintf

#define __builtin_rint rint

#define __builtin_sqrtf sqrtf

#define __builtin_sqrt sqrt

#define __builtin_fmaf fmaf

#define __builtin_fma fma

#define __builtin_copysignf copysignf

#define __builtin_copysign copysign

#define __builtin_popcountll __popcll

#define __builtin_inff() __int_as_float(0x7f800000)

#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)

#define __builtin_nanf(text) __int_as_float(0x7fc00000)

#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000ll)

NJ_INLINE u32 nj_bits(f32 x) { return __float_as_uint(x); }
NJ_INLINE u64 nj_bits(f64 x) { return (u64)__double_as_longlong(x); }
NJ_INLINE f32 nj_from_bits(u32 bits) { return __uint_as_float(bits); }
NJ_INLINE f64 nj_from_bits(u64 bits) { return __longlong_as_double((i64)bits); }

// What does not fit becomes the smallest integer, as on x86.
NJ_INLINE i32 nj_to_i32(f32 x) { return x >= -0x1p31f && x < 0x1p31f ? (i32)x : -2147483647 - 1; }
NJ_INLINE i32 nj_to_i32(f64 x) {
  return x > -0x1.00000002p31 && x < 0x1p31 ? (i32)x : -2147483647 - 1;
}
NJ_INLINE i64 nj_to_i64(f32 x) {
  return x >= -0x1p63f && x < 0x1p63f ? (i64)x : -9223372036854775807ll - 1;
}
NJ_INLINE i64 nj_to_i64(f64 x) {
  return x >= -0x1p63 && x < 0x1p63 ? (i64)x : -9223372036854775807ll - 1;
}

NJ_INLINE i8 nj_convert(i8*, f64 x) { return (i8)nj_to_i32(x); }
NJ_INLINE i16 nj_convert(i16*, f64 x) { return (i16)nj_to_i32(x); }
NJ_INLINE i32 nj_convert(i32*, f64 x) { return nj_to_i32(x); }
NJ_INLINE i64 nj_convert(i64*, f64 x) { return nj_to_i64(x); }
NJ_INLINE u8 nj_convert(u8*, f64 x) { return (u8)nj_to_i32(x); }
NJ_INLINE u16 nj_convert(u16*, f64 x) { return (u16)nj_to_i32(x); }
NJ_INLINE u32 nj_convert(u32*, f64 x) {
  return x >= 0x1p31 ? (u32)nj_to_i32(x - 0x1p31) ^ (1u << 31) : (u32)nj_to_i32(x);
}
NJ_INLINE u64 nj_convert(u64*, f64 x) {
  return x >= 0x1p63 ? (u64)nj_to_i64(x - 0x1p63) ^ (1ull << 63) : (u64)nj_to_i64(x);
}
NJ_INLINE i8 nj_convert(i8*, f32 x) { return (i8)nj_to_i32(x); }
NJ_INLINE i16 nj_convert(i16*, f32 x) { return (i16)nj_to_i32(x); }
NJ_INLINE i32 nj_convert(i32*, f32 x) { return nj_to_i32(x); }
NJ_INLINE i64 nj_convert(i64*, f32 x) { return nj_to_i64(x); }
NJ_INLINE u8 nj_convert(u8*, f32 x) { return (u8)nj_to_i32(x); }
NJ_INLINE u16 nj_convert(u16*, f32 x) { return (u16)nj_to_i32(x); }
NJ_INLINE u32 nj_convert(u32*, f32 x) {
  return x >= 0x1p31f ? (u32)nj_to_i32(x - 0x1p31f) ^ (1u << 31) : (u32)nj_to_i32(x);
}
NJ_INLINE u64 nj_convert(u64* to, f32 x) { return nj_convert(to, (f64)x); }
template <class To, class From>
NJ_INLINE To nj_convert(To*, From x) {
  return (To)x;
}

NJ_INLINE f32 nj_rsqrt(f32 x) { return rsqrtf(x); }

// One instruction here; masks are for vectors.
template <class T>
NJ_INLINE T nj_select(b1 c, T a, T b) {
  return c ? a : b;
}

NJ_INLINE f32 nj_lib_fmod(f32 x, f32 y) { return fmodf(x, y); }
NJ_INLINE f64 nj_lib_fmod(f64 x, f64 y) { return fmod(x, y); }

// ldexpf loses results below the normal numbers.
NJ_INLINE f32 nj_lib_ldexp(f32 x, i32 n) { return (f32)ldexp((f64)x, n); }
NJ_INLINE f64 nj_lib_ldexp(f64 x, i32 n) { return ldexp(x, n); }
template <class T>
NJ_INLINE T nj_ldexp(T x, i64 n) {
  return nj_lib_ldexp(x, (i32)(n > 9999 ? 9999 : n < -9999 ? -9999 : n));
}

// Both at once share the reduction of the angle.
template <class T>
struct nj_sin_and_cos {
  T sin, cos;
};
NJ_INLINE nj_sin_and_cos<f32> nj_sincos(f32 x) {
  nj_sin_and_cos<f32> both;
  sincosf(x, &both.sin, &both.cos);
  return both;
}
NJ_INLINE nj_sin_and_cos<f64> nj_sincos(f64 x) {
  nj_sin_and_cos<f64> both;
  sincos(x, &both.sin, &both.cos);
  return both;
}
