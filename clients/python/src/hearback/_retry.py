"""When a request is sent again: the policy, without input and output.

A call is a generator of attempts, like an auth flow of httpx. A driver makes each attempt, blocking or not, and sends
back its outcome. The generator returns the body of the success, or raises the error of the call.

An attempt that fails for a reason that may pass is repeated if the operation allows that, or if the attempt was
certainly not executed. The repeat of an attempt that was executed gets the same response, except that

- a submitted event is 409 `duplicate_feedback_id`. The event is read: if the caller may read it, it is a success, with
  the body of the first response. Otherwise somebody else's event has the id.
- a removed webhook is 404. After an attempt that may have removed it, that is a success.
- changed preferences, and with `If-Match` reset ones, are 409 `version_conflict`. The API does not show whose change is
  the current one, so the call fails. A caller who reads the preferences again, as after any conflict, sees it.
- a new webhook is returned without its secret, which can be renewed.
- a cleared reaction is `cleared: false`, and a new message signal 200 instead of 201.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from typing import Any, cast

from ._operation import Operation, Request, decode
from .errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    HearbackError,
    NotFound,
    Unauthorized,
    api_error,
)

# The longest pause, in seconds, before the second attempt; it doubles with each, up to the other.
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0

_READ_FEEDBACK: Operation[Any] = Operation("GET", "/v1/feedback/{feedbackId}")


@dataclass(frozen=True)
class Attempt:
    """What a driver does next: pause, then send the request, and wait for the response until a time."""

    request: Request[Any]
    pause: float
    until: float
    """A time of `time.monotonic`."""
    fresh_token: bool
    """Whether the token of the attempt before was rejected."""


@dataclass(frozen=True)
class Response:
    """The outcome of an attempt that was answered."""

    status: int
    headers: Mapping[str, str]
    """With names in lower case."""
    content: bytes


@dataclass(frozen=True)
class Lost:
    """The outcome of an attempt without a response."""

    reason: str
    sent: bool
    """Whether the server may have received the request."""
    timed_out: bool


def exchange(
    request: Request[Any], *, timeout: float, end: float, renewable: bool, retry: bool = True
) -> Generator[Attempt, Response | Lost, Any]:
    """Attempts a request, each time for at most `timeout` seconds, until it succeeds or the time is `end`.

    `renewable` is whether a rejected token can be replaced, which is done once, also without `retry`.
    """
    pause, longest_pause = 0.0, FIRST_PAUSE
    fresh_token = False
    executed = False  # whether an earlier attempt may have been executed
    before: HearbackError | None = None
    while True:
        until = min(time.monotonic() + pause + timeout, end)
        outcome = yield Attempt(request, pause, until, fresh_token)
        if isinstance(outcome, Response) and 200 <= outcome.status < 300:
            return _body(outcome)
        error = _error(outcome, was_last=until == end)
        if isinstance(error, Unauthorized) and renewable:
            renewable, fresh_token, pause = False, True, 0.0
            continue
        if executed and request.settled_by is not None and _code(error) == request.settled_by:
            return (yield from _settle(error, timeout=timeout, end=end, renewable=renewable))
        may_be_executed = _may_be_executed(outcome)
        if not retry or not _may_pass(outcome) or (may_be_executed and not request.repeatable):
            raise error
        if before is not None and isinstance(error, DeadlineExceeded) and not may_be_executed:
            # The time was up before it was sent. The attempt before says why.
            raise before
        before = error
        pause = _pause(error, longest_pause)
        if time.monotonic() + pause >= end:
            raise error
        longest_pause = min(2 * longest_pause, LONGEST_PAUSE)
        fresh_token = False
        executed = executed or may_be_executed


def _settle(
    error: HearbackError, *, timeout: float, end: float, renewable: bool
) -> Generator[Attempt, Response | Lost, Any]:
    """Returns what the first attempt would have returned, as far as this error of the repeat shows it was executed."""
    if not isinstance(error, Conflict):
        return None  # what was to be removed is not there any more
    feedback_id = str(error.problem.get("feedbackId"))
    read = _READ_FEEDBACK.request(path={"feedbackId": feedback_id})
    try:
        record = yield from exchange(read, timeout=timeout, end=end, renewable=renewable)
    except NotFound:
        raise error from None
    return {"feedbackId": record["feedbackId"], "dedupeKey": record["dedupeKey"], "status": "queued"}


def _pause(error: HearbackError, longest: float) -> float:
    """Full jitter, on top of what the server asks for: it asks all of its clients for the same."""
    asked = error.retry_after if isinstance(error, ApiError) else None
    return (asked or 0.0) + random.uniform(0, longest)


def _may_pass(outcome: Response | Lost) -> bool:
    return isinstance(outcome, Lost) or outcome.status in {408, 429, 500, 502, 503, 504}


def _may_be_executed(outcome: Response | Lost) -> bool:
    """Whether a failed attempt may have had its effect. See docs/reference/errors.md."""
    if isinstance(outcome, Lost):
        return outcome.sent
    return outcome.status >= 500 and _problem(outcome).get("error") != "overloaded"


def _code(error: HearbackError) -> str | None:
    return error.error if isinstance(error, ApiError) else None


def _error(outcome: Response | Lost, *, was_last: bool) -> HearbackError:
    if isinstance(outcome, Lost):
        late = outcome.timed_out and was_last
        return DeadlineExceeded("no response in time") if late else ConnectionFailed(outcome.reason)
    request_id = outcome.headers.get("x-request-id")
    problem = _problem(outcome)
    if not problem and (outcome.status < 400 or outcome.status in {404, 405}):
        problem = {"detail": "The response is not of Hearback's API. Is HEARBACK_URL right?"}
    return api_error(outcome.status, problem, request_id, retry_after(outcome.headers))


def _body(response: Response) -> Any:
    try:
        return decode(response.content) if response.content else None
    except ValueError:
        raise ApiError(response.status, {"detail": "The response is not JSON."}) from None


def _problem(response: Response) -> dict[str, Any]:
    try:
        document = decode(response.content)
    except ValueError:
        return {}
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of `Retry-After`. A time is relative to the response's own `Date`: this clock may be wrong."""
    value = headers.get("retry-after", "")
    if re.fullmatch("[0-9]{1,9}", value):
        return float(value)
    try:
        now = parsedate_to_datetime(headers.get("date", formatdate(usegmt=True)))
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (TypeError, ValueError):
        return None
