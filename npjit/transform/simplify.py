"""Rewrites a graph to a smaller one with the same values, bit for bit.

In: a Graph. Out: a Graph in which views and reshapes are merged, constants are computed, operations
that change nothing are gone, and storage that pure values can replace is removed. Sums that are
summed again become one sum; that is the one rule which may change the last bits of a result.

    %1 = view 1.0                      x * np.ones(n)
    %2 = multiply %0 %1     ->   %0

`RULES` lists the rewrite rules of each kind. A rule sees the question that a node asks (with
arguments already simplified) and gives another node as the answer, or None. What is particular to
an op stands in its row: `neutral`, `involution`, `conversion`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from npjit.core.assume import Assumptions
from npjit.core.control import Cond, Loop, While
from npjit.core.graph import Block, Concrete, Graph, Node, TensorType, Weight
from npjit.core.op import Bind, Kind, Literal, Op
from npjit.core.size import Expr
from npjit.core.view import Along, At, Cut, View, index
from npjit.ops import build, kinds
from npjit.transform.bit_tables import tabulate
from npjit.transform.hoist import hoist_checks
from npjit.transform.level import level
from npjit.transform.literal import is_zero, literal_of
from npjit.transform.locate import APART, locate
from npjit.transform.ranges import decide_comparisons
from npjit.transform.select import select_updates
from npjit.transform.sink import sink
from npjit.transform.storage import remove_storage
from npjit.transform.within import compared_sizes, within

DType = np.dtype[Any]


@dataclass(frozen=True)
class Question:
    """What a node computes."""

    block: Block
    op: Op
    args: tuple[Node, ...]
    params: Any
    type: TensorType
    # nodes with several users: to merge them into each user would compute them several times
    shared: set[Node]


Rule = Callable[[Question], Node | None]
# how nested graphs are rewritten, and what is known in them
Inner = Callable[[Graph, Assumptions], Graph]


def simplify(graph: Graph, around: Assumptions | None = None) -> Graph:
    """The graph with every rule applied and unneeded storage removed; `around` is known of it."""
    known = around or Assumptions()
    smaller = sink(select_updates(remove_storage(_rewrite(graph, known, simplify))))
    smaller = hoist_checks(smaller)
    if around is None:
        smaller = decide_comparisons(smaller)
    smaller = _rewrite(smaller, known, _again)
    return tabulate(level(smaller)) if around is None else smaller


def _again(graph: Graph, around: Assumptions) -> Graph:
    """A second walk over nested graphs that are simple already: two whole simplifications of each
    would double the work with every level."""
    return _rewrite(graph, around, _again)


_VALUES = frozenset(
    [Kind.ELEMENTWISE, Kind.REDUCE, Kind.VIEW, Kind.RESHAPE, Kind.PAD, Kind.GATHER, Kind.CONTRACT]
)


def answer(q: Question) -> Node:
    """The node for a question: what the first rule that applies gives, else the question itself."""
    if 0 in q.type.shape and q.op.kind in _VALUES and q.args[0].op.kind is not Kind.CONST:
        return _filled(q, Literal.of(0, q.type.dtype))  # of no elements: nobody can tell
    for rule in RULES.get(q.op.kind, ()):
        found = rule(q)
        if found is not None:
            return found
    return q.block.add(q.op, q.args, q.params, q.type)


def _rewrite(graph: Graph, around: Assumptions, inner: Inner) -> Graph:
    """One walk over the nodes, arguments before users; `inner` rewrites nested graphs."""
    block = Block(sizes=around.copy(graph.guards))
    users = graph.users()
    outputs = set(graph.outputs)
    shared: set[Node] = set()
    new: dict[Node, Node] = {}
    for n in graph.nodes:
        block.where = n.where
        args = tuple(new[a] for a in n.args)
        params, type_ = _inside(n.params, args, block.sizes, inner), _plain(n, block.sizes)
        new[n] = answer(Question(block, n.op, args, params, type_, shared))
        if n in outputs or len(users[n]) > 1:
            shared.add(new[n])
    made = Graph.of(
        block,
        [new[n] for n in graph.inputs],
        [build.weigh(block, new[n], n.type.weight) for n in graph.outputs],
        [(i, new[n]) for i, n in graph.writes],
        graph.sources,
    )
    return replace(made, guards=graph.guards)


def _plain(n: Node, known: Assumptions) -> TensorType:
    """The node's type; once traced, a computed number is the same value whatever its weight."""
    weight = Weight.ARRAY if n.shape else Weight.SCALAR
    if n.op.kind is Kind.INPUT:
        weight = n.type.weight
    return TensorType(_respelled(n.shape, known), n.dtype, weight)


def _inside(params: Any, args: Sequence[Node], known: Assumptions, inner: Inner) -> Any:
    """Params with equal sizes spelled alike, and their graphs rewritten."""
    if isinstance(params, Bind):
        known.ranges[params.var] = (params.least, params.greatest)
    if not isinstance(params, Loop | While | Cond | Bind):
        return _respelled(params, known)
    parts = {f.name: _respelled(getattr(params, f.name), known) for f in fields(params)}
    inside = within(known, params, args)
    parts |= {name: inner(getattr(params, name), known) for name, known in inside.items()}
    return replace(params, **parts)


def _respelled(value: Any, known: Assumptions) -> Any:
    """Parts of params, or a shape, with equal sizes spelled alike."""
    if isinstance(value, Expr):
        return known.settled(value)
    if isinstance(value, tuple):
        return tuple(_respelled(v, known) for v in value)
    if isinstance(value, View):
        return View(*(_respelled(p, known) for p in (value.base, value.dims, value.shape)))
    if isinstance(value, At):
        return At(_respelled(value.index, known))
    if isinstance(value, Along):
        return replace(
            value, start=_respelled(value.start, known), step=_respelled(value.step, known)
        )
    return value


# ---------------------------------------------------------------- constants


def _filled(q: Question, literal: Literal) -> Node:
    """An answer in which every element is the constant."""
    type_ = TensorType((), q.type.dtype, Weight.SCALAR)
    const = q.block.add(kinds.CONST, (), literal, type_)
    return build.broadcast(q.block, const, q.type.shape)


def fold(q: Question) -> Node | None:
    """An elementwise operation on constants is computed now."""
    literals = [literal_of(a) for a in q.args]
    if not q.args or None in literals:
        return None
    node = Node(q.op, q.args, q.params, replace(q.type, shape=()), "")
    try:
        with np.errstate(all="ignore"):
            value = q.op.evaluate(Concrete(node, {}), *[np.asarray(x.value) for x in literals if x])
    except (ArithmeticError, ValueError):
        # raised again, where it belongs, when the code runs
        return None
    return _filled(q, Literal.of(value, q.type.dtype))


def keep_constant(q: Question) -> Node | None:
    """Moving equal elements changes nothing, and neither does padding zeros with zeros."""
    literal = literal_of(q.args[0])
    if literal is None or (q.op.kind is Kind.PAD and not is_zero(literal)):
        return None
    return _filled(q, literal)


# ---------------------------------------------------------------- elementwise


def drop_neutral(q: Question) -> Node | None:
    """x * 1, x / 1, x - 0 and the like."""
    for position, number in q.op.neutral:
        other = q.args[1 - position]
        if other.dtype != q.type.dtype or other.dtype.kind not in "iuf":
            continue
        if literal_of(q.args[position]) == Literal.of(number, q.args[position].dtype):
            return other
    return None


def undo_involution(q: Question) -> Node | None:
    """-(-x) and the like."""
    if not q.op.involution or q.args[0].op is not q.op:
        return None
    (inner,) = q.args[0].args
    return inner if inner.dtype == q.type.dtype else None


def merge_conversions(q: Question) -> Node | None:
    """A conversion to the type it has, or after another one that loses nothing."""
    if not q.op.conversion:
        return None
    (x,) = q.args
    if x.dtype == q.type.dtype:
        return x
    if not x.op.conversion:
        return None
    (source,) = x.args
    if source.dtype == q.type.dtype and _is_lossless(source.dtype, x.dtype):
        return source
    if _is_lossless(source.dtype, x.dtype) and _is_lossless(x.dtype, q.type.dtype):
        return answer(replace(q, args=(source,)))
    return None


@lru_cache(maxsize=1024)
def _is_lossless(source: DType, target: DType) -> bool:
    """Whether every value of one element type is exact in the other, and so comes back."""
    if source.kind in "iu" and target.kind in "fc":
        digits = np.finfo(target).nmant + 1
        return int(np.iinfo(source).max).bit_length() <= digits
    return bool(np.can_cast(source, target, "safe"))


def compare_sizes(q: Question) -> Node | None:
    """A comparison of sizes that comes out the same in every call."""
    asked = compared_sizes(Node(q.op, q.args, q.params, q.type, ""))
    answer = None if asked is None else q.block.sizes.holds(q.op.relation, *asked)
    return None if answer is None else _filled(q, Literal.of(answer, q.type.dtype))


def pass_check(q: Question) -> Node | None:
    """A check that cannot fail."""
    literal = literal_of(q.args[0])
    return q.args[0] if literal is not None and literal.value else None


# ---------------------------------------------------------------- movement


def merge_view(q: Question) -> Node | None:
    """A view of a view is one view, and one that changes nothing is none: as `build` does."""
    return build.view(q.block, q.args[0], q.params)


def look_into_pad(q: Question) -> Node | None:
    """A view of padded values that shows the values alone, or the zeros alone."""
    padded = q.args[0]
    if padded.op.kind is not Kind.PAD:
        return None
    inner = padded.args[0]
    cuts = [Cut(before, 1, n) for (before, _), n in zip(padded.params, inner.shape, strict=True)]
    found = locate(q.params, index(padded.shape, cuts), q.block.sizes)
    if found is None:
        return None
    if found is APART:
        return _filled(q, Literal.of(0, q.type.dtype))
    return build.view(q.block, inner, found)


def merge_reshape(q: Question) -> Node | None:
    """A reshape of a reshape is one; one that only moves axes of extent 1 is a view."""
    return build.reshape(q.block, q.args[0], q.type.shape)


def merge_reductions(q: Question) -> Node | None:
    """A reduction of the same reduction's result goes over all the axes at once."""
    (x,) = q.args
    if x.op is not q.op or x.dtype != q.type.dtype or x.args[0].dtype != x.dtype:
        return None
    if q.op.reduction is None or not q.op.reduction.merges or x in q.shared:
        return None
    (source,) = x.args
    kept = [axis for axis in range(len(source.shape)) if axis not in x.params]
    axes = sorted([*x.params, *(kept[axis] for axis in q.params)])
    return answer(replace(q, args=(source,), params=tuple(axes)))


RULES: dict[Kind, tuple[Rule, ...]] = {
    Kind.ELEMENTWISE: (fold, compare_sizes, drop_neutral, undo_involution, merge_conversions),
    Kind.CHECK: (pass_check,),
    Kind.VIEW: (look_into_pad, merge_view),
    Kind.RESHAPE: (keep_constant, merge_reshape),
    Kind.PAD: (keep_constant,),
    Kind.GATHER: (keep_constant,),
    Kind.REDUCE: (merge_reductions,),
}
