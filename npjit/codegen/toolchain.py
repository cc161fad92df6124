"""The C++ compiler: finds one, asks it what it can do, and turns units into shared objects.

In: the text of a translation unit, or of several that make one object. Out: the path of a shared
object in the disk cache, verified and ready to load. Without a compiler `find_compiler` returns
None and the caller takes another backend:

    compiler = find_compiler()
    if compiler is not None:
        path = compile_object('extern "C" int npjit_run() { return 0; }')

A compiler is trusted only after it has built a small unit once; that proof is kept on disk.
"""

import functools
import importlib.util
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from npjit.codegen.cache import Cache, digest, open_cache, temporary_cache
from npjit.codegen.libmvec import CANDIDATES, find_libmvec, probe_source, used_names

Kind = Literal["gcc", "clang", "zig"]

# Wrapping and aliasing: without them integers do not wrap, and an arena slot reused under another
# dtype is undefined. No standard library is linked: the Python process has loaded what is called
# (libm, memcpy), and start-up files cost a third of a small unit's time.
_FLAGS = (
    "-std=gnu++17",
    "-march=native",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-exceptions",
    "-fno-stack-protector",
    "-fopenmp-simd",
    "-shared",
    "-fPIC",
    "-nostdlib",
    "-w",
)
# Splitting loops by their index makes triangular loops up to four times slower; unrolling long
# bodies whole takes a tenth of the compiler's time and gains nothing.
_KIND_FLAGS: dict[Kind, tuple[str, ...]] = {
    "gcc": ("-fno-split-loops", "--param=max-completely-peeled-insns=64"),
    "clang": (),
    "zig": (),
}

_PROOF = 'extern "C" double npjit_proof(const double* x, long n) { return x[n] * 2.0; }\n'


@dataclass(frozen=True)
class Compiler:
    """A command that builds shared objects, and what was learnt about it."""

    kind: Kind
    command: tuple[str, ...]
    version: str
    vector: frozenset[str] = frozenset()
    """Math functions ("sin", "sinf") that its vector loops may call in libmvec."""
    vector_folder: str = ""
    """Where libmvec is, when `vector` names any function."""
    contracts: bool = False
    """Whether a product and a sum may become one operation, rounded once."""

    @functools.cached_property
    def flags(self) -> tuple[str, ...]:
        """What every unit is compiled with, optimisation aside."""
        # with it x*x - y*y is not 0 at x == y
        contraction = f"-ffp-contract={'fast' if self.contracts else 'off'}"
        flags = (*_FLAGS, contraction, *_KIND_FLAGS[self.kind])
        if self.vector and self.kind != "gcc":
            # clang's list ends at 256 bits: in wider loops it would call the scalar functions.
            return (*flags, "-fveclib=libmvec", "-mprefer-vector-width=256")
        if "avx512f" in cpu_features():
            # Else the lanes of a sum depend on the model, and with them its rounding error.
            return (*flags, "-mprefer-vector-width=512")
        return flags

    @functools.cached_property
    def libraries(self) -> tuple[str, ...]:
        """What every unit is linked with."""
        vector = (f"-L{self.vector_folder}", "-l:libmvec.so.1") if self.vector else ()
        # zig would build its own libm stub for every unit; the process has loaded libm anyway.
        return vector + {"gcc": ("-lm", "-lgcc"), "clang": ("-lm",), "zig": ()}[self.kind]

    @functools.cached_property
    def identity(self) -> str:
        """Text that changes whenever the same source could give another object."""
        vector = sorted(self.vector)
        parts = [*self.command, self.version, *self.flags, *self.libraries, *vector]
        return "\n".join([*parts, cpu_features()])


class CompileError(RuntimeError):
    """A unit that does not compile; `path` holds its source and the compiler's whole output."""

    def __init__(self, path: Path, first_line: str) -> None:
        super().__init__(f"{first_line} (source and log in {path})")
        self.path = path


def find_compiler() -> Compiler | None:
    """$CXX, g++, clang++, then the ziglang wheel: the first one that works."""
    return _find(os.environ.get("CXX", ""), os.environ.get("PATH", ""), open_cache())


def compile_object(*sources: str, optimise: str = "-O3", compiler: Compiler | None = None) -> Path:
    """The shared object that these units make together, from the cache or built now."""
    compiler = compiler or find_compiler()
    if compiler is None:
        raise FileNotFoundError("no C++ compiler was found")
    cache = open_cache()
    key = digest("object", compiler.identity, optimise, *sources)
    found = cache.object_path(key)
    if found is not None:
        return found
    try:
        return _build(compiler, sources, optimise, cache, key)
    except OSError:
        # The disk is full or the directory is gone: the call must still be answered.
        return _build(compiler, sources, optimise, temporary_cache(), key)


def processors() -> int:
    """How many units may be compiled at once."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def cpu_features() -> str:
    """What -march=native looks at: the processor's model and instruction sets."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = file.read(8192).split("\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU part")
    return "\n".join(line for line in lines if line.startswith(wanted))


def _build(
    compiler: Compiler, sources: Sequence[str], optimise: str, cache: Cache, key: str
) -> Path:
    with cache.building() as folder:
        built = folder / "unit.so"
        log = _run_compiler(compiler, sources, optimise, folder, built)
        if log is not None:
            errors = [line for line in log.splitlines() if "error" in line]
            first = (errors or log.splitlines() or ["the compiler failed without a message"])[0]
            text = "\n\n".join([*sources, log])
            raise CompileError(cache.keep_failure(key, text), first.strip())
        return cache.put_object(key, built)


def _run_compiler(
    compiler: Compiler, sources: Sequence[str], optimise: str, folder: Path, built: Path
) -> str | None:
    """Builds one object, several units at the same time; the compiler's output when it failed."""
    names = ["unit", *(f"unit{k}" for k in range(1, len(sources)))]
    for name, source in zip(names, sources, strict=True):
        (folder / f"{name}.cpp").write_text(source)
    command = [*compiler.command, *compiler.flags, optimise]
    end = ["-o", str(built), *compiler.libraries]
    if len(sources) == 1:
        log = _run([[*command, str(folder / "unit.cpp"), *end]], folder)
    else:
        each = [["-c", str(folder / f"{n}.cpp"), "-o", str(folder / f"{n}.o")] for n in names]
        log = _run([[*command, *files] for files in each], folder)
        if log is None:
            # the language would hold for objects too
            linking = [word for word in command if word not in ("-x", "c++")]
            log = _run([[*linking, *(str(folder / f"{n}.o") for n in names), *end]], folder)
    return None if log is None and built.exists() else log or ""


def _run(commands: Sequence[Sequence[str]], folder: Path) -> str | None:
    """Runs compilers at the same time; their output when one of them failed."""
    # zig keeps every object it makes unless its caches go with the folder.
    zig_cache = {"ZIG_GLOBAL_CACHE_DIR": str(folder), "ZIG_LOCAL_CACHE_DIR": str(folder)}
    running = [
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C", **zig_cache},
        )
        for command in commands
    ]
    try:
        logs = [process.communicate()[0] for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
    if not any(process.returncode for process in running):
        return None
    return b"".join(logs).decode(errors="replace").replace(str(folder) + os.sep, "")


@functools.lru_cache(maxsize=8)
def _find(cxx: str, path: str, cache: Cache) -> Compiler | None:
    for command in _candidates(cxx):
        program = shutil.which(command[0], path=path)
        compiler = None if program is None else _prove((program, *command[1:]), cache)
        if compiler is not None:
            return compiler
    return None


def _candidates(cxx: str) -> Iterator[tuple[str, ...]]:
    if cxx.strip():
        yield tuple(shlex.split(cxx))
    yield ("g++",)
    yield ("clang++",)
    wheel = importlib.util.find_spec("ziglang")
    if wheel is not None and wheel.submodule_search_locations:
        yield (os.path.join(wheel.submodule_search_locations[0], "zig"), "cc", "-x", "c++")


def _prove(command: tuple[str, ...], cache: Cache) -> Compiler | None:
    """What this command is, by building a unit with it; None when it cannot."""
    try:
        status = os.stat(os.path.realpath(command[0]))
    except OSError:
        return None
    facts = f"{status.st_size} {status.st_mtime_ns} {_libc()}"
    key = digest("compiler", *command, facts, cpu_features(), *_FLAGS, *CANDIDATES)
    remembered = cache.get_blob(key)
    if remembered is not None:
        kind, version, vector, folder = json.loads(remembered)
        return Compiler(kind, command, version, frozenset(vector), folder)
    compiler = _examine(command)
    if compiler is None:
        return None
    proven = _with_libmvec(compiler, cache)
    if proven is None and _proof(compiler, _PROOF, cache) is not None:
        proven = compiler
    if proven is not None:
        learnt = [proven.kind, proven.version, sorted(proven.vector), proven.vector_folder]
        cache.put_blob(key, json.dumps(learnt).encode())
    return proven


def _examine(command: tuple[str, ...]) -> Compiler | None:
    try:
        asked = subprocess.run([*command, "--version"], capture_output=True, check=False)
    except OSError:
        return None
    text = asked.stdout.decode(errors="replace")
    if asked.returncode != 0 or not text.strip():
        return None
    kind: Kind = "gcc"
    if os.path.basename(command[0]).startswith("zig"):
        kind = "zig"
    elif "clang" in text:
        kind = "clang"
    elif "Free Software Foundation" not in text:
        return None
    return Compiler(kind, command, text.splitlines()[0])


def _with_libmvec(compiler: Compiler, cache: Cache) -> Compiler | None:
    """The compiler with those vector functions that its loops call; None when it calls none."""
    library = find_libmvec()
    if library is None:
        return None
    linked = replace(compiler, vector=library.names, vector_folder=library.folder)
    # gcc takes what it is told to have; clang and zig know a few of the functions by name.
    names = frozenset({"exp"}) if compiler.kind == "gcc" else library.names
    built = _proof(linked, probe_source(names), cache)
    used = used_names(built, names) if built is not None else frozenset()
    if not used:
        return None
    return linked if compiler.kind == "gcc" else replace(linked, vector=used)


def _proof(compiler: Compiler, source: str, cache: Cache) -> bytes | None:
    """The object of a small unit, if the compiler can build it."""
    with cache.building() as folder:
        built = folder / "proof.so"
        try:
            log = _run_compiler(compiler, [source], "-O3", folder, built)
            return built.read_bytes() if log is None else None
        except OSError:
            return None


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""
