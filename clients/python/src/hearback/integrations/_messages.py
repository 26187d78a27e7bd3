"""Reads messages of model providers, which are objects of their packages or plain dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True)
class Answer:
    """The final text of a model for the user, and the model's name."""

    text: str
    model: str | None


def member(value: Any, name: str) -> Any:
    """A member of a message; None if it has none of this name."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(name)
    return getattr(value, name, None)


def items(value: Any) -> list[Any]:
    """The items of a list; none of what is not one, such as a member that the caller omitted."""
    if not hasattr(value, "__iter__") or isinstance(value, (str, Mapping)):
        return []
    return list(value)


def joined_text(content: Any, types: Collection[str] = ("text",)) -> str:
    """The text of a content: a string, or a list of parts, of which those that are no text are ignored."""
    if isinstance(content, str):
        return content
    texts = [part if isinstance(part, str) else member(part, "text") for part in items(content) if _is(part, types)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _is(part: Any, types: Collection[str]) -> bool:
    return isinstance(part, str) or member(part, "type") in types


def below(text: str, addition: str) -> str:
    """A text with another one below it."""
    return f"{text}\n\n{addition}" if text else addition


def extended(content: Any, addition: str) -> Any:
    """A content of a string or a list of parts, with a text at its end."""
    if isinstance(content, str):
        return below(content, addition)
    # In a part of its own: what the provider has cached of the parts before stays valid.
    return [*items(content), {"type": "text", "text": addition}]
