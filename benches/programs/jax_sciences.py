"""Biology, finance, graphs and learning as a JAX user writes them.

In: the arguments of the program of the same name. Out: its result and the arrays it updates, new:

    nearest, centres = k_means(points, centres, 5)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benches.programs.jax_form import natural


@natural()
def needleman_wunsch(a, b, match, mismatch, gap):
    """Row by row; the step from the left is a running maximum of scores without their gaps."""
    gaps = gap * jnp.arange(len(b) + 1)

    def row(above, letter):
        same = jnp.where(letter == b, match, -mismatch)
        best = jnp.maximum(above[:-1] + same, above[1:] - gap)
        best = jnp.concatenate((above[:1] - gap, best))
        scores = lax.cummax(best + gaps) - gaps
        return scores, scores

    return jnp.concatenate((-gaps[None], lax.scan(row, -gaps, a)[1]))


@natural(updates="board")
def game_of_life(board, generations):
    def step(_, board):
        near = (
            board[:-2, :-2]
            + board[:-2, 1:-1]
            + board[:-2, 2:]
            + board[1:-1, :-2]
            + board[1:-1, 2:]
            + board[2:, :-2]
            + board[2:, 1:-1]
            + board[2:, 2:]
        )
        near = jnp.pad(near, 1)
        return ((near == 3) | ((board == 1) & (near == 2))).astype(board.dtype)

    return lax.fori_loop(0, generations, step, board)


@natural()
def monte_carlo_paths(normals, start, rate, volatility, dt, strike):
    paths, steps = normals.shape
    drift = (rate - 0.5 * volatility**2) * dt

    def step(state, normal):
        price, total = state
        price = price * jnp.exp(drift + volatility * jnp.sqrt(dt) * normal)
        return (price, total + price), None

    first = jnp.full(paths, start), jnp.zeros(paths)
    (_, total), _ = lax.scan(step, first, normals.T)
    payoff = jnp.maximum(total / steps - strike, 0.0)
    return jnp.exp(-rate * dt * steps) * jnp.mean(payoff)


@natural(static="n")
def binomial_option(spot, strike, rate, volatility, years, n):
    """Whole levels: those beyond the tree's edge never reach the first value."""
    dt = years / n
    up = jnp.exp(volatility * jnp.sqrt(dt))
    down = 1.0 / up
    p = (jnp.exp(rate * dt) - down) / (up - down)
    discount = jnp.exp(-rate * dt)
    level = jnp.arange(n + 1)
    prices = spot * up**level * down ** (n - level)

    def step(_, state):
        prices, values = state
        prices = prices * up
        values = discount * (p * jnp.roll(values, -1) + (1.0 - p) * values)
        return prices, jnp.maximum(values, strike - prices)

    return lax.fori_loop(0, n, step, (prices, jnp.maximum(strike - prices, 0.0)))[1][0]


@natural()
def viterbi(start, transition, emission, observed):
    def forward(score, seen):
        ways = score[:, None] + transition
        return jnp.max(ways, axis=0) + emission[:, seen], jnp.argmax(ways, axis=0)

    def backward(state, back):
        return back[state], state

    score, back = lax.scan(forward, start + emission[:, observed[0]], observed[1:])
    first, path = lax.scan(backward, jnp.argmax(score), back, reverse=True)
    return jnp.concatenate((first[None], path))


@natural()
def spmv(indptr, columns, values, x):
    n = len(indptr) - 1
    rows = jnp.repeat(jnp.arange(n), jnp.diff(indptr), total_repeat_length=len(values))
    return jax.ops.segment_sum(values * x[columns], rows, n, indices_are_sorted=True)


@natural(static="n")
def page_rank(sources, targets, n, damping, tolerance):
    degree = jnp.zeros(n).at[sources].add(1.0)

    def step(state):
        rank, _ = state
        new = jnp.full(n, (1.0 - damping) / n)
        new = new.at[targets].add(damping * rank[sources] / degree[sources])
        return new, jnp.abs(new - rank).sum()

    start = jnp.full(n, 1.0 / n), 1.0
    return lax.while_loop(lambda state: state[1] > tolerance, step, start)[0]


@natural(updates="centres")
def k_means(points, centres, rounds):
    def step(_, state):
        centres, _ = state
        distances = ((points[:, None, :] - centres) ** 2).sum(axis=2)
        nearest = jnp.argmin(distances, axis=1)
        mine = nearest[:, None] == jnp.arange(len(centres))
        count = mine.sum(axis=0)[:, None]
        sums = mine.T.astype(points.dtype) @ points
        return jnp.where(count > 0, sums / count, centres), nearest

    start = centres, jnp.zeros(len(points), jnp.int64)
    centres, nearest = lax.fori_loop(0, rounds, step, start)
    return nearest, centres


@natural()
def conjugate_gradient(A, b, tolerance):
    def step(state):
        x, r, p, rr = state
        Ap = A @ p
        alpha = rr / (p @ Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        new = r @ r
        return x, r, r + new / rr * p, new

    start = jnp.zeros_like(b), b, b, b @ b
    return lax.while_loop(lambda state: state[3] > tolerance * tolerance, step, start)[0]


@natural(static="capacity")
def knapsack(weights, gains, capacity):
    fill = jnp.arange(capacity + 1)

    def item(best, thing):
        weight, gain = thing
        taken = jnp.where(fill >= weight, jnp.roll(best, weight) + gain, 0)
        return jnp.maximum(best, taken), None

    return lax.scan(item, jnp.zeros(capacity + 1, jnp.int64), (weights, gains))[0]
