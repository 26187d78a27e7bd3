"""A chat bot that learns from feedback. docs/how-to/chat-bot.md explains its calls. Needs Python 3.10 or newer."""

import json
import os
import sys
import time
import uuid
from urllib import parse, request

URL = os.environ.get("HEARBACK_URL", "http://127.0.0.1:3000")


def call(method, path, body=None, pause=0.1):
    """Sends a request, and again after a 429, a 503 or a lost connection: every request here is safe to repeat."""
    headers = {"Authorization": f"Bearer {os.environ['HEARBACK_TOKEN']}", "Accept": "application/json"}
    data = json.dumps(body).encode() if body else None
    try:
        with request.urlopen(request.Request(URL + path, data, headers, method=method), timeout=30) as response:
            return json.load(response)
    except OSError as error:
        if pause > 2 or getattr(error, "code", 503) not in (429, 503):
            raise
    time.sleep(pause)
    return call(method, path, body, 2 * pause)


class Conversation:
    def __init__(self, user_id, model):
        self.user_id, self.model, self.path = user_id, model, f"/conversations/acme/order-service/{uuid.uuid4()}"
        self.turns, self.blocks = {}, {}

    def reply(self, message):
        """Answers a message; returns the answer and the id under which the user can rate it."""
        turn, message_id = f"turn-{len(self.turns) + 1}", str(uuid.uuid4())
        body = {"user_id": self.user_id, "user": {"text": message}}
        detection = call("PUT", f"{self.path}/turns/{turn}", body)["detection"] or {}  # 1. open the turn
        instructions = []
        if detection.get("feedback_type") == "rejected":  # 2. what to do differently
            query = parse.urlencode({"user_id": self.user_id})
            context = call("GET", f"{self.path}/turns/{detection['previous_turn_id']}/feedback-context?{query}")
            instructions = context["rejection"]["instructions"]
        timeline = call("POST", f"{self.path}/timeline/refresh", {  # 3. all feedback; 0 seconds: no prompt cache
            "user_id": self.user_id, "turn_ids": list(self.turns)[-1000:], "cache": {"ttl_seconds": 0},
            "blocks": list(self.blocks.values())})
        self.blocks |= {block["path"]: block for block in timeline["blocks"]}
        feedback = [f"[{each['turn_id']}] {each['text']}" for each in self.blocks.values() if not each["hidden"]]
        prompt = "\n".join([*self.turns.values(), *feedback, *instructions, f"User: {message}"])
        answer = "What exactly do you need?" if detection.get("clarify") else self.model(prompt)  # 4. answer
        body["assistant"] = {"text": answer, "message_id": message_id}
        call("PUT", f"{self.path}/turns/{turn}", body)  # 5. complete the turn
        self.turns[turn] = f"[{turn}]\nUser: {message}\nAssistant: {answer}"
        return answer, message_id


if __name__ == "__main__":
    # In place of a model: print the prompt, and always give the same answer.
    conversation = Conversation("user-123", model=lambda prompt: print(prompt) or "Within 30 days.")
    for line in sys.stdin:
        print("> {}\n[message {}]\n".format(*conversation.reply(line.strip())), flush=True)
