#include "step.h"

#include "device.h"
#include "scalar.h"

namespace npjit {
namespace {

thread_local SeenArray seen;

// The object, or null without an exception when there is none.
PyObject* dict_value(PyObject* dict, PyObject* key) {
  return dict != nullptr ? Py_XNewRef(PyDict_GetItemWithError(dict, key)) : nullptr;
}

PyObject* item_of(PyObject* container, const Step& step) {
  if (step.indexed && (PyTuple_CheckExact(container) || PyList_CheckExact(container))) {
    const Py_ssize_t size = Py_SIZE(container);
    const Py_ssize_t place = step.position < 0 ? step.position + size : step.position;
    const bool inside = place >= 0 && place < size;
    return inside ? Py_NewRef(PySequence_Fast_GET_ITEM(container, place)) : nullptr;
  }
  if (PyDict_CheckExact(container)) {
    return dict_value(container, step.key);
  }
  if (PyDict_Check(container)) {
    // A defaultdict would insert a missing key.
    const int present = PyDict_Contains(container, step.key);
    return present == 1 ? PyObject_GetItem(container, step.key) : nullptr;
  }
  return PyObject_GetItem(container, step.key);
}

PyObject* fetch(const Step& step, const Call& call, PyObject* const* objects) {
  switch (step.fetch) {
    case Fetch::argument:
      return Py_NewRef(call.arguments[step.index]);
    case Fetch::root:
      return Py_NewRef(step.source);
    case Fetch::attribute:
      return PyObject_GetAttr(objects[step.index], step.key);
    case Fetch::item:
      return item_of(objects[step.index], step);
    case Fetch::global_name:
      return dict_value(step.source, step.key);
    case Fetch::cell:
      return Py_XNewRef(PyCell_GET(step.source));
    case Fetch::kwdefaults:
      return dict_value(PyFunction_GetKwDefaults(step.source), step.key);
    case Fetch::defaults:
      break;
  }
  PyObject* defaults = PyFunction_GetDefaults(step.source);
  if (defaults == nullptr || step.position >= PyTuple_GET_SIZE(defaults)) {
    return nullptr;
  }
  return Py_NewRef(PyTuple_GET_ITEM(defaults, step.position));
}

int has_keys(PyObject* dict, PyObject* keys) {
  const Py_ssize_t count = PyTuple_GET_SIZE(keys);
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != count) {
    return 0;
  }
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyDict_Next(dict, &position, &key, nullptr)) {
      return 0;
    }
    PyObject* wanted = PyTuple_GET_ITEM(keys, i);
    if (key != wanted) {
      Py_INCREF(key);  // a comparison may run code that changes the dict
      const int same = same_value(key, wanted);
      Py_DECREF(key);
      if (same != 1) {
        return same;
      }
    }
  }
  return 1;
}

int has_length(PyObject* sequence, Py_ssize_t length) {
  const bool plain = PyTuple_CheckExact(sequence) || PyList_CheckExact(sequence);
  const Py_ssize_t size = plain ? Py_SIZE(sequence) : PyObject_Size(sequence);
  return size < 0 ? -1 : size == length;
}

// 1, 0, or -1 with an exception set.
int check(const Step& step, PyObject* object) {
  const bool typed = reinterpret_cast<PyObject*>(Py_TYPE(object)) == step.expected;
  switch (step.check) {
    case Check::anything:
      return 1;
    case Check::absent:
      return 0;
    case Check::identity:
      return object == step.expected;
    case Check::equal:
      return same_value(object, step.expected);
    case Check::exact_type:
    case Check::numpy_scalar:
      return typed;
    case Check::sequence:
      return typed ? has_length(object, step.length) : 0;
    case Check::mapping:
      return typed ? has_keys(object, step.keys) : 0;
    case Check::array:
      return step.array.matches(object);
    case Check::device_array:
      return see_array(object, seen) && step.array.matches(seen);
    case Check::python_scalar:
      break;
  }
  return is_python_scalar(object, step.kind);
}

Guarded no_match() {
  if (PyErr_Occurred() == nullptr) {
    return Guarded::no;
  }
  if (!PyErr_ExceptionMatches(PyExc_Exception)) {
    return Guarded::raised;
  }
  PyErr_Clear();
  return Guarded::no;
}

}  // namespace

const SeenArray& last_seen() { return seen; }

Guarded guard(const Step& step, const Call& call, PyObject** objects, int number) {
  objects[number] = fetch(step, call, objects);
  if (step.check == Check::absent && objects[number] == nullptr) {
    return no_match() == Guarded::raised ? Guarded::raised : Guarded::yes;
  }
  if (objects[number] == nullptr || check(step, objects[number]) != 1) {
    return no_match();
  }
  return Guarded::yes;
}

}  // namespace npjit
