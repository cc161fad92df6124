#include "streams.h"

#include <map>

namespace npjit {
namespace {

// streams do their work beside everything else that threads do
constexpr unsigned beside_others = 1;
constexpr unsigned without_time = 2;

struct Own {
  void* recording = nullptr;
  void* behind = nullptr;
  void* event = nullptr;  // what the second one waits for
};

// The current GPU's.
int find_own(const Driver& driver, Own** found) {
  static std::map<int, Own> made;
  int device = 0;
  const int error = driver.current_device(&device);
  *found = &made[device];
  return error;
}

int make(const Driver& driver, int error, void** stream) {
  return error == 0 && *stream == nullptr ? driver.create_stream(stream, beside_others) : error;
}

}  // namespace

int recording_stream(const Driver& driver, void** found) {
  Own* own = nullptr;
  int error = find_own(driver, &own);
  error = make(driver, error, &own->recording);
  *found = own->recording;
  return error;
}

int stream_behind(const Driver& driver, void* stream, void** found) {
  Own* own = nullptr;
  int error = find_own(driver, &own);
  error = make(driver, error, &own->behind);
  if (error == 0 && own->event == nullptr) {
    error = driver.create_event(&own->event, without_time);
  }
  error = error != 0 ? error : driver.record_event(own->event, stream);
  error = error != 0 ? error : driver.wait_for_event(own->behind, own->event, 0);
  *found = own->behind;
  return error;
}

}  // namespace npjit
