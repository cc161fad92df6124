// Fibers, memory and faults of the CUDA emulator; see emulator.h. Compiled without sanitizers.
#include "emulator.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace emulator {

enum class State { ready, at_barrier, at_shuffle, done };

struct Fiber {
  ucontext_t context;
  Dim3 index;
  State state;
  bool watched;
  // how often it has met the other lanes of its warp
  int meetings;
  unsigned mask;
  int distance;
  Way way;
  int bytes;
  char given[16];
  char received[16];
};

// Who touched a byte last: launch and block in one number, thread, the barriers that the block had passed, and the
// meetings of the warp.
struct Touch {
  long long block = -1;
  int thread = -1;
  int epoch = -1;
  int meetings = 0;
};
struct Shadow {
  Touch written, read;
};
struct Buffer {
  char* start;
  char* end;
  std::vector<Shadow> shadow;
};

const int most_threads = 1024;
const size_t stack_bytes = 256 << 10;

Fiber* current;
Dim3 block_index, block_size, grid_size;
static Fiber fibers[most_threads];
static char* stacks;
static ucontext_t scheduler;
static const std::function<void()>* running;
static std::string fault_text;
static std::vector<Buffer> buffers;
static std::unordered_map<const char*, Shadow> shared;
static std::map<const void*, std::set<long long>> released;
static std::set<long long> acquired;
static long long block_number;
static int epoch;

const Dim3& thread() { return current->index; }

[[noreturn]] static void fault(const std::string& text) {
  char where[96];
  std::snprintf(where, sizeof where, " (block %u,%u thread %u)", block_index.x, block_index.y,
                current->index.x);
  if (fault_text.empty())
    fault_text = text + where;
  current->state = State::done;
  setcontext(&scheduler);
  __builtin_unreachable();
}

static void wait(State state) {
  Fiber* self = current;
  self->state = state;
  swapcontext(&self->context, &scheduler);
}

void begin_watching() { current->watched = true; }

void wait_for_block() { wait(State::at_barrier); }

void exchange(unsigned mask, int distance, Way way, const void* mine, void* other, int bytes) {
  Fiber* self = current;
  if (!(mask >> (self->index.x % 32) & 1))
    fault("a shuffle by a lane that its mask leaves out");
  self->mask = mask;
  self->distance = distance;
  self->way = way;
  self->bytes = bytes;
  std::memcpy(self->given, mine, bytes);
  wait(State::at_shuffle);
  std::memcpy(other, self->received, bytes);
}

void check_aligned(const void* place, int bytes) {
  if ((uintptr_t)place % bytes != 0)
    fault("a misaligned access of " + std::to_string(bytes) + " bytes");
}

void release_and_acquire(const void* place) {
  auto& blocks = released[place];
  acquired.insert(blocks.begin(), blocks.end());
  blocks.insert(block_number);
}

// ---------------------------------------------------------------- scheduling

static void run_fiber() {
  (*running)();
  current->watched = false;
  current->state = State::done;
  setcontext(&scheduler);
}

static void begin(int number, unsigned threads) {
  Fiber& f = fibers[number];
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = stacks + number * stack_bytes;
  f.context.uc_stack.ss_size = stack_bytes;
  f.context.uc_link = nullptr;
  f.index = {(unsigned)number, 0, 0};
  f.state = State::ready;
  f.watched = false;
  f.meetings = 0;
  makecontext(&f.context, run_fiber, 0);
}

// Lanes that wait at one shuffle go on when all of its mask are there.
static bool finish_shuffle(int number, int threads) {
  Fiber& f = fibers[number];
  const int warp = number / 32 * 32;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(f.mask >> lane & 1))
      continue;
    const Fiber& other = fibers[warp + lane];
    const bool is_there = warp + lane < threads && other.state == State::at_shuffle;
    if (!is_there || other.mask != f.mask || other.distance != f.distance || other.way != f.way)
      return false;
  }
  for (int lane = 0; lane < 32; ++lane) {
    if (!(f.mask >> lane & 1))
      continue;
    const int before = lane < f.distance ? lane : lane - f.distance;
    const int across = lane ^ f.distance;
    const int from = f.way == Way::up ? before : f.way == Way::from ? f.distance : across;
    Fiber& to = fibers[warp + lane];
    if (!(f.mask >> from & 1)) {
      current = &to;
      fault_text = "a shuffle from a lane outside its mask";
      return false;
    }
    std::memcpy(to.received, fibers[warp + from].given, to.bytes);
  }
  for (int lane = 0; lane < 32; ++lane) {
    if (f.mask >> lane & 1) {
      fibers[warp + lane].state = State::ready;
      fibers[warp + lane].meetings += f.way == Way::meet;
    }
  }
  return true;
}

static bool release(int threads) {
  int waiting = 0, done = 0;
  bool moved = false;
  for (int i = 0; i < threads; ++i) {
    if (fibers[i].state == State::at_shuffle)
      moved |= finish_shuffle(i, threads);
  }
  for (int i = 0; i < threads; ++i) {
    waiting += fibers[i].state == State::at_barrier;
    done += fibers[i].state == State::done;
  }
  if (waiting == threads) {
    ++epoch;
    for (int i = 0; i < threads; ++i)
      fibers[i].state = State::ready;
    return true;
  }
  if (moved || done == threads)
    return true;
  for (int i = 0; i < threads; ++i) {
    current = &fibers[i];
    if (fibers[i].state == State::at_shuffle)
      fault_text = "a shuffle with absent lanes";
  }
  if (fault_text.empty())
    fault_text = "a barrier that some threads do not reach";
  return false;
}

static bool run_block(int threads) {
  acquired.clear();
  shared.clear();
  ++block_number;
  epoch = 0;
  for (int i = 0; i < threads; ++i)
    begin(i, threads);
  for (;;) {
    bool any = false;
    for (volatile int i = 0; i < threads; i = i + 1) {
      if (fibers[i].state != State::ready)
        continue;
      any = true;
      current = &fibers[i];
      swapcontext(&scheduler, &fibers[i].context);
      if (!fault_text.empty())
        return false;
    }
    current = nullptr;
    if (!any) {
      bool all = true;
      for (int i = 0; i < threads; ++i)
        all &= fibers[i].state == State::done;
      if (all)
        return true;
    }
    if (!release(threads))
      return false;
  }
}

bool launch(unsigned x, unsigned y, unsigned threads, const std::function<void()>& kernel) {
  if (stacks == nullptr) {
    stacks = (char*)mmap(nullptr, most_threads * stack_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  running = &kernel;
  grid_size = {x, y, 1};
  block_size = {threads, 1, 1};
  released.clear();
  for (Buffer& b : buffers)
    std::fill(b.shadow.begin(), b.shadow.end(), Shadow());
  for (block_index = {0, 0, 0}; block_index.y < y; ++block_index.y) {
    for (block_index.x = 0; block_index.x < x; ++block_index.x) {
      const bool finished = run_block(threads);
      current = nullptr;
      if (!finished)
        return false;
    }
  }
  return true;
}

// ---------------------------------------------------------------- memory

static bool conflicts(const Touch& other) {
  if (other.block < 0)
    return false;
  if (other.block != block_number)
    return acquired.count(other.block) == 0;
  const int thread = current->index.x;
  const bool have_met = other.thread / 32 == thread / 32 && other.meetings < current->meetings;
  return other.thread != thread && other.epoch == epoch && !have_met;
}

static void touch(Shadow& s, bool writes) {
  const Touch own{block_number, (int)current->index.x, epoch, current->meetings};
  if (conflicts(s.written) || (writes && conflicts(s.read)))
    fault("a race");
  (writes ? s.written : s.read) = own;
}

extern "C" char __ehdr_start __attribute__((visibility("hidden")));
extern "C" char _end __attribute__((visibility("hidden")));

static void access(const void* place, size_t bytes, bool writes, bool aligned) {
  const char* p = (const char*)place;
  if (current == nullptr || !current->watched)
    return;
  if (aligned)
    check_aligned(place, bytes);
  if (p >= stacks && p < stacks + most_threads * stack_bytes)
    return;
  for (Buffer& b : buffers) {
    if (p < b.start || p >= b.end)
      continue;
    if (p + bytes > b.end)
      fault("an access across a buffer's end");
    for (size_t i = 0; i < bytes; ++i)
      touch(b.shadow[p - b.start + i], writes);
    return;
  }
  if (p < &__ehdr_start || p >= &_end)
    fault("an access outside all buffers");
  for (size_t i = 0; i < bytes; ++i)
    touch(shared[p + i], writes);
}

void check_inside(const void* place, int bytes) {
  for (const Buffer& b : buffers) {
    if ((const char*)place >= b.start && (const char*)place + bytes <= b.end)
      return;
  }
  const char* p = (const char*)place;
  if (p < &__ehdr_start || p >= &_end)  // no shared memory either
    fault("an atomic access outside all buffers");
}

}  // namespace emulator

using emulator::access;

extern "C" {

void emulator_buffer(char* start, long long bytes) {
  emulator::buffers.push_back({start, start + bytes, std::vector<emulator::Shadow>(bytes)});
}
void emulator_forget() {
  emulator::buffers.clear();
  emulator::fault_text.clear();
}
const char* emulator_fault() { return emulator::fault_text.c_str(); }

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read_range(void* p, unsigned long n) { access(p, n, false, false); }
void __tsan_write_range(void* p, unsigned long n) { access(p, n, true, false); }
#define HOOKS(n)                                                         \
  void __tsan_read##n(void* p) { access(p, n, false, true); }            \
  void __tsan_write##n(void* p) { access(p, n, true, true); }            \
  void __tsan_unaligned_read##n(void* p) { access(p, n, false, false); } \
  void __tsan_unaligned_write##n(void* p) { access(p, n, true, false); } \
  void __tsan_volatile_read##n(void* p) { access(p, n, false, false); }  \
  void __tsan_volatile_write##n(void* p) { access(p, n, true, false); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __ubsan_handle_out_of_bounds(void*, void*) { emulator::fault("an index beyond an array"); }
}
