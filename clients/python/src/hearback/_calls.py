"""What the generated methods of `Api` and `AsyncApi` call."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ._operation import Request
from ._transport import AsyncTransport, Transport

T = TypeVar("T")
Sender = TypeVar("Sender", bound="Transport | AsyncTransport")
C = TypeVar("C", bound="_Operations[Any]")


class _Operations(Generic[Sender]):
    """Operations over a transport, each within a deadline in seconds, or else that of the transport."""

    def __init__(self, transport: Sender, deadline: float | None = None, *, retry: bool = True) -> None:
        self._transport = transport
        self._deadline = deadline
        self._retry = retry

    def within(self: C, seconds: float, *, retry: bool = True) -> C:
        """The same operations with another deadline for each call: `api.within(2.0).get_turn(…)`.

        Without `retry`, the first failure is the error of the call.
        """
        return type(self)(self._transport, seconds, retry=retry)


class Calls(_Operations[Transport]):
    """For threads."""

    def send(self, request: Request[T]) -> T:
        """Sends a request of an operation. The other methods are this, with types."""
        return self._transport.send(request, self._deadline, retry=self._retry)


class AsyncCalls(_Operations[AsyncTransport]):
    """For asyncio."""

    async def send(self, request: Request[T]) -> T:
        """Sends a request of an operation. The other methods are this, with types."""
        return await self._transport.send(request, self._deadline, retry=self._retry)
