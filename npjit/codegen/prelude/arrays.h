// Rows on whole arrays: running folds and stores through index arrays. b1 lies in memory as u8.

template <class T>
struct nj_cell {
  typedef T type;
  NJ_INLINE T load(const T* p) { return *p; }
};
template <>
struct nj_cell<b1> {
  typedef u8 type;
  NJ_INLINE b1 load(const u8* p) { return nj_truth(*p); }
};

// How an element joins what is there.
struct nj_join_add {
  template <class T>
  NJ_INLINE T join(T a, T b) {
    return (T)(a + b);
  }
  NJ_INLINE b1 join(b1 a, b1 b) { return a | b; }
};

struct nj_join_multiply {
  template <class T>
  NJ_INLINE T join(T a, T b) {
    return (T)(a * b);
  }
  NJ_INLINE u16 join(u16 a, u16 b) { return (u16)((u32)a * b); }
  NJ_INLINE b1 join(b1 a, b1 b) { return a & b; }
};

struct nj_join_maximum {
  template <class T>
  NJ_INLINE T join(T a, T b) {
    return nj_maximum(a, b);
  }
};

struct nj_join_minimum {
  template <class T>
  NJ_INLINE T join(T a, T b) {
    return nj_minimum(a, b);
  }
};

struct nj_join_logaddexp {
  template <class T>
  NJ_INLINE T join(T a, T b) {
    return nj_logaddexp(a, b);
  }
};

struct nj_join_last {
  template <class T>
  NJ_INLINE T join(T, T b) {
    return b;
  }
};

// Steps through `ndim` axes in C order; the offsets of several arrays move along.
template <int count>
struct nj_steps {
  int ndim;
  i64 shape[64], at[64], strides[count][64], offset[count];
  void next() {
    for (int axis = ndim - 1; axis >= 0; --axis) {
      for (int k = 0; k < count; ++k)
        offset[k] += strides[k][axis];
      if (++at[axis] < shape[axis])
        return;
      for (int k = 0; k < count; ++k)
        offset[k] -= at[axis] * strides[k][axis];
      at[axis] = 0;
    }
  }
  i64 start() {
    i64 total = 1;
    for (int axis = 0; axis < ndim; ++axis) {
      at[axis] = 0;
      total *= shape[axis];
    }
    for (int k = 0; k < count; ++k)
      offset[k] = 0;
    return total;
  }
};

// A running fold along an axis, into an array in C order. Lines of it are independent; where they
// lie side by side in both arrays they go together.
template <class T, class Join>
struct nj_scan_job {
  typedef nj_cell<T> cell;
  typedef typename cell::type memory;
  const npjit_array* from;
  const npjit_array* to;
  int axis;
  i64 n, inner, step;
  static void lines(void* context, i64 begin, i64 end, int) {
    const nj_scan_job& job = *(const nj_scan_job*)context;
    const npjit_array& from = *job.from;
    for (i64 line = begin; line < end; ++line) {
      i64 rest = line;
      i64 source = 0;
      for (int axis = from.ndim - 1; axis >= 0; --axis) {
        if (axis == job.axis)
          continue;
        source += rest % from.shape[axis] * from.strides[axis];
        rest /= from.shape[axis];
      }
      const memory* x = (const memory*)from.data + source;
      memory* y = (memory*)job.to->data + line / job.inner * job.n * job.inner + line % job.inner;
      // in variables: a store to y might change the job's
      const i64 n = job.n, step = job.step, inner = job.inner;
      T running = cell::load(x);
      *y = running;
      for (i64 i = 1; i < n; ++i) {
        running = Join::join(running, cell::load(x + i * step));
        y[i * inner] = running;
      }
    }
  }
  static void rows(void* context, i64 begin, i64 end, int) {
    const nj_scan_job& job = *(const nj_scan_job*)context;
    const i64 each = job.n * job.inner;
    for (i64 at = begin; at < end;) {
      const i64 low = at % job.inner;
      const i64 high = nj_size_min(job.inner, low + end - at);
      const memory* x = (const memory*)job.from->data + at / job.inner * each;
      memory* y = (memory*)job.to->data + at / job.inner * each;
      for (i64 j = low; j < high; ++j)
        y[j] = cell::load(x + j);
      for (i64 i = 1; i < job.n; ++i) {
        const memory* before = y;
        x += job.inner;
        y += job.inner;
#pragma omp simd
        for (i64 j = low; j < high; ++j) {
          y[j] = Join::join(cell::load(before + j), cell::load(x + j));
        }
      }
      at += high - low;
    }
  }
};

template <class T, class Join>
static void nj_scan(const npjit_api* api, const npjit_array& from, const npjit_array& to,
                    int axis) {
  nj_scan_job<T, Join> job = {&from, &to, axis, from.shape[axis], 1, from.strides[axis]};
  i64 lines = 1;
  b1 dense = true;
  for (int d = from.ndim - 1; d >= 0; --d) {
    dense &= from.shape[d] == 1 || from.strides[d] == to.strides[d];
    lines *= d == axis ? 1 : from.shape[d];
    job.inner *= d > axis ? from.shape[d] : 1;
  }
  if (lines == 0 || job.n == 0)
    return;
  const i64 grain = nj_size_max(1, 20000 / job.n);
  api->parallel(dense && job.inner > 1 ? job.rows : job.lines, &job, lines, grain);
}

// Joins the elements of a line, each `from_step` behind the one before, to where `count` indices
// say. On its own, so that all of it stays in registers.
template <class T, class Join, int count>
static __attribute__((noinline)) void nj_scatter_line(
    typename nj_cell<T>::type* start, const typename nj_cell<T>::type* from, i64 from_step,
    const i64* const (&index)[count], const i64 (&steps)[count + 1], const i64 (&sizes)[count],
    const i64 (&strides)[count], i64 length) {
  typedef nj_cell<T> cell;
  const i64* at[count];
  i64 step[count], size[count], stride[count];
  for (int k = 0; k < count; ++k) {
    at[k] = index[k];
    step[k] = steps[k];
    size[k] = sizes[k];
    stride[k] = strides[k];
  }
  for (i64 i = 0; i < length; ++i, from += from_step) {
    typename cell::type* to = start;
    for (int k = 0; k < count; ++k) {
      const i64 j = at[k][i * step[k]];
      to += (j + (j < 0 ? size[k] : 0)) * stride[k];
    }
    *to = Join::join(cell::load(to), cell::load(from));
  }
}

// Joins the elements of a value into a base where index arrays say: `arrays` are the base, the
// value, and an index array for each of `dims`; the axes of the index arrays stand at `place` in
// the value. Negative indices count from the end. One after the other, in C order of the index
// arrays.
template <class T, class Join, int place, int... dims>
static void nj_scatter(const npjit_array* arrays) {
  typedef nj_cell<T> cell;
  typedef typename cell::type memory;
  constexpr int count = sizeof...(dims);
  constexpr int dim[count] = {dims...};
  const npjit_array& base = arrays[0];
  const npjit_array& value = arrays[1];
  const npjit_array* index = arrays + 2;
  // the last axis of the index arrays and the last kept axis are loops of their own
  nj_steps<count + 1> outer;
  nj_steps<2> kept;
  i64 steps[count + 1] = {}, ends[2] = {};
  i64 length = 1, width = 1;
  const int axes = index[0].ndim;
  outer.ndim = axes > 0 ? axes - 1 : 0;
  for (int axis = 0; axis < axes; ++axis) {
    const b1 last = axis == axes - 1;
    for (int k = 0; k <= count; ++k) {
      const i64 stride = k < count ? index[k].strides[axis] : value.strides[place + axis];
      (last ? steps[k] : outer.strides[k][axis]) = stride;
    }
    (last ? length : outer.shape[axis]) = index[0].shape[axis];
  }
  kept.ndim = -1;
  for (int d = 0, seen = 0; d < base.ndim; ++d) {
    b1 addressed = false;
    for (int k = 0; k < count; ++k)
      addressed |= dim[k] == d;
    if (addressed)
      continue;
    const int axis = seen < place ? seen : seen + axes;
    if (kept.ndim >= 0) {
      kept.shape[kept.ndim] = width;
      kept.strides[0][kept.ndim] = ends[0];
      kept.strides[1][kept.ndim] = ends[1];
    }
    kept.ndim += 1;
    seen += 1;
    width = base.shape[d];
    ends[0] = base.strides[d];
    ends[1] = value.strides[axis];
  }
  if (kept.ndim < 0)
    kept.ndim = 0;
  const i64 rows = outer.start();
  const i64 blocks = kept.start();
  memory* const start = (memory*)base.data;
  const i64* at[count];
  i64 size[count], stride[count];
  for (int k = 0; k < count; ++k) {
    size[k] = base.shape[dim[k]];
    stride[k] = base.strides[dim[k]];
  }
  const b1 single = base.ndim == count;
  for (i64 row = 0; row < rows; ++row) {
    const memory* from = (const memory*)value.data + outer.offset[count];
    for (int k = 0; k < count; ++k)
      at[k] = (const i64*)index[k].data + outer.offset[k];
    if (single) {
      nj_scatter_line<T, Join, count>(start, from, steps[count], at, steps, size, stride, length);
      outer.next();
      continue;
    }
    for (i64 i = 0; i < length; ++i, from += steps[count]) {
      memory* to = start;
      for (int k = 0; k < count; ++k) {
        const i64 j = at[k][i * steps[k]];
        to += (j + (j < 0 ? size[k] : 0)) * stride[k];
      }
      for (i64 block = 0; block < blocks; ++block) {
        memory* const x = to + kept.offset[0];
        const memory* const y = from + kept.offset[1];
        for (i64 j = 0; j < width; ++j) {
          x[j * ends[0]] = Join::join(cell::load(x + j * ends[0]), cell::load(y + j * ends[1]));
        }
        kept.next();
      }
    }
    outer.next();
  }
}

// Where a mask holds: `arrays` are the mask, of one axis, and the positions, in C order. What is
// stored too many is overwritten by the next position, or stands behind all.
static void nj_places(const npjit_array* arrays) {
  const u8* mask = (const u8*)arrays[0].data;
  i64* to = (i64*)arrays[1].data;
  const i64 n = arrays[0].shape[0], step = arrays[0].strides[0];
  i64 i = 0, count = 0;
  while (i < n) {
    u64 eight = 1;
    if (step == 1 && i + 8 <= n)
      __builtin_memcpy(&eight, mask + i, 8);
    const i64 end = eight == 0 ? i : nj_size_min(i + 8, n);
    for (i64 k = i; k < end; ++k) {
      to[count] = k;
      count += mask[k * step] != 0;
    }
    i += 8;
  }
}
