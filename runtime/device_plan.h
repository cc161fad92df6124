// A plan on a GPU as the runtime runs it: for sizes met before, no Python but CuPy's allocation.
//
// A call's input words (abi.h) are its key, addresses by their alignment alone and numbers that are
// no sizes left out. What a plan is for one key is an `Instance`: results, memory and a tape, made
// by Python on the first call; without a tape Python walks the plan.
//
// The tape's bases are, in order: per input the address, or the scalar's one or two words; the
// addresses of the results, the arena, the scratch memory and the counters.
#ifndef NPJIT_DEVICE_PLAN_H
#define NPJIT_DEVICE_PLAN_H
#include <Python.h>

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi.h"
#include "tape.h"

namespace npjit {

// What an input word is to the key.
enum class Word : unsigned char { size, address, number };

// A result: `make`(*arguments) is a new array of these extents.
struct Made {
  PyObject* make = nullptr;
  PyObject* arguments = nullptr;  // tuple
  std::vector<Py_ssize_t> extents;
};

// A result that was given out, with the objects that hold its memory.
struct KeptArray {
  PyObject* array = nullptr;
  PyObject* pointer = nullptr;
  PyObject* memory = nullptr;
  npjit_int64 address = 0;
};

// What calls have left for the next one on the same stream to use again. Of each result there are
// the last two: in `y = f(x)` the last but one is let go of when the call returns.
struct Kept {
  void* stream = nullptr;
  std::vector<std::array<KeptArray, 2>> results;
  PyObject* memory = nullptr;
};

struct Instance {
  PyObject* owner = nullptr;  // the Python object around it
  std::vector<Made> results;
  npjit_int64 memory = 0;    // bytes: the arena's, then scratch
  npjit_int64 arena = 0;     // bytes of it
  npjit_int64 counters = 0;  // how many
  Tape* tape = nullptr;      // null: Python walks the plan
  Kept kept;
};

// References are borrowed from the Python object around it.
struct DevicePlan {
  int device = 0;
  std::vector<Word> words;
  std::vector<int> bases;        // the input words that are bases
  PyObject* prepare = nullptr;   // (inputs, key): adds the instance
  PyObject* allocate = nullptr;  // bytes -> memory, an object with `ptr`
  PyObject* counters = nullptr;  // count -> address
  bool keeps = false;  // results that nobody holds any more, and the memory, are used again

  std::unordered_map<std::string, Instance*> instances;
  // the one that was found last, and for which words
  Instance* last = nullptr;
  std::vector<npjit_int64> last_words;
};

// Null: none is known for these words.
Instance* find_instance(DevicePlan& plan, const npjit_int64* words);
// Has Python add the instance of these words; null with an exception set.
Instance* prepare_instance(const DevicePlan& plan, PyObject* inputs, const npjit_int64* words);

// Whether the plan's GPU is this thread's current one.
bool is_current(const DevicePlan& plan);

// Runs an instance with a tape and sets `results` to new references.
Ran run_instance(const DevicePlan& plan, Instance& instance, const npjit_int64* words,
                 PyObject** results);

void drop_kept(Instance& instance);

}  // namespace npjit
#endif
