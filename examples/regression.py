"""Logistic regression by gradient descent: the loss in plain NumPy, its gradient by npjit.

In: two clouds of points, made here. Out: the loss as it falls, and the share of points told apart.
"""

import numpy as np

import npjit


def loss(weights, x, labels):
    margins = labels * (x @ weights["slope"] + weights["offset"])
    return np.mean(np.log1p(np.exp(-margins))) + 1e-4 * np.sum(weights["slope"] ** 2)


def make_points(count, random):
    labels = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    x = random.standard_normal((count, 8)) + 0.5 * labels[:, None]
    return x, labels


def main():
    random = np.random.default_rng(0)
    x, labels = make_points(20_000, random)
    weights = {"slope": np.zeros(8), "offset": np.float64(0.0)}
    descend = npjit.value_and_grad(loss)
    for step in range(100):
        value, gradient = descend(weights, x, labels)
        weights = {name: weights[name] - 1.0 * gradient[name] for name in weights}
        if step % 20 == 0:
            print(f"step {step:3}  loss {value:.4f}")
    right = np.mean(np.sign(x @ weights["slope"] + weights["offset"]) == labels)
    print(f"{100 * right:.1f} % told apart, {descend.cache_info()['whole']} compiled calls")


if __name__ == "__main__":
    main()
