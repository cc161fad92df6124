"""Guards: each way to fetch an object and each way to check it, what matches and what does not."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest
from npjit._runtime import Dispatcher, Entry, describe_array, same_value


def matcher(*steps, npositional=1, kwnames=()) -> Dispatcher:
    """A dispatcher that answers "yes" when the steps hold and "no" when not."""
    entry = Entry(
        mode="numpy",
        npositional=npositional,
        kwnames=kwnames,
        steps=steps,
        inputs=(),
        outputs=(),
        tree=("const", None),
    )
    dispatcher = Dispatcher(lambda args, kwargs: "no", lambda *args, **kwargs: "yes")
    dispatcher.add(entry)
    return dispatcher


def argument(*check) -> Dispatcher:
    return matcher((("arg", 0), check))


def array_check(array, extents=None, layout=None, writeable=None) -> Dispatcher:
    dtype, ndim, exact, found = describe_array(array)
    return argument("array", dtype, ndim, extents or exact, layout or found, writeable)


class Holder:
    def __init__(self, **values):
        self.__dict__.update(values)


class Subclass(np.ndarray):
    pass


class Comparable:
    def __init__(self, value, error=None):
        self.value = value
        self.error = error

    def __eq__(self, other):
        if self.error is not None:
            raise self.error
        return self.value == other.value

    __hash__ = None


NAN = float("nan")


@pytest.mark.parametrize(
    ("guarded", "given", "same"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        (1, np.int64(1), False),
        (2**80, 2**80, True),
        (0.0, -0.0, False),
        (-0.0, -0.0, True),
        (NAN, -NAN, True),
        (NAN, 1.0, False),
        (complex(0.0, -0.0), complex(0.0, 0.0), False),
        (complex(NAN, 0.0), complex(NAN, 0.0), True),
        (np.float64(0.0), np.float64(-0.0), False),
        (np.float32(NAN), np.float32(NAN), True),
        (np.float32(1), np.float64(1), False),
        (np.int8(3), np.int8(3), True),
        ("axis", "ax" + "is", True),
        ((1, (0.0, "a")), (1, (0.0, "a")), True),
        ((1, (0.0,)), (1, (-0.0,)), False),
        ((1, 2), (1, 2, 3), False),
        ((1, 2), (1, True), False),
        ((1, 2), [1, 2], False),
        (slice(0, None, 2), slice(0, None, 2), True),
        (slice(0, None), slice(0.0, None), False),
        (None, None, True),
        (np.dtype("f8"), np.dtype("f8"), True),
        (np.dtype("f8"), np.dtype("f4"), False),
        (Comparable(1), Comparable(1), True),
        (Comparable(1), Comparable(2), False),
        (Comparable(1), Comparable(1, RuntimeError()), False),
    ],
)
def test_equal(guarded, given, same):
    assert argument("equal", guarded)(given) == ("yes" if same else "no")


def test_same_value_is_the_same_test():
    assert same_value(NAN, math.nan) and not same_value(0.0, -0.0) and not same_value(1, True)


@pytest.mark.parametrize("value", [[1], {}, set(), np.zeros(2), (1, [2]), bytearray()])
def test_equal_refuses_what_may_change(value):
    with pytest.raises(TypeError, match="may change"):
        argument("equal", value)


def test_interrupt_in_a_comparison_passes():
    with pytest.raises(KeyboardInterrupt):
        argument("equal", Comparable(1))(Comparable(1, KeyboardInterrupt()))


def test_identity_type_and_any():
    marker = object()
    assert argument("is", marker)(marker) == "yes"
    assert argument("is", marker)(object()) == "no"
    assert argument("is", None)(None) == "yes"
    assert argument("type", int)(5) == "yes"
    assert argument("type", int)(True) == "no"
    assert argument("any")(object()) == "yes"


def test_sequences_and_dicts():
    pair = collections.namedtuple("pair", "a b")
    assert argument("seq", tuple, 2)((1, 2)) == "yes"
    assert argument("seq", tuple, 2)((1, 2, 3)) == "no"
    assert argument("seq", tuple, 2)([1, 2]) == "no"
    assert argument("seq", tuple, 2)(pair(1, 2)) == "no"
    assert argument("seq", pair, 2)(pair(1, 2)) == "yes"
    assert argument("seq", collections.deque, 1)(collections.deque([3])) == "yes"
    keyed = argument("dict", dict, ("a", 1))
    assert keyed({"a": 0, 1: 0}) == "yes"
    assert keyed({1: 0, "a": 0}) == "no"
    assert keyed({"a": 0, True: 0}) == "no"
    assert keyed({"a": 0}) == "no"
    assert keyed(collections.OrderedDict(a=0)) == "no"
    assert argument("dict", collections.OrderedDict, ("a",))(collections.OrderedDict(a=0)) == "yes"


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("f", [0.5, NAN], [1, True, np.float64(1), 1j]),
        ("i", [0, -(2**63), 2**63 - 1], [2**63, -(2**63) - 1, True, 1.0, np.int64(1)]),
        ("b", [True, False], [1, 0, np.True_]),
        ("c", [1j], [1.0, np.complex128(1j)]),
    ],
)
def test_python_scalars(kind, good, bad):
    check = argument("scalar", kind)
    assert [check(value) for value in good] == ["yes"] * len(good)
    assert [check(value) for value in bad] == ["no"] * len(bad)


def test_numpy_scalars():
    check = argument("npscalar", np.dtype("f4").num)
    assert check(np.float32(1)) == "yes"
    assert [check(value) for value in (np.float64(1), 1.0, np.zeros((), "f4"))] == ["no"] * 3
    assert argument("npscalar", np.dtype("f8").num)(1.0) == "no"


def test_array_dtype_rank_and_class():
    check = array_check(np.zeros((3, 4)))
    assert check(np.ones((3, 4))) == "yes"
    for other in (
        np.zeros((3, 4), "f4"),
        np.zeros((3, 4), "i8"),
        np.zeros(12),
        np.zeros((3, 4, 1)),
        np.zeros((3, 4), ">f8"),
        np.zeros((3, 4)).view(Subclass),
        np.ma.zeros((3, 4)),
        np.frombuffer(b"\0" * 97, "u1")[1:].view("f8").reshape(3, 4),
        [[0.0] * 4] * 3,
    ):
        assert check(other) == "no"


def test_array_extents():
    exact = array_check(np.zeros((3, 4)), extents=(3, -1))
    assert [exact(np.zeros(shape)) for shape in ((3, 2), (3, 99))] == ["yes"] * 2
    assert [exact(np.zeros(shape)) for shape in ((3, 1), (3, 0), (2, 4))] == ["no"] * 3
    anything = array_check(np.zeros(4), extents=(-2,))
    assert [anything(np.zeros(n)) for n in (0, 1, 2, 7)] == ["yes"] * 4


def test_array_writeable():
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    assert array_check(np.zeros(3), writeable=True)(frozen) == "no"
    assert array_check(np.zeros(3), writeable=None)(frozen) == "yes"


BASE = np.zeros((4, 6, 8))


@pytest.mark.parametrize(
    ("array", "layout"),
    [
        (BASE, "C"),
        (BASE[0, 0], "C"),
        (np.zeros(()), "C"),
        (BASE[:1, 2:4], "C"),
        (np.zeros((0, 5)).T, "C"),
        (BASE[0, 0, ::2], ("p",)),
        (BASE[0, 0, ::-1], ("n",)),
        (np.broadcast_to(BASE[0, 0, :1], 5), ("0",)),
        (BASE[0].T, ("1", "p", "10|f")),
        (BASE[0, :, ::2], ("p", "p", "01|m")),
        (BASE[0, :, :5], ("p", "1", "01|-")),
        (BASE[:, :, :1], ("p", "p", "x", "01|m")),
        (BASE.transpose(1, 0, 2), ("p", "p", "1", "102|f-")),
        (BASE[:, ::2], ("p", "p", "1", "012|m-")),
        (BASE[:, 2:3, ::2], ("p", "x", "p", "02|-")),
        (np.asfortranarray(BASE), ("1", "p", "p", "210|ff")),
    ],
)
def test_layouts(array, layout):
    assert describe_array(array)[3] == layout
    assert array_check(array)(array) == "yes"


def test_layouts_do_not_match_each_other():
    base = np.zeros((4, 4, 4))
    arrays = [
        base,
        base.transpose(1, 0, 2),
        base.transpose(2, 1, 0),
        base[::-1],
        np.zeros((4, 4, 5))[:, :, :4],
        np.zeros((4, 5, 4))[:, :4],
        np.zeros((4, 4, 8))[:, :, ::2],
        np.broadcast_to(base[0], (4, 4, 4)),
    ]
    table = [[array_check(one)(other) == "yes" for other in arrays] for one in arrays]
    assert np.array_equal(table, np.eye(len(arrays), dtype=bool))


def test_layout_without_order_text_takes_any_order():
    loose = array_check(BASE.transpose(1, 0, 2), extents=(-1, -1, -1), layout=("p", "p", "1"))
    assert loose(BASE.transpose(1, 0, 2)) == "yes"
    assert loose(BASE[:, ::2]) == "yes"
    assert loose(BASE) == "no"


@pytest.mark.parametrize(
    "value",
    [
        3,
        [1.0],
        np.zeros(3, object),
        np.zeros(3, "S2"),
        np.zeros(3, np.longdouble),
        np.zeros(3, ">i4"),
        np.zeros(3, "M8[s]"),
        np.zeros(3, "f4,f8"),
        np.zeros(3, "f4,f4,f4").view(np.recarray),
        np.zeros(2, "f4,f8")["f1"],
        np.ma.zeros(3),
    ],
)
def test_arrays_that_no_check_matches(value):
    assert describe_array(value) is None


def test_parts_of_arguments():
    attribute = matcher(
        (("arg", 0), ("type", Holder)),
        (("attr", 0, "weights"), ("seq", list, 2)),
        (("item", 1, -1), ("equal", 5)),
    )
    assert attribute(Holder(weights=[4, 5])) == "yes"
    assert attribute(Holder(weights=[5, 4])) == "no"
    assert attribute(Holder(weights=[4, 5, 5])) == "no"
    assert attribute(Holder()) == "no"
    keyed = matcher((("arg", 0), ("any",)), (("item", 0, "lr"), ("equal", 0.5)))
    assert keyed({"lr": 0.5}) == "yes"
    assert keyed({"lr": 0.25}) == "no"
    assert keyed({}) == "no"
    assert keyed(7) == "no"
    defaults = collections.defaultdict(lambda: 0.5)
    assert keyed(defaults) == "no"
    assert dict(defaults) == {}
    defaults["lr"] = 0.5
    assert keyed(defaults) == "yes"


def test_exceptions_of_properties():
    class Moody:
        error: BaseException = ValueError()

        @property
        def mood(self):
            raise self.error

    check = matcher((("arg", 0), ("any",)), (("attr", 0, "mood"), ("any",)))
    moody = Moody()
    assert check(moody) == "no"
    moody.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        check(moody)


def test_globals_cells_and_roots():
    names = {"k": 3}
    check = matcher((("global", names, "k"), ("equal", 3)), npositional=0)
    assert check() == "yes"
    names["k"] = 4
    assert check() == "no"
    del names["k"]
    assert check() == "no"

    def outer():
        def inner():
            return value

        yield inner.__closure__[0]
        value = 3
        yield None
        value = 4
        yield None

    steps = outer()
    cell = next(steps)
    check = matcher((("cell", cell), ("equal", 3)), npositional=0)
    assert check() == "no"  # still empty
    next(steps)
    assert check() == "yes"
    next(steps)
    assert check() == "no"

    root = Holder(a=1)
    check = matcher((("root", root), ("any",)), (("attr", 0, "a"), ("equal", 1)), npositional=0)
    assert check() == "yes"
    root.a = 2
    assert check() == "no"


def test_defaults():
    def function(a, b=1, *, c=2):
        return a, b, c

    first = matcher((("defaults", function, 0), ("equal", 1)), npositional=0)
    named = matcher((("kwdefaults", function, "c"), ("equal", 2)), npositional=0)
    assert first() == named() == "yes"
    function.__defaults__ = (3,)
    function.__kwdefaults__ = {"c": 4}
    assert first() == named() == "no"
    function.__defaults__ = None
    function.__kwdefaults__ = None
    assert first() == named() == "no"


def test_keywords_keep_their_order():
    check = matcher(
        (("kw", "b"), ("equal", 2)), (("kw", "a"), ("equal", 1)), npositional=0, kwnames=("a", "b")
    )
    assert check(a=1, b=2) == "yes"
    assert check(b=2, a=1) == "no"  # a function with **kwargs can tell
    assert check(a=2, b=1) == "no"
    assert check(a=1) == "no"
    assert check(1, 2) == "no"
    assert check(**{"".join("a"): 1, "b": 2}) == "yes"


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ((("arg", 1), ("any",)), ValueError),
        ((("kw", "x"), ("any",)), ValueError),
        ((("attr", 0, "x"), ("any",)), ValueError),
        ((("item", -1, 0), ("any",)), ValueError),
        ((("arg", 0), ("nothing",)), ValueError),
        ((("nowhere", 0), ("any",)), ValueError),
        ((("arg", 0), ("scalar", "x")), ValueError),
        ((("arg", 0), ("npscalar", np.dtype(object).num)), ValueError),
        ((("arg", 0), ("array", 12, 2, (3,), "C", None)), ValueError),
        ((("arg", 0), ("array", 12, 1, (3,), ("q",), None)), ValueError),
        ((("global", [], "x"), ("any",)), TypeError),
        ((("cell", 3), ("any",)), TypeError),
        ((("defaults", 3, 0), ("any",)), TypeError),
    ],
)
def test_impossible_steps_are_refused(step, error):
    with pytest.raises(error):
        matcher(step)
