"""Mode "background": calls run as NumPy while a thread compiles, then switch over.

In: a `Jitted` and a captured call. Out: an Entry that has such calls answered by the function
itself, until the compiled one takes its place:

    entry = compile_later(jitted, captured, watch)
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from npjit.api.compile import Stopwatch, compile_captured
from npjit.frontend.trace import Captured
from npjit.ops.errors import NotCaptured

if TYPE_CHECKING:
    from npjit.api.jitted import Jitted


def compile_later(jitted: Jitted, captured: Captured, watch: Stopwatch) -> Any:
    """Begin to compile, and tell the entry that answers meanwhile."""
    waiting = jitted.uncompiled_entry(captured.steps, captured.npositional, captured.kwnames)
    jitted.add(waiting)
    name = f"npjit compiles {jitted.label}"
    work = threading.Thread(target=_finish, args=(jitted, captured, watch, waiting), name=name)
    # the end of the program does not wait for it
    work.daemon = True
    work.start()
    return waiting


def _finish(jitted: Jitted, captured: Captured, watch: Stopwatch, waiting: Any) -> None:
    """Compile, and put the result in the place of the waiting entry; when that fails, such calls
    run as they did."""
    try:
        made = compile_captured(captured, jitted.options, watch)
    except (NotCaptured, Exception) as e:
        jitted.warn_of_failure(e)
        return
    jitted.enter(made)
    jitted.remove(waiting)
