"""The checks in `infra/ci` fail on what they look for, each on a small repository of its own."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from console import ROOT

CHECKS = pathlib.Path("infra/ci")


@pytest.fixture
def check(tmp_path):
    """Writes files next to a copy of a check, and returns what the check says: `None` if it finds nothing."""
    # links.py asks Git for the files.
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)

    def check(script, files):
        for name, content in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        (tmp_path / CHECKS).mkdir(parents=True)
        copy = shutil.copy(ROOT / CHECKS / script, tmp_path / CHECKS)
        ended = subprocess.run([sys.executable, copy], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert ended.returncode in (0, 1), ended.stderr
        return ended.stderr if ended.returncode else None

    return check


def crate(**modules):
    """The files of a crate with these modules."""
    files = {"lib.rs": "".join(f"mod {name};\n" for name in modules)}
    files |= {f"{name}.rs": code for name, code in modules.items()}
    return {f"shared/example/src/{name}": code for name, code in files.items()}


@pytest.mark.parametrize(
    ("cart", "price"),
    [
        ("use crate::price::Price;", "use crate::cart::Cart;"),
        ("use super::price::{Currency, Price};", "fn total(cart: &crate::cart::Cart) {}"),
    ],
)
def test_a_cycle_of_two_modules_is_found(check, cart, price):
    said = check("module_cycles.py", crate(cart=cart, price=price))
    assert "shared/example/src: a cycle of modules" in said
    assert "cart uses price" in said
    assert "price uses cart" in said


def test_a_cycle_of_three_modules_is_found(check):
    said = check("module_cycles.py", crate(a="use crate::b::B;", b="use crate::c::C;", c="use crate::a::A;"))
    assert "c uses a: crate::a::A" in said


@pytest.mark.parametrize(
    "price",
    ["struct Price;", "// Not crate::cart::Cart.", "#[cfg(test)]\nmod tests {\n    use crate::cart::Cart;\n}"],
)
def test_modules_with_a_one_way_dependency_are_no_cycle(check, price):
    assert check("module_cycles.py", crate(cart="use crate::price::Price;", price=price)) is None


# Not at the beginning of a line, where the check of this repository would find them.
OURS, BETWEEN, THEIRS = "<" * 7 + " HEAD\n", "=" * 7 + "\n", ">" * 7 + " 472e142 (A commit)\n"


@pytest.mark.parametrize("name", ["page.md", "shared/example/src/lib.rs", "template.yaml"])
def test_markers_of_a_merge_conflict_are_found(check, name):
    said = check("links.py", {name: f"one\n{OURS}two\n{BETWEEN}three\n{THEIRS}"})
    assert [f"{name}:{line}: a marker of a merge conflict" for line in (2, 4, 6)] == said.splitlines()[:3]


@pytest.mark.parametrize(
    "content",
    [f" {OURS}", f"> {BETWEEN}", "=" * 8, f"a {THEIRS}", b"\0\n" + OURS.encode()],
)
def test_other_lines_and_files_are_no_markers(check, content):
    assert check("links.py", {"page.md": "A page.\n", "image": content}) is None


def test_a_broken_link_is_found(check):
    said = check("links.py", {"page.md": "# A page\n\n[one](#a-page) and [two](#another)\n"})
    assert said.startswith("page.md:3: #another: no such heading\n")
