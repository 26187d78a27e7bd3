"""Whatever the description of the API allows, and much of what it does not, is answered as described."""

import os
import pathlib
import subprocess
import sys

import pytest

from bundle import PROJECT, TENANT, Bundle, default_command

HERE = pathlib.Path(__file__).parent
SCOPES = "feedback:on-behalf feedback:report feedback:admin"
# Seconds that a run may take at most; it takes a fraction of that.
LIMIT = 300


@pytest.fixture
def bundle(tmp_path):
    command = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
    if not command.is_file():
        pytest.exit(f"{command} is missing; `cargo build -p hearback-tests` builds it", 2)
    bundle = Bundle(command, tmp_path)
    yield bundle
    bundle.stop()


def fuzz(bundle, token, config, *arguments):
    """Sends requests of all kinds to every operation. Nothing is left in the tree."""
    settings = bundle.folder / "schemathesis.toml"
    settings.write_text((HERE / "schemathesis.toml").read_text() + config)
    result = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", settings),
            *("run", f"{bundle.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {token}"),
            *arguments,
        ],
        cwd=bundle.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    assert result.returncode == 0, result.stdout
    log = (bundle.folder / "hearback.log").read_text()
    assert "panicked" not in log and " ERROR " not in log, log
    print(result.stdout)


def test_a_back_end_is_answered_as_described(bundle):
    """In its own project, where what one request made is there for the next."""
    # Of tenants and projects that are drawn, the token would hold none.
    own = f'\n[parameters]\n"path.tenant" = "{TENANT}"\n"path.project" = "{PROJECT}"\n'
    token = bundle.user("back-end", scope=SCOPES).token
    fuzz(bundle, token, own, "--max-examples", "30")


def test_a_user_is_answered_as_described(bundle):
    """A user of one project, wherever they knock."""
    token = bundle.user("ada").token
    fuzz(bundle, token, "", "--max-examples", "10", "--phases", "examples,coverage,fuzzing")
