"""The op table. Importing this package fills it: every module below enters its rows and functions."""

from importlib import import_module

for _name in (
    "elementwise_arithmetic",
    "elementwise_math",
    "elementwise_logic",
    "elementwise_calls",
    "reduce",
    "statistics",
    "movement",
    "join",
    "create",
    "choose",
    "contract",
    "einsum",
    "matrices",
    "series",
):
    import_module(f"npjit.ops.{_name}")
