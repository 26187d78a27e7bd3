#!/usr/bin/env python3
"""Finds modules of a crate that depend on each other cyclically.

A module uses another one if it names it in a `use` declaration or in a path. A cycle is a set of modules of which each
uses the next. Two kinds of use are not part of a cycle, because a module tree needs them:

- A module may use its ancestors: a child extends what its parent defines.
- A parent may re-export its children (`pub use`), which makes no code of the parent depend on them.

So a parent and its child are never a cycle of two. A use of `a::b` from outside of `a` is a use of `a` as well. Unit
tests are left out.

If the documentation of a crate says that each of its modules imports only modules above it, the table that follows must
list them all, in such an order.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Folders with the sources of a crate.
SOURCES = [
    "functions/*/src",
    "infra/*/src",
    "shared/*/src",
    "tests/bundle",
    "tests/detection/src",
    "tests/src",
]

COMMENT = re.compile(r"//[^\n]*")
USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")
TESTS = "#[cfg(test)]\nmod tests {"
ORDERED = "Each module imports only modules above it"


def modules(source):
    """The modules of a crate: path, as a tuple of names, and file."""
    found = {}
    for file in sorted(source.rglob("*.rs")):
        names = file.relative_to(source).with_suffix("").parts
        if "tests" in names or names[0] == "bin":
            continue
        if names[-1] in ("lib", "main", "mod"):
            names = names[:-1]
        # A crate with a library and a binary has both at the root: the binary uses the library from outside.
        if names not in found or file.name == "lib.rs":
            found[names] = file
    return found


def expanded(tree):
    """The paths of a `use` tree: `a::{b, c::{d}}` is `a::b` and `a::c::d`."""
    tree = tree.strip()
    if not tree.endswith("}"):
        return [tree.split(" as ")[0]]
    prefix, _, inner = tree[:-1].partition("{")
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(inner + ","):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(inner[begin:at])
            begin = at + 1
    return [path for part in parts if part.strip() for path in expanded(prefix + part.strip())]


def used_paths(file):
    """The paths that a file uses, without its re-exports and its unit tests."""
    code = COMMENT.sub("", file.read_text(encoding="utf-8")).partition(TESTS)[0]
    paths = []
    for visibility, tree in USE.findall(code):
        if not visibility:
            paths += expanded(re.sub(r"\s+", " ", tree))
    return paths + PATH.findall(USE.sub("", code))


def targets(path, module, known):
    """The modules that a path in `module` goes through, without the ancestors of `module`."""
    names = path.split("::")
    if names[0] == "crate":
        base, names = (), names[1:]
    elif names[0] == "self":
        base, names = module, names[1:]
    elif names[0] == "super":
        base = module
        while names and names[0] == "super":
            base, names = base[:-1], names[1:]
    elif (*module, names[0]) in known:
        base = module
    else:
        return
    for name in ["", *names]:
        base = (*base, name) if name else base
        if base not in known:
            return
        if module[: len(base)] != base:
            yield base


def uses(known):
    """The modules that each module uses, without its ancestors, with the paths in the code."""
    edges = {module: {} for module in known}
    for module, file in known.items():
        for path in used_paths(file):
            for used in targets(path, module, known):
                edges[module].setdefault(used, set()).add(path)
    return edges


def cycles(edges):
    """The strongly connected components of more than one module (Tarjan)."""
    order, lowest, stack, found = {}, {}, [], []

    def visit(module):
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for used in edges[module]:
            if used not in order:
                visit(used)
                lowest[module] = min(lowest[module], lowest[used])
            elif used in stack:
                lowest[module] = min(lowest[module], order[used])
        if lowest[module] == order[module]:
            cycle = set(stack[stack.index(module) :])
            del stack[stack.index(module) :]
            if len(cycle) > 1:
                found.append(cycle)

    for module in edges:
        if module not in order:
            visit(module)
    return found


def upward(source, edges):
    """The uses of modules below the user's, in the order that the crate declares, if it does."""
    text = (source / "lib.rs").read_text(encoding="utf-8") if (source / "lib.rs").exists() else ""
    _, declared, table = text.partition(ORDERED)
    if not declared:
        return []
    order = re.findall(r"^//! \| \[`(\w+)`\]", table, re.MULTILINE)
    faults = [f"{name} is not in the table" for (name,) in (m for m in edges if len(m) == 1) if name not in order]
    at = {name: index for index, name in enumerate(order)}
    for module, used in edges.items():
        for other, paths in used.items():
            if module and len(other) == 1 and at.get(module[0], 0) < at.get(other[0], 0):
                faults.append(f"{'::'.join(module)} uses {other[0]}, which is below it: {', '.join(sorted(paths))}")
    return faults


def main():
    sources = sorted(source for pattern in SOURCES for source in ROOT.glob(pattern))
    count = faults = 0
    for source in sources:
        known = modules(source)
        count += len(known)
        edges = uses(known)
        for fault in upward(source, edges):
            faults += 1
            print(f"{source.relative_to(ROOT)}: {fault}", file=sys.stderr)
        for cycle in cycles(edges):
            faults += 1
            print(f"{source.relative_to(ROOT)}: a cycle of modules", file=sys.stderr)
            for module in sorted(cycle):
                for used in sorted(cycle & edges[module].keys()):
                    names = ["::".join(names) or "(root)" for names in (module, used)]
                    paths = ", ".join(sorted(edges[module][used]))
                    print(f"  {names[0]} uses {names[1]}: {paths}", file=sys.stderr)
    if faults:
        return 1
    print(f"{count} modules of {len(sources)} crates, no cycles")
    return 0


if __name__ == "__main__":
    sys.exit(main())
