"""The log of the package: one message for a burst of failures, however many there are."""

from __future__ import annotations

import logging
import os
import threading
import time
from weakref import WeakSet

from .errors import HearbackError

_log = logging.getLogger("hearback")

# A burst of failures of one kind ends when there was none for so many seconds.
_QUIET = 60.0


class Bursts:
    """Logs the first failure of each burst. Messages contain no body and no token."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[str, float] = {}
        _all.add(self)

    def warn(self, kind: str, message: str, *values: object, cause: BaseException | None = None) -> None:
        """`cause` adds the traceback of an unexpected failure."""
        now = time.monotonic()
        with self._lock:
            latest = self._latest.get(kind)
            self._latest[kind] = now
        if latest is None or now - latest > _QUIET:
            _log.warning(message, *values, exc_info=cause)

    def after_fork(self) -> None:
        """Another thread may have held the lock."""
        self._lock = threading.Lock()


_all: WeakSet[Bursts] = WeakSet()


def _after_fork() -> None:
    for bursts in _all:
        bursts.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def named(error: Exception) -> str:
    """What a log may contain of an error: the messages of others may quote a body or a token."""
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, HearbackError) else name
