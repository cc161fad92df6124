"""States of recordings: what an operation gave when it was first met, for all who meet it again."""

cdef enum Leaf:
    made, viewed, same, unsure  # see ValueType


cdef class Slot:
    """The place of a value among those of a recording, in the operations that use it."""

    cdef readonly int number

    def __repr__(self):
        return f"%{self.number}"


cdef list SLOTS = []


cdef Slot slot_object(size_t number):
    cdef Slot slot
    while len(SLOTS) <= number:
        slot = Slot.__new__(Slot)
        slot.number = len(SLOTS)
        SLOTS.append(slot)
    return SLOTS[number]


cdef class ValueType:
    """What is known of a recorded value: shape, dtype, weight ("array", "scalar", "weak"), and what
    it has to do with the operands of its operation: "made" anew; a value that shows the memory of
    the one in `slot` ("viewed"), or is it ("same"), or may share it ("unsure"). `ordered`: NumPy
    surely makes it C-contiguous.
    """

    cdef readonly tuple shape
    cdef readonly object dtype
    cdef readonly str weight
    cdef Leaf kind
    cdef size_t slot
    cdef bint differentiable, ordered

    def __init__(self, tuple shape, dtype, str weight, str kind="made", slot=0, bint ordered=True):
        self.shape = shape
        self.dtype = dtype
        self.weight = weight
        self.kind = <Leaf><int>("made", "viewed", "same", "unsure").index(kind)
        self.slot = slot
        self.ordered = ordered
        self.differentiable = dtype.kind not in "biu"

    @property
    def is_new(self) -> bool:
        """Whether it gets a slot."""
        return self.kind != Leaf.same


cdef class Operation:
    """One recorded operation, a call with Slots in place of values, and what it gives: `results`
    are the leaves, `build` puts them together (None: the only one is the result), `writes` the
    slots of values that it changes, `checked` whether it may raise when it runs. An input has no
    function; its only argument is whether it lies in memory as NumPy's array does. `key`: what
    tells it from others, types aside.
    """

    cdef readonly object function, key
    cdef readonly tuple args, results, writes
    cdef readonly dict kwargs
    cdef object build
    cdef bint checked
    cdef State target

    def __init__(
        self, function, args, kwargs, results, build=None, writes=(), checked=False
    ):
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.results = results
        self.build = build
        self.writes = writes
        self.checked = checked


cdef class State:
    """Where recordings stand that have made the same operations; `compiled` is the host's."""

    cdef dict _next
    cdef set _met
    cdef readonly State previous
    cdef readonly Operation operation
    cdef readonly dict compiled

    def __init__(self):
        self._next = {}
        self._met = set()
        self.compiled = {}

    cdef State _add(self, object key, Operation operation):
        cdef State target = State()
        target.previous = self
        target.operation = operation
        operation.target = target
        operation.key = None if operation.function is None else key
        self._next[key] = operation
        return target

    cdef Operation _known(self, object key):
        """The operation with this key, if it was met here; NotRecorded where it was refused."""
        found = self._next.get(key)
        if type(found) is NotRecorded:
            raise NotRecorded(*found.args)
        return found

    def path(self) -> list:
        """The operations that lead here."""
        cdef State state = self
        found = []
        while state.previous is not None:
            found.append(state.operation)
            state = state.previous
        return found[::-1]
