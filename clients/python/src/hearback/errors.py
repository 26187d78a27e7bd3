"""What a call raises.

A message has the status, what the server says about it, and the members that are wrong; never a body or a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class InvalidMember(NamedTuple):
    """A member of a request that the server rejects."""

    pointer: str
    """Which one, as a JSON Pointer (RFC 6901): `/data/rating`."""
    detail: str
    """What is expected there."""


class HearbackError(Exception):
    """Everything that a call raises, except for arguments that cannot be sent."""


class TokenError(HearbackError):
    """There is no usable token. The request was not sent."""


class ConnectionFailed(HearbackError):
    """No response arrived: the server may or may not have executed the request."""


class DeadlineExceeded(HearbackError):
    """No response arrived in time: the server may or may not have executed the request."""


class ApiError(HearbackError):
    """A response that is not the expected one."""

    def __init__(
        self,
        status: int,
        problem: Mapping[str, Any],
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, problem, request_id, retry_after)
        self.status = status
        self.problem = problem
        """The problem document (RFC 9457), or what a gateway in front of the server responded as JSON."""
        self.request_id = request_id
        """Identifies the request in the server's log."""
        self.retry_after = retry_after
        """The seconds that the server asks to wait before the next attempt."""

    @property
    def error(self) -> str | None:
        """What went wrong, for a program: `turn_conflict`."""
        return self._text("error")

    @property
    def detail(self) -> str | None:
        """What went wrong, for a person."""
        # An HTTP API in AWS responds with `message` to what does not reach a function.
        return self._text("detail") or self._text("message") or self._text("title")

    @property
    def errors(self) -> list[InvalidMember]:
        """The members of the request that are wrong."""
        listed: list[dict[str, str]] = self.problem.get("errors") or []
        return [InvalidMember(member["pointer"], member["detail"]) for member in listed]

    def __str__(self) -> str:
        message = " ".join(part for part in (str(self.status), self.error) if part)
        message += f": {self.detail}" if self.detail else ""
        members = "; ".join(f"{member.pointer or 'and'} {member.detail}" for member in self.errors)
        message += f" {members}" if members else ""
        return f"{message} (request {self.request_id})" if self.request_id else message

    def _text(self, name: str) -> str | None:
        value = self.problem.get(name)
        return value if isinstance(value, str) else None


class BadRequest(ApiError):
    """400, 413 or 422: the request is invalid or too large. `errors` has its invalid members."""


class Unauthorized(ApiError):
    """401: the token is not valid, and a token function gave no valid one either."""


class Forbidden(ApiError):
    """403: the token does not allow it."""


class NotFound(ApiError):
    """404: no such resource, or not the caller's."""


class Conflict(ApiError):
    """409: the request contradicts what is stored; `error` says how.

    A change of preferences whose response was lost is also a `version_conflict` when it is repeated: read the
    preferences to see whether `currentVersion` is your own change.
    """


class RateLimited(ApiError):
    """429: too many requests."""


class ServerError(ApiError):
    """5xx: the server failed. It may or may not have executed the request."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    422: BadRequest,
    429: RateLimited,
}


def api_error(
    status: int, problem: Mapping[str, Any], request_id: str | None = None, retry_after: float | None = None
) -> ApiError:
    """The error of a response, or of one event of a batch."""
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    return kind(status, problem, request_id, retry_after)
