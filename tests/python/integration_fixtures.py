"""What the tests of the integrations share."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from typing import NamedTuple

import pydantic
import pytest
from bundle import TENANT
from hearback import AsyncHearback, Hearback
from model_provider import ModelProvider
from support_bundle import PROJECT

QUESTION = "How do I return an item?"
ANSWER = "Within 30 days, with the receipt."
CORRECTION = "No, I meant online orders"
# Long enough for a busy machine.
PATIENCE = 10


class Verdict(pydantic.BaseModel):
    """A structured answer."""

    days: int


class Sdk(NamedTuple):
    """A model provider's package. A module that uses `client` or `run` has a fixture `sdk`."""

    client: type
    async_client: type
    http_client: type
    async_http_client: type
    wrap: Callable


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
        """The user's text in a turn, and the answer; None while there is none."""
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


@pytest.fixture
def original(sdk, provider):
    """A client that is not wrapped."""
    # The certificates that a client loads take longer than a test.
    with sdk.client(**provider.options, http_client=sdk.http_client(verify=False)) as client:
        yield client


@pytest.fixture
def client(sdk, original, chat):
    return sdk.wrap(original, chat.project)


@pytest.fixture
def run(sdk, provider, chat):
    """Runs an asynchronous test with a wrapped client."""

    async def with_client(test, options):
        async with (
            chat.async_project() as project,
            sdk.async_client(**provider.options, http_client=sdk.async_http_client(verify=False)) as client,
        ):
            return await test(sdk.wrap(client, project, **options))

    return lambda test, **options: asyncio.run(with_client(test, options))
