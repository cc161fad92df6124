"""Every elementwise row's C text against NumPy: one kernel per row, all loops, special values."""

from typing import Any

import numpy as np
import pytest

from npjit.core.op import Op
from npjit.core.tolerance import assert_equal_numpy
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.schedule.plan import InputSpec, Launch, OutputSpec, Place, Plan, Source
from tests.plan_runner import KernelBuilder, N, S, run, single
from tests.test_ops_elementwise import special

DTYPES = [np.dtype(c) for c in "?bBhHiIlLefdFD"]
LENGTH = 130
# NumPy gives these exactly; the others, 4 units in the last place
EXACT_KINDS = "biu"
EXACT = {"add", "subtract", "negative", "positive", "sqrt", "rint", "floor", "ceil", "trunc"}


def stretched(values: np.ndarray) -> np.ndarray:
    return np.resize(values, LENGTH)


def arguments(loop: tuple[np.dtype[Any], ...], ufunc: Any) -> list[np.ndarray]:
    """Special values of the loop's dtypes: all pairs, as far as they fit."""
    first = special(loop[0])
    if ufunc is np.reciprocal and loop[0].kind in "iu":
        first = first[first != 0]  # undefined in NumPy's own C
    made = [stretched(np.repeat(first, len(first)) if len(loop) > 1 else first)]
    if len(loop) > 1:
        second = special(loop[1])
        if ufunc is np.power and loop[1].kind in "i":
            second = second[second >= 0]
        made.append(stretched(np.tile(second, len(first))))
    return made


def loops(ufunc: np.ufunc) -> list[tuple[np.dtype[Any], ...]]:
    """The element types that the ufunc's row meets, the result's last."""
    found = {}
    for d in DTYPES:
        try:
            found[build.loop_dtypes(ufunc, (d,) * ufunc.nin)] = None
        except (TypeError, NotCaptured):
            continue
    return list(found)


def plan_of(k: KernelBuilder, arrays: list[np.ndarray], results: list[Any]) -> Plan:
    """One launch of the kernel on vectors of one length."""
    specs = tuple(InputSpec(a.dtype, (N[0],), False) for a in arrays)
    fresh = tuple(OutputSpec("fresh", d, (N[0],)) for d in results)
    places = [Place("input", i) for i in range(len(arrays))]
    places += [Place("output", i) for i in range(len(results))]
    launch = Launch(0, tuple(places), (), (N[0],))
    (length,) = N[0].terms[0][0]
    sources = {length: Source(0, "extent", 0)}
    return Plan(specs, fresh, (k.kernel(1),), (launch,), 0, (), sources)


def compare(op: Op, cases: list[tuple[list[np.ndarray], np.ndarray]], ulp: int = 4) -> None:
    """One kernel that applies the row to each case's arguments."""
    arrays = [a for args, _ in cases for a in args]
    buffers = [(a.dtype, "in") for a in arrays] + [(want.dtype, "out") for _, want in cases]
    k = KernelBuilder([S[0]], (0,), buffers)
    taken = 0
    for number, (args, want) in enumerate(cases):
        values = [k.load(taken + i, {0: 1}) for i in range(len(args))]
        taken += len(args)
        k.store(len(arrays) + number, {0: 1}, k.apply(op, want.dtype, *values))
    plan = plan_of(k, arrays, [want.dtype for _, want in cases])
    for got, (args, want) in zip(run(plan, *arrays), cases, strict=True):
        exact = op.name in EXACT or want.dtype.kind in EXACT_KINDS
        try:
            assert_equal_numpy(got, want, ulp=0 if exact else ulp)
        except AssertionError as e:
            raise AssertionError(f"{op.name} of {[str(a.dtype) for a in args]}: {e}") from None


@pytest.mark.parametrize("ufunc", sorted(kinds.UFUNCS, key=lambda u: u.__name__))
def test_row(ufunc: np.ufunc) -> None:
    cases = []
    for *loop, _ in loops(ufunc):
        args = arguments(tuple(loop), ufunc)
        with np.errstate(all="ignore"):
            wanted = ufunc(*args)
        cases.append((args, wanted))
    compare(kinds.UFUNCS[ufunc], cases)


@pytest.mark.parametrize("code", ["f8", "f4"])
def test_powers_with_literal_exponents(code: str) -> None:
    info = np.finfo(code)
    ends = np.exp2(np.linspace(info.minexp - info.nmant, info.maxexp - 0.1, 500)).astype(code)
    values = np.concatenate([special(np.dtype(code)), ends, -ends])
    for exponent in (3, 4, 1.5, -1.5, -2.0, 2.5, -3.0):
        k = KernelBuilder([S[0]], (0,), [(code, "in"), (code, "out")])
        raised = kinds.UFUNCS[np.power]
        x, y = k.load(0, {0: 1}), k.const(exponent, code)
        k.store(1, {0: 1}, k.apply(raised, code, x, y))
        (got,) = run(single(k, [values], [(code, (N[0],))], [N[0]]), values)
        with np.errstate(all="ignore"):
            assert_equal_numpy(got, values ** values.dtype.type(exponent), ulp=4)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_cast(source: np.dtype[Any]) -> None:
    values = stretched(special(source))
    if source.kind in "fc":
        values = values[np.isfinite(values) & (np.abs(values) < 100)]
    cases = []
    for target in DTYPES:
        kept = np.abs(values) if target.kind == "u" and source.kind in "fc" else values
        with np.errstate(all="ignore"):
            part = kept.real if target.kind not in "bc" else kept
            cases.append(([kept], part.astype(target)))
    compare(kinds.ROWS["cast"], cases)


def test_select_and_gate() -> None:
    choices, gates = [], []
    test = stretched(special("?"))
    for d in DTYPES:
        a, b = arguments((d, d), None)
        choices.append(([test, a, b], np.where(test, a, b)))
        if d.kind in "fc":
            gates.append(([a, b], np.where(a == 0, d.type(0), b)))
    compare(kinds.ROWS["select"], choices)
    compare(kinds.ROWS["gate"], gates)


PARTS = {
    "real": (np.real, "FD"),
    "imag": (np.imag, "FD"),
    "angle": (np.angle, "FD"),
    "modf_fraction": (lambda x: np.modf(x)[0], "efd"),
    "modf_whole": (lambda x: np.modf(x)[1], "efd"),
    "frexp_mantissa": (lambda x: np.frexp(x)[0], "efd"),
    "frexp_exponent": (lambda x: np.frexp(x)[1], "efd"),
}


@pytest.mark.parametrize("name", PARTS)
def test_part(name: str) -> None:
    function, dtypes = PARTS[name]
    cases = []
    for d in dtypes:
        x = stretched(special(d))
        if name == "frexp_exponent":
            x = x[np.isfinite(x)]
        cases.append(([x], np.ascontiguousarray(function(x))))
    compare(kinds.ROWS[name], cases)


def test_int64_against_uint64() -> None:
    a = stretched(np.array([-1, 2**62, 5, 0]))
    b = stretched(np.array([2**64 - 1, 2**63, 5, 1, 0], np.uint64))
    for ufunc in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
        compare(kinds.UFUNCS[ufunc], [([a, b], ufunc(a, b)), ([b, a], ufunc(b, a))])
