"""Random straight-line programs of views, updates in place, reshapes and copies against NumPy.

Compared are results, the arguments afterwards, errors, and which of all these arrays share memory.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import outcome

VIEWS = """
{a}[1:] | {a}[:-1] | {a}[::-1] | {a}[::2] | {a}.T | {a}[0] | {a}[-1] | {a}[None] | {a}[..., 0]
{a}[..., 1:] | {a}.reshape(-1) | {a}.ravel() | {a}.copy() | {a} | {a}[:, ::-1] | np.asarray({a})
{a}[...] | {a}.swapaxes(0, -1) | {a}.flatten() | np.expand_dims({a}, 0) | np.squeeze({a})
{a}.squeeze() | {a}.reshape(2, -1) | {a}.astype('f4') | {a}.real | np.atleast_2d({a})
{a}.view() | np.moveaxis({a}, 0, -1) | np.flip({a}, 0) | {a}[1:3] | {a}[-3:] | {a}[1]
"""
VALUES = """
{a} + {b} | {a} * 2 | {a} - {b} | np.maximum({a}, {b}) | -{a} | np.sum({a}, axis=0)
np.sum({a}) | {a} @ {b} | np.where({a} > 0, {a}, {b}) | np.concatenate([{a}, {b}])
np.zeros_like({a}) | np.ones({a}.shape) | {a} > {b} | np.stack([{a}, {b}])
np.sqrt(np.abs({a})) | {a}.astype(int) | np.zeros(3) | float(np.sum({a})) | {a}.shape[0]
len({a}) | np.array([{a}.sum(), 1.0])
"""
UPDATES = """
{a} += {b} | {a} *= 2 | {a}[0] = {b} | {a}[1:] = {b}[:-1] | {a}[:-1] += {b}[1:] | {a}[...] = {b}
{a}[::2] = 1.5 | {a}[-1] -= {b} | {a}[:] = {a}[::-1] | {a} -= 1 | np.add({a}, {b}, out={a})
{a}.fill(3) | {a}[1] = {a}[0] | {a}[:, 0] = 7 | np.copyto({a}, {b}) | {a}[0], {a}[1] = 5, 6
{a}[1:3] *= {b}[0]
"""
KINDS = ["C", "F", "reversed", "strided", "same", "part", "vector", "number", "int", "long"]


def choices(text: str) -> list[str]:
    return [part.strip() for part in text.strip().replace("\n", "|").split("|")]


def make_program(r: random.Random, count: int) -> tuple[str, Callable[..., Any]]:
    """Source and function of `count` arguments."""
    names = [f"x{i}" for i in range(count)]
    lines = [f"def f({', '.join(names)}):"]
    for k in range(r.randint(2, 7)):
        a, b, chance = r.choice(names), r.choice(names), r.random()
        if chance < 0.6:
            source = r.choice(choices(VIEWS if chance < 0.35 else VALUES)).format(a=a, b=b)
            lines.append(f"    v{k} = {source}")
            names.append(f"v{k}")
        else:
            lines.append("    " + r.choice(choices(UPDATES)).format(a=a, b=b))
    lines.append(f"    return {', '.join(r.sample(names, min(len(names), r.randint(1, 3))))},")
    scope: dict[str, Any] = {"np": np}
    exec("\n".join(lines), scope)
    return "\n".join(lines), scope["f"]


def make_arguments(kinds: list[str], seed: int) -> tuple[Any, ...]:
    """Fresh arguments of these kinds, "same" and "part" sharing memory with the one before."""
    rng = np.random.default_rng(seed)
    args: list[Any] = []
    for kind in kinds:
        square = rng.integers(-4, 5, (8, 8)).astype(float)
        before = args[-1] if args and isinstance(args[-1], np.ndarray) else square[0]
        args.append(
            {
                "C": square[:4, :4].copy(),
                "F": np.asfortranarray(square[:4, :4]),
                "reversed": square[:4, :4].copy()[::-1, ::-1],
                "strided": square[::2, ::2],
                "same": before,
                "part": before[1:],
                "vector": square[0, :4].copy(),
                "number": float(square[0, 0]),
                "int": square[:4, :4].astype(int),
                "long": square.ravel()[:20].copy(),
            }[kind]
        )
    return tuple(args)


def observed(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Everything a caller can see of a call."""
    result = outcome(f, args, {})
    failed = len(result) == 2 and isinstance(result[0], type)
    arrays = [a for a in (*(() if failed else result), *args) if isinstance(a, np.ndarray)]
    sharing = [[np.shares_memory(a, b) for b in arrays] for a in arrays]
    return result, args, sharing


def shown(value: Any) -> str:
    """A value's type, dtype, shape and elements; -0.0 and 0.0 are equal here, since sums start from
    either.
    """
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    if isinstance(value, np.ndarray | np.generic):
        elements = (np.asarray(value) + 0).tolist()
        return f"{type(value).__name__} {value.dtype}{value.shape} {elements}"
    return repr(value)


@pytest.mark.parametrize(("backend", "programs"), [("numpy", 600), ("cpp", 40)])
@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_random_programs(backend, programs):
    whole = 0
    for number in range(programs):
        r = random.Random(number)
        count = r.randint(1, 3)
        source, f = make_program(r, count)
        compiled = npjit.jit(f, backend=backend)
        first = [r.choice(KINDS) for _ in range(count)]
        second = [r.choice(KINDS) for _ in range(count)]
        for kinds in (first, second, first):
            got = observed(compiled, make_arguments(kinds, number))
            want = observed(f, make_arguments(kinds, number))
            assert shown(got) == shown(want), f"{source}\n{kinds}\n{compiled.cache_info()}"
        whole += compiled.cache_info()["whole"]
    assert whole > programs // 2


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
@pytest.mark.parametrize("copied", [lambda x: x.copy(), np.copy], ids=["method", "function"])
def test_ravel_of_a_copy_of_an_array_that_is_not_in_c_order(copied):
    def f(x):
        y = copied(x)
        r = y.ravel()
        r[0] = 9.0
        return y

    x = np.arange(12.0).reshape(3, 4)
    for given in (x.T, x[::-1], x[:, ::2], x):
        assert np.array_equal(npjit.jit(f)(given), f(given))
