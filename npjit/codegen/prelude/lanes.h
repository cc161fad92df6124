// Numbers of several trips of a loop at once, one in each lane: f64, i64, and b1 as masks. A lane
// is one of NJ_MANY in two vectors: while one waits for what it has begun, the other goes on.

#if defined(__AVX512F__)
#define NJ_MANY_BYTES 64
#elif defined(__AVX__)
#define NJ_MANY_BYTES 32
#else
#define NJ_MANY_BYTES 16
#endif
#define NJ_MANY_PART (NJ_MANY_BYTES / 8)
#define NJ_MANY (2 * NJ_MANY_PART)

NJ_INLINE i64 nj_lane_of(b1 x) { return -(i64)x; }
NJ_INLINE i64 nj_lane_of(i64 x) { return x; }
NJ_INLINE f64 nj_lane_of(f64 x) { return x; }

#define NJ_MANY_OPERATOR(sign, R)                                                 \
  friend NJ_MEMBER nj_many<R> operator sign(const nj_many& a, const nj_many& b) { \
    nj_many<R> r;                                                                 \
    r.part[0] = a.part[0] sign b.part[0];                                         \
    r.part[1] = a.part[1] sign b.part[1];                                         \
    return r;                                                                     \
  }
#define NJ_MANY_PREFIX(sign)                                 \
  friend NJ_MEMBER nj_many operator sign(const nj_many& a) { \
    nj_many r;                                               \
    r.part[0] = sign a.part[0];                              \
    r.part[1] = sign a.part[1];                              \
    return r;                                                \
  }
// In memory, lane by lane.
template <class T>
struct nj_lanes {
  decltype(nj_lane_of(T())) at[NJ_MANY] __attribute__((aligned(64))) = {};
  NJ_MEMBER void set(i64 lane, T x) { at[lane] = nj_lane_of(x); }
  NJ_MEMBER T get(i64 lane) const { return (T)at[lane]; }
};

template <class T>
struct nj_many {
  typedef decltype(nj_lane_of(T())) kept;
  typedef kept vector __attribute__((vector_size(NJ_MANY_BYTES)));
  vector part[2];
  nj_many() = default;
  NJ_MEMBER nj_many(T x) { part[0] = part[1] = nj_lane_of(x) - vector{}; }
  NJ_MEMBER nj_many(const nj_lanes<T>& x) { __builtin_memcpy(part, x.at, sizeof part); }
  NJ_MEMBER nj_lanes<T> lanes() const {
    nj_lanes<T> x;
    __builtin_memcpy(x.at, part, sizeof part);
    return x;
  }
  NJ_MANY_OPERATOR(+, T)
  NJ_MANY_OPERATOR(-, T)
  NJ_MANY_OPERATOR(*, T)
  NJ_MANY_OPERATOR(/, T)
  NJ_MANY_OPERATOR(&, T)
  NJ_MANY_OPERATOR(|, T)
  NJ_MANY_OPERATOR(^, T)
  NJ_MANY_OPERATOR(<, b1)
  NJ_MANY_OPERATOR(<=, b1)
  NJ_MANY_OPERATOR(>, b1)
  NJ_MANY_OPERATOR(>=, b1)
  NJ_MANY_OPERATOR(==, b1)
  NJ_MANY_OPERATOR(!=, b1)
  NJ_MANY_PREFIX(-)
  NJ_MANY_PREFIX(~)
  friend NJ_MEMBER nj_many<b1> operator!(const nj_many& a) { return a == nj_many(T(0)); }
};

template <class T>
NJ_INLINE nj_many<T> nj_select(const nj_many<b1>& c, const nj_many<T>& a, const nj_many<T>& b) {
  nj_many<T> r;
  r.part[0] = c.part[0] ? a.part[0] : b.part[0];
  r.part[1] = c.part[1] ? a.part[1] : b.part[1];
  return r;
}

NJ_INLINE nj_many<f64> nj_absolute(const nj_many<f64>& a) {
  typedef nj_many<i64>::vector bits;
  nj_many<f64> r;
  for (int k = 0; k < 2; ++k)
    r.part[k] = (nj_many<f64>::vector)((bits)a.part[k] & (i64)(~0ull >> 1));
  return r;
}
NJ_INLINE nj_many<i64> nj_absolute(const nj_many<i64>& a) {
  return nj_select(a < nj_many<i64>(0), nj_many<i64>(0) - a, a);
}

NJ_INLINE nj_many<f64> nj_sqrt(const nj_many<f64>& a) {
  nj_lanes<f64> r = a.lanes();
  for (i64 lane = 0; lane < NJ_MANY; ++lane)
    r.at[lane] = __builtin_sqrt(r.at[lane]);
  return r;
}

NJ_INLINE nj_many<f64> nj_convert_many(f64*, const nj_many<i64>& a) {
  nj_many<f64> r;
  for (int k = 0; k < 2; ++k)
    r.part[k] = __builtin_convertvector(a.part[k], nj_many<f64>::vector);
  return r;
}
NJ_INLINE nj_many<b1> nj_convert_many(b1*, const nj_many<i64>& a) { return a != nj_many<i64>(0); }
template <class T>
NJ_INLINE nj_many<T> nj_convert_many(T*, const nj_many<b1>& a) {
  return nj_select(a, nj_many<T>(1), nj_many<T>(0));
}
template <class To, class From>
NJ_INLINE nj_many<To> nj_cast(const nj_many<From>& a) {
  return nj_convert_many((To*)nullptr, a);
}

// Whether a condition holds in any lane.
NJ_INLINE b1 nj_any(const nj_many<b1>& c) {
  const nj_many<b1>::vector both = c.part[0] | c.part[1];
#if defined(__AVX512F__) && !defined(__clang__)
  typedef long long longs __attribute__((vector_size(64)));
  return __builtin_ia32_ptestmq512((longs)both, (longs)both, (unsigned char)-1) != 0;
#elif defined(__AVX__) && !defined(__AVX512F__)
  typedef long long longs __attribute__((vector_size(32)));
  return !__builtin_ia32_ptestz256((longs)both, (longs)both);
#else
  i64 any = 0;
  for (i64 lane = 0; lane < NJ_MANY_PART; ++lane)
    any |= both[lane];
  return any != 0;
#endif
}

// The first `count` lanes.
NJ_INLINE nj_many<b1> nj_first_lanes(i64 count) {
  nj_lanes<i64> number;
  for (i64 lane = 0; lane < NJ_MANY; ++lane)
    number.at[lane] = lane;
  return nj_many<i64>(number) < nj_many<i64>(count);
}
