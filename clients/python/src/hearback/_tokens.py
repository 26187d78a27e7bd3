"""Where the token comes from, and when a function is asked for a fresh one.

A token is never part of a `repr`, a log record or an error.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from .errors import TokenError

Token = str | Callable[[], str]
AsyncToken = str | Callable[[], str] | Callable[[], Awaitable[str]]


class Secret(str):
    """A token in a variable, whose value reporters of errors may collect."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class Tokens:
    """The token of a synchronous client. Thread-safe."""

    def __init__(self, source: Token | None) -> None:
        self._source = source if callable(source) else _given(source)
        self._token: Secret | None = None
        self.unlock()

    def unlock(self) -> None:
        """Replaces the lock: in the child of a fork, it may belong to a thread that does not exist there."""
        self._lock = threading.Lock()

    @property
    def renewable(self) -> bool:
        return callable(self._source)

    def get(self, rejected: Secret | None = None) -> Secret:
        """The token, or a fresh one if it is the rejected one. Of many threads, the first asks for all."""
        with self._lock:
            if self._token in (None, rejected):
                self._token = self._ask()
            assert self._token is not None
            return self._token

    def _ask(self) -> Secret:
        if isinstance(self._source, Secret):
            return self._source
        try:
            token = self._source()
        except Exception as error:
            raise _failed(error) from error
        return _checked(token)


class AsyncTokens:
    """The token of an asynchronous client."""

    def __init__(self, source: AsyncToken | None) -> None:
        self._source = source if callable(source) else _given(source)
        self._token: Secret | None = None
        # A lock of asyncio belongs to one event loop.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def renewable(self) -> bool:
        return callable(self._source)

    async def get(self, rejected: Secret | None = None) -> Secret:
        """The token, or a fresh one if it is the rejected one. Of many tasks, the first asks for all."""
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            if self._token in (None, rejected):
                self._token = await self._ask()
            assert self._token is not None
            return self._token

    async def _ask(self) -> Secret:
        if isinstance(self._source, Secret):
            return self._source
        try:
            given = self._source()
            token = given if isinstance(given, str) else await given
        except Exception as error:
            raise _failed(error) from error
        return _checked(token)


def _given(given: str | None) -> Secret:
    token = given or os.environ.get("HEARBACK_TOKEN")
    if not token:
        raise TokenError("no token: pass one, or set HEARBACK_TOKEN")
    return _checked(token)


def _checked(token: object) -> Secret:
    """A token that a header can have. Otherwise the HTTP library quotes it in its error."""
    stripped = token.strip() if isinstance(token, str) else ""
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise TokenError("the token must be a string of visible ASCII characters")
    return Secret(stripped)


def _failed(error: Exception) -> TokenError:
    return TokenError(f"the token function failed with {type(error).__name__}")
