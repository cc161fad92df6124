"""Numbers that are Python's in some runs and NumPy's in others, as the data decides.

    s = 1.0
    if x[0] > 0:
        s = x[0] * 2.0        # float, or np.float64

Compiled code carries NumPy's. The block remembers Python's type (`Block.either`), and an operation
whose element types would be others with that one ends the trace: of a float32 array, `x * s` is
float32 with a float and float64 with an np.float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.ops.errors import NotCaptured

PythonType = type[int] | type[float] | type[complex]
PYTHON_TYPES: dict[str, PythonType] = {"i": int, "u": int, "f": float, "c": complex}
_CLIMBING = (int, float, complex)


class TwoReadings(NotCaptured):
    """The element types of an operation depend on whether a number is Python's or NumPy's."""


def rule_entry(node: Node) -> Any:
    """What NumPy's promotion sees of an operand: a dtype, or int / float / complex for a Python
    scalar.
    """
    return rule_entry_of(node.type)


def rule_entry_of(type_: TensorType) -> Any:
    """`rule_entry` of a value of this type."""
    if type_.weight is Weight.WEAK and type_.dtype.kind in PYTHON_TYPES:
        return PYTHON_TYPES[type_.dtype.kind]
    return type_.dtype


def python_type(block: Block, node: Node) -> PythonType | None:
    """Python's type of a number that is, or may be, Python's own."""
    entry = rule_entry(node)
    return entry if isinstance(entry, type) else block.either.get(node)


def wider(*types: PythonType | None) -> PythonType | None:
    """The widest of Python's types; None of none."""
    return max((t for t in types if t is not None), key=_CLIMBING.index, default=None)


def mark(block: Block, node: Node, python: PythonType | None) -> Node:
    """Remember that a NumPy scalar may be a number of this type of Python's."""
    if python is not None and node.type.weight is Weight.SCALAR:
        block.either[node] = python
    return node


def entries_of(block: Block, nodes: Sequence[Node], find: Callable[[tuple[Any, ...]], Any]) -> Any:
    """`find` of the operands' rule entries; TwoReadings when others may hold and give another
    answer.
    """
    found = find(tuple(map(rule_entry, nodes)))
    if any(n in block.either for n in nodes):
        options = [
            (rule_entry(n), block.either[n]) if n in block.either else (rule_entry(n),)
            for n in nodes
        ]
        if any(find(entries) != found for entries in product(*options)):
            raise TwoReadings("a dtype depends on whether a number is Python's or NumPy's")
    return found
