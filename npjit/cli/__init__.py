"""The commands of `python -m npjit`: one module each, with a `main(argv)` that gives its status."""
