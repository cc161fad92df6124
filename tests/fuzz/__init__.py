"""Random NumPy programs as Python source, run by plain NumPy and by npjit; `python -m
tests.fuzz`."""
