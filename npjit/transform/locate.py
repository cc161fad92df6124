"""Where the elements that one view reads lie among those that another view stored.

`locate(read, stored, known)` compares two views of one array. It answers with the view of the
*stored value* that gives what `read` reads, with APART when the two certainly share no element, or
with None: partly, or not known.

    stored = x[2:10], read = x[3:5]   ->   value[1:3]
    stored = x[2:10], read = x[0:2]   ->   APART
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from npjit.core.assume import Assumptions
from npjit.core.size import Size, floordiv, mod
from npjit.core.view import Along, At, Entry, View


class _Apart(Enum):
    APART = "apart"


APART: Final = _Apart.APART


@dataclass(frozen=True)
class _Run:
    """`count` base indices from `start` on along one base dimension; an At has step 0."""

    start: Size
    step: Size
    count: Size

    @staticmethod
    def of(entry: Entry, view: View) -> _Run:
        if isinstance(entry, At):
            return _Run(entry.index, 0, 1)
        return _Run(entry.start, entry.step, view.shape[entry.axis])

    def ends(self) -> tuple[Size, Size] | None:
        """The smallest and the largest index; None when the step's sign is not known."""
        if not isinstance(self.step, int):
            return None
        last = self.start + self.step * (self.count - 1)
        return (self.start, last) if self.step >= 0 else (last, self.start)


def locate(read: View, stored: View, known: Assumptions) -> View | _Apart | None:
    """See the module's docstring; both views have the same base."""
    if 0 in stored.shape:
        return APART
    if read == stored:
        return View(read.shape, tuple(Along(0, 1, i) for i in range(len(read.shape))), read.shape)
    parts = [
        _inside(r, s, read, stored, known) for r, s in zip(read.dims, stored.dims, strict=True)
    ]
    if APART in parts:
        return APART
    entries: list[Entry] = [At(0)] * len(stored.shape)
    taken: set[int] = set()
    for part, s in zip(parts, stored.dims, strict=True):
        if part is None or part is APART or (isinstance(s, Along) and s.axis in taken):
            return None
        if isinstance(s, Along):
            taken.add(s.axis)
            entries[s.axis] = part
    return View(stored.shape, tuple(entries), read.shape)


def _inside(
    r: Entry, s: Entry, read: View, stored: View, known: Assumptions
) -> Entry | _Apart | None:
    """Positions, within the stored run of one dimension, of what is read along it."""
    if r == s and isinstance(r, Along) and read.shape[r.axis] == stored.shape[r.axis]:
        return Along(0, 1, r.axis)
    a, b = _Run.of(r, read), _Run.of(s, stored)
    if _ranges_apart(a, b, known):
        return APART
    if not isinstance(a.step, int) or not isinstance(b.step, int):
        return None
    grid = b.step or 1
    if a.step % grid:
        return None
    offset = mod(a.start - b.start, grid)
    if offset != 0:
        # every index that is read has this remainder, every stored one has 0
        return APART if isinstance(offset, int) else None
    found = _Run(floordiv(a.start - b.start, grid), a.step // grid, a.count)
    low, high = found.ends() or (-1, -1)
    if _ranges_apart(found, _Run(0, 1, b.count), known):
        return APART
    if not known.le(0, low) or not known.lt(high, b.count):
        return None
    return At(found.start) if isinstance(r, At) else Along(found.start, found.step, r.axis)


def _ranges_apart(a: _Run, b: _Run, known: Assumptions) -> bool:
    """Whether the ranges of two runs certainly do not meet."""
    ends_a, ends_b = a.ends(), b.ends()
    if ends_a is None or ends_b is None:
        return False
    return bool(known.lt(ends_a[1], ends_b[0]) or known.lt(ends_b[1], ends_a[0]))
