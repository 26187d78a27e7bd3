"""Registers the turns of model providers' clients by itself.

Each provider has a module, which needs the provider's own package: `openai`, `anthropic`, `langchain`.
"""

from ._active import ActiveConversation, conversation

__all__ = ["ActiveConversation", "conversation"]
