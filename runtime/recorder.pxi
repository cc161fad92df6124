"""A recording: operations on `LazyArray`s that are written down, and run together when needed.

In: operations (lazy.pxi), and a host that traces an operation which is new here, and runs what has
been recorded. Out: values, when Python asks for one. Nothing here knows what an operation means: a
`State` remembers for each operation met in it which results it has and which state follows, so
that the host is asked once and every later recording of the same operations only looks it up.

    recording = Recording(host)
    x = recording.adopt(numpy.ones(3))
    y = x * 2 + 1                      # recorded
    print(y)                           # host.run(...), then text
"""

# A recording runs at latest after so many operations; between the two, before an operation like its
# first one, so that the trips of a loop in Python make the same programs.
cdef int ENOUGH_OPERATIONS = 64
cdef int MOST_OPERATIONS = 1024
# Positions in keys that are constants of a recording, as small extents are constants of a trace.
cdef int LITERAL_POSITION = 16
# Arrays of at most so many bytes are compared whenever they are read, others when a program runs.
cdef int QUICKLY_COMPARED = 262144

cdef enum Numbers:
    constant, open, entered  # how the floats among operands are written into a key


class NotRecorded(Exception):
    """An operation, or an operand, that no recording takes in."""


cdef class Recording:
    """Operations recorded by one call of a function; see the module.

    host   trace(function, args, kwargs) -> Operation; NotRecorded where there is none
           run(state, wanted, inputs, bases) -> values of the arrays `wanted`; `bases` are those
           that the inputs are the values of
           outside(error, function, args, kwargs) -> the result of what is not recorded
           protect(array): the array's memory is about to be changed, or known to others
           changed(): memory of the caller's has been changed by another name, and nobody can tell
           what operations have read from it, or what depends on it
           refuse(what): raises: a value that depends on what is differentiated leaves the recording
    start  the State to begin in, kept by whoever records the same function again
    """

    cdef object host
    cdef readonly State start
    cdef readonly State state
    cdef vector[PyObject*] _alive
    cdef unordered_set[void_pointer] _members
    cdef readonly list inputs
    cdef list _bases
    cdef long long _epoch
    cdef readonly long long versions
    cdef int _operations
    cdef object _first
    cdef bint _checked
    # the caller's arrays by their identity, with what has been read from them
    cdef dict _watched
    # whether one of them does not hold that any more
    cdef bint _stale
    # those that waiting operations read
    cdef set _read
    # values that may share memory with an operand
    cdef list _unsure
    # pairs of which nobody can tell whether NumPy's share memory: none is written beside the other
    cdef list _entangled

    def __init__(self, host, State start not None):
        self.host = host
        self.start = start
        self._watched = {}
        self._unsure = []
        self._entangled = []
        self._reset()

    cdef int _reset(self) except -1:
        self._epoch += 1
        self.state = self.start
        self._alive.clear()
        self.inputs = []
        self._bases = []
        self._read = set()
        self._operations = 0
        self._first = None
        self._checked = self._stale = False
        return 0

    # ------------------------------------------------------------ values from outside

    def adopt(self, value: object, home: object = None, depends: bool = False) -> LazyArray:
        """A value as one of this recording; `home` is memory that others know, where writes go."""
        if isinstance(value, numpy.ndarray):
            type_ = ValueType(value.shape, value.dtype, "array")
        elif isinstance(value, numpy.generic):
            type_ = ValueType((), value.dtype, "scalar")
        else:
            type_ = ValueType((), numpy.dtype(type(value)), "weak")
        cdef LazyArray x = self._new(type_)
        x._value = value
        x._home = home
        x._depends = depends
        x._version = self._next_version()
        if depends and home is not None:
            self._read_from(x)
        return x

    cdef LazyArray _new(self, ValueType type_):
        cdef LazyArray x = LazyArray.__new__(LazyArray)
        x._recording = self
        x._type = type_
        self._members.insert(<void*>x)
        return x

    cdef long long _next_version(self):
        self.versions += 1
        return self.versions

    cdef int _place(self, LazyArray x) except -1:
        x._epoch = self._epoch
        x._slot = self._alive.size()
        self._alive.push_back(<PyObject*>x)
        return 0

    cdef int _enter(self, LazyArray x) except -1:
        """Give a value of this recording a slot."""
        cdef LazyArray found
        cdef int operations
        if x._epoch == self._epoch:
            return 0
        if x._base is not None:
            function, args, kwargs, leaf = x._made
            operations = self._operations  # a view that is made again is none
            found = leaves_of(self._record(function, args, kwargs))[leaf]
            # takes the other's place
            self._unsure, self._operations = [], operations
            x._epoch, x._slot = found._epoch, found._slot
            found._epoch = -1
            self._alive[x._slot] = <PyObject*>x
            return 0
        if x._value is None:
            raise RuntimeError("a value whose computation failed is used")
        if x._shared:
            self._checked = True  # read now: others may change it before the next operation
            x._value = copy_with_strides(x._home)
            x._version = self._next_version()
        value = x._value
        if x._home is not None and not x._shared:
            value = self._read_from(x)
            self._read.add(id(x._home))
        self._input(value, x._type.ordered or x._home is not None)
        self._bases.append(x)
        self._place(x)
        return 0

    cdef object _read_from(self, LazyArray x):
        """What an array of the caller's holds now, in memory of its own: other names may lead to
        it."""
        cdef Snapshot found = self._watched.get(id(x._home))
        if found is not None and found.is_current():
            return found.copy
        if found is not None and x._depends:
            self.host.changed()
        self._watched[id(x._home)] = found = Snapshot(x._home)
        return found.copy

    cdef int _notice(self, LazyArray x) except -1:
        """Find out whether the caller's array behind x does not hold any more what operations that
        wait have read: then they have to run before the next one reads it."""
        cdef Snapshot found
        cdef LazyArray base = base_of(x)
        if base._home is None or base._epoch != self._epoch or base._shared:
            return 0
        found = self._watched.get(id(base._home))
        if found is not None and array_bytes(found.array) <= QUICKLY_COMPARED:
            self._stale = self._stale or not found.is_current()
        return 0

    cdef int _input(self, object value, bint placed=True) except -1:
        """Go on to the state behind an input; `placed`: it lies in memory as NumPy's array does."""
        if type(value) is numpy.ndarray:
            kind = describe_array(value)
            if kind is None:
                raise NotRecorded
            kind = (kind[0], value.shape, kind[3], placed)
        else:
            kind = type(value)
        cdef Operation operation = self.state._next.get((kind,))
        if operation is None:
            operation = Operation(None, (placed,), {}, ())
            self.state._add((kind,), operation)
        self.inputs.append(value)
        self.state = operation.target
        return 0

    # ------------------------------------------------------------ operands

    cdef object _held(self, object value):
        """The operand with NumPy's arrays and scalars in it taken in, as they are now: others may
        change them before they are read."""
        cdef LazyArray x
        cls = type(value)
        if cls is tuple or cls is list:
            return cls([self._held(v) for v in value])
        if cls is slice:
            return slice(self._held(value.start), self._held(value.stop), self._held(value.step))
        if cls is LazyArray:
            if (<LazyArray>value)._recording is not self:
                return self._held(given(value))
            self._notice(<LazyArray>value)
            return value
        if cls is not numpy.ndarray and not isinstance(value, numpy.generic):
            return value
        x = self.adopt(value.copy(order="K") if cls is numpy.ndarray else value)
        x._constant = True
        return x

    cdef object _positions(self, object array, object key):
        """The key with positions as inputs, so that one program serves all trips of a loop."""
        cdef LazyArray x
        if type(array) is not LazyArray:
            return key
        x = <LazyArray>array
        parts = key if type(key) is tuple else (key,)
        if len(parts) > len(x._type.shape):
            return key
        found = []
        for part, extent in zip(parts, x._type.shape):
            if type(part) is int and -extent <= part < extent and abs(part) >= LITERAL_POSITION:
                part = self.adopt(part)
            elif type(part) is not int and type(part) is not slice:
                return key  # positions do not stand for the axes in order
            found.append(part)
        return tuple(found) if type(key) is tuple else found[0]

    cdef object _operand(self, object value, list key, Numbers numbers, bint* depends):
        """An operand as the operation is recorded with it; what tells it apart is added to the
        key."""
        cdef LazyArray x
        cls = type(value)
        if cls is LazyArray:
            x = <LazyArray>value
            self._enter(x)
            depends[0] = depends[0] or base_of(x)._depends
            key.append(slot_object(x._slot))
            return x
        if cls is int or value is None or cls is str or value is Ellipsis or cls is Slot:
            key.append(value)
            return value
        if cls is float or cls is complex:
            if numbers == Numbers.entered:
                return self._number(value, key)
            key.append(cls)
            if numbers == Numbers.constant:
                key.append(repr(value))
            return value
        if cls is tuple or cls is list:
            key.append(cls)
            key.append(len(value))
            return cls([self._operand(v, key, numbers, depends) for v in value])
        if cls is slice:
            key.append(cls)
            parts = (value.start, value.stop, value.step)
            return slice(*[self._operand(v, key, numbers, depends) for v in parts])
        if cls is bool or cls is numpy.dtype or isinstance(value, (type, numpy.dtype)):
            key.append(cls)
            key.append(value)
            return value
        if value is numpy._NoValue:
            key.append(value)
            return value
        raise NotRecorded

    cdef object _number(self, object value, list key):
        """A number as an input."""
        self._input(value)
        self._bases.append(None)
        cdef Slot slot = slot_object(self._alive.size())
        self._alive.push_back(NULL)
        key.append(slot)
        return slot

    cdef object _operands(
        self, object function, tuple args, dict kwargs, Numbers numbers, bint* depends
    ):
        """The key of an operation, its arguments and its keyword arguments."""
        cdef list key = [function]
        named = {}
        given_args = tuple([self._operand(v, key, numbers, depends) for v in args])
        for name, value in kwargs.items():
            key.append(name)
            named[name] = self._operand(value, key, numbers, depends)
        return tuple(key), given_args, named

    # ------------------------------------------------------------ recording

    cpdef object record(self, object function, tuple args, dict kwargs):
        """The result of a call, computed later or by the host."""
        if self.host is None:
            return function(*shown(args, True), **shown(kwargs, True))
        cdef bint at_once = floating_errors_matter()
        refused = None
        if self._operations >= ENOUGH_OPERATIONS:
            if function is self._first or self._operations >= MOST_OPERATIONS:
                self.run()
        try:
            args, kwargs = self._held(args), {k: self._held(v) for k, v in kwargs.items()}
            if self._stale:
                self.run()
            if function is operator.getitem or function is operator.setitem:
                args = (args[0], self._positions(args[0], args[1]), *args[2:])
            result = self._record(function, args, kwargs)
        except NotRecorded as error:
            refused = error
        if refused is not None:  # not above, where errors would have this one as their context
            if self._checked:
                self.run()  # operands that others may change have been taken in
            return self.host.outside(refused, function, args, kwargs)
        if at_once or self._checked or self._unsure:
            self.run()
            self._decide()
        return result

    cdef int _decide(self) except -1:
        """Find out, now that memory is there, whether values share it with operands: with those
        that lie in a caller's, others may lie in another order than NumPy's."""
        cdef LazyArray x, base
        for x, base, made in self._unsure:
            if base._home is None:
                self.entangle(x, base)
                continue
            function, args, kwargs, leaf = made
            array = leaves_of(function(*shown(args, False), **shown(kwargs, False)))[leaf]
            if numpy.may_share_memory(array, seen(base)):
                x._base, x._made, x._value = base, made, None
        self._unsure = []
        return 0

    cdef object _record(self, object function, tuple args, dict kwargs):
        cdef bint depends = False
        cdef Operation operation
        key, operands, named = self._operands(
            function, args, kwargs, Numbers.constant, &depends
        )
        operation = self.state._known(key)
        if operation is None:
            general, _, _ = self._operands(function, args, kwargs, Numbers.open, &depends)
            if general in self.state._met and general != key:
                key, operands, named = self._operands(
                    function, args, kwargs, Numbers.entered, &depends
                )
                operation = self.state._known(key)
            else:
                self.state._met.add(general)
        if operation is None:
            try:
                operation = self.host.trace(function, operands, named)
            except NotRecorded as error:
                self.state._next[key] = NotRecorded(*error.args)
                raise
            self.state._add(key, operation)
        if operation.checked and self._operations:
            self.run()
            return self._record(function, args, kwargs)
        return self._apply(operation, depends, function, operands, named)

    cdef object _apply(
        self, Operation operation, bint depends, object function, tuple args, dict kwargs
    ):
        cdef LazyArray x
        cdef ValueType type_
        cdef size_t slot
        for slot in operation.writes:
            x = self._at(slot)
            if x._constant:
                raise NotRecorded("a store into an array of NumPy's")
            if self._entangled:
                self._require_apart(x)
        leaves = []
        for type_ in operation.results:
            if type_.kind == Leaf.same:
                leaves.append(self._at(type_.slot))
                continue
            x = self._new(type_)
            self._place(x)
            if type_.kind == Leaf.viewed:
                x._base = base_of(self._at(type_.slot))
                x._made = (function, args, kwargs, len(leaves))
            else:
                x._depends = depends and type_.differentiable
            if type_.kind == Leaf.unsure:
                base = base_of(self._at(type_.slot))
                self._unsure.append((x, base, (function, args, kwargs, len(leaves))))
            leaves.append(x)
        for slot in operation.writes:
            x = self._at(slot)
            x._dirty = True
            x._depends = x._depends or depends
            # where others look without a recording
            self._checked = self._checked or x._home is not None
        self._checked = self._checked or operation.checked
        if self._operations == 0:
            self._first = function
        self._operations += 1
        self.state = operation.target
        return leaves[0] if operation.build is None else operation.build(leaves)

    def entangle(self, LazyArray x not None, LazyArray y not None) -> None:
        """Refuse stores into one of two arrays that may share memory while the other is known."""
        self._entangled.append((weakref.ref(x), weakref.ref(y)))

    cdef int _require_apart(self, LazyArray x) except -1:
        """An error where a store into x may be one into another array that is still known."""
        for one, other in self._entangled:
            if one() is not None and other() is not None and (one() is x or other() is x):
                self.host.refuse_store()
        return 0

    cdef LazyArray _at(self, size_t slot):
        """The operand in a slot."""
        if self._alive[slot] == NULL:
            raise NotRecorded("an operation with a value that is gone")
        return <LazyArray>self._alive[slot]

    # ------------------------------------------------------------ running

    cpdef run(self):
        """Compute what has been recorded and is still known to someone."""
        if self.state is self.start:
            return
        state, inputs, bases, wanted = self.pending()
        if wanted:
            self.settle(wanted, self.host.run(state, wanted, inputs, bases))

    cpdef settle(self, list arrays, object values):
        """These arrays have been computed; what is known to others is written there."""
        cdef LazyArray x
        for x, value in zip(arrays, values, strict=True):
            x._value = value
            x._version = self._next_version()
            if x._dirty and x._home is not None:
                self.host.protect(x._home)
                self._watched.pop(id(x._home), None)
                x._home[...] = value
                x._value = x._home  # in its own memory order
                if x._depends:
                    self._read_from(x)
            x._dirty = False

    def pending(self) -> tuple:
        """State, inputs and the values they came from, and the values that are still unknown: for a
        host that runs them together with more. The recording goes on at its start."""
        cdef Snapshot kept
        for key in self._read:
            kept = self._watched.get(key)
            if kept is not None and array_bytes(kept.array) > QUICKLY_COMPARED:
                if not kept.is_current():
                    self.host.changed()
        cdef LazyArray x
        cdef size_t slot
        wanted = []
        for slot in range(self._alive.size()):
            if self._alive[slot] != NULL:
                x = <LazyArray>self._alive[slot]
                if x._base is None and (x._value is None or x._dirty):
                    wanted.append(x)
        found = (self.state, self.inputs, self._bases, wanted)
        self._reset()
        return found

    def members(self) -> list:
        """The lazy arrays of this recording that someone still knows."""
        cdef void* one
        found = []
        for one in self._members:
            found.append(<object>one)
        return found

    def close(self) -> None:
        """From now on operations on its values are NumPy's own."""
        self.host = None
        self._reset()
