// One compiled version of a function: its guards, its inputs, what runs, and how results are made.
//
//     execute(entry, call, &result) is Outcome::done, or says why the call must go another way.
#ifndef NPJIT_ENTRY_H
#define NPJIT_ENTRY_H
#include <Python.h>

#include <vector>

#include "device_plan.h"
#include "object.h"
#include "step.h"
#include "tree.h"

namespace npjit {

enum class Result : unsigned char {
  array,          // fresh, of `dtype`, `ndim`, in memory order `order` (empty for C)
  numpy_scalar,   // of `dtype`
  python_scalar,  // of `kind`
  alias,          // a view of input `input`, of `dtype` and `ndim`
  input,          // the object of input `input`
  device,         // result number `input` of a plan on a GPU
};

struct Output {
  Result result = Result::array;
  char kind = 0;
  int dtype = 0;
  int ndim = 0;
  int input = 0;
  bool writeable = false;  // of an alias: if the input is as well
  std::vector<int> order;
};

// Between two array inputs (positions in `inputs`): one object, or no byte in common.
struct Relation {
  bool same = false;
  int first = 0;
  int second = 0;
};

// References are borrowed from the Python objects that the entry keeps.
struct Entry {
  Py_ssize_t positional = 0;
  PyObject* names = nullptr;  // tuple of keywords, in the order of the call
  std::vector<Step> steps;
  std::vector<int> inputs;  // step numbers
  std::vector<Relation> relations;
  std::vector<Output> outputs;
  Tree tree;
  Functions native;               // null functions when `callable` runs instead
  PyObject* callable = nullptr;   // of mode "numpy" when null as well
  PyObject* fits = nullptr;       // the callable's size guard, or null
  DevicePlan* device = nullptr;   // runs in place of the callable where it knows the sizes
  npjit_int64 release_bytes = 0;  // the GIL is released when a call touches at least so many

  // Known from the above; count_words() sets them.
  npjit_int64 in_words = 0;
  npjit_int64 out_words = 0;
};

void count_words(Entry& entry);

enum class Outcome {
  done,      // *result is the call's result
  no_match,  // *detail says why
  original,  // matches, and the user's own function answers
  failed,    // check *detail failed at run time
  raised,    // an exception is set
};

// Reasons for no_match besides the number of a step.
enum NoMatch { call_shape = -1, memory_overlap = -2, size_guard = -3 };

Outcome execute(const Entry& entry, const Call& call, PyObject** result, int* detail);

// Whether the entry would run: done, no_match or raised. Nothing runs.
Outcome probe(const Entry& entry, const Call& call, int* detail);

}  // namespace npjit
#endif
