"""The workloads written for Numba by hand: explicit loops, few passes over memory, prange outside.

In: NumPy arrays. Out: `FORMS`, name -> compiled function. Sums may be reordered (without that LLVM
does not vectorise them); NaN and infinity keep their meaning. Slices instead of offsets let LLVM
see that no index is negative, which it needs to vectorise a sum.
"""

import math

import numpy as np
from numba import njit, prange

parallel = njit(parallel=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
inline = njit(inline="always", fastmath={"contract"}, error_model="numpy")

BLOCK = 16_384


@parallel
def sin2_cos2(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        s = math.sin(x[i])
        c = math.cos(x[i])
        out[i] = s * s + c * c
    return out


@inline
def normal_cdf(d, one):
    k = one / (one + one * 0.2316419 * abs(d))
    series = k * (
        one * 0.31938153
        + k
        * (
            one * -0.356563782
            + k * (one * 1.781477937 + k * (one * -1.821255978 + k * one * 1.330274429))
        )
    )
    upper = one * 0.3989422804014327 * math.exp(one * -0.5 * d * d) * series
    return one - upper if d > 0 else upper


@parallel
def black_scholes(spot, strike, years, rate, volatility):
    call = np.empty_like(spot)
    put = np.empty_like(spot)
    one = spot.dtype.type(1.0)
    half = spot.dtype.type(0.5)
    for i in prange(spot.size):
        v = volatility[i]
        t = years[i]
        spread = v * math.sqrt(t)
        d1 = (math.log(spot[i] / strike[i]) + (rate[i] + half * v * v) * t) / spread
        d2 = d1 - spread
        discounted = strike[i] * math.exp(-rate[i] * t)
        call[i] = spot[i] * normal_cdf(d1, one) - discounted * normal_cdf(d2, one)
        put[i] = discounted * normal_cdf(-d2, one) - spot[i] * normal_cdf(-d1, one)
    return call, put


@parallel
def gelu(x):
    out = np.empty_like(x)
    half = x.dtype.type(0.5)
    one = x.dtype.type(1.0)
    scale = x.dtype.type(0.7978845608028654)
    cubic = x.dtype.type(0.044715)
    for i in prange(x.size):
        v = x[i]
        out[i] = half * v * (one + math.tanh(scale * (v + cubic * v * v * v)))
    return out


@parallel
def softmax(x):
    out = np.empty_like(x)
    rows, columns = x.shape
    for i in prange(rows):
        top = x[i, 0]
        for j in range(1, columns):
            top = max(top, x[i, j])
        total = x.dtype.type(0.0)
        for j in range(columns):
            e = math.exp(x[i, j] - top)
            out[i, j] = e
            total += e
        scale = x.dtype.type(1.0) / total
        for j in range(columns):
            out[i, j] *= scale
    return out


@parallel
def layer_norm(x, gain, bias):
    out = np.empty_like(x)
    rows, columns = x.shape
    for i in prange(rows):
        total = x.dtype.type(0.0)
        for j in range(columns):
            total += x[i, j]
        mean = total / x.dtype.type(columns)
        squares = x.dtype.type(0.0)
        for j in range(columns):
            d = x[i, j] - mean
            squares += d * d
        variance = squares / x.dtype.type(columns)
        scale = x.dtype.type(1.0) / math.sqrt(variance + x.dtype.type(1e-5))
        for j in range(columns):
            out[i, j] = (x[i, j] - mean) * scale * gain[j] + bias[j]
    return out


@parallel
def logsumexp(x):
    rows, columns = x.shape
    out = np.empty(rows, x.dtype)
    for i in prange(rows):
        top = x[i, 0]
        for j in range(1, columns):
            top = max(top, x[i, j])
        total = x.dtype.type(0.0)
        for j in range(columns):
            total += math.exp(x[i, j] - top)
        out[i] = math.log(total) + top
    return out


@parallel
def cosine_similarity(a, b):
    rows, columns = a.shape
    out = np.empty(rows, a.dtype)
    for i in prange(rows):
        dot = a.dtype.type(0.0)
        aa = a.dtype.type(0.0)
        bb = a.dtype.type(0.0)
        for j in range(columns):
            u = a[i, j]
            v = b[i, j]
            dot += u * v
            aa += u * u
            bb += v * v
        out[i] = dot / (math.sqrt(aa) * math.sqrt(bb))
    return out


@parallel
def mean_var(x):
    """Blocks small enough for the cache are read twice from it, then joined (Chan's formula)."""
    n = x.size
    blocks = (n + BLOCK - 1) // BLOCK
    means = np.empty(blocks)
    squares = np.empty(blocks)
    for b in prange(blocks):
        part = x[b * BLOCK : (b + 1) * BLOCK]
        total = x.dtype.type(0.0)
        for i in range(part.size):
            total += part[i]
        mean = total / x.dtype.type(part.size)
        square = x.dtype.type(0.0)
        for i in range(part.size):
            d = part[i] - mean
            square += d * d
        means[b] = mean
        squares[b] = square
    count = 0
    mean = 0.0
    square = 0.0
    for b in range(blocks):
        size = min(n, (b + 1) * BLOCK) - b * BLOCK
        d = means[b] - mean
        square += squares[b] + d * d * count * size / (count + size)
        mean += d * size / (count + size)
        count += size
    return mean, square / n


@parallel
def masked_sum(x):
    """Zero where not positive, then squared: a form without a branch, which LLVM vectorises."""
    blocks = (x.size + BLOCK - 1) // BLOCK
    partial = np.empty(blocks)
    zero = x.dtype.type(0.0)
    for b in prange(blocks):
        part = x[b * BLOCK : (b + 1) * BLOCK]
        total = zero
        for i in range(part.size):
            v = part[i]
            v = v if v > zero else zero
            total += v * v
        partial[b] = total
    return partial.sum()


@parallel
def standardise_columns(x):
    """Rows in blocks, so that each pass reads memory in order."""
    rows, columns = x.shape
    blocks = 64
    step = (rows + blocks - 1) // blocks
    partial = np.zeros((blocks, columns), x.dtype)
    for b in prange(blocks):
        for i in range(b * step, min(rows, (b + 1) * step)):
            for j in range(columns):
                partial[b, j] += x[i, j]
    mean = partial.sum(axis=0) / x.dtype.type(rows)
    partial[:] = 0
    for b in prange(blocks):
        for i in range(b * step, min(rows, (b + 1) * step)):
            for j in range(columns):
                d = x[i, j] - mean[j]
                partial[b, j] += d * d
    scale = x.dtype.type(1.0) / np.sqrt(partial.sum(axis=0) / x.dtype.type(rows))
    out = np.empty_like(x)
    for i in prange(rows):
        for j in range(columns):
            out[i, j] = (x[i, j] - mean[j]) * scale[j]
    return out


@parallel
def pairwise_distances(a, b):
    """b is turned once, so that the innermost loop runs along memory."""
    rows, depth = a.shape
    columns = b.shape[0]
    turned = b.T.copy()
    out = np.empty((rows, columns), a.dtype)
    for i in prange(rows):
        line = np.zeros(columns, a.dtype)
        for k in range(depth):
            v = a[i, k]
            for j in range(columns):
                d = v - turned[k, j]
                line[j] += d * d
        for j in range(columns):
            out[i, j] = math.sqrt(line[j])
    return out


@parallel
def stencil(a):
    rows, columns = a.shape
    out = np.empty((rows - 2, columns - 2), a.dtype)
    fifth = a.dtype.type(0.2)
    for i in prange(1, rows - 1):
        for j in range(1, columns - 1):
            total = a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
            out[i - 1, j - 1] = fifth * total
    return out


FORMS = {
    "sin2_cos2": sin2_cos2,
    "black_scholes": black_scholes,
    "gelu": gelu,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "logsumexp": logsumexp,
    "mean_var": mean_var,
    "masked_sum": masked_sum,
    "pairwise_distances": pairwise_distances,
    "stencil": stencil,
    "standardise_columns": standardise_columns,
    "cosine_similarity": cosine_similarity,
}


def to_device(arguments):
    return arguments


def wait(result):
    return result
