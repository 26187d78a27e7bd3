"""Reasons for a negative rating: their text, and the row that contains both."""

import pytest
from playwright.sync_api import expect

from bundle import eventually
from demo_page import SENT


def test_a_text_without_a_reason_belongs_to_the_thumb(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    answer.reason.fill("  2028 is a leap year  ")
    answer.send.click()
    expect(answer.status).to_have_text(SENT)
    assert user.feedback("3") == {"not_helpful": "2028 is a leap year"}
    answer.details.click()
    expect(answer.reason).to_have_value("2028 is a leap year")
    answer.give_reason("")
    assert user.feedback("3") == {"not_helpful": None}


@pytest.mark.parametrize("signal", ["inaccurate", "unsafe"])
def test_a_text_belongs_to_the_reason_that_was_chosen(demo, user, signal):
    answer = demo.answer("3")
    chip = getattr(answer, signal)
    answer.down.click()
    # A text that is written before the choice belongs to the choice, too.
    answer.reason.fill("a leap year")
    chip.click()
    expect(answer.reason).to_have_accessible_name(f"Tell us more about “{signal.capitalize()}” (optional)")
    expect(answer.reason).to_have_value("a leap year")
    answer.send.click()
    expect(answer.status).to_have_text(SENT)
    assert user.feedback("3") == {"not_helpful": None, signal: "a leap year"}
    demo.reload()
    answer.shows(answer.down, chip)
    answer.details.click()
    expect(answer.reason).to_have_value("a leap year")


def test_with_two_reasons_the_text_belongs_to_the_last_one(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    answer.unsafe.click()
    answer.give_reason("tells how to skip a check")
    expected = {"not_helpful": None, "inaccurate": None, "unsafe": "tells how to skip a check"}
    assert user.feedback("3") == expected


def test_a_sent_text_is_confirmed_visibly_and_to_screen_readers(demo):
    answer = demo.answer("3")
    answer.down.click()
    demo.settled()
    held = demo.intercept("POST", "not_helpful")
    answer.reason.fill("a leap year")
    answer.send.click()
    call = held.one()
    # No confirmation before the server has it.
    expect(answer.status).not_to_have_text(SENT)
    expect(answer.reason).to_be_visible()
    call.continue_()
    expect(answer.status).to_have_text(SENT)
    expect(answer.status).to_be_in_viewport(ratio=1)
    box = answer.status.bounding_box()
    assert box["width"] > 100 and box["height"] > 12
    assert answer.status.get_attribute("role") == "status"
    expect(answer.reason).to_be_hidden()
    expect(answer.details).to_be_focused()


def test_sending_without_a_text_confirms_the_reason(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    answer.unsafe.click()
    answer.send.click()
    expect(answer.status).to_have_text(SENT)
    expect(answer.reason).to_be_hidden()
    assert user.feedback("3") == {"not_helpful": None, "unsafe": None}
    assert demo.calls == ["POST not_helpful", "POST unsafe"]


def test_an_unsent_text_stays_in_the_field(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    demo.settled()
    demo.page.context.set_offline(True)
    answer.reason.fill("a leap year")
    answer.send.click()
    expect(answer.error).to_contain_text("you are offline")
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    expect(answer.reason).to_have_value("a leap year")
    expect(answer.status).not_to_have_text(SENT)
    demo.page.context.set_offline(False)
    expect(answer.status).to_have_text(SENT)
    expect(answer.reason).to_be_hidden()
    expect(answer.error).to_be_empty()
    assert user.feedback("3") == {"not_helpful": None, "inaccurate": "a leap year"}


def test_typing_while_a_text_is_being_sent_keeps_the_row_open(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    demo.settled()
    held = demo.intercept("POST", "not_helpful")
    answer.reason.fill("a leap")
    answer.send.click()
    call = held.one()
    held.end()
    answer.reason.fill("a leap year")
    call.continue_()
    demo.settled()
    expect(answer.reason).to_have_value("a leap year")
    answer.send.click()
    expect(answer.status).to_have_text(SENT)
    assert user.feedback("3") == {"not_helpful": "a leap year"}


def test_the_row_stays_closed_after_a_reload_once_a_text_was_sent(demo):
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    answer.give_reason("a leap year")
    demo.reload()
    answer.shows(answer.down, answer.inaccurate)
    expect(answer.inaccurate).to_be_hidden()
    expect(answer.reason).to_be_hidden()
    expect(answer.details).to_have_attribute("aria-expanded", "false")
    answer.details.click()
    expect(answer.inaccurate).to_be_visible()
    expect(answer.details).to_have_attribute("aria-expanded", "true")


@pytest.mark.parametrize("how", ["escape", "button"])
def test_the_row_stays_closed_once_it_was_dismissed(demo, how):
    answer = demo.answer("3")
    answer.down.click()
    expect(answer.reason).to_be_visible()
    if how == "escape":
        answer.reason.press("Escape")
    else:
        answer.details.click()
    expect(answer.reason).to_be_hidden()
    expect(answer.details).to_be_focused()
    demo.settled()
    expect(answer.reason).to_be_hidden()
    demo.reload()
    answer.shows(answer.down)
    expect(answer.reason).to_be_hidden()


def test_a_thumb_in_another_tab_does_not_open_the_row(new_demo, new_context, user):
    context = new_context()
    here, there = new_demo(user, context), new_demo(user, context)
    there.page.bring_to_front()
    there.answer("3").down.click()
    answer = here.answer("3")
    answer.shows(answer.down)
    expect(answer.reason).to_be_hidden()


def test_reasons_removed_with_the_thumb_can_be_restored(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    answer.give_reason("a leap year")
    expected = {"not_helpful": None, "inaccurate": "a leap year"}
    assert user.feedback("3") == expected
    # Removed by the same thumb, and by the other one.
    for thumb in (answer.down, answer.up):
        thumb.click()
        demo.settled()
        assert "inaccurate" not in user.feedback("3")
        answer.undo.click()
        answer.shows(answer.down, answer.inaccurate)
        demo.settled()
        assert user.feedback("3") == expected
        expect(answer.undo).to_be_hidden()


def test_a_click_that_removes_no_reasons_offers_no_undo(demo):
    answer = demo.answer("3")
    answer.down.click()
    demo.settled()
    answer.down.click()
    expect(answer.status).to_have_text("Feedback withdrawn")
    expect(answer.undo).to_be_hidden()


def test_after_a_switch_the_status_is_that_of_the_new_thumb(demo, user):
    answer = demo.answer("3")
    answer.up.click()
    demo.settled()
    answer.down.click()
    eventually(lambda: user.feedback("3"), {"not_helpful": None})
    demo.settled()
    expect(answer.status).to_have_text("Feedback saved")


CONFIGURE = """async reasons => {
    const { configure } = await import('/demo/hearback-feedback.js');
    const token = new URLSearchParams(location.hash.slice(1)).get('token');
    configure({ token, reasons });
}"""
REASONS = [
    {"value": "outdated", "label": "Out of date", "signal": "inaccurate"},
    {"value": "too-long", "label": "Too long"},
    {"value": "off-topic", "label": "Not what I asked"},
]


@pytest.fixture
def demo_with_reasons(demo):
    demo.page.evaluate(CONFIGURE, REASONS)
    demo.settled()
    return demo


def pressed(answer, *names):
    for name in ("Inaccurate", "Unsafe", "Out of date", "Too long", "Not what I asked"):
        expect(answer.button(name)).to_have_attribute("aria-pressed", str(name in names).lower())


def test_a_page_can_add_reasons(demo_with_reasons, user):
    answer = demo_with_reasons.answer("3")
    answer.down.click()
    answer.button("Too long").click()
    pressed(answer, "Too long")
    demo_with_reasons.settled()
    assert user.feedback("3") == {"not_helpful": "too-long"}
    expect(answer.reason).to_have_accessible_name("Tell us more about “Too long” (optional)")
    answer.give_reason("two pages for a yes")
    assert user.feedback("3") == {"not_helpful": "too-long: two pages for a yes"}
    answer.details.click()
    expect(answer.reason).to_have_value("two pages for a yes")
    # The text moves with the choice, and stays without one.
    answer.button("Not what I asked").click()
    pressed(answer, "Not what I asked")
    demo_with_reasons.settled()
    assert user.feedback("3") == {"not_helpful": "off-topic: two pages for a yes"}
    answer.button("Not what I asked").click()
    pressed(answer)
    demo_with_reasons.settled()
    assert user.feedback("3") == {"not_helpful": "two pages for a yes"}


def test_an_added_reason_may_belong_to_another_signal(demo_with_reasons, user):
    answer = demo_with_reasons.answer("3")
    answer.down.click()
    answer.button("Out of date").click()
    answer.give_reason("since 2026")
    expected = {"not_helpful": None, "inaccurate": "outdated: since 2026"}
    assert user.feedback("3") == expected
    demo_with_reasons.page.evaluate(CONFIGURE, REASONS)
    demo_with_reasons.settled()
    answer.details.click()
    pressed(answer, "Out of date")
    expect(answer.reason).to_have_value("since 2026")
    answer.inaccurate.click()
    pressed(answer, "Inaccurate")
    demo_with_reasons.settled()
    assert user.feedback("3") == {"not_helpful": None, "inaccurate": "since 2026"}
    answer.inaccurate.click()
    pressed(answer)
    demo_with_reasons.settled()
    assert user.feedback("3") == {"not_helpful": None}


def test_an_added_reason_shortens_the_limit_of_its_text(demo_with_reasons, user):
    answer = demo_with_reasons.answer("3")
    answer.down.click()
    answer.button("Too long").click()
    room = 4096 - len("too-long: ")
    expect(answer.reason).to_have_attribute("maxlength", str(room))
    answer.give_reason("x" * room)
    assert user.feedback("3") == {"not_helpful": "too-long: " + "x" * room}


def test_an_added_reason_given_offline_is_sent_once_online(demo_with_reasons, user):
    answer = demo_with_reasons.answer("3")
    answer.down.click()
    demo_with_reasons.settled()
    demo_with_reasons.page.context.set_offline(True)
    answer.button("Too long").click()
    expect(answer.error).to_contain_text("you are offline")
    demo_with_reasons.expect_error("ERR_INTERNET_DISCONNECTED")
    pressed(answer)
    demo_with_reasons.page.context.set_offline(False)
    pressed(answer, "Too long")
    eventually(lambda: user.feedback("3"), {"not_helpful": "too-long"})


@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        ({"value": "inaccurate", "label": "Wrong"}, "exists already"),
        ({"value": "not_helpful", "label": "Bad"}, "exists already"),
        ({"value": "", "label": "Empty"}, "1 to 64 characters"),
        ({"value": "a: b", "label": "Colon"}, "no colon"),
        ({"value": " a", "label": "Space"}, "no surrounding white space"),
        ({"value": "unlabelled"}, "has no label"),
        ({"value": "x", "label": "X", "signal": "edit"}, "must be one of not_helpful, inaccurate, unsafe"),
    ],
)
def test_an_ambiguous_reason_is_rejected(demo, user, reason, fault):
    error = demo.page.evaluate(
        f"async reasons => ({CONFIGURE})(reasons).then(() => null, error => String(error))", [reason]
    )
    assert error.startswith("TypeError")
    assert fault in error
    # The previous configuration stays in effect.
    answer = demo.answer("1")
    answer.up.click()
    eventually(lambda: user.feedback("1"), {"helpful": None})
