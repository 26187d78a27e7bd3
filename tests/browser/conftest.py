"""One bundle and one browser for all tests. Each test has its own users, contexts and pages."""

import itertools
import os
import pathlib
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from bundle import Bundle, default_command
from console_page import ConsolePage
from demo_page import DemoPage

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The browser must connect to the bundle only.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The name of another site that resolves to this machine.
    "--host-resolver-rules=MAP rebound.example 127.0.0.1",
    # The bundle must not depend on protection by the browser.
    "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessSendPreflights",
)

expect.set_options(timeout=15_000)


def pytest_addoption(parser):
    parser.addoption(
        "--screenshots",
        type=pathlib.Path,
        default=default_command().parents[1] / "browser",
        help="folder that screenshots are written to",
    )


@pytest.fixture(scope="session")
def screenshots(pytestconfig):
    folder = pytestconfig.getoption("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def bundle(tmp_path_factory):
    command = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
    if not command.is_file():
        pytest.exit(f"{command} is missing; `cargo build -p hearback-tests` builds it", 2)
    bundle = Bundle(command, tmp_path_factory.mktemp("bundle"))
    yield bundle
    bundle.stop()


@pytest.fixture(scope="session")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.exit("no Chromium is on the path", 2)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


# The demo that the bundle prints is that of user-123.
_names = (f"reader-{number}" for number in itertools.count(1))


@pytest.fixture
def new_user(bundle):
    """Creates users for one test."""
    return lambda *projects: bundle.user(next(_names), *projects)


@pytest.fixture
def user(new_user):
    return new_user()


@pytest.fixture
def new_context(browser):
    """Creates browser contexts that share nothing."""
    contexts = []

    def make(**options):
        contexts.append(browser.new_context(**options))
        return contexts[-1]

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def tabs(new_context):
    """The tabs of a test, which must be clean at its end."""
    tabs = []
    yield tabs
    for tab in tabs:
        tab.assert_clean()


@pytest.fixture
def new_demo(new_context, tabs):
    """Opens the demo in a tab."""

    def make(user, context=None):
        tabs.append(DemoPage(context or new_context(), user))
        return tabs[-1].open()

    return make


@pytest.fixture
def demo(new_demo, user):
    return new_demo(user)


@pytest.fixture
def new_console(bundle, new_context, tabs):
    """Makes a tab for the console."""

    def make(**options):
        tabs.append(ConsolePage(new_context(**options), bundle))
        return tabs[-1]

    return make


@pytest.fixture
def console(new_console):
    return new_console()
