"""Indented C++ text, built line by line.

In: lines, and where blocks open and close. Out: one string.

    w = Writer()
    with w.block("for (i64 i0 = 0; i0 < s0; ++i0)"):
        w.line("b0[i0] = 1.0;")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines at the current indentation."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> None:
        """One line; preprocessor lines stand at the margin."""
        self._lines.append(text if text.startswith("#") else "  " * self._depth + text)

    def lines(self, texts: Iterable[str]) -> None:
        """Several lines."""
        for text in texts:
            self.line(text)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """`head {`, the lines written inside, and `}`."""
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line(tail)

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"
