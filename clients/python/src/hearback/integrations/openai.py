"""Registers the turns of a client of the package `openai`.

    client = wrap(OpenAI(), Hearback().project("support"))
    with conversation("c-1") as c:
        client.chat.completions.create(model=model, messages=messages)
    if c.turn:
        c.turn.ok()

`chat.completions` and `responses` are registered, with `create`, `parse` and `stream`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, overload

import openai

from hearback import AsyncProject, Project

from ._active import ActiveConversation, conversation
from ._instrument import Collector, Dialect, Provider, instrumented
from ._messages import Answer, below, extended, items, joined_text, member

__all__ = ["ActiveConversation", "conversation", "wrap"]

_Sync = TypeVar("_Sync", bound=openai.OpenAI)
_Async = TypeVar("_Async", bound=openai.AsyncOpenAI)

# Instructions to the model, which may also follow the user's message.
_INSTRUCTIONS = ("system", "developer")


@overload
def wrap(client: _Sync, project: Project, *, add_context: bool = False) -> _Sync: ...
@overload
def wrap(client: _Async, project: AsyncProject, *, add_context: bool = False) -> _Async: ...
def wrap(client: Any, project: Any, *, add_context: bool = False) -> Any:
    """A copy of the client whose answers are registered as turns of the current `conversation`.

    With `add_context`, the model also receives what the user rejected in the answer before, in its system message or
    `instructions`. The client itself stays as it is, for calls whose answers the user does not see.
    """
    return instrumented(client, project, _PROVIDER, add_context=add_context)


class _ChatCompletions(Dialect):
    def user_text(self, request: Mapping[str, Any]) -> str | None:
        for message in reversed(items(request.get("messages"))):
            role = member(message, "role")
            if role not in _INSTRUCTIONS:
                return joined_text(member(message, "content")) if role == "user" else None
        return None

    def with_context(self, request: Mapping[str, Any], context: str) -> dict[str, Any]:
        messages = items(request.get("messages"))
        if not messages or member(messages[0], "role") not in _INSTRUCTIONS:
            return {**request, "messages": [{"role": "system", "content": context}, *messages]}
        content = extended(messages[0]["content"], context)
        return {**request, "messages": [{**messages[0], "content": content}, *messages[1:]]}

    def answer(self, response: Any) -> Answer | None:
        message = response.choices[0].message
        if message.tool_calls or message.function_call:
            return None
        text = message.content or message.refusal
        return Answer(text, response.model) if text else None

    def collector(self) -> Collector:
        return _ChatCompletionChunks()


class _ChatCompletionChunks:
    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls_tools = False

    def __call__(self, chunk: Any) -> Answer | None:
        for choice in chunk.choices:
            if choice.index == 0:
                return self._add(choice, chunk.model)
        return None

    def _add(self, choice: Any, model: str | None) -> Answer | None:
        delta = choice.delta
        self._text.append(delta.content or delta.refusal or "")
        self._calls_tools |= bool(delta.tool_calls or delta.function_call)
        text = "".join(self._text)
        return Answer(text, model) if choice.finish_reason and text and not self._calls_tools else None


class _Responses(Dialect):
    def user_text(self, request: Mapping[str, Any]) -> str | None:
        given = request.get("input")
        if isinstance(given, str):
            return given
        for item in reversed(items(given)):
            role = member(item, "role")
            if role == "user":
                return joined_text(member(item, "content"), ("input_text",))
            if role not in _INSTRUCTIONS and member(item, "type") != "configuration_update":
                return None
        return None

    def with_context(self, request: Mapping[str, Any], context: str) -> dict[str, Any]:
        instructions = request.get("instructions")
        return {**request, "instructions": below(instructions if isinstance(instructions, str) else "", context)}

    def answer(self, response: Any) -> Answer | None:
        return _answer(response.output, response.model)

    def collector(self) -> Collector:
        return _ResponseEvents()


class _ResponseEvents:
    def __init__(self) -> None:
        self._output: list[Any] = []

    def __call__(self, event: Any) -> Answer | None:
        if event.type == "response.output_item.done":
            self._output.append(event.item)
        if event.type in ("response.completed", "response.incomplete"):
            # Compatible servers may leave out what they have streamed already.
            return _answer(event.response.output or self._output, event.response.model)
        return None


def _answer(output: list[Any], model: str | None) -> Answer | None:
    if _waits_for_the_caller(output):
        return None
    parts = [part for item in output if item.type == "message" for part in item.content]
    text = "".join(part.refusal if part.type == "refusal" else part.text for part in parts)
    return Answer(text, model) if text else None


def _waits_for_the_caller(output: list[Any]) -> bool:
    """Whether the caller has to run a tool: a call has a `call_id`, which the output of a hosted tool repeats."""
    calls: set[str] = set()
    for item in output:
        if item.type == "mcp_approval_request":
            return True
        if call_id := member(item, "call_id"):
            (calls.discard if item.type.endswith("_output") else calls.add)(call_id)
    return bool(calls)


_PROVIDER = Provider(
    dialects={"/chat/completions": _ChatCompletions(), "/responses": _Responses()},
    streams=(openai.Stream, openai.AsyncStream),
)
