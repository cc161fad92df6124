"""Random differentiable programs, and gradients by finite differences.

In: a `random.Random`. Out: a `Program` whose f gives a real number, smooth at almost every point:

    program = gradient_program(random.Random(3))
    gradient_difference(program, program.call(npjit.grad(program.function(), argnums=(0, 1))))
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.calls import index
from tests.fuzz.program import Outcome, Program
from tests.fuzz.writer import Writer, is_array

STEP = 1e-6
# values beyond this make differences useless
LARGEST = 1e3
SHAPES = ["(3,)", "(4,)", "(2, 3)", "(3, 3)", "(1, 3)", "(2, 1)", "(2, 3, 2)", "(5,)", "()"]

ONE = [
    "np.sin({0})",
    "np.cos({0})",
    "np.tanh({0})",
    "np.exp(-{0} * {0})",
    "np.sqrt({0} * {0} + 1)",
    "np.log({0} ** 2 + 1.5)",
    "np.arctan({0})",
    "{0} ** 2",
    "{0} ** 3 * 0.1",
    "({0} ** 2 + 1) ** -0.5",
    "1 / ({0} ** 2 + 1)",
    "np.abs({0})",
    "-{0}",
    "np.square({0}) * 0.5",
    "np.expm1({0} * 0.1)",
    "np.sinc({0})",
    "np.clip({0}, -1, 1)",
    "np.where({0} > 0.3, {0}, {0} * {0})",
    "np.nan_to_num({0})",
    "{0}.copy()",
    "{0} / (1 + np.abs({0}))",
]
TWO = [
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} * {1}",
    "{0} / ({1} ** 2 + 1)",
    "np.maximum({0}, {1})",
    "np.minimum({0}, {1} * 2)",
    "np.hypot({0}, {1} + 3)",
    "np.arctan2({0}, {1} ** 2 + 1)",
    "np.power({0} ** 2 + 1, {1})",
    "np.logaddexp({0}, {1})",
    "np.where({0} > {1}, {0}, np.sin({1}))",
    "np.copysign({0}, {1})",
    "np.outer({0}, {1})",
]
SHAPING = [
    "{0}.T",
    "{0}[::-1]",
    "np.flip({0})",
    "np.ravel({0})",
    "{0}.reshape(-1)",
    "np.expand_dims({0}, 0)",
    "np.concatenate([{0}, {0} * 2], axis={axis})",
    "np.stack([{0}, np.sin({0})], axis=-1)",
    "np.pad({0}, 1)",
    "np.roll({0}, 1, axis={axis})",
    "np.tile({0}, 2)",
    "np.repeat({0}, 2, axis={axis})",
    "np.diff({0}, axis={axis})",
    "np.broadcast_to({0}, (2,) + {0}.shape)",
    "np.tril({0})",
    "np.swapaxes({0}, 0, -1)",
    "np.squeeze({0})",
    "np.take({0}, [0, -1, 0], axis={axis})",
    "np.cumsum({0}, axis={axis})",
    "np.append({0}, {0})",
]
REDUCING = [
    "np.sum({0}, axis={axis})",
    "np.mean({0}, axis={axis}, keepdims=True)",
    "np.sum({0} ** 2)",
    "np.max({0}, axis={axis})",
    "np.min({0})",
    "np.var({0}, axis={axis})",
    "np.std({0} + np.arange({0}.shape[-1]), axis=-1)",
    "np.prod({0}, axis={axis})",
    "np.linalg.norm({0} + 1)",
    "np.average({0}, axis={axis})",
    "np.trace({0})",
    "np.einsum('i...->...', {0})",
    "np.logaddexp.reduce({0}, axis={axis})",
    "np.sum({0}, axis={axis}, where={0} > 0)",
    "np.ptp({0}, axis={axis})",
    "np.median({0}, axis={axis})",
]
PRODUCTS = [
    "{0} @ {1}",
    "{0} @ {0}.T",
    "np.dot({0}, {1})",
    "np.einsum('ij,ij->i', {0}, {0})",
    "np.einsum('ij,kj->ik', {0}, {0})",
    "np.tensordot({0}, {0}, axes={0}.ndim)",
    "np.inner({0}, {0})",
    "np.vdot({0}, {0})",
    "np.kron({0}, {1})",
]


def gradient_program(rng: random.Random, loops: bool = False) -> Program:
    """A program of float64 arguments whose result is one number."""
    names = ["a", "b"][: rng.randrange(1, 3)]
    setup = [f"{n} = make('f8', {rng.choice(SHAPES)}, {rng.randrange(1000)})" for n in names]
    writer = Writer(rng, setup)
    wanted = rng.randrange(1, 9)
    for _ in range(40):
        if len(writer.lines) >= wanted:
            break
        if loops and rng.random() < 0.3:
            _loop(writer)
        else:
            _line(writer)
    last = writer.names[-1]
    others = [n for n in writer.names if rng.random() < 0.3]
    total = " + ".join(f"np.sum(np.cos({n}))" for n in others) or "0.0"
    writer.add(f"return np.sum(np.sin({last})) + {total}")
    return Program.of(setup, [f"def f({', '.join(names)}):", *writer.lines])


def _line(writer: Writer) -> None:
    rng = writer.rng
    x = writer.pick(lambda v: np.asarray(v).dtype == np.float64)
    if x is None:
        return
    rank = np.ndim(writer.values[x])
    axis = rng.choice(["None", *map(str, range(-rank, rank))]) if rank else "None"
    y = writer.pick(lambda v: np.asarray(v).dtype == np.float64) or x
    kind = rng.random()
    if kind < 0.15 and rank:
        line = f"{writer.fresh()} = {x}[{index(rng, writer.values[x].shape)}]"
    elif kind < 0.27 and rank and x not in writer.arguments:
        key = index(rng, writer.values[x].shape)
        value = rng.choice([f"np.sum({y})", f"np.sin({x}[{key}])", "0.5", f"{x}[{key}] * 2"])
        line = f"{x}[{key}] {rng.choice(['', '+', '*', '-'])}= {value}"
    else:
        forms = rng.choice([ONE, ONE, TWO, TWO, SHAPING, REDUCING, PRODUCTS])
        line = f"{writer.fresh()} = {rng.choice(forms).format(x, y, axis=axis)}"
    before = list(writer.names)
    if writer.try_line(line):
        values = [writer.values[n] for n in writer.names]
        if not all(np.all(np.isfinite(v)) and np.all(np.abs(v) < LARGEST) for v in values):
            writer.lines.pop()
            writer.names = before
            for name in set(writer.values) - {*before, "np", "make", "__builtins__"}:
                del writer.values[name]


def _loop(writer: Writer) -> None:
    """A short loop over the first axis of an array."""
    rng = writer.rng
    x = writer.pick(lambda v: is_array(v) and v.dtype == np.float64 and v.shape[0] > 1)
    if x is None:
        return
    s, u = writer.fresh(), writer.fresh()
    i = rng.choice(["i", "-i", "i - 1"])
    bodies = [
        [f"{s} = np.sin({s}) + np.sum({x}[{i}])"],
        [f"{s} = {s} * 0.5 + {x}[{i}]"],
        [f"{u}[i] = np.tanh({u}[i - 1]) + {x}[{i}]"],
        [f"{u}[i] += {u}[{i}] * 0.3", f"{s} = {s} + np.sum({u}[{i}] ** 2)"],
        [
            f"if np.sum({x}[i]) > 0.2:",
            f"    {s} = {s} * np.sum({x}[{i}])",
            "else:",
            f"    {s} = {s} - 1",
        ],
        [f"{u} = {u} * 0.5 + np.sin({x})", f"{s} = {s} + np.sum({u}) * 0.1"],
        [f"if {s} > 2:", "    break", f"{s} = {s} + np.sum({x}[{i}] ** 2)"],
    ]
    body = rng.choice(bodies)
    trips = rng.choice([f"len({x})", "6", "3"])
    lines = [f"{s} = np.sum({x}[0])", f"{u} = {x} * 1.0", f"for i in range({trips}):"]
    text = "\n".join([*lines, *("    " + line for line in body)])
    try:
        with np.errstate(all="ignore"):
            space = dict(writer.values)
            exec(text, space)
    except Exception:
        return
    if np.shape(space[s]) != () or not np.all(np.isfinite(space[u])) or abs(space[s]) > LARGEST:
        return
    for line in text.splitlines():
        writer.add(line)
    for name in (s, u):
        writer.values[name] = space[name]
        writer.names.append(name)


def gradient_difference(
    program: Program, mine: Outcome, loss: Callable[..., Any] | None = None
) -> str:
    """Where a gradient for all arguments is not what differences of `loss` (f itself) say."""
    if mine.error is not None:
        return f"exception {mine.error!r}"
    loss = loss or program.function()
    for number, got in enumerate(mine.result):
        want, known = differences(program, loss, number)
        if np.shape(got) != want.shape:
            return f"gradient {number}: shape {np.shape(got)}, not {want.shape}"
        size = np.max(np.abs(want), initial=1.0)
        wrong = known & ~(np.abs(got - want) <= 1e-4 * np.abs(want) + 2e-6 * size)
        if np.any(wrong):
            return f"gradient {number}: {got!r}, not {want!r} (where {wrong!r})"
    return ""


def differences(program: Program, loss: Callable[..., Any], number: int) -> tuple[Any, Any]:
    """Central differences for one argument, and where those of two steps agree."""
    base = program.arguments()
    shape = np.shape(base[number])
    want, known = np.zeros(shape), np.zeros(shape, bool)
    for place in np.ndindex(shape):
        slopes = [_slope(program, loss, number, place, step) for step in (STEP, 4 * STEP)]
        want[place] = slopes[0]
        known[place] = abs(slopes[0] - slopes[1]) <= 1e-5 * max(1.0, abs(slopes[0]))
    return want, known


def _slope(
    program: Program, loss: Callable[..., Any], number: int, place: tuple[int, ...], step: float
) -> float:
    ends = []
    for sign in (1, -1):
        arguments = program.arguments()
        arguments[number][place] += sign * step
        with np.errstate(all="ignore"):
            ends.append(float(loss(*arguments)))
    return (ends[0] - ends[1]) / (2 * step)
