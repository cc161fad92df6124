"""Writes docs/coverage.md: which of NumPy's names are compiled, read off the table of operations.

In: the table. Out: the page; `python docs/coverage.py` writes it, a test compares it.
"""

import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import numpy as np

import npjit.ops  # noqa: F401 (fills the table)
from npjit.ops import kinds
from npjit.ops.namespace import traced_namespace

PAGE = Path(__file__).with_name("coverage.md")
VERSION = ".".join(np.__version__.split(".")[:2])
MODULES = (np, np.linalg, np.fft)
_ARRAY_FUNCTION = type(np.sum)

HEAD = f"""# Which NumPy functions are compiled

Read off the table of operations (`npjit/ops`) by `python docs/coverage.py`, for NumPy {VERSION}.
A call of anything else stays Python, with one warning that names it. A name here means
that the function is known; one of its rarer arguments may still be refused, which is told in the
same way.
"""


def public(module: ModuleType) -> dict[str, object]:
    return {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}


def paragraph(names: Iterable[str]) -> str:
    words = " ".join(f"`{name}`" for name in sorted(set(names)))
    return textwrap.fill(words, 100, break_long_words=False, break_on_hyphens=False)


def ufuncs(differentiable: bool | None) -> list[str]:
    """Names of elementwise rows: with a gradient, with a gradient of zero (None), without one."""
    found = []
    for name, value in public(np).items():
        op = kinds.UFUNCS.get(value) if isinstance(value, np.ufunc) else None
        if op is not None:
            state = None if op.flat else op.vjp is not None
            found += [name] if state is differentiable else []
    return found


def is_known(name: str, value: object) -> bool:
    in_table = value in kinds.UFUNCS or value in kinds.FUNCTIONS
    return in_table or name in traced_namespace()


def functions(module: ModuleType, known: bool) -> list[str]:
    """Names of functions that take arrays, and of ufuncs that are no elementwise rows."""
    return [
        name
        for name, value in public(module).items()
        if isinstance(value, _ARRAY_FUNCTION | np.ufunc)
        and value not in kinds.UFUNCS
        and is_known(name, value) == known
    ]


def page() -> str:
    parts = [
        HEAD,
        "## Elementwise functions",
        "With gradients:",
        paragraph(ufuncs(True)),
        "With a gradient of zero (or none asked for, as of integers):",
        paragraph(ufuncs(None)),
    ]
    if ufuncs(False):
        parts += ["Without a gradient:", paragraph(ufuncs(False))]
    for module in MODULES:
        parts += [f"## {module.__name__}", paragraph(functions(module, True))]
    parts += ["## Making arrays", paragraph(n for n in traced_namespace() if hasattr(np, n))]
    parts += ["## Methods and attributes of arrays", paragraph([*kinds.METHODS, *kinds.ATTRIBUTES])]
    parts += ["## What runs as NumPy"]
    for module in MODULES:
        left = functions(module, False)
        parts += [f"{module.__name__}:", paragraph(left)] if left else []
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
