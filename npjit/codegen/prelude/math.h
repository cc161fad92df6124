// Functions built from the vector functions: logarithms of sums, powers, error functions.

// A power whose exponent the compiler knows, where a few products or a root are within 3 ulp: they
// take a tenth of the time. Dividing first keeps results near the ends of the range; pow(-inf, 1.5)
// is inf and pow(-0.0, -1.5) too.
#ifdef __CUDACC_RTC__
#define NJ_LITERAL(x) false
#else
#define NJ_LITERAL(x) __builtin_constant_p(x)
#endif
template <class T>
NJ_INLINE T nj_raised(T x, T y) {
  if (NJ_LITERAL(y)) {
    const T way = y < 0 ? (T)1 / x : x;
    if (y == 3)
      return x * x * x;
    if (y == 4)
      return (x * x) * (x * x);
    if (y == -2)
      return way * way;
    if (nj_absolute(y) == (T)1.5) {
      const T root = nj_sqrt(x == -(T)__builtin_inf() ? -x : x);
      return nj_absolute(y < 0 ? way / root : x * root);
    }
  }
  return nj_power(x, y);
}

template <class T>
NJ_INLINE T nj_float_power(T x, T y) {
  return nj_power(x, y);
}

// The distance is 0 for equal infinities too, whose difference is not a number. It is chosen in front
// of the series: a choice behind it would let compilers branch around the calls.
template <class T>
NJ_INLINE T nj_logaddexp(T x, T y) {
  const T distance = x == y ? (T)0 : nj_absolute(x - y);
  return nj_maximum(x, y) + nj_log1p(nj_exp(-distance));
}

template <class T>
NJ_INLINE T nj_logaddexp2(T x, T y) {
  const T distance = x == y ? (T)0 : nj_absolute(x - y);
  return nj_maximum(x, y) + nj_log1p(nj_exp2(-distance)) * (T)1.442695040888963407359924681;
}
