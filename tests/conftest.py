"""What every test has: a disk cache inside the checkout, and golden texts.

In: `--update` on the command line. Out: the `golden` fixture, which compares a text with a file
under tests/golden, or writes that file when updating:

    def test_softmax(golden):
        golden("softmax.cpp", text)
"""

import difflib
import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import npjit

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"

# A second run compiles nothing; a fresh clone compiles everything.
os.environ.setdefault("NPJIT_CACHE_DIR", str(ROOT / "build" / "test-cache"))

# A shell's background job ignores interrupts; some tests send themselves one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("npjit", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("npjit")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden texts that differ")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"tests/golden/{name} is not there: run pytest --update"
        lines = path.read_text().splitlines(), text.splitlines()
        difference = "\n".join(difflib.unified_diff(*lines, "golden", "now", lineterm="", n=1))
        assert not difference, f"tests/golden/{name}\n{difference}"

    return compare


@pytest.fixture(params=["numpy", "cpp"])
def jit(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """npjit.jit with the reference backend, then with the C++ one."""
    return functools.partial(npjit.jit, backend=request.param)
