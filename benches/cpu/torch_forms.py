"""The workloads as a PyTorch user writes them: torch functions under torch.compile on the CPU.

In: NumPy arrays. Out: `FORMS`, name -> compiled function; `to_device` and `wait` as in
jax_forms.py. Where torch has one function for the whole workload, it is used.
"""

import torch


def to_device(arguments):
    return tuple(torch.from_numpy(a) for a in arguments)


def wait(result):
    return result


def sin2_cos2(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def normal_cdf(d):
    k = 1.0 / (1.0 + 0.2316419 * torch.abs(d))
    series = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    upper = 0.3989422804014327 * torch.exp(-0.5 * d * d) * series
    return torch.where(d > 0, 1.0 - upper, upper)


def black_scholes(spot, strike, years, rate, volatility):
    spread = volatility * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * torch.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    put = discounted * normal_cdf(-d2) - spot * normal_cdf(-d1)
    return call, put


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def softmax(x):
    return torch.softmax(x, dim=1)


def layer_norm(x, gain, bias):
    return torch.nn.functional.layer_norm(x, x.shape[1:], gain, bias, 1e-5)


def logsumexp(x):
    return torch.logsumexp(x, dim=1)


def cosine_similarity(a, b):
    dot = torch.sum(a * b, dim=1)
    return dot / (torch.sqrt(torch.sum(a * a, dim=1)) * torch.sqrt(torch.sum(b * b, dim=1)))


def mean_var(x):
    return torch.mean(x), torch.var(x, correction=0)


def masked_sum(x):
    return torch.sum(torch.where(x > 0, x * x, 0.0))


def standardise_columns(x):
    return (x - torch.mean(x, dim=0)) / torch.std(x, dim=0, correction=0)


def pairwise_distances(a, b):
    return torch.sqrt(torch.sum((a[:, None, :] - b[None, :, :]) ** 2, dim=-1))


def stencil(a):
    return 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


FORMS = {
    form.__name__: torch.compile(form, dynamic=False)
    for form in (
        sin2_cos2,
        black_scholes,
        gelu,
        softmax,
        layer_norm,
        logsumexp,
        mean_var,
        masked_sum,
        pairwise_distances,
        stencil,
        standardise_columns,
        cosine_similarity,
    )
}
