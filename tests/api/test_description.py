"""Responses match the OpenAPI document, for valid requests and for many invalid ones."""

import os
import pathlib
import subprocess
import sys

import pytest

from bundle import PROJECT, TENANT, Bundle, default_command

HERE = pathlib.Path(__file__).parent
SCOPES = "feedback:on-behalf feedback:report feedback:admin feedback:operate"
# The time limit of a run in seconds; it takes a fraction of that.
LIMIT = 300


@pytest.fixture
def bundle(tmp_path):
    command = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
    if not command.is_file():
        pytest.exit(f"{command} is missing; `cargo build -p hearback-tests` builds it", 2)
    # The document has the routes of webhooks in any case.
    bundle = Bundle(command, tmp_path, options=["--webhooks"])
    yield bundle
    bundle.stop()


def fuzz(bundle, token, config, *arguments):
    """Sends requests of all kinds to every operation. It leaves no files in the source tree."""
    settings = bundle.folder / "schemathesis.toml"
    rules = f'hooks = "{HERE / "rules.py"}"\n'
    settings.write_text(rules + (HERE / "schemathesis.toml").read_text() + config)
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


def test_responses_to_a_back_end_match_the_document(bundle):
    """In its own project, where requests can use what earlier ones created."""
    # The token would not cover generated tenants and projects.
    own = f'\n[parameters]\n"path.tenant" = "{TENANT}"\n"path.project" = "{PROJECT}"\n'
    token = bundle.user("back-end", scope=SCOPES).token
    fuzz(bundle, token, own, "--max-examples", "30")


def test_responses_to_a_user_match_the_document(bundle):
    """A user of one project, with generated tenants and projects."""
    token = bundle.user("ada").token
    fuzz(bundle, token, "", "--max-examples", "10", "--phases", "examples,coverage,fuzzing")
