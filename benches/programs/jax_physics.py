"""Weather and physics as a JAX user writes them.

In: the arguments of the program of the same name. Out: its result and the arrays it updates, new:

    h, u, v = shallow_water(20, h, u, v, 9.81, 0.001, 1.0)
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from benches.programs.jax_form import natural


@natural()
def horizontal_diffusion(field, coefficient):
    laplace = 4.0 * field[1:-1, 1:-1, :] - (
        field[2:, 1:-1, :] + field[:-2, 1:-1, :] + field[1:-1, 2:, :] + field[1:-1, :-2, :]
    )
    step = laplace[1:, 1:-1, :] - laplace[:-1, 1:-1, :]
    slope = field[2:-1, 2:-2, :] - field[1:-2, 2:-2, :]
    flux_i = jnp.where(step * slope > 0, 0, step)
    step = laplace[1:-1, 1:, :] - laplace[1:-1, :-1, :]
    slope = field[2:-2, 2:-1, :] - field[2:-2, 1:-2, :]
    flux_j = jnp.where(step * slope > 0, 0, step)
    change = flux_i[1:, :, :] - flux_i[:-1, :, :] + flux_j[:, 1:, :] - flux_j[:, :-1, :]
    return field[2:-2, 2:-2, :] - coefficient * change


@natural(updates="tendency")
def vertical_advection(tendency, wind, u, position, step):
    """All levels at once but for the two recurrences, which scan over them."""
    tendency, wind, u, position = (jnp.moveaxis(x, -1, 0) for x in (tendency, wind, u, position))
    flow = 0.25 * (wind[:, 1:] + wind[:, :-1])
    below = -flow.at[0].set(0.0)
    above = jnp.concatenate((flow[1:], jnp.zeros_like(flow[:1])))
    correction = -below * (jnp.roll(u, 1, axis=0) - u) - above * (jnp.roll(u, -1, axis=0) - u)
    right = step * position + tendency + correction

    def forward(state, level):
        c, d = state
        below, above, right = level
        divided = 1.0 / (step - below - above - c * below)
        state = above * divided, (right - d * below) * divided
        return state, state

    def backward(data, level):
        data = level[1] - level[0] * data
        return data, data

    zeros = jnp.zeros_like(u[0])
    _, levels = lax.scan(forward, (zeros, zeros), (below, above, right))
    _, data = lax.scan(backward, zeros, levels, reverse=True)
    return jnp.moveaxis(step * (data - position), 0, -1)


def pressure_poisson(rounds, p, b, dx, dy):
    def sweep(_, p):
        inner = ((p[1:-1, 2:] + p[1:-1, :-2]) * dy**2 + (p[2:, 1:-1] + p[:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b
        p = p.at[1:-1, 1:-1].set(inner)
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0, :].set(p[1, :])
        p = p.at[:, 0].set(p[:, 1])
        return p.at[-1, :].set(0)

    return lax.fori_loop(0, rounds, sweep, p)


@natural(updates="u v p")
def cavity_flow(steps, rounds, u, v, p, rho, nu, dt, dx, dy):
    def moved(w, u, v):
        mid = w[1:-1, 1:-1]
        return (
            mid
            - u[1:-1, 1:-1] * dt / dx * (mid - w[1:-1, :-2])
            - v[1:-1, 1:-1] * dt / dy * (mid - w[:-2, 1:-1])
            + nu * dt / dx**2 * (w[1:-1, 2:] - 2 * mid + w[1:-1, :-2])
            + nu * dt / dy**2 * (w[2:, 1:-1] - 2 * mid + w[:-2, 1:-1])
        )

    def step(_, fields):
        u, v, p = fields
        du_dx = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
        dv_dy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
        du_dy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
        dv_dx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
        b = rho * ((du_dx + dv_dy) / dt - du_dx**2 - 2 * (du_dy * dv_dx) - dv_dy**2)
        p = pressure_poisson(rounds, p, b, dx, dy)
        inner_u = moved(u, u, v) - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
        inner_v = moved(v, u, v) - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
        return jnp.pad(inner_u, 1).at[-1, :].set(1), jnp.pad(inner_v, 1), p

    return lax.fori_loop(0, steps, step, (u, v, p))


@natural(updates="u")
def channel_flow(tolerance, u, force, nu, dt, dy):
    def step(state):
        un, _, steps = state
        mid = un[1:-1, :]
        east = jnp.roll(mid, -1, axis=1)
        west = jnp.roll(mid, 1, axis=1)
        inner = (
            mid
            - mid * dt / dy * (mid - west)
            + nu * dt / dy**2 * (east - 2 * mid + west)
            + nu * dt / dy**2 * (un[2:, :] - 2 * mid + un[:-2, :])
            + force * dt
        )
        u = jnp.pad(inner, ((1, 1), (0, 0)))
        return u, (jnp.sum(u) - jnp.sum(un)) / jnp.sum(u), steps + 1

    u, _, steps = lax.while_loop(lambda state: state[1] > tolerance, step, (u, 1.0, 0))
    return steps, u


def accelerations(positions, masses, G, softening):
    dx, dy, dz = (positions[:, k] - positions[:, k, None] for k in range(3))
    inverse = (dx**2 + dy**2 + dz**2 + softening**2) ** (-1.5)
    return jnp.hstack([G * (d * inverse) @ masses for d in (dx, dy, dz)])


@natural(static="steps", updates="positions velocities")
def n_body(masses, positions, velocities, steps, dt, G, softening):
    def step(state, _):
        positions, velocities, acceleration = state
        velocities = velocities + acceleration * dt / 2.0
        positions = positions + velocities * dt
        acceleration = accelerations(positions, masses, G, softening)
        velocities = velocities + acceleration * dt / 2.0
        return (positions, velocities, acceleration), 0.5 * jnp.sum(masses * velocities**2)

    start = positions, velocities, accelerations(positions, masses, G, softening)
    (positions, velocities, _), kinetic = lax.scan(step, start, length=steps)
    return kinetic, positions, velocities


@natural(updates="h u v")
def shallow_water(steps, h, u, v, g, dt, dx):
    def step(_, fields):
        h, u, v = fields
        east = jnp.roll(h, -1, axis=1)
        south = jnp.roll(h, -1, axis=0)
        u = u - g * dt / dx * (east - h)
        v = v - g * dt / dx * (south - h)
        hu = u * 0.5 * (h + east)
        hv = v * 0.5 * (h + south)
        change = hu - jnp.roll(hu, 1, axis=1) + hv - jnp.roll(hv, 1, axis=0)
        return h - dt / dx * change, u, v

    return lax.fori_loop(0, steps, step, (h, u, v))
