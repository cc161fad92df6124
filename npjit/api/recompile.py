"""Which arguments keep a function compiling: the words of the warning at the recompile limit.

    changing_parts(f, (x, 7), {})    ->  ["argument 'k'"]
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from npjit.core.size import Expr, Var, atoms

if TYPE_CHECKING:
    from npjit.api.compile import Compiled
    from npjit.api.jit import Jitted


def changing_parts(jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """What this call differs in from the versions compiled so far, most frequent first."""
    counts: dict[str, int] = {}
    failing = dict(zip(map(id, jitted.entries), jitted.explain_miss(args, kwargs), strict=True))
    names = _parameters(jitted.function)
    for made in jitted.compiled:
        step = failing.get(id(made.entry))
        found = _fixed_inputs(made) if step == "sizes" else [step]
        for number in found:
            if isinstance(number, int):
                text = _named(made.steps, number, names)
                counts[text] = counts.get(text, 0) + 1
    return sorted(counts, key=lambda text: -counts[text])


def _fixed_inputs(made: Compiled) -> list[int]:
    """The steps of the inputs that a size guard holds to one value."""
    found = []
    for guard in made.graph.guards:
        if guard.relation == "==" and isinstance(guard.a - guard.b, Expr):
            found += [made.graph.sources[v].input for v in _variables(guard) if v in made.graph.sources]
    return [made.inputs[i] for i in dict.fromkeys(found)]


def _variables(guard: Any) -> set[Var]:
    return atoms(guard.a) | atoms(guard.b)


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _named(steps: Any, number: int, names: list[str]) -> str:
    fetch = steps[number][0]
    kind = fetch[0]
    if kind == "arg":
        return f"argument {names[fetch[1]]!r}" if fetch[1] < len(names) else f"argument {fetch[1]}"
    if kind == "kw":
        return f"argument {fetch[1]!r}"
    if kind == "attr":
        return f"{_named(steps, fetch[1], names)}, attribute {fetch[2]!r}"
    if kind == "item":
        return f"{_named(steps, fetch[1], names)}, item {fetch[2]!r}"
    if kind == "global":
        return f"global {fetch[2]!r}"
    return {"cell": "a closure variable", "root": "a constant"}.get(kind, "a default")
