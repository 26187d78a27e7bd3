"""The console's view Conversations: the list, and a conversation with the feedback on its turns."""

import json
import pathlib
import re

import pytest
from playwright.sync_api import expect

from bundle import eventually
from console_page import PHONE, REPORT, desk_of, plain
from talk import Talk

PROJECT = "console-talks"
IN_PERIOD = re.compile("/feedback/conversations-in-period$")
# The worst first.
ORDER = ["talk-worst", "talk-mixed", "talk-best"]
# Two units of UTF-16 for each emoji, and one character.
FOLLOW_UP = "🙂🙂 No, that's wrong"
FOREIGN = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def detection(bundle):
    """Conversations with feedback of every kind. Returns what is inferred in the worst of them."""
    talk = Talk(bundle, PROJECT)
    talk.turn("talk-worst", "one", "ada", "Where do I enter the code?", "At the counter of each store.")
    detection = talk.turn("talk-worst", "two", "ada", FOLLOW_UP)
    talk.signal("talk-worst", "one", "bob", "inaccurate", "a secret reason")
    talk.react("talk-worst", "two", "ada", "ok")
    talk.react("talk-worst", "two", "ada", "not_ok", FOREIGN)
    explicit = {"feedbackChannel": "explicit", "feedbackType": "rating"}
    talk.submit("talk-worst", "two", "ada", data={"rating": 2, "comment": "a secret comment"}, **explicit)
    corrected = {"correctionData": {"correctedValue": "a secret correction"}}
    modification = {"feedbackChannel": "correction", "feedbackType": "modification"}
    talk.submit("talk-worst", "two", "ada", **modification, **corrected)
    for conversation, verdict in (("talk-best", "ok"), ("talk-mixed", "not_ok")):
        talk.turn(conversation, "one", "eve", "How long is the guarantee?")
        talk.react(conversation, "one", "eve", verdict)
    talk.react("talk-mixed", "one", "ada", "ok")
    return detection


@pytest.fixture(scope="module")
def analyst(bundle, detection):
    analyst = bundle.user("talk-analyst", PROJECT, REPORT)

    def published():
        events = analyst.call("GET", f"/v1/feedback/events?projectId={PROJECT}&userId=ada&limit=500")["events"]
        return sorted(each["outcome"] for each in events if each["eventType"] == "feedback.processed")

    eventually(published, ["accepted", "accepted", "modified", "rated", "rejected", "rejected"])
    return analyst


@pytest.fixture(scope="module")
def desk(browser, bundle, analyst):
    with desk_of(analyst, browser, bundle, "conversations", PROJECT) as desk:
        yield desk


def listed(tab):
    return tab.page.locator(".conversations a").all_inner_texts()


def turn(tab, name):
    return tab.page.get_by_role("listitem", name=f"Turn {name}")


def test_the_worst_conversation_is_first(desk):
    desk.show("conversations", project=PROJECT)
    assert listed(desk) == ORDER
    lines = desk.page.locator(".conversations > li")
    scores = [plain(text) for text in lines.locator(".score").all_inner_texts()]
    assert scores == ["0 %", "50 %", "100 %"]
    expect(lines.first).to_contain_text("4 against; 1 of them inferred")
    expect(lines.first).to_contain_text(FOREIGN)


def test_a_conversation_opens_and_back_leads_to_its_line(console, analyst):
    reports = []
    console.page.on("request", lambda request: reports.extend(IN_PERIOD.findall(request.url)))
    console.open("conversations", analyst, project=PROJECT)
    before = console.settings
    link = console.page.get_by_role("link", name="talk-mixed")
    link.press("Enter")
    heading = console.page.get_by_role("heading", name="Conversation talk-mixed")
    expect(heading).to_be_focused()
    assert console.settings == (before[0], before[1] | {"conversation": "talk-mixed"})
    assert console.page.title() == f"talk-mixed · Conversations · {PROJECT} · Hearback"
    console.page.go_back()
    expect(link).to_be_focused()
    assert console.settings == before
    # The list is not read again, so that the reader finds it as it was.
    assert len(reports) == 1
    console.page.go_forward()
    expect(heading).to_be_visible()
    console.page.get_by_role("link", name="All conversations").click()
    expect(link).to_be_visible()
    assert analyst.token not in console.page.url


def test_the_words_that_led_to_an_inference_are_marked(desk, detection):
    desk.show("conversations", project=PROJECT, conversation="talk-worst")
    [evidence] = detection["evidence"]
    cue = FOLLOW_UP[evidence["start"] : evidence["end"]]
    message = turn(desk, "two").locator(".bubble").first
    assert message.locator("mark").all_inner_texts() == [cue]
    expect(message.locator(".said")).to_have_text(FOLLOW_UP)
    expect(message).to_contain_text("Rejected the answer of one, by the marked words.")
    inference = turn(desk, "one").locator(".acts > li").filter(has_text="Inferred: rejected")
    expect(inference).to_contain_text("Explicit correction")
    expect(inference.locator("q")).to_have_text(cue)
    # The token may not change what counts for ada.
    expect(inference.get_by_text("That was wrong")).to_have_count(0)
    expect(inference.locator(".act")).to_contain_text(f"{round(detection['confidence'] * 100)}")
    inference.get_by_role("link", name="two").click()
    expect(turn(desk, "two")).to_be_focused()
    assert desk.settings[1]["turn"] == "two"


def test_a_reader_takes_back_what_was_inferred(console, bundle, screenshots):
    talk = Talk(bundle, "console-wrong")
    talk.turn("talk", "one", "ada", "Where do I enter the code?", "At the counter of each store.")
    talk.turn("talk", "two", "ada", "No, I meant online orders")
    reviewer = bundle.user("reviewer", "console-wrong", f"{REPORT} feedback:on-behalf")
    console.open("conversations", reviewer, project="console-wrong", conversation="talk")
    acts = turn(console, "one").locator(".acts > li")
    heard = turn(console, "two").locator(".bubble").first
    expect(acts.filter(has_text="Inferred: rejected")).to_contain_text("90")
    expect(heard.locator("mark")).to_have_count(1)
    acts.get_by_text("That was wrong").click()
    acts.get_by_role("button", name="says nothing about the answer").click()
    corrected = acts.filter(has_text="Corrected: says nothing about the answer")
    expect(corrected).to_contain_text("The machine had inferred: rejected (90")
    expect(turn(console, "one").locator("header")).to_contain_text("No status yet")
    withdrawn = acts.filter(has_text="Implicit feedback: against")
    expect(withdrawn).to_contain_text("no longer counts")
    expect(heard).to_contain_text("Says nothing about the answer of one, as a person corrected.")
    expect(heard.locator("mark")).to_have_count(0)
    # And back: the reader was wrong.
    acts.get_by_text("That was wrong").click()
    console.assert_accessible("correction", screenshots)
    acts.get_by_role("button", name="rejected").click()
    expect(acts.filter(has_text="Corrected: rejected")).to_contain_text("The machine had inferred: rejected (90")
    expect(turn(console, "one").locator("header")).to_contain_text("Rejected")
    # It is in the list of corrections.
    console.page.get_by_role("link", name="All conversations").click()
    console.page.get_by_role("button", name="Corrected").click()
    line = console.page.locator(".conversations > li")
    expect(line).to_contain_text("Rejected, confirmed")
    expect(line.locator("q")).to_have_text("No, I meant online orders")


def test_every_feedback_act_is_beside_its_turn(desk):
    desk.show("conversations", project=PROJECT, conversation="talk-worst")
    assert desk.page.locator(".turn h2").all_inner_texts() == ["one", "two"]
    expect(turn(desk, "one").locator(".answer")).to_contain_text("At the counter of each store.")
    acts = turn(desk, "two").locator(".acts > li")
    titles = acts.locator(".act").all_inner_texts()
    assert sorted(titles) == ["Correction", "▲ Acceptance: for", "▼ Rating 2 of 5: against", "▼ Reaction: against"]
    reaction = acts.filter(has_text="Reaction")
    expect(reaction.locator("q")).to_have_text(FOREIGN)
    expect(reaction).to_contain_text("ada")
    reaction.get_by_text("Taught: reward −0.75").click()
    expect(reaction.get_by_role("listitem").filter(has_text="label.model=large")).to_be_visible()
    expect(acts.filter(has_text="Acceptance")).to_contain_text("no longer counts")
    expect(acts.filter(has_text="Correction")).to_contain_text("Only its user sees the corrected text.")
    private = turn(desk, "one").locator(".acts > li").filter(has_text="Private feedback: against")
    expect(private).to_contain_text("Only its user sees who gave it, how, and why.")
    expect(private).not_to_contain_text("bob")
    expect(desk.page.locator("main")).not_to_contain_text("secret")


def test_the_list_shows_conversations_with_a_status(desk):
    desk.show("conversations", project=PROJECT)
    desk.page.get_by_role("button", name="Rejected").click()
    expect(desk.page.get_by_role("heading", name="2 conversations")).to_be_visible()
    assert listed(desk) == ["talk-worst", "talk-mixed"]
    first = desk.page.locator(".conversations > li").first
    expect(first).to_contain_text("explicit correction")
    expect(first.locator("q")).to_have_text(FOREIGN)
    assert desk.settings[1]["status"] == "rejected"
    desk.page.get_by_role("button", name="Accepted").click()
    expect(desk.page.get_by_role("heading", name="1 conversation")).to_be_visible()
    assert listed(desk) == ["talk-best"]


def test_an_exact_id_opens_a_conversation(desk):
    desk.show("conversations", project=PROJECT)
    for name, heading in (("talk-best", "one"), ("talk-nowhere", "Nothing to show")):
        desk.page.get_by_role("searchbox").fill(f" {name} ")
        desk.page.keyboard.press("Enter")
        expect(desk.page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        assert desk.settings[1]["conversation"] == name
        desk.page.get_by_role("link", name="All conversations").click()


def test_the_order_says_what_it_covers(console, analyst):
    def one_at_a_time(route):
        route.continue_(post_data=json.dumps(route.request.post_data_json | {"limit": 1}))

    console.page.route(IN_PERIOD, one_at_a_time)
    console.open("conversations", analyst, project=PROJECT)
    hint = console.page.locator(".hint")
    expect(hint).to_contain_text("The order covers the 1 conversation with the latest feedback")
    assert listed(console) == ["talk-mixed"]
    more = hint.get_by_role("button", name="Load more")
    more.click()
    expect(more).to_be_focused()
    expect(hint).to_contain_text("2 conversations")
    console.page.route(IN_PERIOD, lambda route: route.abort())
    more.click()
    expect(console.page.get_by_role("alert")).to_contain_text("The server cannot be reached")
    console.expect_error("ERR_FAILED")
    console.page.unroute(IN_PERIOD)
    console.page.get_by_role("button", name="Try again").click()
    more.click()
    expect(console.page.get_by_role("heading", name="3 conversations")).to_be_visible()
    assert listed(console) == ORDER


def test_a_long_list_is_shown_in_parts(console, analyst):
    def answer(route):
        response = route.fetch()
        page = response.json()
        [item, *_] = page["items"]
        items = [item | {"conversation_id": f"talk-{number}"} for number in range(60)]
        route.fulfill(response=response, json=page | {"items": items})

    console.page.route(IN_PERIOD, answer)
    console.open("conversations", analyst, project=PROJECT)
    console.page.unroute(IN_PERIOD)
    assert len(listed(console)) == 50
    console.page.get_by_role("button", name="Show 10 more").click()
    assert len(listed(console)) == 60
    expect(console.page.locator(".conversations a").nth(50)).to_be_focused()


def test_the_list_is_saved_as_a_file(desk):
    desk.show("conversations", project=PROJECT)
    with desk.page.expect_download() as download:
        desk.page.get_by_role("button", name="CSV").click()
    lines = pathlib.Path(download.value.path()).read_text().splitlines()
    assert lines[0] == "Conversation,Satisfaction,For,Against,Neutral,Inferred,Last feedback,Words"
    assert [line.split(",")[:6] for line in lines[1:]] == [
        ["talk-worst", "0", "0", "4", "0", "1"],
        ["talk-mixed", "0.5", "1", "1", "0", "0"],
        ["talk-best", "1", "1", "0", "0", "0"],
    ]


def test_a_token_that_may_not_read_texts_says_so(console, bundle, analyst):
    ada = bundle.user("ada", PROJECT)
    console.open("conversations", ada, project=PROJECT, conversation="talk-mixed")
    expect(console.page.locator(".notice")).to_contain_text(f"This token lacks the scope {REPORT}. It sees only")
    expect(turn(console, "one")).to_contain_text("may read its texts")
    expect(turn(console, "one")).to_contain_text("Reaction: for")
    # The turn is another user's.
    console.expect_error("404")


def test_the_view_fits_a_narrow_screen(desk):
    before = desk.page.viewport_size
    desk.page.set_viewport_size(PHONE)
    for settings in ({}, {"status": "rejected"}, {"conversation": "talk-worst"}):
        desk.show("conversations", project=PROJECT, **settings)
        for summary in desk.page.locator("summary").all():
            summary.click()
        assert desk.widths() == [PHONE["width"]] * 2
    desk.page.set_viewport_size(before)


def test_the_view_is_accessible_in_light_and_dark(desk, screenshots):
    for name, settings in (("conversations", {}), ("conversation", {"conversation": "talk-worst"})):
        desk.show("conversations", project=PROJECT, **settings)
        desk.assert_accessible(name, screenshots)
