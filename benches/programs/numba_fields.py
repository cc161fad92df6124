"""The programs of physics, signals and the sciences written for Numba by hand.

In: the arguments of the program of the same name. Out: what it returns; numba_forms.FORMS names
them. Programs that are scalar loops already are compiled as they stand: no rewriting helps those.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from benches.programs import physics, sciences, signals

SUMS = {"reassoc", "contract", "nsz"}
serial = njit(fastmath=SUMS, error_model="numpy")
parallel = njit(parallel=True, fastmath=SUMS, error_model="numpy")


@parallel
def horizontal_diffusion(field, coefficient):
    ni, nj, nk = coefficient.shape
    out = np.empty_like(coefficient)
    for i in prange(ni):
        laplace = np.empty((3, nj + 2, nk))
        for r in range(3):
            for j in range(nj + 2):
                for k in range(nk):
                    laplace[r, j, k] = 4.0 * field[i + r + 1, j + 1, k] - (
                        field[i + r + 2, j + 1, k]
                        + field[i + r, j + 1, k]
                        + field[i + r + 1, j + 2, k]
                        + field[i + r + 1, j, k]
                    )
        for j in range(nj):
            for k in range(nk):
                here = laplace[1, j + 1, k]
                at = field[i + 2, j + 2, k]
                a = laplace[2, j + 1, k] - here
                a = 0.0 if a * (field[i + 3, j + 2, k] - at) > 0 else a
                b = here - laplace[0, j + 1, k]
                b = 0.0 if b * (at - field[i + 1, j + 2, k]) > 0 else b
                c = laplace[1, j + 2, k] - here
                c = 0.0 if c * (field[i + 2, j + 3, k] - at) > 0 else c
                d = here - laplace[1, j, k]
                d = 0.0 if d * (at - field[i + 2, j + 1, k]) > 0 else d
                out[i, j, k] = at - coefficient[i, j, k] * (a - b + c - d)
    return out


@parallel
def vertical_advection(tendency, wind, u, position, step):
    ni, nj, nk = u.shape
    for i in prange(ni):
        c = np.empty(nk)
        d = np.empty(nk)
        for j in range(nj):
            for k in range(nk):
                below = above = correction = 0.0
                if k > 0:
                    below = -0.25 * (wind[i + 1, j, k] + wind[i, j, k])
                    correction -= below * (u[i, j, k - 1] - u[i, j, k])
                if k < nk - 1:
                    above = 0.25 * (wind[i + 1, j, k + 1] + wind[i, j, k + 1])
                    correction -= above * (u[i, j, k + 1] - u[i, j, k])
                middle = step - below - above
                right = step * position[i, j, k] + tendency[i, j, k] + correction
                if k > 0:
                    divided = 1.0 / (middle - c[k - 1] * below)
                    c[k] = above * divided
                    d[k] = (right - d[k - 1] * below) * divided
                else:
                    c[k] = above / middle
                    d[k] = right / middle
            data = d[nk - 1]
            tendency[i, j, nk - 1] = step * (data - position[i, j, nk - 1])
            for k in range(nk - 2, -1, -1):
                data = d[k] - c[k] * data
                tendency[i, j, k] = step * (data - position[i, j, k])


@serial
def pressure_poisson(rounds, p, old, b, dx, dy):
    n, m = p.shape
    scale = 1.0 / (2 * (dx**2 + dy**2))
    for _ in range(rounds):
        old[:] = p
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                across = (old[i, j + 1] + old[i, j - 1]) * dy**2
                along = (old[i + 1, j] + old[i - 1, j]) * dx**2
                p[i, j] = (across + along) * scale - dx**2 * dy**2 * scale * b[i, j]
        p[:, m - 1] = p[:, m - 2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[n - 1, :] = 0


@serial
def cavity_flow(steps, rounds, u, v, p, rho, nu, dt, dx, dy):
    n, m = u.shape
    b = np.zeros_like(p)
    old = np.empty_like(p)
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                du_dx = (un[i, j + 1] - un[i, j - 1]) / (2 * dx)
                dv_dy = (vn[i + 1, j] - vn[i - 1, j]) / (2 * dy)
                du_dy = (un[i + 1, j] - un[i - 1, j]) / (2 * dy)
                dv_dx = (vn[i, j + 1] - vn[i, j - 1]) / (2 * dx)
                squares = du_dx**2 + 2 * (du_dy * dv_dx) + dv_dy**2
                b[i, j] = rho * ((du_dx + dv_dy) / dt - squares)
        pressure_poisson(rounds, p, old, b, dx, dy)
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                east, north = un[i, j] * dt / dx, vn[i, j] * dt / dy
                u[i, j] = (
                    un[i, j]
                    - east * (un[i, j] - un[i, j - 1])
                    - north * (un[i, j] - un[i - 1, j])
                    - dt / (2 * rho * dx) * (p[i, j + 1] - p[i, j - 1])
                    + nu * dt / dx**2 * (un[i, j + 1] - 2 * un[i, j] + un[i, j - 1])
                    + nu * dt / dy**2 * (un[i + 1, j] - 2 * un[i, j] + un[i - 1, j])
                )
                v[i, j] = (
                    vn[i, j]
                    - east * (vn[i, j] - vn[i, j - 1])
                    - north * (vn[i, j] - vn[i - 1, j])
                    - dt / (2 * rho * dy) * (p[i + 1, j] - p[i - 1, j])
                    + nu * dt / dx**2 * (vn[i, j + 1] - 2 * vn[i, j] + vn[i, j - 1])
                    + nu * dt / dy**2 * (vn[i + 1, j] - 2 * vn[i, j] + vn[i - 1, j])
                )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, m - 1] = 0
        u[n - 1, :] = 1
        v[0, :] = 0
        v[n - 1, :] = 0
        v[:, 0] = 0
        v[:, m - 1] = 0


@serial
def channel_flow(tolerance, u, force, nu, dt, dy):
    n, m = u.shape
    change = 1.0
    steps = 0
    while change > tolerance:
        un = u.copy()
        before = after = 0.0
        for i in range(1, n - 1):
            for j in range(m):
                west = un[i, j - 1 if j > 0 else m - 1]
                east = un[i, j + 1 if j < m - 1 else 0]
                u[i, j] = (
                    un[i, j]
                    - un[i, j] * dt / dy * (un[i, j] - west)
                    + nu * dt / dy**2 * (east - 2 * un[i, j] + west)
                    + nu * dt / dy**2 * (un[i + 1, j] - 2 * un[i, j] + un[i - 1, j])
                    + force * dt
                )
                before += un[i, j]
                after += u[i, j]
        u[0, :] = 0
        u[n - 1, :] = 0
        change = (after - before) / after
        steps += 1
    return steps


@parallel
def accelerations(positions, masses, G, softening):
    n = len(positions)
    out = np.empty((n, 3))
    for i in prange(n):
        ax = ay = az = 0.0
        for j in range(n):
            dx = positions[j, 0] - positions[i, 0]
            dy = positions[j, 1] - positions[i, 1]
            dz = positions[j, 2] - positions[i, 2]
            square = dx * dx + dy * dy + dz * dz + softening**2
            pull = G * masses[j, 0] / (square * math.sqrt(square))
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        out[i, 0] = ax
        out[i, 1] = ay
        out[i, 2] = az
    return out


@njit
def n_body(masses, positions, velocities, steps, dt, G, softening):
    kinetic = np.zeros(steps)
    acceleration = accelerations(positions, masses, G, softening)
    for i in range(steps):
        velocities += acceleration * dt / 2.0
        positions += velocities * dt
        acceleration = accelerations(positions, masses, G, softening)
        velocities += acceleration * dt / 2.0
        kinetic[i] = 0.5 * np.sum(masses * velocities**2)
    return kinetic


@parallel
def shallow_water(steps, h, u, v, g, dt, dx):
    n, m = h.shape
    hu = np.empty_like(h)
    hv = np.empty_like(h)
    for _ in range(steps):
        for i in prange(n):
            below = i + 1 if i < n - 1 else 0
            for j in range(m):
                right = j + 1 if j < m - 1 else 0
                u[i, j] -= g * dt / dx * (h[i, right] - h[i, j])
                v[i, j] -= g * dt / dx * (h[below, j] - h[i, j])
                hu[i, j] = u[i, j] * 0.5 * (h[i, j] + h[i, right])
                hv[i, j] = v[i, j] * 0.5 * (h[i, j] + h[below, j])
        for i in prange(n):
            above = i - 1 if i > 0 else n - 1
            for j in range(m):
                left = j - 1 if j > 0 else m - 1
                h[i, j] -= dt / dx * (hu[i, j] - hu[i, left] + hv[i, j] - hv[above, j])


@parallel
def deriche(alpha, image):
    w, h = image.shape
    k = (1.0 - math.exp(-alpha)) * (1.0 - math.exp(-alpha))
    k /= 1.0 + alpha * math.exp(-alpha) * 2.0 - math.exp(2.0 * alpha)
    a1 = k
    a2 = k * math.exp(-alpha) * (alpha - 1.0)
    a3 = k * math.exp(-alpha) * (alpha + 1.0)
    a4 = -k * math.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -math.exp(-2.0 * alpha)
    out = np.empty_like(image)
    for i in prange(w):
        x1 = y1 = y2 = 0.0
        for j in range(h):
            y = a1 * image[i, j] + a2 * x1 + b1 * y1 + b2 * y2
            x1, y2, y1 = image[i, j], y1, y
            out[i, j] = y
        x1 = x2 = y1 = y2 = 0.0
        for j in range(h - 1, -1, -1):
            y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
            x2, x1, y2, y1 = x1, image[i, j], y1, y
            out[i, j] += y
    down = np.empty_like(image)
    up = np.empty_like(image)
    block = 64
    for part in prange((h + block - 1) // block):
        lo, hi = part * block, min(h, part * block + block)
        for j in range(lo, hi):
            down[0, j] = a1 * out[0, j]
            down[1, j] = a1 * out[1, j] + a2 * out[0, j] + b1 * down[0, j]
            up[w - 1, j] = 0.0
            up[w - 2, j] = a3 * out[w - 1, j]
        for i in range(2, w):
            for j in range(lo, hi):
                down[i, j] = a1 * out[i, j] + a2 * out[i - 1, j]
                down[i, j] += b1 * down[i - 1, j] + b2 * down[i - 2, j]
        for i in range(w - 3, -1, -1):
            for j in range(lo, hi):
                up[i, j] = a3 * out[i + 1, j] + a4 * out[i + 2, j]
                up[i, j] += b1 * up[i + 1, j] + b2 * up[i + 2, j]
        for i in range(w):
            for j in range(lo, hi):
                down[i, j] += up[i, j]
    return down


@parallel
def mandelbrot_masks(xs, ys, rounds, horizon):
    Z = np.zeros((len(ys), len(xs)), dtype=np.complex128)
    N = np.zeros((len(ys), len(xs)), dtype=np.int64)
    for i in prange(len(ys)):
        for j in range(len(xs)):
            x = y = 0.0
            last = 0
            for n in range(rounds):
                if x * x + y * y >= horizon * horizon:
                    break
                last = n
                x, y = x * x - y * y + xs[j], 2.0 * x * y + ys[i]
            Z[i, j] = complex(x, y)
            N[i, j] = 0 if last == rounds - 1 else last
    return Z, N


@parallel
def mandelbrot_points(xs, ys, rounds):
    counts = np.zeros((len(ys), len(xs)), dtype=np.int32)
    for i in prange(len(ys)):
        for j in range(len(xs)):
            x = y = 0.0
            n = 0
            while n < rounds and x * x + y * y < 4.0:
                x, y = x * x - y * y + xs[j], 2.0 * x * y + ys[i]
                n += 1
            counts[i, j] = n
    return counts


@parallel
def conv2d(images, weights):
    k, _, depth, filters = weights.shape
    n, h, w, _ = images.shape
    out = np.zeros((n, h - k + 1, w - k + 1, filters), dtype=np.float32)
    for i in prange(h - k + 1):
        for b in range(n):
            for j in range(w - k + 1):
                for r in range(k):
                    for c in range(k):
                        for d in range(depth):
                            pixel = images[b, i + r, j + c, d]
                            for f in range(filters):
                                out[b, i, j, f] += pixel * weights[r, c, d, f]
    return out


@serial
def stockham_fft(x, K):
    N = 2**K
    old = x.copy()
    new = np.empty_like(x)
    rows = 1
    while rows < N:
        half = N // rows // 2
        for r in range(rows):
            angle = -math.pi * r / rows
            twiddle = complex(math.cos(angle), math.sin(angle))
            for c in range(half):
                even = old[r * 2 * half + c]
                odd = twiddle * old[r * 2 * half + half + c]
                new[r * half + c] = even + odd
                new[(r + rows) * half + c] = even - odd
        old, new = new, old
        rows *= 2
    return old


@serial
def kalman_filter(observations, F, H, Q, R):
    n = F.shape[0]
    x = np.zeros(n)
    P = np.eye(n)
    states = np.zeros((len(observations), n))
    moved = np.empty(n)
    FP = np.empty((n, n))
    HP = np.empty(n)
    for t in range(len(observations)):
        for i in range(n):
            moved[i] = 0.0
            for k in range(n):
                moved[i] += F[i, k] * x[k]
            for j in range(n):
                FP[i, j] = 0.0
                for k in range(n):
                    FP[i, j] += F[i, k] * P[k, j]
        for i in range(n):
            for j in range(n):
                P[i, j] = Q[i, j]
                for k in range(n):
                    P[i, j] += FP[i, k] * F[j, k]
        s = R
        error = observations[t]
        for j in range(n):
            HP[j] = 0.0
            for k in range(n):
                HP[j] += H[k] * P[k, j]
            s += HP[j] * H[j]
            error -= H[j] * moved[j]
        for i in range(n):
            x[i] = moved[i] + HP[i] / s * error
            states[t, i] = x[i]
            for j in range(n):
                P[i, j] -= HP[i] / s * HP[j]
    return states


@parallel
def game_of_life(board, generations):
    n, m = board.shape
    near = np.zeros_like(board)
    for _ in range(generations):
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                near[i, j] = (
                    board[i - 1, j - 1]
                    + board[i - 1, j]
                    + board[i - 1, j + 1]
                    + board[i, j - 1]
                    + board[i, j + 1]
                    + board[i + 1, j - 1]
                    + board[i + 1, j]
                    + board[i + 1, j + 1]
                )
        for i in prange(n):
            for j in range(m):
                board[i, j] = (near[i, j] == 3) | ((board[i, j] == 1) & (near[i, j] == 2))


@parallel
def monte_carlo_paths(normals, start, rate, volatility, dt, strike):
    paths, steps = normals.shape
    drift = (rate - 0.5 * volatility**2) * dt
    spread = volatility * math.sqrt(dt)
    payoff = 0.0
    for i in prange(paths):
        price = start
        total = 0.0
        for t in range(steps):
            price *= math.exp(drift + spread * normals[i, t])
            total += price
        payoff += max(total / steps - strike, 0.0)
    return math.exp(-rate * dt * steps) * payoff / paths


@serial
def binomial_option(spot, strike, rate, volatility, years, n):
    dt = years / n
    up = math.exp(volatility * math.sqrt(dt))
    down = 1.0 / up
    p = (math.exp(rate * dt) - down) / (up - down)
    discount = math.exp(-rate * dt)
    prices = np.empty(n + 1)
    values = np.empty(n + 1)
    for i in range(n + 1):
        prices[i] = spot * up**i * down ** (n - i)
        values[i] = max(strike - prices[i], 0.0)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            prices[j] *= up
            kept = discount * (p * values[j + 1] + (1.0 - p) * values[j])
            values[j] = max(kept, strike - prices[j])
    return values[0]


@serial
def viterbi(start, transition, emission, observed):
    steps = len(observed)
    states = len(start)
    score = start + emission[:, observed[0]]
    best = np.empty(states)
    back = np.zeros((steps, states), dtype=np.int64)
    for t in range(1, steps):
        best[:] = -np.inf
        for i in range(states):
            for j in range(states):
                way = score[i] + transition[i, j]
                if way > best[j]:
                    best[j] = way
                    back[t, j] = i
        for j in range(states):
            score[j] = best[j] + emission[j, observed[t]]
    path = np.zeros(steps, dtype=np.int64)
    path[-1] = np.argmax(score)
    for t in range(steps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


@parallel
def spmv(indptr, columns, values, x):
    n = len(indptr) - 1
    y = np.empty(n)
    for i in prange(n):
        s = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            s += values[k] * x[columns[k]]
        y[i] = s
    return y


@parallel
def assign(points, centres, nearest):
    for i in prange(len(points)):
        least = np.inf
        for c in range(len(centres)):
            distance = 0.0
            for d in range(points.shape[1]):
                distance += (points[i, d] - centres[c, d]) ** 2
            if distance < least:
                least = distance
                nearest[i] = c


@serial
def k_means(points, centres, rounds):
    k, depth = centres.shape
    nearest = np.zeros(len(points), dtype=np.int64)
    for _ in range(rounds):
        assign(points, centres, nearest)
        sums = np.zeros((k, depth))
        counts = np.zeros(k)
        for i in range(len(points)):
            counts[nearest[i]] += 1
            for d in range(depth):
                sums[nearest[i], d] += points[i, d]
        for c in range(k):
            if counts[c] > 0:
                centres[c] = sums[c] / counts[c]
    return nearest


_AS_THEY_STAND = [
    physics.ising,
    signals.crc16,
    signals.histogram_equalisation,
    signals.iir_filter,
    signals.run_lengths,
    sciences.nussinov,
    sciences.needleman_wunsch,
    sciences.page_rank,
    sciences.conjugate_gradient,
    sciences.bubble_sort,
    sciences.knapsack,
]
FORMS = [
    horizontal_diffusion,
    vertical_advection,
    cavity_flow,
    channel_flow,
    n_body,
    shallow_water,
    deriche,
    mandelbrot_masks,
    mandelbrot_points,
    conv2d,
    stockham_fft,
    kalman_filter,
    game_of_life,
    monte_carlo_paths,
    binomial_option,
    viterbi,
    spmv,
    k_means,
    *(serial(f) for f in _AS_THEY_STAND),
]
