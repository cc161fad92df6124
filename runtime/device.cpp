#include "device.h"

#include <algorithm>

#include "numpy_api.h"
#include "scalar.h"

namespace npjit {
namespace {

constexpr const char* stream_signature = "intptr_t (void)";

PyTypeObject* device_type = nullptr;
ArrayFields fields;
PyObject* stream_callable = nullptr;
Py_intptr_t (*stream_function)() = nullptr;

struct Names {
  PyObject* data = PyUnicode_InternFromString("data");
  PyObject* ptr = PyUnicode_InternFromString("ptr");
  PyObject* device_id = PyUnicode_InternFromString("device_id");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* strides = PyUnicode_InternFromString("strides");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
};

const Names& names() {
  static const Names made;
  return made;
}

// -1 with an exception set when the attribute is no integer.
npjit_int64 integer_attribute(PyObject* object, PyObject* name) {
  PyObject* value = object != nullptr ? PyObject_GetAttr(object, name) : nullptr;
  const npjit_int64 found = value != nullptr ? PyLong_AsLongLong(value) : -1;
  Py_XDECREF(value);
  return found;
}

// The number of integers in a tuple that is an attribute; -1 with an exception set.
int integers_attribute(PyObject* object, PyObject* name, Py_ssize_t* values) {
  PyObject* tuple = PyObject_GetAttr(object, name);
  if (tuple == nullptr) {
    return -1;
  }
  const Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : -1;
  for (Py_ssize_t i = 0; i < count && count <= max_axes; ++i) {
    values[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
  }
  Py_DECREF(tuple);
  return count <= max_axes && PyErr_Occurred() == nullptr ? static_cast<int>(count) : -1;
}

bool see_dtype(PyObject* dtype, SeenArray& seen) {
  const bool found = dtype != nullptr && PyArray_DescrCheck(dtype);
  if (found) {
    PyArray_Descr* descr = reinterpret_cast<PyArray_Descr*>(dtype);
    seen.dtype = descr->type_num;
    seen.itemsize = PyDataType_ELSIZE(descr);
    seen.alignment = PyDataType_ALIGNMENT(descr);
  }
  return found && supports_dtype(seen.dtype);
}

bool see_attributes(PyObject* object, SeenArray& seen) {
  PyObject* dtype = PyObject_GetAttr(object, names().dtype);
  const bool known = see_dtype(dtype, seen);
  Py_XDECREF(dtype);
  if (!known) {
    return false;
  }
  PyObject* memory = PyObject_GetAttr(object, names().data);
  const npjit_int64 address = integer_attribute(memory, names().ptr);
  seen.data = reinterpret_cast<char*>(address);
  seen.device = static_cast<int>(integer_attribute(memory, names().device_id));
  Py_XDECREF(memory);
  if (PyErr_Occurred() != nullptr) {
    return false;
  }
  seen.ndim = integers_attribute(object, names().shape, seen.extents);
  return seen.ndim >= 0 && integers_attribute(object, names().strides, seen.strides) == seen.ndim;
}

// What lies so many bytes behind an object's beginning.
template <class Value>
const Value& field(PyObject* object, Py_ssize_t place) {
  return *reinterpret_cast<const Value*>(reinterpret_cast<const char*>(object) + place);
}

// The object that has an array's address, borrowed; null where the fields are not known.
PyObject* pointer_field(PyObject* array) {
  if (fields.pointer == nullptr) {
    return nullptr;
  }
  PyObject* pointer = field<PyObject*>(array, fields.data);
  const bool is_known = reinterpret_cast<PyObject*>(Py_TYPE(pointer)) == fields.pointer;
  return is_known ? pointer : nullptr;
}

bool see_fields(PyObject* object, PyObject* pointer, SeenArray& seen) {
  const auto& shape = field<std::vector<Py_ssize_t>>(object, fields.shape);
  const auto& strides = field<std::vector<Py_ssize_t>>(object, fields.strides);
  if (shape.size() > max_axes || strides.size() != shape.size() ||
      !see_dtype(field<PyObject*>(object, fields.dtype), seen)) {
    return false;
  }
  seen.data = field<char*>(pointer, fields.ptr);
  seen.device = field<int>(pointer, fields.device_id);
  seen.ndim = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), seen.extents);
  std::copy(strides.begin(), strides.end(), seen.strides);
  return true;
}

bool see(PyObject* object, SeenArray& seen) {
  PyObject* pointer = pointer_field(object);
  if (!(pointer != nullptr ? see_fields(object, pointer, seen) : see_attributes(object, seen))) {
    return false;
  }
  for (int axis = 0; axis < seen.ndim; ++axis) {
    if (seen.extents[axis] > 1 && seen.strides[axis] % seen.itemsize != 0) {
      return false;
    }
  }
  return reinterpret_cast<npjit_int64>(seen.data) % seen.alignment == 0;
}

}  // namespace

void set_device_interface(PyObject* type, PyObject* stream, const ArrayFields& known) {
  Py_INCREF(type);
  Py_INCREF(stream);
  Py_XINCREF(known.pointer);
  Py_XDECREF(reinterpret_cast<PyObject*>(device_type));
  Py_XDECREF(stream_callable);
  Py_XDECREF(fields.pointer);
  device_type = reinterpret_cast<PyTypeObject*>(type);
  fields = known;
  stream_callable = stream;
  stream_function =
      PyCapsule_IsValid(stream, stream_signature) != 0
          ? reinterpret_cast<Py_intptr_t (*)()>(PyCapsule_GetPointer(stream, stream_signature))
          : nullptr;
}

bool is_device_array(PyObject* object) {
  return device_type != nullptr && Py_TYPE(object) == device_type;
}

bool see_array(PyObject* object, SeenArray& seen) {
  if (!is_device_array(object)) {
    return false;
  }
  const bool seen_whole = see(object, seen);
  PyErr_Clear();
  return seen_whole;
}

PyObject* header_of(PyObject* object) {
  SeenArray seen;
  if (!see_array(object, seen)) {
    Py_RETURN_NONE;
  }
  // an empty array may have no address, and NumPy would allocate one
  static char nowhere[largest_scalar];
  char* data = seen.data != nullptr ? seen.data : nowhere;
  PyObject* header = PyArray_New(&PyArray_Type, seen.ndim, seen.extents, seen.dtype, seen.strides,
                                 data, 0, NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE, nullptr);
  if (header == nullptr) {
    return nullptr;
  }
  Py_INCREF(object);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(header), object) < 0) {
    Py_DECREF(header);
    return nullptr;
  }
  return Py_BuildValue("Ni", header, seen.device);
}

npjit_int64 device_address(PyObject* array) {
  PyObject* pointer = is_device_array(array) ? pointer_field(array) : nullptr;
  if (pointer != nullptr) {
    return field<npjit_int64>(pointer, fields.ptr);
  }
  PyObject* memory = PyObject_GetAttr(array, names().data);
  const npjit_int64 address = integer_attribute(memory, names().ptr);
  Py_XDECREF(memory);
  return address;
}

bool makes_arrays(PyObject* make) {
  return fields.create != nullptr && make == reinterpret_cast<PyObject*>(device_type);
}

PyObject* new_array(const std::vector<Py_ssize_t>& extents, PyObject* dtype) {
  return fields.create(reinterpret_cast<PyObject*>(device_type), extents, dtype, Py_None);
}

bool has_extents(PyObject* array, const std::vector<Py_ssize_t>& extents) {
  if (is_device_array(array) && pointer_field(array) != nullptr) {
    return field<std::vector<Py_ssize_t>>(array, fields.shape) == extents;
  }
  Py_ssize_t found[max_axes];
  const int count = integers_attribute(array, names().shape, found);
  PyErr_Clear();
  return count >= 0 && std::equal(extents.begin(), extents.end(), found, found + count);
}

npjit_int64 memory_address(PyObject* memory) { return integer_attribute(memory, names().ptr); }

bool current_stream(void** stream) {
  if (stream_function != nullptr) {
    *stream = reinterpret_cast<void*>(stream_function());
    return true;
  }
  if (stream_callable == nullptr) {
    *stream = nullptr;
    return true;
  }
  PyObject* found = PyObject_CallNoArgs(stream_callable);
  const npjit_int64 handle = found != nullptr ? PyLong_AsLongLong(found) : -1;
  Py_XDECREF(found);
  *stream = reinterpret_cast<void*>(handle);
  return PyErr_Occurred() == nullptr;
}

}  // namespace npjit
