// softmax(scale * q @ k.T) @ v without the matrix of weights in memory: tiles of keys pass by, and each row keeps its
// maximum and its sum so far (Dao et al. 2022). Products of 16 bit numbers by the tensor cores.

// Rows of numbers of 16 bits, turned to their opposites if so.
template <i32 BLOCKS>
NJ_INLINE void nj_flip_signs(u32 (&own)[BLOCKS][4], b1 flip) {
#pragma unroll
  for (i32 step = 0; step < BLOCKS; ++step) {
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
      own[step][i] ^= flip ? 0x80008000u : 0;
  }
}

// Whether none of four bytes is zero.
NJ_INLINE u32 nj_no_zero(u32 w) { return ((w - 0x01010101u) & ~w & 0x80808080u) == 0; }

// How scores are masked: M is the mask's element: nothing, a bool (false: the score is `fill`, or hidden altogether), or
// a number to add. Raw scores are still to be multiplied by the scale.
struct nj_unmasked {};
struct nj_hidden {
  u8 holds;
  operator b1() const { return holds != 0; }
};
template <class M>
struct nj_scores {
  static const b1 are_plain = false;
  static const b1 are_raw = false;
  static const b1 has_bools = sizeof(M) == 1;
  const M* mask;
  i64 by_row, by_column;
  f32 scale, fill;
  i64 place(i64 row, i64 column) const { return row * by_row + column * by_column; }
  // Whether the score depends on the product.
  b1 keeps(i64 place) const { return !has_bools || mask[place]; }
  f32 at(f32 product, i64 place) const {
    if constexpr (has_bools)
      return mask[place] ? product * scale : fill;
    else
      return product * scale + nj_cast<f32>(mask[place]);
  }
};
template <>
struct nj_scores<nj_hidden> {
  static const b1 are_plain = false;
  static const b1 are_raw = true;
  static const b1 has_bools = true;
  const nj_hidden* mask;
  i64 by_row, by_column;
  f32 scale, fill;
  i64 place(i64 row, i64 column) const { return row * by_row + column * by_column; }
  b1 keeps(i64 place) const { return mask[place]; }
  f32 at(f32 product, i64 place) const { return mask[place] ? product : -__builtin_inff(); }
};
template <>
struct nj_scores<nj_unmasked> {
  static const b1 are_plain = true;
  static const b1 are_raw = true;
  static const b1 has_bools = false;
  const nj_unmasked* mask;
  i64 by_row, by_column;
  f32 scale, fill;
};

// What kinds of tiles a mask of bools has: none hold there (0), some (1), all (2). A block looks at 64 rows of four
// tiles, COUNT columns each; t0, t1 and t2 are the steps of the answers along batches, heads and tiles of rows.
template <i32 COUNT>
static __global__ void __launch_bounds__(128)
    nj_attention_kinds(const u8* mask, u8* kinds, i64 heads, i64 rows, i64 columns, i64 m0, i64 m1,
                       i64 by_row, i64 by_column, i64 t0, i64 t1, i64 t2) {
  const i32 lane = threadIdx.x % 32;
  const i64 tiles = (rows + 63) / 64;
  const i64 batch = blockIdx.x / tiles / heads;
  const i64 head = blockIdx.x / tiles % heads;
  const i64 row = blockIdx.x % tiles * 64;
  const i64 tile = (i64)blockIdx.y * 4 + threadIdx.x / 32;
  const i64 left = columns - tile * COUNT;
  if (left <= 0)
    return;
  mask += batch * m0 + head * m1 + tile * COUNT * by_column;
  u32 any = 0, all = 1;
  for (i32 r = lane; r < 64 && row + r < rows; r += 32) {
    const u8* const from = mask + (row + r) * by_row;
    if (by_column == 1 && left >= COUNT && (u64)from % 16 == 0) {
#pragma unroll
      for (i32 i = 0; i < COUNT; i += 16) {
        const uint4 w = *(const uint4*)(from + i);
        any |= w.x | w.y | w.z | w.w;
        all &= nj_no_zero(w.x) & nj_no_zero(w.y) & nj_no_zero(w.z) & nj_no_zero(w.w);
      }
    } else {
      for (i32 i = 0; i < COUNT && i < left && (any == 0 || all != 0); i += 16) {
#pragma unroll
        for (i32 j = i; j < i + 16; ++j) {
          const u8 found = from[(j < left ? j : i) * by_column];
          any |= found;
          all &= found != 0;
        }
      }
    }
  }
#pragma unroll
  for (i32 distance = 16; distance > 0; distance /= 2) {
    any |= nj_shuffle(0xffffffffu, any, distance);
    all &= nj_shuffle(0xffffffffu, all, distance);
  }
  if (lane == 0)
    kinds[batch * t0 + head * t1 + blockIdx.x % tiles * t2 + tile] = any == 0 ? 0 : 1 + all;
}

// Which tiles of scores a block has to compute, COUNT columns each; `kinds` has found out about those of bools.
template <class M, i32 COUNT>
struct nj_tiles {
  const u8* kinds;
  b1 skips;
  i32 kind(i64 tile) const {
    return nj_scores<M>::are_plain ? 2 : nj_scores<M>::has_bools ? kinds[tile] : 1;
  }
  // The first tile from this one on that is to be computed.
  i64 from(i64 tile, i64 columns) const {
    if constexpr (nj_scores<M>::has_bools) {
      while (skips && tile * COUNT < columns && kinds[tile] == 0)
        ++tile;
    }
    return tile;
  }
};

// Masks the scores of a warp's rows in the tile at column `first`, of this kind; TURNED: the mask's rows are columns
// here. Of those that the mask replaces the result has no bit.
template <class M, i32 BLOCKS, b1 TURNED>
NJ_INLINE u32 nj_mask_tile(f32 (&s)[BLOCKS][4], const nj_scores<M>& scores, i32 kind, i64 row,
                           i64 rows, i64 first, i64 columns) {
  constexpr b1 plain = nj_scores<M>::are_plain;
  if (kind == 2 && first + 8 * BLOCKS <= columns) {
#pragma unroll
    for (i32 j = 0; j < BLOCKS && !nj_scores<M>::are_raw; ++j) {
#pragma unroll
      for (i32 c = 0; c < 4; ++c)
        s[j][c] *= scores.scale;
    }
    return 0xffffffffu;
  }
  u32 kept = 0xffffffffu;
#pragma unroll
  for (i32 j = 0; j < BLOCKS; ++j) {
#pragma unroll
    for (i32 c = 0; c < 4; ++c) {
      const i64 column = first + 8 * j + threadIdx.x % 4 * 2 + c % 2;
      const i64 r = row + c / 2 * 8;
      if (column >= columns) {
        s[j][c] = -__builtin_inff();
      } else if constexpr (!plain) {
        const i64 own = r < rows ? r : rows - 1;
        const i64 place = TURNED ? scores.place(column, own) : scores.place(own, column);
        if (!scores.keeps(place))
          kept &= ~(1u << (4 * j + c));
        s[j][c] = scores.at(s[j][c], place);
      }
    }
  }
  return kept;
}

// What makes scores exponents of two; not 0, so that what is hidden stays so.
NJ_INLINE f32 nj_unit(f64 scale) {
  const f32 unit = (f32)fabs(scale) * 1.442695041f;
  return unit == 0 ? 1e-30f : unit;
}

// What a lane knows of its two rows.
struct nj_running {
  f32 most[2], sum[2];
};

// Of scores the weights, relative to the rows' largest scores so far; what was summed before shrinks by `less`. Raw
// scores are still to be multiplied by scale (which is not negative), that is by `unit` for powers of two.
template <i32 BLOCKS, b1 RAW>
NJ_INLINE void nj_weigh(f32 (&s)[BLOCKS][4], nj_running& r, f32 (&less)[2], f32 unit) {
#pragma unroll
  for (i32 h = 0; h < 2; ++h) {
    f32 most = r.most[h];
#pragma unroll
    for (i32 j = 0; j < BLOCKS; ++j)
      most = fmaxf(most, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
    most = fmaxf(most, nj_shuffle(0xffffffffu, most, 1));
    most = fmaxf(most, nj_shuffle(0xffffffffu, most, 2));
    // of a row without any score so far
    const f32 base = most == -__builtin_inff() ? 0.0f : most;
    less[h] = nj_quick_exp2((r.most[h] - base) * unit);
    r.most[h] = most;
    f32 sum = 0;
    const f32 scaled = base * unit;
#pragma unroll
    for (i32 j = 0; j < BLOCKS; ++j) {
#pragma unroll
      for (i32 c = 2 * h; c < 2 * h + 2; ++c) {
        if constexpr (RAW)
          s[j][c] = nj_quick_exp2(__builtin_fmaf(s[j][c], unit, -scaled));
        else
          s[j][c] = nj_quick_exp2((s[j][c] - base) * unit);
        sum += s[j][c];
      }
    }
    r.sum[h] = r.sum[h] * less[h] + sum;
  }
}

// The weights as a of nj_multiply_tile, each a sum of numbers of T.
template <class T, i32 PIECES, i32 STEPS>
NJ_INLINE void nj_take_pieces(u32 (&a)[PIECES][STEPS][4], f32 (*s)[4]) {
#pragma unroll
  for (i32 step = 0; step < STEPS; ++step) {
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      f32* const two = &s[2 * step + i / 2][i % 2 * 2];
#pragma unroll
      for (i32 piece = 0; piece < PIECES; ++piece) {
        const u32 both = a[piece][step][i] = nj_packed<T>(two[0], two[1]);
        two[0] -= nj_half_of<T>(both, 0);
        two[1] -= nj_half_of<T>(both, 1);
      }
    }
  }
}

// How many blocks a multiprocessor has registers for.
template <class M, i32 WIDE, i32 PIECES>
NJ_INLINE constexpr i32 nj_attention_blocks() {
  return WIDE > 128 ? 2 : PIECES > 1 || !nj_scores<M>::are_plain ? 3 : 4;
}

// Blocks take 64 rows of q each, tiles of KEYS rows of k and v pass by: while the weights of one are computed, the sums
// of the last are on the tensor cores, and the next on its way. D and E are the lengths of rows of k and v, rounded up
// to tiles. PIECES: of how many T each weight is made (one: it is rounded to T). W: numbers of an access. Steps in
// memory are those of batch, head and row.
template <class T, class M, class O, i32 D, i32 E, i32 KEYS, i32 PIECES, i32 W>
static __global__ void __launch_bounds__(128, nj_attention_blocks<M, D + E, PIECES>())
    nj_attention(const T* q, const T* k, const T* v, const f32* factor, const M* mask,
                 const u8* kinds, O* out, i64 heads, i64 rows, i64 keys, i64 depth, i64 width,
                 i64 q0, i64 q1, i64 q2, i64 k0, i64 k1, i64 k2, i64 v0, i64 v1, i64 v2, i64 o0,
                 i64 o1, i64 o2, i64 m0, i64 m1, i64 m2, i64 m3, i64 t0, i64 t1, i64 t2, f64 scale,
                 f64 fill) {
  NJ_DYNAMIC(T, 2 * KEYS * (D + E), memory);
  const auto key_tile = [&](i32 side) { return memory + side * KEYS * D; };
  const auto value_tile = [&](i32 side) { return memory + KEYS * (2 * D + side * E); };
  const i64 tiles = (rows + 63) / 64;
  const i64 batch = blockIdx.x / tiles / heads;
  const i64 head = blockIdx.x / tiles % heads;
  const i64 row = blockIdx.x % tiles * 64 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  nj_feed<T, KEYS, D, 128, W> key_feed(k + batch * k0 + head * k1, k2, keys, depth);
  nj_feed<T, KEYS, E, 128, W> value_feed(v + batch * v0 + head * v1, v2, keys, width);
  mask += batch * m0 + head * m1;
  if (factor != nullptr)
    scale *= *factor;
  const nj_tiles<M, KEYS> seen{kinds + batch * t0 + head * t1 + blockIdx.x % tiles * t2,
                               fill == -__builtin_inf()};
  i64 now = seen.from(0, keys);
  i64 soon = seen.from(now + 1, keys);
  key_feed.skip(now);
  key_feed.next(key_tile(0));
  u32 own[D / 16][4];
  nj_fetch_rows<T, D / 16, W>(own, q + batch * q0 + head * q1, q2, row, rows, (i32)depth);
  constexpr b1 plain = nj_scores<M>::are_plain, raw = nj_scores<M>::are_raw;
  nj_flip_signs(own, raw && scale < 0);
  const f32 unit = nj_unit(raw ? scale : 1);
  f32 sums[E / 8][4] = {};
  f32 scores[KEYS / 8][4];
  u32 weights[PIECES][KEYS / 16][4];
  nj_running running{{-__builtin_inff(), -__builtin_inff()}, {0, 0}};
  const auto start_scores = [&](i32 side) {
    nj_start_product<T, D / 16, KEYS / 8, true, true, KEYS>(scores, own, key_tile(side));
    nj_commit_products();
  };
  const auto start_sums = [&](i32 side) {
#pragma unroll
    for (i32 i = 0; i < PIECES; ++i)
      nj_start_product<T, KEYS / 16, E / 8, false, false, KEYS>(sums, weights[i], value_tile(side));
    nj_commit_products();
  };
  f32 less[2];
  const nj_scores<M> masked{mask, m2, m3, (f32)scale, (f32)fill};
  const auto weigh = [&] {
    if (!plain || (now + 1) * KEYS > keys)
      nj_mask_tile<M, KEYS / 8, false>(scores, masked, seen.kind(now), row, rows, now * KEYS, keys);
    nj_weigh<KEYS / 8, raw>(scores, running, less, unit);
  };
  nj_arrived();
  __syncthreads();
  key_feed.skip(soon - now - 1);
  key_feed.next(key_tile(1));
  value_feed.skip(now);
  value_feed.next(value_tile(0));
  start_scores(0);
  nj_products_done<0>(scores);
  weigh();
  nj_take_pieces<T>(weights, scores);
  i32 side = 1;
  while (soon * KEYS < keys) {
    nj_arrived();
    __syncthreads();
    const i64 later = seen.from(soon + 1, keys);
    key_feed.skip(later - soon - 1);
    key_feed.next(key_tile(side ^ 1));
    value_feed.skip(soon - now - 1);
    value_feed.next(value_tile(side));
    now = soon;
    soon = later;
    start_scores(side);
    side ^= 1;
    start_sums(side);
    nj_products_done<1>(scores);
    weigh();
    nj_settle(scores);  // before the wait, not after it
    nj_products_done<0>(sums);
#pragma unroll
    for (i32 j = 0; j < E / 8; ++j) {
#pragma unroll
      for (i32 c = 0; c < 4; ++c)
        sums[j][c] *= less[c / 2];
    }
    nj_take_pieces<T>(weights, scores);
  }
  nj_arrived();
  __syncthreads();
  start_sums(side ^ 1);
  nj_products_done<0>(sums);
#pragma unroll
  for (i32 h = 0; h < 2; ++h) {
    f32 sum = running.sum[h];
    sum += nj_shuffle(0xffffffffu, sum, 1);
    sum += nj_shuffle(0xffffffffu, sum, 2);
    const i64 r = row + 8 * h;
    if (r >= rows)
      continue;
    O* const target = out + batch * o0 + head * o1 + r * o2;
#pragma unroll
    for (i32 j = 0; j < E / 8; ++j) {
      const i32 column = 8 * j + threadIdx.x % 4 * 2;
      nj_pack<O, 2> two{{nj_cast<O>(sums[j][2 * h] / sum), nj_cast<O>(sums[j][2 * h + 1] / sum)}};
      if (W > 1 && column < width)
        *(nj_pack<O, 2>*)(target + column) = two;
      for (i32 i = 0; i < 2 && W == 1; ++i) {
        if (column + i < width)
          target[column + i] = two.at[i];
      }
    }
  }
}
