#include <Python.h>

#include "service.h"

#include <time.h>

#include <algorithm>

#include "blas.h"
#include "host.h"
#include "pool.h"
#include "threads.h"

namespace npjit {
namespace {

constexpr long poll_interval = 10'000'000;  // nanoseconds between two looks at Python's signals

unsigned long main_thread = 0;

// Nonzero when a Python signal handler has raised; its exception is then set. Python runs handlers
// in the main thread alone, so other threads need not ask. The coarse clock costs some 6 ns.
int interrupted() {
  if (PyThread_get_thread_ident() != main_thread) {
    return 0;
  }
  thread_local timespec last{};
  timespec now;
#ifdef CLOCK_MONOTONIC_COARSE
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  if ((now.tv_sec - last.tv_sec) * 1'000'000'000L + (now.tv_nsec - last.tv_nsec) < poll_interval) {
    return 0;
  }
  last = now;
  const PyGILState_STATE state = PyGILState_Ensure();
  const int raised = PyErr_CheckSignals();
  PyGILState_Release(state);
  return raised;
}

npjit_api make_service() {
  npjit_api api{};
  api.parallel = threads::parallel;
  api.chunks = threads::chunks;
  api.interrupted = interrupted;
  api.scratch = threads::scratch;
  api.host = call_host;
  const blas::Library& library = blas::library();
  std::copy(std::begin(library.functions), std::end(library.functions), std::begin(api.blas));
  return api;
}

constexpr std::size_t thread_arena_bytes = 64 * 1024;

struct ThreadArena {
  char* memory = nullptr;
  bool taken = false;
  ~ThreadArena() { pool::release(memory); }
};

thread_local ThreadArena thread_arena;

}  // namespace

const npjit_api* service() {
  static const npjit_api api = make_service();
  return &api;
}

void set_main_thread(unsigned long identifier) { main_thread = identifier; }

Arena::Arena(std::size_t bytes) noexcept : memory_(nullptr), from_thread_(false) {
  if (bytes == 0) {
    return;
  }
  from_thread_ = bytes <= thread_arena_bytes && !thread_arena.taken;
  if (!from_thread_) {
    memory_ = static_cast<char*>(pool::allocate(bytes));
    return;
  }
  if (thread_arena.memory == nullptr) {
    thread_arena.memory = static_cast<char*>(pool::allocate(thread_arena_bytes));
  }
  thread_arena.taken = true;
  memory_ = thread_arena.memory;
}

Arena::~Arena() {
  if (from_thread_) {
    thread_arena.taken = false;
  } else {
    pool::release(memory_);
  }
}

}  // namespace npjit
