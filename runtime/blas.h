// The OpenBLAS that NumPy has loaded: its CBLAS functions with 64-bit sizes, found without linking
// it.
//
//     npjit::blas::library().functions[npjit::blas::dgemm]
//
// Calls from inside a `parallel` body are not made serial: OpenBLAS has one thread count for the
// whole process. Its own lock queues such calls, so they are right, and slow.
#ifndef NPJIT_BLAS_H
#define NPJIT_BLAS_H
#include <string>

namespace npjit::blas {

constexpr int function_count = 10;
// In the order of npjit_api::blas.
extern const char* const function_names[function_count];

struct Library {
  std::string path;    // empty when NumPy's OpenBLAS was not found, or has 32-bit sizes only
  std::string prefix;  // of its symbols: "scipy_" or ""
  std::string suffix;  // "64_" or "_64"
  void* functions[function_count] = {};
  int (*get_threads)() = nullptr;
  void (*set_threads)(int) = nullptr;
};

// Looked up at the first call, which must come after NumPy's import.
const Library& library();

}  // namespace npjit::blas
#endif
