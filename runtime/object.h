// Compiled graphs: shared objects that export npjit_prepare and npjit_run (abi.h).
#ifndef NPJIT_OBJECT_H
#define NPJIT_OBJECT_H
#include <string>

#include "abi.h"

namespace npjit {

struct Functions {
  int (*prepare)(const npjit_int64* in, npjit_int64* out) = nullptr;
  int (*run)(const npjit_api* api, const npjit_int64* in, const npjit_int64* out,
             char* const* buffers, char* arena) = nullptr;
};

// One loaded object. `error` says why it could not be loaded, empty when it was.
struct SharedObject {
  void* handle = nullptr;
  Functions functions;
  std::string error;
};

SharedObject open_object(const std::string& path);
void close_object(SharedObject& object);

// Loads a library so that objects loaded later find its symbols; returns the error, empty for none.
std::string load_global(const std::string& path);

}  // namespace npjit
#endif
