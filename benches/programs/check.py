"""Whether a call of a program gave what NumPy gives, arguments after the call included.

In: a program, (result, *arguments) of a call, and the same of NumPy's. Out: nothing, or an
AssertionError that names the first difference:

    assert_right(program, (got, *got_arguments), (want, *want_arguments))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benches.programs.program import Program
from npjit.core.tolerance import TRANSCENDENTAL, assert_equal_numpy


def assert_right(
    program: Program, got: tuple[Any, ...], want: tuple[Any, ...], *, typed: bool = True
) -> None:
    """Exact up to roundings the size of `conditioning`, relative to the largest element.

    Without `typed` another kind of number stands for NumPy's: Numba and JAX return no other.
    """
    for one, other in zip(flat(got), flat(want), strict=True):
        if not typed and isinstance(other, np.generic | int | float):
            one = type(other)(one)
        if identical(one, other):
            continue
        bound = allowance(program.conditioning, other)
        assert_equal_numpy(one, other, ulp=TRANSCENDENTAL, bound=bound)


def identical(one: Any, other: Any) -> bool:
    """Whether two arrays hold the same bytes: most arguments do, and this is soon known."""
    arrays = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    if not (arrays and one.dtype == other.dtype and one.shape == other.shape and one.ndim):
        return False
    if not (one.flags.c_contiguous and other.flags.c_contiguous):
        return False
    return np.array_equal(one.view(np.uint8), other.view(np.uint8))


def flat(results: tuple[Any, ...]) -> list[Any]:
    """The arrays and numbers of a call, those inside tuples too."""
    return [x for r in results for x in (flat(r) if isinstance(r, tuple) else [r])]


def allowance(conditioning: float, want: Any) -> Any:
    if want is None or not conditioning:
        return None
    values = np.asarray(want)
    if values.dtype.kind not in "fc":
        return None
    return conditioning * np.finfo(values.dtype).eps * np.max(np.abs(values), initial=0.0)
