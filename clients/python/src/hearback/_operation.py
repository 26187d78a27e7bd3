"""What an operation of the API is, and the request that a call of it makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Generic, TypeVar
from urllib.parse import quote

T = TypeVar("T")

Parameter = str | int | bool | None


class Repeat(Enum):
    """Whether a request may be sent again if an earlier attempt may have been executed."""

    SAFE = auto()
    """A repeat changes nothing."""
    CONDITIONAL = auto()
    """With `If-Match`, a repeat changes nothing."""
    UNSAFE = auto()
    """A repeat does it once more."""


@dataclass(frozen=True)
class Operation(Generic[T]):
    """One operation of the OpenAPI document. `T` is the body of its success."""

    method: str
    path: str
    """With a name in braces for each path parameter."""
    repeat: Repeat = Repeat.SAFE
    settled_by: str | None = None
    """The `error` of a repeat that shows that an earlier attempt was executed."""

    def request(
        self,
        *,
        path: Mapping[str, str] = {},
        query: Mapping[str, Parameter] = {},
        headers: Mapping[str, str | None] = {},
        body: object = None,
    ) -> Request[T]:
        """Raises `ValueError` or `TypeError` for what cannot be sent."""
        given = {name: value for name, value in headers.items() if value is not None}
        if body is not None:
            given["Content-Type"] = "application/json"
        return Request(
            method=self.method,
            path=self.path.format_map({name: _segment(name, value) for name, value in path.items()}),
            query={name: _text(value) for name, value in query.items() if value is not None},
            headers=given,
            content=None if body is None else encode(body),
            repeatable=self.repeat is Repeat.SAFE or (self.repeat is Repeat.CONDITIONAL and "If-Match" in given),
            settled_by=self.settled_by,
        )


@dataclass(frozen=True)
class Request(Generic[T]):
    """A request of an operation, without the token, which each attempt adds."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes | None
    repeatable: bool
    settled_by: str | None


def encode(body: object) -> bytes:
    """The body of a request as JSON.

    Half of a surrogate pair, as truncated emoji leave it in texts of users and models, has no UTF-8. It becomes
    U+FFFD, as in a browser, so that it does not cost the whole feedback.
    """
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def decode(content: bytes) -> Any:
    """The value of a body. Raises `ValueError` if it is not JSON."""
    return json.loads(content)


def _segment(name: str, value: str) -> str:
    """A path parameter as one segment. An empty one would address another resource."""
    if not value:
        raise ValueError(f"the path parameter {name} must not be empty")
    # Clients and proxies remove the segments `.` and `..`, which are valid identifiers here.
    return value.replace(".", "%2E") if value in {".", ".."} else quote(value, safe="")


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
