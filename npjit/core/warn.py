"""How npjit warns: with the line of the user's code that led to it.

warn_user("f runs as NumPy: print() is called")    # shown as a warning of the caller's line
"""

import sys
import warnings


class NpjitWarning(UserWarning):
    """Something runs slower than the user may think, with the line and the reason."""

    __module__ = "npjit"


def warn_user(text: str) -> None:
    """An NpjitWarning that names the user's line, not one of npjit."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("npjit."):
        frame = frame.f_back
        level += 1
    warnings.warn(text, NpjitWarning, stacklevel=level)
