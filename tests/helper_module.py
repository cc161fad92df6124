"""A module of a user's, with state that tests change."""

import numpy as np

scale = 2.0
weights = np.arange(20.0)
table = {"f": np.sin, "k": 3.0}


def inner(x):
    return x * scale


def outer(x):
    return inner(x) + weights
