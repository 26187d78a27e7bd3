"""The console's view Health: what waits, what was given up and why, and moving it back."""

import pytest
from playwright.sync_api import expect

from bundle import Bundle
from console_page import PHONE, REPORT, desk_of

PROJECT = "console-health"
OPERATE = "feedback:operate"
# More than one request moves.
MANY = 120


@pytest.fixture(scope="module")
def bundle(bundle, tmp_path_factory):
    """A bundle of its own: queues are shared by everybody who uses one."""
    own = Bundle(bundle.command, tmp_path_factory.mktemp("health"))
    yield own
    own.stop()


@pytest.fixture(scope="module")
def desk(browser, bundle):
    operator = bundle.user("operator", PROJECT, OPERATE)
    with desk_of(operator, browser, bundle, "health", PROJECT) as desk:
        yield desk


@pytest.fixture
def give_up(bundle):
    """Puts messages into a dead-letter queue, each with this reason."""
    sqs = bundle.tool("sqs")

    def give_up(queue, reason, number=1):
        url = sqs.get_queue_url(QueueName=f"hearback-{queue}-dead-letters")["QueueUrl"]
        attributes = {"reason": {"DataType": "String", "StringValue": reason}}
        for first in range(0, number, 10):
            numbers = range(first, min(first + 10, number))
            entries = [{"Id": str(each), "MessageBody": "{}", "MessageAttributes": attributes} for each in numbers]
            sqs.send_message_batch(QueueUrl=url, Entries=entries)

    yield give_up
    # Nothing consumes these queues in this bundle, or only what is dead again.
    for name in ("nats", "nats-dead-letters", "stream-dead-letters", "subjects-dead-letters"):
        sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName=f"hearback-{name}")["QueueUrl"])


def test_every_queue_is_listed_and_nothing_was_given_up(desk):
    desk.show("health", project=PROJECT)
    expect(desk.panel("Dead letters")).to_contain_text("Nothing was given up.")
    rows = desk.rows("Queues")
    assert rows["signals"] == ["0", "0", "Feedback that waits for its signals"]
    assert rows["learning-signals-reward"][-1] == "Published messages for subscribers"
    assert len(rows) == 13


def test_dead_letters_say_why_they_failed_and_go_back(desk, give_up):
    give_up("nats", "NATS cannot be reached", MANY)
    desk.show("health", project=PROJECT)
    number, _, why, what = desk.rows("Dead letters")["nats"]
    assert (what, number, why) == ("Published messages that NATS did not accept", str(MANY), "10 × NATS cannot be reached")
    desk.page.get_by_role("button", name="Move back: nats").click()
    panel = desk.panel("Dead letters")
    expect(panel).to_contain_text(f"nats: {MANY} messages moved back.")
    expect(panel).to_contain_text("Nothing was given up.")
    assert desk.rows("Queues")["nats"][0] == str(MANY)


def test_what_cannot_be_moved_back_says_what_to_do(desk, give_up):
    give_up("stream", "stored stream record cannot be read: it is not JSON")
    give_up("subjects", "it has no subject")
    desk.show("health", project=PROJECT)
    assert desk.rows("Dead letters")["stream"][1] == "By command"
    expect(desk.panel("Dead letters")).to_contain_text("hearback redrive --queue stream")
    desk.page.get_by_role("button", name="Move back: subjects").click()
    expect(desk.panel("Dead letters")).to_contain_text("subjects: 0 messages moved back. 1 message stayed: nothing says")


def test_a_token_without_the_scope_is_told_which_it_lacks(console, bundle):
    console.open("health", bundle.user("analyst", PROJECT, REPORT), project=PROJECT)
    alert = console.page.get_by_role("alert")
    expect(alert).to_contain_text("The token lacks the scope feedback:operate.")
    expect(alert).to_contain_text("--scope 'feedback:report feedback:operate'")
    console.expect_error("403")


def test_the_view_fits_a_narrow_screen_and_is_accessible(console, bundle, give_up, screenshots):
    give_up("nats", "NATS cannot be reached", 3)
    give_up("stream", "stored stream record cannot be read: it is not JSON")
    give_up("subjects", "it has no subject")
    console.open("health", bundle.user("operator", PROJECT, f"{REPORT} {OPERATE}"), project=PROJECT)
    size = console.page.viewport_size
    console.page.set_viewport_size(PHONE)
    assert console.widths() == [PHONE["width"]] * 2
    console.page.set_viewport_size(size)
    console.assert_accessible("health", screenshots)
