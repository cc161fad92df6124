"""The programs with their arguments and sizes. The sizes stay, so that results can be compared.

In: nothing. Out: `PROGRAMS`, by name:

    PROGRAMS["lu"].arguments(40)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benches.programs import linear_algebra as la
from benches.programs import physics, sciences, signals, stencils
from benches.programs.program import Kind, Maker, Program

PROGRAMS: dict[str, Program] = {}


def program(
    function: Callable[..., Any],
    kind: Kind,
    sizes: tuple[int, int, int],
    make: Maker,
    conditioning: float = 0.0,
) -> None:
    tiny, small, large = sizes
    name = function.__name__
    PROGRAMS[name] = Program(name, function, make, tiny, small, large, kind, conditioning)


def rows(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.random((n + n // 4, n)),)


def grid_flow(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    zeros = np.zeros((n, n))
    return (10, 20, zeros, zeros.copy(), zeros.copy(), 1.0, 0.1, 1e-4, 2 / (n - 1), 2 / (n - 1))


def bodies(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    masses = 20.0 * np.ones((n, 1)) / n
    return masses, rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), 10, 0.01, 1.0, 0.1


def wind_column(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    shape = (n, n, n // 2)
    wind = rng.random((n + 1, n, n // 2))
    return rng.random(shape), wind, rng.random(shape), rng.random(shape), 20.0


def spin_steps(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    spins = rng.choice(np.array([-1, 1]), size=(64, 64))
    return spins, rng.integers(0, 64, n), rng.integers(0, 64, n), rng.random(n), 0.44


def images(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    pixels = rng.random((4, n, n, 3), dtype=np.float32)
    return pixels, rng.random((5, 5, 3, 8), dtype=np.float32)


def samples(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.random(2**n) + 1j * rng.random(2**n), n


def tracked(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    F = np.eye(4) + 0.1 * np.eye(4, k=2)
    H = np.array([1.0, 0.0, 0.5, 0.0])
    return rng.normal(size=n).cumsum(), F, H, 0.01 * np.eye(4), 0.5


def hidden_states(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    transition = np.log(rng.random((32, 32)) + 0.1)
    emission = np.log(rng.random((32, 16)) + 0.1)
    return np.log(rng.random(32) + 0.1), transition, emission, rng.integers(0, 16, n)


def sparse_rows(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    lengths = rng.integers(1, 24, n)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    total = int(indptr[-1])
    return indptr, rng.integers(0, n, total), rng.random(total), rng.random(n)


def links(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    sources = np.concatenate((np.arange(n), rng.integers(0, n, 3 * n)))
    return sources, rng.integers(0, n, 4 * n), n, 0.85, 1e-4


def clusters(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    points = rng.normal(size=(n, 4)) + 3.0 * rng.integers(0, 8, (n, 1))
    return points, points[:8].copy(), 5


def solvable(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    half = rng.random((n, n)) / n
    return half + half.T + np.eye(n), rng.random(n), 1e-8


def board(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.integers(0, 2, (n, n)).astype(np.int8), 20


def equilibrium(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return 1e-3, np.zeros((n, n)), 1.0, 0.1, 1 / n**2, 2 / (n - 1)


def water(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    heights = 1.0 + 0.1 * rng.random((n, n))
    return 20, heights, np.zeros((n, n)), np.zeros((n, n)), 9.81, 0.001, 1.0


L, F, B = Kind.LOOP, Kind.FUSION, Kind.BLAS

program(la.cholesky, L, (9, 65, 350), lambda n, r: (la.spd(n, r),), 1e3)
program(la.correlation, B, (9, 430, 1150), rows, 1e4)
program(la.covariance, B, (9, 430, 1150), rows, 1e4)
program(la.doitgen, B, (5, 58, 180), lambda n, r: (r.random((n, n, n)), r.random((n, n))), 1e3)
program(la.durbin, L, (9, 1400, 12000), lambda n, r: (la.reflections(n, r),), 1e4)
program(
    la.gemver,
    F,
    (9, 1300, 2400),
    lambda n, r: (1.5, 1.2, r.random((n, n)), *(r.random(n) for _ in range(8))),
    1e4,
)
program(la.gramschmidt, L, (9, 70, 280), lambda n, r: (r.random((n + 20, n)),), 1e6)
program(la.lu, L, (9, 62, 285), lambda n, r: (la.dominant(n, r),), 1e3)
program(la.ludcmp, L, (9, 62, 285), lambda n, r: (la.dominant(n, r), r.random(n)), 1e3)
program(la.mvt, B, (9, 2500, 6000), lambda n, r: (*r.random((4, n)), r.random((n, n))), 1e4)
program(
    la.symm,
    L,
    (9, 42, 190),
    lambda n, r: (1.5, 1.2, r.random((n, n)), r.random((n, n)), r.random((n, n))),
    1e3,
)
program(
    la.syr2k,
    L,
    (9, 46, 190),
    lambda n, r: (1.5, 1.2, r.random((n, n)), r.random((n, n)), r.random((n, n))),
    1e3,
)
program(la.syrk, L, (9, 62, 265), lambda n, r: (1.5, 1.2, r.random((n, n)), r.random((n, n))), 1e3)
program(
    la.trisolv,
    L,
    (9, 2600, 8000),
    lambda n, r: (la.dominant(n, r), np.zeros(n), r.random(n)),
    1e4,
)
program(la.trmm, L, (9, 75, 310), lambda n, r: (1.5, r.random((n, n)), r.random((n, n))), 1e3)

program(stencils.adi, F, (9, 45, 500), lambda n, r: (8, n, r.random((n, n))), 1e6)
program(
    stencils.fdtd_2d,
    F,
    (9, 150, 700),
    lambda n, r: (60, r.random((n, n)), r.random((n, n)), r.random((n, n)), np.arange(60.0)),
    1e3,
)
program(stencils.floyd_warshall, F, (9, 190, 480), lambda n, r: (r.random((n, n)) * 100,))
program(
    stencils.heat_3d,
    F,
    (6, 30, 78),
    lambda n, r: (20, *r.random((2, n, n, n))),
    1e2,
)
program(stencils.jacobi_1d, F, (9, 20000, 350000), lambda n, r: (200, *r.random((2, n))), 1e2)
program(stencils.jacobi_2d, F, (9, 190, 850), lambda n, r: (40, *r.random((2, n, n))), 1e2)
program(stencils.seidel_2d, L, (9, 42, 190), lambda n, r: (8, r.random((n, n))), 1e2)

program(
    physics.horizontal_diffusion,
    F,
    (9, 130, 380),
    lambda n, r: (r.random((n + 4, n + 4, 32)), r.random((n, n, 32))),
    1e2,
)
program(physics.vertical_advection, F, (8, 80, 190), wind_column, 1e4)
program(physics.cavity_flow, F, (9, 60, 330), grid_flow, 1e5)
program(physics.channel_flow, F, (9, 12, 96), equilibrium, 1e7)
program(physics.n_body, F, (9, 250, 1100), bodies, 1e7)
program(physics.shallow_water, F, (9, 150, 800), water, 1e3)
program(physics.ising, L, (60, 3300, 56000), spin_steps)

program(signals.deriche, F, (9, 310, 1800), lambda n, r: (0.25, r.random((n, n))), 1e4)
program(
    signals.mandelbrot_masks,
    F,
    (9, 280, 1000),
    lambda n, r: (np.linspace(-2.25, 0.75, n), np.linspace(-1.25, 1.25, n), 20, 2.0),
    1e6,
)
program(
    signals.mandelbrot_points,
    L,
    (9, 24, 108),
    lambda n, r: (np.linspace(-2.0, 0.5, n), np.linspace(-1.0, 1.0, n), 50),
)
program(signals.conv2d, F, (8, 28, 104), images, 1e3)
program(signals.crc16, L, (30, 7500, 150000), lambda n, r: (r.integers(0, 256, n, np.uint8),))
program(signals.stockham_fft, F, (4, 16, 20), samples, 1e3)
program(
    signals.histogram_equalisation,
    L,
    (9, 170, 750),
    lambda n, r: (r.integers(3, 240, (n, n), np.uint8),),
)
program(
    signals.iir_filter,
    L,
    (30, 7500, 150000),
    lambda n, r: (np.array([0.2, 0.4, 0.2]), np.array([1.0, -0.5, 0.25]), r.normal(size=n)),
    1e2,
)
program(signals.kalman_filter, L, (9, 500, 10000), tracked, 1e4)
program(signals.run_lengths, L, (40, 60000, 1200000), lambda n, r: (r.random(n) < 0.7,))

program(sciences.nussinov, L, (9, 42, 118), lambda n, r: (r.integers(0, 4, n),))
program(
    sciences.needleman_wunsch,
    L,
    (9, 95, 420),
    lambda n, r: (r.integers(0, 4, n), r.integers(0, 4, n), 2, 1, 1),
)
program(sciences.game_of_life, F, (9, 700, 3000), board)
program(
    sciences.monte_carlo_paths,
    F,
    (9, 30000, 300000),
    lambda n, r: (r.normal(size=(n, 50)), 100.0, 0.02, 0.2, 1 / 250, 101.0),
    1e3,
)
program(
    sciences.binomial_option,
    L,
    (9, 900, 8000),
    lambda n, r: (100.0, 105.0, 0.03, 0.25, 1.0, n),
    1e4,
)
program(sciences.viterbi, L, (9, 700, 14000), hidden_states, 1e2)
program(sciences.spmv, L, (9, 4000, 50000), sparse_rows, 1e2)
program(sciences.page_rank, L, (9, 240, 2400), links, 1e3)
program(sciences.k_means, F, (30, 3200, 40000), clusters, 1e4)
program(sciences.conjugate_gradient, B, (9, 1500, 4000), solvable, 1e7)
program(sciences.bubble_sort, L, (9, 260, 1100), lambda n, r: (r.random(n),))
program(
    sciences.knapsack,
    L,
    (9, 65, 200),
    lambda n, r: (r.integers(1, n, n), r.integers(1, 100, n), 5 * n),
)
