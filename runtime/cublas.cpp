#include "cublas.h"

#include <cstring>
#include <map>
#include <utility>

#include "driver.h"

namespace npjit {

const char* const cublas_names[cublas_count] = {
    "cublasCreate_v2",       "cublasSetMathMode", "cublasSetStream_v2",
    "cublasSetWorkspace_v2", "cublasSgemv_v2_64", "cublasDgemv_v2_64",
    "cublasCgemv_v2_64",     "cublasZgemv_v2_64", "cublasGemmStridedBatchedEx_64"};

namespace {

using int64 = npjit_int64;
using Gemv = int (*)(void* handle, int turn, int64 m, int64 n, const void* one, const void* a,
                     int64 lead, const void* x, int64 step_x, const void* zero, void* y,
                     int64 step_y);

struct Cublas {
  int (*create)(void** handle);
  int (*set_mode)(void* handle, int mode);
  int (*set_stream)(void* handle, void* stream);
  int (*set_workspace)(void* handle, void* memory, std::size_t bytes);
  Gemv gemv[4];
  int (*gemm)(void* handle, int turn_a, int turn_b, int64 m, int64 n, int64 k, const void* one,
              const void* a, int type_a, int64 lead_a, int64 step_a, const void* b, int type_b,
              int64 lead_b, int64 step_b, const void* zero, void* c, int type_c, int64 lead_c,
              int64 step_c, int64 batch, int compute, int algorithm);
};
static_assert(sizeof(Cublas) == cublas_count * sizeof(void*), "one pointer a name");

// What is left of the last call on a GPU.
struct Handle {
  void* handle = nullptr;
  bool is_set = false;
  void* on = nullptr;
  void* ordered = nullptr;
};

struct Memory {
  void* address = nullptr;
  std::size_t bytes = 0;
};

constexpr int default_algorithm = -1;
constexpr int compute_double = 70;
// parts of a sum of 16 bit numbers are added in float32, as the sum itself is
constexpr int no_narrow_sums = 16;

Cublas found;
PyObject* make_workspace = nullptr;
std::map<int, Handle> handles;
// products on one stream follow each other, those on two may run at once
std::map<std::pair<int, void*>, Memory> workspaces;

// The current GPU's handle, its work on these streams.
int prepare(void* on, void* ordered, void** handle) {
  int device = 0;
  int error = find_driver()->current_device(&device);
  Handle& known = handles[device];
  if (error == 0 && known.handle == nullptr) {
    error = found.create(&known.handle);
    error = error != 0 ? error : found.set_mode(known.handle, no_narrow_sums);
  }
  *handle = known.handle;
  if (error != 0 || (known.is_set && known.on == on && known.ordered == ordered)) {
    return error;
  }
  const Memory memory = workspaces[{device, ordered}];
  known.is_set = false;
  error = found.set_stream(known.handle, on);
  // behind the stream, which puts cuBLAS's own memory in its place
  error = error != 0 ? error : found.set_workspace(known.handle, memory.address, memory.bytes);
  known = {known.handle, error == 0, on, ordered};
  return error;
}

}  // namespace

void set_cublas(void* const* functions, PyObject* workspace) {
  std::memcpy(static_cast<void*>(&found), functions, sizeof(found));
  Py_INCREF(workspace);
  Py_XSETREF(make_workspace, workspace);
  handles.clear();
  workspaces.clear();
}

bool find_workspace(void* stream) {
  int device = 0;
  find_driver()->current_device(&device);
  if (workspaces.count({device, stream}) != 0) {
    return true;
  }
  PyObject* made = PyObject_CallNoArgs(make_workspace);
  Py_ssize_t address = 0;
  Py_ssize_t bytes = 0;
  const bool is_made = made != nullptr && PyArg_ParseTuple(made, "nn", &address, &bytes);
  Py_XDECREF(made);
  if (is_made) {
    workspaces[{device, stream}] = {reinterpret_cast<void*>(address),
                                    static_cast<std::size_t>(bytes)};
  }
  return is_made;
}

int multiply(const Product& p, const int64* addresses, void* on, void* ordered) {
  static const float single[4] = {1, 0, 0, 0};
  static const double twice[4] = {1, 0, 0, 0};
  void* handle = nullptr;
  const int error = prepare(on, ordered, &handle);
  if (error != 0) {
    return error;
  }
  const bool is_double = p.compute == compute_double;
  const void* one = is_double ? static_cast<const void*>(twice) : single;
  const void* zero = is_double ? static_cast<const void*>(twice + 2) : single + 2;
  const void* left = reinterpret_cast<const void*>(addresses[0]);
  const void* right = reinterpret_cast<const void*>(addresses[1]);
  void* result = reinterpret_cast<void*>(addresses[2]);
  if (p.letter >= 0) {
    return found.gemv[p.letter](handle, p.turn_left, p.m, p.n, one, left, p.lead_left, right,
                                p.step_right, zero, result, p.step_result);
  }
  return found.gemm(handle, p.turn_left, p.turn_right, p.m, p.n, p.k, one, left, p.type,
                    p.lead_left, p.step_left, right, p.type, p.lead_right, p.step_right, zero,
                    result, p.made, p.lead_result, p.step_result, p.batch, p.compute,
                    default_algorithm);
}

}  // namespace npjit
