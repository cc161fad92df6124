"""`Tracer`: the array that a user's function sees while it is being traced.

A Tracer names a storage `Cell` and a `View` of it. Reading gives the node of the cell's latest
version seen through the view; writing makes a new version, which every other view of the cell then
sees, exactly as in NumPy. NumPy's functions reach a Tracer through `__array_ufunc__` and
`__array_function__`, and find their row in the table.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, Weight
from npjit.core.view import View
from npjit.ops import build, indexing, kinds
from npjit.ops.cell import Cell
from npjit.ops.errors import NotCaptured, active_trace, name_of
from npjit.ops.settings import require_usual_call
from npjit.ops.symint import SymInt, wrap

PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def _of_numpy(get: Callable[[Any], Any]) -> property:
    """An attribute that Python numbers do not have, though npjit's own code may ask for it."""

    def checked(self: Tracer) -> Any:
        # the globals of traced code are no plain dictionary
        if self.weight is Weight.WEAK and type(sys._getframe(1).f_globals) is not dict:
            kind = self.__class__.__name__
            raise AttributeError(f"'{kind}' object has no attribute '{get.__name__}'")
        return get(self)

    return property(checked, doc=get.__doc__)


class Tracer:
    """A traced array, NumPy scalar or Python number; see the module's docstring."""

    __slots__ = ("cell", "weight", "window")
    __array_priority__ = 1000.0

    def __init__(self, cell: Cell, view: View | None, weight: Weight) -> None:
        self.cell = cell
        self.window = view
        self.weight = weight

    # ------------------------------------------------------------ what it is

    @property
    def block(self) -> Block:
        return self.cell.block

    @property
    def node(self) -> Node:
        """The value now."""
        node = self.cell.node
        if self.window is not None:
            node = build.view(self.block, node, self.window)
        return build.weigh(self.block, node, self.weight)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        # isinstance(x, np.ndarray) and the like answer as for the value that this stands for
        if self.weight is Weight.ARRAY:
            return np.ndarray
        if self.weight is Weight.SCALAR:
            return self.dtype.type
        return PYTHON_TYPES[self.dtype.kind]

    @property
    def raw_shape(self) -> Any:
        return self.window.shape if self.window is not None else self.cell.type.shape

    @_of_numpy
    def shape(self) -> tuple[Any, ...]:
        return tuple(wrap(self.block, s) for s in self.raw_shape)

    @_of_numpy
    def dtype(self) -> np.dtype[Any]:
        return self.cell.type.dtype

    @_of_numpy
    def ndim(self) -> int:
        return len(self.raw_shape)

    @_of_numpy
    def size(self) -> Any:
        return wrap(self.block, build.element_count(self.raw_shape))

    @_of_numpy
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @_of_numpy
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    def through(self, view: View) -> Tracer:
        """A view of this array, sharing its cell."""
        if self.weight is not Weight.ARRAY:
            # a scalar shares its memory with nothing
            node = build.weigh(self.block, self.node, Weight.ARRAY)
            return Tracer(Cell(self.block, node), view, Weight.ARRAY)
        whole = view if self.window is None else self.window.then(view)
        return Tracer(self.cell, whole, Weight.ARRAY)

    # ------------------------------------------------------------ NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(takes_over(v) for v in inputs):
            return NotImplemented
        from npjit.ops.ufunc_calls import apply_ufunc

        return guarded(apply_ufunc, self.block, ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = kinds.FUNCTIONS.get(func)
        if found is None:
            raise NotCaptured(f"{name_of(func)} is not compiled", where_called())
        return guarded(found, *args, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotCaptured("a traced array is needed as a real NumPy array here", where_called())

    def __getattr__(self, name: str) -> Any:
        kind = self.__class__
        if not hasattr(kind, name):
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
        attribute = kinds.ATTRIBUTES.get(name)
        if attribute is not None:
            return self._like(guarded(attribute, self))
        method = kinds.METHODS.get(name)
        if method is None:
            raise NotCaptured(f"the array method .{name} is not compiled", where_called())
        return lambda *args, **kwargs: self._like(guarded(method, self, *args, **kwargs))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Tracer.__slots__:
            object.__setattr__(self, name, value)
            return
        setter = kinds.SETTERS.get(name)
        if setter is None or self.weight is not Weight.ARRAY:
            raise NotCaptured(f"a store into .{name} of an array", where_called())
        guarded(setter, self, value)

    def _like(self, result: Any) -> Any:
        """What a scalar's method gives: 0-d results are scalars again."""
        if self.weight is Weight.ARRAY or type(result) is not Tracer or result.raw_shape:
            return result
        if result.weight is not Weight.ARRAY:
            return result
        return fresh(self.block, build.weigh(self.block, result.node, Weight.SCALAR))

    # ------------------------------------------------------------ Python's protocols

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.block.sizes.specialise(self.raw_shape[0])

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> bool:
        return bool(self._value("Python branches on a traced value"))

    def __int__(self) -> int:
        return int(self._value("Python needs the int of a traced value"))

    def __index__(self) -> int:
        return operator.index(self._actual("Python needs the index of a traced value"))

    def __float__(self) -> float:
        return float(self._value("Python needs the float of a traced value"))

    def __complex__(self) -> complex:
        return complex(self._value("Python needs the complex of a traced value"))

    def __round__(self, *digits: int) -> Any:
        if self.weight is Weight.ARRAY:
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        return round(self._actual("Python rounds a traced value"), *digits)

    def __trunc__(self) -> int:
        return math.trunc(self._actual("Python truncates a traced value"))

    def __floor__(self) -> int:
        return math.floor(self._actual("Python rounds a traced value"))

    def __ceil__(self) -> int:
        return math.ceil(self._actual("Python rounds a traced value"))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NotCaptured("a traced value is copied or pickled", where_called())

    def __hash__(self) -> int:
        if self.weight is Weight.ARRAY:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        value = self._actual("Python needs the hash of a traced value")
        if value != value:
            raise NotCaptured("NaN as a key, which is found by its identity", where_called())
        return hash(value)

    def __contains__(self, item: Any) -> bool:
        raise NotCaptured("`in` a traced array", where_called())

    def __repr__(self) -> str:
        return repr(self._shown())

    def __str__(self) -> str:
        return str(self._shown())

    def __format__(self, spec: str) -> str:
        return format(self._shown(), spec)

    def _shown(self) -> Any:
        return self._actual("Python needs the text of a traced value")

    def _value(self, reason: str) -> Any:
        """The actual value, in a trace that may look at it."""
        peek = getattr(self.block, "peek", None)
        value = peek(self.node) if peek is not None else None
        if value is None:
            raise NotCaptured(reason, where_called())
        return value

    def _actual(self, reason: str) -> Any:
        """The actual value as the object that this stands for."""
        value = self._value(reason)
        if self.weight is Weight.ARRAY:
            return value
        return value.item() if self.weight is Weight.WEAK else value[()]

    def __getitem__(self, key: Any) -> Any:
        return guarded(indexing.get_item, self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        guarded(indexing.set_item, self, key, value)

    # ------------------------------------------------------------ writing

    def require_writable(self) -> None:
        """NotCaptured for views that NumPy makes read-only."""
        if self.window is not None and not self.window.is_writable:
            raise NotCaptured("a write to a broadcast or diagonal view")

    def write(self, value: Node, casting: str = "unsafe") -> None:
        """Overwrite all elements with `value`, cast to this dtype and broadcast to this shape."""
        if self.weight is not Weight.ARRAY:
            raise TypeError("a scalar does not support item assignment")
        if not np.can_cast(value.dtype, self.dtype, casting):
            raise np._core._exceptions._UFuncOutputCastingError(
                np.positive, casting, value.dtype, self.dtype, 0
            )
        self.require_writable()
        block = self.block
        value = build.cast(block, value, self.dtype)
        spare = len(value.shape) - self.ndim
        if spare > 0 and not self.ndim:
            raise NotCaptured("an element is set to an array")
        if spare > 0 and all(n == 1 for n in value.shape[:spare]):
            value = build.reshape(block, value, value.shape[spare:])
        shape = build.broadcast_shapes(block, [self.raw_shape, value.shape])
        if len(shape) != self.ndim or shape != self.raw_shape:
            raise ValueError(f"could not broadcast input array into shape {self.raw_shape}")
        self.cell.write(self.window, build.stretch(block, value, shape))


# ---------------------------------------------------------------- wrapping


def fresh(block: Block, node: Node) -> Tracer:
    """A result: an array with a cell of its own, or a scalar."""
    return Tracer(Cell(block, node), None, node.type.weight)


def weak_number(value: SymInt) -> Tracer:
    """A traced Python int as a traced number."""
    return fresh(value.block, build.size_node(value.block, value.size))


def is_traced(value: Any) -> bool:
    """Whether a value exists only while tracing."""
    return type(value) in (Tracer, SymInt)


def takes_over(value: Any) -> bool:
    """Whether another sort of traced value (ops.selection) decides what an operation gives."""
    return getattr(type(value), "takes_over", False)


def as_node(block: Block, value: Any) -> Node:
    """Any operand as a node: traced values, Python and NumPy scalars, arrays and nested lists of
    them.
    """
    if type(value) is Tracer:
        if value.block is not block:
            raise NotCaptured("a value of another trace is used here", where_called())
        return value.node
    if type(value) is SymInt:
        return build.size_node(block, value.size)
    if type(value) is bool:
        return build.constant(block, value, build.BOOL, Weight.WEAK)
    if type(value) is int:
        if not -(2**63) <= value < 2**63:
            raise NotCaptured(f"the Python int {value} is outside int64", where_called())
        return build.constant(block, value, build.INT64, Weight.WEAK)
    if type(value) is float:
        return build.constant(block, value, build.FLOAT64, Weight.WEAK)
    if type(value) is complex:
        return build.constant(block, value, np.dtype(np.complex128), Weight.WEAK)
    if isinstance(value, np.generic):
        return build.constant(block, value, build.require_known(value.dtype))
    if isinstance(value, np.ndarray):
        return _array_node(block, value)
    if getattr(value, "rows", None) is not None:
        return value.whole().node  # type: ignore[no-any-return]  # a list held as rows
    if isinstance(value, (list, tuple)):
        from npjit.ops.convert import array

        return array(block, value).node
    raise NotCaptured(f"an operand of type {type(value).__name__}", where_called())


def _array_node(block: Block, value: np.ndarray) -> Node:
    if type(value) is not np.ndarray:
        raise NotCaptured(f"arrays of type {type(value).__name__} are not compiled", where_called())
    build.require_known(value.dtype)
    if value.ndim == 0:
        return build.constant(block, value[()], value.dtype, Weight.ARRAY)
    lift = getattr(block, "lift", None)
    if lift is None:
        raise NotCaptured("an array constant outside a trace", where_called())
    return lift(value)


def where_called() -> str:
    """file:line of the innermost frame outside npjit."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("npjit.", "numpy.")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def guarded(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a traced operation; an ordinary error in it ends the trace, so that NumPy raises its own.

    The user's `except` clauses must not see an error that only tracing made.
    """
    where = where_called()
    for a in args:
        block = a.block if type(a) is Tracer else a
        if isinstance(block, Block):
            block.where = where
            break
    try:
        require_usual_call(call, args, kwargs)
        return call(*args, **kwargs)
    except NotCaptured as e:
        if not e.where:
            raise type(e)(e.reason, where, e.passing) from None
        raise
    except Exception as e:
        if active_trace() is None:
            raise
        raise NotCaptured(f"{type(e).__name__}: {e}", where) from e
