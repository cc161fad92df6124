"""Finding a compiler, and building units through the cache."""

import ctypes
import importlib.util
import multiprocessing
import os
import shutil
import sys
from pathlib import Path

import pytest

from npjit.codegen import toolchain
from npjit.codegen.cache import open_cache
from npjit.codegen.toolchain import (
    CompileError,
    Compiler,
    compile_object,
    find_compiler,
)

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler")
needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
needs_zig = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NPJIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def answer(number: int) -> str:
    return f'extern "C" int answer() {{ return {number}; }}\n'


def call(path: Path) -> int:
    return ctypes.CDLL(str(path)).answer()


@needs_compiler
def test_a_unit_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    path = compile_object(answer(42))
    assert call(path) == 42
    monkeypatch.setattr(toolchain, "_run_compiler", lambda *_: pytest.fail("built again"))
    assert compile_object(answer(42)) == path


@needs_compiler
def test_the_key_holds_all_that_matters() -> None:
    found = find_compiler()
    assert found is not None
    paths = {
        compile_object(answer(1)),
        compile_object(answer(2)),
        compile_object(answer(1), optimise="-O1"),
        compile_object(answer(1), compiler=Compiler(found.kind, found.command, "another version")),
    }
    assert len(paths) == 4


@needs_compiler
def test_a_damaged_object_is_built_again() -> None:
    path = compile_object(answer(7))
    path.write_bytes(path.read_bytes()[:-200])
    assert call(compile_object(answer(7))) == 7


@needs_compiler
def test_a_failure_names_a_file_and_shows_one_line() -> None:
    source = "int broken( {\n" * 40
    with pytest.raises(CompileError) as caught:
        compile_object(source)
    message = str(caught.value)
    assert "\n" not in message
    assert "error" in message
    assert str(caught.value.path) in message
    saved = caught.value.path.read_text()
    assert source in saved
    assert "unit.cpp:1" in saved


@needs_compiler
def test_several_units_make_one_object() -> None:
    hidden = '__attribute__((visibility("hidden"))) int'
    first = f'{hidden} rest(); extern "C" int answer() {{ return 40 + rest(); }}\n'
    path = compile_object(first, f"{hidden} rest() {{ return 2; }}\n")
    assert call(path) == 42
    assert not hasattr(ctypes.CDLL(str(path)), "_Z4restv")
    with pytest.raises(CompileError, match="broken"):
        compile_object(first, "broken")
    with pytest.raises(CompileError, match="rest"):
        compile_object(first, answer(1).replace("answer", "other") + "int x = rest;\n")


@needs_compiler
def test_a_cache_that_cannot_be_written_still_gives_an_object(own_cache: Path) -> None:
    compile_object(answer(1))
    shutil.rmtree(own_cache)
    assert call(compile_object(answer(5))) == 5


def _compile(number: int) -> int:
    return call(compile_object(answer(number)))


@needs_compiler
def test_processes_that_build_the_same_unit(own_cache: Path) -> None:
    find_compiler()
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(_compile, [11] * 8, chunksize=1) == [11] * 8
    assert open_cache().stats().objects == 1
    assert not list(own_cache.glob(".new-*"))


@needs_gcc
def test_cxx_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrapper = tmp_path / "my compiler"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", f"'{wrapper}' -O2")
    found = find_compiler()
    assert found is not None
    assert found.command == (str(wrapper), "-O2")
    assert found.kind == "gcc"


@needs_gcc
def test_a_compiler_that_cannot_build_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "g++"
    broken.write_text('#!/bin/sh\necho "g++ Free Software Foundation"\n')
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    found = find_compiler()
    assert found is not None
    assert found.command[0] != str(broken)


@needs_zig
def test_ziglang_serves_where_no_compiler_is_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    found = find_compiler()
    assert found is not None
    assert found.kind == "zig"
    assert call(compile_object(answer(3))) == 3


def test_none_is_found_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert find_compiler() is None
    with pytest.raises(FileNotFoundError):
        compile_object(answer(1))


@needs_compiler
def test_what_was_learnt_is_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_compiler()
    toolchain._find.cache_clear()
    monkeypatch.setattr(toolchain.subprocess, "run", lambda *_, **__: pytest.fail("asked again"))
    assert find_compiler() == first


@needs_gcc
@pytest.mark.skipif(sys.platform != "linux" or not Path("/proc/self/maps").exists(), reason="Linux")
def test_vector_functions_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    found = find_compiler()
    assert found is not None
    if not found.vector:
        pytest.skip("no libmvec")
    assert "erfc" not in found.vector
    declared = "".join(
        f'__attribute__((simd("notinbranch"), const, nothrow)) double f{k}(double)'
        f' __asm__("{name}");\n'
        f'extern "C" void loop{k}(double* x, long n)'
        f" {{ for (long i = 0; i < n; ++i) x[i] = f{k}(x[i]); }}\n"
        for k, name in enumerate(sorted(found.vector & {"sin", "exp", "tanh", "erf"}))
    )
    path = compile_object(declared)
    library = ctypes.CDLL(str(path), mode=os.RTLD_NOW)
    values = (ctypes.c_double * 64)(*[0.0] * 64)
    library.loop0(values, ctypes.c_long(64))
    assert list(values) in ([1.0] * 64, [0.0] * 64)


@needs_compiler
def test_arithmetic_is_neither_contracted_nor_assumed() -> None:
    source = """extern "C" double difference(double x) { return x * x - x * x; }
    extern "C" int wraps(int x) { return x + 1 < x; }
    extern "C" double keeps_zero(double x) { return x + 0.0; }
    """
    library = ctypes.CDLL(str(compile_object(source)))
    library.difference.argtypes = library.keeps_zero.argtypes = [ctypes.c_double]
    library.difference.restype = library.keeps_zero.restype = ctypes.c_double
    assert library.difference(1.1) == 0.0
    assert library.wraps(2**31 - 1) == 1
    assert str(library.keeps_zero(-0.0)) == "0.0"
