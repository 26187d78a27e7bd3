"""Turns through both clients, against a bundle: the five lines, knowledge before the answer, outages, strict mode."""

import asyncio
import contextlib
import gc
import inspect
import logging
import threading
import time
import uuid

import httpx
import pytest
from bundle import PATIENCE, TENANT, eventually
from hearback import AsyncHearback, BadRequest, ConnectionFailed, Forbidden, Hearback, Previous, TokenError
from network import CuttingProxy, Scripted, hangs
from support_bundle import PROJECT, SupportBundle

CORRECTION = "No, I meant online orders"


class Sync:
    """The synchronous client as an asynchronous one, so that each test is written once."""

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def __getattr__(self, name):
        value = getattr(self._wrapped, name)
        if not inspect.ismethod(value):
            return value

        async def call(*args, **kwargs):
            result = value(*args, **kwargs)
            return Sync(result) if hasattr(result, "begin") or hasattr(result, "ok") else result

        plain = {"project", "conversation", "turn"}
        return (lambda *args, **kwargs: Sync(value(*args, **kwargs))) if name in plain else call


@pytest.fixture(params=[Hearback, AsyncHearback])
def connect(request):
    """Opens a client of either kind, and closes it after the block."""

    @contextlib.asynccontextmanager
    async def connect(url, token, **options):
        if request.param is AsyncHearback:
            async with AsyncHearback(url, token, **options) as hb:
                yield hb
        else:
            with Hearback(url, token, **options) as hb:
                yield Sync(hb)

    return connect


@pytest.fixture(scope="session")
def back_end(bundle):
    return bundle.token("back-end", scope="feedback:on-behalf feedback:report")


async def waited(receipt, **options):
    result = receipt.wait(PATIENCE, **options)
    return await result if inspect.isawaitable(result) else result


def stored(bundle, token, conversation, turn_id, **query):
    with Hearback(bundle.url, token) as hb:
        return hb.api.get_turn(
            tenant=TENANT, project=PROJECT, conversation_id=conversation, turn_id=turn_id, **query
        )


def test_the_five_lines(bundle, user, monkeypatch):
    monkeypatch.setenv("HEARBACK_URL", bundle.url)
    monkeypatch.setenv("HEARBACK_TOKEN", bundle.token(user))
    prompt = ""
    with Hearback() as hb:
        conversation = hb.project("support").conversation("c-1")
        conversation.begin("How do I return an item?").complete("In the shop.")

        turn = conversation.begin("No, I meant online orders")
        if turn.previous.rejected:
            prompt += turn.context
        turn.complete("Within 14 days.")
        receipt = turn.ok("thanks")
        assert hb.flush(PATIENCE)

        assert "online orders" in prompt
        assert receipt.wait(PATIENCE, processed=True).status == "processed"
        assert hb.api.get_feedback(feedback_id=receipt.id)["event"]["feedbackType"] == "artifact-acceptance"
        assert hb.stats.accepted == 3


def test_a_rejection_is_known_before_the_answer(bundle, user, connect):
    async def scenario():
        async with connect(bundle.url, bundle.token(user)) as hb:
            conversation = hb.project(PROJECT).conversation()
            first = await conversation.begin("How do I return an item?")
            assert (first.previous, first.context, first.clarify) == (Previous(), "", False)
            await first.complete("In the shop.")

            second = await conversation.begin(CORRECTION)
            assert second.previous.rejected and not second.previous.accepted
            assert second.previous.turn_id == first.id
            assert second.previous.confidence == 0.9
            assert second.previous.evidence[0]["cue"] == "correction"
            assert f'- Follow the user\'s correction: "{CORRECTION}"' in second.context.splitlines()
            await second.complete("By post.")

            third = await conversation.begin("that is not what I asked")
            assert third.clarify and third.previous.consecutive_rejections == 2

    asyncio.run(scenario())


def test_an_answer_has_what_is_known_when_it_begins_and_when_it_is_complete(bundle, user, connect):
    async def scenario():
        async with connect(bundle.url, bundle.token(user)) as hb:
            conversation = hb.project(PROJECT).conversation(labels={"model": "m", "prompt_version": "v1"})
            turn = await conversation.begin(
                {"text": "Hi", "locale": "en"}, turn_id="t", trace_id="4f3a", labels={"prompt_version": "v2"}
            )
            receipt = await turn.complete("Hello", agent_id="router", labels={"tools": "none"})
            assert (await waited(receipt)).error is None
            return conversation.id, turn

    conversation, turn = asyncio.run(scenario())
    read = stored(bundle, bundle.token(user), conversation, "t")
    assert read["user"] == {"text": "Hi", "locale": "en"}
    assert read["assistant"] == {"text": "Hello", "message_id": turn.message_id}
    assert (read["trace_id"], read["agent_id"], read["status"]) == ("4f3a", "router", "complete")


def test_a_back_end_acts_for_its_user(bundle, user, back_end, connect):
    async def scenario():
        async with connect(bundle.url, back_end) as hb:
            conversation = hb.project(PROJECT).conversation(user_id=user)
            first = await conversation.begin("How do I return an item?", turn_id="t1")
            await first.complete("In the shop.")
            second = await conversation.begin(CORRECTION)
            assert CORRECTION in second.context
            assert (await waited(await first.not_ok("Wrong"))).status == "accepted"
            return conversation.id

    read = stored(bundle, bundle.token(user), asyncio.run(scenario()), "t1")
    assert (read["user_id"], read["user_feedback_status"]) == (user, "rejected")
    assert read["reactions"][0]["reaction"]["text"] == "Wrong"


def test_a_user_changes_and_withdraws_a_reaction(bundle, user, connect):
    async def scenario():
        async with connect(bundle.url, bundle.token(user)) as hb:
            conversation = hb.project(PROJECT).conversation()
            turn = await conversation.register("Hi", "Hello", turn_id="t")
            for react in (turn.ok, turn.neutral, turn.not_ok, turn.clear):
                receipt = await react()
            assert (await waited(receipt)).status == "accepted"
            return conversation.id

    assert stored(bundle, bundle.token(user), asyncio.run(scenario()), "t")["reactions"] == []


def test_a_click_may_arrive_in_another_process(bundle, user, back_end, connect):
    async def scenario():
        async with connect(bundle.url, back_end) as hb:
            turn = await hb.project(PROJECT).conversation("clicks", user_id=user).register("Hi", "Hello")
            await waited(turn.receipt)
        async with connect(bundle.url, back_end) as hb:
            registered = hb.project(PROJECT).conversation("clicks", user_id=user).turn(turn.id)
            assert registered.id == turn.id
            assert (await waited(await registered.not_ok("wrong"), processed=True)).status == "processed"
            unknown = hb.project(PROJECT).conversation("clicks", user_id=user).turn("unknown")
            assert (await waited(await unknown.ok())).error.status == 404
            tenant = hb.tenant()
            return turn.id, await tenant if inspect.isawaitable(tenant) else tenant

    turn_id, tenant = asyncio.run(scenario())
    assert tenant == TENANT
    assert stored(bundle, back_end, "clicks", turn_id, user_id=user)["user_feedback_status"] == "rejected"


def test_a_submitted_event_gets_an_id_at_once_and_its_outcome_later(bundle, user, connect):
    async def scenario():
        async with connect(bundle.url, bundle.token(user)) as hb:
            event = {
                "userId": user,
                "sessionId": "s",
                "artifactId": "a",
                "feedbackChannel": "explicit",
                "feedbackType": "rating",
                "data": {"rating": 5},
            }
            first, second, bad = [await hb.submit(each) for each in (event, event, {**event, "data": {"rating": 9}})]
            assert uuid.UUID(first.id) != uuid.UUID(second.id)
            assert (await waited(first, processed=True)).status == "processed"
            assert (await waited(second, processed=True)).status == "deduplicated"
            assert (await waited(bad, processed=True)).status == "failed"
            assert isinstance(bad.error, BadRequest)
            assert [member.pointer for member in bad.error.errors] == ["/data/rating"]

    asyncio.run(scenario())


def test_without_hearback_the_application_goes_on_and_the_turn_is_registered_later(tmp_path, connect, caplog):
    bundle = SupportBundle(tmp_path)
    token = bundle.token("user-123")
    bundle.stop()

    async def scenario():
        async with connect(bundle.url, token, patience=0.3) as hb:
            conversation = hb.project(PROJECT).conversation("c")
            for number in range(3):
                start = time.monotonic()
                turn = await conversation.begin(f"Question {number}", turn_id=f"t{number}")
                assert time.monotonic() - start < 0.6
                assert (turn.previous, turn.context, turn.clarify) == (Previous(), "", False)
                receipt = await turn.complete(f"Answer {number}")
                await turn.ok()
            assert receipt.status == "pending"
            assert (hb.stats.unanswered, hb.stats.pending) == (3, 6)
            bundle.start()
            assert await hb.flush(PATIENCE)
            assert (receipt.status, hb.stats.accepted) == ("accepted", 6)

    with caplog.at_level(logging.WARNING, "hearback"):
        asyncio.run(scenario())

    def outcome():
        turns = [stored(bundle, token, "c", f"t{number}") for number in range(3)]
        return [(turn["assistant"]["text"], turn["user_feedback_status"]) for turn in turns]

    eventually(outcome, [(f"Answer {number}", "accepted") for number in range(3)])
    bundle.stop()
    assert len(caplog.records) == 2, "one message of the turns, one of the background"
    assert "Question" not in caplog.text and token not in caplog.text


def test_a_hanging_server_takes_no_more_than_the_patience(connect):
    async def scenario(url):
        async with connect(url, "token", tenant=TENANT, patience=0.3) as hb:
            start = time.monotonic()
            await hb.project(PROJECT).conversation().begin("Hi")
            assert 0.25 < time.monotonic() - start < 0.6
            assert hb.stats.unanswered == 1

    with Scripted(hangs) as server:
        asyncio.run(scenario(server.url))


def test_a_hanging_server_delays_three_callers_until_the_background_finds_out(connect):
    async def scenario(url):
        async with connect(url, "token", tenant=TENANT, patience=0.05) as hb:
            for _ in range(10):
                turn = await hb.project(PROJECT).conversation().begin("Hi")
                await turn.complete("Hello")
            assert hb.stats.unanswered == 10
            await hb.close(0.0)

    with Scripted(hangs) as server:
        asyncio.run(scenario(server.url))
        # Those of three callers, and one of the background.
        assert len(server.requests) == 4


def test_a_slow_function_for_the_token_takes_no_more_than_the_patience():
    released = threading.Event()

    def token():
        released.wait(PATIENCE)
        return "token"

    with Hearback("http://127.0.0.1:9", token, tenant=TENANT, patience=0.2) as hb:
        start = time.monotonic()
        turn = hb.project(PROJECT).conversation().begin("Hi")
        assert time.monotonic() - start < 0.5
        assert turn.previous == Previous()
        released.set()


def test_after_some_failures_no_caller_waits_until_the_background_reaches_hearback_again(connect):
    async def scenario():
        async with connect("http://127.0.0.1:9", "token", tenant=TENANT, patience=0.4) as hb:
            conversation = hb.project(PROJECT).conversation()
            await (await conversation.register("Hi", "Hello")).ok()
            assert not await hb.flush(0.6)
            start = time.monotonic()
            for _ in range(20):
                await conversation.begin("Are you there?")
            assert time.monotonic() - start < 0.2
            assert hb.stats.unanswered == 20
            await hb.close(0.0)

    asyncio.run(scenario())


def test_a_response_that_is_lost_does_not_make_a_second_turn_or_a_conflict(bundle, user, connect):
    async def scenario(url):
        async with connect(url, bundle.token(user), patience=5.0) as hb:
            turn = await hb.project(PROJECT).conversation(f"lost-{user}").begin("Hi", turn_id="t")
            assert (await waited(await turn.complete("Hello"))).status == "accepted"
            assert hb.stats.failed == 0

    with CuttingProxy(bundle.port, "before response", None, "before response", "response") as proxy:
        asyncio.run(scenario(proxy.url))
    assert stored(bundle, bundle.token(user), f"lost-{user}", "t")["status"] == "complete"


def test_a_reaction_to_a_turn_that_could_not_begin_registers_it(bundle, user, connect):
    async def scenario(url):
        async with connect(url, bundle.token(user), patience=0.05) as hb:
            turn = await hb.project(PROJECT).conversation(f"late-{user}").begin("Hi", turn_id="t")
            return await waited(await turn.ok())

    with CuttingProxy(bundle.port, "request") as proxy:
        assert asyncio.run(scenario(proxy.url)).status == "accepted"
    assert stored(bundle, bundle.token(user), f"late-{user}", "t")["status"] == "open"


def test_a_conversation_waits_for_its_own_answer_only(connect):
    """The answer before must arrive first; that of another conversation need not."""
    held = threading.Event()
    paths = []

    def respond(request):
        paths.append(request.url.path.split("/")[4])
        if b"assistant" in request.content:
            assert held.wait(PATIENCE)
        return httpx.Response(200, json={"detection": None})

    async def scenario():
        async with connect("http://x", "token", tenant=TENANT, transport=httpx.MockTransport(respond)) as hb:
            waiting, other = (hb.project(PROJECT).conversation(name) for name in ("waiting", "other"))
            await waiting.register("Hi", "Hello")
            await other.begin("Hi")
            assert hb.stats.unanswered == 0
            threading.Timer(0.1, held.set).start()
            await waiting.begin("And then?")
            assert paths[-1] == "waiting"
            assert (hb.stats.unanswered, hb.stats.accepted) == (0, 1)

    asyncio.run(scenario())


def test_strict_mode_raises_where_it_happens(bundle, user, connect):
    async def scenario():
        async with connect(bundle.url, bundle.token(user), strict=True) as hb:
            conversation = hb.project(PROJECT).conversation(user_id="somebody-else")
            with pytest.raises(Forbidden):
                await conversation.begin("Hi")
            turn = await hb.project(PROJECT).conversation().begin("Hi")
            assert (await turn.complete("Hello")).status == "accepted"
            with pytest.raises(BadRequest, match="/text"):
                await turn.ok("x" * 1001)
            assert (await waited(await turn.ok(), processed=True)).status == "processed"
            with pytest.raises(BadRequest, match="/sessionId"):
                await hb.submit({"userId": user, "feedbackChannel": "explicit"})

    asyncio.run(scenario())


def test_strict_mode_raises_without_a_server(monkeypatch):
    monkeypatch.setattr("hearback._engine.DEADLINE", 0.2)
    with Hearback("http://127.0.0.1:9", "token", tenant=TENANT, strict=True) as hb, pytest.raises(ConnectionFailed):
        hb.project(PROJECT).conversation().begin("Hi")


def test_what_cannot_work_is_an_error_at_once():
    with pytest.raises(TokenError):
        Hearback()
    with pytest.raises(ValueError, match="tenant"), Hearback(token="opaque") as hb:
        hb.project(PROJECT)


def test_an_asynchronous_function_for_the_token(bundle, user):
    async def token():
        await asyncio.sleep(0)
        return bundle.token(user)

    async def scenario():
        async with AsyncHearback(bundle.url, token) as hb:
            turn = await hb.project(PROJECT).conversation().begin("Hi")
            assert (await (await turn.complete("Hello")).wait(PATIENCE)).status == "accepted"
            assert hb.stats.unanswered == 0

    asyncio.run(scenario())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_asynchronous_client_in_two_event_loops(bundle, user):
    hb = AsyncHearback(bundle.url, bundle.token(user))
    conversation = hb.project(PROJECT).conversation()

    async def say(message):
        turn = await conversation.begin(message)
        await turn.complete("In the shop.")
        return turn

    asyncio.run(say("How do I return an item?"))
    assert asyncio.run(say(CORRECTION)).previous.rejected
    asyncio.run(hb.close())
    # The connections of the first loop end with it, without having been closed.
    del hb, conversation
    gc.collect()


def test_a_cancelled_wait_leaves_the_item_in_the_background(bundle, user):
    async def scenario():
        async with AsyncHearback(bundle.url, bundle.token(user)) as hb:
            receipt = await hb.submit({"userId": user, "sessionId": "s", "feedbackChannel": "implicit"})
            waiting = asyncio.ensure_future(receipt.wait())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await receipt.wait(PATIENCE)).status == "accepted"

    asyncio.run(scenario())
