"""What a JAX form is: a jitted function that returns new values where NumPy's program updates.

In: a function of the program's name and parameters. Out: a `JaxForm`:

    @natural(updates="x")
    def trisolv(L, x, b): ...  # returns the new x

It returns what the program returns, if that is not None, and then the new value of each parameter
named in `updates`. `static` names the parameters that fix a shape.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from benches.programs.form import Form, Values

# as the programs: NumPy's types
jax.config.update("jax_enable_x64", True)


@dataclass(frozen=True)
class JaxForm(Form):
    name: str = ""
    updates: tuple[int, ...] = ()

    def __call__(self, *arguments: Any) -> Any:
        return jax.block_until_ready(self.call(*arguments))

    def prepare(self, arguments: Values) -> Values:
        """Arrays on JAX's device."""
        placed = [jax.device_put(x) if isinstance(x, np.ndarray) else x for x in arguments]
        return tuple(jax.block_until_ready(placed))

    def given(self, result: Any, arguments: Values) -> Values:
        values: Values = jax.tree.map(np.asarray, (result,))
        return values

    def wanted(self, result: Any, arguments: Values) -> Values:
        returned = () if result is None else (result,)
        return (*returned, *(arguments[k] for k in self.updates))


def natural(*, static: str = "", updates: str = "") -> Callable[[Callable[..., Any]], JaxForm]:
    def made(function: Callable[..., Any]) -> JaxForm:
        places = list(inspect.signature(function).parameters).index
        jitted = jax.jit(function, static_argnums=tuple(map(places, static.split())))
        changed = tuple(map(places, updates.split()))
        return JaxForm(jitted, name=function.__name__, updates=changed)

    return made
