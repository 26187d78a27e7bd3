"""Adapts generated requests to rules that JSON Schema cannot state, so that valid requests are accepted.

Each is documented on its member or in docs/reference.
"""

import datetime
import unicodedata
import urllib.parse

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    if isinstance(case.path_parameters, dict):
        for name, value in case.path_parameters.items():
            # Values from other responses may have any text.
            case.path_parameters[name] = without_controls(value)
    if case.headers and "If-Match" in case.headers:
        case.headers["If-Match"] = '"%s"' % str(case.headers["If-Match"]).strip('"')
    for members in (case.query, case.body):
        if isinstance(members, dict):
            without_position(members)
    path = case.operation.path
    if path.endswith(("/insights", "/insights/compare")):
        # A period has an end after its beginning, and at most so many intervals.
        for name in ("from", "to"):
            (case.query or {}).pop(name, None)
        (case.query or {}).pop("values", None)
    if not isinstance(case.body, dict):
        return
    if path.endswith("/conversations-in-period"):
        with_ordered_period(case.body)
    elif path.endswith("/turns/{turn_id}/feedback"):
        without_future(case.body, "ts")
        with_valid_confidence(case.body)
    elif path.endswith("/turns/{turn_id}"):
        without_future(case.body, "ts")
    elif path == "/v1/feedback/submit":
        without_future(case.body, "timestamp")
    elif path == "/v1/preferences/{userId}":
        with_one_version(case)
    elif path == "/v1/webhooks/{name}":
        with_a_target(case.body)


def without_controls(value):
    if not isinstance(value, str):
        return value
    plain = "".join(c for c in urllib.parse.unquote(value) if unicodedata.category(c) != "Cc")
    return urllib.parse.quote(plain or "0", safe="") if "%" in value else plain or "0"


def without_position(members):
    """A cursor must come from the same query, and an `after` from the feed, so generated ones are removed."""
    members.pop("cursor", None)
    members.pop("after", None)


def without_future(body, member):
    """A time is at most five minutes in the future."""
    time = body.get(member)
    if isinstance(time, str) and time[:4] >= str(datetime.date.today().year):
        del body[member]


def with_ordered_period(body):
    """A period ends after it starts."""
    if isinstance(body.get("start"), str) and isinstance(body.get("end"), str):
        body["end"] = "9999-12-31T00:00:00Z"
        body["start"] = "2025-11-01T00:00:00Z"


def with_valid_confidence(body):
    """A user's reaction has no confidence. A machine's has one, and withdraws nothing."""
    if body.get("origin") == "machine":
        body["confidence"] = 0.9
        body["reaction"] = body.get("reaction") or "ok"
    else:
        body.pop("confidence", None)


def with_a_target(body):
    """A target has a URL. Nothing is sent to this one, because its address is private."""
    body["url"] = "https://localhost/"


def with_one_version(case):
    """A change names one version, in the body or in `If-Match`."""
    case.body.pop("userId", None)
    if case.headers:
        case.headers.pop("If-Match", None)
    case.body.setdefault("preferenceVersion", 0)
