// Cumulative reductions along rows: whole kernels, for steps that are no loops.

// What a running value starts from, and how it takes in one more.
template <class T>
struct nj_running_sum {
  static T start() { return 0; }
  static T join(T a, T b) { return a + b; }
};
template <class T>
struct nj_running_product {
  static T start() { return 1; }
  static T join(T a, T b) { return a * b; }
};
template <class T>
struct nj_running_max {
  static T start() { return nj_lowest<T>(); }
  static T join(T a, T b) { return nj_maximum(a, b); }
};
template <class T>
struct nj_running_min {
  static T start() { return nj_highest<T>(); }
  static T join(T a, T b) { return nj_minimum(a, b); }
};

// A block goes along each row in stretches of several packs a thread: scans inside packs, of the
// packs' totals inside warps, and of the warps' totals by every thread. Where rows begin between
// boundaries, the first pack begins in front of its row.
template <class T, class Join, i32 V, u64 A, i32 items, b1 skewed>
static __global__ void __launch_bounds__(256) nj_scan_rows(const T* from, T* to, i64 length) {
  __shared__ T totals[items][8];
  const i64 begin = (i64)blockIdx.x * length;
  const i32 skew = skewed ? (i32)(begin % V) : 0;
  const T* const source = from + begin - skew;
  T* const target = to + begin - skew;
  const i64 end = skew + length;
  // packs that lie in the array are loaded whole
  const i64 last = (i64)gridDim.x * length - begin + skew - V;
  const i32 lane = threadIdx.x % 32;
  const i32 warp = threadIdx.x / 32;
  T carry = Join::start();
  for (i64 base = 0; base < end; base += 256 * items * V) {
    nj_pack<T, V> packs[items];
    T own[items];
#pragma unroll
    for (i32 k = 0; k < items; ++k) {
      const i64 start = base + (k * 256 + (i32)threadIdx.x) * V;
      if (start < end && start <= last)
        nj_load<A, 1>(packs[k], source + start, nj_full());
      else
        nj_load<A, 1>(packs[k], source + start, nj_some{start < end ? (i32)(end - start) : 0});
      if constexpr (skewed) {
#pragma unroll
        for (i32 i = 0; i < V - 1; ++i) {
          if (start + i < skew)
            packs[k].at[i] = Join::start();
        }
      }
    }
#pragma unroll
    for (i32 k = 0; k < items; ++k) {
#pragma unroll
      for (i32 i = 1; i < V; ++i)
        packs[k].at[i] = Join::join(packs[k].at[i - 1], packs[k].at[i]);
      own[k] = packs[k].at[V - 1];
#pragma unroll
      for (i32 distance = 1; distance < 32; distance *= 2) {
        const T before = __shfl_up_sync(0xffffffffu, own[k], distance);
        if (lane >= distance)
          own[k] = Join::join(before, own[k]);
      }
      if (lane == 31)
        totals[k][warp] = own[k];
    }
    __syncthreads();
#pragma unroll
    for (i32 k = 0; k < items; ++k) {
      T before = carry;
#pragma unroll
      for (i32 w = 0; w < 8; ++w) {
        if (w == warp)
          before = carry;
        carry = Join::join(carry, totals[k][w]);
      }
      const T left_lane = __shfl_up_sync(0xffffffffu, own[k], 1);
      if (lane > 0)
        before = Join::join(before, left_lane);
#pragma unroll
      for (i32 i = 0; i < V; ++i)
        packs[k].at[i] = Join::join(before, packs[k].at[i]);
      const i64 start = base + (k * 256 + (i32)threadIdx.x) * V;
      const i64 left = end - start;
      const nj_span count{start < skew ? skew : 0, left < V ? (i32)left : V};
      if (left > 0)
        nj_store<A, 1>(target + start, packs[k], count);
    }
    __syncthreads();
  }
}
