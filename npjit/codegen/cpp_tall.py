"""COLUMNS kernels with few lanes and many steps: the threads share the steps of each phase.

In: a `Kernel` with one outer axis. Out: the functions of `cpp_columns`, and beside them

    k0_shared0(...)   a chunk of phase 0's steps for all lanes, into arrays of the chunk's own
    k0_join0(...)     folds the chunks' arrays into the caller's, in chunk order

so that every row of a tall matrix is read by one thread, whole.
"""

from __future__ import annotations

from npjit.codegen.cpp_columns import NARROWEST, WIDEST, ColumnsPhase
from npjit.codegen.cpp_form import GRAIN, cost
from npjit.codegen.cpp_near import NearPrinter

# more threads than this go back to strips
_THREADS = 256
# elements of a chunk whose rows stay in the cache from one strip of a few vectors to the next
_NEAR = 1 << 16


class TallPrinter(NearPrinter):
    """Strips, or shared steps when there are too few lanes for all threads. A little work in a loop
    of the plan is done on the spot, in strips of a few vectors, which stay in registers."""

    def when_near(self) -> str:
        steps = " + ".join(self.steps(p) for p in self.phases if p.phase.axes)
        return f"(end - begin) * ({steps}) <= {_NEAR}" if self.is_repeated else ""

    def shared_functions(self) -> None:
        w = self.writer
        with w.block(f"struct {self.name}_shared", "};"):
            w.line(f"const {self.name}_args* a;")
            w.line("// the caller's arrays, then one set for each chunk")
            w.line(f"const {self.name}_lanes* lanes;")
            w.line("i64 n;")
        for p in self.phases:
            if p.phase.axes:
                self._chunk_of_steps(p)
            if p.folds:
                self._join(p)

    def _chunk_of_steps(self, p: ColumnsPhase) -> None:
        w = self.writer
        own = "s.lanes[1 + chunk]" if p.folds else "s.lanes[0]"
        call = f"{self.name}_p{p.number}(*s.a, s.lanes[0]"
        with self.chunk(f"_shared{p.number}"):
            w.line(f"const {self.name}_shared& s = *(const {self.name}_shared*)context;")
            if not (self.few and p.folds):
                w.line(f"{call}, {own}, 0, s.n, begin, end);")
                return
            self.lanes_in_registers("w")
            w.line(f"{call}, w, 0, {self.few}, begin, end);")
            with w.block(f"for (i64 j = 0; j < {self.few}; ++j)"):
                kept = (name for f in p.folds for name in self.results(f))
                w.lines(f"{own}.{name}[j] = {name}[j];" for name in kept)

    def _join(self, p: ColumnsPhase) -> None:
        """A function that folds the chunks' arrays; it is never worth vectors."""
        w = self.writer
        given = f"const {self.name}_lanes* lanes, int chunks, i64 n"
        head = f"static __attribute__((cold)) void {self.name}_join{p.number}({given})"
        with w.block(head), w.block("for (i64 j = 0; j < n; ++j)"):
            for f in p.folds:
                cells = [f"lanes[0].{name}[j]" for name in self.results(f)]
                starts = zip(cells, f.initial(), strict=True)
                w.lines(f"{cell} = {start};" for cell, start in starts)
            with w.block("for (int c = 1; c <= chunks; ++c)"):
                for f in p.folds:
                    cells = [f"lanes[0].{name}[j]" for name in self.results(f)]
                    w.lines(f.take(cells, [f"lanes[c].{name}[j]" for name in self.results(f)]))

    def launch_shared(self) -> None:
        w = self.writer
        looping = [p for p in self.phases if p.phase.axes]
        least = " && ".join(f"{self.steps(p)} > n" for p in looping)
        w.line("const int threads = api->chunks(1ll << 40, 1);")
        few = f"n <= {WIDEST} && api->chunks(n, {NARROWEST}) < threads && threads <= {_THREADS}"
        with w.block(f"if (n > grain && {few} && {least})"):
            w.line(f"{self.name}_lanes lanes[{_THREADS + 1}];")
            w.line(f"const i64 bytes = {self.name}_carve(a, lanes[0], nullptr, n);")
            w.line("char* const memory = (char*)api->scratch(bytes * (threads + 1));")
            with w.block("for (int c = 0; c <= threads; ++c)"):
                w.line(f"{self.name}_carve(a, lanes[c], memory + c * bytes, n);")
            w.line(f"{self.name}_shared s = {{&a, lanes, n}};")
            for p in self.phases:
                self._run_shared(p)
            w.line("return;")

    def _run_shared(self, p: ColumnsPhase) -> None:
        w = self.writer
        if not p.phase.axes:
            w.line(f"{self.name}_p{p.number}(a, lanes[0], lanes[0], 0, n, 0, 1);")
            return
        with w.block(""):
            w.line(f"const i64 steps = {self.steps(p)};")
            w.line(f"const i64 each = 1 + {GRAIN // cost(p.phase)} / n;")
            w.line(f"api->parallel({self.name}_shared{p.number}, &s, steps, each);")
            if p.folds:
                w.line(f"{self.name}_join{p.number}(lanes, api->chunks(steps, each), n);")
