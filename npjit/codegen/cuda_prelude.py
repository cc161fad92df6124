"""The CUDA prelude: the functions that printed kernels call, for the device.

In: the text of a module. Out: what it needs, ready to paste in front. Most of it is the C++
prelude's own text; the cuda_*.h headers hold what differs on the device, and their paragraphs stand
for those that define the same names:

    cuda_prelude("... v1 = nj_floor_divide(v0, s0); v2 = nj_sin(v3); ...")
        types.h, nj_floor_divide of integer.h, and
        NJ_INLINE f32 nj_sin(f32 x) { return sinf(x); }
"""

from __future__ import annotations

import functools

from npjit.codegen.prelude import Paragraph, parse, select
from npjit.codegen.prelude.headers import BRAIN, texts_of

_COMPLEX = frozenset({"cplx", "c64", "c128"})
_HALF = frozenset({"f16"})
# every header in the order of its text, with the types that a module must mention to get it
_HEADERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("types.h", frozenset()),
    ("cuda_base.h", frozenset()),
    ("cuda_lanes.h", frozenset()),
    ("cuda_join.h", frozenset()),
    ("cuda_usual.h", frozenset()),
    ("core.h", frozenset()),
    ("integer.h", frozenset()),
    ("float.h", frozenset()),
    ("math.h", frozenset()),
    ("reduce.h", frozenset()),
    ("cuda_half.h", _HALF),
    ("half.h", _HALF),
    ("cuda_half.h", BRAIN),
    ("half.h", BRAIN),
    ("complex.h", _COMPLEX),
    ("cuda_complex.h", _COMPLEX),
    ("cuda_scan.h", frozenset()),
    ("cuda_tensor.h", frozenset()),
    ("cuda_boxes.h", frozenset()),
    ("cuda_product.h", frozenset()),
    ("cuda_attention.h", frozenset()),
    ("cuda_attention_gradient.h", frozenset()),
    ("cuda_scatter.h", frozenset()),
    ("cuda_copy.h", frozenset()),
)
# behind this header stand the functions of _MATH
_BEFORE_MATH = "types.h"
# NumPy's names of functions that CUDA has for float and double, all within 4 units in the last
# place
_MATH = {
    **{
        n: n
        for n in [
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
        ]
    },
    **{n: n for n in ["cbrt", "erf", "erfc"]},
    **{f"arc{n}": f"a{n}" for n in ["sin", "cos", "tan", "sinh", "cosh", "tanh"]},
}
_MATH_OF_TWO = {"arctan2": "atan2", "power": "pow", "hypot": "hypot"}


def cuda_prelude(code: str) -> str:
    """The part of the prelude that a module's text needs."""
    return select(code, _paragraphs())


@functools.cache
def _paragraphs() -> tuple[Paragraph, ...]:
    read = [(name, _read(name, types)) for name, types in _HEADERS]
    own: dict[frozenset[str], set[str]] = {}
    for name, found in read:
        if name.startswith("cuda_"):
            for p in found:
                own.setdefault(p.types, set()).update(p.defines)
    kept: list[Paragraph] = []
    for name, paragraphs in read:
        is_device = name.startswith("cuda_")
        kept += [p for p in paragraphs if is_device or not public(p) <= own.get(p.types, set())]
        if name == _BEFORE_MATH:
            kept += _math()
    return tuple(kept)


def public(paragraph: Paragraph) -> frozenset[str]:
    """The names that a paragraph defines for others; libm's functions are its own affair if there
    are more."""
    names = frozenset(n for n in paragraph.defines if not n.startswith("nj_lib_"))
    return names or paragraph.defines


def _math() -> list[Paragraph]:
    """NumPy's names for CUDA's functions."""
    found = []
    for arguments, names in (("x", _MATH), ("x, y", _MATH_OF_TWO)):
        for name, cuda in names.items():
            lines = []
            for kind, suffix in (("f32", "f"), ("f64", "")):
                given = ", ".join(f"{kind} {a}" for a in arguments.split(", "))
                body = f"return {cuda}{suffix}({arguments});"
                lines.append(f"NJ_INLINE {kind} nj_{name}({given}) {{ {body} }}")
            found.append(parse("\n".join(lines), frozenset()))
    return found


def _read(name: str, types: frozenset[str]) -> list[Paragraph]:
    return [parse(text, types) for text in texts_of(name, types)]
