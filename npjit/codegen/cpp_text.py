"""Indented C++ text, built line by line.

In: lines, and where blocks open and close. Out: one string.

    w = Writer()
    with w.block("static void f(const f64* in)"):
        w.declare("f64", "x", "in[0]")      # left out: nothing below uses x
        w.line("return;")
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_NAME = re.compile(r"[A-Za-z_]\w*")


class Writer:
    """Collects lines at the current indentation."""

    def __init__(self) -> None:
        # (text, name that a declaration introduces or "")
        self._lines: list[tuple[str, str]] = []
        self._depth = 0

    def line(self, text: str) -> None:
        """One line; preprocessor lines stand at the margin."""
        self._append(text, "")

    def lines(self, texts: Iterable[str]) -> None:
        """Several lines."""
        for text in texts:
            self.line(text)

    def declare(self, kind: str, name: str, value: str) -> None:
        """`kind const name = value;`, left out when the function does not use the name."""
        self._append(f"{kind} const {name} = {value};", name)

    def _append(self, text: str, name: str) -> None:
        margin = "" if text.startswith("#") else "  " * self._depth
        self._lines.append((margin + text, name))

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """`head {`, the lines written inside, and `}`."""
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line(tail)

    def __str__(self) -> str:
        used: set[str] = set()
        kept: list[str] = []
        for text, name in reversed(self._lines):
            if text.startswith("}"):
                used.clear()
            if not name or name in used:
                kept.append(text)
                used.update(_NAME.findall(text.partition("=")[2] if name else text))
        return "\n".join(reversed(kept)) + "\n"
