"""What the tests of the integrations share."""

import contextlib
import uuid

import pytest
from bundle import TENANT
from hearback import AsyncHearback, Hearback
from model_provider import ModelProvider
from support_bundle import PROJECT

# Long enough for a busy machine.
PATIENCE = 10


class Chat:
    """A conversation of one user, and its turns as the bundle has them."""

    def __init__(self, url, token, hearback):
        self.id = f"c-{uuid.uuid4().hex[:12]}"
        self.project, self.other_project = hearback.project(PROJECT), hearback.project(PROJECT)
        self._url, self._token, self._hearback = url, token, hearback

    @contextlib.asynccontextmanager
    async def async_project(self):
        async with AsyncHearback(self._url, self._token, patience=PATIENCE) as hearback:
            yield hearback.project(PROJECT)

    def stored(self, turn, conversation_id=None):
        self._hearback.flush()
        return self._hearback.api.get_turn(
            tenant=TENANT, project=PROJECT, conversation_id=conversation_id or self.id, turn_id=turn.id
        )

    def texts(self, turn, conversation_id=None):
        """What the user said in a turn, and the answer; None while there is none."""
        stored = self.stored(turn, conversation_id)
        return stored["user"]["text"], stored.get("assistant", {}).get("text")

    def completed(self):
        """How many turns were completed."""
        self._hearback.flush()
        return self._hearback.stats.accepted


@pytest.fixture
def provider():
    provider = ModelProvider()
    yield provider
    provider.close()


@pytest.fixture
def chat(bundle):
    # Conversations do not share anything that is tested here: one user is enough.
    token = bundle.token("chatting-user")
    with Hearback(bundle.url, token, patience=PATIENCE) as hearback:
        yield Chat(bundle.url, token, hearback)
