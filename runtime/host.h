// Host steps: what a compiled graph has Python compute.
#ifndef NPJIT_HOST_H
#define NPJIT_HOST_H
#include <Python.h>

#include "abi.h"

namespace npjit {

// The Python callable that host steps go to: called with (spec, list of arguments, list of results); keeps a reference.
void set_host(PyObject* callable);

// npjit_api::host. May be called with or without the GIL.
int call_host(const char* spec, const npjit_array* arrays, int arguments, int results, int check);

}  // namespace npjit
#endif
