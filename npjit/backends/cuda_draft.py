"""What a tape is made of, as steps are added.

In: launches, products, loops, branches and callables one after the other. Out: a `Form`:

    draft.work(Start("k0<i32, 4, 0x24ull>", (2, 1), 256), 0, "k0")
    draft.form()        ->  [words, patches, [("launch", "k0<i32, 4, 0x24ull>", 2, 1, 256, ...)]]

Parameters are *words* of 64 bits. A *patch* says which word is the address of a numbered base plus
an offset; a `Flag` says where a bool lies:

    words     [x's address, y's address, 1000, ...]       the parameters of all launches
    patches   word 0 is base 0 + 0, word 1 is base 1 + 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from npjit import _runtime
from npjit.backends.cuda_blas import Product
from npjit.backends.cuda_form import Form
from npjit.codegen.cuda_launch import Start

# a base's number, and an offset in bytes
Flag = tuple[int, int]


@dataclass(frozen=True)
class Prepared:
    """Steps that are ready, the bytes of scratch memory and the number of counters they need."""

    tape: _runtime.Tape
    scratch: int
    counters: int


@dataclass(frozen=True)
class Work:
    """A function or a product to start, on words of a draft."""

    what: Start | Product
    first: int
    words: int
    label: str

    def moved(self, by: int) -> Work:
        """The same, its words so many further on."""
        return Work(self.what, self.first + by, self.words, self.label)

    def form(self) -> tuple[Any, ...]:
        """As a step of a form."""
        if isinstance(self.what, Product):
            return "product", self.what, self.first, self.words, self.label
        start = self.what
        how = *start.grid, start.block, start.shared
        return "launch", start.function, *how, self.first, self.words, self.label


@dataclass(frozen=True)
class Branch:
    """Drafts in a row: "require" has one or none, "repeat" takes them by turns so many `times`,
    "loop" has test and body, "branch" two sides; as the runtime's `Tape` describes them."""

    kind: str
    flag: Flag
    bodies: tuple[Draft, ...] = ()
    stops: tuple[Flag, ...] = ()
    times: int = 0

    def form(self) -> tuple[Any, ...]:
        """As a step of a form."""
        bodies = [b.form() for b in self.bodies]
        return self.kind, self.flag, bodies, self.stops, self.times


@dataclass
class Draft:
    """See the module's docstring."""

    words: list[int] = field(default_factory=list)
    patches: list[tuple[int, int, int]] = field(default_factory=list)
    steps: list[Work | Branch | Callable[[list[int]], Any]] = field(default_factory=list)

    def patch(self, base: int, offset: int) -> None:
        """One more word: a base plus an offset."""
        self.patches.append((len(self.words), base, offset))
        self.words.append(0)

    def work(self, what: Start | Product, first: int, label: str) -> None:
        """Start something with the words from number `first` on."""
        self.steps.append(Work(what, first, len(self.words) - first, label))

    def add(self, body: Draft, times: int) -> None:
        """The steps of another draft, so many times behind each other."""
        by = len(self.words)
        self.words += body.words
        self.patches += [(word + by, base, offset) for word, base, offset in body.patches]
        self.steps += [s.moved(by) if isinstance(s, Work) else s for s in body.steps] * times

    def is_plain(self) -> bool:
        """Whether there is nothing but launches and products."""
        return all(isinstance(step, Work) for step in self.steps)

    def works(self) -> Iterator[Work]:
        """All launches and products, those of loops and branches once."""
        for step in self.steps:
            if isinstance(step, Work):
                yield step
            elif isinstance(step, Branch):
                for body in step.bodies:
                    yield from body.works()

    def form(self) -> Form:
        """All of it; steps that are callables stay so."""
        steps = [s.form() if isinstance(s, Work | Branch) else s for s in self.steps]
        return self.words, self.patches, steps
