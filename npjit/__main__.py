"""python -m npjit demo | doctor | cache | bench

In: the command line. Out: the command's report on standard output, and its exit status.

    python -m npjit cache --clear
"""

import argparse
import importlib
import sys

COMMANDS = {
    "demo": "denoise a photograph and price a million options, NumPy against npjit",
    "doctor": "check compiler, processor, libraries and backends, and say what to install",
    "cache": "show or clear the compiled code kept on disk",
    "bench": "time functions on this machine, NumPy against npjit",
}


def main(argv: list[str]) -> int:
    width = max(map(len, COMMANDS))
    summary = "\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m npjit",
        description=f"commands:\n{summary}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="command")
    command = parser.parse_args(argv[:1]).command
    return int(importlib.import_module(f"npjit.cli.{command}").main(argv[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
