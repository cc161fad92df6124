"""Loops whose trips are apart, each with a loop of its own that data end, do several at once.

In: a `Loop` of a plan that holds one `While`, or one loop that may stop early, on single elements.
Out: the same with a trip in each lane of vectors. What is in front of the inner loop and behind it
runs lane by lane; the inner loop goes on as long as any lane does, and a lane that has ended keeps
what it has:

    for i < n:                          for i < n by NJ_MANY:
        x = 0; k = 0                        for each lane: x = 0; k = 0
        while k < most and x < 4:           on = the lanes that there are
            x = x * x + c[i]                while any of on = on & (k < most) & (x < 4):
            k = k + 1                           x = on ? x * x + c : x;  k = on ? k + 1 : k
        out[i] = k                          for each lane: out[i] = k

Its numbers are float64, int64 and bool. What it loads must be the same in all of its trips.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from npjit.codegen.cpp_form import is_point
from npjit.codegen.cpp_names import Names
from npjit.codegen.cpp_phase import row_text
from npjit.codegen.cpp_straight import Straight, straighten
from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_types import constant, ctype, stored
from npjit.core.size import atoms
from npjit.schedule.kernel import Apply, Const, DType, Extent, Instr, Load
from npjit.schedule.plan import Check, Launch, Loop, Place, Plan, Step, While, places_in

Given = Load | Extent

# what prelude/lanes.h has for lanes
_KNOWN = frozenset(["nj_select", "nj_absolute", "nj_sqrt", "nj_cast", "b1", "i64", "f64"])
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Lanes:
    """A loop that can be done so: the steps around the inner loop, and what that does."""

    loop: Loop
    front: tuple[Step, ...]
    inner: While | Loop
    back: tuple[Step, ...]
    straight: Straight
    # how many of the instructions are the condition's, and its value
    tested: int
    condition: int | None
    # the variables that the inner loop changes, others that it reads, and those that go past it
    state: tuple[Place, ...]
    fixed: tuple[Place, ...]
    past: tuple[Place, ...]


def lanes_of(loop: Loop, plan: Plan) -> Lanes | None:
    """The parts of a loop, where it can be done in lanes."""
    inner = [k for k, s in enumerate(loop.body) if _may_end(s)]
    if not loop.is_apart or len(inner) != 1:
        return None
    front, step, back = loop.body[: inner[0]], loop.body[inner[0]], loop.body[inner[0] + 1 :]
    assert isinstance(step, While | Loop)
    test = step.test if isinstance(step, While) else ()
    straight = straighten([*test, *step.body], plan.kernels, carries=True)
    tested = straighten(test, plan.kernels, carries=True)
    if straight is None or tested is None or not _is_plain(straight, loop, step):
        return None
    begun, after = straight.begun | set(step.stops), set(places_in(back))
    past = (set(places_in(front)) & after) - begun - straight.written.keys()
    if not all(_is_single(s, plan) for s in (*front, *back)) or not _may_wait(past, plan):
        return None
    state = {p for p in straight.written if p in begun or p in after}
    condition = tested.written.get(step.condition) if isinstance(step, While) else None
    if tested.written.keys() & state or (isinstance(step, While) and condition is None):
        return None
    waiting = {p for p in past if p.space == "local"}
    groups = (sorted(g, key=lambda p: p.number) for g in (state, begun - state, waiting))
    return Lanes(
        loop, front, step, back, straight, len(tested.body), condition, *map(tuple, groups)
    )


def _may_end(step: Step) -> bool:
    return isinstance(step, While) or (isinstance(step, Loop) and bool(step.stops))


def _may_wait(past: set[Place], plan: Plan) -> bool:
    """Whether what is in front of the inner loop and behind it may be done for all lanes before
    the other: memory of a trip's own is all lanes'."""
    kinds = (plan.locals[p.number] for p in past if p.space == "local")
    return all(map(_has_lanes, kinds)) and all(p.space != "arena" for p in past)


def _is_single(step: Step, plan: Plan) -> bool:
    """Whether a step works on single elements, and the others need nothing that it binds."""
    is_launch = isinstance(step, Launch) and is_point(plan.kernels[step.kernel])
    return is_launch or isinstance(step, Check)


def _is_plain(straight: Straight, loop: Loop, inner: While | Loop) -> bool:
    """Whether lanes can do all of it."""
    if straight.checks or straight.bound or straight.terms.scalars:
        return False
    if isinstance(inner, Loop) and loop.index in atoms(inner.trips):
        return False
    known = dict(straight.body)
    places = {*straight.begun, *inner.stops}
    return all(p.space == "local" for p in places) and all(
        _is_known(known, i, loop, inner) for i in known.values()
    )


def _is_known(known: dict[int, Instr], i: Instr, loop: Loop, inner: While | Loop) -> bool:
    own = {inner.index} if isinstance(inner, Loop) else set()
    if isinstance(i, Const):
        return _has_lanes(i.dtype)
    if isinstance(i, Extent):
        # the same in all lanes, or in all trips
        is_mixed = bool(own & atoms(i.size)) and loop.index in atoms(i.size)
        return _has_lanes(i.dtype) and not is_mixed
    if isinstance(i, Load):
        access = i.access
        plain = not (access.gathers or access.strides or i.within)
        return _has_lanes(i.dtype) and plain and not own & atoms(access.offset)
    if not isinstance(i, Apply) or not _has_lanes(i.dtype):
        return False
    dtypes = [known[a].dtype for a in i.args]  # type: ignore[union-attr]
    text = row_text(i.op, i, dtypes)
    if not isinstance(text, str) or not all(map(_has_lanes, dtypes)):
        return False
    # of ints no quotients, of floats no conversions
    kinds = {d.kind for d in dtypes}
    if "b" in kinds and i.op.relation not in ("", "==", "!="):
        return False  # the lanes of a mask are 0 or -1, in which true is the lesser
    is_fit = "f" not in kinds if "nj_cast" in text else "/" not in text or kinds == {"f"}
    return is_fit and "?" not in text and set(_WORD.findall(text)) <= _KNOWN


def _has_lanes(dtype: DType) -> bool:
    return dtype.kind == "b" or (dtype.kind in "if" and dtype.itemsize == 8)


class LoopLanesPrinter:
    """Prints the trips of a range; the rest of the plan's printer is given as functions."""

    def __init__(
        self,
        lanes: Lanes,
        names: Names,
        writer: Writer,
        steps: Callable[[Sequence[Step]], None],
    ) -> None:
        self.lanes = lanes
        self.plan = names.plan
        self.writer = writer
        self.size = names.size
        self.pointer = names.pointer
        self.steps = steps
        self.name = lanes.loop.index.name
        self.body = dict(lanes.straight.body)

    def print(self, index: str, first: str, last: str) -> None:
        """The trips from `first` to `last`, no more than lanes; `index` is the loop's index."""
        w, lanes = self.writer, self.lanes
        places = (*lanes.state, *lanes.fixed)
        given = {n: i for n, i in self.body.items() if self._is_given(i)}
        each = f"for (i64 {index} = {first}; {index} < {last}; ++{index})"
        lane = f"{index} - {first}"
        w.lines(f"nj_lanes<{self._kind(p)}> lane{p.number};" for p in (*places, *lanes.past))
        w.lines(f"nj_lanes<{ctype(i.dtype)}> given{n};" for n, i in given.items())
        with w.block(each):
            self.steps(lanes.front)
            for p in (*places, *lanes.past):
                w.line(f"lane{p.number}.set({lane}, {self._local(p)});")
            w.lines(f"given{n}.set({lane}, {self._value(i)});" for n, i in given.items())
        w.lines(f"nj_many<{self._kind(p)}> w{p.number} = lane{p.number};" for p in places)
        w.lines(f"const nj_many<{ctype(i.dtype)}> v{n} = given{n};" for n, i in given.items())
        w.lines(self._line(n) for n, i in self.body.items() if self._is_same(i))
        w.line(f"nj_many<b1> on_{self.name} = nj_first_lanes({last} - {first});")
        self._inner()
        w.lines(f"lane{p.number} = w{p.number}.lanes();" for p in lanes.state)
        with w.block(each):
            for p in (*places, *lanes.past):
                w.line(f"{self._local(p)} = lane{p.number}.get({lane});")
            self.steps(lanes.back)

    def _inner(self) -> None:
        """The trips of all lanes."""
        w, lanes, on = self.writer, self.lanes, f"on_{self.name}"
        body = list(self.body)
        with w.block(self._head()):
            w.line("if (trip % 65536 == 65535 && api->interrupted()) return NPJIT_INTERRUPTED;")
            for stop in lanes.inner.stops:
                w.line(f"{on} = {on} & !w{stop.number};")
            w.lines(self._lines(body[: lanes.tested]))
            if lanes.condition is not None:
                w.line(f"{on} = {on} & v{lanes.condition};")
            w.line(f"if (!nj_any({on})) break;")
            w.lines(self._lines(body[lanes.tested :]))
            for place in lanes.state:
                new, old = f"v{lanes.straight.written[place]}", f"w{place.number}"
                w.line(f"{old} = nj_select({on}, {new}, {old});")

    def _head(self) -> str:
        inner = self.lanes.inner
        if isinstance(inner, While):
            return "for (i64 trip = 0;; ++trip)"
        return f"for (i64 trip = 0; trip < {self.size(inner.trips)}; ++trip)"

    def _lines(self, numbers: Sequence[int]) -> list[str]:
        """Those of a trip."""
        fixed = (self._is_given, self._is_same)
        return [self._line(n) for n in numbers if not any(f(self.body[n]) for f in fixed)]

    def _line(self, number: int) -> str:
        """One instruction, for all lanes."""
        i = self.body[number]
        if isinstance(i, Const):
            text = constant(i.value)
        elif isinstance(i, Load):
            text = f"w{self.lanes.straight.place(i.access.buffer).number}"
        elif isinstance(i, Extent):
            text = f"i64({self.size(i.size)})"
        else:
            assert isinstance(i, Apply)
            dtypes = [self.body[a].dtype for a in i.args]  # type: ignore[union-attr]
            row = row_text(i.op, i, dtypes)
            assert isinstance(row, str)
            text = row.format(*(f"v{a}" for a in i.args))
        return f"const nj_many<{ctype(i.dtype)}> v{number} = {text};"

    def _is_given(self, i: Instr) -> TypeGuard[Given]:
        """Whether a value differs from lane to lane, but not from trip to trip."""
        if isinstance(i, Load):
            return self.lanes.straight.place(i.access.buffer).space != "local"
        return isinstance(i, Extent) and self.lanes.loop.index in atoms(i.size)

    def _is_same(self, i: Instr) -> bool:
        """Whether a value is the same in all lanes and trips."""
        inner = self.lanes.inner
        changes = {inner.index} if isinstance(inner, Loop) else set()
        is_size = isinstance(i, Extent) and not atoms(i.size) & {self.lanes.loop.index, *changes}
        return is_size or isinstance(i, Const)

    def _value(self, i: Given) -> str:
        """Such a value in one lane."""
        if isinstance(i, Extent):
            return f"({ctype(i.dtype)})({self.size(i.size)})"
        place = self.lanes.straight.place(i.access.buffer)
        element = f"({self.pointer(place, stored(i.dtype))})[{self.size(i.access.offset)}]"
        return f"nj_truth({element})" if i.dtype.kind == "b" else element

    def _kind(self, place: Place) -> str:
        return ctype(self.plan.locals[place.number])

    def _local(self, place: Place) -> str:
        """The variable of one lane."""
        return f"*{self.pointer(place, stored(self.plan.locals[place.number]))}"
