"""The prelude's reductions, small products, and sizes."""

import math

import numpy as np
import pytest

from npjit.core.tolerance import assert_equal_numpy, sum_bound
from tests.prelude_loops import C_TYPES, COMPLEX, FLOATS, INTS, needs_compiler, run_c

pytestmark = needs_compiler


@pytest.mark.parametrize("code", "fd")
def test_cascade_is_as_good_as_pairwise(code: str) -> None:
    kind = C_TYPES[code]
    body = f"""(const {kind}* x, {kind}* out, i64 n) {{
      nj_cascade<{kind}> s;
      for (i64 b = 0; b < n; b += NJ_BLOCK({kind})) {{
        const i64 m = nj_size_min(NJ_BLOCK({kind}), n - b);
        {kind} t = 0;
      #pragma omp simd reduction(+ : t)
        for (i64 j = 0; j < m; ++j) t += x[b + j];
        s.push(t);
      }}
      *out = s.total();
    }}"""
    for count in (0, 1, 7, 129, 5000, 1_000_003):
        x = np.random.default_rng(count).uniform(0.1, 1, count).astype(code)
        got = np.empty((), code)
        run_c(body, x, got, count)
        exact = math.fsum(x.tolist())
        # half the distance that two sums may have: this one is compared with the exact sum
        assert abs(float(got) - exact) <= sum_bound(x) / 2 + np.spacing(exact) / 2


@pytest.mark.parametrize("code", "bBqQ?efd")
@pytest.mark.parametrize("sign", [1, -1])
def test_argument_and_identity(code: str, sign: int) -> None:
    kind = "b1" if code == "?" else C_TYPES[code]
    body = f"""(const {kind}* x, i64* out, {kind}* ends, i64 n) {{
      nj_argument<{kind}, {sign}> s;
      for (i64 b = 0; b < n; b += 100) s.push(x + b, nj_size_min(100, n - b), b);
      *out = s.at;
      ends[0] = nj_lowest<{kind}>();
      ends[1] = nj_highest<{kind}>();
    }}"""
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 50, 1000).astype(code), rng.integers(0, 2, 99).astype(code)]
    if code in "efd":
        rows += [np.where(rng.uniform(size=700) < 0.01, np.nan, rng.normal(size=700)).astype(code)]
        rows += [np.array([-np.inf, np.inf, np.inf, -np.inf], code), np.array([-0.0, 0.0], code)]
    for x in rows:
        at, ends = np.empty((), "q"), np.empty(2, code)
        run_c(body, x, at, ends, len(x))
        assert at == (np.argmax(x) if sign > 0 else np.argmin(x))
        assert ends[0] <= x.min() or np.isnan(x.min())
        limits = np.iinfo(code) if code in "bBqQ" else None
        assert limits is None or (ends[0], ends[1]) == (limits.min, limits.max)
        assert code not in "efd" or (ends[0], ends[1]) == (-np.inf, np.inf)


@pytest.mark.parametrize("code", "?" + INTS + FLOATS + COMPLEX)
def test_small_products(code: str) -> None:
    kind = "b1" if code == "?" else C_TYPES[code]
    stored = C_TYPES[code]
    rng = np.random.default_rng(1)
    scale = 100 if code in INTS else 2 if code == "?" else 8
    body = f"""(i64 m, i64 n, i64 k, const {stored}* a, i64 a0, i64 a1, const {stored}* b, i64 b0,
      i64 b1_, {stored}* c, {stored}* y, {stored}* d) {{
      nj_gemm<{kind}>(m, n, k, a, a0, a1, b, b0, b1_, c, n, 1);
      nj_gemv<{kind}>(m, k, a, a0, a1, b, b0, y, 1);
      *d = nj_dot<{kind}>(k, a, a1, b, b0);
    }}"""
    for m, n, k in ((3, 5, 4), (1, 1, 1), (9, 40, 17), (2, 3, 0)):
        for order in "CF":
            a = rng.integers(0, scale, (m, k)).astype(code, order=order)
            b = rng.integers(0, scale, (k, n)).astype(code, order=order)
            c, y, d = np.empty((m, n), code), np.empty(m, code), np.empty((), code)
            steps = [s // a.itemsize for s in (*a.strides, *b.strides)]
            run_c(body, m, n, k, a, *steps[:2], b, *steps[2:], c, y, d)
            # small whole numbers: every order of additions gives the same floats
            assert_equal_numpy(c, a @ b)
            assert_equal_numpy(y, a @ b[:, 0])
            assert_equal_numpy(d, np.asarray(a[0] @ b[:, 0]))


def test_sizes_and_indices() -> None:
    body = """(const i64* a, const i64* b, i64* out, i64 n) {
      for (i64 i = 0; i < n; ++i) {
        i32 failed = 0;
        out[5 * i] = nj_size_floordiv(a[i], b[i]);
        out[5 * i + 1] = nj_size_mod(a[i], b[i]);
        out[5 * i + 2] = nj_size_min(a[i], b[i]);
        out[5 * i + 3] = nj_size_max(a[i], b[i]);
        out[5 * i + 4] = nj_wrap_index(a[i], 5, &failed) + 100 * failed;
      }
    }"""
    pairs = [(a, b) for a in range(-8, 9) for b in range(-3, 4) if b]
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    out = np.empty((len(a), 5), np.int64)
    run_c(body, a, b, out, len(a))
    wrapped = [x % 5 if -5 <= x < 5 else 100 for x in a.tolist()]
    want = np.stack([a // b, a % b, np.minimum(a, b), np.maximum(a, b), wrapped], axis=1)
    assert_equal_numpy(out, want)
