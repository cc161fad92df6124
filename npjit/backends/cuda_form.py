"""What a tape is made of, as data that the disk cache can keep.

In: a `Form` and the driver's handles of its functions by name. Out: the runtime's `Tape`:

    tape(([0, 1000], [(0, 0, 0)], [("launch", "k0<i32, 4, 0x24ull>", 2, 1, 256, 0, 0, 2, "k0")]),
         {"k0<i32, 4, 0x24ull>": 0x55d0})

A form is the words, the patches and the steps that `Tape` takes, but names stand for functions and
forms for tapes. Steps may also be callables; such a form is no data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from npjit import _runtime

Form = Sequence[Any]


def tape(form: Form, functions: Mapping[str, int]) -> _runtime.Tape:
    """See the module's docstring."""
    words, patches, steps = form
    return _runtime.Tape(words, patches, [_step(s, functions) for s in steps])


def _step(step: Any, functions: Mapping[str, int]) -> Any:
    if callable(step):
        return step
    kind, what, *rest = step
    if kind == "launch":
        return kind, functions[what], *rest
    if kind == "product":
        return kind, what, *rest
    bodies, stops, times = rest
    return kind, what, [tape(b, functions) for b in bodies], stops, times


def multiplies(form: Form) -> bool:
    """Whether there are products among the steps."""
    return any(step[0] == "product" for step in works(form))


def functions(form: Form) -> list[str]:
    """The functions that are started."""
    return list(dict.fromkeys(step[1] for step in works(form) if step[0] == "launch"))


def works(form: Form) -> Iterator[Any]:
    """All launches and products, those of loops and branches once."""
    for step in form[2]:
        if callable(step):
            continue
        if step[0] in ("launch", "product"):
            yield step
        else:
            for body in step[2]:
                yield from works(body)
