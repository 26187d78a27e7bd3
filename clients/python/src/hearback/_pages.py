"""The pages of a list, from any operation that has them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
Page = TypeVar("Page")


def pages(operation: Callable[P, Page], *args: P.args, **kwargs: P.kwargs) -> Iterator[Page]:
    """Each page of a list: `pages(hb.api.list_turns_by_status, tenant=…)` takes what the operation takes."""
    following: dict[str, Any] | None = dict(kwargs)
    while following is not None:
        page = cast("Callable[..., Page]", operation)(*args, **following)
        yield page
        following = _following(following, page)


async def async_pages(
    operation: Callable[P, Awaitable[Page]], *args: P.args, **kwargs: P.kwargs
) -> AsyncIterator[Page]:
    """The same for the operations of `AsyncApi`."""
    following: dict[str, Any] | None = dict(kwargs)
    while following is not None:
        page = await cast("Callable[..., Awaitable[Page]]", operation)(*args, **following)
        yield page
        following = _following(following, page)


def _following(arguments: dict[str, Any], page: object) -> dict[str, Any] | None:
    """The arguments of the next page. Reports have the cursor in the body, and a history has numbers of versions."""
    members = cast("Mapping[str, Any]", page)
    cursor, before = members.get("next_cursor"), members.get("next")
    if cursor is not None:
        if "body" in arguments:
            return {**arguments, "body": {**arguments["body"], "cursor": cursor}}
        return {**arguments, "cursor": cursor}
    return None if before is None else {**arguments, "before": before}
