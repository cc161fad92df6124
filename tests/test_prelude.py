"""The prelude's exact functions give NumPy's bits: casts, integers, rounding, float16, complex."""

import re
import warnings
from typing import Any

import numpy as np
import pytest

from npjit.codegen import prelude
from npjit.codegen.prelude import _paragraphs, prelude_text
from npjit.core.tolerance import TRANSCENDENTAL, assert_equal_numpy
from tests.prelude_loops import (
    C_TYPES,
    COMPLEX,
    FLOATS,
    INTS,
    Kernels,
    check,
    needs_compiler,
    values,
)

pytestmark = needs_compiler


@pytest.mark.parametrize("source", "?" + INTS + FLOATS + COMPLEX)
def test_casts(source: str) -> None:
    targets = "?" + INTS + FLOATS + COMPLEX
    kernels = Kernels()
    names = {}
    for target in targets:
        kind = "b1" if target == "?" else C_TYPES[target]
        names[target] = kernels.add(f"nj_cast<{kind}>(v0)", source, target)
    array = values(source)
    array = array[: len(array) // 64 * 64].copy()
    for target in targets:
        with warnings.catch_warnings(action="ignore"):
            want = array.astype(target)
        assert_equal_numpy(kernels(names[target], target, array), want)


INT_BINARY = "floor_divide remainder fmod left_shift right_shift gcd lcm maximum minimum fmax fmin"


@pytest.mark.parametrize("code", INTS)
def test_integers(code: str) -> None:
    unary = "absolute sign negative square"
    check(
        [(f"nj_{n}(v0, v1)", code * 2, code, getattr(np, n)) for n in INT_BINARY.split()]
        + [(f"nj_{n}(v0)", code, code, getattr(np, n)) for n in unary.split()]
        + [("nj_bitwise_count(v0)", code, "B", np.bitwise_count)]
        + [("nj_power(v0, nj_absolute(nj_remainder(v1, v1)))", code * 2, code, lambda a, b: a**0)]
        + [("nj_power(v0, (decltype(v0))5)", code, code, lambda a: a ** np.array(5, code))]
    )


FLOAT_UNARY = (
    "floor ceil trunc rint sqrt reciprocal square fabs absolute negative positive sign spacing"
    " deg2rad rad2deg"
)
FLOAT_TESTS = "isnan isinf isfinite signbit"
FLOAT_BINARY = "copysign heaviside fmod remainder floor_divide maximum minimum"


def nextafter(x: Any, y: Any) -> Any:
    """Of two halves that are equal the first; NumPy 2.5 gives the second, and so does the row."""
    found = np.nextafter(x, y)
    return np.where(x == y, x, found) if x.dtype == np.float16 else found


@pytest.mark.parametrize("code", FLOATS)
def test_exact_floats(code: str) -> None:
    check(
        [(f"nj_{n}(v0)", code, code, getattr(np, n)) for n in FLOAT_UNARY.split()]
        + [(f"nj_{n}(v0, v1)", code * 2, code, getattr(np, n)) for n in FLOAT_BINARY.split()]
        + [(f"nj_{n}(v0)", code, "?", getattr(np, n)) for n in FLOAT_TESTS.split()]
        + [
            ("nj_nextafter(v0, v1)", code * 2, code, nextafter),
            ("nj_modf_fraction(v0)", code, code, lambda x: np.modf(x)[0]),
            ("nj_modf_whole(v0)", code, code, lambda x: np.modf(x)[1]),
            ("nj_frexp_mantissa(v0)", code, code, lambda x: np.frexp(x)[0]),
            ("nj_frexp_exponent(v0)", code, "i", lambda x: np.frexp(x)[1]),
            ("nj_ldexp(v0, v1)", code + "i", code, np.ldexp),
            ("v0 + v1", code * 2, code, np.add),
            ("v0 - v1", code * 2, code, np.subtract),
            ("v0 * v1", code * 2, code, np.multiply),
            ("v0 / v1", code * 2, code, np.divide),
            ("v0 < v1", code * 2, "?", np.less),
            ("v0 >= v1", code * 2, "?", np.greater_equal),
            ("v0 == v1", code * 2, "?", np.equal),
        ]
    )  # fmt: skip


COMPLEX_EXACT = "conjugate negative positive rint"
COMPLEX_TESTS = "isnan isinf isfinite"
COMPLEX_MATH = (
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 log"
    " log2 log10 log1p sqrt"
)


@pytest.mark.parametrize("code", COMPLEX)
def test_complex(code: str) -> None:
    real = code.lower()
    check(
        [(f"nj_{n}(v0)", code, code, getattr(np, n)) for n in COMPLEX_EXACT.split()]
        + [(f"nj_{n}(v0)", code, "?", getattr(np, n)) for n in COMPLEX_TESTS.split()]
        + [
            ("v0 + v1", code * 2, code, np.add),
            ("v0 - v1", code * 2, code, np.subtract),
            ("v0 / v1", code * 2, code, np.divide),
            ("v0 == v1", code * 2, "?", np.equal),
            ("v0 != v1", code * 2, "?", np.not_equal),
            ("v0 < v1", code * 2, "?", np.less),
            ("v0 <= v1", code * 2, "?", np.less_equal),
            ("v0 > v1", code * 2, "?", np.greater),
            ("v0 >= v1", code * 2, "?", np.greater_equal),
            ("nj_maximum(v0, v1)", code * 2, code, np.maximum),
            ("nj_minimum(v0, v1)", code * 2, code, np.minimum),
            ("nj_fmax(v0, v1)", code * 2, code, np.fmax),
            ("nj_fmin(v0, v1)", code * 2, code, np.fmin),
            ("nj_reciprocal(v0)", code, code, np.reciprocal),
        ]
    )  # fmt: skip
    check(
        [
            ("v0 * v1", code * 2, code, np.multiply),
            ("nj_square(v0)", code, code, np.square),
            ("nj_sign(v0)", code, code, np.sign),
            ("nj_absolute(v0)", code, real, np.absolute),
            ("nj_angle(v0)", code, real, np.angle),
        ]
        + [(f"nj_{n}(v0)", code, code, getattr(np, n)) for n in COMPLEX_MATH.split()]
        + [("nj_power(v0, v1)", code * 2, code, np.power)],
        ulp=TRANSCENDENTAL,
    )
    # its real part is a difference of two results
    check([("nj_expm1(v0)", code, code, np.expm1)], ulp=2 * TRANSCENDENTAL)


@pytest.mark.parametrize("code", "?bQ" + FLOATS + COMPLEX)
def test_select(code: str) -> None:
    pick = f"nj_select(v0 == v0, v0, {'b1' if code == '?' else C_TYPES[code]}{{}})"
    check([(pick, code, code, lambda x: np.where(x == x, x, np.zeros((), code)))])


def test_half_rounds_like_numpy_everywhere() -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    kernels = Kernels("-O3")
    widen = kernels.add("nj_widen(v0)", "e", "f")
    narrow = kernels.add("nj_narrow(v0)", "f", "e")
    narrow64 = kernels.add("nj_narrow(v0)", "d", "e")
    finite = halves[np.isfinite(halves)].astype(np.float64)
    with np.errstate(all="ignore"):
        assert_equal_numpy(kernels(widen, "f", halves), halves.astype("f"))
        for step in (0.5, 0.5 + 2.0**-12, 0.5 - 2.0**-12, 0.5 + 2.0**-40, 0.5 - 2.0**-40):
            between = finite + step * np.spacing(halves[np.isfinite(halves)]).astype("d")
            single = between.astype("f")
            assert_equal_numpy(kernels(narrow, "e", single), single.astype("e"))
            assert_equal_numpy(kernels(narrow64, "e", between), between.astype("e"))


def test_a_unit_gets_what_it_names_and_no_more() -> None:
    text = prelude_text("f64 y = nj_sin(x);", {"sin", "sinf"})
    assert 'f64 nj_sin(f64) __asm__("sin")' in text
    assert "nj_reduce" not in text
    assert "nj_cos" not in text
    assert "f16" not in text
    assert "cplx" not in text
    series = prelude_text("f64 y = nj_sin(x);")
    assert "__asm__" not in series
    assert "nj_reduce_large" in series
    assert "nj_narrow(nj_sin(" in prelude_text("f16 y = nj_sin(x);")
    assert "nj_lib_sin" in prelude_text("c64 y = nj_sin(x);")
    assert len(prelude_text("i64 x;").splitlines()) < 20


def test_every_name_of_the_prelude_is_defined() -> None:
    paragraphs = _paragraphs()
    assert all(paragraph.defines for paragraph in paragraphs)
    defined = set().union(*(paragraph.defines for paragraph in paragraphs))
    used = set().union(*(paragraph.uses for paragraph in paragraphs))
    ours = {name for name in used if name.startswith(("nj_", "NJ_"))}
    assert ours <= defined
    documented = set(re.findall(r"\bnj_\w+", prelude.__doc__ or ""))
    assert documented <= defined
