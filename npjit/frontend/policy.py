"""Which sizes and numbers are compiled as constants.

In: the place that a size or number was read at, and its value. Out: whether it may be a literal of
this version. A function has one `Policy`, which remembers what its earlier traces have met.

    >>> policy = Policy()
    >>> policy.is_literal("x", 3), policy.is_literal("x", 4), policy.is_literal("x", 1000)
    (True, False, False)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# extents up to this stay literal on first sight: loops over coordinates, taps and channels unroll
LITERAL_EXTENT = 16
# how many values of one number may each get a version of their own, where Python branches on it
MOST_VALUES = 4


@dataclass
class Policy:
    """How sizes become symbols. `seen` remembers the literal extents that earlier traces fixed."""

    dynamic: bool | None = None
    seen: dict[Any, int] = field(default_factory=dict)
    values: dict[Any, set[Any]] = field(default_factory=dict)

    def is_literal(self, place: Any, value: int) -> bool:
        """Whether the extent at this place is compiled as a literal."""
        if value in (0, 1) or self.dynamic is False:
            return True
        if self.dynamic or value > LITERAL_EXTENT:
            return False
        return self.seen.setdefault(place, value) == value

    def may_fix(self, place: Any, value: Any) -> bool:
        """Whether the number at this place may be compiled as a constant, and not just met too many
        others.
        """
        known = self.values.setdefault(place, set())
        if len(known) < MOST_VALUES:
            known.add(repr(value))
        return repr(value) in known
