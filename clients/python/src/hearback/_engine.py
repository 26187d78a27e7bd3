"""Executes what a client asks for: in the background, or at once. One engine for threads, one for asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from . import _settings
from ._buffer import Buffer
from ._bursts import Bursts, named
from ._delivery import Delivery, Lane
from ._receipt import AsyncReceipt, Receipt, settled
from ._transport import DEADLINE, TIMEOUT, AsyncTransport, Transport
from ._turns import Call, Draft, Knowledge, Opening
from .api import Api, AsyncApi
from .errors import ConnectionFailed, DeadlineExceeded
from .types import BatchResults, FeedbackRecord

T = TypeVar("T")


class Background:
    """What both engines share: the buffer, and the synchronous calls of its thread."""

    def __init__(
        self,
        transport: Transport,
        tenant: str | None,
        *,
        patience: float,
        strict: bool,
        buffer_size: int,
        buffer_bytes: int,
    ) -> None:
        self.buffer = Buffer(self._send_batch, size=buffer_size, max_bytes=buffer_bytes)
        self._strict = strict
        self._patience = patience
        self._given_tenant = tenant
        self._background = transport
        self._bursts = Bursts()
        # The buffer has its own pauses, which `flush` and `close` cut short.
        self._once = Api(transport).within(TIMEOUT, retry=False)

    def tenant(self) -> str:
        return _settings.tenant(self._given_tenant, self._background.token())

    def put(self, call: Call) -> Delivery:
        if call.at is None:
            return self.buffer.put(call.body, lane=_lane_of_event(call.body), feedback_id=call.body["feedbackId"])
        without_body = replace(call, body=None)  # the buffer has it

        def send(body: Any) -> Any:
            again = replace(without_body, body=body)
            return self._once.send(again.request(self.tenant()))

        return self.buffer.put(call.body, lane=call.at.lane, send=send)

    def _send_batch(self, body: Any) -> BatchResults:
        return self._once.submit_feedback_batch(body=body)

    def _opening(self, draft: Draft) -> Opening | None:
        """Nothing if there is no use in waiting: the buffer finds out when Hearback is back."""
        if self._strict or not self.buffer.is_unreachable:
            return Opening(draft, self.buffer.latest(draft.path.lane))
        self.buffer.count_unanswered()
        return None

    def _unanswered(self, error: Exception) -> None:
        self.buffer.count_unanswered(silent=isinstance(error, (ConnectionFailed, DeadlineExceeded)))
        self._bursts.warn("begin", "A turn begins without what Hearback knows: %s", named(error))


class Engine(Background):
    """For threads."""

    def __init__(self, api: Api, transport: Transport, tenant: str | None, **options: Any) -> None:
        super().__init__(transport, tenant, **options)
        self._api = api

    def deliver(self, call: Call) -> Receipt:
        delivery = Delivery.accepted(self._send(self._api, call)) if self._strict else self.put(call)
        return Receipt(self.buffer, delivery, self._read)

    def open(self, draft: Draft) -> Knowledge:
        """Learns what it can about the turn. Takes no longer than the patience, and raises nothing, unless strict."""
        opening = self._opening(draft)
        if opening is None:
            return Knowledge()
        if self._strict:
            self._execute(opening, time.monotonic() + DEADLINE)
            return opening.known
        end = time.monotonic() + self._patience
        try:
            _within(self._patience, lambda: self._execute(opening, end))
        except Exception as error:
            self._unanswered(error)
        return opening.known

    def _execute(self, opening: Opening, end: float) -> None:
        steps = opening.steps()
        reply: Any = None
        try:
            while True:
                step = steps.send(reply)
                left = end - time.monotonic()
                if isinstance(step, Delivery):
                    reply = self.buffer.wait(step, left) or _raise_late()
                else:
                    reply = self._send(self._api.within(left), step)
        except StopIteration:
            pass

    def _send(self, api: Api, call: Call) -> Any:
        return api.send(call.request(self.tenant() if call.at else ""))

    def _read(self, feedback_id: str, seconds: float) -> FeedbackRecord:
        return self._api.within(min(seconds, DEADLINE)).get_feedback(feedback_id=feedback_id)


class AsyncEngine(Background):
    """For asyncio. What is sent in the background is sent by a thread here, too."""

    def __init__(
        self, api: AsyncApi, transport: AsyncTransport, background: Transport, tenant: str | None, **options: Any
    ) -> None:
        super().__init__(background, tenant, **options)
        self._api = api
        self._transport = transport

    async def deliver(self, call: Call) -> AsyncReceipt:
        delivery = Delivery.accepted(await self._send(self._api, call)) if self._strict else self.put(call)
        return AsyncReceipt(self.buffer, delivery, self._read)

    async def open(self, draft: Draft) -> Knowledge:
        """Learns what it can about the turn. Takes no longer than the patience, and raises nothing, unless strict."""
        opening = self._opening(draft)
        if opening is None:
            return Knowledge()
        if self._strict:
            await self._execute(opening, time.monotonic() + DEADLINE)
            return opening.known
        end = time.monotonic() + self._patience
        try:
            await asyncio.wait_for(self._execute(opening, end), self._patience)
        except asyncio.TimeoutError:
            self._unanswered(DeadlineExceeded("no response in time"))
        except Exception as error:
            self._unanswered(error)
        return opening.known

    async def _execute(self, opening: Opening, end: float) -> None:
        steps = opening.steps()
        reply: Any = None
        try:
            while True:
                step = steps.send(reply)
                left = end - time.monotonic()
                if isinstance(step, Delivery):
                    reply = await settled(self.buffer, step, left) or _raise_late()
                else:
                    reply = await self._send(self._api.within(left), step)
        except StopIteration:
            pass

    async def _send(self, api: AsyncApi, call: Call) -> Any:
        return await api.send(call.request(await self.tenant_async() if call.at else ""))

    async def tenant_async(self) -> str:
        return _settings.tenant(self._given_tenant, await self._transport.token())

    async def _read(self, feedback_id: str, seconds: float) -> FeedbackRecord:
        return await self._api.within(min(seconds, DEADLINE)).get_feedback(feedback_id=feedback_id)


def _lane_of_event(event: Any) -> Lane | None:
    """An event about a turn counts for it only if the turn is registered before."""
    context: Any = event.get("context") or {}
    lane: tuple[Any, Any] = (context.get("projectId"), context.get("conversationId"))
    return lane if all(isinstance(name, str) for name in lane) else None


def _raise_late() -> bool:
    raise DeadlineExceeded("the answer before is not delivered yet")


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Waits for a call at most that long. No timeout of a socket covers a name server or a function for the token."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    run_in_context = partial(contextvars.copy_context().run, run)
    threading.Thread(target=run_in_context, name="hearback-begin", daemon=True).start()
    try:
        return future.result(seconds)
    except FutureTimeoutError:
        raise DeadlineExceeded("no response in time") from None
