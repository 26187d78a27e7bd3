#!/usr/bin/env python3
"""Checks that each function of the template is built, and that its bootstrap is small enough for a fast cold start.

Usage: bootstrap_sizes.py <directory with <binary>/bootstrap>
"""

import pathlib
import re
import sys

LIMIT = 8_000_000  # bytes
# The functions that make vectors have the table of meanings, one of them the detector's weights, too. They are read where
# they are in the binary: nothing is parsed or copied at the start.
WITH_TABLES = {"retrieval", "turns"}
TABLES = 3_000_000  # bytes

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(directory):
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    binaries = re.findall(r"\bBinary: *([\w-]+)", template)
    if not binaries:
        print("the template names no binary", file=sys.stderr)
        return 1

    failed = False
    for binary in binaries:
        bootstrap = pathlib.Path(directory, binary, "bootstrap")
        if not bootstrap.is_file():
            print(f"{binary}: in the template, but not built", file=sys.stderr)
            failed = True
            continue
        size = bootstrap.stat().st_size
        print(f"{binary:<12} {size / 1e6:5.2f} MB")
        limit = LIMIT + TABLES if binary in WITH_TABLES else LIMIT
        if size > limit:
            print(f"{binary}: larger than {limit / 1e6:.0f} MB", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
