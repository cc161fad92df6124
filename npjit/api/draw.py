"""Pictures of a compiled graph: one box a step (a fused kernel lists its operations).

In: a `Plan`. Out: a file, .dot (for Graphviz), .svg or .html. Arrows carry the values that pass
through memory. Layers and the order in them come from networkx (the extra `npjit[draw]`):

    visualize(jitted, (x,), {}, "softmax.svg")
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npjit.core.size import text
from npjit.schedule.kernel import Apply, Kernel, Reduce
from npjit.schedule.plan import (
    Bind,
    Call,
    Check,
    Contract,
    If,
    Launch,
    Loop,
    Place,
    Plan,
    Step,
    While,
    bodies,
)

if TYPE_CHECKING:
    from npjit.api.jitted import Jitted

LINE = 16
CHARACTER = 7.2
GAP = 48
# operations listed in one box
MOST_LINES = 24


@dataclass
class Box:
    """One node of the picture."""

    key: str
    title: str
    lines: list[str] = field(default_factory=list)
    colour: str = "#e8f0fe"

    @property
    def width(self) -> float:
        return 20 + CHARACTER * max(len(s) for s in [self.title, *self.lines])

    @property
    def height(self) -> float:
        return 12 + LINE * (1 + len(self.lines))


@dataclass
class Picture:
    """Boxes and arrows (from, to)."""

    boxes: dict[str, Box]
    arrows: list[tuple[str, str]]


def visualize(jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any], path: Any) -> Path:
    """Draw what a call with these arguments compiles to; gives the path written.

    Raises ValueError for an ending other than .svg, .html or .dot, CaptureError when the call
    cannot be captured.
    """
    from npjit.api.inspect import Lowered

    try:
        target = Path(path)
    except TypeError:
        text = f"the last argument of visualize is the file to write, not a {type(path).__name__}"
        raise TypeError(text) from None
    writers = {".dot": dot, ".svg": svg, ".html": page}
    if target.suffix not in writers:
        raise ValueError(f"visualize writes .svg, .html or .dot, not {target.suffix or target}")
    low = Lowered(jitted, args, kwargs)
    if low.compiled.plan is None:
        raise ValueError(f"the {low.compiled.backend} backend has no kernels to draw")
    target.write_text(writers[target.suffix](picture_of(low.compiled.plan)))
    return target


def picture_of(plan: Plan) -> Picture:
    """The steps of a plan as boxes, what they read and write as arrows."""
    boxes = {f"in{i}": _input(plan, i) for i in range(len(plan.inputs))}
    writer: dict[Any, str] = {("input", i): f"in{i}" for i in range(len(plan.inputs))}
    arrows: list[tuple[str, str]] = []
    for number, step in enumerate(plan.steps):
        box = Box(f"step{number}", *_step(plan, step))
        boxes[box.key] = box
        reads, writes = _places(plan, step)
        arrows += [(writer[_memory(p)], box.key) for p in reads if _memory(p) in writer]
        for p in writes:
            writer[_memory(p)] = box.key
    for k, out in enumerate(plan.outputs):
        key = f"out{k}"
        shape = ", ".join(text(s) for s in out.shape)
        boxes[key] = Box(key, f"result {k}: {out.dtype}[{shape}]", colour="#e6f4ea")
        source = ("output", k) if out.kind == "fresh" else ("input", out.input)
        if source in writer:
            arrows.append((writer[source], key))
    return Picture(boxes, list(dict.fromkeys(arrows)))


def _memory(p: Place) -> Any:
    return (p.space, p.number if p.space != "arena" else p.offset)


def _input(plan: Plan, i: int) -> Box:
    spec = plan.inputs[i]
    shape = ", ".join(text(s) for s in spec.shape)
    sort = " scalar" if spec.is_scalar else f"[{shape}]"
    return Box(f"in{i}", f"argument {i}: {spec.dtype}{sort}", colour="#fef7e0")


def _step(plan: Plan, step: Step) -> tuple[str, list[str]]:
    """A step's title and lines; a loop or branch lists the steps inside it."""
    if isinstance(step, Launch):
        kernel = plan.kernels[step.kernel]
        sizes = ", ".join(text(s) for s in step.sizes)
        return f"kernel {step.kernel} ({sizes})", _operations(kernel)
    if isinstance(step, Contract):
        m, n, k = (text(s) for s in (step.m, step.n, step.k))
        return f"matrix product {m} x {k} x {n}", [str(step.dtype)]
    if isinstance(step, Call):
        return step.op.name, []
    if isinstance(step, Loop):
        return f"loop, {text(step.trips)} trips", _inside(plan, step)
    return type(step).__name__.lower(), _inside(plan, step)


def _inside(plan: Plan, step: Step) -> list[str]:
    lines = []
    for body in bodies(step):
        for inner in body:
            title, more = _step(plan, inner)
            lines += [f"  {line}" for line in [title, *more]]
    return _shortened(lines)


def _operations(kernel: Kernel) -> list[str]:
    lines = [
        f"{i.op.name}{'  (reduced)' if isinstance(i, Reduce) else ''}"
        for _, i in kernel.instructions()
        if isinstance(i, (Apply, Reduce))
    ]
    return _shortened(lines or ["copy"])


def _shortened(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"... {more} more"]


def _places(plan: Plan, step: Step) -> tuple[list[Place], list[Place]]:
    """The memory that a step reads and the memory that it writes."""
    if isinstance(step, Launch):
        roles = [b.role for b in plan.kernels[step.kernel].buffers if b.role != "row"]
        pairs = list(zip(step.buffers, roles, strict=True))
        reads = [p for p, role in pairs if role in ("in", "inout")]
        reads += [Place("input", i) for i in step.scalars]
        return reads, [p for p, role in pairs if role in ("out", "inout")]
    if isinstance(step, Contract):
        return [step.a.place, step.b.place], [step.c.place]
    if isinstance(step, Call):
        return [a.place for a in step.arguments], [r.place for _, r in step.results]
    if isinstance(step, Check | Bind):
        return [step.place], []
    return _places_inside(plan, step)


def _places_inside(plan: Plan, step: Loop | While | If) -> tuple[list[Place], list[Place]]:
    """Of a loop or branch: what comes in from outside, and all that is written."""
    reads: list[Place] = [step.condition] if isinstance(step, If) else []
    writes: list[Place] = []
    for body in bodies(step):
        for inner in body:
            read, written = _places(plan, inner)
            own = {_memory(p) for p in writes}
            reads += [p for p in read if _memory(p) not in own]
            writes += written
    return reads, writes


def dot(picture: Picture) -> str:
    """Graphviz text."""
    lines = ["digraph npjit {", '  node [shape=box style=filled fontname="monospace"]']
    for box in picture.boxes.values():
        label = "".join(f"{_escaped(line)}\\l" for line in [box.title, *box.lines])
        lines.append(f'  {box.key} [label="{label}" fillcolor="{box.colour}"]')
    lines += [f"  {a} -> {b}" for a, b in picture.arrows]
    return "\n".join([*lines, "}", ""])


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def svg(picture: Picture) -> str:
    """A scalable picture."""
    places = _layout(picture)
    width = max(x + picture.boxes[k].width for k, (x, _) in places.items()) + GAP
    height = max(y + picture.boxes[k].height for k, (_, y) in places.items()) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="monospace" font-size="12">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for a, b in picture.arrows:
        (x1, y1), (x2, y2) = places[a], places[b]
        start = (x1 + picture.boxes[a].width / 2, y1 + picture.boxes[a].height)
        end = (x2 + picture.boxes[b].width / 2, y2)
        parts.append(
            f'<line x1="{start[0]:.0f}" y1="{start[1]:.0f}" x2="{end[0]:.0f}" '
            f'y2="{end[1]:.0f}" stroke="#555" marker-end="url(#a)"/>'
        )
    for key, (x, y) in places.items():
        parts += _box(picture.boxes[key], x, y)
    return "\n".join([*parts, "</svg>", ""])


def _box(box: Box, x: float, y: float) -> list[str]:
    parts = [
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" '
        f'rx="4" fill="{box.colour}" stroke="#777"/>'
    ]
    for row, line in enumerate([box.title, *box.lines]):
        weight = ' font-weight="bold"' if row == 0 else ""
        parts.append(
            f'<text x="{x + 10:.0f}" y="{y + 6 + LINE * (row + 0.7):.0f}"{weight}>'
            f"{html.escape(line)}</text>"
        )
    return parts


def page(picture: Picture) -> str:
    """The picture as a web page that scrolls."""
    head = '<!doctype html><meta charset="utf-8"><title>npjit</title>'
    return f'{head}<body style="margin:1em;overflow:auto">\n{svg(picture)}</body>\n'


def _layout(picture: Picture) -> dict[str, tuple[float, float]]:
    """Corners of the boxes: layers by dependence, the order in a layer as networkx has it."""
    try:
        import networkx
    except ImportError:
        raise ImportError("drawing takes networkx: pip install 'npjit[draw]'") from None
    graph = networkx.DiGraph(picture.arrows)
    graph.add_nodes_from(picture.boxes)
    for layer, keys in enumerate(networkx.topological_generations(graph)):
        for key in keys:
            graph.nodes[key]["layer"] = layer
    spots = networkx.multipartite_layout(graph, subset_key="layer", align="horizontal")
    places: dict[str, tuple[float, float]] = {}
    top = float(GAP)
    layers = sorted({d["layer"] for _, d in graph.nodes(data=True)})
    for layer in layers:
        keys = [k for k, d in graph.nodes(data=True) if d["layer"] == layer]
        left = float(GAP)
        for key in sorted(keys, key=lambda k: spots[k][0]):
            places[key] = (left, top)
            left += picture.boxes[key].width + GAP
        top += max(picture.boxes[k].height for k in keys) + GAP
    return places
