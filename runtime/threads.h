// The worker threads: static chunks of an index range, run by fixed workers and the calling thread.
//
// Chunk bounds depend on n, grain and the thread count alone, never on who runs a chunk, so results
// repeat. A worker begins at its own share of the chunks and takes any other that nobody has begun;
// the caller does the same, so it never waits for a worker that is still asleep. Without free
// workers (busy with another call, or a nested call) the caller runs all chunks itself. No Python
// here.
//
//     npjit::threads::parallel(body, &context, n, 4096);
#ifndef NPJIT_THREADS_H
#define NPJIT_THREADS_H
#include "abi.h"

namespace npjit::threads {

constexpr int most_threads = 1024;

// The functions of npjit_api. `scratch` hands out one block per thread, so a body asks once, for
// itself.
void parallel(npjit_body body, void* context, npjit_int64 n, npjit_int64 grain);
int chunks(npjit_int64 n, npjit_int64 grain);
void* scratch(npjit_int64 bytes);

// NPJIT_NUM_THREADS, else the number of CPUs that this process may use.
int default_count() noexcept;
int count() noexcept;
// Takes effect at the next `parallel` that finds the workers free.
void set_count(int threads) noexcept;

// While one lives, the thread sees one thread count, whatever set_count does: partial results that
// a plan has sized with `chunks` fit the `parallel` that follows.
class FixedCount {
 public:
  FixedCount() noexcept;
  ~FixedCount();
  FixedCount(const FixedCount&) = delete;
  FixedCount& operator=(const FixedCount&) = delete;

 private:
  int before_;
};

}  // namespace npjit::threads
#endif
