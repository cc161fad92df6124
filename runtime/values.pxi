"""Lazy arrays as values: what they stand for, whose memory that is, and keys that hold some."""


cdef LazyArray base_of(LazyArray x):
    return x if x._base is None else x._base


def copy_with_strides(array: object) -> object:
    """A copy with the same strides, which decide what a reshape of it shares."""
    if array.size == 0:
        return array.copy()
    low, high = numpy.lib.array_utils.byte_bounds(array)
    place = array.__array_interface__["data"][0] - low
    buffer = numpy.empty(high - low, numpy.uint8)
    made = numpy.ndarray(array.shape, array.dtype, buffer, place, array.strides)
    made[...] = array
    return made


cdef class Snapshot:
    """An array of the caller's as it was when it was read: other names may lead to it."""

    cdef readonly object array, copy
    cdef bint _is_contiguous

    def __init__(self, array):
        self.array = array
        self._is_contiguous = array.flags.forc
        # what a reshape of it shares is decided by the strides
        self.copy = array.copy(order="K") if self._is_contiguous else copy_with_strides(array)

    cdef bint is_current(self) except -1:
        """Whether the array still holds what the copy does."""
        if self._is_contiguous:
            size = <size_t>array_bytes(self.array)
            return memcmp(array_data(self.array), array_data(self.copy), size) == 0
        return same_bits(self.array, self.copy)


cdef bint same_bits(object array, object kept) except -1:
    """Whether two arrays of one shape and dtype hold the same, NaNs and signs of zeros included."""
    if array.itemsize in (1, 2, 4, 8):
        whole = f"u{array.itemsize}"
        return bool((array.view(whole) == kept.view(whole)).all())
    return array.tobytes() == kept.tobytes()


cdef object value_of(LazyArray x, bint shared):
    """What x stands for now; `shared`: in memory that others may know and change from here on."""
    cdef LazyArray base = base_of(x)
    cdef Recording recording = x._recording
    if recording.host is not None and (base._value is None or base._dirty):
        recording.run()
    if base._value is None:
        raise RuntimeError("a value whose computation failed is used")
    value = base._value
    if type(value) is numpy.ndarray:
        if shared and recording.host is not None and not base._shared:
            recording.run()  # what is recorded reads it as it is
            if base._home is None:
                base._home = value
            recording.host.protect(base._home)
            recording._watched.pop(id(base._home), None)
            base._shared = True
        if base._home is not None:
            value = base._home
    if x is base:
        return value
    function, args, kwargs, leaf = x._made
    return leaves_of(function(*shown(args, shared), **shown(kwargs, shared)))[leaf]


cdef object seen(object x):
    """The value, to be looked at once."""
    return value_of(x, False) if type(x) is LazyArray else x


cdef object given(LazyArray x):
    """The value, for code that npjit does not know."""
    if base_of(x)._depends and x._recording.host is not None:
        x._recording.host.refuse("a real array")
    return value_of(x, True)


cdef object shown(object tree, bint shared):
    """Operands with values in place of lazy arrays."""
    cls = type(tree)
    if cls is LazyArray:
        return value_of(tree, shared)
    if cls is tuple or cls is list:
        return cls([shown(v, shared) for v in tree])
    if cls is dict:
        return {k: shown(v, shared) for k, v in tree.items()}
    if cls is slice:
        return slice(shown(tree.start, shared), shown(tree.stop, shared), shown(tree.step, shared))
    return tree


def values_in(tree: object, shared: bool = False) -> object:
    """A tuple, list or dict of operands with values in place of lazy arrays. `shared`: for code
    that may keep and change them."""
    return shown(tree, shared)


def value_of_array(LazyArray x not None) -> object:
    """The value, when the recording is over."""
    return value_of(x, True)


def is_computed(LazyArray x not None) -> bool:
    """Whether the value is there: it is not when computing it has failed."""
    return base_of(x)._value is not None


def depends_in(tree: object) -> bool:
    """Whether an operand depends on what is differentiated."""
    cls = type(tree)
    if cls is LazyArray:
        return base_of(<LazyArray>tree)._depends
    if cls is dict:
        tree = tree.values()
    elif cls is not tuple and cls is not list:
        return False
    return any([depends_in(v) for v in tree])


def slot_of(LazyArray x not None) -> int:
    """Where its recording has it, since it was last run."""
    return x._slot


def version_of(LazyArray x not None) -> int:
    """A number that changes with the contents."""
    return x._version


def depends(LazyArray x not None) -> bool:
    """Whether it depends on what is differentiated."""
    return base_of(x)._depends


def base_array(LazyArray x not None) -> LazyArray:
    """The lazy array whose memory it shows."""
    return base_of(x)


cdef list leaves_of(object result):
    """The arrays and numbers in a result."""
    if type(result) is tuple or type(result) is list or isinstance(result, tuple):
        return [leaf for part in result for leaf in leaves_of(part)]
    return [result]


cdef npjit_int64 _count(tuple shape):
    cdef npjit_int64 found = 1
    for n in shape:
        found *= n
    return found


cdef object position(object value):
    """A position that stands in a key, as an int."""
    cdef LazyArray x
    if type(value) is LazyArray:
        x = <LazyArray>value
        if x._type.shape or x._type.dtype.kind not in "iu":
            return value
        return value.__index__() if x._type.weight != "array" else value
    return int(value) if isinstance(value, numpy.integer) else value


cdef object store_key(object key):
    """A key whose positions are ints."""
    if type(key) is tuple:
        return tuple([store_key(k) for k in key])
    if type(key) is slice:
        return slice(position(key.start), position(key.stop), position(key.step))
    return position(key)


cdef object read_key(object key):
    """A key to read with: the positions of what a mask picks in place of the mask."""
    key = store_key(key)
    if type(key) is tuple:
        found = []
        for k in key:
            found += picked(k)
        return tuple(found)
    found = picked(key)
    return found[0] if len(found) == 1 else tuple(found)


cdef list picked(object key):
    if isinstance(key, numpy.ndarray) and key.dtype == bool and key.ndim:
        return list(numpy.nonzero(seen(key)))
    return [key]


cdef bint in_text():
    """Whether Python is formatting a text: "%f" % x."""
    frame = sys._getframe(0)
    code = frame.f_code.co_code
    place = frame.f_lasti
    return opcode.opname[code[place]] == "BINARY_OP" and code[place + 1] in REMAINDERS


cdef tuple REMAINDERS = (6, 19)  # % and %=, as BINARY_OP numbers them


def slot_object_of(LazyArray x not None) -> Slot:
    """The place of a value in what has been recorded since the last run."""
    return slot_object(x._slot)


def record(function: object, args: tuple, kwargs: dict) -> object:
    """A call of `function`, in whose arguments a lazy array stands, as a recorded operation."""
    cdef LazyArray x = first_lazy((args, kwargs))
    return x._recording.record(function, args, kwargs)


cdef LazyArray first_lazy(object tree):
    """A lazy array in lists, tuples and dicts; None without one."""
    cls = type(tree)
    if cls is LazyArray:
        return tree
    if cls is dict:
        tree = tree.values()
    elif cls is not tuple and cls is not list:
        return None
    for part in tree:
        found = first_lazy(part)
        if found is not None:
            return found
    return None


def is_lazy(tree: object) -> bool:
    """Whether a lazy array stands anywhere in lists, tuples and dicts."""
    return first_lazy(tree) is not None
