"""Which steps an entry needs: guards that can fail, and what they and the inputs are fetched from.

needed_steps([(("root", np), ("is", np)), (("arg", 0), ("array", ...))], [1])
    ->  only the second, as step 0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Step = tuple[tuple[Any, ...], tuple[Any, ...]]


def needed_steps(
    steps: Sequence[Step], inputs: Sequence[int], tree: Any = ("const", None)
) -> tuple[tuple[Step, ...], dict[int, int]]:
    """The steps that are needed, renumbered, and old number -> new one."""
    wanted = set(inputs) | set(_steps_in(tree))
    wanted |= {i for i, step in enumerate(steps) if _can_fail(step)}
    for i in sorted(wanted, reverse=True):
        while steps[i][0][0] in ("attr", "item"):
            i = steps[i][0][1]
            wanted.add(i)
    numbers = {old: new for new, old in enumerate(sorted(wanted))}
    return tuple(_renumbered(steps[i], numbers) for i in sorted(wanted)), numbers


def _can_fail(step: Step) -> bool:
    fetch, check = step
    # what a root holds is the object itself, whatever happens
    return check[0] != "any" and (fetch[0] != "root" or check[0] not in ("is", "type", "equal"))


def _steps_in(tree: Any) -> list[int]:
    if tree[0] in ("leaf", "const"):
        return []
    return [tree[1]] if tree[0] == "step" else [s for t in tree[-1] for s in _steps_in(t)]


def _renumbered(step: Step, numbers: dict[int, int]) -> Step:
    fetch, check = step
    if fetch[0] in ("attr", "item"):
        fetch = (fetch[0], numbers[fetch[1]], *fetch[2:])
    return fetch, check
