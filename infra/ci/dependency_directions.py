#!/usr/bin/env python3
"""Checks that dependencies between our crates run one way.

Functions depend on `shared/lambda` and `shared/storage`, which depend on `shared/domain`. The local bundle and the tests
may depend on all crates. Dev- and build-dependencies count like any other. A package with a separate lock file must
lock the same versions as the workspace.
"""

import fnmatch
import json
import pathlib
import subprocess
import sys
import tomllib

# Folder of a crate, and the folders it may depend on. The first matching pattern applies.
RULES = [
    ("shared/text", []),
    ("shared/wire", []),
    ("shared/scrub", ["shared/text"]),
    ("shared/semantics", ["shared/text"]),
    ("shared/detection", ["shared/semantics", "shared/text", "shared/wire"]),
    ("shared/domain", ["shared/detection", "shared/scrub", "shared/semantics", "shared/text", "shared/wire"]),
    ("shared/storage", ["shared/detection", "shared/domain"]),
    ("shared/lambda", ["shared/domain", "shared/scrub", "shared/storage", "shared/wire"]),
    ("functions/*", ["shared/*"]),
    ("infra/sqlite", []),
    ("infra/sqs", []),
    ("infra/local", ["*"]),
    ("tests/detection", ["shared/detection", "shared/domain"]),
    ("tests/empty", []),
    ("tests/fuzz", ["shared/detection", "shared/domain", "shared/scrub"]),
    ("tests", ["*"]),
]


def allowed(folder):
    for pattern, targets in RULES:
        if fnmatch.fnmatchcase(folder, pattern):
            return targets
    return None


# Packages in separate workspaces.
SEPARATE = ["tests/fuzz"]


def metadata_of(*arguments):
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def versions(folder):
    """Name, version and checksum of each package of a lock file."""
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
    locked = versions(root)
    names = {name for name, _, _ in locked}
    for folder in SEPARATE:
        packages += metadata_of("--manifest-path", str(root / folder / "Cargo.toml"))["packages"]
        # So that fuzzing tests the shipped versions.
        for name, version, _ in versions(root / folder) - locked:
            if name in names:
                faults.append(f"{folder}: locks {name} {version}, which is not in the workspace's lock file")
    for package in packages:
        folder = folder_of(pathlib.Path(package["manifest_path"]).parent)
        targets = allowed(folder)
        if targets is None:
            faults.append(f"{folder}: has no rule for its dependencies")
            continue
        for dependency in package["dependencies"]:
            if dependency.get("path") is None:
                continue
            edges += 1
            on = folder_of(dependency["path"])
            if not any(fnmatch.fnmatchcase(on, pattern) for pattern in targets):
                kind = dependency["kind"] or "normal"
                faults.append(f"{folder} must not depend on {on} ({kind} dependency)")

    for fault in sorted(faults):
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{len(packages)} crates, {edges} dependencies between them, all allowed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
