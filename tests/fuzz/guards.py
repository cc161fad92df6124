"""Random sequences of calls of one jitted function while the world around it changes.

In: a `random.Random`. Out: a `Story`: source of a module with a function f and things that it
reads, and events, lines that change these things or call f. `difference_in(story)` runs the story
twice, with the plain function and with a jitted one, and compares what every call gives:

    difference_in(story(random.Random(3)), functools.partial(npjit.jit, backend="numpy"))
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import npjit
from tests.fuzz.arguments import make
from tests.fuzz.compare import LESSER, difference
from tests.fuzz.program import Outcome, Program

_NAMES = itertools.count()

WORLD = """
class Box:
    factor = 2.0
    def __init__(self):
        self.scale = 1.5
        self.array = np.arange(4.0)
        self.items = {"p": 2.0, "q": np.ones(4)}
        self.inner = None
    def times(self, x):
        return x * self.scale

G = 2.0
N = 3
FLAG = True
ARRAY = np.arange(4.0)
TABLE = {"a": 1.0, "b": np.ones(4)}
LIST = [1.0, 2.0, np.full(4, 3.0)]
box = Box()

def helper(x, k=2.0, *, j=1.0):
    return x * k + G * j

def outer(c):
    def set_c(v):
        nonlocal c
        c = v
    def get(x):
        return x + c
    return get, set_c

closed, set_closed = outer(1.0)
"""

READS = [
    "G",
    "N",
    "ARRAY",
    "ARRAY[:len(x)].sum()",
    "TABLE['a']",
    "TABLE['b']",
    "LIST[0]",
    "LIST[2]",
    "len(LIST)",
    "box.scale",
    "box.factor",
    "box.array",
    "box.items['p']",
    "box.items['q']",
    "box.times(x)",
    "helper(x)",
    "helper(x, G)",
    "closed(x)",
    "(x if FLAG else -x)",
    "(G if N > 2 else 0.5)",
    "np.sum(x) * N",
    "x.shape[0]",
    "d",
    "(1.0 if box.inner is None else box.inner)",
    "np.where(x > G, x, 0)",
    "float(N)",
    "sum(TABLE['b'])",
    "math.sqrt(G * G)",
    "len(TABLE)",
    "y",
    "(y * 2 if y is not None else 1)",
    "isinstance(y, float)",
    "k",
    "x[k % len(x)]",
    "np.zeros(N)[0]",
]
NUMBERS = [
    "0.0",
    "-0.0",
    "1.0",
    "2",
    "2.0",
    "-3.5",
    "True",
    "np.float64(2.5)",
    "np.float32(0.5)",
    "float('nan')",
]
ARRAYS = [
    "np.arange(4.0)",
    "np.ones(4)",
    "np.arange(4)",
    "np.zeros(4, 'f4')",
    "np.arange(8.0)[::2]",
    "np.ones(1)",
]
CHANGES = [
    "G = {number}",
    "N = {count}",
    "FLAG = {flag}",
    "ARRAY = {array}",
    "ARRAY[1] = {number}",
    "ARRAY[:] = 0.5",
    "TABLE['a'] = {number}",
    "TABLE['b'] = {array}",
    "TABLE['b'][0] = 7.0",
    "TABLE['c' + str(N)] = 1",
    "LIST[0] = {number}",
    "LIST[2] = {array}",
    "LIST.append(1.0)",
    "box.scale = {number}",
    "Box.factor = {number}",
    "box.array = {array}",
    "box.array[2] = {number}",
    "box.items['p'] = {number}",
    "box.items['q'] = {array}",
    "box = Box()",
    "box.inner = {number}",
    "set_closed({number})",
    "helper.__defaults__ = ({number},)",
    "helper.__kwdefaults__['j'] = 3.0",
    "f.__defaults__ = ({number},)",
    "helper = lambda x, k=1.0, *, j=0: x - k",
    "Box.times = lambda self, x: x + self.scale",
    "X[1] = {number}",
]
CALLS = [
    "f(X, {y}, {k})",
    "f(X, {y}, {k})",
    "f(X, {y}, {k}, d={number})",
    "f(Z, {y}, {k})",
    "f(X[::-1], {y}, {k})",
    "f(X[:{count}], {y}, {k})",
    "f(ARRAY, {y}, {k})",
    "f(X, X, {k})",
    "f(X, y=ARRAY, k={k})",
    "f(X.astype({dtype!r}), {y}, {k})",
    "f(np.arange({size}.0), {y}, {k})",
    "f(np.arange({size}), {y}, {k})",
    "f(x=X, y={y}, k={k})",
]


@dataclass(frozen=True)
class Story:
    """A module's text with f in it, and what happens then."""

    body: tuple[str, ...]
    events: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*self.body, "", *self.events])

    def play(self, wrap: Callable[..., Any]) -> list[Outcome]:
        """What every call gives when f is `wrap(f)`."""
        source = WORLD + "\n".join(self.body) + "\n"
        name = f"<story {next(_NAMES)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        space: dict[str, Any] = {"np": np, "make": make, "math": __import__("math")}
        exec(compile(source, name, "exec"), space)
        space["plain"] = space["f"]
        space["f"] = wrap(space["f"])
        space["X"], space["Z"] = np.linspace(0.5, 2, 4), np.linspace(-1, 1, 20)
        outcomes = []
        for event in self.events:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if event.startswith("f("):
                    outcomes.append(_outcome(event, space))
                else:
                    # an array may be too short for what is written to it
                    with contextlib.suppress(IndexError, ValueError, TypeError):
                        exec(event.replace("f.__defaults__", "plain.__defaults__"), space)
        return outcomes

    def smaller(self) -> list[Story]:
        """The story without one event or one line."""
        fewer = [
            Story(self.body, self.events[:k] + self.events[k + 1 :])
            for k in range(len(self.events))
        ]
        shorter = [
            Story(self.body[:k] + self.body[k + 1 :], self.events)
            for k in range(1, len(self.body) - 1)
        ]
        return fewer + shorter


def _outcome(event: str, space: dict[str, Any]) -> Outcome:
    watched = (space["X"], space["Z"], space["ARRAY"], space["box"].array, space["TABLE"]["b"])
    try:
        return Outcome(eval(event, space), None, watched)
    except Exception as e:
        return Outcome(None, e, watched)


def story(rng: random.Random) -> Story:
    """A function of a few reads, and calls between changes."""
    lines = ["def f(x, y=None, k=1, *, d=1.0):", "    s = x * 1.0"]
    for _ in range(rng.randrange(1, 6)):
        read = rng.choice(READS)
        lines.append(
            rng.choice(["    s = s + {0}", "    s = s * {0}", "    s = s + np.sin({0})"]).format(
                read
            )
        )
    if rng.random() < 0.15:
        lines.append(
            rng.choice(
                [
                    "    x[0] = 5.0",
                    "    ARRAY[0] += 1.0",
                    "    box.array[:] = s[0]",
                    "    y[1:] = 0",
                ]
            )
        )
    lines.append(rng.choice(["    return s", "    return s, np.sum(s)", "    return s, x, N"]))
    events = []
    for _ in range(rng.randrange(4, 14)):
        form = rng.choice(CALLS if rng.random() < 0.6 else CHANGES)
        events.append(
            form.format(
                number=rng.choice(NUMBERS),
                array=rng.choice(ARRAYS),
                count=rng.choice([0, 1, 2, 3, 4]),
                flag=rng.choice(["True", "False", "0", "1"]),
                y=rng.choice([*NUMBERS, "None", "ARRAY", "X", "X[:]", "np.ones(4)"]),
                k=rng.choice(["0", "1", "2", "-1", "3", "100"]),
                dtype=rng.choice(["f4", "i8", "c16", "?"]),
                size=rng.choice([1, 2, 4, 5, 17, 20]),
            )
        )
    return Story(tuple(lines), tuple(events))


_NOTHING = Program.of(["a = 0"], ["def f(a):", "    return a"])


def difference_in(told: Story, jit: Callable[..., Any]) -> str:
    """The first call whose outcome is not the plain function's."""
    plain = told.play(lambda f: f)
    mine = told.play(jit)
    for number, (want, got) in enumerate(zip(plain, mine, strict=True)):
        text = difference(_NOTHING, want, got) or _written(want, got)
        if text:
            return f"call {number}: {text}"
    return ""


def hunt_stories(first: int, examples: int, seconds: float, most: int) -> None:
    """Play stories until the time is over or enough differ; print what differs, made small."""
    end = time.monotonic() + seconds
    ran: Counter[str] = Counter()
    findings = number = 0

    def jit(f: Callable[..., Any]) -> Any:
        made.append(npjit.jit(f, backend="numpy"))
        return made[-1]

    for seed in range(first, first + examples):
        if time.monotonic() > end or findings >= most:
            break
        made: list[Any] = []
        told, number = story(random.Random(seed)), number + 1
        text = difference_in(told, jit)
        for jitted in made:
            ran.update(jitted.counts())
        if text and not any(kind in text for kind in LESSER):
            findings += 1
            print(f"--- seed {seed}: {text}\n{_smallest(told, jit)}\n", flush=True)
    print(f"{number} stories, calls {dict(ran)}, {findings} differ", flush=True)


def _smallest(told: Story, jit: Callable[..., Any]) -> Story:
    for smaller in told.smaller():
        with contextlib.suppress(Exception):
            if difference_in(smaller, jit):
                return _smallest(smaller, jit)
    return told


def _written(want: Outcome, got: Outcome) -> str:
    """Writes that a call which raised has made all the same."""
    for k, (w, g) in enumerate(zip(want.arguments, got.arguments, strict=True)):
        if not np.array_equal(w, g, equal_nan=w.dtype.kind in "fc"):
            return f"array {k} afterwards: {g!r}, not {w!r}"
    return ""
