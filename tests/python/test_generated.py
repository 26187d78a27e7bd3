"""The generated files are what the generator writes from the document of the running bundle."""

import json
import pathlib
import subprocess
import sys
import urllib.request

import generate
import pytest


@pytest.fixture(scope="module")
def document(bundle):
    with urllib.request.urlopen(f"{bundle.url}/openapi.json") as response:
        return response.read()


@pytest.mark.parametrize("name", ["types.py", "api.py"])
def test_the_committed_file_is_what_the_document_says(document, name):
    assert generate.generate(json.loads(document))[name] == (generate.PACKAGE / name).read_text("utf-8")


def test_check_tells_whether_the_files_are_up_to_date(document, tmp_path):
    def check(content):
        (tmp_path / "openapi.json").write_bytes(content)
        command = [sys.executable, generate.__file__, "--check", str(tmp_path / "openapi.json")]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True)

    assert check(document).returncode == 0
    stale = check(document.replace(b'"A user\'s preferences."', b'"What a user prefers."'))
    assert (stale.returncode, "types.py" in stale.stderr) == (1, True)


def test_a_new_post_must_be_said_to_be_repeatable_or_not(document):
    changed = json.loads(document)
    changed["paths"]["/v1/charge"] = {"post": {"operationId": "charge", "summary": "Charge", "responses": {}}}
    with pytest.raises(AssertionError, match="charge"):
        generate.generate(changed)
