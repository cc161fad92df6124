// Products of matrices of 16 bit numbers whose tiles are handed to a kernel's own code, so that they are never in memory.

// Neighbouring threads have neighbouring lanes, as accesses of single elements want it; all lanes are there, or the
// first ones.
struct nj_woven {
  static constexpr i32 apart = 8;
  constexpr b1 has(i32) const { return true; }
  constexpr b1 fills(i32) const { return false; }
};
struct nj_some_woven {
  static constexpr i32 apart = 8;
  i32 lanes;
  b1 has(i32 lane) const { return lane < lanes; }
  constexpr b1 fills(i32) const { return false; }
};

// Where a number of a warp's rows lies among those that are staged: neither quarters of rows nor columns meet in banks.
NJ_INLINE i32 nj_place_staged(i32 row, i32 column) {
  const i32 block = column / 8 ^ row % 8;
  return row * nj_staged + block * 8 + (column % 8 ^ (block & 4));
}

// V numbers of a row, from `column` on.
template <i32 V, b1 WOVEN>
NJ_INLINE void nj_take_staged(nj_pack<f32, V>& sums, const f32* staged, i32 row, i32 column) {
  if constexpr (!WOVEN && V % 4 == 0) {
#pragma unroll
    for (i32 i = 0; i < V; i += 4)
      *(uint4*)(sums.at + i) = *(const uint4*)(staged + nj_place_staged(row, column + i));
  } else {
#pragma unroll
    for (i32 i = 0; i < V; ++i)
      sums.at[i] = staged[nj_place_staged(row, column + (WOVEN ? nj_woven::apart * i : i))];
  }
}

// Hand a warp's 16 rows of accumulators to the kernel's code: V columns a thread, neighbouring ones or woven.
template <class P, i32 V, b1 WOVEN, class Body>
NJ_INLINE void nj_hand_over(const f32 (&acc)[32][4], f32* staged, const nj_tile_place& at, i64 m,
                            i64 n, const Body& body) {
  const i32 lane = threadIdx.x % 32;
  const i32 across = nj_staged / V;
#pragma unroll 1
  for (i32 part = 0; part < nj_tile_columns / nj_staged; ++part) {
#pragma unroll
    for (i32 p = 0; p < 4; ++p) {
#pragma unroll
      for (i32 j = 0; p == part && j < 8; ++j) {
#pragma unroll
        for (i32 h = 0; h < 2; ++h) {
          const f32* const two = acc[8 * p + j] + 2 * h;
          *(nj_pack<f32, 2>*)(staged + nj_place_staged(lane / 4 + 8 * h, 8 * j + lane % 4 * 2)) = {
              {two[0], two[1]}};
        }
      }
    }
    __syncwarp();
#pragma unroll 2
    for (i32 r = lane / across; r < 16; r += 32 / across) {
      const i32 c = lane % across * (WOVEN ? 1 : V);
      nj_pack<f32, V> sums;
      nj_take_staged<V, WOVEN>(sums, staged, r, c);
      nj_pack<P, V> product;
#pragma unroll
      for (i32 i = 0; i < V; ++i)
        product.at[i] = nj_cast<P>(sums.at[i]);
      const i64 row = at.row + r, column = at.column + part * nj_staged + c, left = n - column;
      if (row >= m || left <= 0)
        continue;
      const i64 reach = WOVEN ? (V - 1) * nj_woven::apart + 1 : V;
      if (left >= reach) {
        if constexpr (WOVEN)
          body(product, at.batch, row, column, nj_woven());
        else
          body(product, at.batch, row, column, nj_full());
      } else {
        if constexpr (WOVEN)
          body(product, at.batch, row, column, nj_some_woven{(i32)(left + 7) / 8});
        else
          body(product, at.batch, row, column, nj_some{(i32)left});
      }
    }
    __syncwarp();
  }
}

// a @ b, whose sums are rounded to P and handed to body(pack, batch, row, first column, lanes). SUMMED_A: the numbers of
// a's lines are summed (else they are rows of the product); SUMMED_B: those of b's (else columns). `maps` has 32 words a
// block.
template <class T, b1 SUMMED_A, b1 SUMMED_B, class P, i32 V, b1 WOVEN, class Body>
NJ_INLINE void nj_multiply_matrices(const nj_lines<T>& a, const nj_lines<T>& b, i64 batches, i64 m,
                                    i64 n, i64 k, u64* maps, const Body& body) {
  NJ_DYNAMIC(T, nj_stages * nj_stage + (nj_staging + nj_barriers) / 2, memory);
  const i32 warp = threadIdx.x / 32;
  f32* const staged = (f32*)(memory + nj_stages * nj_stage) + warp % 8 * 16 * nj_staged;
  const i64 down = (m + nj_tile_rows - 1) / nj_tile_rows,
            across = (n + nj_tile_columns - 1) / nj_tile_columns;
  const i64 tiles = batches * down * across;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  nj_ring ring{(u64*)(memory + nj_stages * nj_stage + nj_staging / 2), 0, 0};
  for (; threadIdx.x == 0 && ring.phase == 0; ring.next()) {
    nj_open_barrier(ring.full(), 1);
    nj_open_barrier(ring.empty(), 8);
  }
  ring.phase = 0;
  ring.stage = 0;
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (warp >= 8) {
    // registers for those that have accumulators
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (warp == 8)
      nj_fetch_tiles<T, SUMMED_A, SUMMED_B>(a, b, down, across, tiles, k, maps, memory, ring);
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
#endif
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    nj_tile_place at = nj_place_of_tile(tile, down, across);
    f32 acc[32][4] = {};
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    nj_multiply_fetched<T, SUMMED_A, SUMMED_B>(acc, memory, k, ring);
#else
    for (i64 first = 0; first < k; first += 64) {
      __syncthreads();
      nj_take_boxes<T, SUMMED_A, 2>(memory, a, at.batch, at.row, first);
      nj_take_boxes<T, SUMMED_B, 4>(memory + 2 * nj_box, b, at.batch, at.column, first);
      __syncthreads();
      if (warp < 8)
        nj_multiply_boxes<T, SUMMED_A, SUMMED_B>(acc, memory);
    }
    if (warp >= 8)
      continue;
#endif
    at.row += warp * 16;
    nj_hand_over<P, V, WOVEN>(acc, staged, at, m, n, body);
  }
}

// Lines to where each begins on a boundary of 16 bytes, a line a warp: words of two numbers, put together where lines
// begin between two words.
template <class T>
NJ_INLINE void nj_align_lines(const nj_lines<T>& lines, T* place) {
  const nj_lines<T> aligned = lines.at(place);
  for (i64 number = (i64)blockIdx.x * 8 + threadIdx.x / 32; number < lines.count * lines.batches;
       number += (i64)gridDim.x * 8) {
    const T* const from = lines.line(number);
    u32* const target = (u32*)aligned.line(number);
    const i32 length = (i32)lines.length, odd = (u64)from / 2 % 2;
    const u32* const source = (const u32*)(from - odd);
    // words before this one are inside the line, but for the first one of odd lines
    const i32 end = (length - odd) / 2;
    const auto single = [&](i32 i) { return i < length ? (u32)from[i].bits : 0; };
    for (i32 first = threadIdx.x % 32; first < end; first += 32 * 8) {
      u32 low[8], high[8];
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const i32 word = first + 32 * i < end ? first + 32 * i : end - 1;
        low[i] = word >= odd ? source[word] : 0;
        high[i] = odd ? source[word + 1] : 0;
      }
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        if (first + 32 * i < end)
          target[first + 32 * i] = odd ? low[i] >> 16 | high[i] << 16 : low[i];
      }
    }
    if (threadIdx.x % 32 == 0 && odd)
      target[0] = single(0) | single(1) << 16;
    if (threadIdx.x % 32 == 1 && 2 * end < length && (end > 0 || !odd))
      target[end] = single(2 * end) | single(2 * end + 1) << 16;
  }
}
