#!/usr/bin/env python3
"""Compares what two templates deploy: resources, their properties, and permissions.

Usage: template_diff.py <before> <after>     each a file, or a commit whose template.yaml is read

Both are expanded as CloudFormation expands them: loops first, then SAM. Permissions are compared for each role and
resource policy as single grants (who, effect, action, resource, condition), so that statements can be merged, split or
moved without a difference. Parameters have their defaults.

Needs the packages of `requirements.txt`. Exits with 1 if anything differs.
"""

import json
import logging
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("SAM_CLI_TELEMETRY", "0")
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

from samcli.lib.translate.sam_template_validator import SamTemplateValidator  # noqa: E402
from samcli.yamlhelper import yaml_parse  # noqa: E402

logging.getLogger("samtranslator.metrics").setLevel(logging.ERROR)

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATEMENT_LISTS = ("PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy")


def source(name):
    path = pathlib.Path(name)
    if path.is_file():
        return path.read_text(encoding="utf-8")
    show = ["git", "-C", str(ROOT), "show", f"{name}:template.yaml"]
    return subprocess.run(show, check=True, stdout=subprocess.PIPE, text=True).stdout


def deployed(text):
    """The resources as CloudFormation receives them."""
    template = yaml_parse(text)
    # Set even for a template without loops, so that account and region are filled in the same way in both templates.
    template["Transform"] = ["AWS::LanguageExtensions", "AWS::Serverless-2016-10-31"]
    validator = SamTemplateValidator(
        template, managed_policy_loader=None, region="eu-central-1", language_extensions_enabled=True
    )
    return yaml_parse(validator.get_translated_template_if_valid())["Resources"]


def listed(value):
    return value if isinstance(value, list) else [value]


def text(value):
    return json.dumps(value, sort_keys=True, default=str)


def grants(document):
    """The single grants of a policy."""
    for statement in listed(document["Statement"]):
        rest = {k: v for k, v in statement.items() if k not in ("Action", "Resource", "Sid")}
        for action in listed(statement["Action"]):
            for resource in listed(statement.get("Resource", "-")):
                yield f"{text(action)} on {text(resource)} {text(rest)}"


def split(value):
    """The grants of the policies in a resource, and the resource without these policies and without generated names."""
    policies = []
    if isinstance(value, dict):
        kept = {}
        for name, member in value.items():
            if name in STATEMENT_LISTS and isinstance(member, dict) and "Statement" in member:
                policies += grants(member)
                continue
            if name in ("PolicyName", "SamResourceId"):
                continue
            found, member = split(member)
            policies += found
            # A list of policies that is empty now.
            if name != "Policies":
                kept[name] = member
        return policies, kept
    if isinstance(value, list):
        parts = [split(member) for member in value]
        return [grant for found, _ in parts for grant in found], [member for _, member in parts]
    return [], value


def properties(value, path=""):
    """Each value in a resource with its path."""
    if isinstance(value, dict) and value:
        for name in value:
            yield from properties(value[name], f"{path}/{name}")
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield from properties(member, f"{path}/{index}")
    else:
        yield f"{path} = {text(value)}"


def main(before, after):
    templates = [deployed(source(name)) for name in (before, after)]
    different = False

    def compare(what, one, other):
        nonlocal different
        for sign, values in (("-", one - other), ("+", other - one)):
            for value in sorted(values):
                different = True
                print(f"{sign} {what}: {value}")

    compare("resource", *[{f"{name} ({r['Type']})" for name, r in t.items()} for t in templates])
    both = sorted(templates[0].keys() & templates[1].keys())
    for name in both:
        parts = [split(template[name]) for template in templates]
        compare(f"{name}, property", *[set(properties(rest)) for _, rest in parts])
        compare(f"{name}, permission", *[set(policies) for policies, _ in parts])
    if not different:
        print(f"{len(both)} resources, no difference")
    return 1 if different else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
