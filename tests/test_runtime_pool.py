"""The memory pool: reuse, the bound on idle bytes, statistics, and arrays that own a block."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from npjit._runtime import Dispatcher, pool_stats, pool_trim, set_pool_bound

from tests.native_code import FLOAT64, NEEDS_COMPILER, compile_native, entry_of

pytestmark = NEEDS_COMPILER


@pytest.fixture
def make(tmp_path) -> Iterator[Dispatcher]:
    """make(n) is a fresh 1-d float64 array of n elements, unwritten."""
    native = compile_native(tmp_path, "out[1] = in[0];", "")
    entry = entry_of(native, [(("arg", 0), ("scalar", "i"))], [("array", FLOAT64, 1, None)])
    dispatcher = Dispatcher(lambda args, kwargs: pytest.fail("no entry matched"), None)
    dispatcher.add(entry)
    bound = pool_stats()["bound"]
    gc.collect()
    pool_trim()
    yield dispatcher
    set_pool_bound(bound)


def test_released_block_is_reused(make):
    first = make(100_000)
    address = first.ctypes.data
    before = pool_stats()
    del first
    second = make(99_000)  # of the same size class
    after = pool_stats()
    assert second.ctypes.data == address
    assert after["reused"] == before["reused"] + 1
    assert after["fresh"] == before["fresh"]


def test_statistics_follow_blocks(make):
    start = pool_stats()
    array = make(1 << 20)
    held = pool_stats()
    assert held["live_blocks"] == start["live_blocks"] + 1
    assert held["live_bytes"] - start["live_bytes"] >= array.nbytes
    del array
    idle = pool_stats()
    assert idle["live_bytes"] == start["live_bytes"]
    assert idle["idle_blocks"] == start["idle_blocks"] + 1
    pool_trim()
    assert pool_stats()["idle_bytes"] == 0


def test_size_classes_waste_little_and_hold_enough(make):
    for n in (512, 513, 639, 640, 641, 1023, 1024, 1025, 131_071, 131_072, 131_073, 300_001):
        before = pool_stats()["live_bytes"]
        array = make(n)
        taken = pool_stats()["live_bytes"] - before
        assert array.nbytes <= taken <= 1.25 * array.nbytes + 64
        array[:] = 1.0
        assert array.ctypes.data % 64 == 0
        del array


def test_least_recently_released_goes_first(make):
    old = make(100_000)
    young = make(200_000)
    young_address = young.ctypes.data
    del old
    del young
    set_pool_bound(pool_stats()["idle_bytes"] - 1)
    assert pool_stats()["idle_blocks"] == 1
    assert make(200_000).ctypes.data == young_address


def test_block_beyond_the_bound_leaves_the_others(make):
    small = make(1000)
    large = make(1_000_000)
    set_pool_bound(100_000)
    del small
    del large
    assert pool_stats()["idle_blocks"] == 1


def test_result_owns_its_data_like_numpys(make):
    array = make(10_000)
    assert array.base is None
    assert array.flags.owndata and array.flags.writeable and array.flags.c_contiguous
    array[:] = 7.0
    array.resize(20_000)
    assert array[9_999] == 7.0 and array[10_000] == 0.0 and array[-1] == 0.0
    array.resize(100)
    np.testing.assert_array_equal(array, np.full(100, 7.0))


def test_view_keeps_the_block(make):
    view = make(10_000)[5:]
    live = pool_stats()["live_blocks"]
    view[:] = 3.0
    assert pool_stats()["live_blocks"] == live
    del view
    assert pool_stats()["live_blocks"] == live - 1


def test_too_large_is_a_memory_error(make):
    with pytest.raises(MemoryError):
        make(1 << 58)
    with pytest.raises(ValueError, match="too big"):
        make(1 << 62)
    with pytest.raises(ValueError, match="negative"):
        make(-1)


def test_threads_share_the_pool(make):
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        kept = []
        for _ in range(200):
            array = make(int(rng.integers(600, 50_000)))
            array[:] = seed
            kept.append(array)
            if len(kept) > 5:
                assert (kept.pop(0) == seed).all()

    errors: list[BaseException] = []

    def guarded(seed: int) -> None:
        try:
            work(seed)
        except BaseException as error:
            errors.append(error)

    live = pool_stats()["live_blocks"]
    threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert pool_stats()["live_blocks"] == live
