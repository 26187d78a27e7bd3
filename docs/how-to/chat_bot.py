"""A chat bot that learns from feedback: the calls of one agent turn, in order.

    export HEARBACK_TOKEN="$(hearback token --sub chat-bot --tenant acme --projects order-service \\
        --scope feedback:on-behalf | tail -n 1)"
    python3 docs/how-to/chat_bot.py            # or: … < a file with one message a line

Needs Python 3.10 or newer and a running bundle, and nothing else.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

URL = os.environ.get("HEARBACK_URL", "http://127.0.0.1:3000")
TENANT, PROJECT = "acme", "order-service"


class Hearback:
    """The API, as a back end that acts for its users."""

    def __init__(self, url, token):
        self.url, self.token = url, token

    def call(self, method, path, body=None, tries=5):
        """One request. After a 503, a 429 or a lost connection the same request is sent again, which is safe."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        for attempt in range(tries):
            request = urllib.request.Request(self.url + path, data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    return json.loads(response.read() or "null")
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503) or attempt == tries - 1:
                    raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from None
            except OSError:
                if attempt == tries - 1:
                    raise
            time.sleep(2**attempt * 0.1)


class Conversation:
    """One user's conversation with the agent."""

    def __init__(self, api, user_id):
        self.api, self.user_id = api, user_id
        self.id = f"chat-{uuid.uuid4()}"
        self.path = f"/conversations/{TENANT}/{PROJECT}/{self.id}"
        self.turns, self.blocks, self.watermark, self.last_touch = [], {}, None, None

    def reply(self, message):
        """Answers a message; returns the answer and the id under which users rate it."""
        turn_id, message_id = f"turn-{len(self.turns) + 1}", str(uuid.uuid4())
        turn = f"{self.path}/turns/{turn_id}"

        # 1. Open the turn. The reply tells what this message says about the answer before it.
        body = {"user_id": self.user_id, "user": {"text": message}, "task_type": "support"}
        opened = self.api.call("PUT", turn, body)
        detection = opened["detection"]

        # 2. If it rejects that answer, read what to do differently.
        context = None
        if detection and detection["feedback_type"] == "rejected":
            query = urllib.parse.urlencode({"user_id": self.user_id})
            previous = f"{self.path}/turns/{detection['previous_turn_id']}/feedback-context?{query}"
            context = self.api.call("GET", previous)["rejection"]

        # 3. What feedback arrived on earlier turns since the prompt was built?
        news = self.refresh_timeline()

        # 4. What does this user prefer, and which strategies worked for similar questions?
        who = urllib.parse.quote(self.user_id, safe="")
        preferences = self.api.call("GET", f"/v1/preferences/{who}/resolved?taskType=support&projectId={PROJECT}")
        search = {"query": message, "user_id": self.user_id}
        found = self.api.call("POST", f"/conversations/{TENANT}/{PROJECT}/strategies/search", search)

        # 5. Answer.
        strategy, answer = agent(message, context, news, preferences, found["strategies"])

        # 6. Complete the turn. `message_id` is what the page gives to <hearback-feedback>.
        assistant = {"text": answer, "message_id": message_id}
        self.api.call("PUT", turn, body | {"assistant": assistant, "strategy": strategy})
        self.turns.append(turn_id)
        return answer, message_id

    def refresh_timeline(self):
        """The feedback that is new to the agent. Keeps the blocks that belong into its timeline."""
        body = {
            "user_id": self.user_id,
            "turn_ids": self.turns[-1000:],
            "cache": {"ttl_seconds": 300, "last_touch": self.last_touch},
            "last_known_feedback_ts": self.watermark,
            "blocks": list(self.blocks.values()),
        }
        refreshed = self.api.call("POST", f"{self.path}/timeline/refresh", body)
        self.blocks.update((block["path"], block) for block in refreshed["blocks"])
        self.watermark = refreshed["last_known_feedback_ts"]
        # The prompt that is built now is cached from now on.
        self.last_touch = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return refreshed["announce"]


def agent(message, context, news, preferences, strategies):
    """Your agent. This one calls no model: it shows what you would put into the prompt."""
    if news:
        print(news)
    if context:
        for instruction in context["instructions"]:
            print(f"  planner: {instruction}")
        if context["clarify"]:
            return "clarify", "I have misunderstood you twice. What exactly do you need?"
        return "follow_correction", f"Sorry. You mean: {context['user_said']}"
    if strategies:
        print(f"  similar question: {strategies[0]['query']!r}, strategy {strategies[0]['strategy']!r}")
    return "lookup", f"({preferences['preferredResponseLength']}) Here is what I know about: {message}"


def main():
    api = Hearback(URL, os.environ["HEARBACK_TOKEN"])
    conversation = Conversation(api, os.environ.get("HEARBACK_USER", "user-123"))
    for line in sys.stdin:
        if message := line.strip():
            answer, message_id = conversation.reply(message)
            print(f"> {message}\n{answer}\n  [rate it as message {message_id}]", flush=True)


if __name__ == "__main__":
    main()
