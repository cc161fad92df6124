"""Calls of rows on whole arrays as C++: by the row's own text, or through Python.

In: a `Call` step. Out: a block that describes the arrays and computes the row:

    {
      const i64 words[] = {n0, 1, n0, 1};
      const npjit_array arrays[] = {{(char*)in[0], 12, 1, words + 0, words + 1}, ...};
      if (const int failed = api->host("sort 0 (0,)", arrays, 1, 1, 0)) return failed;
    }
"""

from __future__ import annotations

from npjit.codegen.cpp_names import Names
from npjit.codegen.cpp_text import Writer
from npjit.core.dtypes import is_brain
from npjit.schedule.plan import Call, Strided


def spec(step: Call) -> str:
    """What Python computes, as text: the row's name, which results, and the row's params."""
    wanted = ",".join(str(k) for k, _ in step.results)
    return f"{step.op.name} {wanted} {step.params!r}"


class CallPrinter:
    """Prints one step."""

    def __init__(self, step: Call, names: Names) -> None:
        self.step = step
        self.size = names.size
        self.pointer = names.pointer
        self.words: list[str] = []

    def print(self, writer: Writer) -> None:
        """The block."""
        step = self.step
        arrays = [self._array(a) for a in (*step.arguments, *(r for _, r in step.results))]
        with writer.block(""):
            writer.line(f"const i64 words[] = {{{', '.join(self.words or ['0'])}}};")
            writer.line(f"const npjit_array arrays[] = {{{', '.join(arrays)}}};")
            writer.line(self._native() if step.op.c else self._host())

    def _array(self, array: Strided) -> str:
        start = f"(char*)({self.pointer(array.place, 'char')})"
        if array.offset != 0:
            start += f" + ({self.size(array.offset)}) * {array.dtype.itemsize}"
        shape = len(self.words)
        self.words += [self.size(n) for n in (*array.shape, *array.strides)]
        rank = len(array.shape)
        number = -1 if is_brain(array.dtype) else array.dtype.num
        return f"{{{start}, {number}, {rank}, words + {shape}, words + {shape + rank}}}"

    def _native(self) -> str:
        step = self.step
        text = step.op.c
        if callable(text):
            (_, result), *_ = step.results
            text = text(step.params, [a.dtype for a in step.arguments], result.dtype)
        return f"{text};"

    def _host(self) -> str:
        step = self.step
        text = spec(step).replace("\\", "\\\\").replace('"', '\\"')
        counts = (
            f"{len(step.arguments)}, {len(step.results)}, {step.number if step.op.raises else 0}"
        )
        call = f'api->host("{text}", arrays, {counts})'
        return f"if (const int failed = {call}) return failed;"
