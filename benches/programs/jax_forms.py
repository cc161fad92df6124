"""The programs as a JAX user writes them, each by the algorithm of its definition.

In: nothing. Out: `FORMS` by name, and `LEFT_OUT`: why a program has none.

    FORMS["lu"](*FORMS["lu"].prepare(arguments))
"""

from __future__ import annotations

from benches.programs import (
    jax_linear_algebra,
    jax_physics,
    jax_sciences,
    jax_signals,
    jax_stencils,
)
from benches.programs.jax_form import JaxForm

_MODULES = (jax_linear_algebra, jax_stencils, jax_physics, jax_signals, jax_sciences)

FORMS = {
    form.name: form
    for module in _MODULES
    for form in vars(module).values()
    if isinstance(form, JaxForm)
}
LEFT_OUT = {
    "ising": "one spin a step",
    "crc16": "one bit a step",
    "nussinov": "one cell of a table a step, over ranges of any length",
    "bubble_sort": "one exchange a step",
}
