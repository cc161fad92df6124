"""What a program is: a function, how to make its arguments, and the sizes it is measured at.

In: a function of plain NumPy. Out: a value that tests and the bench share:

    Program("trisolv", trisolv, make, tiny=7, small=1200, large=5000, kind=Kind.LOOP)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

Maker = Callable[[int, np.random.Generator], tuple[Any, ...]]


class Kind(Enum):
    """What bounds the program once it is compiled well."""

    LOOP = "loop"
    FUSION = "fusion"
    BLAS = "blas"


@dataclass(frozen=True)
class Program:
    """`small` takes NumPy about 5 ms and `large` about 100 ms; `tiny` is for tests.

    `conditioning` is how many roundings, relative to the largest element of a result, lie between
    two right ways to run the program.
    """

    name: str
    function: Callable[..., Any]
    make: Maker
    tiny: int
    small: int
    large: int
    kind: Kind
    conditioning: float = 0.0

    def arguments(self, size: int) -> tuple[Any, ...]:
        """Fresh arguments, the same at every call."""
        return self.make(size, np.random.default_rng(size))
