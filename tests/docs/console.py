"""The fenced `console` blocks of a page: which of them run here, their commands, and what they should print."""

import dataclasses
import functools
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

FENCE = re.compile(r"( *)```console\s*")
MARK = re.compile(r"<!-- (run|not run: \S.*) -->")
# Variables that are set for one command.
ASSIGNMENTS = re.compile(r"(?:\w+=\S+\s+)*")
# What needs a deployed stack, another clone or a build.
ELSEWHERE = re.compile(
    r"(?:aws|sam|docker|git clone|cargo (?:bench|build|fuzz|install|lambda|test))(?!\S)|\.ci/|.*--endpoint-url aws\b",
    re.DOTALL,
)
# What runs here: a block that has such a command needs a mark, whatever else it has.
HERE = re.compile(r"hearback|nats-server|cargo run|curl|python3 docs/")
PROMPT = "$ "
# Matches any text within a line, and alone on a line any number of lines.
ANYTHING = "…"

ADDRESS = re.compile(r"\b(127\.0\.0\.1:)(\d+)\b")
UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
# What differs in each run. A date may be followed by the hour of a dedupe key.
CHANGING = {
    "TOKEN": re.compile(r"\beyJ[\w-]+(?:\.[\w-]+)*"),
    "RECORD": re.compile(r"\bartifact-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9a-f]{8}\b"),
    "TIME": re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"),
    "DATE": re.compile(r"\b\d{4}-\d\d-\d\d(?:T\d\d)?\b"),
    "ID": re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{16})\b|(?<=\b(?:fb|tr)_)[0-9a-f]{32}\b"),
    "DURATION": re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s)\b"),
}


@dataclasses.dataclass
class Command:
    text: str
    # The lines that it should print; `None` where the page does not say.
    expected: list[str] | None

    def begins(self, pattern):
        return bool(pattern.match(self.text, ASSIGNMENTS.match(self.text).end()))

    @property
    def runs_here(self):
        return not self.begins(ELSEWHERE)


@dataclasses.dataclass
class Block:
    page: str
    line: int
    mark: str | None
    commands: list[Command]

    @property
    def runs(self):
        return self.mark == "run"

    @property
    def is_decided(self):
        elsewhere = [command for command in self.commands if not command.runs_here]
        here = [command for command in self.commands if command.runs_here and command.begins(HERE)]
        return self.mark is not None or bool(elsewhere and not here)

    def __str__(self):
        return f"{self.page}:{self.line}"


def pages():
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


@functools.cache
def blocks(page):
    """The blocks of a page, in order."""
    lines = (ROOT / page).read_text().splitlines()
    return [block(page, lines, number) for number, line in enumerate(lines) if FENCE.fullmatch(line)]


def block(page, lines, start):
    indent = FENCE.fullmatch(lines[start])[1]
    end = lines.index(f"{indent}```", start)
    mark = MARK.fullmatch(lines[start - 1].strip())
    content = [line.removeprefix(indent) for line in lines[start + 1 : end]]
    return Block(page, start + 1, mark and mark[1], list(commands(content)))


def commands(lines):
    """Commands after a prompt, each with what it prints; or commands only."""
    prompts = any(line.startswith(PROMPT) for line in lines)
    rest = list(lines)
    while rest:
        text = rest.pop(0).removeprefix(PROMPT)
        while rest and not is_complete(text):
            text += "\n" + rest.pop(0)
        expected = [] if prompts else None
        while prompts and rest and not rest[0].startswith(PROMPT):
            expected.append(rest.pop(0))
        if text.strip():
            yield Command(text, expected)


def is_complete(text):
    """Whether no quotation, here-document or escaped line break is open."""
    checked = subprocess.run(["bash", "-n", "-c", text], stderr=subprocess.PIPE, text=True)
    return not text.endswith("\\") and checked.returncode == 0 and not checked.stderr


def matches(expected, printed, known=()):
    """Whether lines are what a page shows, apart from what differs in each run. `known` are ids that do not differ."""
    lines = [masked(line, known) for line in without_end(printed)]
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ANYTHING else pattern_of(masked(line, known)) for line in without_end(expected)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def pattern_of(line):
    return ".*".join(map(re.escape, line.split(ANYTHING))) + r"\n"


def masked(line, known):
    line = UUID.sub(lambda uuid: uuid[0] if uuid[0] in known else "UUID", line)
    for name, pattern in CHANGING.items():
        line = pattern.sub(name, line)
    return line


def without_end(lines):
    """The lines without empty ones at the end."""
    return "\n".join(lines).rstrip().split("\n")


def with_ports(text, ports):
    """The text with other ports of this machine, each replaced once: one port may begin with another."""
    return ADDRESS.sub(lambda found: f"{found[1]}{ports.get(int(found[2]), found[2])}", text)
