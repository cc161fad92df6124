"""Squared distances from the mean in short runs: what a thread adds up before it joins moments.

In: the folds of a phase. Out: a struct for a run of values, whose moments are those around its
first value, and the statements that take values in; joining moments value by value would divide
once for each. A run is so short, and its values so near each other, that float32 data need no
wider type there. Other folds are as they are:

    struct k0_fold0_run { k0_fold0 rest; i32 count1; f32 pivot1, first1, second1; ... };
    const f32 apart1 = v0 - part.pivot1;
    part.first1 += apart1;
    part.second1 = nj_fma(apart1, apart1, part.second1);
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npjit.codegen.cpp_reduce import Fold, MomentsFold
from npjit.codegen.cpp_text import Writer

_NAMES = {"f32": "f4", "f64": "f8"}


def has_moments(folds: Sequence[Fold]) -> bool:
    """Whether runs of values have a struct of their own."""
    return any(isinstance(f, MomentsFold) for f in folds)


def run_struct(writer: Writer, name: str, folds: Sequence[Fold]) -> None:
    """The struct of a run; `done` gives it as the struct `name` of the folds."""
    moments = {f.number: run_type(f) for f in folds if isinstance(f, MomentsFold)}
    with writer.block(f"struct {name}_run", "};"):
        writer.line(f"{name} rest;")
        for n, kind in moments.items():
            writer.lines([f"i32 count{n};", f"{kind} pivot{n}, first{n}, second{n};"])
        with writer.block("void start()"):
            writer.line("rest.start();")
            for n in moments:
                writer.line(f"count{n} = 0;")
                writer.line(f"pivot{n} = first{n} = second{n} = 0;")
        with writer.block(f"{name} done() const"):
            writer.line(f"{name} all = rest;")
            for n in moments:
                with writer.block(f"if (count{n} > 0)"):
                    writer.line(f"const f64 shift = (f64)first{n} / count{n};")
                    writer.line(f"const f64 squares = second{n} - first{n} * shift;")
                    writer.line(f"all.n{n} = count{n};")
                    writer.line(f"all.mean{n} = pivot{n};")
                    writer.line(f"all.low{n} = shift;")
                    writer.line(f"all.acc{n} = squares < 0 ? 0 : squares;")
            writer.line("return all;")


def take_into_run(f: MomentsFold, place: str) -> list[str]:
    """Statements that take one value into the run at `place`."""
    n = f.number
    kind = run_type(f)
    value = f.values.converted(f.instr.arg, np.dtype(_NAMES[kind]))
    return [
        f"const {kind} value{n} = {value};",
        f"{place}.pivot{n} = {place}.count{n} == 0 ? value{n} : {place}.pivot{n};",
        f"const {kind} apart{n} = value{n} - {place}.pivot{n};",
        f"++{place}.count{n};",
        f"{place}.first{n} += apart{n};",
        f"{place}.second{n} = nj_fma(apart{n}, apart{n}, {place}.second{n});",
    ]


def run_type(f: MomentsFold) -> str:
    """The type in which a run of values is added up."""
    dtype = f.values.dtype(f.instr.arg)
    return "f32" if dtype.kind == "f" and dtype.itemsize <= 4 else "f64"
