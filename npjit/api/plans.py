"""Remembered plans: a second process that traces the same graph schedules and prints nothing.

In: a captured graph. Out: the `Record` of what it was compiled to before, in any process:

    recall(plan_key(captured, graph, compiler.identity))    ->  Record(path, perms), or None

The key is the graph's faithful text with the layouts of its inputs, the target, and a fingerprint
of npjit's own files. The value names the object in the disk cache and the memory order of each
fresh result.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npjit.codegen.cache import digest, open_cache
from npjit.core.faithful import faithful
from npjit.core.graph import Graph
from npjit.frontend.trace import Captured

Perm = tuple[int, ...] | None


@dataclass(frozen=True)
class Record:
    """What a plan came to: the verified object, and the memory order of each fresh result."""

    path: Path
    perms: tuple[Perm, ...]


def plan_key(captured: Captured, graph: Graph, target: str) -> str:
    """The key of a graph compiled for a target (compiler, version, flags, processor)."""
    layouts = faithful([i.layout for i in captured.inputs])
    results = faithful(captured.results)
    return digest("plan", fingerprint(), target, layouts, results, faithful(graph))


def recall(key: str) -> Record | None:
    """The record stored under `key`, if its object is still there and whole."""
    cache = open_cache()
    data = cache.get_blob(key)
    if data is None:
        return None
    stored = json.loads(data)
    path = cache.object_path(stored["object"])
    if path is None:
        return None
    return Record(path, tuple(None if p is None else tuple(p) for p in stored["perms"]))


def remember(key: str, path: Path, perms: tuple[Perm, ...]) -> None:
    """Store what a plan came to."""
    stored = {"object": path.stem, "perms": perms}
    open_cache().put_blob(key, json.dumps(stored).encode())


@functools.cache
def fingerprint() -> str:
    """Changes when any file of the package does, or NumPy, whose version some rows go by."""
    root = Path(__file__).parent.parent
    return digest(
        np.__version__, *(f"{name} {size} {time}" for name, size, time in sorted(_files(str(root))))
    )


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif entry.name.endswith((".py", ".h", ".so")):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
