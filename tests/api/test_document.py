"""The OpenAPI document is valid, has an example for each operation, and suits generated clients."""

import json
import os
import pathlib
import re
import urllib.request

import jsonschema
import pytest
from openapi_spec_validator import validate

from bundle import Bundle, default_command

VERBS = (
    "correct|create|delete|detect|erase|get|infer|list|put|react|redrive|refresh|register|reset|resolve|rotate|search|send|"
    "submit|test|update|withdraw"
)


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    command = pathlib.Path(os.environ.get("HEARBACK_COMMAND", default_command()))
    bundle = Bundle(command, tmp_path_factory.mktemp("document"))
    with urllib.request.urlopen(f"{bundle.url}/openapi.json") as response:
        document = json.load(response)
    bundle.stop()
    return document


def operations(document):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def check(document, schema, value):
    """Fails if the value does not match the schema. References are resolved within the document."""
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def test_the_document_is_valid(document):
    validate(document)


def test_each_operation_has_a_name_for_a_client(document):
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(names) == len(set(names))
    invalid = [name for name in names if not re.fullmatch(f"({VERBS})(_[a-z]+)+", name)]
    assert invalid == []


def test_each_request_body_has_a_valid_example(document):
    for name, operation in operations(document):
        if "requestBody" in operation:
            reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            schema = document["components"]["schemas"][reference.rsplit("/", 1)[-1]]
            assert schema.get("examples"), name
            for example in schema["examples"]:
                check(document, schema, example)


def test_each_response_has_a_valid_example(document):
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            content = response.get("content", {}).get("application/json")
            if status.startswith("2") and content:
                assert "example" in content, name
                check(document, content["schema"], content["example"])


def test_each_rejection_has_a_valid_example(document):
    responses = document["components"]["responses"]
    assert responses
    for response in responses.values():
        content = response["content"]["application/problem+json"]
        check(document, content["schema"], content["example"])
