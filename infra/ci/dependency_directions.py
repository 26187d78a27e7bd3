#!/usr/bin/env python3
"""Holds the directions in which our crates may depend on each other.

Functions stand on lambda and storage, those on domain; domain stands on none of ours. The local
stack and the tests may stand on all. Dev- and build-dependencies count like any other.
"""

import fnmatch
import json
import pathlib
import subprocess
import sys

# Folder of a crate -> folders it may depend on; the first pattern that matches rules.
RULES = [
    ("shared/domain", []),
    ("shared/storage", ["shared/domain"]),
    ("shared/lambda", ["shared/domain", "shared/storage"]),
    ("functions/*", ["shared/*"]),
    ("infra/sqs", []),
    ("infra/local", ["*"]),
    ("tests/detection", ["shared/domain"]),
    ("tests/empty", []),
    ("tests", ["*"]),
]


def allowed(folder):
    for pattern, targets in RULES:
        if fnmatch.fnmatchcase(folder, pattern):
            return targets
    return None


def main():
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
    )
    root = pathlib.Path(metadata["workspace_root"])

    def folder_of(path):
        return pathlib.Path(path).relative_to(root).as_posix()

    faults = []
    edges = 0
    for package in metadata["packages"]:
        folder = folder_of(pathlib.Path(package["manifest_path"]).parent)
        targets = allowed(folder)
        if targets is None:
            faults.append(f"{folder}: no rule says what it may depend on")
            continue
        for dependency in package["dependencies"]:
            if dependency.get("path") is None:
                continue
            edges += 1
            on = folder_of(dependency["path"])
            if not any(fnmatch.fnmatchcase(on, pattern) for pattern in targets):
                kind = dependency["kind"] or "normal"
                faults.append(f"{folder} -> {on} ({kind} dependency) is against the direction")

    for fault in sorted(faults):
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{len(metadata['packages'])} crates, {edges} dependencies among them, all one way")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
