"""Keys that are not basic: index arrays go to `npjit.ops.gathering`, computed masks to
`npjit.ops.masks`."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.ops.gathering import get_at, set_at
from npjit.ops.masks import get_masked, set_masked
from npjit.ops.selection import Selected
from npjit.ops.tracer import Tracer


def get_advanced(array: Tracer, key: Any) -> Any:
    """array[key]."""
    key = _as_arrays(key)
    return get_masked(array, key) if _has_mask(key) else get_at(array, key)


def set_advanced(array: Tracer, key: Any, value: Any) -> None:
    """array[key] = value."""
    key = _as_arrays(key)
    if _has_mask(key):
        set_masked(array, key, value)
    else:
        set_at(array, key, value)


def _as_arrays(key: Any) -> Any:
    """A key with arrays for the lists that are held as rows."""
    if isinstance(key, tuple):
        return tuple(_as_arrays(k) for k in key)
    return key.whole() if getattr(key, "rows", None) is not None else key


def _has_mask(key: Any) -> bool:
    keys = key if isinstance(key, tuple) else (key,)
    is_mask = (type(k) is Selected or (type(k) is Tracer and k.dtype == np.bool_) for k in keys)
    return any(is_mask)
