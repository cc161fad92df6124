// CUDA on the CPU, for tests: what generated kernels use of the language, and one call that runs a launch.
//
// The threads of a block are fibers; one runs until it waits at a barrier or a shuffle. Kernels are compiled with
// -fsanitize=thread and -fsanitize=bounds, whose hooks emulator.cpp defines: each access of memory is checked for bounds
// and for races. Blocks run one after the other.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

namespace emulator {

struct Dim3 {
  unsigned x, y, z;
};

struct Fiber;
extern Fiber* current;
const Dim3& thread();
extern Dim3 block_index, block_size, grid_size;

void wait_for_block();
// The other lane is at a distance by exclusive or; or so many lanes before, where there is none the lane itself; or the
// lane of that number. Lanes that meet see what the others have written.
enum class Way { across, up, from, meet };
void exchange(unsigned mask, int distance, Way way, const void* mine, void* other, int bytes);
void release_and_acquire(const void* place);
void check_inside(const void* place, int bytes);
void check_aligned(const void* place, int bytes);
// From here on the current thread's accesses are the kernel's own.
void begin_watching();

// Runs a launch; false when something faulted.
bool launch(unsigned x, unsigned y, unsigned threads, const std::function<void()>& kernel);

template <class T>
T from_word(long long word) {
  if constexpr (std::is_pointer_v<T>) {
    return (T)word;
  } else {
    static_assert(sizeof(T) == 8, "parameters are words");
    return __builtin_bit_cast(T, word);
  }
}

template <class... P, std::size_t... I>
void call(void (*kernel)(P...), const long long* const* parameters, std::index_sequence<I...>) {
  const auto enter = [&](P... given) {
    begin_watching();
    kernel(given...);
  };
  enter(from_word<P>(*parameters[I])...);
}

template <class... P>
bool start(void (*kernel)(P...), unsigned x, unsigned y, unsigned threads,
           const long long* const* parameters) {
  return launch(x, y, threads, [=] { call(kernel, parameters, std::index_sequence_for<P...>()); });
}

// How many parameters a kernel has.
template <class... P>
int words(void (*)(P...)) {
  return sizeof...(P);
}

}  // namespace emulator

#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define threadIdx (emulator::thread())
#define blockIdx emulator::block_index
#define blockDim emulator::block_size
#define gridDim emulator::grid_size
#define nj_check_aligned(place, bytes) emulator::check_aligned(place, bytes)

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline void __syncthreads() { emulator::wait_for_block(); }
inline void __threadfence() {}

template <class T>
T __shfl_xor_sync(unsigned mask, T x, int distance) {
  T other;
  emulator::exchange(mask, distance, emulator::Way::across, &x, &other, sizeof(T));
  return other;
}

template <class T>
T __shfl_up_sync(unsigned mask, T x, int distance) {
  T other;
  emulator::exchange(mask, distance, emulator::Way::up, &x, &other, sizeof(T));
  return other;
}

template <class T>
T __shfl_sync(unsigned mask, T x, int lane) {
  T other;
  emulator::exchange(mask, lane, emulator::Way::from, &x, &other, sizeof(T));
  return other;
}

inline void __syncwarp() {
  char one = 0;
  emulator::exchange(0xffffffffu, 0, emulator::Way::meet, &one, &one, 1);
}

namespace emulator {
// *place = change(*place), and what was there. No thread comes between; other accesses are not
// compared with these.
template <class T, class Change>
__attribute__((no_sanitize("thread"))) T atomically(T* place, Change change) {
  check_inside(place, sizeof(T));
  release_and_acquire(place);
  const T before = *place;
  *place = change(before);
  return before;
}
}  // namespace emulator

template <class T>
T atomicAdd(T* place, T value) {
  return emulator::atomically(place, [=](T before) -> T { return before + value; });
}

template <class T>
T atomicCAS(T* place, T expected, T value) {
  return emulator::atomically(place, [=](T before) { return before == expected ? value : before; });
}

template <class T>
T atomicMax(T* place, T value) {
  return emulator::atomically(place, [=](T before) { return before < value ? value : before; });
}

template <class T>
T atomicAnd(T* place, T value) {
  return emulator::atomically(place, [=](T before) -> T { return before & value; });
}

inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
