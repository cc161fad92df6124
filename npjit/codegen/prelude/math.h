// Functions built from the vector functions: logarithms of sums, powers, error functions.

template <class T> NJ_INLINE T nj_float_power(T x, T y) { return nj_power(x, y); }

// Of two infinities of one sign the difference is not a number: equal arguments are taken apart.
template <class T> NJ_INLINE T nj_logaddexp(T x, T y) {
  const T ln2 = (T)0.693147180559945309417232121458;
  const T sum = nj_maximum(x, y) + nj_log1p(nj_exp(-nj_absolute(x - y)));
  return x == y ? x + ln2 : sum;
}

template <class T> NJ_INLINE T nj_logaddexp2(T x, T y) {
  const T log2e = (T)1.442695040888963407359924681001892137;
  const T sum = nj_maximum(x, y) + nj_log1p(nj_exp2(-nj_absolute(x - y))) * log2e;
  return x == y ? x + (T)1 : sum;
}
