"""`Jitted`, the callable that `npjit.jit` gives: what a call does that no entry matches.

In: a function and its checked `Options`. Out: a `Dispatcher` whose entries answer the calls they
match; a miss is traced and compiled to one more entry, or remembered as one that runs in parts or
as NumPy.

    >>> import numpy as np
    >>> double = Jitted(lambda x: x + x, Options())
    >>> double(np.ones(2))
    array([2., 2.])
    >>> len(double.compiled), double.refusals
    (1, {})
"""

from __future__ import annotations

import functools
import sys
import threading
import traceback
import types
import weakref
from collections.abc import Callable
from typing import Any

from npjit import _runtime
from npjit.api import logs
from npjit.api.compile import Compiled, Stopwatch, compile_captured
from npjit.api.on_host import OnHost
from npjit.api.options import CaptureError, Options
from npjit.api.placement import DeviceMismatch, adopted, holds_device_arrays
from npjit.api.raising import Raising
from npjit.backends.cuda_device import DeviceUnavailable
from npjit.core.warn import NpjitWarning, warn_user
from npjit.frontend.control import Control
from npjit.frontend.outside import Outside
from npjit.frontend.policy import Policy
from npjit.frontend.trace import Captured, Failed, capture_call
from npjit.ops.errors import NotCaptured, active_trace
from npjit.ops.tracer import Tracer

# so many different refusals of one function are counted by name
MOST_REFUSALS = 50
# a refusal that guards do not decide is taken as settled after so many attempts
MOST_ATTEMPTS = 8
# and one that a cut has followed, after so many
FEW_ATTEMPTS = 2
# a function that breaks for the same reason with so many kinds of arguments breaks with all others
MOST_BROKEN = 4


class Jitted(_runtime.Dispatcher):  # type: ignore[misc]
    """A compiled function: called like the function, compiled on the first call of each kind of
    arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: Options,
        original: Callable[..., Any] | None = None,
    ) -> None:
        this = weakref.ref(self)  # a bound method would keep it until the next collection
        fallback = original if original is not None else function
        super().__init__(lambda args, kwargs: this()._miss(args, kwargs), fallback)
        own = () if is_model(function) else functools.WRAPPER_UPDATES
        functools.update_wrapper(self, function, updated=own)
        # after that: a function may have attributes of these names
        self.function = function
        self.options = options
        self.compiled: list[Compiled] = []
        # (line and reason) of what could not be captured whole, with the number of such misses
        self.refusals: dict[str, int] = {}
        # the function's marks and segments (api.broken), once it has been cut
        self.parts: Any = None
        # what its calls over lazy arrays share (api.recorder), where it runs so
        self.recorder: Any = None
        self.is_silent = False
        self._raising = Raising()
        self._policy = Policy(options.dynamic)
        self._lock = threading.RLock()
        self._warned: frozenset[str] = frozenset()

    def with_options(self, options: Options) -> Any:
        """The same function, compiled by other options."""
        return Jitted(self.function, options)

    # ------------------------------------------------------------ calling

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        trace = active_trace()
        if trace is not None:
            return self.inline(trace.outside)(*args, **kwargs)
        if _runtime.is_lazy((args, kwargs)):
            return _runtime.record(self, args, kwargs)
        device_arrays = adopted(args, kwargs)
        if device_arrays is not None:
            return self(*device_arrays[0], **device_arrays[1])
        if self._raising.knows(args, kwargs):
            return self._by_numpy(args, kwargs)
        with self._lock:
            entry, doubt = self._compiled_meanwhile(args, kwargs), ""
            if entry is None:
                entry, doubt = self._compile(args, kwargs)
        if entry is not None:
            try:
                return self.run(entry, args, kwargs)
            except _runtime.NoMatch:
                pass  # a guard that fails at once: another thread has changed an argument
        if not doubt:
            return self.fall_back(args, kwargs)
        result = self._by_numpy(args, kwargs)
        self._warn(f"{self.label} runs as NumPy: {doubt}")
        return result

    def _by_numpy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The answer to a call whose trace has failed, or would."""
        self.count("numpy")
        on_gpu = holds_device_arrays(args, kwargs)
        answer = OnHost(self.original) if on_gpu else self.original
        return self._raising.run(answer, args, kwargs)

    def _compiled_meanwhile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An entry that another thread has made while this one waited."""
        failing = self.explain_miss(args, kwargs)
        for entry, step in zip(self.entries, failing, strict=False):
            if step is None:
                return entry
        return None

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, str]:
        """A new entry; or None and what was in the way, if NumPy's run does not raise it."""
        if len(self.compiled) >= self.options.recompile_limit:
            self._warn(self._why_so_often(args, kwargs))
            return None, ""
        watch = Stopwatch()
        captured = None
        try:
            captured = self.capture(args, kwargs)
            watch.lap("trace")
            if self.options.mode == "background":
                from npjit.api.background import compile_later

                return compile_later(self, captured, watch), ""
            made = compile_captured(captured, self.options, watch)
        except NotCaptured as e:
            if captured is not None:
                # refused by the backend, which may take other kinds of arguments
                e.steps, e.passing = captured.steps, bool(captured.graph.guards)
            return self._refuse(e, len(args), tuple(kwargs))
        except Failed as e:
            if not e.passing and not _is_defect(e.error):
                self._remember(e.steps, len(args), tuple(kwargs))
            return self._failed(e.error)
        except (DeviceMismatch, DeviceUnavailable, NpjitWarning):
            raise  # a warning that the user's filters make an error
        except Exception as e:
            return self._failed(e)
        self.enter(made)
        return made.entry, ""

    def enter(self, made: Compiled) -> None:
        """From now on calls of this kind run as compiled."""
        if made.backend == "cuda":
            made.entry.on_failure = OnHost(self.original)
        with self._lock:
            self.compiled.append(made)
            self.add(made.entry)
        logs.report(self.label, self.function, made, len(self.compiled))

    def capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
        """Trace a call; NotCaptured when it cannot be."""
        return capture_call(self._target, args, kwargs, self._policy)

    def _target(self, outside: Outside, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self.inline(outside)(*args, **kwargs)

    def inline(self, outside: Outside) -> Callable[..., Any]:
        """What traced code calls in place of this function."""
        made: Callable[..., Any] = outside.stage(self.function)
        return made

    def __npjit_inline__(self, outside: Outside) -> Callable[..., Any]:
        return self.inline(outside)

    # ------------------------------------------------------------ what is not compiled

    def _refuse(
        self, e: NotCaptured, npositional: int, kwnames: tuple[str, ...]
    ) -> tuple[Any, str]:
        """Remember that such calls run in parts or as NumPy, and say so once."""
        text = self._note(str(e))
        if self.options.fullgraph:
            raise CaptureError(f"{self.label} cannot be captured whole: {text}") from None
        try:
            self._cut(e)
        except Exception as defect:
            return self._failed(defect)
        is_error = e.__cause__ is not None  # inside an operation: NumPy will raise its own
        if self.broken is None and is_error:
            if not e.passing:
                self._remember(e.steps, npositional, kwnames)
            return None, text
        if not is_error:
            how = "runs as NumPy" if self.broken is None else "runs in parts"
            self._warn(f"{self.label} {how}: {text}")
        settled = self._is_settled(e, text)
        entry = self.uncompiled_entry(() if settled else e.steps, npositional, kwnames)
        most = MOST_ATTEMPTS if self.parts is None else FEW_ATTEMPTS
        if not settled and (e.passing or is_error) and self.refusals.get(text, 0) < most:
            return (None if self.broken is None else entry), ""
        self.add(entry)
        for made in self.compiled:
            self.remove(made.entry)
            self.add(made.entry)
        return entry, ""

    def _remember(self, steps: tuple[Any, ...], npositional: int, kwnames: tuple[str, ...]) -> None:
        """Calls that pass these guards raise again, or at least fail to be traced: NumPy's."""
        if self.broken is None:
            entry = self.uncompiled_entry(steps, npositional, kwnames)
            if any(check[0] == "device" for _, check in steps):
                entry.on_failure = OnHost(self.original)
            self.add(entry)

    def _cut(self, error: NotCaptured) -> None:
        """Set `broken` to the function in parts, where that is possible."""
        from npjit.api.broken import cut_apart

        cut_apart(self, error)

    def _is_settled(self, e: NotCaptured, text: str) -> bool:
        """Whether the function breaks for this reason whatever the arguments."""
        return self.parts is not None and not e.passing and self.refusals.get(text, 0) > MOST_BROKEN

    def uncompiled_entry(
        self, steps: tuple[Any, ...], npositional: int, kwnames: tuple[str, ...]
    ) -> Any:
        """An entry for calls that are known to run in parts, or as NumPy."""
        if self.parts is not None:
            steps = self.parts.guarded(steps)
        return _runtime.Entry(
            mode="numpy" if self.broken is None else "broken",
            npositional=npositional,
            kwnames=kwnames,
            steps=steps,
            inputs=(),
            outputs=(),
            tree=("const", None),
        )

    def _failed(self, e: Exception) -> tuple[Any, str]:
        """An exception while tracing: the user's own, which NumPy's run will raise again, or a
        defect of npjit.
        """
        if logs.checking() and _is_defect(e):
            raise e
        text = self._note(_words(e))
        return None, f"a defect of npjit: {text}" if _is_defect(e) else text

    def warn_of_failure(self, e: BaseException) -> None:
        """Say that a call, captured before, was not compiled."""
        self._warn(f"{self.label} runs as NumPy: {self._note(_words(e))}")

    def _note(self, text: str) -> str:
        if text in self.refusals or len(self.refusals) < MOST_REFUSALS:
            self.refusals[text] = self.refusals.get(text, 0) + 1
        return text

    def fall_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call by the function itself."""
        self.count("numpy")
        return self.original(*args, **kwargs)

    def _warn(self, text: str) -> None:
        if not self.is_silent and text not in self._warned and len(self._warned) < MOST_REFUSALS:
            self._warned = self._warned | {text}
            warn_user(text)

    def _why_so_often(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        from npjit.api.recompile import changing_parts

        parts = ", ".join(changing_parts(self, args, kwargs)) or "its arguments"
        return (
            f"{self.label} was compiled {len(self.compiled)} times, for other values of {parts}; "
            "further kinds of arguments run as NumPy (recompile_limit=)"
        )

    @property
    def label(self) -> str:
        """What messages call the function."""
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    # ------------------------------------------------------------ looking inside

    def cache_info(self) -> dict[str, Any]:
        """Calls by how they ran (whole, broken, numpy), compiled versions (of segments, too), what
        could not be captured whole and why, and the lines that stay Python between segments.
        """
        segments = self.parts.segments.values() if self.parts is not None else ()
        recorded = self.recorder.versions if self.recorder is not None else 0
        return {
            **self.counts(),
            "compiled": len(self.compiled) + sum(len(s.compiled) for s in segments) + recorded,
            "refusals": dict(self.refusals),
            "breaks": self.parts.breaks() if self.parts is not None else [],
        }

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """What a call with these arguments compiles to, as text; nothing runs.

        Takes what the function takes. Raises CaptureError when the call cannot be captured whole.

        >>> import numpy as np, npjit
        >>> print(npjit.jit(np.exp).lower(np.ones(100)).as_text("graph"))
        graph(%0: f64[n0])
          %1: f64[n0] = exp %0
          return %1
        """
        from npjit.api.inspect import Lowered

        return Lowered(self, args, kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """A report on a call with these arguments: kernels, refusals, guards, times, bytes.

        Takes what the function takes and compiles, but runs nothing; what cannot be captured is
        told under `breaks`.

        >>> import numpy as np, npjit
        >>> report = npjit.jit(lambda x: np.sin(x) + 1.0).explain(np.ones(100))
        >>> report.kernels, report.breaks, report.bytes_moved
        (1, [], 1600)
        """
        from npjit.api.inspect import explain

        return explain(self, args, kwargs)

    def visualize(self, *args: Any, **kwargs: Any) -> Any:
        """Draw what a call compiles to, fused groups as boxes; gives the path of the picture.

        Takes what the function takes, then the file to write: its ending (.svg, .html or .dot) says
        as what, anything else is a ValueError. CaptureError when the call cannot be captured.

        >>> import tempfile, numpy as np, npjit
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     npjit.jit(np.sin).visualize(np.ones(100), f"{folder}/sine.dot").name
        'sine.dot'
        """
        from npjit.api.draw import visualize

        return visualize(self, args[:-1], kwargs, args[-1] if args else None)

    def __repr__(self) -> str:
        return f"<npjit.jit of {self.label}>"

    def __reduce__(self) -> Any:
        return _global_name(self) or (jit_with, (self.function, self.options))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self  # as Python copies functions


def _words(e: BaseException) -> str:
    """An exception's class and text; one that was raised while tracing may hold stand-ins, whose
    own text is not to be had any more."""
    try:
        return f"{type(e).__name__}: {e}"
    except (Exception, NotCaptured):
        return type(e).__name__


# a staged `raise`, and an attribute that arrays do not have
_USERS = (Control.raise_.__code__, Tracer.__getattr__.__code__)


def _is_defect(e: Exception) -> bool:
    """Whether npjit's own code raised, and not the function or a library that it called."""
    own = False
    for frame, _ in traceback.walk_tb(e.__traceback__):
        module = frame.f_globals.get("__name__", "")
        if frame.f_code in _USERS:
            continue
        if module.partition(".")[0] != "numpy":
            own = module.startswith("npjit.")
    return own


def _global_name(jitted: Jitted) -> str | None:
    """The qualified name by which its module holds this function; pickle then stores just that."""
    name = getattr(jitted, "__qualname__", "")
    found: Any = sys.modules.get(getattr(jitted, "__module__", None) or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is jitted else None


def jit_with(function: Callable[..., Any], options: Options) -> Jitted:
    """A Jitted from a function and checked options (how pickling rebuilds one)."""
    return Jitted(function, options)


def is_model(value: Any) -> bool:
    """Whether a callable is an object of a user's class with __call__ written in Python."""
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial, type, Jitted)):
        return False
    found = [vars(base).get("__call__") for base in type(value).__mro__]
    return isinstance(next(filter(None, found), None), (types.FunctionType, Jitted))
