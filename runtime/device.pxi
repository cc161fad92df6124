"""Arrays and launches on a GPU: tuples from Python in, the C++ form of tapes and plans out."""

# instances of one plan that are kept
_MOST_INSTANCES = 512


def set_device_interface(type array_type, stream: object, fields: dict | None = None) -> None:
    """From now on arrays of exactly this type are device arrays, read by their attributes
    `data.ptr`, `data.device_id`, `shape`, `strides` and `dtype`; `stream` gives the current
    stream's handle: a capsule of a C function "intptr_t (void)", or a callable. `fields` says where
    objects have what these attributes say, by the attributes' names, the type of `data` as
    "pointer", and a capsule of what makes arrays as "create" or None; device.h."""
    cdef ArrayFields known
    if fields is not None:
        known.pointer = <PyObject*>fields["pointer"]
        known.shape, known.strides = fields["shape"], fields["strides"]
        known.dtype, known.data = fields["dtype"], fields["data"]
        known.ptr, known.device_id = fields["ptr"], fields["device_id"]
        create = fields["create"]
        if create is not None:
            known.create = <ArrayCreator>PyCapsule_GetPointer(create, PyCapsule_GetName(create))
    register_device(<PyObject*>array_type, <PyObject*>stream, known)


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


def set_cublas(find: object, workspace: object) -> None:
    """Use cuBLAS's functions at the addresses find(name); workspace() gives the address and the
    bytes of memory on the current GPU that stays."""
    cdef vector[void*] found
    for place in range(cublas_count):
        found.push_back(<void*><size_t>find(cublas_names[place].decode()))
    set_cublas_functions(found.data(), <PyObject*>workspace)


cdef Product _product(numbers) except *:
    """A product by its numbers in the order of the struct."""
    cdef Product p
    p.letter, p.type, p.made, p.compute, p.turn_left, p.turn_right = numbers[:6]
    p.m, p.n, p.k = numbers[6:9]
    p.lead_left, p.lead_right, p.lead_result = numbers[9:12]
    p.step_left, p.step_right, p.step_result, p.batch = numbers[12:]
    return p


cdef Flag _flag(place) except *:
    cdef Flag flag
    flag.base, flag.offset = place
    return flag


@cython.no_gc_clear
cdef class Tape:
    """Launches with everything but addresses filled in; tape.h.

    words      all parameters, one after the other
    patches    (word, base, offset), by their words: what differs from call to call
    steps      ("launch", function, grid x, grid y, block, shared bytes, first word, words, label)
               ("product", numbers, first word, words, label): numbers as cublas.h has them
               ("require", flag, bodies), flag being (base, offset) of a bool: stop unless it is
               true; the one body, if any, starts before that is known
               ("repeat", flag, tapes, stops, times): the tapes by turns
               ("loop", flag, (test, body), stops), ("branch", flag, (then, other))
               a callable that is called with the bases and returns False to stop
    """

    cdef TapeParts _parts
    cdef list _kept

    def __init__(self, words, patches, steps):
        cdef Patch patch
        self._kept = []
        self._parts.words = words
        for patch.word, patch.base, patch.offset in patches:
            self._parts.patches.push_back(patch)
        for step in steps:
            if callable(step):
                self._control("host", step)
            elif step[0] in ("launch", "product"):
                self._work(step)
            else:
                self._control(*step)
        self._parts.settle()

    cdef int _work(self, tuple step) except -1:
        cdef Work work
        kind, what, *grid, first, words, label = step
        if kind == "launch":
            work.launch.grid_x, work.launch.grid_y, work.launch.block, work.launch.shared = grid
            work.launch.function = <void*><size_t>what
        else:
            work.product = _product(what)
        work.first, work.words = first, words
        if not 0 <= first <= first + words <= self._parts.words.size():
            raise ValueError(f"a launch with words {first} to {first + words}")
        self._kept.append(label)
        work.launch.label = <PyObject*>label
        self._parts.open().works.push_back(work)
        return 0

    def _control(self, kind, what, bodies=(), stops=(), times=0):
        cdef Piece* piece = &self._parts.open()
        cdef Tape body
        if kind == "host":
            piece.host = <PyObject*>what
            self._kept.append(what)
        else:
            piece.flag = _flag(what)
        for body in bodies:
            self._kept.append(body)
            piece.bodies.push_back(&body._parts)
        for stop in stops:
            piece.stops.push_back(_flag(stop))
        piece.times = times
        piece.control = {
            "host": Control.host,
            "require": Control.require,
            "repeat": Control.repeat,
            "loop": Control.loop,
            "branch": Control.branch,
        }[kind]

    def run(self, bases: list) -> bool:
        """Start everything on the current stream; False when a step has stopped."""
        cdef vector[npjit_int64] values = bases
        cdef void* stream
        current_stream(&stream)
        ran = run_tape(self._parts, values.data(), values.size(), stream)
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
            made.extents = arguments[0]
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
        self._parts.last = NULL
        self._instances[key] = instance
        self._parts.instances[key] = &instance._instance

    def release(self) -> None:
        """Let go of the memory that is kept for later calls."""
        cdef DeviceInstance instance
        for instance in self._instances.values():
            drop_kept(instance._instance)
