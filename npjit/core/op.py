"""What an op is: a kind, and the fields that its row of the table fills in.

Passes look at an op's kind and fields, never at its name. The rows themselves live in `npjit.ops`.

Kinds, and what `params` holds for each:

    INPUT        position among the graph's inputs
    CONST        Literal (dtype and bytes of one element)
    SIZE         a size expression; the value is a weak Python int
    IOTA         nothing; 0, 1, 2, ... along the single axis, int64
    ELEMENTWISE  nothing (or what the row's text needs); all arguments have the result's shape
    REDUCE       sorted tuple of reduced axes; they vanish from the result
    VIEW         View
    RESHAPE      nothing; C order, the type has the new shape
    PAD          tuple of (before, after) per axis; new elements are zero
    GATHER       Gather: which base dimensions index arrays address
    SCATTER      Gather, base dimensions addressed by index arrays; row says how values
                 combine. The next version of the base's storage, as an UPDATE is
    CONTRACT     (labels of a, labels of b, labels of the result), as einsum's, one letter an axis
    SCAN         axis of a cumulative reduction
    EXTERN       plain Python values, whatever the row needs; computed from whole arrays.
                 Several results come through RESULT nodes
    CELL         number of the storage cell; the argument's value in a buffer of its own
    UPDATE       View of the cell's version (first argument) that receives the second argument
    BIND         Bind: a size variable that stands for the argument, an int64 scalar.
                 VIEW, UPDATE, SIZE, IOTA, PAD and RESHAPE nodes whose sizes name the variable
                 have the BIND node as a further argument
    LOOP         control.Loop; arguments are the body's inputs on entry, results come through
                 RESULT nodes
    WHILE        control.While, likewise
    COND         control.Cond; the first argument is the bool scalar condition, the others the
                 branches' inputs
    RESULT       number of the result of the LOOP, WHILE, COND or EXTERN that is its argument
    CHECK        text of the failure; the argument is a bool scalar that must be True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from npjit.core.dtypes import text_of
from npjit.core.interval import Interval
from npjit.core.size import Size, Var


class Kind(Enum):
    """Which shape of node an op makes; see the module's docstring."""

    INPUT = "input"
    CONST = "const"
    SIZE = "size"
    IOTA = "iota"
    ELEMENTWISE = "elementwise"
    REDUCE = "reduce"
    VIEW = "view"
    RESHAPE = "reshape"
    PAD = "pad"
    GATHER = "gather"
    SCATTER = "scatter"
    CONTRACT = "contract"
    SCAN = "scan"
    EXTERN = "extern"
    CELL = "cell"
    UPDATE = "update"
    BIND = "bind"
    LOOP = "loop"
    WHILE = "while"
    COND = "cond"
    RESULT = "result"
    CHECK = "check"


# nodes of these kinds hold nested graphs, which may write the storage of the node's arguments
CONTROL = frozenset([Kind.LOOP, Kind.WHILE, Kind.COND])


@dataclass(frozen=True)
class Literal:
    """One constant element, keyed by type and bits, so that -0.0, 0.0, False and NaN payloads
    differ.
    """

    dtype: str
    data: bytes

    @staticmethod
    def of(value: Any, dtype: np.dtype[Any]) -> Literal:
        """The literal of `value` stored as `dtype`."""
        return Literal(text_of(dtype), np.asarray(value, dtype).tobytes())

    @property
    def value(self) -> Any:
        """The element as a NumPy scalar."""
        return np.frombuffer(self.data, np.dtype(self.dtype))[0]


@dataclass(frozen=True)
class Reduction:
    """How a REDUCE row combines: `identity` (None: none, an empty reduction is an error), `style`
    for the printers.

    style is "sum", "product", "min", "max", "any", "all", "argmin", "argmax" or "deviation"
    (squared distances from the mean): the accumulator's form, not the op's name; printers have one
    accumulator class per style.
    """

    style: str
    identity: Any = None

    @property
    def merges(self) -> bool:
        """Whether reducing some axes and then others is reducing them all; positions do not combine
        so.
        """
        return self.style not in ("argmin", "argmax", "deviation")


@dataclass(frozen=True)
class Gather:
    """Integer indexing: base dimension `dims[k]` is addressed by argument k + 1; the others keep
    their axes.

    The index arguments share one shape; its axes stand in the result at position `place`, the kept
    base axes around them in their order.
    """

    dims: tuple[int, ...]
    place: int


@dataclass(frozen=True)
class Bind:
    """A size variable whose value is computed: `least` <= var <= `greatest` is known (a CHECK has
    made sure).
    """

    var: Var
    least: Size
    greatest: Size


@dataclass(frozen=True, eq=False)
class Op:
    """One row of the table. `evaluate(node, *arrays)` is the reference meaning, in NumPy."""

    name: str
    kind: Kind
    evaluate: Callable[..., Any]
    # text of the value in C, arguments as {0}, {1}; a callable gets (params, argument dtypes,
    # result dtype). Of a SCAN, SCATTER or EXTERN the call that computes it from `arrays`,
    # npjit_arrays of the arguments and then the results; none: Python computes it
    c: str | Callable[..., str] = ""
    # the same for complex arguments or results: {0r}, {0i} are real and imaginary planes; either a
    # pair of texts (real, imaginary) or one text of a prelude call that returns the result (a cplx
    # when the result is complex)
    complex_c: str | tuple[str, str] | Callable[..., Any] = ""
    # a quicker text for float32 where a condition holds: (condition, value)
    near: tuple[str, str] | None = None
    # of complex arguments: the square of the value, which is the rounded root of just this where
    # nothing overflows; comparisons with a fixed number do without the root
    square: str = ""
    # how much dearer than an addition one element is; decides recomputation and duplication
    cost: int = 1
    reduction: Reduction | None = None
    # vjp(g, y, *args) -> one gradient (or None) per argument; see npjit.transform.grad
    vjp: Callable[..., Any] | None = None
    # the gradient is zero on purpose (floor, sign, comparisons)
    flat: bool = False
    # (argument position, number) pairs: that argument being that number gives the other one, bit
    # for bit, on real numbers; add has -0.0 here and not 0, since -0.0 + 0.0 is 0.0
    neutral: tuple[tuple[int, float], ...] = ()
    # applied twice it gives its argument back, bit for bit
    involution: bool = False
    # the argument's value in the node's element type, and nothing else
    conversion: bool = False
    # the second argument where the first holds, else the third
    choice: bool = False
    # of a comparison: its sign, "<" for one, or "in" where the first is an index of the second
    relation: str = ""
    # the value is the product of the arguments to these powers
    powers: tuple[float, ...] = ()
    # of numbers, the value is the sum of the arguments times these
    addends: tuple[int, ...] = ()
    # of ints and bools, bit by bit: "&", "|", "^", "~", or ">>" by the second argument
    bits: str = ""
    # of numbers: the bounds of the result by those of the arguments, where it fits in its type
    range: Callable[..., Interval] | None = None
    # of an EXTERN: (params, argument types) -> the types of its results, in order
    types: Callable[..., Any] | None = None
    # computing it may raise an error of NumPy's own (a singular matrix): a call runs again as NumPy
    # then
    raises: bool = False
    # never merged with an equal node: has an effect or a buffer of its own
    fresh: bool = False
    # of a CELL: nobody reads an element before it is stored, so that nothing need fill it
    blank: bool = False

    def __repr__(self) -> str:
        return self.name
