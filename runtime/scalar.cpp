#include "scalar.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "array.h"
#include "numpy_api.h"

namespace npjit {
namespace {

npjit_int64 double_bits(double value) {
  npjit_int64 bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool same_double(double a, double b) {
  return double_bits(a) == double_bits(b) || (a != a && b != b);
}

template <class Value>
Value load(const char* memory) {
  Value value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

template <class Value>
Value scalar_value(PyObject* scalar) {
  Value value;
  PyArray_ScalarAsCtype(scalar, &value);
  return value;
}

npjit_int64 integer_word(PyObject* scalar, int dtype) {
  switch (dtype) {
    case NPY_BOOL:
      return scalar_value<npy_bool>(scalar) != 0;
    case NPY_BYTE:
      return scalar_value<npy_byte>(scalar);
    case NPY_UBYTE:
      return scalar_value<npy_ubyte>(scalar);
    case NPY_SHORT:
      return scalar_value<npy_short>(scalar);
    case NPY_USHORT:
      return scalar_value<npy_ushort>(scalar);
    case NPY_INT:
      return scalar_value<npy_int>(scalar);
    case NPY_UINT:
      return scalar_value<npy_uint>(scalar);
    case NPY_LONG:
      return scalar_value<npy_long>(scalar);
    case NPY_ULONG:
      return static_cast<npjit_int64>(scalar_value<npy_ulong>(scalar));
    case NPY_LONGLONG:
      return scalar_value<npy_longlong>(scalar);
    default:
      return static_cast<npjit_int64>(scalar_value<npy_ulonglong>(scalar));
  }
}

int same_items(PyObject* first, PyObject* second) {
  const Py_ssize_t length = PyTuple_GET_SIZE(first);
  int same = length == PyTuple_GET_SIZE(second);
  for (Py_ssize_t i = 0; same == 1 && i < length; ++i) {
    same = same_value(PyTuple_GET_ITEM(first, i), PyTuple_GET_ITEM(second, i));
  }
  return same;
}

int same_slice(PyObject* first, PyObject* second) {
  const auto* a = reinterpret_cast<PySliceObject*>(first);
  const auto* b = reinterpret_cast<PySliceObject*>(second);
  int same = same_value(a->start, b->start);
  same = same == 1 ? same_value(a->stop, b->stop) : same;
  return same == 1 ? same_value(a->step, b->step) : same;
}

// Inexact NumPy scalars by their bytes: unequal bytes of one NaN only cost a compilation.
int same_inexact(PyObject* first, PyObject* second) {
  PyArray_Descr* descr = PyArray_DescrFromScalar(first);
  const npy_intp itemsize = PyDataType_ELSIZE(descr);
  Py_DECREF(descr);
  alignas(16) char bytes[2][2 * sizeof(npy_clongdouble)] = {};
  PyArray_ScalarAsCtype(first, bytes[0]);
  PyArray_ScalarAsCtype(second, bytes[1]);
  return std::memcmp(bytes[0], bytes[1], itemsize) == 0;
}

}  // namespace

bool is_python_scalar(PyObject* object, char kind) {
  switch (kind) {
    case 'f':
      return PyFloat_CheckExact(object);
    case 'b':
      return PyBool_Check(object);
    case 'c':
      return PyComplex_CheckExact(object);
    default:
      break;
  }
  int overflow = 0;
  if (!PyLong_CheckExact(object)) {
    return false;
  }
  PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

npjit_int64* pack_python_scalar(PyObject* scalar, char kind, npjit_int64* words) {
  if (kind == 'f') {
    *words++ = double_bits(PyFloat_AS_DOUBLE(scalar));
  } else if (kind == 'b') {
    *words++ = scalar == Py_True;
  } else if (kind == 'i') {
    *words++ = PyLong_AsLongLong(scalar);
  } else {
    const Py_complex value = PyComplex_AsCComplex(scalar);
    *words++ = double_bits(value.real);
    *words++ = double_bits(value.imag);
  }
  return words;
}

PyObject* python_scalar(char kind, const char* memory) {
  if (kind == 'f') {
    return PyFloat_FromDouble(load<double>(memory));
  }
  if (kind == 'i') {
    return PyLong_FromLongLong(load<npjit_int64>(memory));
  }
  if (kind == 'b') {
    return PyBool_FromLong(*memory != 0);
  }
  return PyComplex_FromDoubles(load<double>(memory), load<double>(memory + sizeof(double)));
}

PyObject* scalar_type(int dtype) {
  // NumPy's scalar types are static objects: a borrowed reference is safe.
  PyObject* type = PyArray_TypeObjectFromType(dtype);
  Py_XDECREF(type);
  return type;
}

bool is_complex(int dtype) { return PyTypeNum_ISCOMPLEX(dtype); }

npjit_int64* pack_numpy_scalar(PyObject* scalar, int dtype, npjit_int64* words) {
  if (dtype == NPY_CDOUBLE) {
    const auto value = scalar_value<std::complex<double>>(scalar);
    *words++ = double_bits(value.real());
    *words++ = double_bits(value.imag());
  } else if (dtype == NPY_CFLOAT) {
    const auto value = scalar_value<std::complex<float>>(scalar);
    *words++ = double_bits(value.real());
    *words++ = double_bits(value.imag());
  } else if (PyTypeNum_ISFLOAT(dtype) || is_brain(dtype)) {
    *words++ = double_bits(PyFloat_AsDouble(scalar));
  } else {
    *words++ = integer_word(scalar, dtype);
  }
  return words;
}

PyObject* numpy_scalar(int dtype, const char* memory) {
  PyArray_Descr* descr = PyArray_DescrFromType(dtype);
  PyObject* scalar = PyArray_Scalar(const_cast<char*>(memory), descr, nullptr);
  Py_DECREF(descr);
  return scalar;
}

int same_value(PyObject* first, PyObject* second) {
  PyTypeObject* type = Py_TYPE(first);
  if (type != Py_TYPE(second)) {
    return 0;
  }
  if (type == &PyFloat_Type) {
    return same_double(PyFloat_AS_DOUBLE(first), PyFloat_AS_DOUBLE(second));
  }
  if (type == &PyComplex_Type) {
    const Py_complex a = PyComplex_AsCComplex(first);
    const Py_complex b = PyComplex_AsCComplex(second);
    return same_double(a.real, b.real) && same_double(a.imag, b.imag);
  }
  if (PyTuple_Check(first)) {
    return same_items(first, second);
  }
  if (type == &PySlice_Type) {
    return same_slice(first, second);
  }
  if (PyArray_IsScalar(first, Inexact)) {
    return same_inexact(first, second);
  }
  return PyObject_RichCompareBool(first, second, Py_EQ);
}

}  // namespace npjit
