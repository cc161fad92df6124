"""One segment of a function in parts: a `Jitted` that learns what cannot be compiled.

In: the syntax tree of a segment, and the `Parts` that it is one of. Out: a callable with compiled
versions of its own. Where its trace fails, or is not worth a call, the marks say so, and the
function is cut anew for its next call; this call goes on with the segment in parts.
"""

from __future__ import annotations

import ast
import types
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.api.jitted import Jitted
from npjit.core.graph import Graph, reachable
from npjit.core.op import CONTROL, Kind
from npjit.frontend.cut import Definition, Segment
from npjit.frontend.marks import own_nodes
from npjit.frontend.source import compile_made
from npjit.frontend.trace import Captured
from npjit.ops.errors import NotCaptured

if TYPE_CHECKING:
    from npjit.api.broken import Parts

# nodes that move or name values and compute none
_MOVING = frozenset([Kind.INPUT, Kind.CONST, Kind.SIZE, Kind.VIEW, Kind.CELL])
# so many operations on single numbers pay for a call of a segment
FEWEST_OF_NUMBERS = 8


class SegmentJitted(Jitted):
    """A segment; what fails in it is learned for the function that it is part of."""

    def __init__(self, of: Parts, segment: Segment, text: str) -> None:
        self.whole = function_of(segment.node, of.function, {})
        super().__init__(self.whole, of.options)
        self.is_silent = True
        self.of = of
        self.node = segment.node
        self.body = segment.body
        self.text = text
        self.has_loop = any(isinstance(n, ast.For | ast.While) for n in ast.walk(segment.node))
        # lengths of lists and dicts that were arguments when it was first compiled
        self.lengths: dict[int, int] = {}
        # no more is compiled; or the function has been cut otherwise, and only calls under way
        # still come here
        self.is_superseded = False

    @property
    def place(self) -> str:
        """Where its statements stand: file:first-last line."""
        lines = sorted({s.lineno for s in self.body})
        last = max(s.end_lineno or s.lineno for s in self.body)
        span = f"{lines[0]}-{last}" if last > lines[0] else f"{last}"
        return f"{self.of.code.co_filename}:{span}"

    def capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
        """Trace a call; NotCaptured also when there is too little to compile, or when what NumPy
        does next with a result (a reshape copies or does not) could turn out otherwise."""
        captured = super().capture(args, kwargs)
        if not (self.compiled or self.has_loop or is_worth(captured.graph)):
            raise TooLittle("too little to compile")
        if not captured.is_sure:
            raise NotCaptured("a value whose memory order or type may not be NumPy's")
        # what Python makes in between is on the CPU
        return replace(captured, may_mix=True)

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, str]:
        """A new entry; there are few kinds of values, and none for each length of a list."""
        if self._has_marks():
            return self._refuse(NotCaptured("cut by other marks"), len(args), ())
        lengths = {i: len(a) for i, a in enumerate(args) if type(a) in (list, dict)}
        self.lengths = self.lengths if self.compiled else lengths
        for i, n in lengths.items():
            if n != self.lengths.get(i, n):
                error = NotCaptured("a list or dict that grows")
                error.argument = i, args[i]
                return self._refuse(error, len(args), ())
        if len(self.compiled) >= self.options.recompile_limit:
            self.is_superseded = True
            return self._refuse(NotCaptured("too many kinds of values"), len(args), ())
        return super()._compile(args, kwargs)

    def _cut(self, error: NotCaptured) -> None:
        """Learn from the error; calls under way go on in parts of this segment."""
        with self.of.lock:
            if self.is_superseded or not (self._has_marks() or self._learned(error)):
                return
            self.is_superseded = True
            self.of.outdate()
            self.broken = self.of.made(self.node, self.whole, within=self)

    def _is_settled(self, e: NotCaptured, text: str) -> bool:
        return self.is_superseded

    def _has_marks(self) -> bool:
        """Whether marks have been found in it since it was made."""
        return any(self.of.marks.stays(n) for s in self.body for n in own_nodes(s))

    def _learned(self, error: NotCaptured) -> bool:
        marks, body = self.of.marks, self.body
        if isinstance(error, TooLittle):
            marks.drop(body)
            return True
        if error.argument is not None:
            name, value = error.argument
            if not isinstance(value, np.ndarray):
                marks.names.setdefault(self.node.args.args[name].arg, str(error))
            return not isinstance(value, np.ndarray)
        if self.of.learn(error, body):
            return True
        return error.__cause__ is None and marks.divide(body, str(error))


class TooLittle(NotCaptured):
    """A segment that does not pay for its call."""


def is_worth(graph: Graph) -> bool:
    """Whether a compiled graph does more than the call of it costs; checks count for nothing."""
    numbers = 0
    for n in reachable([*graph.outputs, *(node for _, node in graph.writes)]):
        if n.op.kind in CONTROL:
            return True
        if n.op.kind not in _MOVING:
            if n.shape or any(a.shape for a in n.args):
                return True
            numbers += 1
    return numbers >= FEWEST_OF_NUMBERS


def function_of(
    node: Definition, like: types.FunctionType, cells: dict[str, Any]
) -> types.FunctionType:
    """The function of a tree over the globals and closure of `like`, with further cells."""
    code = compile_made(node, like.__code__, tuple(cells))
    own = dict(zip(like.__code__.co_freevars, like.__closure__ or (), strict=True))
    closure = tuple(
        own[name] if name in own else types.CellType(cells[name]) for name in code.co_freevars
    )
    made = types.FunctionType(code, like.__globals__, like.__name__, None, closure)
    made.__qualname__, made.__module__ = like.__qualname__, like.__module__
    return made
