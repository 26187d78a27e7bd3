"""Retries, deadlines and tokens, for threads and for asyncio, over a network that fails."""

import asyncio
import base64
import json
import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
import traceback
import uuid

import hearback._retry as policy
import httpx
import pytest
from bundle import TENANT, eventually
from hearback import errors
from hearback._operation import Operation
from hearback._settings import base_url, tenant
from hearback._transport import AsyncTransport, Transport
from hearback.api import Api, AsyncApi
from network import CuttingProxy, Reply, Scripted, date, hangs, hangs_up, trickles
from support_bundle import PROJECT

TOKEN = "a-token.that-nobody.may-see"
DETECTED = {"feedback_type": "neutral", "confidence": 0.5, "evidence": []}
DETECT = {"body": {"message": "Hello"}}
UNAVAILABLE = Reply(503, {"error": "unavailable", "status": 503})
OK = Reply(200, DETECTED)
WEBHOOK_TESTED = Reply(200, {"delivered": True})


class Threads:
    """Calls an operation of an `Api`."""

    def __call__(self, operation, url, token=TOKEN, within=None, **options):
        arguments = options.pop("arguments", DETECT)
        transport = Transport(url, token, **options)
        try:
            api = Api(transport, within)
            return getattr(api, operation)(**arguments)
        finally:
            transport.close()


class Asyncio:
    """Calls an operation of an `AsyncApi`."""

    def __call__(self, operation, url, token=TOKEN, within=None, **options):
        arguments = options.pop("arguments", DETECT)

        async def call():
            transport = AsyncTransport(url, token, **options)
            try:
                api = AsyncApi(transport, within)
                return await getattr(api, operation)(**arguments)
            finally:
                await transport.close()

        return asyncio.run(call())


@pytest.fixture(params=[Threads(), Asyncio()], ids=["threads", "asyncio"])
def call(request):
    return request.param


FIRST_PAUSE = policy.FIRST_PAUSE


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(policy, "FIRST_PAUSE", 0.005)


@pytest.fixture
def elapsed():
    start = time.monotonic()
    return lambda: time.monotonic() - start


# Which responses are repeated


def test_a_storm_of_errors_passes(call):
    script = [UNAVAILABLE, Reply(429), Reply(502, b"<html>"), Reply(504), Reply(500), Reply(408), OK]
    with Scripted(*script) as server:
        assert call("detect_feedback", server.url) == DETECTED
    assert len(server.requests) == len(script)
    assert len({body for *_, body in server.requests}) == 1


@pytest.mark.parametrize(
    "status, error",
    [
        (302, errors.ApiError),
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (405, errors.ApiError),
        (409, errors.Conflict),
        (413, errors.BadRequest),
        (422, errors.BadRequest),
        (501, errors.ServerError),
    ],
)
def test_what_does_not_pass_is_not_repeated(call, status, error):
    with Scripted(Reply(status, {"error": "some_error"}, Location="/elsewhere")) as server:
        with pytest.raises(error, match=f"^{status} some_error$") as raised:
            call("detect_feedback", server.url)
    assert (type(raised.value), raised.value.status) == (error, status)
    assert len(server.requests) == 1


def test_without_retry_the_first_failure_is_the_error():
    with Scripted(UNAVAILABLE) as server:
        transport = Transport(server.url, TOKEN)
        with pytest.raises(errors.ServerError):
            Api(transport).within(5, retry=False).detect_feedback(**DETECT)
        transport.close()
    assert len(server.requests) == 1


def test_the_error_of_a_gateway_is_understood(call):
    with Scripted(Reply(403, {"message": "Forbidden"})) as server, pytest.raises(errors.Forbidden, match="Forbidden"):
        call("detect_feedback", server.url)
    with Scripted(Reply(404, b"<html>nginx</html>")) as server, pytest.raises(errors.NotFound, match="^404: The response is not of Hearback"):
        call("detect_feedback", server.url)


def test_a_redirect_says_that_the_address_is_wrong(call):
    moved = Reply(301, b"", Location="https://feedback.example.com/v1/feedback/detect")
    with Scripted(moved) as server, pytest.raises(errors.ApiError, match="^301: .* Is HEARBACK_URL right"):
        call("detect_feedback", server.url)


def test_a_success_that_is_not_json_is_an_error(call):
    with Scripted(Reply(200, b"<html>Sign in to the wireless network</html>")) as server:
        with pytest.raises(errors.ApiError, match="^200: The response is not JSON.$"):
            call("detect_feedback", server.url)


# When


def test_retry_after_is_a_number_of_seconds(elapsed):
    with Scripted(Reply(503, Retry_After="1"), OK) as server:
        Threads()("detect_feedback", server.url)
    assert 1.0 <= elapsed() < 5


def test_retry_after_is_a_time_of_a_clock_that_is_an_hour_ahead(elapsed):
    with Scripted(Reply(503, Retry_After=date(3600 + 1.5), hours=1), OK) as server:
        Threads()("detect_feedback", server.url)
    # A date has whole seconds.
    assert 0.5 < elapsed() < 5


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"retry-after": "120"}, 120),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Fri, 27 Nov 2026 10:00:30 GMT", "date": "Fri, 27 Nov 2026 10:00:00 GMT"}, 30),
        ({"retry-after": "Fri, 27 Nov 2026 09:59:59 GMT", "date": "Fri, 27 Nov 2026 10:00:00 GMT"}, 0),
        ({"retry-after": "Fri, 27 Nov 2026 10:00:30 GMT", "date": "today"}, None),
        ({"retry-after": "Fri, 27 Nov 1998 10:00:30 GMT"}, 0),
    ],
)
def test_retry_after_is_read(headers, seconds):
    assert policy.retry_after(headers) == seconds


def test_pauses_double_up_to_five_seconds_with_jitter(monkeypatch):
    monkeypatch.setattr(policy, "FIRST_PAUSE", FIRST_PAUSE)

    def pauses():
        request = Operation("GET", "/v1/webhooks").request()
        attempts = policy.exchange(request, timeout=10, end=time.monotonic() + 1000, renewable=False)
        assert next(attempts).pause == 0
        while True:
            yield attempts.send(policy.Lost("ReadError", sent=True, timed_out=False)).pause

    limits = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]
    drawn = [dict(zip(limits, pauses())) for _ in range(50)]
    for limit in limits:
        assert max(draw[limit] for draw in drawn) <= limit
        assert min(draw[limit] for draw in drawn) < limit / 2 < max(draw[limit] for draw in drawn)


def test_a_pause_beyond_the_deadline_raises_the_last_error_at_once(call, elapsed):
    with Scripted(Reply(503, {"error": "unavailable"}, Retry_After="60")) as server:
        with pytest.raises(errors.ServerError) as raised:
            call("detect_feedback", server.url, deadline=30)
    assert raised.value.retry_after == 60
    assert len(server.requests) == 1
    assert elapsed() < 3


def test_a_storm_that_does_not_pass_ends_before_the_deadline(call, elapsed, monkeypatch):
    # The last attempt begins 0.7 seconds after the first. One that begins just before the deadline ends in it.
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    with Scripted(UNAVAILABLE) as server, pytest.raises(errors.ServerError):
        call("detect_feedback", server.url, within=1.2)
    assert len(server.requests) > 1
    assert elapsed() < 3


@pytest.mark.parametrize("reply", [hangs, trickles])
def test_the_deadline_ends_an_attempt(call, elapsed, reply):
    with Scripted(reply) as server:
        with pytest.raises(errors.DeadlineExceeded):
            call("detect_feedback", server.url, within=0.3)
        assert 0.3 <= elapsed() < 3


def test_an_attempt_that_takes_too_long_is_repeated(call):
    with Scripted(hangs, OK) as server:
        assert call("detect_feedback", server.url, timeout=0.1) == DETECTED


def test_a_server_that_is_down_is_waited_for(call, elapsed):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(errors.ConnectionFailed, match=f"{url}: ConnectError"):
        call("detect_feedback", url, deadline=0.5)
    assert elapsed() < 3


def test_a_last_attempt_without_time_does_not_hide_why_the_others_failed():
    request = Operation("GET", "/v1/feedback/{feedbackId}").request(path={"feedbackId": "f"})
    attempts = policy.exchange(request, timeout=60, end=time.monotonic() + 30, renewable=False)
    next(attempts)
    attempts.send(policy.Lost("ConnectError: refused", sent=False, timed_out=False))
    with pytest.raises(errors.ConnectionFailed, match="refused"):
        attempts.send(policy.Lost("ConnectTimeout", sent=False, timed_out=True))


def test_a_bundle_that_restarts_costs_no_event(bundle, user):
    transport = Transport(bundle.url, bundle.token(user))
    api = Api(transport)
    api.submit_feedback(body=event_of(user))
    bundle.stop()
    starting = threading.Timer(0.2, bundle.start)
    starting.start()
    event = event_of(user)
    api.submit_feedback(body=event)
    assert api.get_feedback(feedback_id=event["feedbackId"])["feedbackId"] == event["feedbackId"]
    starting.join()
    transport.close()


# What was executed although its response was lost


def event_of(user):
    return {
        "feedbackId": str(uuid.uuid4()),
        "userId": user,
        "sessionId": "session-1",
        "feedbackChannel": "explicit",
        "feedbackType": "rating",
        "data": {"rating": 5, "comment": "A comment that is long enough to be cut somewhere in the middle"},
    }


class Acts:
    """Operations over a proxy that cuts their first attempts, and what is stored afterwards."""

    def __init__(self, bundle, user, call, cuts):
        self.user, self.call, self.port, self.cuts = user, call, bundle.port, cuts
        self.token = bundle.token(user, scope="feedback:admin", tenant=f"tenant-of-{user}")
        self.turn = {"tenant": f"tenant-of-{user}", "project": PROJECT, "conversation_id": "c", "turn_id": "turn-1"}
        self.transport = Transport(bundle.url, self.token)
        self.api = Api(self.transport)

    def cut(self, operation, **arguments):
        with CuttingProxy(self.port, *self.cuts) as proxy:
            reply = self.call(operation, proxy.url, self.token, arguments=arguments)
        assert proxy.cuts == [], "every cut was made"
        return reply

    def register(self):
        body = {"user": {"text": "How do I return an item?"}, "assistant": {"text": "Within 30 days."}}
        return self.turn, {**self.turn, "body": body}


@pytest.fixture(
    params=[["request"], ["before response"], ["response"], ["before response", "request", "response"]], ids="+".join
)
def acts(request, bundle, user, call):
    acts = Acts(bundle, user, call, request.param)
    yield acts
    acts.transport.close()


def test_a_submitted_event_is_there_once(acts):
    event = event_of(acts.user)
    reply = acts.cut("submit_feedback", body=event)
    # With the body of the first response, also after a 409.
    assert reply == {"feedbackId": event["feedbackId"], "dedupeKey": reply["dedupeKey"], "status": "queued"}
    eventually(lambda: acts.api.get_feedback(feedback_id=event["feedbackId"])["status"], "processed")
    assert acts.api.get_feedback(feedback_id=event["feedbackId"])["dedupeKey"] == reply["dedupeKey"]
    processed = [of for of in acts.api.list_events()["events"] if of["eventType"] == "feedback.processed"]
    assert [of["feedbackId"] for of in processed] == [event["feedbackId"]]


def test_a_batch_is_there_once(acts):
    events = [event_of(acts.user) | {"artifactId": f"artifact-{index}"} for index in range(3)]
    reply = acts.cut("submit_feedback_batch", body={"events": events})
    assert {result["status"] for result in reply["results"]} <= {"queued", "duplicate"}
    for event in events:
        eventually(lambda: acts.api.get_feedback(feedback_id=event["feedbackId"])["status"], "processed")
    processed = [of for of in acts.api.list_events()["events"] if of["eventType"] == "feedback.processed"]
    assert sorted(of["feedbackId"] for of in processed) == sorted(event["feedbackId"] for event in events)


def test_a_turn_and_its_reaction_are_there_once(acts):
    turn, arguments = acts.register()
    reply = acts.cut("register_turn", **arguments)
    assert reply == acts.api.register_turn(**arguments)
    reply = acts.cut("react_to_turn", **turn, body={"reaction": "not_ok", "text": "Too short"})
    (reaction,) = acts.api.get_turn(**turn)["reactions"]
    assert reaction["meta"]["rn"] == reply["rn"]


def test_an_event_is_withdrawn(acts):
    event = event_of(acts.user)
    acts.api.submit_feedback(body=event)
    assert acts.cut("withdraw_feedback", feedback_id=event["feedbackId"]) is None
    assert acts.api.get_feedback(feedback_id=event["feedbackId"])["status"] == "retracted"


def test_a_webhook_is_put_and_deleted(acts):
    acts.cut("put_webhook", name="crm", body={"url": "http://127.0.0.1:1/hook"})
    assert len(acts.api.list_webhooks()["webhooks"]) == 1
    # The repeat is 404 if an attempt has deleted it.
    assert acts.cut("delete_webhook", name="crm") is None
    assert acts.api.list_webhooks()["webhooks"] == []


def test_preferences_are_reset_once_with_if_match(bundle, user, call):
    acts = Acts(bundle, user, call, ["before response"])
    acts.api.update_preferences(user_id=user, body={"preferenceVersion": 0})
    # The API does not tell whose change is current.
    with pytest.raises(errors.Conflict, match="version_conflict") as raised:
        acts.cut("reset_preferences", user_id=user, if_match='"1"')
    assert raised.value.problem["currentVersion"] == 2
    with pytest.raises(errors.ConnectionFailed):
        acts.cut("reset_preferences", user_id=user)
    assert acts.api.get_preferences(user_id=user)["preferenceVersion"] == 3
    acts.transport.close()


DUPLICATE = Reply(409, {"error": "duplicate_feedback_id", "feedbackId": "f-1"})
READ = Reply(200, {"feedbackId": "f-1", "dedupeKey": "key", "status": "processed"})
NOT_FOUND = Reply(404, {"error": "not_found"})


@pytest.mark.parametrize("first", [hangs_up, Reply(500), Reply(504), UNAVAILABLE])
def test_a_duplicate_is_ones_own_after_an_attempt_that_may_have_been_executed(call, first):
    with Scripted(first, DUPLICATE, UNAVAILABLE, READ) as server:
        reply = call("submit_feedback", server.url, arguments={"body": event_of("ada")})
    assert reply == {"feedbackId": "f-1", "dedupeKey": "key", "status": "queued"}
    assert [path for _, path, *_ in server.requests[2:]] == ["/v1/feedback/f-1"] * 2


@pytest.mark.parametrize("first", [[], [Reply(429)], [Reply(503, {"error": "overloaded"})]])
def test_any_other_duplicate_is_a_conflict(call, first):
    with Scripted(*first, DUPLICATE) as server, pytest.raises(errors.Conflict):
        call("submit_feedback", server.url, arguments={"body": event_of("ada")})
    assert len(server.requests) == len(first) + 1


def test_a_duplicate_that_the_caller_cannot_read_is_a_conflict(call):
    with Scripted(hangs_up, DUPLICATE, NOT_FOUND) as server, pytest.raises(errors.Conflict):
        call("submit_feedback", server.url, arguments={"body": event_of("ada")})


def test_a_webhook_that_never_existed_is_not_found(call):
    with Scripted(Reply(429), NOT_FOUND) as server, pytest.raises(errors.NotFound):
        call("delete_webhook", server.url, arguments={"name": "crm"})


# Operations that are not repeatable


UNSAFE = {
    "create_stream_ticket": {},
    "rotate_webhook_secret": {"name": "crm"},
    "test_webhook": {"name": "crm"},
    "reset_preferences": {"user_id": "ada"},
}


@pytest.mark.parametrize("operation", UNSAFE)
@pytest.mark.parametrize("reply, error", [(hangs_up, errors.ConnectionFailed), (UNAVAILABLE, errors.ServerError)])
def test_what_may_have_been_executed_is_not_repeated(call, operation, reply, error):
    with Scripted(reply, OK) as server, pytest.raises(error):
        call(operation, server.url, arguments=UNSAFE[operation])
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [Reply(429), Reply(408), Reply(503, {"error": "overloaded"})])
def test_what_was_certainly_not_executed_is_repeated(call, reply):
    with Scripted(reply, WEBHOOK_TESTED) as server:
        assert call("test_webhook", server.url, arguments={"name": "crm"})["delivered"]


def test_a_reset_is_repeatable_with_if_match(call):
    with Scripted(hangs_up, Reply(200, {"preferenceVersion": 2})) as server:
        call("reset_preferences", server.url, arguments={"user_id": "ada", "if_match": '"1"'})
    assert [headers["If-Match"] for _, _, headers, _ in server.requests] == ['"1"'] * 2


# Tokens


def issuer(*tokens):
    """A function that returns one token after the other."""
    return iter(tokens).__next__


def test_a_rejected_token_is_replaced_once(call):
    with Scripted(Reply(401), OK) as server:
        call("detect_feedback", server.url, issuer("old", "new"))
    assert server.tokens == ["old", "new"]
    with Scripted(Reply(401)) as server, pytest.raises(errors.Unauthorized):
        call("detect_feedback", server.url, issuer("old", "new", "newer"))
    assert server.tokens == ["old", "new"]


def test_an_unsafe_operation_is_repeated_with_a_fresh_token(call):
    with Scripted(Reply(401), UNAVAILABLE) as server, pytest.raises(errors.ServerError):
        call("test_webhook", server.url, issuer("old", "new"), arguments={"name": "crm"})
    assert server.tokens == ["old", "new"]


def test_a_token_function_may_be_asynchronous():
    tokens = issuer("old", "new")

    async def issued():
        return tokens()

    with Scripted(Reply(401), OK) as server:
        Asyncio()("detect_feedback", server.url, issued)
    assert server.tokens == ["old", "new"]


def test_of_many_calls_with_an_expired_token_the_first_asks_for_all():
    valid = []

    def reply(handler):
        is_valid = handler.headers["Authorization"] == "Bearer token-2"
        handler.send(OK if is_valid else Reply(401))

    def issue():
        valid.append(f"token-{len(valid) + 1}")
        return valid[-1]

    with Scripted(reply) as server:
        transport = Transport(server.url, issue)
        api = Api(transport)
        threads = [threading.Thread(target=api.detect_feedback, kwargs=DETECT) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        transport.close()
    assert valid == ["token-1", "token-2"]

    async def gathered():
        transport = AsyncTransport(server.url, issue)
        api = AsyncApi(transport)
        await asyncio.gather(*(api.detect_feedback(**DETECT) for _ in range(8)))
        await transport.close()

    valid.clear()
    with Scripted(reply) as server:
        asyncio.run(gathered())
    assert valid == ["token-1", "token-2"]


def test_the_token_of_the_environment_is_used(call, monkeypatch):
    monkeypatch.setenv("HEARBACK_TOKEN", f" {TOKEN}\n")
    with Scripted(OK) as server:
        monkeypatch.setenv("HEARBACK_URL", server.url)
        call("detect_feedback", None, None)
    assert server.tokens == [TOKEN]


def fails():
    raise RuntimeError("the identity provider is down")


@pytest.mark.parametrize("token", [None, "", "two words", "line\nbreak", "tökén", lambda: "", lambda: None, fails])
def test_without_a_usable_token_nothing_is_sent(call, token):
    with Scripted(OK) as server, pytest.raises(errors.TokenError) as raised:
        call("detect_feedback", server.url, token)
    assert server.requests == []
    if isinstance(token, str) and token:
        assert token not in repr(raised.value)


FAILURES = {
    "refused": [Reply(401, {"error": "unauthorized"})],
    "server": [UNAVAILABLE],
    "lost": [hangs_up],
    "late": [hangs],
    "not JSON": [Reply(200, b"<html>")],
    "conflict": [hangs_up, DUPLICATE, NOT_FOUND],
}


@pytest.mark.parametrize("failure", FAILURES)
def test_neither_token_nor_body_is_in_an_error_or_a_log(call, failure, caplog):
    caplog.set_level(logging.DEBUG)
    body = event_of("ada")
    with Scripted(*FAILURES[failure]) as server, pytest.raises(errors.HearbackError) as raised:
        call("submit_feedback", server.url, within=0.2, arguments={"body": body})
    raised_from = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    ours = [frame for frame in raised_from.stack if "/hearback/" in frame.filename]
    local = [repr(frame.locals) for frame in ours if frame.name in {"send", "_attempt", "exchange"}]
    assert local, "the frames of the transport were looked at"
    texts = [caplog.text, str(raised.value), repr(raised.value), *local]
    assert not [text for text in texts if TOKEN in text]
    assert not [text for text in texts[:3] if body["data"]["comment"] in text]
    assert raised.value.__cause__ is None


def test_no_repr_has_the_token():
    transport = Transport("http://127.0.0.1:1", TOKEN)
    asynchronous = AsyncTransport("http://127.0.0.1:1", TOKEN)
    seen = [transport, asynchronous, Api(transport), vars(Api(transport)), vars(transport), vars(asynchronous)]
    seen += [vars(transport._tokens), transport.token()]
    assert not [each for each in seen if TOKEN in repr(each)]
    transport.close()


def test_an_error_can_be_sent_to_another_process():
    problem = {"error": "invalid_request", "errors": [{"pointer": "/a", "detail": "must be a string"}]}
    error = errors.BadRequest(400, problem, "id-1", 2.0)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.errors, copy.retry_after) == (str(error), [("/a", "must be a string")], 2.0)
    assert str(error) == "400 invalid_request /a must be a string (request id-1)"


# Processes, event loops, settings


FORK = """
import os, sys
from hearback._transport import Transport
from hearback.api import Api
api = Api(Transport(sys.argv[1], sys.argv[2]))
detect = lambda: api.detect_feedback(body={"message": "That is wrong"})["feedback_type"]
assert detect() == "rejected"
children = [os.fork() for _ in range(1)]
if children[0] == 0:
    os._exit(0 if all(detect() == "rejected" for _ in range(50)) else 1)
assert all(detect() == "rejected" for _ in range(50))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_parent_and_child_of_a_fork_have_their_own_connections(bundle, user):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FORK, bundle.url, bundle.token(user)]
    assert subprocess.run(command, env=environment, timeout=20).returncode == 0


def test_a_client_works_in_one_event_loop_after_the_other():
    async def detect():
        detected = await AsyncApi(transport).detect_feedback(**DETECT)
        await transport.close()
        return detected

    with Scripted(OK) as server:
        transport = AsyncTransport(server.url, TOKEN)
        assert asyncio.run(detect()) == asyncio.run(detect()) == DETECTED


def test_a_transport_replaces_the_network():
    def handle(request):
        assert request.headers["User-Agent"].startswith("hearback-python/")
        return httpx.Response(200, json={"webhooks": []})

    transport = Transport("https://hearback.example/prefix/", TOKEN, transport=httpx.MockTransport(handle))
    assert Api(transport).list_webhooks() == {"webhooks": []}


@pytest.mark.parametrize(
    "url", ["hearback.example", "ftp://hearback.example", "http://", "https://u:p@h.example", "https://h?a=b", "http://h:port"]
)
def test_a_url_that_cannot_be_right_is_rejected(url):
    with pytest.raises(ValueError, match="URL of Hearback") as raised:
        base_url(url)
    assert "u:p" not in str(raised.value)


def test_settings_come_from_the_argument_the_environment_and_a_default(monkeypatch):
    claims = base64.urlsafe_b64encode(json.dumps({"tenant": TENANT}).encode()).decode().rstrip("=")
    assert (base_url(None), tenant(None, f"e30.{claims}.x")) == ("http://127.0.0.1:3000", TENANT)
    monkeypatch.setenv("HEARBACK_URL", "https://hearback.example/")
    monkeypatch.setenv("HEARBACK_TENANT", "globex")
    assert (base_url(None), tenant(None, f"e30.{claims}.x")) == ("https://hearback.example", "globex")
    assert (base_url("http://[::1]:3000"), tenant("initech", TOKEN)) == ("http://[::1]:3000", "initech")
    monkeypatch.delenv("HEARBACK_TENANT")
    for opaque in ("opaque", "a.b.c", "e30.bnVsbA.x", "e30.W10.x"):
        with pytest.raises(ValueError, match="the token is not a JWT"):
            tenant(None, opaque)
    with pytest.raises(ValueError, match="has no claim `tenant`"):
        tenant(None, "e30.e30.x")


def test_a_closed_client_says_so():
    transport = Transport("http://127.0.0.1:9", "token")
    transport.close()
    with pytest.raises(errors.HearbackError, match="the client was closed"):
        Api(transport).detect_feedback(body={"message": "hi"})
