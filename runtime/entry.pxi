"""Entry: tuples from Python in, the C++ form of guards, inputs and results out."""

MODES = ("whole", "broken", "numpy")

# Values that may change under a guard that holds on to them.
_MUTABLE = (list, dict, set, bytearray, numpy.ndarray)


@cython.no_gc_clear
cdef class Entry:
    """One way to answer calls of a function: guards to match, then native code, a callable, or
    (neither given) the user's own function.

    mode           "whole", "broken" or "numpy": what calls answered by this entry count as
    npositional    number of positional arguments of the calls it answers
    kwnames        their keywords, in the order of the call
    steps          ((fetch, check), ...), see below
    native         NativeObject to run
    call           or a callable: list of the input objects -> list with one object per output that
                   is not of kind "input", each as the caller is to see it; None if a check fails
    device         DevicePlan beside `call`, which then answers what it cannot
    fits           beside `call`: the same list -> whether its sizes pass the graph's guards
    inputs         numbers of the steps whose objects are the inputs, in order
    outputs        ("array", dtype, ndim, perm or None) | ("npscalar", dtype) | ("python", "fibc")
                   | ("alias", input, dtype, ndim, writeable) | ("input", input)
                   | ("device", result of the device plan)
    tree           ("leaf", output) | ("const", obj) | ("step", number) | ("tuple" | "list", trees)
                   | ("namedtuple", cls, trees) | ("dict", cls, keys, trees)
                   | ("applied", function, trees)
                   | ("dataclass", cls, names, trees)
    disjoint       pairs of inputs whose memory must not overlap, and ("same", i, j) for inputs that
                   must be one array
    on_failure     answers calls that compiled code does not, a failed check's say, in place of the
                   user's function
    release_gil_words  the GIL is released when arrays and arena hold at least so many 8-byte words

    fetch: ("arg", i) | ("kw", name) | ("root", obj) | ("attr", step, name) | ("item", step, key)
           | ("global", dict, name) | ("cell", cell) | ("defaults", function, i)
           | ("kwdefaults", function, name)
    check: ("any",) | ("absent",) | ("is", obj) | ("equal", value) | ("type", cls)
           | ("seq", cls, length) | ("dict", cls, keys)
           | ("array", dtype, ndim, extents, layout, writeable)
           | ("device", dtype, ndim, extents, layout, the GPU's number)
           | ("scalar", "f" | "i" | "b" | "c") | ("npscalar", dtype)
    Extents: exact, or -1 for two or more, or -2 for any. Layout: as describe_array gives it;
    without its order text, any order and any merging of axes will do.
    """

    cdef CompiledEntry _compiled
    cdef list _kept
    cdef int _mode
    cdef readonly object native
    cdef readonly object call
    cdef readonly DevicePlan device
    cdef public object on_failure

    def __init__(
        self,
        *,
        mode,
        npositional,
        kwnames,
        steps,
        inputs,
        outputs,
        tree,
        native=None,
        call=None,
        device=None,
        fits=None,
        disjoint=(),
        on_failure=None,
        release_gil_words=4096,
    ):
        if native is not None and (call is not None or not isinstance(native, NativeObject)):
            raise TypeError("an entry runs a NativeObject, or a callable, or neither")
        self._kept = []
        self._mode = MODES.index(mode)
        self.native = native
        self.call = call
        self.on_failure = on_failure
        names = tuple([sys.intern(name) for name in kwnames])
        self._compiled.positional = npositional
        self._compiled.names = self._keep(names)
        self._compiled.release_bytes = 8 * release_gil_words
        for fetch, check in steps:
            self._add_step(fetch, check, names)
        for number in inputs:
            self._add_input(number)
        for relation in disjoint:
            self._add_relation(relation)
        for output in outputs:
            self._add_output(output)
        self._fill_tree(self._compiled.tree, tree)
        if native is not None:
            self._compiled.native = (<NativeObject>native)._object.functions
        elif call is not None:
            self._compiled.callable = <PyObject*>call
            if fits is not None:
                self._compiled.fits = self._keep(fits)
            if device is not None:
                self.device = device
                self._compiled.device = &self.device._parts
        count_words(self._compiled)

    @property
    def mode(self) -> str:
        return MODES[self._mode]

    cdef PyObject* _keep(self, object value):
        self._kept.append(value)
        return <PyObject*>value

    cdef int _add_step(self, tuple fetch, tuple check, tuple names) except -1:
        cdef Step step
        try:
            self._fill_fetch(step, fetch, names)
            self._fill_check(step, check)
        except (IndexError, KeyError) as error:
            raise ValueError(f"not a step: {fetch!r}, {check!r}") from error
        self._compiled.steps.push_back(step)
        return 0

    cdef int _fill_fetch(self, Step& step, tuple fetch, tuple names) except -1:
        kind = fetch[0]
        if kind == "arg":
            step.fetch = Fetch.argument
            step.index = _number(fetch[1], self._compiled.positional, "argument")
        elif kind == "kw":
            step.fetch = Fetch.argument
            step.index = self._compiled.positional + names.index(fetch[1])
        elif kind in ("attr", "item"):
            step.fetch = Fetch.attribute if kind == "attr" else Fetch.item
            step.index = _number(fetch[1], self._compiled.steps.size(), "earlier step")
            step.key = self._keep(sys.intern(fetch[2]) if kind == "attr" else fetch[2])
            if kind == "item" and type(fetch[2]) is int:
                step.indexed = True
                step.position = fetch[2]
        elif kind in ("defaults", "kwdefaults"):
            if not isinstance(fetch[1], types.FunctionType):
                raise TypeError(f"only functions have defaults, not {fetch[1]!r}")
            step.fetch = Fetch.defaults if kind == "defaults" else Fetch.kwdefaults
            step.source = self._keep(fetch[1])
            if kind == "defaults":
                step.position = _number(fetch[2], sys.maxsize, "default")
            else:
                step.key = self._keep(sys.intern(fetch[2]))
        else:
            fetches = {"root": object, "global": dict, "cell": types.CellType}
            if not isinstance(fetch[1], fetches[kind]):
                raise TypeError(f"{kind!r} cannot fetch from {fetch[1]!r}")
            step.source = self._keep(fetch[1])
            if kind == "root":
                step.fetch = Fetch.root
            elif kind == "cell":
                step.fetch = Fetch.cell
            else:
                step.fetch = Fetch.global_name
                step.key = self._keep(sys.intern(fetch[2]))
        return 0

    cdef int _fill_check(self, Step& step, tuple check) except -1:
        kind = check[0]
        if kind == "any":
            step.check = Check.anything
        elif kind == "absent":
            step.check = Check.absent
        elif kind == "is":
            step.check = Check.identity
            step.expected = self._keep(check[1])
        elif kind == "equal":
            _refuse_mutable(check[1])
            step.check = Check.equal
            step.expected = self._keep(check[1])
        elif kind == "type":
            step.check = Check.exact_type
            step.expected = self._keep(check[1])
        elif kind == "seq":
            step.check = Check.sequence
            step.expected = self._keep(check[1])
            step.length = check[2]
        elif kind == "dict":
            step.check = Check.mapping
            step.expected = self._keep(check[1])
            step.keys = self._keep(tuple(check[2]))
        elif kind == "scalar":
            step.check = Check.python_scalar
            step.kind = _python_kind(check[1])
        elif kind == "npscalar":
            step.check = Check.numpy_scalar
            step.dtype = _dtype_number(check[1])
            step.expected = scalar_type(step.dtype)
        elif kind == "array":
            step.check = Check.array
            _fill_array(step.array, check[1], check[2], check[3], check[4], check[5])
        elif kind == "device":
            step.check = Check.device_array
            step.array.device = check[5]
            _fill_array(step.array, check[1], check[2], check[3], check[4], False)
        else:
            raise KeyError(kind)
        return 0

    cdef int _add_input(self, object number) except -1:
        cdef int place = _number(number, self._compiled.steps.size(), "step")
        cdef Check check = self._compiled.steps[place].check
        scalars = (Check.python_scalar, Check.numpy_scalar)
        if check not in (Check.array, Check.device_array, *scalars):
            raise ValueError(f"input step {place} is checked as neither array nor scalar")
        self._compiled.inputs.push_back(place)
        return 0

    cdef int _array_input(self, object number) except -1:
        cdef int place = _number(number, self._compiled.inputs.size(), "input")
        cdef Check check = self._compiled.steps[self._compiled.inputs[place]].check
        if check != Check.array and check != Check.device_array:
            raise ValueError(f"input {place} is no array")
        return place

    cdef int _add_relation(self, tuple pair) except -1:
        cdef Relation relation
        relation.same = pair[0] == "same"
        first, second = pair[1:] if relation.same else pair
        relation.first = self._array_input(first)
        relation.second = self._array_input(second)
        self._compiled.relations.push_back(relation)
        return 0

    cdef int _add_output(self, tuple spec) except -1:
        cdef Output output
        kind = spec[0]
        if kind == "array":
            _, dtype, ndim, order = spec
            output.result = Result.array
            output.dtype = _dtype_number(dtype)
            output.ndim = _number(ndim, 65, "ndim")
            if order is not None:
                if sorted(order) != list(range(ndim)):
                    raise ValueError(f"{order!r} is no order of {ndim} axes")
                output.order = order
        elif kind == "npscalar":
            output.result = Result.numpy_scalar
            output.dtype = _dtype_number(spec[1])
        elif kind == "python":
            output.result = Result.python_scalar
            output.kind = _python_kind(spec[1])
        elif kind == "alias":
            _, number, dtype, ndim, writeable = spec
            output.result = Result.alias
            output.writeable = writeable
            output.input = self._array_input(number)
            output.dtype = _dtype_number(dtype)
            output.ndim = _number(ndim, 65, "ndim")
        elif kind == "device":
            output.result = Result.device
            output.input = _number(spec[1], 2**31, "result")
        elif kind == "input":
            output.result = Result.input
            output.input = _number(spec[1], self._compiled.inputs.size(), "input")
        else:
            raise ValueError(f"not an output: {spec!r}")
        self._compiled.outputs.push_back(output)
        return 0

    cdef int _fill_tree(self, Tree& tree, tuple spec) except -1:
        kind = spec[0]
        children = ()
        if kind == "leaf":
            tree.branch = Branch.leaf
            tree.index = _number(spec[1], self._compiled.outputs.size(), "output")
        elif kind == "const":
            tree.branch = Branch.constant
            tree.object = self._keep(spec[1])
        elif kind == "step":
            tree.branch = Branch.step
            tree.index = _number(spec[1], self._compiled.steps.size(), "step")
        elif kind in ("tuple", "list"):
            tree.branch = Branch.tuple if kind == "tuple" else Branch.list
            children = spec[1]
        elif kind in ("namedtuple", "applied"):
            tree.branch = Branch.named_tuple if kind == "namedtuple" else Branch.applied
            tree.object = self._keep(spec[1])
            children = spec[2]
        elif kind in ("dict", "dataclass"):
            tree.branch = Branch.dict if kind == "dict" else Branch.dataclass
            tree.object = self._keep(spec[1])
            tree.names = self._keep(tuple(spec[2]))
            children = spec[3]
            if len(spec[2]) != len(children):
                raise ValueError(f"{len(spec[2])} names for {len(children)} values")
        else:
            raise ValueError(f"not a tree: {spec!r}")
        tree.children.resize(len(children))
        for place, child in enumerate(children):
            self._fill_tree(tree.children[place], child)
        return 0


cdef int _fill_array(
    ArrayGuard& guard, object dtype, object ndim, object extents, object layout, object writeable
) except -1:
    guard.dtype = _dtype_number(dtype)
    guard.writeable = writeable is True
    guard.extents = extents
    if len(extents) != ndim:
        raise ValueError(f"{len(extents)} extents for {ndim} axes")
    if layout == "C":
        guard.layout.c_order = True
        return 0
    if len(layout) not in (ndim, ndim + 1) or not set(layout[:ndim]) <= set("01npx"):
        raise ValueError(f"not a layout of {ndim} axes: {layout!r}")
    guard.layout.classes = "".join(layout[:ndim]).encode()
    guard.layout.order = "".join(layout[ndim:]).encode()
    return 0


cdef int _number(object value, Py_ssize_t limit, str what) except -1:
    if not 0 <= value < limit:
        raise ValueError(f"there is no {what} {value}")
    return min(value, 2**31 - 1)


cdef int _dtype_number(object number) except -1:
    if not supports_dtype(number):
        raise ValueError(f"compiled code has no dtype number {number}")
    return number


cdef char _python_kind(str kind) except 0:
    if kind not in ("f", "i", "b", "c"):
        raise ValueError(f"not a kind of Python scalar: {kind!r}")
    return ord(kind)


cdef int _refuse_mutable(object value) except -1:
    if isinstance(value, _MUTABLE):
        raise TypeError(f"a {type(value).__name__} may change: an 'equal' check cannot hold it")
    if isinstance(value, tuple):
        for item in value:
            _refuse_mutable(item)
    return 0
