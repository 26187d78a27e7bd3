"""Replaces the APIs of model providers: answers each request with the next reply of the test."""

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ModelProvider:
    """What a client of `openai` or `anthropic` is pointed at, with `base_url`."""

    def __init__(self):
        self.requests = []
        self._replies = deque()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def options(self):
        """The arguments of a client of this provider."""
        return {"api_key": "none", "base_url": self.url, "max_retries": 0}

    def reply(self, body, status=200):
        self._replies.append((status, "application/json", json.dumps(body).encode(), None))

    def stream(self, events, cut=None):
        """Replies with server-sent events. With `cut`, the connection is lost after so many."""
        sent = [_event(event) for event in events]
        length = len(b"".join(sent))
        self._replies.append((200, "text/event-stream", b"".join(sent[:cut]), length))

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert not self._replies, "the client made fewer requests than expected"

    def _handler(self):
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                provider.requests.append(json.loads(body))
                status, kind, content, length = provider._replies.popleft()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content) if length is None else length))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args):
                pass

        return Handler


def _event(event):
    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    data = event if isinstance(event, str) else json.dumps(event)
    return f"{name}data: {data}\n\n".encode()
