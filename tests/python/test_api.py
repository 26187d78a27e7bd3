"""Every operation of the API through the client, against a bundle. Each response must fit its type."""

import asyncio
import contextlib
import datetime
import http.server
import inspect
import json
import pathlib
import re
import threading
import urllib.request
import uuid

import pytest
from bundle import TENANT, eventually
from hearback import errors
from hearback._transport import AsyncTransport, Transport
from hearback.api import Api, AsyncApi
from shapes import Checked, CheckedAsync
from support_bundle import PROJECT

# Of what the user says second, and what it implies about the first answer.
CORRECTION = "No, I meant online orders, not the shop"
EVERYTHING = "feedback:on-behalf feedback:report feedback:admin feedback:operate"


@pytest.fixture
def api(bundle, user):
    """The API as a user sees it."""
    with connected(bundle, bundle.token(user)) as api:
        yield api


@pytest.fixture
def back_end(bundle):
    """The API as a back end with every scope sees it."""
    with connected(bundle, bundle.token("back-end", scope=EVERYTHING)) as api:
        yield api


@contextlib.contextmanager
def connected(bundle, token):
    transport = Transport(bundle.url, token)
    try:
        yield Checked(Api(transport))
    finally:
        transport.close()


@pytest.fixture
def conversation():
    return {"tenant": TENANT, "project": PROJECT, "conversation_id": f"conv-{uuid.uuid4()}"}


@pytest.fixture
def message_id():
    return f"msg-{uuid.uuid4()}"


@pytest.fixture
def hook():
    """The URL of a server that accepts every webhook."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Accepting)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    thread.join()
    server.server_close()


class Accepting(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def rating(user, stars=5, **context):
    return {
        "feedbackId": str(uuid.uuid4()),
        "userId": user,
        "sessionId": "session-1",
        "artifactId": f"artifact-{uuid.uuid4()}",
        "feedbackChannel": "explicit",
        "feedbackType": "rating",
        "data": {"rating": stars, "comment": "Clear, and short"},
        "context": context,
    }


def acceptance(user, accepted=True, **context):
    return rating(user, **context) | {"feedbackType": "artifact-acceptance", "data": {"accepted": accepted}}


def turn(user_text, answer, **more):
    return {"user": {"text": user_text}, "assistant": {"text": answer}, **more}


def rejected_turn(api, conversation):
    """Registers a turn, and one that rejects it."""
    first = turn("How do I return an item?", "At the counter of the shop.", strategy="shop_search")
    api.register_turn(**conversation, turn_id="turn-1", body=first)
    return api.register_turn(**conversation, turn_id="turn-2", body={"user": {"text": CORRECTION}})


def window():
    now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)
    return {"start": (now - day).isoformat(), "end": (now + day).isoformat()}


# Turns


def test_a_turn_is_registered_in_two_steps_and_read(api, conversation, user, message_id):
    body = {"user": {"text": "How do I return an item?"}, "language": "en", "labels": {"model": "m-1"}}
    opened = api.register_turn(**conversation, turn_id="turn-1", body=body)
    assert (opened["status"], opened["detection"]) == ("open", None)

    answer = {"text": "Within 30 days.", "message_id": message_id}
    completed = api.register_turn(**conversation, turn_id="turn-1", body=body | {"assistant": answer})
    assert completed == opened | {"status": "complete"}

    read = api.get_turn(**conversation, turn_id="turn-1")
    assert (read["user_id"], read["status"], read["labels"]) == (user, "complete", {"model": "m-1"})
    assert (read["user"], read["assistant"]) == (body["user"], answer)
    assert read["user_feedback_status"] == "neutral"


def test_another_body_of_a_turn_is_a_conflict(api, conversation):
    api.register_turn(**conversation, turn_id="turn-1", body=turn("Hello", "Hi"))
    with pytest.raises(errors.Conflict) as raised:
        api.register_turn(**conversation, turn_id="turn-1", body=turn("Hello", "Good morning"))
    assert raised.value.error == "turn_conflict"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "50 % off?", "año", "ü#x;y=z&w", "%2e%2e"])
def test_an_identifier_may_be_any_text(api, name, user):
    conversation = {"tenant": TENANT, "project": PROJECT, "conversation_id": f"{user}/{name}"}
    registered = api.register_turn(**conversation, turn_id=name, body=turn("Hello", "Hi"))
    assert (registered["conversation_id"], registered["turn_id"]) == (f"{user}/{name}", name)
    assert api.get_turn(**conversation, turn_id=name)["turn_id"] == name


def test_half_of_a_surrogate_pair_does_not_cost_the_turn(api, conversation):
    api.register_turn(**conversation, turn_id="turn-1", body=turn("Thanks \ud83d", "\ud83d\ude00 \U0001f600"))
    read = api.get_turn(**conversation, turn_id="turn-1")
    assert (read["user"], read["assistant"]) == ({"text": "Thanks \ufffd"}, {"text": "\U0001f600 \U0001f600"})


def test_a_rejection_is_detected_and_explained(api, conversation):
    detection = rejected_turn(api, conversation)["detection"]
    assert (detection["previous_turn_id"], detection["feedback_type"]) == ("turn-1", "rejected")

    context = api.get_feedback_context(**conversation, turn_id="turn-1")
    assert (context["status"], context["rejection"]["detected_by"]) == ("rejected", "follow_up")
    assert any("online orders" in instruction for instruction in context["rejection"]["instructions"])

    project = {"tenant": TENANT, "project": PROJECT}
    listed = api.list_turns_by_status(**project, user_feedback_status="rejected", limit=5)
    assert [turn["turn_id"] for turn in listed["turns"]] == ["turn-1"]


def test_what_was_heard_wrong_is_corrected_and_listed(api, back_end, conversation):
    rejected_turn(api, conversation)
    heard = api.get_turn(**conversation, turn_id="turn-1")["user_feedback"]
    body = {"feedback_type": "neutral", "detected_at": heard["detected_at"]}
    corrected = api.correct_inference(**conversation, turn_id="turn-1", body=body)
    assert (corrected["user_feedback"]["status"], len(corrected["withdrawn"])) == ("neutral", 1)

    project = {"tenant": TENANT, "project": PROJECT}
    listed = back_end.list_corrections(**project, limit=5)["corrections"]
    [example] = [each for each in listed if each["conversation_id"] == conversation["conversation_id"]]
    assert (example["message"], example["was"], example["feedback_type"]) == (CORRECTION, "rejected", "neutral")
    turns = api.list_turns(**conversation)["turns"]
    assert [(each["turn_id"], each["corrected"]) for each in turns] == [("turn-1", True), ("turn-2", False)]


def test_a_message_is_detected_without_a_turn(api):
    detected = api.detect_feedback(body={"message": CORRECTION, "prev_query": "How do I return an item?"})
    assert detected["feedback_type"] == "rejected"
    assert detected["evidence"]


def test_feedback_is_inferred_about_a_similar_turn(api, conversation):
    asked = turn("Which gaming laptops cost less than 1000 dollars?", "Here are three business laptops.")
    api.register_turn(**conversation, turn_id="turn-1", body=asked)
    body = {"message": "No, that is wrong: I asked for gaming laptops that cost less than 1000 dollars"}
    inferred = api.infer_feedback(tenant=TENANT, project=PROJECT, body=body)
    assert [target["turn_id"] for target in inferred["targets"]] == ["turn-1"]
    assert inferred["rn"].startswith(f"ef:{TENANT}:{PROJECT}:{conversation['conversation_id']}:turn-1:artifact:")


def test_strategies_of_similar_turns_are_found(api, conversation):
    body = turn("gaming laptops under 1000 dollars", "These are for gaming.", strategy="commerce_search")
    api.register_turn(**conversation, turn_id="turn-1", body=body)
    query = {"query": "a gaming laptop under 900 dollars"}
    found = api.search_strategies(tenant=TENANT, project=PROJECT, body=query)
    assert [strategy["strategy"] for strategy in found["strategies"]] == ["commerce_search"]


def test_a_timeline_gets_new_feedback_once(api, conversation):
    api.register_turn(**conversation, turn_id="turn-1", body=turn("Hello", "Hi"))
    api.react_to_turn(**conversation, turn_id="turn-1", body={"reaction": "not_ok", "text": "Too short"})
    body = {"turn_ids": ["turn-1"], "cache": {"ttl_seconds": 0}}
    refreshed = api.refresh_timeline(**conversation, body=body)
    assert refreshed["cache"] == "cold"
    assert "Too short" in refreshed["blocks"][0]["text"]

    known = {"blocks": refreshed["blocks"], "last_known_feedback_ts": refreshed["last_known_feedback_ts"]}
    assert api.refresh_timeline(**conversation, body=body | known)["blocks"] == []


# Reactions and reports


def test_a_reaction_is_stored_replaced_cleared_and_reported(api, conversation):
    api.register_turn(**conversation, turn_id="turn-1", body=turn("Hello", "Hi"))
    at = {**conversation, "turn_id": "turn-1"}
    first = api.react_to_turn(**at, body={"reaction": "not_ok", "text": "Too short"})
    assert (first["reaction"], first["applied"], first["cleared"]) == ("not_ok", True, False)
    second = api.react_to_turn(**at, body={"reaction": "ok"})
    assert second["feedback_id"] != first["feedback_id"]

    report = api.list_turns_with_feedback(**conversation, body={"limit": 10})
    assert [of["reaction"]["reaction"] for of in report["turns"][0]["reactions"]] == ["ok"]
    project = {"tenant": TENANT, "project": PROJECT}
    period = api.list_conversations_in_period(**project, body={**window(), "include_turns": True})
    assert [item["feedback_counts"]["ok"] for item in period["items"]] == [1]

    assert api.react_to_turn(**at, body={"reaction": None})["cleared"] is True


def test_a_back_end_acts_for_a_user(back_end, conversation, user):
    back_end.register_turn(**conversation, turn_id="turn-1", body=turn("Hello", "Hi", user_id=user))
    body = {"reaction": "ok", "origin": "machine", "confidence": 0.9, "user_id": user}
    assert back_end.react_to_turn(**conversation, turn_id="turn-1", body=body)["reaction"] == "ok"
    at = {**conversation, "turn_id": "turn-1", "user_id": user}
    assert back_end.get_turn(**at)["user_id"] == user
    # The status follows from the reaction, usually within a second.
    eventually(lambda: back_end.get_turn(**at)["user_feedback_status"], "accepted")


# Events


def test_an_event_is_submitted_processed_and_withdrawn(api, user):
    event = rating(user)
    submitted = api.submit_feedback(body=event)
    assert (submitted["feedbackId"], submitted["status"]) == (event["feedbackId"], "queued")

    eventually(lambda: api.get_feedback(feedback_id=event["feedbackId"])["status"], "processed")
    record = api.get_feedback(feedback_id=event["feedbackId"])
    assert record["event"]["data"] == event["data"]
    assert "reward" in {signal["signalType"] for signal in record["signals"]}

    assert api.withdraw_feedback(feedback_id=event["feedbackId"]) is None
    assert api.get_feedback(feedback_id=event["feedbackId"])["status"] == "retracted"


def test_the_id_of_an_event_is_used_once(api, user):
    event = rating(user)
    api.submit_feedback(body=event)
    with pytest.raises(errors.Conflict, match="409 duplicate_feedback_id"):
        api.submit_feedback(body=event)


def test_a_batch_has_a_result_for_each_event(api, user):
    event = rating(user)
    results = api.submit_feedback_batch(body={"events": [event, event, rating(user, stars=9)]})
    assert [result["status"] for result in results["results"]] == ["queued", "duplicate", "rejected"]
    assert results["results"][2]["error"]["errors"][0]["pointer"] == "/events/2/data/rating"


def test_the_feed_lists_what_was_published(api, user):
    event = rating(user)
    api.submit_feedback(body=event)
    eventually(lambda: bool(api.list_events(type="rating", limit=10)["events"]))
    page = api.list_events(type="rating", limit=10)
    assert page["events"][0]["eventType"] == "feedback.processed"
    assert page["events"][0]["feedbackId"] == event["feedbackId"]
    assert api.list_events(after=page["last_event_id"])["events"]


def test_a_ticket_opens_the_live_feed_once(api):
    ticket = api.create_stream_ticket()
    assert ticket["url"].startswith("ws")
    assert ticket["ticket"]


def test_invalid_members_are_named(api, user):
    event = rating(user, stars=6) | {"feedbackId": "no"}
    with pytest.raises(errors.BadRequest) as raised:
        api.submit_feedback(body=event)
    members = {"/feedbackId": "must be a UUID", "/data/rating": "must be an integer from 1 to 5"}
    assert dict(raised.value.errors) == members
    for pointer, detail in members.items():
        assert f"{pointer} {detail}" in str(raised.value)
    assert raised.value.request_id in str(raised.value)
    assert "Clear, and short" not in str(raised.value)


def test_what_is_not_the_callers_is_an_error(api):
    with pytest.raises(errors.NotFound, match="404 not_found"):
        api.get_feedback(feedback_id=str(uuid.uuid4()))
    with pytest.raises(errors.Forbidden, match="403 forbidden"):
        api.get_preferences(user_id="somebody-else")
    with pytest.raises(ValueError, match="feedbackId"):
        api.get_feedback(feedback_id="")


# Message signals


def test_a_message_signal_is_sent_listed_and_withdrawn(api, conversation, message_id):
    answer = {"text": "Within 30 days.", "message_id": message_id}
    body = {"user": {"text": "How do I return an item?"}, "assistant": answer}
    api.register_turn(**conversation, turn_id="turn-1", body=body)

    signal = {"message_id": message_id, "signal": "edit", "reason": "Within 60 days."}
    sent = api.send_message_signal(body=signal)
    assert api.send_message_signal(body=signal) == sent

    listed = api.list_message_signals(message_id=message_id)["feedback"]
    assert [(row["id"], row["signal"], row["reason"]) for row in listed] == [(sent["id"], "edit", "Within 60 days.")]
    assert api.withdraw_message_signal(message_id=message_id, signal="edit") is None
    assert api.list_message_signals(message_id=message_id)["feedback"] == []


# Preferences


def test_preferences_are_changed_read_resolved_and_reset(api, user):
    with pytest.raises(errors.NotFound):
        api.get_preferences(user_id=user)
    patch = {
        "preferenceVersion": 0,
        "globalPreferences": {"detailLevel": "deep-dive"},
        "artifactPreferences": {"checklist": {"preferredFormat": "bullet-list"}},
    }
    assert api.update_preferences(user_id=user, body=patch)["preferenceVersion"] == 1
    with pytest.raises(errors.Conflict) as raised:
        api.update_preferences(user_id=user, body=patch)
    assert raised.value.problem["currentVersion"] == 1

    read = api.get_preferences(user_id=user)
    assert read["artifactPreferences"]["checklist"]["preferredFormat"] == "bullet-list"
    resolved = api.resolve_preferences(user_id=user, artifact_type="checklist")
    assert (resolved["preferredFormat"], resolved["source"]["preferredFormat"]) == ("bullet-list", "user")

    assert api.reset_preferences(user_id=user, if_match='"1"')["preferenceVersion"] == 2
    assert api.reset_preferences(user_id=user)["preferenceVersion"] == 3
    history = api.list_preference_versions(user_id=user, limit=2)
    assert [version["cause"]["kind"] for version in history["versions"]] == ["reset", "reset"]
    history = api.list_preference_versions(user_id=user, before=history["next"])
    assert [version["cause"] for version in history["versions"]] == [{"kind": "update"}]


def test_preferences_are_learned(api, user):
    event = acceptance(user, artifactType="checklist", artifactFormat="table")
    api.submit_feedback(body=event)
    eventually(lambda: api.resolve_preferences(user_id=user)["preferenceVersion"] > 0)
    (version,) = api.list_preference_versions(user_id=user)["versions"]
    assert version["cause"]["feedbackIds"] == [event["feedbackId"]]
    with pytest.raises(errors.NotFound):
        api.get_preferences(user_id=user, anonymous=True)


# Insights


def test_insights_count_and_compare(bundle, user):
    # A project of its own, so that no other test is counted.
    project = f"project-{user}"
    with connected(bundle, bundle.token(user, projects=project, scope="feedback:report")) as api:
        for model, stars in (("m-1", 5), ("m-1", 4), ("m-2", 1)):
            api.submit_feedback(body=rating(user, stars, projectId=project, labels={"model": model}))
        eventually(lambda: api.get_insights(project_id=project)["total"]["events"], 3)

        report = api.get_insights(project_id=project, group_by="label.model", interval="hour", values=1)
        groups = {group["value"]: group["total"]["accepted"] for group in report["groups"] if not group["other"]}
        assert groups["m-1"] == 2
        assert report["total"]["ratings"] == {"1": 1, "2": 0, "3": 0, "4": 1, "5": 1}
        again = api.get_insights(project_id=project, interval="hour", from_=report["from"], to=report["to"])
        assert (again["from"], again["total"]["events"]) == (report["from"], 3)

        compared = api.get_comparison(project_id=project, by="label.model", a="m-1", b="m-2", points=10)
        assert (compared["verdict"], compared["points"]) == ("cannot_tell_yet", 10)
        assert (compared["a"]["accepted"], compared["b"]["rejected"]) == (2, 1)


# Users


def test_the_data_of_a_user_is_erased(api, user):
    api.submit_feedback(body=rating(user))
    requested = api.erase_user_data(user_id=user)
    assert (requested["userId"], requested["status"]) == (user, "pending")
    assert api.get_erasure(user_id=user)["erasureId"] == requested["erasureId"]
    assert api.erase_user_data(user_id=user)["erasureId"] == requested["erasureId"]
    with pytest.raises(errors.Conflict, match="erasure_in_progress"):
        api.create_stream_ticket()


# Webhooks


def test_a_webhook_is_put_tested_renewed_and_deleted(bundle, user, hook):
    token = bundle.token(user, tenant=f"tenant-of-{user}", scope="feedback:admin")
    with connected(bundle, token) as api:
        made = api.put_webhook(name="crm", body={"url": hook, "outcomes": ["rejected"]})
        assert made["secret"].startswith("whsec_")
        assert "secret" not in api.put_webhook(name="crm", body={"url": hook})
        assert [webhook["name"] for webhook in api.list_webhooks()["webhooks"]] == ["crm"]
        assert api.test_webhook(name="crm") == {"delivered": True, "status": 204}
        assert api.rotate_webhook_secret(name="crm")["secret"] != made["secret"]
        assert api.delete_webhook(name="crm") is None
        with pytest.raises(errors.NotFound):
            api.delete_webhook(name="crm")


# Operations


def test_dead_letters_are_listed_and_moved_back(bundle):
    with connected(bundle, bundle.token("root", scope="feedback:operate")) as api:
        listed = api.list_queues()
        assert "signals" in [queue["name"] for queue in listed["queues"]]
        dead = {letters["queue"]: letters for letters in listed["deadLetters"]}
        assert dead["imports"]["redrivable"] and not dead["stream"]["redrivable"]
        assert api.redrive_dead_letters(queue="imports") == {"moved": 0, "failed": 0, "remaining": 0}
        with pytest.raises(errors.Conflict, match="not_redrivable"):
            api.redrive_dead_letters(queue="stream")


# For asyncio


def test_the_same_for_asyncio(bundle, user, conversation, message_id):
    async def converse(api):
        first = turn("How do I return an item?", "At the counter of the shop.")
        first["assistant"]["message_id"] = message_id
        await api.register_turn(**conversation, turn_id="turn-1", body=first)
        opened = await api.register_turn(**conversation, turn_id="turn-2", body={"user": {"text": CORRECTION}})
        assert opened["detection"]["feedback_type"] == "rejected"
        context = await api.get_feedback_context(**conversation, turn_id="turn-1")
        assert context["rejection"]["instructions"]
        reacted = await api.react_to_turn(**conversation, turn_id="turn-1", body={"reaction": "ok"})
        assert reacted["reaction"] == "ok"
        while (await api.get_turn(**conversation, turn_id="turn-1"))["user_feedback_status"] != "accepted":
            await asyncio.sleep(0.02)
        await api.send_message_signal(body={"message_id": message_id, "signal": "helpful"})
        assert len((await api.list_message_signals())["feedback"]) == 1
        await api.withdraw_message_signal(message_id=message_id, signal="helpful")

        events = [rating(user) for _ in range(20)]
        await asyncio.gather(*(api.submit_feedback(body=event) for event in events[:10]))
        batch = await api.submit_feedback_batch(body={"events": events})
        assert (batch["queued"], batch["duplicates"]) == (10, 10)
        assert (await api.get_feedback(feedback_id=events[0]["feedbackId"]))["event"]["userId"] == user
        await api.withdraw_feedback(feedback_id=events[0]["feedbackId"])
        assert (await api.resolve_preferences(user_id=user))["detailLevel"] == "standard"
        with pytest.raises(errors.Conflict):
            await api.submit_feedback(body=events[1])
        with pytest.raises(errors.Forbidden):
            await api.list_webhooks()

    async def connect():
        transport = AsyncTransport(bundle.url, bundle.token(user))
        try:
            await converse(CheckedAsync(AsyncApi(transport)))
        finally:
            await transport.close()

    asyncio.run(connect())


# The document


def test_no_operation_is_missing(bundle):
    with urllib.request.urlopen(f"{bundle.url}/openapi.json") as response:
        paths = json.load(response)["paths"]
    operations = {operation["operationId"] for path in paths.values() for operation in path.values()}
    for api in (Api, AsyncApi):
        methods = {name for name, of in inspect.getmembers(api, inspect.isfunction) if not name.startswith("_")}
        assert methods - {"within", "send"} == operations
    source = pathlib.Path(__file__).read_text()
    assert set(re.findall(r"\b(?:api|back_end)\.(\w+)\(", source)) == operations, "each is called by a test of this file"
