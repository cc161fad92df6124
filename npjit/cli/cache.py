"""python -m npjit cache: what the disk cache holds, and a way to empty it.

In: `--clear` or nothing. Out: directory, entries and size on standard output.

    python -m npjit cache --clear
"""

import argparse

from npjit.codegen.cache import open_cache


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m npjit cache", description=__doc__.splitlines()[0])
    parser.add_argument("--clear", action="store_true", help="remove every entry")
    cache = open_cache()
    if parser.parse_args(argv).clear:
        cache.clear()
    stats = cache.stats()
    print(f"directory  {stats.directory}")
    print(f"entries    {stats.entries} ({stats.objects} compiled objects)")
    print(f"size       {stats.size / 2**20:.1f} MiB of {stats.limit / 2**20:.0f} MiB at most")
    return 0
