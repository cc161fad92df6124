"""One phase of a kernel as C++ statements, each at the loop level where it belongs.

In: the phase and the order of its loops. Out: `Statements`, the text per level: level -1 depends
on no axis, level 0 on outer axes only, level k on the k-th loop of the phase. Printing a value at
its own level is the hoisting of invariants; stores and accumulator steps stand at the innermost.

    v1: float64 = b0[s0*i0 + i1]            level 2:   const f64 v1 = mem0[s0*x0 + x1];
    v2: float64 = b1[i0]                    level 0:   const f64 v2 = mem1[x0];
    v3: float64 = subtract v1 v2            level 2:   const f64 v3 = v1 - v2;
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npjit.codegen.cpp_pick import Pick
from npjit.codegen.cpp_statements import Held, Near, Shift, Statements
from npjit.codegen.cpp_types import ctype, factor, is_complex, plane, size
from npjit.codegen.cpp_values import Values, operands
from npjit.core.op import Op
from npjit.core.size import Size
from npjit.schedule.kernel import (
    Access,
    Apply,
    Bound,
    Const,
    Coordinate,
    DType,
    Extent,
    Inside,
    Instr,
    Load,
    Phase,
    Reduce,
    Scalar,
    Store,
)

_SINGLE = np.dtype("f4")
_DOUBLE = np.dtype("f8")
# comparisons turned round, and the number that a value below another one does not reach
_MIRRORED = {">": "<", ">=": "<="}
_BELOW = {"<": "{0}", "<=": "nj_above({0})"}
# additions that are worth doing twice for a quicker function
_LIGHT = 6


@dataclass(frozen=True)
class Levels:
    """Where values are available: the axes of the phase's loops from the outside in, and the
    levels of earlier phases' values."""

    loops: Sequence[Sequence[int]]
    earlier: Mapping[int, int]
    # elements between neighbours in a "row" buffer, and what is added: strips keep one row per lane
    row_scale: str = ""
    row_lane: str = ""
    # the axis of the vector loop
    vector: int | None = None

    @property
    def innermost(self) -> int:
        return len(self.loops)

    def of_axis(self, axis: int) -> int:
        """The loop level at which an axis has its value; outer axes have it at level 0."""
        return next((i + 1 for i, axes in enumerate(self.loops) if axis in axes), 0)


class PhasePrinter:
    """Prints the instructions of one phase; `level` then holds the level of each value."""

    def __init__(self, values: Values, phase: Phase, levels: Levels) -> None:
        self.values = values
        self.phase = phase
        self.levels = levels
        self.level: dict[int, int] = dict(levels.earlier)
        self.out = Statements()
        self._ends: dict[tuple[tuple[Bound, ...], Size], str] = {}
        self._offsets: dict[str, str] = {}
        self._shifts: dict[tuple[Bound, Size, Size], str] = {}
        self._stored = {i.access.buffer for _, i in phase.body if isinstance(i, Store)}

    def print(self) -> Statements:
        """The phase's statements."""
        own = {n for n, _ in self.phase.body}
        for number, instr in self.phase.body:
            for used in operands(instr):
                is_const = isinstance(self.values.instructions[used], Const)
                if not (used in own or is_const or used in self.out.imported):
                    self.out.imported.append(used)
            self.level[number] = self._level(instr)
            if isinstance(instr, Reduce):
                self.out.reduces.append((number, instr))
            elif isinstance(instr, Store):
                self._emit(number, self._store(instr))
            elif not isinstance(instr, Const):
                self._emit(number, self._define(number, instr))
        return self.out

    def _emit(self, number: int, lines: list[str]) -> None:
        self.out.definitions[number] = lines
        self.out.levels[self.level[number]] += lines

    # ------------------------------------------------------------ levels

    def _level(self, instr: Instr) -> int:
        if isinstance(instr, Store | Reduce):
            return self.levels.innermost
        found = [self.level[used] for used in operands(instr)]
        if isinstance(instr, Load | Pick):
            within = instr.within if isinstance(instr, Load) else (instr.within,)
            found += [self.levels.of_axis(axis) for axis, _ in instr.access.strides]
            found += [self.levels.of_axis(b.axis) for b in within]
            buffer = instr.access.buffer
            role = self.values.kernel.buffers[buffer].role
            if buffer in self._stored or (role == "row" and self.levels.row_scale):
                return self.levels.innermost
            if role != "in":
                found.append(0)
        elif isinstance(instr, Inside):
            found += [self.levels.of_axis(b.axis) for b in instr.within]
        elif isinstance(instr, Coordinate):
            found.append(self.levels.of_axis(instr.axis))
        return max(found, default=-1)

    # ------------------------------------------------------------ instructions

    def _define(self, number: int, instr: Instr) -> list[str]:
        if isinstance(instr, Apply):
            return self._apply(number, instr)
        if isinstance(instr, Load):
            return self._declare(number, self._load(number, instr))
        if isinstance(instr, Pick):
            return self._declare(number, self._pick(instr))
        if isinstance(instr, Inside):
            zero = f"{plane(instr.dtype)}()"
            held = self._held(instr.within, self.level[number])
            return self._declare(
                number, [f"nj_select({held}, {v}, {zero})" for v in self._all(instr.arg)]
            )
        if isinstance(instr, Coordinate):
            start = "" if instr.start == 0 else f"{size(instr.start)} + "
            step = "" if instr.step == 1 else f"{factor(instr.step)} * "
            return self._declare(number, [f"{start}{step}x{instr.axis}"])
        if isinstance(instr, Extent):
            return self._declare(number, [_converted(instr.dtype, f"i64({size(instr.size)})")])
        assert isinstance(instr, Scalar)
        return self._scalar(number, instr)

    def _declare(self, number: int, expressions: Sequence[str]) -> list[str]:
        named = zip(self.values.names(number), expressions, strict=True)
        return [f"const {kind} {name} = {text};" for (kind, name), text in named]

    def _all(self, number: int) -> Sequence[str]:
        if is_complex(self.values.dtype(number)):
            return self.values.parts(number)
        return [self.values.whole(number)]

    def _scalar(self, number: int, instr: Scalar) -> list[str]:
        given = self.values.kernel.scalars[instr.number]
        if is_complex(given):
            parts = [f"arg{instr.number}r", f"arg{instr.number}i"]
            return self._declare(number, [f"{plane(instr.dtype)}({p})" for p in parts])
        return self._declare(number, [_converted(instr.dtype, f"arg{instr.number}")])

    def _apply(self, number: int, instr: Apply) -> list[str]:
        text = row_text(instr.op, instr, [self.values.dtype(a) for a in instr.args])
        places = self._places(instr.args)
        if isinstance(text, tuple):
            return self._declare(number, [t.format(*places[0], **places[1]) for t in text])
        value = text.format(*places[0], **places[1])
        if not is_complex(instr.dtype):
            (line,) = self._declare(number, [value])
            if instr.op.relation:
                self._compare_squares(number, instr, line)
            if instr.op.near and instr.dtype == _SINGLE and self._is_light(instr.args):
                condition, quick = (t.format(*places[0]) for t in instr.op.near)
                self.out.near[line] = Near(condition, *self._declare(number, [quick]))
            return [line]
        both = [f"v{number}.re", f"v{number}.im"]
        return [f"const {ctype(instr.dtype)} v{number} = {value};", *self._declare(number, both)]

    def _compare_squares(self, number: int, instr: Apply, line: str) -> None:
        """A root that is compared with a fixed number: its square, with the least one whose root
        reaches that number."""
        for k, sign in ((0, instr.op.relation), (1, _MIRRORED.get(instr.op.relation, ""))):
            root, other = instr.args[k], instr.args[1 - k]
            made = self.values.instructions[root]
            fixed = self.level[other] < 0 and self.values.dtype(other) == _DOUBLE
            if not (isinstance(made, Apply) and made.op.square and sign in _BELOW and fixed):
                continue
            if not is_complex(self.values.dtype(made.args[0])):
                continue
            square = made.op.square.format(**self._places(made.args)[1])
            limit = _BELOW[sign].format(self.values.whole(other))
            (quick,) = self._declare(number, [f"{square} < nj_square_reaching({limit})"])
            holds = f"nj_is_moderate({self.values.whole(other)})"
            self.out.fixed[line] = Near(holds, quick)

    def _is_light(self, args: Sequence[int]) -> bool:
        """Whether these values cost little to compute once more."""
        weight, wanted, seen = 0, list(args), set(args)
        while wanted and weight <= _LIGHT:
            instr = self.values.instructions[wanted.pop()]
            weight += instr.op.cost if isinstance(instr, Apply) else 0
            wanted += [a for a in operands(instr) if a not in seen]
            seen.update(operands(instr))
        return weight <= _LIGHT

    def _places(self, args: Sequence[int]) -> tuple[list[str], dict[str, str]]:
        """What {0}, {0r} and {0i} of a row's text stand for."""
        named = {}
        for i, a in enumerate(args):
            if is_complex(self.values.dtype(a)):
                named[f"{i}r"], named[f"{i}i"] = self.values.parts(a)
        return [self.values.whole(a) for a in args], named

    def _load(self, number: int, instr: Load) -> list[str]:
        held = self._held(instr.within, self.level[number])
        fixed = self._fixed(instr.within, self.level[number])
        elements = self._elements(instr.access, instr.dtype, fixed)
        in_order = (self.levels.vector, 1) in instr.access.strides
        if in_order and not held and not instr.access.gathers:
            self.out.streams.append(f"&{elements[0]}")
        texts = [f"nj_truth({e})" if instr.dtype.kind == "b" else e for e in elements]
        if held and is_complex(instr.dtype):
            held = f"nj_held({held})"
        return [f"{held} ? {e} : {plane(instr.dtype)}()" if held else e for e in texts]

    def _pick(self, instr: Pick) -> list[str]:
        """The element itself, at an offset that is worked out in front of the loop."""
        shift = self._shift(instr)
        place = replace(instr.access, offset=0)
        elements = self._elements(place, instr.dtype, added=shift)
        return [f"nj_truth({e})" if instr.dtype.kind == "b" else e for e in elements]

    def _shift(self, instr: Pick) -> str:
        key = (instr.within, instr.access.offset, instr.beyond)
        name = self._shifts.get(key)
        if name is None:
            name = self._shifts[key] = f"shift{self.phase.body[0][0]}_{len(self._shifts)}"
            axis = instr.within.axis
            made = Shift(name, instr.within, size(instr.access.offset), size(instr.beyond))
            if axis == self.levels.vector:
                self.out.shifts.append(made)
            else:
                self.out.levels[self.levels.of_axis(axis)].append(made.line(f"x{axis}"))
        return name

    def _held(self, within: Sequence[Bound], level: int) -> str:
        """Whether all bounds hold, for a statement at `level`.

        In a vector loop what does not vary moves into the end of the vector axis's bound: vectors
        of comparisons do not mix well with single booleans.
        """
        vector = self.levels.vector
        fixed = self._fixed(within, level)
        along = next((b for b in within if b.axis == vector), None)
        others = [b for b in within if b not in fixed and b is not along]
        if vector is None or (not fixed and (others or along is None)):
            return condition(within)
        hi = self.values.kernel.axes[vector].extent if along is None else along.hi
        end = self._end(fixed, hi) if fixed else size(hi)
        parts = [condition(others)] if others else []
        low = "0" if along is None else size(along.lo)
        if low != "0":
            parts.append(f"(x{vector} >= {low})")
        parts.append(f"(x{vector} < {end})")
        text = f"({' & '.join(parts)})"
        if not others:
            self.out.held.add(Held(text, low, end))
        return text

    def _fixed(self, within: Sequence[Bound], level: int) -> tuple[Bound, ...]:
        """The bounds that do not vary along the vector loop, for a statement in it at `level`."""
        vector = self.levels.vector
        if vector is None or level < self.levels.of_axis(vector):
            return ()
        return tuple(b for b in within if self._is_fixed(b.axis))

    def _is_fixed(self, axis: int) -> bool:
        vector = self.levels.vector
        return vector is not None and self.levels.of_axis(axis) < self.levels.of_axis(vector)

    def _end(self, fixed: tuple[Bound, ...], hi: Size) -> str:
        """A variable that is `hi` where the fixed bounds hold, else 0."""
        name = self._ends.get((fixed, hi))
        if name is None:
            name = f"end{self.phase.body[0][0]}_{len(self._ends)}"
            self._ends[fixed, hi] = name
            level = max(self.levels.of_axis(b.axis) for b in fixed)
            text = f"const i64 {name} = {condition(fixed)} ? i64({size(hi)}) : 0;"
            self.out.levels[level].append(text)
        return name

    def _offset(self, access: Access, fixed: tuple[Bound, ...]) -> str:
        """A variable that is the access's offset where the fixed bounds hold, else 0.

        Where they fail a masked load reads nothing, but costs a hundred times as much at an address
        that is not mapped. Without its offset it stays beside the loop's other loads. An axis that
        runs backwards needs the offset to be inside the array.
        """
        found = [s for axis, s in access.strides if self._is_fixed(axis)]
        backwards = [f"({size(s)} < 0)" for s in found if not isinstance(s, int) or s < 0]
        text = f"{' | '.join([condition(fixed), *backwards])} ? i64({size(access.offset)}) : 0;"
        name = self._offsets.get(text)
        if name is None:
            name = f"offset{self.phase.body[0][0]}_{len(self._offsets)}"
            self._offsets[text] = name
            level = max(self.levels.of_axis(b.axis) for b in fixed)
            self.out.levels[level].append(f"const i64 {name} = {text}")
        return name

    def _store(self, instr: Store) -> list[str]:
        dtype = self.values.dtype(instr.value)
        places = self._elements(instr.access, dtype)
        return [f"{e} = {v};" for e, v in zip(places, self._all(instr.value), strict=True)]

    def _elements(
        self, access: Access, dtype: DType, fixed: tuple[Bound, ...] = (), added: str = ""
    ) -> list[str]:
        """The memory of an element: one lvalue, or one for each plane; `added` to its place."""
        index = self._index(access, fixed)
        if added:
            index = added if index == "0" else f"{index} + {added}"
        if not is_complex(dtype):
            return [f"mem{access.buffer}[{index}]"]
        doubled = "" if index == "0" else f"2 * ({index}) + "
        return [f"mem{access.buffer}[{doubled}{part}]" for part in (0, 1)]

    def _index(self, access: Access, fixed: tuple[Bound, ...] = ()) -> str:
        is_row = self.values.kernel.buffers[access.buffer].role == "row"
        parts = [_product(stride, f"x{axis}") for axis, stride in access.strides if stride != 0]
        parts += [_product(stride, self.values.whole(value)) for value, stride in access.gathers]
        if access.offset != 0 or not parts:
            parts.append(self._offset(access, fixed) if fixed else size(access.offset))
        index = " + ".join(parts)
        if is_row and self.levels.row_scale:
            return f"({index}) * {self.levels.row_scale} + {self.levels.row_lane}"
        return index


def row_text(op: Op, instr: Apply, dtypes: Sequence[DType]) -> str | tuple[str, str]:
    """The C text of a row for these argument types."""
    mixed = any(is_complex(d) for d in (*dtypes, instr.dtype))
    text = op.complex_c if mixed and op.complex_c else op.c
    if callable(text):
        text = text(instr.params, tuple(dtypes), instr.dtype)
    assert text, f"the row {op.name} has no C text for {[str(d) for d in dtypes]}"
    return text


def condition(within: Sequence[Bound]) -> str:
    """Whether all bounds hold; empty for none. An && would be a branch, which keeps a loop
    scalar."""
    parts = []
    for b in within:
        if b.lo != 0:
            parts.append(f"(x{b.axis} >= {size(b.lo)})")
        parts.append(f"(x{b.axis} < {size(b.hi)})")
    return f"({' & '.join(parts)})" if parts else ""


def _product(stride: object, name: str) -> str:
    return name if stride == 1 else f"{factor(stride)}*{name}"  # type: ignore[arg-type]


def _converted(dtype: DType, text: str) -> str:
    return f"nj_cast<{ctype(dtype)}>({text})"
