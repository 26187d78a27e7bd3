"""The user's own version of an answer."""

from playwright.sync_api import expect

FEBRUARY = "February 2028 has 29 days: 2028 can be divided by 4."


def test_an_edit_is_stored_shown_and_removed(demo, user):
    answer = demo.answer("3")
    answer.edit.click()
    expect(answer.editor).to_be_focused()
    assert answer.editor.input_value().startswith("February 2028 has 28 days.")
    answer.editor.fill(FEBRUARY)
    answer.save.click()
    expect(answer.edited).to_contain_text(FEBRUARY)
    expect(answer.edit).to_be_focused()
    demo.settled()
    assert user.feedback("3") == {"edit": FEBRUARY}
    answer.edited.get_by_role("button", name="Remove Your version").click()
    expect(answer.edited).to_be_hidden()
    demo.settled()
    assert user.feedback("3") == {}


def test_the_editor_contains_the_lines_of_the_answer(demo):
    answer = demo.answer("2")
    answer.edit.click()
    assert answer.editor.input_value().startswith("Charge a card once when a payment is retried\n\nThe")


def test_an_edit_can_be_edited(demo, user):
    answer = demo.answer("3")
    for text in (FEBRUARY, "29."):
        answer.edit.click()
        answer.editor.fill(text)
        answer.save.click()
        demo.settled()
    answer.edit.click()
    expect(answer.editor).to_have_value("29.")
    assert user.feedback("3") == {"edit": "29."}


def test_saving_an_unchanged_answer_is_no_edit(demo, user):
    answer = demo.answer("3")
    answer.edit.click()
    answer.save.click()
    expect(answer.editor).to_be_hidden()
    demo.settled()
    assert demo.calls == []
    assert user.feedback("3") == {}


def test_an_empty_version_cannot_be_saved(demo):
    answer = demo.answer("3")
    answer.edit.click()
    answer.editor.fill(" \n")
    expect(answer.save).to_have_attribute("aria-disabled", "true")
    answer.editor.press("Control+Enter")
    expect(answer.editor).to_be_visible()
    assert demo.calls == []


def test_the_limit_counts_characters_and_is_shown_before_it_is_reached(demo, user):
    answer = demo.answer("3")
    answer.edit.click()
    answer.editor.fill("x" * 3000)
    expect(answer.element.get_by_text("characters left")).to_be_hidden()
    # The emoji is one character, two UTF-16 units and four bytes.
    answer.editor.fill("x" * 4094 + "😀")
    expect(answer.element.get_by_text("1 characters left")).to_be_visible()
    answer.editor.fill("x" * 4096 + "😀")
    expect(answer.element.get_by_text("1 characters too many")).to_be_visible()
    expect(answer.status).to_have_text("Not saved: the text is too long.")
    expect(answer.editor).to_have_attribute("aria-invalid", "true")
    answer.editor.press("Control+Enter")
    assert demo.calls == []
    answer.editor.fill("x" * 4095 + "😀")
    answer.editor.press("Control+Enter")
    demo.settled()
    assert user.feedback("3") == {"edit": "x" * 4095 + "😀"}


def test_a_text_that_the_server_rejects_as_too_long_is_not_lost(demo, user):
    text = "😀" * 4096
    answer = demo.answer("3")
    answer.edit.click()
    answer.editor.fill(text)
    answer.save.click()
    expect(answer.error).to_have_text("Not saved: the text is too long.")
    demo.expect_error("413")
    expect(answer.edited).to_be_hidden()
    assert user.feedback("3") == {}
    answer.edit.click()
    expect(answer.editor).to_have_value(text)


def test_half_a_character_does_not_cause_a_rejection(demo, user):
    answer = demo.answer("3")
    answer.edit.click()
    halve = "area => { area.value = 'half ' + '😀'[0]; area.dispatchEvent(new Event('input')); }"
    answer.editor.evaluate(halve)
    answer.save.click()
    demo.settled()
    assert user.feedback("3") == {"edit": "half �"}


def test_regenerate_is_stored_and_the_page_shows_another_answer(demo, user):
    first = demo.answer("2")
    first.button("Regenerate").click()
    other = demo.answer("2-other")
    expect(other.element).to_contain_text("Reuse the idempotency key of a payment")
    demo.settled()
    assert user.feedback("2") == {"regenerate": None}
    other.up.click()
    demo.settled()
    assert user.feedback("2-other") == {"helpful": None}
    assert user.feedback("2") == {"regenerate": None}
    demo.reload()
    other.shows(other.up)


def test_a_page_can_prevent_that_a_regeneration_is_stored(demo, user):
    first = demo.answer("2")
    first.element.evaluate("""element => {
        element.addEventListener('hearback-regenerate', event => event.preventDefault());
    }""")
    first.button("Regenerate").click()
    expect(demo.answer("2-other").element).to_be_visible()
    demo.settled()
    assert user.feedback("2") == {}
