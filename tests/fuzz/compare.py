"""Whether two outcomes are the same, as far as rounding allows.

In: the program, plain NumPy's `Outcome` and npjit's. Out: "" or the first difference as text. Float
values may differ by what the program's own noisy runs differ by; everything else (types, dtypes,
shapes, memory order, aliasing, exceptions) is exact:

    difference(program, plain, mine)    ->  "result[0]: dtype float32, not float64"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.fuzz.noise import NOISY
from tests.fuzz.program import Outcome, Program

# differences that are counted, but not hunted: equal values in another memory order, or as another
# kind of number where the path taken decides between Python's and NumPy's
LESSER = ("memory order", "kind of number")
ROUNDINGS = 4.0
# noisy runs at first, and before a difference counts
FEW, MANY_RUNS = 3, 60
SLACK = 16.0


def difference(program: Program, plain: Outcome, mine: Outcome) -> str:
    """Why `mine` is not what NumPy gives; empty when it is."""
    found = _structural(plain, mine)
    if found:
        return found
    want, got = list(leaves(plain)), list(leaves(mine))
    unequal = [k for k in range(len(want)) if _wrong(got[k][1], want[k][1], None)]
    if not unequal:
        return ""
    for runs, size in ((FEW, ROUNDINGS), (MANY_RUNS, ROUNDINGS), (MANY_RUNS, 4 * ROUNDINGS)):
        found_runs = _noisy_runs(program, runs, size)
        noise = [list(leaves(o)) for o in found_runs if type(o.error) is type(plain.error)]
        if not noise:
            break
        unequal = [
            k
            for k in unequal
            if _wrong(got[k][1], want[k][1], [n[k][1] for n in noise if len(n) > k])
        ]
        if not unequal:
            return ""
    k = unequal[0]
    return f"{want[k][0]}: {_shown(got[k][1])}, not {_shown(want[k][1])}"


def leaves(outcome: Outcome) -> Iterator[tuple[str, Any]]:
    """The numbers and arrays of a result and of the arguments, with their places."""
    yield from _leaves("result", outcome.result)
    for k, a in enumerate(outcome.arguments):
        yield from _leaves(f"argument {k}", a)


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple | list):
        for k, v in enumerate(value):
            yield from _leaves(f"{place}[{k}]", v)
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from _leaves(f"{place}[{k!r}]", v)
    else:
        yield place, value


def _structural(plain: Outcome, mine: Outcome) -> str:
    if plain.error is not None or mine.error is not None:
        same = type(plain.error) is type(mine.error) and str(plain.error) == str(mine.error)
        if not same:
            return f"exception {mine.error!r}, not {plain.error!r}"
    if plain.error is not None:
        return ""
    want, got = list(leaves(plain)), list(leaves(mine))
    if [p for p, _ in want] != [p for p, _ in got] or type(plain.result) is not type(mine.result):
        return f"structure {mine.result!r}, not {plain.result!r}"
    for (place, w), (_, g) in zip(want, got, strict=True):
        for name, one, other in _facts(w, g):
            if one != other:
                return f"{place}: {name} {other}, not {one}"
    for k in range(len(want)):
        for j in range(k):
            shared = _share(want[k][1], want[j][1]), _share(got[k][1], got[j][1])
            if shared[0] != shared[1]:
                return f"{want[j][0]} and {want[k][0]}: sharing memory {shared[1]}, not {shared[0]}"
    return ""


def _share(a: Any, b: Any) -> bool:
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return False
    return bool(np.may_share_memory(a, b)) and np.shares_memory(a, b, max_work=100_000)


def _facts(want: Any, got: Any) -> Iterator[tuple[str, Any, Any]]:
    if _is_number(want) and _is_number(got):
        same = bool(want == got) or want != want
        yield ("kind of number" if same else "type"), type(want), type(got)
    else:
        yield "type", type(want), type(got)
    if isinstance(want, np.ndarray | np.generic):
        yield "dtype", want.dtype, got.dtype
        yield "shape", want.shape, got.shape
    if isinstance(want, np.ndarray):
        # a copy in place of a read-only view may well be written to; of stride 0: NumPy is changing
        # its mind
        yield (
            "writeable",
            True,
            got.flags.writeable or 0 in want.strides or not want.flags.writeable,
        )
    if isinstance(want, np.ndarray) and want.size and want.shape == got.shape:
        axes = [a for a in range(want.ndim) if want.shape[a] > 1 and want.strides[a]]
        yield "memory order", _order(want, axes), _order(got, axes)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex | np.generic)


def _order(array: Any, axes: list[int]) -> list[int]:
    return sorted(axes, key=lambda a: -abs(array.strides[a]))


def _noisy_runs(program: Program, count: int, size: float) -> list[Outcome]:
    """Outcomes of noisy runs; none when nothing in the program is inexact."""
    outcomes = []
    for _ in range(count):
        function = program.function(noisy=size)
        outcomes.append(program.call(function))
        if not function.__globals__[NOISY].used:
            return []
    return outcomes


def _wrong(got: Any, want: Any, noise: list[Any] | None) -> bool:
    """Whether the leaf differs by more than the noisy runs allow (None: at all)."""
    if not isinstance(want, np.ndarray | np.generic | int | float | complex):
        return noise is None and bool(got != want)
    one, other = np.asarray(want), np.asarray(got)
    bad = ~_equal(other, one)
    if noise is None or not bad.any():
        return bool(bad.any())
    runs = [np.asarray(n) for n in noise if np.shape(n) == one.shape]
    if len(runs) < len(noise) or not runs:
        return False
    if one.dtype.kind not in "fc":
        return bool((bad & np.all([r == one for r in runs], axis=0)).any())
    return bool((bad & ~_near(other, one, runs)).any())


def _equal(a: Any, b: Any) -> Any:
    if a.dtype.kind == "c":
        return _equal(a.real, b.real) & _equal(a.imag, b.imag)
    if a.dtype.kind != "f":
        return np.asarray(a == b)
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    return np.asarray(same | (np.isnan(a) & np.isnan(b)))


def _near(got: Any, want: Any, runs: list[Any]) -> Any:
    """Where got lies within the noise around want, or the noise changes what kind of number it
    is."""
    if want.dtype.kind == "c":
        size = np.maximum(np.abs(want.real), np.abs(want.imag))
        spread = [_spread(p(want), [p(r) for r in runs], size) for p in (np.real, np.imag)]
        both = np.maximum(*spread)
        moved = np.any([r != want for r in runs], axis=0)
        parts = [(p(got), p(want)) for p in (np.real, np.imag)]
        return np.logical_and(*[_within(a, b, both, moved) for a, b in parts])
    moved = np.any([r != want for r in runs], axis=0)
    return _within(got, want, _spread(want, runs, np.abs(want)), moved)


def _spread(want: Any, runs: list[Any], size: Any) -> Any:
    """Absolute tolerance; infinite where a noisy run changes the sign of zero, or finiteness."""
    with np.errstate(all="ignore"):
        base = want.astype(np.float64)
        moved = np.max([np.abs(r.astype(np.float64) - base) for r in runs], axis=0)
        kinds = np.any([~_same_kind(r, want) for r in runs], axis=0)
        finite = np.where(np.isfinite(size), size, 1).astype(want.dtype)
        unit = np.spacing(finite).astype(np.float64)
        return np.where(kinds, np.inf, SLACK * np.nan_to_num(moved) + 2 * unit)


def _same_kind(a: Any, b: Any) -> Any:
    zeros = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    finite = np.isfinite(a) & np.isfinite(b)
    return ~zeros & (finite | (a == b) | (np.isnan(a) & np.isnan(b)))


def _within(got: Any, want: Any, tolerance: Any, moved: Any) -> Any:
    """Where got is near enough, and a zero of the same sign unless the noise moves the value."""
    with np.errstate(all="ignore"):
        distance = np.abs(got.astype(np.float64) - want.astype(np.float64))
    zeros = (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
    return (tolerance == np.inf) | _equal(got, want) | ((distance <= tolerance) & (~zeros | moved))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 400 else text[:400] + "..."
