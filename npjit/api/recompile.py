"""Which arguments keep a function compiling: the words of the warning at the recompile limit.

changing_parts(f, (x, 7), {})    ->  ["k"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from npjit.api.guards import Namer
from npjit.core.size import atoms

if TYPE_CHECKING:
    from npjit.api.compile import Compiled
    from npjit.api.jitted import Jitted


def changing_parts(jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """What this call differs in from the versions compiled so far, most frequent first."""
    counts: dict[str, int] = {}
    failing = dict(zip(map(id, jitted.entries), jitted.explain_miss(args, kwargs), strict=True))
    for made in jitted.compiled:
        step = failing.get(id(made.entry))
        namer = Namer(jitted.function, made.steps)
        for number in _fixed_inputs(made) if step == "sizes" else [step]:
            if isinstance(number, int):
                name = namer.name(number)
                counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: -counts[name])


def _fixed_inputs(made: Compiled) -> list[int]:
    """The steps of the inputs that a size guard holds to one value."""
    equal = [g for g in made.graph.guards if g.relation == "=="]
    named = [v for g in equal for v in sorted(atoms(g.a) | atoms(g.b), key=lambda v: v.name)]
    inputs = [made.graph.sources[v].input for v in named if v in made.graph.sources]
    return [made.inputs[i] for i in dict.fromkeys(inputs)]
