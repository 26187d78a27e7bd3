"""Conversations with feedback, as an application writes them."""

import uuid

from bundle import TENANT


class Talk:
    """Writes conversations in the name of their users."""

    def __init__(self, bundle, project):
        self._bundle = bundle
        self._project = project
        self._back_end = bundle.user("back-end", project, "feedback:on-behalf")

    def turn(self, conversation, turn, user, message, answer="On the page of the cart."):
        """Registers a turn; returns what its message says about the turn before."""
        assistant = {"text": answer, "message_id": f"{conversation}-{turn}"}
        body = {"user_id": user, "user": {"text": message}, "assistant": assistant, "labels": {"model": "large"}}
        path = f"/conversations/{TENANT}/{self._project}/{conversation}/turns/{turn}"
        return self._back_end.call("PUT", path, body)["detection"]

    def react(self, conversation, turn, user, reaction, text=""):
        path = f"/conversations/{TENANT}/{self._project}/{conversation}/turns/{turn}/feedback"
        body = {"user_id": user, "reaction": reaction, "text": text}
        self._back_end.call("POST", path, body)

    def submit(self, conversation, turn, user, context=(), **event):
        context = {"projectId": self._project, "conversationId": conversation, "turnId": turn} | dict(context)
        ids = {"feedbackId": str(uuid.uuid4()), "userId": user, "sessionId": conversation, "artifactId": turn}
        self._back_end.call("POST", "/v1/feedback/submit", ids | {"context": context} | event)

    def signal(self, conversation, turn, user, signal, reason):
        body = {"message_id": f"{conversation}-{turn}", "signal": signal, "reason": reason}
        self._bundle.user(user, self._project).call("POST", "/api/v1/feedback", body)
