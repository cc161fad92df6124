"""From input words to results: every scalar and dtype in and out, memory orders, views, trees."""

from __future__ import annotations

import collections
import dataclasses
import gc

import numpy as np
import pytest
from npjit._runtime import Dispatcher, describe_array

from tests.native_code import FLOAT64, NEEDS_COMPILER, array_step, compile_native, entry_of

pytestmark = NEEDS_COMPILER

DTYPES = [np.dtype(code) for code in "?bBhHiIlLqQefdFD"]


def dispatcher_of(entry) -> Dispatcher:
    dispatcher = Dispatcher(lambda args, kwargs: pytest.fail("no entry matched"), None)
    dispatcher.add(entry)
    return dispatcher


# The words of `in` as they are, as an int64 array.
@pytest.fixture
def words(tmp_path):
    def of(steps: list, count: int) -> Dispatcher:
        run = f"for (int i = 0; i < {count}; ++i) ((npjit_int64*)buffers[0])[i] = in[i];"
        native = compile_native(tmp_path, f"out[1] = {count};", run)
        int64 = np.dtype(np.int64).num
        return dispatcher_of(entry_of(native, steps, [("array", int64, 1, None)]))

    return of


def bits(*values: float) -> list[int]:
    return np.array(values, float).view(np.int64).tolist()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("f", -0.5, bits(-0.5)),
        ("i", -7, [-7]),
        ("i", 2**63 - 1, [2**63 - 1]),
        ("b", True, [1]),
        ("b", False, [0]),
        ("c", 1.5 - 2j, bits(1.5, -2.0)),
    ],
)
def test_python_scalars_in(words, kind, value, expected):
    run = words([(("arg", 0), ("scalar", kind))], len(expected))
    assert run(value).tolist() == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.char)
def test_numpy_scalars_in(words, dtype):
    if dtype.kind == "c":
        value, expected = dtype.type(1.5 - 2j), bits(1.5, -2.0)
    elif dtype.kind == "f":
        value, expected = dtype.type(-1.5), bits(-1.5)
    elif dtype.kind == "b":
        value, expected = np.True_, [1]
    else:
        extreme = np.iinfo(dtype).min or np.iinfo(dtype).max
        value, expected = dtype.type(extreme), [int(np.array(extreme, dtype).astype(np.int64))]
    run = words([(("arg", 0), ("npscalar", dtype.num))], len(expected))
    assert run(value).tolist() == expected


def test_arrays_in(words):
    x = np.zeros((6, 10), "f4")[::2, ::-3]
    run = words([array_step(0, x), (("arg", 1), ("scalar", "i"))], 6)
    assert run(x, 9).tolist() == [x.ctypes.data, 3, 4, 20, -3, 9]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.char)
def test_dtypes_out(tmp_path, dtype):
    run = """
      const char* x = (const char*)in[0];
      for (npjit_int64 i = 0; i < in[1] * SIZE; ++i) buffers[0][i] = x[i];
      for (npjit_int64 i = 0; i < SIZE; ++i) buffers[1][i] = x[i];
    """.replace("SIZE", str(dtype.itemsize))
    native = compile_native(tmp_path, "out[1] = in[1];", run)
    x = np.array([1, 0, 3]).astype(dtype)
    outputs = [("array", dtype.num, 1, None), ("npscalar", dtype.num)]
    tree = ("tuple", [("leaf", 0), ("leaf", 1)])
    array, scalar = dispatcher_of(entry_of(native, [array_step(0, x)], outputs, tree=tree))(x)
    assert array.dtype == dtype and type(scalar) is dtype.type
    assert array.tobytes() == x.tobytes() and scalar == x[0]


def test_python_scalars_out(tmp_path):
    run = """
      *(double*)buffers[0] = -0.5;
      *(npjit_int64*)buffers[1] = -7;
      *buffers[2] = 1;
      ((double*)buffers[3])[0] = 1.5;
      ((double*)buffers[3])[1] = -2;
    """
    native = compile_native(tmp_path, "", run)
    outputs = [("python", kind) for kind in "fibc"]
    tree = ("list", [("leaf", k) for k in range(4)])
    result = dispatcher_of(entry_of(native, [], outputs, tree=tree))()
    assert result == [-0.5, -7, True, 1.5 - 2j]
    assert [type(value) for value in result] == [float, int, bool, complex]


@pytest.mark.parametrize("shape", [(3, 4, 5), (20, 30, 40), (1, 4, 5), (0, 4, 5)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_memory_orders(tmp_path, order, shape):
    prepare = "for (int k = 0; k < 3; ++k) out[1 + k] = in[k];"
    native = compile_native(tmp_path, prepare, "")
    steps = [(("arg", k), ("scalar", "i")) for k in range(3)]
    result = dispatcher_of(entry_of(native, steps, [("array", FLOAT64, 3, order)]))(*shape)
    expected = np.empty([shape[axis] for axis in order]).transpose(np.argsort(order))
    assert result.shape == shape and result.strides == expected.strides
    assert result.flags.c_contiguous == expected.flags.c_contiguous
    assert result.flags.f_contiguous == expected.flags.f_contiguous


def test_views_of_inputs(tmp_path):
    # x[::-2] of a 1-d x
    prepare = "out[1] = (in[1] - 1) * in[2]; out[2] = (in[1] + 1) / 2; out[3] = -2 * in[2];"
    native = compile_native(tmp_path, prepare, "")
    x = np.arange(9.0)
    entry = entry_of(native, [array_step(0, x)], [("alias", 0, FLOAT64, 1, True)])
    reverse = dispatcher_of(entry)
    y = reverse(x)
    np.testing.assert_array_equal(y, x[::-2])
    assert y.base is x and y.flags.writeable and not y.flags.owndata
    y[0] = 99.0
    assert x[8] == 99.0
    assert reverse(x[:]).base is x  # as NumPy's views of views
    x.flags.writeable = False
    assert not reverse(x).flags.writeable


def test_a_view_that_must_not_be_written(tmp_path):
    native = compile_native(tmp_path, "out[1] = 0; out[2] = in[1]; out[3] = in[2];", "")
    x = np.arange(9.0)
    entry = entry_of(native, [array_step(0, x)], [("alias", 0, FLOAT64, 1, False)])
    y = dispatcher_of(entry)(x)
    assert np.shares_memory(x, y)
    assert not y.flags.writeable


def test_view_as_another_dtype(tmp_path):
    # z.imag
    native = compile_native(tmp_path, "out[1] = 1; out[2] = in[1]; out[3] = 2 * in[2];", "")
    z = np.arange(5) + 1j * np.arange(5, 10)
    entry = entry_of(native, [array_step(0, z)], [("alias", 0, FLOAT64, 1, True)])
    np.testing.assert_array_equal(dispatcher_of(entry)(z), z.imag)


def test_several_outputs_share_the_words(tmp_path):
    prepare = "out[1] = 2; out[2] = 1; out[3] = 2; out[4] = in[2]; out[5] = 4;"
    native = compile_native(tmp_path, prepare, "")
    x = np.arange(3.0)
    outputs = [
        ("array", FLOAT64, 1, None),
        ("alias", 0, FLOAT64, 1, True),
        ("input", 0),
        ("array", FLOAT64, 1, None),
    ]
    tree = ("tuple", [("leaf", k) for k in (3, 2, 1, 0, 3)])
    result = dispatcher_of(entry_of(native, [array_step(0, x)], outputs, tree=tree))(x)
    assert result[0].shape == (4,) and result[3].shape == (2,)
    assert result[1] is x and result[4] is result[0]
    np.testing.assert_array_equal(result[2], x[1:])


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object
    other: object

    def __post_init__(self):
        raise AssertionError("results are made without __init__")


@dataclasses.dataclass(slots=True)
class Slotted:
    value: object


def test_trees():
    config = object()
    leaf = ("leaf", 0)
    tree = (
        "dict",
        dict,
        ("a", 1),
        [
            ("tuple", [leaf, ("list", [("const", None), ("step", 1)])]),
            (
                "dataclass",
                Frozen,
                ("value", "other"),
                [
                    ("namedtuple", Pair, [leaf, ("tuple", [])]),
                    (
                        "dict",
                        collections.OrderedDict,
                        ("x",),
                        [("dataclass", Slotted, ("value",), [leaf])],
                    ),
                ],
            ),
        ],
    )
    steps = [(("arg", 0), ("scalar", "f")), (("arg", 1), ("any",))]
    entry = entry_of(
        None,
        steps,
        [("array", FLOAT64, 0, None)],
        inputs=(0,),
        call=lambda inputs: inputs,
        tree=tree,
    )
    result = dispatcher_of(entry)(2.5, config)
    assert type(result) is dict and list(result) == ["a", 1]
    assert result["a"] == (2.5, [None, config])
    frozen = result[1]
    assert type(frozen) is Frozen and type(frozen.value) is Pair and frozen.value == (2.5, ())
    assert type(frozen.other) is collections.OrderedDict
    assert type(frozen.other["x"]) is Slotted and frozen.other["x"].value == 2.5


def test_failing_tree_leaks_nothing():
    class Refusing(dict):
        def __setitem__(self, key, value):
            raise RuntimeError("no")

    marker = [1]
    tree = ("tuple", [("leaf", 0), ("dict", Refusing, ("a",), [("leaf", 0)])])
    entry = entry_of(
        None, [], [("array", FLOAT64, 0, None)], call=lambda inputs: [marker], tree=tree
    )
    dispatcher = dispatcher_of(entry)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            dispatcher()
    gc.collect()
    assert len(gc.get_referrers(marker)) <= 3  # this frame, the lambda's cell and frame locals


@pytest.mark.parametrize(
    "changes",
    [
        {"outputs": [("array", FLOAT64, 2, (0, 0))]},
        {"outputs": [("npscalar", np.dtype(object).num)]},
        {"outputs": [("alias", 1, FLOAT64, 1, True)]},
        {"outputs": [("input", 1)]},
        {"outputs": [("wrong", 1)]},
        {"tree": ("leaf", 1)},
        {"tree": ("step", 9)},
        {"tree": ("dict", dict, ("a", "b"), [("leaf", 0)])},
        {"tree": ("heap", [])},
        {"inputs": (1,)},
        {"inputs": (7,)},
        {"disjoint": ((0, 1),)},
    ],
)
def test_impossible_entries_are_refused(changes):
    x = np.zeros(3)
    steps = [array_step(0, x), (("arg", 1), ("any",))]
    fields = {"inputs": (0,), "outputs": [("input", 0)]} | changes
    with pytest.raises(ValueError):
        entry_of(None, steps, fields.pop("outputs"), call=list, **fields)


def test_description_and_guard_agree_on_odd_strides():
    record = np.zeros(4, np.dtype([("a", "f8"), ("b", "f4")]))
    assert describe_array(record["a"]) is None  # strides of 12 bytes
