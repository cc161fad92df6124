#define NPJIT_IMPORTS_NUMPY
#include "array.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device.h"
#include "numpy_api.h"
#include "pool.h"

namespace npjit {
namespace {

constexpr npjit_int64 pooled_from = 4096;

PyArrayObject* as_array(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

// The geometry of an array; strides count bytes.
struct Form {
  int ndim;
  const npy_intp* extents;
  const npy_intp* strides;
  npjit_int64 itemsize;
  bool c_order;
};

Form form_of(PyArrayObject* array) {
  return {PyArray_NDIM(array), PyArray_DIMS(array), PyArray_STRIDES(array), PyArray_ITEMSIZE(array),
          PyArray_IS_C_CONTIGUOUS(array) != 0};
}

// As NumPy's flag: axes of extent 1 do not count, and empty arrays are contiguous.
bool is_c_order(const SeenArray& seen) {
  npjit_int64 wanted = seen.itemsize;
  bool in_order = true;
  for (int axis = seen.ndim - 1; axis >= 0; --axis) {
    if (seen.extents[axis] == 0) {
      return true;
    }
    in_order = in_order && (seen.extents[axis] == 1 || seen.strides[axis] == wanted);
    wanted *= seen.extents[axis];
  }
  return in_order;
}

Form form_of(const SeenArray& seen) {
  return {seen.ndim, seen.extents, seen.strides, seen.itemsize, is_c_order(seen)};
}

void* handler_malloc(void*, std::size_t bytes) { return pool::allocate(bytes); }

void* handler_calloc(void*, std::size_t count, std::size_t size) {
  void* memory = pool::allocate(count * size);
  if (memory != nullptr) {
    std::memset(memory, 0, count * size);
  }
  return memory;
}

void* handler_realloc(void*, void* memory, std::size_t bytes) {
  void* moved = pool::allocate(bytes);
  if (moved != nullptr) {
    std::memcpy(moved, memory, std::min(bytes, pool::capacity(memory)));
    pool::release(memory);
  }
  return moved;
}

void handler_free(void*, void* memory, std::size_t) { pool::release(memory); }

PyDataMem_Handler pool_handler = {
    "npjit_pool", 1, {nullptr, handler_malloc, handler_calloc, handler_realloc, handler_free}};
PyObject* pool_capsule = nullptr;
// NumPy's number of bfloat16, once it was seen; 0 before
int brain_dtype = 0;

char stride_class(npjit_int64 extent, npjit_int64 stride, npjit_int64 itemsize) {
  if (extent <= 1) {
    return 'x';
  }
  if (stride == 0) {
    return '0';
  }
  if (stride < 0) {
    return 'n';
  }
  return stride == itemsize ? '1' : 'p';
}

std::string order_text(const Form& form) {
  const npy_intp* extents = form.extents;
  const npy_intp* strides = form.strides;
  std::vector<int> axes;
  for (int axis = 0; axis < form.ndim; ++axis) {
    if (extents[axis] > 1) {
      axes.push_back(axis);
    }
  }
  std::string merging;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    const int one = axes[i];
    const int next = axes[i + 1];
    const bool rows = strides[one] == strides[next] * extents[next];
    const bool columns = strides[next] == strides[one] * extents[one];
    merging += rows ? 'm' : columns ? 'f' : '-';
  }
  const auto larger = [strides](int a, int b) {
    return std::abs(strides[a]) > std::abs(strides[b]);
  };
  std::stable_sort(axes.begin(), axes.end(), larger);
  std::string text;
  for (const int axis : axes) {
    text += static_cast<char>('0' + axis);  // beyond axis 9 come ':', ';' and so on, all different
  }
  return text + '|' + merging;
}

bool layout_matches(const Form& form, const Layout& layout) {
  if (layout.c_order || form.c_order) {
    return layout.c_order == form.c_order;
  }
  for (int axis = 0; axis < form.ndim; ++axis) {
    const char found = stride_class(form.extents[axis], form.strides[axis], form.itemsize);
    if (found != layout.classes[axis]) {
      return false;
    }
  }
  return layout.order.empty() || order_text(form) == layout.order;
}

bool extents_match(const npy_intp* extents, const std::vector<npjit_int64>& wanted) {
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    const npjit_int64 extent = extents[axis];
    if (wanted[axis] >= 0 ? extent != wanted[axis]
                          : wanted[axis] == ArrayGuard::at_least_two && extent < 2) {
      return false;
    }
  }
  return true;
}

}  // namespace

int import_numpy() {
  import_array1(-1);
  pool_capsule = PyCapsule_New(&pool_handler, "mem_handler", nullptr);
  return pool_capsule != nullptr ? 0 : -1;
}

bool is_brain(int dtype) {
  if (dtype < NPY_USERDEF) {
    return false;
  }
  if (dtype == brain_dtype) {
    return true;
  }
  PyArray_Descr* descr = PyArray_DescrFromType(dtype);
  if (descr == nullptr) {
    PyErr_Clear();
    return false;
  }
  const char* name = std::strrchr(descr->typeobj->tp_name, '.');
  if (std::strcmp(name != nullptr ? name + 1 : descr->typeobj->tp_name, "bfloat16") == 0) {
    brain_dtype = dtype;
  }
  Py_DECREF(descr);
  return dtype == brain_dtype;
}

bool supports_dtype(int dtype) {
  return (dtype >= NPY_BOOL && dtype <= NPY_CDOUBLE && dtype != NPY_LONGDOUBLE) ||
         dtype == NPY_HALF || is_brain(dtype);
}

bool is_plain_array(PyObject* object) {
  if (!PyArray_CheckExact(object)) {
    return false;
  }
  PyArrayObject* array = as_array(object);
  if (!supports_dtype(PyArray_TYPE(array)) || !PyArray_ISBEHAVED_RO(array)) {
    return false;
  }
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
    if (PyArray_DIM(array, axis) > 1 &&
        PyArray_STRIDE(array, axis) % PyArray_ITEMSIZE(array) != 0) {
      return false;
    }
  }
  return true;
}

Layout layout_of(PyObject* object) {
  PyArrayObject* array = as_array(object);
  Layout layout;
  layout.c_order = PyArray_IS_C_CONTIGUOUS(array);
  if (layout.c_order) {
    return layout;
  }
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
    layout.classes += stride_class(PyArray_DIM(array, axis), PyArray_STRIDE(array, axis),
                                   PyArray_ITEMSIZE(array));
  }
  if (PyArray_NDIM(array) > 1) {
    layout.order = order_text(form_of(array));
  }
  return layout;
}

bool ArrayGuard::matches(PyObject* object) const {
  if (!PyArray_CheckExact(object)) {
    return false;
  }
  PyArrayObject* array = as_array(object);
  const int ndim = static_cast<int>(extents.size());
  if (PyArray_TYPE(array) != dtype || PyArray_NDIM(array) != ndim || !PyArray_ISBEHAVED_RO(array) ||
      (writeable && !PyArray_ISWRITEABLE(array))) {
    return false;
  }
  return extents_match(PyArray_DIMS(array), extents) && layout_matches(form_of(array), layout) &&
         (layout.c_order || is_plain_array(object));
}

bool ArrayGuard::matches(const SeenArray& seen) const {
  if (seen.dtype != dtype || seen.ndim != static_cast<int>(extents.size()) ||
      seen.device != device || !extents_match(seen.extents, extents)) {
    return false;
  }
  return layout_matches(form_of(seen), layout);
}

int array_dtype(PyObject* array) { return PyArray_TYPE(as_array(array)); }

int array_ndim(PyObject* array) { return PyArray_NDIM(as_array(array)); }

npjit_int64 array_extent(PyObject* array, int axis) { return PyArray_DIM(as_array(array), axis); }

npjit_int64 array_bytes(PyObject* array) { return PyArray_NBYTES(as_array(array)); }

char* array_data(PyObject* array) { return PyArray_BYTES(as_array(array)); }

npjit_int64* pack_array(PyObject* object, npjit_int64* words) {
  PyArrayObject* array = as_array(object);
  const int ndim = PyArray_NDIM(array);
  const npy_intp itemsize = PyArray_ITEMSIZE(array);
  *words++ = reinterpret_cast<npjit_int64>(PyArray_DATA(array));
  for (int axis = 0; axis < ndim; ++axis) {
    words[axis] = PyArray_DIM(array, axis);
    words[ndim + axis] = PyArray_STRIDE(array, axis) / itemsize;
  }
  return words + 2 * ndim;
}

npjit_int64* pack_array(const SeenArray& seen, npjit_int64* words) {
  *words++ = reinterpret_cast<npjit_int64>(seen.data);
  for (int axis = 0; axis < seen.ndim; ++axis) {
    words[axis] = seen.extents[axis];
    words[seen.ndim + axis] = seen.strides[axis] / seen.itemsize;
  }
  return words + 2 * seen.ndim;
}

bool arrays_overlap(PyObject* first, PyObject* second) {
  char* low[2];
  char* high[2];
  PyObject* const pair[2] = {first, second};
  for (int k = 0; k < 2; ++k) {
    SeenArray seen;
    const bool on_device = see_array(pair[k], seen);
    const Form form = on_device ? form_of(seen) : form_of(as_array(pair[k]));
    low[k] = on_device ? seen.data : array_data(pair[k]);
    high[k] = low[k] + form.itemsize;
    for (int axis = 0; axis < form.ndim; ++axis) {
      if (form.extents[axis] == 0) {
        return false;
      }
      const npy_intp reach = (form.extents[axis] - 1) * form.strides[axis];
      (reach < 0 ? low[k] : high[k]) += reach;
    }
  }
  return low[0] < high[1] && low[1] < high[0];
}

PyObject* fresh_array(int dtype, int ndim, const npjit_int64* extents, const int* order) {
  PyArray_Descr* descr = PyArray_DescrFromType(dtype);
  npy_intp shape[max_axes];
  npy_intp strides[max_axes];
  std::copy(extents, extents + ndim, shape);
  npy_intp bytes = PyDataType_ELSIZE(descr);
  bool empty = false;
  for (int place = ndim - 1; place >= 0; --place) {
    const int axis = order != nullptr ? order[place] : place;
    strides[axis] = bytes;
    empty = empty || shape[axis] == 0;
    if (shape[axis] < 0 ||
        __builtin_mul_overflow(bytes, std::max<npy_intp>(shape[axis], 1), &bytes)) {
      Py_DECREF(descr);
      PyErr_SetString(PyExc_ValueError,
                      shape[axis] < 0 ? "negative dimensions are not allowed" : "array is too big");
      return nullptr;
    }
  }
  if (bytes < pooled_from || empty) {
    return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape,
                                order != nullptr ? strides : nullptr, nullptr, 0, nullptr);
  }
  void* memory = pool::allocate(bytes);
  if (memory == nullptr) {
    Py_DECREF(descr);
    return PyErr_NoMemory();
  }
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, memory,
                                         NPY_ARRAY_WRITEABLE, nullptr);
  if (array == nullptr) {
    pool::release(memory);
    return nullptr;
  }
  Py_INCREF(pool_capsule);
  reinterpret_cast<PyArrayObject_fields*>(array)->mem_handler = pool_capsule;
  PyArray_ENABLEFLAGS(as_array(array), NPY_ARRAY_OWNDATA);
  return array;
}

PyObject* view_of(PyObject* base, int dtype, int ndim, bool writeable,
                  const npjit_int64* description) {
  PyArray_Descr* descr = PyArray_DescrFromType(dtype);
  const npy_intp itemsize = PyDataType_ELSIZE(descr);
  npy_intp shape[max_axes];
  npy_intp strides[max_axes];
  for (int axis = 0; axis < ndim; ++axis) {
    shape[axis] = description[1 + axis];
    strides[axis] = description[1 + ndim + axis] * itemsize;
  }
  const int flags = writeable ? PyArray_FLAGS(as_array(base)) & NPY_ARRAY_WRITEABLE : 0;
  PyObject* view =
      PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides,
                           array_data(base) + description[0] * itemsize, flags, nullptr);
  if (view == nullptr) {
    return nullptr;
  }
  Py_INCREF(base);
  if (PyArray_SetBaseObject(as_array(view), base) < 0) {
    Py_DECREF(view);
    return nullptr;
  }
  return view;
}

PyObject* array_over(const npjit_array& memory, bool writeable) {
  PyArray_Descr* descr = PyArray_DescrFromType(memory.dtype < 0 ? brain_dtype : memory.dtype);
  const npy_intp itemsize = PyDataType_ELSIZE(descr);
  npy_intp shape[max_axes];
  npy_intp strides[max_axes];
  for (int axis = 0; axis < memory.ndim; ++axis) {
    shape[axis] = memory.shape[axis];
    strides[axis] = memory.strides[axis] * itemsize;
  }
  const int flags = NPY_ARRAY_ALIGNED | (writeable ? NPY_ARRAY_WRITEABLE : 0);
  return PyArray_NewFromDescr(&PyArray_Type, descr, memory.ndim, shape, strides, memory.data, flags,
                              nullptr);
}

}  // namespace npjit
