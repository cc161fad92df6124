"""What the tests of scheduling share: a few rows, a graph builder, and an interpreter of plans.

The interpreter runs a `Plan` element by element in Python, as the loops of the kernels say, on one
flat memory per place. `run(graph, plan, arrays)` gives the outputs as NumPy arrays; inputs that the
graph writes change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from npjit.core.graph import Block, Graph, Node, SizeSource, TensorType, Weight
from npjit.core.op import Gather, Kind, Literal, Op, Reduction
from npjit.core.size import Size, Var, substitute, var
from npjit.core.view import View, broadcast, expand, index, slice_of, transpose
from npjit.schedule import schedule
from npjit.schedule.kernel import (
    Access,
    Apply,
    Bound,
    Const,
    Coordinate,
    Extent,
    Inside,
    Instr,
    Kernel,
    Load,
    Reduce,
    Scalar,
    Store,
)
from npjit.schedule.plan import (
    Bind,
    Call,
    Check,
    Contract,
    If,
    Launch,
    Loop,
    Matrix,
    OutputSpec,
    Place,
    Plan,
    Step,
    Strided,
    While,
)

# -- rows


def _elementwise(name: str, f: Callable[..., Any], cost: int = 1) -> Op:
    return Op(name, Kind.ELEMENTWISE, lambda n, *a: np.asarray(f(*a)).astype(n.dtype), cost=cost)


def _reduction(name: str, f: Callable[..., Any], style: str, identity: Any = None) -> Op:
    def evaluate(n: Any, a: Any) -> Any:
        axes = n.params
        if style.startswith("arg"):
            kept = [d for d in range(np.ndim(a)) if d not in axes]
            moved = np.transpose(a, [*kept, *axes])
            return f(moved.reshape(*(a.shape[d] for d in kept), -1), axis=-1)
        return np.asarray(f(a, axis=axes)).astype(n.dtype)

    return Op(name, Kind.REDUCE, evaluate, reduction=Reduction(style, identity))


add = _elementwise("add", np.add)
subtract = _elementwise("subtract", np.subtract)
multiply = _elementwise("multiply", np.multiply)
divide = _elementwise("divide", np.divide, cost=4)
negative = _elementwise("negative", np.negative)
exp = _elementwise("exp", np.exp, cost=8)
log = _elementwise("log", np.log, cost=8)
sqrt = _elementwise("sqrt", np.sqrt, cost=4)
sin = _elementwise("sin", np.sin, cost=8)
halve = _elementwise("halve", lambda a: a * 0.5)
dear = _elementwise("dear", lambda a: a * 0.25 + 1.0, cost=8)
dear_mean = _elementwise("dear_mean", lambda a, b: (a + b) * 0.5, cost=20)
maximum = _elementwise("maximum", np.maximum)
less = _elementwise("less", np.less)
cast = _elementwise("cast", lambda a: a)
reduce_sum = _reduction("reduce_sum", np.sum, "sum", 0)
reduce_max = _reduction("reduce_max", np.max, "max")
reduce_argmax = _reduction("reduce_argmax", np.argmax, "argmax")
reduce_all = _reduction("reduce_all", np.all, "all", True)


def _view(n: Any, a: Any) -> Any:
    v: View = n.params
    sizes = [n.size(s) for s in v.shape]
    grid = np.indices(sizes, sparse=True) if sizes else []
    places: list[Any] = []
    for d in v.dims:
        if hasattr(d, "index"):
            places.append(n.size(d.index))
        else:
            places.append(n.size(d.start) + n.size(d.step) * grid[d.axis])
    if not places:
        return np.broadcast_to(a, sizes)
    return np.broadcast_to(np.asarray(a)[tuple(places)], sizes)


def _update(n: Any, a: Any, value: Any) -> Any:
    places = _view(
        SimpleNamespace(params=n.params, size=n.size), np.arange(np.size(a)).reshape(np.shape(a))
    )
    new = np.array(a, order="C")
    new.reshape(-1)[np.asarray(places)] = value
    return new


def _pad(n: Any, a: Any) -> Any:
    return np.pad(a, [(n.size(b), n.size(e)) for b, e in n.params])


def _gather(n: Any, a: Any, *where: Any) -> Any:
    rest = [d for d in range(np.ndim(a)) if d not in n.params.dims]
    moved = np.transpose(a, [*n.params.dims, *rest])[tuple(where)]
    k = np.ndim(where[0])
    axes = list(range(k, np.ndim(moved)))
    return np.transpose(moved, [*axes[: n.params.place], *range(k), *axes[n.params.place :]])


def _contract(n: Any, a: Any, b: Any) -> Any:
    first, second, result = n.params
    return np.einsum(f"{first},{second}->{result}", a, b).astype(n.dtype)


view_op = Op("view", Kind.VIEW, _view)
reshape_op = Op("reshape", Kind.RESHAPE, lambda n, a: np.reshape(a, n.shape))
pad_op = Op("pad", Kind.PAD, _pad)
const_op = Op("const", Kind.CONST, lambda n: np.asarray(n.params.value))
size_op = Op("size", Kind.SIZE, lambda n: np.int64(n.size(n.params)))
iota_op = Op("iota", Kind.IOTA, lambda n: np.arange(n.shape[0]))
gather_op = Op("gather", Kind.GATHER, _gather)
contract_op = Op("contract", Kind.CONTRACT, _contract)
cell_op = Op("cell", Kind.CELL, lambda n, *a: np.array(a[0]) if a else np.zeros(n.shape, n.dtype))
update_op = Op("update", Kind.UPDATE, _update)
check_op = Op("check", Kind.CHECK, lambda n, a: a, fresh=True)
input_op = Op("input", Kind.INPUT, lambda n: None)


class Builder:
    """Makes graphs: `b = Builder(); x = b.input((n, m)); b.graph([b.ew(exp, x)])`."""

    def __init__(self) -> None:
        self.block = Block()
        self.inputs: list[Node] = []
        self.sources: dict[Var, SizeSource] = {}
        self.cells = 0

    def size(self, name: str) -> Any:
        """A size variable; its source is the first input extent that is just it."""
        return var(name, lo=0)

    def input(
        self, shape: Sequence[Size], dtype: Any = "f8", weight: Weight = Weight.ARRAY
    ) -> Node:
        t = TensorType(tuple(shape), np.dtype(dtype), weight)
        n = self.block.add(input_op, (), len(self.inputs), t)
        for axis, s in enumerate(shape):
            if not isinstance(s, int) and len(s.terms) == 1:
                ((atoms, c),) = s.terms
                if c == 1 and len(atoms) == 1 and isinstance(atoms[0], Var):
                    self.sources.setdefault(atoms[0], SizeSource(len(self.inputs), axis))
        self.inputs.append(n)
        return n

    def ew(self, op: Op, *args: Node, dtype: Any = None) -> Node:
        kind = np.dtype(dtype) if dtype is not None else args[0].dtype
        return self.block.add(op, args, None, TensorType(args[0].shape, kind))

    def const(self, value: Any, dtype: Any = "f8") -> Node:
        d = np.dtype(dtype)
        return self.block.add(const_op, (), Literal.of(value, d), TensorType((), d))

    def full(self, value: Any, shape: Sequence[Size], dtype: Any = "f8") -> Node:
        return self.bc(self.const(value, dtype), shape)

    def view(self, a: Node, v: View) -> Node:
        return self.block.add(view_op, (a,), v, TensorType(v.shape, a.dtype))

    def bc(self, a: Node, shape: Sequence[Size]) -> Node:
        if tuple(shape) == a.shape:
            return a
        return self.view(a, broadcast(a.shape, tuple(shape)))

    def expand(self, a: Node, axes: Sequence[int]) -> Node:
        return self.view(a, expand(a.shape, axes))

    def t(self, a: Node, order: Sequence[int] | None = None) -> Node:
        return self.view(a, transpose(a.shape, order or range(len(a.shape))[::-1]))

    def cut(self, a: Node, *cuts: tuple[Size, Size, Size]) -> Node:
        """(start, step, length) per dimension."""
        return self.view(a, index(a.shape, [slice_of(*c) for c in cuts]))

    def reshape(self, a: Node, shape: Sequence[Size]) -> Node:
        return self.block.add(reshape_op, (a,), None, TensorType(tuple(shape), a.dtype))

    def pad(self, a: Node, pads: Sequence[tuple[int, int]]) -> Node:
        shape = tuple(s + b + e for s, (b, e) in zip(a.shape, pads, strict=True))
        return self.block.add(pad_op, (a,), tuple(pads), TensorType(shape, a.dtype))

    def reduce(
        self, op: Op, a: Node, axes: Sequence[int], keep: bool = False, dtype: Any = None
    ) -> Node:
        shape = tuple(s for d, s in enumerate(a.shape) if d not in axes)
        kind = np.dtype(dtype) if dtype is not None else a.dtype
        r = self.block.add(op, (a,), tuple(sorted(axes)), TensorType(shape, kind))
        return self.expand(r, tuple(axes)) if keep else r

    def sum(self, a: Node, axes: Sequence[int] | None = None, keep: bool = False) -> Node:
        every = range(len(a.shape)) if axes is None else axes
        return self.reduce(reduce_sum, a, tuple(every), keep)

    def max(self, a: Node, axes: Sequence[int], keep: bool = False) -> Node:
        return self.reduce(reduce_max, a, axes, keep)

    def iota(self, n: Size) -> Node:
        return self.block.add(iota_op, (), None, TensorType((n,), np.dtype("i8")))

    def gather(self, a: Node, *where: Node, dims: Sequence[int], place: int = 0) -> Node:
        kept = [s for d, s in enumerate(a.shape) if d not in dims]
        shape = (*kept[:place], *where[0].shape, *kept[place:])
        t = TensorType(shape, a.dtype)
        return self.block.add(gather_op, (a, *where), Gather(tuple(dims), place), t)

    def contract(self, a: Node, b: Node, labels: str) -> Node:
        operands, result = labels.split("->")
        first, second = operands.split(",")
        sizes = dict(zip(first + second, a.shape + b.shape, strict=True))
        t = TensorType(tuple(sizes[x] for x in result), a.dtype)
        return self.block.add(contract_op, (a, b), (first, second, result), t)

    def cell(self, a: Node) -> Node:
        self.cells += 1
        return self.block.add(cell_op, (a,), self.cells, a.type)

    def empty(self, shape: Sequence[Size], dtype: Any = "f8") -> Node:
        self.cells += 1
        return self.block.add(cell_op, (), self.cells, TensorType(tuple(shape), np.dtype(dtype)))

    def update(self, cell: Node, value: Node, v: View) -> Node:
        return self.block.add(update_op, (cell, value), v, cell.type)

    def check(self, a: Node) -> Node:
        return self.block.add(check_op, (a,), "failed", a.type)

    def graph(self, outputs: Sequence[Node], writes: Sequence[tuple[int, Node]] = ()) -> Graph:
        g = Graph.of(self.block, self.inputs, outputs, writes, self.sources)
        g.verify()
        return g


# -- the interpreter


class Failed(Exception):
    """A check of the plan did not hold; its number is the argument."""


class _Memory:
    """A flat array and where its element 0 is."""

    def __init__(self, data: np.ndarray[Any, Any], start: int = 0) -> None:
        self.data = data
        self.start = start

    def place(self, element: int) -> int:
        where = self.start + element
        assert 0 <= where < len(self.data), f"element {element} is outside its memory"
        return where


def layout_of(a: Any) -> str | tuple[str, ...]:
    """The layout signature of an array."""
    a = np.asarray(a)
    if a.flags.c_contiguous:
        return "C"
    letters = []
    for n, s in zip(a.shape, a.strides, strict=True):
        step = s // a.itemsize
        letters.append(
            "x" if n <= 1 else "0" if step == 0 else "1" if step == 1 else "np"[step > 0]
        )
    if a.ndim > 1:
        long = [d for d, n in enumerate(a.shape) if n > 1]
        order = sorted(long, key=lambda d: -abs(a.strides[d]))
        flags = ""
        for one, after in itertools.pairwise(long):
            rows = a.strides[one] == a.strides[after] * a.shape[after]
            columns = a.strides[after] == a.strides[one] * a.shape[one]
            flags += "m" if rows else "f" if columns else "-"
        letters.append("".join(map(str, order)) + "|" + flags)
    return tuple(letters)


class Machine:
    """One run of a plan."""

    def __init__(self, plan: Plan, arrays: Sequence[Any], backwards: bool = False) -> None:
        self.plan = plan
        self.arrays = [np.asarray(a) for a in arrays]
        self.backwards = backwards
        self.sizes = {v: self._source(s) for v, s in plan.sources.items()}
        self.inputs = [_flat(a) for a in self.arrays]
        self.outputs: list[np.ndarray[Any, Any] | None] = []
        for o in plan.outputs:
            shape = [self.size(n) for n in o.shape]
            fresh = o.kind == "fresh"
            self.outputs.append(_garbage(int(np.prod(shape)), o.dtype) if fresh else None)
        self.arena = np.full(self.size(plan.arena), 0xA5, np.uint8)
        self.locals = [_Memory(_garbage(1, dtype)) for dtype in plan.locals]

    def _source(self, s: Any) -> int:
        a = self.arrays[s.input]
        if s.what == "value":
            return int(a)
        if s.what == "extent":
            return int(a.shape[s.axis])
        return int(a.strides[s.axis] // a.itemsize)

    def size(self, s: Size) -> int:
        value = substitute(s, self.sizes)
        assert isinstance(value, int)
        return value

    def memory(self, p: Place, dtype: Any) -> _Memory:
        if p.space == "input":
            return self.inputs[p.number]
        if p.space == "output":
            data = self.outputs[p.number]
            assert data is not None
            return _Memory(data)
        if p.space == "local":
            return self.locals[p.number]
        start = self.size(p.offset)
        assert start % 64 == 0
        end = start + (len(self.arena) - start) // dtype.itemsize * dtype.itemsize
        return _Memory(self.arena[start:end].view(dtype))

    def run(self) -> list[Any]:
        self._run_all(self.plan.steps)
        return [
            self._result(o, data) for o, data in zip(self.plan.outputs, self.outputs, strict=True)
        ]

    def _run_all(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Launch):
                _Loops(self, self.plan.kernels[step.kernel], step).run()
            elif isinstance(step, Contract):
                self._contract(step)
            elif isinstance(step, Call):
                self._call(step)
            elif isinstance(step, Bind):
                self.sizes[step.var] = int(self.memory(step.place, np.dtype(np.int64)).data[0])
            elif isinstance(step, Loop):
                if step.share is not None:
                    self.sizes[step.share] = 3
                for trip in range(self.size(step.trips)):
                    if any(map(self._holds, step.stops)):
                        break
                    self.sizes[step.index] = trip
                    self._run_all(step.body)
            elif isinstance(step, While):
                while not any(map(self._holds, step.stops)):
                    self._run_all(step.test)
                    if not self._holds(step.condition):
                        break
                    self._run_all(step.body)
            elif isinstance(step, If):
                self._run_all(step.then if self._holds(step.condition) else step.other)
            elif not self._holds(step.place):
                raise Failed(step.number)

    def _holds(self, place: Place) -> bool:
        return bool(self.memory(place, np.dtype(bool)).data[0])

    def _result(self, o: OutputSpec, data: Any) -> Any:
        if o.kind == "input":
            return self.arrays[o.input]
        shape = [self.size(n) for n in o.shape]
        if o.kind == "alias":
            m = self.inputs[o.input]
            strides = [self.size(s) * o.dtype.itemsize for s in o.strides]
            start = m.start + self.size(o.offset)
            return np.lib.stride_tricks.as_strided(m.data[start:], shape, strides)
        perm = o.perm or tuple(range(len(shape)))
        return data.reshape([shape[a] for a in perm]).transpose(np.argsort(perm))

    def _call(self, step: Call) -> None:
        given = [self._strided(a) for a in step.arguments]
        made = [self._strided(r) for _, r in step.results]
        node = SimpleNamespace(params=step.params, dtype=made[0].dtype, shape=made[0].shape)
        values = step.op.evaluate(node, *given)
        parts = values if isinstance(values, (tuple, list)) else (values,)
        for (k, _), target in zip(step.results, made, strict=True):
            target[...] = parts[k]

    def _strided(self, a: Strided) -> Any:
        m = self.memory(a.place, a.dtype)
        shape = [self.size(n) for n in a.shape]
        strides = [self.size(s) * a.dtype.itemsize for s in a.strides]
        start = m.start + self.size(a.offset)
        return np.lib.stride_tricks.as_strided(m.data[start:], shape, strides)

    def _contract(self, c: Contract) -> None:
        batch = [self.size(n) for n in c.batch]
        m, n, k = self.size(c.m), self.size(c.n), self.size(c.k)

        def at(x: Matrix, memory: _Memory, b: Sequence[int], row: int, column: int) -> int:
            steps = zip(b, x.batch, strict=True)
            where = self.size(x.offset) + sum(i * self.size(s) for i, s in steps)
            return memory.place(where + row * self.size(x.row) + column * self.size(x.column))

        a, b, out = (self.memory(x.place, c.dtype) for x in (c.a, c.b, c.c))
        for lead in itertools.product(*map(range, batch)):
            for i, j in itertools.product(range(m), range(n)):
                total = c.dtype.type(0)
                for x in range(k):
                    total += a.data[at(c.a, a, lead, i, x)] * b.data[at(c.b, b, lead, x, j)]
                out.data[at(c.c, out, lead, i, j)] = total


class _Loops:
    """One launch of a kernel."""

    def __init__(self, machine: Machine, kernel: Kernel, step: Launch) -> None:
        self.kernel = kernel
        self.machine = machine
        self.backwards = machine.backwards
        self.sizes = {Var(f"s{i}"): machine.size(s) for i, s in enumerate(step.sizes)}
        assert len(step.sizes) == kernel.sizes
        self.memories = [
            machine.memory(p, b.dtype) for p, b in zip(step.buffers, kernel.buffers, strict=False)
        ]
        for b in kernel.buffers[len(step.buffers) :]:
            assert b.role == "row"
            self.memories.append(_Memory(_garbage(self.size(b.length), b.dtype)))
        self.scalars = [machine.arrays[i] for i in step.scalars]
        self.extents = [self.size(a.extent) for a in kernel.axes]

    def size(self, s: Size) -> int:
        value = substitute(s, self.sizes)
        assert isinstance(value, int), f"{s} names an unknown size"
        return value

    def run(self) -> None:
        outer = list(itertools.product(*(range(self.extents[a]) for a in self.kernel.outer)))
        for place in reversed(outer) if self.backwards else outer:
            axes = dict(zip(self.kernel.outer, place, strict=True))
            kept: dict[int, Any] = {}
            for phase in self.kernel.phases:
                collected: dict[int, list[Any]] = {
                    k: [] for k, i in phase.body if isinstance(i, Reduce)
                }
                for inside in itertools.product(*(range(self.extents[a]) for a in phase.axes)):
                    here = {**axes, **dict(zip(phase.axes, inside, strict=True))}
                    values = dict(kept)
                    for k, i in phase.body:
                        if isinstance(i, Reduce):
                            collected[k].append(values[i.arg])
                        else:
                            values[k] = self.value(i, here, values)
                    if not phase.axes:
                        kept.update(values)
                for k, i in phase.body:
                    if isinstance(i, Reduce):
                        kept[k] = _combine(i, collected[k])

    def value(self, i: Instr, axes: Mapping[int, int], values: Mapping[int, Any]) -> Any:
        if isinstance(i, Load):
            if not self.inside(i.within, axes):
                return i.dtype.type(0)
            m = self.memories[i.access.buffer]
            assert m.data.dtype == i.dtype
            return m.data[m.place(self.element(i.access, axes, values))]
        if isinstance(i, Store):
            m = self.memories[i.access.buffer]
            assert m.data.dtype == np.asarray(values[i.value]).dtype
            m.data[m.place(self.element(i.access, axes, values))] = values[i.value]
            return None
        if isinstance(i, Apply):
            n = SimpleNamespace(params=i.params, dtype=i.dtype, shape=())
            return np.asarray(i.op.evaluate(n, *(values[a] for a in i.args)))[()]
        if isinstance(i, Const):
            return i.value.value
        if isinstance(i, Scalar):
            return self.scalars[i.number].astype(i.dtype)[()]
        if isinstance(i, Coordinate):
            return i.dtype.type(self.size(i.start) + self.size(i.step) * axes[i.axis])
        if isinstance(i, Extent):
            return i.dtype.type(self.size(i.size))
        assert isinstance(i, Inside)
        return values[i.arg] if self.inside(i.within, axes) else i.dtype.type(0)

    def element(self, a: Access, axes: Mapping[int, int], values: Mapping[int, Any]) -> int:
        where = self.size(a.offset) + sum(self.size(s) * axes[x] for x, s in a.strides)
        return where + sum(self.size(s) * int(values[v]) for v, s in a.gathers)

    def inside(self, within: tuple[Bound, ...], axes: Mapping[int, int]) -> bool:
        return all(self.size(b.lo) <= axes[b.axis] < self.size(b.hi) for b in within)


def _combine(i: Reduce, values: list[Any]) -> Any:
    n = SimpleNamespace(params=(0,), dtype=i.dtype, shape=())
    return np.asarray(i.op.evaluate(n, np.asarray(values)))[()]


def _garbage(n: int, dtype: Any) -> Any:
    return np.full(n * dtype.itemsize, 0xA5, np.uint8).view(dtype)


def _flat(a: Any) -> _Memory:
    """The memory around an array, as one flat array."""
    if a.ndim == 0:
        return _Memory(a.reshape(1))
    low = sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True) if s < 0 and n)
    high = sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True) if s > 0 and n)
    if a.size == 0:
        return _Memory(np.empty(0, a.dtype))
    count = (high - low) // a.itemsize + 1
    first = a[tuple(0 if s >= 0 else n - 1 for n, s in zip(a.shape, a.strides, strict=True))]
    del first
    base = a[tuple(slice(None, None, 1 if s >= 0 else -1) for s in a.strides)]
    data = np.lib.stride_tricks.as_strided(base, (count,), (a.itemsize,))
    return _Memory(data, -low // a.itemsize)


def run(plan: Plan, arrays: Sequence[Any], backwards: bool = False) -> list[Any]:
    """The outputs of a plan; `backwards` runs the outer loops from their end, as threads might."""
    with np.errstate(all="ignore"):
        return Machine(plan, arrays, backwards).run()


def kernels_of(plan: Plan) -> int:
    """How many launches a plan has."""
    return sum(isinstance(s, Launch) for s in plan.steps)


def checks_of(plan: Plan) -> int:
    """How many checks a plan has."""
    return sum(isinstance(s, Check) for s in plan.steps)


def compare(g: Graph, arrays: Sequence[Any]) -> Plan:
    """Run a graph and its plan on the same inputs, the plan forwards and backwards; they must
    agree."""
    plan = schedule(g, [layout_of(a) for a in arrays])
    with np.errstate(all="ignore"):
        first = [np.array(a, order="K") for a in arrays]
        want = [np.array(v) for v in g.run(*first)]
    for backwards in (False, True):
        mine = [_like(a) for a in arrays]
        got = run(plan, mine, backwards)
        for o, v, w in zip(plan.outputs, got, want, strict=True):
            assert np.asarray(v).dtype == w.dtype == o.dtype
            np.testing.assert_allclose(v, w, rtol=1e-12, atol=1e-300, err_msg=f"{g}\n{plan}")
        for a, b in zip(mine, first, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=f"{g}\n{plan}")
    return plan


def _like(a: Any) -> Any:
    """A copy with the same strides, negative and zero ones included."""
    a = np.asarray(a)
    if not a.ndim or not a.size:
        return a.copy()
    memory = _flat(a)
    data = memory.data.copy()
    return np.lib.stride_tricks.as_strided(data[memory.start :], a.shape, a.strides)
