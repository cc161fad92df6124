"""The op table. Importing this package fills it: each module below enters its part."""

from importlib import import_module

for _name in (
    "control",
    "operators",
    "elementwise_arithmetic",
    "elementwise_math",
    "elementwise_logic",
    "elementwise_calls",
    "reduce",
    "statistics",
    "movement",
    "pieces",
    "join",
    "repeat",
    "pad",
    "create",
    "ranges",
    "convert",
    "choose",
    "contract",
    "einsum",
    "matrices",
    "series",
    "advanced",
    "putting",
    "scan",
    "sorting",
    "order_statistics",
    "linear_systems",
    "factorisations",
    "fourier",
):
    import_module(f"npjit.ops.{_name}")
