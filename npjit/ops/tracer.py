"""`Tracer`: the array that a user's function sees while it is being traced.

A Tracer names a storage `Cell` and a `View` of it. Reading gives the node of the cell's latest version seen through
the view; writing makes a new version, which every other view of the cell then sees, exactly as in NumPy. NumPy's
functions reach a Tracer through `__array_ufunc__` and `__array_function__`, and find their row in the table.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import Any
from weakref import ReferenceType

import numpy as np

from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Kind, Op
from npjit.core.view import View
from npjit.ops import build, indexing, kinds, python_int
from npjit.ops.errors import NotCaptured, active_trace
from npjit.ops.symint import SymInt, is_int, size_of, wrap

PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class Cell:
    """Storage: the latest version of an array's contents. `argument` marks a caller's own memory."""

    __slots__ = (
        "__weakref__",
        "argument",
        "block",
        "_node",
        "children",
        "level",
        "origin",
        "owned",
        "parent",
    )

    def __init__(self, block: Block, node: Node, argument: bool = False) -> None:
        self.block = block
        self._node = node
        # the depth of open regions at which `_node` is the version to use
        self.level = block.depth
        # the value that the storage was made for: tells its memory order
        self.origin = node
        self.argument = argument
        # whether `node` is a version with a buffer of its own
        self.owned = argument
        # storage that may be part of this one, or this a part of (see npjit.ops.sharing)
        self.children: list[ReferenceType[Cell]] = []
        self.parent: Cell | None = None

    @property
    def node(self) -> Node:
        """The latest version. In a region it is one of the region's inputs until it is written there."""
        if self.block.depth > self.level and self._node.type.weight is Weight.ARRAY:
            for region in self.block.regions[self.level :]:
                region.enter(self)
        return self._node

    @node.setter
    def node(self, version: Node) -> None:
        assert self.node is not None  # enters the open regions
        self._node = version

    @property
    def type(self) -> TensorType:
        """The contents' type."""
        return self._node.type

    def write(self, view: View | None, value: Node) -> None:
        """A new version in which the elements under `view` (None: all) are `value`, already cast and broadcast."""
        from npjit.ops.sharing import is_c_ordered

        self.require_writable()
        block = self.block
        replaced = view is None and not self.argument and not block.depth
        # the storage keeps its own memory order, whatever the value's
        if replaced and is_c_ordered(block, self.origin) and is_c_ordered(block, value):
            self.node = value
            self.owned = False
            return
        self._own()
        target = view if view is not None else indexing.identity(self.node.shape)
        self.node = block.add(kinds.UPDATE, (self.node, value), target, self.node.type)

    def scatter(self, op: Op, value: Node, params: Any, indices: tuple[Node, ...]) -> None:
        """A new version into which elements of `value` are scattered through index arrays."""
        self.require_writable()
        self._own()
        self.node = self.block.add(op, (self.node, value, *indices), params, self.node.type)

    def _own(self) -> None:
        """Have a buffer that versions can change in place."""
        version = self.node  # enters the open regions, where it has one
        if not self.owned:
            block, type_ = self.block, TensorType(version.shape, version.dtype)
            self.node = block.add(kinds.CELL, (version,), len(block.nodes), type_)
            self.owned = True

    def require_writable(self) -> None:
        """NotCaptured when another live array may share this memory in a way that tracing does not follow."""
        alive = (child() for child in self.children)
        if self.parent is not None or any(c is not None and not c.is_followed() for c in alive):
            raise NotCaptured(
                "a write to an array that may share memory with a reshape or a part of it"
            )

    def is_followed(self) -> bool:
        """Whether a child sees what is written to its parent."""
        return False


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
        if any(_takes_over(v) for v in inputs):
            return NotImplemented
        return _guarded(_ufunc, self.block, ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = kinds.FUNCTIONS.get(func)
        if found is None:
            raise NotCaptured(f"np.{func.__name__} is not compiled", _where())
        return _guarded(found, *args, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotCaptured("a traced array is needed as a real NumPy array here", _where())

    def __getattr__(self, name: str) -> Any:
        kind = self.__class__
        if not hasattr(kind, name):
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
        attribute = kinds.ATTRIBUTES.get(name)
        if attribute is not None:
            return self._like(_guarded(attribute, self))
        method = kinds.METHODS.get(name)
        if method is None:
            raise NotCaptured(f"the array method .{name} is not compiled", _where())
        return lambda *args, **kwargs: self._like(_guarded(method, self, *args, **kwargs))

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
        raise NotCaptured("a traced value is copied or pickled", _where())

    def __hash__(self) -> int:
        if self.weight is Weight.ARRAY:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._actual("Python needs the hash of a traced value"))

    def __contains__(self, item: Any) -> bool:
        raise NotCaptured("`in` a traced array", _where())

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
            raise NotCaptured(reason, _where())
        return value

    def _actual(self, reason: str) -> Any:
        """The actual value as the object that this stands for."""
        value = self._value(reason)
        if self.weight is Weight.ARRAY:
            return value
        return value.item() if self.weight is Weight.WEAK else value[()]

    def __getitem__(self, key: Any) -> Any:
        return _guarded(indexing.get_item, self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _guarded(indexing.set_item, self, key, value)

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


def as_node(block: Block, value: Any) -> Node:
    """Any operand as a node: traced values, Python and NumPy scalars, arrays and nested lists of them."""
    if type(value) is Tracer:
        if value.block is not block:
            raise NotCaptured("a value of another trace is used here", _where())
        return value.node
    if type(value) is SymInt:
        return build.size_node(block, value.size)
    if type(value) is bool:
        return build.constant(block, value, build.BOOL, Weight.WEAK)
    if type(value) is int:
        if not -(2**63) <= value < 2**63:
            raise NotCaptured(f"the Python int {value} is outside int64", _where())
        return build.constant(block, value, build.INT64, Weight.WEAK)
    if type(value) is float:
        return build.constant(block, value, build.FLOAT64, Weight.WEAK)
    if type(value) is complex:
        return build.constant(block, value, np.dtype(np.complex128), Weight.WEAK)
    if isinstance(value, np.generic):
        return build.constant(block, value, build.require_known(value.dtype))
    if isinstance(value, np.ndarray):
        return _array_node(block, value)
    if isinstance(value, (list, tuple)):
        from npjit.ops.convert import array

        return array(block, value).node
    raise NotCaptured(f"an operand of type {type(value).__name__}", _where())


def _array_node(block: Block, value: np.ndarray) -> Node:
    if type(value) is not np.ndarray:
        raise NotCaptured(f"arrays of type {type(value).__name__} run as NumPy", _where())
    build.require_known(value.dtype)
    if value.ndim == 0:
        return build.constant(block, value[()], value.dtype, Weight.ARRAY)
    lift = getattr(block, "lift", None)
    if lift is None:
        raise NotCaptured("an array constant outside a trace", _where())
    return lift(value)


def _where() -> str:
    """file:line of the innermost frame outside npjit."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("npjit.", "numpy.")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _guarded(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a traced operation; an ordinary error in it ends the trace, so that NumPy raises its own.

    The user's `except` clauses must not see an error that only tracing made.
    """
    where = _where()
    for a in args:
        block = a.block if type(a) is Tracer else a
        if isinstance(block, Block):
            block.where = where
            break
    try:
        return call(*args, **kwargs)
    except NotCaptured as e:
        if not e.where:
            raise NotCaptured(e.reason, where, e.passing) from None
        raise
    except Exception as e:
        if active_trace() is None:
            raise
        raise NotCaptured(f"{type(e).__name__}: {e}", where) from e


def call_ufunc(ufunc: np.ufunc, *inputs: Any, **kwargs: Any) -> Any:
    """A ufunc call on values of which at least one is traced."""
    block = next(v.block for v in inputs if is_traced(v))
    return _guarded(_ufunc, block, ufunc, "__call__", inputs, kwargs)


def _ufunc(block: Block, ufunc: np.ufunc, method: str, inputs: Any, kwargs: Any) -> Any:
    if method != "__call__":
        found = kinds.FUNCTIONS.get((ufunc, method))
        if found is None:
            raise NotCaptured(f"np.{ufunc.__name__}.{method} is not compiled")
        return found(*inputs, **kwargs)
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    casting = kwargs.pop("casting", "same_kind")
    for name in ("order", "subok"):
        kwargs.pop(name, None)
    if kwargs or casting != "same_kind" or not all(is_traced(v) for v in _outs(out)):
        raise NotCaptured(f"np.{ufunc.__name__} with these keyword arguments")
    handler = kinds.FUNCTIONS.get(ufunc)
    if handler is not None:
        if dtype is not None:
            raise NotCaptured(f"np.{ufunc.__name__} with dtype=")
        result = handler(*inputs)
    else:
        nodes = [as_node(block, v) for v in inputs]
        result = call_row(block, ufunc, nodes, dtype)
    return _deliver(block, result, out, where)


def call_row(block: Block, ufunc: np.ufunc, nodes: list[Node], dtype: Any = None) -> Tracer:
    """The ufunc's row on nodes; `dtype` asks for the loop with that result, as NumPy's dtype= does."""
    op = kinds.UFUNCS.get(ufunc)
    if op is None:
        raise NotCaptured(f"np.{ufunc.__name__} is not compiled")
    return fresh(block, build.ufunc(block, op, ufunc, nodes, dtype))


def _outs(out: Any) -> tuple[Any, ...]:
    return () if out is None else tuple(o for o in out if o is not None)


def _deliver(block: Block, result: Any, out: Any, where: Any) -> Any:
    """Put a result where `out` and `where` say."""
    if out is None or out == (None,):
        if where is not True:
            raise NotCaptured("where= without out= leaves elements uninitialised")
        return result
    if isinstance(result, tuple):
        raise NotCaptured("out= of a ufunc with several results")
    (target,) = out
    value = result.node
    if where is not True:
        mask = as_node(block, where)
        if not np.can_cast(value.dtype, target.dtype, "same_kind"):
            raise TypeError("Cannot cast ufunc output")
        value = build.select(block, mask, build.cast(block, value, target.dtype), target.node)
    if len(value.shape) > target.ndim:
        raise ValueError("non-broadcastable output operand")
    target.write(value, "same_kind")
    return target


# ---------------------------------------------------------------- operators


def _python_result(block: Block, node: Node) -> Tracer:
    """The result of Python arithmetic on Python numbers is a Python number."""
    return fresh(block, build.weigh(block, node, Weight.WEAK))


def _is_python(value: Any) -> bool:
    return type(value) in (int, float, complex, bool, SymInt) or (
        type(value) is Tracer and value.weight is Weight.WEAK
    )


def _python_binary(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """An operator between Python numbers, one of them traced, by Python's rules."""
    block = a.block if type(a) is Tracer else b.block
    x, y = as_node(block, a), as_node(block, b)
    if x.dtype == build.BOOL and y.dtype == build.BOOL and ufunc in (np.add, np.subtract):
        raise NotCaptured("Python arithmetic on traced bools")
    if ufunc in (np.true_divide, np.floor_divide, np.remainder):
        _require_nonzero(block, y)
    op = kinds.UFUNCS.get(ufunc)
    if op is None:
        raise NotCaptured(f"Python's {ufunc.__name__} on traced numbers")
    if x.dtype.kind in "iub" and y.dtype.kind in "iub" and ufunc not in _COMPARISONS:
        if ufunc is not np.true_divide:
            made = python_int.arithmetic(block, ufunc, x, y)
            if ufunc in _BITWISE and x.dtype == y.dtype == build.BOOL:
                made = build.cast(block, made, build.BOOL)
            return _python_result(block, made)
        x, y = python_int.as_exact_float(block, x), python_int.as_exact_float(block, y)
    result = build.ufunc(block, op, ufunc, [x, y])
    if ufunc is np.power:
        _require_python_power(block, result, x, y)
    return _python_result(block, result)


def _require_python_power(block: Block, result: Node, x: Node, y: Node) -> None:
    """Python raises where finite numbers give inf, and makes complex numbers of negative bases' roots."""
    if result.dtype != build.FLOAT64:
        raise NotCaptured("a Python power of complex numbers")
    value, base, exponent = (fresh(block, build.weigh(block, n, Weight.SCALAR)) for n in (result, x, y))
    real = (base >= 0) | np.isnan(base) | (np.floor(exponent) == exponent)
    ok = real & (np.isfinite(value) | ~np.isfinite(base) | ~np.isfinite(exponent))
    block.add(kinds.CHECK, (ok.node,), "OverflowError: a power beyond the floats", ok.node.type)


def _require_nonzero(block: Block, node: Node) -> None:
    if node.op.kind is Kind.CONST:
        if not node.params.value:
            raise ZeroDivisionError("division by zero")
        return
    zero = build.constant(block, 0, node.dtype)
    ok = build.apply(block, kinds.UFUNCS[np.not_equal], [node, zero], build.BOOL)
    block.add(kinds.CHECK, (ok,), "ZeroDivisionError: division by zero", ok.type)


_BITWISE = frozenset([np.bitwise_and, np.bitwise_or, np.bitwise_xor])
_COMPARISONS = frozenset(
    [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
)


def _operator(name: str, ufunc: np.ufunc, reflected: bool = True) -> None:
    def forward(self: Tracer, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        other = _as_python_sees(self, other)
        if _is_python(self) and _is_python(other):
            return _guarded(_python_binary, ufunc, self, other)
        return _guarded(_array_binary, ufunc, self, other)

    def backward(self: Tracer, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        self = _as_python_sees(other, self)
        if _is_python(self) and _is_python(other):
            return _guarded(_python_binary, ufunc, other, self)
        return _guarded(_array_binary, ufunc, other, self)

    def in_place(self: Tracer, other: Any) -> Any:
        if self.weight is not Weight.ARRAY:
            return forward(self, other)
        if (ufunc, "operator") in kinds.FUNCTIONS:
            _guarded(self.write, forward(self, other).node, "same_kind")
            return self
        return call_ufunc(ufunc, self, other, out=(self,))

    setattr(Tracer, f"__{name}__", forward)
    if reflected:
        setattr(Tracer, f"__r{name}__", backward)
        setattr(Tracer, f"__i{name}__", in_place)


def _as_python_sees(left: Any, right: Any) -> Any:
    """The right operand: np.float64 is a float to a Python complex on its left, whose result stays one."""
    is_complex = _is_python(left) and left.__class__ is complex
    if is_complex and right.__class__ is np.float64:
        block = left.block if type(left) is Tracer else right.block
        return _python_result(block, as_node(block, right))
    return right


def _takes_over(value: Any) -> bool:
    """Whether another sort of traced value (npjit.ops.masks) decides what an operation gives."""
    return getattr(type(value), "takes_over", False)


def _operand(value: Any) -> bool:
    if _takes_over(value):
        return False
    return is_traced(value) or isinstance(
        value, (int, float, complex, np.generic, np.ndarray, list, tuple)
    )


def _array_binary(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    special = kinds.FUNCTIONS.get((ufunc, "operator"))
    if special is not None:
        return special(a, b)
    block = a.block if is_traced(a) else b.block
    return _ufunc(block, ufunc, "__call__", (a, b), {})


for _name, _function in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}.items():
    _operator(_name, _function)
for _name, _function in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    _operator(_name, _function, reflected=False)


def _unary(name: str, ufunc: np.ufunc) -> None:
    def apply(self: Tracer) -> Any:
        result = call_ufunc(ufunc, self)
        return _python_result(self.block, result.node) if _is_python(self) else result

    setattr(Tracer, f"__{name}__", apply)


for _name, _function in {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}.items():
    _unary(_name, _function)


def _matmul(self: Tracer, other: Any) -> Any:
    return np.matmul(self, other)


def _rmatmul(self: Tracer, other: Any) -> Any:
    return np.matmul(other, self)


def _imatmul(self: Tracer, other: Any) -> Any:
    _guarded(self.write, np.matmul(self, other).node, "same_kind")
    return self


def _divmod(self: Tracer, other: Any) -> Any:
    return self // other, self % other


Tracer.__matmul__ = _matmul  # type: ignore[attr-defined]
Tracer.__rmatmul__ = _rmatmul  # type: ignore[attr-defined]
Tracer.__imatmul__ = _imatmul  # type: ignore[attr-defined]
Tracer.__divmod__ = _divmod  # type: ignore[attr-defined]


def plain_size(value: Any) -> Any:
    """A size given by the user (int, SymInt, NumPy integer) as a size expression."""
    if is_int(value):
        return size_of(value)
    return int(value)
