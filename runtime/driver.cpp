#include "driver.h"

#include <dlfcn.h>

#include <cstring>

namespace npjit {

const char* const driver_function_names[driver_function_count] = {
    "cuLaunchKernel",
    "cuCtxGetDevice",
    "cuGetErrorName",
    "cuGraphCreate",
    "cuGraphAddKernelNode_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphLaunch",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuStreamCreate",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphAddChildGraphNode",
    "cuGraphExecChildGraphNodeSetParams",
    "cuMemHostAlloc",
    "cuMemcpyDtoHAsync_v2",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventRecord",
    "cuStreamWaitEvent",
    "cuFuncSetAttribute"};

namespace {

static_assert(sizeof(Driver) == driver_function_count * sizeof(void*), "one pointer a name");

Driver found;
bool is_found = false;

bool search() {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return false;
  }
  void* functions[driver_function_count];
  for (int i = 0; i < driver_function_count; ++i) {
    functions[i] = dlsym(handle, driver_function_names[i]);
    if (functions[i] == nullptr) {
      return false;
    }
  }
  set_driver(functions);
  return true;
}

}  // namespace

const Driver* find_driver() { return is_found || search() ? &found : nullptr; }

void set_driver(void* const* functions) {
  is_found = functions != nullptr;
  if (is_found) {
    std::memcpy(static_cast<void*>(&found), functions, sizeof(found));
  }
}

std::string driver_error(int error) {
  const char* name = nullptr;
  if (found.error_name != nullptr && found.error_name(error, &name) == 0 && name != nullptr) {
    return name;
  }
  return "CUDA error " + std::to_string(error);
}

}  // namespace npjit
