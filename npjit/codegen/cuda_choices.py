"""Choices in the trips of a loop, in a form that takes the device one predicated instruction each.

In: the start of a `Trips` kernel and its trip, which loads each buffer that it carries once. Out:
the trip with its stores behind everything else, and choices of what is stored right before them,
when nothing needs the value that they replace any more. What is added only where a condition holds
is not 0 elsewhere:

    v5 = where(v3, 1, 0)            v8 = v1 + 1
    v6 = v1 + v5              ->    ...
    b0[i0] = v6                     v6 = where(v3, v8, v1)
    ...                             b0[i0] = v6
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from npjit.codegen.cpp_values import operands
from npjit.schedule.kernel import Apply, Const, Instr, Load, Phase, Store

_Values = Mapping[int, Instr]


def with_choices(start: Phase, trip: Phase, fresh: int) -> Phase:
    """The trip, see the module's docstring; numbers from `fresh` on are free."""
    stores: dict[int, tuple[int, Store]] = {}
    for number, i in trip.body:
        if isinstance(i, Store):
            stores[i.access.buffer] = number, i
        elif isinstance(i, Load) and i.access.buffer in stores:
            return trip
    body = [pair for pair in trip.body if not isinstance(pair[1], Store)]
    body = _added_where_chosen(body, _without_minus_zero(start, trip), fresh)
    wanted = {a for _, i in body for a in operands(i)}
    last = {i.value for _, i in stores.values()} - wanted
    final = [(n, i) for n, i in body if n in last and _is_choice(i)]
    kept = [pair for pair in body if pair not in final]
    return Phase(trip.axes, (*kept, *final, *stores.values()))


def _is_choice(i: Instr | None) -> bool:
    return isinstance(i, Apply) and i.op.choice


def _added_where_chosen(
    body: list[tuple[int, Instr]], positive: Collection[int], fresh: int
) -> list[tuple[int, Instr]]:
    """x + where(c, y, 0) as where(c, x + y, x), when x is among the `positive` values or 0 is
    -0.0."""
    values = dict(body)
    found: list[tuple[int, Instr]] = []
    for number, instr in body:
        position = _where_nothing_changes(values, instr, positive)
        if position is None:
            found.append((number, instr))
            continue
        assert isinstance(instr, Apply)
        choice, args = values[instr.args[position]], list(instr.args)
        assert isinstance(choice, Apply)
        condition, args[position], _ = choice.args
        found.append((fresh, replace(instr, args=tuple(args))))
        other = instr.args[1 - position]
        found.append((number, replace(choice, args=(condition, fresh, other))))
        fresh += 1
    return found


def _where_nothing_changes(values: _Values, i: Instr, positive: Collection[int]) -> int | None:
    """The argument that is a choice between some number and one that is neutral."""
    if not isinstance(i, Apply) or i.dtype.kind not in "iuf":
        return None
    for position, number in i.op.neutral:
        choice, other = values.get(i.args[position]), i.args[1 - position]
        if not isinstance(choice, Apply) or not choice.op.choice:
            continue
        none = values.get(choice.args[2])
        if not isinstance(none, Const) or none.value.value != number:
            continue
        if {d.dtype for d in (choice, none, values[other]) if not isinstance(d, Store)} != {
            i.dtype
        }:
            continue
        same = i.dtype.kind != "f" or np.signbit(none.value.value) == np.signbit(number)
        if same or other in positive:
            return position
    return None


# ---------------------------------------------------------------- zeros


def _without_minus_zero(start: Phase, trip: Phase) -> set[int]:
    """Values of the trip that are not -0.0, whatever the trip."""
    begun = _stored(start, _positive(start, set()))
    while True:
        found = _positive(trip, begun)
        kept = begun & (_stored(trip, found) | begun - _written(trip))
        if kept == begun:
            return found
        begun = kept


def _positive(phase: Phase, buffers: Collection[int]) -> set[int]:
    """Values that are not -0.0 when those loaded from these buffers are not. A sum is -0.0 only
    where both its terms are."""
    found: set[int] = set()
    for number, i in phase.body:
        if isinstance(i, Const):
            holds = i.dtype.kind == "f" and not (i.value.value == 0 and np.signbit(i.value.value))
        elif isinstance(i, Load):
            holds = i.access.buffer in buffers
        elif isinstance(i, Apply) and i.op.choice:
            holds = all(a in found for a in i.args[1:])
        else:
            holds = _is_sum(i) and any(a in found for a in operands(i))
        if holds:
            found.add(number)
    return found


def _is_sum(i: Instr) -> bool:
    """Whether -0.0 is neutral on either side."""
    sides = i.op.neutral if isinstance(i, Apply) and i.dtype.kind == "f" else ()
    return len(sides) == 2 and all(n == 0 and np.signbit(n) for _, n in sides)


def _stored(phase: Phase, values: Collection[int]) -> set[int]:
    """The buffers whose last stored value is among these."""
    last = {i.access.buffer: i.value for _, i in phase.body if isinstance(i, Store)}
    return {b for b, value in last.items() if value in values}


def _written(phase: Phase) -> set[int]:
    return {i.access.buffer for _, i in phase.body if isinstance(i, Store)}
