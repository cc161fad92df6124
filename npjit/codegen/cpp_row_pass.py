"""Row passes as C++: all that is done with some rows of a matrix as one function of the rows.

In: a `RowPass` step. Out: a call of the prelude's nj_pass, and the same steps one by one for few
rows. Neighbours that multiply the same matrix from both sides are one loop over its elements:

    if (nj_suits_pass(api, n0, n1 + n1)) {
      const nj_columns<f64> totals[] = {{(f64*)arena, n1, 1}};
      const auto run = [=](i64 from, i64 to, f64* const* sums) {
        nj_add_across<true, f64>(to - from, n1, a + from * n1, n1, ..., sums[0], x, ...);
      };
      nj_pass<f64, 1>(api, n0, 8 * n1, n1 + n1, totals, run);
    }
    else {
      nj_matmul<f64>(...); nj_matmul<f64>(...);
    }
"""

from __future__ import annotations

from collections.abc import Callable

from npjit.codegen.cpp_form import per_item
from npjit.codegen.cpp_names import Names
from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_types import ctype
from npjit.core.size import Size, Var, product, substitute
from npjit.schedule.kernel import extents
from npjit.schedule.plan import Contract, Launch, RowPass, Strided, VectorProduct


class RowPassPrinter:
    """Prints one step. `one` prints a launch or product by itself, `some` a launch's items from and
    to."""

    def __init__(
        self,
        step: RowPass,
        names: Names,
        one: Callable[[Launch | Contract], None],
        some: Callable[[Launch, str, str], None],
    ) -> None:
        self.step = step
        self.kernels = names.plan.kernels
        self.size = names.size
        self.pointer = names.pointer
        self.one = one
        self.some = some
        self.products = [m for m in step.members if isinstance(m, VectorProduct)]
        self.totals = [p.result for p in self.products if p.across]
        self.kind = ctype(self.products[0].matrix.dtype)

    def print(self, w: Writer) -> None:
        """The call, and the steps one by one."""
        rows, work = self.size(self.step.rows), self.size(self._work())
        with w.block(f"if (nj_suits_pass(api, {rows}, {work}))"):
            with w.block(f"const nj_columns<{self.kind}> totals[] =", "};"):
                w.lines(
                    f"{{{self._start(t)}, {self.size(t.shape[0])}, {self.size(t.strides[0])}}},"
                    for t in self.totals
                )
                w.line("{nullptr, 0, 1},")
            given = f"i64 from, i64 to, {self.kind}* const* sums"
            with w.block(f"const auto run = [=]({given})", "};"):
                self._members(w)
            sizes = f"{rows}, {self.size(self._bytes())}, {work}"
            w.line(f"nj_pass<{self.kind}, {len(self.totals)}>(api, {sizes}, totals, run);")
        with w.block("else"):
            for step in self.step.apart:
                self.one(step)

    def _bytes(self) -> Size:
        """Bytes of a row of all matrices."""
        total: Size = 0
        for m in dict.fromkeys(p.matrix for p in self.products):
            total = total + m.shape[1] * m.dtype.itemsize
        return total

    def _work(self) -> Size:
        """Element operations of a row."""
        total: Size = 0
        for m in self.step.members:
            if isinstance(m, VectorProduct):
                total = total + m.matrix.shape[1]
            else:
                kernel = self.kernels[m.kernel]
                total = total + self._items(m) * per_item(kernel, kernel.phases)
        return total

    def _items(self, step: Launch) -> Size:
        """Items of a row of a launch."""
        kernel = self.kernels[step.kernel]
        sizes: dict[Var, Size] = {Var(f"s{k}"): s for k, s in enumerate(step.sizes)}
        return substitute(product(extents(kernel, kernel.outer[1:])), sizes)

    def _members(self, w: Writer) -> None:
        members = list(self.step.members)
        total = 0
        while members:
            m = members.pop(0)
            if isinstance(m, Launch):
                each = f"({self.size(self._items(m))})"
                self.some(m, f"from * {each}", f"to * {each}")
                continue
            pair = m if m.across else None
            other = members[0] if members else None
            if isinstance(other, VectorProduct) and _are_one(m, other):
                members.pop(0)
                m, pair = (other, m) if m.across else (m, other)
            w.line(f"{self._product(m, pair, total)};")
            total += pair is not None

    def _product(self, m: VectorProduct, across: VectorProduct | None, total: int) -> str:
        """One product, or both of a matrix."""
        a = m.matrix
        pitch = self.size(a.strides[0])
        given = ["to - from", self.size(a.shape[1]), self._row(a), pitch]
        along = [self._start(m.vector), self._row(m.result), self.size(m.result.strides[0])]
        if across is None:
            return f"nj_along<{self.kind}>({', '.join([*given, *along])})"
        both = across is not m
        if not both:
            along = ["nullptr", "nullptr", "0"]
        left = [self._row(across.vector), self.size(across.vector.strides[0]), f"sums[{total}]"]
        kind = f"{'true' if both else 'false'}, {self.kind}"
        return f"nj_add_across<{kind}>({', '.join([*given, *left, *along])})"

    def _row(self, array: Strided) -> str:
        """Where the first of the rows begins."""
        return f"{self._start(array)} + from * ({self.size(array.strides[0])})"

    def _start(self, array: Strided) -> str:
        start = self.pointer(array.place, self.kind)
        return f"{start} + {self.size(array.offset)}" if array.offset != 0 else start


def _are_one(one: VectorProduct, other: VectorProduct) -> bool:
    """Whether two products are of the same matrix, from both sides, and neither needs the other."""
    if one.matrix != other.matrix or one.across == other.across:
        return False
    along, across = (other, one) if one.across else (one, other)
    return along.result.place != across.vector.place or one.across
