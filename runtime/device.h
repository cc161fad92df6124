// Arrays on a GPU, by the attributes of one registered type (CuPy's ndarray), and the current
// stream.
//
//     set_device_interface(cupy.ndarray, stream)
//     SeenArray seen;
//     see_array(x, seen)      // where it lies and how; false for anything else
#ifndef NPJIT_DEVICE_H
#define NPJIT_DEVICE_H
#include <Python.h>

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

// The type of device arrays, and what gives the current stream: a capsule of a C function
// "intptr_t (void)", or a callable.
void set_device_interface(PyObject* type, PyObject* stream);

bool is_device_array(PyObject* object);

// False without an exception: no device array, or one that compiled code does not take.
bool see_array(PyObject* object, SeenArray& seen);

// (header, number of the GPU): a NumPy array of the same place, shape and strides that nobody may
// read through, whose base is the device array; None for what see_array does not take.
PyObject* header_of(PyObject* object);

// The address of a device array's first element; -1 with an exception set.
npjit_int64 device_address(PyObject* array);

// The same of what CuPy's allocators give.
npjit_int64 memory_address(PyObject* memory);

// The current stream's handle, null where nothing is registered; false with an exception set.
bool current_stream(void** stream);

}  // namespace npjit
#endif
