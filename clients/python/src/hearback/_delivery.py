"""One item on its way to Hearback, and what the outcome of an attempt means for it. No input or output."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .errors import ApiError, BadRequest, ConnectionFailed, HearbackError, TokenError, api_error

Lane = Hashable
"""A conversation: what is in one lane is delivered in order."""

Send = Callable[[Any], Mapping[str, Any]]
"""Sends a body, attempting it once. Returns the body of the response."""

DeliveryStatus = Literal["pending", "accepted", "failed", "dropped"]


class Delivery:
    """One item of the buffer. Only the buffer changes it, with its lock held."""

    __slots__ = (
        "attempts",
        "callbacks",
        "content",
        "error",
        "feedback_id",
        "lane",
        "not_before",
        "number",
        "progress",
        "queued_at",
        "send",
        "status",
        "strikes",
        "suspect",
    )

    def __init__(self, content: bytes, lane: Lane | None, send: Send | None, feedback_id: str | None) -> None:
        self.content = content
        """The body as JSON; empty once it is settled."""
        self.lane = lane
        self.send = send
        """`None` for an event, which is sent in a batch."""
        self.feedback_id = feedback_id
        self.status: DeliveryStatus = "pending"
        self.error: Exception | None = None
        self.callbacks: list[Callable[[], None]] = []
        """Called once it is settled."""
        self.number = 0
        self.queued_at = 0.0
        self.not_before = 0.0
        self.attempts = 0
        self.suspect = False
        """Whether it may be the reason of a failure, so that an event is sent alone."""
        self.strikes = 0
        """How often it failed while others were accepted."""
        self.progress = 0
        """How much had been accepted when it failed last."""

    @classmethod
    def accepted(cls, reply: Mapping[str, Any]) -> Delivery:
        """One that was sent in the foreground, with the response's body."""
        delivery = cls(b"", None, None, feedback_id_of(reply))
        delivery.status = "accepted"
        return delivery


def feedback_id_of(reply: Mapping[str, Any]) -> str | None:
    """The id in the response to an event, a batch's result or a reaction. A turn has none."""
    return reply.get("feedbackId") or reply.get("feedback_id")


@dataclass(frozen=True)
class Accepted:
    """It is stored."""

    feedback_id: str | None


@dataclass(frozen=True)
class Rejected:
    """It never will be stored."""

    error: Exception


@dataclass(frozen=True)
class Postponed:
    """It may be stored later."""

    error: Exception
    blamed: bool
    """Whether the item itself may be the reason: others may pass while it fails."""


@dataclass(frozen=True)
class Divided:
    """The request failed because of one of its events, and is repeated in parts to find out which."""

    error: Exception


Outcome = Accepted | Rejected | Postponed | Divided

# Nothing was done, and it is not due to the request.
_PASSING = {408, 429, 502, 503, 504}


def outcome_of_error(error: Exception, *, alone: bool) -> Outcome:
    """What a failed request means for its item, or, if it is not `alone` in the request, for each of its items."""
    status = error.status if isinstance(error, ApiError) else None
    if status in _PASSING or isinstance(error, ConnectionFailed | TokenError):
        return Postponed(error, blamed=False)
    if not alone and (isinstance(error, BadRequest) or not _is_answer(status)):
        return Divided(error)
    # A timeout and a 500 may be due to the item, and may pass. A request that cannot even be made never can.
    if _is_answer(status) or isinstance(error, TypeError | ValueError):
        return Rejected(error)
    return Postponed(error, blamed=True)


def _is_answer(status: int | None) -> bool:
    """Whether the status is a decision on the request, rather than a failure to decide."""
    return status is not None and 300 <= status < 500


def outcomes_of_batch(reply: Mapping[str, Any], count: int) -> list[Outcome]:
    """The outcomes of the events of a batch, by their position."""
    outcomes: list[Outcome] = [
        Postponed(HearbackError("the response has no result for the event"), blamed=True)
    ] * count
    results: Sequence[Mapping[str, Any]] = reply["results"]
    for result in results:
        outcomes[result["index"]] = _outcome_of_result(result, f"/events/{result['index']}")
    return outcomes


def _outcome_of_result(result: Mapping[str, Any], pointer: str) -> Outcome:
    if result["status"] in {"queued", "duplicate"}:
        # A duplicate is the repeat of an attempt whose response was lost.
        return Accepted(result["feedbackId"])
    problem: Mapping[str, Any] = result["error"]
    # As a submission of the event alone would name its members.
    members: list[Mapping[str, str]] = problem.get("errors", [])
    named = [{**member, "pointer": member["pointer"].removeprefix(pointer)} for member in members]
    error = api_error(problem["status"], {**problem, "errors": named})
    return Postponed(error, blamed=False) if result["status"] == "failed" else Rejected(error)
