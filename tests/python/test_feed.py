"""The feed and other lists, page by page, against a bundle; the feed also while the bundle is restarted."""

import asyncio
import itertools
import threading
import uuid

import httpx
import pytest
from bundle import TENANT, eventually
from hearback import AsyncHearback, Hearback, NotFound, ServerError, _feed
from support_bundle import PROJECT, SupportBundle


def dwell_time(user, id=None):
    """An event that gives one message."""
    return {
        "feedbackId": id or str(uuid.uuid4()),
        "userId": user,
        "sessionId": str(uuid.uuid4()),
        "feedbackChannel": "implicit",
        "feedbackType": "dwell-time",
        "data": {"timeSpent": 1},
    }


def submit(hb, user, count):
    """Submits events and waits until they are in the feed; returns their ids."""
    receipts = [hb.submit(dwell_time(user)) for _ in range(count)]
    for receipt in receipts:
        assert receipt.wait(30, processed=True).status == "processed"
    return {receipt.id for receipt in receipts}


def ids(messages):
    return [message.event["feedbackId"] for message in messages]


@pytest.fixture
def hb(bundle, user):
    with Hearback(bundle.url, bundle.token(user)) as hb:
        yield hb


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(_feed, "_PAUSE", 0.05)


def test_the_feed_has_every_message_once_over_several_pages(hb, bundle, user):
    submitted = submit(hb, user, 7)
    messages = list(hb.feed(limit=3, channel="implicit"))
    assert sorted(ids(messages)) == sorted(submitted)
    assert {message.type for message in messages} == {"feedback.processed"}
    assert len({message.id for message in messages}) == 7

    async def read():
        async with AsyncHearback(bundle.url, bundle.token(user)) as hb:
            return [message async for message in hb.feed(limit=3)]

    assert ids(asyncio.run(read())) == ids(messages)


def test_nothing_is_missed_after_any_cursor(hb, user):
    submit(hb, user, 7)
    messages = list(hb.feed(limit=3))
    for position, message in enumerate(messages):
        resumed = ids(hb.feed(message.cursor))
        assert set(ids(messages[position + 1 :])) <= set(resumed)


def test_a_followed_feed_goes_on_over_a_restart_and_repeats_nothing(tmp_path, impatient):
    bundle = SupportBundle(tmp_path)
    token = bundle.token("user-123")
    with Hearback(bundle.url, token) as hb:
        seen, enough = [], threading.Event()

        def follow():
            for message in hb.feed(follow=True, limit=2):
                seen.append(message.event["feedbackId"])
                if len(seen) == 6:
                    return enough.set()

        first = submit(hb, "user-123", 3)
        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        eventually(lambda: len(seen), 3)
        bundle.kill()
        bundle.start()
        second = submit(hb, "user-123", 3)
        assert enough.wait(30)
        follower.join()
        assert (set(seen[:3]), set(seen[3:])) == (first, second)
    bundle.stop()


class Pages:
    """A server with these pages, of which each is a response or an error."""

    def __init__(self, *pages):
        self.pages = list(pages)
        self.queries = []
        self.transport = httpx.MockTransport(self.respond)

    def respond(self, request):
        self.queries.append(dict(request.url.params))
        page = self.pages.pop(0)
        return httpx.Response(page, json={}) if isinstance(page, int) else httpx.Response(200, json=page)


def page(*events, last, cursor=None):
    return {"events": [{"eventId": event} for event in events], "last_event_id": last, "next_cursor": cursor}


def read(feed, count):
    return [(message.id, message.cursor) for message in itertools.islice(feed, count)]


def test_a_cursor_never_lies_after_something_that_may_still_appear(impatient):
    pages = Pages(
        page("1", "2", last="2", cursor="p2"),  # long ago: nothing appears before 2 any more
        page("4", "5", last="~2", cursor="p3"),  # in the last seconds
        page("6", last="~3"),
        page("3", "4", "5", "6", last="~4"),  # 3 appears late
        page("7", last="7"),
    )
    with Hearback("http://x", "token", transport=pages.transport) as hb:
        messages = read(hb.feed(follow=True), 7)
    assert messages == [("1", "1"), ("2", "2"), ("4", "2"), ("5", "~2"), ("6", "~3"), ("3", "~3"), ("7", "7")]
    assert pages.queries == [
        {},
        {"cursor": "p2"},
        {"cursor": "p3"},
        {"after": "~3"},
        {"after": "~4"},
    ]


def test_after_an_error_the_iterator_continues_where_it_was(monkeypatch):
    monkeypatch.setattr("hearback._transport.DEADLINE", 0.0)
    pages = Pages(page("1", last="1", cursor="p2"), 404, page("2", last="2"))
    with Hearback("http://x", "token", transport=pages.transport) as hb:
        feed = hb.feed()
        assert next(feed).id == "1"
        with pytest.raises(NotFound):
            next(feed)
        assert [message.id for message in feed] == ["2"]
    assert pages.queries == [{}, {"cursor": "p2"}, {"cursor": "p2"}]


def test_a_followed_feed_survives_what_may_pass_and_nothing_else(impatient):
    pages = Pages(503, page("1", last="1"), 404)
    with Hearback("http://x", "token", transport=pages.transport) as hb:
        feed = _feed.Feed(hb.api.within(5.0, retry=False), follow=True)
        assert next(feed).id == "1"
        with pytest.raises(NotFound):
            next(feed)
    with Hearback("http://x", "token", transport=Pages(503).transport) as hb, pytest.raises(ServerError):
        next(_feed.Feed(hb.api.within(1.0, retry=False)))


def test_the_pages_of_lists_whose_cursor_is_in_the_query_or_in_the_body(hb):
    conversation = hb.project(PROJECT).conversation()
    turns = [conversation.register(f"Question {number}", "Answer") for number in range(3)]
    for turn in turns:
        turn.not_ok()
    assert hb.flush(30)

    def rejected():
        query = {"tenant": TENANT, "project": PROJECT, "user_feedback_status": "rejected", "limit": 2}
        return [turn["turn_id"] for page in hb.pages(hb.api.list_turns_by_status, **query) for turn in page["turns"]]

    eventually(rejected, [turn.id for turn in reversed(turns)])

    report = hb.pages(
        hb.api.list_turns_with_feedback,
        tenant=TENANT,
        project=PROJECT,
        conversation_id=conversation.id,
        body={"limit": 1},
    )
    assert {turn["turn_id"] for page in report for turn in page["turns"]} == {turn.id for turn in turns}


def test_the_pages_of_a_list_whose_cursor_is_a_number(hb, user):
    for version in range(3):
        preferences = {"preferenceVersion": version, "globalPreferences": {"learningMode": False}}
        hb.api.update_preferences(user_id=user, body=preferences)
    history = hb.pages(hb.api.list_preference_versions, user_id=user, limit=2)
    assert [len(page["versions"]) for page in history] == [2, 1]


def test_the_pages_of_an_asynchronous_client(bundle, user, hb):
    submit(hb, user, 3)

    async def read():
        async with AsyncHearback(bundle.url, bundle.token(user)) as hb:
            return [len(page["events"]) async for page in hb.pages(hb.api.list_events, limit=2)]

    assert sum(asyncio.run(read())) == 3
