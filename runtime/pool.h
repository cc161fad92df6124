// The memory pool: 64-byte aligned blocks that are kept for reuse when released.
//
// A fresh 80 MB mapping costs its page faults; a reused block costs none. Sizes are rounded up to
// size classes (four per power of two), released blocks wait in the list of their class, and the
// least recently released go back to the system once more than `bound` bytes are idle. Every
// function is thread-safe; no Python here.
//
//     double* x = static_cast<double*>(npjit::pool::allocate(n * sizeof(double)));
//     npjit::pool::release(x);
#ifndef NPJIT_POOL_H
#define NPJIT_POOL_H
#include <cstddef>

namespace npjit::pool {

struct Stats {
  std::size_t live_bytes;
  std::size_t live_blocks;
  std::size_t idle_bytes;
  std::size_t idle_blocks;
  std::size_t bound;   // idle bytes kept at most
  std::size_t reused;  // allocations answered by an idle block
  std::size_t fresh;   // allocations that asked the system
};

// Null when the system has no memory left.
void* allocate(std::size_t bytes) noexcept;
void release(void* memory) noexcept;

// Usable bytes of a block: at least what was asked for.
std::size_t capacity(const void* memory) noexcept;

// Gives idle blocks back to the system, oldest first, until at most `keep` idle bytes are left.
void trim(std::size_t keep) noexcept;
void set_bound(std::size_t bytes) noexcept;
Stats stats() noexcept;

}  // namespace npjit::pool
#endif
