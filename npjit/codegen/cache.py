"""The disk cache: compiled objects and plans, shared by every process of one user.

In: a key (hex text from `digest`) and bytes. Out: the same bytes, or None when the entry is missing
or not exactly what was stored. An object is a file that ends in its checksum, so that a loader may
open it by path once `object_path` has verified it:

    cache = open_cache()
    cache.put_blob(digest("plan", graph_text), b"...")
    cache.get_blob(digest("plan", graph_text))  # b"..." in any process, until trimmed

An entry appears by one rename and is never edited, so any number of processes may write at once.
"""

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from npjit.core.warn import warn_user

DEFAULT_LIMIT = 1 << 30
"""Bytes that a cache may hold; a trim brings it down to 90 % of that."""

_CHECKSUM_SIZE = 32
_TOUCH_AFTER = 600.0
"""A hit renews an entry's age only when it is older than this many seconds: fewer writes."""
_STALE_TEMPORARY = 3600.0


def digest(*parts: str | bytes) -> str:
    """The key of the entry that `parts` describe; ("ab", "c") and ("a", "bc") differ."""
    state = hashlib.blake2b(digest_size=24)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


@dataclass(frozen=True)
class CacheStats:
    """What a cache holds now."""

    directory: Path
    entries: int
    objects: int
    size: int
    limit: int


@dataclass(frozen=True)
class Cache:
    """One directory of checksummed entries, bounded in size, the oldest use leaving first."""

    directory: Path
    limit: int = DEFAULT_LIMIT
    temporary: bool = False
    """Whether it goes with this process."""

    def get_blob(self, key: str) -> bytes | None:
        """The bytes stored under `key`; None when there are none or they are damaged."""
        return self._read(self._path(key, ".bin"), key)

    def put_blob(self, key: str, data: bytes) -> None:
        """Stores `data`; a cache that cannot be written stays as it is."""
        with contextlib.suppress(OSError), self.building() as folder:
            built = folder / "blob"
            built.write_bytes(data)
            self._seal(built, self._path(key, ".bin"), key)

    def object_path(self, key: str) -> Path | None:
        """The verified shared object stored under `key`, safe to load."""
        path = self._path(key, ".so")
        return path if self._read(path, key) is not None else None

    def put_object(self, key: str, built: Path) -> Path:
        """Moves a shared object (built inside `building()`) into the cache."""
        path = self._path(key, ".so")
        self._seal(built, path, key)
        return path

    @contextlib.contextmanager
    def building(self) -> Iterator[Path]:
        """A private folder on the cache's file system, gone at the end."""
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=self.directory))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def keep_failure(self, key: str, text: str) -> Path:
        """Saves what a failed compilation leaves to look at."""
        path = self.directory / f"{key}.failed.txt"
        path.write_text(text)
        return path

    def stats(self) -> CacheStats:
        """Counts the entries; damaged ones count too, until they are asked for."""
        files = list(self._files())
        objects = sum(path.endswith(".so") for _, _, path in files)
        size = sum(size for _, size, _ in files)
        return CacheStats(self.directory, len(files), objects, size, self.limit)

    def clear(self) -> None:
        """Removes every entry. Objects that are loaded stay usable."""
        for _, _, path in self._files():
            _remove(path)
        self._remove_stale()

    def trim(self) -> None:
        """Removes the entries used longest ago until the rest is within the limit."""
        self._remove_stale()
        files = sorted(self._files())
        size = sum(size for _, size, _ in files)
        if size <= self.limit:
            return
        for _, file_size, path in files:
            _remove(path)
            size -= file_size
            if size <= 0.9 * self.limit:
                return

    def _path(self, key: str, suffix: str) -> Path:
        return self.directory / (key + suffix)

    def _read(self, path: Path, key: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                age = time.time() - os.fstat(file.fileno()).st_mtime
                data = file.read()
        except OSError:
            return None
        payload, checksum = data[:-_CHECKSUM_SIZE], data[-_CHECKSUM_SIZE:]
        if checksum != _checksum(payload, key):
            path.unlink(missing_ok=True)
            return None
        if age > _TOUCH_AFTER:
            with contextlib.suppress(OSError):
                os.utime(path)
        return payload

    def _seal(self, built: Path, path: Path, key: str) -> None:
        checksum = _checksum(built.read_bytes(), key)
        with open(built, "ab") as file:
            file.write(checksum)
        os.replace(built, path)
        # Keys are uniform: this is one write in 32, without a counter that processes share.
        if int(key[:2], 16) < 8:
            self.trim()

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """(last use, size, path) of every entry. Of thousands of paths no `Path` is made: it would
        intern their parts, in a table that never shrinks."""
        with contextlib.suppress(OSError), os.scandir(self.directory) as found:
            for entry in found:
                if entry.name.startswith("."):
                    continue
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        yield status.st_mtime, status.st_size, entry.path

    def _remove_stale(self) -> None:
        """Removes build folders that a killed process left behind."""
        before = time.time() - _STALE_TEMPORARY
        for folder in self.directory.glob(".new-*"):
            with contextlib.suppress(OSError):
                if folder.stat().st_mtime < before:
                    shutil.rmtree(folder, ignore_errors=True)


def open_cache() -> Cache:
    """The user's cache: NPJIT_CACHE_DIR, or npjit in the user's cache directory."""
    chosen = os.environ.get("NPJIT_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return _open(chosen or os.path.join(base, "npjit"))


@functools.cache
def temporary_cache() -> Cache:
    """A cache for this process alone, removed at its end."""
    directory = tempfile.mkdtemp(prefix="npjit-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return Cache(Path(directory), temporary=True)


@functools.cache
def _open(directory: str) -> Cache:
    problem = _unsafe(directory)
    if problem is None:
        return Cache(Path(directory).resolve())
    warn_user(f"the cache directory {directory} is not used: {problem}; nothing is kept")
    return temporary_cache()


def _unsafe(directory: str) -> str | None:
    """Why code from this directory must not be loaded; None when it is this user's alone."""
    try:
        os.makedirs(os.path.dirname(os.path.abspath(directory)), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        status = os.stat(directory)
    except OSError as error:
        return f"{error.strerror}"
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a directory"
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            return "another user owns it"
        if status.st_mode & 0o022:
            return "other users may write to it"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "it cannot be written"
    return None


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _checksum(payload: bytes, key: str) -> bytes:
    # Keyed: an entry that was copied to another key's name fails as well.
    return hashlib.blake2b(payload, key=key.encode()[:64], digest_size=_CHECKSUM_SIZE).digest()
