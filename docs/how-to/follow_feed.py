"""Prints the events of a token's user, a line of JSON each. docs/how-to/follow-the-feed.md explains it.

    pip install websockets
    python3 docs/how-to/follow_feed.py [count]

Needs Python 3.10 or newer.
"""

import collections
import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

URL = os.environ.get("HEARBACK_URL", "http://127.0.0.1:3000").rstrip("/")
# In seconds. The server ends a connection that is idle for ten minutes.
PING_EVERY = 120
SUBSCRIBED_WITHIN = 30
FIRST_WAIT, LONGEST_WAIT = 1, 60
# How many events are recognised when they are repeated: more than arrive within 15 seconds.
REMEMBERED = 5_000


class Rejected(Exception):
    """The server rejected the request or the subscription, so that it is no use to try again."""


def take_ticket(token):
    """Returns the URL of one connection."""
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{URL}/v1/feedback/events/ticket", headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            ticket = json.load(response)
    except urllib.error.HTTPError as error:
        if error.code < 500 and error.code not in (409, 429):
            raise Rejected(f"{error}: {error.read().decode()}") from None
        raise
    return f"{ticket['url']}?ticket={ticket['ticket']}"


def frames(url, subscribe):
    """Yields what the server sends on one connection."""
    with connect(url) as socket:
        socket.send(json.dumps(subscribe))
        yield json.loads(socket.recv(timeout=SUBSCRIBED_WITHIN))
        while True:
            try:
                yield json.loads(socket.recv(timeout=PING_EVERY))
            except TimeoutError:
                socket.send('{"action": "ping"}')


def follow(token, after=None, only=None):
    """Yields each event once, and connects again when a connection ends. `token` is called for each connection."""
    seen = collections.OrderedDict()
    wait = FIRST_WAIT
    while True:
        try:
            subscribe = {"action": "subscribe", "filter": only or {}}
            if after:
                subscribe["after"] = after
            for frame in frames(take_ticket(token()), subscribe):
                # If the function fails, API Gateway answers with a frame without a type.
                if frame.get("type", "error") == "error":
                    if frame.get("error") in ("invalid_request", "forbidden"):
                        raise Rejected(json.dumps(frame))
                    break
                for event in frame.get("events", []):
                    if event["eventId"] not in seen:
                        seen[event["eventId"]] = None
                        yield event
                while len(seen) > REMEMBERED:
                    seen.popitem(last=False)
                # Only now: the next connection repeats what was not yielded yet.
                after = frame.get("lastEventId", after)
                wait = FIRST_WAIT
        except (OSError, ValueError, http.client.HTTPException, WebSocketException) as error:
            # Not the error of a WebSocket: it may name the URL, with its ticket.
            reason = error if isinstance(error, OSError) else type(error).__name__
            print(f"connecting again: {reason}", file=sys.stderr)
        # With some randomness, so that many clients do not return at once.
        time.sleep(wait * random.uniform(0.5, 1))
        wait = min(2 * wait, LONGEST_WAIT)


if __name__ == "__main__":
    left = int(sys.argv[1]) if len(sys.argv) > 1 else -1
    try:
        for event in follow(lambda: os.environ["HEARBACK_TOKEN"], after=os.environ.get("HEARBACK_AFTER")):
            print(json.dumps(event), flush=True)
            left -= 1
            if left == 0:
                break
    except Rejected as rejected:
        sys.exit(f"rejected: {rejected}")
