#include "blas.h"

#include <dlfcn.h>
#include <link.h>

#include <vector>

namespace npjit::blas {

const char* const function_names[function_count] = {
    "cblas_dgemm", "cblas_sgemm", "cblas_zgemm", "cblas_cgemm", "cblas_dgemv",
    "cblas_sgemv", "cblas_zgemv", "cblas_cgemv", "cblas_dsyrk", "cblas_ssyrk"};

namespace {

int collect(dl_phdr_info* info, std::size_t, void* paths) {
  const std::string path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const std::size_t name = path.rfind('/') + 1;
  if (path.find("openblas", name) != std::string::npos) {
    static_cast<std::vector<std::string>*>(paths)->push_back(path);
  }
  return 0;
}

template <class Function>
Function find(void* handle, const Library& library, const char* name) {
  const std::string symbol = library.prefix + name + library.suffix;
  return reinterpret_cast<Function>(dlsym(handle, symbol.c_str()));
}

// Fills `library` if the object exports CBLAS under these names. A name without "64" takes 32-bit
// sizes and is never looked for.
bool fill(void* handle, Library& library) {
  bool found = false;
  for (int i = 0; i < function_count; ++i) {
    library.functions[i] = find<void*>(handle, library, function_names[i]);
    found = found || library.functions[i] != nullptr;
  }
  library.get_threads = find<int (*)()>(handle, library, "openblas_get_num_threads");
  library.set_threads = find<void (*)(int)>(handle, library, "openblas_set_num_threads");
  return found;
}

Library search() {
  std::vector<std::string> paths;
  dl_iterate_phdr(collect, &paths);
  for (const std::string& path : paths) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) {
      continue;
    }
    for (const char* prefix : {"scipy_", ""}) {
      for (const char* suffix : {"64_", "_64"}) {
        Library library;
        library.path = path;
        library.prefix = prefix;
        library.suffix = suffix;
        if (fill(handle, library)) {
          return library;  // keeps the handle: the functions are used until the process ends
        }
      }
    }
    dlclose(handle);
  }
  return {};
}

}  // namespace

const Library& library() {
  static const Library found = search();
  return found;
}

}  // namespace npjit::blas
