"""Host steps: compiled graphs that call Python."""

import numpy as np
import pytest
from npjit._runtime import Dispatcher, set_host

from npjit.ops.host import compute
from tests.native_code import NEEDS_COMPILER, array_step, compile_native, entry_of

pytestmark = NEEDS_COMPILER

PREPARE = "out[1] = in[1];"
RUN = """
  const npjit_int64 words[] = {in[1], in[2], in[1], 1};
  const npjit_array arrays[] = {{(char*)in[0], 12, 1, words, words + 1},
                                {buffers[0], 12, 1, words + 2, words + 3}};
  return api->host("spec text", arrays, 1, 1, CHECK);
"""
X = np.arange(6.0)[::2]


@pytest.fixture
def host():
    """Sets the host for one test."""
    yield set_host
    set_host(compute)


@pytest.fixture
def dispatcher(tmp_path, request):
    check = getattr(request, "param", 3)
    native = compile_native(tmp_path, PREPARE, RUN.replace("CHECK", str(check)))
    made = Dispatcher(miss=lambda args, kwargs: "missed", original=lambda x: "original")
    made.add(entry_of(native, [array_step(0, X)], [("array", 12, 1, None)]))
    return made


def test_arrays_in_and_out(host, dispatcher):
    seen = []

    def double(spec, arguments, results):
        (x,), (out,) = arguments, results
        seen.append((spec, x.strides, x.flags.writeable, out.flags.c_contiguous))
        out[...] = x * 2

    host(double)
    np.testing.assert_array_equal(dispatcher(X), [0.0, 4.0, 8.0])
    assert seen == [("spec text", (16,), False, True)]


def fail(error):
    def raises(spec, arguments, results):
        raise error

    return raises


def test_an_error_is_a_failed_check(host, dispatcher):
    host(fail(ValueError("no")))
    assert dispatcher(X) == "original"
    assert dispatcher.counts()["numpy"] == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_is_no_error_of_the_users_passes(host, dispatcher, error):
    host(fail(error))
    with pytest.raises(error):
        dispatcher(X)


@pytest.mark.parametrize("dispatcher", [0], indirect=True)
def test_without_a_check_an_error_passes(host, dispatcher):
    host(fail(ValueError("no")))
    with pytest.raises(ValueError, match="no"):
        dispatcher(X)


def test_a_host_is_callable():
    with pytest.raises(TypeError, match="callable"):
        set_host(3)
