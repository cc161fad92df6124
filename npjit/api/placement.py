"""Where the arguments of a call live.

In: the arguments. Out: whether a GPU has a part in the call, without importing what runs there.

    >>> import numpy as np
    >>> needs_device((np.ones(3),), {}, None), needs_device((np.ones(3),), {}, "cuda")
    (False, True)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def is_device_array(value: Any) -> bool:
    """Whether an object's memory is a GPU's."""
    return hasattr(type(value), "__cuda_array_interface__")


def leaves_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """The arguments and what tuples, lists and dicts among them hold."""
    waiting: list[Any] = [args, kwargs]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (tuple, list)):
            waiting += reversed(value)
        elif isinstance(value, dict):
            waiting += reversed(value.values())
        else:
            yield value


def needs_device(args: tuple[Any, ...], kwargs: dict[str, Any], device: str | None) -> bool:
    """Whether a call runs on a GPU: by its arguments or by the option `device`."""
    if device is not None or any(map(is_device_array, args)):
        return True
    return any(map(is_device_array, leaves_of(args, kwargs)))
