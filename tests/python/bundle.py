"""The command `hearback` as a process."""

import contextlib
import functools
import os
import pathlib
import random
import socket
import subprocess
import time
import urllib.request

TENANT = "acme"
PROJECT = "support"
# The gateway, and the engines of DynamoDB, SQS and S3.
PORTS = 4
PATIENCE = 30
ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("HEARBACK_COMMAND", str(ROOT / "target" / "debug" / "hearback-under-test"))


def eventually(ask, expected=True, patience=PATIENCE):
    """Calls `ask` until it returns the expected value; fails with the last value."""
    end = time.monotonic() + patience
    while (value := ask()) != expected:
        assert time.monotonic() < end, f"{value!r} did not become {expected!r}"
        time.sleep(0.02)


class Bundle:
    """A bundle on its own folder, which sends webhooks to this machine."""

    def __init__(self, folder):
        self._data = folder / "data"
        self._log = folder / "hearback.log"
        self.port = free_ports()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        """Starts it; after `stop` with the same port and data."""
        options = ["--port", str(self.port), "--data", str(self._data)]
        options += ["--webhooks", "--webhook-networks", "127.0.0.0/8"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [COMMAND, "serve", *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        eventually(self._is_ready)

    def _is_ready(self):
        assert self._process.poll() is None, self._log.read_text()
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

    @functools.lru_cache(maxsize=None)
    def token(self, sub, *, projects=PROJECT, scope="", tenant=TENANT):
        """A token of a user, or of a back end."""
        claims = ["--sub", sub, "--tenant", tenant, "--projects", projects, "--scope", scope]
        command = [COMMAND, "token", *claims, "--data", str(self._data)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]


def free_ports():
    """The first of four consecutive free ports."""
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
