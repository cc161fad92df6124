"""A million European options: prices and all Greeks.

In: spot, strike, years to expiry, rate and volatility of each option. Out: a `Comparison` for the
prices and one for the Greeks. `prices` is plain NumPy; npjit.grad of its sum gives delta, vega,
rho and theta, npjit.grad of delta's sum gives gamma. NumPy alone has to move each input and price
again.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import npjit
from npjit.cli.compare import Comparison, add_calls, relative_error

REPEATS = 3
# Which argument each Greek moves, and how far a central difference moves it.
GREEKS = {"delta": (0, 1e-2), "theta": (2, 1e-3), "rho": (3, 3e-4), "vega": (4, 3e-4)}
GAMMA_STEP = 0.1
# normal_cdf jumps by 1e-9 at 0; a difference divides that by its step, gamma's by the square.
BOUNDS = dict.fromkeys(GREEKS, 1e-4) | {"gamma": 1e-2}


def normal_cdf(d):
    """Abramowitz and Stegun 26.2.17: good to 7.5e-8."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    series = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    upper = 0.3989422804014327 * np.exp(-0.5 * d * d) * series
    return np.where(d > 0, 1.0 - upper, upper)


def prices(spot, strike, years, rate, volatility):
    """The Black-Scholes price of a call."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    return spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d1 - spread)


def total(spot, strike, years, rate, volatility):
    return np.sum(prices(spot, strike, years, rate, volatility))


def draw_market(count: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(0)
    ranges = ((60.0, 140.0), (60.0, 140.0), (0.2, 2.0), (0.0, 0.06), (0.1, 0.6))
    return tuple(random.uniform(low, high, count) for low, high in ranges)


def move(market: tuple[np.ndarray, ...], argument: int, step: float) -> tuple[np.ndarray, ...]:
    return tuple(a + step if i == argument else a for i, a in enumerate(market))


def greeks_by_pricing_again(market: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    """Central differences: what one does with NumPy alone."""
    greeks = {}
    for name, (argument, step) in GREEKS.items():
        up, down = prices(*move(market, argument, step)), prices(*move(market, argument, -step))
        greeks[name] = (up - down) / (2.0 * step)
    up, down = prices(*move(market, 0, GAMMA_STEP)), prices(*move(market, 0, -GAMMA_STEP))
    greeks["gamma"] = (up - 2.0 * prices(*market) + down) / GAMMA_STEP**2
    return greeks


first_order = npjit.grad(total, argnums=tuple(argument for argument, _ in GREEKS.values()))
delta = npjit.grad(total)


def total_delta(spot, strike, years, rate, volatility):
    return np.sum(delta(spot, strike, years, rate, volatility))


second_order = npjit.grad(total_delta)


def greeks_by_gradient(market: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    greeks = dict(zip(GREEKS, first_order(*market), strict=True))
    greeks["gamma"] = second_order(*market)
    return greeks


def measure(f: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, seconds of the first call, and the least of a few more."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        result = f()
        times.append(time.perf_counter() - start)
    return result, times[0], min(times[1:])


def price(count: int = 1_000_000) -> list[Comparison]:
    """Prices and Greeks by npjit and by NumPy, checked against each other."""
    market = draw_market(count)
    compiled = npjit.jit(prices)
    got, first, seconds = measure(lambda: compiled(*market))
    want, _, numpy_seconds = measure(lambda: prices(*market))
    checks = {"prices against NumPy": (relative_error(got, want), 1e-12)}
    priced = Comparison(
        f"{count:,} prices", numpy_seconds, seconds, first, checks, compiled.cache_info()
    )

    greeks, first, seconds = measure(lambda: greeks_by_gradient(market))
    expected, _, numpy_seconds = measure(lambda: greeks_by_pricing_again(market))
    checks = {
        f"{name} against finite differences": (
            relative_error(greeks[name], expected[name]),
            BOUNDS[name],
        )
        for name in greeks
    }
    differentiated = Comparison(
        f"{count:,} times five Greeks",
        numpy_seconds,
        seconds,
        first,
        checks,
        add_calls(first_order.cache_info(), second_order.cache_info()),
    )
    return [priced, differentiated]
