#define PY_SSIZE_T_CLEAN
#include "device_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device.h"
#include "driver.h"

namespace npjit {
namespace {

// addresses that are equal modulo this are alike to a plan
constexpr npjit_int64 alignment = 16;

npjit_int64 key_word(Word word, npjit_int64 value) {
  return word == Word::size ? value : word == Word::address ? value % alignment : 0;
}

std::string key_of(const DevicePlan& plan, const npjit_int64* words) {
  std::string key(plan.words.size() * sizeof(npjit_int64), '\0');
  for (std::size_t i = 0; i < plan.words.size(); ++i) {
    const npjit_int64 word = key_word(plan.words[i], words[i]);
    std::memcpy(key.data() + i * sizeof(word), &word, sizeof(word));
  }
  return key;
}

// Whether the words have the key of those that were found last.
bool is_last(const DevicePlan& plan, const npjit_int64* words) {
  for (std::size_t i = 0; i < plan.words.size(); ++i) {
    if (key_word(plan.words[i], words[i]) != key_word(plan.words[i], plan.last_words[i])) {
      return false;
    }
  }
  return true;
}

void drop(KeptArray& kept) {
  Py_CLEAR(kept.array);
  Py_CLEAR(kept.pointer);
  Py_CLEAR(kept.memory);
}

// Nobody but `kept` holds the array or its memory, and it is what it was when it was made.
bool is_free(const KeptArray& kept, const Made& made) {
  // pointer and memory are held by their owner, too
  if (kept.array == nullptr || Py_REFCNT(kept.array) != 1 || Py_REFCNT(kept.pointer) != 2 ||
      Py_REFCNT(kept.memory) != 2) {
    return false;
  }
  if (PyType_SUPPORTS_WEAKREFS(Py_TYPE(kept.array)) &&
      *PyObject_GET_WEAKREFS_LISTPTR(kept.array) != nullptr) {
    return false;
  }
  return has_extents(kept.array, made.extents);
}

// Keeps a new result; one that cannot be asked for its memory is not kept, nor is one of a stream
// that another thread's call has followed while this one was made.
void keep(std::array<KeptArray, 2>& slots, PyObject* array, npjit_int64 address) {
  static PyObject* const data = PyUnicode_InternFromString("data");
  static PyObject* const mem = PyUnicode_InternFromString("mem");
  KeptArray made;
  made.pointer = PyObject_GetAttr(array, data);
  made.memory = made.pointer != nullptr ? PyObject_GetAttr(made.pointer, mem) : nullptr;
  if (made.memory == nullptr) {
    PyErr_Clear();
    Py_CLEAR(made.pointer);
    return;
  }
  made.array = Py_NewRef(array);
  made.address = address;
  drop(slots[1]);
  slots[1] = slots[0];
  slots[0] = made;
}

PyObject* make_array(const Made& made) {
  if (makes_arrays(made.make) && PyTuple_GET_SIZE(made.arguments) == 2) {
    return new_array(made.extents, PyTuple_GET_ITEM(made.arguments, 1));
  }
  return PyObject_CallObject(made.make, made.arguments);
}

// A result of earlier calls that is free, or a new one; null with an exception set.
PyObject* make_result(const DevicePlan& plan, Instance& instance, void* stream, std::size_t number,
                      npjit_int64* address) {
  const Made& made = instance.results[number];
  std::array<KeptArray, 2>& slots = instance.kept.results[number];
  const bool is_ours = instance.kept.stream == stream;
  for (std::size_t i = 0; plan.keeps && is_ours && i < slots.size(); ++i) {
    if (is_free(slots[i], made)) {
      std::swap(slots[0], slots[i]);
      *address = slots[0].address;
      return Py_NewRef(slots[0].array);
    }
  }
  PyObject* array = make_array(made);
  *address = array != nullptr ? device_address(array) : 0;
  if (plan.keeps && array != nullptr && instance.kept.stream == stream) {
    keep(slots, array, *address);
  }
  return array;
}

// New memory, or that of the last call on this stream, which is then this call's alone: between its
// launches another thread may call.
PyObject* make_memory(const DevicePlan& plan, Instance& instance, void* stream) {
  if (instance.kept.memory != nullptr && instance.kept.stream == stream) {
    return std::exchange(instance.kept.memory, nullptr);
  }
  PyObject* bytes = PyLong_FromLongLong(instance.memory);
  PyObject* memory = bytes != nullptr ? PyObject_CallOneArg(plan.allocate, bytes) : nullptr;
  Py_XDECREF(bytes);
  return memory;
}

npjit_int64 counters_address(const DevicePlan& plan, npjit_int64 count) {
  PyObject* number = PyLong_FromLongLong(count);
  PyObject* address = number != nullptr ? PyObject_CallOneArg(plan.counters, number) : nullptr;
  Py_XDECREF(number);
  const npjit_int64 found = address != nullptr ? PyLong_AsLongLong(address) : -1;
  Py_XDECREF(address);
  return found;
}

// Makes the results and notes their addresses; false with an exception set.
bool make_results(const DevicePlan& plan, Instance& instance, void* stream, PyObject** results,
                  std::vector<npjit_int64>& bases) {
  for (std::size_t k = 0; k < instance.results.size(); ++k) {
    npjit_int64 address = 0;
    results[k] = make_result(plan, instance, stream, k, &address);
    if (results[k] == nullptr) {
      return false;
    }
    bases.push_back(address);
  }
  return PyErr_Occurred() == nullptr;
}

}  // namespace

Instance* find_instance(DevicePlan& plan, const npjit_int64* words) {
  if (plan.last != nullptr && is_last(plan, words)) {
    return plan.last;
  }
  const auto found = plan.instances.find(key_of(plan, words));
  if (found == plan.instances.end()) {
    return nullptr;
  }
  plan.last = found->second;
  plan.last_words.assign(words, words + plan.words.size());
  return plan.last;
}

Instance* prepare_instance(const DevicePlan& plan, PyObject* inputs, const npjit_int64* words) {
  const std::string key = key_of(plan, words);
  PyObject* answer = PyObject_CallFunction(plan.prepare, "Oy#", inputs, key.data(),
                                           static_cast<Py_ssize_t>(key.size()));
  if (answer == nullptr) {
    return nullptr;
  }
  Py_DECREF(answer);
  const auto found = plan.instances.find(key);
  if (found == plan.instances.end()) {
    PyErr_SetString(PyExc_RuntimeError, "prepare has entered no instance");
    return nullptr;
  }
  return found->second;
}

bool is_current(const DevicePlan& plan) {
  const Driver* driver = find_driver();
  int device = -1;
  return driver != nullptr && driver->current_device(&device) == 0 && device == plan.device;
}

void drop_kept(Instance& instance) {
  for (std::array<KeptArray, 2>& slots : instance.kept.results) {
    std::for_each(slots.begin(), slots.end(), drop);
  }
  Py_CLEAR(instance.kept.memory);
}

Ran run_instance(const DevicePlan& plan, Instance& instance, const npjit_int64* words,
                 PyObject** results) {
  void* stream = nullptr;
  if (!current_stream(&stream)) {
    return Ran::raised;
  }
  if (instance.kept.stream != stream) {
    drop_kept(instance);
    instance.kept.stream = stream;
  }
  std::vector<npjit_int64> bases;
  bases.reserve(plan.bases.size() + instance.results.size() + 3);
  for (const int number : plan.bases) {
    bases.push_back(words[number]);
  }
  PyObject* memory = nullptr;
  if (make_results(plan, instance, stream, results, bases)) {
    memory = instance.memory > 0 ? make_memory(plan, instance, stream) : Py_NewRef(Py_None);
  }
  if (memory == nullptr) {
    return PyErr_ExceptionMatches(PyExc_MemoryError) ? Ran::no_memory : Ran::raised;
  }
  bases.push_back(instance.memory > 0 ? memory_address(memory) : 0);
  bases.push_back(bases.back() + instance.arena);
  bases.push_back(instance.counters > 0 ? counters_address(plan, instance.counters) : 0);
  Ran ran = Ran::raised;
  if (PyErr_Occurred() == nullptr) {
    const int count = static_cast<int>(bases.size());
    ran = run_tape(*instance.tape, bases.data(), count, stream);
  }
  if (plan.keeps && instance.kept.stream == stream && memory != Py_None) {
    Py_XSETREF(instance.kept.memory, memory);
  } else {
    Py_DECREF(memory);
  }
  return ran;
}

}  // namespace npjit
