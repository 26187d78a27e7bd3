"""Sends requests with the policy of `_retry`: for threads, and for asyncio. The two differ in nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import ssl
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet

import httpx

from ._operation import Request
from ._retry import Attempt, Lost, Response, exchange
from ._settings import base_url
from ._tokens import AsyncToken, AsyncTokens, Secret, Token, Tokens
from ._version import __version__
from .errors import HearbackError

T = TypeVar("T")

TIMEOUT = 10.0
DEADLINE = 30.0


class _Base:
    """Where requests go, and how long they may take, in seconds: `timeout` one attempt, `deadline` a call."""

    def __init__(self, url: str | None, timeout: float, deadline: float) -> None:
        self._url = base_url(url)
        self._timeout = timeout
        self._deadline = deadline

    def _exchange(
        self, request: Request[Any], deadline: float | None, *, renewable: bool, retry: bool
    ) -> Generator[Attempt, Response | Lost, Any]:
        end = time.monotonic() + (self._deadline if deadline is None else deadline)
        return exchange(request, timeout=self._timeout, end=end, renewable=renewable, retry=retry)


class Transport(_Base):
    """A connection pool to one Hearback, with a token. Thread-safe."""

    def __init__(
        self,
        url: str | None = None,
        token: Token | None = None,
        *,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`transport` replaces the network."""
        super().__init__(url, timeout, deadline)
        self._tokens = Tokens(token)
        self._transport = transport
        self._client = self._connect()
        _transports.add(self)

    def token(self) -> str:
        """The token of the next request."""
        return self._tokens.get()

    def close(self) -> None:
        self._client.close()

    def after_fork(self) -> None:
        """Leaves the connections to the parent. Both would read from them."""
        self._client = self._connect()
        self._tokens.unlock()

    def send(self, request: Request[T], deadline: float | None = None, *, retry: bool = True) -> T:
        """Returns the body of the success, or `None` if it has none. Raises a `HearbackError`."""
        if self._client.is_closed:
            raise HearbackError("the client was closed")
        attempts = self._exchange(request, deadline, renewable=self._tokens.renewable, retry=retry)
        attempt, token = next(attempts), None
        while True:
            if attempt.pause:
                time.sleep(attempt.pause)
            token = self._tokens.get(rejected=token if attempt.fresh_token else None)
            outcome = self._attempt(attempt, token)
            try:
                attempt = attempts.send(outcome)
            except StopIteration as success:
                return cast(T, success.value)

    def _connect(self) -> httpx.Client:
        return httpx.Client(transport=self._transport, verify=_certificates())

    def _attempt(self, attempt: Attempt, token: Secret) -> Response | Lost:
        content = bytearray()
        try:
            response = self._client.send(_request(self._url, attempt, token), stream=True)
            try:
                for chunk in response.iter_bytes():
                    content += chunk
                    _check_time(attempt.until)
            finally:
                response.close()
        except httpx.RequestError as error:
            return _lost(error)
        return Response(response.status_code, response.headers, bytes(content))


class AsyncTransport(_Base):
    """The same for asyncio, in any number of event loops."""

    def __init__(
        self,
        url: str | None = None,
        token: AsyncToken | None = None,
        *,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, timeout, deadline)
        self._tokens = AsyncTokens(token)
        self._transport = transport
        # A connection belongs to the event loop that opened it.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    async def token(self) -> str:
        """The token of the next request."""
        return await self._tokens.get()

    async def close(self) -> None:
        """Closes the connections of this event loop. Those of others end with them."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def send(self, request: Request[T], deadline: float | None = None, *, retry: bool = True) -> T:
        """Returns the body of the success, or `None` if it has none. Raises a `HearbackError`."""
        attempts = self._exchange(request, deadline, renewable=self._tokens.renewable, retry=retry)
        attempt, token = next(attempts), None
        while True:
            if attempt.pause:
                await asyncio.sleep(attempt.pause)
            token = await self._tokens.get(rejected=token if attempt.fresh_token else None)
            outcome = await self._attempt(attempt, token)
            try:
                attempt = attempts.send(outcome)
            except StopIteration as success:
                return cast(T, success.value)

    async def _attempt(self, attempt: Attempt, token: Secret) -> Response | Lost:
        content = bytearray()
        try:
            response = await self._client().send(_request(self._url, attempt, token), stream=True)
            try:
                async for chunk in response.aiter_bytes():
                    content += chunk
                    _check_time(attempt.until)
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            return _lost(error)
        return Response(response.status_code, response.headers, bytes(content))

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = httpx.AsyncClient(transport=self._transport, verify=_certificates())
        return self._clients[loop]


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Loaded once: it takes longer than a request."""
    return httpx.create_ssl_context()


class _TimeLeft(Mapping[str, float]):
    """The timeouts of httpx: each is what is left when its step of the request begins."""

    def __init__(self, until: float) -> None:
        self._until = until

    def __getitem__(self, step: str) -> float:
        # With 0, a socket would not block at all.
        return max(self._until - time.monotonic(), 0.001)

    def __iter__(self) -> Iterator[str]:
        return iter(("connect", "read", "write", "pool"))

    def __len__(self) -> int:
        return 4


def _request(url: str, attempt: Attempt, token: Secret) -> httpx.Request:
    request = attempt.request
    return httpx.Request(
        request.method,
        url + request.path,
        params=request.query,
        headers={
            **request.headers,
            "Accept": "application/json",
            "Authorization": f"Bearer {token}",
            "User-Agent": f"hearback-python/{__version__}",
        },
        content=request.content,
        extensions={"timeout": _TimeLeft(attempt.until)},
    )


def _check_time(until: float) -> None:
    """The timeouts of httpx are for each chunk: they do not end a response that trickles."""
    if time.monotonic() > until:
        raise httpx.ReadTimeout("the response takes too long")


def _lost(error: httpx.RequestError) -> Lost:
    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
    # Only what httpx raises itself has a request.
    with contextlib.suppress(RuntimeError):
        url = error.request.url
        reason = f"{url.scheme}://{url.netloc.decode()}: {reason}"
    return Lost(
        reason=reason,
        sent=not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)),
        timed_out=isinstance(error, httpx.TimeoutException),
    )


_transports: WeakSet[Transport] = WeakSet()


def _after_fork() -> None:
    for transport in _transports:
        transport.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
