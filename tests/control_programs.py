"""Small programs with loops and branches, each a corner of how they are scheduled.

`PROGRAMS` pairs a function with a maker of its arguments. Every one is right when results, types
and all arguments after the call are those of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator], tuple[Any, ...]]
PROGRAMS: dict[str, tuple[Callable[..., Any], Maker]] = {}


def program(make: Maker) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = (f, make)
        return f

    return register


@program(lambda rng: (rng.random(9),))
def scalar_recurrence(x):
    s = 0.25
    for i in range(len(x)):
        s = s * 0.5 + x[i]
    return s


@program(lambda rng: (20,))
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program(lambda rng: (rng.random(9), rng.random(9), 11))
def two_arrays_by_value(x, y, n):
    for _ in range(n):
        x = x * 0.5 + y
        y = y - 0.25 * x
    return x, y


@program(lambda rng: (rng.random(9), 7))
def old_value_after_loop(x, n):
    before = x * 2.0
    for i in range(n):
        x[i] = x[i + 1] + 1.0
    return before + x


@program(lambda rng: (rng.random(9), 6))
def old_view_in_loop(x, n):
    for i in range(n):
        kept = x[i] * 1.0
        x[i] = 5.0
        x[i + 1] += kept
    return x


@program(lambda rng: (rng.random((6, 6)),))
def triangular_dots(a):
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j] + 4.0
        a[i, i] -= a[i, :i] @ a[i, :i]


@program(lambda rng: (rng.random((7, 5)),))
def shrinking_temporaries(a):
    total = np.zeros(a.shape[1])
    for i in range(a.shape[0] - 1):
        rest = a[i + 1 :] - a[i]
        scaled = rest / (1.0 + np.sum(rest * rest, axis=1))[:, None]
        total += scaled[::-1].sum(axis=0)
    return total


@program(lambda rng: (rng.random((8, 8)), 3))
def gauss_seidel(a, n):
    for _ in range(n):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


@program(lambda rng: (rng.random((8, 8)), np.zeros((8, 8)), 5))
def jacobi(a, b, n):
    for _ in range(n):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.25 * (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])


@program(lambda rng: (rng.random((7, 7)),))
def floyd_warshall(d):
    for k in range(d.shape[0]):
        d[:] = np.minimum(d, d[:, k, None] + d[k, :])


@program(lambda rng: (rng.random((7, 7)),))
def rows_from_a_row(d):
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            d[i, :] = np.minimum(d[i, :], d[i, k] + d[k, :])


@program(lambda rng: (rng.random(12)[::-2], rng.random((6, 4))[:, 1]))
def strided_arguments(x, y):
    for i in range(1, x.shape[0]):
        x[i] += y[i - 1] * x[i - 1]
        y[i] = x[i]
    return y


@program(lambda rng: (np.asfortranarray(rng.random((5, 6))),))
def fortran_argument(a):
    for i in range(1, a.shape[0]):
        a[i] += a[i - 1] * 0.5
    return a


@program(lambda rng: (rng.random((6, 6)) + 6 * np.eye(6), rng.random(6), 1e-10))
def conjugate_gradients(a, b, tolerance):
    a = a @ a.T
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    size = r @ r
    steps = 0
    while size > tolerance and steps < 50:
        ap = a @ p
        alpha = size / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + (new / size) * p
        size = new
        steps += 1
    return x, steps


@program(lambda rng: (2.0, 1e-12))
def newton(a, tolerance):
    x = a
    while abs(x * x - a) > tolerance:
        x = 0.5 * (x + a / x)
    return x


@program(lambda rng: (27,))
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program(lambda rng: (rng.integers(0, 256, 40).astype(np.uint8),))
def crc16(data):
    crc = 0xFFFF
    for b in data:
        byte = 0xFF & b
        for _ in range(8):
            if (crc & 1) ^ (byte & 1):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            byte >>= 1
    crc = ~crc & 0xFFFF
    return ((crc << 8) | ((crc >> 8) & 0xFF)) & 0xFFFF


@program(lambda rng: (rng.random(30), 0.9))
def first_above(x, t):
    for i in range(len(x)):
        if x[i] > t:
            return i
    return -1


@program(lambda rng: (rng.random((5, 6)), 0.8))
def nested_break(x, t):
    found = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > t:
                found += j
                break
        else:
            found += 100
    return found


@program(lambda rng: (rng.random(12), 0.5))
def branch_writes_arrays(x, t):
    y = np.zeros(len(x))
    for i in range(1, len(x)):
        if x[i] > t:
            y[i] = x[i - 1]
            x[i] = 0.0
        else:
            y[i - 1] += x[i]
    return y


@program(lambda rng: (rng.random((6, 4)), 0.5))
def branch_gives_arrays(x, t):
    total = np.zeros(4)
    for i in range(6):
        if x[i, 0] > t:
            row = np.exp(x[i]) + total
            total[0] = 1.0
        else:
            row = x[i] * 2.0 - total[::-1]
        total = total + row
    return total


@program(lambda rng: (rng.random(8), rng.integers(-8, 8, 20)))
def histogram(h, where):
    for i in range(len(where)):
        h[where[i]] += 1.0
    return h


@program(lambda rng: (rng.random((6, 5)), rng.integers(0, 6, 4), rng.integers(0, 5, 4)))
def rows_by_number(a, i, j):
    s = np.zeros(5)
    for k in range(len(i)):
        s += a[i[k]] * a[i[k], j[k]]
        a[i[k], : j[k]] = 1.0
    return s


@program(lambda rng: (np.array([0, 2, 2, 5, 9]), rng.random(9), rng.random(9)))
def ragged_dots(start, x, y):
    out = np.empty(len(start) - 1)
    for i in range(len(out)):
        a, b = start[i], start[i + 1]
        out[i] = x[a:b] @ y[a:b]
    return out


@program(lambda rng: (rng.integers(0, 4, 12).astype(np.int32),))
def nussinov(seq):
    n = len(seq)
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                pair = 1 if i < j - 1 and seq[i] + seq[j] == 3 else 0
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + pair)
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@program(lambda rng: (rng.random(6), rng.random(6), 5))
def swapped_arguments(u, v, n):
    for _ in range(n):
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        u, v = v, u


@program(lambda rng: (rng.random(5), 0))
def no_trip(x, n):
    y = x * 2.0
    for i in range(n):
        y = y + x[i]
    return y


@program(lambda rng: (rng.random(6) + 1j * rng.random(6), 4))
def complex_numbers(z, n):
    c = 0.5 + 0.25j
    s = z[0]
    for i in range(n):
        s = s * z[i] + c
        z[i + 1] = s
    return s


@program(lambda rng: (rng.random(9).astype(np.float32), 0.1))
def single_precision(x, a):
    s = 0.0
    for i in range(len(x)):
        s = s * a + x[i]
        x[i] = s * i
    return s


@program(lambda rng: (rng.random(9),))
def local_cells_per_trip(x):
    total = 0.0
    for i in range(2, len(x)):
        scratch = np.zeros(i)
        scratch[::2] = x[:i][::2]
        scratch[1:] += scratch[:-1]
        total += scratch.sum()
    return total


@program(lambda rng: (rng.random((4, 6)),))
def reductions_in_a_loop(a):
    out = np.empty(4)
    for i in range(4):
        row = a[i] - a[i].mean()
        out[i] = np.sqrt((row * row).sum()) + row.max() + np.argmax(row)
    return out


@program(lambda rng: (rng.random(40),))
def insertion_sort(x):
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key


@program(lambda rng: (np.sort(rng.random(50)), 0.3))
def binary_search(x, value):
    low, high = 0, len(x)
    while low < high:
        middle = (low + high) // 2
        if x[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@program(lambda rng: (rng.random((6, 6)), 0.85, 1e-6))
def page_rank(m, d, tolerance):
    m = m / m.sum(axis=0)
    rank = np.full(6, 1.0 / 6)
    steps = 0
    while True:
        new = d * (m @ rank) + (1 - d) / 6
        steps += 1
        if np.abs(new - rank).sum() < tolerance:
            break
        rank = new
    return new, steps
