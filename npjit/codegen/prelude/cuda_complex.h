// Functions of complex numbers that the CPU takes from libm; special values as C99 has them.

template <class T>
NJ_INLINE cplx<T> nj_shuffle(u32 mask, cplx<T> x, i32 distance) {
  return {nj_shuffle(mask, x.re, distance), nj_shuffle(mask, x.im, distance)};
}

template <class T>
NJ_INLINE T nj_infinite() {
  return nj_cast<T>(__builtin_inf());
}

template <class T>
NJ_INLINE T nj_no_number() {
  return nj_cast<T>(__builtin_nan(""));
}

// -i f(i z), which turns a hyperbolic function into its circular one.
template <class T>
NJ_INLINE cplx<T> nj_turn(cplx<T> z) {
  return {-z.im, z.re};
}
template <class T>
NJ_INLINE cplx<T> nj_turn_back(cplx<T> z) {
  return {z.im, -z.re};
}

// e^x factor, without overflow on the way.
template <class T>
NJ_INLINE T nj_exp_times(T x, T factor) {
  const T half = nj_exp(x / 2);
  return half * factor * half;
}

template <class T>
NJ_INLINE cplx<T> nj_exp(cplx<T> z) {
  if (z.im == 0)
    return {nj_exp(z.re), z.im};
  if (!nj_isfinite(z.im)) {
    if (z.re == -nj_infinite<T>())
      return {(T)0, nj_copysign((T)0, z.im)};
    return {z.re == nj_infinite<T>() ? z.re : z.im - z.im, nj_no_number<T>()};
  }
  return {nj_exp_times(z.re, nj_cos(z.im)), nj_exp_times(z.re, nj_sin(z.im))};
}

// log |z|^2 / 2 near 1 from squares whose roundings are kept.
template <class T>
NJ_INLINE T nj_log_length(cplx<T> z) {
  const T a = nj_absolute(z.re);
  const T b = nj_absolute(z.im);
  const T large = a > b ? a : b;
  const T small = a > b ? b : a;
  const T length = nj_hypot(large, small);
  if (length > (T)0.5 && length < (T)2) {
    const T p = large * large;
    const T q = small * small;
    const T sum = (p - 1) + q;
    const T rest = (p - 1) - sum + q + nj_fma(large, large, -p) + nj_fma(small, small, -q);
    return nj_log1p(sum + rest) / 2;
  }
  if (nj_isinf(length) && nj_isfinite(large)) {
    return nj_log(nj_hypot(large / 2, small / 2)) + (T)0.693147180559945309417232121458;
  }
  return nj_log(length);
}

template <class T>
NJ_INLINE cplx<T> nj_log(cplx<T> z) {
  return {nj_log_length(z), nj_arctan2(z.im, z.re)};
}

template <class T>
NJ_INLINE cplx<T> nj_sqrt(cplx<T> z) {
  if (z.re == 0 && z.im == 0)
    return {(T)0, z.im};
  if (nj_isinf(z.im))
    return {nj_infinite<T>(), z.im};
  if (nj_isinf(z.re)) {
    if (z.re > 0)
      return {z.re, nj_copysign(z.im - z.im, z.im)};
    return {nj_absolute(z.im - z.im), nj_copysign(z.re, z.im)};
  }
  if (z.re == 0) {
    const T root = nj_sqrt(nj_absolute(z.im) / 2);
    return {root, nj_copysign(root, z.im)};
  }
  const T size = nj_absolute(z.re) + nj_absolute(z.im);
  const T scale = size > (T)1e30 ? (T)0.25 : size < (T)1e-30 ? (T)0x1p54 : (T)1;
  const T back = size > (T)1e30 ? (T)2 : size < (T)1e-30 ? (T)0x1p-27 : (T)1;
  const T re = z.re * scale;
  const T im = z.im * scale;
  const T root = nj_sqrt((nj_absolute(re) + nj_hypot(re, im)) / 2);
  if (re >= 0)
    return {root * back, im / (2 * root) * back};
  return {nj_absolute(im) / (2 * root) * back, nj_copysign(root, im) * back};
}

// sinh x c and cosh x c, where an infinite x meets no 0 or NaN.
template <class T>
NJ_INLINE T nj_sinh_times(T x, T c) {
  const T size = nj_absolute(x);
  return size > 80 ? nj_copysign(nj_exp_times(size, c / 2), x) * nj_copysign((T)1, c)
                   : nj_sinh(x) * c;
}
template <class T>
NJ_INLINE T nj_cosh_times(T x, T c) {
  const T size = nj_absolute(x);
  return size > 80 ? nj_exp_times(size, c / 2) : nj_cosh(x) * c;
}

template <class T>
NJ_INLINE cplx<T> nj_sinh(cplx<T> z) {
  if (z.im == 0)
    return {nj_sinh(z.re), z.im};
  if (!nj_isfinite(z.im)) {
    const b1 kept = z.re == 0 || nj_isinf(z.re);
    return {kept ? z.re : nj_no_number<T>(), nj_no_number<T>()};
  }
  const T c = nj_cos(z.im);
  return {nj_copysign(nj_sinh_times(nj_absolute(z.re), nj_absolute(c)), z.re * c) *
              (z.re == z.re ? 1 : z.re),
          nj_cosh_times(z.re, nj_sin(z.im))};
}

template <class T>
NJ_INLINE cplx<T> nj_cosh(cplx<T> z) {
  if (z.im == 0)
    return {nj_cosh(z.re), nj_copysign((T)1, z.re) * z.im};
  if (!nj_isfinite(z.im)) {
    const T size = nj_isinf(z.re) ? nj_infinite<T>() : nj_no_number<T>();
    return {size, z.re == 0 ? (T)0 : nj_no_number<T>()};
  }
  const T s = nj_sin(z.im);
  const T size = nj_sinh_times(nj_absolute(z.re), nj_absolute(s));
  const T sign = nj_copysign((T)1, z.re) * nj_copysign((T)1, s);
  return {nj_cosh_times(z.re, nj_cos(z.im)), size * sign};
}

template <class T>
NJ_INLINE cplx<T> nj_tanh(cplx<T> z) {
  if (nj_isinf(z.re)) {
    const b1 turns = nj_isfinite(z.im) && nj_absolute(z.im) > 1;
    const T sign = turns ? nj_sin(z.im) * nj_cos(z.im) : z.im;
    return {nj_copysign((T)1, z.re), nj_copysign((T)0, sign)};
  }
  if (!nj_isfinite(z.im))
    return {z.re == 0 ? z.re : nj_no_number<T>(), nj_no_number<T>()};
  if (z.re != z.re)
    return {z.re, z.im == 0 ? z.im : z.re};
  if (nj_absolute(z.re) > 22) {
    const T small = nj_exp(-nj_absolute(z.re));
    return {nj_copysign((T)1, z.re), 4 * nj_sin(z.im) * nj_cos(z.im) * small * small};
  }
  const T t = nj_tan(z.im);
  const T s = nj_sinh(z.re);
  const T beta = 1 + t * t;
  const T rho = nj_sqrt(1 + s * s);
  const T denominator = 1 + beta * s * s;
  return {beta * rho * s / denominator, t / denominator};
}

template <class T>
NJ_INLINE cplx<T> nj_sin(cplx<T> z) {
  return nj_turn_back(nj_sinh(nj_turn(z)));
}

template <class T>
NJ_INLINE cplx<T> nj_cos(cplx<T> z) {
  return nj_cosh(nj_turn(z));
}

template <class T>
NJ_INLINE cplx<T> nj_tan(cplx<T> z) {
  return nj_turn_back(nj_tanh(nj_turn(z)));
}

// Kahan's formulas: roots of 1 - z and 1 + z, which know the branch cuts by the sign of zero.
template <class T>
NJ_INLINE cplx<T> nj_root_below(cplx<T> z) {
  return nj_sqrt(cplx<T>{1 - z.re, -z.im});
}
template <class T>
NJ_INLINE cplx<T> nj_root_above(cplx<T> z) {
  return nj_sqrt(cplx<T>{1 + z.re, z.im});
}

template <class T>
NJ_INLINE cplx<T> nj_arcsin(cplx<T> z) {
  if (nj_isinf(z.re) || nj_isinf(z.im)) {
    const T size = nj_isinf(z.im) && z.re != z.re ? z.re : nj_arctan2(z.re, nj_absolute(z.im));
    return {size, nj_copysign(nj_infinite<T>(), z.im)};
  }
  if (z.re == 0 && z.im != z.im)
    return z;
  const cplx<T> a = nj_root_below(z);
  const cplx<T> b = nj_root_above(z);
  const T length = a.re * b.im - a.im * b.re;
  return {nj_arctan2(z.re, a.re * b.re - a.im * b.im), nj_arcsinh(length)};
}

template <class T>
NJ_INLINE cplx<T> nj_arccos(cplx<T> z) {
  if (nj_isinf(z.re) || nj_isinf(z.im)) {
    return {nj_arctan2(nj_absolute(z.im), z.re), nj_copysign(nj_infinite<T>(), -z.im)};
  }
  const cplx<T> a = nj_root_below(z);
  const cplx<T> b = nj_root_above(z);
  return {2 * nj_arctan2(a.re, b.re), nj_arcsinh(b.re * a.im - b.im * a.re)};
}

template <class T>
NJ_INLINE cplx<T> nj_arccosh(cplx<T> z) {
  if (nj_isinf(z.re) || nj_isinf(z.im))
    return {nj_infinite<T>(), nj_arctan2(z.im, z.re)};
  const cplx<T> a = nj_sqrt(cplx<T>{z.re - 1, z.im});
  const cplx<T> b = nj_root_above(z);
  return {nj_arcsinh(a.re * b.re + a.im * b.im), 2 * nj_arctan2(a.im, b.re)};
}

template <class T>
NJ_INLINE cplx<T> nj_arctanh(cplx<T> z) {
  if (z.re == 0 && z.im != z.im)
    return z;
  if (nj_isinf(z.re) && z.im != z.im)
    return {nj_copysign((T)0, z.re), z.im};
  if (nj_isinf(z.re) || nj_isinf(z.im)) {
    const T quarter = (T)1.57079632679489661923132169163975144;
    return {nj_copysign((T)0, z.re), nj_copysign(quarter, z.im)};
  }
  const T below = 1 - z.re;
  const T square = z.im * z.im;
  const T twice = nj_arctan2(2 * z.im, below * (1 + z.re) - square);
  return {nj_log1p(4 * z.re / (below * below + square)) / 4, twice / 2};
}

template <class T>
NJ_INLINE cplx<T> nj_arcsinh(cplx<T> z) {
  return nj_turn_back(nj_arcsin(nj_turn(z)));
}

template <class T>
NJ_INLINE cplx<T> nj_arctan(cplx<T> z) {
  return nj_turn_back(nj_arctanh(nj_turn(z)));
}

// npy_cpow; see complex.h.
template <class T>
NJ_INLINE cplx<T> nj_power(cplx<T> a, cplx<T> b) {
  const cplx<T> one = {(T)1, (T)0};
  if (b.re == 0 && b.im == 0)
    return one;
  if (a.re == 0 && a.im == 0) {
    return b.re > 0 ? cplx<T>{(T)0, (T)0} : cplx<T>{nj_no_number<T>(), nj_no_number<T>()};
  }
  if (b.im == 0 && b.re > -100 && b.re < 100 && b.re == nj_trunc(b.re)) {
    if (b.re == 1)
      return a;
    if (b.re == 2)
      return a * a;
    if (b.re == 3)
      return a * (a * a);
    cplx<T> result = one;
    for (i32 n = (i32)nj_absolute(b.re); n > 0; n >>= 1) {
      if (n & 1)
        result = result * a;
      a = a * a;
    }
    return b.re < 0 ? one / result : result;
  }
  return nj_exp(b * nj_log(a));
}

// NumPy's formula, whose last bits are hypot's.
template <class T>
NJ_INLINE cplx<T> nj_log1p(cplx<T> x) {
  return {nj_log(nj_hypot(x.re + 1, x.im)), nj_arctan2(x.im, x.re + 1)};
}
