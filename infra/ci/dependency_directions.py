#!/usr/bin/env python3
"""Holds the directions in which our crates may depend on each other.

Functions stand on lambda and storage, those on domain; domain stands on none of ours. The local
stack and the tests may stand on all. Dev- and build-dependencies count like any other. A package with a
lock file of its own has the versions of the main one.
"""

import fnmatch
import json
import pathlib
import subprocess
import sys
import tomllib

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
    ("tests/fuzz", ["shared/domain"]),
    ("tests", ["*"]),
]


def allowed(folder):
    for pattern, targets in RULES:
        if fnmatch.fnmatchcase(folder, pattern):
            return targets
    return None


# Packages with a workspace of their own.
APART = ["tests/fuzz"]


def metadata_of(*arguments):
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def versions(folder):
    """What a lock file has: name, version and checksum of each package."""
    lock = tomllib.loads(pathlib.Path(folder, "Cargo.lock").read_text(encoding="utf-8"))
    return {(p["name"], p["version"], p.get("checksum")) for p in lock["package"]}


def main():
    metadata = metadata_of()
    root = pathlib.Path(metadata["workspace_root"])
    packages = list(metadata["packages"])

    def folder_of(path):
        return pathlib.Path(path).relative_to(root).as_posix()

    faults = []
    edges = 0
    shipped = versions(root)
    names = {name for name, _, _ in shipped}
    for folder in APART:
        packages += metadata_of("--manifest-path", str(root / folder / "Cargo.toml"))["packages"]
        # What is tried there is what is shipped.
        for name, version, _ in versions(root / folder) - shipped:
            if name in names:
                faults.append(f"{folder}: locks {name} {version}, which the main lock file has not")
    for package in packages:
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
        print(f"{len(packages)} crates, {edges} dependencies among them, all one way")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
