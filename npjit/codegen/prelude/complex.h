// Complex numbers as two reals, so that a loop over split planes stays vector code. The
// transcendental functions are libm's, which are NumPy's.

template <class T>
struct cplx {
  T re, im;
};
typedef cplx<f32> c64;
typedef cplx<f64> c128;
template <class T>
NJ_INLINE cplx<T> operator+(cplx<T> a, cplx<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
NJ_INLINE cplx<T> operator-(cplx<T> a, cplx<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
NJ_INLINE cplx<T> operator*(cplx<T> a, cplx<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's method, as NumPy: both ways are computed and chosen from, which keeps the loop a
// vector's.
template <class T>
NJ_INLINE cplx<T> operator/(cplx<T> a, cplx<T> b) {
  const T re_size = nj_absolute(b.re);
  const T im_size = nj_absolute(b.im);
  const b1 wide = re_size >= im_size;
  const T ratio = wide ? b.im / b.re : b.re / b.im;
  const T scale = (T)1 / (wide ? b.re + b.im * ratio : b.im + b.re * ratio);
  const T re = wide ? a.re + a.im * ratio : a.re * ratio + a.im;
  const T im = wide ? a.im - a.re * ratio : a.im * ratio - a.re;
  const b1 zero = (re_size == 0) & (im_size == 0);
  return {zero ? a.re / re_size : re * scale, zero ? a.im / re_size : im * scale};
}
template <class T>
NJ_INLINE cplx<T> operator-(cplx<T> a) {
  return {-a.re, -a.im};
}
template <class T>
NJ_INLINE cplx<T>& operator+=(cplx<T>& a, cplx<T> b) {
  return a = a + b;
}
template <class T>
NJ_INLINE cplx<T>& operator*=(cplx<T>& a, cplx<T> b) {
  return a = a * b;
}
template <class T>
NJ_INLINE b1 operator==(cplx<T> a, cplx<T> b) {
  return (a.re == b.re) & (a.im == b.im);
}
template <class T>
NJ_INLINE b1 operator!=(cplx<T> a, cplx<T> b) {
  return !(a == b);
}
template <class T>
NJ_INLINE b1 nj_ordered(cplx<T> a, cplx<T> b) {
  return (a.im == a.im) & (b.im == b.im);
}
template <class T>
NJ_INLINE b1 operator<(cplx<T> a, cplx<T> b) {
  return ((a.re < b.re) & nj_ordered(a, b)) | ((a.re == b.re) & (a.im < b.im));
}
template <class T>
NJ_INLINE b1 operator<=(cplx<T> a, cplx<T> b) {
  return ((a.re < b.re) & nj_ordered(a, b)) | ((a.re == b.re) & (a.im <= b.im));
}
template <class T>
NJ_INLINE b1 operator>(cplx<T> a, cplx<T> b) {
  return b < a;
}
template <class T>
NJ_INLINE b1 operator>=(cplx<T> a, cplx<T> b) {
  return b <= a;
}

template <class T, class From>
NJ_INLINE cplx<T> nj_convert(cplx<T>*, From x) {
  return {nj_cast<T>(x), (T)0};
}
template <class T, class U>
NJ_INLINE cplx<T> nj_from_complex(cplx<T>*, cplx<U> x) {
  return {(T)x.re, (T)x.im};
}
template <class T>
NJ_INLINE b1 nj_from_complex(b1*, cplx<T> x) {
  return x != cplx<T>{};
}
template <class To, class T>
NJ_INLINE To nj_from_complex(To*, cplx<T> x) {
  return nj_cast<To>(x.re);
}
template <class To, class T>
NJ_INLINE To nj_cast(cplx<T> x) {
  return nj_from_complex((To*)nullptr, x);
}

template <class T>
NJ_INLINE T nj_absolute(cplx<T> x) {
  return nj_hypot(x.re, x.im);
}

template <class T>
NJ_INLINE T nj_angle(cplx<T> x) {
  return nj_arctan2(x.im, x.re);
}

template <class T>
NJ_INLINE cplx<T> nj_conjugate(cplx<T> x) {
  return {x.re, -x.im};
}

template <class T>
NJ_INLINE cplx<T> nj_negative(cplx<T> x) {
  return -x;
}

template <class T>
NJ_INLINE cplx<T> nj_square(cplx<T> x) {
  return {x.re * x.re - x.im * x.im, x.re * x.im + x.im * x.re};
}

template <class T>
NJ_INLINE cplx<T> nj_reciprocal(cplx<T> x) {
  const b1 wide = nj_absolute(x.im) <= nj_absolute(x.re);
  const T ratio = wide ? x.im / x.re : x.re / x.im;
  const T divisor = wide ? x.re + x.im * ratio : x.re * ratio + x.im;
  return {(wide ? (T)1 : ratio) / divisor, (wide ? -ratio : (T)-1) / divisor};
}

template <class T>
NJ_INLINE cplx<T> nj_rint(cplx<T> x) {
  return {nj_rint(x.re), nj_rint(x.im)};
}

template <class T>
NJ_INLINE b1 nj_isinf(cplx<T> x) {
  return nj_isinf(x.re) | nj_isinf(x.im);
}

template <class T>
NJ_INLINE b1 nj_isfinite(cplx<T> x) {
  return nj_isfinite(x.re) & nj_isfinite(x.im);
}

template <class T>
NJ_INLINE cplx<T> nj_sign(cplx<T> x) {
  const T size = nj_absolute(x);
  if (nj_isinf(x.re) && nj_isinf(x.im))
    return {x.re - x.re, x.re - x.re};
  if (nj_isinf(x.re))
    return {nj_copysign((T)1, x.re), (T)0};
  if (nj_isinf(x.im))
    return {(T)0, nj_copysign((T)1, x.im)};
  return size == 0 ? cplx<T>{(T)0, (T)0} : cplx<T>{x.re / size, x.im / size};
}

template <class T>
NJ_INLINE cplx<T> nj_maximum(cplx<T> a, cplx<T> b) {
  return (a >= b) | nj_isnan(a) ? a : b;
}

template <class T>
NJ_INLINE cplx<T> nj_minimum(cplx<T> a, cplx<T> b) {
  return (a <= b) | nj_isnan(a) ? a : b;
}

template <class T>
NJ_INLINE cplx<T> nj_fmax(cplx<T> a, cplx<T> b) {
  return (a >= b) | nj_isnan(b) ? a : b;
}

template <class T>
NJ_INLINE cplx<T> nj_fmin(cplx<T> a, cplx<T> b) {
  return (a <= b) | nj_isnan(b) ? a : b;
}

template <class T>
struct nj_libm_complex;
template <>
struct nj_libm_complex<f32> {
  typedef float _Complex type;
};
template <>
struct nj_libm_complex<f64> {
  typedef double _Complex type;
};
template <class T>
NJ_INLINE typename nj_libm_complex<T>::type nj_to_libm(cplx<T> x) {
  typename nj_libm_complex<T>::type z;
  __real__ z = x.re;
  __imag__ z = x.im;
  return z;
}
NJ_INLINE c64 nj_from_libm(float _Complex z) { return {__real__ z, __imag__ z}; }
NJ_INLINE c128 nj_from_libm(double _Complex z) { return {__real__ z, __imag__ z}; }

float _Complex nj_lib_sin(float _Complex) __asm__("csinf");
double _Complex nj_lib_sin(double _Complex) __asm__("csin");
template <class T>
NJ_INLINE cplx<T> nj_sin(cplx<T> x) {
  return nj_from_libm(nj_lib_sin(nj_to_libm(x)));
}

float _Complex nj_lib_cos(float _Complex) __asm__("ccosf");
double _Complex nj_lib_cos(double _Complex) __asm__("ccos");
template <class T>
NJ_INLINE cplx<T> nj_cos(cplx<T> x) {
  return nj_from_libm(nj_lib_cos(nj_to_libm(x)));
}

float _Complex nj_lib_tan(float _Complex) __asm__("ctanf");
double _Complex nj_lib_tan(double _Complex) __asm__("ctan");
template <class T>
NJ_INLINE cplx<T> nj_tan(cplx<T> x) {
  return nj_from_libm(nj_lib_tan(nj_to_libm(x)));
}

float _Complex nj_lib_arcsin(float _Complex) __asm__("casinf");
double _Complex nj_lib_arcsin(double _Complex) __asm__("casin");
template <class T>
NJ_INLINE cplx<T> nj_arcsin(cplx<T> x) {
  return nj_from_libm(nj_lib_arcsin(nj_to_libm(x)));
}

float _Complex nj_lib_arccos(float _Complex) __asm__("cacosf");
double _Complex nj_lib_arccos(double _Complex) __asm__("cacos");
template <class T>
NJ_INLINE cplx<T> nj_arccos(cplx<T> x) {
  return nj_from_libm(nj_lib_arccos(nj_to_libm(x)));
}

float _Complex nj_lib_arctan(float _Complex) __asm__("catanf");
double _Complex nj_lib_arctan(double _Complex) __asm__("catan");
template <class T>
NJ_INLINE cplx<T> nj_arctan(cplx<T> x) {
  return nj_from_libm(nj_lib_arctan(nj_to_libm(x)));
}

float _Complex nj_lib_sinh(float _Complex) __asm__("csinhf");
double _Complex nj_lib_sinh(double _Complex) __asm__("csinh");
template <class T>
NJ_INLINE cplx<T> nj_sinh(cplx<T> x) {
  return nj_from_libm(nj_lib_sinh(nj_to_libm(x)));
}

float _Complex nj_lib_cosh(float _Complex) __asm__("ccoshf");
double _Complex nj_lib_cosh(double _Complex) __asm__("ccosh");
template <class T>
NJ_INLINE cplx<T> nj_cosh(cplx<T> x) {
  return nj_from_libm(nj_lib_cosh(nj_to_libm(x)));
}

float _Complex nj_lib_tanh(float _Complex) __asm__("ctanhf");
double _Complex nj_lib_tanh(double _Complex) __asm__("ctanh");
template <class T>
NJ_INLINE cplx<T> nj_tanh(cplx<T> x) {
  return nj_from_libm(nj_lib_tanh(nj_to_libm(x)));
}

float _Complex nj_lib_arcsinh(float _Complex) __asm__("casinhf");
double _Complex nj_lib_arcsinh(double _Complex) __asm__("casinh");
template <class T>
NJ_INLINE cplx<T> nj_arcsinh(cplx<T> x) {
  return nj_from_libm(nj_lib_arcsinh(nj_to_libm(x)));
}

float _Complex nj_lib_arccosh(float _Complex) __asm__("cacoshf");
double _Complex nj_lib_arccosh(double _Complex) __asm__("cacosh");
template <class T>
NJ_INLINE cplx<T> nj_arccosh(cplx<T> x) {
  return nj_from_libm(nj_lib_arccosh(nj_to_libm(x)));
}

float _Complex nj_lib_arctanh(float _Complex) __asm__("catanhf");
double _Complex nj_lib_arctanh(double _Complex) __asm__("catanh");
template <class T>
NJ_INLINE cplx<T> nj_arctanh(cplx<T> x) {
  return nj_from_libm(nj_lib_arctanh(nj_to_libm(x)));
}

float _Complex nj_lib_exp(float _Complex) __asm__("cexpf");
double _Complex nj_lib_exp(double _Complex) __asm__("cexp");
template <class T>
NJ_INLINE cplx<T> nj_exp(cplx<T> x) {
  return nj_from_libm(nj_lib_exp(nj_to_libm(x)));
}

float _Complex nj_lib_log(float _Complex) __asm__("clogf");
double _Complex nj_lib_log(double _Complex) __asm__("clog");
template <class T>
NJ_INLINE cplx<T> nj_log(cplx<T> x) {
  return nj_from_libm(nj_lib_log(nj_to_libm(x)));
}

float _Complex nj_lib_sqrt(float _Complex) __asm__("csqrtf");
double _Complex nj_lib_sqrt(double _Complex) __asm__("csqrt");
template <class T>
NJ_INLINE cplx<T> nj_sqrt(cplx<T> x) {
  return nj_from_libm(nj_lib_sqrt(nj_to_libm(x)));
}

template <class T>
NJ_INLINE cplx<T> nj_scaled(cplx<T> x, T factor) {
  return {x.re * factor, x.im * factor};
}

template <class T>
NJ_INLINE cplx<T> nj_exp2(cplx<T> x) {
  return nj_exp(nj_scaled(x, (T)0.693147180559945309417232121458));
}

template <class T>
NJ_INLINE cplx<T> nj_expm1(cplx<T> x) {
  const T half = nj_sin(x.im / 2);
  return {nj_expm1(x.re) * nj_cos(x.im) - 2 * half * half, nj_exp(x.re) * nj_sin(x.im)};
}

template <class T>
NJ_INLINE cplx<T> nj_log2(cplx<T> x) {
  return nj_scaled(nj_log(x), (T)1.442695040888963407359924681001892137);
}

template <class T>
NJ_INLINE cplx<T> nj_log10(cplx<T> x) {
  return nj_scaled(nj_log(x), (T)0.434294481903251827651128918916605082);
}

f32 nj_lib_hypot(f32, f32) __asm__("hypotf");
f64 nj_lib_hypot(f64, f64) __asm__("hypot");
// Near 1 the logarithm magnifies the last bit of the absolute value, which must be NumPy's.
template <class T>
NJ_INLINE cplx<T> nj_log1p(cplx<T> x) {
  return {nj_log(nj_lib_hypot(x.re + 1, x.im)), nj_arctan2(x.im, x.re + 1)};
}

float _Complex nj_lib_power(float _Complex, float _Complex) __asm__("cpowf");
double _Complex nj_lib_power(double _Complex, double _Complex) __asm__("cpow");

// npy_cpow: small whole exponents by multiplication (starting from 1, which turns an infinity into
// NaN), zero bases by hand, the rest by libm.
template <class T>
NJ_INLINE cplx<T> nj_power(cplx<T> a, cplx<T> b) {
  const cplx<T> one = {(T)1, (T)0};
  if (b.re == 0 && b.im == 0)
    return one;
  if (a.re == 0 && a.im == 0) {
    const T nan = nj_cast<T>(__builtin_nan(""));
    return b.re > 0 ? cplx<T>{(T)0, (T)0} : cplx<T>{nan, nan};
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
  return nj_from_libm(nj_lib_power(nj_to_libm(a), nj_to_libm(b)));
}

template <class T>
NJ_INLINE cplx<T> nj_float_power(cplx<T> a, cplx<T> b) {
  return nj_power(a, b);
}

// BLAS takes complex scalars by address.
template <>
struct nj_blas<c128> {
  static const i32 gemm = 2;
  static const i32 gemv = 6;
  static const i32 syrk = -1;
  typedef const void* scalar;
  static scalar pass(const c128& x) { return &x; }
};
template <>
struct nj_blas<c64> {
  static const i32 gemm = 3;
  static const i32 gemv = 7;
  static const i32 syrk = -1;
  typedef const void* scalar;
  static scalar pass(const c64& x) { return &x; }
};
