// Series for exponentials, logarithms, powers, hyperbolic, error functions and roots (see
// series.h).

// 2^n for a whole n in -1022..1023, by placing it in the exponent.
NJ_INLINE f64 nj_power_of_two(f64 n) { return nj_from_bits((nj_bits(n + 0x1.8p52) + 1023) << 52); }

// exp(r + low) - 1 for |r + low| <= ln(2) / 2.
NJ_INLINE f64 nj_exp_rest(f64 r, f64 low) {
  const f64 series = nj_series(r, 0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5,
                               0x1.11111111100d3p-7, 0x1.6c16c16c162cfp-10, 0x1.a01a01abeccc3p-13,
                               0x1.a01a01a6db488p-16, 0x1.71de02225a2f3p-19, 0x1.27e4db5bb725ap-22,
                               0x1.af4e092e1705bp-26, 0x1.1f7315649f2d7p-29);
  const f64 square = r * r * series;
  return r + (square + (low + low * (r + square)));
}

// exp(x + low), scaled in two steps so that the result is rounded once, subnormal or not.
NJ_INLINE f64 nj_exp_pair(f64 x, f64 low) {
  const f64 clamped = x > 720.0 ? 720.0 : x < -760.0 ? -760.0 : x;
  const f64 n = nj_rint(clamped * 0x1.71547652b82fep+0);
  const f64 high = clamped - n * 0x1.62e42fee00000p-1;
  const f64 tail = n * 0x1.a39ef35793c76p-33;
  const f64 r = high - tail;
  const f64 value = 1.0 + nj_exp_rest(r, (high - r) - tail + low);
  const f64 half = nj_rint(n * 0.5);
  return x != x ? x : value * nj_power_of_two(half) * nj_power_of_two(n - half);
}

// value * 2^n, rounded once, subnormal or not: n stands in the low bits of a number n + 1.5 * 2^52.
NJ_INLINE f64 nj_scaled(f64 value, u64 n) {
  const f64 half = nj_from_bits(((n >> 1) << 52) + (1023ull << 52));
  const f64 rest = nj_from_bits(((n - (n >> 1)) << 52) + (1023ull << 52));
  return value * half * rest;
}

// The same for n + 1.5 * 2^23.
NJ_INLINE f32 nj_scaled(f32 value, u32 n) {
  const f32 half = nj_from_bits(((n >> 1) << 23) + (127u << 23));
  const f32 rest = nj_from_bits(((n - (n >> 1)) << 23) + (127u << 23));
  return value * half * rest;
}

// Never by libmvec: in line it takes half the time. The bound on n, by integers, lets what is too
// large come out infinite and NaN come out NaN. Pairs of terms keep the chain of operations short.
NJ_INLINE f64 nj_exp(f64 x) {
  const i64 bits = (i64)nj_bits(nj_multiply_add(x, 0x1.71547652b82fep+0, 0x1.8p52));
  const i64 most = (i64)nj_bits(0x1.8p52 + 1040);
  const u64 shifted = (u64)(bits < most ? bits : most);
  const f64 n = nj_from_bits(shifted) - 0x1.8p52;
  const f64 high = nj_multiply_add(n, -0x1.62e42fee00000p-1, x);
  const f64 r = nj_multiply_add(n, -0x1.a39ef35793c76p-33, high);
  const f64 square = r * r;
  const f64 one = nj_series(square, nj_series(r, 0x1.0000000000001p-1, 0x1.5555555555556p-3),
                            nj_series(r, 0x1.5555555553d0fp-5, 0x1.1111111110999p-7));
  const f64 two = nj_series(square, nj_series(r, 0x1.6c16c178acac2p-10, 0x1.a01a01a7d84f0p-13),
                            nj_series(r, 0x1.a019b88de00b4p-16, 0x1.71de0d6013f59p-19),
                            nj_series(r, 0x1.28921c7d9842dp-22, 0x1.af39639ed0cfcp-26));
  const f64 rest = nj_multiply_add(square, nj_series(square * square, one, two), r);
  return nj_select(x < -760.0, 0.0, nj_scaled(1.0 + rest, shifted));
}

NJ_INLINE f32 nj_exp(f32 x) {
  const i32 bits = (i32)nj_bits(nj_multiply_add(x, 0x1.715476p+0f, 0x1.8p23f));
  const i32 most = (i32)nj_bits(0x1.8p23f + 130);
  const u32 shifted = (u32)(bits < most ? bits : most);
  const f32 n = nj_from_bits(shifted) - 0x1.8p23f;
  const f32 high = nj_multiply_add(n, -0x1.63p-1f, x);
  const f32 r = nj_multiply_add(n, 0x1.bd0106p-13f, high);
  const f32 square = r * r;
  const f32 series = nj_series32(square, nj_series32(r, 0x1.000000p-1f, 0x1.5554dcp-3f),
                                 nj_series32(r, 0x1.555518p-5f, 0x1.120c4ap-7f), 0x1.6d11e4p-10f);
  const f32 rest = nj_multiply_add(square, series, r);
  return nj_select(x < -105.0f, 0.0f, nj_scaled(1.0f + rest, shifted));
}

// without exp2
NJ_INLINE f64 nj_exp2(f64 x) {
  const f64 clamped = x > 1100.0 ? 1100.0 : x < -1100.0 ? -1100.0 : x;
  const f64 n = nj_rint(clamped);
  const f64 part = clamped - n;
  const f64 r = part * 0x1.62e42fefa39efp-1;
  const f64 low = nj_product_rest(part, 0x1.62e42fefa39efp-1, r) + part * 0x1.abc9e3b39803fp-56;
  const f64 half = nj_rint(n * 0.5);
  const f64 value = 1.0 + nj_exp_rest(r, low);
  return x != x ? x : value * nj_power_of_two(half) * nj_power_of_two(n - half);
}

// 2^n (e^r) - 1 at half scale: 2^1024 is no float.
NJ_INLINE f64 nj_expm1_series(f64 x) {
  const f64 clamped = x > 710.0 ? 710.0 : x < -50.0 ? -50.0 : x;
  const f64 n = nj_rint(clamped * 0x1.71547652b82fep+0);
  const f64 high = clamped - n * 0x1.62e42fee00000p-1;
  const f64 tail = n * 0x1.a39ef35793c76p-33;
  const f64 r = high - tail;
  const f64 rest = nj_exp_rest(r, (high - r) - tail);
  const f64 scale = nj_power_of_two(n - 1.0);
  const f64 value = 2.0 * (scale * rest + (scale - 0.5));
  return (__builtin_fabs(x) < 0x1p-54) | (x != x) ? x : value;
}

// without expm1
NJ_INLINE f64 nj_expm1(f64 x) { return nj_expm1_series(x); }

// log(x) of a positive finite x: x = 2^k m, s = (m - 1) / (m + 1), log(m) = 2 atanh(s).
NJ_INLINE nj_pair nj_log_pair(f64 x) {
  const b1 tiny = x < 0x1p-1022;
  const u64 bits = nj_bits(tiny ? x * 0x1p54 : x);
  const u64 exponent = (bits - 0x3fe6a09e667f3bcdull + (1024ull << 52)) >> 52;
  const f64 m = nj_from_bits(bits - ((exponent - 1024) << 52));
  const f64 k = nj_from_bits(exponent | 0x4330ull << 48) - (tiny ? 0x1p52 + 1078 : 0x1p52 + 1024);
  const f64 f = m - 1.0;
  const nj_pair sum = nj_two_sum(m, 1.0);
  const f64 s = f / sum.hi;
  const f64 product = s * sum.hi;
  const f64 s_low = ((f - product) - nj_product_rest(s, sum.hi, product) - s * sum.lo) / sum.hi;
  const f64 z = s * s;
  const f64 z_low = nj_product_rest(s, s, z) + 2.0 * s * s_low;
  const f64 series = nj_series(z, 0x1.999999999999ap-2, 0x1.2492492492524p-2, 0x1.c71c71c6ea01fp-3,
                               0x1.745d177b22bcfp-3, 0x1.3b1395976d2f0p-3, 0x1.1118d458653bcp-3,
                               0x1.df7a2eafecf14p-4, 0x1.e0499f72e39b9p-4);
  const f64 third = z * 0x1.5555555555555p-1;
  const f64 third_low = nj_product_rest(z, 0x1.5555555555555p-1, third) +
                        z * 0x1.5555555555555p-55 + z_low * 0x1.5555555555555p-1 + z * z * series;
  const nj_pair factor = nj_ordered_sum(third, third_low);
  const f64 cubic = s * factor.hi;
  const f64 cubic_low = nj_product_rest(s, factor.hi, cubic) + s * factor.lo + s_low * factor.hi;
  const nj_pair linear = nj_ordered_sum(k * 0x1.62e42fee00000p-1, 2.0 * s);
  const nj_pair high = nj_ordered_sum(linear.hi, cubic);
  const f64 low = k * 0x1.a39ef35793c76p-33 + 2.0 * s_low + cubic_low;
  return nj_ordered_sum(high.hi, high.lo + linear.lo + low);
}

// What a logarithm of x is where the series does not hold.
NJ_INLINE f64 nj_log_special(f64 x, f64 value) {
  const f64 infinite = x == 0 ? -__builtin_inf() : x;
  return x < 0 ? __builtin_nan("") : (x > 0) & nj_isfinite(x) ? value : infinite;
}

// without log
NJ_INLINE f64 nj_log(f64 x) {
  const nj_pair log = nj_log_pair(x);
  return nj_log_special(x, log.hi + log.lo);
}

NJ_INLINE f64 nj_scaled_log(f64 x, f64 factor, f64 factor_low) {
  const nj_pair log = nj_log_pair(x);
  const f64 product = log.hi * factor;
  const f64 low = nj_product_rest(log.hi, factor, product) + log.hi * factor_low + log.lo * factor;
  return nj_log_special(x, product + low);
}

// without log2
NJ_INLINE f64 nj_log2(f64 x) {
  return nj_scaled_log(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
}

// without log10
NJ_INLINE f64 nj_log10(f64 x) {
  return nj_scaled_log(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
}

// log(1 + x): what 1 + x loses is a relative change, and so adds to the logarithm.
NJ_INLINE f64 nj_log1p_series(f64 x) {
  const nj_pair sum = nj_two_sum(1.0, x);
  const nj_pair log = nj_log_pair(sum.hi);
  const f64 value = log.hi + (log.lo + sum.lo / sum.hi);
  return x == 0 ? x : nj_log_special(sum.hi, value);
}

// without log1p
NJ_INLINE f64 nj_log1p(f64 x) { return nj_log1p_series(x); }

// without pow
NJ_INLINE f64 nj_power(f64 x, f64 y) {
  const f64 size = __builtin_fabs(x);
  const nj_pair log = nj_log_pair(size);
  // Beyond 2^100 the result no longer changes, and splitting y must not overflow.
  const f64 exponent = __builtin_fabs(y) < 0x1p100 ? y : __builtin_copysign(0x1p100, y);
  const f64 product = exponent * log.hi;
  const f64 low = nj_product_rest(exponent, log.hi, product) + exponent * log.lo;
  const b1 huge = !(__builtin_fabs(product) < 1000.0);
  const f64 value = nj_exp_pair(product, huge ? 0.0 : low);
  const f64 y_size = __builtin_fabs(y);
  const b1 whole = y == nj_trunc(y);
  const b1 odd = whole & (y_size < 0x1p53) & (y * 0.5 != nj_trunc(y * 0.5));
  const b1 grows = (size > 1.0) == (y > 0);
  const b1 extreme = (size == 0) | !nj_isfinite(size) | !nj_isfinite(y);
  const f64 limit = size == 1.0 ? 1.0 : grows ? __builtin_inf() : 0.0;
  const f64 positive = extreme ? limit : value;
  const f64 with_sign = odd ? __builtin_copysign(positive, x) : positive;
  const f64 domain = (x < 0) & !whole & nj_isfinite(x) ? __builtin_nan("") : with_sign;
  return (y == 0) | (x == 1.0) ? 1.0 : (x != x) | (y != y) ? x + y : domain;
}

// exp(a) / 2, which overflows later than exp.
NJ_INLINE f64 nj_half_exp(f64 a) {
  const nj_pair less = nj_two_sum(a, -0x1.62e42fefa39efp-1);
  return nj_exp_pair(less.hi, nj_isfinite(a) ? less.lo - 0x1.abc9e3b39803fp-56 : 0.0);
}

// without sinh
NJ_INLINE f64 nj_sinh(f64 x) {
  const f64 a = __builtin_fabs(x);
  const f64 z = x * x;
  const f64 series = nj_series(z, 0x1.5555555555555p-3, 0x1.11111111110fdp-7, 0x1.a01a01a01ee70p-13,
                               0x1.71de3a4e14f40p-19, 0x1.ae6460fae3728p-26, 0x1.611cb330c1fe8p-33,
                               0x1.b41232cf9950fp-41);
  const f64 half = nj_half_exp(a);
  return a < 1.0 ? x + x * z * series : __builtin_copysign(half - 0.25 / half, x);
}

// without cosh
NJ_INLINE f64 nj_cosh(f64 x) {
  const f64 half = nj_half_exp(__builtin_fabs(x));
  return half + 0.25 / half;
}

// without tanh
NJ_INLINE f64 nj_tanh(f64 x) {
  const f64 a = __builtin_fabs(x);
  const f64 t = nj_expm1_series(2.0 * nj_select(a > 22.0, 22.0, a));
  return x != x ? x : __builtin_copysign(t / (t + 2.0), x);
}

// log(x) for x beyond 2^28, where arcsinh and arccosh are log(2 x), else log(1 + t).
NJ_INLINE f64 nj_log_large_or_1p(f64 x, f64 t) {
  const b1 large = x > 0x1p28;
  const nj_pair sum = nj_two_sum(1.0, t);
  const nj_pair log = nj_log_pair(large ? x : sum.hi);
  const nj_pair doubled = nj_two_sum(log.hi, 0x1.62e42fefa39efp-1);
  const f64 above = doubled.hi + (doubled.lo + log.lo);
  const f64 below = log.hi + (log.lo + sum.lo / sum.hi);
  return !nj_isfinite(x) ? x : large ? above : below;
}

// without asinh
NJ_INLINE f64 nj_arcsinh(f64 x) {
  const f64 a = __builtin_fabs(x);
  const f64 t = a + a * a / (1.0 + nj_sqrt(a * a + 1.0));
  const f64 value = a < 0x1p-28 ? a : nj_log_large_or_1p(a, t);
  return __builtin_copysign(value, x);
}

// without acosh
NJ_INLINE f64 nj_arccosh(f64 x) {
  const f64 t = x - 1.0;
  const f64 value = nj_log_large_or_1p(x, t + nj_sqrt(t * (2.0 + t)));
  return x < 1.0 ? __builtin_nan("") : x == 1.0 ? 0.0 : value;
}

// without atanh
NJ_INLINE f64 nj_arctanh(f64 x) {
  const f64 a = __builtin_fabs(x);
  const f64 value = 0.5 * nj_log1p_series(2.0 * a / (1.0 - a));
  return a < 0x1p-28 ? x : __builtin_copysign(value, x);
}

// without cbrt
// Halley's iteration from a guess by the exponent, then Newton's with an exact residual.
NJ_INLINE f64 nj_cbrt(f64 x) {
  const f64 a = __builtin_fabs(x);
  const b1 tiny = a < 0x1p-1000;
  const b1 huge = a > 0x1p1000;
  const f64 v = a * (tiny ? 0x1p54 : huge ? 0x1p-54 : 1.0);
  const u64 third = (nj_bits(v) >> 32) * 0x55555556u >> 32;
  f64 t = nj_from_bits((third + 715094163) << 32);
  for (i32 step = 0; step < 3; ++step) {
    const f64 cube = t * t * t;
    t = t * ((cube + 2.0 * v) / (2.0 * cube + v));
  }
  const f64 square = t * t;
  const f64 cube = square * t;
  const f64 low = nj_product_rest(square, t, cube) + nj_product_rest(t, t, square) * t;
  const f64 root = t - ((cube - v) + low) / (3.0 * square);
  const f64 value = root * (tiny ? 0x1p-18 : huge ? 0x1p18 : 1.0);
  return (x == 0) | !nj_isfinite(x) ? x : __builtin_copysign(value, x);
}

// without hypot
NJ_INLINE f64 nj_hypot(f64 x, f64 y) {
  const f64 a = __builtin_fabs(x);
  const f64 b = __builtin_fabs(y);
  const f64 large = a > b ? a : b;
  const f64 scale = large > 0x1p500 ? 0x1p-600 : large < 0x1p-500 ? 0x1p600 : 1.0;
  const f64 back = large > 0x1p500 ? 0x1p600 : large < 0x1p-500 ? 0x1p-600 : 1.0;
  const f64 root = nj_sqrt((a * scale) * (a * scale) + (b * scale) * (b * scale)) * back;
  return nj_isinf(x) | nj_isinf(y) ? __builtin_inf() : (x != x) | (y != y) ? x + y : root;
}

// Whether numbers near h have squares far from both ends of the range.
NJ_INLINE b1 nj_is_moderate(f64 h) { return (h > 0x1p-400) & (h < 0x1p400); }

// The next number above a positive one.
NJ_INLINE f64 nj_above(f64 h) { return nj_from_bits(nj_bits(h) + 1); }

// The least number whose rounded root is at least h, where that is moderate: the next one above the
// square of what lies half way between h and the number below it, which is no number itself.
NJ_INLINE f64 nj_square_reaching(f64 h) {
  const f64 step = h - nj_from_bits(nj_bits(h) - 1);
  const f64 square = h * h;
  const f64 rest = nj_product_rest(h, h, square) - h * step;
  const f64 value = square + rest;
  return (square - value) + rest >= 0 ? nj_above(value) : value;
}

NJ_INLINE f64 nj_erf_series(f64 x) {
  const f64 series =
      nj_series(x * x, 0x1.06eba8214db68p-3, -0x1.812746b0379c1p-2, 0x1.ce2f21a040f66p-4,
                -0x1.b82ce31203772p-6, 0x1.565bccfa44156p-8, -0x1.c02db0665e53dp-11,
                0x1.f9a2be4f731a1p-14, -0x1.f4ca838adb73bp-17, 0x1.b981d78881a5dp-20,
                -0x1.5c131500d3f88p-23, 0x1.d76af6ca49787p-27, -0x1.ac9585a44fe29p-31);
  return x + x * series;
}

// erfc(a) for a >= 1/2: exp(a^2) erfc(a) (1 + 2 a) is smooth in t (Schonfelder 1978).
NJ_INLINE f64 nj_erfc_series(f64 x) {
  const f64 a = x > 28.0 ? 28.0 : x;
  const f64 t = (a - 3.75) / (a + 3.75);
  const f64 series = nj_series(
      t, 0x1.3ccda0b5d5dc2p+0, -0x1.1f367683f89a7p-3, 0x1.d5f2948159d98p-9, 0x1.510169d096803p-4,
      -0x1.bda9309a289b9p-4, 0x1.7a14188a99b3fp-4, -0x1.e0d0fa6dfc45dp-5, 0x1.d0b0037dcc04dp-6,
      -0x1.3f603c34e597bp-7, 0x1.cc3a0e22ba4e7p-10, 0x1.33fb25f7cc142p-12, -0x1.303f9da8db5d4p-12,
      0x1.b143f72216fd4p-15, 0x1.778a32b618b10p-16, -0x1.8003322405939p-17, -0x1.05280e9dc1c46p-20,
      0x1.d63d87d69f9c7p-20, -0x1.f399664b45c8ep-25, -0x1.1510123ff5f14p-22, 0x1.9e110890b174dp-26,
      0x1.3ff38dd47e7b4p-25, -0x1.1f0284677f399p-28, -0x1.0d225d4054f3fp-28, 0x1.c2ae1eb125ba1p-32);
  const f64 square = a * a;
  const f64 decay = nj_exp_pair(-square, -nj_product_rest(a, a, square));
  return decay * (series / (1.0 + 2.0 * a));
}

// without erf
NJ_INLINE f64 nj_erf(f64 x) {
  const f64 a = __builtin_fabs(x);
  const f64 value = a < 1.0 ? nj_erf_series(a) : 1.0 - nj_erfc_series(a);
  return x != x ? x : __builtin_copysign(value, x);
}

// without erfc
NJ_INLINE f64 nj_erfc(f64 x) {
  const f64 a = __builtin_fabs(x);
  const f64 tail = nj_erfc_series(a);
  const f64 near = a < 0.5 ? 1.0 - nj_erf_series(x) : x < 0 ? 2.0 - tail : tail;
  return x != x ? x : near;
}

// without logf
NJ_INLINE f32 nj_log(f32 x) {
  const b1 tiny = x < 0x1p-126f;
  const u32 bits = nj_bits(tiny ? x * 0x1p24f : x);
  const i32 exponent = (i32)(bits - 0x3f3504f3u) >> 23;
  const f32 f = nj_from_bits(bits - ((u32)exponent << 23)) - 1.0f;
  const f32 k = (f32)(exponent - (tiny ? 24 : 0));
  const f32 series =
      nj_series32(f, 0x1.555554p-2f, -0x1.fffffcp-3f, 0x1.999d5cp-3f, -0x1.555b52p-3f,
                  0x1.23d1d8p-3f, -0x1.fcf2acp-4f, 0x1.dea5a6p-4f, -0x1.d64804p-4f, 0x1.1d9df2p-4f);
  const f32 square = f * f;
  const f32 low = k * -0x1.05c610p-29f + (square * f * series - 0.5f * square);
  const f32 value = k * 0x1.62e430p-1f + (f + low);
  const f32 infinite = x == 0 ? -__builtin_inff() : x;
  return x < 0 ? __builtin_nanf("") : (x > 0) & nj_isfinite(x) ? value : infinite;
}

// without exp2f
NJ_INLINE f32 nj_exp2(f32 x) { return (f32)nj_exp2((f64)x); }

// without expm1f
NJ_INLINE f32 nj_expm1(f32 x) { return (f32)nj_expm1((f64)x); }

// without log2f
NJ_INLINE f32 nj_log2(f32 x) { return (f32)nj_log2((f64)x); }

// without log10f
NJ_INLINE f32 nj_log10(f32 x) { return (f32)nj_log10((f64)x); }

// without log1pf
NJ_INLINE f32 nj_log1p(f32 x) { return (f32)nj_log1p((f64)x); }

// without sinhf
NJ_INLINE f32 nj_sinh(f32 x) { return (f32)nj_sinh((f64)x); }

// without coshf
NJ_INLINE f32 nj_cosh(f32 x) { return (f32)nj_cosh((f64)x); }

// without tanhf
NJ_INLINE f32 nj_tanh(f32 x) { return (f32)nj_tanh((f64)x); }

// without asinhf
NJ_INLINE f32 nj_arcsinh(f32 x) { return (f32)nj_arcsinh((f64)x); }

// without acoshf
NJ_INLINE f32 nj_arccosh(f32 x) { return (f32)nj_arccosh((f64)x); }

// without atanhf
NJ_INLINE f32 nj_arctanh(f32 x) { return (f32)nj_arctanh((f64)x); }

// without cbrtf
NJ_INLINE f32 nj_cbrt(f32 x) { return (f32)nj_cbrt((f64)x); }

// without erff
NJ_INLINE f32 nj_erf(f32 x) { return (f32)nj_erf((f64)x); }

// without erfcf
NJ_INLINE f32 nj_erfc(f32 x) { return (f32)nj_erfc((f64)x); }

// without powf
NJ_INLINE f32 nj_power(f32 x, f32 y) { return (f32)nj_power((f64)x, (f64)y); }

// without hypotf
NJ_INLINE f32 nj_hypot(f32 x, f32 y) { return (f32)nj_hypot((f64)x, (f64)y); }
