"""What the caller holds of something that is sent in the background."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Literal

from ._buffer import Buffer
from ._delivery import Delivery
from .errors import ConnectionFailed, DeadlineExceeded, NotFound, ServerError
from .types import FeedbackRecord

Status = Literal["pending", "accepted", "processed", "deduplicated", "failed", "dropped"]

# Between two reads of an event that is not processed yet, in seconds.
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0

# The event of a reaction can be read a moment after the reaction.
_NOT_YET = (NotFound, ConnectionFailed, DeadlineExceeded, ServerError)


class _Outcome:
    """What both kinds of receipts know."""

    def __init__(self, buffer: Buffer, delivery: Delivery) -> None:
        self._buffer = buffer
        self._delivery = delivery
        self._processing: Literal["processed", "deduplicated"] | None = None

    @property
    def status(self) -> Status:
        """Where it is:

        - `pending`: in the buffer
        - `accepted`: stored by Hearback
        - `processed`, `deduplicated`: its outcome, once it was waited for
        - `failed`: rejected by Hearback; see `error`
        - `dropped`: not sent, because the buffer was full, or the client was closed
        """
        return self._processing or self._delivery.status

    @property
    def id(self) -> str | None:
        """The `feedbackId`: of an event at once, of a reaction once it is accepted. A turn has none."""
        return self._delivery.feedback_id

    @property
    def error(self) -> Exception | None:
        """Why it failed or was dropped."""
        return self._delivery.error

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}: {self.status}>"

    def _reads(self, end: float) -> Iterator[tuple[str, float]]:
        """While it is accepted, and not processed: the event to read, and the pause before that."""
        pause = 0.0
        while self.status == "accepted" and self.id is not None:
            yield self.id, pause
            pause = min(2 * pause or _FIRST_PAUSE, _LONGEST_PAUSE, end - time.monotonic())
            if pause <= 0:
                return

    def _learn(self, record: FeedbackRecord) -> None:
        status = record["status"]
        if status == "deduplicated":
            self._processing = status
        elif status != "queued":
            self._processing = "processed"


class Receipt(_Outcome):
    """For what is sent in the background."""

    def __init__(self, buffer: Buffer, delivery: Delivery, read: Callable[[str, float], FeedbackRecord]) -> None:
        super().__init__(buffer, delivery)
        self._read = read

    def wait(self, timeout: float | None = None, *, processed: bool = False) -> Receipt:
        """Waits until it has left the buffer, for at most `timeout` seconds; returns itself.

        With `processed`, also waits until Hearback has processed the event, or the event of the reaction. That reads
        it, and raises `ApiError` if the caller may not.
        """
        end = _end(timeout)
        if self._buffer.wait(self._delivery, timeout) and processed:
            for feedback_id, pause in self._reads(end):
                time.sleep(pause)
                with contextlib.suppress(*_NOT_YET):
                    self._learn(self._read(feedback_id, end - time.monotonic()))
        return self


class AsyncReceipt(_Outcome):
    """For what is sent in the background."""

    def __init__(
        self,
        buffer: Buffer,
        delivery: Delivery,
        read: Callable[[str, float], Coroutine[Any, Any, FeedbackRecord]],
    ) -> None:
        super().__init__(buffer, delivery)
        self._read = read

    async def wait(self, timeout: float | None = None, *, processed: bool = False) -> AsyncReceipt:
        """Waits until it has left the buffer, for at most `timeout` seconds; returns itself.

        With `processed`, also waits until Hearback has processed the event, or the event of the reaction. That reads
        it, and raises `ApiError` if the caller may not.
        """
        end = _end(timeout)
        if await settled(self._buffer, self._delivery, timeout) and processed:
            for feedback_id, pause in self._reads(end):
                await asyncio.sleep(pause)
                with contextlib.suppress(*_NOT_YET):
                    self._learn(await self._read(feedback_id, end - time.monotonic()))
        return self


async def settled(buffer: Buffer, delivery: Delivery, timeout: float | None) -> bool:
    """`Buffer.wait` for asyncio."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()

    def wake() -> None:
        # The loop may be closed meanwhile.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(event.set)

    cancel = buffer.when_settled(delivery, wake)
    try:
        await asyncio.wait_for(event.wait(), timeout)
    except asyncio.TimeoutError:
        pass
    finally:
        cancel()
    return delivery.status != "pending"


def _end(timeout: float | None) -> float:
    return math.inf if timeout is None else time.monotonic() + timeout
