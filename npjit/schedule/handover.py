"""Results that are computed where a copy would have brought them.

In: the parts of a block in running order, and what each touches. Out: the same without the copies
of a value into storage, where the step that makes the value can write there itself.

    x[...] = softmax(x)      softmax -> t;  t -> x      becomes      softmax -> x
    c = a @ b;  c[0] = 1     a @ b -> t;  t -> c;  ...  becomes      a @ b -> c;  ...

A step may write to what it reads when each element is read before it is overwritten (see
`memory`). Between the step and the copy nothing may touch the target, nor stop the plan: the
caller's arrays change only when all is known to be well.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from npjit.core.size import Var, product, substitute
from npjit.schedule.contract import Product
from npjit.schedule.items import Memory
from npjit.schedule.kernel import Kernel, Load, Store
from npjit.schedule.lower import Lowered
from npjit.schedule.memory import Use, overwrites_safely

Step = tuple[Any, Use]


def hand_over(
    steps: Sequence[Step], fixed: Collection[Memory], in_place: bool = False
) -> list[Step]:
    """The steps without needless copies; `fixed` memories hold inputs and outputs. `in_place`: a
    product may replace the rows that it multiplies."""
    users: dict[Memory, list[int]] = {}
    for k, (_, use) in enumerate(steps):
        for m in dict.fromkeys(use.memories):
            users.setdefault(m, []).append(k)
    found = list(steps)
    gone: set[int] = set()
    for k, (part, use) in enumerate(steps):
        if use.kernel is None or not _is_copy(use.kernel):
            continue
        source, target = use.memories
        if not _takes_all(part, source):
            continue
        if source in fixed or len(users[source]) != 2 or source[0].dtype != target[0].dtype:
            continue
        maker = users[source][0]
        made, given = found[maker]
        if (
            maker < k
            and _is_quiet(steps, maker, k, target)
            and _may_write(made, given, source, target, in_place)
        ):
            found[maker] = made, _renamed(given, source, target)
            gone.add(k)
            # whoever is asked about the target from now on finds its earlier writer
            users[target] = sorted({*users[target], maker} - {k})
    return [step for k, step in enumerate(found) if k not in gone]


def _is_copy(kernel: Kernel) -> bool:
    """Whether a kernel does nothing but bring each element of buffer 0 to its place in buffer 1."""
    body = [i for _, i in kernel.instructions()]
    if len(body) != 2 or len(kernel.buffers) != 2:
        return False
    load, store = body
    if not isinstance(load, Load) or not isinstance(store, Store) or load.within:
        return False
    return load.access == replace(store.access, buffer=load.access.buffer)


def _takes_all(copy: Lowered, source: Memory) -> bool:
    """Whether a copy takes every element of its source: the rest would have no room in the
    target."""
    inside = {Var(f"s{i}", None): size for i, size in enumerate(copy.sizes)}
    extents = [substitute(a.extent, inside) for a in copy.kernel.axes]
    return product(extents) == product(source[0].shape)


def _is_quiet(steps: Sequence[Step], maker: int, copy: int, target: Memory) -> bool:
    """Whether the steps between touch neither the target nor stop the plan."""
    between = steps[maker + 1 : copy]
    return all(isinstance(p, Lowered | Product) and target not in u.memories for p, u in between)


def _may_write(part: Any, use: Use, source: Memory, target: Memory, in_place: bool) -> bool:
    """Whether the step that makes the source can make it at the target's place."""
    if source not in use.written or not isinstance(part, Lowered | Product):
        return False
    if isinstance(part, Product) and part.step.spare != 0:
        return False
    if target not in use.memories:
        return True
    if isinstance(part, Product):
        return in_place and part.replaces_rows and use.memories[0] == target != use.memories[1]
    if use.kernel is None or target in use.written:
        return False
    buffers = list(use.memories)
    return overwrites_safely(use.kernel, buffers.index(target), buffers.index(source))


def _renamed(use: Use, source: Memory, target: Memory) -> Use:
    memories = tuple(target if m == source else m for m in use.memories)
    return Use(memories, use.written - {source} | {target}, use.kernel)
