"""What npjit says of its work on request: NPJIT_LOGS, NPJIT_DUMP and NPJIT_CHECK.

In: a freshly compiled version, or a graph before and after a pass. Out: log lines, files, errors.

NPJIT_LOGS    topics to log, comma-separated or "all": graph, guards, fusion, code, recompiles,
              time; to the standard logger "npjit" (standard error where nothing else is set up)
NPJIT_DUMP    a folder that receives the graph, kernels and code text of everything compiled
NPJIT_CHECK   1: every graph is verified, each pass compared with the reference, and defects of
              npjit are raised instead of answered by NumPy
"""

from __future__ import annotations

import functools
import itertools
import logging
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.api.guards import in_words
from npjit.core.warn import warn_user

if TYPE_CHECKING:
    from npjit.api.compile import Compiled
    from npjit.core.graph import Graph

TOPICS = ("graph", "guards", "fusion", "code", "recompiles", "time")
_numbers = itertools.count(1)


def wanted(topic: str) -> bool:
    """Whether NPJIT_LOGS asks for a topic."""
    return topic in _topics(os.environ.get("NPJIT_LOGS", ""))


@functools.lru_cache(maxsize=8)
def _topics(chosen: str) -> frozenset[str]:
    """What a value of NPJIT_LOGS asks for; names that are no topics are told once."""
    named = frozenset(chosen.replace(" ", "").split(",")) - {""}
    unknown = ", ".join(sorted(named - {*TOPICS, "all"}))
    if unknown:
        warn_user(f"NPJIT_LOGS knows {', '.join(TOPICS)} and all, not {unknown}")
    return frozenset(TOPICS) if "all" in named else named


def log(topic: str, text: str) -> None:
    """Log text under a topic that is wanted."""
    logger = logging.getLogger("npjit")
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler(sys.stderr))
        logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.info("[%s] %s", topic, text)


def report(name: str, function: Any, made: Compiled, times_compiled: int) -> None:
    """Log and dump a freshly compiled version."""
    for topic in TOPICS:
        if wanted(topic):
            log(topic, f"{name}: {_text(topic, function, made, times_compiled)}")
    folder = os.environ.get("NPJIT_DUMP")
    if folder:
        try:
            _dump(Path(folder), name, made)
        except OSError as e:
            warn_user(f"NPJIT_DUMP={folder} cannot be written: {e.strerror}")


def _text(topic: str, function: Any, made: Compiled, times_compiled: int) -> str:
    if topic == "graph":
        return str(made.graph)
    if topic == "guards":
        return "; ".join(in_words(function, made))
    if topic == "fusion":
        return str(made.plan) if made.plan is not None else made.backend
    if topic == "code":
        return made.source or f"no code: backend {made.backend}"
    if topic == "recompiles":
        return f"version {times_compiled}"
    stages = (f"{stage} {1e3 * seconds:.1f} ms" for stage, seconds in made.seconds.items())
    return ", ".join(stages)


def _dump(folder: Path, name: str, made: Compiled) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{next(_numbers):04d}-{re.sub(r'[^A-Za-z0-9_.]+', '_', name)}"
    texts = {"graph.txt": str(made.graph), "cpp": made.source}
    if made.plan is not None:
        texts["kernels.txt"] = str(made.plan)
    for ending, text in texts.items():
        if text:
            (folder / f"{stem}.{ending}").write_text(text)


def wants_detail() -> bool:
    """Whether plan and code texts are needed beside the object."""
    return bool(os.environ.get("NPJIT_DUMP")) or wanted("fusion") or wanted("code")


def checking() -> bool:
    """Whether NPJIT_CHECK is set."""
    return os.environ.get("NPJIT_CHECK", "") not in ("", "0")


def check_pass(name: str, before: Graph, after: Graph, inputs: list[Any]) -> None:
    """AssertionError when a pass broke the graph or changed its meaning on these inputs."""
    after.verify()
    with np.errstate(all="ignore"):
        old = before.run(*[np.array(i) for i in inputs])
        new = after.run(*[np.array(i) for i in inputs])
    for k, (a, b) in enumerate(zip(old, new, strict=True)):
        same = np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc")
        assert same, f"{name} changed result {k}:\n{before}\n{after}"
