"""Size expressions: the integers that a shape, an index or a slice bound may be.

A *size* is a Python int or an `Expr`, a canonical polynomial with integer coefficients over atoms.
Atoms are `Var` (an input's extent, an int argument, a loop index) and `Fn` (floor division, modulo,
min, max, select, powers of 2). Equal polynomials are equal objects by value, so sizes can be
dictionary keys.

    >>> n = var("n", lo=0)
    >>> text(2 * (n + 1) - n)
    'n + 2'
    >>> bounds(n + 3)
    (3, None)

Comparing sizes has three answers (True, False, None for unknown) and lives in `core.assume`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from npjit.core.interval import Bound, Interval, least, most, times


@dataclass(frozen=True)
class Var:
    """A named unknown with constant bounds (None: unbounded)."""

    name: str
    lo: Bound = None
    hi: Bound = None

    @property
    def key(self) -> str:
        return self.name


@dataclass(frozen=True)
class Fn:
    """A non-polynomial term: floordiv, mod, min, max (two arguments), select (i, a, b: a if i >= 0
    else b) or pow2 (one argument).
    """

    name: str
    args: tuple[Size, ...]

    @cached_property
    def key(self) -> str:
        """Its text, by which terms are sorted."""
        return f"{self.name}({','.join(text(a) for a in self.args)})"


Atom = Var | Fn
Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Expr:
    """Sum of coefficient * monomial, sorted; the empty monomial is the constant. Never a plain
    constant.
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Size) -> Size:
        return _combine(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return _combine(self, other, -1)

    def __rsub__(self, other: Size) -> Size:
        return _combine(-self, other, 1)

    def __neg__(self) -> Size:
        return Expr(tuple((m, -c) for m, c in self.terms))

    def __mul__(self, other: Size) -> Size:
        acc: dict[Monomial, int] = {}
        for m, c in self.terms:
            for k, d in _terms(other):
                key = tuple(sorted(m + k, key=_atom_key))
                acc[key] = acc.get(key, 0) + c * d
        return _build(acc)

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        raise TypeError(f"the truth of the size {text(self)} is not known while tracing")

    def __repr__(self) -> str:
        return text(self)


Size = int | Expr
Shape = tuple[Size, ...]
# 2 to this is the greatest power of 2 that is a size
GREATEST_EXPONENT = 62


def _atom_key(atom: Atom) -> str:
    return atom.key


def _terms(size: Size) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, Expr):
        return size.terms
    return (((), size),) if size else ()


def _build(acc: Mapping[Monomial, int]) -> Size:
    terms = [(m, c) for m, c in acc.items() if c]
    if not terms:
        return 0
    if len(terms) == 1 and not terms[0][0]:
        return terms[0][1]
    # the constant last, higher degrees first: reads as people write it
    terms.sort(key=lambda t: (-len(t[0]), [a.key for a in t[0]]))
    return Expr(tuple(terms))


def _combine(a: Size, b: Size, sign: int) -> Size:
    acc = dict(_terms(a))
    for m, c in _terms(b):
        acc[m] = acc.get(m, 0) + sign * c
    return _build(acc)


def var(name: str, lo: Bound = None, hi: Bound = None) -> Expr:
    """A new unknown as a size."""
    return as_size(Var(name, lo, hi))


def as_size(atom: Atom) -> Expr:
    """An unknown or a term as a size."""
    return Expr((((atom,), 1),))


def floordiv(a: Size, b: Size) -> Size:
    """Python's a // b; b is assumed not to be 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(b, int):
        if b == 1:
            return a
        whole = {m: c // b for m, c in _terms(a) if c % b == 0}
        rest = {m: c for m, c in _terms(a) if c % b}
        if not rest:
            return _build(whole)
        if whole:
            return _build(whole) + as_size(Fn("floordiv", (_build(rest), b)))
    if a == b:
        return 1
    quotient = _exact_quotient(a, b)
    return quotient if quotient is not None else as_size(Fn("floordiv", (a, b)))


def _exact_quotient(a: Size, b: Size) -> Size | None:
    """a / b where b is one monomial that divides every term of a."""
    divisor = _terms(b)
    if len(divisor) != 1 or not divisor[0][0]:
        return None
    (mono, coef) = divisor[0]
    acc: dict[Monomial, int] = {}
    for m, c in _terms(a):
        left = list(m)
        for atom in mono:
            if atom not in left:
                return None
            left.remove(atom)
        if c % coef:
            return None
        acc[tuple(left)] = c // coef
    return _build(acc)


def mod(a: Size, b: Size) -> Size:
    """Python's a % b; b is assumed not to be 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if isinstance(b, int):
        rest = _build({m: c for m, c in _terms(a) if c % b})
        if isinstance(rest, int):
            return rest % b
        return as_size(Fn("mod", (rest, b)))
    if a == b or _exact_quotient(a, b) is not None:
        return 0
    return as_size(Fn("mod", (a, b)))


def smin(a: Size, b: Size) -> Size:
    """The smaller of two sizes."""
    return _extreme("min", a, b)


def smax(a: Size, b: Size) -> Size:
    """The larger of two sizes."""
    return _extreme("max", a, b)


def _extreme(name: str, a: Size, b: Size) -> Size:
    low, high = bounds(b - a)
    if low is not None and low >= 0:
        return a if name == "min" else b
    if high is not None and high <= 0:
        return b if name == "min" else a
    first, second = sorted((a, b), key=text)
    return as_size(Fn(name, (first, second)))


def select(i: Size, a: Size, b: Size) -> Size:
    """a where i >= 0, else b."""
    low, high = bounds(i)
    if a == b or (low is not None and low >= 0):
        return a
    if high is not None and high < 0:
        return b
    return as_size(Fn("select", (i, a, b)))


def pow2(n: Size) -> Size:
    """2 ** n; n is assumed to be in 0..GREATEST_EXPONENT."""
    return 1 << _exponent(n) if isinstance(n, int) else as_size(Fn("pow2", (n,)))


def _exponent(n: int) -> int:
    return min(max(n, 0), GREATEST_EXPONENT)


def product(sizes: Iterable[Size]) -> Size:
    """The product; 1 for none."""
    total: Size = 1
    for s in sizes:
        total = total * s
    return total


def atoms(size: Size) -> set[Var]:
    """Every Var in a size, those inside function terms included."""
    found: set[Var] = set()
    for mono, _ in _terms(size):
        for a in mono:
            if isinstance(a, Var):
                found.add(a)
            else:
                for arg in a.args:
                    found |= atoms(arg)
    return found


def linear(size: Size, v: Var) -> tuple[Size | None, Size]:
    """(c, r) with size == c * v + r and no v in either; (None, size) when v occurs otherwise."""
    coefficient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for mono, c in _terms(size):
        others = list(mono)
        if v in mono:
            others.remove(v)
        if any(a == v or (isinstance(a, Fn) and v in atoms(as_size(a))) for a in others):
            return None, size
        (coefficient if v in mono else rest)[tuple(others)] = c
    return _build(coefficient), _build(rest)


@lru_cache(maxsize=4096)
def depth(size: Size) -> int:
    """How deep function terms are nested in a size."""
    if isinstance(size, int):
        return 0
    inner = [a for mono, _ in size.terms for a in mono if isinstance(a, Fn)]
    return max((1 + max(map(depth, f.args)) for f in inner), default=0)


def is_unwieldy(size: Expr) -> bool:
    """Whether an expression has grown beyond what is worth keeping symbolic."""
    return len(size.terms) > 24 or depth(size) > 4


@lru_cache(maxsize=65536)
def bounds(size: Size) -> Interval:
    """Interval of the values a size can take, from its variables' own bounds."""
    if isinstance(size, int):
        return size, size
    low: Bound = 0
    high: Bound = 0
    for mono, coef in size.terms:
        lo: Bound = coef
        hi: Bound = coef
        for a in mono:
            lo, hi = times((lo, hi), _atom_bounds(a))
        low = None if low is None or lo is None else low + lo
        high = None if high is None or hi is None else high + hi
    return low, high


def _atom_bounds(atom: Atom) -> Interval:
    if isinstance(atom, Var):
        return atom.lo, atom.hi
    ranges = [bounds(a) for a in atom.args]
    if atom.name == "min":
        return least([r[0] for r in ranges], all), least([r[1] for r in ranges], any)
    if atom.name == "max":
        return most([r[0] for r in ranges], any), most([r[1] for r in ranges], all)
    if atom.name == "select":
        return least([r[0] for r in ranges[1:]], all), most([r[1] for r in ranges[1:]], all)
    if atom.name == "pow2":
        low, high = ranges[0]
        return 1 << _exponent(low or 0), 1 << _exponent(GREATEST_EXPONENT if high is None else high)
    (a_lo, a_hi), (b_lo, b_hi) = ranges
    if atom.name == "mod":
        if b_lo is not None and b_lo > 0:
            return 0, None if b_hi is None else b_hi - 1
        return None, None
    if b_lo is not None and b_lo > 0 and a_lo is not None and a_lo >= 0:
        smallest = 0 if b_hi is None else a_lo // b_hi
        return smallest, None if a_hi is None else a_hi // b_lo
    return None, None


def substitute(size: Size, values: Mapping[Var, Size]) -> Size:
    """The size with variables replaced by sizes."""
    return _rebuilt(size, lambda a: _substitute_atom(a, values))


def _rebuilt(size: Size, answer: Callable[[Atom], Size]) -> Size:
    if isinstance(size, int):
        return size
    total: Size = 0
    for mono, coef in size.terms:
        part: Size = coef
        for a in mono:
            part = part * answer(a)
        total = total + part
    return total


_BUILDERS: dict[str, Callable[..., Size]] = {
    "floordiv": floordiv,
    "mod": mod,
    "min": smin,
    "max": smax,
    "select": select,
    "pow2": pow2,
}


def _substitute_atom(atom: Atom, values: Mapping[Var, Size]) -> Size:
    if isinstance(atom, Var):
        found = values.get(atom)
        return as_size(atom) if found is None else found
    return _BUILDERS[atom.name](*[substitute(a, values) for a in atom.args])


def resolved(size: Size, le: Callable[[Size, Size], bool | None]) -> Size:
    """The size with each min, max or select whose answer `le` (whether a <= b) knows replaced."""
    return _rebuilt(size, lambda a: _resolved_atom(a, le)) if depth(size) else size


def _resolved_atom(atom: Atom, le: Callable[[Size, Size], bool | None]) -> Size:
    if isinstance(atom, Var):
        return as_size(atom)
    args = [resolved(a, le) for a in atom.args]
    if atom.name == "select" and le(0, args[0]):
        return args[1]
    if atom.name == "select" and le(args[0], -1):
        return args[2]
    if atom.name in ("min", "max"):
        for less, more in (args, args[::-1]):
            if le(less, more):
                return less if atom.name == "min" else more
    return _BUILDERS[atom.name](*args)


def text(size: Size, name: Callable[[Var], str] = lambda v: v.name, prefix: str = "") -> str:
    """The size as an expression that C++ and Python both read; function terms are `prefix` +
    name(args).
    """
    if isinstance(size, int):
        return str(size)
    parts: list[str] = []
    for mono, coef in size.terms:
        factors = [_atom_text(a, name, prefix) for a in mono]
        if abs(coef) != 1 or not factors:
            factors.insert(0, str(abs(coef)))
        sign = "-" if coef < 0 else "+"
        parts.append(f"{sign} {'*'.join(factors)}")
    joined = " ".join(parts)
    return joined[2:] if joined.startswith("+ ") else "-" + joined[2:]


def _atom_text(atom: Atom, name: Callable[[Var], str], prefix: str) -> str:
    if isinstance(atom, Var):
        return name(atom)
    return f"{prefix}{atom.name}({', '.join(text(a, name, prefix) for a in atom.args)})"
