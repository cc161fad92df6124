"""Calling a function as it stands and compiled, on equal fresh arguments.

In: the compiled function and arguments, or a function that makes them. Out: nothing, or an
AssertionError: results, their types, and the arguments after the call must be NumPy's, and every
call must have run as `mode` says.

    check_calls(jit(f), np.ones(3), 2.0)
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npjit import jit
from npjit.core.tolerance import TRANSCENDENTAL, assert_equal_numpy


def check_calls(
    compiled: Any, *args: Any, mode: str = "whole", calls: int = 2, **kwargs: Any
) -> dict[str, Any]:
    """Compare `compiled` with the function it was made of, then assert how its calls ran."""
    before = compiled.cache_info()
    f = compiled.__wrapped__
    for _ in range(calls):
        mine, theirs = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
        want = outcome(f, *theirs)
        got = outcome(compiled, *mine)
        assert_same(got, want)
        assert_same(mine, theirs)
    after: dict[str, Any] = compiled.cache_info()
    ran = {m: after[m] - before[m] for m in ("whole", "broken", "numpy") if after[m] != before[m]}
    assert ran == {mode: calls}, f"{ran}: {after['refusals']}"
    return after


def check_rounded(
    f: Callable[..., Any], make: Callable[[int], Sequence[Any]], sizes: Sequence[int]
) -> None:
    """Compare `f` compiled with itself, on arrays of these sizes, up to rounding."""
    compiled = jit(f)
    for n in sizes:
        want, got = make(n), make(n)
        results = compiled(*got), f(*want)
        if results[1] is not None:
            np.testing.assert_allclose(*results, rtol=1e-11)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)
    info = compiled.cache_info()
    assert info["whole"] and not info["numpy"]


def outcome(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call's result, or the type and text of its exception."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args, **kwargs)
        except Exception as e:
            return type(e), str(e)


def assert_same(got: Any, want: Any) -> None:
    """Equal to NumPy, also inside objects, which are compared by their attributes."""
    if hasattr(want, "__dict__") and not isinstance(want, type | np.ndarray | np.generic):
        assert type(got) is type(want)
        assert_same(vars(got), vars(want))
        return
    if isinstance(want, dict):
        assert type(got) is type(want)
        assert list(got) == list(want)
        for key in want:
            assert_same(got[key], want[key])
        return
    if isinstance(want, tuple | list):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
        return
    if getattr(want, "dtype", None) == np.longdouble:
        assert got.dtype == want.dtype
        assert np.array_equal(got, want)
        return
    assert_equal_numpy(got, want, ulp=TRANSCENDENTAL)
