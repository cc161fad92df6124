// Scalars in and out: Python's float, int, bool and complex, and NumPy's scalars.
//
// In: one word of `in` (an int64 value, or the bits of a double), two for complex ones; float16 and
// float32 widen to double. Out: made from the 0-d memory that a plan has filled.
#ifndef NPJIT_SCALAR_H
#define NPJIT_SCALAR_H
#include <Python.h>

#include "abi.h"

namespace npjit {

constexpr int largest_scalar = 16;  // bytes of a complex128

// kind: 'f' float, 'i' int, 'b' bool, 'c' complex. Exact types only; an int must fit an int64.
bool is_python_scalar(PyObject* object, char kind);
npjit_int64* pack_python_scalar(PyObject* scalar, char kind, npjit_int64* words);
PyObject* python_scalar(char kind, const char* memory);

// The NumPy scalar type of a dtype, borrowed.
PyObject* scalar_type(int dtype);
bool is_complex(int dtype);
npjit_int64* pack_numpy_scalar(PyObject* scalar, int dtype, npjit_int64* words);
PyObject* numpy_scalar(int dtype, const char* memory);

// Whether two objects of one exact type are the same value to a compiled function: ==, with 0.0 and
// -0.0 told apart and NaN equal to NaN, also inside tuples and slices. -1 with an exception set
// when a comparison raised.
int same_value(PyObject* first, PyObject* second);

}  // namespace npjit
#endif
