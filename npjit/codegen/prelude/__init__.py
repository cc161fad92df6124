"""The C++ prelude: functions that give NumPy's result, called by printed kernels.

In: the text of a translation unit and the vector math functions of the compiler. Out: what the
text needs of the prelude, ready to paste in front of it (behind runtime/abi.h):

    prelude_text("... v1 = nj_sin(v0); ...", vector=frozenset({"sin"}))

Types      i8 i16 i32 i64 u8 u16 u32 u64, b1 (is `bool`), f16 and bf16 (structs), f32,
           f64, c64 = cplx<f32>, c128 = cplx<f64> (struct {T re, im;}; aggregate: `c128{re, im}`).
           Arrays of b1 are declared `u8*`, loaded by nj_truth(p[i]) and stored as `p[i] = c`: so
           gcc vectorises a choice by a loaded b1, and bytes other than 0 and 1 count as true.
Operators  C++ + - * and unary - work for every type but b1 (the result on narrow ints is promoted:
           assign it to the declared type), / for f16 f32 f64 c64 c128 (true division,
           complex by Smith's method), == != < <= > >= for all (complex: NumPy's lexicographic
           order), & | ^ ~ for ints and & | ^ ! for b1. f16 computes in f32 and rounds after each.
           f16 and cplx also have += *=.

Functions are inlined always, overloaded by type, named nj_<NumPy's name>. R: f16 bf16 f32 f64.
I: the ints. C: c64 c128. A function of two arguments takes both of one type: cast first with
nj_cast. Join conditions by & and |: && and || are branches, which keep a loop scalar.

Casts      To nj_cast<To>(From)            every pair of types, NumPy's result for NaN and overflow
           b1 nj_truth(u8 byte)            the b1 that a byte of a b1 array stands for
R          nj_sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh
           exp exp2 expm1 log log2 log10 log1p sqrt cbrt floor ceil trunc rint
           reciprocal square fabs deg2rad rad2deg degrees radians spacing erf erfc (x) -> R
           arctan2 power float_power hypot copysign nextafter logaddexp logaddexp2 heaviside
           fmod remainder floor_divide fmax fmin maximum minimum (x, y) -> R
           isnan isinf isfinite signbit (x) -> b1      sign absolute negative positive (x) -> R
           modf_fraction modf_whole frexp_mantissa (x) -> R      frexp_exponent (x) -> i32
           ldexp (R x, i32 or i64 n) -> R              fma(x, y, z) -> R, one rounding
           near_sin near_cos (f32) -> f32              quicker, where is_near(f32) -> b1 holds
I          nj_floor_divide remainder fmod power left_shift right_shift gcd lcm maximum minimum
           fmax fmin (x, y) -> I           absolute sign negative square reciprocal (x) -> I
           near_remainder (i64 x, i64 y)   the same as remainder, quicker where 0 <= x < y
           bitwise_count (x) -> u8         power's exponent must be >= 0 (NumPy raises: a CHECK)
b1         nj_maximum minimum fmax fmin (x, y), absolute(x)
C          nj_sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh
           exp exp2 expm1 log log2 log10 log1p sqrt reciprocal square conjugate negative positive
           sign rint (x) -> C              power maximum minimum fmax fmin (x, y) -> C
           absolute angle (x) -> the real type      isnan isinf isfinite (x) -> b1
Choice     T nj_select(b1 c, T a, T b)     where
           T nj_either(b1 c, T a, T b)         the same for ints, surely without a branch
           b1 nj_held(b1 c)                c, for the choice whether to load a complex element
Reductions nj_cascade<T> s;                pairwise sum of f32 f64 c64 c128, error at most NumPy's
             for (i64 b = lo; b < hi; b += NJ_BLOCK(T)) {
               const i64 m = nj_size_min(NJ_BLOCK(T), hi - b);
               T t = 0;
               #pragma omp simd reduction(+ : t)
               for (i64 j = 0; j < m; ++j) t += v(b + j);
               s.push(t);
             }
             s.total()                         0 when nothing was pushed
           nj_moments {count, mean, squares, low} a + b joins two sets of values
           nj_spread<T> s;                     squared distances from the mean in one pass: up to
             s.push(i64 count, T sum, T square)   4 * NJ_BLOCK(T) values at s.values + s.count, the
             s.done()                          sums of v - s.nearby and of its square
           nj_lowest<T>() nj_highest<T>()      where a max, a min starts (-inf, the smallest int)
           nj_seen<sign>(v), nj_extreme<sign>(t, flag)   a max (sign 1) or min (-1) by lanes ignores
                                               NaN: reduce (max : t) beside (| : flag), with
                                               flag |= nj_seen<sign>(v), an i64 for f64, else an i32
           nj_argument<T, sign> s;             argmax (1), argmin (-1): first occurrence, NaN wins
             s.push(const T* values, i64 count, i64 first_position); s.at
Indices    nj_place(i64 i, i64 n) -> i64                               i, or i + n where i < 0
           nj_wrap_index(i64 i, i64 n, i32* failed) -> i64             the cold path of a check
           nj_size_floordiv nj_size_mod nj_size_min nj_size_max (i64, i64) -> i64
           nj_size_select(i, a, b) -> i64                              a where i >= 0, else b
           nj_size_pow2(n) -> i64                                      2 to the n
Products   nj_multiply_add(x, y, z)            x * y + z for f32 f64, fused where the machine can
           nj_dot<T>(n, a, sa, b, sb) -> T     (T b1: u8 arrays, u8 result)
           nj_gemv<T>(m, n, a, a0, a1, x, sx, y, sy)                   y[m] = a[m, n] x[n]
           nj_gemm<T>(m, n, k, a, a0, a1, b, b0, b1, c, c0, c1)        c[m, n] = a[m, k] b[k, n]
           nj_rows(api, m, n, a, a0, x, sx, y, sy)                     rows without gaps, f32 f64
           nj_across(api, n, m, a, a0, g, sg, y, sy)                   y[n] = g[m] a[m, n], likewise
           nj_times_vector<T>(api, m, n, a, a0, a1, x, sx, y, sy)      the same, BLAS if large
           nj_matmul<T, how>(api, m, n, k, a, a0, a1, b, b0, b1, c, c0, c1) the same, BLAS if large
           nj_small_matmul<T, m, n, k>(a, a0, a1, b, b0, b1, c, c0, c1) the same, written out,
           for n 1, 2, 4 or 8; nj_small_columns for others
           nj_tiles<T, how>(api, m, n, k, a, a0, a1, b, b0, b1, c, c0, c1)  in registers, where
                               nj_suits_tiles<T>(m, n, k, c0, c1), f32 f64
           how: NJ_APART, NJ_IN_PLACE (c lies where a does) or NJ_SQUARE (b may be a, turned)
           nj_replace<T>(api, m, k, a, a0, a1, b, b0, b1)              a[m, k] = a[m, k] b[k, k]
           nj_cut_product<T, sums, results>(api, arrays, i64, i64)     a, b, c as npjit_arrays; of
                                               row i NJ_ALL, NJ_BELOW or NJ_FROM i + the shift
           strides in elements, any T (ints wrap, b1 is or of and, f16 sums in f32)
Arrays     nj_scan<T, J>(api, from, to, axis)                          a running fold, to in C order
           nj_scatter<T, J, place, dims...>(arrays)                  arrays: base, value, indices...
           nj_places(arrays)                                         a mask, then where it holds
           npjit_arrays of T; J is nj_join_add, multiply, maximum, minimum, logaddexp or last (the
           last value stays)
Shares     nj_share(api, trips, work, run) -> int            trips that threads share out
Lanes      nj_many<T> x; x.set(lane, v) x.get(lane)          f64, i64 or b1 of NJ_MANY trips
           nj_any(nj_many<b1>) -> b1, nj_first_lanes(count) -> nj_many<b1>
Sweeps     nj_sweep(api, paces, trip, trips, bytes, is_round, run)   launches that advance together

A paragraph of a header ends at a blank line and defines the names that its lines at the margin
declare. `// without sin` in its first line keeps it for compilers that cannot call libmvec's sin.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from npjit.codegen.prelude.headers import BRAIN, texts_of

# Header, and the types that a unit must mention before it may get one of its paragraphs.
_HEADERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("types.h", frozenset()),
    ("core.h", frozenset()),
    ("integer.h", frozenset()),
    ("float.h", frozenset()),
    ("series.h", frozenset()),
    ("exponential.h", frozenset()),
    ("circular.h", frozenset()),
    ("math.h", frozenset()),
    ("reduce.h", frozenset()),
    ("linalg.h", frozenset()),
    ("rows.h", frozenset()),
    ("across.h", frozenset()),
    ("tiles.h", frozenset()),
    ("blas.h", frozenset()),
    ("small.h", frozenset()),
    ("arrays.h", frozenset()),
    ("wave.h", frozenset({"nj_wave"})),
    ("sweep.h", frozenset()),
    ("shares.h", frozenset()),
    ("lanes.h", frozenset({"nj_many"})),
    ("half.h", frozenset({"f16"})),
    ("half.h", BRAIN),
    ("complex.h", frozenset({"cplx", "c64", "c128"})),
)

# What libm calls NumPy's functions, where the names differ.
_LIBM_NAMES = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "power": "pow",
}
_TWO_ARGUMENTS = ("atan2", "pow", "hypot")

# Logarithms of libmvec leave the vector, value by value, where one lies at the edge of the domain
# or outside: ten times slower for np.where(x > 0, np.log(x), 0).
_EDGES = {"log": 0, "log2": 0, "log10": 0, "log1p": -1}
_GUARDED = """NJ_INLINE {kind} nj_{base}({kind} x) {{
  const b1 inside = (x > {edge}) & (x < {inf});
  const {kind} above = nj_select(x > {edge}, x, {inf} - {inf});
  const {kind} outside = nj_select(x == {edge}, -{inf}, above);
  return nj_select(inside, nj_inside_{base}(nj_select(inside, x, ({kind})1)), outside);
}}"""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_DECLARED = re.compile(
    r"^(?:template <[^;{}]*?>\s*)?(?:NJ_INLINE|static|__attribute__|f32|f64|double|float)"
    r"[^;{}=]*?(\bnj_\w+)\("
    r"|^(?:template <[^;{}]*?>\s*)?struct (\w+)"
    r"|^template <>\s+(?:NJ_INLINE|inline) \w+ (nj_\w+)"
    r"|^(?:template <[^;{}]*?>\s*)?using (\w+)"
    r"|^typedef .*?(\w+);"
    r"|^#\s*define (\w+)"
    r"|^static const .*?(\w+)\[",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Paragraph:
    """Some lines of a header: what they define, what they use, and when they may be taken."""

    text: str
    defines: frozenset[str]
    uses: frozenset[str]
    types: frozenset[str]
    without: str | None


def prelude_text(code: str, vector: Iterable[str] = ()) -> str:
    """The part of the prelude that `code` needs, when `vector` lists what libmvec offers."""
    vector = frozenset(vector)
    own = [p for p in _paragraphs() if p.without not in vector]
    # a guard stands behind what it calls
    choices = [i for i, p in enumerate(own) if "nj_select" in p.defines and not p.types]
    middle = choices[-1] + 1
    parts = [own[:2], _declarations(vector), own[2:middle], _guards(vector), own[middle:]]
    return select(code, [paragraph for part in parts for paragraph in part])


def select(code: str, paragraphs: Sequence[Paragraph]) -> str:
    """The paragraphs that define what `code` uses, and what those use, in the given order."""
    needed = set(_IDENTIFIER.findall(code))
    taken: set[int] = set()
    grew = True
    while grew:
        grew = False
        for index, paragraph in enumerate(paragraphs):
            if index in taken or needed.isdisjoint(paragraph.defines):
                continue
            if paragraph.types and needed.isdisjoint(paragraph.types):
                continue
            taken.add(index)
            needed |= paragraph.uses
            grew = True
    return "\n".join(paragraphs[index].text for index in sorted(taken)) + "\n"


@functools.cache
def _declarations(vector: frozenset[str]) -> tuple[Paragraph, ...]:
    """Declarations by which gcc may call libmvec, under names that it takes for no built-in."""
    numpy_names = {libm: name for name, libm in _LIBM_NAMES.items()}
    found = []
    for name in sorted(vector):
        single = name.endswith("f") and name != "erf"
        base = name[:-1] if single else name
        kind = "f32" if single else "f64"
        arguments = f"{kind}, {kind}" if base in _TWO_ARGUMENTS else kind
        attributes = '__attribute__((simd("notinbranch"), const, nothrow))'
        called = f"inside_{base}" if base in _EDGES else numpy_names.get(base, base)
        text = f'{attributes} {kind} nj_{called}({arguments}) __asm__("{name}");'
        found.append(parse(text, frozenset()))
    return tuple(found)


@functools.cache
def _guards(vector: frozenset[str]) -> tuple[Paragraph, ...]:
    """The functions that keep arguments at the edge of a domain away from libmvec."""
    found = []
    for base, edge in _EDGES.items():
        for name, kind, infinity in ((base, "f64", "inf()"), (f"{base}f", "f32", "inff()")):
            if name in vector:
                text = _GUARDED.format(base=base, kind=kind, edge=edge, inf=f"__builtin_{infinity}")
                found.append(parse(text, frozenset()))
    return tuple(found)


@functools.cache
def _paragraphs() -> tuple[Paragraph, ...]:
    return tuple(parse(t, types) for name, types in _HEADERS for t in texts_of(name, types))


def parse(text: str, types: frozenset[str]) -> Paragraph:
    """A paragraph of a header that is for units which mention one of `types`."""
    condition = re.match(r"// without (\w+)\n", text)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    body = "\n".join(lines)
    # a declaration may go on with its name
    whole = re.sub(r"^(static .*\))\n +(nj_)", r"\1 \2", body, flags=re.MULTILINE)
    margin = "\n".join(line for line in whole.splitlines() if line[:1] not in " }")
    declared = (next(filter(None, match.groups())) for match in _DECLARED.finditer(margin))
    uses = frozenset(_IDENTIFIER.findall(body))
    without = condition.group(1) if condition else None
    return Paragraph(body, frozenset(declared), uses, types, without)
