// Operations on integers, as NumPy defines them where C++ does not, and what is the same for floats.

// Integers. A zero divisor gives 0; the smallest integer over -1 stays what it is.
template <class T>
struct nj_integer {
  static const b1 is_signed = (T)-1 < (T)0;
  static const i32 width = 8 * (i32)sizeof(T);
};

template <class T>
NJ_INLINE T nj_floor_divide(T a, T b) {
  if (nj_integer<T>::is_signed) {
    if (b == 0)
      return 0;
    if (b == (T)-1)
      return (T)(0 - a);
    const T q = (T)(a / b);
    return (T)(q - (((T)(q * b) != a) & ((a < 0) != (b < 0))));
  }
  return b == 0 ? (T)0 : (T)(a / b);
}

template <class T>
NJ_INLINE T nj_fmod(T a, T b) {
  return b == 0 || (nj_integer<T>::is_signed && b == (T)-1) ? (T)0 : (T)(a % b);
}

template <class T>
NJ_INLINE T nj_remainder(T a, T b) {
  const T r = nj_fmod(a, b);
  return (r != 0) & ((r < 0) != (b < 0)) ? (T)(r + b) : r;
}

// The same where `a` is most often within 0..b-1.
NJ_INLINE i64 nj_near_remainder(i64 a, i64 b) {
  return __builtin_expect((a >= 0) & (a < b), true) ? a : nj_remainder(a, b);
}

// A shift by the width or more, or by a negative number, moves every bit out.
template <class T>
NJ_INLINE T nj_left_shift(T a, T b) {
  const b1 inside = (u64)b < (u64)nj_integer<T>::width;
  return inside ? (T)((u64)a << (inside ? (u64)b : 0)) : (T)0;
}

template <class T>
NJ_INLINE T nj_right_shift(T a, T b) {
  const b1 inside = (u64)b < (u64)nj_integer<T>::width;
  return inside ? (T)(a >> (inside ? (i32)b : 0)) : (T)(a < 0 ? -1 : 0);
}

// By squaring, wrapping; the exponent is not negative (NumPy raises there).
template <class T>
NJ_INLINE T nj_power(T a, T b) {
  T result = (b & 1) ? a : (T)1;
  for (b = (T)(b >> 1); b > 0; b = (T)(b >> 1)) {
    a = (T)((u64)a * (u64)a);
    if (b & 1)
      result = (T)((u64)result * (u64)a);
  }
  return result;
}

template <class T>
NJ_INLINE T nj_absolute(T a) {
  return a < 0 ? (T)(0 - a) : a;
}

template <class T>
NJ_INLINE u64 nj_magnitude(T a) {
  return a < 0 ? 0 - (u64)a : (u64)a;
}

NJ_INLINE u64 nj_common_divisor(u64 a, u64 b) {
  while (a != 0) {
    const u64 rest = b % a;
    b = a;
    a = rest;
  }
  return b;
}

template <class T>
NJ_INLINE T nj_gcd(T a, T b) {
  return (T)nj_common_divisor(nj_magnitude(a), nj_magnitude(b));
}

template <class T>
NJ_INLINE T nj_lcm(T a, T b) {
  const u64 divisor = nj_common_divisor(nj_magnitude(a), nj_magnitude(b));
  return divisor == 0 ? (T)0 : (T)(nj_magnitude(a) / divisor * nj_magnitude(b));
}

template <class T>
NJ_INLINE u8 nj_bitwise_count(T a) {
  return (u8)__builtin_popcountll(nj_magnitude(a));
}

template <class T>
NJ_INLINE T nj_sign(T a) {
  return (T)((a > 0) - (a < 0));
}

template <class T>
NJ_INLINE T nj_negative(T a) {
  return (T)(0 - a);
}
NJ_INLINE f32 nj_negative(f32 a) { return -a; }
NJ_INLINE f64 nj_negative(f64 a) { return -a; }

template <class T>
NJ_INLINE T nj_positive(T a) {
  return a;
}

template <class T>
NJ_INLINE T nj_square(T a) {
  return (T)(a * a);
}

// NumPy divides in floating point: what an infinity becomes depends on the width.
template <class T>
NJ_INLINE T nj_reciprocal(T a) {
  const T none = sizeof(T) >= 4 && (T)-1 < 0 ? (T)((T)1 << (8 * sizeof(T) - 1)) : (T)0;
  return a == 0 ? none : (T)(1 / a);
}
NJ_INLINE f32 nj_reciprocal(f32 a) { return 1.0f / a; }
NJ_INLINE f64 nj_reciprocal(f64 a) { return 1.0 / a; }

// A NaN is returned as it is; of two equal values the second, which tells -0.0 from 0.0.
template <class T>
NJ_INLINE T nj_maximum(T a, T b) {
  return (a > b) | (a != a) ? a : b;
}

template <class T>
NJ_INLINE T nj_minimum(T a, T b) {
  return (a < b) | (a != a) ? a : b;
}

template <class T>
NJ_INLINE T nj_fmax(T a, T b) {
  return (a > b) | (b != b) ? a : b;
}

template <class T>
NJ_INLINE T nj_fmin(T a, T b) {
  return (a < b) | (b != b) ? a : b;
}

template <class T>
NJ_INLINE b1 nj_isnan(T x) {
  return x != x;
}
