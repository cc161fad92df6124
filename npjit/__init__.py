"""npjit: plain NumPy code as fast as hand-written C++, with gradients for free.

>>> import numpy as np, npjit
>>> @npjit.jit
... def f(x):
...     return np.sin(x) ** 2 + np.cos(x) ** 2
>>> f(np.zeros(2))
array([1., 1.])
>>> npjit.grad(lambda x: np.sum(x * x))(np.array([1.0, 2.0]))
array([2., 4.])
"""

from npjit import backends
from npjit.api.export import ExportError, export
from npjit.api.grad import grad, value_and_grad
from npjit.api.jit import jit
from npjit.api.options import CaptureError
from npjit.core.warn import NpjitWarning

__version__ = "0.1.0"
__all__ = [
    "CaptureError",
    "ExportError",
    "NpjitWarning",
    "backends",
    "export",
    "grad",
    "jit",
    "value_and_grad",
]
