"""What `npjit.jit` takes beside the function, checked once; and how npjit warns.

>>> Options(backend="numpy").device is None
True
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_DEVICE = re.compile(r"cuda(:\d+)?")


class NpjitWarning(UserWarning):
    """Something runs slower than the user may think, with the line and the reason."""


class CaptureError(RuntimeError):
    """`fullgraph=True` (or a gradient) met code that cannot be captured; names line and reason."""


def warn_user(text: str) -> None:
    """An NpjitWarning that names the user's line, not one of npjit."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("npjit."):
        frame = frame.f_back
        level += 1
    warnings.warn(text, NpjitWarning, stacklevel=level)


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

    def __post_init__(self) -> None:
        if self.dynamic not in (None, True, False):
            raise ValueError(f"dynamic must be None, True or False, not {self.dynamic!r}")
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
