"""Loops over slices that lie apart in memory run strip by strip, each strip through all trips.

In: a graph whose carried values are storage (see `carried`). Out: the same values, where a LOOP
that works on columns is two loops: an outer one over strips of rows, and the old one on one strip.
What a strip reads and writes stays in the cache from one trip to the next, and so each cache line
comes from memory once instead of once for each of its elements.

    loop k < n (c: c[:, k] = f(c[:, k - 1], a[:, k]))
    loop s < strips: loop k < n (c: c[s:s+B, k] = f(c[s:s+B, k - 1], a[s:s+B, k]))

Nobody can tell when an axis runs through everything that the loop writes: each array that is
written is read and written along it at just the same positions, nothing reduces over it, no number
is carried, and neither the trips nor any condition depends on it. What is only read may be read
anywhere. Jacobi's, Gauss-Seidel's and Floyd and Warshall's loops have no such axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from npjit.core.control import Cond, Loop
from npjit.core.graph import Block, Graph, Node, TensorType, nested_graphs, rebuild
from npjit.core.op import CONTROL, Kind, Op
from npjit.core.size import Expr, Shape, Size, Var, atoms, floordiv, product, smax, smin
from npjit.core.view import Along, At, Entry, View, identity
from npjit.schedule.cells import WRITE

# cache lines of a strip of all arrays together: a first-level cache
LINES = 512

_VIEW = Op("cut", Kind.VIEW, lambda n, a: a)
_RESULT = Op("result", Kind.RESULT, lambda n, results: results[n.params])


class _Refused(Exception):
    """No axis runs through the loop."""


def cut_in_strips(graph: Graph) -> Graph:
    """The graph with every loop cut in strips that gains by it."""
    if not any(n.op.kind in CONTROL for n in graph.nodes):
        return graph
    return replace(rebuild(graph, _rewritten), guards=graph.guards)


def _rewritten(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
    if n.op.kind not in CONTROL:
        return None
    inner = {k: cut_in_strips(g) for k, g in vars(n.params).items() if isinstance(g, Graph)}
    params = replace(n.params, **inner)
    if isinstance(params, Loop):
        strip = next(_strips_of(params), None)
        if strip is not None:
            params = strip.outer_loop(n)
    return block.add(n.op, args, params, n.type)


def _strips_of(loop: Loop) -> Iterator[_Strip]:
    """The ways in which the loop can be cut: one for each extent of what it writes."""
    nodes = _every_node(loop.body)
    plain = all(n.op.kind not in CONTROL or n.op.kind is Kind.COND for n in nodes)
    if loop.stops or not loop.written or not plain:
        return
    loop = replace(loop, body=_explicit(loop.body))
    shapes = [n.params.shape for n in _every_node(loop.body) if n.op.kind is Kind.UPDATE]
    for extent in dict.fromkeys(n for shape in shapes for n in shape):
        strip = _Strip(loop, extent)
        try:
            strip.find()
        except _Refused:
            continue
        if strip.shared:
            yield strip


def _explicit(graph: Graph) -> Graph:
    """A body whose last values are all versions of what they are written to."""

    def again(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if not isinstance(n.params, Cond):
            return None
        branches = Cond(_explicit(n.params.then), _explicit(n.params.other))
        return block.add(n.op, args, branches, n.type)

    made = rebuild(graph, again)
    base = _storage(made, {})
    last = {b: n for n, b in base.items()}
    nodes, writes = list(made.nodes), []
    for p, n in made.writes:
        target = made.inputs[p]
        if base.get(n) is not target:
            old = last[target]
            n = Node(WRITE, (old, n), identity(target.shape), target.type, n.where)
            nodes.append(n)
        writes.append((p, n))
    return Graph(made.inputs, tuple(nodes), made.outputs, tuple(writes))


def _storage(graph: Graph, outer: Mapping[Node, Node]) -> dict[Node, Node]:
    """The storage of each version in a body, in their order; `outer` has that of its inputs where
    they are versions of the world around."""
    base: dict[Node, Node] = {}
    for n in graph.nodes:
        if n.op.kind in (Kind.CELL, Kind.INPUT):
            base[n] = outer.get(n, n)
        elif n.op.kind in (Kind.UPDATE, Kind.SCATTER):
            base[n] = base[n.args[0]]
        elif n.op.kind is Kind.RESULT and n.args[0].op.kind is Kind.COND:
            cond = n.args[0]
            base[n] = base[cond.args[1 + cond.params.written[n.params]]]
    return base


def _every_node(graph: Graph) -> Iterator[Node]:
    for n in graph.nodes:
        yield n
        if n.op.kind in CONTROL:
            for g in nested_graphs(n):
                yield from _every_node(g)


@dataclass
class _Strip:
    """One loop and the axis along which it is cut: `extent` positions."""

    loop: Loop
    extent: Size
    # the axis of each value that has it, and the dimension and first position of each storage
    axis: dict[Node, int] = field(default_factory=dict)
    places: dict[Node, tuple[int, Size]] = field(default_factory=dict)
    # for the input of a branch what it stands for; for each version its storage
    outer: dict[Node, Node] = field(default_factory=dict)
    base: dict[Node, Node] = field(default_factory=dict)
    # arrays that a node reads as they stand, and the axis along which it wants them cut
    direct: dict[tuple[Node, Node], int] = field(default_factory=dict)
    # arrays in which neighbouring trips find their elements in one cache line
    shared: set[Node] = field(default_factory=set)
    # the other extents of the slices
    beside: Size = 1

    # -- which axis

    def find(self) -> None:
        """Follow the axis from the updates through the whole body."""
        self._name_storage(self.loop.body, {})
        if self.loop.index in atoms(self.extent):
            raise _Refused
        updates = [n for n in _every_node(self.loop.body) if n.op.kind is Kind.UPDATE]
        for u in updates:
            if self.base[u].op.kind is Kind.INPUT and self.base[u] not in self.places:
                self._start(u, updates)
        for storage, (d, _) in list(self.places.items()):
            if storage.args:
                self._want(storage, storage.args[0], d)
        self._check([u for u in updates if self.base[u] not in self.places])

    def _start(self, first: Node, updates: list[Node]) -> None:
        """Find the axis in an update that nothing has led to yet."""
        kept = replace(
            self,
            axis=dict(self.axis),
            places=dict(self.places),
            direct=dict(self.direct),
            shared=set(self.shared),
        )
        for axis, extent in enumerate(first.params.shape):
            if extent != self.extent:
                continue
            try:
                self._settle(self.base[first], first.params, axis)
                self._follow(updates)
            except _Refused:
                self.axis, self.places = dict(kept.axis), dict(kept.places)
                self.direct, self.shared = dict(kept.direct), set(kept.shared)
                continue
            self.beside = product(n for k, n in enumerate(first.params.shape) if k != axis)
            return
        raise _Refused

    def _follow(self, updates: list[Node]) -> None:
        """What the updates of cut storage need, until nothing new is cut."""
        done: set[Node] = set()
        while known := [u for u in updates if self.base[u] in self.places and u not in done]:
            for u in known:
                self._want(u, u.args[1], self._axis_in(u.params, self.base[u]))
            done.update(known)

    def _name_storage(self, graph: Graph, outer: Mapping[Node, Node]) -> None:
        """Fill `base` and `outer`, branches included; a branch's input may stand for a value."""
        for n, storage in _storage(graph, outer).items():
            if n not in self.outer or n in outer:
                self.base[n] = storage
        for n in graph.nodes:
            for g in nested_graphs(n) if n.op.kind is Kind.COND else ():
                given = dict(zip(g.inputs, n.args[1:], strict=False))
                self.outer |= given
                known = {i: self.base[a] for i, a in given.items() if a in self.base}
                self._name_storage(g, known)

    def _is_read_only(self, n: Node) -> bool:
        """Whether a node is an array from outside that the loop does not write."""
        base = self.base.get(n)
        written = [self.loop.body.inputs[p] for p in self.loop.written]
        return base is not None and base.op.kind is Kind.INPUT and base not in written

    def _settle(self, storage: Node, v: View, axis: int) -> None:
        """Note where the axis runs in a storage that is seen through a view."""
        found = [(d, e) for d, e in enumerate(v.dims) if isinstance(e, Along) and e.axis == axis]
        if len(found) != 1 or v.shape[axis] != self.extent:
            raise _Refused
        ((d, entry),) = found
        if entry.step != 1 or self.loop.index in atoms(entry.start):
            raise _Refused
        if self.places.setdefault(storage, (d, entry.start)) != (d, entry.start):
            raise _Refused
        if storage.op.kind is Kind.CELL and (entry.start != 0 or v.base[d] != self.extent):
            raise _Refused

    def _axis_in(self, v: View, storage: Node) -> int:
        """The view's axis that runs along the cut dimension of a storage."""
        d, _ = self.places[storage]
        entry = v.dims[d]
        if not isinstance(entry, Along):
            raise _Refused
        self._settle(storage, v, entry.axis)
        return entry.axis

    def axis_of_update(self, n: Node) -> int | None:
        """The axis along which an update is cut, if it is."""
        storage = self.base[n]
        return self._axis_in(n.params, storage) if storage in self.places else None

    def _want(self, user: Node, n: Node, axis: int) -> None:
        """A value is needed strip by strip, cut along this axis."""
        stack = [(user, n, axis)]
        while stack:
            user, n, axis = stack.pop()
            if n in self.axis:
                if self.axis[n] != axis:
                    raise _Refused
                continue
            if n.shape[axis] != self.extent:
                raise _Refused
            if n in self.base:
                self.direct[user, n] = axis
                self._see(n, identity(n.shape), axis)
                continue
            self.axis[n] = axis
            if n.op.kind is Kind.INPUT:
                stack.append((n, self.outer[n], axis))
            elif n.op.kind is Kind.ELEMENTWISE:
                stack += [(n, a, axis) for a in n.args]
            elif n.op.kind is Kind.REDUCE:
                kept = [k for k in range(len(n.args[0].shape)) if k not in n.params]
                stack.append((n, n.args[0], kept[axis]))
            elif n.op.kind is Kind.VIEW and n.args[0] in self.base:
                self._see(n.args[0], n.params, axis)
            elif n.op.kind is Kind.VIEW:
                stack += self._through(n, axis)
            else:
                raise _Refused

    def _see(self, version: Node, v: View, axis: int) -> None:
        """A version is read through a view, of which one axis is cut."""
        storage = self.base[version]
        along = [d for d, e in enumerate(v.dims) if isinstance(e, Along) and e.axis == axis]
        moving = [d for d, e in enumerate(v.dims) if isinstance(e, At) and self._moves(e)]
        if storage.op.kind is Kind.INPUT and any(a < m for a in along for m in moving):
            self.shared.add(storage)
        if not self._is_read_only(version):
            self._settle(storage, v, axis)

    def _moves(self, entry: At) -> bool:
        return self.loop.index in atoms(entry.index)

    def _through(self, n: Node, axis: int) -> list[tuple[Node, Node, int]]:
        """What a view needs of the value that it looks at."""
        along = [d for d, e in enumerate(n.params.dims) if _runs(e, axis)]
        if not along:
            return []  # the same for all positions
        if len(along) > 1 or n.params.dims[along[0]] != Along(0, 1, axis):
            raise _Refused
        return [(n, n.args[0], along[0])]

    def _check(self, whole: list[Node]) -> None:
        """Nothing sees more than its strip of what is cut, and everything written is cut; but what
        a trip writes for itself alone may be `whole` updates."""
        body = self.loop.body
        if any(body.inputs[p] not in self.places for p in self.loop.written):
            raise _Refused
        for n in _every_node(body):
            if n.op.kind is Kind.VIEW and n in self.axis:
                blind = not any(_runs(e, self.axis[n]) for e in n.params.dims)
                seen = n.args if blind else ()
            elif n in self.axis or n.op.kind is Kind.RESULT or n in self.places:
                continue
            elif n.op.kind is Kind.UPDATE:
                seen = n.args[1:] if n in whole else n.args[2:]
            else:
                seen = n.args[:1] if n.op.kind is Kind.COND else n.args
            if any(a in self.axis or self.base.get(a) in self.places for a in seen):
                raise _Refused

    # -- the loop of loops

    def outer_loop(self, n: Node) -> Loop:
        """The loop over strips, whose body is the old loop on one strip."""
        rows = smax(1, floordiv(LINES // len(self.shared), smax(1, self.beside)))
        index = Var(f"{self.loop.index.name}s", 0)
        offset = rows * Expr((((index,), 1),))
        narrow = _Narrow(self, offset, smin(rows, self.extent - offset))
        inner = replace(self.loop, body=narrow.graph(self.loop.body))
        block = Block()
        inputs = [Node(i.op, (), i.params, i.type, i.where) for i in self.loop.body.inputs]
        block.nodes += inputs
        loop = block.add(n.op, tuple(inputs), inner, n.type)
        finals = [
            (p, block.add(_RESULT, (loop,), k, inputs[p].type))
            for k, p in enumerate(self.loop.written)
        ]
        strips = floordiv(self.extent + rows - 1, rows)
        return Loop(Graph.of(block, inputs, [], finals), 0, index, strips)


@dataclass
class _Narrow:
    """Writes a body again for one strip: `count` positions from `offset` on."""

    strip: _Strip
    offset: Size
    count: Size

    def graph(self, graph: Graph) -> Graph:
        """A body for one strip."""
        block = Block()
        new: dict[Node, Node] = {}
        for n in graph.nodes:
            block.where = n.where
            type_ = replace(n.type, shape=self._shape(n))
            if n.op.kind is Kind.INPUT:
                new[n] = Node(n.op, (), n.params, type_, n.where)
                block.nodes.append(new[n])
                continue
            args = tuple(self._given(block, n, a, new) for a in n.args)
            new[n] = block.add(n.op, args, self._params(n), type_)
        inputs = [new[n] for n in graph.inputs]
        writes = [(p, new[n]) for p, n in graph.writes]
        return Graph.of(block, inputs, [new[n] for n in graph.outputs], writes)

    def _cut_dim(self, n: Node) -> int | None:
        """The dimension along which a node is only a strip here."""
        if n in self.strip.axis:
            return self.strip.axis[n]
        storage = self.strip.base.get(n)
        if storage is None or storage.op.kind is not Kind.CELL:
            return None
        return self.strip.places[storage][0] if storage in self.strip.places else None

    def _shape(self, n: Node) -> Shape:
        return _with(n.shape, self._cut_dim(n), self.count)

    def _given(self, block: Block, user: Node, a: Node, new: dict[Node, Node]) -> Node:
        """An argument: what is whole but wanted as a strip is seen through a view."""
        axis = self.strip.direct.get((user, a))
        if axis is None or self._cut_dim(a) is not None:
            return new[a]
        view = self._view(identity(a.shape), axis, None)
        return block.add(_VIEW, (new[a],), view, TensorType(view.shape, a.dtype))

    def _params(self, n: Node) -> object:
        if isinstance(n.params, Cond):
            return Cond(self.graph(n.params.then), self.graph(n.params.other))
        if n.op.kind is Kind.UPDATE:
            axis = self.strip.axis_of_update(n)
            return n.params if axis is None else self._view(n.params, axis, self._cut_dim(n))
        if n.op.kind is Kind.VIEW:
            return self._view(n.params, self.strip.axis.get(n), self._cut_dim(n.args[0]))
        return n.params

    def _view(self, v: View, axis: int | None, base: int | None) -> View:
        """A view one axis of which is cut; `base`: so is the base, along this dimension."""
        dims: list[Entry] = []
        for e in v.dims:
            if base is None and isinstance(e, Along) and e.axis == axis:
                e = replace(e, start=e.start + e.step * self.offset)
            dims.append(e)
        return View(_with(v.base, base, self.count), tuple(dims), _with(v.shape, axis, self.count))


def _with(shape: Shape, axis: int | None, extent: Size) -> Shape:
    return tuple(extent if k == axis else n for k, n in enumerate(shape))


def _runs(entry: Entry, axis: int) -> bool:
    return isinstance(entry, Along) and entry.axis == axis
