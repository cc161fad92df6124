"""Kernels as text, and random graphs: a plan, run loop by loop, means what its graph means."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npjit.core.graph import Graph, Node
from npjit.core.op import Kind
from npjit.core.size import Size, atoms, product, substitute, var
from npjit.core.view import (
    Along,
    At,
    Cut,
    View,
    broadcast,
    diagonal,
    identity,
    index,
    slice_of,
)
from npjit.schedule import schedule
from tests import schedule_reference as r
from tests.schedule_reference import Builder, compare
from tests.test_fuse import layer_norm, rows, softmax

LONG = 60
UNARY = [r.negative, r.dear, r.halve]
BINARY = [r.add, r.subtract, r.maximum, r.dear_mean]


class Maker:
    """Draws a random graph and inputs for it."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.b = Builder()
        self.sizes = {"n": draw(st.integers(0, 4)), "m": draw(st.integers(1, 3))}
        self.n, self.m = var("n", lo=0), var("m", lo=0)
        self.arrays: list[Any] = []
        self.pool: list[Node] = []
        # newest version of each cell; position of the input, or None
        self.cells: list[tuple[Node, int | None]] = []

    def pick(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(list(choices)))

    def actual(self, size: Size) -> int:
        value = substitute(size, {a: self.sizes[a.name] for a in atoms(size)})
        assert isinstance(value, int)
        return value

    def count(self, shape: Any) -> int:
        return self.actual(product(shape))

    def inputs(self) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            shape = self.pick(
                [(self.n, self.m), (self.m,), (self.n, 3), (2, self.m, self.n), (1, 3)]
            )
            x = self.b.input(shape)
            self.pool.append(x)
            self.arrays.append(self.array([self.actual(s) for s in shape]))
        # every size has a source
        self.pool.append(self.b.input((self.n, self.m)))
        self.arrays.append(self.array([self.actual(self.n), self.actual(self.m)]))
        for k, x in enumerate(list(self.pool)):
            if self.draw(st.integers(0, 3)) == 0:
                self.cells.append((x, k))

    def array(self, shape: list[int]) -> Any:
        rng = np.random.default_rng(self.draw(st.integers(0, 1000)))
        form = self.draw(st.integers(0, 3))
        if form == 1:
            return np.asfortranarray(rng.integers(-4, 5, shape).astype("f8"))
        if form == 2:
            big = rng.integers(-4, 5, [2 * s for s in shape]).astype("f8")
            return big[tuple(slice(None, None, 2) for _ in shape)]
        if form == 3:
            return rng.integers(-4, 5, shape).astype("f8")[..., ::-1]
        return rng.integers(-4, 5, shape).astype("f8")

    def cut(self, size: Size) -> At | Cut:
        now = self.actual(size)
        form = self.draw(st.integers(0, 5))
        if form == 0 and now > 0 and (isinstance(size, int) or now > 1):
            return At(self.pick(range(now if isinstance(size, int) else 1)))
        if form == 1 and now > 0:
            return slice_of(1, 1, size - 1)
        if form == 2 and now > 0:
            return slice_of(0, 1, size - 1)
        if form == 3 and now > 0:
            return slice_of(size - 1, -1, size)
        if form == 4 and isinstance(size, int) and size > 1:
            return slice_of(0, 2, (size + 1) // 2)
        return slice_of(0, 1, size)

    def window(self, shape: Any) -> View:
        return index(shape, [self.cut(s) for s in shape])

    def fitted(self, shape: Any) -> Node | None:
        """Some node, broadcast to the shape."""
        fits = [a for a in self.pool if _broadcasts(a.shape, shape)]
        if not fits:
            return self.b.full(float(self.draw(st.integers(-3, 3))), shape)
        return self.b.bc(self.pick(fits), shape)

    def step(self) -> Node | None:
        a = self.pick(self.pool[-6:] if self.draw(st.booleans()) else self.pool)
        b = self.b
        form = self.draw(st.integers(0, 14))
        if form <= 1:
            return b.ew(self.pick(UNARY), a)
        if form <= 4:
            other = self.fitted(a.shape)
            return None if other is None else b.ew(self.pick(BINARY), a, other)
        if form <= 6 and a.shape:
            return self.reduce(a)
        if form == 7:
            return b.t(a, self.draw(st.permutations(range(len(a.shape)))))
        if form == 8:
            return b.view(a, self.window(a.shape))
        if form == 9 and len(a.shape) < 3:
            wide = b.expand(a, (self.draw(st.integers(0, len(a.shape))),))
            return b.bc(wide, tuple(self.pick([self.m, 2]) if s == 1 else s for s in wide.shape))
        if form == 10 and a.shape:
            pads = [(self.draw(st.integers(0, 2)), self.draw(st.integers(0, 1))) for _ in a.shape]
            return b.pad(a, pads)
        if form == 11:
            return self.reshape(a)
        if form == 12:
            return self.other(a)
        if form == 13:
            self.cells.append((b.cell(a), None))
            return self.cells[-1][0]
        return self.update()

    def reduce(self, a: Node) -> Node | None:
        axes = self.draw(st.sets(st.integers(0, len(a.shape) - 1), min_size=1))
        keep = self.draw(st.booleans())
        form = self.draw(st.integers(0, 4))
        if form < 3 or self.count(a.shape) == 0:
            return self.b.sum(a, sorted(axes), keep)
        if form == 3:
            return self.b.max(a, sorted(axes), keep)
        place = self.b.reduce(r.reduce_argmax, a, sorted(axes), keep, dtype="i8")
        return self.b.ew(r.cast, place, dtype="f8")

    def reshape(self, a: Node) -> Node:
        if len(a.shape) > 1 and self.draw(st.booleans()):
            return self.b.reshape(a, (a.shape[0], product(a.shape[1:])))
        if self.draw(st.booleans()) and len(a.shape) == 2:
            return self.b.reshape(a, (*a.shape[:1], 1, *a.shape[1:]))
        return self.b.reshape(a, (product(a.shape),))

    def other(self, a: Node) -> Node | None:
        b = self.b
        same = [
            (i, j)
            for i, j in itertools.combinations(range(len(a.shape)), 2)
            if a.shape[i] == a.shape[j]
        ]
        if same:
            return b.view(a, diagonal(a.shape, *self.pick(same)))
        wide = [d for d, s in enumerate(a.shape) if isinstance(s, int) and s > 1]
        if wide:
            where = b.input((self.m,), "i8")
            now = self.actual(self.m)
            self.arrays.append(np.arange(now) % 2)
            return b.gather(a, where, dims=(self.pick(wide),), place=0)
        fits = [c for c in self.pool if len(c.shape) == 2 and len(a.shape) == 2]
        fits = [c for c in fits if c.shape[1] == a.shape[1]]
        if fits:
            return b.contract(a, self.pick(fits), "ab,cb->ac")
        if len(a.shape) == 1:
            place = b.ew(r.cast, b.iota(a.shape[0]), dtype="f8")
            return b.ew(r.add, a, place)
        return None

    def update(self) -> Node | None:
        if not self.cells:
            return None
        k = self.draw(st.integers(0, len(self.cells) - 1))
        cell, number = self.cells[k]
        window = self.window(cell.shape)
        own = self.b.view(cell, self.window(cell.shape))
        value = None
        if own.shape == window.shape and self.draw(st.booleans()):
            value = self.b.ew(self.pick(UNARY), own) if self.draw(st.booleans()) else own
        if value is None:
            value = self.fitted(window.shape)
        if value is None:
            return None
        self.cells[k] = (self.b.update(cell, value, window), number)
        return self.cells[k][0]

    def graph(self) -> Graph:
        self.inputs()
        for _ in range(self.draw(st.integers(1, 14))):
            made = self.step()
            if made is not None and self.count(made.shape) <= LONG:
                self.pool.append(made)
        outputs = [self.pick(self.pool[-5:]) for _ in range(self.draw(st.integers(1, 3)))]
        writes = [(k, v) for v, k in self.cells if k is not None and v.op.kind is Kind.UPDATE]
        return self.b.graph(outputs, writes)


def _broadcasts(shape: Any, target: Any) -> bool:
    if len(shape) > len(target):
        return False
    pairs = zip(shape[::-1], target[::-1], strict=False)
    return all(s == t or s == 1 for s, t in pairs)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs(data: Any) -> None:
    maker = Maker(data.draw)
    graph = maker.graph()
    compare(graph, maker.arrays)


# -- text


def test_softmax_text(golden: Any) -> None:
    b = Builder()
    x, _ = rows(b)
    golden("plan_softmax.txt", str(schedule(b.graph([softmax(b, x)[0]]), ["C"])))


def test_layer_norm_text(golden: Any) -> None:
    graph = layer_norm(Builder())
    golden("plan_layer_norm.txt", str(schedule(graph, ["C"] * 4)))


def test_stencil_gradient_text(golden: Any) -> None:
    """Slices forward are pads backward, which are bounds in the kernel."""
    b = Builder()
    x, (n, m) = rows(b)
    parts = [b.cut(x, (i, 1, n - 1), (0, 1, m)) for i in (0, 1)]
    step = b.ew(r.subtract, *parts)
    back = b.ew(r.subtract, b.pad(step, [(0, 1), (0, 0)]), b.pad(step, [(1, 0), (0, 0)]))
    golden("plan_stencil.txt", str(schedule(b.graph([back]), ["C"])))


def test_update_text(golden: Any) -> None:
    """A row from the row above, and a shift, which needs a temporary."""
    b = Builder()
    x, (n, m) = rows(b)
    above = b.view(x, index(x.shape, [At(0), slice_of(0, 1, m)]))
    v = b.update(x, b.ew(r.add, above, above), index(x.shape, [At(1), slice_of(0, 1, m)]))
    moved = b.cut(v, (0, 1, n - 1), (0, 1, m))
    w = b.update(v, moved, index(x.shape, [slice_of(1, 1, n - 1), slice_of(0, 1, m)]))
    golden("plan_update.txt", str(schedule(b.graph([], [(0, w)]), ["C"])))


def test_slice_text(golden: Any) -> None:
    """A row and a column of what is overwritten are copied first, and nothing else is."""
    b = Builder()
    x, (n, m) = rows(b)
    row = b.view(b.view(x, index(x.shape, [At(2), slice_of(0, 1, m)])), broadcast((m,), (n, m)))
    column = b.view(x, View(x.shape, (Along(0, 1, 0), At(3)), (n, m)))
    w = b.update(x, b.ew(r.add, b.ew(r.add, row, column), x), identity(x.shape))
    golden("plan_slice.txt", str(schedule(b.graph([], [(0, w)]), ["C"])))


def test_fortran_order_text(golden: Any) -> None:
    """Loops and results follow memory; contiguous axes become one."""
    b = Builder()
    x, _ = rows(b)
    y = b.ew(r.add, b.ew(r.exp, x), x)
    golden("plan_fortran.txt", str(schedule(b.graph([y]), [("1", "p", "10|f")])))
