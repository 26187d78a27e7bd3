"""The command `hearback` as a process, and a client of its API."""

import contextlib
import datetime
import json
import os
import pathlib
import random
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

# Comes with moto.
import boto3

TENANT = "acme"
# The only project that the demo writes to.
PROJECT = "hearback-demo"
# The gateway, and the engines of DynamoDB, SQS and S3.
PORTS = 4
PATIENCE = 30
FEED = "/v1/feedback/events"
# The events in the feed of one rating: it was processed, and gives a reward and a policy update.
EVENTS_OF_RATING = 3


def eventually(ask, expected=True, patience=PATIENCE):
    """Calls `ask` until it returns the expected value; fails with the last value."""
    end = time.monotonic() + patience
    while (value := ask()) != expected:
        assert time.monotonic() < end, f"{value!r} did not become {expected!r}"
        time.sleep(0.02)


class Bundle:
    """A bundle on its own folder."""

    def __init__(self, command, folder, data="data", options=()):
        self.command = command
        self.folder = folder
        self._data = folder / data
        self.port = free_ports()
        self.url = f"http://127.0.0.1:{self.port}"
        self._options = options
        self.start()

    def start(self):
        """Starts it; after `stop` with the same port and data."""
        arguments = ["--port", str(self.port), "--data", str(self._data), *self._options]
        with open(self.folder / "hearback.log", "wb") as log:
            self._process = subprocess.Popen(
                [self.command, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        eventually(self._is_ready, True)

    def _is_ready(self):
        assert self._process.poll() is None, (self.folder / "hearback.log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as response:
                return response.status == 200
        except OSError:
            return False

    def stop(self):
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)

    def kill(self):
        """Ends it at once, as a crash does."""
        self._process.kill()
        self._process.wait(timeout=PATIENCE)

    def wait_for_relay(self):
        """Waits until the queues have everything that was written before the call."""
        start = time.monotonic()

        def is_delivered():
            with urllib.request.urlopen(f"{self.url}/health", timeout=PATIENCE) as response:
                relay = json.load(response)["relay"]
            lag = relay["lag_seconds"]
            return relay["waiting"] == 0 and lag is not None and lag < time.monotonic() - start

        eventually(is_delivered, True)

    @property
    def printed_demo(self):
        """The link to the demo that the command prints when it starts."""
        log = (self.folder / "hearback.log").read_text()
        return next(word for word in log.split() if word.startswith(f"{self.url}/demo#"))

    @property
    def ports(self):
        """The gateway's port, and those of the engines of DynamoDB, SQS and S3."""
        return list(range(self.port, self.port + PORTS))

    @property
    def all_ports(self):
        """These ports, then those that the process chose itself, on a system with /proc."""
        return self.ports + sorted(listening(self._process.pid) - set(self.ports))

    @property
    def variables(self):
        """The environment variables that the command prints for AWS's tools."""
        log = self.folder / "hearback.log"
        # The bundle is ready before everything is printed.
        eventually(lambda: "Ctrl-C" in log.read_text(), True)
        words = [word for word in log.read_text().split() if word.startswith("AWS_")]
        return dict(word.split("=", 1) for word in words if "=" in word)

    def tool(self, service, *keys):
        """A client of AWS's SDK, with the printed keys or others."""
        printed = self.variables
        access_key_id, secret = keys or (
            printed["AWS_ACCESS_KEY_ID"],
            printed["AWS_SECRET_ACCESS_KEY"],
        )
        return boto3.client(
            service,
            endpoint_url=printed[f"AWS_ENDPOINT_URL_{service.upper()}"],
            region_name=printed["AWS_REGION"],
            aws_access_key_id=access_key_id,
            aws_secret_access_key=secret,
        )

    def user(self, name, projects=PROJECT, scope="", tenant=TENANT):
        """A user with a token."""
        claims = ["--sub", name, "--tenant", tenant, "--scope", scope]
        claims += ["--projects", projects] if projects else []
        printed = subprocess.run(
            [self.command, "token", *claims, "--data", str(self._data)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return User(self.url, name, printed.stdout.split()[-1])

    def training(self, project):
        """The training export of a project."""
        printed = subprocess.run(
            [self.command, "export", "--training", "--project", project, "--data", str(self._data)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return printed.stdout


class User:
    """A user who calls the API directly."""

    def __init__(self, url, name, token):
        self.url = url
        self.name = name
        self.token = token

    @property
    def demo(self):
        return f"{self.url}/demo#token={self.token}"

    def message(self, turn):
        """The message id of an answer in this user's demo."""
        return f"demo-{self.name}-{PROJECT}-{turn}"

    def feedback(self, turn):
        """This user's stored signals on an answer of the demo, with their reasons."""
        rows = self.rows(self.message(turn))
        return {row["signal"]: row["reason"] for row in rows}

    def rows(self, message_id):
        """This user's stored signals on a message."""
        query = urllib.parse.urlencode({"message_id": message_id, "limit": 100})
        page = self.call("GET", f"/api/v1/feedback?{query}")
        assert page["next_cursor"] is None
        return page["feedback"]

    def submit_signal(self, turn, signal, reason=None):
        """Submits a signal without a page."""
        body = {"message_id": self.message(turn), "signal": signal, "reason": reason}
        self.call("POST", "/api/v1/feedback", body)

    def rate(self, project=PROJECT, **more):
        """Submits a rating; returns its id."""
        event = {
            "feedbackId": str(uuid.uuid4()),
            "userId": self.name,
            "sessionId": "s",
            "artifactId": str(uuid.uuid4()),
            "feedbackChannel": "explicit",
            "feedbackType": "rating",
            "data": {"rating": 5},
            "context": {"projectId": project} if project else {},
        }
        return self.call("POST", "/v1/feedback/submit", event | more)["feedbackId"]

    def listed(self):
        """The events that the feed lists for this caller."""
        events, cursor = [], ""
        while cursor is not None:
            page = self.call("GET", f"{FEED}?limit=500{cursor}")
            events += page["events"]
            cursor = page["next_cursor"] and "&cursor=" + urllib.parse.quote(page["next_cursor"])
        return events

    def register(self, turn, project=PROJECT):
        """Registers an answer that the demo does not show."""
        path = f"/conversations/{TENANT}/{project}/demo-{self.name}-{turn}/turns/{turn}"
        text = {"text": "Written by a test."}
        message = {"message_id": self.message(turn)}
        self.call("PUT", path, {"user": text, "assistant": text | message})

    def reports(self, project):
        """This user's feedback in a project: the report of a period, and the list of signals."""
        path = f"/conversations/{TENANT}/{project}/feedback/conversations-in-period"
        now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
        window = {"start": (now - day).isoformat(), "end": (now + day).isoformat()}
        period = self.call("POST", path, window | {"include_turns": True, "limit": 500})
        rows = self.call("GET", "/api/v1/feedback?limit=100")["feedback"]
        return period["items"], [row for row in rows if row["workspace_id"] == project]

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path,
            method=method,
            headers={"Authorization": f"Bearer {self.token}"},
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.loads(response.read() or "null")


def listening(pid):
    """The ports on which a process listens; none on a system without /proc."""
    process = pathlib.Path(f"/proc/{pid}")
    sockets = set()
    for file in process.glob("fd/*"):
        # A file may be closed meanwhile.
        with contextlib.suppress(OSError):
            sockets.add(str(file.readlink()))
    ports = set()
    for table in ("tcp", "tcp6"):
        path = process / "net" / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def own_ports():
    """Multiples of four: in this process each once, and none that another process of the same tests has.

    A port is free until it is bound, and that may be much later than it was chosen.
    """
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    firsts = range(20000, 32000, PORTS)[process::processes]
    return iter(random.sample(firsts, len(firsts)))


OWN_PORTS = own_ports()


def free_ports():
    """The first of four consecutive free ports."""
    for first in OWN_PORTS:
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + PORTS):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise RuntimeError("no four free ports in a row")


def default_command():
    root = pathlib.Path(__file__).resolve().parents[2]
    return root / "target" / "debug" / "hearback-under-test"
