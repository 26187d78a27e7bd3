"""Iterators over the feed that know where they are."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from ._bursts import Bursts, named
from .api import Api, AsyncApi
from .errors import ConnectionFailed, DeadlineExceeded, HearbackError, RateLimited, ServerError
from .types import Action, Channel, FeedbackType, FeedPage

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Between two reads of a feed that is followed, in seconds; after errors it doubles.
_PAUSE = 1.0
_LONGEST_PAUSE = 30.0

_PASSING = (ConnectionFailed, DeadlineExceeded, RateLimited, ServerError)


class FeedFilter(TypedDict, total=False):
    """Which messages; see docs/reference/feed.md."""

    since: str
    until: str
    channel: Channel
    type: FeedbackType
    outcome: Action
    project_id: str
    user_id: str
    limit: int
    """Messages on a page."""


@dataclass(frozen=True)
class FeedMessage:
    """A message of the feed."""

    event: dict[str, Any]
    """As it was published, with its `eventId`."""
    cursor: str | None
    """Where to resume once this message is processed. Some messages before it may be repeated: compare `id`."""

    @property
    def id(self) -> str:
        return str(self.event["eventId"])

    @property
    def type(self) -> str:
        """`feedback.processed`, `feedback.retracted` or `learning.signal.generated`."""
        return str(self.event["eventType"])


class _Position:
    """Where an iterator is, and what it reads next. No input or output."""

    def __init__(self, cursor: str | None, follow: bool, filter: FeedFilter) -> None:
        self.ready: deque[FeedMessage] = deque()
        self._follow = follow
        self._filter = filter
        self._after = cursor  # where this pass over the feed began: a page's cursor belongs to its query
        self._page: str | None = None
        self._done = cursor  # everything up to here is ready or returned
        self._at_end = False
        self._failures = 0
        # What was published lately is listed again by the next pass, with what was published before it but
        # appeared late.
        self._repeated: set[str] = set()
        self._recent: set[str] = set()
        self._bursts = Bursts()

    def pause(self) -> float | None:
        """The seconds until the next read, or `None` at the end."""
        if self._failures:
            return min(_PAUSE * 2.0 ** (self._failures - 1), _LONGEST_PAUSE)
        if not self._at_end:
            return 0.0
        return _PAUSE if self._follow else None

    def query(self) -> dict[str, Any]:
        return {**self._filter, "after": self._after, "cursor": self._page}

    def take(self, page: FeedPage) -> None:
        self._failures = 0
        last = page["last_event_id"]
        ids = [str(event["eventId"]) for event in page["events"]]
        # Nothing appears late before the end of this page.
        settled = bool(ids) and ids[-1] == last
        for id, event in zip(ids, page["events"], strict=True):
            if id not in self._repeated:
                at_end_of_page = id == ids[-1]
                resume = id if settled else last if at_end_of_page else self._done
                self.ready.append(FeedMessage(event, resume))
        if not settled:
            self._recent.update(ids)
        self._done = last
        self._page = page.get("next_cursor")
        self._at_end = self._page is None
        if self._at_end:
            self._after = last
            self._repeated, self._recent = self._recent, set()

    def fail(self, error: HearbackError) -> None:
        """Continues later if the feed is followed; otherwise the caller may, from the same place."""
        if not (self._follow and isinstance(error, _PASSING)):
            raise error
        self._failures = min(self._failures + 1, 16)
        self._bursts.warn("feed", "The feed cannot be read now: %s", named(error))


class Feed(Iterator[FeedMessage]):
    """The messages of the feed, the oldest first. After an error, the next call of `next` continues."""

    def __init__(
        self, api: Api, cursor: str | None = None, follow: bool = False, **filter: Unpack[FeedFilter]
    ) -> None:
        self._api = api
        self._position = _Position(cursor, follow, filter)

    def __next__(self) -> FeedMessage:
        position = self._position
        while not position.ready:
            pause = position.pause()
            if pause is None:
                raise StopIteration
            time.sleep(pause)
            try:
                position.take(self._api.list_events(**position.query()))
            except HearbackError as error:
                position.fail(error)
        return position.ready.popleft()


class AsyncFeed(AsyncIterator[FeedMessage]):
    """The messages of the feed, the oldest first. After an error, the next call of `anext` continues."""

    def __init__(
        self, api: AsyncApi, cursor: str | None = None, follow: bool = False, **filter: Unpack[FeedFilter]
    ) -> None:
        self._api = api
        self._position = _Position(cursor, follow, filter)

    async def __anext__(self) -> FeedMessage:
        position = self._position
        while not position.ready:
            pause = position.pause()
            if pause is None:
                raise StopAsyncIteration
            await asyncio.sleep(pause)
            try:
                position.take(await self._api.list_events(**position.query()))
            except HearbackError as error:
                position.fail(error)
        return position.ready.popleft()
