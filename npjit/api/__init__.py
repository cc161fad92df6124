"""The public functions: jit, grad and what goes with them."""
