"""What `npjit.jit` takes beside the function, checked once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_DEVICE = re.compile(r"cuda(:\d+)?")
MODES = ("default", "background", "reduce-overhead", "max-autotune")


class NpjitWarning(UserWarning):
    """Something runs slower than the user may think, with the line and the reason."""


class CaptureError(RuntimeError):
    """`fullgraph=True` (or a gradient) met code that cannot be captured; names line and reason."""


@dataclass(frozen=True)
class Options:
    """The keyword arguments of `jit`; see there."""

    backend: str | Callable[..., Any] | None = None
    dynamic: bool | None = None
    fullgraph: bool = False
    recompile_limit: int = 64
    device: str | None = None

    def __post_init__(self) -> None:
        if self.dynamic not in (None, True, False):
            raise ValueError(f"dynamic must be None, True or False, not {self.dynamic!r}")
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
