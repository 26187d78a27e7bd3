"""Runs the commands of a page in one shell, against a bundle of its own."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import warnings

from bundle import PATIENCE, Bundle, User, eventually, free_ports
from console import ROOT, UUID, matches, with_ports

# The ports that the pages name: the bundle's, that of chat_page.py and receive_webhooks.py, and that of NATS.
BUNDLE, PAGE, NATS = 3000, 8000, 4222
# A command that starts the bundle and does not end.
SERVE = re.compile(r"(?:cargo run(?: --)?|hearback)(?: serve)?((?: --\S.*)?)")
# The bundle's port and folder are those of the test.
PLACE = re.compile(r"--(?:port|data) \S+")
# Other commands that do not end, and what they serve.
SERVERS = {"python3 docs/how-to/chat_page.py": ("/", "/hearback/hearback-feedback.js")}
RECEIVER = "python3 docs/how-to/receive_webhooks.py"
# The queues that the bundle itself reads.
QUEUES = ("signals", "signals-bulk", "ingest", "imports", "erasures", "insights", "nats", "webhooks")
COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
# How often the relay delivers what follows from one request to those queues: a turn, the reaction that it contains, and
# its event.
STAGES = 3
# In seconds.
LIMIT = 60

# `hearback` is installed, and `cargo run` has compiled it.
PREAMBLE = """\
set -o pipefail
hearback() { "$HEARBACK_COMMAND" "$@"; }
cargo() {
    [[ $1 == run ]] || { echo "cargo $1 does not run here" >&2; return 1; }
    shift
    [[ ${1-} != -- ]] || shift
    hearback "$@"
}
"""


class Session:
    """One reader of a page: a folder, a running bundle, and a shell in that folder with the bundle's token."""

    def __init__(self, command, folder, blocks):
        self.command = command
        self.folder = folder
        self.known = {uuid for block in blocks for command in block.commands for uuid in UUID.findall(command.text)}
        for name in ("docs", "clients"):
            (folder / name).symlink_to(ROOT / name)
        # A response with an error status is a failure.
        (folder / ".curlrc").write_text("fail-with-body\n")
        self._start()
        self.page_port, self.nats_port = free_ports(), free_ports()
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={
                # What is installed next to this Python: `nats-server`, and the packages of `python3`.
                "PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]),
                "HOME": str(folder),
                "LANG": "C.UTF-8",
                "HEARBACK_COMMAND": str(command),
                "HEARBACK_URL": self.bundle.url,
                "PORT": str(self.page_port),
                "NATS_URL": f"nats://127.0.0.1:{self.nats_port}",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )
        self.run(PREAMBLE)
        self.run(next(line for line in self.log if "export TOKEN=" in line))

    def _start(self, *options):
        self.bundle = Bundle(self.command, self.folder, data=".hearback", options=options)
        self._sqs = self.bundle.tool("sqs")

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        self._shell.stdin.close()
        self._shell.stdout.close()
        self.bundle.stop()

    @property
    def log(self):
        """What the bundle printed at its start."""
        log = self.folder / "hearback.log"
        # The bundle is ready before everything is printed.
        eventually(lambda: "Ctrl-C" in log.read_text(), True)
        return self._as_documented(log.read_text()).splitlines()

    @property
    def user(self):
        """The user of the printed token."""
        return User(self.bundle.url, "user-123", self.run('printf %s "$TOKEN"')[0])

    def run(self, text):
        """Runs a command and returns the lines that it printed; fails if the command does."""
        script, end = self.folder / "command.sh", f"end-{time.monotonic_ns()}"
        script.write_text(text + "\n")
        self._shell.stdin.write(f"source {shlex.quote(str(script))} </dev/null; printf '\\n%s %s\\n' {end} $?\n")
        self._shell.stdin.flush()
        too_long = threading.Timer(LIMIT, os.killpg, (self._shell.pid, signal.SIGKILL))
        too_long.start()
        printed, status = "", None
        for line in self._shell.stdout:
            if line.startswith(end):
                status = int(line.split()[-1])
                break
            printed += line
        too_long.cancel()
        printed = self._as_documented(printed)
        fault = f"took more than {LIMIT} s" if status is None else f"failed with status {status}"
        assert status == 0, f"{fault}:\n{text}\n\nIt printed:\n{printed}"
        return printed.rstrip("\n").split("\n")

    def follow(self, command):
        """Runs a command of the page, and compares what it prints with the page."""
        if "jq " in command.text and shutil.which("jq") is None:
            warnings.warn(f"jq is not installed, so this was not run: {command.text}")
        elif serve := SERVE.fullmatch(command.text.partition(" #")[0].rstrip()):
            self._serve(self._as_started(PLACE.sub("", serve[1])).split())
            if command.expected is not None:
                check(command, self.log, self.known)
        elif command.text in SERVERS:
            self._serve_page(command)
        elif command.text.startswith("nats-server "):
            self._serve_nats(command)
        elif command.text.startswith(RECEIVER):
            self._receive_webhooks(command)
        else:
            self.wait_until_idle()
            printed = self.run(self._as_started(command.text))
            # The status of a failed `$(…)` is lost, but not its message.
            if command.expected is not None or command.text.startswith("export "):
                check(command, printed, self.known)

    def _serve(self, options):
        """Starts the bundle again if it needs options."""
        if options:
            self.bundle.stop()
            self._start(*options)
            self.run(f"export HEARBACK_URL={self.bundle.url}")

    def _serve_page(self, command):
        log = self.folder / "page.log"
        log.touch()
        self.run(f"{command.text} >>page.log 2>&1 &")
        url = f"http://127.0.0.1:{self.page_port}"
        eventually(lambda: url in log.read_text(), True)
        check(command, self._as_documented(log.read_text()).splitlines(), self.known)
        for path in SERVERS[command.text]:
            with urllib.request.urlopen(url + path, timeout=PATIENCE) as response:
                assert response.status == 200

    def _serve_nats(self, command):
        log = self.folder / "nats.log"
        log.touch()
        self.run(f"{command.text} --port {self.nats_port} >>nats.log 2>&1 &")
        eventually(lambda: "Server is ready" in log.read_text(), True)

    def _receive_webhooks(self, command):
        """Starts the receiver, whose messages go where the command says."""
        log = self.folder / "receiver.log"
        log.touch()
        self.run(f"{command.text} 2>>receiver.log &")
        url = f"http://127.0.0.1:{self.page_port}/"
        eventually(lambda: url in log.read_text(), True)
        check(command, self._as_documented(log.read_text()).splitlines(), self.known)

    def wait_until_idle(self):
        """Waits until everything that was submitted is processed, and its outcome published."""
        for _ in range(STAGES):
            self.bundle.wait_for_relay()
            eventually(self._waiting, 0, LIMIT)
        self.bundle.wait_for_relay()

    def _waiting(self):
        """The number of messages that the bundle has not processed."""
        total = 0
        for queue in QUEUES:
            url = f"{self._sqs.meta.endpoint_url}/000000000000/hearback-{queue}"
            counts = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=COUNTS)["Attributes"]
            total += sum(map(int, counts.values()))
        return total

    def _ports(self):
        """The ports of this test by those of the pages."""
        ports = {BUNDLE + offset: port for offset, port in enumerate(self.bundle.ports)}
        return {**ports, PAGE: self.page_port, NATS: self.nats_port}

    def _as_started(self, text):
        """The text with the ports of this test."""
        return with_ports(text, self._ports())

    def _as_documented(self, text):
        """The text with the ports of the pages."""
        return with_ports(text, {port: documented for documented, port in self._ports().items()})


def check(command, printed, known):
    expected = command.expected or []
    assert matches(expected, printed, known), "\n".join(
        [f"{command.text}\n\nshould print", "", *expected, "", "but printed", "", *printed]
    )
