"""Plans as CUDA: one source with the functions of all kernels, and what to start for each launch.

In: a `Plan`. Out: a `CudaModule`. Its functions are templates over index type, lanes of a thread
and alignment, so a module compiles only those that actual sizes ask for:

    module = print_cuda(plan)
    module.source                      # template <class idx, i32 V, u64 A> __global__ void k0(...)
    module.configure(0, (1000,), {})   # Configured((Start("k0<i32, 4, 0x24ull>", (2, 1), 128),))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npjit.codegen.cpp_form import Form, choose
from npjit.codegen.cuda_blocked import BlockedPrinter, is_paired
from npjit.codegen.cuda_calls import routines_text
from npjit.codegen.cuda_columns import ColumnsPrinter
from npjit.codegen.cuda_held import HeldPrinter, can_hold
from npjit.codegen.cuda_kernel import CudaPrinter
from npjit.codegen.cuda_launch import Configured, Request
from npjit.codegen.cuda_map import MapPrinter
from npjit.codegen.cuda_prelude import cuda_prelude
from npjit.codegen.cuda_rows import RowsPrinter
from npjit.codegen.cuda_tile import TilePrinter, turned_axis
from npjit.codegen.cuda_trips import Trips, TripsPrinter, with_trips
from npjit.schedule.kernel import Kernel
from npjit.schedule.plan import Plan

# how the text must be compiled: no fused multiply-add, every function for the device
OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space")


@dataclass(frozen=True)
class CudaModule:
    """The text of a plan's kernels, and their host sides."""

    source: str
    kernels: tuple[CudaPrinter, ...]
    # the plan with loops inside kernels, and which kernels these are
    plan: Plan
    trips: Mapping[int, Trips]

    def configure(
        self, kernel: int, sizes: Sequence[int], addresses: Mapping[int, int]
    ) -> Configured:
        """What to start for one launch of a kernel: its sizes, and the addresses of its buffers."""
        printer = self.kernels[kernel]
        return printer.configure(Request(printer.kernel, sizes, addresses))


def print_cuda(plan: Plan) -> CudaModule:
    """The module of a plan."""
    plan, trips = with_trips(plan)
    kernels = tuple(
        TripsPrinter(trips[i], f"k{i}") if i in trips else printer_for(k, f"k{i}")
        for i, k in enumerate(plan.kernels)
    )
    text = "\n".join([routines_text(plan), *(k.print() for k in kernels)])
    return CudaModule(f"{cuda_prelude(text)}\n{text}", kernels, plan, trips)


def printer_for(kernel: Kernel, name: str) -> CudaPrinter:
    """The printer of the kernel's form."""
    form = choose(kernel)
    if form is Form.MAP:
        return (
            MapPrinter(kernel, name) if turned_axis(kernel) is None else TilePrinter(kernel, name)
        )
    plain = _reducing(kernel, name, form)
    return BlockedPrinter(kernel, name, plain) if is_paired(kernel) else plain


def _reducing(kernel: Kernel, name: str, form: Form) -> CudaPrinter:
    has_rows = any(b.role == "row" for b in kernel.buffers)
    if form in (Form.COLUMNS, Form.LANES) and not has_rows:
        return ColumnsPrinter(kernel, name)
    return HeldPrinter(kernel, name) if can_hold(kernel) else RowsPrinter(kernel, name)
