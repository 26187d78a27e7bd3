"""How blocks are read, and what counts as the documented output."""

import pytest

from console import block, commands, matches, with_ports

SEEN = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
OTHER = "0b6f1c1e-6a86-44b5-9d5c-f6d2a0cf4cf4"


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        (["a", ""], ["a"]),
        (["…"], [""]),
        (["{", "  …", "}"], ["{", "}"]),
        (["{", "  …", "}"], ["{", "  1,", "  2", "}"]),
        (['{"a":1,…,"z":2}'], ['{"a":1,"b":[],"z":2}']),
        ([f'"{OTHER}"'], [f'"{SEEN}"']),
        (["2026-11-23T02:38:59.056187Z"], ["2031-01-02T00:00:00Z"]),
        (["TOKEN=eyJ0eXAi…"], ["TOKEN=eyJ0.eyJz.Ld4n-_"]),
        (["artifact-2026-11-23T02-39-00-211c6eef"], ["artifact-2031-01-02T00-00-00-00000000"]),
        (["user-123:artifact-456:2026-11-23T02"], ["user-123:artifact-456:2031-01-02T00"]),
        (["fb_c2fe48596eb55544952bb2df795f4bf5"], ["fb_00000000000000000000000000000000"]),
        (["took 12 ms"], ["took 3.5 ms"]),
    ],
)
def test_output_matches(expected, printed):
    assert matches(expected, printed)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ([], ["a"]),
        (["a"], [""]),
        (["a"], ["a", "b"]),
        (["a", "…", "z"], ["a", "b"]),
        (['{"value":0.85}'], ['{"value":0.95}']),
        (['{"a":1,…,"z":2}'], ['{"a":1,"b":[],', '"z":2}']),
        (["2026-11-23T02:38:59.056187Z"], ["null"]),
        ([f'"{SEEN}"'], ['"f47ac10b"']),
    ],
)
def test_other_output_does_not_match(expected, printed):
    assert not matches(expected, printed)


def test_an_id_that_the_page_chooses_must_be_the_same():
    assert not matches([SEEN], [OTHER], known=[SEEN])


def test_a_command_ends_with_its_quotation_or_here_document():
    lines = ["$ a -d '{", "  1}' \\", "    | b", "printed", "$ c <<'EOF'", "d", "EOF", "$ e"]
    texts = [(command.text, command.expected) for command in commands(lines)]
    assert texts == [("a -d '{\n  1}' \\\n    | b", ["printed"]), ("c <<'EOF'\nd\nEOF", []), ("e", [])]


def test_a_port_is_replaced_once():
    ports = {3000: 30022, 3001: 30035, 3002: 4001}
    text = "http://127.0.0.1:3000/a, 127.0.0.1:3001, 127.0.0.1:30022, 10.0.0.1:3000"
    assert with_ports(text, ports) == "http://127.0.0.1:30022/a, 127.0.0.1:30035, 127.0.0.1:30022, 10.0.0.1:3000"


@pytest.mark.parametrize(
    ("mark", "lines", "is_decided"),
    [
        ("", "hearback check", False),
        ("<!-- other -->", "hearback check", False),
        ("<!-- not run: -->", "hearback check", False),
        ("<!-- not run: needs a disk -->", "hearback check", True),
        ("<!-- run -->", "hearback check", True),
        ("", "cargo run", False),
        ("", "SEED=7 cargo test", True),
        ("", "aws s3 ls", True),
        ("", "awslocal s3 ls", False),
        ("", "KEY=1\naws s3 ls", True),
        ("", "hearback redrive --endpoint-url aws", True),
        ("", "hearback redrive\nhearback redrive --endpoint-url aws", False),
    ],
)
def test_a_block_is_marked_or_belongs_elsewhere(mark, lines, is_decided):
    assert block("page", [mark, "```console", *lines.split("\n"), "```"], 1).is_decided == is_decided
