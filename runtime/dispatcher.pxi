"""Dispatcher: the compiled callable around a user's function."""


cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(PyObject*, PyObject**, size_t, PyObject*)
    ctypedef struct TypeObject "PyTypeObject":
        unsigned long tp_flags
        Py_ssize_t tp_vectorcall_offset
    object PyObject_Vectorcall(object function, PyObject** args, size_t nargsf, PyObject* names)
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf)
    PyObject** PySequence_Fast_ITEMS(object sequence)
    object PyMethod_New(object function, object instance)
    int PyContextVar_Get(object variable, PyObject* default, PyObject** value) except -1
    void PyType_Modified(type cls)
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    unsigned long Py_TPFLAGS_METHOD_DESCRIPTOR
    void Py_INCREF(object value)
    void Py_DECREF(PyObject* value)
    void Py_XDECREF(PyObject* value)


cdef int BROKEN_MODE = MODES.index("broken")
cdef int NUMPY_MODE = MODES.index("numpy")

# Calls that compiled code has answered, of all dispatchers.
cdef long long compiled_answers = 0

# Results whose parts run only when they are asked for; such a call counts as broken.
cdef tuple LATER = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)

# NumPy keeps what np.errstate and np.seterr say in one immutable object per setting.
cdef object error_settings = numpy._core.umath._extobj_contextvar
cdef object harmless_settings = None


cdef bint floating_errors_matter() except -1:
    """True when NumPy is to raise, call, print or log on a floating-point error in this thread."""
    global harmless_settings
    cdef PyObject* value = NULL
    PyContextVar_Get(error_settings, NULL, &value)
    cdef bint known = value == <PyObject*>harmless_settings
    if not known and value != NULL:
        if not set(numpy.geterr().values()) <= {"ignore", "warn"}:
            Py_DECREF(value)
            return True
        harmless_settings = <object>value
    Py_XDECREF(value)
    return False


class NoMatch(LookupError):
    """An entry was to answer a call that its guards refuse (a user's LookupError is none)."""


cdef class Dispatcher:
    """Answers a call by the first entry that matches it, the last one used first.

    miss      called with (args, kwargs) of a call that no entry matches; its result is the call's
    original  the user's function: answers when np.errstate is to raise, call, print or log, when a
              check fails at run time, and for entries that have nothing else to run
    broken    the function cut into compiled parts, or None: answers for entries of mode "broken";
              a call in which no part ran compiled counts as "numpy"

    A method when found on a class, like a function. Has a __dict__, and can be subclassed.
    """

    cdef vectorcallfunc _vectorcall
    cdef tuple _entries
    cdef Entry _recent
    cdef long long _counts[3]
    cdef public object miss
    cdef public object broken
    cdef readonly object original
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, *args, **kwargs):
        self._vectorcall = <vectorcallfunc>_vectorcall
        self._entries = ()
        _speed_up(type(self))

    def __init__(self, miss, original):
        self.miss = miss
        self.original = original

    def __call__(self, *args, **kwargs):
        stack = args + tuple(kwargs.values())
        names = tuple(kwargs)
        return dispatch(self, PySequence_Fast_ITEMS(stack), len(args), <PyObject*>names)

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def entries(self) -> tuple:
        return self._entries

    def add(self, Entry entry not None) -> None:
        """Put an entry before the others; calls under way go on with those they began with."""
        self._entries = (entry, *self._entries)
        self._recent = entry

    def remove(self, Entry entry not None) -> None:
        self._entries = tuple([other for other in self._entries if other is not entry])
        self._recent = None

    def clear(self) -> None:
        self._entries = ()
        self._recent = None

    def count(self, mode: str) -> None:
        """Count a call that was answered outside, by `miss` say."""
        self._counts[MODES.index(mode)] += 1

    def counts(self) -> dict:
        """Calls answered so far, by the mode of what answered them."""
        return {mode: self._counts[place] for place, mode in enumerate(MODES)}

    def run(self, Entry entry not None, args: tuple, kwargs: dict) -> object:
        """Answer a call by this entry; NoMatch if it does not match."""
        cdef PyObject* result
        stack = args + tuple(kwargs.values())
        names = tuple(kwargs)
        result = attempt(
            self, entry, PySequence_Fast_ITEMS(stack), len(args), <PyObject*>names
        )
        if result == NULL:
            reason = self._first_failure(entry, args, kwargs)
            raise NoMatch(f"the entry does not match the call (first failure: {reason})")
        return _owned(result)

    def explain_miss(self, args: tuple, kwargs: dict) -> list:
        """Per entry what fails first: the number of a step, or "arguments" (their number or
        names), "overlap" (the memory of inputs), "sizes" (a guard in the native code); None if it
        matches."""
        return [self._first_failure(entry, args, kwargs) for entry in self._entries]

    cdef object _first_failure(self, Entry entry, tuple args, dict kwargs):
        cdef int detail = 0
        cdef Call call
        stack = args + tuple(kwargs.values())
        names = tuple(kwargs)
        call.arguments = PySequence_Fast_ITEMS(stack)
        call.positional = len(args)
        call.names = <PyObject*>names
        outcome = probe(entry._compiled, call, &detail)
        if outcome == Outcome.raised:
            _raise_pending()
        if outcome == Outcome.done:
            return None
        reasons = {call_shape: "arguments", memory_overlap: "overlap", size_guard: "sizes"}
        return reasons.get(detail, detail)


cdef PyObject* attempt(
    Dispatcher self, Entry entry, PyObject** args, size_t nargsf, PyObject* names
) except? NULL:
    """The answer by this entry, a new reference; NULL without an exception if it does not match."""
    global compiled_answers
    cdef PyObject* result = NULL
    cdef int detail = 0
    cdef Call call
    call.arguments = args
    call.positional = PyVectorcall_NARGS(nargsf)
    call.names = names
    cdef Outcome outcome = execute(entry._compiled, call, &result, &detail)
    if outcome == Outcome.no_match:
        return NULL
    if outcome == Outcome.done or outcome == Outcome.raised:
        compiled_answers += 1
        self._counts[entry._mode] += 1
        return result
    if entry._mode == BROKEN_MODE and self.broken is not None:
        return _released(in_parts(self, args, nargsf, names))
    self._counts[NUMPY_MODE] += 1
    if entry.on_failure is not None:
        return _released(PyObject_Vectorcall(entry.on_failure, args, nargsf, names))
    return _released(PyObject_Vectorcall(self.original, args, nargsf, names))


cdef object in_parts(Dispatcher self, PyObject** args, size_t nargsf, PyObject* names):
    """The answer of the function cut into parts."""
    cdef long long before = compiled_answers
    cdef bint compiled = False
    try:
        result = PyObject_Vectorcall(self.broken, args, nargsf, names)
        compiled = isinstance(result, LATER)
        return result
    finally:
        compiled = compiled or compiled_answers != before
        self._counts[BROKEN_MODE if compiled else NUMPY_MODE] += 1


cdef object dispatch(Dispatcher self, PyObject** args, size_t nargsf, PyObject* names):
    cdef PyObject* result
    cdef Entry recent = self._recent
    cdef Entry entry
    if floating_errors_matter():
        self._counts[NUMPY_MODE] += 1
        return PyObject_Vectorcall(self.original, args, nargsf, names)
    if recent is not None:
        result = attempt(self, recent, args, nargsf, names)
        if result != NULL:
            return _owned(result)
    for entry in self._entries:
        if entry is recent:
            continue
        result = attempt(self, entry, args, nargsf, names)
        if result != NULL:
            self._recent = entry
            return _owned(result)
    return _miss(self, args, nargsf, names)


cdef object _miss(Dispatcher self, PyObject** args, size_t nargsf, PyObject* names):
    cdef Py_ssize_t positional = PyVectorcall_NARGS(nargsf)
    cdef Py_ssize_t place
    keywords = () if names == NULL else <object>names
    positionals = tuple([<object>args[place] for place in range(positional)])
    values = [<object>args[positional + place] for place in range(len(keywords))]
    return self.miss(positionals, dict(zip(keywords, values)))


cdef object _vectorcall(PyObject* callee, PyObject** args, size_t nargsf, PyObject* names):
    return dispatch(<Dispatcher>callee, args, nargsf, names)


cdef object _owned(PyObject* result):
    """The reference that `result` is, as Cython counts it."""
    value = <object>result
    Py_DECREF(result)
    return value


cdef PyObject* _released(object value):
    Py_INCREF(value)
    return <PyObject*>value


cdef int _raise_pending() except -1:
    return -1


cdef int _speed_up(cls) except -1:
    """Tell CPython that instances take vectorcalls and bind like functions. CPython 3.11 does not
    let a class inherit either, and Cython cannot declare it."""
    cdef TypeObject* type_object = <TypeObject*>cls
    if type_object.tp_flags & Py_TPFLAGS_HAVE_VECTORCALL:
        return 0
    if cls.__call__ is Dispatcher.__call__:
        type_object.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
    if cls.__get__ is Dispatcher.__get__:
        type_object.tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR
    PyType_Modified(cls)
    return 0


cdef int _enable_vectorcall() except -1:
    cdef Dispatcher sample = Dispatcher(None, None)
    cdef TypeObject* type_object = <TypeObject*>Dispatcher
    type_object.tp_vectorcall_offset = <char*>&sample._vectorcall - <char*><PyObject*>sample
    return 0


_enable_vectorcall()
