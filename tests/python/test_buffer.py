"""The background: batches, order, failures, limits, threads, processes and the end of the interpreter."""

import collections
import contextlib
import logging
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
import uuid

import pytest
from bundle import PATIENCE, eventually
from hearback import Hearback, _buffer, _queue
from hearback._buffer import Buffer
from hearback.errors import BadRequest, ConnectionFailed, DeadlineExceeded, Forbidden, ServerError
from support_bundle import PROJECT, SupportBundle

# How many events survive a crash. 10,000 take a debug build half a minute.
EVENTS = int(os.environ.get("HEARBACK_TEST_EVENTS", "300"))


class Server:
    """Records what it is sent. `plan` is called with each request, and may raise or return a response."""

    def __init__(self, plan=lambda sent: None):
        self.plan = plan
        self.sent = []

    def batch(self, body):
        events = body["events"]
        self.sent.append(events)
        return self.plan(events) or {
            "results": [{"index": i, "feedbackId": e["feedbackId"], "status": "queued"} for i, e in enumerate(events)]
        }

    def write(self, body):
        self.sent.append(body)
        return self.plan(body) or {}

    @property
    def events(self):
        return [event["feedbackId"] for sent in self.sent if isinstance(sent, list) for event in sent]


class Gate:
    """A plan that holds each request until it is opened."""

    def __init__(self):
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, sent):
        self.reached.set()
        assert self.opened.wait(PATIENCE)


@pytest.fixture
def open_buffer():
    """Buffers that are closed after the test."""
    with contextlib.ExitStack() as opened:

        def open(server, *, size=10_000, max_bytes=1 << 26):
            buffer = Buffer(server.batch, size=size, max_bytes=max_bytes)
            opened.callback(buffer.close, 0.2)
            return buffer

        yield open


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr(_queue, "_pause", lambda failures: 0.001)


def event(id, **members):
    return {"feedbackId": id, **members}


def put_events(buffer, ids):
    return [buffer.put(event(id), feedback_id=id) for id in ids]


def total(stats):
    return stats.accepted + stats.failed + stats.dropped + stats.pending


def test_events_that_are_put_one_after_the_other_are_sent_together(open_buffer):
    server = Server()
    buffer = open_buffer(server)
    put_events(buffer, "abc")
    assert buffer.flush(PATIENCE)
    assert server.sent == [[event("a"), event("b"), event("c")]]


def test_events_wait_for_others_for_half_a_second_and_no_longer(open_buffer):
    server = Server()
    start = time.monotonic()
    put_events(open_buffer(server), "a")
    eventually(lambda: server.events, ["a"])
    assert 0.4 < time.monotonic() - start < 2


def test_a_caller_that_waits_for_an_event_does_not_wait_for_others_to_join_it(open_buffer):
    buffer = open_buffer(Server())
    start = time.monotonic()
    (delivery,) = put_events(buffer, "a")
    assert buffer.wait(delivery, PATIENCE)
    assert time.monotonic() - start < 0.4


def test_a_write_is_sent_at_once_after_the_events_before_it(open_buffer):
    server = Server()
    buffer = open_buffer(server)
    start = time.monotonic()
    put_events(buffer, "a")
    write = buffer.put({"turn": 1}, lane="c", send=server.write)
    assert buffer.wait(write, PATIENCE)
    assert server.sent == [[event("a")], {"turn": 1}]
    assert time.monotonic() - start < 0.4


def test_a_batch_has_at_most_a_thousand_events(open_buffer):
    gate = Gate()
    server = Server(gate)
    buffer = open_buffer(server)
    put_events(buffer, map(str, range(2_500)))
    assert gate.reached.wait(PATIENCE), "a full batch does not wait for the interval"
    gate.opened.set()
    assert buffer.flush(PATIENCE)
    assert [len(sent) for sent in server.sent] == [1000, 1000, 500]
    assert server.events == list(map(str, range(2_500)))


def test_a_batch_has_at_most_four_mebibytes_and_a_larger_event_is_sent_alone(open_buffer):
    server = Server()
    buffer = open_buffer(server)
    sizes = {"a": 2, "b": 1, "c": 3, "huge": 5, "d": 1}
    for id, mebibytes in sizes.items():
        buffer.put(event(id, text="x" * (mebibytes << 20)), feedback_id=id)
    assert buffer.flush(PATIENCE)
    assert [[each["feedbackId"] for each in sent] for sent in server.sent] == [["a", "b"], ["c"], ["huge"], ["d"]]


@pytest.mark.parametrize("limit", [{"size": 3}, {"max_bytes": 3 * len('{"feedbackId":"0"}')}])
def test_what_does_not_fit_is_dropped_and_counted(open_buffer, caplog, limit):
    gate = Gate()
    buffer = open_buffer(Server(gate), **limit)
    deliveries = put_events(buffer, "0")
    buffer.when_settled(deliveries[0], lambda: None)  # hurries
    assert gate.reached.wait(PATIENCE), "what is being sent counts, too"
    with caplog.at_level(logging.WARNING, "hearback"):
        deliveries += put_events(buffer, "12345")
    assert [delivery.status for delivery in deliveries] == ["pending"] * 3 + ["dropped"] * 3
    assert (buffer.stats.pending, buffer.stats.dropped) == (3, 3)
    assert len(caplog.records) == 1, "one message for all of them"
    gate.opened.set()
    assert buffer.flush(PATIENCE)
    assert (buffer.stats.accepted, buffer.stats.pending, buffer.stats.pending_bytes) == (3, 0, 0)


def test_only_a_caller_that_asks_to_waits_for_the_network(open_buffer):
    gate = Gate()
    buffer = open_buffer(Server(gate))
    put_events(buffer, "a")
    assert not buffer.flush(0.01)
    assert gate.reached.wait(PATIENCE)
    start = time.monotonic()
    put_events(buffer, "bc")
    assert total(buffer.stats) == 3
    assert time.monotonic() - start < 0.1
    gate.opened.set()


def test_the_body_is_that_of_the_call_whatever_the_caller_does_with_it_later(open_buffer):
    server = Server()
    buffer = open_buffer(server)
    body = event("a", labels={"model": "x"})
    buffer.put(body)
    body["labels"]["model"] = "y"
    assert buffer.flush(PATIENCE)
    assert server.sent == [[event("a", labels={"model": "x"})]]


def test_what_is_not_json_fails_alone(open_buffer):
    buffer = open_buffer(Server())
    deep = []
    for _ in range(100_000):
        deep = [deep]
    failed = [buffer.put({"text": text}) for text in (object(), float("nan"), deep)]
    (good,) = put_events(buffer, "a")
    assert buffer.wait(good, PATIENCE)
    assert [delivery.status for delivery in failed] == ["failed"] * 3
    assert (good.status, total(buffer.stats)) == ("accepted", 4)


def test_a_failing_item_holds_up_its_conversation_only(open_buffer, no_pauses):
    def plan(sent):
        if sent == {"turn": 1} and server.sent.count(sent) < 4:
            raise ServerError(500, {})

    server = Server(plan)
    buffer = open_buffer(server)
    for turn in (1, 2):
        buffer.put({"turn": turn}, lane="failing", send=server.write)
    buffer.put({"turn": 3}, lane="other", send=server.write)
    assert buffer.flush(PATIENCE)
    accepted = [sent["turn"] for sent in server.sent if sent != {"turn": 1}]
    assert sorted(accepted) == [2, 3], "each is sent once"
    last_attempt = len(server.sent) - 1 - server.sent[::-1].index({"turn": 1})
    assert server.sent.index({"turn": 2}) > last_attempt, "the second turn does not overtake the first"


def test_an_event_about_a_turn_does_not_overtake_it(open_buffer, no_pauses):
    def plan(sent):
        if sent == {"turn": 1} and server.sent.count(sent) == 1:
            raise ServerError(500, {})

    server = Server(plan)
    buffer = open_buffer(server)
    buffer.put({"turn": 1}, lane="c", send=server.write)
    buffer.put(event("about it"), lane="c")
    assert buffer.flush(PATIENCE)
    assert server.sent == [{"turn": 1}, {"turn": 1}, [event("about it")]]


@pytest.mark.parametrize("failure", [ConnectionFailed("refused"), ServerError(503, {}), ServerError(500, {})])
def test_an_outage_loses_nothing_and_changes_no_order(open_buffer, no_pauses, failure):
    def plan(sent):
        if len(server.sent) <= 25:
            raise failure

    server = Server(plan)
    buffer = open_buffer(server)
    for number in range(5):
        buffer.put({"turn": number}, lane="c", send=server.write)
    assert buffer.flush(PATIENCE)
    assert [sent["turn"] for sent in server.sent[25:]] == list(range(5))
    assert (buffer.stats.accepted, buffer.stats.retries) == (5, 25)


def test_an_unreachable_server_is_asked_less_and_less_and_at_once_on_a_flush(open_buffer):
    def plan(sent):
        raise ConnectionFailed("refused")

    server = Server(plan)
    buffer = open_buffer(server)
    put_events(buffer, "a")
    assert not buffer.flush(0.8)
    assert 3 <= len(server.sent) <= 6
    assert buffer.is_unreachable
    server.plan = lambda sent: None
    start = time.monotonic()
    assert buffer.flush(PATIENCE)
    assert time.monotonic() - start < 0.2
    assert not buffer.is_unreachable


def test_an_item_that_fails_by_itself_does_not_make_hearback_unreachable(open_buffer, no_pauses):
    def plan(sent):
        raise ServerError(500, {})

    server = Server(plan)
    buffer = open_buffer(server)
    put_events(buffer, "a")
    assert not buffer.flush(0.1)
    assert len(server.sent) > 3
    assert not buffer.is_unreachable


def test_the_server_decides_when_it_is_asked_again(open_buffer):
    def plan(sent):
        times.append(time.monotonic())
        if len(times) == 1:
            raise ServerError(503, {}, None, 0.7)

    times = []
    buffer = open_buffer(Server(plan))
    put_events(buffer, "a")
    assert buffer.flush(PATIENCE)
    assert 0.7 < times[1] - times[0] < 2


@pytest.mark.parametrize(
    "failure", [BadRequest(400, {}), BadRequest(413, {}), KeyError("a bug"), DeadlineExceeded("slow")]
)
def test_one_event_that_fails_a_batch_is_found_and_the_others_are_accepted(open_buffer, no_pauses, failure):
    def plan(sent):
        if event("777") in sent:
            raise failure

    server = Server(plan)
    buffer = open_buffer(server)
    deliveries = put_events(buffer, map(str, range(1_000)))
    eventually(lambda: buffer.stats.accepted, 999)
    assert sorted(set(server.events)) == sorted(map(str, range(1_000)))
    assert len(server.sent) < 60
    if isinstance(failure, BadRequest):
        assert buffer.wait(deliveries[777], PATIENCE)
        assert (deliveries[777].status, deliveries[777].error) == ("failed", failure)


def test_an_item_that_fails_again_and_again_while_others_pass_is_given_up(open_buffer, no_pauses):
    def plan(sent):
        if sent == {"turn": "bad"}:
            raise ServerError(500, {})

    server = Server(plan)
    buffer = open_buffer(server)
    bad = buffer.put({"turn": "bad"}, lane="bad", send=server.write)
    end = time.monotonic() + PATIENCE
    while bad.status == "pending" and time.monotonic() < end:
        buffer.wait(buffer.put({"turn": "good"}, lane="good", send=server.write), PATIENCE)
    assert (bad.status, bad.error.status) == ("failed", 500)


def test_each_event_of_a_batch_has_its_own_result(open_buffer, no_pauses):
    def plan(sent):
        if len(server.sent) > 1:
            return None
        errors = [{"pointer": "/events/1/data", "detail": "no"}]
        invalid = {"status": 400, "error": "invalid_request", "errors": errors}
        unavailable = {"status": 503, "error": "unavailable"}
        return {
            "results": [
                {"index": 0, "feedbackId": "new", "status": "queued"},
                {"index": 1, "feedbackId": "bad", "status": "rejected", "error": invalid},
                {"index": 2, "feedbackId": "late", "status": "failed", "error": unavailable},
                {"index": 3, "feedbackId": "known", "status": "duplicate"},
            ]
        }

    server = Server(plan)
    buffer = open_buffer(server)
    deliveries = put_events(buffer, ["new", "bad", "late", "known", "no result"])
    assert buffer.flush(PATIENCE)
    assert [delivery.status for delivery in deliveries] == ["accepted", "failed", "accepted", "accepted", "accepted"]
    assert [tuple(member) for member in deliveries[1].error.errors] == [("/data", "no")]
    assert sorted(server.events[5:]) == ["late", "no result"]


def test_a_token_without_the_right_fails_the_batch_without_a_search(open_buffer):
    def plan(sent):
        raise Forbidden(403, {})

    server = Server(plan)
    buffer = open_buffer(server)
    put_events(buffer, "abc")
    assert buffer.flush(PATIENCE)
    assert (len(server.sent), buffer.stats.failed) == (1, 3)


def test_rejections_for_different_reasons_are_all_logged(open_buffer, caplog):
    def plan(sent):
        raise failures.pop()

    failures = [Forbidden(403, {}), BadRequest(400, {}), BadRequest(400, {})]
    server = Server(plan)
    buffer = open_buffer(server)
    with caplog.at_level(logging.WARNING, "hearback"):
        for number in range(3):
            buffer.put({"turn": number}, send=server.write)
        # The thread logs what callers know already.
        eventually(
            lambda: [record.args[0].split(":")[0] for record in caplog.records], ["BadRequest", "Forbidden"]
        )


def test_a_bug_is_logged_with_its_traceback_and_the_thread_goes_on(open_buffer, no_pauses, caplog):
    def plan(sent):
        if len(server.sent) == 1:
            raise RuntimeError("secret")

    server = Server(plan)
    buffer = open_buffer(server)
    with caplog.at_level(logging.WARNING, "hearback"):
        put_events(buffer, "a")
        assert buffer.flush(PATIENCE)
    assert "RuntimeError" in caplog.text and "Traceback" in caplog.text
    assert all("secret" not in record.getMessage() for record in caplog.records)
    assert buffer.stats.accepted == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_loses_nothing(open_buffer):
    def plan(sent):
        if len(server.sent) == 1:
            raise SystemExit

    server = Server(plan)
    buffer = open_buffer(server)
    first = buffer.put({"turn": 1}, lane="c", send=server.write)
    assert not buffer.wait(first, 0.2)
    buffer.put({"turn": 2}, lane="c", send=server.write)
    assert buffer.flush(PATIENCE)
    assert [sent["turn"] for sent in server.sent] == [1, 1, 2]


def test_several_threads_wait_for_one_outcome(open_buffer):
    gate = Gate()
    buffer = open_buffer(Server(gate))
    (delivery,) = put_events(buffer, "a")
    outcomes = []
    waiting = [threading.Thread(target=lambda: outcomes.append(buffer.wait(delivery, PATIENCE))) for _ in range(8)]
    for thread in waiting:
        thread.start()
    assert gate.reached.wait(PATIENCE)
    assert not buffer.wait(delivery, 0.01)
    gate.opened.set()
    for thread in waiting:
        thread.join(PATIENCE)
    assert outcomes == [True] * 8


def test_a_callback_comes_once_and_a_cancelled_one_never(open_buffer):
    buffer = open_buffer(Server())
    calls = []
    (delivery,) = put_events(buffer, "a")
    cancel = buffer.when_settled(delivery, lambda: calls.append("cancelled"))
    cancel()
    buffer.when_settled(delivery, lambda: calls.append("before"))
    assert buffer.flush(PATIENCE)
    buffer.when_settled(delivery, lambda: calls.append("after"))
    eventually(lambda: sorted(calls), ["after", "before"])


def test_the_numbers_add_up_at_any_time_with_many_threads_and_a_bad_server(open_buffer, no_pauses):
    def plan(sent):
        if random.random() < 0.3:
            raise random.choice([ConnectionFailed("refused"), ServerError(503, {}), BadRequest(400, {})])

    buffer = open_buffer(Server(plan), size=400)
    putters = [threading.Thread(target=put_events, args=(buffer, map(str, range(1_000)))) for _ in range(6)]
    for thread in putters:
        thread.start()
    before = 0
    while any(thread.is_alive() for thread in putters):
        now = total(buffer.stats)
        assert before <= now <= 6_000
        assert buffer.stats.pending <= 400
        before = now
    assert buffer.flush(PATIENCE)
    stats = buffer.stats
    assert (total(stats), stats.pending, stats.pending_bytes) == (6_000, 0, 0)


def test_flush_does_not_wait_for_what_comes_later(open_buffer):
    def plan(sent):
        put_events(buffer, [str(uuid.uuid4())])

    buffer = open_buffer(Server(plan))
    put_events(buffer, "a")
    assert buffer.flush(PATIENCE)


def test_close_drops_what_it_cannot_send_and_says_how_much(open_buffer, caplog):
    gate = Gate()
    buffer = open_buffer(Server(gate))
    deliveries = put_events(buffer, "abc")
    with caplog.at_level(logging.WARNING, "hearback"):
        start = time.monotonic()
        buffer.close(0.1)
        assert time.monotonic() - start < 1
    deliveries += put_events(buffer, "d")
    assert [delivery.status for delivery in deliveries] == ["dropped"] * 4
    assert "3 items were left" in caplog.text
    gate.opened.set()
    eventually(lambda: buffer._thread.is_alive(), False)
    assert (buffer.stats.dropped, buffer.stats.accepted) == (4, 0), "an outcome that comes too late changes nothing"


def test_a_thread_without_work_ends_and_another_starts_with_new_work(open_buffer, monkeypatch):
    monkeypatch.setattr(_buffer, "_IDLE", 0.05)
    buffer = open_buffer(Server())
    put_events(buffer, "a")
    assert buffer.flush(PATIENCE)
    thread = buffer._thread
    eventually(lambda: buffer._thread, None)
    thread.join(PATIENCE)
    put_events(buffer, "b")
    assert buffer.flush(PATIENCE)
    assert buffer.stats.accepted == 2


def test_putting_is_fast(open_buffer):
    gate = Gate()
    buffer = open_buffer(Server(gate))
    start = time.monotonic()
    put_events(buffer, map(str, range(10_000)))
    assert time.monotonic() - start < 2
    gate.opened.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_delivers_its_own_and_not_what_the_parent_does(open_buffer):
    reading, writing = os.pipe()
    gate = Gate()
    server = Server(gate)
    buffer = open_buffer(server)
    (parents,) = put_events(buffer, "a")
    buffer.when_settled(parents, lambda: None)
    assert gate.reached.wait(PATIENCE), "the thread is in the middle of a request"
    if os.fork() == 0:
        # No test may go on in the child.
        try:
            server.sent.clear()
            gate.opened.set()
            put_events(buffer, "b")
            flushed = buffer.flush(PATIENCE)
            os.write(writing, repr((flushed, parents.status, server.events, buffer.stats.accepted)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read().decode() == "(True, 'dropped', ['b'], 1)"
    os.wait()
    gate.opened.set()
    assert buffer.flush(PATIENCE)
    assert (server.events, parents.status) == (["a"], "accepted")


def run(script, **environment):
    """Runs a program that uses the client, to its end."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("ends", ["", "signal.raise_signal(signal.SIGTERM)"])
def test_a_program_that_ends_without_closing_delivers_its_feedback(bundle, user, ends):
    token = bundle.token("back-end", scope="feedback:on-behalf feedback:report")
    script = f"""
        import hearback, os, signal, sys
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        user = os.environ["USER_ID"]
        hb = hearback.Hearback()
        hb.project("support").conversation(user, user_id=user).register("Hi", "Hello", turn_id="turn-1").ok("thanks")
        hb.submit({{"userId": user, "sessionId": "s", "feedbackChannel": "explicit", "feedbackType": "rating",
                   "feedbackId": os.environ["FEEDBACK_ID"], "data": {{"rating": 5}}}})
        {ends}
    """
    feedback_id = str(uuid.uuid4())
    run(script, HEARBACK_URL=bundle.url, HEARBACK_TOKEN=token, USER_ID=user, FEEDBACK_ID=feedback_id)
    with Hearback(bundle.url, token) as hb:
        turn = hb.api.get_turn(
            tenant="acme", project=PROJECT, conversation_id=user, turn_id="turn-1", user_id=user
        )
        assert [reaction["reaction"]["text"] for reaction in turn["reactions"]] == ["thanks"]
        assert hb.api.get_feedback(feedback_id=feedback_id)["event"]["userId"] == user


def test_what_is_put_when_the_interpreter_already_ends_is_sent_or_dropped_but_never_hangs():
    script = """
        import atexit
        atexit.register(lambda: print(len(fake.events), hb.stats.dropped))  # after what is registered later
        from hearback.testing import FakeHearback
        fake = FakeHearback()
        hb = fake.client()
        def late():
            hb.submit({"feedbackId": "late", "userId": "u", "sessionId": "s", "feedbackChannel": "explicit"})
        atexit.register(late)
    """
    accepted, dropped = map(int, run(script).stdout.split())
    assert accepted + dropped == 1


def test_a_program_ends_soon_although_hearback_is_not_there():
    script = """
        import hearback
        hb = hearback.Hearback("http://127.0.0.1:9", "token", tenant="acme")
        hb.submit({"userId": "u", "sessionId": "s", "feedbackChannel": "explicit"})
        hb.close(0.3)
    """
    start = time.monotonic()
    assert "1 items were left" in run(script).stderr
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_a_second_signal_ends_a_program_at_once(sent):
    script = f"""
        import hearback, os, signal, sys, threading
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        hb = hearback.Hearback("http://127.0.0.1:9", "token", tenant="acme")
        hb.submit({{"userId": "u", "sessionId": "s", "feedbackChannel": "explicit"}})
        interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.{sent}))
        interrupt.daemon = True
        interrupt.start()
    """
    done = run(script)
    assert "1 items were left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_crash_of_the_server_during_a_flush_loses_and_repeats_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_queue, "BATCH_EVENTS", EVENTS // 10)
    bundle = SupportBundle(tmp_path)
    ids = [str(uuid.uuid4()) for _ in range(EVENTS)]
    with Hearback(bundle.url, bundle.token("back-end", scope="feedback:on-behalf feedback:report")) as hb:
        receipts = [hb.submit(dwell_time(id)) for id in ids]
        eventually(lambda: hb.stats.accepted >= EVENTS // 5)
        bundle.kill()
        assert hb.stats.pending > 0
        bundle.start()
        assert hb.flush(PATIENCE)
        assert collections.Counter(receipt.status for receipt in receipts) == {"accepted": EVENTS}
        eventually(lambda: len(listed(hb)) >= EVENTS, patience=120)
        counts = collections.Counter(listed(hb))
    bundle.stop()
    assert counts == collections.Counter(ids)


def dwell_time(id):
    """An event that nothing is learned from, and that is no duplicate of another."""
    return {
        "feedbackId": id,
        "userId": "user-123",
        "sessionId": id,
        "feedbackChannel": "implicit",
        "feedbackType": "dwell-time",
        "data": {"timeSpent": 1},
    }


def listed(hb):
    return [message.event["feedbackId"] for message in hb.feed(limit=500)]
