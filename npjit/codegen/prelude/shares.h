// Loops whose trips are apart, shared out among threads.

// shares of a loop's trips (see schedule/plan.py), the pieces that each of them is made of, since
// trips may become longer or shorter, and additions that are worth a share
#define NJ_SHARES 16
#define NJ_PIECES 4
#define NJ_SHARE_GRAIN 32768

template <class Run>
struct nj_shared_trips {
  const Run* run;
  i64 trips;
  i64 shares;
  int code;
};

template <class Run>
static void nj_some_shares(void* context, npjit_int64 begin, npjit_int64 end, int chunk) {
  nj_shared_trips<Run>& all = *(nj_shared_trips<Run>*)context;
  const i64 pieces = all.shares * NJ_PIECES;
  for (i64 share = begin; share < end; ++share) {
    for (i64 piece = share; piece < pieces; piece += all.shares) {
      const int code =
          (*all.run)(chunk, piece * all.trips / pieces, (piece + 1) * all.trips / pieces);
      if (code) {
        __atomic_store_n(&all.code, code, __ATOMIC_RELAXED);
        return;
      }
    }
  }
}

// run(number of a memory that no other thread uses, begin, end) for all trips, each of which takes
// so many additions. The code of a check that has failed, else 0.
template <class Run>
static int nj_share(const npjit_api* api, i64 trips, i64 work, const Run& run) {
  const i64 worth = trips * nj_size_max(work, 1) / NJ_SHARE_GRAIN;
  const i64 shares = nj_size_min(nj_size_min(worth, NJ_SHARES), trips / NJ_PIECES);
  if (shares < 2 || api->chunks(shares, 1) == 1)
    return run(0, 0, trips);
  nj_shared_trips<Run> all = {&run, trips, shares, NPJIT_OK};
  api->parallel(nj_some_shares<Run>, &all, shares, 1);
  return all.code;
}
