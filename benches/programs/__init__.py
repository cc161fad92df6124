"""Plain NumPy programs with loops, to be compiled as they stand.

In: `python -m benches.programs`. Out: a table of npjit against NumPy, Numba, JAX and Pythran. The
programs are in files by field and hold nothing of npjit; `table.PROGRAMS` lists them with their
arguments; `numba_*`, `jax_*` and `pythran_forms` hold what the peers run:

    program = PROGRAMS["cholesky"]
    program.function(*program.arguments(program.small))
"""
