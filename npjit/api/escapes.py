"""Lazy arrays that a function has put where others find them, replaced by real ones.

In: a recording that is over. Out: results of real arrays; lists, dicts, attributes, tuples and
variables of closures that the function has stored lazy arrays into hold real arrays from then on.
What cannot be changed from outside (the variables of a suspended generator) keeps a lazy array,
which acts by NumPy.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from npjit import _runtime
from npjit._runtime import LazyArray
from npjit.api.recorder import Tape
from npjit.core.trees import build, children_of, kind_of


@contextmanager
def delivering(tape: Tape) -> Iterator[None]:
    """Inside, a function runs; then all it has stored is real, also when it has raised."""
    recording = tape.recording
    try:
        try:
            yield
        except BaseException:
            recording.run()  # what was written before reaches the caller's arrays
            raise
    finally:
        tape.chunks.clear()
        tape.names.forget()
        left = [x for x in recording.members() if _runtime.is_computed(x)]
        if left:
            replace([(x, _runtime.value_of_array(x)) for x in left], [left])
        recording.close()


def settled(value: Any, known: dict[int, Any] | None = None) -> Any:
    """A result with real arrays and numbers; lists and dicts are changed in place."""
    known = {} if known is None else known
    if id(value) in known:
        return known[id(value)]
    if type(value) is LazyArray:
        known[id(value)] = _runtime.value_of_array(value)
        return known[id(value)]
    kind = kind_of(value)
    if kind in ("leaf", "none"):
        return value
    keys, children = children_of(kind, value)
    found = [settled(c, known) for c in children]
    if all(a is b for a, b in zip(found, children, strict=True)):
        return value
    if kind in ("list", "dict", "dataclass"):
        for key, part in zip(keys, found, strict=True):
            _store(kind, value, key, part)
        return value
    return build(kind, type(value), keys, found)


def _store(kind: str, target: Any, key: Any, part: Any) -> None:
    if kind == "dataclass":
        object.__setattr__(target, key, part)
    else:
        target[key] = part


def replace(pairs: list[tuple[Any, Any]], own: list[Any]) -> None:
    """Put the second of each pair wherever the first one is referred to; not in `own`."""
    known = {id(old): new for old, new in pairs}
    # in a tuple that is known, as the call has it in one
    sought = tuple(old for old, _ in pairs)
    own = [*own, pairs, *pairs, sought]
    skipped = {id(o) for o in own} | {id(own)}
    tuples: list[tuple[Any, Any]] = []
    for holder in gc.get_referrers(*sought):
        if id(holder) in skipped or type(holder) in (types.FrameType, LazyArray):
            continue
        if type(holder) is tuple:
            made = tuple(known.get(id(v), v) for v in holder)
            tuples.append((holder, made))
        else:
            _put(holder, known)
    if tuples:
        replace(tuples, [*own, tuples, own])


def _put(holder: Any, known: dict[int, Any]) -> None:
    """Replace what one object holds."""
    if isinstance(holder, dict):
        for key, value in list(holder.items()):
            if id(value) in known:
                holder[key] = known[id(value)]
    elif isinstance(holder, types.CellType):
        holder.cell_contents = known.get(id(holder.cell_contents), holder.cell_contents)
    elif hasattr(type(holder), "__setitem__") and hasattr(holder, "__len__"):
        for i, value in enumerate(holder):
            if id(value) in known:
                holder[i] = known[id(value)]
    else:
        for name in _attributes(holder):
            value = getattr(holder, name, None)
            if id(value) in known:
                object.__setattr__(holder, name, known[id(value)])


def _attributes(holder: Any) -> list[str]:
    """Names of what an object keeps in itself."""
    slots = [s for c in type(holder).__mro__ for s in getattr(c, "__slots__", ())]
    return [*slots, *getattr(holder, "__dict__", ())]
