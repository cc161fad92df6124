"""Small programs with loops and branches whose gradients are checked: `PROGRAMS` pairs a function
with a maker of its arguments and the numbers of those to differentiate for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator], tuple[Any, ...]]
PROGRAMS: dict[str, tuple[Callable[..., Any], Maker, tuple[int, ...]]] = {}


def program(make: Maker, *numbers: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = (f, make, numbers or (0,))
        return f

    return register


# ---------------------------------------------------------------- carried values


@program(lambda rng: (0.3, 7))
def sine_recurrence(s, n):
    for _ in range(n):
        s = np.sin(s) * 1.3 + 0.1
    return s


@program(lambda rng: (0.3, 1.7, 6), 0, 1)
def two_numbers(a, b, n):
    for _ in range(n):
        a, b = b * 0.5, a * b
    return a + b


@program(lambda rng: (rng.random(9),))
def elements_read(x):
    s = 0.25
    for i in range(len(x)):
        s = s * 0.5 * x[i] + x[-1 - i]
    return s


@program(lambda rng: (rng.random(6) + 0.5,))
def running_product(x):
    p = 1.0
    for i in range(len(x)):
        p = p * x[i]
    return p


@program(
    lambda rng: (rng.random((4, 4)), rng.random((4, 3)), rng.random((6, 3)), rng.random(4)),
    0,
    1,
    2,
    3,
)
def recurrent_network(w, u, x, h):
    for t in range(x.shape[0]):
        h = np.tanh(w @ h * 0.3 + u @ x[t] * 0.3)
    return np.sum(h * h)


@program(lambda rng: (rng.random(5), rng.random(5), 7), 0, 1)
def arrays_change_places(u, v, n):
    for _ in range(n):
        w = u * 0.5 + v * v * 0.1
        u, v = v, w
    return np.sum(u * v)


@program(lambda rng: (rng.random(5), 0))
def no_trip(x, n):
    s = np.sum(x * x)
    for i in range(n):
        s = s * x[i]
    return s


@program(lambda rng: (rng.random(6), 5))
def broadcast_number(x, n):
    s = 0.5
    for _ in range(n):
        s = np.sum(np.sin(x * s)) * 0.3
    return s


@program(lambda rng: (rng.random(5) + 1j * rng.random(5), 4))
def complex_recurrence(z, n):
    w = z * 0.5
    for _ in range(n):
        w = w * w * 0.5 + z * 0.3
    return np.sum(np.abs(w) ** 2)


@program(lambda rng: (rng.random(6), rng.random(6), 5), 0, 1)
def carried_and_read(x, y, n):
    h = x
    u = y
    for i in range(n):
        h = h * x[i] + x * 0.3
        u = u * h * 0.5 + y[i]
    return np.sum(h * u * x)


# ---------------------------------------------------------------- arrays written


@program(lambda rng: (rng.random((6, 7)), rng.random((6, 7)), 5), 0, 1)
def jacobi(a, b, n):
    for _ in range(n):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )
    return np.sum(a * a)


@program(lambda rng: (rng.random((5, 6)), 3))
def gauss_seidel(a, n):
    a = a.copy()
    for _ in range(n):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                near = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
                a[i, j] = 0.25 * near * a[i, j]
    return np.sum(a**2)


@program(lambda rng: (rng.random((6, 6)),))
def triangular_dots(a):
    a = a.copy()
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j] + 4.0
        a[i, i] -= a[i, :i] @ a[i, :i]
    return np.sum(a)


@program(lambda rng: (rng.random(7), np.array([0, 1, 1, 3, 2, -1, 0])))
def computed_places(x, k):
    y = np.zeros(4)
    for i in range(len(x)):
        y[k[i]] = y[k[i]] * 0.5 + x[i] * x[i]
    return np.sum(y * y)


@program(lambda rng: (rng.random(9), 6))
def value_before_and_after(x, n):
    before = x * 2.0
    for i in range(n):
        x[i] = x[i + 1] * x[i]
    return np.sum(before * x * x)


@program(lambda rng: (rng.random((5, 4)), 3))
def whole_array_replaced(a, n):
    a = a.copy()
    for _ in range(n):
        a[:] = np.sin(a) * a[0]
    return np.sum(a * a)


@program(lambda rng: (rng.random(8), 4))
def scaled_in_place(x, n):
    x = x.copy()
    for i in range(n):
        x *= 0.5 + x[i]
        x[i] += x[7 - i] ** 2
    return np.sum(x * x)


@program(lambda rng: (rng.random((4, 5)),))
def rows_made_inside(a):
    total = 0.0
    for i in range(a.shape[0]):
        row = np.zeros(5)
        for j in range(1, 5):
            row[j] = row[j - 1] * a[i, j] + a[i, j - 1]
        total = total + np.sum(row * row)
    return total


@program(lambda rng: (rng.random((6, 3)), np.array([2, 0, 2, 1])))
def gathered_rows(a, k):
    s = np.zeros(3)
    for i in range(4):
        s = s * a[k].sum(axis=0) + a[i + 1]
    return np.sum(s)


@program(lambda rng: (rng.random(6), 5))
def written_twice(x, n):
    y = np.zeros(6)
    for i in range(n):
        y[i] = x[i] * x[i]
    for i in range(n):
        y[i + 1] = y[i + 1] * y[i] + x[i]
    return np.sum(y * x)


@program(lambda rng: (rng.random(20), rng.random(20), 15), 0, 1)
def read_then_written(x, w, n):
    s = 0.5
    for i in range(n):
        s = s * x[i] + np.sin(w[i] * s)
    for i in range(n):
        x[i] = x[i] * s + w[i]
    t = 0.3
    for i in range(n):
        t = t * x[i] + x[n - i] * 0.1
    return s * t + np.sum(x)


@program(lambda rng: (rng.random((18, 17)), 4))
def burgers(u, n):
    u = u.copy()
    v = np.zeros_like(u)
    for _ in range(n):
        before = u.copy()
        inner = before[1:-1, 1:-1]
        u[1:-1, 1:-1] = inner + 0.1 * inner * (before[2:, 1:-1] - before[:-2, 1:-1])
        v[1:, :] = v[1:, :] * 0.5 + u[:-1, :] * before[1:, :]
        u[0, :] = u[1, :]
        u[:, -1] = u[:, -2] * 0.5
    return np.sum(u * v)


@program(lambda rng: (rng.random((18, 18)), 4))
def three_loops(x, n):
    for i in range(n):
        for j in range(n):
            for k in range(3):
                x[i, j] = np.sin(x[i, j]) + x[j, i] * x[k, j] * 0.1
    return np.sum(x)


@program(lambda rng: (rng.random(4), np.array([0, 3, 5, 3]), 3))
def scattered(x, k, n):
    y = np.zeros(20)
    for i in range(n):
        np.add.at(y, k, x * y[i])
        y[k] = y[k] * 0.5 + x
    return np.sum(y * y)


@program(lambda rng: (rng.random((4, 4)), rng.random(4), 3), 0, 1)
def systems_solved(a, b, n):
    x = b * 1.0
    for _ in range(n):
        x = np.linalg.solve(a + 5 * np.eye(4), x) + b * np.max(x)
    return np.sum(x * x)


@program(lambda rng: (rng.random(9), 9))
def with_integers(x, n):
    s = 0.0
    m = 0.0
    c = 0
    for i in range(n):
        m = max(m, x[i])
        c += 1
        if x[i] > 0.4:
            c += 2
        s += x[i] * c * m
    return s


# ---------------------------------------------------------------- branches and early ends


@program(lambda rng: (rng.random(12),))
def selected_number(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:  # noqa: SIM108
            s = s + np.sin(x[i]) * x[i]
        else:
            s = s * 0.9 - x[i] * x[i]
    return s


@program(lambda rng: (rng.random(12),))
def branch_that_writes(x):
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        if x[i] > 0.5:
            y[i] = y[i - 1] * x[i] + x[i]
        else:
            y[i] = y[i - 1] * y[i - 1]
    return np.sum(y * y)


@program(lambda rng: (rng.random((18, 18)), 6))
def branches_in_loops(a, n):
    t = 0.0
    for i in range(1, n):
        for j in range(1, n):
            if a[i, j] > 0.5:
                a[i, j] = a[i - 1, j] * a[i, j]
                t += a[i, j] * t * 0.1
            elif a[i, j] > 0.2:
                a[i, j] += a[i, j - 1] ** 2
            else:
                t -= a[i, j]
    return t + np.sum(a * a)


@program(lambda rng: (rng.random(6), 0.3), 0, 1)
def branch_on_arrays(x, t):
    if np.sum(x) > t:  # noqa: SIM108
        y = np.exp(x * t)
    else:
        y = x * x
    return np.sum(y * x)


@program(lambda rng: (rng.random(6), 0.3), 0, 1)
def one_sided_branch(x, t):
    x = x.copy()
    if np.sum(x) > t:
        x[1:] = x[:-1] * x[1:] * t
        x[0] = np.sin(x[0])
    return np.sum(x * x)


@program(lambda rng: (rng.random(20) + 0.2,))
def left_early(x):
    s = 1.0
    for i in range(len(x)):
        s = s * x[i] + np.sin(s)
        if s > 3.0:
            break
    return s * s


@program(lambda rng: (rng.random(20) + 0.2,))
def writing_left_early(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = y[i - 1] * y[i] + x[i]
        if y[i] > 1.2:
            break
    return np.sum(y * y)


@program(lambda rng: (3.0,))
def newton(a):
    x = 1.0
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x * a


@program(lambda rng: (0.7, rng.random(5)), 0, 1)
def until_small(a, x):
    while np.sum(x * x) > 1e-2:
        x = x * a
    return np.sum(x)


@program(lambda rng: (0.9, np.array([2.0, 0.8, 0.3])), 0, 1)
def while_that_writes(a, x):
    y = x.copy()
    trips = 0
    while y[0] > 0.1:
        y[0] *= a * y[1]
        y[1] = np.sin(y[1]) + 0.01 * y[0]
        trips += 1
    return y[0] + y[1] * trips


@program(lambda rng: (rng.random((5, 8)) + 0.2,))
def inner_loop_left_early(a):
    total = 0.0
    for i in range(a.shape[0]):
        s = 0.3
        for j in range(a.shape[1]):
            s = s * a[i, j] + s * s
            if s > 1.0:
                break
        total = total + s * a[i, 0]
    return total
