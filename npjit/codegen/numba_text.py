"""Values and expressions as Python for Numba.

In: instructions of a kernel, and the C texts of rows. Out: statements with the same meaning; every
value is rounded to its type, since Numba itself would widen narrow integers:

    python("nj_cast<f32>({0})", [np.dtype("f8")])  ->  "f32({0})"
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from npjit.codegen.cpp_phase import PhasePrinter, condition, row_text
from npjit.codegen.cpp_types import ctype, factor, is_complex, size
from npjit.codegen.cpp_values import Values
from npjit.codegen.numba_prelude import NoNumbaText, check
from npjit.core.op import Literal
from npjit.schedule.kernel import (
    Access,
    Apply,
    Bound,
    Const,
    Coordinate,
    DType,
    Extent,
    Inside,
    Instr,
    Load,
    Scalar,
    Store,
)

_CAST = re.compile(r"nj_cast<(\w+)>\((\{(\d)\}|[^()]*)\)")
_C_CAST = re.compile(r"\((\w\d+)\)(\{\d\})")
_CALL = re.compile(r"\bnj_\w+")
_BOOL = re.compile(r"\b(true|false)\b")
_COMPLEX_TROUBLE = re.compile(r"\} (/|<|>|<=|>=) \{")
_DTYPES = {ctype(np.dtype(code)): np.dtype(code) for code in "?bhiqBHIQfdFD"}


class NumbaValues(Values):
    """How Python refers to each value; complex numbers are single variables."""

    def whole(self, number: int) -> str:
        instr = self.instructions[number]
        return literal(instr.value) if isinstance(instr, Const) else f"v{number}"

    def parts(self, number: int) -> tuple[str, str]:
        return f"({self.whole(number)}).real", f"({self.whole(number)}).imag"


class NumbaPhase(PhasePrinter):
    """A phase's statements as Python."""

    def _define(self, number: int, instr: Instr) -> list[str]:
        return [f"v{number} = {self._value(instr)}"]

    def _value(self, instr: Instr) -> str:
        if isinstance(instr, Apply):
            return self._applied(instr)
        if isinstance(instr, Load):
            element = self._element(instr.access)
            return _held(instr.within, element, instr.dtype)
        if isinstance(instr, Inside):
            return _held(instr.within, self.values.whole(instr.arg), instr.dtype)
        if isinstance(instr, Coordinate):
            at = f"{size(instr.start)} + {factor(instr.step)} * x{instr.axis}"
            return f"{ctype(instr.dtype)}({at})"
        if isinstance(instr, Extent):
            return f"{ctype(instr.dtype)}({size(instr.size)})"
        assert isinstance(instr, Scalar)
        return f"{ctype(instr.dtype)}(arg{instr.number})"

    def _applied(self, instr: Apply) -> str:
        dtypes = [self.values.dtype(a) for a in instr.args]
        text = row_text(instr.op, instr, dtypes)
        kind = ctype(instr.dtype)
        places, named = self._places(instr.args)
        if isinstance(text, tuple):
            both = [python(t, dtypes).format(*places, **named) for t in text]
            return f"{kind}(complex({', '.join(both)}))"
        return f"{kind}({python(text, dtypes).format(*places, **named)})"

    def _store(self, instr: Store) -> list[str]:
        return [f"{self._element(instr.access)} = {self.values.whole(instr.value)}"]

    def _element(self, access: Access) -> str:
        is_row = self.values.kernel.buffers[access.buffer].role == "row"
        base = "" if is_row else f"at{access.buffer} + "
        return f"mem{access.buffer}[{base}{self._index(access)}]"


def literal(value: Literal) -> str:
    """One element as a typed Python expression."""
    number = value.value
    dtype = np.dtype(value.dtype)
    if dtype.kind == "c":
        return f"{ctype(dtype)}(complex({_real(number.real)}, {_real(number.imag)}))"
    return f"{ctype(dtype)}({_real(number) if dtype.kind == 'f' else int(number)})"


def _real(number: float) -> str:
    return repr(float(number)).replace("nan", "np.nan").replace("inf", "np.inf")


def cast(text: str, source: DType, target: DType) -> str:
    """A value converted as NumPy (and nj_cast) converts it."""
    if source == target:
        return text
    if is_complex(source) and not is_complex(target) and target.kind != "b":
        return cast(f"({text}).real", np.dtype(f"f{source.itemsize // 2}"), target)
    if target.kind == "b":
        return f"({text} != 0)"
    kind = ctype(target)
    if source.kind == "f" and target.kind in "iu":
        if kind == "u64":
            return f"nj_float_to_u64({text})"
        through = "i32" if target.itemsize < 4 else "i64" if kind == "u32" else ""
        return f"{kind}({through}({text}))" if through else f"{kind}({text})"
    return f"{kind}({text})"


def python(text: str, dtypes: Sequence[DType]) -> str:
    """A row's C expression as a Python one."""

    def convert(match: re.Match[str]) -> str:
        target = _DTYPES[match[1]]
        source = dtypes[int(match[3])] if match[3] else np.dtype("i8")
        return cast(match[2], source, target)

    text = _C_CAST.sub(r"\1(\2)", _CAST.sub(convert, text))
    kinds = "".join(sorted({d.kind for d in dtypes}))
    for name in _CALL.findall(text):
        check(name, "f" if name == "nj_float_to_u64" else kinds)
    if "c" in kinds and _COMPLEX_TROUBLE.search(text):
        raise NoNumbaText("Numba divides and orders complex numbers in its own way")
    text = text.replace("&&", " and ").replace("||", " or ")
    text = _BOOL.sub(lambda match: match[0].capitalize(), text)
    text = re.sub(r"!(?!=)", "not ", text)
    if "?" in text:
        head, _, rest = text.partition("?")
        yes, _, no = rest.partition(":")
        return f"({yes.strip()}) if ({head.strip()}) else ({no.strip()})"
    return text


def _held(within: Sequence[Bound], value: str, dtype: DType) -> str:
    held = condition(within)
    return f"({value}) if {held} else {ctype(dtype)}(0)" if held else value
