"""`npjit.grad` and `npjit.value_and_grad`: compiled reverse-mode gradients of plain NumPy
functions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from npjit.api.jitted import Jitted
from npjit.api.on_host import Moved
from npjit.api.options import Options, options_of
from npjit.api.recorder import Recorder
from npjit.core.trees import tree_map
from npjit.frontend.builtin_names import REPLACED_FUNCTIONS
from npjit.frontend.outside import Outside
from npjit.ops.errors import NotCaptured
from npjit.transform.api_grad import grad_of_traced, value_and_grad_of_traced

Argnums = int | Sequence[int]


class Gradient(Jitted):
    """The compiled gradient of a function; inside another trace it joins that trace."""

    def __init__(
        self,
        function: Callable[..., Any],
        options: Options,
        argnums: Argnums,
        has_aux: bool,
        with_value: bool,
    ) -> None:
        if not callable(function):
            raise TypeError(f"npjit.grad takes a callable, not {type(function).__name__}")
        # what answers when compiled code does not: never the function itself
        super().__init__(function, options, original=self._by_recording)
        self.argnums = _checked(argnums)
        self.has_aux = has_aux
        self.with_value = with_value
        self.recorder = Recorder(options)

    def with_options(self, options: Options) -> Gradient:
        """The same gradient, compiled by other options."""
        return Gradient(self.function, options, self.argnums, self.has_aux, self.with_value)

    def inline(self, outside: Outside) -> Callable[..., Any]:
        transform = value_and_grad_of_traced if self.with_value else grad_of_traced
        # jit(f) is differentiated as f
        staged = outside.read(self.function, ("root", self.function))
        block = outside.capture.block

        def gradient(*args: Any, **kwargs: Any) -> Any:
            return transform(block, staged, args, kwargs, self.argnums, self.has_aux)

        return gradient

    def _by_recording(self, *args: Any, **kwargs: Any) -> Any:
        """What cannot be captured whole runs as Python over lazy arrays, and what they have
        recorded is differentiated."""
        from npjit.api.recorded_grad import gradient_by_recording

        moved = Moved()
        given, named = tree_map(moved.down, [list(args), kwargs])
        if moved.device is None:
            return gradient_by_recording(self, args, kwargs)
        try:
            return tree_map(moved.up, gradient_by_recording(self, tuple(given), named))
        finally:
            moved.write()

    def _cut(self, error: NotCaptured) -> None:
        self.broken = self._by_recording

    @property
    def label(self) -> str:
        return f"the gradient of {super().label}"

    def __reduce__(self) -> Any:
        return (
            Gradient,
            (self.function, self.options, self.argnums, self.has_aux, self.with_value),
        )


def _checked(argnums: Argnums) -> int | tuple[int, ...]:
    """argnums as an int or a tuple of them; TypeError for anything else."""
    try:
        return operator.index(argnums)  # type: ignore[arg-type]
    except TypeError:
        pass
    try:
        return tuple(operator.index(number) for number in argnums)  # type: ignore[union-attr]
    except TypeError:
        text = f"argnums must be an int or a sequence of ints, not {argnums!r}"
        raise TypeError(text) from None


def grad(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: Any
) -> Gradient:
    """The gradient of a real scalar function, compiled.

    Parameters
    ----------
    f : callable
        A NumPy function with a real scalar result (with has_aux: a pair (value, aux)).
    argnums : int or sequence of int
        Which positional arguments to differentiate for. Arrays, floats, and trees of them.
    has_aux : bool
        f returns (value, aux); the gradient function then returns (gradient, aux).
    **options
        As for `npjit.jit`.

    Returns
    -------
    callable
        Called as f; gives the gradient with the argument's structure, shapes and dtypes (a tuple of
        them for several argnums). For complex arguments it is dL/dx + i dL/dy, so that
        `z - step * gradient` descends.

    Raises
    ------
    TypeError
        On a call whose result is no real scalar, or whose argument to differentiate for holds
        anything but floating or complex numbers.
    CaptureError
        On a call that cannot be traced at all.

    Examples
    --------
    >>> import numpy as np, npjit
    >>> npjit.grad(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    return Gradient(f, options_of("grad", options), argnums, has_aux, False)


def value_and_grad(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: Any
) -> Gradient:
    """The value and the gradient in one compiled graph.

    Parameters and errors are those of `grad`. The function that is returned gives the pair (value,
    gradient); with has_aux, ((value, aux), gradient).

    Examples
    --------
    >>> import numpy as np, npjit
    >>> npjit.value_and_grad(lambda x: np.sum(x * x))(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    return Gradient(f, options_of("value_and_grad", options), argnums, has_aux, True)


def _traced(transform: Callable[..., Any]) -> Callable[..., Any]:
    """grad or value_and_grad called by traced code: the gradient joins that trace."""

    def make(
        outside: Outside,
        f: Callable[..., Any],
        argnums: Argnums = 0,
        has_aux: bool = False,
        **options: Any,
    ) -> Callable[..., Any]:
        del options  # the trace around has its own
        numbers = _checked(argnums)

        def gradient(*args: Any, **kwargs: Any) -> Any:
            return transform(outside.capture.block, f, args, kwargs, numbers, has_aux)

        return gradient

    return make


REPLACED_FUNCTIONS[grad] = _traced(grad_of_traced)
REPLACED_FUNCTIONS[value_and_grad] = _traced(value_and_grad_of_traced)
