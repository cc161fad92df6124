"""What a function's bytecode tells before it runs: effects that a trace would lose or do too early.

`refuse_untraceable(f)` ends the trace for generators and coroutines, stores into globals or into an
enclosing function's variables, and uses of identity (`a is b`, `.__class__`) that stand-ins would
answer wrongly.
"""

from __future__ import annotations

import dis
import enum
import inspect
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from npjit.frontend.conversions import STAND_INS
from npjit.ops.errors import NotCaptured

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def refuse_untraceable(function: types.FunctionType) -> None:
    """NotCaptured, with line and reason, when tracing the function would not do what running it
    does.
    """
    code = function.__code__
    refused = _reason_in(code)
    if refused is not None:
        raise NotCaptured(*refused)
    for names, line in _compared(code):
        if not _has_identity(function, names):
            raise NotCaptured(f"`is` with {'.'.join(names) or 'a value'}", line)


@lru_cache(maxsize=4096)
def _reason_in(code: types.CodeType) -> tuple[str, str] | None:
    if code.co_flags & _GENERATORS:
        return "a generator or coroutine function", f"{code.co_filename}:{code.co_firstlineno}"
    outer = frozenset(code.co_freevars)
    for instruction, line in _instructions(code):
        name = instruction.opname
        if name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            return f"a store into the global {instruction.argval}", line
        if name in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in outer:
            return f"a store into the outer variable {instruction.argval}", line
        if name in ("LOAD_ATTR", "LOAD_METHOD") and instruction.argval == "__class__":
            return ".__class__ is used", line
    return None


@lru_cache(maxsize=4096)
def _compared(code: types.CodeType) -> tuple[tuple[tuple[str, ...], str], ...]:
    """For each `is`, the dotted name on its right ("" when it is no name) and the line; constants
    are left out.
    """
    found = []
    before: list[dis.Instruction] = []
    for instruction, line in _instructions(code):
        if instruction.opname == "IS_OP":
            names = _dotted(before)
            if names is not None:
                found.append((names, line))
        before.append(instruction)
    return tuple(found)


def _dotted(before: list[dis.Instruction]) -> tuple[str, ...] | None:
    names: list[str] = []
    for instruction in reversed(before):
        if instruction.opname == "LOAD_CONST" and not names:
            return None
        names.insert(0, str(instruction.argval))
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
            return tuple(names)
        if instruction.opname != "LOAD_ATTR":
            break
    return ()


def _has_identity(function: types.FunctionType, names: tuple[str, ...]) -> bool:
    """Whether the traced form of what is named is one object, as the thing itself is."""
    if not names:
        return False
    value = _named(function, names[0])
    for name in names[1:]:
        if not isinstance(value, (types.ModuleType, enum.EnumMeta)):
            return False
        value = getattr(value, name, None)
    if isinstance(value, type):
        # the arrays' class is met through type() only, which knows its stand-in
        return value is np.ndarray or value not in STAND_INS
    plain = (type(None), bool, enum.Enum, types.FunctionType, types.BuiltinFunctionType)
    return isinstance(value, plain) or type(value) is object


def _named(function: types.FunctionType, name: str) -> Any:
    """What a variable of the function around, a global or a builtin is now; the guards of the read
    see to it that it stays."""
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        return getattr(cell, "cell_contents", None)
    return function.__globals__.get(name, getattr(function, "__builtins__", {}).get(name))


def _instructions(code: types.CodeType) -> Iterator[tuple[dis.Instruction, str]]:
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = (instruction.positions.lineno if instruction.positions else None) or line
        yield instruction, f"{code.co_filename}:{line}"
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _instructions(const)
