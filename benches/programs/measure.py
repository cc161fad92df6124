"""Times the forms of one program by turns, after comparing each with NumPy.

In: a program, the name of a size, the forms, seconds to spend. Out: a `Row`:

    row = measure(PROGRAMS["lu"], "small", forms, 0.5)
    row.ratio("numba")  # how many times as fast as Numba's form npjit is

A turn is two calls of each on fresh arguments, one after the other, as the first finds the code of
the form before it in the caches; forwards and backwards in alternation, as what a form leaves
behind should not hit always the same one. Threads that wait by spinning, as OpenBLAS's do for 30 ms
and OpenMP's for 8, are left to go to sleep first: they would take a core from the next. The least
time counts.
"""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benches.programs.check import assert_right
from benches.programs.form import Form, Values
from benches.programs.program import Program

PEERS = ("numpy", "numba", "jax", "pythran")
# within this of a time counts as equal to it
EQUAL = 0.95
MIN_TURNS = 3
CALLS = 2
TASKS = Path("/proc/self/task")
GLANCE = 0.0005
MAX_GLANCES = 100


@dataclass(frozen=True)
class Row:
    """One program at one size; seconds by form; a peer that is wrong or absent has none."""

    program: Program
    size: str
    right: bool
    whole: bool
    times: dict[str, float]
    first: dict[str, float]

    def ratio(self, peer: str) -> float:
        """How many times as fast as the peer npjit is; 0 where npjit is wrong, nan without peer."""
        if peer not in self.times:
            return math.nan
        return self.times[peer] / self.times["npjit"] if self.right else 0.0

    @property
    def best_peer(self) -> str:
        return min((p for p in PEERS if p in self.times), key=self.times.__getitem__)

    def holds(self, peer: str) -> bool:
        """Whether npjit is at least equal to the peer."""
        return self.ratio(peer) >= EQUAL


def measure(program: Program, size: str, forms: dict[str, Form], seconds: float) -> Row:
    """The program at its size named "small" or "large"; `forms` has "npjit" among them."""
    arguments = program.arguments(getattr(program, size))
    want_args = fresh(arguments)
    want = program.function(*want_args)
    right, first = {}, {}
    for name, form in forms.items():
        given, first[name] = first_call(form, arguments)
        right[name] = is_right(program, name, given, form.wanted(want, want_args), form.typed)
    timed = {name: f for name, f in forms.items() if right[name] or name == "npjit"}
    times = by_turns(timed, arguments, seconds)
    info = forms["npjit"].call.cache_info()  # type: ignore[attr-defined]
    whole = not info["numpy"] and not info["broken"]
    return Row(program, size, right["npjit"], whole, times, first)


def fresh(arguments: Values) -> Values:
    return tuple(x.copy() if isinstance(x, np.ndarray) else x for x in arguments)


def first_call(form: Form, arguments: Values) -> tuple[Values, float]:
    """What a call gave, and the seconds it took."""
    prepared = form.prepare(fresh(arguments))
    start = time.perf_counter()
    result = form(*prepared)
    seconds = time.perf_counter() - start
    return form.given(result, prepared), seconds


def is_right(program: Program, name: str, given: Values, want: Values, typed: bool) -> bool:
    try:
        assert_right(program, given, want, typed=typed)
    except AssertionError as e:
        print(f"{program.name} by {name}: {e}")
        return False
    return True


def by_turns(forms: dict[str, Form], arguments: Values, seconds: float) -> dict[str, float]:
    """The least time of a call of each form."""
    least = dict.fromkeys(forms, math.inf)
    order = list(forms)
    end = time.perf_counter() + seconds
    turns = 0
    while turns < MIN_TURNS or time.perf_counter() < end:
        for name in order:
            rest()
            form = forms[name]
            for prepared in [form.prepare(fresh(arguments)) for _ in range(CALLS)]:
                start = time.perf_counter()
                form(*prepared)
                least[name] = min(least[name], time.perf_counter() - start)
        order.reverse()
        turns += 1
    return least


def rest() -> None:
    """Until no other thread of this process runs; without a sleep where none does."""
    me = str(threading.get_native_id())
    for _ in range(MAX_GLANCES):
        if not any(is_running(task) for task in os.listdir(TASKS) if task != me):
            return
        time.sleep(GLANCE)


def is_running(task: str) -> bool:
    try:
        fields = (TASKS / task / "stat").read_text()
    except OSError:  # it has ended
        return False
    return fields.rpartition(")")[2].split()[0] == "R"
