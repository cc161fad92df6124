"""Arguments that say how NumPy's functions work: order, dtype, keepdims, ...

In: the arguments of a traced call. Out: nothing, or NotCaptured for a value that is not
one of the usual ones. Then NumPy runs the call, and takes the value or raises its own error:

    require_usual({"axis": 0, "keepdims": "yes"})    # NotCaptured: keepdims='yes'
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from npjit.ops.errors import NotCaptured
from npjit.ops.symint import SymInt


def require_usual_call(call: Callable[..., Any], args: Sequence[Any], named: Any) -> None:
    """Refuse such values in a call of a function, whose parameters are named as NumPy's."""
    require_usual(named)
    code = getattr(call, "__code__", None)
    if code is not None:
        require_usual({name: args[i] for i, name in _places(code) if i < len(args)})


@functools.cache
def _places(code: types.CodeType) -> list[tuple[int, str]]:
    """Positions and names of the parameters that are settings."""
    names = code.co_varnames[: code.co_argcount]
    return [(i, name) for i, name in enumerate(names) if name in _USUAL]


def require_usual(settings: Mapping[str, Any]) -> None:
    """Refuse what no row has been written for."""
    for name, value in settings.items():
        usual = _USUAL.get(name)
        if usual is not None and not usual(value):
            raise NotCaptured(f"{name}={_shown(value)}")


def _shown(value: Any) -> str:
    return (
        repr(value) if type(value) in (bool, int, float, str) else f"<{value.__class__.__name__}>"
    )


def _is_flag(value: Any) -> bool:
    return type(value) in (bool, np.bool_, int, SymInt) or value is np._NoValue


def _is_text(value: Any) -> bool:
    return value is None or type(value) is str


def _is_count(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < 2**63
    return value is None or type(value) is SymInt or isinstance(value, np.integer)


def _are_real(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    return type(value) is not complex and kind != "c"


def _is_real(value: Any) -> bool:
    return _are_real(value) and not getattr(value, "ndim", 0)


def _is_mask(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_mask(v) for v in value)
    return type(value) is bool or value is np._NoValue or getattr(value, "dtype", None) == np.bool_


_USUAL: dict[str, Callable[[Any], bool]] = {
    "N": _is_count,
    # a bool is an int, but NumPy takes it for none where an axis is meant
    "axis": lambda value: type(value) is not bool,
    "casting": _is_text,
    "correction": _is_real,
    "copy": lambda value: value is None or type(value) is bool,
    "ddof": _is_real,
    "device": lambda value: value is None or (type(value) is str and value == "cpu"),
    # a traced value has a dtype, which np.dtype would take
    "dtype": lambda value: not hasattr(type(value), "__array_ufunc__"),
    "initial": _is_real,
    "k": _is_count,
    "keepdims": _is_flag,
    "kind": _is_text,
    "left": _is_real,
    "mean": _are_real,
    "minlength": _is_count,
    "n": _is_count,
    "nan": _are_real,
    "neginf": _are_real,
    "offset": _is_count,
    "optimize": lambda value: type(value) is bool or value in ("greedy", "optimal"),
    "order": lambda value: value is None or (type(value) is str and value in tuple("CFAK")),
    "posinf": _are_real,
    "right": _is_real,
    "shape": lambda value: type(value) is not bool,
    "subok": lambda value: type(value) is bool,
    "where": _is_mask,
}
