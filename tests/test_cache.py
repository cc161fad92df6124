"""The disk cache: what is stored comes back, what is damaged does not, and size is bounded."""

import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import npjit
from npjit.codegen.cache import Cache, digest, open_cache


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def put_object(cache: Cache, key: str, data: bytes) -> Path:
    with cache.building() as folder:
        built = folder / "unit.so"
        built.write_bytes(data)
        return cache.put_object(key, built)


def test_blobs_come_back(cache: Cache) -> None:
    key = digest("plan", "some graph")
    assert cache.get_blob(key) is None
    cache.put_blob(key, b"\0plan\xff")
    assert cache.get_blob(key) == b"\0plan\xff"
    cache.put_blob(key, b"")
    assert Cache(cache.directory).get_blob(key) == b""


def test_keys_keep_their_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab", b"c") == digest(b"ab", "c")


@pytest.mark.parametrize("size", [0, 1, 31, 32, 100])
def test_truncated_entries_are_not_returned(cache: Cache, size: int) -> None:
    key = digest("a")
    path = put_object(cache, key, b"x" * 100)
    assert cache.object_path(key) == path
    path.write_bytes(path.read_bytes()[:size])
    assert cache.object_path(key) is None
    assert not path.exists()


def test_every_changed_byte_is_noticed(cache: Cache) -> None:
    key = digest("a")
    path = put_object(cache, key, bytes(range(40)))
    good = path.read_bytes()
    for position in range(len(good)):
        changed = bytearray(good)
        changed[position] ^= 1
        path.write_bytes(changed)
        assert cache.object_path(key) is None, position
    assert put_object(cache, key, bytes(range(40))).read_bytes() == good


def test_an_entry_under_a_foreign_name_is_not_returned(cache: Cache) -> None:
    mine, other = digest("mine"), digest("other")
    path = put_object(cache, other, b"other code")
    (cache.directory / f"{mine}.so").write_bytes(path.read_bytes())
    assert cache.object_path(mine) is None
    assert cache.object_path(other) == path


def test_trim_removes_the_oldest_use(tmp_path: Path) -> None:
    keys = [digest(str(number)) for number in range(20)]
    cache = Cache(tmp_path)
    for age, key in enumerate(keys):
        cache.put_blob(key, b"x" * 1000)
        os.utime(tmp_path / f"{key}.bin", (1e9 + age, 1e9 + age))
    assert cache.get_blob(keys[0]) is not None  # a use, which makes it one of the newest
    Cache(tmp_path, limit=10_000).trim()
    assert cache.stats().size <= 10_000
    kept = [key for key in keys if cache.get_blob(key) is not None]
    assert kept == [keys[0], *keys[-len(kept) + 1 :]]


def test_many_writes_stay_bounded(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=20_000)
    for number in range(600):
        cache.put_blob(digest(str(number)), b"x" * 1000)
    # between two trims there are 32 writes on average, and with these keys never 150
    assert cache.stats().size < 20_000 + 150 * 1100


def test_clear_and_stats(cache: Cache) -> None:
    cache.put_blob(digest("b"), b"blob")
    put_object(cache, digest("o"), b"object")
    stats = cache.stats()
    assert (stats.entries, stats.objects) == (2, 1)
    assert stats.size == len(b"blob") + len(b"object") + 2 * 32
    cache.clear()
    assert cache.stats().entries == 0


def test_left_over_build_folders_are_removed(cache: Cache) -> None:
    left = cache.directory / ".new-killed"
    left.mkdir()
    (left / "unit.cpp").write_text("int x;")
    cache.trim()
    assert left.exists()
    os.utime(left, (1e9, 1e9))
    cache.trim()
    assert not left.exists()


def test_the_directory_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "deep" / "npjit"
    monkeypatch.setenv("NPJIT_CACHE_DIR", str(directory))
    assert open_cache().directory == directory.resolve()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_the_default_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NPJIT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert open_cache().directory == (tmp_path / "npjit").resolve()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_cache().directory == (tmp_path / ".cache" / "npjit").resolve()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_directory_that_others_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(mode)
    assert_refused(directory, monkeypatch, "other users may write")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners here")
def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "theirs"
    directory.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert_refused(directory, monkeypatch, "another user owns it")


def test_a_file_in_place_of_the_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("")
    assert_refused(path, monkeypatch, "not a directory")


def assert_refused(directory: Path, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    monkeypatch.setenv("NPJIT_CACHE_DIR", str(directory))
    with pytest.warns(npjit.NpjitWarning, match=reason):
        chosen = open_cache()
    assert chosen.directory != directory
    assert stat.S_IMODE(chosen.directory.stat().st_mode) == 0o700
    chosen.put_blob(digest("k"), b"still works")
    assert chosen.get_blob(digest("k")) == b"still works"
    assert open_cache() is chosen  # and no second warning


def test_the_temporary_cache_goes_with_its_process() -> None:
    code = "from npjit.codegen.cache import temporary_cache; print(temporary_cache().directory)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "npjit-" in done.stdout
    assert not Path(done.stdout.strip()).exists()


def test_a_vanished_directory_is_no_error(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "gone")
    cache.put_blob(digest("k"), b"x")
    assert cache.get_blob(digest("k")) is None
    assert cache.stats().entries == 0


def _hammer(directory: str, seed: int) -> int:
    cache = Cache(Path(directory), limit=30_000)
    wrong = 0
    for step in range(200):
        number = (step * 7 + seed) % 40
        key, data = digest(str(number)), bytes([number]) * 1000
        found = cache.get_blob(key)
        wrong += found is not None and found != data
        cache.put_blob(key, data)
    return wrong


def test_many_processes_at_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        results = pool.starmap(_hammer, [(str(tmp_path), seed) for seed in range(8)])
    assert results == [0] * 8
    assert not list(tmp_path.glob(".new-*"))
