"""Biology, finance, graphs and learning: recurrences over tables, walks, clusters.

In: sequences, prices, sparse matrices, points. Out: new arrays or numbers:

    nussinov(np.array([0, 3, 1, 2]))  # the most base pairs that can form: 2
"""

from __future__ import annotations

import numpy as np


def nussinov(bases):
    n = len(bases)
    table = np.zeros((n, n), dtype=np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            table[i, j] = max(table[i, j], table[i + 1, j])
            pair = 1 if bases[i] + bases[j] == 3 and i < j - 1 else 0
            table[i, j] = max(table[i, j], table[i + 1, j - 1] + pair)
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def needleman_wunsch(a, b, match, mismatch, gap):
    scores = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    scores[:, 0] = -gap * np.arange(len(a) + 1)
    scores[0, :] = -gap * np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = match if a[i - 1] == b[j - 1] else -mismatch
            scores[i, j] = max(
                scores[i - 1, j - 1] + same, scores[i - 1, j] - gap, scores[i, j - 1] - gap
            )
    return scores


def game_of_life(board, generations):
    for _ in range(generations):
        near = np.zeros(board.shape, dtype=np.int8)
        near[1:-1, 1:-1] = (
            board[:-2, :-2]
            + board[:-2, 1:-1]
            + board[:-2, 2:]
            + board[1:-1, :-2]
            + board[1:-1, 2:]
            + board[2:, :-2]
            + board[2:, 1:-1]
            + board[2:, 2:]
        )
        board[:] = (near == 3) | ((board == 1) & (near == 2))


def monte_carlo_paths(normals, start, rate, volatility, dt, strike):
    """Paths of a stock, and the price of an Asian call on it."""
    paths, steps = normals.shape
    price = np.full(paths, start)
    total = np.zeros(paths)
    for t in range(steps):
        drift = (rate - 0.5 * volatility**2) * dt
        price = price * np.exp(drift + volatility * np.sqrt(dt) * normals[:, t])
        total += price
    payoff = np.maximum(total / steps - strike, 0.0)
    return np.exp(-rate * dt * steps) * np.mean(payoff)


def binomial_option(spot, strike, rate, volatility, years, n):
    """An American put on a recombining tree."""
    dt = years / n
    up = np.exp(volatility * np.sqrt(dt))
    down = 1.0 / up
    p = (np.exp(rate * dt) - down) / (up - down)
    discount = np.exp(-rate * dt)
    level = np.arange(n + 1)
    prices = spot * up**level * down ** (n - level)
    values = np.maximum(strike - prices, 0.0)
    for i in range(n - 1, -1, -1):
        values[: i + 1] = discount * (p * values[1 : i + 2] + (1.0 - p) * values[: i + 1])
        prices[: i + 1] = prices[: i + 1] * up
        values[: i + 1] = np.maximum(values[: i + 1], strike - prices[: i + 1])
    return values[0]


def viterbi(start, transition, emission, observed):
    """The likeliest path of states, all tables in logarithms."""
    steps = len(observed)
    states = len(start)
    score = start + emission[:, observed[0]]
    back = np.zeros((steps, states), dtype=np.int64)
    for t in range(1, steps):
        ways = score[:, None] + transition
        back[t] = np.argmax(ways, axis=0)
        score = np.max(ways, axis=0) + emission[:, observed[t]]
    path = np.zeros(steps, dtype=np.int64)
    path[-1] = np.argmax(score)
    for t in range(steps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


def spmv(indptr, columns, values, x):
    y = np.empty(len(indptr) - 1, dtype=values.dtype)
    for i in range(len(indptr) - 1):
        a, b = indptr[i], indptr[i + 1]
        y[i] = values[a:b] @ x[columns[a:b]]
    return y


def page_rank(sources, targets, n, damping, tolerance):
    """The power method over a list of links, until the ranks no longer change."""
    degree = np.zeros(n)
    for s in sources:
        degree[s] += 1.0
    rank = np.full(n, 1.0 / n)
    change = 1.0
    while change > tolerance:
        new = np.full(n, (1.0 - damping) / n)
        for k in range(len(sources)):
            new[targets[k]] += damping * rank[sources[k]] / degree[sources[k]]
        change = np.abs(new - rank).sum()
        rank = new
    return rank


def k_means(points, centres, rounds):
    for _ in range(rounds):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = np.argmin(distances, axis=1)
        for c in range(len(centres)):
            mine = nearest == c
            count = mine.sum()
            if count > 0:
                centres[c] = (points * mine[:, None]).sum(axis=0) / count
    return nearest


def conjugate_gradient(A, b, tolerance):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rr = r @ r
    while rr > tolerance * tolerance:
        Ap = A @ p
        alpha = rr / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        new = r @ r
        p = r + new / rr * p
        rr = new
    return x


def bubble_sort(values):
    n = len(values)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
                swapped = True
        if not swapped:
            break


def knapsack(weights, gains, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for i in range(len(weights)):
        w = weights[i]
        for c in range(capacity, w - 1, -1):
            best[c] = max(best[c], best[c - w] + gains[i])
    return best
