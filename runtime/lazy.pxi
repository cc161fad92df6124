"""`LazyArray`: an array whose operations are recorded, not run.

It stands for an ndarray, a NumPy scalar or a Python number, as its `__class__` says. NumPy's
functions and ufuncs reach it through their protocols, operators, methods, keys and in-place stores
are its own; each is one operation of its `Recording`. Shape and dtype are known at once. What needs
its value (float, bool, text, a real array) has the recording run first.
"""


@cython.no_gc_clear
cdef class LazyArray:
    cdef Recording _recording
    cdef ValueType _type
    # a value of its own: what it is, once computed; memory that others know
    cdef object _value, _home
    # a view: whose memory it shows, and the operation that makes it
    cdef LazyArray _base
    cdef tuple _made
    cdef long long _epoch, _version
    cdef size_t _slot
    # depends: on what is differentiated; dirty: the recording has changed it; shared: others know
    # its memory; constant: an array of NumPy's, as it was when used
    cdef bint _depends, _dirty, _shared, _constant
    cdef object __weakref__

    __array_priority__ = 1000.0

    def __init__(self):
        raise TypeError("a Recording makes its arrays")

    def __dealloc__(self):
        cdef Recording recording = self._recording
        if recording is None:
            return
        recording._members.erase(<void*>self)
        if self._epoch == recording._epoch and self._slot < recording._alive.size():
            if recording._alive[self._slot] == <PyObject*>self:
                recording._alive[self._slot] = NULL

    # ------------------------------------------------------------ what is known at once

    @property
    def __class__(self):
        if self._type.weight == "array":
            return numpy.ndarray
        if self._type.weight == "scalar":
            return self._type.dtype.type
        return type(self._type.dtype.type(0).item())

    @property
    def shape(self):
        return self._type.shape

    @property
    def dtype(self):
        return self._type.dtype

    @property
    def ndim(self):
        return len(self._type.shape)

    @property
    def size(self):
        return _count(self._type.shape)

    @property
    def itemsize(self):
        return self._type.dtype.itemsize

    @property
    def nbytes(self):
        return _count(self._type.shape) * self._type.dtype.itemsize

    def __len__(self):
        if not self._type.shape:
            raise TypeError("len() of unsized object")
        return self._type.shape[0]

    # ------------------------------------------------------------ NumPy's protocols

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self._recording.record(function, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return self._recording.record(function, args, kwargs)

    def __array__(self, dtype=None, copy=None):
        array = numpy.asarray(given(self), dtype)
        return array.copy() if copy else array

    def __getattr__(self, name):
        kind = self.__class__
        if name.startswith("__") or not hasattr(kind, name):
            owner = "numpy." if self._type.weight != "weak" else ""
            raise AttributeError(f"'{owner}{kind.__name__}' object has no attribute '{name}'")
        if callable(getattr(kind, name)):
            return _Method(self, name)
        return self._recording.record(getattr, (self, name), {})

    def __setattr__(self, name, value):
        if name == "shape":
            self._recording.host.refuse("a store into .shape")
        self._recording.record(setattr, (self, name, value), {})

    # ------------------------------------------------------------ keys

    def __getitem__(self, key):
        return self._recording.record(operator.getitem, (self, read_key(key)), {})

    def __setitem__(self, key, value):
        self._recording.record(operator.setitem, (self, store_key(key), value), {})

    def __iter__(self):
        if not self._type.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self._type.shape[0])])

    def __contains__(self, item):
        return seen(item) in seen(self)

    # ------------------------------------------------------------ values that Python must have

    def __bool__(self):
        return bool(seen(self))

    def __int__(self):
        return int(seen(self))

    def __index__(self):
        return operator.index(seen(self))

    def __float__(self):
        return float(self._number("float"))

    def __complex__(self):
        return complex(self._number("complex"))

    cdef object _number(self, str name):
        cdef LazyArray base = base_of(self)
        if base._depends and self._recording.host is not None and not in_text():
            self._recording.host.refuse(f"{name}()")
        return seen(self)

    def __round__(self, *digits):
        if digits:
            return self._recording.record(numpy.round, (self, *digits), {})
        return round(seen(self))

    def __trunc__(self):
        return math.trunc(seen(self))

    def __floor__(self):
        return math.floor(seen(self))

    def __ceil__(self):
        return math.ceil(seen(self))

    def __hash__(self):
        return hash(seen(self))

    def __repr__(self):
        return repr(seen(self))

    def __str__(self):
        return str(seen(self))

    def __format__(self, spec):
        return format(seen(self), spec)

    def __reduce_ex__(self, protocol):
        return given(self).__reduce_ex__(protocol)

    def __copy__(self):
        return self.copy() if self._type.weight == "array" else self

    def __deepcopy__(self, memo):
        return self.__copy__()

    # ------------------------------------------------------------ operators

    def __richcmp__(self, other, int operation):
        return self._recording.record(COMPARISONS[operation], (self, other), {})

    def __neg__(self):
        return self._recording.record(operator.neg, (self,), {})

    def __pos__(self):
        return self._recording.record(operator.pos, (self,), {})

    def __abs__(self):
        return self._recording.record(operator.abs, (self,), {})

    def __invert__(self):
        return self._recording.record(operator.invert, (self,), {})

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __add__(self, other):
        return self._recording.record(operator.add, (self, other), {})

    def __radd__(self, other):
        return self._recording.record(operator.add, (other, self), {})

    def __iadd__(self, other):
        return self._recording.record(operator.iadd, (self, other), {})

    def __sub__(self, other):
        return self._recording.record(operator.sub, (self, other), {})

    def __rsub__(self, other):
        return self._recording.record(operator.sub, (other, self), {})

    def __isub__(self, other):
        return self._recording.record(operator.isub, (self, other), {})

    def __mul__(self, other):
        return self._recording.record(operator.mul, (self, other), {})

    def __rmul__(self, other):
        return self._recording.record(operator.mul, (other, self), {})

    def __imul__(self, other):
        return self._recording.record(operator.imul, (self, other), {})

    def __truediv__(self, other):
        return self._recording.record(operator.truediv, (self, other), {})

    def __rtruediv__(self, other):
        return self._recording.record(operator.truediv, (other, self), {})

    def __itruediv__(self, other):
        return self._recording.record(operator.itruediv, (self, other), {})

    def __floordiv__(self, other):
        return self._recording.record(operator.floordiv, (self, other), {})

    def __rfloordiv__(self, other):
        return self._recording.record(operator.floordiv, (other, self), {})

    def __ifloordiv__(self, other):
        return self._recording.record(operator.ifloordiv, (self, other), {})

    def __mod__(self, other):
        return self._recording.record(operator.mod, (self, other), {})

    def __rmod__(self, other):
        return self._recording.record(operator.mod, (other, self), {})

    def __imod__(self, other):
        return self._recording.record(operator.imod, (self, other), {})

    def __matmul__(self, other):
        return self._recording.record(operator.matmul, (self, other), {})

    def __rmatmul__(self, other):
        return self._recording.record(operator.matmul, (other, self), {})

    def __imatmul__(self, other):
        return self._recording.record(operator.imatmul, (self, other), {})

    def __pow__(self, other, modulo):
        return self._recording.record(operator.pow, (self, other), {})

    def __rpow__(self, other, modulo):
        return self._recording.record(operator.pow, (other, self), {})

    def __ipow__(self, other):
        return self._recording.record(operator.ipow, (self, other), {})

    def __lshift__(self, other):
        return self._recording.record(operator.lshift, (self, other), {})

    def __rlshift__(self, other):
        return self._recording.record(operator.lshift, (other, self), {})

    def __ilshift__(self, other):
        return self._recording.record(operator.ilshift, (self, other), {})

    def __rshift__(self, other):
        return self._recording.record(operator.rshift, (self, other), {})

    def __rrshift__(self, other):
        return self._recording.record(operator.rshift, (other, self), {})

    def __irshift__(self, other):
        return self._recording.record(operator.irshift, (self, other), {})

    def __and__(self, other):
        return self._recording.record(operator.and_, (self, other), {})

    def __rand__(self, other):
        return self._recording.record(operator.and_, (other, self), {})

    def __iand__(self, other):
        return self._recording.record(operator.iand, (self, other), {})

    def __or__(self, other):
        return self._recording.record(operator.or_, (self, other), {})

    def __ror__(self, other):
        return self._recording.record(operator.or_, (other, self), {})

    def __ior__(self, other):
        return self._recording.record(operator.ior, (self, other), {})

    def __xor__(self, other):
        return self._recording.record(operator.xor, (self, other), {})

    def __rxor__(self, other):
        return self._recording.record(operator.xor, (other, self), {})

    def __ixor__(self, other):
        return self._recording.record(operator.ixor, (self, other), {})


cdef dict COMPARISONS = {
    0: operator.lt, 1: operator.le, 2: operator.eq, 3: operator.ne, 4: operator.gt, 5: operator.ge
}


cdef class _Method:
    """A method of a lazy array, to be called."""

    cdef LazyArray _array
    cdef str _name

    def __init__(self, LazyArray array, str name):
        self._array = array
        self._name = name

    def __call__(self, *args, **kwargs):
        cdef Recording recording = self._array._recording
        return recording.record(call_method, (self._name, self._array, *args), kwargs)


def call_method(name: str, array: object, *args: object, **kwargs: object) -> object:
    """`array.name(*args, **kwargs)`, as one function for all methods."""
    return getattr(array, name)(*args, **kwargs)
