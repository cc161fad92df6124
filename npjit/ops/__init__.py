"""The op table. Importing this package fills it: every module below enters its rows and functions."""

from npjit.ops import (
    elementwise_arithmetic as elementwise_arithmetic,
)
from npjit.ops import (
    elementwise_logic as elementwise_logic,
)
from npjit.ops import (
    elementwise_math as elementwise_math,
)
from npjit.ops import (
    reduce as reduce,
)
