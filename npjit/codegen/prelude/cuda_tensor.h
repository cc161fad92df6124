// Tiles of numbers of 16 bits in shared memory, and products with them: by wgmma where the module is Hopper's own, by
// mma otherwise, by ordinary arithmetic off the device.

// A tile has rows of a multiple of 64 numbers. Each block of 64 columns lies for itself, a row being 128 bytes whose
// eight chunks are exchanged by the row's number: so that neither rows nor columns of chunks meet in one bank, and as
// wgmma wants it.
template <i32 ROWS>
NJ_INLINE i32 nj_swizzled(i32 row, i32 column) {
  const i32 chunk = (column % 64 / 8) ^ (row % 8);
  return (column / 64 * ROWS + row) * 64 + chunk * 8 + column % 8;
}

// COUNT numbers of T as a block's shared memory, of which there may be more than functions can declare: the launch says
// how many bytes.
#ifdef __CUDA_ARCH__
#define NJ_DYNAMIC(T, COUNT, name)                      \
  extern __shared__ __align__(1024) uint4 nj_dynamic[]; \
  T* const name = reinterpret_cast<T*>(nj_dynamic)
#else
#define NJ_DYNAMIC(T, COUNT, name)                       \
  __shared__ uint4 nj_dynamic[(COUNT) * sizeof(T) / 16]; \
  T* const name = reinterpret_cast<T*>(nj_dynamic)
#endif

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
// Where wgmma finds 64 columns of a tile: rows of 128 bytes, eight of them 1024 bytes apart from the next eight; further
// columns, where it takes more, 8192 bytes behind them.
NJ_INLINE u64 nj_described(const void* tile) {
  const u64 place = (u64)__cvta_generic_to_shared(tile);
  return (place & 0x3ffff) >> 4 | (u64)512 << 16 | (u64)64 << 32 | (u64)1 << 62;
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
#define NJ_MMA(kind)                                                                  \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." kind "." kind                 \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])               \
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
