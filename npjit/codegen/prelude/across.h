// A vector times a matrix whose rows are contiguous, some rows at a time; and passes over the rows
// of matrices, in which all that a row is wanted for is done while it is in the cache.

// bytes of rows that stay in the cache, products that are worth a thread, and rows that are worth
// sums of their own
#define NJ_PASS_STEP 32768
#define NJ_PASS_GRAIN 16384
#define NJ_PASS_ROWS 128

// A vector that is needed twice, loaded once: compilers fold the load into both operations.
#ifdef __x86_64__
#define NJ_LOADED(lanes) __asm__("" : "+v"(lanes))
#else
#define NJ_LOADED(lanes)
#endif

// Of some rows, n long: sums[n] += g[rows] a[rows, n], and y[rows] = a[rows, n] x[n] if `both`.
template <i32 rows, b1 both, class T>
NJ_INLINE void nj_some_across(i64 n, const T* a, i64 sa, const T* g, i64 sg, T* sums, const T* x,
                              T* y, i64 sy) {
  typedef T lanes __attribute__((vector_size(NJ_VECTOR_BYTES)));
  typedef T loaded __attribute__((vector_size(NJ_VECTOR_BYTES), aligned(sizeof(T))));
  const i64 width = NJ_LANES(T);
  lanes factors[rows];
  for (i32 r = 0; r < rows; ++r)
    factors[r] = lanes{} + g[r * sg];
  T found[rows] = {};
  for (i64 j = 0, end = 0; j < n;) {
    end = nj_size_min(end + NJ_ROWS_BLOCK, n);
    lanes along[rows] = {};
    for (; j + width <= end; j += width) {
      lanes total = {};
#pragma GCC unroll 8
      for (i32 r = 0; r < rows; ++r) {
        lanes row = *(const loaded*)(a + r * sa + j);
        if constexpr (both) {
          NJ_LOADED(row);
          along[r] = nj_lanes_multiply_add<T, lanes>(row, *(const loaded*)(x + j), along[r]);
        }
        total = nj_lanes_multiply_add<T, lanes>(row, factors[r], total);
      }
      *(loaded*)(sums + j) += total;
    }
    for (; j < end; ++j) {
      T total = 0;
      for (i32 r = 0; r < rows; ++r) {
        const T element = a[r * sa + j];
        total = nj_multiply_add(element, factors[r][0], total);
        if constexpr (both)
          found[r] = nj_multiply_add(element, x[j], found[r]);
      }
      sums[j] += total;
    }
    for (i32 r = 0; both && r < rows; ++r) {
      T lane[width];
      __builtin_memcpy(lane, along + r, sizeof(lane));
      found[r] += nj_lanes_total(lane);
    }
  }
  for (i32 r = 0; both && r < rows; ++r)
    y[r * sy] = found[r];
}

// The same for any number of rows.
template <b1 both, class T>
static NJ_NOINLINE void nj_add_across(i64 rows, i64 n, const T* a, i64 sa, const T* g, i64 sg,
                                      T* sums, const T* x, T* y, i64 sy) {
  i64 i = 0;
  for (; i + NJ_ROWS <= rows; i += NJ_ROWS)
    nj_some_across<NJ_ROWS, both>(n, a + i * sa, sa, g + i * sg, sg, sums, x, y + i * sy, sy);
  for (; i < rows; ++i)
    nj_some_across<1, both>(n, a + i * sa, sa, g + i * sg, sg, sums, x, y + i * sy, sy);
}

// A long job has up to four chunks a thread.
static inline i64 nj_threads(const npjit_api* api) { return (api->chunks(1ll << 40, 1) + 3) / 4; }

// Where the sums of n columns go in the end.
template <class T>
struct nj_columns {
  T* to;
  i64 n;
  i64 step;
};

template <class T, i64 count, class Run>
struct nj_rows_pass {
  const Run* run;
  const nj_columns<T>* results;
  i64 rows;
  i64 step;
  // the sums of all chunks, `length` elements for each; none when there is one chunk, whose sums are
  // the results
  T* memory;
  i64 length;
};

template <class T, i64 count, class Run>
static void nj_pass_chunk(void* context, npjit_int64 begin, npjit_int64 end, int chunk) {
  const nj_rows_pass<T, count, Run>& all = *(const nj_rows_pass<T, count, Run>*)context;
  T* sums[count + 1];
  T* next = all.memory + chunk * all.length;
  for (i64 k = 0; k < count; ++k) {
    sums[k] = all.memory ? next : all.results[k].to;
    next += all.results[k].n;
    for (i64 j = 0; j < all.results[k].n; ++j)
      sums[k][j] = 0;
  }
  const i64 last = nj_size_min(end * all.step, all.rows);
  for (i64 i = begin * all.step; i < last; i += all.step)
    (*all.run)(i, nj_size_min(i + all.step, last), (T* const*)sums);
}

// run(from, to, sums) for rows of so many bytes and products, of which some follow each other; it
// adds to sums[k][j], which is results[k].to[j * step] in the end.
template <class T, i64 count, class Run>
static void nj_pass(const npjit_api* api, i64 rows, i64 bytes, i64 work,
                    const nj_columns<T>* results, const Run& run) {
  const i64 most = NJ_PASS_STEP / nj_size_max(bytes, 1) / NJ_ROWS;
  const i64 step = nj_size_max(most, 1) * NJ_ROWS;
  nj_rows_pass<T, count, Run> all = {&run, results, rows, step, nullptr, 0};
  const i64 steps = (rows + all.step - 1) / all.step;
  i64 grain = 1 + NJ_PASS_GRAIN / nj_size_max(all.step * work, 1);
  if (count > 0) {
    // sums that another thread has made come slowly: no more sets of them than threads, or than
    // there are many rows
    const i64 few = nj_size_min(steps / nj_threads(api), NJ_PASS_ROWS / all.step);
    grain = nj_size_max(grain, few);
  }
  const int chunks = steps > grain ? api->chunks(steps, grain) : 1;
  b1 apart = chunks > 1;
  for (i64 k = 0; k < count; ++k) {
    all.length += results[k].n;
    apart |= results[k].step != 1;
  }
  if (apart & (count > 0))
    all.memory = (T*)api->scratch(chunks * all.length * sizeof(T));
  if (chunks == 1)
    nj_pass_chunk<T, count, Run>(&all, 0, steps, 0);
  else
    api->parallel(nj_pass_chunk<T, count, Run>, &all, steps, grain);
  const T* sums = all.memory;
  for (i64 k = 0; all.memory && k < count; sums += results[k++].n) {
    for (i64 j = 0; j < results[k].n; ++j) {
      T total = sums[j];
      for (int c = 1; c < chunks; ++c)
        total += sums[c * all.length + j];
      results[k].to[j * results[k].step] = total;
    }
  }
}

// Whether a pass suits so many rows and products of each: threads share out the rows, if the work
// is worth more than one.
static inline b1 nj_suits_pass(const npjit_api* api, i64 rows, i64 work) {
  return rows * work <= NJ_PASS_GRAIN || rows >= 3 * NJ_ROWS * nj_threads(api);
}

// y[n] = g[rows] a[rows, n]
template <class T>
static inline void nj_across(const npjit_api* api, i64 n, i64 rows, const T* a, i64 sa, const T* g,
                             i64 sg, T* y, i64 sy) {
  const nj_columns<T> result = {y, n, sy};
  const auto run = [=](i64 from, i64 to, T* const* sums) {
    nj_add_across<false>(to - from, n, a + from * sa, sa, g + from * sg, sg, sums[0], (const T*)0,
                         (T*)0, 0);
  };
  nj_pass<T, 1>(api, rows, n * sizeof(T), n, &result, run);
}
