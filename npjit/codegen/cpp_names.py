"""What the functions of a unit call the sizes and the memory of their plan.

In: a `Plan`. Out: C++ expressions for its sizes and places, for one scope at a time:

    n0 * 8                      a size over the plan's variables
    (f64*)(arena + n0 * 8)      a pointer to a place
    l3, *(u8*)out0              the single element at a place
"""

from __future__ import annotations

from collections.abc import Iterator

from npjit.codegen.cpp_types import is_complex
from npjit.core.size import Size, Var, text
from npjit.schedule.plan import Place, Plan, Source


class Names:
    """Expressions for sizes and places; scopes add variables to `sizes` and `slots`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sizes = {v: f"n{i}" for i, v in enumerate(plan.sources)}
        # places of the arena that have a name
        self.slots: dict[Size, str] = {}
        # of the names of local variables, or "m" for those of a share; "t" for copies of them
        self.own = self.prefix = "l"
        # where the words of each input begin
        self.words = list(_starts(plan))

    def index(self, variable: Var) -> str:
        """The name of a loop's index or a share, from here on."""
        self.sizes[variable] = f"x_{variable.name}"
        return self.sizes[variable]

    def size(self, value: Size) -> str:
        """A size over the plan's variables."""
        return text(value, lambda v: self.sizes[v], "nj_size_")

    def word(self, source: Source) -> int:
        """The word of `in` that has a size variable's value."""
        rank = len(self.plan.inputs[source.input].shape)
        behind = {"value": 0, "extent": 1 + source.axis, "stride": 1 + rank + source.axis}
        return self.words[source.input] + behind[source.what]

    def value(self, place: Place, kind: str = "u8") -> str:
        """The single element at a place, a bool if nothing else is said."""
        if place.space == "local":
            return f"{self.own}{place.number}"
        return f"*{self.pointer(place, kind)}"

    def pointer(self, place: Place, kind: str) -> str:
        """The address of a place, as of elements of this type."""
        if place.space == "local":
            address = "" if is_complex(self.plan.locals[place.number]) else "&"
            return f"({kind}*){address}{self.prefix}{place.number}"
        if place.space == "input":
            base = f"in{place.number}"
        elif place.space == "output":
            base = f"out{place.number}"
        elif place.offset in self.slots:
            return f"({kind}*){self.slots[place.offset]}"
        else:
            base = "arena"
        if place.offset != 0:
            return f"({kind}*)({base} + {self.size(place.offset)})"
        return f"({kind}*){base}"


def _starts(plan: Plan) -> Iterator[int]:
    word = 0
    for spec in plan.inputs:
        yield word
        if spec.is_scalar:
            word += 2 if is_complex(spec.dtype) else 1
        else:
            word += 1 + 2 * len(spec.shape)
