"""COLUMNS kernels in strips of a few vectors, whose lanes stay in registers through all phases.

In: a `Kernel` with one outer axis. Out: the functions of `cpp_columns`, and beside them

    k0_near<N>(...)   all phases for N lanes, in arrays that the compiler keeps in registers

A last vector that is not full does some lanes twice and leaves them out of its stores. A small
literal number of lanes is one strip of just so many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from npjit.codegen.cpp_columns import ColumnsPrinter
from npjit.codegen.cpp_kernel import width
from npjit.schedule.kernel import Store

# lanes that are one strip: vectors of the narrowest machine
_FEW = 16


class NearPrinter(ColumnsPrinter, ABC):
    """Forms decide when such strips pay."""

    @abstractmethod
    def when_near(self) -> str:
        """The condition for strips of a few vectors; empty for never."""

    def near_functions(self) -> None:
        if not (self.few or self.when_near()):
            return
        w = self.writer
        head = f"template <i64 N> static __attribute__((flatten)) void {self.name}_near"
        with w.block(f"{head}(const {self.name}_args& a, i64 from, i64 count, i64 skip)"):
            self.locals()
            w.line("const i64 to = from + (N > 0 ? N : count);")
            self.lanes_in_registers("w")
            for p in self.phases:
                if p is self.phases[-1] and self._may_skip():
                    w.line(f"{self.name}_lanes later = w;")
                    w.lines(f"later.{name} += skip;" for _, name in self.arrays_of_lanes())
                    w.line(f"{self.name}_p{p.number}(a, later, later, from + skip, to, 0, 1);")
                else:
                    w.line(f"{self.name}_p{p.number}(a, w, w, from, to, 0, {self.steps(p)});")

    def lanes_in_registers(self, name: str) -> None:
        """Declare arrays over the lanes of a strip that the compiler keeps in registers."""
        w = self.writer
        w.line(f"{self.name}_lanes {name};")
        for kind, array in self.arrays_of_lanes():
            w.line(f"{kind} {array}[{self.few or f'4 * {self._vector()}'}];")
            w.line(f"{name}.{array} = {array};")

    @property
    def few(self) -> int:
        """How many lanes there are, where that is a small literal; else 0."""
        extent = self.kernel.axes[self.axis].extent
        if not isinstance(extent, int) or len(self.kernel.outer) > 1 or self.row_buffers:
            return 0
        return extent if extent <= _FEW else 0

    def strip_near(self) -> bool:
        w = self.writer
        near, vector = f"{self.name}_near", self._vector()
        if self.few:
            w.line(f"if (end - begin == {self.few}) {near}<{self.few}>(a, 0, 0, 0);")
            w.line(f"else {near}<0>(a, begin, end - begin, 0);")
            return True
        condition = self.when_near()
        if not condition:
            return False
        strip = f"4 * {vector}"
        with w.block(f"if ({condition})"):
            w.line("i64 from = begin;")
            with w.block(f"for (; from + {strip} <= end; from += {strip})"):
                w.line(f"{near}<{strip}>(a, from, 0, 0);")
            if self._may_skip():
                w.line("// whole vectors, whose first lanes are done already")
                with w.block(f"if (end - from > {vector} && end - begin >= {strip})"):
                    w.line(f"{near}<{strip}>(a, end - {strip}, 0, from + {strip} - end);")
                    w.line("return;")
            with w.block(f"for (; from + {vector} <= end; from += {vector})"):
                w.line(f"{near}<{vector}>(a, from, 0, 0);")
            rest = f"if (from < end) {near}<0>(a, from, end - from, 0);"
            if self._may_skip():
                with w.block(f"if (from < end && end - begin >= {vector})"):
                    w.line(f"{near}<{vector}>(a, end - {vector}, 0, from + {vector} - end);")
                rest = f"else {rest}"
            w.line(rest)
            w.line("return;")
        return False

    def _may_skip(self) -> bool:
        """Whether lanes may be computed a second time and then left out of what is stored: only the
        last phase stores, and does no more than that."""
        *first, last = self.phases
        stores = any(isinstance(i, Store) for p in first for _, i in p.phase.body)
        return not last.phase.axes and not stores

    def _vector(self) -> str:
        """Lanes of a vector of the widest values that wait in arrays."""
        widest = max((kind for kind, _ in self.arrays_of_lanes()), key=width, default="f64")
        return f"NJ_LANES({widest})"
