// Functions built from the vector functions: logarithms of sums, powers, error functions.

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
