"""Plans as CUDA: one source with the functions of all kernels, and what to start for each launch.

In: a `Plan`. Out: a `CudaModule`. Its functions are templates over index type, lanes of a thread
and alignment, so a module compiles only those that actual sizes ask for:

    module = print_cuda(plan)
    module.source                      # template <class idx, i32 V, u64 A> __global__ void k0(...)
    module.configure(0, (1000,), {})   # Configured((Start("k0<i32, 4, 0x24ull>", (2, 1), 128),))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from npjit.codegen.cpp_form import Form, choose
from npjit.codegen.cuda_across import with_across
from npjit.codegen.cuda_ahead import with_ahead
from npjit.codegen.cuda_asked import AskedPrinter, with_questions
from npjit.codegen.cuda_blocked import BlockedPrinter, is_paired
from npjit.codegen.cuda_calls import routines_text
from npjit.codegen.cuda_columns import ColumnsPrinter
from npjit.codegen.cuda_held import HeldPrinter, can_hold
from npjit.codegen.cuda_kernel import CudaPrinter
from npjit.codegen.cuda_launch import UNTUNED, Configured, Request, Tuning
from npjit.codegen.cuda_map import MapPrinter
from npjit.codegen.cuda_pairs import with_pairs
from npjit.codegen.cuda_partners import PartnersPrinter, is_partnered
from npjit.codegen.cuda_persistent import PersistentPrinter
from npjit.codegen.cuda_prelude import cuda_prelude
from npjit.codegen.cuda_product import with_products
from npjit.codegen.cuda_roots import with_roots
from npjit.codegen.cuda_rows import RowsPrinter
from npjit.codegen.cuda_stencil import StencilPrinter, with_stencils
from npjit.codegen.cuda_tensor_tiles import ProductPrinter
from npjit.codegen.cuda_terms import JoinedPrinter
from npjit.codegen.cuda_tile import TilePrinter, turned_axis
from npjit.codegen.cuda_trips import TripsPrinter, with_trips
from npjit.schedule.kernel import Kernel
from npjit.schedule.plan import Plan

# how the text must be compiled: no fused multiply-add, every function for the device
OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--fmad=false")
# what `fastmath` puts in place of the last one
_CONTRACT = ("--fmad=true",)
_APPROX = (*_CONTRACT, "--ftz=true", "--prec-div=false", "--prec-sqrt=false")
_FAST = {"contract": (*OPTIONS[:-1], *_CONTRACT), "approx": (*OPTIONS[:-1], *_APPROX)}


@dataclass(frozen=True)
class CudaModule:
    """The text of a plan's kernels, and their host sides."""

    source: str
    kernels: tuple[CudaPrinter, ...]
    # the plan with several launches joined to one, and the printers of these kernels
    plan: Plan
    joined: Mapping[int, JoinedPrinter]
    options: tuple[str, ...] = OPTIONS
    # the kernels that ask something of every index, and can do so in another one
    questions: Mapping[int, AskedPrinter] = field(default_factory=dict)

    def configure(
        self,
        kernel: int,
        sizes: Sequence[int],
        addresses: Mapping[int, int],
        tuning: Tuning = UNTUNED,
    ) -> Configured:
        """What to start for one launch of a kernel: its sizes, and the addresses of its buffers."""
        printer = self.kernels[kernel]
        return printer.configure(Request(printer.kernel, sizes, addresses, tuning))


def print_cuda(plan: Plan, fastmath: str | None = None, tensor_tiles: bool = False) -> CudaModule:
    """The module of a plan; `tensor_tiles`: products may be part of kernels."""
    routines = routines_text(plan)
    if fastmath == "approx":
        plan = replace(plan, kernels=tuple(map(with_roots, plan.kernels)))
    plan, trips = with_trips(plan)
    plan, across = with_across(plan, trips)
    plan, pairs = with_pairs(plan, [*trips, *across])
    plan, stencils = with_stencils(plan, [*trips, *across, *pairs])
    exact = fastmath != "approx"
    taken = [*trips, *across, *pairs, *stencils]
    plan, products = with_products(plan, taken) if tensor_tiles else (plan, {})
    joined: dict[int, JoinedPrinter] = {
        **{i: TripsPrinter(t, f"k{i}") for i, t in trips.items()},
        **{i: PersistentPrinter(a, f"k{i}") for i, a in across.items()},
        **{i: _partners(plan.kernels[i], f"k{i}") for i in pairs},
        **{i: ProductPrinter(p, f"k{i}", exact) for i, p in products.items()},
    }
    windows = {i: StencilPrinter(s, f"k{i}") for i, s in stencils.items()}
    known: dict[int, CudaPrinter] = {**joined, **windows}
    questions = with_questions(plan)
    plan = with_ahead(plan, known)
    kernels = tuple(
        known.get(i) or printer_for(k, f"k{i}", exact) for i, k in enumerate(plan.kernels)
    )
    options = OPTIONS if fastmath is None else _FAST[fastmath]
    asking = (q.print() for q in questions.values())
    text = "\n".join([routines, *(k.print() for k in kernels), *asking])
    return CudaModule(f"{cuda_prelude(text)}\n{text}", kernels, plan, joined, options, questions)


def printer_for(kernel: Kernel, name: str, exact: bool) -> CudaPrinter:
    """The printer of the kernel's form; `exact`: divisions and roots are."""
    form = choose(kernel)
    if form is Form.MAP and turned_axis(kernel) is None:
        return MapPrinter(kernel, name, exact)
    if form is Form.MAP:
        return TilePrinter(kernel, name)
    plain = _reducing(kernel, name, form)
    if is_paired(kernel):
        return BlockedPrinter(kernel, name, plain)
    return PartnersPrinter(kernel, name, plain) if is_partnered(kernel) else plain


def _partners(kernel: Kernel, name: str) -> PartnersPrinter:
    return PartnersPrinter(kernel, name, _reducing(kernel, name, choose(kernel)))


def _reducing(kernel: Kernel, name: str, form: Form) -> CudaPrinter:
    has_rows = any(b.role == "row" for b in kernel.buffers)
    if form in (Form.COLUMNS, Form.LANES) and not has_rows:
        return ColumnsPrinter(kernel, name)
    return HeldPrinter(kernel, name) if can_hold(kernel) else RowsPrinter(kernel, name)
