"""Replaces Hearback in the tests of an application.

    fake = FakeHearback()
    fake.detect("No, I meant online orders", "rejected", instructions=["Ask for the order number"])
    with fake.client() as hb:
        answer(hb, "How do I return an item?")
        answer(hb, "No, I meant online orders")
    assert [turn["assistant"]["text"] for turn in fake.turns.values()] == ["Within 30 days.", "Which order?"]
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httpx

from ._client import AsyncHearback, Hearback
from .types import DetectedFeedbackType

Answered = tuple[int, Any]
"""A status and a body."""


@dataclass(frozen=True)
class _Script:
    feedback_type: DetectedFeedbackType
    confidence: float
    clarify: bool
    instructions: list[str]


_NEUTRAL = _Script("neutral", 0.5, clarify=False, instructions=[])


class FakeHearback(httpx.MockTransport):
    """Keeps in memory what a client sends. Detects what a test scripts, and validates nothing.

    Processes each event at once, and lists none in the feed. What it does not know is 404, unless the test says how to
    `respond`.
    """

    turns: dict[tuple[str, str, str], dict[str, Any]]
    """What was registered, by project, conversation and turn, in the order of the first registration."""
    reactions: list[dict[str, Any]]
    """Each reaction, with `project`, `conversation_id` and `turn_id`."""
    events: dict[str, dict[str, Any]]
    """The events that were submitted, by `feedbackId`."""
    down: bool
    """Whether it cannot be reached."""

    def __init__(self) -> None:
        super().__init__(self._handle)
        self.turns, self.reactions, self.events, self.down = {}, [], {}, False
        self._scripts: dict[str, _Script] = {}
        self._responses: dict[tuple[str, str], Answered] = {}
        self._failures: deque[int] = deque()
        # The client calls from the thread of its background, too.
        self._lock = threading.Lock()

    def client(self, **options: Any) -> Hearback:
        """A client of this fake, with options of `Hearback`."""
        return Hearback(**self._options(options))

    def async_client(self, **options: Any) -> AsyncHearback:
        """A client of this fake, with options of `AsyncHearback`."""
        return AsyncHearback(**self._options(options))

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"url": "http://fake", "token": "fake", "tenant": "fake", "transport": self, **given}

    def detect(
        self,
        message: str,
        feedback_type: DetectedFeedbackType,
        *,
        confidence: float = 0.9,
        clarify: bool = False,
        instructions: Sequence[str] = (),
    ) -> None:
        """Detects this in a user's message, if a turn is before it. Every other message is neutral."""
        self._scripts[message] = _Script(feedback_type, confidence, clarify, list(instructions))

    def respond(self, method: str, path: str, body: Any, status: int = 200) -> None:
        """Responds so to a method and a path, such as `/v1/preferences/user-123/resolved`."""
        self._responses[method, path] = (status, body)

    def fail(self, status: int, times: int = 1) -> None:
        """Responds to the next requests with an error."""
        self._failures.extend([status] * times)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            if self.down:
                raise httpx.ConnectError("FakeHearback is down", request=request)
            if self._failures:
                status, body = _problem(self._failures.popleft(), "scripted")
            else:
                status, body = self._route(request)
        return httpx.Response(status, json=body)

    def _route(self, request: httpx.Request) -> Answered:
        scripted = self._responses.get((request.method, request.url.path))
        if scripted is not None:
            return scripted
        segments = [unquote(segment) for segment in request.url.raw_path.decode().partition("?")[0].split("/")[1:]]
        body: Any = json.loads(request.content) if request.content else None
        match (request.method, segments):
            case "PUT", ["conversations", _, project, conversation, "turns", turn]:
                return self._register((project, conversation, turn), body)
            case "POST", ["conversations", _, project, conversation, "turns", turn, "feedback"]:
                return self._react((project, conversation, turn), body)
            case "GET", ["conversations", _, project, conversation, "turns", turn, "feedback-context"]:
                return self._context((project, conversation, turn))
            case "POST", ["v1", "feedback", "submit"]:
                return self._submit(body)
            case "POST", ["v1", "feedback", "batch"]:
                return self._submit_batch(body["events"])
            case "GET", ["v1", "feedback", id] if id in self.events:
                return 200, self._record(self.events[id])
            case _:
                return _problem(404, "not_found")

    def _register(self, key: tuple[str, str, str], body: dict[str, Any]) -> Answered:
        known = self.turns.get(key, {})
        if any(body[name] != value for name, value in known.items() if name in body):
            return _problem(409, "turn_conflict")
        self.turns[key] = {**known, **body}
        _, conversation, turn = key
        return 200 if known else 201, {
            "conversation_id": conversation,
            "turn_id": turn,
            "user_id": body.get("user_id", "fake"),
            "status": "complete" if "assistant" in self.turns[key] else "open",
            "ts": self.turns[key].get("ts"),
            "tags": [],
            "detection": self._detection(key),
        }

    def _detection(self, key: tuple[str, str, str]) -> dict[str, Any] | None:
        conversation = [each for each in self.turns if each[:2] == key[:2]]
        position = conversation.index(key)
        if position == 0 or "assistant" not in self.turns[conversation[position - 1]]:
            return None
        message = self.turns[key]["user"]["text"]
        script = self._scripts.get(message, _NEUTRAL)
        rejected = script.feedback_type == "rejected"
        return {
            "previous_turn_id": conversation[position - 1][2],
            "feedback_type": script.feedback_type,
            "confidence": script.confidence,
            "correction_type": "explicit" if rejected else None,
            "user_said": message if rejected else None,
            "evidence": [],
            "consecutive_rejections": int(rejected),
            "clarify": script.clarify,
        }

    def _context(self, key: tuple[str, str, str]) -> Answered:
        conversation = [each for each in self.turns if each[:2] == key[:2]]
        if key not in conversation:
            return _problem(404, "not_found")
        following = conversation[conversation.index(key) + 1 :][:1]
        script = self._scripts.get(self.turns[following[0]]["user"]["text"], _NEUTRAL) if following else _NEUTRAL
        rejection = {"instructions": script.instructions} if script.feedback_type == "rejected" else None
        return 200, {
            "turn_id": key[2],
            "status": script.feedback_type,
            "confidence": script.confidence,
            "rejection": rejection,
        }

    def _react(self, key: tuple[str, str, str], body: dict[str, Any]) -> Answered:
        if key not in self.turns:
            return _problem(404, "not_found")
        project, conversation, turn = key
        self.reactions.append({"project": project, "conversation_id": conversation, "turn_id": turn, **body})
        return 200, {
            "success": True,
            "turn_id": turn,
            "reaction": body["reaction"],
            "message": "Feedback recorded.",
            "cleared": body["reaction"] is None,
            "applied": True,
            "feedback_id": None,
            "rn": None,
        }

    def _submit(self, event: dict[str, Any]) -> Answered:
        id = event["feedbackId"]
        if id in self.events:
            return 409, {**_problem(409, "duplicate_feedback_id")[1], "feedbackId": id}
        self.events[id] = event
        return 202, {"feedbackId": id, "dedupeKey": id, "status": "queued"}

    def _submit_batch(self, events: list[dict[str, Any]]) -> Answered:
        results: list[dict[str, Any]] = []
        for index, event in enumerate(events):
            status = "queued" if self._submit(event)[0] == 202 else "duplicate"
            results.append({"index": index, "feedbackId": event["feedbackId"], "status": status})
        statuses = [result["status"] for result in results]
        counts = {"queued": statuses.count("queued"), "duplicates": statuses.count("duplicate")}
        return 202, {**counts, "rejected": 0, "failed": 0, "results": results}

    @staticmethod
    def _record(event: Mapping[str, Any]) -> dict[str, Any]:
        id = event["feedbackId"]
        return {
            "feedbackId": id,
            "dedupeKey": id,
            "status": "processed",
            "receivedAt": event.get("timestamp"),
            "signals": [],
            "event": event,
        }


def _problem(status: int, error: str) -> Answered:
    return status, {"type": "about:blank", "title": error, "status": status, "error": error}
