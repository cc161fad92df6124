"""One random line of NumPy: each function gives a line for a `Writer`, or None when nothing
fits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import npjit.ops  # noqa: F401 (fills the table)
from npjit.ops import kinds
from tests.fuzz.arguments import DTYPES
from tests.fuzz.writer import Writer, is_array

UNARY = sorted(u.__name__ for u in kinds.UFUNCS if u.nin == 1)
BINARY = sorted(u.__name__ for u in kinds.UFUNCS if u.nin == 2)
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
]
NUMBERS = ["2", "3", "0.5", "-1", "1", "0", "-2.5", "2.0", "True", "1.5j", "7"]
REDUCTIONS = [
    "sum",
    "sum",
    "prod",
    "min",
    "max",
    "any",
    "all",
    "mean",
    "var",
    "std",
    "argmin",
    "argmax",
    "ptp",
    "count_nonzero",
    "nansum",
    "nanmax",
    "nanmin",
    "nanmean",
    "nanvar",
    "nanstd",
    "nanprod",
    "amax",
    "amin",
]

RANGES = ["5", "1, 7", "0, 10, 3", "5, 0, -1", "17", "0.0, 1.0, 0.25", "3.0"]
CONVERSIONS = ["float", "int", "bool", "np.float32", "np.int64", "np.float64"]


def is_value(value: Any) -> bool:
    """An array or a number."""
    return not isinstance(value, tuple | list) and not callable(value)


def operand(w: Writer) -> str:
    """A name or, at times, a number."""
    if w.rng.random() < 0.15:
        return w.rng.choice(NUMBERS)
    return w.pick(is_value) or "1"


def matching(w: Writer, other: str) -> str:
    """An operand whose shape broadcasts with another one's, made so by an index if need be."""
    rng = w.rng
    shape = np.shape(w.values.get(other, 0))
    for _ in range(6):
        name = operand(w)
        own = np.shape(w.values.get(name, 0))
        try:
            np.broadcast_shapes(shape, own)
        except ValueError:
            continue
        return name
    name = operand(w)
    own = np.shape(w.values.get(name, 0))
    return f"{name}[{', '.join('0' for _ in own)}]" if own and 0 not in own else rng.choice(NUMBERS)


def unary(w: Writer) -> str | None:
    name = w.rng.choice(UNARY)
    x = w.pick(is_value)
    return f"{w.fresh()} = np.{name}({x})"


def binary(w: Writer) -> str | None:
    x = w.pick(is_value)
    assert x is not None
    pair = [x, matching(w, x)]
    w.rng.shuffle(pair)
    return f"{w.fresh()} = np.{w.rng.choice(BINARY)}({pair[0]}, {pair[1]})"


def operator_line(w: Writer) -> str | None:
    x = w.pick(is_value)
    assert x is not None
    if w.rng.random() < 0.15:
        return f"{w.fresh()} = {w.rng.choice(['-', '~', '+', 'abs'])}({x})"
    pair = [x, matching(w, x)]
    w.rng.shuffle(pair)
    return f"{w.fresh()} = {pair[0]} {w.rng.choice(OPERATORS)} {pair[1]}"


def augmented(w: Writer) -> str | None:
    x = w.pick(is_array if w.rng.random() < 0.8 else is_value)
    if x is None:
        return None
    op = w.rng.choice(
        ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "+", "-", "*"]
    )
    if w.rng.random() < 0.4 or not is_array(w.values[x]):
        return f"{x} {op}= {matching(w, x)}"
    key = index(w.rng, w.values[x].shape)
    target = f"{x}[{key}]"
    return f"{target} {op}= {_source(w, target)}"


def assigned(w: Writer) -> str | None:
    x = w.pick(is_array)
    if x is None:
        return None
    target = f"{x}[{index(w.rng, w.values[x].shape)}]"
    if w.rng.random() < 0.1:
        mask = w.pick(lambda v: is_array(v) and v.dtype == bool and v.shape == w.values[x].shape)
        if mask:
            return f"{x}[{mask}] = {w.rng.choice(NUMBERS)}"
    return f"{target} = {_source(w, target)}"


def _source(w: Writer, target: str) -> str:
    """A value that fits a written part: a number, a name, or a part of the same array (overlap)."""
    rng = w.rng
    try:
        shape = np.shape(eval(target, w.values))
    except Exception:
        return rng.choice(NUMBERS)
    base = target.split("[")[0]
    if rng.random() < 0.4 and len(shape) >= 1:
        flipped = ", ".join(rng.choice([":", "::-1"]) for _ in shape)
        form = rng.choice(["{0}[{1}]", "{0}[{1}] * 2", "{2} + {0}[{1}]", "np.sin({0}[{1}])"])
        part = f"{target}"
        return form.format(part, flipped, base if shape == w.values[base].shape else part)
    fits = [
        n for n in w.names if is_value(w.values[n]) and _stretches(np.shape(w.values[n]), shape)
    ]
    return rng.choice(fits) if fits and rng.random() < 0.8 else rng.choice(NUMBERS)


def _stretches(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def index(rng: random.Random, shape: tuple[int, ...]) -> str:
    """A basic key for a shape, as text."""
    keys = []
    for n in shape:
        keys.append(_index_of(rng, n))
    if rng.random() < 0.15:
        keys.insert(rng.randrange(len(keys) + 1), "None")
    if rng.random() < 0.2 and len(keys) > 1:
        keys = keys[: rng.randrange(1, len(keys))]
    elif rng.random() < 0.15 and keys:
        keys[rng.randrange(len(keys))] = "..."
    return ", ".join(keys) or "..."


def _index_of(rng: random.Random, n: int) -> str:
    kind = rng.random()
    if kind < 0.25:
        return ":"
    if kind < 0.45 and n:
        return str(rng.randrange(-n, n))
    low = rng.choice(["", str(rng.randrange(-n - 1, n + 2))])
    high = rng.choice(["", str(rng.randrange(-n - 1, n + 2))])
    step = rng.choice(["", "", "", ":2", ":-1", ":-1", ":-2", ":3"])
    return f"{low}:{high}{step}"


def view(w: Writer) -> str | None:
    x = w.pick(is_array)
    if x is None:
        return None
    rng, v = w.rng, w.values[x]
    order = list(range(v.ndim))
    rng.shuffle(order)
    axis = rng.randrange(-v.ndim, v.ndim)
    other = rng.randrange(v.ndim)
    forms = [f"{x}[{index(rng, v.shape)}]"] * 6 + [
        f"{x}.T",
        f"np.transpose({x}, {tuple(order)})",
        f"np.swapaxes({x}, {axis}, {other})",
        f"np.moveaxis({x}, {axis}, {other})",
        f"{x}.reshape({_other_shape(rng, v.size)})",
        f"np.reshape({x}, {_other_shape(rng, v.size)})",
        f"{x}.ravel()",
        f"{x}.flatten()",
        f"np.ravel({x})",
        f"np.expand_dims({x}, {rng.randrange(v.ndim + 1)})",
        f"np.squeeze({x})",
        f"np.flip({x}, {axis})",
        f"np.flip({x})",
        f"np.fliplr({x})",
        f"np.rot90({x}, {rng.randrange(-3, 4)})",
        f"np.broadcast_to({x}, {(rng.choice([1, 2, 3]), *v.shape)})",
        f"np.broadcast_to({x}, {tuple(3 if n == 1 else n for n in v.shape)})",
        f"np.diagonal({x}, {rng.choice([-1, 0, 1])})",
        f"np.atleast_2d({x})",
        f"{x}.real",
        f"{x}.imag",
        f"{x}.copy()",
        f"{x}[...]",
    ]
    return f"{w.fresh()} = {rng.choice(forms)}"


def _other_shape(rng: random.Random, size: int) -> str:
    if size == 0:
        return rng.choice(["(0,)", "(2, 0)", "(0, 3)"])
    shape = []
    left = size
    while left > 1 and len(shape) < 3:
        divisors = [d for d in range(2, min(left, 40) + 1) if left % d == 0] or [left]
        shape.append(rng.choice(divisors))
        left //= shape[-1]
    shape.append(left)
    if rng.random() < 0.3:
        shape.insert(rng.randrange(len(shape) + 1), 1)
    if rng.random() < 0.4:
        shape[rng.randrange(len(shape))] = -1
    return str(tuple(shape))


def axis_text(rng: random.Random, rank: int) -> str:
    """An axis argument: None, a number or a tuple."""
    kind = rng.random()
    if kind < 0.3 or not rank:
        return "None"
    if kind < 0.75:
        return str(rng.randrange(-rank, rank))
    return str(tuple(rng.sample(range(rank), rng.randrange(0, rank + 1))))


def reduction(w: Writer) -> str | None:
    x = w.pick(is_array if w.rng.random() < 0.95 else is_value)
    if x is None:
        return None
    rng, v = w.rng, np.asarray(w.values[x])
    name = rng.choice(REDUCTIONS)
    axis = axis_text(rng, v.ndim)
    if name.startswith("arg") and axis.startswith("("):
        axis = "0"
    options = [] if axis == "None" and rng.random() < 0.7 else [f"axis={axis}"]
    if rng.random() < 0.25:
        options.append("keepdims=True")
    if name in ("sum", "prod", "mean", "var", "std", "nansum") and rng.random() < 0.2:
        options.append(
            f"dtype={rng.choice(['float', 'np.float32', 'np.int64', 'np.float64', 'complex'])}"
        )
    if name in ("var", "std", "nanvar", "nanstd") and rng.random() < 0.4:
        options.append("ddof=1")
    if (
        name in ("sum", "prod", "min", "max", "any", "all", "mean", "var", "std")
        and rng.random() < 0.15
    ):
        mask = w.pick(lambda m: is_array(m) and m.dtype == bool and m.shape == v.shape)
        options.append(f"where={mask or f'{x} > 0'}")
    if name in ("sum", "prod", "min", "max") and rng.random() < 0.2:
        options.append(f"initial={rng.choice(['0', '1', '2.5', '-3'])}")
    kind = rng.random()
    if kind < 0.25 and name in kinds.METHODS:
        return f"{w.fresh()} = {x}.{name}({', '.join(options)})"
    if kind < 0.35:
        name = rng.choice(
            ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "add"]
        )
        options = [o for o in options if not o.startswith("ddof")]
        return f"{w.fresh()} = np.{name}.reduce({', '.join([x, *options])})"
    return f"{w.fresh()} = np.{name}({', '.join([x, *options])})"


def created(w: Writer) -> str | None:
    rng = w.rng
    x = w.pick(is_array)
    shape = (x and rng.random() < 0.5 and f"{x}.shape") or str(
        rng.choice([(3,), (2, 3), (17,), (), (4, 1)])
    )
    dtype = rng.choice(["", "", f", {_dtype(rng)}"])
    number = rng.choice(["2", "0.5", "-1"])
    forms = [
        f"np.zeros({shape}{dtype})",
        f"np.ones({shape}{dtype})",
        f"np.full({shape}, {number}{dtype})",
        f"np.arange({rng.choice(RANGES)})",
        f"np.linspace({number}, {rng.choice(['1', '3.5'])}, {rng.choice([1, 2, 5, 17])})",
        f"np.eye({rng.choice(['3', '4', '3, 4', '3, k=1'])})",
        "np.array([1.0, 2.0, 3.0])",
    ]
    if x:
        keyword = dtype and dtype.replace(", ", ", dtype=")
        forms += [
            f"np.zeros_like({x}{keyword})",
            f"np.ones_like({x}{keyword})",
            f"np.full_like({x}, {number}{keyword})",
            f"np.arange({x}.shape[0])",
            f"np.arange(len({x})) * 0.5",
        ]
    scalars = [n for n in w.names if np.ndim(w.values[n]) == 0 and is_value(w.values[n])]
    if len(scalars) > 1:
        forms.append(f"np.array([{rng.choice(scalars)}, {rng.choice(scalars)}])")
    return f"{w.fresh()} = {rng.choice(forms)}"


def _dtype(rng: random.Random) -> str:
    return f"np.dtype({rng.choice(DTYPES)!r})"


def joined(w: Writer) -> str | None:
    rng = w.rng
    x = w.pick(is_array)
    if x is None:
        return None
    rank = w.values[x].ndim
    others = [n for n in w.names if is_array(w.values[n]) and w.values[n].ndim == rank]
    same = [n for n in others if w.values[n].shape == w.values[x].shape]
    axis = rng.randrange(-rank, rank)
    many = ", ".join([x, *(rng.choice(others) for _ in range(rng.randrange(0, 3)))])
    equal = ", ".join([x, *(rng.choice(same) for _ in range(rng.randrange(0, 3)))])
    forms = [
        f"np.concatenate([{many}], axis={axis})",
        f"np.concatenate([{equal}], axis={axis})",
        f"np.concatenate(({equal},))",
        f"np.stack([{equal}], axis={rng.randrange(rank + 1)})",
        f"np.vstack([{equal}])",
        f"np.hstack([{equal}])",
        f"np.dstack([{equal}])",
        f"np.column_stack([{equal}])",
        f"np.append({x}, {rng.choice(others)})",
        f"np.array([{equal}])",
    ]
    return f"{w.fresh()} = {rng.choice(forms)}"


def chosen(w: Writer) -> str | None:
    rng = w.rng
    x = w.pick(is_value)
    assert x is not None
    mask = w.pick(lambda m: is_value(m) and np.asarray(m).dtype == bool)
    condition = (
        mask
        if mask and rng.random() < 0.6
        else f"{x} {rng.choice(['>', '<', '=='])} {matching(w, x)}"
    )
    y, z = matching(w, x), matching(w, x)
    forms = [
        f"np.where({condition}, {y}, {z})",
        f"np.where({condition}, {x}, {z})",
        f"np.clip({x}, {rng.choice(NUMBERS)}, {rng.choice(NUMBERS)})",
        f"np.clip({x}, {y}, {z})",
        f"np.clip({x}, None, {z})",
        f"np.select([{condition}, {x} > 0], [{y}, {x}], {rng.choice(NUMBERS)})",
        f"np.nan_to_num({x})",
        f"np.isclose({x}, {y})",
        f"np.maximum({x}, {y})",
    ]
    return f"{w.fresh()} = {rng.choice(forms)}"


def moved(w: Writer) -> str | None:
    rng = w.rng
    x = w.pick(is_array)
    if x is None:
        return None
    v = w.values[x]
    axis = rng.randrange(-v.ndim, v.ndim)
    forms = [
        f"np.pad({x}, {rng.choice(['1', '(1, 2)', '0'])})",
        f"np.pad({x}, 1, mode={rng.choice(['edge', 'reflect', 'wrap', 'symmetric'])!r})",
        f"np.pad({x}, 2, constant_values={rng.choice(['1', '-2.5'])})",
        f"np.tile({x}, {rng.choice(['2', '(2, 1)', '(1, 2)', '3'])})",
        f"np.repeat({x}, 2, axis={axis})",
        f"np.repeat({x}, {rng.choice([0, 1, 3])})",
        f"np.roll({x}, {rng.choice([1, -1, 2, 5])}, axis={rng.choice([axis, 'None'])})",
        f"np.diff({x}, axis={axis})",
        f"np.diff({x}, n=2)",
        f"np.tril({x}, {rng.choice([-1, 0, 1])})",
        f"np.triu({x})",
        f"np.diag({x})",
        f"np.diagflat({x})",
        f"np.delete({x}, {rng.choice([0, -1])}, axis={axis})",
        f"np.ediff1d({x})",
        f"np.split({x}, {rng.choice([1, 2, 3])})[0]",
        f"np.array_split({x}, 3)[{rng.choice([0, 1, -1])}]",
        f"np.broadcast_arrays({x}, {matching(w, x)})[{rng.choice([0, 1])}]",
        f"np.round({x}, {rng.choice([0, 1, 2, -1])})",
        f"{x}.round({rng.choice(['', '1'])})",
    ]
    return f"{w.fresh()} = {rng.choice(forms)}"


def contracted(w: Writer) -> str | None:
    rng = w.rng
    x = w.pick(is_array)
    if x is None:
        return None
    v = w.values[x]
    y = _multiplier(w, x, v.shape[-1])
    letters = "ijkl"[: v.ndim]
    dropped = "".join(c for c in letters if rng.random() < 0.5)
    forms = [
        f"{x} @ {y}",
        f"np.matmul({x}, {y})",
        f"np.dot({x}, {y})",
        f"{x}.dot({y})",
        f"np.einsum('{letters}->{dropped}', {x})",
        f"np.einsum('{letters},{letters}->{dropped}', {x}, {x})",
        f"np.tensordot({x}, {y}, 1)",
        f"np.outer({x}, {y})",
        f"np.inner({x}, {x})",
        f"np.vdot({x}, {x})",
        f"np.kron({x}, {y})",
        f"np.trace({x})",
        f"np.linalg.norm({x})",
        f"np.linalg.norm({x}, axis={rng.randrange(v.ndim)})",
        f"np.vecdot({x}, {x})",
    ]
    if v.ndim == 2:
        forms += [
            f"np.einsum('ij,jk->ik', {x}, {y})",
            f"np.einsum('ij,kj', {x}, {x})",
            f"np.einsum('ij,j', {x}, {x}[0])",
        ]
    return f"{w.fresh()} = {rng.choice(forms)}"


def _multiplier(w: Writer, x: str, n: int) -> str:
    """A second factor for x @ y."""
    fits = [
        name
        for name in w.names
        if is_array(w.values[name])
        and (w.values[name].shape[0] if w.values[name].ndim == 1 else w.values[name].shape[-2]) == n
    ]
    return w.rng.choice(fits) if fits and w.rng.random() < 0.7 else f"{x}.T"


def cast(w: Writer) -> str | None:
    x = w.pick(is_value)
    rng = w.rng
    if np.ndim(w.values.get(x or "", 0)) == 0 and rng.random() < 0.5:
        return f"{w.fresh()} = {rng.choice(CONVERSIONS)}({x})"
    form = rng.choice(
        ["{0}.astype({1})", "{0}.astype({1})", "np.asarray({0}, {1})", "np.array({0}, dtype={1})"]
    )
    return f"{w.fresh()} = {form.format(x, _dtype(rng))}"


def ufunc_call(w: Writer) -> str | None:
    """A ufunc with out=, where=, dtype=, or its outer form."""
    rng = w.rng
    x = w.pick(is_array)
    if x is None:
        return None
    if rng.random() < 0.4:
        name, args = rng.choice(UNARY), [x]
    else:
        name, args = rng.choice(BINARY), [x, matching(w, x)]
    outs = [n for n in w.names if is_array(w.values[n]) and w.values[n].shape == w.values[x].shape]
    out = rng.choice(outs)
    kind = rng.random()
    if kind < 0.4:
        return f"np.{name}({', '.join(args)}, out={out})"
    if kind < 0.6:
        return f"np.{name}({', '.join(args)}, out={out}, where={x} > 0)"
    if kind < 0.8:
        return f"{w.fresh()} = np.{name}({', '.join(args)}, dtype={_dtype(rng)})"
    if kind < 0.9:
        return f"np.copyto({out}, {x}, casting='unsafe')"
    return f"{w.fresh()} = np.{rng.choice(BINARY)}.outer({x}, {operand(w)})"


def statistic(w: Writer) -> str | None:
    rng = w.rng
    x = w.pick(is_array)
    if x is None:
        return None
    y = matching(w, x)
    forms = [
        f"np.average({x}, axis={rng.choice(['None', '0', '-1'])})",
        f"np.average({x}, weights=np.abs({x}) + 1)",
        f"np.cov({x})",
        f"np.gradient({x})" if w.values[x].ndim == 1 else f"np.gradient({x}, axis=0)",
        f"np.trapezoid({x})",
        f"np.cross({x}, {y})",
        f"np.polyval([1.0, 2.0, -0.5], {x})",
        f"np.convolve({x}, [1.0, 0.5])",
        f"np.sinc({x})",
        f"np.angle({x})",
        f"np.allclose({x}, {y})",
        f"np.array_equal({x}, {y})",
        f"divmod({x}, {y})[{rng.choice([0, 1])}]",
        f"np.modf({x})[{rng.choice([0, 1])}]",
        f"np.logaddexp.reduce({x})",
    ]
    return f"{w.fresh()} = {rng.choice(forms)}"


def gathered(w: Writer) -> str | None:
    rng = w.rng
    x = w.pick(is_array)
    if x is None:
        return None
    n = w.values[x].shape[0]
    some = [rng.randrange(-n, n) for _ in range(3)] if n else []
    whole = w.pick(
        lambda v: is_array(v) and v.dtype.kind in "iu" and v.size and n > v.max() and v.min() >= -n
    )
    forms = [
        f"{x}[{some}]",
        f"{x}[..., {some}]",
        f"np.take({x}, {some}, axis=0)",
        f"{x}[np.array({some}, int), ...]",
        f"{x}[np.argmax({x}, axis=0)]" if w.values[x].ndim == 1 else f"{x}[{some}]",
    ]
    if whole:
        forms += [f"{x}[{whole}]", f"np.take({x}, {whole}, axis=0)"]
    return f"{w.fresh()} = {rng.choice(forms)}"
