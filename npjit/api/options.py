"""What `npjit.jit` takes beside the function, checked once.

>>> Options(backend="numpy").device is None
True
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

_DEVICE = re.compile(r"cuda(:\d+)?")
FAST_MATH = (None, "contract", "approx")
MODES = ("default", "background", "reduce-overhead", "max-autotune")


class CaptureError(RuntimeError):
    """`fullgraph=True` (or a gradient) met code that cannot be captured; names line and reason."""

    __module__ = "npjit"


@dataclass(frozen=True)
class Options:
    """The keyword arguments of `jit`; see there. NPJIT_BACKEND names the backend where none is
    given.
    """

    backend: str | Callable[..., Any] | None = None
    dynamic: bool | None = None
    fullgraph: bool = False
    recompile_limit: int = 64
    device: str | None = None
    fastmath: str | None = None
    mode: str = "default"

    def __post_init__(self) -> None:
        if self.dynamic not in (None, True, False):
            raise ValueError(f"dynamic must be None, True or False, not {self.dynamic!r}")
        if self.fullgraph not in (True, False):
            raise ValueError(f"fullgraph must be True or False, not {self.fullgraph!r}")
        if not isinstance(self.recompile_limit, int) or self.recompile_limit < 0:
            raise ValueError(f"recompile_limit must be an int >= 0, not {self.recompile_limit!r}")
        if self.fastmath not in FAST_MATH:
            raise ValueError(f"fastmath must be one of {FAST_MATH}, not {self.fastmath!r}")
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {MODES}, not {self.mode!r}")
        if self.backend is None and os.environ.get("NPJIT_BACKEND"):
            object.__setattr__(self, "backend", os.environ["NPJIT_BACKEND"])
        if self.device is not None and not _DEVICE.fullmatch(self.device):
            raise ValueError(f'device must be None, "cuda" or "cuda:<number>", not {self.device!r}')
        if self.backend == "cuda" and self.device is None:
            object.__setattr__(self, "device", "cuda")
        if isinstance(self.backend, str):
            from npjit.backends import registry

            if self.backend not in registry.BUILT_IN:
                registry.find(self.backend)
        elif self.backend is not None and not callable(self.backend):
            raise TypeError(f"backend must be a name or a callable, not {self.backend!r}")


def options_of(caller: str, given: Mapping[str, Any]) -> Options:
    """The Options that `caller` was given; what is none of them is a TypeError as Python words it.

    >>> options_of("grad", {"fullgraph": True}).fullgraph
    True
    """
    unknown = given.keys() - {field.name for field in fields(Options)}
    if unknown:
        raise TypeError(f"{caller}() got an unexpected keyword argument {min(unknown)!r}")
    return Options(**given)
