// Packs of neighbouring elements that one thread moves at once, and how many of its lanes there are.

// The device faults by itself.
#ifndef nj_check_aligned
#define nj_check_aligned(place, bytes)
#endif

// Memory of any count, as aligned as a power of two that divides its bytes.
template <class T, i32 N>
struct nj_pack {
  static constexpr u64 bytes = N * sizeof(T), even = bytes & -bytes;
  alignas(even < 16 ? even : 16) T at[N];
};

// All lanes are there, each beside the last one.
struct nj_full {
  static constexpr i32 apart = 1;
  constexpr b1 has(i32) const { return true; }
  constexpr b1 fills(i32) const { return true; }
};

// The first lanes are there.
struct nj_some {
  static constexpr i32 apart = 1;
  i32 lanes;
  b1 has(i32 lane) const { return lane < lanes; }
  constexpr b1 fills(i32) const { return false; }
};

// The first lanes are there, and between two of them those of a warp's other threads.
struct nj_apart {
  static constexpr i32 apart = 32;
  i32 lanes;
  b1 has(i32 lane) const { return lane < lanes; }
  constexpr b1 fills(i32) const { return false; }
};

// All lanes are there, or none.
struct nj_present {
  static constexpr i32 apart = 1;
  b1 all;
  b1 has(i32) const { return all; }
  b1 fills(i32) const { return all; }
};

// Lanes from `first` on and before `last` are there.
struct nj_span {
  static constexpr i32 apart = 1;
  i32 first, last;
  b1 has(i32 lane) const { return lane >= first && lane < last; }
  b1 fills(i32 lanes) const { return first <= 0 && last >= lanes; }
};

// How the packs of a thread meet the ends of rows: rows are as long as all of them, or packs are
// whole or not there, or packs may begin in front of a row and reach over its ends.
const i32 nj_exact = 0;
const i32 nj_whole = 1;
const i32 nj_skewed = 2;
// The lanes of a pack at `start` of a row of n elements. Only a thread's first pack can begin in
// front of the row, and only its last ones can reach over the end.
template <i32 edges, class idx>
NJ_INLINE auto nj_lanes_at(idx start, idx n, b1 first, b1 last) {
  if constexpr (edges == nj_exact) {
    return nj_full();
  } else if constexpr (edges == nj_skewed) {
    const i32 before = first && start < 0 ? (i32)-start : 0;
    return nj_span{before, last && n - start < 64 ? (i32)(n - start) : 64};
  } else {
    return nj_present{!last || start < n};
  }
}

// The same for so many elements more.
NJ_INLINE nj_full nj_more(nj_full count, i32) { return count; }
NJ_INLINE nj_some nj_more(nj_some count, i32 more) { return {count.lanes + more}; }

// log2 of the bytes that accesses of `count` elements can be wide, where memory is aligned to
// 2^aligned bytes.
template <class T, i32 count>
NJ_INLINE constexpr u64 nj_aligned(u64 aligned) {
  u64 wide = 0;
  while (wide < aligned && count * sizeof(T) % (2u << wide) == 0)
    ++wide;
  return wide;
}

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

// Where number i of a pack lies whose lanes are `apart`.
template <i32 apart, i32 planes>
NJ_INLINE constexpr i32 nj_place(i32 i) {
  return i / planes * planes * apart + i % planes;
}

// Memory is aligned to 2^aligned bytes; `planes` numbers make one lane.
template <u64 aligned, i32 planes, class T, i32 N, class Count>
NJ_INLINE void nj_load(nj_pack<T, N>& to, const T* from, Count count) {
  if constexpr ((1 << aligned) > sizeof(T)) {
    if (count.fills(N / planes)) {
      typedef typename nj_word<(i32)aligned>::type word;
      const i32 words = N * sizeof(T) >> aligned;
      nj_check_aligned(from, 1 << aligned);
#pragma unroll
      for (i32 i = 0; i < words; ++i)
        ((word*)to.at)[i] = ((const word*)from)[i];
      return;
    }
  }
#pragma unroll
  for (i32 i = 0; i < N; ++i)
    to.at[i] = count.has(i / planes) ? from[nj_place<Count::apart, planes>(i)] : T();
}

template <u64 aligned, i32 planes, class T, i32 N, class Count>
NJ_INLINE void nj_store(T* to, const nj_pack<T, N>& from, Count count) {
  if constexpr ((1 << aligned) > sizeof(T)) {
    if (count.fills(N / planes)) {
      typedef typename nj_word<(i32)aligned>::type word;
      const i32 words = N * sizeof(T) >> aligned;
      nj_check_aligned(to, 1 << aligned);
#pragma unroll
      for (i32 i = 0; i < words; ++i)
        ((word*)to)[i] = ((const word*)from.at)[i];
      return;
    }
  }
#pragma unroll
  for (i32 i = 0; i < N; ++i) {
    if (count.has(i / planes))
      to[nj_place<Count::apart, planes>(i)] = from.at[i];
  }
}
