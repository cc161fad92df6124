// Tiles of two factors' products: fetched by Hopper's tensor memory accelerator (TMA) and multiplied by wgmma from shared
// memory; by mma, or ordinary arithmetic off the device, where the module is for others.

// A factor: `count` lines of numbers that follow each other, in batches.
template <class T>
struct nj_lines {
  const T* from;
  i64 length, step, count, batch_step, batches;
  // Where a line begins that is one of all batches'.
  const T* line(i64 number) const {
    return from + number / count * batch_step + number % count * step;
  }
  // The same behind each other at another place, each on a boundary of 16 bytes.
  nj_lines at(const T* place) const {
    const i64 apart = (length + 7) / 8 * 8;
    return {place, length, apart, count, batches > 1 ? apart * count : 0, batches};
  }
};

// A block takes tiles of 128 rows and 256 columns, 64 of the summed numbers at a time. Eight warps have 16 rows of
// accumulators each; a ninth one fetches, up to four stages ahead. The factors' parts lie in shared memory as boxes of
// 64 lines of 64 numbers, swizzled.
const i32 nj_tile_rows = 128;
const i32 nj_tile_columns = 256;
const i32 nj_box = 64 * 64;
const i32 nj_stage = 6 * nj_box;
const i32 nj_stages = 4;
const i32 nj_product_threads = 384;
// columns that a warp stages at a time on their way to the kernel's code, and bytes of all warps' stages
const i32 nj_staged = 64;
const i32 nj_staging = 8 * 16 * nj_staged * 4;
// bytes of shared memory behind them, for barriers
const i32 nj_barriers = 128;
// The place of a tile. Blocks take groups of 16 rows of tiles together, so that they find both factors in the cache.
struct nj_tile_place {
  i64 batch, row, column;
};
NJ_INLINE nj_tile_place nj_place_of_tile(i64 tile, i64 down, i64 across) {
  const i64 together = 16;
  const i64 batch = tile / (down * across);
  const i64 rest = tile % (down * across);
  const i64 first = rest / (together * across) * together;
  const i64 rows = down - first < together ? down - first : together;
  const i64 inside = rest % (together * across);
  return {batch, (first + inside % rows) * nj_tile_rows, inside / rows * nj_tile_columns};
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
NJ_INLINE u32 nj_shared(const void* place) { return (u32)__cvta_generic_to_shared(place); }
// Tell TMA of a factor: a map in shared memory (16 words), which a warp copies to where TMA reads it.
#define NJ_MAP(what, type, value, ...)                                                   \
  asm volatile("tensormap.replace.tile." what ".shared::cta.b1024." type " [%0], " value \
               ";" ::"l"((u64)nj_shared(shared))__VA_ARGS__                              \
               : "memory")
template <class T>
NJ_INLINE void nj_tell_tma(u64* map, u64* shared, const nj_lines<T>& lines) {
  if (threadIdx.x % 32 < 16)
    shared[threadIdx.x % 32] = 0;
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    NJ_MAP("global_address", "b64", "%1", , "l"(lines.from));
    NJ_MAP("rank", "b32", "2");
    NJ_MAP("box_dim", "b32", "0, 64");
    NJ_MAP("box_dim", "b32", "1, 64");
    NJ_MAP("box_dim", "b32", "2, 1");
    NJ_MAP("global_dim", "b32", "0, %1", , "r"((i32)lines.length));
    NJ_MAP("global_dim", "b32", "1, %1", , "r"((i32)lines.count));
    NJ_MAP("global_dim", "b32", "2, %1", , "r"((i32)lines.batches));
    NJ_MAP("global_stride", "b64", "0, %1", , "l"(lines.count > 1 ? lines.step * 2 : 16));
    NJ_MAP("global_stride", "b64", "1, %1", , "l"(lines.batches > 1 ? lines.batch_step * 2 : 16));
    NJ_MAP("element_stride", "b32", "0, 1");
    NJ_MAP("element_stride", "b32", "1, 1");
    NJ_MAP("element_stride", "b32", "2, 1");
    // 16 bits, rows of 128 bytes swizzled, zeros beyond the ends
    NJ_MAP("elemtype", "b32", "0x1");
    NJ_MAP("interleave_layout", "b32", "0x0");
    NJ_MAP("swizzle_mode", "b32", "0x3");
    NJ_MAP("fill_mode", "b32", "0x0");
  }
  __syncwarp();
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%0], [%1], 128;" ::"l"(map),
      "r"(nj_shared(shared))
      : "memory");
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}
NJ_INLINE void nj_fetch_box(void* to, const u64* map, i64 number, i64 line, i64 batch,
                            u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3, %4}], "
      "[%5];" ::"r"(nj_shared(to)),
      "l"(map), "r"((i32)number), "r"((i32)line), "r"((i32)batch), "r"(nj_shared(barrier))
      : "memory");
}
// Barriers that warps, or what is fetched, arrive at; their phases are 0 and 1 by turns.
NJ_INLINE void nj_open_barrier(u64* barrier, i32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(nj_shared(barrier)), "r"(count)
               : "memory");
}
NJ_INLINE void nj_expect(u64* barrier, i32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(nj_shared(barrier)),
               "r"(bytes)
               : "memory");
}
NJ_INLINE void nj_arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(nj_shared(barrier)) : "memory");
}
NJ_INLINE void nj_await(u64* barrier, u32 phase) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra "
      "again;\n}\n" ::"r"(nj_shared(barrier)),
      "r"(phase)
      : "memory");
}
// A ring of stages, each with a barrier that says it is full and one that says it is empty.
struct nj_ring {
  u64* barriers;
  i32 stage;
  u32 phase;
  u64* full() const { return barriers + stage; }
  u64* empty() const { return barriers + nj_stages + stage; }
  void next() {
    stage = stage + 1 == nj_stages ? 0 : stage + 1;
    phase ^= stage == 0;
  }
};
#define NJ_WGMMA_WIDE(kind, turned)                                                                \
  asm volatile(                                                                                    \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"                                                \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." kind "." kind                                 \
      " {"                                                                                         \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                     \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "           \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "           \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "           \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "           \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "     \
      "%111, "                                                                                     \
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
      "%127"                                                                                       \
      "}, %128, %129, p, 1, 1, " turned ";\n}\n"                                                   \
      : NJ_FOUR(0), NJ_FOUR(1), NJ_FOUR(2), NJ_FOUR(3), NJ_FOUR(4), NJ_FOUR(5), NJ_FOUR(6),        \
        NJ_FOUR(7), NJ_FOUR(8), NJ_FOUR(9), NJ_FOUR(10), NJ_FOUR(11), NJ_FOUR(12), NJ_FOUR(13),    \
        NJ_FOUR(14), NJ_FOUR(15), NJ_FOUR(16), NJ_FOUR(17), NJ_FOUR(18), NJ_FOUR(19), NJ_FOUR(20), \
        NJ_FOUR(21), NJ_FOUR(22), NJ_FOUR(23), NJ_FOUR(24), NJ_FOUR(25), NJ_FOUR(26), NJ_FOUR(27), \
        NJ_FOUR(28), NJ_FOUR(29), NJ_FOUR(30), NJ_FOUR(31)                                         \
      : "l"(a), "l"(b), "r"(joins))
#define NJ_WGMMA_OF(kind)             \
  if constexpr (SUMMED_A && SUMMED_B) \
    NJ_WGMMA_WIDE(kind, "0, 0");      \
  else if constexpr (SUMMED_A)        \
    NJ_WGMMA_WIDE(kind, "0, 1");      \
  else if constexpr (SUMMED_B)        \
    NJ_WGMMA_WIDE(kind, "1, 0");      \
  else                                \
    NJ_WGMMA_WIDE(kind, "1, 1")
template <class T, b1 SUMMED_A, b1 SUMMED_B>
NJ_INLINE void nj_wgmma_wide(f32 (&acc)[32][4], u64 a, u64 b, i32 joins) {
  if constexpr (T::is_brain) {
    NJ_WGMMA_OF("bf16");
  } else {
    NJ_WGMMA_OF("f16");
  }
}
// The warp that fetches.
template <class T, b1 SUMMED_A, b1 SUMMED_B>
NJ_INLINE void nj_fetch_tiles(const nj_lines<T>& a, const nj_lines<T>& b, i64 down, i64 across,
                              i64 tiles, i64 k, u64* maps, T* memory, nj_ring ring) {
  u64* const map_a = maps + blockIdx.x * 32;
  u64* const map_b = map_a + 16;
  nj_tell_tma(map_a, (u64*)memory, a);
  nj_tell_tma(map_b, (u64*)memory + 16, b);
  if (threadIdx.x % 32 != 0)
    return;
  // what is fetched lies where the maps were made
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const nj_tile_place at = nj_place_of_tile(tile, down, across);
    for (i64 first = 0; first < k; first += 64, ring.next()) {
      nj_await(ring.empty(), ring.phase ^ 1);
      nj_expect(ring.full(), nj_stage * 2);
#pragma unroll
      for (i32 i = 0; i < 6; ++i) {
        const b1 of_a = i < 2, summed = of_a ? SUMMED_A : SUMMED_B;
        const i64 outer = of_a ? at.row + 64 * i : at.column + 64 * (i - 2);
        const i64 batch = (of_a ? a : b).batches > 1 ? at.batch : 0;
        nj_fetch_box(memory + ring.stage * nj_stage + i * nj_box, of_a ? map_a : map_b,
                     summed ? first : outer, summed ? outer : first, batch, ring.full());
      }
    }
  }
}
// All products of a tile for a group of four warps: the last stage is handed back when the next product is under way.
template <class T, b1 SUMMED_A, b1 SUMMED_B>
NJ_INLINE void nj_multiply_fetched(f32 (&acc)[32][4], const T* memory, i64 k, nj_ring& ring) {
  const b1 leads = threadIdx.x % 32 == 0;
  u64* last = nullptr;
  for (i64 first = 0; first < k; first += 64, ring.next()) {
    nj_await(ring.full(), ring.phase);
    const T* const a = memory + ring.stage * nj_stage + threadIdx.x / 128 * nj_box;
    const T* const b = memory + ring.stage * nj_stage + 2 * nj_box;
    nj_settle(acc);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
      nj_wgmma_wide<T, SUMMED_A, SUMMED_B>(acc, nj_described(a + (SUMMED_A ? 16 : 16 * 64) * i),
                                           nj_described(b + (SUMMED_B ? 16 : 16 * 64) * i),
                                           first > 0 || i > 0);
    nj_commit_products();
    nj_products_done<1>(acc);
    if (first > 0 && leads)
      nj_arrive(last);
    last = ring.empty();
  }
  nj_products_done<0>(acc);
  if (leads)
    nj_arrive(last);
}
#else
// Some boxes by all threads; zeros beyond the ends.
template <class T, b1 SUMMED, i32 BOXES>
NJ_INLINE void nj_take_boxes(T* boxes, const nj_lines<T>& lines, i64 batch, i64 outer, i64 first) {
  for (i32 i = threadIdx.x; i < BOXES * nj_box; i += nj_product_threads) {
    const i32 down = i / 64 % 64, across = i % 64;
    const i64 along = outer + i / nj_box * 64;
    const i64 line = SUMMED ? along + down : first + down,
              number = SUMMED ? first + across : along + across;
    const b1 there = line < lines.count && number < lines.length;
    const i64 place =
        (lines.batches > 1 ? batch : 0) * lines.batch_step + line * lines.step + number;
    boxes[i / nj_box * nj_box + nj_swizzled<64>(down, across)] = there ? lines.from[place] : T{0};
  }
}
template <class T, b1 SUMMED_A, b1 SUMMED_B>
NJ_INLINE void nj_multiply_boxes(f32 (&acc)[32][4], const T* boxes) {
  const T* const own = boxes + threadIdx.x / 128 * nj_box;
  u32 a[4][4];
#pragma unroll
  for (i32 i = 0; i < 16; ++i) {
    const i32 row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + i % 2 * 8;
    const i32 summed = i / 4 * 16 + i % 4 / 2 * 8 + threadIdx.x % 4 * 2;
    const auto bits = [&](i32 k) {
      return (u32)own[SUMMED_A ? nj_swizzled<64>(row, k) : nj_swizzled<64>(k, row)].bits;
    };
    a[i / 4][i % 4] = bits(summed) | bits(summed + 1) << 16;
  }
#pragma unroll
  for (i32 i = 0; i < 4; ++i)
    nj_multiply_tile<T, 4, 8, SUMMED_B, false, 64>((f32(&)[8][4])acc[8 * i], a,
                                                   boxes + (2 + i) * nj_box);
}
#endif
