"""Registers the turns of a client of the package `anthropic`.

    client = wrap(Anthropic(), Hearback().project("support"))
    with conversation("c-1") as c:
        client.messages.create(model=model, max_tokens=1024, messages=messages)
    if c.turn:
        c.turn.ok()

`messages` and `beta.messages` are registered, with `create`, `parse` and `stream`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, overload

import anthropic

from hearback import AsyncProject, Project

from ._active import ActiveConversation, conversation
from ._instrument import Collector, Dialect, Provider, instrumented
from ._messages import Answer, extended, items, joined_text, member

__all__ = ["ActiveConversation", "conversation", "wrap"]

_Sync = TypeVar("_Sync", bound=anthropic.Anthropic)
_Async = TypeVar("_Async", bound=anthropic.AsyncAnthropic)


@overload
def wrap(client: _Sync, project: Project, *, add_context: bool = False) -> _Sync: ...
@overload
def wrap(client: _Async, project: AsyncProject, *, add_context: bool = False) -> _Async: ...
def wrap(client: Any, project: Any, *, add_context: bool = False) -> Any:
    """A copy of the client whose answers are registered as turns of the current `conversation`.

    With `add_context`, the model also receives what the user rejected in the answer before, at the end of `system`.
    The client itself stays as it is, for calls whose answers the user does not see.
    """
    return instrumented(client, project, _PROVIDER, add_context=add_context)


class _Messages(Dialect):
    def user_text(self, request: Mapping[str, Any]) -> str | None:
        for message in reversed(items(request.get("messages"))):
            role, content = member(message, "role"), member(message, "content")
            if role != "system":
                # The results of tools have the role of the user too.
                return joined_text(content) if role == "user" and not _has_tool_results(content) else None
        return None

    def with_context(self, request: Mapping[str, Any], context: str) -> dict[str, Any]:
        system = request.get("system")
        given = isinstance(system, str) or items(system)
        return {**request, "system": extended(system if given else "", context)}

    def answer(self, response: Any) -> Answer | None:
        text = "".join(block.text for block in response.content if block.type == "text")
        return _answer(text, response.model, response.stop_reason)

    def collector(self) -> Collector:
        return _MessageEvents()


class _MessageEvents:
    def __init__(self) -> None:
        self._text: list[str] = []
        self._model: str | None = None
        self._stop_reason: str | None = None

    def __call__(self, event: Any) -> Answer | None:
        if event.type == "message_start":
            self._model = event.message.model
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            self._text.append(event.delta.text)
        elif event.type == "message_delta":
            self._stop_reason = event.delta.stop_reason
        elif event.type == "message_stop":
            return _answer("".join(self._text), self._model, self._stop_reason)
        return None


def _has_tool_results(content: Any) -> bool:
    return any(str(member(part, "type")).endswith("tool_result") for part in items(content))


def _answer(text: str, model: str | None, stop_reason: str | None) -> Answer | None:
    """No answer while the model waits for the caller, who runs a tool or lets it continue."""
    return Answer(text, model) if text and stop_reason not in ("tool_use", "pause_turn") else None


_PROVIDER = Provider(
    dialects={"/v1/messages": _Messages()},
    streams=(anthropic.Stream, anthropic.AsyncStream),
)
