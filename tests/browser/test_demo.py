"""The demo changes no project except its own."""

import base64
import json
import urllib.parse

from playwright.sync_api import expect

from bundle import TENANT, User, eventually
from demo_page import DemoPage

REAL = "order-service"


def printed_user(bundle):
    """The user of the link that the command prints."""
    token = urllib.parse.parse_qs(urllib.parse.urlsplit(bundle.printed_demo).fragment)["token"][0]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return User(bundle.url, claims["sub"], token), claims


def register(user, turn, text):
    path = f"/conversations/{TENANT}/{REAL}/conv-1/turns/{turn}"
    user.call("PUT", path, {"user": {"text": text}, "assistant": {"text": "Within 30 days.", "message_id": turn}})


def test_the_printed_link_does_not_change_the_users_real_project(bundle, new_context):
    user, claims = printed_user(bundle)
    assert claims["projects"] == [REAL, "hearback-demo"]
    # Data of the real project: a turn with a signal, and its follow-up.
    register(user, "turn-1", "How long may I return it?")
    register(user, "turn-2", "No, that is wrong. I asked about the warranty.")
    user.call("POST", "/api/v1/feedback", {"message_id": "turn-1", "signal": "not_helpful"})

    def everything():
        return user.reports(REAL), bundle.training(REAL)

    # The signal is counted asynchronously, the machine reaction immediately.
    eventually(lambda: [item["feedback_counts"]["total"] for item in user.reports(REAL)[0]], [2])
    before = everything()
    demo = DemoPage(new_context(), user)
    demo.page.goto(bundle.printed_demo)
    demo.settled()
    demo.answer("1").up.click()
    demo.answer("2").button("Regenerate").click()
    expect(demo.answer("2-other").element).to_be_visible()
    demo.settled()
    demo.assert_clean()
    assert user.feedback("1") == {"helpful": None}
    assert everything() == before


def test_opening_the_demo_gives_no_feedback(bundle, demo, user):
    demo.reload()
    conversations, signals = user.reports("hearback-demo")
    assert (conversations, signals) == ([], [])
    paths = [f"/conversations/{TENANT}/hearback-demo/demo-{user.name}-{turn}/turns/{turn}" for turn in "123"]
    turns = [user.call("GET", path) for path in paths]
    assert [turn["user_feedback_status"] for turn in turns] == ["neutral"] * 3
    assert [turn["user_feedback"] for turn in turns] == [None] * 3
    assert [turn["reactions"] for turn in turns] == [[]] * 3
