// NumPy arrays in and out: what a guard sees of one, and how fresh arrays and views are made.
//
// The layout of an array is "C", for C-contiguous, or one class per axis ('0' stride 0, '1' stride
// of one element, 'n' negative, 'p' other positive, 'x' extent at most 1) and, for two axes or
// more, an order text. That one speaks of the axes of extent 2 and more: first their numbers from
// the largest to the smallest stride, then '|', then for each but the last 'm' if it merges with
// the next (its stride is the next one's times the next one's extent), 'f' if the next merges with
// it, else '-'. The order text decides NumPy's memory order of results, and whether a reshape is a
// view. Examples:
//
//     np.zeros((3, 4))          "C"
//     np.zeros((3, 4)).T        ('1', 'p', '10|f')
//     np.zeros((3, 8))[:, ::2]  ('p', 'p', '01|m')
#ifndef NPJIT_ARRAY_H
#define NPJIT_ARRAY_H
#include <Python.h>

#include <string>
#include <vector>

#include "abi.h"

namespace npjit {

// No array has more axes.
constexpr int max_axes = 64;

// Imports NumPy's C API; -1 with an exception set when that fails.
int import_numpy();

// The dtypes that compiled code handles: bool, integers, half to double, complex64 and complex128,
// and bfloat16 of ml_dtypes, whose number differs from process to process.
bool supports_dtype(int dtype);
bool is_brain(int dtype);

// Exact ndarray of a supported dtype in native byte order, aligned, strides in whole elements.
bool is_plain_array(PyObject* object);

struct Layout {
  bool c_order = false;
  std::string classes;  // one letter per axis; empty for C order
  std::string order;    // "10|-"; empty for C order and below two axes
};

// For plain arrays.
Layout layout_of(PyObject* array);

struct SeenArray;

// What the "array" check demands.
struct ArrayGuard {
  static constexpr npjit_int64 at_least_two = -1;
  static constexpr npjit_int64 any_extent = -2;

  int dtype = 0;
  bool writeable = false;
  int device = -1;  // the number of the GPU where the array lives; -1: the CPU
  std::vector<npjit_int64> extents;
  Layout layout;

  bool matches(PyObject* object) const;
  // Of an array on the GPU `device`.
  bool matches(const SeenArray& seen) const;
};

int array_dtype(PyObject* array);
int array_ndim(PyObject* array);
npjit_int64 array_extent(PyObject* array, int axis);
npjit_int64 array_bytes(PyObject* array);

// Writes data pointer, extents, strides in elements; returns the next free word.
npjit_int64* pack_array(PyObject* array, npjit_int64* words);
npjit_int64* pack_array(const SeenArray& seen, npjit_int64* words);

// Whether the address ranges of two arrays have a byte in common.
bool arrays_overlap(PyObject* first, PyObject* second);

// A fresh array in the memory order `order` (axes from the outermost to the innermost; null for C).
// Arrays from 4 KiB on live in a block of the pool and, like NumPy's own, own their data: the pool
// is their memory handler (NEP 49), so that base, flags and resize() are what NumPy would have
// given.
PyObject* fresh_array(int dtype, int ndim, const npjit_int64* extents, const int* order);
char* array_data(PyObject* array);

// A view of the memory of `base`: offset, extents and strides in elements of `dtype`.
PyObject* view_of(PyObject* base, int dtype, int ndim, bool writeable,
                  const npjit_int64* description);

// An array over memory that someone else keeps alive.
PyObject* array_over(const npjit_array& memory, bool writeable);

}  // namespace npjit
#endif
