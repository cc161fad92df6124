"""The greatest value of a size over the trips of the loops around it.

In: a size that names loop indices and computed variables, and what these range over, outermost
first. Out: a size without them that is never less: memory for one trip is as large as for any.

    greatest(n - i, {i: (0, n - 1)})   ->   n
    greatest(i*n, {i: (0, n - 1)})     ->   n*n - n
"""

from __future__ import annotations

from npjit.core.size import (
    Atom,
    Size,
    Var,
    as_size,
    atoms,
    bounds,
    floordiv,
    linear,
    pow2,
    smax,
    smin,
)
from npjit.schedule.cells import NotScheduled

Ranges = dict[Var, tuple[Size, Size]]


def greatest(size: Size, ranges: Ranges) -> Size:
    """An upper bound that names none of the variables of `ranges`; where no trip is made, 0."""
    found = size
    for v in reversed(ranges):
        found = _without(found, v, *ranges[v], most=True)
    low, _ = bounds(found)
    return found if found is size or (low is not None and low >= 0) else smax(0, found)


def _without(size: Size, v: Var, least: Size, most_value: Size, most: bool) -> Size:
    """The extreme over least <= v <= most_value."""
    if v not in atoms(size):
        return size
    coefficient, rest = linear(size, v)
    if coefficient is not None:
        low, high = bounds(coefficient)
        if low is not None and low >= 0:
            return coefficient * (most_value if most else least) + rest
        if high is not None and high <= 0:
            return coefficient * (least if most else most_value) + rest
        ends = (coefficient * least + rest, coefficient * most_value + rest)
        return smax(*ends) if most else smin(*ends)
    assert not isinstance(size, int)
    total: Size = 0
    for monomial, factor in size.terms:
        up = most == (factor > 0)
        term: Size = factor
        for atom in monomial:
            term = term * _atom(atom, v, least, most_value, up)
        total = total + term
    return total


def _atom(atom: Atom, v: Var, least: Size, most_value: Size, most: bool) -> Size:
    """The extreme of one factor; factors of a product are not negative where sizes are
    products."""
    low, _ = bounds(_as_size(atom))
    if isinstance(atom, Var):
        if atom != v:
            return _as_size(atom)
        if low is not None and low >= 0:
            return most_value if most else least
    elif atom.name in ("min", "max"):
        ends = [_without(a, v, least, most_value, most) for a in atom.args]
        return smin(*ends) if atom.name == "min" else smax(*ends)
    elif atom.name == "floordiv" and isinstance(atom.args[1], int) and atom.args[1] > 0:
        return floordiv(_without(atom.args[0], v, least, most_value, most), atom.args[1])
    elif atom.name == "select":
        ends = [_without(a, v, least, most_value, most) for a in atom.args[1:]]
        return smax(*ends) if most else smin(*ends)
    elif atom.name == "pow2":
        return pow2(_without(atom.args[0], v, least, most_value, most))
    elif atom.name == "mod" and most and isinstance(atom.args[1], int):
        return atom.args[1] - 1
    raise NotScheduled(f"an array whose size depends on {v.name} in a way that has no bound", "")


def _as_size(atom: Atom) -> Size:
    return as_size(atom)
