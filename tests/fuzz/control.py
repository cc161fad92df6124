"""Random programs with loops, branches, jumps, carried numbers and arrays, and writes through
views.

In: a `random.Random`. Out: a `Program`. Lines are drawn by the kind of their names: `a b u v w`
hold vectors, `A` a matrix, `s t q` numbers, `k m` ints, `i j` indices:

    control_program(random.Random(3))
"""

from __future__ import annotations

import random

from tests.fuzz.program import Program

VECTORS = ["a", "b", "u", "v", "w"]
FLOATS = ["s", "t", "q"]
INTS = ["k", "m"]
EXTENTS = [1, 2, 3, 5, 6, 7, 12, 17, 18, 20]
# programs that raise are kept this often
RAISING = 0.1


def control_program(rng: random.Random) -> Program:
    """A program that mostly runs without an exception."""
    while True:
        made = Body(rng).program()
        error = made.call(made.function()).error
        if error is None or rng.random() < RAISING:
            return made


class Body:
    """The lines of one program while they are written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.depth = 1
        self.loops = 0
        self.counters = 0
        self.indices: list[str] = []
        self.left = rng.randrange(4, 16)

    def program(self) -> Program:
        """The whole program."""
        rng = self.rng
        setup = self._setup()
        names = [line.split(" = ")[0] for line in setup]
        self.has_matrix = "A" in names
        for name, value in self._beginnings(names):
            self.add(f"{name} = {value}")
        while self.left > 0:
            self.statement()
        wanted = [n for n in ["s", "t", "q", "k", "m", "u", "v", "w"] if rng.random() < 0.6]
        if rng.random() < 0.1:
            wanted.append(rng.choice(["i", "j", "a"]))
        self.add(f"return ({', '.join([*wanted, 's'])},)")
        return Program.of(setup, [f"def f({', '.join(names)}):", *self.lines])

    def _setup(self) -> list[str]:
        rng = self.rng
        n = rng.choice(EXTENTS)
        dtype = rng.choice(["f8", "f8", "f8", "i8", "f4"])
        other = dtype if rng.random() < 0.8 else rng.choice(["f8", "i8", "i4", "f4"])
        layout = rng.choice(["C", "C", "C", "reversed", "strided"])
        lines = [
            f"a = make({dtype!r}, ({n},), {rng.randrange(1000)}, {layout!r})",
            f"b = make({other!r}, ({n},), {rng.randrange(1000)})",
        ]
        if rng.random() < 0.06:
            lines[1] = rng.choice(["b = a", "b = a[::-1]"])
        if rng.random() < 0.4:
            shape = (rng.choice(EXTENTS[:7]), n) if rng.random() < 0.5 else (n, n)
            lines.append(f"A = make({dtype!r}, {shape}, {rng.randrange(1000)})")
        lines.append(f"n = {n}" if rng.random() < 0.7 else f"n = {rng.randrange(0, n + 1)}")
        lines.append(f"k = {rng.choice([0, 1, 2, 3, 5, -1, 8])}")
        lines.append(f"s = {rng.choice(['0.5', '-1.0', '2', '0.0', 'np.float64(1.5)', '3'])}")
        return lines

    def _beginnings(self, given: list[str]) -> list[tuple[str, str]]:
        rng = self.rng
        made = [
            ("t", rng.choice(["0.0", "0", "1", "a[0]", "s", "a.sum()", "np.max(b)"])),
            ("q", rng.choice(["1.0", "0", "s * 2", "b[0]", "False"])),
            ("m", rng.choice(["0", "1", "n", "len(a)", "k"])),
            ("u", rng.choice(["np.zeros(len(a))", "a.copy()", "a + b", "a", "np.zeros_like(a)"])),
            ("v", rng.choice(["np.ones(len(a))", "b.copy()", "a * 2", "b", "u", "a[:]"])),
            ("w", rng.choice(["np.zeros(len(a))", "u", "v[:]", "a - 1.0", "b[::-1]", "u.copy()"])),
        ]
        return [(name, value) for name, value in made if name not in given and rng.random() < 0.95]

    # ------------------------------------------------------------ statements

    def add(self, text: str) -> None:
        """A line at the current depth."""
        self.lines.append("    " * self.depth + text)
        self.left -= 1

    def statement(self) -> None:
        """One statement, with its block if it has one."""
        rng = self.rng
        kind = rng.random()
        if self.depth < 4 and kind < 0.16:
            self.for_loop()
        elif self.depth < 4 and kind < 0.21:
            self.while_loop()
        elif self.depth < 5 and kind < 0.36:
            self.branch()
        elif self.loops and kind < 0.41:
            self.jump()
        elif kind < 0.415:
            self.add(f"assert {self.condition()}")
        else:
            self.simple()

    def block(self, first: str = "") -> None:
        """Some statements, deeper."""
        self.depth += 1
        if first:
            self.add(first)
        for _ in range(self.rng.choice([1, 1, 2, 2, 3, 4])):
            self.statement()
        self.depth -= 1

    def for_loop(self) -> None:
        rng = self.rng
        index = rng.choice([x for x in "ijl" if x not in self.indices] or ["i"])
        head = rng.choice(
            [
                f"for {index} in range(n):",
                f"for {index} in range(n):",
                f"for {index} in range(len(a)):",
                f"for {index} in range(1, n):",
                f"for {index} in range(1, n - 1):",
                f"for {index} in range(n - 1, -1, -1):",
                f"for {index} in range(k % 12):" if self.lines[6:] else f"for {index} in range(k):",
                f"for {index} in range(m % 12):",
                f"for {index} in range(0, n, 2):",
                f"for {index} in range(7):",
                f"for {index} in range(2):",
                f"for {index}, t in enumerate({rng.choice(VECTORS)}):",
                f"for s, t in zip({rng.choice(VECTORS)}, {rng.choice(VECTORS)}):",
                f"for q in {rng.choice(VECTORS)}:",
            ]
            + ([f"for {index} in range({self.indices[-1]}):"] if self.indices else [])
            + ([f"for {index} in range({self.indices[-1]} + 1, n):"] if self.indices else [])
            + (["for w in A:", f"for {index} in range(A.shape[0]):"] if self.has_matrix else [])
        )
        self.add(head)
        bound = [index] if f"for {index}" in head else []
        self.indices += bound
        self.loops += 1
        self.block()
        self.loops -= 1
        if bound:
            self.indices.pop()
        if rng.random() < 0.1:
            self.add("else:")
            self.depth += 1
            self.simple()
            self.depth -= 1

    def while_loop(self) -> None:
        rng = self.rng
        counter = f"c{self.counters}"
        self.counters += 1
        limit = rng.choice([3, 6, 9, 14])
        self.add(f"{counter} = 0")
        test = rng.choice(
            [
                f"{counter} < {limit}",
                f"{counter} < {limit} and ({self.condition()})",
                f"({self.condition()}) and {counter} < {limit}",
                f"{counter} < {limit} and np.abs({rng.choice(VECTORS)}).max() < 50",
            ]
        )
        self.add(f"while {test}:")
        self.indices.append(counter)
        self.loops += 1
        self.block(f"{counter} += 1")
        self.loops -= 1
        self.indices.pop()

    def branch(self) -> None:
        self.add(f"if {self.condition()}:")
        self.block()
        if self.rng.random() < 0.25:
            self.add(f"elif {self.condition()}:")
            self.block()
        if self.rng.random() < 0.5:
            self.add("else:")
            self.block()

    def jump(self) -> None:
        rng = self.rng
        self.add(f"if {self.condition()}:")
        self.depth += 1
        if rng.random() < 0.3:
            self.simple()
        returned = f"return {rng.choice(['s', '(s, t)', 'u', 'k', 'v', '(s, u)'])}"
        self.add(rng.choice(["break", "break", "continue", "continue", returned]))
        self.depth -= 1

    def simple(self) -> None:
        """A line without a block."""
        rng = self.rng
        x, y, z = (rng.choice(VECTORS) for _ in range(3))
        i, j = self.index(), self.index()
        number, count = rng.choice(FLOATS), rng.choice(INTS)
        value = self.number()
        lines = [
            f"{number} = {value}",
            f"{number} = {value}",
            f"{number} += {value}",
            f"{number} {rng.choice(['+', '-'])}= {value}",
            f"{number} *= {rng.choice(['0.5', '-1', '1.5'])}",
            f"{number} = {rng.choice(['min', 'max'])}({value}, {number})",
            f"{count} = {self.integer()}",
            f"{count} += {rng.choice(['1', '2', '-1', self.integer()])}",
            f"{x}[{i}] = {value}",
            f"{x}[{i}] = {value}",
            f"{x}[{i}] = {x}[{j}]",
            f"{x}[{i}] += {value}",
            f"{x}[{i}] {rng.choice(['-', '*'])}= {y}[{j}]",
            f"{x}[{i}], {x}[{j}] = {x}[{j}], {x}[{i}]",
            f"{x}[:] = {self.vector()}",
            f"{x}[:{i}] = {rng.choice(['0', value, f'{y}[:{i}]', f'{x}[:{i}][::-1]'])}",
            f"{x}[1:] = {y}[:-1]",
            f"{x}[1:] += {x}[:-1]",
            f"{x}[{i}:] *= 0.5",
            f"{x} = {self.vector()}",
            f"{x} = {self.vector()}",
            f"{x} = {y}",
            f"{x} = {y}[:]",
            f"{x} = {y}[::-1]",
            f"{x} += {self.vector()}",
            f"{x} *= {rng.choice(['0.5', '2', number])}",
            f"{x}, {y} = {y}, {x}",
            f"{x}, {y}, {z} = {y}, {z}, {x}",
            f"{x} = np.zeros(len(a))",
            f"{number} = {x}[{i}] if {self.condition()} else {number}",
            f"{x} = {y} if {self.condition()} else {z}",
            f"{number}, {count} = {value}, {self.integer()}",
        ]
        if self.has_matrix:
            lines += [
                f"A[{i}] = {self.vector()}",
                f"A[{i}, {j}] = {value}",
                f"A[{i}, {j}] += {value}",
                f"{x} = A[{i}]",
                f"{x} = A[:, {j}].copy()",
                f"A[{i}] -= {value} * A[{j}]",
                f"{number} = A[{i}, :{j}] @ A[{j}, :{j}]",
                f"A[{i}, {j}:] = {x}[{j}:]",
                f"A[[{i}, {j}]] = A[[{j}, {i}]]",
            ]
        self.add(rng.choice(lines))

    # ------------------------------------------------------------ expressions

    def index(self) -> str:
        """An index: mostly a loop's, at times out of range."""
        rng = self.rng
        known = self.indices or ["0", "1", "-1"]
        i = rng.choice(known)
        forms = [i] * 6 + [
            f"{i} - 1",
            f"{i} - 1",
            f"-{i}",
            f"n - 1 - {i}",
            f"{i} // 2",
            "0",
            "-1",
            "k",
        ]
        forms += [
            f"{i} % 3",
            f"({i} + 1) % n",
            f"{i} + 1",
            "n - 1",
            f"({i} * 3) % n",
            "m",
            f"-{i} - 1",
        ]
        forms += [f"int({rng.choice(VECTORS)}[{i}])", f"np.argmax({rng.choice(VECTORS)})"]
        return rng.choice(forms)

    def integer(self) -> str:
        """An int expression."""
        rng = self.rng
        i = rng.choice([*self.indices, "n", "k", "m", "2"])
        forms = [i, f"{rng.choice(INTS)} + 1", f"{i} + {rng.choice(INTS)}"]
        forms += [f"{i} * 2 % 50", f"{i} - 1"]
        forms += [
            f"{i} // 2",
            f"{i} % 3",
            f"abs({i} - 2)",
            "len(a)",
            "1",
            "0",
            f"{i} if {i} > 2 else 1",
        ]
        forms += [f"min({i}, {rng.choice(INTS)})", f"int({rng.choice(FLOATS)} > 0)"]
        return rng.choice(forms)

    def number(self) -> str:
        """A scalar expression."""
        rng = self.rng
        x, y = rng.choice(VECTORS), rng.choice(VECTORS)
        p, r = rng.choice(FLOATS), rng.choice([*FLOATS, *INTS, *self.indices, "0.5"])
        i = self.index()
        forms = [
            p,
            f"{x}[{i}]",
            f"{x}[{i}]",
            f"{p} + {r}",
            f"{p} * 0.5 + {r}",
            f"{p} - {x}[{i}]",
            f"{x}[{i}] * {y}[{self.index()}]",
            f"np.sin({p})",
            f"{x}.sum()",
            f"np.max({x})",
            f"{x}[:{i}].sum()",
            f"{x} @ {y}",
            f"abs({p})",
            f"np.sqrt(abs({p}))",
            f"float({p})",
            f"{r}",
            "0.0",
            "1",
            f"{p} / 3",
            f"{x}[{i}] > {p}",
        ]
        return rng.choice(forms)

    def vector(self) -> str:
        """An array expression of the full length, mostly."""
        rng = self.rng
        x, y, p = (
            rng.choice(VECTORS),
            rng.choice(VECTORS),
            rng.choice([*FLOATS, "0.5", *self.indices]),
        )
        forms = [
            f"{x} + {y}",
            f"{x} * {p}",
            f"{x} - {y} * {p}",
            f"np.sin({x})",
            f"{x}.copy()",
            f"{x}[::-1]",
            f"np.where({x} > {p}, {x}, {y})",
            f"np.maximum({x}, {y})",
            f"{x} / 2",
            f"np.zeros(len(a)) + {p}",
            f"np.roll({x}, 1)",
            f"{x} + {x}[::-1]",
        ]
        return rng.choice(forms)

    def condition(self) -> str:
        """Something that Python asks the truth of."""
        rng = self.rng
        x = rng.choice(VECTORS)
        p, r = rng.choice(FLOATS), rng.choice([*FLOATS, "0", "0.5"])
        i = rng.choice([*self.indices, "k", "m", "n"])
        forms = [
            f"{p} > {r}",
            f"{p} < {r}",
            f"{x}[{self.index()}] > {r}",
            f"{x}[{self.index()}] > {r}",
            f"{i} % 2 == 0",
            f"{i} > {rng.choice(['1', '2', 'k', '4'])}",
            f"{x}.sum() > {r}",
            f"np.any({x} > {rng.choice(['1.9', '0', 'q'])})",
            f"not {p} > {r}",
            f"{p} > {r} and {i} > 1",
            f"{i} == 3 or {p} < {r}",
            f"0 < {p} < 2",
            p,
            f"{i} == {rng.choice(['k', '0', '2', 'n - 1'])}",
        ]
        return rng.choice(forms)
