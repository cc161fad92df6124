"""Plain NumPy programs with loops, to be compiled as they stand.

In: `python -m benches.programs`. Out: a table of npjit against NumPy and Numba. The programs are
in files by field and hold nothing of npjit; `table.PROGRAMS` lists them with their arguments:

    program = PROGRAMS["cholesky"]
    program.function(*program.arguments(program.small, rng))
"""
