// Packs of neighbouring elements that one thread moves at once, and how many of its lanes there are.

// The device faults by itself.
#ifndef nj_check_aligned
#define nj_check_aligned(place, bytes)
#endif

template <class T, i32 N>
struct nj_pack {
  alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) T at[N];
};

// All lanes are there.
struct nj_full {
  static constexpr b1 is_full = true;
  constexpr b1 has(i32) const { return true; }
};

// The first lanes are there.
struct nj_some {
  static constexpr b1 is_full = false;
  i32 lanes;
  b1 has(i32 lane) const { return lane < lanes; }
};

// The integer type of 2^n bytes.
template <i32 n>
struct nj_word {
  typedef u8 type;
};
template <>
struct nj_word<1> {
  typedef u16 type;
};
template <>
struct nj_word<2> {
  typedef u32 type;
};
template <>
struct nj_word<3> {
  typedef uint2 type;
};
template <>
struct nj_word<4> {
  typedef uint4 type;
};

// Memory is aligned to 2^aligned bytes; `planes` numbers make one lane.
template <u64 aligned, i32 planes, class T, i32 N, class Count>
NJ_INLINE void nj_load(nj_pack<T, N>& to, const T* from, Count count) {
  if constexpr (Count::is_full && (1 << aligned) > sizeof(T)) {
    typedef typename nj_word<(i32)aligned>::type word;
    const i32 words = N * sizeof(T) >> aligned;
    nj_check_aligned(from, 1 << aligned);
#pragma unroll
    for (i32 i = 0; i < words; ++i)
      ((word*)to.at)[i] = ((const word*)from)[i];
  } else {
#pragma unroll
    for (i32 i = 0; i < N; ++i)
      to.at[i] = count.has(i / planes) ? from[i] : T();
  }
}

template <u64 aligned, i32 planes, class T, i32 N, class Count>
NJ_INLINE void nj_store(T* to, const nj_pack<T, N>& from, Count count) {
  if constexpr (Count::is_full && (1 << aligned) > sizeof(T)) {
    typedef typename nj_word<(i32)aligned>::type word;
    const i32 words = N * sizeof(T) >> aligned;
    nj_check_aligned(to, 1 << aligned);
#pragma unroll
    for (i32 i = 0; i < words; ++i)
      ((word*)to)[i] = ((const word*)from.at)[i];
  } else {
#pragma unroll
    for (i32 i = 0; i < N; ++i) {
      if (count.has(i / planes))
        to[i] = from.at[i];
    }
  }
}
