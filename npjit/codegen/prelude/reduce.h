// Reductions: pairwise sums, identities of extremes, and the positions of extremes.

// A sum of this many values by vector lanes goes through at most 16 roundings and a few for the
// lanes.
#if defined(__AVX512F__)
#define NJ_VECTOR_BYTES 64
#elif defined(__AVX__)
#define NJ_VECTOR_BYTES 32
#else
#define NJ_VECTOR_BYTES 16
#endif
#define NJ_LANES(T) ((i64)(NJ_VECTOR_BYTES / sizeof(T)))
#define NJ_BLOCK(T) (16 * NJ_LANES(T))
#define NJ_STRIP(T) (4 * NJ_LANES(T))

// Asks for the memory of `count` elements that a loop will read so many bytes later, or at its end
// with `left` elements to go.
template <i64 count, class T>
NJ_INLINE void nj_ahead(const T* now, i64 bytes, i64 left) {
  const T* const later = now + nj_size_min(bytes / (i64)sizeof(T), left);
  for (i64 byte = 0; byte < count * (i64)sizeof(T); byte += 64)
    __builtin_prefetch((const char*)later + byte);
}

// The sum of one vector's lanes, by halves.
template <class T, int N>
NJ_INLINE T nj_lanes_total(const T (&lanes)[N]) {
  if constexpr (N == 1) {
    return lanes[0];
  } else {
    T half[N / 2];
    for (i32 lane = 0; lane < N / 2; ++lane)
      half[lane] = lanes[lane] + lanes[lane + N / 2];
    return nj_lanes_total(half);
  }
}

// Merges the sums of blocks like the digits of a binary counter: error at most NumPy's pairwise
// sum.
template <class T>
struct nj_cascade {
  T level[64];
  u64 count = 0;
  void push(T block) {
    if (count & 1)
      merge(block);
    else
      level[0] = block;
    ++count;
  }
  T total() const { return count == 1 ? level[0] : joined(); }
  // Out of line: the sum of a short row is one block.
  __attribute__((noinline)) void merge(T block) {
    i32 k = 0;
    for (u64 c = count; c & 1; c >>= 1)
      block = level[k++] + block;
    level[k] = block;
  }
  __attribute__((noinline)) T joined() const {
    T sum = T();
    i32 k = 0;
    b1 first = true;
    for (u64 c = count; c != 0; c >>= 1, ++k) {
      if (!(c & 1))
        continue;
      sum = first ? level[k] : level[k] + sum;
      first = false;
    }
    return sum;
  }
};

// How many values, their mean, and the sum of their squared distances from it. Two sets join by
// Chan's formula, so that a variance reads memory once. The mean is mean + low: means far from zero
// may lie nearer to each other than one double can say.
struct nj_moments {
  f64 count, mean, squares, low;
};
NJ_INLINE nj_moments operator+(nj_moments a, nj_moments b) {
  const f64 count = a.count + b.count;
  const f64 share = count > 0 ? b.count / count : 0.0;
  const f64 apart = (b.mean - a.mean) + (b.low - a.low);
  const f64 moved = a.low + apart * share;
  const f64 mean = a.mean + moved;
  const f64 part = mean - a.mean;
  const f64 low = (a.mean - (mean - part)) + (moved - part);
  const b1 both = (a.count > 0) & (b.count > 0);
  const f64 joined = a.squares + b.squares + apart * apart * (a.count * share);
  nj_moments sum;
  sum.count = count;
  sum.mean = both ? mean : a.count > 0 ? a.mean : b.mean;
  sum.low = both ? low : a.count > 0 ? a.low : b.low;
  sum.squares = both ? joined : a.squares + b.squares;
  return sum;
}

// The moments of a block of values, given their mean but for rounding. Four vectors of each sum, for
// the latency of an addition is several cycles.
template <class T>
static __attribute__((noinline)) nj_moments nj_block_moments(const T* values, i64 count, T mean) {
  typedef T lanes __attribute__((vector_size(NJ_VECTOR_BYTES)));
  const i64 width = NJ_VECTOR_BYTES / sizeof(T);
  lanes sums[4] = {};
  lanes squares[4] = {};
  i64 j = 0;
  for (; j + 4 * width <= count; j += 4 * width) {
    lanes apart[4];
    __builtin_memcpy(apart, values + j, sizeof(apart));
    for (i32 k = 0; k < 4; ++k) {
      apart[k] = apart[k] - mean;
      sums[k] = sums[k] + apart[k];
      squares[k] = squares[k] + apart[k] * apart[k];
    }
  }
  const lanes sum4 = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  const lanes squares4 = (squares[0] + squares[1]) + (squares[2] + squares[3]);
  T sum = 0;
  T square = 0;
  for (i64 k = 0; k < width; ++k) {
    sum += sum4[k];
    square += squares4[k];
  }
  for (; j < count; ++j) {
    sum += values[j] - mean;
    square += (values[j] - mean) * (values[j] - mean);
  }
  const f64 rest = (f64)sum / (f64)count;
  return nj_moments{(f64)count, (f64)mean, (f64)square - (f64)sum * rest, rest};
}

// Squared distances from the mean in one pass: what is summed is the distance from a number nearby,
// the mean of the values before, and its square. The values are kept as well, to be read again
// where that number was too far off, so that digits cancel.
template <class T>
struct nj_spread {
  T values[8 * NJ_BLOCK(T)];
  T nearby = 0;
  T total = 0;
  T squares = 0;
  i64 count = 0;
  nj_cascade<nj_moments> joined;
  // `length` more values, up to 4 * NJ_BLOCK(T), now stand behind the first `count`; the sums are
  // those of their distances and of the squares
  void push(i64 length, T sum, T square) {
    total += sum;
    squares += square;
    count += length;
    if (count >= 4 * NJ_BLOCK(T))
      flush();
  }
  void flush() {
    if (count == 0)
      return;
    const f64 apart = (f64)total / (f64)count;
    const f64 rest = (f64)squares - (f64)total * apart;
    // squares of T may overflow where those of distances from the mean do not
    const b1 exact = (rest >= (f64)squares * 0.25) & (squares - squares == 0);
    const f64 before = (f64)nearby;
    nearby = (T)(before + apart);
    joined.push(exact ? nj_moments{(f64)count, before, rest, apart}
                      : nj_block_moments(values, count, nearby));
    total = 0;
    squares = 0;
    count = 0;
  }
  nj_moments done() {
    flush();
    return joined.total();
  }
};

// What a maximum starts from, and a minimum: every value is at least, at most, this.
template <class T>
NJ_INLINE T nj_lowest() {
  return nj_integer<T>::is_signed ? (T)(1ull << (nj_integer<T>::width - 1)) : (T)0;
}
template <>
inline b1 nj_lowest<b1>() {
  return false;
}
template <>
inline f32 nj_lowest<f32>() {
  return -__builtin_inff();
}
template <>
inline f64 nj_lowest<f64>() {
  return -__builtin_inf();
}

template <class T>
NJ_INLINE T nj_highest() {
  const u64 ones = ~0ull >> (64 - nj_integer<T>::width);
  return (T)(nj_integer<T>::is_signed ? ones >> 1 : ones);
}
template <>
inline b1 nj_highest<b1>() {
  return true;
}
template <>
inline f32 nj_highest<f32>() {
  return __builtin_inff();
}
template <>
inline f64 nj_highest<f64>() {
  return __builtin_inf();
}

// A maximum (sign 1) or minimum (-1) by vector lanes ignores NaN, so flags of every value are joined
// by |, in an i64 beside f64 and an i32 beside others: bit 0 says that one was NaN. clang starts its
// lanes at the outermost finite number; bit 1 says that some value was not beyond that.
template <class T>
struct nj_flag {
  typedef i32 type;
};
template <>
struct nj_flag<f64> {
  typedef i64 type;
};

template <i32 sign, class T>
NJ_INLINE typename nj_flag<T>::type nj_seen(T v) {
#ifdef __clang__
  const T beyond = sign > 0 ? nj_lowest<T>() : nj_highest<T>();
  return (typename nj_flag<T>::type)(v != v) | (typename nj_flag<T>::type)(v != beyond) << 1;
#else
  return v != v;
#endif
}

template <i32 sign, class T>
NJ_INLINE T nj_extreme(T extreme, i64 seen) {
#ifdef __clang__
  if (!(seen & 2)) {
    return sign > 0 ? nj_lowest<T>() : nj_highest<T>();
  }
#endif
  return seen & 1 ? nj_cast<T>(__builtin_nan("")) : extreme;
}

// The first position of the largest (sign 1) or smallest (sign -1) value; the first NaN beats all.
// A block is searched only when its extreme, found by vector code, is better than all before.
template <class T, i32 sign>
struct nj_argument {
  T best;
  i64 at = -1;
  b1 found_nan = false;
  static b1 better(T a, T b) { return sign > 0 ? a > b : a < b; }
  void take(const T* values, i64 count, i64 first) {
    for (i64 j = 0; j < count && !found_nan; ++j) {
      if (at >= 0 && !better(values[j], best) && !(values[j] != values[j]))
        continue;
      best = values[j];
      at = first + j;
      found_nan = best != best;
    }
  }
  // `count` values that stand at positions first, first + 1, ...
  void push(const T* values, i64 count, i64 first) {
    if (count <= 0 || found_nan)
      return;
    if (at >= 0) {
      const T reference = best;
      i32 beaten = 0;
#pragma omp simd reduction(| : beaten)
      for (i64 j = 0; j < count; ++j) {
        beaten |= better(values[j], reference) | (values[j] != values[j]);
      }
      if (!beaten)
        return;
    }
    take(values, count, first);
  }
};
