"""What names mean in traced code: globals and modules as the function sees them while it is traced.

A function is traced by running its own code object with `TracedGlobals` in place of its module's
dictionary: each load looks the name up in the real module and hands it to the `Outside`, which
turns it into a traced value and records the guard. Nothing in NumPy or in the user's modules is
patched; other threads see nothing.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from npjit.frontend.jumps import CONTROL
from npjit.frontend.library import is_library
from npjit.ops.errors import NotCaptured

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside

_OWN = frozenset(["__builtins__", "__name__", CONTROL])


class TracedGlobals(dict):  # type: ignore[type-arg]
    """A function's globals while it is traced: loads go to the real dictionary, through the
    Outside.
    """

    def __init__(self, outside: Outside, real: dict[str, Any]) -> None:
        super().__init__(__builtins__=outside.builtins, __name__=real.get("__name__", ""))
        self.outside = outside
        self.real = real
        # what rewritten control flow calls
        super().__setitem__(CONTROL, outside.control)

    def __getitem__(self, name: str) -> Any:
        if name in _OWN:
            return super().__getitem__(name)
        try:
            value = self.real[name]
        except KeyError:
            # a builtin, until the module gets a global of its name
            self.outside.capture.step(("global", self.real, name), ("absent",))
            raise
        return self.outside.read(value, ("global", self.real, name))


class TracedModule:
    """A module while tracing: attributes are read through the Outside, stores are refused."""

    def __init__(self, outside: Outside, module: ModuleType, step: int) -> None:
        object.__setattr__(self, "_npjit_outside", outside)
        object.__setattr__(self, "_npjit_module", module)
        object.__setattr__(self, "_npjit_step", step)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_npjit_") or name == "__class__":
            return object.__getattribute__(self, name)
        return _member(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotCaptured(f"a store into a module (.{name})")

    def __delattr__(self, name: str) -> None:
        raise NotCaptured(f"a store into a module (del .{name})")


def _member(module: TracedModule, name: str) -> Any:
    outside, real = module._npjit_outside, module._npjit_module
    value = getattr(real, name)
    if not is_library(real):
        return outside.read(value, ("attr", module._npjit_step, name))
    # np.pi, np.newaxis, np.sin: these never change, so that no guard is needed
    if isinstance(value, ModuleType):
        return outside.module(value)
    if value is None or isinstance(value, (int, float, str)):
        return value
    return outside.read(value, ("root", value))
