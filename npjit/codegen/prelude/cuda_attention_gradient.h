// The gradient of softmax(scale * q @ k.T) @ v, g being that of the result: the weights are computed anew from what is
// kept of each row (Dao et al. 2022). Three kernels (two are one function), so that nothing is added by atomic
// accesses. Products are not left to wgmma: ptxas (12.9) gives registers with its factors to others, though they
// are needed in the loop's next round.

template <class T, i32 COUNT>
struct nj_tile {
  alignas(1024) T at[COUNT];
};

// Rows of sums, times `scale`, into a dense array of float32.
template <i32 BLOCKS>
NJ_INLINE void nj_store_rows(f32* to, const f32 (&sums)[BLOCKS][4], f32 scale, i64 row, i64 rows,
                             i64 width) {
#pragma unroll
  for (i32 j = 0; j < BLOCKS; ++j) {
#pragma unroll
    for (i32 c = 0; c < 4; ++c) {
      const i64 r = row + c / 2 * 8;
      const i32 column = 8 * j + threadIdx.x % 4 * 2 + c % 2;
      if (to != nullptr && r < rows && column < width)
        to[r * width + column] = sums[j][c] * scale;
    }
  }
}

// A score's weight.
template <b1 RAW>
NJ_INLINE f32 nj_weight(f32 score, f32 most, f32 share, f32 unit) {
  if constexpr (RAW)
    return nj_quick_exp2(__builtin_fmaf(score, unit, -most * unit)) * share;
  else
    return nj_quick_exp2((score - most) * unit) * share;
}

// What the other kernels want to know of each row (FIRST): the largest score, one by the sum of weights, and the sum of
// weights times their gradients; then the gradient of q. A block has 64 rows.
template <class T, class M, i32 D, i32 E, i32 KEYS, i32 W, b1 FIRST>
static __global__ void __launch_bounds__(128, D + E > 128 ? 2 : 3)
    nj_attention_gradient_rows(const T* q, const T* k, const T* v, const T* g, const f32* factor,
                               const M* mask, const u8* kinds, f32* made, f32* mosts, f32* shares,
                               f32* pulls, i64 heads, i64 rows, i64 keys, i64 depth, i64 width,
                               i64 q0, i64 q1, i64 q2, i64 k0, i64 k1, i64 k2, i64 v0, i64 v1,
                               i64 v2, i64 g0, i64 g1, i64 g2, i64 m0, i64 m1, i64 m2, i64 m3,
                               i64 t0, i64 t1, i64 t2, f64 scale, f64 fill) {
  __shared__ nj_tile<T, KEYS * D> key_tiles[2];
  __shared__ nj_tile<T, KEYS * E> value_tiles[2];
  constexpr b1 plain = nj_scores<M>::are_plain, raw = nj_scores<M>::are_raw;
  const i64 tiles = (rows + 63) / 64;
  const i64 whole = blockIdx.x / tiles;
  const i64 batch = whole / heads;
  const i64 head = whole % heads;
  const i64 row = blockIdx.x % tiles * 64 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  if (factor != nullptr)
    scale *= *factor;
  const f32 unit = nj_unit(raw ? scale : 1);
  mask += batch * m0 + head * m1;
  const nj_scores<M> scores{mask, m2, m3, (f32)scale, (f32)fill};
  const nj_tiles<M, KEYS> seen{kinds + batch * t0 + head * t1 + blockIdx.x % tiles * t2,
                               fill == -__builtin_inf()};
  nj_feed<T, KEYS, D, 128, W> key_feed(k + batch * k0 + head * k1, k2, keys, depth);
  nj_feed<T, KEYS, E, 128, W> value_feed(v + batch * v0 + head * v1, v2, keys, width);
  const auto fetch = [&](i64 tiles_on, i32 side) {
    key_feed.skip(tiles_on);
    key_feed.next(key_tiles[side].at);
    value_feed.skip(tiles_on);
    value_feed.next(value_tiles[side].at);
  };
  i64 now = seen.from(0, keys);
  fetch(now, 0);
  u32 own[D / 16][4], own_g[E / 16][4];
  nj_fetch_rows<T, D / 16, W>(own, q + batch * q0 + head * q1, q2, row, rows, (i32)depth);
  nj_fetch_rows<T, E / 16, W>(own_g, g + batch * g0 + head * g1, g2, row, rows, (i32)width);
  nj_flip_signs(own, raw && scale < 0);
  f32 s[KEYS / 8][4], d[KEYS / 8][4];
  nj_running running{{-__builtin_inff(), -__builtin_inff()}, {0, 0}};
  f32 share[2], less[2], pull[2] = {0, 0};
  const auto place = [&](i32 h) {
    return whole * rows + (row + 8 * h < rows ? row + 8 * h : rows - 1);
  };
#pragma unroll
  for (i32 h = 0; h < 2 && !FIRST; ++h) {
    running.most[h] = mosts[place(h)];
    share[h] = shares[place(h)];
    pull[h] = pulls[place(h)];
  }
  f32 sums[D / 8][4] = {};
  u32 taken[1][KEYS / 16][4];
  i32 side = 0;
#pragma unroll 1
  while (now * KEYS < keys) {
    nj_arrived();
    __syncthreads();
    const i64 soon = seen.from(now + 1, keys);
    fetch(soon - now - 1, side ^ 1);
    nj_multiply_tile<T, D / 16, KEYS / 8, true, true, KEYS>(s, own, key_tiles[side].at);
    nj_multiply_tile<T, E / 16, KEYS / 8, true, true, KEYS>(d, own_g, value_tiles[side].at);
    u32 kept = 0xffffffffu;
    if (!plain || (now + 1) * KEYS > keys)
      kept =
          nj_mask_tile<M, KEYS / 8, false>(s, scores, seen.kind(now), row, rows, now * KEYS, keys);
    if constexpr (FIRST) {
      nj_weigh<KEYS / 8, raw>(s, running, less, unit);
#pragma unroll
      for (i32 h = 0; h < 2; ++h) {
        pull[h] *= less[h];
#pragma unroll
        for (i32 j = 0; j < KEYS / 8; ++j)
          pull[h] += s[j][2 * h] * d[j][2 * h] + s[j][2 * h + 1] * d[j][2 * h + 1];
      }
    } else {
#pragma unroll
      for (i32 j = 0; j < KEYS / 8; ++j) {
#pragma unroll
        for (i32 c = 0; c < 4; ++c) {
          const f32 weight = nj_weight<raw>(s[j][c], running.most[c / 2], share[c / 2], unit);
          s[j][c] = plain || kept >> (4 * j + c) & 1 ? weight * (d[j][c] - pull[c / 2]) : 0.0f;
        }
      }
      nj_take_pieces<T>(taken, s);
      nj_multiply_tile<T, KEYS / 16, D / 8, false, false, KEYS>(sums, taken[0], key_tiles[side].at);
    }
    side ^= 1;
    now = soon;
  }
  nj_arrived();
  if constexpr (!FIRST)
    nj_store_rows<D / 8>(made + whole * rows * depth, sums, (f32)scale, row, rows, depth);
#pragma unroll
  for (i32 h = 0; h < 2 && FIRST; ++h) {
    f32 sum = running.sum[h];
    sum += nj_shuffle(0xffffffffu, sum, 1);
    sum += nj_shuffle(0xffffffffu, sum, 2);
    pull[h] += nj_shuffle(0xffffffffu, pull[h], 1);
    pull[h] += nj_shuffle(0xffffffffu, pull[h], 2);
    if (threadIdx.x % 4 == 0 && row + 8 * h < rows) {
      mosts[place(h)] = running.most[h];
      shares[place(h)] = 1 / sum;
      pulls[place(h)] = pull[h] / sum;
    }
  }
}

// The gradients of k and v, a block having 64 keys, by which tiles of QUERIES rows of q and g pass: all is turned
// around.
template <class T, class M, i32 D, i32 E, i32 QUERIES, i32 W>
static __global__ void __launch_bounds__(128, 2)
    nj_attention_gradient_keys(const T* q, const T* k, const T* v, const T* g, const f32* factor,
                               const M* mask, const u8* kinds, f32* made_k, f32* made_v,
                               const f32* mosts, const f32* shares, const f32* pulls, i64 heads,
                               i64 rows, i64 keys, i64 depth, i64 width, i64 q0, i64 q1, i64 q2,
                               i64 k0, i64 k1, i64 k2, i64 v0, i64 v1, i64 v2, i64 g0, i64 g1,
                               i64 g2, i64 m0, i64 m1, i64 m2, i64 m3, i64 t0, i64 t1, i64 t2,
                               f64 scale, f64 fill) {
  __shared__ nj_tile<T, QUERIES * D> query_tiles[2];
  __shared__ nj_tile<T, QUERIES * E> gradient_tiles[2];
  constexpr b1 plain = nj_scores<M>::are_plain, raw = nj_scores<M>::are_raw;
  const i64 tiles = (keys + 63) / 64;
  const i64 whole = blockIdx.x / tiles;
  const i64 batch = whole / heads;
  const i64 head = whole % heads;
  const i64 row = blockIdx.x % tiles * 64 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  if (factor != nullptr)
    scale *= *factor;
  const f32 unit = nj_unit(raw ? scale : 1);
  mask += batch * m0 + head * m1;
  const nj_scores<M> scores{mask, m2, m3, (f32)scale, (f32)fill};
  nj_feed<T, QUERIES, D, 128, W> query_feed(q + batch * q0 + head * q1, q2, rows, depth);
  nj_feed<T, QUERIES, E, 128, W> gradient_feed(g + batch * g0 + head * g1, g2, rows, width);
  const auto fetch = [&](i64 tiles_on, i32 side) {
    query_feed.skip(tiles_on);
    query_feed.next(query_tiles[side].at);
    gradient_feed.skip(tiles_on);
    gradient_feed.next(gradient_tiles[side].at);
  };
  const nj_tiles<M, QUERIES> seen{kinds + batch * t0 + head * t1 + blockIdx.x % tiles * t2,
                                  fill == -__builtin_inf()};
  i64 now = seen.from(0, rows);
  fetch(now, 0);
  u32 own[D / 16][4], own_v[E / 16][4];
  nj_fetch_rows<T, D / 16, W>(own, k + batch * k0 + head * k1, k2, row, keys, (i32)depth);
  nj_fetch_rows<T, E / 16, W>(own_v, v + batch * v0 + head * v1, v2, row, keys, (i32)width);
  nj_flip_signs(own, raw && scale < 0);
  f32 sums_k[D / 8][4] = {}, sums_v[E / 8][4] = {};
  f32 s[QUERIES / 8][4], d[QUERIES / 8][4];
  u32 taken[1][QUERIES / 16][4], weights[1][QUERIES / 16][4];
  i32 side = 0;
#pragma unroll 1
  while (now * QUERIES < rows) {
    nj_arrived();
    __syncthreads();
    const i64 soon = seen.from(now + 1, rows);
    fetch(soon - now - 1, side ^ 1);
    nj_multiply_tile<T, D / 16, QUERIES / 8, true, true, QUERIES>(s, own, query_tiles[side].at);
    nj_multiply_tile<T, E / 16, QUERIES / 8, true, true, QUERIES>(d, own_v,
                                                                  gradient_tiles[side].at);
    u32 kept = 0xffffffffu;
    if (!plain || (now + 1) * QUERIES > rows)
      kept = nj_mask_tile<M, QUERIES / 8, true>(s, scores, seen.kind(now), row, keys, now * QUERIES,
                                                rows);
#pragma unroll
    for (i32 j = 0; j < QUERIES / 8; ++j) {
#pragma unroll
      for (i32 c = 0; c < 2; ++c) {
        const i64 column = now * QUERIES + 8 * j + threadIdx.x % 4 * 2 + c;
        const b1 there = column < rows;
        const f32 most = there ? mosts[whole * rows + column] : 0.0f;
        const f32 share = there ? shares[whole * rows + column] : 0.0f;
        const f32 pull = there ? pulls[whole * rows + column] : 0.0f;
#pragma unroll
        for (i32 i = c; i < 4; i += 2) {
          const f32 weight = nj_weight<raw>(s[j][i], most, share, unit);
          d[j][i] = plain || kept >> (4 * j + i) & 1 ? weight * (d[j][i] - pull) : 0.0f;
          s[j][i] = weight;
        }
      }
    }
    nj_take_pieces<T>(weights, s);
    nj_take_pieces<T>(taken, d);
    nj_multiply_tile<T, QUERIES / 16, E / 8, false, false, QUERIES>(sums_v, weights[0],
                                                                    gradient_tiles[side].at);
    nj_multiply_tile<T, QUERIES / 16, D / 8, false, false, QUERIES>(sums_k, taken[0],
                                                                    query_tiles[side].at);
    side ^= 1;
    now = soon;
  }
  nj_arrived();
  nj_store_rows<D / 8>(made_k == nullptr ? made_k : made_k + whole * keys * depth, sums_k,
                       (f32)scale, row, keys, depth);
  nj_store_rows<E / 8>(made_v == nullptr ? made_v : made_v + whole * keys * width, sums_v, 1.0f,
                       row, keys, width);
}
