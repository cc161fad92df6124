// Products of matrices in tiles that registers hold, whose sums or results may end at a diagonal.

// The products of a tile are fused with their sums, whatever the unit's flags say.
#ifdef __clang__
#define NJ_FUSED
#define NJ_ONCE
#define NJ_FUSE _Pragma("clang fp contract(fast)")
#else
#define NJ_FUSED , optimize("fp-contract=fast")
// one text for the compiler, not one for each way of calling it
#define NJ_ONCE , noclone
#define NJ_FUSE
#endif

// Rows and vectors of a tile: with the vectors of one step they fill the registers.
#define NJ_TILE_ROWS (NJ_VECTOR_BYTES == 64 ? 8 : 4)
#define NJ_TILE_VECTORS 3
// sums at a time, in one register and over one packed panel
#define NJ_TILE_SUMS 512
// rows of a strip, for which a panel is packed, and additions that are worth a thread
#define NJ_STRIP_ROWS 64
#define NJ_TILE_GRAIN 500000
// bytes that stay in the caches while panels are made
#define NJ_TILE_BYTES (8 << 20)
#define NJ_COPIED_BYTES (256 << 10)

// A vector of the widest kind, in a register and at any address.
template <class T>
struct nj_wide {
  typedef T vector __attribute__((vector_size(NJ_VECTOR_BYTES)));
  typedef T loose __attribute__((vector_size(NJ_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};

// Which indices of a row count: all, those below row + shift, or those from row + shift on.
#define NJ_ALL 0
#define NJ_BELOW 1
#define NJ_FROM 2

// One step of a tile: element k of the rows that `wants` names, times vectors of b.
template <i32 vectors, class T, class Wants>
static inline __attribute__((always_inline NJ_FUSED)) void nj_tile_step(
    typename nj_wide<T>::vector (&sum)[NJ_TILE_ROWS][vectors], const T* a, i64 sa, const T* b,
    const Wants& wants) {
  NJ_FUSE
  typedef typename nj_wide<T>::vector vector;
  typedef typename nj_wide<T>::loose loose;
  vector x[vectors];
#pragma GCC unroll 4
  for (i32 v = 0; v < vectors; ++v)
    x[v] = *(const loose*)(b + v * NJ_LANES(T));
  // two pointers and three strides reach eight rows
  const T* const half = a + 4 * sa;
  const i64 thrice = 3 * sa;
#pragma GCC unroll 8
  for (i32 r = 0; r < NJ_TILE_ROWS; ++r) {
    if (!wants(r))
      continue;
    const T* const quarter = r < 4 ? a : half;
    const T factor = quarter[r % 4 == 3 ? thrice : r % 4 * sa];
#pragma GCC unroll 4
    for (i32 v = 0; v < vectors; ++v)
      sum[r][v] += factor * x[v];
  }
}

// The sums of a tile over 0 .. k; row r's end at start + r or begin there. No term that is not
// wanted is added, for it may be a NaN. `more`: to what is there already.
template <i32 sums, i32 vectors, class T>
static __attribute__((noinline NJ_ONCE NJ_FUSED)) void nj_tile(i64 k, i64 start, const T* a,
                                                               i64 sa0, i64 sa1, const T* b, T* c,
                                                               i64 sc, i32 first, i32 last,
                                                               i64 columns, b1 more) {
  typedef typename nj_wide<T>::vector vector;
  typedef typename nj_wide<T>::loose loose;
  const i64 lanes = NJ_LANES(T);
  const i32 rows = NJ_TILE_ROWS;
  vector sum[rows][vectors];
#pragma GCC unroll 8
  for (i32 r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (i32 v = 0; v < vectors; ++v)
      sum[r][v] = vector{};
  }
  const auto every = [](i32) { return true; };
  const i64 low = sums == NJ_FROM ? nj_size_max(0, nj_size_min(k, start + rows - 1)) : 0;
  const i64 high = sums == NJ_BELOW ? nj_size_max(0, nj_size_min(k, start)) : k;
  for (i64 p = low; p < high; ++p)
    nj_tile_step<vectors>(sum, a + p * sa1, sa0, b + p * vectors * lanes, every);
  if constexpr (sums != NJ_ALL) {
#pragma GCC unroll 8
    for (i32 d = 0; d < rows - 1; ++d) {
      const i64 p = start + d;
      const auto some = [=](i32 r) { return sums == NJ_BELOW ? r > d : r <= d; };
      if ((p >= 0) & (p < k))
        nj_tile_step<vectors>(sum, a + p * sa1, sa0, b + p * vectors * lanes, some);
    }
  }
  // part of a tile, or one that is added, goes through memory of its own: one loop for the compiler
  const b1 whole = (first == 0) & (last == rows) & (columns == vectors * lanes) & !more;
  T spare[rows * vectors * lanes];
  T* const to = whole ? c : spare;
  const i64 row = whole ? sc : vectors * lanes;
#pragma GCC unroll 8
  for (i32 r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (i32 v = 0; v < vectors; ++v)
      *(loose*)(to + r * row + v * lanes) = sum[r][v];
  }
  if (whole)
    return;
  for (i32 r = first; r < last; ++r) {
    for (i64 j = 0; j < columns; ++j)
      c[r * sc + j] = (more ? c[r * sc + j] : (T)0) + spare[r * vectors * lanes + j];
  }
}

// c[m, n] = a[m, k] b[k, n], of which row i needs the columns and the sums that `results` and
// `sums` name. Threads share strips of the rows of panels of columns; a panel of b is packed.
template <class T, i32 sums, i32 results>
struct nj_panels {
  i64 m, n, k;
  const T* a;
  i64 sa0, sa1;
  const T* b;
  i64 sb0, sb1;
  T* c;
  i64 sc0;
  i64 sums_shift, results_shift;
  void* (*scratch)(npjit_int64 bytes);
  i64 done;
  i64 vectors() const { return (n + NJ_LANES(T) - 1) / NJ_LANES(T); }
  i64 panels() const { return (vectors() + NJ_TILE_VECTORS - 1) / NJ_TILE_VECTORS; }
  // elements of a packed panel, and of the rows of a tile
  i64 packed() const {
    return (NJ_TILE_VECTORS * NJ_LANES(T) + NJ_TILE_ROWS) * nj_size_min(k, NJ_TILE_SUMS);
  }
  i64 strips() const { return (m + NJ_STRIP_ROWS - 1) / NJ_STRIP_ROWS; }
  static void some(void* context, npjit_int64 begin, npjit_int64 end, int) {
    const nj_panels all = *(const nj_panels*)context;
    const i64 strips = all.strips();
    T* const packed = (T*)all.scratch(all.packed() * sizeof(T));
    for (i64 at = begin; at < end;) {
      const i64 panel = at / strips;
      const i64 last = nj_size_min(end, (panel + 1) * strips);
      all.panel(panel, at % strips * NJ_STRIP_ROWS,
                nj_size_min(all.m, (last - panel * strips) * NJ_STRIP_ROWS), packed);
      at = last;
    }
  }
  // the rows low .. high of a panel
  void panel(i64 number, i64 low, i64 high, T* packed) const {
    const i64 lanes = NJ_LANES(T);
    const i64 from = number * vectors() / panels();
    const i64 wide = (number + 1) * vectors() / panels() - from;
    const i64 j = from * lanes;
    const i64 columns = nj_size_min(n - j, wide * lanes);
    // the rows that want any of the panel's columns
    if (results == NJ_BELOW)
      low = nj_size_max(low, (j - results_shift + 1) / NJ_TILE_ROWS * NJ_TILE_ROWS);
    if (results == NJ_FROM)
      high = nj_size_min(high, j + columns - results_shift);
    if (low >= high)
      return;
    i64 done = 0;
    do {
      // some of the sums, behind what is added up already
      nj_panels part = *this;
      part.done = done;
      part.k = nj_size_min(k - done, NJ_TILE_SUMS);
      part.a += done * sa1;
      part.b += done * sb0;
      part.sums_shift -= done;
      part.pack(j, columns, wide * lanes, packed);
      if (wide == 3)
        part.template tiles<3>(j, columns, low, high, packed);
      else if (wide == 2)
        part.template tiles<2>(j, columns, low, high, packed);
      else
        part.template tiles<1>(j, columns, low, high, packed);
      done += NJ_TILE_SUMS;
    } while (done < k);
  }
  void pack(i64 j, i64 columns, i64 width, T* packed) const {
    for (i64 p = 0; p < k; ++p) {
      const T* const from = b + p * sb0 + j * sb1;
      T* const to = packed + p * width;
      for (i64 q = 0; q < columns; ++q)
        to[q] = from[q * sb1];
      for (i64 q = columns; q < width; ++q)
        to[q] = 0;
    }
  }
  template <i32 wide>
  void tiles(i64 j, i64 columns, i64 low, i64 high, T* packed) const {
    const i32 rows = NJ_TILE_ROWS;
    if (m < rows) {
      T* const few = packed + k * wide * NJ_LANES(T);
      for (i64 p = 0; p < k; ++p)
        for (i32 r = 0; r < rows; ++r)
          few[p * rows + r] = a[(r < m ? r : m - 1) * sa0 + p * sa1];
      nj_tile<sums, wide>(k, sums_shift, few, 1, rows, packed, c + j, sc0, 0, (i32)m, columns,
                          done > 0);
      return;
    }
    for (i64 i = low; i < high; i += rows) {
      // the last tile begins earlier rather than end later
      const i64 first = nj_size_min(i, m - rows);
      nj_tile<sums, wide>(k, first + sums_shift, a + first * sa0, sa0, sa1, packed,
                          c + first * sc0 + j, sc0, (i32)(i - first), rows, columns, done > 0);
    }
  }
};

// The lower half of c[m, m] by the upper one.
template <class T>
static inline void nj_mirror(i64 m, T* c, i64 row) {
  const i64 tile = 32;
  for (i64 i = 0; i < m; i += tile) {
    for (i64 j = 0; j <= i; j += tile) {
      for (i64 p = i; p < nj_size_min(i + tile, m); ++p) {
        for (i64 q = j; q < nj_size_min(j + tile, p); ++q)
          c[p * row + q] = c[q * row + p];
      }
    }
  }
}

// See nj_panels; shared out among threads where it is long.
template <class T, i32 sums, i32 results>
static void nj_run_panels(const npjit_api* api, const nj_panels<T, sums, results>& all) {
  if ((all.m <= 0) | (all.n <= 0))
    return;
  const i64 unit = NJ_STRIP_ROWS * NJ_TILE_VECTORS * NJ_LANES(T) * all.k;
  const i64 units = all.panels() * all.strips();
  api->parallel(all.some, (void*)&all, units, NJ_TILE_GRAIN / nj_size_max(unit, 1) + 1);
}

// arrays: a, b and c, whose columns lie side by side
template <class T, i32 sums, i32 results>
static void nj_cut_product(const npjit_api* api, const npjit_array* arrays, i64 sums_shift,
                           i64 results_shift) {
  const npjit_array &a = arrays[0], &b = arrays[1], &c = arrays[2];
  nj_run_panels<T, sums, results>(
      api, {c.shape[0], c.shape[1], a.shape[1], (const T*)a.data, a.strides[0], a.strides[1],
            (const T*)b.data, b.strides[0], b.strides[1], (T*)c.data, c.strides[0], sums_shift,
            results_shift, api->scratch});
}

// Whether c = a b is quicker in tiles than by BLAS or by loops: there are whole tiles, or little is
// lost, the rows of c, or its columns, are contiguous, and the operands, which are read again for
// each panel, stay in the caches.
template <class T>
static inline b1 nj_suits_tiles(i64 m, i64 n, i64 k, i64 sc0, i64 sc1) {
  const b1 whole = nj_size_min(m, n) >= nj_size_max(NJ_LANES(T), NJ_TILE_ROWS);
  const b1 short_loops = (m > 1) & (n > 1) & (m * n * k >= 256) & (m * n * k <= 4096);
  return (NJ_VECTOR_BYTES > 16) & (whole | short_loops) & ((sc1 == 1) | (sc0 == 1)) &
         (nj_size_max(m, n) * k * (i64)sizeof(T) <= NJ_TILE_BYTES);
}

// How the operands of a product may lie: each by itself, c where a is, or b where a is, turned.
#define NJ_APART 0
#define NJ_IN_PLACE 1
#define NJ_SQUARE 2

// c[m, n] = a[m, k] b[k, n]
template <class T, i32 relation>
static void nj_tiles(const npjit_api* api, i64 m, i64 n, i64 k, const T* a, i64 sa0, i64 sa1,
                     const T* b, i64 sb0, i64 sb1, T* c, i64 sc0, i64 sc1) {
  if (sc1 != 1)
    return nj_tiles<T, relation>(api, n, m, k, b, sb1, sb0, a, sa1, sa0, c, sc1, sc0);
  if (relation == NJ_SQUARE && m == n && a == b && sa0 == sb1 && sa1 == sb0) {
    // half of it, and the other half copied, as NumPy does
    nj_run_panels<T, NJ_ALL, NJ_FROM>(
        api, {m, n, k, a, sa0, sa1, b, sb0, sb1, c, sc0, 0, 0, api->scratch});
    return nj_mirror(m, c, sc0);
  }
  nj_run_panels<T, NJ_ALL, NJ_ALL>(api,
                                   {m, n, k, a, sa0, sa1, b, sb0, sb1, c, sc0, 0, 0, api->scratch});
}

// What threads know of a product that takes the place of its rows.
template <class T>
struct nj_replaced {
  nj_panels<T, NJ_ALL, NJ_ALL> all;
  // strips of rows, some of which are multiplied from a copy of theirs
  static void some(void* context, npjit_int64 begin, npjit_int64 end, int) {
    nj_panels<T, NJ_ALL, NJ_ALL> one = ((nj_replaced*)context)->all;
    const i64 k = one.k, last = nj_size_min(one.m, end * NJ_STRIP_ROWS);
    const i64 strips = nj_size_min(4, NJ_COPIED_BYTES / (NJ_STRIP_ROWS * k * (i64)sizeof(T)));
    const i64 rows = NJ_STRIP_ROWS * nj_size_max(1, strips);
    T* const copy = (T*)one.scratch((one.packed() + rows * k) * sizeof(T));
    T* const start = one.c;
    one.a = copy;
    one.sa0 = k;
    one.sa1 = 1;
    for (i64 low = begin * NJ_STRIP_ROWS; low < last; low += rows) {
      one.m = nj_size_min(rows, last - low);
      one.c = start + low * one.sc0;
      for (i64 i = 0; i < one.m; ++i)
        for (i64 p = 0; p < k; ++p)
          copy[i * k + p] = one.c[i * one.sc0 + p];
      for (i64 panel = 0; panel < one.panels(); ++panel)
        one.panel(panel, 0, one.m, copy + rows * k);
    }
  }
};

// a[m, k] = a[m, k] b[k, k]
template <class T>
static void nj_replace(const npjit_api* api, i64 m, i64 k, T* a, i64 sa0, i64 sa1, const T* b,
                       i64 sb0, i64 sb1) {
  if (sa1 == 1) {
    nj_replaced<T> rows = {{m, k, k, a, sa0, 1, b, sb0, sb1, a, sa0, 0, 0, api->scratch}};
    return api->parallel(rows.some, &rows, rows.all.strips(),
                         NJ_TILE_GRAIN / nj_size_max(NJ_STRIP_ROWS * k * k, 1) + 1);
  }
  T* const row = (T*)api->scratch(k * sizeof(T));
  for (i64 i = 0; i < m; ++i) {
    for (i64 p = 0; p < k; ++p)
      row[p] = a[i * sa0 + p * sa1];
    nj_gemv<T>(k, k, b, sb1, sb0, row, 1, a + i * sa0, sa1);
  }
}
