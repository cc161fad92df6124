"""Staged loops: a body traced once becomes one LOOP or WHILE node.

What a body changes is found by tracing it: names that come out as they went in are not carried,
numbers are carried in the type that both ends join to (the trace is repeated until that is stable),
ints that only grow by a constant stay sizes, arrays are carried by value only where no aliasing can
tell the difference. Everything else is `NotStaged`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npjit.core.control import Loop, While
from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.size import Expr, Size, Var, atoms, smax, substitute
from npjit.frontend.branches import owned_version, scalar_condition
from npjit.frontend.carries import Attempt, Carries
from npjit.frontend.loop_state import Grown, Included, LoopState
from npjit.frontend.resized import Resizing, Roomier
from npjit.frontend.values import (
    UNDEFINED,
    NotStaged,
    as_type,
    is_array,
    python_type_of,
    traced,
    truth_of,
    type_of,
)
from npjit.ops import build
from npjit.ops.control import LOOP, WHILE, results
from npjit.ops.kinds import CHECK, UFUNCS
from npjit.ops.readings import mark, wider
from npjit.ops.regions import Inputs, Region, extended, seal
from npjit.ops.sharing import ancestors_of, root_of, share_unwritten
from npjit.ops.symint import size_of, wrap
from npjit.ops.tracer import Tracer, as_node

ATTEMPTS = 8


class Stager:
    """Traces one loop; `trips` is None for a while loop. `resizes`: arrays may change their shape
    from trip to trip.
    """

    resizes = False

    def __init__(
        self,
        block: Block,
        state: Sequence[Any],
        stops: Sequence[int],
        codes: Sequence[Any],
        since: int | None = None,
    ) -> None:
        self.block = block
        self.state = LoopState(block, state, codes, since)
        self.stops = [self.state.leaf_of(k) for k in stops]
        self.carries = Carries(block, bool(stops), self.state.is_own)

    # ------------------------------------------------------------ for

    def for_loop(
        self, trips: Size, item: Callable[[Any], Any], body: Callable[..., Any], certain: bool
    ) -> list[Any]:
        """The state after `trips` trips; `certain`: there is at least one."""
        with self.state.undone_on_failure():
            return self._for_loop(trips, item, body, certain)

    def _for_loop(
        self, trips: Size, item: Callable[[Any], Any], body: Callable[..., Any], certain: bool
    ) -> list[Any]:
        block = self.block
        index = Var(f"i{len(block.sizes.ranges)}", 0)
        block.sizes.ranges[index] = (0, trips - 1)
        counter = Expr((((index,), 1),))

        def run(state: list[Any]) -> Any:
            return body(item(wrap(block, counter)), *state)

        # an empty range has as many trips as none, however far its ends are apart
        count = trips if certain or block.sizes.le(0, trips) is True else smax(0, trips)
        attempt = self._settle(run, counter, certain, count)
        graph, inputs = self._sealed(attempt)
        order = self.carries.order()
        stops = tuple(order.index(k) for k in self.stops if k in order)
        loop = Loop(graph, len(order), index, trips, stops)
        binds = [n for v, n in block.binds.items() if v in atoms(trips)]
        kind = TensorType((), build.BOOL)
        if not certain and self._shows_first_trip():
            some = build.ufunc(
                block,
                UFUNCS[np.less],
                np.less,
                [build.constant(block, 0, build.INT64), build.size_node(block, trips)],
            )
            block.add(CHECK, (some,), "a loop without a trip", some.type)
        node = block.add(LOOP, (*inputs.outer, *binds), loop, kind)
        return self._after(attempt, node, inputs, index, count, certain)

    # ------------------------------------------------------------ while

    def while_loop(self, test: Callable[..., Any], body: Callable[..., Any]) -> list[Any]:
        """The state when the test fails or a stop flag is set."""
        block = self.block

        def run(state: list[Any]) -> Any:
            return body(*state)

        attempt = self._settle(run, None, False, None)
        order = self.carries.order()
        with Region(block) as region:
            params = {k: region.parameter(self.carries.type_of(k)) for k in order}
            entry = self._entry(params, None)
            answer = self.state.call(lambda state: truth_of(test(*state)), entry)[0]
            if type(answer) is Tracer:
                condition = scalar_condition(block, answer)
            elif answer is True and any(k in order for k in self.stops):
                condition = build.constant(block, True, build.BOOL)
            else:
                raise NotStaged("the condition of a while loop does not depend on traced values")
        if region.written:
            raise NotStaged("the condition of a while loop writes an array")
        graph, inputs = self._sealed(attempt)
        for k, param in params.items():
            inputs.positions[param] = order.index(k)
        for cell, (param, outer, _, _) in region.entered.items():
            position = self._position_of(attempt, inputs, cell)
            inputs.positions[param] = inputs.add(outer) if position is None else position
        tested, _ = seal(region, inputs, [condition])
        stops = tuple(order.index(k) for k in self.stops if k in order)
        loop = While(tested, extended(graph, inputs), len(order), stops)
        certain = self._shows_first_trip()
        if certain:
            answer = self.state.call(lambda state: truth_of(test(*state)), self.state.leaves)[0]
            if type(answer) is Tracer:
                some = scalar_condition(block, answer)
                block.add(CHECK, (some,), "a loop without a trip", some.type)
            elif not answer:
                raise NotStaged("a loop without a trip")
        node = block.add(WHILE, inputs.outer, loop, TensorType((), build.BOOL))
        return self._after(attempt, node, inputs, None, None, certain)

    def _shows_first_trip(self) -> bool:
        """Whether a name's type tells if there was a trip at all. In nested loops nobody looks:
        numbers there go into further arithmetic, which gives the same values."""
        if self.block.depth:
            return False
        if self.state.resized.arrays:
            return True
        for k, carry in self.carries.found.items():
            initial = self.state.leaves[k]
            if is_array(initial):
                return True  # without a trip the name stands for the array from before
            is_scalar = carry.type is not None and not carry.type.shape
            if is_scalar and (initial is UNDEFINED or type_of(self.block, initial) != carry.type):
                return True
        return False

    def _position_of(self, attempt: Attempt, inputs: Inputs, cell: Any) -> int | None:
        found = attempt.region.entered.get(cell)
        return None if found is None else inputs.positions.get(found[0])

    # ------------------------------------------------------------ tracing to a fixpoint

    def _settle(
        self, run: Callable[[list[Any]], Any], counter: Any, certain: bool, trips: Size | None
    ) -> Attempt:
        for _ in range(ATTEMPTS):
            try:
                attempt = self._try(run, counter)
                self.state.require_room(trips)
            except Included as e:
                self.state.include(e.numbers)
                if self.state.resized.arrays:
                    self.carries.found.clear()  # the lengths are behind all others
                continue
            except Grown as e:
                self.state.stack(e, trips)
                continue
            except Roomier as e:
                self.state.widen(e)
                self.carries.found.clear()
                continue
            self.carries.leaves = self.state.leaves
            try:
                changed = self.carries.classify(attempt, counter, certain)
            except Resizing as e:
                if not self.resizes:
                    raise
                self.state.resize(e, trips)
                self.carries.found.clear()
                continue
            changed |= self.carries.narrow(attempt, certain)
            if not changed:
                return attempt
        raise NotStaged("the types of a loop's names do not settle")

    def _try(self, run: Callable[[list[Any]], Any], counter: Any) -> Attempt:
        block = self.block
        with Region(block) as region:
            params = {
                k: region.parameter(c.type)
                for k, c in self.carries.found.items()
                if c.type is not None
            }
            entry = self._entry(params, counter)
            for k, param in params.items():
                mark(block, param, self.carries.found[k].python)
            leaves = self.state.run(run, entry)
            attempt = Attempt(region, entry, leaves, params)
            for k, carry in self.carries.found.items():
                if carry.type is not None and self.carries.fits(leaves[k], carry.type):
                    attempt.nexts[k] = as_type(block, self._node(leaves[k]), carry.type)
        return attempt

    def _node(self, value: Any) -> Node | None:
        return None if value is UNDEFINED else as_node(self.block, value)

    def _entry(self, params: dict[int, Node], counter: Any) -> list[Any]:
        """The state as the body gets it."""
        block = self.block
        entry = list(self.state.leaves)
        for k, carry in self.carries.found.items():
            if carry.how == "grows":
                entry[k] = wrap(block, size_of(self.state.leaves[k]) + carry.step * counter)
            elif carry.how == "value":
                entry[k] = traced(block, params[k])
        return entry

    # ------------------------------------------------------------ the node

    def _sealed(self, attempt: Attempt) -> tuple[Graph, Inputs]:
        block, region = self.block, attempt.region
        inputs = Inputs()
        for k in self.carries.order():
            type_ = self.carries.type_of(k)
            position = inputs.append(as_type(block, self._node(self.state.leaves[k]), type_))
            inputs.types[position] = type_
            inputs.positions[attempt.params[k]] = position
        writes = []
        for cell, final in region.finals.items():
            position = inputs.append(owned_version(block, cell))
            inputs.positions[region.entered[cell][0]] = position
            writes.append((position, final))
        for cell, (param, outer, _, _) in region.entered.items():
            if cell not in region.finals:
                inputs.add(outer, param)
        outputs = [attempt.nexts[k] for k in self.carries.order()]
        graph, _ = seal(region, inputs, outputs, writes)
        return graph, inputs

    def _after(
        self,
        attempt: Attempt,
        node: Node,
        inputs: Inputs,
        index: Var | None,
        trips: Size | None,
        certain: bool,
    ) -> list[Any]:
        """The state after the loop; written cells get their new versions."""
        block = self.block
        order = self.carries.order()
        written = list(attempt.region.finals)
        types = [self.carries.type_of(k) for k in order]
        types += [inputs.types[len(order) + j] for j in range(len(written))]
        found = results(block, node, types)
        for cell, version in zip(written, found[len(order) :], strict=True):
            cell.node = version
            cell.owned = True
        state = list(self.state.leaves)
        for k, carry in self.carries.found.items():
            if carry.type is not None:
                state[k] = traced(block, found[order.index(k)])
                # outside all bodies a check makes sure of a trip
                sure = certain or not block.depth
                ends = [attempt.leaves[k], *([] if sure else [self.state.leaves[k]])]
                mark(block, state[k].node, wider(*(python_type_of(block, v) for v in ends)))
                if is_array(self.state.leaves[k]):
                    # without a trip that binds it anew it is the array from before, or a part
                    inner = root_of(attempt.entry[k].cell)
                    family = ancestors_of(attempt.leaves[k].cell)
                    kept = inner in family or any(c.level <= block.depth for c in family)
                    if not certain or kept:
                        share_unwritten(self.state.leaves[k], state[k])
            elif carry.how == "grows":
                state[k] = wrap(block, size_of(self.state.leaves[k]) + carry.step * trips)
            else:
                assert index is not None
                last = substitute(size_of(attempt.leaves[k]), {index: trips - 1})
                state[k] = wrap(block, last)
        return self.state.filled(state, list(self.carries.found), trips, certain)
