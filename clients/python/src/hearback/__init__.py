"""A client of Hearback, which collects feedback on AI answers.

    from hearback import Hearback

    hb = Hearback()  # HEARBACK_URL, HEARBACK_TOKEN
    turn = hb.project("support").conversation("c-1").begin("No, I meant online orders")
    prompt += turn.context  # what to do differently, if the user rejected the answer before
    turn.complete("Within 14 days.")
"""

from ._client import AsyncHearback, Hearback, NewEvent
from ._conversation import (
    AsyncConversation,
    AsyncProject,
    AsyncRegisteredTurn,
    AsyncTurn,
    Conversation,
    Project,
    RegisteredTurn,
    Turn,
)
from ._feed import AsyncFeed, Feed, FeedFilter, FeedMessage
from ._queue import Stats
from ._receipt import AsyncReceipt, Receipt, Status
from ._turns import Previous, TurnMembers
from ._version import __version__
from .api import Api, AsyncApi
from .errors import (
    ApiError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    Forbidden,
    HearbackError,
    InvalidMember,
    NotFound,
    RateLimited,
    ServerError,
    TokenError,
    Unauthorized,
)

__all__ = [
    "Api",
    "ApiError",
    "AsyncApi",
    "AsyncConversation",
    "AsyncFeed",
    "AsyncHearback",
    "AsyncProject",
    "AsyncReceipt",
    "AsyncRegisteredTurn",
    "AsyncTurn",
    "BadRequest",
    "Conflict",
    "ConnectionFailed",
    "Conversation",
    "DeadlineExceeded",
    "Feed",
    "FeedFilter",
    "FeedMessage",
    "Forbidden",
    "Hearback",
    "HearbackError",
    "InvalidMember",
    "NewEvent",
    "NotFound",
    "Previous",
    "Project",
    "RateLimited",
    "Receipt",
    "RegisteredTurn",
    "ServerError",
    "Stats",
    "Status",
    "TokenError",
    "Turn",
    "TurnMembers",
    "Unauthorized",
    "__version__",
]
