"""Arrays and launches on a GPU: tuples from Python in, the C++ form of tapes and plans out."""

# instances of one plan that are kept
_MOST_INSTANCES = 512


def set_device_interface(type array_type, stream: object) -> None:
    """From now on arrays of exactly this type are device arrays, read by their attributes
    `data.ptr`, `data.device_id`, `shape`, `strides` and `dtype`; `stream` gives the current
    stream's handle: a capsule of a C function "intptr_t (void)", or a callable."""
    register_device(<PyObject*>array_type, <PyObject*>stream)


def set_driver(functions: dict | None) -> None:
    """Use these addresses in place of the functions of libcuda.so.1, by their names there; None:
    libcuda's again."""
    cdef vector[void*] found
    if functions is None:
        set_driver_functions(NULL)
        return
    for place in range(driver_function_count):
        found.push_back(<void*><size_t>functions[driver_function_names[place].decode()])
    set_driver_functions(found.data())


def is_device_array(value: object) -> bool:
    """Whether an object is an array of the registered type."""
    return is_device_type(value)


def device_header(array: object) -> tuple | None:
    """A NumPy array with the place, shape and strides of a device array, which is its base, and the
    GPU's number; nobody may read through it. None for what compiled code does not take."""
    return _header(array)


@cython.no_gc_clear
cdef class Tape:
    """Launches with everything but addresses filled in; tape.h.

    words      all parameters, one after the other
    patches    (word, base, offset): what differs from call to call
    steps      ("launch", function, grid x, grid y, block, first word, words, label), or a callable
               that is called with the bases and returns False to stop
    """

    cdef TapeParts _parts
    cdef list _kept

    def __init__(self, words, patches, steps):
        cdef Patch patch
        self._kept = []
        self._parts.words = words
        for patch.word, patch.base, patch.offset in patches:
            self._parts.patches.push_back(patch)
        self._parts.pieces.resize(1)
        for step in steps:
            self._add(step)
        if self._parts.pieces.back().launches.empty() and self._parts.pieces.size() > 1:
            self._parts.pieces.pop_back()
        self._parts.settle()

    cdef int _add(self, object step) except -1:
        cdef Launch launch
        if callable(step):
            self._kept.append(step)
            self._parts.pieces.back().host = <PyObject*>step
            self._parts.pieces.resize(self._parts.pieces.size() + 1)
            return 0
        _, function, launch.grid_x, launch.grid_y, launch.block, first, words, label = step
        launch.function = <void*><size_t>function
        launch.first, launch.words = first, words
        if not 0 <= first <= first + words <= self._parts.words.size():
            raise ValueError(f"a launch with words {first} to {first + words}")
        self._kept.append(label)
        launch.label = <PyObject*>label
        self._parts.pieces.back().launches.push_back(launch)
        return 0

    def run(self, bases: list, times: int = 1) -> bool:
        """Start everything on the current stream, `times` times; False when a step has stopped."""
        cdef vector[npjit_int64] values = bases
        cdef void* stream
        current_stream(&stream)
        ran = run_tape(self._parts, values.data(), values.size(), stream, times)
        if ran == Ran.raised:
            _raise_pending()
        return ran == Ran.done


@cython.no_gc_clear
cdef class DeviceInstance:
    """A device plan for one set of sizes.

    results   (make, arguments) pairs: make(*arguments) is a new array, arguments[0] its shape
    arena     bytes; memory: the arena's and those of the scratch memory behind it
    counters  how many; tape: None if Python walks the plan
    """

    cdef Instance _instance
    cdef tuple _kept

    def __init__(self, results, arena, memory, counters, Tape tape):
        cdef Made made
        self._kept = (results, tape)
        self._instance.owner = <PyObject*>self
        self._instance.arena, self._instance.memory = arena, memory
        self._instance.counters = counters
        if tape is not None:
            self._instance.tape = &tape._parts
        for make, arguments in results:
            if not isinstance(arguments, tuple) or not arguments:
                raise TypeError("a result's arguments are a tuple that begins with its shape")
            made.make, made.arguments = <PyObject*>make, <PyObject*>arguments
            self._instance.results.push_back(made)
        self._instance.kept.results.resize(len(results))

    def __dealloc__(self):
        drop_kept(self._instance)


@cython.no_gc_clear
cdef class DevicePlan:
    """What an Entry runs on a GPU, in place of its callable, for sizes met before; device_plan.h.

    device    the GPU's number
    words     what each input word is: "s" a size, "a" an address, "n" a number
    bases     the input words that are the tape's first bases
    prepare   called with the inputs and their key; it calls `enter`
    allocate  bytes -> memory; counters: count -> their address
    keeps     whether results that nobody holds any more are given out again
    """

    cdef DevicePlanParts _parts
    cdef dict _instances
    cdef tuple _kept

    def __init__(self, *, device, words, bases, prepare, allocate, counters, keeps=False):
        self._kept = (prepare, allocate, counters)
        self._instances = {}
        self._parts.device = device
        for letter in words:
            self._parts.words.push_back(
                {"s": Word.size, "a": Word.address, "n": Word.number}[letter]
            )
        self._parts.bases = bases
        self._parts.prepare = <PyObject*>prepare
        self._parts.allocate = <PyObject*>allocate
        self._parts.counters = <PyObject*>counters
        self._parts.keeps = keeps

    def enter(self, key: bytes, DeviceInstance instance not None) -> None:
        """Answer calls of this key by the instance; when there are too many, in place of all."""
        if len(self._instances) >= _MOST_INSTANCES:
            self._parts.instances.clear()
            self._instances.clear()
        self._instances[key] = instance
        self._parts.instances[key] = &instance._instance

    def release(self) -> None:
        """Let go of the memory that is kept for later calls."""
        cdef DeviceInstance instance
        for instance in self._instances.values():
            drop_kept(instance._instance)
