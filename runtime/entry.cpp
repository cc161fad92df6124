#include "entry.h"

#include <algorithm>
#include <memory>
#include <new>

#include "scalar.h"
#include "service.h"
#include "threads.h"

namespace npjit {
namespace {

// `count` zeroed values, on the stack when there are few.
template <class Value, std::size_t few>
class Buffer {
 public:
  explicit Buffer(std::size_t count)
      : many_(count > few ? new Value[count] : nullptr), data_(many_ ? many_.get() : few_) {
    std::fill_n(data_, count, Value{});
  }
  Value& operator[](std::size_t i) { return data_[i]; }
  Value* data() { return data_; }

 private:
  std::unique_ptr<Value[]> many_;
  Value few_[few];
  Value* data_;
};

// Owned references, some of them null.
class References {
 public:
  explicit References(std::size_t count) : count_(count), items_(count) {}
  ~References() {
    for (std::size_t i = 0; i < count_; ++i) {
      Py_XDECREF(items_[i]);
    }
  }
  References(const References&) = delete;
  References& operator=(const References&) = delete;
  PyObject*& operator[](std::size_t i) { return items_[i]; }
  PyObject** data() { return items_.data(); }

 private:
  std::size_t count_;
  Buffer<PyObject*, 16> items_;
};

struct alignas(largest_scalar) ScalarMemory {
  char bytes[largest_scalar];
};

bool has_call_shape(const Entry& entry, const Call& call) {
  const Py_ssize_t names = PyTuple_GET_SIZE(entry.names);
  if (call.positional != entry.positional ||
      names != (call.names != nullptr ? PyTuple_GET_SIZE(call.names) : 0)) {
    return false;
  }
  for (Py_ssize_t i = 0; i < names; ++i) {
    PyObject* wanted = PyTuple_GET_ITEM(entry.names, i);
    PyObject* given = PyTuple_GET_ITEM(call.names, i);
    if (given != wanted && PyUnicode_Compare(given, wanted) != 0) {
      return false;
    }
  }
  return true;
}

// One running call.
class Run {
 public:
  Run(const Entry& entry, const Call& call)
      : entry_(entry),
        call_(call),
        objects_(entry.steps.size()),
        in_(entry.in_words),
        out_(entry.out_words),
        outputs_(entry.outputs.size()),
        buffers_(entry.outputs.size()),
        scalars_(entry.outputs.size()) {}

  // done when every guard holds; the words of `in` are then written, and of `out` for native code.
  Outcome match(int* detail);
  Outcome answer(PyObject** result, int* detail);

 private:
  PyObject* input(int number) { return objects_[entry_.inputs[number]]; }
  bool relations_hold();
  void pack_inputs();
  PyObject* list_inputs();
  Outcome check_sizes(int* detail);
  Outcome run_native(int* detail);
  Outcome run_device(int* detail);
  Outcome run_callable(int* detail);
  bool allocate_outputs();
  bool finish_outputs();
  bool is_large(npjit_int64 arena);

  const Entry& entry_;
  const Call& call_;
  Instance* instance_ = nullptr;
  References objects_;
  Buffer<npjit_int64, 48> in_;
  Buffer<npjit_int64, 24> out_;
  References outputs_;
  Buffer<char*, 8> buffers_;
  Buffer<ScalarMemory, 8> scalars_;
};

Outcome Run::match(int* detail) {
  *detail = call_shape;
  if (!has_call_shape(entry_, call_)) {
    return Outcome::no_match;
  }
  const int steps = static_cast<int>(entry_.steps.size());
  for (int number = 0; number < steps; ++number) {
    const Guarded guarded = guard(entry_.steps[number], call_, objects_.data(), number);
    if (guarded != Guarded::yes) {
      *detail = number;
      return guarded == Guarded::raised ? Outcome::raised : Outcome::no_match;
    }
    if (entry_.steps[number].check == Check::device_array && entry_.steps[number].word >= 0) {
      pack_array(last_seen(), in_.data() + entry_.steps[number].word);
    }
  }
  if (!relations_hold()) {
    *detail = memory_overlap;
    return Outcome::no_match;
  }
  if (entry_.native.prepare != nullptr) {
    pack_inputs();
    if (entry_.native.prepare(in_.data(), out_.data()) != 0) {
      *detail = size_guard;
      return Outcome::no_match;
    }
  }
  if (entry_.device != nullptr) {
    pack_inputs();
    instance_ = find_instance(*entry_.device, in_.data());
  }
  // the sizes of an instance have been checked
  return entry_.fits != nullptr && instance_ == nullptr ? check_sizes(detail) : Outcome::done;
}

// A new list of the inputs, or null with an exception set.
PyObject* Run::list_inputs() {
  const auto count = static_cast<Py_ssize_t>(entry_.inputs.size());
  PyObject* list = PyList_New(count);
  for (Py_ssize_t i = 0; list != nullptr && i < count; ++i) {
    PyList_SET_ITEM(list, i, Py_NewRef(input(static_cast<int>(i))));
  }
  return list;
}

Outcome Run::check_sizes(int* detail) {
  PyObject* inputs = list_inputs();
  PyObject* answer = inputs != nullptr ? PyObject_CallOneArg(entry_.fits, inputs) : nullptr;
  Py_XDECREF(inputs);
  const int fits = answer != nullptr ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  *detail = size_guard;
  if (fits < 0) {
    return Outcome::raised;
  }
  return fits == 1 ? Outcome::done : Outcome::no_match;
}

bool Run::relations_hold() {
  for (const Relation& relation : entry_.relations) {
    PyObject* first = input(relation.first);
    PyObject* second = input(relation.second);
    if (relation.same ? first != second : arrays_overlap(first, second)) {
      return false;
    }
  }
  return true;
}

void Run::pack_inputs() {
  npjit_int64* words = in_.data();
  for (const int number : entry_.inputs) {
    const Step& step = entry_.steps[number];
    if (step.check == Check::array) {
      words = pack_array(objects_[number], words);
    } else if (step.check == Check::device_array) {
      words += 1 + 2 * step.array.extents.size();  // written when the guard saw it
    } else if (step.check == Check::python_scalar) {
      words = pack_python_scalar(objects_[number], step.kind, words);
    } else {
      words = pack_numpy_scalar(objects_[number], step.dtype, words);
    }
  }
}

bool Run::allocate_outputs() {
  const npjit_int64* words = out_.data() + 1;
  for (std::size_t k = 0; k < entry_.outputs.size(); ++k) {
    const Output& output = entry_.outputs[k];
    switch (output.result) {
      case Result::array:
        outputs_[k] = fresh_array(output.dtype, output.ndim, words,
                                  output.order.empty() ? nullptr : output.order.data());
        if (outputs_[k] == nullptr) {
          return false;
        }
        buffers_[k] = array_data(outputs_[k]);
        words += output.ndim;
        break;
      case Result::alias:
        outputs_[k] =
            view_of(input(output.input), output.dtype, output.ndim, output.writeable, words);
        if (outputs_[k] == nullptr) {
          return false;
        }
        words += 1 + 2 * output.ndim;
        break;
      case Result::input:
        outputs_[k] = Py_NewRef(input(output.input));
        break;
      default:
        buffers_[k] = scalars_[k].bytes;
    }
  }
  return true;
}

bool Run::finish_outputs() {
  for (std::size_t k = 0; k < entry_.outputs.size(); ++k) {
    const Output& output = entry_.outputs[k];
    if (output.result == Result::numpy_scalar) {
      outputs_[k] = numpy_scalar(output.dtype, scalars_[k].bytes);
    } else if (output.result == Result::python_scalar) {
      outputs_[k] = python_scalar(output.kind, scalars_[k].bytes);
    }
    if (outputs_[k] == nullptr) {
      return false;
    }
  }
  return true;
}

bool Run::is_large(npjit_int64 arena) {
  npjit_int64 bytes = arena;
  for (const int number : entry_.inputs) {
    if (entry_.steps[number].check == Check::array) {
      bytes += array_bytes(objects_[number]);
    }
  }
  for (std::size_t k = 0; k < entry_.outputs.size(); ++k) {
    if (entry_.outputs[k].result == Result::array) {
      bytes += array_bytes(outputs_[k]);
    }
  }
  return bytes >= entry_.release_bytes;
}

Outcome Run::run_native(int* detail) {
  if (!allocate_outputs()) {
    return Outcome::raised;
  }
  const npjit_int64 arena_bytes = out_[0];
  const Arena arena(arena_bytes);
  if (arena_bytes > 0 && arena.memory() == nullptr) {
    PyErr_NoMemory();
    return Outcome::raised;
  }
  const threads::FixedCount fixed;
  PyThreadState* released = is_large(arena_bytes) ? PyEval_SaveThread() : nullptr;
  const int code =
      entry_.native.run(service(), in_.data(), out_.data(), buffers_.data(), arena.memory());
  if (released != nullptr) {
    PyEval_RestoreThread(released);
  }
  if (code == NPJIT_INTERRUPTED || code == NPJIT_RAISED) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
    return Outcome::raised;
  }
  *detail = code;
  if (code != NPJIT_OK) {
    return Outcome::failed;
  }
  return finish_outputs() ? Outcome::done : Outcome::raised;
}

// The callable's list has one object per output that is no input itself; None is a failed check.
Outcome Run::run_callable(int* detail) {
  PyObject* arguments = list_inputs();
  PyObject* made = arguments != nullptr ? PyObject_CallOneArg(entry_.callable, arguments) : nullptr;
  Py_XDECREF(arguments);
  if (made == nullptr) {
    return Outcome::raised;
  }
  if (made == Py_None) {
    Py_DECREF(made);
    *detail = 1;
    return Outcome::failed;
  }
  Py_ssize_t next = 0;
  const Py_ssize_t given = PyList_Check(made) ? PyList_GET_SIZE(made) : -1;
  for (std::size_t k = 0; k < entry_.outputs.size(); ++k) {
    const Output& output = entry_.outputs[k];
    if (output.result == Result::input) {
      outputs_[k] = Py_NewRef(input(output.input));
    } else if (next < given) {
      outputs_[k] = Py_NewRef(PyList_GET_ITEM(made, next));
      next += 1;
    } else {
      next = given + 1;
      break;
    }
  }
  Py_DECREF(made);
  if (next != given) {
    PyErr_SetString(PyExc_TypeError,
                    "a backend's callable returns a list with one object per output");
    return Outcome::raised;
  }
  return Outcome::done;
}

// By the instance for these sizes; where it has no tape, and where memory is short, by Python.
Outcome Run::run_device(int* detail) {
  if (instance_ == nullptr) {
    PyObject* inputs = list_inputs();
    instance_ = inputs != nullptr ? prepare_instance(*entry_.device, inputs, in_.data()) : nullptr;
    Py_XDECREF(inputs);
    if (instance_ == nullptr) {
      return Outcome::raised;
    }
  }
  if (instance_->tape == nullptr) {
    return run_callable(detail);
  }
  References made(instance_->results.size());
  PyObject* owner = Py_NewRef(instance_->owner);
  const Ran ran = run_instance(*entry_.device, *instance_, in_.data(), made.data());
  Py_DECREF(owner);
  if (ran == Ran::no_memory) {
    PyErr_Clear();
    return run_callable(detail);
  }
  *detail = 1;
  for (std::size_t k = 0; k < entry_.outputs.size() && ran == Ran::done; ++k) {
    const Output& output = entry_.outputs[k];
    PyObject* found = output.result == Result::input ? input(output.input) : made[output.input];
    outputs_[k] = Py_NewRef(found);
  }
  return ran == Ran::done ? Outcome::done : ran == Ran::stopped ? Outcome::failed : Outcome::raised;
}

Outcome Run::answer(PyObject** result, int* detail) {
  if (entry_.native.run == nullptr && entry_.callable == nullptr) {
    return Outcome::original;
  }
  const bool on_device = entry_.device != nullptr && is_current(*entry_.device);
  const Outcome outcome = on_device                    ? run_device(detail)
                          : entry_.callable != nullptr ? run_callable(detail)
                                                       : run_native(detail);
  if (outcome != Outcome::done) {
    return outcome;
  }
  *result = assemble(entry_.tree, outputs_.data(), objects_.data());
  return *result != nullptr ? Outcome::done : Outcome::raised;
}

}  // namespace

void count_words(Entry& entry) {
  entry.in_words = 0;
  for (const int number : entry.inputs) {
    Step& step = entry.steps[number];
    step.word = static_cast<int>(entry.in_words);
    if (step.is_array()) {
      entry.in_words += 1 + 2 * static_cast<npjit_int64>(step.array.extents.size());
    } else {
      const bool two =
          step.check == Check::python_scalar ? step.kind == 'c' : is_complex(step.dtype);
      entry.in_words += two ? 2 : 1;
    }
  }
  entry.out_words = 1;
  for (const Output& output : entry.outputs) {
    if (output.result == Result::array) {
      entry.out_words += output.ndim;
    } else if (output.result == Result::alias) {
      entry.out_words += 1 + 2 * output.ndim;
    }
  }
}

Outcome execute(const Entry& entry, const Call& call, PyObject** result, int* detail) {
  try {
    Run run(entry, call);
    const Outcome outcome = run.match(detail);
    return outcome == Outcome::done ? run.answer(result, detail) : outcome;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return Outcome::raised;
  }
}

Outcome probe(const Entry& entry, const Call& call, int* detail) {
  try {
    return Run(entry, call).match(detail);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return Outcome::raised;
  }
}

}  // namespace npjit
