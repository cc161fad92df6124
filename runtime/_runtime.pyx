# cython: language_level=3, boundscheck=False, wraparound=False
"""The runtime under npjit's compiled functions; imports nothing of npjit.

In: shared objects with compiled graphs (abi.h) and, per compiled version of a function, an `Entry`
with its guards. Out: results as NumPy would have given them. A `Dispatcher` is the callable:

    native = NativeObject("softmax.so")
    dispatcher = Dispatcher(miss=trace_compile_and_run, original=softmax)
    dispatcher.add(Entry(mode="whole", npositional=1, kwnames=(), native=native, ...))
    y = dispatcher(x)

Also here: the memory pool, the threads and NumPy's BLAS that compiled code uses.
"""

import math
import opcode
import operator
import os
import sys
import threading
import types
import warnings
import weakref

import cython
import numpy

include "declarations.pxi"
include "services.pxi"
include "device.pxi"
include "entry.pxi"
include "dispatcher.pxi"
include "states.pxi"
include "recorder.pxi"
include "lazy.pxi"
include "values.pxi"


def _follow_main_thread() -> None:
    set_main_thread(threading.main_thread().ident)


def _warn_of_thread_setting() -> None:
    wanted = os.environ.get("NPJIT_NUM_THREADS")
    if wanted is not None and not (wanted.isdecimal() and int(wanted) > 0):
        warnings.warn(f"NPJIT_NUM_THREADS is no positive number: {wanted!r}", RuntimeWarning)


import_numpy()
_follow_main_thread()
_warn_of_thread_setting()
os.register_at_fork(after_in_child=_follow_main_thread)
