"""The live feed with a WebSocket client that is not ours: `websockets`, and docs/how-to/follow_feed.py on top of it."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import follow_feed
import pytest
from bundle import EVENTS_OF_RATING, FEED, PATIENCE, PROJECT, Bundle, default_command, eventually
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

CLIENT = pathlib.Path(follow_feed.__file__)
# Frames that a client sends as fast as it can.
FLOOD = 300
REPORT, ON_BEHALF = "feedback:report", "feedback:on-behalf"


@pytest.fixture
def bundle(tmp_path):
    bundle = Bundle(pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command())), tmp_path)
    yield bundle
    bundle.stop()


@pytest.fixture
def connected(monkeypatch):
    """Connects as a user. The connections end with the test."""
    with contextlib.ExitStack() as sockets:

        def connected(user):
            monkeypatch.setattr(follow_feed, "URL", user.url)
            return sockets.enter_context(connect(follow_feed.take_ticket(user.token)))

        yield connected


def signal(user):
    """Submits a message signal, which is private; returns the id of its event."""
    user.register("1")
    user.submit_signal("1", "helpful")
    [row] = user.rows(user.message("1"))
    return row["feedback_id"]


def ask(socket, **frame):
    socket.send(json.dumps(frame))
    return json.loads(socket.recv(timeout=PATIENCE))


def feedback_of(event):
    return event.get("feedbackId") or event["sourceEvent"]["feedbackId"]


class Received:
    """What a connection was sent so far."""

    def __init__(self, socket):
        self._socket = socket
        self.events = {}

    def ids(self):
        """The ids of the events, with those that arrived since the last call."""
        frame = ask(self._socket, action="ping")
        while frame["type"] != "pong":
            assert frame["type"] == "events", frame
            self.events |= {event["eventId"]: event for event in frame["events"]}
            frame = json.loads(self._socket.recv(timeout=PATIENCE))
        return self.events.keys()


def test_the_client_prints_each_event_once_across_restarts(bundle):
    user = bundle.user("ada")
    rounds = 3
    after = user.call("GET", f"{FEED}?limit=1")["last_event_id"]
    printed = bundle.folder / "events"
    with open(printed, "w") as output:
        client = subprocess.Popen(
            [sys.executable, CLIENT, str(rounds * EVENTS_OF_RATING)],
            env={
                **os.environ,
                "HEARBACK_URL": bundle.url,
                "HEARBACK_TOKEN": user.token,
                "HEARBACK_AFTER": after,
            },
            stdout=output,
        )
    for number in range(1, rounds + 1):
        user.rate()
        eventually(lambda: printed.read_text().count("\n"), number * EVENTS_OF_RATING)
        if number < rounds:
            bundle.stop()
            bundle.start()
    assert client.wait(PATIENCE) == 0
    ids = [json.loads(line)["eventId"] for line in printed.read_text().splitlines()]
    assert sorted(ids) == sorted(event["eventId"] for event in user.listed())


def test_every_caller_receives_what_it_may_see_and_nothing_else(bundle, connected):
    ada, bob = bundle.user("ada", f"{PROJECT},other"), bundle.user("bob", "other")
    stranger = bundle.user("ada", PROJECT, REPORT, tenant="globex")
    callers = {
        "ada": ada,
        "ada without projects": bundle.user("ada", ""),
        "bob": bob,
        "reporter": bundle.user("eve", PROJECT, REPORT),
        "reporter of all": bundle.user("eve", f"{PROJECT},other", REPORT),
        "reporter without projects": bundle.user("eve", "", REPORT),
        "back end": bundle.user("back-end", f"{PROJECT},other", ON_BEHALF),
        "nobody": bundle.user("nobody", f"{PROJECT},other"),
        "stranger": stranger,
    }
    sockets = {name: connected(caller) for name, caller in callers.items()}
    for name, socket in sockets.items():
        assert ask(socket, action="subscribe")["type"] == "subscribed", name
    given = {
        "ada's": ada.rate(),
        "ada's, anonymous": ada.rate(privacyFlags={"anonymize": True}),
        "ada's, elsewhere": ada.rate("other"),
        "ada's, nowhere": ada.rate(None),
        "ada's, private": signal(ada),
        "bob's": bob.rate("other"),
        "the stranger's": stranger.rate(),
    }
    names = {feedback_id: name for name, feedback_id in given.items()}
    of_ada = {name for name in given if name.startswith("ada's")}
    of_both = {*of_ada, "bob's"} - {"ada's, private"}
    sees = {
        "ada": of_ada,
        "ada without projects": of_ada,
        "bob": {"bob's"},
        "reporter": of_both - {"ada's, elsewhere", "bob's"},
        "reporter of all": of_both,
        "reporter without projects": {"ada's, nowhere"},
        "back end": set(),
        "nobody": set(),
        "stranger": {"the stranger's"},
    }
    for name, caller in callers.items():
        eventually(lambda: {names[feedback_of(event)] for event in caller.listed()}, sees[name])
        expected = {event["eventId"] for event in caller.listed()}
        received = Received(sockets[name])
        eventually(received.ids, expected)
        assert {names[feedback_of(event)] for event in received.events.values()} == sees[name], name


def test_invalid_frames_and_a_flood_affect_no_other_connection(bundle, connected):
    ada, bob = bundle.user("ada"), bundle.user("bob")
    of_ada, of_bob = connected(ada), connected(bob)
    assert ask(of_ada, action="subscribe")["type"] == "subscribed"
    for frame in ("", "{", "[]", '"subscribe"', '{"action": "leave"}', '{"action": 1}', "\0", "{}" * 1000):
        of_bob.send(frame)
        answer = json.loads(of_bob.recv(timeout=PATIENCE))
        assert (answer["type"], answer["error"]) == ("error", "invalid_request"), answer
    reporter = connected(bundle.user("eve", PROJECT, REPORT))
    foreign = ask(reporter, action="subscribe", filter={"projectId": "of-another-tenant"})
    assert (foreign["type"], foreign["error"]) == ("error", "forbidden")
    with ThreadPoolExecutor() as threads:
        answers = threads.submit(lambda: [json.loads(of_bob.recv(timeout=PATIENCE))["type"] for _ in range(FLOOD)])
        threads.submit(lambda: [of_bob.send('{"action": "subscribe"}') for _ in range(FLOOD)])
        rated = ada.rate()
        received = Received(of_ada)
        eventually(lambda: len(received.ids()), EVENTS_OF_RATING)
        assert {feedback_of(event) for event in received.events.values()} == {rated}
        assert set(answers.result()) == {"subscribed"}
    too_large = connected(bob)
    with pytest.raises(ConnectionClosed):
        too_large.send("x" * 40_000)
        too_large.recv(timeout=PATIENCE)
    assert ask(of_ada, action="ping") == {"type": "pong"}


def test_a_ticket_opens_one_connection(bundle, monkeypatch):
    ada = bundle.user("ada")
    monkeypatch.setattr(follow_feed, "URL", bundle.url)
    url = follow_feed.take_ticket(ada.token)
    with connect(url) as socket:
        assert ask(socket, action="ping") == {"type": "pong"}
    base, ticket = url.split("?ticket=")
    for query in (f"?ticket={ticket}", f"?ticket={ada.token}", f"?ticket={ticket[::-1]}", "?ticket=", ""):
        with pytest.raises(InvalidStatus) as refused:
            connect(base + query)
        assert refused.value.response.status_code == 401, query
    log = (bundle.folder / "hearback.log").read_text()
    assert ticket not in log and ada.token not in log
    with pytest.raises(follow_feed.Rejected):
        follow_feed.take_ticket("no token")
