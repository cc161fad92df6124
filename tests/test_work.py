"""What is stored because computing it again costs more, loads included."""

from __future__ import annotations

from typing import Any

import numpy as np

import npjit


def five_points(a: Any) -> Any:
    return 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def launches(f: Any, *args: Any) -> int:
    np.testing.assert_allclose(npjit.jit(f)(*args), f(*args), rtol=1e-12)
    text: str = npjit.jit(f).lower(*args).as_text("kernels")
    return sum(line.startswith("  launch") for line in text.splitlines())


def test_a_stencil_of_a_stencil_is_stored_whole() -> None:
    x = np.random.default_rng(0).standard_normal((40, 50))
    assert launches(lambda a: five_points(five_points(a)), x) == 2
    text: str = npjit.jit(lambda a: five_points(five_points(a))).lower(x).as_text("kernels")
    # both kernels read five elements and store one: they are the same one
    assert text.count("= kernel over") == 1


def test_what_stands_on_stored_values_is_cheap() -> None:
    """Differences of a stencil's values: these are stored, the differences computed twice."""

    def flow(a: Any) -> Any:
        inner = five_points(a)
        change = inner[1:] - inner[:-1]
        slope = a[2:-1, 1:-1] - a[1:-2, 1:-1]
        limited = np.where(change * slope > 0, 0.0, change)
        return limited[1:] - limited[:-1]

    assert launches(flow, np.random.default_rng(0).standard_normal((40, 50))) == 2


def test_cheap_values_are_computed_again() -> None:
    x = np.random.default_rng(0).standard_normal(60)
    assert launches(lambda a: (a * 2)[1:] + (a * 2)[:-1], x) == 1


def test_what_is_broadcast_comes_for_nothing() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 60))
    assert (
        launches(
            lambda a, b: (lambda s: s[1:] * s[:-1] - s[1:, ::-1][:, ::-1])(a[:, None] + b), x, y
        )
        == 1
    )
