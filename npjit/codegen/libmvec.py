"""libmvec, glibc's vector versions of math functions: which of them a compiler's loops may call.

In: nothing but the machine. Out: where the library is and the C names of its usable functions, and
a unit whose symbols tell which of those a compiler makes use of:

    library = find_libmvec()   # Library(folder="/lib/x86_64-linux-gnu", names={"sin", "sinf", ...})
    probe_source(library.names)
"""

import os
import platform
import re
from dataclasses import dataclass

# Functions that are within 4 ulp with NumPy's special values, but for those excluded: erfc loses
# all its digits near 0, and logf differs from NumPy's by up to 6 ulp. exp is left out because the
# prelude's own, in line, takes half the time.
_ARGUMENTS = {
    "v": "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp2 expm1 log log10 log1p"
    " log2 sin sinh tan tanh",
    "vv": "atan2 hypot pow",
}
_EXCLUDED = ("erfc", "logf")

CANDIDATES = tuple(
    name + suffix
    for names in _ARGUMENTS.values()
    for name in names.split()
    for suffix in ("", "f")
    if name + suffix not in _EXCLUDED
)
"""The C names that are looked for."""

# One per instruction set that gcc may choose: it takes a declared function to have them all.
_PREFIXES = {"x86_64": ("_ZGVbN{0}", "_ZGVcN{1}", "_ZGVdN{1}", "_ZGVeN{2}")}


@dataclass(frozen=True)
class Library:
    """The folder that holds libmvec.so.1, and the functions in it that equal NumPy's."""

    folder: str
    names: frozenset[str]


def find_libmvec() -> Library | None:
    """The machine's libmvec; None where there is none."""
    import ctypes  # costs 3 ms, and only the first process on a machine comes here

    prefixes = _PREFIXES.get(platform.machine())
    if prefixes is None:
        return None
    try:
        library = ctypes.CDLL("libmvec.so.1")
    except OSError:
        return None
    found = frozenset(
        n for n in CANDIDATES if all(hasattr(library, s) for s in _symbols(n, prefixes))
    )
    folder = _loaded_folder()
    return Library(folder, found) if folder and found else None


def probe_source(names: frozenset[str]) -> str:
    """A unit with a loop around each function; its object names the vector versions it calls."""
    return "".join(_probe_loop(name) for name in sorted(names))


def used_names(built: bytes, names: frozenset[str]) -> frozenset[str]:
    """Those functions whose vector versions a compiled probe calls."""
    return frozenset(name for name in names if b"v_" + name.encode() + b"\0" in built)


def _symbols(name: str, prefixes: tuple[str, ...]) -> list[str]:
    """The names of a function's vector versions: _ZGVdN4v_sin takes and gives 4 doubles."""
    lanes = (4, 8, 16) if _is_single(name) else (2, 4, 8)
    arguments = "vv" if _has_two_arguments(name) else "v"
    return [f"{prefix.format(*lanes)}{arguments}_{name}" for prefix in prefixes]


def _is_single(name: str) -> bool:
    return name.endswith("f") and name != "erf"


def _has_two_arguments(name: str) -> bool:
    return name.removesuffix("f") in _ARGUMENTS["vv"].split()


def _probe_loop(name: str) -> str:
    kind = "float" if _is_single(name) else "double"
    two = _has_two_arguments(name)
    declared, called = (f"{kind}, {kind}", "x[i], y[i]") if two else (kind, "x[i]")
    return (
        f'__attribute__((simd("notinbranch"), const, nothrow)) {kind} call_{name}({declared})'
        f' __asm__("{name}");\n'
        f'extern "C" void loop_{name}(const {kind}* __restrict x, const {kind}* __restrict y,'
        f" {kind}* __restrict o, long n) {{\n#pragma omp simd\n"
        f"  for (long i = 0; i < n; ++i) o[i] = call_{name}({called});\n}}\n"
    )


def _loaded_folder() -> str | None:
    try:
        with open("/proc/self/maps") as file:
            found = re.search(r"(/\S*)/libmvec[\w.-]*", file.read())
    except OSError:
        return None
    folder = found.group(1) if found else None
    return folder if folder and os.path.exists(f"{folder}/libmvec.so.1") else None
