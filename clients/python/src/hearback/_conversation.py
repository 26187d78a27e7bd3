"""Projects, conversations and their turns."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ._engine import AsyncEngine, Engine
from ._receipt import AsyncReceipt, Receipt
from ._turns import Draft, Knowledge, Text, TurnMembers, TurnPath, draft, reaction_call
from .types import Reaction

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _ConversationState:
    def __init__(self, project: str, id: str | None, user_id: str | None, labels: Mapping[str, str] | None) -> None:
        self.id = id or str(uuid.uuid4())
        self._project = project
        self._user_id = user_id
        self._labels = dict(labels or {})

    def _path_of(self, turn_id: str) -> TurnPath:
        return TurnPath(self._project, self.id, turn_id)

    def _draft(self, user: Text, turn_id: str | None, message_id: str | None, members: TurnMembers) -> Draft:
        return draft(
            self._project,
            self.id,
            user=user,
            user_id=self._user_id,
            labels=self._labels,
            turn_id=turn_id,
            message_id=message_id,
            members=members,
        )


class _Identified:
    """Which turn it is, and whose."""

    def __init__(self, path: TurnPath, user_id: str | None) -> None:
        self._path = path
        self._user_id = user_id

    @property
    def id(self) -> str:
        return self._path.turn_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class _Begun:
    """What is known about a turn when it begins. It does not change afterwards, but for `message_id`."""

    def _know(self, draft: Draft, known: Knowledge) -> None:
        self._draft = draft
        self._registered = known.registered
        self.previous = known.previous
        """What the user's message says about the answer before it."""
        self.context = known.context
        """For the prompt: what to do differently, if the user rejected the answer before. Otherwise it is empty."""

    @property
    def message_id(self) -> str:
        """The answer's id, under which users rate it."""
        return self._draft.message_id

    @property
    def clarify(self) -> bool:
        """Whether to ask the user what they mean, instead of answering."""
        return self.previous.clarify


class RegisteredTurn(_Identified):
    """A turn that is registered, perhaps by another process."""

    def __init__(self, engine: Engine, path: TurnPath, user_id: str | None) -> None:
        super().__init__(path, user_id)
        self._engine = engine

    def ok(self, text: str | None = None) -> Receipt:
        """The user likes the answer. A user has one reaction to a turn: each replaces the one before."""
        return self._react("ok", text)

    def not_ok(self, text: str | None = None) -> Receipt:
        """The user does not like the answer; `text` says why."""
        return self._react("not_ok", text)

    def neutral(self, text: str | None = None) -> Receipt:
        """The user comments on the answer."""
        return self._react("neutral", text)

    def clear(self) -> Receipt:
        """The user withdraws the reaction."""
        return self._react(None, None)

    def _react(self, reaction: Reaction | None, text: str | None) -> Receipt:
        return self._engine.deliver(reaction_call(self._path, self._user_id, reaction, text))


class Turn(RegisteredTurn, _Begun):
    """One exchange: what the user wrote, and the answer."""

    def __init__(self, engine: Engine, draft: Draft, known: Knowledge) -> None:
        super().__init__(engine, draft.path, draft.user_id)
        self._know(draft, known)
        self.receipt: Receipt | None = None
        """Of the answer, once there is one."""

    def complete(
        self, answer: Text, *, message_id: str | None = None, **members: Unpack[TurnMembers]
    ) -> Receipt:
        """Registers the answer. Members of the turn that are only known now can be added."""
        self._draft = self._draft.answered(message_id, members)
        self._registered = True
        self.receipt = self._engine.deliver(self._draft.whole(answer))
        return self.receipt

    def _react(self, reaction: Reaction | None, text: str | None) -> Receipt:
        if not self._registered:
            self._registered = True
            self._engine.deliver(self._draft.opening())
        return super()._react(reaction, text)


class Conversation(_ConversationState):
    """A chat of one user."""

    def __init__(
        self,
        engine: Engine,
        project: str,
        id: str | None,
        user_id: str | None,
        labels: Mapping[str, str] | None,
    ) -> None:
        super().__init__(project, id, user_id, labels)
        self._engine = engine

    def begin(
        self,
        user: Text,
        *,
        turn_id: str | None = None,
        message_id: str | None = None,
        **members: Unpack[TurnMembers],
    ) -> Turn:
        """Registers what the user wrote, before it is answered, and learns what it says about the answer before.

        Waits at most the client's `patience`. If Hearback does not respond by then, the turn has no knowledge, and is
        registered with its answer.
        """
        draft = self._draft(user, turn_id, message_id, members)
        return Turn(self._engine, draft, self._engine.open(draft))

    def turn(self, id: str) -> RegisteredTurn:
        """A turn that is registered: for a click that arrives later, or in another process."""
        return RegisteredTurn(self._engine, self._path_of(id), self._user_id)

    def register(
        self,
        user: Text,
        assistant: Text,
        *,
        turn_id: str | None = None,
        message_id: str | None = None,
        **members: Unpack[TurnMembers],
    ) -> Turn:
        """Registers a turn that is already answered, in the background; see its `receipt`."""
        turn = Turn(self._engine, self._draft(user, turn_id, message_id, members), Knowledge())
        turn.complete(assistant)
        return turn


class Project:
    """A project of the tenant."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self._engine = engine

    def conversation(
        self, id: str | None = None, *, user_id: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Conversation:
        """A conversation, with an id of yours or a new UUID.

        `user_id` is for a back end, whose token has `feedback:on-behalf`. `labels` are those of each turn.
        """
        return Conversation(self._engine, self.name, id, user_id, labels)


class AsyncRegisteredTurn(_Identified):
    """A turn that is registered, perhaps by another process.

    Its methods wait for nothing, unless the client is strict.
    """

    def __init__(self, engine: AsyncEngine, path: TurnPath, user_id: str | None) -> None:
        super().__init__(path, user_id)
        self._engine = engine

    async def ok(self, text: str | None = None) -> AsyncReceipt:
        """The user likes the answer. A user has one reaction to a turn: each replaces the one before."""
        return await self._react("ok", text)

    async def not_ok(self, text: str | None = None) -> AsyncReceipt:
        """The user does not like the answer; `text` says why."""
        return await self._react("not_ok", text)

    async def neutral(self, text: str | None = None) -> AsyncReceipt:
        """The user comments on the answer."""
        return await self._react("neutral", text)

    async def clear(self) -> AsyncReceipt:
        """The user withdraws the reaction."""
        return await self._react(None, None)

    async def _react(self, reaction: Reaction | None, text: str | None) -> AsyncReceipt:
        return await self._engine.deliver(reaction_call(self._path, self._user_id, reaction, text))


class AsyncTurn(AsyncRegisteredTurn, _Begun):
    """One exchange: what the user wrote, and the answer."""

    def __init__(self, engine: AsyncEngine, draft: Draft, known: Knowledge) -> None:
        super().__init__(engine, draft.path, draft.user_id)
        self._know(draft, known)
        self.receipt: AsyncReceipt | None = None
        """Of the answer, once there is one."""

    async def complete(
        self, answer: Text, *, message_id: str | None = None, **members: Unpack[TurnMembers]
    ) -> AsyncReceipt:
        """Registers the answer. Members of the turn that are only known now can be added."""
        self._draft = self._draft.answered(message_id, members)
        self._registered = True
        self.receipt = await self._engine.deliver(self._draft.whole(answer))
        return self.receipt

    async def _react(self, reaction: Reaction | None, text: str | None) -> AsyncReceipt:
        if not self._registered:
            self._registered = True
            await self._engine.deliver(self._draft.opening())
        return await super()._react(reaction, text)


class AsyncConversation(_ConversationState):
    """A chat of one user."""

    def __init__(
        self,
        engine: AsyncEngine,
        project: str,
        id: str | None,
        user_id: str | None,
        labels: Mapping[str, str] | None,
    ) -> None:
        super().__init__(project, id, user_id, labels)
        self._engine = engine

    async def begin(
        self,
        user: Text,
        *,
        turn_id: str | None = None,
        message_id: str | None = None,
        **members: Unpack[TurnMembers],
    ) -> AsyncTurn:
        """Registers what the user wrote, before it is answered, and learns what it says about the answer before.

        Waits at most the client's `patience`. If Hearback does not respond by then, the turn has no knowledge, and is
        registered with its answer.
        """
        draft = self._draft(user, turn_id, message_id, members)
        return AsyncTurn(self._engine, draft, await self._engine.open(draft))

    def turn(self, id: str) -> AsyncRegisteredTurn:
        """A turn that is registered: for a click that arrives later, or in another process."""
        return AsyncRegisteredTurn(self._engine, self._path_of(id), self._user_id)

    async def register(
        self,
        user: Text,
        assistant: Text,
        *,
        turn_id: str | None = None,
        message_id: str | None = None,
        **members: Unpack[TurnMembers],
    ) -> AsyncTurn:
        """Registers a turn that is already answered, in the background; see its `receipt`."""
        turn = AsyncTurn(self._engine, self._draft(user, turn_id, message_id, members), Knowledge())
        await turn.complete(assistant)
        return turn


class AsyncProject:
    """A project of the tenant."""

    def __init__(self, engine: AsyncEngine, name: str) -> None:
        self.name = name
        self._engine = engine

    def conversation(
        self, id: str | None = None, *, user_id: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncConversation:
        """A conversation, with an id of yours or a new UUID.

        `user_id` is for a back end, whose token has `feedback:on-behalf`. `labels` are those of each turn.
        """
        return AsyncConversation(self._engine, self.name, id, user_id, labels)
