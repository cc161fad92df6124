"""np.einsum: reads the subscripts and works pairwise, left to right, through `contract`.

einsum("ij,jk", a, b)     is    contract(block, a, b, "ij", "jk", "ik", dtype)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.dtypes import accumulator_of
from npjit.core.graph import Block
from npjit.ops import build
from npjit.ops.contract import LETTERS, arrange, contract, sum_out
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import function
from npjit.ops.operands import as_array, common_dtype, deliver, dtype_of, find_block, result
from npjit.ops.tracer import Tracer


@function(np.einsum)
def einsum(
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    order: Any = "K",
    casting: Any = "safe",
) -> Any:
    """np.einsum."""
    if order != "K" or casting not in ("safe", "same_kind"):
        raise NotCaptured("np.einsum with order= or casting=")
    text, values = _as_text(operands)
    block = find_block(*values, out)
    arrays = [as_array(block, v) for v in values]
    inputs, output = parse(text, [a.ndim for a in arrays])
    pairs = [_without_repeats(block, a, x) for a, x in zip(arrays, inputs, strict=True)]
    wanted = dtype_of(dtype) or common_dtype(arrays[0].block, [a.node for a in arrays])
    if len(pairs) == 1:
        return deliver(out, _single(block, *pairs[0], output, wanted))
    node, labels = pairs[0][0].node, pairs[0][1]
    for i, (array, theirs) in enumerate(pairs[1:], 1):
        later = output + "".join(x for _, x in pairs[i + 1 :])
        last = i == len(pairs) - 1
        kept = output if last else "".join(dict.fromkeys(x for x in labels + theirs if x in later))
        node = contract(block, node, array.node, labels, theirs, kept, wanted)
        labels = kept
    return deliver(out, result(block, node))


def _as_text(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts as text; the form with lists of ints is rewritten."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    values = list(operands[0::2])
    lists = list(operands[1::2])
    output = ""
    if len(operands) % 2:
        output = "->" + _letters(values.pop())
    return ",".join(_letters(x) for x in lists) + output, values


def _letters(subscripts: Any) -> str:
    return "".join("..." if s is Ellipsis else LETTERS[s] for s in subscripts)


def parse(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """One letter per axis for each operand and for the result, ellipses written out."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError("more operands provided to einstein sum function than specified")
    free = [x for x in reversed(LETTERS) if x not in text]
    most = 0
    for term, rank in zip(terms, ranks, strict=True):
        spare = rank - len(term.replace("...", ""))
        if spare < 0 or (spare > 0 and "..." not in term):
            raise ValueError("einstein sum subscripts do not fit the operands' dimensions")
        most = max(most, spare)
    dots = "".join(free[:most])
    inputs = []
    for term, rank in zip(terms, ranks, strict=True):
        spare = rank - len(term.replace("...", ""))
        inputs.append(term.replace("...", dots[most - spare :] if spare else ""))
    if arrow:
        output = right.replace("...", dots)
    else:
        named = left.replace("...", "").replace(",", "")
        output = dots + "".join(sorted(x for x in set(named) if named.count(x) == 1))
    if len(set(output)) != len(output) or not set(output) <= set("".join(inputs)):
        raise ValueError("einstein sum subscripts string has a wrong output")
    if not all(x.isalpha() for x in "".join(inputs) + output):
        raise ValueError("invalid subscript in einstein sum subscripts string")
    return inputs, output


def _without_repeats(block: Block, array: Tracer, labels: str) -> tuple[Tracer, str]:
    """Axes with one label become their diagonal."""
    for x in dict.fromkeys(labels):
        while labels.count(x) > 1:
            first = labels.index(x)
            second = labels.index(x, first + 1)
            m, n = array.raw_shape[first], array.raw_shape[second]
            if not build.are_equal(block, m, n):
                raise ValueError("dimensions in operand for a repeated subscript must be equal")
            array = array.through(views.diagonal(array.raw_shape, first, second))
            labels = "".join(s for i, s in enumerate(labels) if i not in (first, second)) + x
    return array, labels


def _single(block: Block, array: Tracer, labels: str, out: str, dtype: Any) -> Tracer:
    """One operand: a view when nothing is summed, as in NumPy."""
    summed = [i for i, x in enumerate(labels) if x not in out]
    if not summed and dtype == array.dtype:
        order = [labels.index(x) for x in out]
        return array.through(views.transpose(array.raw_shape, order))
    wide = accumulator_of(dtype)
    node = build.cast(block, build.cast(block, array.node, dtype), wide)
    node = sum_out(block, node, summed)
    kept = "".join(x for x in labels if x in out)
    return result(block, build.cast(block, arrange(block, node, kept, out), dtype))
