"""The conversation in which a model is called, and the turn to which the call belongs."""

from __future__ import annotations

import contextlib
import logging
import traceback
import uuid
from collections.abc import Generator, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Generic, TypeVar

from hearback import AsyncProject, AsyncTurn, HearbackError, Project, Turn

from .._bursts import Bursts
from ._messages import Answer

_log = logging.getLogger("hearback")
_bursts = Bursts()

_T = TypeVar("_T", bound="Turn | AsyncTurn")

_active: ContextVar[ActiveConversation[Any] | None] = ContextVar("hearback_conversation", default=None)


def conversation(
    id: str | None = None,
    *,
    user_id: str | None = None,
    prompt_version: str | None = None,
    labels: Mapping[str, str] | None = None,
    trace_id: str | None = None,
    span_id: str | None = None,
) -> ConversationScope:
    """The conversation of all models that are called within the `with`, in this thread or task and in its subtasks.

    `async with` differs in the type of `turn` only: an `AsyncTurn`, which is what a project of `AsyncHearback` makes.

    - `id`: of the conversation; a new one if left out.
    - `user_id`: for a back end, whose token has `feedback:on-behalf`.
    - `prompt_version`, `labels`: labels of each turn. The name of the model is added as `model`.
    - `trace_id`, `span_id`: of each turn. An active span of OpenTelemetry replaces them.
    """
    all_labels = dict(labels or {})
    if prompt_version is not None:
        all_labels["prompt_version"] = prompt_version
    trace = {"trace_id": trace_id, "span_id": span_id}
    return ConversationScope(ActiveConversation(id or str(uuid.uuid4()), user_id, all_labels, trace))


class ConversationScope:
    """Makes a conversation the current one, for as long as it is entered."""

    def __init__(self, conversation: ActiveConversation[Any]) -> None:
        self._conversation = conversation
        self._token: Token[ActiveConversation[Any] | None] | None = None

    def __enter__(self) -> ActiveConversation[Turn]:
        self._token = _active.set(self._conversation)
        return self._conversation

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An event loop closes an abandoned asynchronous generator in another context, where there is nothing to reset.
        with contextlib.suppress(ValueError):
            if self._token is not None:
                _active.reset(self._token)

    async def __aenter__(self) -> ActiveConversation[AsyncTurn]:
        self.__enter__()
        return self._conversation

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def active() -> ActiveConversation[Any] | None:
    """The current conversation."""
    current = _active.get()
    if current is None:
        _log.debug("A model is called outside of a conversation: no turn is registered")
    return current


class ActiveConversation(Generic[_T]):
    """A conversation, and its latest turn."""

    def __init__(
        self, id: str, user_id: str | None, labels: Mapping[str, str], trace: Mapping[str, str | None]
    ) -> None:
        self.id = id
        self.user_id = user_id
        self._labels = labels
        self._trace = trace
        self._latest: Exchange[Any] | None = None

    @property
    def turn(self) -> _T | None:
        """The latest turn, for feedback on it; None until a model is called with a message of the user."""
        return None if self._latest is None else self._latest.turn

    def begin(self, project: Project, user_text: str | None) -> Exchange[Turn] | None:
        """The turn of a call: the latest one if the call continues it, or a new one. None if there is neither."""
        if self._continues(project, user_text):
            return self._latest
        if user_text is None:
            return None
        conversation = project.conversation(self.id, user_id=self.user_id, labels=self._labels)
        exchange = Exchange(project, user_text, conversation.begin(user_text, **self._members()))
        self._latest = exchange
        return exchange

    async def begin_async(self, project: AsyncProject, user_text: str | None) -> Exchange[AsyncTurn] | None:
        """The same for asyncio."""
        if self._continues(project, user_text):
            return self._latest
        if user_text is None:
            return None
        conversation = project.conversation(self.id, user_id=self.user_id, labels=self._labels)
        exchange = Exchange(project, user_text, await conversation.begin(user_text, **self._members()))
        self._latest = exchange
        return exchange

    def _continues(self, project: object, user_text: str | None) -> bool:
        """Whether a call belongs to the latest turn: its message is the same, or (None) not the user's."""
        latest = self._latest
        if latest is None or latest.project is not project:
            return False
        if user_text is None:
            return latest.is_open
        if latest.user_text != user_text:
            return False
        if not latest.is_open:
            _bursts.warn(
                "again",
                "A message is answered twice, and only the first answer is registered. Open a `conversation` for each"
                " message, and do not use the wrapped client or the handler for answers that the user does not see",
            )
        return True

    def _members(self) -> Any:
        return {name: value for name, value in {**self._trace, **_span()}.items() if value is not None}


class Exchange(Generic[_T]):
    """A turn, which several calls of a model may contribute to. The first answer completes it."""

    def __init__(self, project: Project | AsyncProject, user_text: str, turn: _T) -> None:
        self.project = project
        self.user_text = user_text
        self.turn = turn
        self.is_open = True

    @property
    def context(self) -> str:
        """What the user rejected in the answer before, as a paragraph."""
        return self.turn.context.strip()

    def complete(self: Exchange[Turn], answer: Answer | None) -> None:
        if answer is not None and self.is_open:
            self.is_open = False
            self.turn.complete(answer.text, labels=_labels(answer))

    async def complete_async(self: Exchange[AsyncTurn], answer: Answer | None) -> None:
        if answer is not None and self.is_open:
            self.is_open = False
            await self.turn.complete(answer.text, labels=_labels(answer))


def _labels(answer: Answer) -> dict[str, str]:
    return {"model": answer.model} if answer.model else {}


def _span() -> dict[str, str]:
    """The active span of OpenTelemetry, if that is installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return {}
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(span.trace_id), "span_id": trace.format_span_id(span.span_id)}


@contextlib.contextmanager
def guarded() -> Generator[None, None, None]:
    """What goes wrong within does not reach the model's caller. Only `strict=True` raises a `HearbackError` at all."""
    try:
        yield
    except HearbackError:
        raise
    except Exception as error:
        _log.warning("A turn is not registered: %s", type(error).__name__)
        # Without the message of the error, which may quote a text.
        _log.debug("%s", "".join(traceback.format_tb(error.__traceback__)))
