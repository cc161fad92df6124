"""One phase of a kernel as CUDA statements for several lanes of a thread.

In: a phase, the order of its loops, and the innermost one, whose neighbouring indices are the lanes
of a thread. Out: the `Statements` of `cpp_phase`, where accesses with unit stride along the lanes
are moved as packs, outside the loop over the lanes:

    v1: float32 = b0[s0*i0 + i1]     nj_pack<f32, V> l1; nj_load(l1, mem0 + (s0*x0 + x1), count);
    v2: float32 = b1[i0 + s1*i1]     const f32 v2 = count.has(lane) ? mem1[x0 + s1*x1] : f32();
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from npjit.codegen.cpp_phase import Levels, PhasePrinter, condition
from npjit.codegen.cpp_statements import Statements
from npjit.codegen.cpp_types import ctype, is_complex, plane, stored
from npjit.codegen.cpp_values import Values
from npjit.codegen.cuda_launch import Slot
from npjit.codegen.cuda_usual import usual_call
from npjit.schedule.kernel import Access, Apply, DType, Instr, Load, Phase, Store

_TURN = re.compile(r"const (f32|f64) (v\d+) = nj_(sin|cos)\((\w+)\);")
# slots whose alignment fits into a template argument
_SLOTS = 21


def levels_of(loops: Sequence[int], earlier: Mapping[int, int]) -> Levels:
    """One level for each loop, the lanes innermost."""
    return Levels([[axis] for axis in loops], earlier)


@dataclass(frozen=True)
class Move:
    """A pack that a phase loads or stores: its variable, its slot and the memory of the first
    lane."""

    pack: str
    slot: int
    dtype: DType
    place: str

    @property
    def planes(self) -> int:
        return 2 if is_complex(self.dtype) else 1

    def declare(self) -> str:
        """The variable."""
        return pack_variable(self.pack, self.dtype)

    def load(self, count: str = "count") -> str:
        """Fill the pack."""
        return f"nj_load<{self._constants()}>({self.pack}, {self.place}, {count});"

    def store(self) -> str:
        """Write the pack."""
        return f"nj_store<{self._constants()}>({self.place}, {self.pack}, count);"

    def _constants(self) -> str:
        return f"(A >> {3 * self.slot}) & 7, {self.planes}"


@dataclass
class Moves:
    """The packs of a phase."""

    loads: list[Move] = field(default_factory=list)
    stores: list[Move] = field(default_factory=list)


class LanePrinter(PhasePrinter):
    """Prints the instructions of one phase. `slots` collects the packed accesses of the kernel.
    `held` names packs that are in registers already, by the number of the load, `rows` those that
    stand for "row" buffers, and `ready` variables with single elements. Without loops the phase is
    one thread's for all lanes, and `guard` says which thread stores."""

    def __init__(
        self,
        values: Values,
        phase: Phase,
        levels: Levels,
        slots: list[Slot],
        held: Mapping[int, str] | None = None,
        rows: Mapping[int, str] | None = None,
        guard: str = "",
    ) -> None:
        super().__init__(values, phase, levels)
        self.slots = slots
        self.held = held or {}
        self.rows = rows or {}
        self.guard = guard if not levels.loops else "count.has(lane)"
        self.moves = Moves()
        self.ready: dict[int, str] = {}
        # whether a thread runs the phase many times, so that work done once pays
        self.repeated = False
        # whether divisions and roots are those of usual numbers
        self.usual = False

    def print(self) -> Statements:
        """The phase's statements, with calls that share work made one."""
        printed = super().print()
        for level, lines in printed.levels.items():
            printed.levels[level] = paired(lines)
        return printed

    def _define(self, number: int, instr: Instr) -> list[str]:
        if number in self.ready:
            return self._declare(number, parts_of(self.ready[number], instr))
        in_lanes = self.levels.loops and self.level[number] == self.levels.innermost
        if isinstance(instr, Apply) and self._has_fixed_divisor(number, instr):
            return self._quotient(number, instr)
        call = usual_call(self.values, instr) if self.usual and in_lanes else None
        if call is not None:
            return self._declare(number, [call])
        if not isinstance(instr, Load) or not in_lanes:
            return super()._define(number, instr)
        pack = self.held.get(number, self.rows.get(instr.access.buffer))
        if pack is None and self._is_packed(instr.access, instr.dtype) and not instr.within:
            pack = f"l{number}"
            self.moves.loads.append(self.move(pack, instr.access, instr.dtype))
        if pack is not None:
            return self._declare(number, lanes_of(pack, instr.dtype))
        return self._declare(number, self._guarded(instr))

    def _has_fixed_divisor(self, number: int, instr: Apply) -> bool:
        """Whether an instruction in a loop divides by what is known before it."""
        if instr.op.powers != (1, -1) or instr.dtype != np.dtype("f4"):
            return False
        return self.repeated and self.level[instr.args[1]] < self.level[number]

    def _quotient(self, number: int, instr: Apply) -> list[str]:
        """A product with the reciprocal in double precision, which rounds as the quotient does: a
        division is several times as long, and a branch."""
        value, divisor = map(self.values.whole, instr.args)
        made = f"const f64 inverse{number} = 1.0 / (f64){divisor};"
        self.out.levels[self.level[instr.args[1]]].append(made)
        return self._declare(number, [f"(f32)((f64){value} * inverse{number})"])

    def _guarded(self, instr: Load) -> list[str]:
        """A load lane by lane, of lanes that there are."""
        held = condition(instr.within)
        inside = f"count.has(lane) && {held}" if held else "count.has(lane)"
        zero = f"{plane(instr.dtype)}()"
        return [
            f"{inside} ? {_truth(e, instr.dtype)} : {zero}"
            for e in self._elements(instr.access, instr.dtype)
        ]

    def _store(self, instr: Store) -> list[str]:
        dtype = self.values.dtype(instr.value)
        pack = self.rows.get(instr.access.buffer)
        if pack is None and self._is_packed(instr.access, dtype):
            pack = f"o{len(self.moves.stores)}"
            self.moves.stores.append(self.move(pack, instr.access, dtype))
        if pack is not None:
            places = lanes_of(pack, dtype, raw=True)
            return [f"{p} = {v};" for p, v in zip(places, self._all(instr.value), strict=True)]
        guard = f"if ({self.guard}) " if self.guard else ""
        return [f"{guard}{line}" for line in super()._store(instr)]

    def index(self, access: Access) -> str:
        """The number of an element."""
        return self._index(access)

    def elements(self, instr: Load) -> Sequence[str]:
        """The memory of a loaded element, one expression for each plane."""
        return self._elements(instr.access, instr.dtype)

    def _is_packed(self, access: Access, dtype: DType) -> bool:
        if not self.levels.loops or len(self.slots) >= _SLOTS:
            return False
        # an index that is one for all lanes moves the whole pack
        if any(self.level[v] >= self.levels.innermost for v, _ in access.gathers):
            return False
        if self.values.kernel.buffers[access.buffer].role == "row":
            return False
        return dict(access.strides).get(self.levels.loops[-1][-1], 0) == 1

    def move(self, pack: str, access: Access, dtype: DType) -> Move:
        """The pack of an access from the first lane on."""
        slot = Slot(access, dtype)
        if slot not in self.slots:
            self.slots.append(slot)
        index = self._index(access)
        scaled = f"2 * ({index})" if is_complex(dtype) else f"({index})"
        return Move(pack, self.slots.index(slot), dtype, f"mem{access.buffer} + {scaled}")


def paired(lines: Sequence[str]) -> list[str]:
    """The statements, with a sine and a cosine of one value as one call."""
    calls = [_TURN.fullmatch(line) for line in lines]
    found: dict[tuple[str, str], dict[str, str]] = {}
    for call in calls:
        if call:
            kind, name, function, value = call.groups()
            found.setdefault((kind, value), {})[function] = name
    changed: list[str] = []
    for line, call in zip(lines, calls, strict=True):
        both = found[call[1], call[4]] if call else {}
        if not call or len(both) < 2:
            changed.append(line)
            continue
        shared = f"both_{both['sin']}"
        if not any(made.startswith(f"const auto {shared} ") for made in changed):
            changed.append(f"const auto {shared} = nj_sincos({call[4]});")
        changed.append(f"const {call[1]} {call[2]} = {shared}.{call[3]};")
    return changed


def pack_variable(name: str, dtype: DType) -> str:
    """The declaration of a pack of V elements."""
    width = "2 * V" if is_complex(dtype) else "V"
    return f"nj_pack<{stored(dtype)}, {width}> {name};"


def lanes_of(pack: str, dtype: DType, raw: bool = False) -> Sequence[str]:
    """The parts of one lane of a pack."""
    if is_complex(dtype):
        return [f"{pack}.at[2 * lane]", f"{pack}.at[2 * lane + 1]"]
    lane = f"{pack}.at[lane]"
    return [lane if raw else _truth(lane, dtype)]


def element_type(dtype: DType) -> str:
    """The type of a variable that holds an element as it is in memory."""
    return ctype(dtype) if is_complex(dtype) else stored(dtype)


def parts_of(place: str, instr: Instr) -> Sequence[str]:
    """The parts of an element in such a variable."""
    assert isinstance(instr, Load)
    if is_complex(instr.dtype):
        return [f"{place}.re", f"{place}.im"]
    return [_truth(place, instr.dtype)]


def whole_of(parts: Sequence[str], dtype: DType) -> str:
    """The parts as one value of that type."""
    return f"{ctype(dtype)}{{{', '.join(parts)}}}" if is_complex(dtype) else parts[0]


def _truth(text: str, dtype: DType) -> str:
    return f"nj_truth({text})" if dtype.kind == "b" else text
