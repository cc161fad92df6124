"""`npjit.jit`, the decorator.

In: a function, a class- or staticmethod or a callable object, and options. Out: a `Jitted` of it
(`api.jitted`), or an object like it whose calls are compiled (`api.model`).

    jit(f, dynamic=True)    ->  Jitted(f, Options(dynamic=True))
    jit(dynamic=True)       ->  a decorator
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from npjit.api.jitted import Jitted, is_model
from npjit.api.options import Options
from npjit.frontend.builtin_names import REPLACED_FUNCTIONS
from npjit.frontend.outside import Outside


def jit(
    function: Callable[..., Any] | None = None,
    *,
    backend: str | Callable[..., Any] | None = None,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    recompile_limit: int = 64,
    device: str | None = None,
    fastmath: str | None = None,
    mode: str = "default",
) -> Any:
    """Compile a NumPy function.

    The first call with each kind of arguments traces and compiles; later ones run the compiled
    code. What cannot be captured stays Python, between compiled parts, with one warning naming
    line and reason; `cache_info()` counts both.

    Parameters
    ----------
    function : callable
        Any function of arrays, numbers and containers of them (tuples, lists, dicts, dataclasses,
        None): a function, method, lambda, partial, or an object with `__call__`.
    backend : str or callable, optional
        "cpp" (the default when a compiler is there), "cython", "numba", "numpy", "cuda", a
        registered name, or a callable `(graph, example_types) -> callable`.
    dynamic : bool, optional
        None: extents above 16 and int arguments are symbols from the first call. False: every size
        is a constant of its own version. True: small extents are symbols too.
    fullgraph : bool
        Raise `CaptureError`, with line and reason, instead of running in parts or as NumPy.
    recompile_limit : int
        How many versions are compiled before further kinds of arguments run as NumPy.
    device : str, optional
        "cuda" or "cuda:1": NumPy arguments are moved to that GPU, and results come back as NumPy
        arrays. CuPy arrays (and whatever has `__cuda_array_interface__`) run where they live, with
        CuPy results, without this.
    fastmath : str, optional
        What CUDA and C++ code may do to be faster at the price of other last bits. "contract": a
        product and a sum are one operation, rounded once. "approx": on GPUs also division, square
        root and reciprocals to two units in the last place, and zero for numbers below the normal
        ones. None: results as NumPy's. Other backends compute as with None.
    mode : str
        "default". "background": calls run as NumPy while a thread compiles, then switch over.
        "reduce-overhead": on a GPU, the memory of a call is kept for the next one, that of results
        when nobody holds them any more; on the CPU as "default".
        "max-autotune": on a GPU, for each new set of sizes several ways to run are timed, and the
        fastest is remembered on disk; on the CPU as "default".

    Returns
    -------
    callable
        Same signature, name and docstring, and results of the same shapes and dtypes; also
        `cache_info()`, `lower()`, `explain()` and `visualize()`.

    Raises
    ------
    TypeError, ValueError
        For an argument that is not one of these. A call raises what the function itself would.
    CaptureError
        With fullgraph=True, on a call that cannot be captured.

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
    options = Options(backend, dynamic, fullgraph, recompile_limit, device, fastmath, mode)
    if function is None:
        return functools.partial(jit_any, options=options)
    return jit_any(function, options)


def _jit_in_trace(outside: Outside, function: Any = None, **options: Any) -> Any:
    """jit called by traced code: the function, which is traced anyway."""
    del options
    return (lambda f: f) if function is None else function


REPLACED_FUNCTIONS[jit] = _jit_in_trace


def jit_any(function: Any, options: Options) -> Any:
    """Jit a function, a class- or staticmethod, or a callable object."""
    from npjit.api.model import JittedObject, jitted_object

    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(jit_any(function.__func__, options))
    if issubclass(type(function), (Jitted, JittedObject)):
        return function.with_options(options) if options != Options() else function
    if isinstance(function, type):
        raise TypeError(
            f"npjit.jit takes a function, not the class {function.__name__}: "
            "decorate its methods, or jit an instance"
        )
    if not callable(function):
        raise TypeError(f"npjit.jit takes a callable, not {type(function).__name__}")
    return jitted_object(function, options) if is_model(function) else Jitted(function, options)
