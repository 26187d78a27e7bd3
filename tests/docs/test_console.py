"""The commands of the documentation, run as a reader pastes them, print what the pages show."""

import datetime
import gzip
import json
import os
import pathlib
import time
import uuid

import pytest

from bundle import default_command
from console import Command, blocks, matches, pages
from session import Session

TURNS = "/conversations/acme/order-service/conv-1/turns"
TURN = {"user": {"text": "How do I return an item?"}, "assistant": {"text": "Within 30 days.", "message_id": "msg-1"}}


def submit_event(session):
    """Runs the commands that the bundle prints when it starts."""
    printed = "\n".join(session.log).partition("learned from it:")[2].partition("AWS tools")[0]
    submit, read = printed.strip().split("\n\n")
    for text in (submit, read):
        session.follow(Command(text.strip(), None))


def react(session):
    session.user.call("PUT", f"{TURNS}/turn-1", TURN)
    session.user.call("POST", f"{TURNS}/turn-1/feedback", {"reaction": "not_ok", "text": "Where to?"})


def rate_in_the_demo(session):
    """What the demo page sends when its last answer is registered, and a reader clicks a thumb and a reason."""
    user = session.user
    texts = {"user": {"text": "How many days does February have in 2028?"}, "assistant": {"text": "28 days."}}
    texts["assistant"]["message_id"] = user.message("3")
    user.call("PUT", f"/conversations/acme/hearback-demo/demo-{user.name}-3/turns/3", texts)
    user.submit_signal("3", "not_helpful")
    user.submit_signal("3", "inaccurate")


def write_events(session):
    """A packed file of 96 events, 3 of them again, and a line that is none."""
    events = [
        {
            "feedbackId": str(uuid.UUID(int=number, version=4)),
            "userId": "user-123",
            "sessionId": "session-abc",
            "artifactId": f"artifact-{number}",
            "feedbackChannel": "explicit",
            "feedbackType": "artifact-acceptance",
            "data": {"accepted": True},
        }
        for number in range(96)
    ]
    lines = map(json.dumps, [*events, *events[:3], {}])
    (session.folder / "events.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def write_conversations(session):
    """The line that the page shows."""
    page = (session.folder / "docs/how-to/register-past-conversations.md").read_text()
    [line] = [line for line in page.splitlines() if '{"conversation_id":' in line]
    (session.folder / "conversations.jsonl").write_text(line.strip() + "\n")


# What a page assumes before the command with this beginning.
BEFORE = {
    ("docs/tutorial.md", "cargo run -- export --day"): rate_in_the_demo,
    ("docs/how-to/export-training-data.md", "hearback export"): react,
    ("docs/how-to/import-events.md", "hearback import"): write_events,
    ("docs/how-to/read-published-messages.md", "hearback tail"): submit_event,
    ("docs/how-to/register-past-conversations.md", "hearback replay"): write_conversations,
}


def wait_for_midnight():
    """A page that shows the feedback of today must not be read at its end."""
    now = datetime.datetime.now(datetime.UTC)
    left = datetime.timedelta(days=1) - (now - now.replace(hour=0, minute=0, second=0, microsecond=0))
    if left < datetime.timedelta(seconds=60):
        time.sleep(left.total_seconds())


def fault_of(session, command):
    """Why a command fails or does not print what the page shows, or `None`."""
    try:
        session.follow(command)
    except AssertionError as error:
        return str(error)
    return None


def read(page):
    """The blocks of a page that run."""
    return [block for block in blocks(page) if block.runs]


@pytest.fixture
def session(page, tmp_path):
    command = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
    if not command.is_file():
        pytest.exit(f"{command} is missing; `cargo build -p hearback-tests` builds it", 2)
    wait_for_midnight()
    session = Session(command.resolve(), tmp_path, read(page))
    yield session
    session.close()


@pytest.mark.parametrize("page", list(filter(read, pages())))
def test_the_commands_of_a_page_print_what_it_shows(page, session):
    before = {begin: prepare for (of, begin), prepare in BEFORE.items() if of == page}
    for block in read(page):
        for command in filter(lambda command: command.runs_here, block.commands):
            for begin in [begin for begin in before if command.text.startswith(begin)]:
                before.pop(begin)(session)
            if fault := fault_of(session, command):
                pytest.fail(f"{block}: {fault}", pytrace=False)
    assert before == {}
    log = (session.folder / "hearback.log").read_text()
    assert "panicked" not in log and " ERROR " not in log, log


@pytest.mark.parametrize("page", ["README.md"])
def test_a_failure_is_noticed(session):
    known = f"curl -s {session.bundle.url}/health"
    for text, fault in (
        ("(exit 3)", "status 3"),
        ("hearback unknown", "status 2"),
        ("hearback unknown | cat", "status 2"),
        (f"{known}/unknown", "status 22"),
    ):
        with pytest.raises(AssertionError, match=f"failed with {fault}:"):
            session.run(text)
    assert session.run(known)[0].startswith("{")


def test_each_block_is_marked_or_belongs_elsewhere():
    undecided = [str(block) for page in pages() for block in blocks(page) if not block.is_decided]
    assert undecided == [], "a line above the block says `<!-- run -->` or `<!-- not run: why -->`"
