"""The pool, threads, BLAS and shared objects, callable from Python."""


def pool_stats() -> dict:
    """Counts of the memory pool: bytes and blocks in use and idle, the bound on idle bytes, and how
    many allocations an idle block answered ("reused") or the system ("fresh")."""
    cdef Stats found = stats()
    return {
        "live_bytes": found.live_bytes,
        "live_blocks": found.live_blocks,
        "idle_bytes": found.idle_bytes,
        "idle_blocks": found.idle_blocks,
        "bound": found.bound,
        "reused": found.reused,
        "fresh": found.fresh,
    }


def pool_trim(keep: int = 0) -> None:
    """Give idle blocks back to the system, least recently used first, down to `keep` bytes."""
    cdef size_t bytes_kept = keep
    with nogil:
        trim_pool(bytes_kept)


def set_pool_bound(idle_bytes: int) -> None:
    """Keep at most so many idle bytes (the default: a quarter of the memory, 2 GiB at most)."""
    cdef size_t bound = idle_bytes
    with nogil:
        set_bound(bound)


def set_host(host: object) -> None:
    """Have `host(spec, arguments, results)` compute what compiled graphs leave to Python; `spec` is
    the text that the graph's printer wrote, the lists hold arrays."""
    if not callable(host):
        raise TypeError(f"a host is a callable, not {type(host).__name__}")
    set_host_callable(<PyObject*>host)


def num_threads() -> int:
    """How many threads a kernel may use: NPJIT_NUM_THREADS, else the CPUs of this process."""
    return count()


def set_num_threads(threads: int) -> None:
    """Use so many threads from the next call on."""
    if threads < 1:
        raise ValueError(f"a thread count is at least 1, not {threads}")
    set_count(threads)


def blas_info() -> dict:
    """The OpenBLAS that NumPy has loaded: its path (None if there is none with 64-bit sizes), what
    its symbols begin and end with, the CBLAS functions found, and its thread count."""
    cdef const Library* found = &library()
    names = [function_names[i].decode() for i in range(function_count) if found.functions[i]]
    return {
        "path": found.path.decode() or None,
        "prefix": found.prefix.decode(),
        "suffix": found.suffix.decode(),
        "names": tuple(names),
        "threads": found.get_threads() if found.get_threads else None,
    }


def set_blas_threads(threads: int) -> None:
    """Set the thread count of NumPy's OpenBLAS, for NumPy and compiled code alike."""
    cdef const Library* found = &library()
    if threads < 1:
        raise ValueError(f"a thread count is at least 1, not {threads}")
    if not found.set_threads:
        raise RuntimeError("NumPy's BLAS is not an OpenBLAS with 64-bit sizes")
    found.set_threads(threads)


def load_global(path: str) -> None:
    """Load a library so that native objects loaded later find its symbols (libmvec)."""
    cdef string error = open_global(os.fsencode(path))
    if not error.empty():
        raise OSError(f"cannot load {path}: {error.decode(errors='replace')}")


cdef class NativeObject:
    """A shared object that exports npjit_prepare and npjit_run; unloaded with its last entry."""

    cdef SharedObject _object
    cdef readonly str path

    def __cinit__(self, path):
        self.path = os.fspath(path)
        self._object = open_object(os.fsencode(self.path))
        if not self._object.error.empty():
            raise OSError(f"cannot load {self.path}: {self._object.error.decode(errors='replace')}")

    def __dealloc__(self):
        close_object(self._object)

    def __repr__(self) -> str:
        return f"NativeObject({self.path!r})"


def describe_array(array: object) -> tuple | None:
    """(dtype number, ndim, extents, layout) as an "array" check compares them; array.h says what a
    layout is. None for whatever such a check never matches: a subclass, an object or long double
    dtype, foreign byte order, misaligned memory, strides that are no multiple of the item size."""
    cdef Layout layout
    if not is_plain_array(array):
        return None
    layout = layout_of(array)
    ndim = array_ndim(array)
    extents = tuple([array_extent(array, axis) for axis in range(ndim)])
    if layout.c_order:
        return array_dtype(array), ndim, extents, "C"
    classes = tuple(layout.classes.decode())
    order = (layout.order.decode(),) if ndim > 1 else ()
    return array_dtype(array), ndim, extents, classes + order


def same_value(first: object, second: object) -> bool:
    """What an "equal" check tests: one exact type and ==, where 0.0 is not -0.0 and NaN is NaN."""
    return same_objects(first, second) == 1
