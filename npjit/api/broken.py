"""Broken mode: a function that cannot be captured whole, run as compiled segments with Python
between them.

In: a `Jitted` whose trace has failed. Out: `Jitted.broken`, the same function cut by
`frontend.cut`, over the same globals, closure cells and defaults. Each segment is a `Jitted` of its
own (`api.segment`), with its own guards.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import sysconfig
import threading
import types
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from npjit.api.jitted import Jitted, is_model
from npjit.api.segment import SegmentJitted, function_of
from npjit.frontend.cut import Definition, Segment, cut
from npjit.frontend.marks import Marks, is_caught
from npjit.frontend.pieces import THROUGH
from npjit.frontend.source import Function, function_tree
from npjit.ops.errors import NeverCaptured, NotCaptured

# versions of one segment; what has more kinds of values runs as NumPy
MOST_VERSIONS = 6
# names by which a function looks at its own variables
_FRAMES = frozenset(
    ["locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "inspect"]
)
# where Python and installed packages live: their functions are called as they are
_LIBRARIES = tuple({sysconfig.get_path(n) for n in ("stdlib", "purelib", "platlib")})


class Parts:
    """One function in parts: the marks on its source, and the segments of its present cut."""

    def __init__(self, owner: Jitted, function: types.FunctionType, tree: Function) -> None:
        self._owner = weakref.ref(owner)  # which has this, and goes when its last name does
        self.function = function
        self.tree = _definition(tree)
        # what the cut is made of, and guarded by
        self.code = function.__code__
        self.variables = frozenset((*self.code.co_varnames, *self.code.co_cellvars))
        self.defaults = function.__defaults__, function.__kwdefaults__
        # the outer call is the one that raises
        limit = min(owner.options.recompile_limit, MOST_VERSIONS)
        self.options = dataclasses.replace(owner.options, fullgraph=False, recompile_limit=limit)
        self.marks = Marks()
        # why the function was cut
        self.reason = ""
        self.segments: dict[str, SegmentJitted] = {}
        self.helpers: dict[types.FunctionType, Jitted] = {}
        self.lock = threading.RLock()

    @property
    def owner(self) -> Jitted:
        """The callable that is in parts."""
        found = self._owner()
        assert found is not None, "a part runs without its function"
        return found

    def is_current(self) -> bool:
        """Whether the function is still made of the same code and defaults."""
        now = self.function.__code__, self.function.__defaults__, self.function.__kwdefaults__
        return all(a is b for a, b in zip(now, (self.code, *self.defaults), strict=True))

    def guarded(self, steps: tuple[Any, ...]) -> tuple[Any, ...]:
        """The steps, and those that say the same of a call."""
        n = len(steps)
        names = ("__code__", "__defaults__", "__kwdefaults__")
        made: list[Any] = [(("root", self.function), ("any",))]
        for name, value in zip(names, (self.code, *self.defaults), strict=True):
            made.append((("attr", n, name), ("is", value)))
        if is_model(self.owner.function):
            made.append((("root", type(self.owner.function)), ("any",)))
            made.append((("attr", n + len(made) - 1, "__call__"), ("is", self.function)))
        return (*steps, *made)

    def breaks(self) -> list[str]:
        """Lines and reasons of what stays Python, by line."""
        marked = sorted(self.marks.python.items(), key=lambda item: item[0][1:])
        found = [*(reason for _, reason in marked), *self.marks.names.values()]
        return list(dict.fromkeys(found or [self.reason]))

    def learn(self, error: NotCaptured, body: list[ast.stmt]) -> bool:
        """Mark what made the trace of these statements fail; False when nothing there did, or when
        NumPy's own error is on its way.
        """
        with self.lock:
            filename = self.code.co_filename
            if error.__cause__ is not None and not is_caught(error, self.tree.body, filename):
                return False
            node = self.marks.learn(error, body, filename)
            if isinstance(node, ast.Call) and isinstance(error, NeverCaptured):
                self.marks.spread(node, self.tree.body, self.variables)
            return node is not None

    def recut(self) -> None:
        """Cut the whole function by the marks that there are now."""
        with self.lock:
            before, self.segments = self.segments, {}
            made = self.made(self.tree, self.function, before)
            self.owner.broken = _put_in_place(self.owner.function, made)

    def outdate(self) -> None:
        """There are further marks: the next call cuts the function anew."""
        owner = self._owner()
        if owner is not None:  # else only a generator of the function is left
            owner.broken = self._anew

    def _anew(self, *args: Any, **kwargs: Any) -> Any:
        owner = self.owner
        if owner.broken == self._anew:
            self.recut()
        return (owner.broken or owner.original)(*args, **kwargs)

    def made(
        self,
        tree: Definition,
        function: types.FunctionType,
        known: Mapping[str, SegmentJitted] = MappingProxyType({}),
        within: SegmentJitted | None = None,
    ) -> types.FunctionType | None:
        """`function` (that of the segment `within`, if given) cut; None when nothing in it is
        compiled.
        """
        with self.lock:
            parts = cut(tree, function.__code__, function.__globals__, self.marks)
            if not parts.segments and not self.marks.through:
                return None
            cells: dict[str, Any] = {s.name: self._segment(s, known) for s in parts.segments}
            if within is not None and within in cells.values():
                self.marks.give_up(within.body)  # the marks have changed nothing
                return None
            cells[THROUGH] = self.compiled_helper
            cut_function = function_of(parts.node, function, cells)
            cut_function.__defaults__ = function.__defaults__
            cut_function.__kwdefaults__ = function.__kwdefaults__
            return cut_function

    def places(self) -> list[str]:
        """Where the segments stand."""
        if self.owner.broken == self._anew:
            self.recut()
        return [s.place for s in self.segments.values()]

    def _segment(self, segment: Segment, known: Mapping[str, SegmentJitted]) -> SegmentJitted:
        """The compiled form of a segment: the same as before where it is the same code."""
        text = ast.dump(segment.node, include_attributes=True)
        if text not in self.segments:
            found = known.get(text)
            if found is None:
                found = SegmentJitted(self, segment, text)
            self.segments[text] = found
        return self.segments[text]

    def compiled_helper(self, callee: Any) -> Any:
        """The compiled form of a function of the user's that a Python statement calls."""
        is_method = type(callee) is types.MethodType
        function = callee.__func__ if is_method else callee
        if type(function) is not types.FunctionType:
            return callee
        made = self.helpers.get(function)
        if made is None:
            if not _is_lasting(function, type(callee.__self__) if is_method else None):
                return callee
            made = self.helpers[function] = Jitted(function, self.options)
            made.is_silent = True
        if made.parts is not None and made.broken is None and not made.compiled:
            return callee  # nothing in it is compiled
        return types.MethodType(made, callee.__self__) if is_method else made


def cut_apart(jitted: Jitted, error: NotCaptured) -> None:
    """Set `jitted.broken` after a trace of it has failed; leave it None where the function looks at
    its own frame, or fails by its arguments alone. Without source it runs over lazy arrays.
    """
    parts = jitted.parts
    if parts is None or not parts.is_current():
        jitted.parts = jitted.broken = None
        parts = _parts_of(jitted)
    if parts is None and error.argument is None and error.__cause__ is None:
        jitted.broken = _over_lazy_arrays(jitted)
    if parts is None or error.argument is not None:
        return
    if parts.learn(error, parts.tree.body) or (error.__cause__ is None and jitted.broken is None):
        jitted.parts = parts
        parts.reason = parts.reason or str(error)
        parts.recut()


def _over_lazy_arrays(jitted: Jitted) -> Any:
    """The function without source run by a recorder; None for what runs as it is."""
    function = _inside(jitted.function)
    if jitted.original is not jitted.function or function is None:
        return None
    if _looks_at_itself(function.__code__) or function.__code__.co_flags & inspect.CO_GENERATOR:
        return None
    from npjit.api.recorded_call import call_by_recording
    from npjit.api.recorder import Recorder

    jitted.recorder = Recorder(jitted.options)

    def run(*args: Any, **kwargs: Any) -> Any:
        return call_by_recording(jitted.recorder, jitted.label, jitted.function, args, kwargs)

    return run


def _parts_of(jitted: Jitted) -> Parts | None:
    if jitted.original is not jitted.function:
        return None  # a gradient, or a call on a device
    function = _inside(jitted.function)
    if function is None or _looks_at_itself(function.__code__):
        return None
    tree = function_tree(function.__code__)
    return Parts(jitted, function, tree) if tree is not None else None


def _inside(function: Any) -> types.FunctionType | None:
    """The Python function that a callable runs."""
    if isinstance(function, functools.partial):
        return _inside(function.func)
    if isinstance(function, types.MethodType):
        return _inside(function.__func__)
    if is_model(function):
        return _inside(type(function).__call__)
    return function if type(function) is types.FunctionType else None


def _put_in_place(function: Any, made: types.FunctionType | None) -> Any:
    """The callable with `made` in place of the Python function that it runs."""
    if made is None or type(function) is types.FunctionType:
        return made
    if isinstance(function, functools.partial):
        inner = _put_in_place(function.func, made)
        return functools.partial(inner, *function.args, **function.keywords)
    owner = function.__self__ if isinstance(function, types.MethodType) else function
    return types.MethodType(made, owner)


def _looks_at_itself(code: types.CodeType) -> bool:
    """Whether the function may ask for its own local variables or frame."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return not _FRAMES.isdisjoint(code.co_names) or any(map(_looks_at_itself, inner))


def _is_lasting(function: types.FunctionType, cls: type | None) -> bool:
    """Whether a function is one of the user's that is there again at the next call, by the same
    name.
    """
    if function.__code__.co_filename.startswith(_LIBRARIES):
        return False
    name = function.__name__
    if cls is not None:
        return any(vars(base).get(name) is function for base in cls.__mro__)
    return function.__globals__.get(name) is function


def _definition(tree: Function) -> Definition:
    """The tree of a function, a lambda's as that of one with a return statement."""
    if not isinstance(tree, ast.Lambda):
        return tree
    body: list[ast.stmt] = [ast.copy_location(ast.Return(tree.body), tree.body)]
    node = ast.FunctionDef(
        name="<lambda>", args=tree.args, body=body, decorator_list=[], type_params=[]
    )
    return ast.copy_location(node, tree)
