"""Watching Python objects while code is traced: a body of a loop or branch runs once, so what it
does to lists, dicts, sets and objects has to be found out, undone, and made part of the state.

`Watch(roots)` knows the mutable objects that some functions and values can reach:

    watch = Watch([body])
    body()
    watch.changed()     -> [2]             numbers of the objects that are not as before
    watch.parts([2])    -> ((x, y),)       what they hold now, as a tree of leaves
    watch.restore()                        all objects as before
    watch.put([2], keys, parts)            they hold this from now on
"""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from npjit.core.size import Size
from npjit.frontend.containers import TracedDict, TracedList
from npjit.frontend.lists import GrowingList, is_stacked
from npjit.frontend.objects import ClassProxy, MadeObject, ObjectProxy
from npjit.frontend.values import NotStaged
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer

_SKIPPED = (Tracer, SymInt, ObjectProxy, ClassProxy, TracedDict, TracedList, types.ModuleType, type)
# their state cannot be put back
_OPAQUE = (collections.deque, bytearray)

# what an object holds: keys (positions, names), and the values under them
Contents = tuple[tuple[Any, ...], tuple[Any, ...]]


class Held:
    """An object inside another one, as a leaf: it counts by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Watch:
    """See the module's docstring."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.objects: list[Any] = []
        self.is_opaque = False
        self._held: dict[int, Held] = {}
        seen: set[int] = set()
        for root in roots:
            self._collect(root, seen)
        self.before = [_contents(x) for x in self.objects]
        # how long the lists are at most
        self.most = [x.most if isinstance(x, GrowingList) else 0 for x in self.objects]

    def growths(self, numbers: Iterable[int]) -> dict[int, Size]:
        """How many items, at most, these lists have been given."""
        lists = {k: self.objects[k] for k in numbers}
        return {k: x.most - self.most[k] for k, x in lists.items() if isinstance(x, GrowingList)}

    def grow(self, growths: Mapping[int, Size]) -> None:
        """Let these lists have been given so many items."""
        for k, growth in growths.items():
            self.objects[k].most = self.most[k] + growth

    def changed(self) -> list[int]:
        """The numbers of objects that do not hold what they held."""
        now = [_contents(x) for x in self.objects]
        return [k for k, (a, b) in enumerate(zip(now, self.before, strict=True)) if _differ(a, b)]

    def keys(self, numbers: Sequence[int]) -> list[Any]:
        """The structure of these objects."""
        return [_contents(self.objects[k])[0] for k in numbers]

    def parts(self, numbers: Sequence[int]) -> tuple[Any, ...]:
        """What these objects hold, mutable objects among it as leaves."""
        return tuple(self._leaves(_contents(self.objects[k])[1]) for k in numbers)

    def put(self, numbers: Sequence[int], keys: Sequence[Any], parts: Sequence[Any]) -> None:
        """Have these objects hold this."""
        for number, names, values in zip(numbers, keys, parts, strict=True):
            given = tuple(v.value if type(v) is Held else v for v in values)
            _fill(self.objects[number], names, given)

    def restore(self) -> None:
        """All objects as they were."""
        for k in self.changed():
            _fill(self.objects[k], *self.before[k])
        self.grow(dict.fromkeys(self.growths(range(len(self.objects))), 0))

    def renew(self, number: int) -> None:
        """What this object holds now counts as what it held before."""
        self.before[number] = _contents(self.objects[number])

    def _leaves(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            self._held.setdefault(id(v), Held(v)) if v is not None and _is_mutable(v) else v
            for v in values
        )

    def _collect(self, value: Any, seen: set[int]) -> None:
        if id(value) in seen or (isinstance(value, _SKIPPED) and type(value) in _SKIPPED):
            return
        seen.add(id(value))
        for inner in _reached(value):
            self._collect(inner, seen)
        if _is_mutable(value):
            self.objects.append(value)
            for inner in _contents(value)[1]:
                self._collect(inner, seen)
        elif isinstance(value, _OPAQUE) or hasattr(type(value), "__next__"):
            self.is_opaque = True

    def require_visible(self) -> None:
        """NotStaged when something is in reach whose changes cannot be undone."""
        if self.is_opaque:
            raise NotStaged("an iterator or a container of an unknown kind is in use")


def _reached(value: Any) -> list[Any]:
    """What an immutable object leads to."""
    if isinstance(value, types.FunctionType):
        cells = value.__closure__ or ()
        found = [c.cell_contents for c in cells if _is_filled(c)]
        return [*found, *(value.__defaults__ or ())]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    return list(value) if isinstance(value, tuple) else []


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (raises when empty)
    except ValueError:
        return False
    return True


def _is_mutable(value: Any) -> bool:
    cls = type(value)
    if cls in _SKIPPED:
        return False
    return cls is MadeObject or issubclass(cls, (list, dict, set)) or _is_plain(cls)


def _is_plain(cls: type) -> bool:
    """A user's class, made in Python."""
    module = cls.__module__.partition(".")[0]
    if module in ("builtins", "numpy", "npjit", "functools", "types"):
        return False
    return hasattr(cls, "__dictoffset__") and (cls.__dictoffset__ != 0 or bool(_slots(cls)))


def _slots(cls: type) -> list[str]:
    found: list[str] = []
    for c in cls.__mro__:
        names = c.__dict__.get("__slots__", ())
        found += [names] if isinstance(names, str) else list(names)
    return [n for n in found if n not in ("__dict__", "__weakref__")]


def _contents(value: Any) -> Contents:
    cls = type(value)
    if is_stacked(value):
        return ("rows", value.item), (*value.rows, value.first, value.length)
    if issubclass(cls, list):
        return tuple(range(len(value))), tuple(value)
    if issubclass(cls, set):
        return (frozenset(value),), ()
    if issubclass(cls, dict):
        return tuple(value), tuple(value.values())
    if cls is MadeObject:
        return tuple(value._npjit_own), tuple(value._npjit_own.values())
    named = dict(getattr(value, "__dict__", {}))
    named |= {n: getattr(value, n) for n in _slots(type(value)) if hasattr(value, n)}
    return tuple(named), tuple(named.values())


def _fill_growing(target: GrowingList, keys: Sequence[Any], values: Sequence[Any]) -> None:
    if keys[:1] == ("rows",):
        list.clear(target)
        (*rows, target.first, target.length), target.item = values, keys[1]
        target.rows = tuple(rows)
    else:
        target.unstack(list(values))


def _differ(a: Contents, b: Contents) -> bool:
    return a[0] != b[0] or any(x is not y for x, y in zip(a[1], b[1], strict=True))


def _fill(target: Any, keys: Sequence[Any], values: Sequence[Any]) -> None:
    cls = type(target)
    if cls is MadeObject:
        target, cls = target._npjit_own, dict
    if issubclass(cls, GrowingList):
        _fill_growing(target, keys, values)
    elif issubclass(cls, list):
        target[:] = values
    elif issubclass(cls, set):
        target.clear()
        target.update(keys[0])
    elif issubclass(cls, dict):
        target.clear()
        target.update(zip(keys, values, strict=True))
    else:
        for name in set(_contents(target)[0]) - set(keys):
            object.__delattr__(target, name)
        for name, value in zip(keys, values, strict=True):
            object.__setattr__(target, name, value)
