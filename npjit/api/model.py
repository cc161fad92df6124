"""Jitted callable objects: calls are compiled, everything else is the object's own."""

from __future__ import annotations

from typing import Any

from npjit.api.jit import Jitted
from npjit.api.options import Options

_OWN = frozenset(vars(Jitted)) | frozenset(
    ("function options compiled refusals original miss entries add remove clear count counts run "
     "explain_miss _policy _lock _warned __dict__ __wrapped__ _model").split()
)


class JittedObject(Jitted):
    """An object with `__call__`, compiled; attributes, methods and isinstance pass through to the object."""

    def __init__(self, model: Any, options: Options) -> None:
        object.__setattr__(self, "_model", model)
        super().__init__(model, options)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return type(object.__getattribute__(self, "_model"))

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN or (name.startswith("__") and name.endswith("__")):
            return super().__getattribute__(name)
        return getattr(object.__getattribute__(self, "_model"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._model, name, value)

    def __reduce__(self) -> Any:
        from npjit.api.jit import jit_any

        return (jit_any, (self._model, self.options))
