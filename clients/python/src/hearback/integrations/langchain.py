"""Registers the turns of chat models of LangChain.

    handler = HearbackCallbackHandler(Hearback().project("support"))
    model = ChatOpenAI(callbacks=[handler])
    with conversation("c-1") as c:
        model.invoke(messages)
    if c.turn:
        c.turn.ok()

Attach the handler to the model whose answers the user sees, and not to one that rewrites questions or routes them. A
synchronous handler also serves `ainvoke`: LangChain runs it in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda

from hearback import AsyncProject, AsyncTurn, Project, Turn

from ._active import ActiveConversation, Exchange, active, conversation, guarded
from ._messages import Answer, extended, joined_text

__all__ = ["ActiveConversation", "AsyncHearbackCallbackHandler", "HearbackCallbackHandler", "conversation"]

Messages = PromptValue | Sequence[BaseMessage]


class HearbackCallbackHandler(BaseCallbackHandler):
    """Registers the answers of a chat model as turns of the current `conversation`."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self._runs: dict[UUID, Exchange[Turn]] = {}

    @property
    def context(self) -> Runnable[Messages, list[BaseMessage]]:
        """A step between prompt and model, which adds what the user rejected in the answer before to the system
        message: `prompt | handler.context | model`."""
        return RunnableLambda(self._with_context)

    def _with_context(self, prompt: Messages) -> list[BaseMessage]:
        messages = _messages(prompt)
        with guarded():
            if (current := active()) is not None:
                return _with_context(messages, current.begin(self._project, _user_text(messages)))
        return messages

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        with guarded():
            if (current := active()) is None:
                return
            exchange = current.begin(self._project, _user_text(messages[0]))
            if exchange is not None:
                self._runs[run_id] = exchange

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        exchange = self._runs.pop(run_id, None)
        with guarded():
            if exchange is not None:
                exchange.complete(_answer(response))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._runs.pop(run_id, None)


class AsyncHearbackCallbackHandler(AsyncCallbackHandler):
    """The same for `ainvoke` and `astream`, with a project of `AsyncHearback`."""

    def __init__(self, project: AsyncProject) -> None:
        super().__init__()
        self._project = project
        self._runs: dict[UUID, Exchange[AsyncTurn]] = {}

    @property
    def context(self) -> Runnable[Messages, list[BaseMessage]]:
        """A step between prompt and model, which adds what the user rejected in the answer before to the system
        message: `prompt | handler.context | model`."""
        return RunnableLambda(self._with_context)

    async def _with_context(self, prompt: Messages) -> list[BaseMessage]:
        messages = _messages(prompt)
        with guarded():
            if (current := active()) is not None:
                return _with_context(messages, await current.begin_async(self._project, _user_text(messages)))
        return messages

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        with guarded():
            if (current := active()) is None:
                return
            exchange = await current.begin_async(self._project, _user_text(messages[0]))
            if exchange is not None:
                self._runs[run_id] = exchange

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        exchange = self._runs.pop(run_id, None)
        with guarded():
            if exchange is not None:
                await exchange.complete_async(_answer(response))

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._runs.pop(run_id, None)


def _messages(prompt: Messages) -> list[BaseMessage]:
    return prompt.to_messages() if isinstance(prompt, PromptValue) else list(prompt)


def _user_text(messages: Sequence[BaseMessage]) -> str | None:
    """What the user says; None if the last message is not the user's."""
    for message in reversed(messages):
        if not isinstance(message, SystemMessage):
            return joined_text(message.content) if isinstance(message, HumanMessage) else None
    return None


def _with_context(messages: list[BaseMessage], exchange: Exchange[Any] | None) -> list[BaseMessage]:
    context = exchange.context if exchange is not None else ""
    if not context:
        return messages
    if messages and isinstance(messages[0], SystemMessage):
        system = messages[0].model_copy(update={"content": extended(messages[0].content, context)})
        return [system, *messages[1:]]
    return [SystemMessage(context), *messages]


def _answer(response: LLMResult) -> Answer | None:
    generation = response.generations[0][0]
    message = generation.message if isinstance(generation, ChatGeneration) else None
    if not isinstance(message, AIMessage) or message.tool_calls or not message.text:
        return None
    model = message.response_metadata.get("model_name") or message.response_metadata.get("model")
    return Answer(str(message.text), model if isinstance(model, str) else None)
