"""The GPU workloads as they are written in PyTorch, for torch.compile.

In: nothing. Out: `FORMS`, the functions by the workloads' names, on tensors:

    torch.compile(FORMS["softmax_128"], dynamic=False)(x)
"""

from __future__ import annotations

import torch

from benches.cpu.torch_forms import normal_cdf, sin2_cos2

ROOT = 0.7978845608


def saxpy(x, y):
    return 2.5 * x + y


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(ROOT * (x + 0.044715 * x * x * x)))


def black_scholes(spot, strike, years, rate, volatility):
    spread = volatility * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * torch.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    return call, call - spot + discounted


def mandelbrot(cr, ci):
    zr, zi, count = cr, ci, torch.zeros_like(cr)
    for _ in range(50):
        inside = zr * zr + zi * zi <= 4
        count = count + torch.where(inside, 1.0, 0.0)
        zr, zi = (
            torch.where(inside, zr * zr - zi * zi + cr, zr),
            torch.where(inside, 2 * zr * zi + ci, zi),
        )
    return count


def transpose_add(x, y):
    return x.T + y


def jacobi(x):
    return 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def total(x):
    return x.sum()


def mean_var(x):
    return x.mean(), x.var(correction=0)


def positive_squares(x):
    return torch.where(x > 0, x * x, 0.0).sum()


def column_sum(x):
    return x.sum(dim=0)


def softmax(x):
    e = torch.exp(x - x.amax(dim=1, keepdim=True))
    return e / e.sum(dim=1, keepdim=True)


def logsumexp(x):
    m = x.amax(dim=1, keepdim=True)
    return torch.log(torch.exp(x - m).sum(dim=1)) + m[:, 0]


def layer_norm(x, gain, bias):
    mean = x.mean(dim=1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * gain + bias


def layer_norm_loss(x, gain, bias, weights):
    return (layer_norm(x, gain, bias) * weights).sum()


def cumsum_rows(x):
    return torch.cumsum(x, dim=1)


def pairwise(a, b):
    return torch.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(dim=-1))


def nbody(positions, mass):
    d = positions[None, :, :] - positions[:, None, :]
    r2 = (d * d).sum(dim=-1) + 1e-3
    return (d * (mass / (r2 * torch.sqrt(r2)))[:, :, None]).sum(dim=1)


def mlp_loss(w1, b1, w2, b2, x, y):
    hidden = torch.tanh(x @ w1 + b1)
    return ((hidden @ w2 + b2 - y) ** 2).mean()


def logistic_loss(w, x, y):
    z = x @ w
    return (z.clamp(min=0) - z * y + torch.log1p(torch.exp(-z.abs()))).mean()


def matmul_bias_gelu(x, w, bias):
    return gelu(x @ w + bias[:, None, :])


def attention(q, k, v):
    s = q @ k.transpose(2, 3) * 0.125
    e = torch.exp(s - s.amax(dim=-1, keepdim=True))
    return (e / e.sum(dim=-1, keepdim=True)) @ v


def scatter_add(bins, index, values):
    return torch.zeros_like(bins).index_add(0, index, values)


def gather_rows(table, index):
    return table[index]


FORMS = {
    "saxpy": saxpy,
    "sin2+cos2": sin2_cos2,
    "gelu": gelu,
    "black_scholes": black_scholes,
    "sum": total,
    "mean_var": mean_var,
    **{f"softmax_{c}": softmax for c in (128, 1024, 4096, 32768)},
    "column_sum": column_sum,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_loss,
    "logsumexp": logsumexp,
    "pairwise": pairwise,
    "jacobi": jacobi,
    "transpose_add": transpose_add,
    "cumsum": cumsum_rows,
    "mandelbrot": mandelbrot,
    "mlp": mlp_loss,
    "logistic": logistic_loss,
    "matmul_bias_gelu": matmul_bias_gelu,
    "matmul_bias_gelu_bf16": matmul_bias_gelu,
    "positive_squares": positive_squares,
    "scatter_add": scatter_add,
    "gather": gather_rows,
    "attention": attention,
    "nbody": nbody,
}
