"""Delivers in the background: a bounded queue, one daemon thread, and no exception for the caller.

Nothing is sent with the lock held, and everybody who waits is woken by what they wait for.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
from collections.abc import Callable
from weakref import WeakSet

from ._bursts import Bursts, named
from ._delivery import (
    Accepted,
    Delivery,
    Lane,
    Outcome,
    Postponed,
    Rejected,
    Send,
    feedback_id_of,
    outcome_of_error,
    outcomes_of_batch,
)
from ._operation import decode, encode
from ._queue import Queue, Stats
from .errors import HearbackError

# The thread ends after so many seconds without work: a client that was not closed leaves none behind.
_IDLE = 5.0
_EXIT_TIMEOUT = 5.0


class Buffer:
    """The background of one client. Thread-safe."""

    def __init__(self, send_batch: Send, *, size: int, max_bytes: int) -> None:
        """`send_batch` sends `{"events": […]}`. Like each item's own `Send`, it attempts that once."""
        self._send_batch = send_batch
        self._size = size
        self._max_bytes = max_bytes
        self._bursts = Bursts()
        self._queue = Queue()
        # Reentrant: a signal handler, or a finalizer, may put something while its own thread holds the lock.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # for the thread
        self._settled = threading.Condition(self._lock)  # for those who wait for an outcome
        self._thread: threading.Thread | None = None
        self._closed = False
        with _fork_lock:
            _buffers.add(self)

    def put(
        self, body: object, *, lane: Lane | None = None, send: Send | None = None, feedback_id: str | None = None
    ) -> Delivery:
        """Takes an event, or with `send` a request of its own. Never raises, and never waits for the network."""
        delivery = Delivery(b"", lane, send, feedback_id)
        try:
            delivery.content = encode(body)
        except (TypeError, ValueError, RecursionError) as error:
            with self._lock:
                self._queue.end(delivery, "failed", error)
            self._bursts.warn("encode", "Feedback is not JSON and cannot be sent: %s", named(error))
            return delivery
        with self._lock:
            reason = self._why_not(delivery)
            if reason is None:
                # The thread first: if none can be started, `flush` and `close` send what is in the queue.
                self._ensure_thread()
                if self._queue.add(delivery, time.monotonic()):
                    self._changed.notify()
            else:
                self._queue.end(delivery, "dropped", HearbackError(reason))
        if reason is not None:
            self._bursts.warn("drop", "Feedback is dropped: %s", reason)
        return delivery

    def wait(self, delivery: Delivery, timeout: float | None) -> bool:
        """Waits until the outcome is known; returns whether it is."""
        with self._lock:
            self._hurry(delivery)
            return self._settled.wait_for(lambda: delivery.status != "pending", timeout)

    def when_settled(self, delivery: Delivery, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls back once, from any thread, as soon as the outcome is known. Returns what cancels that."""
        with self._lock:
            self._hurry(delivery)
            pending = delivery.status == "pending"
            if pending:
                delivery.callbacks.append(callback)
        if not pending:
            callback()

        def cancel() -> None:
            with self._lock:
                if callback in delivery.callbacks:
                    delivery.callbacks.remove(callback)

        return cancel

    def latest(self, lane: Lane) -> Delivery | None:
        """The last item of a lane. Once it is settled, so is what was put there before it."""
        with self._lock:
            return self._queue.latest(lane)

    @property
    def is_unreachable(self) -> bool:
        """Whether Hearback fails to respond, and the buffer keeps trying."""
        with self._lock:
            return self._queue.is_unreachable

    @property
    def stats(self) -> Stats:
        with self._lock:
            return self._queue.stats

    def count_unanswered(self, *, silent: bool = False) -> None:
        """`silent`: there was no response."""
        with self._lock:
            self._queue.unanswered += 1
            self._queue.silences += silent

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until everything that is in the buffer now has an outcome; returns whether it has."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        with self._lock:
            last = self._queue.last_number
            self._queue.hurry(last)
            # The caller may know that Hearback is back, or will not be there for another attempt.
            self._queue.retry_now()
            self._changed.notify()
            runs = not self._queue or self._ensure_thread()
        if not runs:
            # An interpreter that is shutting down starts no thread.
            self._run(until=end)
        with self._lock:
            left = None if timeout is None else end - time.monotonic()
            return self._settled.wait_for(lambda: self._queue.is_settled_up_to(last), left)

    def close(self, timeout: float) -> None:
        """Accepts nothing more, delivers what it can, and drops the rest."""
        end = time.monotonic() + timeout
        with self._lock:
            self._closed = True
        self.flush(timeout)
        with self._lock:
            left = list(self._queue)
            for delivery in left:
                self._queue.end(delivery, "dropped", HearbackError("the client was closed"))
            callbacks = _callbacks(left)
            thread = self._thread
            self._changed.notify()
            self._settled.notify_all()
        _call(callbacks)
        if left:
            self._bursts.warn("close", "Feedback is dropped: %s items were left when the client was closed", len(left))
        elif thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, end - time.monotonic()))

    # With the lock held

    def _why_not(self, delivery: Delivery) -> str | None:
        if self._closed:
            return "the client was closed"
        if len(self._queue) >= self._size:
            return f"{self._size} items are waiting for Hearback"
        if self._queue.bytes + len(delivery.content) > self._max_bytes:
            return f"more than {self._max_bytes} bytes would wait for Hearback"
        return None

    def _hurry(self, delivery: Delivery) -> None:
        if self._queue.hurry(delivery.number):
            self._changed.notify()

    def _ensure_thread(self) -> bool:
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._run, name="hearback", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        return True

    # The thread

    def _run(self, until: float | None = None) -> None:
        """Sends what is to be sent, until there has been nothing for a while; with a time, until then or the end."""
        while sent := self._next(until):
            outcomes = self._attempt(sent)
            with self._lock:
                settled = self._queue.settle(time.monotonic(), sent, outcomes)
                callbacks = _callbacks(settled)
                self._settled.notify_all()
            _call(callbacks)
            self._report(outcomes)

    def _next(self, until: float | None) -> list[Delivery]:
        """Waits for what is to be sent next. Nothing: it is time to end."""
        with self._lock:
            while True:
                now = time.monotonic()
                sent, wake_at = self._queue.pick(now)
                if sent:
                    return sent
                if not self._queue and (self._closed or until is not None):
                    return []
                if until is not None and now >= until:
                    return []
                wait = min(wake_at, until or math.inf) - now if self._queue else _IDLE
                if not self._changed.wait(wait) and not self._queue:
                    self._thread = None  # with the lock held: from here on, `put` starts another
                    return []

    def _attempt(self, sent: list[Delivery]) -> list[Outcome]:
        """Sends once. Whatever goes wrong is an outcome: the thread must not end with items in the queue."""
        try:
            send = sent[0].send
            if send is not None:
                reply = send(decode(sent[0].content))
                return [Accepted(feedback_id_of(reply))]
            reply = self._send_batch({"events": [decode(delivery.content) for delivery in sent]})
            return outcomes_of_batch(reply, len(sent))
        except Exception as error:
            if not isinstance(error, HearbackError):
                self._bursts.warn("bug", "Sending feedback raised %s", named(error), cause=error)
            return [outcome_of_error(error, alone=len(sent) == 1)] * len(sent)

    def _report(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Rejected):
                kind = f"reject {getattr(outcome.error, 'status', None)}"
                self._bursts.warn(kind, "Hearback does not accept feedback: %s", named(outcome.error))
            elif isinstance(outcome, Postponed):
                self._bursts.warn("postpone", "Feedback waits to be sent again: %s", named(outcome.error))

    # Fork

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """What is in the queue is the parent's to deliver."""
        for delivery in list(self._queue):
            self._queue.end(delivery, "dropped", HearbackError("the process that forked this one delivers it"))
            delivery.callbacks.clear()
        self._queue = Queue()
        self._thread = None
        self._lock.release()


def _callbacks(settled: list[Delivery]) -> list[Callable[[], None]]:
    callbacks = [callback for delivery in settled for callback in delivery.callbacks]
    for delivery in settled:
        delivery.callbacks.clear()
    return callbacks


def _call(callbacks: list[Callable[[], None]]) -> None:
    for callback in callbacks:
        callback()


_buffers: WeakSet[Buffer] = WeakSet()
_fork_lock = threading.RLock()
_forking: list[Buffer] = []


def _before_fork() -> None:
    """Holds every lock, so that the child has no half of a change."""
    _fork_lock.acquire()
    _forking.extend(_buffers)
    for buffer in _forking:
        buffer.before_fork()


def _after_fork_in_parent() -> None:
    while _forking:
        _forking.pop().after_fork_in_parent()
    _fork_lock.release()


def _after_fork_in_child() -> None:
    while _forking:
        _forking.pop().after_fork_in_child()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )


@atexit.register
def _close_all() -> None:
    end = time.monotonic() + _EXIT_TIMEOUT
    for buffer in list(_buffers):
        try:
            buffer.close(max(0.0, end - time.monotonic()))
        except (KeyboardInterrupt, SystemExit):
            # A second Ctrl-C, or a second SIGTERM with a handler that exits: nobody waits any longer.
            end = 0.0
            buffer.close(0.0)
