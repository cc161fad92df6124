#include "host.h"

#include "array.h"

namespace npjit {
namespace {

PyObject* host = nullptr;

// A list of arrays over the memory described, or null with an exception set.
PyObject* list_arrays(const npjit_array* arrays, int count, bool writeable) {
  PyObject* list = PyList_New(count);
  for (int k = 0; list != nullptr && k < count; ++k) {
    PyObject* array = array_over(arrays[k], writeable);
    if (array == nullptr) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, k, array);
    }
  }
  return list;
}

bool is_users_error() {
  return PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError);
}

}  // namespace

void set_host(PyObject* callable) {
  Py_XINCREF(callable);
  Py_XDECREF(host);
  host = callable;
}

int call_host(const char* spec, const npjit_array* arrays, int arguments, int results, int check) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* given = list_arrays(arrays, arguments, false);
  PyObject* made = given != nullptr ? list_arrays(arrays + arguments, results, true) : nullptr;
  PyObject* done =
      made != nullptr ? PyObject_CallFunction(host, "sOO", spec, given, made) : nullptr;
  int code = NPJIT_OK;
  if (done == nullptr) {
    code = NPJIT_RAISED;
    if (check != 0 && is_users_error()) {
      PyErr_Clear();
      code = check;
    }
  }
  Py_XDECREF(done);
  Py_XDECREF(made);
  Py_XDECREF(given);
  PyGILState_Release(state);
  return code;
}

}  // namespace npjit
