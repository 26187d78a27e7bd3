#!/usr/bin/env python3
"""Checks that functions which make no vectors do not contain the table of meanings, 2.5 MB that a cold start would load.

Usage: without_table.py <a program that has it> <a program without it>...
"""

import pathlib
import sys

TABLE = pathlib.Path(__file__).resolve().parents[2] / "shared/semantics/table.bin"


def main(having, *others):
    table = TABLE.read_bytes()
    # A part is enough, and is in no program by chance.
    part = table[len(table) // 2 :][:64]
    contains = lambda program: part in pathlib.Path(program).read_bytes()
    if not contains(having):
        print(f"{having} does not contain the table: this check finds nothing", file=sys.stderr)
        return 1
    wrong = [program for program in others if contains(program)]
    for program in wrong:
        print(f"{program} contains the table of meanings: something calls the embedder", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
