"""Short loops over bits as look-ups: what they give, and which loops are of that kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_calls

rng = np.random.default_rng(3)
DATA = rng.integers(0, 256, 300, np.uint8)


def from_the_lowest(data):
    crc = 0xFFFF
    for b in data:
        current = int(b)
        for _ in range(8):
            if (crc ^ current) & 1:
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            current >>= 1
    return ~crc & 0xFFFF


def wide(data):
    crc = -1
    for b in data:
        crc ^= int(b)
        for _ in range(8):
            crc = (crc >> 1) ^ 0xEDB88320 if crc & 1 == 1 else crc >> 1
    return crc


def by_halves(data):
    x = 7
    for b in data:
        x = x ^ (int(b) & 15)
        for _ in range(4):
            x = (x >> 1) ^ (0x1234567 if x & 1 else 0)
    return x


def two_results(data):
    x = y = 0
    for b in data:
        low = int(b)
        for _ in range(8):
            x, y = (y >> 1) | 1, (x >> 1) ^ (low & 1)
            low >>= 1
    return x, y


def from_the_highest(data):
    crc = 0xFFFF
    for b in data:
        crc ^= int(b) << 8
        for _ in range(8):
            top = crc & 0x8000
            crc = (crc << 1) & 0xFFFF
            if top:
                crc ^= 0x1021
    return crc


def wide_from_the_highest(data):
    crc = 0
    for b in data:
        crc = crc ^ (int(b) << 24)
        for _ in range(8):
            crc = ((crc << 1) ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
    return crc ^ 0xFFFFFFFF


TABLES = [from_the_lowest, wide, by_halves, from_the_highest, wide_from_the_highest]


def adds(data):
    x = 1
    for b in data:
        for _ in range(8):
            x = ((x >> 1) + int(b)) & 0xFFFF
    return x


def by_both(data):
    x = 12345
    for b in data:
        low = int(b)
        for _ in range(8):
            x = (x >> 1) ^ (x & low)
            low >>= 1
    return x


def by_two_bits(data):
    x = 12345
    for b in data:
        x ^= int(b)
        for _ in range(8):
            x = (x >> 1) ^ 0x8408 if x & 3 else x >> 1
    return x


def far(data):
    x = 1
    for b in data:
        x ^= int(b)
        for _ in range(20):
            x = (x >> 1) ^ (0xABCDE if x & 1 else 0)
    return x


OTHERS = [two_results, adds, by_both, by_two_bits, far]


@pytest.mark.parametrize("f", TABLES + OTHERS, ids=lambda f: f.__name__)
def test_values(f: Callable[..., Any]) -> None:
    compiled = npjit.jit(f)
    check_calls(compiled, DATA, calls=2)
    check_calls(compiled, DATA[:0], calls=1)


def test_which_become_look_ups() -> None:
    def loops(f: Callable[..., Any]) -> int:
        text: str = npjit.jit(f).lower(DATA).as_text("graph")
        return text.count(" loop ")

    assert [loops(f) for f in TABLES] == [1] * len(TABLES)
    assert [loops(f) for f in (adds, by_both, by_two_bits, far)] == [2, 2, 2, 2]
