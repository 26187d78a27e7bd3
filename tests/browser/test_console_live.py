"""The console's view Live: feedback as it happens, and one feedback with what follows from it."""

import contextlib

import pytest
from playwright.sync_api import expect

from bundle import eventually
from console_page import PHONE, REPORT, desk_of
from talk import Talk

PROJECT = "console-live"
# In which feedback is given while somebody watches.
WATCHED = "console-live-watched"
TITLE = "Feedback as it happens"


@pytest.fixture(scope="module")
def talk(bundle):
    """Two users' feedback on two turns."""
    talk = Talk(bundle, PROJECT)
    for conversation, user in (("live-ada", "ada"), ("live-eve", "eve")):
        talk.turn(conversation, "one", user, "How long is the guarantee?")
    talk.react("live-ada", "one", "ada", "ok", "a secret comment")
    talk.react("live-ada", "one", "ada", "not_ok", "a secret comment")
    rating = {"feedbackChannel": "explicit", "feedbackType": "rating", "data": {"rating": 5}}
    talk.submit("live-eve", "one", "eve", context={"artifactType": "answer"}, **rating)
    return talk


@pytest.fixture(scope="module")
def analyst(bundle, talk):
    analyst = bundle.user("live-analyst", f"{PROJECT},{WATCHED}", REPORT)

    def kinds():
        events = analyst.call("GET", f"/v1/feedback/events?projectId={PROJECT}&limit=500")["events"]
        return sorted(each["eventType"] for each in events if each["eventType"] != "learning.signal.generated")

    eventually(kinds, ["feedback.processed"] * 3 + ["feedback.retracted"])
    return analyst


@pytest.fixture(scope="module")
def desk(browser, bundle, analyst):
    with desk_of(analyst, browser, bundle, "live", PROJECT) as desk:
        yield desk


@contextlib.contextmanager
def held(tab):
    """Holds requests to the feed until they are released."""
    pending = []
    tab.page.route("**/v1/feedback/events*", lambda route: pending.append(route))

    def release():
        eventually(lambda: tab.page.evaluate("0") or len(pending) > 0)
        for route in pending:
            route.continue_()
        tab.page.unroute("**/v1/feedback/events*")

    yield release


def feedback(tab):
    """What the rows say, the latest first, withdrawn feedback in brackets."""
    cells = tab.panel(TITLE).locator("tbody tr").evaluate_all(
        """rows => rows.map(row => [...row.cells].slice(1, 3).map(cell =>
            cell.querySelector('s') ? `[${cell.textContent}]` : cell.textContent))"""
    )
    return [" ".join(row) for row in cells]


def test_the_latest_feedback_is_listed_and_withdrawn_feedback_is_struck_through(desk):
    desk.show("live", project=PROJECT)
    assert sorted(feedback(desk)) == ["[▲ Acceptance] ada", "▲ Rating 5 of 5 eve", "▼ Rejection ada"]
    row = desk.panel(TITLE).get_by_role("row").filter(has_text="Rating")
    expect(row).to_contain_text("answer")
    expect(row).to_contain_text("model=large")
    assert "secret" not in desk.page.locator("main").inner_text()


def test_new_feedback_appears_by_itself_unless_it_is_paused(desk, bundle):
    talk = Talk(bundle, WATCHED)
    talk.turn("watched", "one", "eve", "How long is the guarantee?")
    desk.show("live", project=WATCHED)
    expect(desk.panel(TITLE)).to_contain_text("Nothing yet")
    talk.react("watched", "one", "eve", "ok")
    eventually(lambda: feedback(desk), ["▲ Acceptance eve"])
    desk.page.get_by_role("button", name="Pause").click()
    talk.react("watched", "one", "eve", "not_ok")
    # Longer than between two requests.
    desk.page.wait_for_timeout(2_500)
    assert feedback(desk) == ["▲ Acceptance eve"]
    desk.page.get_by_role("button", name="Continue").click()
    eventually(lambda: feedback(desk), ["▼ Rejection eve", "[▲ Acceptance] eve"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"user": "eve"}, ["▲ Rating 5 of 5 eve"]),
        ({"outcome": "rated"}, ["▲ Rating 5 of 5 eve"]),
        ({"outcome": "rejected", "user": "ada"}, ["▼ Rejection ada"]),
        ({"channel": "correction"}, []),
    ],
)
def test_the_address_has_the_filters(desk, settings, expected):
    desk.show("live", project=PROJECT, **settings)
    assert feedback(desk) == expected


def test_the_filters_change_the_address(desk):
    desk.show("live", project=PROJECT)
    desk.page.get_by_role("button", name="Explicit").click()
    desk.settled()
    with held(desk) as release:
        desk.page.get_by_label("Outcome").select_option("rated")
        # What is typed while the view loads is not lost.
        desk.page.get_by_label("User").fill("eve")
        release()
    desk.settled()
    desk.page.get_by_role("button", name="Show").click()
    desk.settled()
    shown = desk.settings[1]
    assert {name: shown[name] for name in ("channel", "outcome", "user")} == {
        "channel": "explicit",
        "outcome": "rated",
        "user": "eve",
    }
    assert feedback(desk) == ["▲ Rating 5 of 5 eve"]


def test_one_feedback_leads_to_everything_that_follows_from_it(console, analyst):
    console.open("live", analyst, project=PROJECT, user="eve", outcome="rated")
    console.page.get_by_role("link", name="Rating 5 of 5").click()
    console.settled()
    heard = console.panel("Heard as")
    expect(heard).to_contain_text("Rating 5 of 5")
    expect(heard).to_contain_text("for the answer")
    expect(console.panel("Taught")).to_contain_text("Reward")
    counted = console.panel("Counted in")
    expect(counted.get_by_role("link", name="label.model = large")).to_be_visible()
    # The address alone shows the same.
    path, settings = console.settings
    console.open(path.removeprefix("/console/"), analyst, **settings)
    expect(heard).to_contain_text("Rating 5 of 5")
    counted.get_by_role("link", name="live-eve").click()
    expect(console.page.get_by_role("heading", name="Conversation live-eve")).to_be_visible()


def test_who_may_read_an_event_sees_it_as_it_was_submitted(console, bundle, analyst):
    back_end = bundle.user("live-back-end", PROJECT, f"{REPORT} feedback:on-behalf")
    console.open("live", back_end, project=PROJECT, user="eve", outcome="rated")
    console.page.get_by_role("link", name="Rating 5 of 5").click()
    expect(console.panel("Heard as")).to_contain_text("Received")
    expect(console.panel("Counted in")).to_contain_text("the satisfaction of its turn as for")


def test_a_users_name_leads_to_the_person(console, bundle, analyst):
    back_end = bundle.user("live-back-end", PROJECT, f"{REPORT} feedback:on-behalf")
    console.open("live", back_end, project=PROJECT, outcome="rated")
    console.page.get_by_role("link", name="eve", exact=True).click()
    expect(console.page.get_by_role("heading", name="Person eve")).to_be_visible()
    console.settled()
    assert console.settings == ("/console/person", console.settings[1] | {"user": "eve"})
    assert "outcome" not in console.settings[1]


def test_withdrawn_feedback_counts_nowhere(desk):
    desk.show("live", project=PROJECT, user="ada", outcome="accepted")
    desk.page.get_by_role("link", name="Acceptance").click()
    expect(desk.panel("Heard as")).to_contain_text("withdrawn; it counts nowhere")
    expect(desk.panel("Counted in")).to_contain_text("Nothing any more")
    desk.page.get_by_role("link", name="Live").last.click()
    desk.settled()
    assert "feedback" not in desk.settings[1]


def test_an_unknown_feedback_says_so(desk):
    desk.show("live", project=PROJECT, feedback="00000000-0000-4000-8000-000000000000", user="ada")
    expect(desk.page.get_by_role("heading", name="Nothing to show")).to_be_visible()


def test_a_server_that_stops_responding_is_asked_again(console, analyst):
    console.open("live", analyst, project=PROJECT)
    console.page.route("**/v1/feedback/events*", lambda route: route.abort())
    expect(console.page.get_by_text("The server cannot be reached. Trying again.")).to_be_visible()
    console.expect_error("ERR_FAILED")
    assert len(feedback(console)) > 0


def test_the_view_fits_a_narrow_screen_and_is_accessible(desk, screenshots):
    size = desk.page.viewport_size
    for name, settings in (("live", {}), ("followed", {"user": "eve", "outcome": "rated"})):
        desk.show("live", project=PROJECT, **settings)
        if name == "followed":
            desk.page.get_by_role("link", name="Rating 5 of 5").click()
            expect(desk.panel("Heard as")).to_be_visible()
        desk.page.set_viewport_size(PHONE)
        assert desk.widths() == [PHONE["width"]] * 2
        desk.page.set_viewport_size(size)
        desk.assert_accessible(name, screenshots)
