"""What a trace knows and assumes about sizes: three-valued comparison, and guards where it must
decide.

`Assumptions` holds the actual value of each input size in the call being traced. A question that
bounds cannot settle is decided by those values, and the answer is recorded as a `Guard`: the
compiled code is used again only for sizes that give the same answers.

    >>> from npjit.core.size import var
    >>> n, m = var("n", lo=0), var("m", lo=0)
    >>> known = Assumptions({"n": 5, "m": 5})
    >>> known.eq(n, m), known.decide_eq(n, m), known.eq(n, m)
    (None, True, True)
    >>> [str(g) for g in known.guards]
    ['n == m']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from npjit.core.size import (
    Expr,
    Fn,
    Size,
    Var,
    as_size,
    atoms,
    bounds,
    floordiv,
    linear,
    pow2,
    resolved,
    smax,
    smin,
    substitute,
    text,
)


@dataclass(frozen=True)
class Guard:
    """`a relation b` must hold for the sizes of a call; relation is ==, !=, <= or <."""

    relation: str
    a: Size
    b: Size

    def __str__(self) -> str:
        return f"{text(self.a)} {self.relation} {text(self.b)}"


class Unknown(Exception):
    """A size question that neither bounds nor the sizes at hand can answer."""


class Assumptions:
    """Facts about the sizes of one trace; grows while tracing, never forgets."""

    def __init__(self, values: Mapping[str, int] | None = None) -> None:
        self.values: dict[str, int] = dict(values or {})
        self.guards: list[Guard] = []
        # what a loop index or a traced index ranges over, innermost last: var -> (least, greatest)
        self.ranges: dict[Var, tuple[Size, Size]] = {}
        # of how many ranges a bound of each such variable is made
        self.reach: dict[Var, int] = {}
        # sizes known not to be negative here: by guards, and by the conditions of branches around
        self.facts: list[Size] = []
        # of how many guards the facts are among them
        self._taken = 0
        self._equal: dict[Var, Size] = {}
        # answers of `normal` since a guard has last equated a variable
        self._normal: dict[Size, Size] = {}
        self._known: dict[Guard, bool] = {}

    @staticmethod
    def given(guards: Iterable[Guard]) -> Assumptions:
        """What holds for every call that passes these guards."""
        return Assumptions().copy(guards)

    def copy(self, guards: Iterable[Guard] = ()) -> Assumptions:
        """The same knowledge and these guards, to be added to for the body of a loop or branch."""
        known = Assumptions()
        known.ranges = dict(self.ranges)
        known.facts = list(self.facts)
        known._equal = dict(self._equal)
        known._known = dict(self._known)
        known.guards = [*self.guards, *guards]
        for g in known.guards[self._taken :]:
            known._take(g)
        known._taken = len(known.guards)
        return known

    def _take(self, g: Guard) -> None:
        """What follows from a guard."""
        if g.relation == "<":
            self._known[Guard("<=", g.b, g.a)] = False
        elif g.relation == "!=":
            self._known[Guard("==", g.a, g.b)] = False
        else:
            self._known[g] = True
        if g.relation == "==":
            self._equate(self.normal(g.a - g.b))
        elif g.relation in ("<=", "<"):
            self.facts.append(g.b - g.a - (g.relation == "<"))

    def settled(self, size: Size) -> Size:
        """`normal`, and each min, max or select whose answer is known replaced by it."""
        return resolved(self.normal(size), self.le)

    def normal(self, size: Size) -> Size:
        """The size with every variable that a guard has equated replaced."""
        if not self._equal or isinstance(size, int):
            return size
        found = self._normal.get(size)
        if found is None:
            found = self._normal[size] = substitute(size, self._equal)
        return found

    def eq(self, a: Size, b: Size) -> bool | None:
        """Whether a == b: True, False, or None when it depends on the sizes."""
        difference = self.normal(a - b)
        if isinstance(difference, int):
            return difference == 0
        low = bounds(self._extreme(difference, least=True))[0]
        high = bounds(self._extreme(difference, least=False))[1]
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        return self._known.get(Guard("==", self.normal(a), self.normal(b)))

    def le(self, a: Size, b: Size) -> bool | None:
        """Whether a <= b: True, False, or None when it depends on the sizes."""
        difference = self.normal(b - a)
        low = bounds(self._extreme(difference, least=True))[0]
        if low is not None and low >= 0:
            return True
        high = bounds(self._extreme(difference, least=False))[1]
        if high is not None and high < 0:
            return False
        if any(self._follows(difference, fact) for fact in self.facts):
            return True
        if any(self._follows(d, fact) for d in self._without(difference) for fact in self.facts):
            return True
        return self._known.get(Guard("<=", self.normal(a), self.normal(b)))

    def _follows(self, size: Size, fact: Size) -> bool:
        """Whether size >= 0 because fact >= 0."""
        low = bounds(self._extreme(self.normal(size - fact), least=True))[0]
        return low is not None and low >= 0

    def _without(self, size: Size) -> Iterator[Size]:
        """Sizes without a loop's index, one of which need only be >= 0 for `size` to be: a branch
        has asked about the index."""
        if not self._ranged(size):
            return
        for fact in self.facts:
            if self._ranged(fact):
                rest = self.normal(size - fact)
                if not self._ranged(rest):
                    yield rest

    def _extreme(self, size: Size, least: bool) -> Size:
        """The least (greatest) value over the ranges of loop indices, as a size without them where
        that is linear.
        """
        tried: set[Var] = set()
        while True:
            v = next((v for v in self._ranged(size) if v not in tried), None)
            if v is None:
                return size
            tried.add(v)
            coefficient, rest = linear(size, v)
            if coefficient is None:
                continue
            low, high = bounds(coefficient)
            ends = self.ranges[v]
            if low is not None and low >= 0:
                size = self.normal(coefficient * ends[0 if least else 1] + rest)
            elif high is not None and high <= 0:
                size = self.normal(coefficient * ends[1 if least else 0] + rest)

    def _ranged(self, size: Size) -> list[Var]:
        """The variables of a size that have ranges, the innermost first."""
        found = [v for v in atoms(size) if v in self.ranges]
        return found if len(found) < 2 else [v for v in reversed(self.ranges) if v in found]

    def greatest(self, size: Size) -> Size:
        """A bound from above, without loop indices and computed sizes where one can be found."""
        size = self._extreme(self.normal(size), least=False)
        if isinstance(size, int) or not atoms(size) & self.ranges.keys():
            return size
        bound: Size = 0
        for mono, coef in size.terms:
            term = Expr(((mono, coef),)) if mono else coef
            inner = isinstance(term, Expr) and bool(atoms(term) & self.ranges.keys())
            bound = bound + (self._greatest_term(mono, coef) if inner else term)
        return bound

    def _greatest_term(self, mono: tuple[Var | Fn, ...], coef: int) -> Size:
        """A bound of coef * mono; the term itself where there is none to be found."""
        term = Expr(((mono, coef),))
        (atom, *more) = mono
        if coef < 0:
            low = bounds(Expr(((mono, 1),)))[0]
            return term if low is None else coef * low
        if more:
            return term
        if isinstance(atom, Var):
            return coef * self.greatest(self.ranges[atom][1])
        parts = [self.greatest(a) for a in atom.args]
        if atom.name in ("min", "max"):
            return coef * (smin(*parts) if atom.name == "min" else smax(*parts))
        if atom.name == "select":
            return coef * smax(*parts[1:])
        if atom.name == "pow2":
            return coef * pow2(parts[0])
        if atom.name == "floordiv" and isinstance(atom.args[1], int) and atom.args[1] > 0:
            return coef * floordiv(parts[0], atom.args[1])
        return coef * (parts[1] - 1) if atom.name == "mod" else term

    def lt(self, a: Size, b: Size) -> bool | None:
        """Whether a < b."""
        return self.le(a + 1, b)

    def holds(self, relation: str, a: Size, b: Size) -> bool | None:
        """Whether `a relation b`, the relation being one of < <= > >= == != or "in": 0 <= a < b."""
        if relation == "in":
            ends = (self.le(0, a), self.lt(a, b))
            return False if False in ends else None if None in ends else True
        if relation in (">", ">="):
            a, b, relation = b, a, relation.replace(">", "<")
        if relation in ("<", "<="):
            return self.lt(a, b) if relation == "<" else self.le(a, b)
        equal = self.eq(a, b)
        return equal if equal is None or relation == "==" else not equal

    def actual(self, size: Size) -> int:
        """The value in the call being traced; Unknown with a loop index or computed size in it."""
        missing = [v for v in atoms(size) if v.name not in self.values]
        if missing:
            raise Unknown(
                f"{text(size)} depends on {missing[0].name}, known only when the code runs"
            )
        value = substitute(size, {v: self.values[v.name] for v in atoms(size)})
        assert isinstance(value, int)
        return value

    def decide_eq(self, a: Size, b: Size) -> bool:
        """Whether a == b, guarding on the actual sizes when it depends on them."""
        answer = self.eq(a, b)
        if answer is None and self._equate_sizes(a - b):
            answer = self.eq(a, b)
        if answer is None:
            answer = self.actual(a) == self.actual(b)
            self._record(Guard("==", self.normal(a), self.normal(b)), answer)
            if answer:
                self._equate(self.normal(a - b))
        return answer

    def decide_le(self, a: Size, b: Size) -> bool:
        """Whether a <= b (for every value of the loop indices), guarding on the actual sizes when
        it depends on them.

        Unknown when it holds for some trips of a loop only.
        """
        answer = self.le(a, b)
        if answer is not None:
            return answer
        difference = self.normal(b - a)
        least = self._extreme(difference, least=True)
        if self.actual(least) >= 0:
            self._record(Guard("<=", 0, least), True)
            self._known[Guard("<=", self.normal(a), self.normal(b))] = True
            return True
        greatest = self._extreme(difference, least=False)
        if self.actual(greatest) < 0:
            self._record(Guard("<=", 0, greatest), False)
            self._known[Guard("<=", self.normal(a), self.normal(b))] = False
            return False
        raise Unknown(f"{text(a)} <= {text(b)} holds for some trips of a loop only")

    def _equate_sizes(self, difference: Size) -> bool:
        """Where a loop index leaves a question open: guard that input sizes in it which are equal
        in this call stay equal.
        """
        known = [v for v in atoms(self.normal(difference)) if v.name in self.values]
        if len(known) == len(atoms(difference)):
            return False
        first: dict[int, Var] = {}
        for v in sorted(known, key=lambda v: v.name):
            other = first.setdefault(self.values[v.name], v)
            if other is not v:
                self.decide_eq(*(as_size(x) for x in (other, v)))
        return len(first) < len(known)

    def specialise(self, size: Size) -> int:
        """The size as a plain int, guarded to stay that."""
        if isinstance(size, int):
            return size
        value = self.actual(size)
        self.decide_eq(size, value)
        return value

    def _record(self, question: Guard, answer: bool) -> None:
        self._known[question] = answer
        if question.relation == "==":
            self.guards.append(question if answer else Guard("!=", question.a, question.b))
        else:
            self.guards.append(question if answer else Guard("<", question.b, question.a))

    def _equate(self, difference: Size) -> None:
        """Use `difference == 0` to replace one variable that stands alone in it, the later-named
        one.
        """
        if not isinstance(difference, Expr):
            return
        alone = [
            (mono[0], coef)
            for mono, coef in difference.terms
            if len(mono) == 1 and isinstance(mono[0], Var) and abs(coef) == 1
        ]
        for v, coef in sorted(alone, key=lambda t: (len(t[0].name), t[0].name), reverse=True):
            rest = difference - Expr((((v,), coef),))
            if v in atoms(rest):
                continue
            value = -rest if coef == 1 else rest
            for known in self._equal:
                self._equal[known] = substitute(self._equal[known], {v: value})
            self._equal[v] = value
            self._normal.clear()
            return
