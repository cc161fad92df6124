// What the threads of a group, and the blocks of a launch, hold together.

template <class T>
NJ_INLINE T nj_shuffle(u32 mask, T x, i32 distance) {
  return (T)__shfl_xor_sync(mask, x, distance);
}

// The smallest power of two that is at least n.
NJ_INLINE constexpr i32 nj_power_above(i32 n) {
  i32 power = 1;
  while (power < n)
    power *= 2;
  return power;
}

// All `lanes` threads of a group get the join; those of more than a warp are a whole block.
template <i32 lanes, class Fold>
NJ_INLINE Fold nj_join(Fold mine, Fold* shares) {
  const u32 own = threadIdx.x % 32;
  const u32 ones = lanes < 32 ? (1u << lanes % 32) - 1 : 0xffffffffu;
  const u32 mask = lanes < 32 ? ones << own / lanes * lanes : ones;
#pragma unroll
  for (i32 distance = (lanes < 32 ? lanes : 32) / 2; distance > 0; distance /= 2) {
    mine.take(mine.across(mask, distance));
  }
  if constexpr (lanes > 32) {
    if (own == 0)
      shares[threadIdx.x / 32] = mine;
    __syncthreads();
    const i32 warps = lanes / 32;
    const u32 places = nj_power_above(warps);
    if (own % places < warps)
      mine = shares[own % places];
    else
      mine.start();
#pragma unroll
    for (i32 distance = places / 2; distance > 0; distance /= 2) {
      mine.take(mine.across(mask, distance));
    }
  }
  return mine;
}

// Threads that stand behind each other in `deep` rows of a block of 256; the first row gets the join.
template <i32 deep, class Fold>
NJ_INLINE Fold nj_join_deep(Fold mine, Fold* shares) {
  if constexpr (deep > 1) {
    const i32 wide = 256 / deep;
    __syncthreads();
    shares[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x < wide) {
#pragma unroll
      for (i32 row = 1; row < deep; ++row)
        mine.take(shares[row * wide + threadIdx.x]);
    }
  }
  return mine;
}

// Whether this block is the last of `total` that come here. What the others wrote before is then visible.
NJ_INLINE b1 nj_is_last(u32* counter, u32 total) {
  __shared__ b1 last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == total - 1;
    if (last)
      *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

// The first position of an extreme among two threads' candidates; -1 is none, and NaN wins.
template <i32 sign, class T>
NJ_INLINE void nj_join_position(T& best, i64& at, T value, i64 position) {
  const b1 nan = value != value;
  const b1 better = nan ? best == best : sign > 0 ? value > best : value < best;
  const b1 equal = nan ? best != best : value == best;
  if (position >= 0 && (at < 0 || better || (equal && position < at))) {
    best = value;
    at = position;
  }
}
