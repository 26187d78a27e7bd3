"""Registers turns around the requests of a model provider's client."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from hearback import AsyncProject, AsyncTurn, Project, Turn

from ._active import ActiveConversation, Exchange, active, guarded
from ._messages import Answer, items

_log = logging.getLogger("hearback")

# How the packages mark a call through `with_raw_response` or `with_streaming_response`.
_RESPONSE_HEADER = "X-Stainless-Raw-Response"

Collector = Callable[[Any], "Answer | None"]
"""Receives each event of a stream; returns the answer with the event that ends it."""


class Dialect(Protocol):
    """How the requests and responses of an endpoint are written."""

    def user_text(self, request: Mapping[str, Any]) -> str | None:
        """What the user says; None if the last message is not the user's."""
        ...

    def with_context(self, request: Mapping[str, Any], context: str) -> dict[str, Any]:
        """The request with more instructions to the model."""
        ...

    def answer(self, response: Any) -> Answer | None:
        """The answer to the user; None if the model waits for the caller."""
        ...

    def collector(self) -> Collector: ...


@dataclass(frozen=True)
class Provider:
    """The package of a model provider."""

    dialects: Mapping[str, Dialect]
    """By the path of the endpoint."""
    streams: tuple[type[Any], ...]


def instrumented(client: Any, project: Project | AsyncProject, provider: Provider, *, add_context: bool) -> Any:
    """A copy of a provider's client that registers turns.

    Not a proxy, which would need a type for each resource and would fail `isinstance`. Each method of each resource,
    with its helpers for streams and parsing, sends its request by the client's public `post`: this is replaced, in
    this one copy and in the copies made of it.
    """
    asynchronous = inspect.iscoroutinefunction(client.post)
    if asynchronous != isinstance(project, AsyncProject):
        raise TypeError("An asynchronous client needs a project of AsyncHearback, a synchronous one that of Hearback")
    kind = cast("Any", type(client))
    # Not `client.copy`: a client that is wrapped again would be instrumented twice.
    copied = kind.copy(client)
    recorder = _Recorder(project, provider, add_context)
    setattr(copied, "post", (recorder.around_async if asynchronous else recorder.around)(copied.post))

    @functools.wraps(copied.copy)
    def copy(**options: Any) -> Any:
        return instrumented(kind.copy(copied, **options), project, provider, add_context=add_context)

    setattr(copied, "copy", copy)
    setattr(copied, "with_options", copy)
    return copied


@dataclass(frozen=True)
class _Recorder:
    project: Any
    provider: Provider
    add_context: bool

    def around(self, post: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(post)
        def registering_post(path: str, **options: Any) -> Any:
            call = self._call(path, options)
            if call is None:
                return post(path, **options)
            with guarded():
                call.begun(call.conversation.begin(self.project, call.user_text()))
            response = post(path, **call.options)
            with guarded():
                call.observe(response.parse() if call.is_raw else response)
            return response

        return registering_post

    def around_async(self, post: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(post)
        async def registering_post(path: str, **options: Any) -> Any:
            call = self._call(path, options)
            if call is None:
                return await post(path, **options)
            with guarded():
                call.begun(await call.conversation.begin_async(self.project, call.user_text()))
            response = await post(path, **call.options)
            with guarded():
                parsed = response.parse() if call.is_raw else response
                await call.observe_async(await parsed if inspect.isawaitable(parsed) else parsed)
            return response

        return registering_post

    def _call(self, path: str, options: dict[str, Any]) -> _Call | None:
        """None if the call is not registered."""
        dialect = self.provider.dialects.get(path.partition("?")[0])
        # Who calls `post` itself may send bytes instead.
        if dialect is None or not isinstance(options.get("body"), Mapping) or (conversation := active()) is None:
            return None
        headers: Mapping[str, Any] = options.get("options", {}).get("headers") or {}
        response_kind = headers.get(_RESPONSE_HEADER)
        if response_kind == "stream":
            _log.debug("The caller of with_streaming_response reads the answer itself: no turn is registered")
            return None
        return _Call(self, dialect, conversation, options, is_raw=response_kind is not None)


class _Call:
    """A request to a model within a conversation."""

    def __init__(
        self,
        recorder: _Recorder,
        dialect: Dialect,
        conversation: ActiveConversation[Any],
        options: dict[str, Any],
        *,
        is_raw: bool,
    ) -> None:
        self.conversation = conversation
        self.is_raw = is_raw
        # What can be iterated over only once is read here, and sent from here.
        given: Mapping[str, Any] = options["body"]
        body = {name: items(value) if hasattr(value, "__next__") else value for name, value in given.items()}
        self.options: dict[str, Any] = {**options, "body": body}
        self._recorder = recorder
        self._dialect = dialect
        self._exchange: Exchange[Any] | None = None

    def user_text(self) -> str | None:
        return self._dialect.user_text(self.options["body"])

    def begun(self, exchange: Exchange[Any] | None) -> None:
        self._exchange = exchange
        if self._recorder.add_context and exchange is not None and exchange.context:
            body = self._dialect.with_context(self.options["body"], exchange.context)
            self.options = {**self.options, "body": body}

    def observe(self, response: Any) -> None:
        if self._exchange is None:
            return
        if isinstance(response, self._recorder.provider.streams):
            # The stream keeps its type: only what it iterates over is replaced.
            response._iterator = _Events(response._iterator, _Collection(self._dialect), self._exchange)
        else:
            self._exchange.complete(self._dialect.answer(response))

    async def observe_async(self, response: Any) -> None:
        if self._exchange is None:
            return
        if isinstance(response, self._recorder.provider.streams):
            response._iterator = _AsyncEvents(response._iterator, _Collection(self._dialect), self._exchange)
        else:
            await self._exchange.complete_async(self._dialect.answer(response))


class _Collection:
    """The answer of a stream, as far as it has been received."""

    def __init__(self, dialect: Dialect) -> None:
        self._collect: Collector | None = dialect.collector()

    def add(self, event: Any) -> Answer | None:
        if self._collect is None:
            return None
        # A collector that fails, or has the answer, receives no further event.
        collect, self._collect = self._collect, None
        answer = collect(event)
        if answer is None:
            self._collect = collect
        return answer


class _Events:
    """The events of a stream, collected while they pass."""

    def __init__(self, events: Iterator[Any], collection: _Collection, exchange: Exchange[Turn]) -> None:
        self._events = events
        self._collection = collection
        self._exchange = exchange

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        event = next(self._events)
        with guarded():
            self._exchange.complete(self._collection.add(event))
        return event


class _AsyncEvents:
    """The events of an asynchronous stream, collected while they pass."""

    def __init__(self, events: AsyncIterator[Any], collection: _Collection, exchange: Exchange[AsyncTurn]) -> None:
        self._events = events
        self._collection = collection
        self._exchange = exchange

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        event = await anext(self._events)
        with guarded():
            await self._exchange.complete_async(self._collection.add(event))
        return event
