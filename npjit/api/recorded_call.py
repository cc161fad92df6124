"""One call of a function over lazy arrays: what it does to Python objects happens at once, its
operations on arrays run together, compiled, when Python needs a value.

    call_by_recording(Recorder(options), "f", f, (x,), {})    ->  f(x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npjit import _runtime
from npjit.api.escapes import delivering, settled
from npjit.api.recorder import Recorder, Tape


def call_by_recording(
    recorder: Recorder,
    label: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The function's own result, of real arrays."""
    tape = Tape(recorder, label, keeps=False)
    names = tape.names
    with delivering(tape):
        named = {name: names.read(value) for name, value in kwargs.items()}
        entered = tuple(map(names.read, args))
        # what is written to one is read from the other
        _runtime.values_in(tuple(names.overlapping()), True)
        result = names.read(function)(*entered, **named)
        del entered
        del named
        tape.recording.run()
        return settled(result)
