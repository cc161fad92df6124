// Loads, casts, choices, and the arithmetic of sizes and indices.

NJ_INLINE b1 nj_truth(u8 byte) { return byte != 0; }

NJ_INLINE u32 nj_bits(f32 x) {
  u32 bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
NJ_INLINE u64 nj_bits(f64 x) {
  u64 bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
NJ_INLINE f32 nj_from_bits(u32 bits) {
  f32 x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
NJ_INLINE f64 nj_from_bits(u64 bits) {
  f64 x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}

// Else g++ takes (f64)(i64)x for trunc(x), which keeps NaN and makes -0.0 of -0.3.
#define NJ_OPAQUE(x) (x)
#ifdef __has_builtin
#if __has_builtin(__builtin_assoc_barrier)
#undef NJ_OPAQUE
#define NJ_OPAQUE(x) __builtin_assoc_barrier(x)
#endif
#endif

// Whether a complex element is loaded: an opaque choice. As a masked vector load g++ 12 swaps the
// two planes of such an element where a product crosses them.
NJ_INLINE b1 nj_held(b1 held) {
  i32 hidden = held;
  __asm__("" : "+r"(hidden));
  return hidden != 0;
}

// NumPy's casts are what SSE code gives: 8 and 16 bit integers are cut from an i32, and what does
// not fit becomes the smallest integer of the conversion. C++ alone leaves this undefined.
NJ_INLINE i32 nj_convert(i32*, f64 x) { return NJ_OPAQUE((i32)x); }
NJ_INLINE i64 nj_convert(i64*, f64 x) { return NJ_OPAQUE((i64)x); }
NJ_INLINE i32 nj_convert(i32*, f32 x) { return NJ_OPAQUE((i32)x); }
NJ_INLINE i64 nj_convert(i64*, f32 x) { return NJ_OPAQUE((i64)x); }
NJ_INLINE i8 nj_convert(i8*, f64 x) { return (i8)(i32)x; }
NJ_INLINE i16 nj_convert(i16*, f64 x) { return (i16)(i32)x; }
NJ_INLINE u8 nj_convert(u8*, f64 x) { return (u8)(i32)x; }
NJ_INLINE u16 nj_convert(u16*, f64 x) { return (u16)(i32)x; }
NJ_INLINE u32 nj_convert(u32*, f64 x) {
  return x >= 0x1p31 ? (u32)(i32)(x - 0x1p31) ^ (1u << 31) : NJ_OPAQUE((u32)(i32)x);
}
NJ_INLINE u64 nj_convert(u64*, f64 x) {
  const u64 high = (u64)(i64)(x - 0x1p63) ^ (1ull << 63);
  return x >= 0x1p63 ? high : NJ_OPAQUE((u64)(i64)x);
}
NJ_INLINE i8 nj_convert(i8*, f32 x) { return (i8)(i32)x; }
NJ_INLINE i16 nj_convert(i16*, f32 x) { return (i16)(i32)x; }
NJ_INLINE u8 nj_convert(u8*, f32 x) { return (u8)(i32)x; }
NJ_INLINE u16 nj_convert(u16*, f32 x) { return (u16)(i32)x; }
NJ_INLINE u32 nj_convert(u32*, f32 x) {
  return x >= 0x1p31f ? (u32)(i32)(x - 0x1p31f) ^ (1u << 31) : NJ_OPAQUE((u32)(i32)x);
}
NJ_INLINE u64 nj_convert(u64* to, f32 x) { return nj_convert(to, (f64)x); }
template <class To, class From>
NJ_INLINE To nj_convert(To*, From x) {
  return (To)x;
}

template <class To, class From>
NJ_INLINE To nj_cast(From x) {
  return nj_convert((To*)nullptr, x);
}

template <class T>
NJ_INLINE T nj_select(b1 c, T a, T b) {
  return c ? a : b;
}
// By masks: g++ turns c ? a : f(b) into a branch around f, and a loop with a branch stays scalar.
NJ_INLINE f32 nj_select(b1 c, f32 a, f32 b) {
  return nj_from_bits((nj_bits(a) & (0 - (u32)c)) | (nj_bits(b) & ((u32)c - 1)));
}
NJ_INLINE f64 nj_select(b1 c, f64 a, f64 b) {
  return nj_from_bits((nj_bits(a) & (0 - (u64)c)) | (nj_bits(b) & ((u64)c - 1)));
}

// Sizes: what Python's // and % give; a size expression never divides by zero.
NJ_INLINE i64 nj_size_floordiv(i64 a, i64 b) {
  const i64 q = a / b;
  return q - ((q * b != a) & ((a < 0) != (b < 0)));
}

NJ_INLINE i64 nj_size_mod(i64 a, i64 b) {
  const i64 r = a % b;
  return (r != 0) & ((r < 0) != (b < 0)) ? r + b : r;
}

NJ_INLINE i64 nj_size_min(i64 a, i64 b) { return a < b ? a : b; }

NJ_INLINE i64 nj_size_max(i64 a, i64 b) { return a > b ? a : b; }

NJ_INLINE i64 nj_size_select(i64 i, i64 a, i64 b) { return i >= 0 ? a : b; }

NJ_INLINE i64 nj_size_pow2(i64 n) { return (i64)1 << nj_size_min(nj_size_max(n, 0), 62); }

static __attribute__((noinline, cold)) i64 nj_cold(i64 a) { return a; }

// An index that counts from the end where it is negative. Few are, and few lie outside: a branch,
// by the comparison that a check behind it makes.
NJ_INLINE i64 nj_place(i64 i, i64 n) {
  return __builtin_expect((u64)i < (u64)n, true) ? i : nj_cold(i < 0 ? i + n : i);
}

// A choice that data decide, without a branch: one condition for several of them is opaque, or
// g++ makes one branch for all.
template <class T>
NJ_INLINE T nj_either(b1 c, T a, T b) {
  return nj_held(c) ? a : b;
}

// The cold path of an index check: `i` is not in 0..n-1. A negative index counts from the end.
static __attribute__((noinline, cold)) i64 nj_wrap_index(i64 i, i64 n, i32* failed) {
  const i64 wrapped = i < 0 ? i + n : i;
  if (wrapped >= 0 && wrapped < n)
    return wrapped;
  *failed = 1;
  return 0;
}

// Whether two of these offsets (in elements) are neighbours: a vector that is loaded at one of them
// begins in the middle of a cache line.
template <i64 count>
NJ_INLINE b1 nj_are_close(const i64 (&offsets)[count]) {
  b1 found = false;
  for (i64 i = 0; i < count; ++i)
    for (i64 j = 0; j < i; ++j)
      found |= (offsets[i] != offsets[j]) & (offsets[i] - offsets[j] < 8) &
               (offsets[j] - offsets[i] < 8);
  return found;
}

// The end of a part of from .. to that does not reach beyond `at`.
NJ_INLINE i64 nj_cut(i64 from, i64 to, i64 at) { return (from < at) & (at < to) ? at : to; }

// Copies an array of any strides (in elements) to packed memory, or back from there; the end of what
// was packed.
static char* nj_keep(char* packed, char* array, i64 rank, const i64* extents, const i64* strides,
                     i64 size, b1 back) {
  if (rank == 0 || (rank == 1 && strides[0] == 1)) {
    const i64 bytes = (rank == 0 ? 1 : extents[0]) * size;
    if (back) {
      __builtin_memcpy(array, packed, bytes);
    } else {
      __builtin_memcpy(packed, array, bytes);
    }
    return packed + bytes;
  }
  for (i64 i = 0; i < extents[0]; ++i) {
    char* const part = array + i * strides[0] * size;
    packed = nj_keep(packed, part, rank - 1, extents + 1, strides + 1, size, back);
  }
  return packed;
}
