// Arrays on a GPU, by the attributes of one registered type (CuPy's ndarray) or where its objects
// have them, and the current stream.
//
//     set_device_interface(cupy.ndarray, stream, fields)
//     SeenArray seen;
//     see_array(x, seen)      // where it lies and how; false for anything else
#ifndef NPJIT_DEVICE_H
#define NPJIT_DEVICE_H
#include <Python.h>

#include <vector>

#include "array.h"

namespace npjit {

struct SeenArray {
  char* data;
  int device;
  int dtype;
  int ndim;
  npjit_int64 itemsize;
  npjit_int64 alignment;
  // strides count bytes
  Py_ssize_t extents[max_axes];
  Py_ssize_t strides[max_axes];
};

// Makes an array of a type, its axes in C order; the last argument is None.
using ArrayCreator = PyObject* (*)(PyObject* type, const std::vector<Py_ssize_t>& extents,
                                   PyObject* dtype, PyObject* none);

// Where device arrays keep what their attributes say, in bytes from an object's beginning: `shape`
// and `strides` are vectors of Py_ssize_t, `dtype` and `data` objects, the latter of the type
// `pointer` with an address and an int. Without such a type attributes are asked for.
struct ArrayFields {
  PyObject* pointer = nullptr;
  ArrayCreator create = nullptr;
  Py_ssize_t shape = 0, strides = 0, dtype = 0, data = 0;
  Py_ssize_t ptr = 0, device_id = 0;
};

// The type of device arrays; what gives the current stream, a capsule of a C function
// "intptr_t (void)" or a callable; and the fields of the arrays.
void set_device_interface(PyObject* type, PyObject* stream, const ArrayFields& fields);

bool is_device_array(PyObject* object);

// False without an exception: no device array, or one that compiled code does not take.
bool see_array(PyObject* object, SeenArray& seen);

// (header, number of the GPU): a NumPy array of the same place, shape and strides that nobody may
// read through, whose base is the device array; None for what see_array does not take.
PyObject* header_of(PyObject* object);

// The address of a device array's first element; -1 with an exception set.
npjit_int64 device_address(PyObject* array);

// Whether `make` is the type of device arrays, and new_array does what a call of it does.
bool makes_arrays(PyObject* make);
// A new device array in C order; null with an exception set.
PyObject* new_array(const std::vector<Py_ssize_t>& extents, PyObject* dtype);

// Whether a device array has these extents; false without an exception where it cannot be asked.
bool has_extents(PyObject* array, const std::vector<Py_ssize_t>& extents);

// The same of what CuPy's allocators give.
npjit_int64 memory_address(PyObject* memory);

// The current stream's handle, null where nothing is registered; false with an exception set.
bool current_stream(void** stream);

}  // namespace npjit
#endif
