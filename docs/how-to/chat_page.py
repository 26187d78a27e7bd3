"""The chat bot of chat_bot.py as a page, with the feedback element under each answer.

    export HEARBACK_TOKEN="$(hearback token --sub chat-bot --tenant acme --projects order-service \\
        --scope feedback:on-behalf | tail -n 1)"
    export HEARBACK_USER_TOKEN="$(hearback token --sub user-123 --tenant acme --projects order-service | tail -n 1)"
    python3 docs/how-to/chat_page.py           # http://127.0.0.1:8000

Your application knows who is signed in. Here everybody is user-123, without a session. A session cookie of yours needs
`SameSite=Lax` or `Strict`, and a change from a page of another origin must be rejected, as here.
"""

import http.server
import json
import os
import pathlib
import urllib.error
import urllib.request

from chat_bot import URL, Conversation

ELEMENT = pathlib.Path(__file__).resolve().parents[2] / "clients" / "web"
TYPES = {".js": "text/javascript"}
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Chat</title>
<style>body { font: 1rem/1.5 system-ui; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }</style>
<main id="chat"></main>
<form id="ask"><input name="message" aria-label="Message" size="40" required> <button>Send</button></form>
<script type="module">
  import { configure } from "/hearback/hearback-feedback.js";
  configure({}); // the server adds the user's token

  ask.onsubmit = async (event) => {
    event.preventDefault();
    const message = ask.elements.message.value;
    ask.reset();
    const reply = await fetch("/ask", { method: "POST", body: JSON.stringify({ message }) });
    const { answer, message_id } = await reply.json();
    const question = document.createElement("p");
    question.textContent = `You: ${message}`;
    const rated = document.createElement("hearback-feedback");
    rated.setAttribute("message-id", message_id);
    rated.append(answer);
    chat.append(question, rated);
  };
</script>
"""


class Page(http.server.BaseHTTPRequestHandler):
    """The page, the element's files, the bot, and a reverse proxy for the element's calls."""

    def do_GET(self):
        if self.path == "/":
            self.answer(200, "text/html; charset=utf-8", PAGE.encode())
        elif self.path.startswith("/hearback/"):
            file = (ELEMENT / self.path.removeprefix("/hearback/")).resolve()
            if file.is_relative_to(ELEMENT) and file.suffix in TYPES and file.is_file():
                self.answer(200, TYPES[file.suffix], file.read_bytes())
            else:
                self.answer(404, "text/plain", b"not found")
        else:
            self.forward()

    def do_POST(self):
        if self.from_another_origin():
            return self.answer(403, "text/plain", b"another origin")
        if self.path != "/ask":
            return self.forward()
        answer, message_id = self.server.conversation.reply(json.loads(self.body())["message"])
        reply = json.dumps({"answer": answer, "message_id": message_id})
        return self.answer(200, "application/json", reply.encode())

    def do_DELETE(self):
        if self.from_another_origin():
            return self.answer(403, "text/plain", b"another origin")
        return self.forward()

    def from_another_origin(self):
        """Whether another site's page may have sent this request. Browsers send `Origin` with every POST and DELETE."""
        port = self.server.server_port
        return self.headers.get("Origin") not in (f"http://127.0.0.1:{port}", f"http://localhost:{port}")

    def forward(self):
        """Hands /api/v1/feedback on, with the signed-in user's token."""
        if not self.path.startswith("/api/v1/feedback"):
            return self.answer(404, "text/plain", b"not found")
        headers = {"Authorization": f"Bearer {os.environ['HEARBACK_USER_TOKEN']}"}
        request = urllib.request.Request(URL + self.path, self.body() or None, headers, method=self.command)
        try:
            response = urllib.request.urlopen(request, timeout=30)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return self.answer(response.status, response.headers["Content-Type"], response.read())

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, content_type, body):
        self.send_response(status)
        if content_type:
            self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Page)
    server.conversation = Conversation("user-123", model=lambda prompt: "Within 30 days.")
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
