"""`npjit.jit`: the decorator, and the callable it gives."""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

from npjit import _runtime
from npjit.api.compile import Compiled, Stopwatch, compile_captured
from npjit.api.options import CaptureError, NpjitWarning, Options
from npjit.frontend.capture import Policy
from npjit.frontend.outside import Outside
from npjit.frontend.trace import Captured, capture_call
from npjit.ops.errors import NotCaptured, active_trace
from npjit.ops.tracer import is_traced


class Jitted(_runtime.Dispatcher):  # type: ignore[misc]
    """A compiled function: called like the function, compiled on the first call of each kind of arguments."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        super().__init__(self._miss, function)
        self.function = function
        self.options = options
        self.compiled: list[Compiled] = []
        # (line and reason) of what ran as NumPy, with the number of such misses
        self.refusals: dict[str, int] = {}
        self._policy = Policy(options.dynamic)
        self._lock = threading.RLock()
        functools.update_wrapper(self, function)

    # ------------------------------------------------------------ calling

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        trace = active_trace()
        if trace is not None and any(map(is_traced, (*args, *kwargs.values()))):
            return self.inline(trace.outside)(*args, **kwargs)
        with self._lock:
            entry = self._compiled_meanwhile(args, kwargs) or self._compile(args, kwargs)
        if entry is None:
            return self.fall_back(args, kwargs)
        try:
            return self.run(entry, args, kwargs)
        except LookupError:
            # a guard that fails at once (an argument changed by another thread)
            return self.fall_back(args, kwargs)

    def _compiled_meanwhile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An entry that another thread has made while this one waited."""
        failing = self.explain_miss(args, kwargs)
        for entry, step in zip(self.entries, failing, strict=False):
            if step is None:
                return entry
        return None

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(self.compiled) >= self.options.recompile_limit:
            self._warn(f"{self._name} was compiled {len(self.compiled)} times; "
                       "further kinds of arguments run as NumPy (recompile_limit=)")
            return None
        watch = Stopwatch()
        try:
            captured = self.capture(args, kwargs)
            watch.lap("trace")
            made = compile_captured(captured, self.options, watch)
        except NotCaptured as e:
            return self._refuse(e, len(args), tuple(kwargs))
        except Exception as e:
            return self._failed(e)
        self.compiled.append(made)
        self.add(made.entry)
        return made.entry

    def capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
        """Trace a call; NotCaptured when it cannot be."""
        return capture_call(self._target, args, kwargs, self._policy)

    def _target(self, outside: Outside, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self.inline(outside)(*args, **kwargs)

    def inline(self, outside: Outside) -> Callable[..., Any]:
        """What traced code calls in place of this function."""
        if isinstance(self.function, types.FunctionType):
            return outside.stage(self.function)
        return outside.read(self.function, ("root", self.function))

    def __npjit_inline__(self, outside: Outside) -> Callable[..., Any]:
        return self.inline(outside)

    # ------------------------------------------------------------ what is not compiled

    def _refuse(self, e: NotCaptured, npositional: int, kwnames: tuple[str, ...]) -> Any:
        """Remember that such calls run as NumPy, and say so once."""
        where = f"{e.where}: " if e.where else ""
        text = f"{where}{e.reason}"
        self.refusals[text] = self.refusals.get(text, 0) + 1
        if self.options.fullgraph:
            raise CaptureError(f"{self._name} cannot be captured whole: {text}") from None
        if e.__cause__ is not None or not e.steps:
            return None  # an error that NumPy will raise itself, or values that decided: try again
        self._warn(f"{self._name} runs as NumPy: {text}")
        return self._numpy_entry(e, npositional, kwnames)

    def _numpy_entry(self, e: NotCaptured, npositional: int, kwnames: tuple[str, ...]) -> Any:
        entry = _runtime.Entry(
            mode="numpy",
            npositional=npositional,
            kwnames=kwnames,
            steps=e.steps,
            inputs=(),
            outputs=(),
            tree=("const", None),
        )
        self.add(entry)
        return entry

    def _failed(self, e: Exception) -> Any:
        """An exception while tracing: the user's own, which NumPy's run will raise again, or a defect of npjit."""
        text = f"{type(e).__name__}: {e}"
        self.refusals[text] = self.refusals.get(text, 0) + 1
        return None

    def fall_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call by the function itself."""
        self.count("numpy")
        return self.original(*args, **kwargs)

    _warned: frozenset[str] = frozenset()

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned = self._warned | {text}
            warnings.warn(text, NpjitWarning, stacklevel=_frames_inside() + 1)

    @property
    def _name(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    # ------------------------------------------------------------ looking inside

    def cache_info(self) -> dict[str, Any]:
        """Calls by how they ran (whole, broken, numpy), compiled versions, and what ran as NumPy and why."""
        return {
            **self.counts(),
            "compiled": len(self.compiled),
            "refusals": dict(self.refusals),
        }

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """What a call with these arguments compiles to; see `Lowered.as_text`."""
        from npjit.api.inspect import Lowered

        return Lowered(self, args, kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """A report on a call with these arguments: kernels, refusals, guards, times, bytes."""
        from npjit.api.inspect import explain

        return explain(self, args, kwargs)

    def visualize(self, *args: Any, **kwargs: Any) -> Any:
        """Draw the graph, fused groups as boxes; the last positional argument is the path (.svg, .html, .dot)."""
        from npjit.api.draw import visualize

        return visualize(self, args[:-1], kwargs, args[-1])

    def __repr__(self) -> str:
        return f"<npjit.jit of {self._name}>"

    def __reduce__(self) -> Any:
        name = getattr(self, "__qualname__", "")
        if name and "<" not in name and _global_named(self.__module__, name) is self:
            return name
        return (jit_with, (self.function, self.options))


def _frames_inside() -> int:
    """How many frames between here's caller and the user's call, for a warning that names the user's line."""
    frame = sys._getframe(1)
    count = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("npjit."):
        frame = frame.f_back  # type: ignore[assignment]
        count += 1
    return count


def _global_named(module: str, qualname: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def jit_with(function: Callable[..., Any], options: Options) -> Jitted:
    """A Jitted from a function and checked options (how pickling rebuilds one)."""
    return Jitted(function, options)


def jit(
    function: Callable[..., Any] | None = None,
    *,
    backend: str | Callable[..., Any] | None = None,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    recompile_limit: int = 64,
) -> Any:
    """Compile a NumPy function.

    The first call with each kind of arguments traces and compiles; later ones run the compiled code. What cannot be
    captured runs as NumPy, with one warning naming line and reason; `cache_info()` counts both.

    Parameters
    ----------
    function : callable
        Any function of arrays, numbers and containers of them (tuples, lists, dicts, dataclasses, None): a function,
        method, lambda, partial, or an object with `__call__`.
    backend : str or callable, optional
        "cpp" (the default when a compiler is there), "cython", "numba", "numpy", a registered name, or a callable
        `(graph, example_types) -> callable`.
    dynamic : bool, optional
        None: extents above 16 and int arguments are symbols from the first call. False: every size is a constant of
        its own version. True: small extents are symbols too.
    fullgraph : bool
        Raise `CaptureError`, with line and reason, instead of running as NumPy.
    recompile_limit : int
        How many versions are compiled before further kinds of arguments run as NumPy.

    Returns
    -------
    callable
        Same signature, name and docstring; also `cache_info()`, `lower()`, `explain()`, `visualize()`.

    Examples
    --------
    >>> import numpy as np, npjit
    >>> @npjit.jit
    ... def circle(x):
    ...     return np.sin(x) ** 2 + np.cos(x) ** 2
    >>> circle(np.zeros(3))
    array([1., 1., 1.])
    >>> circle.cache_info()["whole"]
    1
    """
    options = Options(backend, dynamic, fullgraph, recompile_limit)
    if function is None:
        return functools.partial(jit_any, options=options)
    return jit_any(function, options)


def jit_any(function: Any, options: Options) -> Any:
    """Jit a function, a class- or staticmethod, or a callable object."""
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(jit_any(function.__func__, options))
    if isinstance(function, Jitted):
        return function
    if not callable(function):
        raise TypeError(f"npjit.jit takes a callable, not {type(function).__name__}")
    if is_model(function):
        from npjit.api.model import JittedObject

        return JittedObject(function, options)
    return Jitted(function, options)


def is_model(value: Any) -> bool:
    """Whether a callable is an object of a user's class with __call__ written in Python."""
    plain = (types.FunctionType, types.MethodType, functools.partial, type)
    return not isinstance(value, plain) and isinstance(
        getattr(type(value), "__call__", None), types.FunctionType
    )
