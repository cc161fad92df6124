#include "tree.h"

namespace npjit {
namespace {

PyObject* make_tuple(const Tree& tree, PyObject* const* outputs, PyObject* const* steps) {
  const auto length = static_cast<Py_ssize_t>(tree.children.size());
  PyObject* tuple = PyTuple_New(length);
  for (Py_ssize_t i = 0; tuple != nullptr && i < length; ++i) {
    PyObject* item = assemble(tree.children[i], outputs, steps);
    if (item == nullptr) {
      Py_CLEAR(tuple);
    } else {
      PyTuple_SET_ITEM(tuple, i, item);
    }
  }
  return tuple;
}

// A named tuple is made as its own _make does, whatever __new__ its class may have.
PyObject* make_named_tuple(PyObject* type, PyObject* items) {
  PyObject* arguments = PyTuple_Pack(1, items);
  if (arguments == nullptr) {
    return nullptr;
  }
  PyObject* result = PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(type), arguments, nullptr);
  Py_DECREF(arguments);
  return result;
}

PyObject* make_dict(const Tree& tree, PyObject* items) {
  PyObject* dict = PyObject_CallNoArgs(tree.object);
  for (Py_ssize_t i = 0; dict != nullptr && i < PyTuple_GET_SIZE(items); ++i) {
    PyObject* key = PyTuple_GET_ITEM(tree.names, i);
    if (PyObject_SetItem(dict, key, PyTuple_GET_ITEM(items, i)) < 0) {
      Py_CLEAR(dict);
    }
  }
  return dict;
}

// object.__setattr__ also fills frozen dataclasses.
PyObject* make_dataclass(const Tree& tree, PyObject* items) {
  auto* type = reinterpret_cast<PyTypeObject*>(tree.object);
  PyObject* none = PyTuple_New(0);
  PyObject* instance = none != nullptr ? PyBaseObject_Type.tp_new(type, none, nullptr) : nullptr;
  Py_XDECREF(none);
  for (Py_ssize_t i = 0; instance != nullptr && i < PyTuple_GET_SIZE(items); ++i) {
    PyObject* name = PyTuple_GET_ITEM(tree.names, i);
    if (PyObject_GenericSetAttr(instance, name, PyTuple_GET_ITEM(items, i)) < 0) {
      Py_CLEAR(instance);
    }
  }
  return instance;
}

PyObject* make_container(const Tree& tree, PyObject* items) {
  switch (tree.branch) {
    case Branch::list:
      return PySequence_List(items);
    case Branch::applied:
      return PyObject_CallObject(tree.object, items);
    case Branch::named_tuple:
      return make_named_tuple(tree.object, items);
    case Branch::dict:
      return make_dict(tree, items);
    case Branch::dataclass:
      return make_dataclass(tree, items);
    default:
      return Py_NewRef(items);
  }
}

}  // namespace

PyObject* assemble(const Tree& tree, PyObject* const* outputs, PyObject* const* steps) {
  switch (tree.branch) {
    case Branch::leaf:
      return Py_NewRef(outputs[tree.index]);
    case Branch::constant:
      return Py_NewRef(tree.object);
    case Branch::step:
      return Py_NewRef(steps[tree.index]);
    default:
      break;
  }
  PyObject* items = make_tuple(tree, outputs, steps);
  if (items == nullptr) {
    return nullptr;
  }
  PyObject* result = make_container(tree, items);
  Py_DECREF(items);
  return result;
}

}  // namespace npjit
