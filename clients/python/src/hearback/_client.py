"""The two clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypedDict, TypeVar

import httpx

from ._conversation import AsyncProject, Project
from ._engine import AsyncEngine, Engine
from ._feed import AsyncFeed, Feed, FeedFilter
from ._pages import async_pages, pages
from ._queue import Stats
from ._receipt import AsyncReceipt, Receipt
from ._tokens import AsyncToken, Token
from ._transport import AsyncTransport, Transport
from ._turns import submission
from .api import Api, AsyncApi
from .types import (
    Channel,
    CorrectionData,
    FeedbackData,
    FeedbackEvent,
    FeedbackEventContext,
    FeedbackType,
    PrivacyFlags,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
Page = TypeVar("Page")

PATIENCE = 1.0
BUFFER_SIZE = 10_000
BUFFER_BYTES = 64 * 1024 * 1024


class _NewEventRequired(TypedDict):
    userId: str
    sessionId: str
    feedbackChannel: Channel


class NewEvent(_NewEventRequired, total=False):
    """A feedback event. A `feedbackId` and a `timestamp` that are left out are filled in."""

    feedbackId: str
    feedbackType: FeedbackType
    artifactId: str
    data: FeedbackData
    correctionData: CorrectionData
    context: FeedbackEventContext
    privacyFlags: PrivacyFlags
    timestamp: str


class Hearback:
    """A client for threads. One is enough for a process; it is also a context manager."""

    api: Api
    """Every operation of the API. These raise `HearbackError`."""

    def __init__(
        self,
        url: str | None = None,
        token: Token | None = None,
        *,
        tenant: str | None = None,
        patience: float = PATIENCE,
        strict: bool = False,
        buffer_size: int = BUFFER_SIZE,
        buffer_bytes: int = BUFFER_BYTES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """What is left out comes from the environment: `HEARBACK_URL`, `HEARBACK_TOKEN`, `HEARBACK_TENANT`.

        - `token`: a token, or a function that returns one and is called again when Hearback rejects that.
        - `tenant`: the claim of the token if left out here and in the environment.
        - `patience`: the seconds that `begin` may take.
        - `strict`: `begin` and everything that is otherwise sent in the background waits for Hearback, and raises.
          For scripts and tests.
        - `buffer_size`, `buffer_bytes`: how much may wait in the background; what does not fit is dropped.
        - `transport`: replaces the network, for tests.
        """
        self._transport = Transport(url, token, transport=transport)
        self._token, self._tenant = token, tenant
        self.api = Api(self._transport)
        self._engine = Engine(
            self.api,
            self._transport,
            tenant,
            patience=patience,
            strict=strict,
            buffer_size=buffer_size,
            buffer_bytes=buffer_bytes,
        )

    def project(self, name: str) -> Project:
        """A project of the tenant. Raises `ValueError` if the tenant is not known."""
        if not callable(self._token):
            self._engine.tenant()
        return Project(self._engine, name)

    def submit(self, event: NewEvent | FeedbackEvent) -> Receipt:
        """Sends a feedback event in the background, with others in a batch."""
        return self._engine.deliver(submission(event))

    def feed(self, cursor: str | None = None, *, follow: bool = False, **filter: Unpack[FeedFilter]) -> Feed:
        """The messages of the feed, the oldest first: from the beginning, or from a message's `cursor`.

        With `follow`, it does not end: it waits for new messages, also while Hearback cannot be reached.
        """
        return Feed(self.api, cursor, follow, **filter)

    def pages(self, operation: Callable[P, Page], *args: P.args, **kwargs: P.kwargs) -> Iterator[Page]:
        """Each page of a list, from an operation of `api` and its arguments:

            hb.pages(hb.api.list_turns_by_status, tenant=hb.tenant(), project="p", user_feedback_status="rejected")
        """
        return pages(operation, *args, **kwargs)

    def tenant(self) -> str:
        """The tenant, which many operations of `api` need. Raises `ValueError` if it is not known."""
        return self._engine.tenant()

    @property
    def stats(self) -> Stats:
        """Numbers about the background."""
        return self._engine.buffer.stats

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until what is in the background now has been sent or rejected; returns whether it has."""
        return self._engine.buffer.flush(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Sends what is in the background, for at most `timeout` seconds, and drops the rest. At exit it is called."""
        self._engine.buffer.close(timeout)
        self._transport.close()

    def __enter__(self) -> Hearback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncHearback:
    """A client for asyncio. One is enough for a process; it is also an asynchronous context manager."""

    api: AsyncApi
    """Every operation of the API. These raise `HearbackError`."""

    def __init__(
        self,
        url: str | None = None,
        token: AsyncToken | None = None,
        *,
        tenant: str | None = None,
        patience: float = PATIENCE,
        strict: bool = False,
        buffer_size: int = BUFFER_SIZE,
        buffer_bytes: int = BUFFER_BYTES,
        transport: httpx.MockTransport | None = None,
    ) -> None:
        """As for `Hearback`. The function for the token may also be asynchronous; the thread of the background calls
        it in an event loop of its own."""
        self._transport = AsyncTransport(url, token, transport=transport)
        self._background = Transport(url, _blocking(token), transport=transport)
        self._token, self._tenant = token, tenant
        self.api = AsyncApi(self._transport)
        self._engine = AsyncEngine(
            self.api,
            self._transport,
            self._background,
            tenant,
            patience=patience,
            strict=strict,
            buffer_size=buffer_size,
            buffer_bytes=buffer_bytes,
        )

    def project(self, name: str) -> AsyncProject:
        """A project of the tenant. Raises `ValueError` if the tenant is not known."""
        if not callable(self._token):
            self._engine.tenant()
        return AsyncProject(self._engine, name)

    async def submit(self, event: NewEvent | FeedbackEvent) -> AsyncReceipt:
        """Sends a feedback event in the background, with others in a batch. Waits for nothing, unless strict."""
        return await self._engine.deliver(submission(event))

    def feed(self, cursor: str | None = None, *, follow: bool = False, **filter: Unpack[FeedFilter]) -> AsyncFeed:
        """The messages of the feed, the oldest first: from the beginning, or from a message's `cursor`.

        With `follow`, it does not end: it waits for new messages, also while Hearback cannot be reached.
        """
        return AsyncFeed(self.api, cursor, follow, **filter)

    def pages(self, operation: Callable[P, Awaitable[Page]], *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Page]:
        """Each page of a list, from an operation of `api` and its arguments."""
        return async_pages(operation, *args, **kwargs)

    async def tenant(self) -> str:
        """The tenant, which many operations of `api` need. Raises `ValueError` if it is not known."""
        return await self._engine.tenant_async()

    @property
    def stats(self) -> Stats:
        """Numbers about the background."""
        return self._engine.buffer.stats

    async def flush(self, timeout: float | None = None) -> bool:
        """Waits until what is in the background now has been sent or rejected; returns whether it has."""
        return await asyncio.to_thread(self._engine.buffer.flush, timeout)

    async def close(self, timeout: float = 5.0) -> None:
        """Sends what is in the background, for at most `timeout` seconds, and drops the rest. At exit it is called."""
        await asyncio.to_thread(self._engine.buffer.close, timeout)
        self._background.close()
        await self._transport.close()

    async def __aenter__(self) -> AsyncHearback:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def _blocking(token: AsyncToken | None) -> Token | None:
    """For the thread of the background."""
    if token is None or isinstance(token, str):
        return token

    def ask() -> str:
        given = token()
        return given if isinstance(given, str) else asyncio.run(_result(given))

    return ask


async def _result(awaitable: Awaitable[str]) -> str:
    return await awaitable
