"""Published messages reach the URLs of webhooks, signed as Standard Webhooks describes, whatever a target does."""

import http.server
import json
import os
import pathlib
import subprocess
import threading
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import pytest
from bundle import EVENTS_OF_RATING, PATIENCE, TENANT, Bundle, default_command, eventually, free_ports
from standardwebhooks import Webhook, WebhookVerificationError

COMMAND = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
ADMIN = "feedback:admin"
# In seconds. A target must answer within 10.
TOO_LONG = 30


class Call:
    """A request that a target received."""

    def __init__(self, headers, body):
        self.headers = dict(headers)
        self.body = body
        self.id = headers["webhook-id"]

    @property
    def message(self):
        """What it says it is, without a check."""
        return json.loads(self.body)

    def verified(self, secret):
        """The message, if this secret has signed it."""
        return Webhook(secret).verify(self.body, self.headers)


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        call = Call(self.headers, self.rfile.read(int(self.headers["content-length"])))
        self.server.calls.append(call)
        status = self.server.answer(call)
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Target(http.server.ThreadingHTTPServer):
    """Receives webhooks. `answer` returns the status for each call, or `None` to close the connection."""

    daemon_threads = True

    def __init__(self, answer=lambda call: 200, **headers):
        super().__init__(("127.0.0.1", 0), Receiver)
        self.answer = answer
        self.headers = headers
        self.calls = []
        self.connections = 0
        threading.Thread(target=self.serve_forever, args=[0.05], daemon=True).start()

    def get_request(self):
        self.connections += 1
        return super().get_request()

    def handle_error(self, *_):
        """The other side has closed the connection."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hearback"

    @property
    def ids(self):
        return sorted(call.id for call in self.calls)

    def close(self):
        self.shutdown()
        self.server_close()


class Webhooks:
    """The webhooks of one tenant, and its administrator."""

    def __init__(self, bundle, tenant):
        self.admin = bundle.user("admin", tenant=tenant, scope=ADMIN)
        self.user = bundle.user("ada", tenant=tenant)

    def put(self, name, url, **wanted):
        return self.admin.call("PUT", f"/v1/webhooks/{name}", {"url": url, **wanted})

    def test(self, name):
        return self.admin.call("POST", f"/v1/webhooks/{name}/test")

    def rotate(self, name):
        return self.admin.call("POST", f"/v1/webhooks/{name}/secret")["secret"]

    def listed(self, name):
        [webhook] = [one for one in self.admin.call("GET", "/v1/webhooks")["webhooks"] if one["name"] == name]
        return webhook

    def published(self):
        """The messages about the user's feedback, by their ids."""
        return {
            event["id"]: {name: value for name, value in event.items() if name != "eventId"}
            for event in self.user.listed()
        }


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    options = ["--webhooks", "--webhook-networks", "127.0.0.0/8"]
    bundle = Bundle(COMMAND, tmp_path_factory.mktemp("bundle"), options=options)
    yield bundle
    bundle.stop()


@pytest.fixture(scope="module")
def target():
    """Starts targets, which run until the end."""
    started = []

    def target(*options, **headers):
        started.append(Target(*options, **headers))
        return started[-1]

    yield target
    for one in started:
        one.close()


@pytest.fixture
def webhooks(bundle, request):
    return Webhooks(bundle, request.node.name)


@pytest.fixture(scope="module", autouse=True)
def test_of_a_target_that_hangs(bundle, target):
    """Takes ten seconds, in which the other tests run."""
    hanging = target(lambda call: threading.Event().wait(TOO_LONG) or None)
    webhooks = Webhooks(bundle, "patient")
    webhooks.put("crm", hanging.url)
    with ThreadPoolExecutor() as threads:
        yield threads.submit(webhooks.test, "crm")


def feedback_of(message):
    return message.get("feedbackId") or message["sourceEvent"]["feedbackId"]


def reasons_of_dead_letters(bundle):
    sqs = bundle.tool("sqs")
    received = sqs.receive_message(
        QueueUrl=f"{sqs.meta.endpoint_url}/000000000000/hearback-webhooks-dead-letters",
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        VisibilityTimeout=0,
    )
    return [message["MessageAttributes"]["reason"]["StringValue"] for message in received.get("Messages", [])]


def pointers_of(rejected):
    """The members that a rejected request names."""
    assert rejected.value.code == 400
    return [error["pointer"] for error in json.load(rejected.value)["errors"]]


def test_a_rating_is_received_with_its_signals_and_signed(bundle, webhooks, target):
    crm, of_another_tenant = target(), target()
    secret = webhooks.put("crm", crm.url)["secret"]
    Webhooks(bundle, "another-tenant").put("crm", of_another_tenant.url)
    webhooks.user.rate()
    eventually(lambda: len(crm.calls), EVENTS_OF_RATING)
    published = webhooks.published()
    assert crm.ids == sorted(published)
    received = [call.verified(secret) for call in crm.calls]
    assert {message["id"]: message for message in received} == published
    kinds = {message.get("signalType", message["eventType"]) for message in received}
    assert kinds > {"feedback.processed", "reward"}
    for call in crm.calls:
        assert (call.message["id"], call.headers["content-type"]) == (call.id, "application/json")
    assert of_another_tenant.calls == []


def test_private_feedback_is_not_sent(bundle, target):
    crm, webhooks = target(), Webhooks(bundle, TENANT)
    webhooks.put("crm", crm.url)
    webhooks.user.register("1")
    webhooks.user.submit_signal("1", "helpful")
    eventually(lambda: len(webhooks.published()) > 0, True)
    assert all(message["private"] for message in webhooks.published().values())
    rated = webhooks.user.rate()
    eventually(lambda: [feedback_of(call.message) for call in crm.calls], [rated] * EVENTS_OF_RATING)


def test_only_what_the_filter_matches_is_sent(webhooks, target):
    crm, everything = target(), target()
    webhooks.put("crm", crm.url, subjects=["learning.signals.reward"])
    webhooks.put("everything", everything.url)
    webhooks.user.rate()
    eventually(lambda: (len(everything.calls), len(crm.calls)), (EVENTS_OF_RATING, 1))
    assert crm.calls[0].message["signalType"] == "reward"


def test_both_secrets_sign_during_a_rotation_and_no_other_does(webhooks, target):
    crm = target()
    secrets = [webhooks.put("crm", crm.url)["secret"]]
    secrets.append(webhooks.rotate("crm"))
    assert webhooks.test("crm") == {"delivered": True, "status": 200}
    [call] = crm.calls
    assert [call.verified(secret)["eventType"] for secret in secrets] == ["webhook.test"] * 2
    with pytest.raises(WebhookVerificationError):
        call.verified(webhooks.put("another", crm.url)["secret"])
    # Three secrets before sign, too, but no more.
    secrets += [webhooks.rotate("crm") for _ in range(3)]
    webhooks.test("crm")
    assert [crm.calls[1].verified(secret)["eventType"] for secret in secrets[1:]] == ["webhook.test"] * 4
    with pytest.raises(WebhookVerificationError):
        crm.calls[1].verified(secrets[0])


def test_a_target_that_answers_410_is_called_again_when_the_webhook_is_put(bundle, webhooks, target):
    crm, other = target(lambda call: 410), target()
    secret = webhooks.put("crm", crm.url)["secret"]
    webhooks.put("other", other.url)
    webhooks.user.rate()
    eventually(lambda: webhooks.listed("crm")["status"], "paused")
    paused = webhooks.listed("crm")
    assert (paused["pauseReason"], paused["lastFailure"]) == ("gone", "the target answered 410")
    # What waits for it becomes a dead letter, and what is published meanwhile is not sent to it.
    eventually(lambda: len(other.calls), EVENTS_OF_RATING)
    waiting = other.ids
    webhooks.user.rate()
    eventually(lambda: len(other.calls), 2 * EVENTS_OF_RATING)
    eventually(lambda: reasons_of_dead_letters(bundle), ["the webhook is paused"] * EVENTS_OF_RATING)
    assert set(crm.ids) <= set(waiting)

    crm.calls.clear()
    crm.answer = lambda call: 200
    resumed = webhooks.put("crm", crm.url)
    assert (resumed["status"], "secret" in resumed) == ("active", False)
    moved = subprocess.run(
        [COMMAND, "redrive", "--queue", "webhooks", "--data", bundle.folder / "data"],
        check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
    ).stdout
    assert moved.endswith(f"{EVENTS_OF_RATING} dead letters moved back\n")
    eventually(lambda: crm.ids, waiting)
    assert all(call.verified(secret) for call in crm.calls)
    assert reasons_of_dead_letters(bundle) == []
    # The other webhook has received them before.
    assert len(other.calls) == 2 * EVENTS_OF_RATING


def test_a_message_that_fails_twice_is_sent_again_and_delays_no_other_webhook(webhooks, target):
    attempts = []

    def answer(call):
        """500 for the first two attempts of the first reward, and 200 for everything else."""
        if call.message.get("signalType") != "reward" or call.id not in (attempts or [call.id]):
            return 200
        attempts.append(call.id)
        return 500 if len(attempts) < 3 else 200

    flaky, steady = target(answer), target()
    secret = webhooks.put("flaky", flaky.url)["secret"]
    webhooks.put("steady", steady.url)
    webhooks.user.rate()
    eventually(lambda: len(attempts), 1)
    webhooks.user.rate()
    eventually(lambda: len(steady.calls), 2 * EVENTS_OF_RATING)
    assert len(attempts) < 3, "one webhook waited for the other"
    eventually(lambda: len(attempts), 3)
    assert sorted(set(flaky.ids)) == steady.ids == sorted(webhooks.published())
    assert {call.verified(secret)["id"] for call in flaky.calls if call.id in attempts} == set(attempts)
    assert len(set(attempts)) == 1
    eventually(lambda: webhooks.listed("flaky")["status"], "active")


def test_a_test_tells_why_a_target_was_not_reached(webhooks, target):
    elsewhere = target()
    targets = {
        "the connection to the target failed": target(lambda call: None).url,
        "the target cannot be reached": f"http://127.0.0.1:{free_ports()}/",
        "the target answered 302": target(lambda call: 302, location=elsewhere.url).url,
        "the target answered 307": target(lambda call: 307, location=elsewhere.url).url,
        "the target answered 400": target(lambda call: 400).url,
        "the target answered 503": target(lambda call: 503).url,
    }
    for reason, url in targets.items():
        webhooks.put("crm", url)
        assert webhooks.test("crm") == {"delivered": False, "reason": reason}
    assert elsewhere.connections == 0, "a redirect was followed"
    # A test changes nothing.
    assert webhooks.listed("crm")["status"] == "active"


def test_private_addresses_are_not_called_unless_the_operator_allows_them(tmp_path, target):
    inside = target()
    bundle = Bundle(COMMAND, tmp_path, options=["--webhooks"])
    try:
        webhooks = Webhooks(bundle, "acme")
        for url in (
            inside.url,
            f"https://127.0.0.1:{inside.server_port}/",
            f"https://[::ffff:127.0.0.1]:{inside.server_port}/",
            f"https://2130706433:{inside.server_port}/",
            f"http://localhost:{inside.server_port}/",
            "https://169.254.169.254/latest/meta-data/",
        ):
            with pytest.raises(urllib.error.HTTPError) as rejected:
                webhooks.put("crm", url)
            assert pointers_of(rejected) == ["/url"], url
        # The address of a name is checked when it is called.
        webhooks.put("crm", f"https://localhost:{inside.server_port}/")
        reason = "the host of the URL has no address to which webhooks may be sent"
        assert webhooks.test("crm") == {"delivered": False, "reason": reason}
        webhooks.user.rate()
        eventually(lambda: webhooks.listed("crm").get("lastFailure"), reason)
        assert inside.connections == 0
    finally:
        bundle.stop()


def test_a_target_that_hangs_is_given_up_after_ten_seconds(test_of_a_target_that_hangs):
    reason = "the target did not answer in time"
    assert test_of_a_target_that_hangs.result(PATIENCE) == {"delivered": False, "reason": reason}
