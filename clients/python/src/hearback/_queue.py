"""What waits in the background, in which order it is sent, and when. No threads, no input or output, no clock.

Items are sent in their order. One that has to wait holds up its lane, and no other. An item stays in the queue until
its outcome is known: so a thread that ends while it sends loses nothing.
"""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from ._delivery import Accepted, Delivery, DeliveryStatus, Divided, Lane, Outcome, Postponed, Rejected
from ._retry import FIRST_PAUSE
from .errors import ApiError, BadRequest, HearbackError

# What one request may carry; see docs/reference/batches.md. The rest is for the brackets around the events.
BATCH_EVENTS = 1_000
BATCH_BYTES = 4 * 1024 * 1024 - 1_024

# For how long events wait for others to join their batch.
_INTERVAL = 0.5
_LONGEST_PAUSE = 30.0
# After so many failed requests of the background in a row, or so many calls of `begin` without a response, Hearback
# counts as unreachable.
_UNREACHABLE = 3
# An item is given up once it failed so often while others were accepted.
_STRIKES = 10


@dataclass(frozen=True)
class Stats:
    """The outcomes of everything that was put into the background since the process started, or was forked."""

    accepted: int = 0
    """Stored by Hearback."""
    failed: int = 0
    """Rejected by Hearback, or not JSON."""
    dropped: int = 0
    """Not sent: the buffer was full, or the client was closed."""
    pending: int = 0
    """In the buffer."""
    pending_bytes: int = 0
    retries: int = 0
    """How often an item was to be sent again."""
    unanswered: int = 0
    """Calls of `begin` that did not learn from Hearback what it knows, because of an error or for lack of time."""


class Queue:
    """The items of one client. The lock of its owner guards it."""

    def __init__(self) -> None:
        self._items: OrderedDict[int, Delivery] = OrderedDict()
        self._lanes: dict[Lane, list[Delivery]] = {}
        self._bytes = 0
        self._counts: dict[DeliveryStatus, int] = {"accepted": 0, "failed": 0, "dropped": 0}
        self._retries = 0
        self.unanswered = 0
        self.last_number = 0
        self._hurried = 0
        self._resume_at = 0.0
        self._failures = 0  # failed requests since the last one that was answered
        self._outage = 0  # those of them that may have failed whatever they contain
        self.silences = 0  # calls of `begin` without any response since then
        self._batch_events = BATCH_EVENTS

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self._items.values())

    def __contains__(self, delivery: Delivery) -> bool:
        return delivery.number in self._items

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def is_unreachable(self) -> bool:
        """Whether Hearback fails to respond, and something will be tried again."""
        return max(self._outage, self.silences) >= _UNREACHABLE and bool(self._items)

    @property
    def stats(self) -> Stats:
        return Stats(
            **self._counts,
            pending=len(self._items),
            pending_bytes=self._bytes,
            retries=self._retries,
            unanswered=self.unanswered,
        )

    def add(self, delivery: Delivery, now: float) -> bool:
        """Returns whether the one who sends has to know at once. Other events join the batch that is due next."""
        self.last_number += 1
        delivery.number = self.last_number
        delivery.queued_at = now
        self._items[delivery.number] = delivery
        before, self._bytes = self._bytes, self._bytes + len(delivery.content)
        if delivery.lane is not None:
            self._lanes.setdefault(delivery.lane, []).append(delivery)
        return (
            delivery.send is not None
            or len(self._items) == 1
            or len(self._items) % BATCH_EVENTS == 0
            or before < BATCH_BYTES <= self._bytes
        )

    def end(self, delivery: Delivery, status: DeliveryStatus, error: Exception | None = None) -> None:
        """Counts an item whose outcome is known, whether or not it ever was in the queue, and frees its body."""
        if self._items.pop(delivery.number, None) is not None:
            self._bytes -= len(delivery.content)
            if delivery.lane is not None:
                self._lanes[delivery.lane].remove(delivery)
                if not self._lanes[delivery.lane]:
                    del self._lanes[delivery.lane]
        self._counts[status] += 1
        delivery.content = b""
        delivery.send = None
        delivery.error = error
        delivery.status = status

    def latest(self, lane: Lane) -> Delivery | None:
        items = self._lanes.get(lane)
        return items[-1] if items else None

    def is_settled_up_to(self, number: int) -> bool:
        return next(iter(self._items), math.inf) > number

    def hurry(self, number: int) -> bool:
        """Events up to this number wait for no others. Returns whether that is news."""
        news = number > self._hurried
        self._hurried = max(self._hurried, number)
        return news

    def retry_now(self) -> None:
        """Ends all pauses."""
        self._resume_at = 0.0
        for delivery in self._items.values():
            delivery.not_before = 0.0

    def pick(self, now: float) -> tuple[list[Delivery], float]:
        """What to send now: one request, or events for one batch. Or nothing, and the time at which to ask again."""
        if now < self._resume_at:
            return [], self._resume_at
        batch: list[Delivery] = []
        batch_bytes = 0
        held: set[Lane] = set()  # lanes in which an earlier item has to go first
        wake_at = math.inf
        due = False
        for delivery in self._items.values():
            if delivery.lane in held:
                continue
            if delivery.not_before > now:
                wake_at = min(wake_at, delivery.not_before)
            elif delivery.send is not None or delivery.suspect:
                if not batch:
                    return [delivery], now
                due = True  # it must not wait behind events that wait for others
            else:
                batch_bytes += len(delivery.content) + 1
                if batch and batch_bytes > BATCH_BYTES:
                    return batch, now
                batch.append(delivery)
                if len(batch) >= self._batch_events:
                    return batch, now
                continue  # what follows in its lane may be in the same batch
            if delivery.lane is not None:
                held.add(delivery.lane)
        if not batch:
            return [], wake_at
        due_at = batch[0].queued_at + _INTERVAL
        if due or due_at <= now or batch[0].attempts or batch[0].number <= self._hurried:
            return batch, now
        return [], min(wake_at, due_at)

    def settle(self, now: float, sent: list[Delivery], outcomes: list[Outcome]) -> list[Delivery]:
        """Takes the outcomes of one request. Returns the items that have left the queue."""
        # The owner may have dropped some of them meanwhile.
        current = [(delivery, outcome) for delivery, outcome in zip(sent, outcomes, strict=True) if delivery in self]
        self._pace(now, sent, outcomes)
        for delivery, outcome in current:
            self._apply(now, delivery, outcome)
        return [delivery for delivery, _ in current if delivery not in self]

    def _pace(self, now: float, sent: list[Delivery], outcomes: list[Outcome]) -> None:
        """When to send the next request, and how many events in it."""
        divided = [outcome.error for outcome in outcomes if isinstance(outcome, Divided)]
        postponed = [outcome.error for outcome in outcomes if isinstance(outcome, Postponed)]
        if divided:
            self._batch_events = max(1, len(sent) // 2)
        elif sent[0].send is None and not postponed:
            self._batch_events = min(2 * self._batch_events, BATCH_EVENTS)
        failed = postponed + [error for error in divided if not isinstance(error, BadRequest)]
        if len(failed) < len(sent):
            self._failures = self._outage = self.silences = 0
            return
        self._failures += 1
        self._outage = 0 if _is_due_to_item(failed[0]) else self._outage + 1
        asked = failed[0].retry_after if isinstance(failed[0], ApiError) else None
        self._resume_at = now + (asked or 0.0) + _pause(self._failures)

    def _apply(self, now: float, delivery: Delivery, outcome: Outcome) -> None:
        match outcome:
            case Accepted(feedback_id):
                delivery.feedback_id = feedback_id or delivery.feedback_id
                self.end(delivery, "accepted")
            case Rejected(error):
                self.end(delivery, "failed", error)
            case Divided():
                self._retries += 1
            case Postponed(error, blamed):
                self._postpone(now, delivery, error, blamed)

    def _postpone(self, now: float, delivery: Delivery, error: Exception, blamed: bool) -> None:
        self._retries += 1
        delivery.attempts += 1
        delivery.suspect = delivery.suspect or blamed
        if blamed or not self._failures:  # otherwise the pause is for all
            # After the pause for all, so that others come first.
            delivery.not_before = max(now, self._resume_at) + _pause(delivery.attempts)
        accepted = self._counts["accepted"]
        if blamed and accepted > delivery.progress:
            delivery.strikes += 1
        delivery.progress = accepted
        if delivery.strikes >= _STRIKES:
            self.end(delivery, "failed", error)


def _is_due_to_item(error: Exception) -> bool:
    return not isinstance(error, HearbackError) or (isinstance(error, ApiError) and error.status == 500)


def _pause(failures: int) -> float:
    longest = min(FIRST_PAUSE * 2.0 ** min(failures - 1, 16), _LONGEST_PAUSE)
    return random.uniform(longest / 2, longest)
