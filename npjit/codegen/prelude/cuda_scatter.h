// Additions and stores at indices: whole kernels, for steps that are no loops. A negative index counts
// from the end.

// What takes so many bytes.
struct nj_two_words {
  u64 at[2];
};
template <i32 bytes>
struct nj_word_of {
  typedef u8 type;
};
template <>
struct nj_word_of<2> {
  typedef u16 type;
};
template <>
struct nj_word_of<4> {
  typedef u32 type;
};
template <>
struct nj_word_of<8> {
  typedef u64 type;
};
template <>
struct nj_word_of<16> {
  typedef nj_two_words type;
};

// to[place] += value, with no other thread between.
template <class T>
NJ_INLINE void nj_add_at(T* place, T value) {
  atomicAdd(place, value);
}
NJ_INLINE void nj_add_at(i64* place, i64 value) { atomicAdd((u64*)place, (u64)value); }

// The same in shared memory, where others try too; floats have no instruction for that. False when a
// few tries were in vain: many want this place, and global memory does them faster.
template <class T>
NJ_INLINE b1 nj_try_add(T* place, T value) {
  nj_add_at(place, value);
  return true;
}
template <class T, class Bits>
NJ_INLINE b1 nj_try_swap(T* place, T value, Bits) {
  Bits seen = nj_bits(*(volatile T*)place);
  for (i32 tries = 0; tries < 8; ++tries) {
    const Bits found = atomicCAS((Bits*)place, seen, nj_bits(nj_from_bits(seen) + value));
    if (found == seen)
      return true;
    seen = found;
  }
  return false;
}
NJ_INLINE b1 nj_try_add(f32* place, f32 value) { return nj_try_swap(place, value, u32()); }
NJ_INLINE b1 nj_try_add(f64* place, f64 value) { return nj_try_swap(place, value, u64()); }

// The row that an index means; `rows` or more for none.
NJ_INLINE u64 nj_row_of(i64 index, i64 rows) { return (u64)(index < 0 ? index + rows : index); }

// How a value is put at its place, with no other thread between.
struct nj_put_sum {
  template <class T>
  NJ_INLINE void put(T* place, T value) {
    nj_add_at(place, value);
  }
};
struct nj_put_last {
  template <class T>
  NJ_INLINE void put(T* place, T value) {
    *place = value;
  }
};
template <class Join>
struct nj_put {
  template <class T>
  NJ_INLINE void put(T* place, T value) {
    typedef typename nj_word_of<sizeof(T)>::type word;
    word seen = *(volatile word*)place;
    for (;;) {
      const T joined = Join::join(*(const T*)&seen, value);
      const word wanted = *(const word*)&joined;
      if (wanted == seen)
        return;
      const word found = atomicCAS((word*)place, seen, wanted);
      if (found == seen)
        return;
      seen = found;
    }
  }
};

// Up to three arrays of indices, and how long the axes are that they address; 1 where there are fewer.
struct nj_indices {
  const i64* at[3];
  i64 apart[3], rows[3];
  u64 place(i64 k) const {
    u64 found = nj_row_of(at[0][k * apart[0]], rows[0]);
    for (i32 i = 1; i < 3; ++i) {
      if (rows[i] != 1)
        found = found * rows[i] + nj_row_of(at[i][k * apart[i]], rows[i]);
    }
    return found;
  }
};

// Of each place, the number of the last value for it; places without one have -1.
static __global__ void nj_scatter_none(i64* latest, i64 places) {
  const i64 step = (i64)gridDim.x * 256;
  for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < places; n += step)
    latest[n] = -1;
}
static __global__ void nj_scatter_claim(i64* latest, i64 count, const i64* at0, i64 apart0,
                                        i64 rows0, const i64* at1, i64 apart1, i64 rows1,
                                        const i64* at2, i64 apart2, i64 rows2) {
  const nj_indices indices{{at0, at1, at2}, {apart0, apart1, apart2}, {rows0, rows1, rows2}};
  const i64 step = (i64)gridDim.x * 256;
  for (i64 k = (i64)blockIdx.x * 256 + threadIdx.x; k < count; k += step) {
    i64* const place = latest + indices.place(k);
    // most values for a place that has many come too late
    if (*(volatile i64*)place < k)
      atomicMax(place, k);
  }
}

// values[o, k, i] are put at to[o, place of k, i], in no given order, or only those of the latest k.
template <class T, class Put>
static __global__ void nj_scatter_each(T* to, const T* values, i64 stride_o, i64 stride_k,
                                       i64 stride_i, i64 count, i64 outer, i64 width,
                                       const i64* latest, const i64* at0, i64 apart0, i64 rows0,
                                       const i64* at1, i64 apart1, i64 rows1, const i64* at2,
                                       i64 apart2, i64 rows2) {
  const nj_indices indices{{at0, at1, at2}, {apart0, apart1, apart2}, {rows0, rows1, rows2}};
  const i64 places = rows0 * rows1 * rows2;
  const i64 step = (i64)gridDim.x * 256;
  for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < outer * count * width; n += step) {
    const i64 line = width == 1 ? n : n / width;
    const i64 column = width == 1 ? 0 : n % width;
    const i64 block = outer == 1 ? 0 : line / count;
    const i64 k = outer == 1 ? line : line % count;
    const i64 row = (i64)indices.place(k);
    const T* const value = values + (block * stride_o + k * stride_k + column * stride_i);
    if (!latest || latest[row] == k)
      Put::put(to + (block * places + row) * width + column, *value);
  }
}

// What a kernel may ask of every index: nothing here. Kernels that ask (`cuda_asked`) clear a flag,
// which is set before.
struct nj_nothing_asked {
  b1 operator()(i64) const { return true; }
};

static __global__ void nj_scatter_begin(u32* flag) { *flag = 1; }

// The same for few rows of one element: each block adds in shared memory, to several copies if there is
// room, so that threads do not wait for each other. -0.0 changes nothing that it is added to.
template <class T, i32 BINS, class Holds>
NJ_INLINE void nj_scatter_block(T* to, const T* values, const i64* index, i64 apart, i64 count,
                                i64 rows, i64 copies, Holds holds, u32* flag) {
  __shared__ T bins[BINS];
  const i32 used = (i32)(rows * copies);
  for (i32 i = threadIdx.x; i < used; i += 1024)
    bins[i] = (T)-0.0;
  __syncthreads();
  const i32 copy = threadIdx.x % 32 & (i32)(copies - 1);
  const i64 step = (i64)gridDim.x * 1024;
  b1 sound = true;
#pragma unroll 4
  for (i64 n = (i64)blockIdx.x * 1024 + threadIdx.x; n < count; n += step) {
    const i64 found = index[n];
    const T value = values[n * apart];
    const u64 row = nj_row_of(found, rows);
    sound &= holds(found);
    if (row < (u64)rows && !nj_try_add(bins + (i32)row * (i32)copies + copy, value))
      nj_add_at(to + row, value);
  }
  if (!sound)
    atomicAnd(flag, 0u);
  __syncthreads();
  for (i32 row = threadIdx.x; row < rows; row += 1024) {
    T total = bins[row * copies];
    for (i32 c = 1; c < copies; ++c)
      total += bins[row * copies + c];
    nj_add_at(to + row, total);
  }
}

template <class T, i32 BINS>
static __global__ void __launch_bounds__(1024)
    nj_scatter_private(T* to, const T* values, const i64* index, i64 apart, i64 count, i64 rows,
                       i64 copies) {
  nj_scatter_block<T, BINS>(to, values, index, apart, count, rows, copies, nj_nothing_asked(),
                            nullptr);
}

// For many rows and far more values, in two steps without additions in global memory. A tile's values
// are sorted into buckets of 2^BITS neighbouring rows, with what is left of the row beside them, and
// those of no row behind all others; `starts` has the place of each bucket in each tile.
template <class T, i32 ITEMS, i32 BITS, i32 BUCKETS, class Holds>
NJ_INLINE void nj_scatter_tile(const T* values, const i64* index, i64 apart, i64 count, i64 rows,
                               T* sorted, u16* within, u16* starts, Holds holds, u32* flag) {
  const i32 tile = 512 * ITEMS;
  __shared__ T own[tile];
  alignas(4) __shared__ u16 rest[tile];
  __shared__ u32 counts[BUCKETS + 1];
  __shared__ u32 totals[16];
  for (i32 i = threadIdx.x; i <= BUCKETS; i += 512)
    counts[i] = 0;
  const i64 first = (i64)blockIdx.x * tile;
  const i64* const from = index + first + threadIdx.x;
  const T* const given = values + (first + threadIdx.x) * apart;
  const i32 hop = 512 * (i32)apart;
  const i32 present = (i32)nj_size_min(count - first, tile) - (i32)threadIdx.x;
  u32 row[ITEMS], rank[ITEMS];
  T value[ITEMS];
  b1 sound = true;
  const auto take = [&](auto whole) {
    i64 found[ITEMS];
#pragma unroll
    for (i32 k = 0; k < ITEMS; ++k)
      found[k] = whole.has(k) ? from[k * 512] : rows;
#pragma unroll
    for (i32 k = 0; k < ITEMS; ++k)
      value[k] = whole.has(k) ? given[k * hop] : T();
#pragma unroll
    for (i32 k = 0; k < ITEMS; ++k) {
      const u64 at = nj_row_of(found[k], rows);
      row[k] = at < (u64)rows ? (u32)at : (u32)BUCKETS << BITS;
      sound &= !whole.has(k) | holds(found[k]);
    }
  };
  if (count - first >= tile)
    take(nj_full());
  else
    take(nj_some{(present + 511) / 512});
  if (!sound)
    atomicAnd(flag, 0u);
  __syncthreads();
#pragma unroll
  for (i32 k = 0; k < ITEMS; ++k)
    rank[k] = atomicAdd(counts + (row[k] >> BITS), 1u);
  __syncthreads();
  const i32 lane = threadIdx.x % 32;
  u32 mine = threadIdx.x < BUCKETS ? counts[threadIdx.x] : 0;
  const u32 alone = mine;
#pragma unroll
  for (i32 distance = 1; distance < 32; distance *= 2) {
    const u32 before = __shfl_up_sync(0xffffffffu, mine, distance);
    if (lane >= distance)
      mine += before;
  }
  if (lane == 31)
    totals[threadIdx.x / 32] = mine;
  __syncthreads();
  u32 all = 0;
#pragma unroll
  for (i32 w = 0; w < 16; ++w) {
    mine += w < (i32)threadIdx.x / 32 ? totals[w] : 0;
    all += totals[w];
  }
  u16* const places = starts + (i64)blockIdx.x * (BUCKETS + 1);
  if (threadIdx.x < BUCKETS) {
    counts[threadIdx.x] = mine - alone;
    places[threadIdx.x] = (u16)(mine - alone);
  }
  if (threadIdx.x == 0) {
    counts[BUCKETS] = all;
    places[BUCKETS] = (u16)all;
  }
  __syncthreads();
#pragma unroll
  for (i32 k = 0; k < ITEMS; ++k) {
    const u32 at = counts[row[k] >> BITS] + rank[k];
    own[at] = value[k];
    rest[at] = (u16)(row[k] & ((1 << BITS) - 1));
  }
  __syncthreads();
  T* const to = sorted + first;
  u32* const beside = (u32*)(within + first);
#pragma unroll
  for (i32 k = 0; k < ITEMS; ++k) {
    const u32 i = threadIdx.x + k * 512;
    if (i < all)
      to[i] = own[i];
  }
#pragma unroll
  for (i32 k = 0; k < ITEMS / 2; ++k) {
    const u32 i = threadIdx.x + k * 512;
    if (2 * i < all)
      beside[i] = ((const u32*)rest)[i];
  }
}

template <class T, i32 ITEMS, i32 BITS, i32 BUCKETS>
static __global__ void __launch_bounds__(512, 2)
    nj_scatter_sort(const T* values, const i64* index, i64 apart, i64 count, i64 rows, T* sorted,
                    u16* within, u16* starts) {
  nj_scatter_tile<T, ITEMS, BITS, BUCKETS>(values, index, apart, count, rows, sorted, within,
                                           starts, nj_nothing_asked(), nullptr);
}

// Then each block adds its share of what the tiles have, bucket after bucket; a warp takes
// neighbouring tiles, and knows the places in up to 32 of them.
template <class T, i32 TILE, i32 BITS, i32 BUCKETS>
static __global__ void __launch_bounds__(512)
    nj_scatter_buckets(T* to, i64 rows, i64 tiles, i64 buckets, const T* sorted, const u16* within,
                       const u16* starts) {
  __shared__ T bins[1 << BITS];
  const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = 16;
  const i64 all = tiles * buckets;
  i64 begin = all * blockIdx.x / gridDim.x;
  const i64 stop = all * (blockIdx.x + 1) / gridDim.x;
  while (begin < stop) {
    const i64 bucket = begin / tiles;
    const i64 low = begin - bucket * tiles;
    const i64 high = nj_size_min(tiles, low + stop - begin);
    T* const target = to + (bucket << BITS);
    const auto add = [&](i32 at, T one) {
      if (!nj_try_add(bins + at, one))
        nj_add_at(target + at, one);
    };
    for (i32 i = threadIdx.x; i < 1 << BITS; i += 512)
      bins[i] = (T)-0.0;
    __syncthreads();
    const i64 last = low + (high - low) * (warp + 1) / warps;
    for (i64 tile = low + (high - low) * warp / warps; tile < last; tile += 32) {
      const i32 count = (i32)nj_size_min(32, last - tile);
      const u16* const places = starts + (tile + lane) * (BUCKETS + 1) + bucket;
      const i32 from = lane < count ? lane * TILE + places[0] : 0;
      const i32 end = lane < count ? lane * TILE + places[1] : 0;
      const T* const value = sorted + tile * TILE;
      const u16* const row = within + tile * TILE;
      for (i32 next = 0; next < count; ++next) {
        const i32 at = __shfl_sync(0xffffffffu, from, next) + lane;
        const i32 behind = __shfl_sync(0xffffffffu, end, next);
        // two at once, as most tiles have no more
        const b1 one = at < behind, two = at + 32 < behind;
        const T v = one ? value[at] : T(), w = two ? value[at + 32] : T();
        const u16 r = one ? row[at] : 0, q = two ? row[at + 32] : 0;
        if (one)
          add(r, v);
        if (two)
          add(q, w);
        for (i32 i = at + 64; i < behind; i += 32)
          add(row[i], value[i]);
      }
    }
    __syncthreads();
    const i64 left = nj_size_min(1 << BITS, rows - (bucket << BITS));
    for (i32 i = threadIdx.x; i < left; i += 512)
      nj_add_at(target + i, bins[i]);
    __syncthreads();
    begin += high - low;
  }
}
