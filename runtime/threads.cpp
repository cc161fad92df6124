#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "pool.h"

namespace npjit::threads {
namespace {

// Waking a worker takes longer than many kernels run, so it waits awake for a call that follows
// soon; after a moment it lets others have its core, such as the threads of a BLAS call.
constexpr std::chrono::microseconds pause_time{30};
constexpr std::chrono::microseconds spin_time{200};

// A long job has this many chunks a thread: one that comes late, or is held up, leaves more to
// others.
constexpr int chunks_each = 4;

// Beside other load a worker comes, or finishes, whole time slices late. Where that cost more than
// waking one does, the caller works alone for this many times as long, so that little is lost.
constexpr int times_alone = 20;

using Clock = std::chrono::steady_clock;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() holds; false when the time is up before that.
template <class Done>
bool spin(Done done) {
  const auto start = Clock::now();
  auto now = start;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) {
        return true;
      }
      pause();
    }
    if (now - start > pause_time) {
      std::this_thread::yield();
    }
    now = Clock::now();
  } while (now - start < spin_time);
  return done();
}

struct Job {
  npjit_body body;
  void* context;
  npjit_int64 n;
  int chunks;
  int threads;

  void run(int chunk) const {
    const npjit_int64 each = n / chunks;
    const npjit_int64 rest = n % chunks;
    const npjit_int64 begin = chunk * each + std::min<npjit_int64>(chunk, rest);
    body(context, begin, begin + each + (chunk < rest ? 1 : 0), chunk);
  }

  void run_all() const {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      run(chunk);
    }
  }
};

// True while this thread runs a chunk: a nested `parallel` then stays in the thread.
thread_local bool in_chunk = false;

thread_local int fixed_count = 0;
std::atomic<int> thread_count{0};

class Workers {
 public:
  // For the caller that has set `busy`, as is run().
  void resize(int workers) {
    if (workers == wanted_) {
      return;
    }
    stop();
    wanted_ = workers;
    alone_until_ = {};
    avoided_ = -1;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the main thread's business
    try {
      for (int number = 1; number <= workers; ++number) {
        threads_.emplace_back(&Workers::work, this, number, generation_.load());
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: those there are take all chunks.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run(const Job& job) {
    const auto start = Clock::now();
    if (start < alone_until_) {
      job.run_all();
      return;
    }
    job_ = job;
    for (int chunk = 0; chunk < job.chunks; ++chunk) {
      taken_[chunk].store(false, std::memory_order_relaxed);
    }
    open_.store(true);
    signal_change();
    const int mine = take_chunks(0);
    const auto worked = Clock::now() - start;
    // All chunks are taken. A worker that comes now finds the job closed; those inside finish
    // theirs.
    open_.store(false);
    const auto all_left = [this] { return inside_.load() == 0; };
    while (!spin(all_left)) {
      std::this_thread::yield();
    }
    const auto end = Clock::now();
    const auto lost = end - start - worked * job.chunks / std::max(mine, 1);
    if (lost > spin_time) {
      alone_until_ = end + times_alone * lost;
    }
  }

  std::atomic<bool> busy{false};

 private:
  void signal_change() {
    generation_.fetch_add(1);
    if (sleeping_.load() > 0) {
      leave_cpu(sched_getcpu());
      const std::lock_guard<std::mutex> guard(mutex_);
      wake_.notify_all();
    }
  }

  // Keeps the workers off the caller's processor. Where a scheduler wakes them there, beside the
  // data, they wait until the caller has done all chunks.
  void leave_cpu(int cpu) {
    cpu_set_t found;
    if (cpu < 0 || cpu == avoided_ || threads_.empty() ||
        pthread_getaffinity_np(threads_[0].native_handle(), sizeof(found), &found) != 0) {
      return;
    }
    if (avoided_ < 0 || !CPU_EQUAL(&found, &given_)) {
      allowed_ = found;  // by somebody else
    }
    cpu_set_t rest = allowed_;
    CPU_CLR(cpu, &rest);
    if (CPU_COUNT(&rest) < wanted_) {
      return;  // there are more threads than processors
    }
    for (std::thread& thread : threads_) {
      pthread_setaffinity_np(thread.native_handle(), sizeof(rest), &rest);
    }
    given_ = rest;
    avoided_ = cpu;
  }

  void stop() {
    stopped_.store(true);
    signal_change();
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
    stopped_.store(false);
  }

  // How many of the job's chunks this thread has done.
  int take_chunks(int first) {
    int count = 0;
    const int fixed_before = fixed_count;
    fixed_count = job_.threads;
    in_chunk = true;
    for (int i = 0; i < job_.chunks; ++i) {
      const int chunk = (first + i) % job_.chunks;
      if (!taken_[chunk].load(std::memory_order_relaxed) && !taken_[chunk].exchange(true)) {
        job_.run(chunk);
        count += 1;
      }
    }
    in_chunk = false;
    fixed_count = fixed_before;
    return count;
  }

  void work(int number, std::uint32_t seen) {
    for (;;) {
      seen = await_change(seen);
      if (stopped_.load()) {
        return;
      }
      inside_.fetch_add(1);
      if (open_.load()) {
        take_chunks(static_cast<int>(std::int64_t{number} * job_.chunks / job_.threads));
      }
      inside_.fetch_sub(1);
    }
  }

  std::uint32_t await_change(std::uint32_t seen) {
    const auto changed = [this, seen] { return generation_.load() != seen; };
    if (!spin(changed)) {
      std::unique_lock<std::mutex> lock(mutex_);
      sleeping_.fetch_add(1);
      wake_.wait(lock, changed);
      sleeping_.fetch_sub(1);
    }
    return generation_.load();
  }

  int wanted_ = 0;
  int avoided_ = -1;   // the processor that the workers keep off
  cpu_set_t allowed_;  // the processors that they may use otherwise
  cpu_set_t given_;    // and without the one they keep off
  Clock::time_point alone_until_{};
  Job job_{};
  std::atomic<bool> taken_[most_threads] = {};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  std::atomic<bool> open_{false};
  std::atomic<bool> stopped_{false};
  alignas(64) std::atomic<int> inside_{0};
  std::atomic<int> sleeping_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
};

std::atomic<Workers*> current{nullptr};

// A forked child has none of its parent's threads, and their locks in any state: forget them all.
// The workers of the child begin with its first parallel call.
void start_afresh() {
  current.store(nullptr);
  in_chunk = false;
}

// Takes hold of the workers, making them on first use; null when another call has them.
Workers* acquire(int threads) {
  static const int registered = pthread_atfork(nullptr, nullptr, start_afresh);
  static_cast<void>(registered);
  Workers* workers = current.load();
  if (workers == nullptr) {
    auto* made = new Workers;  // never destroyed: threads may run at exit
    if (current.compare_exchange_strong(workers, made)) {
      workers = made;
    } else {
      delete made;
    }
  }
  if (workers->busy.exchange(true)) {
    return nullptr;
  }
  workers->resize(threads - 1);
  return workers;
}

int affinity_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(CPU_COUNT(&set), 1);
  }
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

}  // namespace

int default_count() noexcept {
  const char* text = std::getenv("NPJIT_NUM_THREADS");
  const long wanted = text != nullptr ? std::strtol(text, nullptr, 10) : 0;
  const int threads = wanted > 0 ? static_cast<int>(std::min<long>(wanted, most_threads)) : 0;
  return threads > 0 ? threads : std::min(affinity_count(), most_threads);
}

int count() noexcept {
  if (fixed_count > 0) {
    return fixed_count;
  }
  int threads = thread_count.load(std::memory_order_relaxed);
  if (threads == 0) {
    threads = default_count();
    thread_count.store(threads);
  }
  return threads;
}

void set_count(int threads) noexcept { thread_count.store(std::clamp(threads, 1, most_threads)); }

int chunks(npjit_int64 n, npjit_int64 grain) {
  const npjit_int64 most = n / std::max<npjit_int64>(grain, 1);
  const int threads = count();
  const int finest = threads == 1 ? 1 : std::min(chunks_each * threads, most_threads);
  const auto each_one = std::clamp<npjit_int64>(most, 1, threads);
  const auto many = std::min<npjit_int64>(most / chunks_each, finest);
  // as many for each thread, or some would wait for the others' last ones
  return static_cast<int>(std::max(each_one, many - many % threads));
}

void parallel(npjit_body body, void* context, npjit_int64 n, npjit_int64 grain) {
  const int threads = count();
  const Job job{body, context, n, chunks(n, grain), threads};
  if (job.chunks == 1 || in_chunk) {
    job.run_all();
    return;
  }
  Workers* workers = acquire(threads);
  if (workers == nullptr) {
    job.run_all();
    return;
  }
  workers->run(job);
  workers->busy.store(false);
}

void* scratch(npjit_int64 bytes) {
  struct Scratch {
    void* memory = nullptr;
    ~Scratch() { pool::release(memory); }
  };
  thread_local Scratch held;
  const auto wanted = static_cast<std::size_t>(std::max<npjit_int64>(bytes, 1));
  if (held.memory == nullptr || pool::capacity(held.memory) < wanted) {
    pool::release(held.memory);
    held.memory = pool::allocate(wanted);
  }
  return held.memory;
}

FixedCount::FixedCount() noexcept : before_(fixed_count) { fixed_count = count(); }

FixedCount::~FixedCount() { fixed_count = before_; }

}  // namespace npjit::threads
