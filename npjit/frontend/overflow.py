"""Python's ints are unbounded, compiled code computes sizes in 64 bits: guards that make the two
agree.

`bound_sizes(capture, graph)` looks at every size that the graph computes. Where its variables could
make it leave int64, it adds guards on them; where the sizes of this very call do, the call is left
to NumPy. A loop's index is bounded by what its number of trips depends on.

    size k0*k0  ->  guards  -2147483648 <= k0, k0 <= 2147483648
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from npjit.core.control import Loop
from npjit.core.graph import Graph, every_node, sizes_in
from npjit.core.op import Kind
from npjit.core.size import Expr, Fn, Size, Var, atoms, pow2, var
from npjit.frontend.capture import Capture
from npjit.ops.errors import NotCaptured

_LIMIT = 2**63 - 1
# no array has longer axes, but for broadcast ones that nothing could be computed with
_LONGEST = 2**48
# NumPy refuses arrays of more bytes than an int64 counts
_MOST_ELEMENTS = 2**60
# what is left of 64 bits beside this power of 2 is for its factors
_MOST_EXPONENT = 24
# what only the running code knows, as the length of a slice, is taken to be less than this
_COMPUTED = 2**20


def bound_sizes(capture: Capture, graph: Graph) -> bool:
    """Add the guards that are needed; whether there are new ones."""
    sizes = capture.block.sizes
    before = len(sizes.guards)
    loops = [n.params for n in every_node(graph) if isinstance(n.params, Loop)]
    trips = {loop.index: loop.trips for loop in loops}
    greatest: dict[Var, int] = {}
    for size in dict.fromkeys(_computed(graph)):
        if _magnitude(capture, size, greatest) <= _LIMIT:
            continue
        _bound(capture, size, _LIMIT, trips, greatest)
        if _magnitude(capture, size, greatest) > _LIMIT:
            raise NotCaptured("an int expression that may leave 64 bits", passing=True)
    return len(sizes.guards) > before


def _bound(
    capture: Capture, size: Size, most: int, trips: Mapping[Var, Size], greatest: dict[Var, int]
) -> None:
    """Guards under which a size is no further from 0 than `most`, noted in `greatest`."""
    if isinstance(size, int):
        _hold(abs(size) <= most)
        return
    weight = sum(abs(c) for _, c in size.terms)
    limit = int((most // 2 / weight) ** (1 / max(_degree(size), 1)))
    exponents = _exponents(size)
    sizes = capture.block.sizes
    for v in atoms(size):
        limit_of_v = _MOST_EXPONENT if v in exponents else limit
        if limit_of_v >= greatest.get(v, _LIMIT):
            continue
        if v.name in sizes.values:
            known = var(v.name, v.lo, v.hi)
            _hold(sizes.decide_le(known, limit_of_v) and sizes.decide_le(-limit_of_v, known))
        elif v in trips:
            _bound(capture, trips[v], limit_of_v, trips, greatest)
        else:
            _hold(limit_of_v >= _COMPUTED)
        greatest[v] = limit_of_v


def _hold(condition: bool) -> None:
    if not condition:
        raise NotCaptured("an int expression that leaves 64 bits", passing=True)


def _degree(size: Size) -> int:
    """How many variables are multiplied, those inside terms as well."""
    if isinstance(size, int):
        return 0
    return max(sum(_atom_degree(a) for a in mono) for mono, _ in size.terms)


def _atom_degree(atom: Var | Fn) -> int:
    return 1 if isinstance(atom, Var) else max(_degree(a) for a in atom.args)


def _exponents(size: Size) -> set[Var]:
    """The variables that powers of 2 depend on."""
    found: set[Var] = set()
    for mono, _ in size.terms if isinstance(size, Expr) else ():
        for a in mono:
            if isinstance(a, Fn):
                found |= set().union(*map(atoms if a.name == "pow2" else _exponents, a.args))
    return found


def _computed(graph: Graph) -> Iterator[Expr]:
    """Every polynomial that the graph's guards, shapes and values need, the arguments of its terms
    included.
    """
    for g in graph.guards:
        yield from _polynomials(g.a)
        yield from _polynomials(g.b)
    for n in every_node(graph):
        if n.op.kind is not Kind.INPUT:
            for size in (*n.shape, *sizes_in(n.params)):
                yield from _polynomials(size)


def _polynomials(size: Size) -> Iterator[Expr]:
    if isinstance(size, int):
        return
    yield size
    for mono, _ in size.terms:
        for a in mono:
            if isinstance(a, Fn):
                for arg in a.args:
                    yield from _polynomials(arg)


def _magnitude(capture: Capture, size: Size, greatest: dict[Var, int]) -> int:
    """No value of the size is further from 0 than this."""
    if isinstance(size, int):
        return abs(size)
    total = 0
    for mono, c in size.terms:
        bound = prod(_atom_magnitude(capture, a, greatest) for a in mono)
        if len(mono) > 1 and _is_count(capture, mono):
            bound = min(bound, _MOST_ELEMENTS)
        total += abs(c) * bound
    return total


def _is_count(capture: Capture, mono: tuple[Var | Fn, ...]) -> bool:
    """Whether the product is one of different extents of one array."""
    found = [capture.sources.get(a) for a in mono if isinstance(a, Var)]
    places = {(s.input, s.axis) for s in found if s is not None and s.axis is not None}
    return len(places) == len(mono) and len({i for i, _ in places}) == 1


def _atom_magnitude(capture: Capture, atom: Var | Fn, greatest: dict[Var, int]) -> int:
    if isinstance(atom, Var):
        source = capture.sources.get(atom)
        is_int = source is not None and source.axis is None
        return min(greatest.get(atom, _LIMIT), _LIMIT if is_int else _LONGEST)
    parts = [_magnitude(capture, a, greatest) for a in atom.args]
    if atom.name == "floordiv":
        return parts[0]
    if atom.name == "pow2":
        return int(pow2(parts[0]))
    if atom.name == "mod":
        return parts[1]
    return max(parts[-2:])
