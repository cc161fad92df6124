// What the runtime hands to generated code: the filled npjit_api, and arenas for the plan's values.
#ifndef NPJIT_SERVICE_H
#define NPJIT_SERVICE_H
#include <cstddef>

#include "abi.h"

namespace npjit {

// One table for the process.
const npjit_api* service();

// Tells which thread runs Python's signal handlers (threading.main_thread().ident).
void set_main_thread(unsigned long identifier);

// The memory of one running call. Small ones come from a buffer of the thread, others from the
// pool.
class Arena {
 public:
  explicit Arena(std::size_t bytes) noexcept;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Null when none was wanted, or none was to be had.
  char* memory() const { return memory_; }

 private:
  char* memory_;
  bool from_thread_;
};

}  // namespace npjit
#endif
