"""The command `hearback` as a process, and what its API says to a token."""

import contextlib
import datetime
import json
import pathlib
import random
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

TENANT = "acme"
# The only project that the demo writes to.
PROJECT = "hearback-demo"
# The gateway, and the engines of DynamoDB, SQS and S3.
PORTS = 4
PATIENCE = 30


def eventually(ask, wanted, patience=PATIENCE):
    """Asks until the answer is the wanted one; fails with the last one."""
    end = time.monotonic() + patience
    while (answer := ask()) != wanted:
        assert time.monotonic() < end, f"{answer!r} did not become {wanted!r}"
        time.sleep(0.02)


class Bundle:
    """A bundle on a folder of its own."""

    def __init__(self, command, folder):
        self.command = command
        self.folder = folder
        self.port = free_ports()
        self.url = f"http://127.0.0.1:{self.port}"
        with open(folder / "hearback.log", "wb") as log:
            arguments = ["--port", str(self.port), "--data", str(self._data)]
            self._process = subprocess.Popen(
                [command, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        eventually(self._answers, True)

    @property
    def _data(self):
        return self.folder / "data"

    def _answers(self):
        assert self._process.poll() is None, (self.folder / "hearback.log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as response:
                return response.status == 200
        except OSError:
            return False

    def stop(self):
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)

    @property
    def printed_demo(self):
        """The link to the demo that the command prints when it starts."""
        log = (self.folder / "hearback.log").read_text()
        return next(word for word in log.split() if word.startswith(f"{self.url}/demo#"))

    def user(self, name, projects=PROJECT, scope=""):
        """A user with a token."""
        claims = ["--sub", name, "--tenant", TENANT, "--projects", projects, "--scope", scope]
        printed = subprocess.run(
            [self.command, "token", *claims, "--data", str(self._data)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return User(self.url, name, printed.stdout.split()[-1])

    def training(self, project):
        """What a model can learn from a project."""
        printed = subprocess.run(
            [self.command, "export", "--training", "--project", project, "--data", str(self._data)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return printed.stdout


class User:
    """Someone who asks the API, past every page."""

    def __init__(self, url, name, token):
        self.url = url
        self.name = name
        self.token = token

    @property
    def demo(self):
        return f"{self.url}/demo#token={self.token}"

    def message(self, turn):
        """The id of an answer of this user's demo."""
        return f"demo-{self.name}-{PROJECT}-{turn}"

    def feedback(self, turn):
        """Signals and reasons that the server has of this user on an answer of the demo."""
        rows = self.rows(self.message(turn))
        return {row["signal"]: row["reason"] for row in rows}

    def rows(self, message_id):
        """What the server has of this user on a message."""
        query = urllib.parse.urlencode({"message_id": message_id, "limit": 100})
        answer = self.call("GET", f"/api/v1/feedback?{query}")
        assert answer["next_cursor"] is None
        return answer["feedback"]

    def say(self, turn, signal, reason=None):
        """Says a signal from elsewhere than a page."""
        body = {"message_id": self.message(turn), "signal": signal, "reason": reason}
        self.call("POST", "/api/v1/feedback", body)

    def register(self, turn, project=PROJECT):
        """Registers an answer that the demo does not show."""
        path = f"/conversations/{TENANT}/{project}/demo-{self.name}-{turn}/turns/{turn}"
        said = {"text": "Said by a test."}
        message = {"message_id": self.message(turn)}
        self.call("PUT", path, {"user": said, "assistant": said | message})

    def reports(self, project):
        """What the reports and the list of a project say of this user's feedback in it."""
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


def free_ports():
    """The first of four ports that nobody listens on."""
    for _ in range(100):
        first = random.randrange(20000, 32000, PORTS)
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
