// Guards: an entry is a list of steps, each fetching one object and checking it.
//
// A step may start from an earlier step's object: f(p) with p.weights[0] read is
//     0: argument 0,            type Parameters
//     1: attribute of 0,        sequence list, length 2
//     2: item 0 of 1,           array float64, ...
#ifndef NPJIT_STEP_H
#define NPJIT_STEP_H
#include <Python.h>

#include "array.h"

namespace npjit {

enum class Fetch : unsigned char {
  argument,     // `index` counts the positional arguments, then the keywords
  root,         // `source` itself
  attribute,    // getattr of step `index`, `key`
  item,         // step `index` [`key`]
  global_name,  // dict `source` [`key`]
  cell,         // the contents of cell `source`
  defaults,     // `source`.__defaults__[`position`]
  kwdefaults,   // `source`.__kwdefaults__[`key`]
};

enum class Check : unsigned char {
  anything,
  absent,         // there is no such object
  identity,       // is `expected`
  equal,          // same_value as `expected`
  exact_type,     // of exactly the type `expected`
  sequence,       // of exactly that type, with `length` items
  mapping,        // a dict of exactly that type with the keys `keys` in that order
  array,          // `array` matches
  device_array,   // the same on a GPU
  python_scalar,  // of `kind`
  numpy_scalar,   // of exactly the type `expected`, the scalar type of `dtype`
};

// All references are borrowed from the tuple of steps that the entry keeps.
struct Step {
  Fetch fetch = Fetch::argument;
  Check check = Check::anything;
  char kind = 0;
  int index = 0;
  int dtype = 0;
  bool indexed = false;     // an item's key is an int: `position`
  Py_ssize_t position = 0;  // of an item or default
  Py_ssize_t length = 0;
  PyObject* source = nullptr;
  PyObject* key = nullptr;
  PyObject* expected = nullptr;
  PyObject* keys = nullptr;
  ArrayGuard array;
  int word = -1;  // of an input: where its words begin

  bool is_array() const { return check == Check::array || check == Check::device_array; }
};

// A call as vectorcall hands it over.
struct Call {
  PyObject* const* arguments;
  Py_ssize_t positional;
  PyObject* names;  // tuple of keywords, or null
};

enum class Guarded { yes, no, raised };

// Fetches the step's object into objects[number] (a new reference, null if there is none) and
// checks it. Steps before `number` have been fetched. An Exception that a fetch or a comparison
// raises means no; anything else, KeyboardInterrupt say, is left set. A device array that passes is
// described by last_seen() until this thread's next guard.
Guarded guard(const Step& step, const Call& call, PyObject** objects, int number);
const SeenArray& last_seen();

}  // namespace npjit
#endif
