"""Executes what a client asks for: in the background, or at once. One engine for threads, one for asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import Any, TypeVar

from . import _settings
from ._buffer import Buffer
from ._bursts import Bursts, named
from ._delivery import Delivery, Lane
from ._receipt import AsyncReceipt, Receipt, settled
from ._transport import DEADLINE, TIMEOUT, AsyncTransport, Transport
from ._turns import Call, Draft, Knowledge, Opening, React, ReadContext, Register, Submit, Write
from .api import Api, AsyncApi
from .errors import DeadlineExceeded
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

    def background_tenant(self) -> str:
        return _settings.tenant(self._given_tenant, self._background.token())

    def put(self, write: Write, body: Any) -> Delivery:
        if isinstance(write, Submit):
            return self.buffer.put(body, lane=_lane_of_event(body), feedback_id=body["feedbackId"])

        def send(body: Any) -> Any:
            return _send(self._once, self.background_tenant(), write, body)

        return self.buffer.put(body, lane=_lane(write), send=send)

    def _send_batch(self, body: Any) -> BatchResults:
        return self._once.submit_feedback_batch(body=body)

    def _opening(self, draft: Draft) -> Opening | None:
        """Nothing if there is no use in waiting: the buffer finds out when Hearback is back."""
        if self._strict or not self.buffer.is_unreachable:
            return Opening(draft, self.buffer.latest(_lane(Register(draft.path))))
        self.buffer.count_unanswered()
        return None

    def _unanswered(self, error: Exception) -> None:
        self.buffer.count_unanswered()
        self._bursts.warn("begin", "A turn begins without what Hearback knows: %s", named(error))


class Engine(Background):
    """For threads."""

    def __init__(self, api: Api, transport: Transport, tenant: str | None, **options: Any) -> None:
        super().__init__(transport, tenant, **options)
        self._api = api

    def deliver(self, write: Write, body: Any) -> Receipt:
        if self._strict:
            reply = _send(self._api, self.background_tenant(), write, body)
            return Receipt(self.buffer, _delivered(reply), self._read)
        return Receipt(self.buffer, self.put(write, body), self._read)

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
                    reply = _call(self._api.within(left), self.background_tenant(), step)
        except StopIteration:
            pass

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

    async def deliver(self, write: Write, body: Any) -> AsyncReceipt:
        if self._strict:
            reply = await _send_async(self._api, await self._tenant(), write, body)
            return AsyncReceipt(self.buffer, _delivered(reply), self._read)
        return AsyncReceipt(self.buffer, self.put(write, body), self._read)

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
                    reply = await _call_async(self._api.within(left), await self._tenant(), step)
        except StopIteration:
            pass

    async def _tenant(self) -> str:
        return _settings.tenant(self._given_tenant, await self._transport.token())

    async def _read(self, feedback_id: str, seconds: float) -> FeedbackRecord:
        return await self._api.within(min(seconds, DEADLINE)).get_feedback(feedback_id=feedback_id)


def _lane(write: Register | React) -> Lane:
    return (write.at.project, write.at.conversation_id)


def _lane_of_event(event: Any) -> Lane | None:
    """An event about a turn counts for it only if the turn is registered before."""
    context: Any = event.get("context") or {}
    lane: tuple[Any, Any] = (context.get("projectId"), context.get("conversationId"))
    return lane if all(isinstance(name, str) for name in lane) else None


def _delivered(reply: Any) -> Delivery:
    delivery = Delivery(b"", None, None, reply.get("feedbackId") or reply.get("feedback_id"))
    delivery.status = "accepted"
    return delivery


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


# The same requests, for threads and for asyncio.


def _send(api: Api, tenant: str, write: Write, body: Any) -> Any:
    match write:
        case Submit():
            return api.submit_feedback(body=body)
        case Register(at):
            return api.register_turn(
                tenant=tenant, project=at.project, conversation_id=at.conversation_id, turn_id=at.turn_id, body=body
            )
        case React(at):
            return api.react_to_turn(
                tenant=tenant, project=at.project, conversation_id=at.conversation_id, turn_id=at.turn_id, body=body
            )


async def _send_async(api: AsyncApi, tenant: str, write: Write, body: Any) -> Any:
    match write:
        case Submit():
            return await api.submit_feedback(body=body)
        case Register(at):
            return await api.register_turn(
                tenant=tenant, project=at.project, conversation_id=at.conversation_id, turn_id=at.turn_id, body=body
            )
        case React(at):
            return await api.react_to_turn(
                tenant=tenant, project=at.project, conversation_id=at.conversation_id, turn_id=at.turn_id, body=body
            )


def _call(api: Api, tenant: str, call: Call) -> Any:
    match call.request:
        case Register() as register:
            return _send(api, tenant, register, call.body)
        case ReadContext(at, user_id):
            return api.get_feedback_context(
                tenant=tenant,
                project=at.project,
                conversation_id=at.conversation_id,
                turn_id=at.turn_id,
                user_id=user_id,
            )


async def _call_async(api: AsyncApi, tenant: str, call: Call) -> Any:
    match call.request:
        case Register() as register:
            return await _send_async(api, tenant, register, call.body)
        case ReadContext(at, user_id):
            return await api.get_feedback_context(
                tenant=tenant,
                project=at.project,
                conversation_id=at.conversation_id,
                turn_id=at.turn_id,
                user_id=user_id,
            )
