// Series for the trigonometric functions and their inverses (see series.h).

static const u32 nj_two_over_pi[40] = {
    0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};

struct nj_angle_parts {
  f64 hi, lo;
  u64 quadrant;
};

// |x| < 2^20: the quadrant times pi / 2 in four parts, of which all but the last give exact
// products.
NJ_INLINE nj_angle_parts nj_reduce_small(f64 x) {
  const f64 q = nj_rint(x * 0x1.45f306dc9c883p-1);
  const nj_pair one = nj_two_sum(x - q * 0x1.921fb54400000p+0, -q * 0x1.0b4611a600000p-34);
  const nj_pair two = nj_two_sum(one.hi, -q * 0x1.3198a2e000000p-69);
  const nj_pair all = nj_two_sum(two.hi, (two.lo + one.lo) - q * 0x1.b839a252049c1p-104);
  return {all.hi, all.lo, nj_bits(q + 0x1.8p52) & 3};
}

// Payne and Hanek: x is m 2^e; of 2 / pi only the six words matter that give the quadrant and 94
// bits behind it. Word 0 holds the units of four turns, words of the product carry into each other.
NJ_INLINE nj_angle_parts nj_reduce_large(f64 x) {
  const u64 bits = nj_bits(x) & ~0ull >> 1;
  const u64 m = (bits & ~0ull >> 12) | 1ull << 52;
  const i32 exponent = (i32)(bits >> 52) - 1075;
  const i32 e = exponent < -32 ? -32 : exponent;
  const i32 first = (e + 62) >> 5;
  const u64 shift = (u64)(u32)(e - 32 * (first - 1) + 30);
  const u64 low = (m & 0xffffffffu) << shift;
  const u64 high = ((m >> 32) << shift) + (low >> 32);
  const u64 a = low & 0xffffffffu;
  const u64 b = high & 0xffffffffu;
  const u64 c = high >> 32;
  const u64 w0 = nj_two_over_pi[first];
  const u64 w1 = nj_two_over_pi[first + 1];
  const u64 w2 = nj_two_over_pi[first + 2];
  const u64 w3 = nj_two_over_pi[first + 3];
  const u64 w4 = nj_two_over_pi[first + 4];
  const u64 w5 = nj_two_over_pi[first + 5];
  const u64 mask = 0xffffffffu;
  const u64 part3 = (a * w3 & mask) + (b * w4 & mask) + (c * w5 & mask);
  const u64 part2 = (a * w2 & mask) + (b * w3 & mask) + (c * w4 & mask) + (a * w3 >> 32) +
                    (b * w4 >> 32) + (c * w5 >> 32) + (part3 >> 32);
  const u64 part1 = (a * w1 & mask) + (b * w2 & mask) + (c * w3 & mask) + (a * w2 >> 32) +
                    (b * w3 >> 32) + (c * w4 >> 32) + (part2 >> 32);
  const u64 part0 =
      a * w0 + b * w1 + c * w2 + (a * w1 >> 32) + (b * w2 >> 32) + (c * w3 >> 32) + (part1 >> 32);
  const u64 upper = part0 << 32 | (part1 & mask);
  const u64 lower = part2 << 32 | (part3 & mask);
  const u64 quadrant = (upper >> 62) + (upper >> 61 & 1);
  const u64 fraction = upper << 2 | lower >> 62;
  const f64 top = (f64)(i32)(fraction >> 32) * 0x1p-32;
  const f64 middle = (nj_from_bits((fraction & mask) | 0x4330ull << 48) - 0x1p52) * 0x1p-64;
  const f64 bottom = (nj_from_bits((lower << 2 >> 32) | 0x4330ull << 48) - 0x1p52) * 0x1p-96;
  const nj_pair two = nj_two_sum(top, middle);
  const nj_pair turn = nj_two_sum(two.hi, two.lo + bottom);
  const f64 hi = turn.hi * 0x1.921fb54442d18p+0;
  const f64 lo = nj_product_rest(turn.hi, 0x1.921fb54442d18p+0, hi) +
                 turn.hi * 0x1.1a62633145c07p-54 + turn.lo * 0x1.921fb54442d18p+0;
  return x < 0 ? nj_angle_parts{-hi, -lo, 0 - quadrant} : nj_angle_parts{hi, lo, quadrant};
}

NJ_INLINE nj_angle_parts nj_reduce(f64 x) {
  const nj_angle_parts small = nj_reduce_small(x);
  const nj_angle_parts large = nj_reduce_large(x);
  const b1 near = __builtin_fabs(x) < 0x1p20;
  const f64 invalid = nj_isfinite(x) ? 0.0 : __builtin_nan("");
  return {(near ? small.hi : large.hi) + invalid, near ? small.lo : large.lo,
          near ? small.quadrant : large.quadrant};
}

NJ_INLINE f64 nj_sin_series(f64 hi, f64 lo) {
  const f64 z = hi * hi;
  const f64 series = nj_series(
      z, -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019937p-13, 0x1.71de3a54607fap-19,
      -0x1.ae6454129f078p-26, 0x1.61217eed1c04ap-33, -0x1.ab17c21adf462p-41);
  return hi + (hi * z * series + (lo - 0.5 * z * lo));
}

NJ_INLINE f64 nj_cos_series(f64 hi, f64 lo) {
  const f64 z = hi * hi;
  const f64 series =
      nj_series(z, 0x1.5555555555555p-5, -0x1.6c16c16c16967p-10, 0x1.a01a019f4e9f4p-16,
                -0x1.27e4fa17c44e0p-22, 0x1.1eeb68d2958ddp-29, -0x1.907d9316a965fp-37);
  const f64 half = 0.5 * z;
  const f64 near = 1.0 - half;
  return near + (((1.0 - near) - half) + (z * z * series - hi * lo));
}

// without sin
NJ_INLINE f64 nj_sin(f64 x) {
  const nj_angle_parts r = nj_reduce(x);
  const f64 sine = nj_sin_series(r.hi, r.lo);
  const f64 cosine = nj_cos_series(r.hi, r.lo);
  const f64 value = (r.quadrant & 1) != 0 ? cosine : sine;
  return x == 0 ? x : (r.quadrant & 2) != 0 ? -value : value;
}

// without cos
NJ_INLINE f64 nj_cos(f64 x) {
  const nj_angle_parts r = nj_reduce(x);
  const f64 sine = nj_sin_series(r.hi, r.lo);
  const f64 cosine = nj_cos_series(r.hi, r.lo);
  const f64 value = (r.quadrant & 1) != 0 ? sine : cosine;
  return ((r.quadrant + 1) & 2) != 0 ? -value : value;
}

// without tan
NJ_INLINE f64 nj_tan(f64 x) {
  const nj_angle_parts r = nj_reduce(x);
  const f64 sine = nj_sin_series(r.hi, r.lo);
  const f64 cosine = nj_cos_series(r.hi, r.lo);
  const b1 odd = (r.quadrant & 1) != 0;
  return x == 0 ? x : (odd ? -cosine : sine) / (odd ? sine : cosine);
}

// The angle of a point in the first quadrant; both coordinates 0 or both infinite are taken care
// of.
NJ_INLINE f64 nj_first_angle(f64 x, f64 y) {
  const b1 steep = y > x;
  const f64 over = steep ? x : y;
  const f64 under = steep ? y : x;
  const f64 t = under == 0 ? 0.0 : over == under ? 1.0 : over / under;
  const b1 wide = t > 0x1.a8279a0p-2;
  const f64 u = wide ? (t - 1.0) / (t + 1.0) : t;
  const f64 z = u * u;
  const f64 series = nj_series(z, -0x1.5555555555555p-2, 0x1.9999999999349p-3,
                               -0x1.2492492436016p-3, 0x1.c71c71852a359p-4, -0x1.745d0b25982f3p-4,
                               0x1.3b1262bf324fdp-4, -0x1.10fa73c8057afp-4, 0x1.dfe60585956a5p-5,
                               -0x1.a09838b71a7cfp-5, 0x1.415ebcba15fd3p-5, -0x1.3a27dd63af0a7p-6);
  const f64 rest = u * z * series;
  const f64 base = wide ? 0x1.921fb54442d18p-1 : 0.0;
  const f64 low = wide ? 0x1.1a62633145c07p-55 : 0.0;
  const f64 angle = base + (u + (rest + low));
  const f64 turned = (base - 0x1.921fb54442d18p+0) + (u + (rest + (low - 0x1.1a62633145c07p-54)));
  return (x != x) | (y != y) ? x + y : steep ? -turned : angle;
}

// without atan
NJ_INLINE f64 nj_arctan(f64 x) {
  return __builtin_copysign(nj_first_angle(1.0, __builtin_fabs(x)), x);
}

// without atan2
NJ_INLINE f64 nj_arctan2(f64 y, f64 x) {
  const f64 angle = nj_first_angle(__builtin_fabs(x), __builtin_fabs(y));
  const f64 beyond = 0x1.921fb54442d18p+1 - (angle - 0x1.1a62633145c07p-53);
  return __builtin_copysign(nj_signbit(x) ? beyond : angle, y);
}

// arcsin(a) for a = |x| <= 1/2, else the half of pi / 2 - arcsin(a).
NJ_INLINE f64 nj_half_arcsin(f64 a) {
  const b1 wide = a > 0.5;
  const f64 z = wide ? (1.0 - a) * 0.5 : a * a;
  const f64 root = wide ? nj_sqrt(z) : a;
  const f64 square = root * root;
  const f64 missing = (z - square) - nj_product_rest(root, root, square);
  const f64 low = wide & (root != 0) ? missing / (2.0 * root) : 0.0;
  const f64 series = nj_series(z, 0x1.555555555554fp-3, 0x1.3333333336da5p-4, 0x1.6db6db684b6a1p-5,
                               0x1.f1c71f95269afp-6, 0x1.6e8b2b3b10be4p-6, 0x1.1c593c7b1d958p-6,
                               0x1.c87265d47ef49p-7, 0x1.8522ddffa6208p-7, 0x1.ff5fc4d14c735p-8,
                               0x1.06b9d26d10838p-6, -0x1.603991d6060e0p-7, 0x1.cd864394d2ff2p-6);
  return root + (root * z * series + low);
}

// without asin
NJ_INLINE f64 nj_arcsin(f64 x) {
  const f64 a = __builtin_fabs(x);
  const f64 part = nj_half_arcsin(a);
  const f64 wide = 0x1.921fb54442d18p+0 - (2.0 * part - 0x1.1a62633145c07p-54);
  return x == 0 ? x : __builtin_copysign(a > 0.5 ? wide : part, x);
}

// without acos
NJ_INLINE f64 nj_arccos(f64 x) {
  const f64 a = __builtin_fabs(x);
  const f64 part = nj_half_arcsin(a);
  const f64 left = 0x1.921fb54442d18p+1 - (2.0 * part - 0x1.1a62633145c07p-53);
  const f64 wide = x < 0 ? left : 2.0 * part;
  const f64 signed_part = __builtin_copysign(part, x);
  return a > 0.5 ? wide : 0x1.921fb54442d18p+0 - (signed_part - 0x1.1a62633145c07p-54);
}

// without sinf
NJ_INLINE f32 nj_sin(f32 x) { return (f32)nj_sin((f64)x); }

// without cosf
NJ_INLINE f32 nj_cos(f32 x) { return (f32)nj_cos((f64)x); }

// without tanf
NJ_INLINE f32 nj_tan(f32 x) { return (f32)nj_tan((f64)x); }

// without asinf
NJ_INLINE f32 nj_arcsin(f32 x) { return (f32)nj_arcsin((f64)x); }

// without acosf
NJ_INLINE f32 nj_arccos(f32 x) { return (f32)nj_arccos((f64)x); }

// without atanf
NJ_INLINE f32 nj_arctan(f32 x) { return (f32)nj_arctan((f64)x); }

// without atan2f
NJ_INLINE f32 nj_arctan2(f32 x, f32 y) { return (f32)nj_arctan2((f64)x, (f64)y); }

// Whether the two below may be used: multiplications that do not round, and not too many turns.
NJ_INLINE b1 nj_is_near(f32 x) {
#ifdef __FMA__
  return __builtin_fabsf(x) < 8192.0f;
#else
  return false;
#endif
}

struct nj_near_angle {
  f32 sine, cosine;
  u32 quadrant;
};

// In line and shared by the two functions: the quadrant times pi / 2 in three parts of 24 bits, all
// positive, so that -0.0 stays.
NJ_INLINE nj_near_angle nj_reduce_near(f32 x) {
  const f32 shifted = nj_multiply_add(x, 0x1.45f306p-1f, 0x1.8p23f);
  const f32 q = shifted - 0x1.8p23f;
  const f32 one = nj_multiply_add(q, -0x1.921fb4p+0f, x);
  const f32 two = nj_multiply_add(q, -0x1.4442d0p-24f, one);
  const f32 r = nj_multiply_add(q, -0x1.846988p-48f, two);
  const f32 z = r * r;
  const f32 sine = nj_series32(z, 1.0f, -0x1.555552p-3f, 0x1.110bf6p-7f, -0x1.9aae86p-13f);
  const f32 cosine = nj_series32(z, 1.0f, -0.5f, 0x1.555554p-5f, -0x1.6c12aap-10f, 0x1.9bc2d4p-16f);
  return nj_near_angle{r * sine, cosine, nj_bits(shifted)};
}

NJ_INLINE f32 nj_near_sin(f32 x) {
  const nj_near_angle a = nj_reduce_near(x);
  const u32 value = nj_bits(nj_select(b1(a.quadrant & 1), a.cosine, a.sine));
  return nj_from_bits(value ^ (a.quadrant & 2) << 30);
}

NJ_INLINE f32 nj_near_cos(f32 x) {
  const nj_near_angle a = nj_reduce_near(x);
  const u32 value = nj_bits(nj_select(b1(a.quadrant & 1), a.sine, a.cosine));
  return nj_from_bits(value ^ ((a.quadrant + 1) & 2) << 30);
}
