// Sweeps: launches over the same rows that advance together, some rows of each in turn.

// How a launch goes along in a sweep, or what is added from trip to trip (see schedule/plan.py): its
// first row, its rows, the rows that it lags and leaves out; `work` is in additions a row.
struct nj_pace {
  i64 first, rows, lag, below, work;
};

// bytes of a few rows that stay in the first-level cache, and of all that a thread works on at
// once; additions that are worth a thread
#define NJ_SWEEP_STEP 49152
#define NJ_SWEEP_CACHE 524288
#define NJ_SWEEP_GRAIN 65536

// f(0) .. f(n - 1), shared among threads.
template <class F>
static void nj_each(const npjit_api* api, F& f, i64 n) {
  const auto body = [](void* context, npjit_int64 begin, npjit_int64 end, int) {
    for (i64 i = begin; i < end; ++i)
      (*(F*)context)(i);
  };
  api->parallel(body, (void*)&f, n, 1);
}

// See nj_sweep. One function for all sweeps of a unit, since compiling it takes long.
static NJ_NOINLINE bool nj_sweep_rows(const npjit_api* api, const nj_pace* paces, i64 count,
                                      nj_pace trip, i64 trips, i64 bytes, bool is_round,
                                      void (*run)(const void*, i64, i64, i64, i64),
                                      const void* context) {
  i64 rows = 0, lag = 0, below = 0, work = 0;
  for (i64 k = 0; k < count; ++k) {
    rows = nj_size_max(rows, paces[k].first + paces[k].rows);
    lag = nj_size_max(lag, paces[k].lag);
    below = nj_size_max(below, paces[k].below);
    work += paces[k].work;
  }
  const i64 step = nj_size_max(1, NJ_SWEEP_STEP / nj_size_max(1, bytes));
  i64 group = trips;
  if (trip.lag > 0) {
    const i64 held = NJ_SWEEP_CACHE / nj_size_max(1, bytes) - step - lag;
    group = nj_size_max(1, nj_size_min(group, 1 + held / trip.lag));
  }
  // a few threads, each of which has more rows than it leaves out
  const i64 threads = (api->chunks(1ll << 40, 1) + 3) / 4;
  i64 parts = nj_size_min(threads, 1 + rows * work * nj_size_min(group, 16) / NJ_SWEEP_GRAIN);
  for (; parts > !is_round; --parts) {
    const i64 room = rows / parts / 2 - 2 * (lag + below) - 1;
    if (room < 0)
      continue;
    const i64 more = trip.lag + trip.below;
    if (more > 0)
      group = nj_size_min(group, 1 + room / more);
    break;
  }
  const auto rows_of = [&](i64 k, i64 t, i64 from, i64 to) {
    from = nj_size_max(from, paces[k].first);
    to = nj_size_min(to, paces[k].first + paces[k].rows);
    if (from < to)
      run(context, k, t, from - paces[k].first, to - paces[k].first);
  };
  i64 done = 0, now = 0;
  // the rows of a thread, all launches of all trips, without those at both ends
  const auto inside = [&](i64 part) {
    const i64 begin = part * rows / parts, end = (part + 1) * rows / parts;
    const i64 last = end + lag + (now - 1) * trip.lag;
    for (i64 at = begin; at < last; at += step) {
      for (i64 t = 0; t < now; ++t) {
        for (i64 k = 0; k < count; ++k) {
          const i64 behind = paces[k].lag + t * trip.lag;
          const i64 low = part > 0 || is_round ? begin + paces[k].below + t * trip.below : 0;
          const i64 high = part + 1 < parts || is_round ? end - behind : rows;
          rows_of(k, done + t, nj_size_max(low, at - behind),
                  nj_size_min(high, at - behind + step));
        }
      }
    }
  };
  const auto between = [&](i64 part) {
    const i64 at = (part + 1) * rows / parts;
    for (i64 t = 0; t < now; ++t) {
      for (i64 k = 0; k < count; ++k) {
        const i64 more = paces[k].below + t * trip.below;
        rows_of(k, done + t, at - paces[k].lag - t * trip.lag, at + more);
        if (at == rows)  // around the end
          rows_of(k, done + t, 0, more);
      }
    }
  };
  for (; done < trips; done += now) {
    if (done && api->interrupted())
      return true;
    now = parts > 0 ? nj_size_min(group, trips - done) : 1;
    if (parts == 0) {  // too few rows to go around
      for (i64 k = 0; k < count; ++k)
        rows_of(k, done, 0, rows);
    } else if (parts == 1 && !is_round) {
      inside(0);
    } else {
      nj_each(api, inside, parts);
      nj_each(api, between, is_round ? parts : parts - 1);
    }
  }
  return false;
}

// Runs launch k of trip t on rows from .. to - 1, `run(k, t, from, to)`, in an order in which all are
// done when they are needed; `is_round`: rows at both ends are neighbours. True when Ctrl-C is pending.
template <i64 count, class Run>
static bool nj_sweep(const npjit_api* api, const nj_pace (&paces)[count], nj_pace trip, i64 trips,
                     i64 bytes, bool is_round, const Run& run) {
  const auto body = [](const void* context, i64 k, i64 t, i64 from, i64 to) {
    (*(const Run*)context)(k, t, from, to);
  };
  return nj_sweep_rows(api, paces, count, trip, trips, bytes, is_round, body, &run);
}
