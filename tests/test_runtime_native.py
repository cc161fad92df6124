"""Native objects: loading them, their arenas, and the BLAS and libraries they call."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from npjit._runtime import (
    Dispatcher,
    NativeObject,
    blas_info,
    load_global,
    set_blas_threads,
)

from tests.native_code import (
    FLOAT64,
    NEEDS_COMPILER,
    SCALE_PREPARE,
    SCALE_RUN,
    array_step,
    compile_native,
    compile_source,
    entry_of,
)

pytestmark = NEEDS_COMPILER


def dispatcher_of(entry) -> Dispatcher:
    dispatcher = Dispatcher(lambda args, kwargs: pytest.fail("no entry matched"), None)
    dispatcher.add(entry)
    return dispatcher


def test_objects_that_cannot_be_loaded(tmp_path):
    with pytest.raises(OSError, match=r"cannot load .*absent\.so"):
        NativeObject(str(tmp_path / "absent.so"))
    (tmp_path / "garbage.so").write_text("not an object")
    with pytest.raises(OSError, match=r"garbage\.so"):
        NativeObject(str(tmp_path / "garbage.so"))
    empty = compile_source(tmp_path, "int nothing;")
    with pytest.raises(OSError, match="exports no function npjit_prepare"):
        NativeObject(str(empty))


def test_entry_keeps_its_native_object(tmp_path):
    native = compile_native(tmp_path, SCALE_PREPARE, SCALE_RUN)
    run = dispatcher_of(
        entry_of(native, [array_step(0, np.ones(4))], [("array", FLOAT64, 1, None)])
    )
    assert run.entries[0].native is native
    del native
    gc.collect()
    np.testing.assert_array_equal(run(np.ones(4)), np.full(4, 3.0))


def test_arena_is_writable_and_aligned(tmp_path):
    run = """
      for (npjit_int64 i = 0; i < out[0]; ++i) arena[i] = 1;
      *(npjit_int64*)buffers[0] = (npjit_int64)arena % 64;
    """
    native = compile_native(tmp_path, "out[0] = in[0];", run)
    entry = entry_of(native, [(("arg", 0), ("scalar", "i"))], [("python", "i")])
    call = dispatcher_of(entry)
    for size in (1, 1000, 65_536, 65_537, 10_000_000):
        assert call(size) == 0


def test_matrix_product_through_numpys_blas(tmp_path):
    run = """
      if (!api->blas[0]) return 1;
      typedef npjit_int64 N;
      typedef void (*Gemm)(int, int, int, N, N, N, double, const double*, N, const double*, N,
                           double, double*, N);
      ((Gemm)api->blas[0])(101, 111, 111, in[1], in[7], in[2], 1.0, (const double*)in[0], in[2],
                           (const double*)in[5], in[7], 0.0, (double*)buffers[0], in[7]);
    """
    native = compile_native(tmp_path, "out[1] = in[1]; out[2] = in[7];", run)
    a = np.random.default_rng(0).standard_normal((30, 40))
    b = np.random.default_rng(1).standard_normal((40, 50))
    entry = entry_of(native, [array_step(0, a), array_step(1, b)], [("array", FLOAT64, 2, None)])
    run = dispatcher_of(entry)
    result = run(a, b)
    if isinstance(result, tuple):
        pytest.skip("NumPy's BLAS is not an OpenBLAS with 64-bit sizes")
    np.testing.assert_array_equal(result, a @ b)


def test_blas_is_described():
    info = blas_info()
    if info["path"] is None:
        assert info["names"] == ()
        pytest.skip("NumPy's BLAS is not an OpenBLAS with 64-bit sizes")
    assert "openblas" in info["path"] and "64" in info["suffix"]
    assert "cblas_dgemm" in info["names"]
    before = info["threads"]
    try:
        set_blas_threads(1)
        assert blas_info()["threads"] == 1
    finally:
        set_blas_threads(before)
    with pytest.raises(ValueError, match="at least 1"):
        set_blas_threads(0)


def test_objects_find_symbols_of_global_libraries(tmp_path):
    library = compile_source(tmp_path, 'extern "C" double npjit_test_seven() { return 7; }')
    declaration = 'extern "C" double npjit_test_seven();'
    body = "*(double*)buffers[0] = npjit_test_seven();"
    with pytest.raises(OSError, match="npjit_test_seven"):
        compile_native(tmp_path, "", body, declaration)
    load_global(str(library))
    native = compile_native(tmp_path, "", body, declaration)
    assert dispatcher_of(entry_of(native, [], [("python", "f")]))() == 7.0
    with pytest.raises(OSError, match="cannot load"):
        load_global(str(tmp_path / "absent.so"))
