"""Prints the messages that a webhook receives, a line of JSON each. docs/how-to/receive-webhooks.md explains it.

    pip install standardwebhooks
    WEBHOOK_SECRET=whsec_… python3 docs/how-to/receive_webhooks.py

Needs Python 3.10 or newer.
"""

import http.server
import os
import sys

from standardwebhooks import Webhook, WebhookVerificationError

PORT = int(os.environ.get("PORT", "8000"))
WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])
LARGEST = 1024 * 1024  # bytes, more than any message has
REMEMBERED = 100_000  # ids that are recognised when they are repeated
seen = {}


class Receiver(http.server.BaseHTTPRequestHandler):
    # In seconds, for a caller that sends nothing: this server answers one call at a time.
    timeout = 5

    def do_POST(self):
        body = self.rfile.read(min(int(self.headers["Content-Length"]), LARGEST))
        try:
            WEBHOOK.verify(body, self.headers)
        except (WebhookVerificationError, ValueError):
            return self.answer(401)
        message_id = self.headers["webhook-id"]
        if message_id not in seen:
            print(body.decode(), flush=True)
            # Only now: a message that was not processed is sent again.
            seen[message_id] = None
            if len(seen) > REMEMBERED:
                del seen[next(iter(seen))]
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


if __name__ == "__main__":
    server = http.server.HTTPServer(("127.0.0.1", PORT), Receiver)
    print(f"Receiving webhooks at http://127.0.0.1:{PORT}/", file=sys.stderr, flush=True)
    server.serve_forever()
