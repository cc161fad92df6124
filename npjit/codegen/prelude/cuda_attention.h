// softmax(scale * q @ k.T) @ v without the matrix of weights in memory: tiles of keys pass by, and each row keeps its
// maximum and its sum so far (Dao et al. 2022). Products of 16 bit numbers by the tensor cores.

// A tile has rows of a multiple of 64 numbers. Each block of 64 columns lies for itself, a row being 128 bytes whose
// eight chunks are exchanged by the row's number: so that neither rows nor columns of chunks meet in one bank, and as
// wgmma wants it.
template <i32 ROWS>
NJ_INLINE i32 nj_swizzled(i32 row, i32 column) {
  const i32 chunk = (column % 64 / 8) ^ (row % 8);
  return (column / 64 * ROWS + row) * 64 + chunk * 8 + column % 8;
}

// Two numbers rounded to T in one register, the first one in the lower half.
template <class T>
NJ_INLINE u32 nj_packed(f32 low, f32 high) {
#ifdef __CUDA_ARCH__
  u32 both;
  if constexpr (T::is_brain) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  }
  return both;
#else
  return nj_cast<T>(low).bits | (u32)nj_cast<T>(high).bits << 16;
#endif
}
template <class T>
NJ_INLINE f32 nj_half_of(u32 both, i32 which) {
  return nj_widen(T{(u16)(both >> 16 * which)});
}

NJ_INLINE f32 nj_quick_exp2(f32 x) {
#ifdef __CUDA_ARCH__
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

// Some bytes (4, 8, 16) into shared memory, zeros where they are not `there`; they have arrived after nj_arrived.
template <i32 BYTES>
NJ_INLINE void nj_fetch(void* to, const void* from, b1 there) {
#ifdef __CUDA_ARCH__
  const u32 place = (u32)__cvta_generic_to_shared(to);
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from),
                 "r"(there ? 16 : 0));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from),
                 "n"(BYTES), "r"(there ? BYTES : 0));
#else
  nj_check_aligned(from, BYTES);
  for (i32 i = 0; i < BYTES / 4; ++i)
    ((u32*)to)[i] = there ? ((const u32*)from)[i] : 0;
#endif
}

// Waits for what this thread has fetched, and lets wgmma see it.
NJ_INLINE void nj_arrived() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
#endif
}

// The rows of an array, ROWS at a time, into tiles; zeros beyond its rows and its width. W: how many numbers are one
// access. A thread has the same chunk of eight columns in every tile.
template <class T, i32 ROWS, i32 COLUMNS, i32 THREADS, i32 W>
struct nj_feed {
  const T* from;
  i64 stride, left;
  i32 width;
  static constexpr i32 apart = THREADS / 8;
  nj_feed(const T* array, i64 stride, i64 rows, i64 width)
      : from(array + threadIdx.x / 8 * stride + threadIdx.x % 8 * 8),
        stride(stride),
        left(rows - threadIdx.x / 8),
        width((i32)width - (i32)(threadIdx.x % 8 * 8)) {}
  void next(T* tile) {
    T* const to = tile + nj_swizzled<ROWS>(threadIdx.x / 8, threadIdx.x % 8 * 8);
#pragma unroll
    for (i32 row = 0; row < ROWS; row += apart) {
      if (ROWS % apart != 0 && row + (i32)threadIdx.x / 8 >= ROWS)
        break;
#pragma unroll
      for (i32 column = 0; column < COLUMNS; column += 64) {
        T* const place = to + (column / 64 * ROWS + row) * 64;
        const T* const source = from + row * stride + column;
#pragma unroll
        for (i32 i = 0; i < 8; i += W) {
          const b1 there = (row < left) & (column + i < width);
          if constexpr (W > 1)
            nj_fetch<2 * W>(place + i, source + i, there);
          else
            place[i] = there ? source[i] : T{0};
        }
      }
    }
    skip(1);
  }
  // Pass over so many tiles.
  void skip(i64 tiles) {
    from += tiles * ROWS * stride;
    left -= tiles * ROWS;
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Where wgmma finds 64 columns of a tile: rows of 128 bytes, eight of them 1024 bytes apart from the next eight.
NJ_INLINE u64 nj_described(const void* tile) {
  const u64 place = (u64)__cvta_generic_to_shared(tile);
  return (place & 0x3ffff) >> 4 | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62;
}
#define NJ_WGMMA(kind, turned)                                                                 \
  asm volatile(                                                                                \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                             \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." kind "." kind                              \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18," \
      " %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34,"     \
      " %35}, %36, p, 1, 1, " turned ";\n}\n"                                                  \
      : NJ_FOUR(0), NJ_FOUR(1), NJ_FOUR(2), NJ_FOUR(3), NJ_FOUR(4), NJ_FOUR(5), NJ_FOUR(6),    \
        NJ_FOUR(7)                                                                             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(joins))
#define NJ_FOUR(j) "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
template <class T, b1 TURNED>
NJ_INLINE void nj_wgmma(f32 (*acc)[4], const u32* a, u64 b, i32 joins) {
  if constexpr (T::is_brain) {
    if constexpr (TURNED)
      NJ_WGMMA("bf16", "0");
    else
      NJ_WGMMA("bf16", "1");
  } else {
    if constexpr (TURNED)
      NJ_WGMMA("f16", "0");
    else
      NJ_WGMMA("f16", "1");
  }
}
template <class T, i32 STEPS, i32 BLOCKS, b1 TURNED, b1 FRESH, i32 ROWS>
NJ_INLINE void nj_multiply_group(f32 (&acc)[BLOCKS][4], const u32 (&a)[STEPS][4], const T* tile) {
#pragma unroll
  for (i32 j = 0; j < BLOCKS; ++j)
    asm volatile("" : NJ_FOUR(j)::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (i32 wide = 0; wide < BLOCKS / 8; ++wide) {
#pragma unroll
    for (i32 step = 0; step < STEPS; ++step) {
      const i32 row = TURNED ? wide * 64 : step * 16;
      const i32 column = TURNED ? step * 16 : wide * 64;
      const T* const b = tile + (column / 64 * ROWS + row) * 64 + column % 64;
      nj_wgmma<T, TURNED>(acc + wide * 8, a[step], nj_described(b), !FRESH || step > 0);
    }
  }
}
#endif
#ifdef __CUDA_ARCH__
// Four 8 x 8 matrices, lane 8 i + r naming row r of matrix i.
template <b1 TURNED>
NJ_INLINE void nj_matrices(u32 (&b)[4], const void* row) {
  const u32 place = (u32)__cvta_generic_to_shared(row);
  if constexpr (TURNED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(place));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(place));
  }
}
#define NJ_MMA(kind)                                                                         \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." kind "." kind                        \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
               : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
template <class T>
NJ_INLINE void nj_mma(f32 (&acc)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  if constexpr (T::is_brain)
    NJ_MMA("bf16");
  else
    NJ_MMA("f16");
}
template <class T, i32 STEPS, i32 BLOCKS, b1 TURNED, b1 FRESH, i32 ROWS>
NJ_INLINE void nj_multiply_warp(f32 (&acc)[BLOCKS][4], const u32 (&a)[STEPS][4], const T* tile) {
  const i32 lane = threadIdx.x % 32;
  if constexpr (FRESH) {
#pragma unroll
    for (i32 j = 0; j < BLOCKS; ++j)
      acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = 0;
  }
#pragma unroll
  for (i32 step = 0; step < STEPS; ++step) {
#pragma unroll
    for (i32 j = 0; j < BLOCKS; j += 2) {
      const i32 inner = 16 * step + (TURNED ? lane / 8 % 2 * 8 : lane % 16);
      const i32 outer = 8 * j + (TURNED ? lane / 16 * 8 + lane % 8 : lane / 16 * 8);
      u32 b[4];
      nj_matrices<TURNED>(
          b, tile + (TURNED ? nj_swizzled<ROWS>(outer, inner) : nj_swizzled<ROWS>(inner, outer)));
      nj_mma<T>(acc[j], a[step], b[0], b[1]);
      nj_mma<T>(acc[j + 1], a[step], b[2], b[3]);
    }
  }
}
#else
// The same by ordinary arithmetic: what the tensor cores' results are, without them.
template <class T, i32 STEPS, i32 BLOCKS, b1 TURNED, b1 FRESH, i32 ROWS>
NJ_INLINE void nj_multiply_lane(f32 (&acc)[BLOCKS][4], const u32 (&a)[STEPS][4], const T* tile) {
  const i32 own = threadIdx.x % 4;
  for (i32 j = 0; FRESH && j < BLOCKS; ++j)
    acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = 0;
  for (i32 step = 0; step < STEPS; ++step) {
    f32 rows[2][16];
    for (i32 n = 0; n < 4; ++n) {
      for (i32 i = 0; i < 4; ++i) {
        const u32 both = n == 0 ? a[step][i] : nj_shuffle(0xffffffffu, a[step][i], n);
        const i32 column = i / 2 * 8 + 2 * (own ^ n);
        rows[i % 2][column] = nj_half_of<T>(both, 0);
        rows[i % 2][column + 1] = nj_half_of<T>(both, 1);
      }
    }
    for (i32 j = 0; j < BLOCKS; ++j) {
      for (i32 c = 0; c < 2; ++c) {
        const i32 outer = 8 * j + 2 * own + c;
        for (i32 k = 0; k < 16; ++k) {
          const i32 inner = 16 * step + k;
          const f32 b = nj_widen(
              tile[TURNED ? nj_swizzled<ROWS>(outer, inner) : nj_swizzled<ROWS>(inner, outer)]);
          acc[j][c] += rows[0][k] * b;
          acc[j][2 + c] += rows[1][k] * b;
        }
      }
    }
  }
}
#endif

// acc += a @ b for a warp's 16 rows. Lane 4 g + t has rows g and g + 8: of acc the columns 8 j + 2 t and the next, of a
// the columns 16 s + 2 t, the next, and those 8 further. b is in a tile: its row k at the tile's row k, or (TURNED) at
// column k. FRESH: acc is nothing yet.
template <class T, i32 STEPS, i32 BLOCKS, b1 TURNED, b1 FRESH, i32 ROWS>
NJ_INLINE void nj_multiply_tile(f32 (&acc)[BLOCKS][4], const u32 (&a)[STEPS][4], const T* tile) {
#ifdef __CUDA_ARCH__
  nj_multiply_warp<T, STEPS, BLOCKS, TURNED, FRESH, ROWS>(acc, a, tile);
#else
  nj_multiply_lane<T, STEPS, BLOCKS, TURNED, FRESH, ROWS>(acc, a, tile);
#endif
}

// The same, perhaps only started: nobody may touch acc and a before it is done.
template <class T, i32 STEPS, i32 BLOCKS, b1 TURNED, b1 FRESH, i32 ROWS>
NJ_INLINE void nj_start_product(f32 (&acc)[BLOCKS][4], const u32 (&a)[STEPS][4], const T* tile) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (BLOCKS % 8 == 0)
    return nj_multiply_group<T, STEPS, BLOCKS, TURNED, FRESH, ROWS>(acc, a, tile);
#endif
  nj_multiply_tile<T, STEPS, BLOCKS, TURNED, FRESH, ROWS>(acc, a, tile);
}

// What was started since the last commit can be waited for: nj_products_done<n> returns when all but the last n commits
// are done; acc is one of their results.
NJ_INLINE void nj_commit_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <i32 BLOCKS>
NJ_INLINE void nj_settle(f32 (&acc)[BLOCKS][4]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
  for (i32 j = 0; j < BLOCKS; ++j)
    asm volatile("" : NJ_FOUR(j)::"memory");
#endif
}
template <i32 n, i32 BLOCKS>
NJ_INLINE void nj_products_done(f32 (&acc)[BLOCKS][4]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
#endif
  nj_settle(acc);
}

// Numbers of the rows g and g + 8 from memory, as a of nj_multiply_tile; zeros beyond the array.
template <class T, i32 STEPS, i32 W>
NJ_INLINE void nj_fetch_rows(u32 (&a)[STEPS][4], const T* from, i64 stride, i64 row, i64 count,
                             i32 width) {
#pragma unroll
  for (i32 step = 0; step < STEPS; ++step) {
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const i64 r = row + i % 2 * 8;
      const i32 column = step * 16 + i / 2 * 8 + threadIdx.x % 4 * 2;
      const T* const place = from + r * stride + column;
      u32 both = 0;
      if (r < count) {
        if constexpr (W > 1) {
          both = column < width ? *(const u32*)place : 0;
        } else {
          both = column < width ? place[0].bits : 0;
          both |= column + 1 < width ? (u32)place[1].bits << 16 : 0;
        }
      }
      a[step][i] = both;
    }
  }
}

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

// How scores are masked: M is the mask's element: nothing, a bool (false: the score is `fill`), or a number to add.
struct nj_unmasked {};
template <class M>
struct nj_scores {
  static const b1 are_plain = false;
  const M* mask;
  i64 by_row, by_column;
  f32 scale, fill;
  i64 place(i64 row, i64 column) const { return row * by_row + column * by_column; }
  // Whether the score depends on the product.
  b1 keeps(i64 place) const { return sizeof(M) > 1 || mask[place]; }
  f32 at(f32 product, i64 place) const {
    if constexpr (sizeof(M) == 1)
      return mask[place] ? product * scale : fill;
    else
      return product * scale + nj_cast<f32>(mask[place]);
  }
};
template <>
struct nj_scores<nj_unmasked> {
  static const b1 are_plain = true;
  const nj_unmasked* mask;
  i64 by_row, by_column;
  f32 scale, fill;
};

// Which tiles of scores a block has to compute, looked up before: none of a mask's bools there hold (0), some (1), all
// (2). Those beyond the most count as some. The block's rows are `row` and the 63 next, its tiles COUNT columns each.
template <class M, i32 COUNT>
struct nj_tiles {
  static const i32 most = 1;
  u8* kinds;
  b1 skips;
  void look(const M*, i64, i64, i64, i64, i64) {}
  i32 kind(i64) const { return nj_scores<M>::are_plain ? 2 : 1; }
  i64 from(i64 tile, i64) const { return tile; }
};
template <i32 COUNT>
struct nj_tiles<u8, COUNT> {
  static const i32 most = 2048;
  u8* kinds;
  b1 skips;
  void look(const u8* mask, i64 by_row, i64 by_column, i64 row, i64 rows, i64 columns) {
    const i32 lane = threadIdx.x % 32;
    for (i64 tile = threadIdx.x / 32; tile * COUNT < columns && tile < most; tile += 4) {
      const i64 left = columns - tile * COUNT;
      u32 any = 0, all = 1;
      for (i32 r = lane; r < (by_row == 0 ? 1 : 64) && row + r < rows; r += 32) {
        const u8* const from = mask + (row + r) * by_row + tile * COUNT * by_column;
        if (by_column == 1 && left >= COUNT && (u64)from % 16 == 0) {
#pragma unroll
          for (i32 i = 0; i < COUNT; i += 16) {
            const uint4 w = *(const uint4*)(from + i);
            any |= w.x | w.y | w.z | w.w;
            all &= nj_no_zero(w.x) & nj_no_zero(w.y) & nj_no_zero(w.z) & nj_no_zero(w.w);
          }
        } else {
          for (i32 i = 0; i < COUNT && i < left && (any == 0 || all != 0); ++i) {
            any |= from[i * by_column];
            all &= from[i * by_column] != 0;
          }
        }
      }
#pragma unroll
      for (i32 distance = 16; distance > 0; distance /= 2) {
        any |= nj_shuffle(0xffffffffu, any, distance);
        all &= nj_shuffle(0xffffffffu, all, distance);
      }
      if (lane == 0)
        kinds[tile] = any == 0 ? 0 : 1 + all;
    }
    __syncthreads();
  }
  i32 kind(i64 tile) const { return tile < most ? kinds[tile] : 1; }
  // The first tile from this one on that is to be computed.
  i64 from(i64 tile, i64 columns) const {
    while (skips && tile * COUNT < columns && kind(tile) == 0)
      ++tile;
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
    for (i32 j = 0; j < BLOCKS && !plain; ++j) {
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

// What a lane knows of its two rows.
struct nj_running {
  f32 most[2], sum[2];
};

// Of scores the weights, relative to the rows' largest scores so far; what was summed before shrinks by `less`. Plain
// scores are still to be multiplied by scale (which is not negative), that is by `unit` for powers of two.
template <i32 BLOCKS, b1 PLAIN>
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
        if constexpr (PLAIN)
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

template <class T, i32 COUNT>
struct nj_tile {
  alignas(1024) T at[COUNT];
};

// How many blocks a multiprocessor has registers for.
template <class M, i32 WIDE, i32 PIECES>
NJ_INLINE constexpr i32 nj_attention_blocks() {
  return WIDE > 256 ? 2 : WIDE > 128 || PIECES > 1 || !nj_scores<M>::are_plain ? 3 : 4;
}

// Blocks take 64 rows of q each, tiles of KEYS rows of k and v pass by: while the weights of one are computed, the sums
// of the last are on the tensor cores, and the next on its way. D and E are the lengths of rows of k and v, rounded up
// to tiles. PIECES: of how many T each weight is made (one: it is rounded to T). W: numbers of an access. Steps in
// memory are those of batch, head and row.
template <class T, class M, class O, i32 D, i32 E, i32 KEYS, i32 PIECES, i32 W>
static __global__ void __launch_bounds__(128, nj_attention_blocks<M, D + E, PIECES>()) nj_attention(
    const T* q, const T* k, const T* v, const f32* factor, const M* mask, O* out, i64 heads,
    i64 rows, i64 keys, i64 depth, i64 width, i64 q0, i64 q1, i64 q2, i64 k0, i64 k1, i64 k2,
    i64 v0, i64 v1, i64 v2, i64 o0, i64 o1, i64 o2, i64 m0, i64 m1, i64 m2, i64 m3, f64 scale,
    f64 fill) {
  __shared__ nj_tile<T, KEYS * D> key_tiles[2];
  __shared__ nj_tile<T, KEYS * E> value_tiles[2];
  __shared__ u8 kinds[nj_tiles<M, KEYS>::most];
  const i64 tiles = (rows + 63) / 64;
  const i64 batch = blockIdx.x / tiles / heads;
  const i64 head = blockIdx.x / tiles % heads;
  const i64 row = blockIdx.x % tiles * 64 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  nj_feed<T, KEYS, D, 128, W> key_feed(k + batch * k0 + head * k1, k2, keys, depth);
  nj_feed<T, KEYS, E, 128, W> value_feed(v + batch * v0 + head * v1, v2, keys, width);
  mask += batch * m0 + head * m1;
  if (factor != nullptr)
    scale *= *factor;
  nj_tiles<M, KEYS> seen{kinds, fill == -__builtin_inf()};
  seen.look(mask, m2, m3, blockIdx.x % tiles * 64, rows, keys);
  i64 now = seen.from(0, keys);
  i64 soon = seen.from(now + 1, keys);
  key_feed.skip(now);
  key_feed.next(key_tiles[0].at);
  u32 own[D / 16][4];
  nj_fetch_rows<T, D / 16, W>(own, q + batch * q0 + head * q1, q2, row, rows, (i32)depth);
  constexpr b1 plain = nj_scores<M>::are_plain;
  nj_flip_signs(own, plain && scale < 0);
  const f32 unit = plain ? (f32)fabs(scale) * 1.442695041f : 1.442695041f;
  f32 sums[E / 8][4] = {};
  f32 scores[KEYS / 8][4];
  u32 weights[PIECES][KEYS / 16][4];
  nj_running running{{-__builtin_inff(), -__builtin_inff()}, {0, 0}};
  const auto start_scores = [&](i32 side) {
    nj_start_product<T, D / 16, KEYS / 8, true, true, KEYS>(scores, own, key_tiles[side].at);
    nj_commit_products();
  };
  const auto start_sums = [&](i32 side) {
#pragma unroll
    for (i32 i = 0; i < PIECES; ++i)
      nj_start_product<T, KEYS / 16, E / 8, false, false, KEYS>(sums, weights[i],
                                                             value_tiles[side].at);
    nj_commit_products();
  };
  f32 less[2];
  const nj_scores<M> masked{mask, m2, m3, (f32)scale, (f32)fill};
  const auto weigh = [&] {
    if (!plain || (now + 1) * KEYS > keys)
      nj_mask_tile<M, KEYS / 8, false>(scores, masked, seen.kind(now), row, rows, now * KEYS, keys);
    nj_weigh<KEYS / 8, plain>(scores, running, less, unit);
  };
  nj_arrived();
  __syncthreads();
  key_feed.skip(soon - now - 1);
  key_feed.next(key_tiles[1].at);
  value_feed.skip(now);
  value_feed.next(value_tiles[0].at);
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
    key_feed.next(key_tiles[side ^ 1].at);
    value_feed.skip(soon - now - 1);
    value_feed.next(value_tiles[side].at);
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
