"""Broken mode: functions with effects, random numbers, exceptions and the like, against plain
Python.

In: tests/broken_programs.py. Out: the same results, arguments, output, state and exceptions, call
after call, with compiled segments between what stays Python.
"""

import copy
import traceback
import types
import warnings

import numpy as np
import pytest

import npjit
from tests import broken_programs
from tests.broken_programs import PROGRAMS
from tests.calls import assert_same

# programs that run otherwise: captured whole after all; or nothing in them is left to compile, or
# raises in compiled code and runs again as NumPy
OTHERS = {
    "order_with_rebinding": "whole",
    "zero_trips": "whole",
    "nested_counter": "whole",
    "unbound_after_loop": "numpy",
    "raises_in_the_middle": "numpy",
    "errstate_that_raises": "numpy",
    "object_array": "numpy",
}


def drained(result):
    """A result; of a generator, all that it yields and returns."""
    if not isinstance(result, types.GeneratorType):
        return result
    items = []
    while True:
        try:
            items.append(next(result))
        except StopIteration as e:
            return [*items, e.value]


def outcome(f, args, capsys):
    """Result or exception, with the lines of this function that it went through; output, state and
    arguments after the call.
    """
    broken_programs.reset()
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = drained(f(*args))
        except Exception as e:
            lines = [
                frame.line
                for frame in traceback.extract_tb(e.__traceback__)
                if frame.filename == broken_programs.__file__
            ]
            result = type(e), str(e), lines[-1], type(e.__cause__)
    args = [a.bit_generator.state if isinstance(a, np.random.Generator) else a for a in args]
    return result, capsys.readouterr().out, broken_programs.state(), args


# these are compiled, too
IN_CPP = [
    "append_to_outer",
    "generator_argument",
    "in_place_between",
    "optimizer",
    "singular",
    "try_around_numpy",
    "uses_generator",
    "view_across_a_break",
    "where_and_index",
    "while_to_convergence",
    "with_own_manager",
]
NAMES = {f.__name__: (f, make) for f, make in PROGRAMS}


@pytest.mark.parametrize("name", NAMES)
def test_program(name, capsys):
    check(name, "numpy", capsys)


@pytest.mark.parametrize("name", IN_CPP)
def test_program_in_cpp(name, capsys):
    check(name, "cpp", capsys)


def check(name, backend, capsys):
    """Three calls, compared one by one; then how they ran."""
    f, make = NAMES[name]
    compiled = npjit.jit(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", npjit.NpjitWarning)
        for _ in range(3):
            args = make()
            want = outcome(f, copy.deepcopy(args), capsys)
            got = outcome(compiled, copy.deepcopy(args), capsys)
            assert_same(got, want)
    info = compiled.cache_info()
    mode = OTHERS.get(f.__name__, "broken")
    assert info[mode] == 3, info
    if mode == "broken":
        assert info["compiled"] > 0
        assert info["breaks"]
