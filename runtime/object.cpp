#include "object.h"

#include <dlfcn.h>

namespace npjit {
namespace {

std::string last_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "unknown error of the dynamic loader";
}

}  // namespace

SharedObject open_object(const std::string& path) {
  SharedObject object;
  object.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object.handle == nullptr) {
    object.error = last_error();
    return object;
  }
  object.functions.prepare =
      reinterpret_cast<decltype(Functions::prepare)>(dlsym(object.handle, "npjit_prepare"));
  object.functions.run =
      reinterpret_cast<decltype(Functions::run)>(dlsym(object.handle, "npjit_run"));
  if (object.functions.prepare == nullptr || object.functions.run == nullptr) {
    const char* missing = object.functions.prepare == nullptr ? "npjit_prepare" : "npjit_run";
    object.error = path + " exports no function " + missing;
    close_object(object);
  }
  return object;
}

void close_object(SharedObject& object) {
  if (object.handle != nullptr) {
    dlclose(object.handle);
    object.handle = nullptr;
  }
}

std::string load_global(const std::string& path) {
  return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr ? "" : last_error();
}

}  // namespace npjit
