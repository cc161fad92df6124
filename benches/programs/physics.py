"""Weather and physics: operators on grids, flows, particles, spins.

In: fields, constants and numbers of steps. Out: new fields, or None where the fields are advanced
in place:

    u, v, p = cavity_flow(20, 10, u, v, p, rho, nu, dt, dx, dy)
"""

from __future__ import annotations

import numpy as np


def horizontal_diffusion(field, coefficient):
    laplace = 4.0 * field[1:-1, 1:-1, :] - (
        field[2:, 1:-1, :] + field[:-2, 1:-1, :] + field[1:-1, 2:, :] + field[1:-1, :-2, :]
    )
    step = laplace[1:, 1:-1, :] - laplace[:-1, 1:-1, :]
    slope = field[2:-1, 2:-2, :] - field[1:-2, 2:-2, :]
    flux_i = np.where(step * slope > 0, 0, step)
    step = laplace[1:-1, 1:, :] - laplace[1:-1, :-1, :]
    slope = field[2:-2, 2:-1, :] - field[2:-2, 1:-2, :]
    flux_j = np.where(step * slope > 0, 0, step)
    change = flux_i[1:, :, :] - flux_i[:-1, :, :] + flux_j[:, 1:, :] - flux_j[:, :-1, :]
    return field[2:-2, 2:-2, :] - coefficient * change


def vertical_advection(tendency, wind, u, position, step):
    ni, nj, nk = u.shape
    c = np.zeros((ni, nj, nk))
    d = np.zeros((ni, nj, nk))
    for k in range(nk):
        below = np.zeros((ni, nj))
        above = np.zeros((ni, nj))
        correction = np.zeros((ni, nj))
        if k > 0:
            below = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
            correction -= below * (u[:, :, k - 1] - u[:, :, k])
        if k < nk - 1:
            above = 0.25 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
            correction -= above * (u[:, :, k + 1] - u[:, :, k])
        middle = step - below - above
        right = step * position[:, :, k] + tendency[:, :, k] + correction
        if k > 0:
            divided = 1.0 / (middle - c[:, :, k - 1] * below)
            c[:, :, k] = above * divided
            d[:, :, k] = (right - d[:, :, k - 1] * below) * divided
        else:
            c[:, :, k] = above / middle
            d[:, :, k] = right / middle
    data = d[:, :, nk - 1]
    tendency[:, :, nk - 1] = step * (data - position[:, :, nk - 1])
    for k in range(nk - 2, -1, -1):
        data = d[:, :, k] - c[:, :, k] * data
        tendency[:, :, k] = step * (data - position[:, :, k])


def pressure_poisson(rounds, p, b, dx, dy):
    for _ in range(rounds):
        old = p.copy()
        p[1:-1, 1:-1] = (
            (old[1:-1, 2:] + old[1:-1, :-2]) * dy**2 + (old[2:, 1:-1] + old[:-2, 1:-1]) * dx**2
        ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def cavity_flow(steps, rounds, u, v, p, rho, nu, dt, dx, dy):
    b = np.zeros_like(p)
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        du_dx = (un[1:-1, 2:] - un[1:-1, :-2]) / (2 * dx)
        dv_dy = (vn[2:, 1:-1] - vn[:-2, 1:-1]) / (2 * dy)
        du_dy = (un[2:, 1:-1] - un[:-2, 1:-1]) / (2 * dy)
        dv_dx = (vn[1:-1, 2:] - vn[1:-1, :-2]) / (2 * dx)
        b[1:-1, 1:-1] = rho * ((du_dx + dv_dy) / dt - du_dx**2 - 2 * (du_dy * dv_dx) - dv_dy**2)
        pressure_poisson(rounds, p, b, dx, dy)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


def channel_flow(tolerance, u, force, nu, dt, dy):
    """A flow driven through a channel, until the profile no longer changes."""
    change = 1.0
    steps = 0
    while change > tolerance:
        un = u.copy()
        east = np.roll(un, -1, axis=1)
        west = np.roll(un, 1, axis=1)
        u[1:-1, :] = (
            un[1:-1, :]
            - un[1:-1, :] * dt / dy * (un[1:-1, :] - west[1:-1, :])
            + nu * dt / dy**2 * (east[1:-1, :] - 2 * un[1:-1, :] + west[1:-1, :])
            + nu * dt / dy**2 * (un[2:, :] - 2 * un[1:-1, :] + un[:-2, :])
            + force * dt
        )
        u[0, :] = 0
        u[-1, :] = 0
        change = (np.sum(u) - np.sum(un)) / np.sum(u)
        steps += 1
    return steps


def accelerations(positions, masses, G, softening):
    x = positions[:, 0:1]
    y = positions[:, 1:2]
    z = positions[:, 2:3]
    dx = x.T - x
    dy = y.T - y
    dz = z.T - z
    inverse = (dx**2 + dy**2 + dz**2 + softening**2) ** (-1.5)
    ax = G * (dx * inverse) @ masses
    ay = G * (dy * inverse) @ masses
    az = G * (dz * inverse) @ masses
    return np.hstack((ax, ay, az))


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


def shallow_water(steps, h, u, v, g, dt, dx):
    """Linear shallow water on a periodic grid, forward in momentum and backward in height."""
    for _ in range(steps):
        u -= g * dt / dx * (np.roll(h, -1, axis=1) - h)
        v -= g * dt / dx * (np.roll(h, -1, axis=0) - h)
        hu = u * 0.5 * (h + np.roll(h, -1, axis=1))
        hv = v * 0.5 * (h + np.roll(h, -1, axis=0))
        h -= dt / dx * (hu - np.roll(hu, 1, axis=1) + hv - np.roll(hv, 1, axis=0))


def ising(spins, rows, columns, uniform, beta):
    """Metropolis steps at given sites with given uniform draws."""
    n = spins.shape[0]
    energy = 0
    for t in range(len(rows)):
        i = rows[t]
        j = columns[t]
        near = (
            spins[(i + 1) % n, j]
            + spins[(i - 1) % n, j]
            + spins[i, (j + 1) % n]
            + spins[i, (j - 1) % n]
        )
        change = 2 * spins[i, j] * near
        if change <= 0 or uniform[t] < np.exp(-beta * change):
            spins[i, j] = -spins[i, j]
            energy += change
    return energy
