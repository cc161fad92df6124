"""The values of a kernel as C++ expressions.

In: a kernel, and the number of one of its values. Out: the variable that holds the value, or the
text of a constant; complex values are two variables, one for each plane.

    v4: float64       whole(4)  ->  "v4"
    v5: complex128    parts(5)  ->  "v5r", "v5i"
"""

from __future__ import annotations

from npjit.codegen.cpp_types import constant, ctype, is_complex, plane, planes
from npjit.schedule.kernel import Apply, Const, DType, Inside, Instr, Kernel, Load, Reduce, Store


class Values:
    """How C++ refers to each value of a kernel: a name, or the text of a constant."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.instructions: dict[int, Instr] = dict(kernel.instructions())

    def dtype(self, number: int) -> DType:
        """The element type of a value."""
        instr = self.instructions[number]
        assert not isinstance(instr, Store), "a store has no value"
        return instr.dtype

    def whole(self, number: int) -> str:
        """A value as one expression; complex ones as an aggregate."""
        if is_complex(self.dtype(number)):
            re, im = self.parts(number)
            return f"{ctype(self.dtype(number))}{{{re}, {im}}}"
        instr = self.instructions[number]
        return constant(instr.value) if isinstance(instr, Const) else f"v{number}"

    def parts(self, number: int) -> tuple[str, str]:
        """The planes of a complex value."""
        instr = self.instructions[number]
        return planes(instr.value) if isinstance(instr, Const) else (f"v{number}r", f"v{number}i")

    def converted(self, number: int, dtype: DType) -> str:
        """A value as an expression of another dtype."""
        text = self.whole(number)
        return text if self.dtype(number) == dtype else f"nj_cast<{ctype(dtype)}>({text})"

    def names(self, number: int) -> list[tuple[str, str]]:
        """(type, name) of the variables that hold a value."""
        dtype = self.dtype(number)
        if is_complex(dtype):
            return [(plane(dtype), name) for name in self.parts(number)]
        return [(ctype(dtype), f"v{number}")]


def operands(instr: Instr) -> tuple[int, ...]:
    """The values that an instruction uses."""
    if isinstance(instr, Apply):
        return instr.args
    if isinstance(instr, Inside | Reduce):
        return (instr.arg,)
    if isinstance(instr, Load):
        return tuple(v for v, _ in instr.access.gathers)
    if isinstance(instr, Store):
        return (instr.value, *(v for v, _ in instr.access.gathers))
    return ()
