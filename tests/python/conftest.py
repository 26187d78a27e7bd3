import uuid

import pytest
from support_bundle import SupportBundle


@pytest.fixture(scope="session")
def bundle(tmp_path_factory):
    """A bundle for all tests: each test has users and conversations of its own."""
    running = SupportBundle(tmp_path_factory.mktemp("bundle"))
    yield running
    running.stop()


@pytest.fixture
def user():
    """The name of a user without any data."""
    return f"user-{uuid.uuid4().hex[:12]}"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The settings of the environment do not reach a test."""
    for name in ("HEARBACK_URL", "HEARBACK_TOKEN", "HEARBACK_TENANT"):
        monkeypatch.delenv(name, raising=False)
