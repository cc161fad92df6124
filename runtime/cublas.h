// Matrix products by cuBLAS, whose functions Python finds: no headers of CUDA, nothing to link.
//
//     set_cublas(functions, workspace)
//     multiply(product, addresses, stream, stream)      // 0, or an error's number
#ifndef NPJIT_CUBLAS_H
#define NPJIT_CUBLAS_H
#include <Python.h>

#include "abi.h"

namespace npjit {

// A call of cuBLAS, which reads matrices column by column: result = op(left) @ op(right). With a
// `letter` (0 to 3: gemv of s, d, c, z) `right` and `result` are vectors, and the steps are theirs
// from element to element; without one (-1) the steps lead from one matrix of a batch to the next.
struct Product {
  int letter = -1;
  int type = 0;     // cudaDataType of left and right
  int made = 0;     // cudaDataType of the result
  int compute = 0;  // cublasComputeType
  int turn_left = 0;
  int turn_right = 0;
  npjit_int64 m = 0, n = 0, k = 0;
  npjit_int64 lead_left = 0, lead_right = 0, lead_result = 0;
  npjit_int64 step_left = 0, step_right = 0, step_result = 0;
  npjit_int64 batch = 1;
};

// The functions' addresses in the order of cublas_names, and workspace() -> (address, bytes) of
// memory on the current GPU that stays.
constexpr int cublas_count = 9;
extern const char* const cublas_names[cublas_count];
void set_cublas(void* const* functions, PyObject* workspace);

// Finds what products on a stream need; Python may run in that. False with an exception set.
bool find_workspace(void* stream);

// Starts a product on the stream `on`, with the addresses of left, right and result. `ordered` is
// the stream on which the work will run: while one is recorded the two differ. 0, or an error of
// cuBLAS's.
int multiply(const Product& product, const npjit_int64* addresses, void* on, void* ordered);

}  // namespace npjit
#endif
