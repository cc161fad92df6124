// How the results of a call are put together: tuples, lists, dicts, named tuples, dataclasses.
//
//     {"loss": leaf 0, "parts": (leaf 1, constant None)}
#ifndef NPJIT_TREE_H
#define NPJIT_TREE_H
#include <Python.h>

#include <vector>

namespace npjit {

enum class Branch : unsigned char {
  leaf,      // output `index`
  constant,  // `object`
  step,      // the object of step `index`
  tuple,
  list,
  named_tuple,  // of class `object`
  applied,      // what the function `object` gives for the children
  dict,         // of class `object` with the keys `names`
  dataclass,    // of class `object`, made without __init__; attributes `names`
};

// References are borrowed from the tree that the entry keeps.
struct Tree {
  Branch branch = Branch::leaf;
  int index = 0;
  PyObject* object = nullptr;
  PyObject* names = nullptr;
  std::vector<Tree> children;
};

// A new reference, or null with an exception set.
PyObject* assemble(const Tree& tree, PyObject* const* outputs, PyObject* const* steps);

}  // namespace npjit
#endif
