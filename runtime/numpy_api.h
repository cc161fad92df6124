// NumPy's C API for this extension's files: array.cpp imports it, the others share the table.
#ifndef NPJIT_NUMPY_API_H
#define NPJIT_NUMPY_API_H
#include <Python.h>

#define PY_ARRAY_UNIQUE_SYMBOL npjit_numpy_api
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#ifndef NPJIT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#endif
