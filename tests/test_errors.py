"""What NumPy raises, compiled functions and gradients raise: type, message, and the user's line."""

from __future__ import annotations

import datetime
import decimal
import traceback
import warnings

import numpy as np
import pytest

import npjit

A, B = np.ones((4, 5)), np.ones((7, 3))


def add(a, b):
    return a + b


def looped(a, b):
    for _ in range(1000):
        a = a + 1.0
    return a.nothing


def past_the_end(a, b):
    total = 0.0
    for k in range(100):
        total += a[k, 0]
    return total


def store(a, b):
    a[0] = np.ones(3)
    return a


def in_place(a, b):
    counts = np.zeros(3, dtype=int)
    counts += 1.5
    return counts + a[0, 0]


def unpack(a, b):
    rows, columns, depth = a.shape
    return rows + columns + depth


def raised_at_its_own(a, b):
    if a.shape != b.shape:
        raise LookupError("shapes", a.shape)


WRONG = [
    add,
    looped,
    past_the_end,
    store,
    in_place,
    unpack,
    raised_at_its_own,
    lambda a, b: add(a * 2.0, b),
    lambda a, b: a @ b,
    lambda a, b: np.dot(a, b),
    lambda a, b: np.einsum("ij,jk->ik", a, b),
    lambda a, b: np.concatenate([a, b]),
    lambda a, b: np.stack([a, b]),
    lambda a, b: np.broadcast_to(a, (3, 3)),
    lambda a, b: a.reshape(3, -1),
    lambda a, b: np.split(a, 3),
    lambda a, b: np.sum(a, axis=5),
    lambda a, b: np.mean(a, axis=(0, 0)),
    lambda a, b: np.swapaxes(a, 0, 5),
    lambda a, b: a.transpose(0, 0),
    lambda a, b: np.max(a[:0]),
    lambda a, b: np.nan_to_num(a[0], nan=a),
    lambda a, b: np.put(a, 0, 1j),
    lambda a, b: np.place(a, a > 0, [1j]),
    lambda a, b: np.putmask(a, a > 0, 1j),
    lambda a, b: np.fill_diagonal(a, 1j),
    lambda a, b: a[10],
    lambda a, b: a[:, :, 0],
    lambda a, b: a["field"],
    lambda a, b: a[1.5],
    lambda a, b: a[[1, 9]],
    lambda a, b: a[[True, False]],
    lambda a, b: a[:, [True, False, True]],
    lambda a, b: np.take(a, 50),
    lambda a, b: a.sum()[0],
    lambda a, b: a << 2,
    lambda a, b: np.sum(a, dtype="nope"),
    lambda a, b: np.linalg.inv(a),
    lambda a, b: np.linalg.cholesky(-np.eye(4))[0, 0] * np.sum(a),
    lambda a, b: np.power(np.arange(3), -1) + a[0, 0],
    lambda a, b: np.nothing(a),
    lambda a, b: nothing(a),  # noqa: F821
    lambda a, b: 1 // 0 * a,
    lambda a, b: add(a, b, a),
]


def raised(f):
    """Type, message, line and function of what a call raises; and what hangs on the exception."""
    try:
        f(A.copy(), B.copy())
    except Exception as e:
        frames = traceback.extract_tb(e.__traceback__)
        last = [frame for frame in frames if frame.filename == __file__][-1]
        return type(e), str(e), last.lineno, last.name, e.__cause__, type(e.__context__)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("f", WRONG)
@pytest.mark.parametrize("wrap", [npjit.jit, npjit.grad], ids=["jit", "grad"])
def test_numpys_own_error(f, wrap):
    expected = raised(f)
    wrapped = wrap(f)
    for _ in range(2):
        assert raised(wrapped) == expected


METHODS = [
    lambda a: a.item(slice(1, 2)),
    lambda a: a.take(None),
    lambda a: a.fill(1j),
    lambda a: a.sum(True),
    lambda a: a.argsort(0, 2),
    lambda a: a[0].sort(None),
    lambda a: a.partition(True),
    lambda a: a.trace(2**70),
]


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
@pytest.mark.parametrize("f", METHODS)
def test_arguments_that_methods_reject(f):
    def call(a, b):
        return f(a)

    assert raised(npjit.jit(call, backend="numpy")) == raised(call)


# what the function is called with beside the array
WRONG_SETTINGS = [
    (np.exp, {"order": "bogus"}),
    (np.exp, {"subok": 1}),
    (np.exp, {"dtype": 3.7}),
    (np.exp, {"dtype": B}),
    (np.astype, {"dtype": B}),
    (np.sum, {"keepdims": "yes"}),
    (np.sum, {"dtype": 1j}),
    (np.sum, {"initial": 1j}),
    (np.sum, {"where": np.array([1, 0, 1, 0, 1])}),
    (np.var, {"ddof": 1, "correction": 1}),
    (np.var, {"ddof": B}),
    (np.cov, {"ddof": 1.5}),
    (np.nanstd, {"axis": True}),
    (np.cumsum, {"axis": True}),
    (np.cumsum, {"dtype": 3.7}),
    (np.argsort, {"kind": 2}),
    (np.reshape, {"shape": 20, "copy": "bogus"}),
    (np.zeros_like, {"device": "gpu"}),
    (np.zeros_like, {"shape": True}),
    (np.array, {"dtype": "f4", "copy": False}),
    (np.copy, {"order": "Z"}),
    (np.nan_to_num, {"nan": 1j}),
    (np.clip, {"a_min": 0.1}),
    (np.clip, {"a_min": 0.1, "a_max": 0.2, "min": 0.1}),
    (np.tril, {"k": [1, 2]}),
    (np.isin, {"test_elements": [1.0], "kind": "bogus"}),
    (np.isin, {"test_elements": [1.0], "kind": "table"}),
    (np.dot, {"b": A.T, "out": np.empty((4, 4), "f4")}),
    (np.fft.fft, {"n": True}),
]


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
@pytest.mark.parametrize(("f", "settings"), WRONG_SETTINGS)
def test_settings_that_numpy_rejects(f, settings):
    def call(a, b):
        return f(a, **settings)

    assert raised(npjit.jit(call, backend="numpy")) == raised(call)


def test_arguments_are_left_as_numpy_leaves_them():
    def f(x):
        x[0] = 5.0
        return np.sum(x) + x[np.int64(100)]

    expected = np.zeros(20)
    with pytest.raises(IndexError):
        f(expected)
    for wrap in (npjit.jit, npjit.grad):
        x = np.zeros(20)
        with pytest.raises(IndexError, match="index 100 is out of bounds for axis 0 with size 20"):
            wrap(f)(x)
        assert np.array_equal(x, expected)


MASKED = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
OTHERS = {
    "object": np.array([1, decimal.Decimal("2.5")], dtype=object),
    "text": np.array(["a", "bc"]),
    "variable text": np.array(["a", "b"], dtype=np.dtypes.StringDType()),
    "bytes": np.array([b"a", b"bc"]),
    "dates": np.array(["2020-01-01", "2021-02-03"], dtype="M8[D]"),
    "durations": np.array([1, 2], dtype="m8[s]"),
    "structures": np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "masked": MASKED,
    "matrix": np.ones((2, 2)).view(np.matrix),
    "longdouble": np.ones(3, np.longdouble),
    "other bytes first": np.arange(4, dtype="f8").astype(np.dtype("f8").newbyteorder()),
    "not aligned": np.frombuffer(bytes(33), dtype=np.uint8)[1:].view("f8"),
    "a date": np.datetime64("2020-01-01"),
    "a duration": datetime.timedelta(days=1),
    "a decimal": decimal.Decimal(3),
    "None": None,
    "list": [1, 2, 3],
    "large int": 10**30,
}


def doubled(x):
    return x * 2 + 1


def outcome(f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = f(x)
        except Exception as e:
            return type(e), str(e)
    return type(result), getattr(result, "dtype", None), str(result)


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("f", [doubled, np.sum, lambda x: x[::-1]], ids=["double", "sum", "flip"])
def test_other_kinds_of_values(kind, f):
    jitted = npjit.jit(f)
    for _ in range(2):
        assert outcome(jitted, OTHERS[kind]) == outcome(f, OTHERS[kind])


def test_masks_are_kept():
    with pytest.warns(npjit.NpjitWarning, match="arrays of type MaskedArray are not compiled"):
        got = npjit.jit(doubled)(MASKED)
    assert np.array_equal(got.mask, MASKED.mask)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("object", "arrays of dtype object are not compiled"),
        ("masked", "arrays of type MaskedArray are not compiled"),
        ("not aligned", "arrays that are not aligned are not compiled"),
        ("a decimal", "argument 0: cannot differentiate a Decimal"),
        ("list", r"argument 0\[0\]: needs a float or complex value, got int64"),
    ],
)
@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_gradients_of_other_kinds_say_why_not(kind, text):
    with pytest.raises((npjit.CaptureError, TypeError), match=text):
        npjit.grad(np.sum)(OTHERS[kind])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"bakend": "cpp"}, TypeError, r"\(\) got an unexpected keyword argument 'bakend'"),
        ({"backend": 3}, TypeError, "backend must be a name or a callable, not 3"),
        ({"backend": "nothing"}, ValueError, "no backend named 'nothing'; there are cpp, "),
        ({"dynamic": "yes"}, ValueError, "dynamic must be None, True or False"),
        ({"fullgraph": "no"}, ValueError, "fullgraph must be True or False"),
        ({"recompile_limit": -1}, ValueError, "recompile_limit must be an int >= 0"),
        ({"device": "gpu"}, ValueError, "device must be None"),
    ],
)
@pytest.mark.parametrize("wrap", [npjit.jit, npjit.grad, npjit.value_and_grad])
def test_wrong_options(wrap, options, error, text):
    with pytest.raises(error, match=text):
        wrap(doubled, **options)


@pytest.mark.parametrize("argnums", [1.5, "a", [0, "b"], None])
def test_wrong_argnums(argnums):
    with pytest.raises(TypeError, match="argnums must be an int or a sequence of ints"):
        npjit.grad(doubled, argnums=argnums)
    with pytest.raises(TypeError, match="which must be passed by position; this call has 1 posi"):
        npjit.grad(doubled, argnums=1)(1.0)


OFFSET = np.ones(4)


def test_calls_that_raise_are_traced_once(monkeypatch):
    f = npjit.jit(lambda x: x * 2 + OFFSET, backend="numpy")
    for _ in range(3):
        with pytest.raises(ValueError, match="broadcast"):
            f(np.ones(30))
    assert sum(f.cache_info()["refusals"].values()) == 1
    monkeypatch.setitem(globals(), "OFFSET", np.ones(30))
    for _ in range(2):
        assert np.array_equal(f(np.ones(30)), np.full(30, 3.0))
    assert f.cache_info()["whole"] == 1, "the first of them is NumPy's"
