"""Arrays with more elements than 32-bit indices reach; only where the tests run on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.backends import cuda as backend
from tests.cuda import fake_cupy

pytestmark = pytest.mark.skipif(not fake_cupy.ON_GPU, reason="wants a GPU's memory")

COUNT = 2**31 + 4099


@pytest.fixture
def large() -> Iterator[Any]:
    cupy = backend.cupy()
    x = cupy.ones(COUNT, np.int8)
    x[-1] = 7
    yield x
    del x
    cupy.get_default_memory_pool().free_all_blocks()


def test_elementwise_and_shifted(large: Any) -> None:
    got = npjit.jit(lambda x: x[1:] * 3 - x[:-1], fullgraph=True)(large)
    assert got.size == COUNT - 1
    assert int(got[0]) == 2 and int(got[-1]) == 20 and int(got[2**31]) == 2


def test_reductions(large: Any) -> None:
    total, where, most = npjit.jit(lambda x: (x.sum(), x.argmax(), x.max()), fullgraph=True)(large)
    assert int(total) == COUNT + 6
    assert int(where) == COUNT - 1 and int(most) == 7


def test_rows_and_columns(large: Any) -> None:
    x = large[: 2**31 + 4096].reshape(-1, 4096)

    def sums(x):
        return x.sum(axis=1), x.sum(axis=0), x.T.copy()

    rows, columns, turned = npjit.jit(sums, fullgraph=True)(x)
    assert int(rows[-1]) == 4096 and int(columns[-1]) == 2**19 + 1
    assert turned.shape == (4096, 2**19 + 1) and bool((turned == 1).all())


def test_places_beyond(large: Any) -> None:
    cupy = backend.cupy()
    places = cupy.asarray(np.array([0, 2**31, COUNT - 1, -1]))

    def pick(x, places):
        found = x[places]
        x[places] = 9
        return found

    got = npjit.jit(pick, fullgraph=True)(large, places)
    assert got.get().tolist() == [1, 1, 7, 7]
    assert int(large[2**31]) == 9 and int(large[-1]) == 9 and int(large[5]) == 1


def test_memory_that_is_not_there(large: Any) -> None:
    f = npjit.jit(lambda x: x[:, None] * x[None, :], fullgraph=True)
    with pytest.raises(MemoryError, match=r"GPU 0 has no .* bytes are free"):
        f(large[:600_000])
    assert f(large[:50]).shape == (50, 50)
