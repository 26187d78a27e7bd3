"""Checks the links of the repository's Markdown, and that no file has markers of a merge conflict.

Checks relative links and images, with headings by GitHub's rules for anchors, but no links to other sites. Also checks
pages under `docs/` that code names, and paths of code that the documentation names: see `is_path_of`.
"""

import fnmatch
import functools
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
# `[text](target)` and `![alt](target "title")`; a target may have one level of parentheses.
INLINE = re.compile(r"\]\(\s*(<[^>\n]*>|(?:[^\s()]|\([^\s()]*\))+)(?:\s+[\"'(][^)]*)?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]^]+\]:\s+(\S+)", re.MULTILINE)
HTML = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']+)[\"']")
ANCHOR = re.compile(r"<[a-z]+\b[^>]*?\b(?:id|name)=[\"']([^\"']+)[\"']")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$", re.MULTILINE)
LINK_TEXT = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
# A page that code names in a comment or a message, with an optional heading.
NAMED = re.compile(r"(?<![\w./])(docs/[\w./-]+\.md)(#[\w-]+)?")
# A path of code: `signals/src/work.rs` in Markdown, and a bare one in the scripts of CI.
ENDING = r"\.(?:rs|py|toml|js|yaml)"
QUOTED_PATH = re.compile(rf"`([^`\s]+/[^`\s]+{ENDING})`")
BARE_PATH = re.compile(rf"(?<![\w./$}}-])([\w.*-]+/[\w./*-]+{ENDING})\b")
# What Git writes around the two sides of a conflict. In Markdown, underline a heading with another number of `=`.
CONFLICT = re.compile(rb"^(?:<<<<<<< |=======\r?$|>>>>>>> )", re.MULTILINE)


def files(*patterns):
    """Tracked files, and new ones that are not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    paths = {ROOT / name for name in listed.stdout.split("\0") if name}
    return sorted(path for path in paths if path.is_file())


def prose(page):
    """The page with empty lines in place of fenced code blocks."""
    lines, fence = [], None
    for line in page.splitlines():
        opening = FENCE.match(line)
        if fence is None and opening:
            fence = opening[1]
            lines.append("")
        elif fence is not None:
            if opening and opening[1].startswith(fence) and not line.strip(" `~"):
                fence = None
            lines.append("")
        else:
            lines.append(line)
    return "\n".join(lines)


def slug(heading):
    """GitHub's anchor of a heading, without the number of a repetition."""
    text = LINK_TEXT.sub(r"\1", heading)
    text = re.sub(r"[`*]|(?<!\w)_|_(?!\w)", "", text).strip().lower()
    kept = (
        character
        for character in text
        if character in "-_ " or unicodedata.category(character)[0] in "LNM"
    )
    return "".join(kept).replace(" ", "-")


@functools.cache
def anchors(path):
    """The anchors of a page."""
    page = prose(path.read_text())
    seen, found = {}, set(ANCHOR.findall(page))
    for heading in HEADING.findall(page):
        name = slug(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    return found


def links(page):
    """The targets of a page's links, with their line numbers."""
    text = prose(page)
    # Replace code by spaces of the same length, to keep line numbers.
    text = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for pattern in (INLINE, REFERENCE, HTML):
        for found in pattern.finditer(text):
            yield text.count("\n", 0, found.start(1)) + 1, found[1].strip("<>")


def fault(page, target):
    """Why a target is broken, or `None`."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    name, anchor = unquote(parts.path), unquote(parts.fragment)
    path = (ROOT / name.lstrip("/") if name.startswith("/") else page.parent / name).resolve() if name else page
    if not path.is_relative_to(ROOT):
        return "leads out of the repository"
    if not path.exists():
        return "no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return "no such heading"
    return None


def is_path_of(name, paths):
    """Whether a file of the repository has this path, or a path that ends with it: `training/feedback.rs`.

    `*`, and a placeholder such as `<language>`, match any text.
    """
    pattern = re.sub(r"<[^<>]*>", "*", name)
    return any(fnmatch.fnmatchcase(f"/{path}", f"*/{pattern}") for path in paths)


def conflicts(file):
    """The lines of a text file that are markers of a merge conflict."""
    content = file.read_bytes()
    is_text = b"\0" not in content
    return [content.count(b"\n", 0, found.start()) + 1 for found in CONFLICT.finditer(content) if is_text]


def main():
    faults, count = [], 0
    for file in files():
        name = file.relative_to(ROOT)
        faults += [f"{name}:{line}: a marker of a merge conflict" for line in conflicts(file)]
    everything = [path.relative_to(ROOT).as_posix() for path in files()]
    documents = [(page, QUOTED_PATH) for page in files("README.md", "docs/*.md")]
    documents += [(script, BARE_PATH) for script in files(".ci/*")]
    for document, pattern in documents:
        for number, line in enumerate(document.read_text().splitlines(), 1):
            for name in pattern.findall(line):
                count += 1
                if not is_path_of(name, everything):
                    faults.append(f"{document.relative_to(ROOT)}:{number}: {name}: no such file")
    for page in files("*.md"):
        for line, target in links(page.read_text()):
            count += 1
            if why := fault(page, target):
                faults.append(f"{page.relative_to(ROOT)}:{line}: {target}: {why}")
    for source in files("*.rs", "*.py", "*.toml", "*.yaml", "*.js", ".ci/*"):
        if source == Path(__file__).resolve():
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            for name, anchor in NAMED.findall(line):
                count += 1
                if why := fault(ROOT / "README.md", name + anchor):
                    faults.append(f"{source.relative_to(ROOT)}:{number}: {name}{anchor}: {why}")
    for message in faults:
        print(message, file=sys.stderr)
    if faults:
        sys.exit(f"{len(faults)} faults; {count} links and paths were checked")
    print(f"{count} links and paths, none broken, and no merge conflicts")


if __name__ == "__main__":
    main()
