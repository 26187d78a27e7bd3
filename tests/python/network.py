"""Simulates a bad network: a server with a script, and a proxy that cuts connections."""

import contextlib
import email.utils
import http.server
import json
import socket
import threading
import time


class Reply:
    """One response of a script. `hours` is by how much the server's clock is ahead."""

    def __init__(self, status, body=None, *, hours=0, **headers):
        self.status = status
        self.content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = {"Content-Type": "application/json", "Date": date(hours * 3600)}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}


def date(seconds=0):
    """An HTTP date, so many seconds from now."""
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


class Scripted:
    """A server that sends the replies of a script, the last one again and again, and records the requests."""

    def __init__(self, *script):
        self._script = list(script)
        self.requests = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def tokens(self):
        return [headers["Authorization"].removeprefix("Bearer ") for _, _, headers, _ in self.requests]

    def next(self, request):
        self.requests.append(request)
        return self._script.pop(0) if len(self._script) > 1 else self._script[0]

    def _handler(self):
        scripted = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                reply = scripted.next((self.command, self.path, dict(self.headers), body))
                # The client may be gone.
                with contextlib.suppress(OSError):
                    reply(self) if callable(reply) else self.send(reply)

            do_GET = do_PUT = do_POST = do_DELETE = answer

            def send(self, reply):
                self.send_response_only(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.content)))
                self.end_headers()
                self.wfile.write(reply.content)

            def log_message(self, *_):
                pass

        return Handler


def hangs(handler):
    """A reply that never comes."""
    handler.connection.recv(1)


def trickles(handler):
    """A reply that takes two minutes, although its next byte always comes soon."""
    handler.send_response(200)
    handler.send_header("Content-Length", "6000")
    handler.end_headers()
    for _ in range(6000):
        handler.wfile.write(b" ")
        time.sleep(0.02)


def hangs_up(handler):
    """The end of the connection instead of a reply."""
    handler.close_connection = True


class CuttingProxy:
    """Passes connections on, and cuts the first ones.

    Each cut is one of
    - `request`: after half of the request
    - `before response`: after the server has executed the request, and before its response
    - `response`: in the middle of the response
    """

    def __init__(self, port, *cuts):
        self._target = ("127.0.0.1", port)
        self.cuts = list(cuts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=5)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._pass_on, args=(client, self.cuts.pop(0) if self.cuts else None))
            self._threads.append(thread)
            thread.start()

    def _pass_on(self, client, cut):
        with client, socket.create_connection(self._target) as server, contextlib.suppress(OSError):
            while request := read_message(client):
                if cut == "request":
                    server.sendall(request[: len(request) // 2])
                    return
                server.sendall(request)
                response = read_message(server)
                if cut == "before response":
                    return
                if cut == "response":
                    client.sendall(response[: len(response) - 10])
                    return
                client.sendall(response)


def read_message(connection):
    """A whole request or response, or nothing at the end."""
    content = b""
    while b"\r\n\r\n" not in content:
        if not (chunk := connection.recv(65536)):
            return b""
        content += chunk
    head, _, body = content.partition(b"\r\n\r\n")
    fields = (line.partition(b":") for line in head.lower().split(b"\r\n")[1:])
    length = next((int(value) for name, _, value in fields if name == b"content-length"), 0)
    while len(body) < length:
        chunk = connection.recv(65536)
        body, content = body + chunk, content + chunk
    return content
