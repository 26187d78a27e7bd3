"""Rejected calls, lost connections, and responses out of order."""

import pytest
from playwright.sync_api import expect

from bundle import eventually


UNKNOWN = "Not saved: the feedback service has no record of this answer."
OFFLINE = "Not saved yet: you are offline. It will be sent when you are back online."
UNREACHABLE = "Not saved: the service cannot be reached right now."


def test_an_unknown_answer_offers_no_useless_retry(demo, user):
    answer = demo.answer("unregistered")
    answer.up.click()
    expect(answer.error).to_have_text(UNKNOWN)
    demo.expect_error("404")
    expect(answer.retry).to_be_hidden()
    answer.shows()
    assert user.feedback("unregistered") == {}
    # Once the answer is registered, the thumb is the next attempt.
    user.register("unregistered")
    answer.up.click()
    answer.shows(answer.up)
    eventually(lambda: user.feedback("unregistered"), {"helpful": None})
    expect(answer.error).to_be_empty()


def test_an_error_can_be_dismissed_with_the_keyboard(demo):
    answer = demo.answer("unregistered")
    answer.up.click()
    expect(answer.error).to_have_text(UNKNOWN)
    demo.expect_error("404")
    answer.dismiss.focus()
    demo.page.keyboard.press("Enter")
    expect(answer.error).to_be_empty()
    expect(answer.dismiss).to_be_hidden()
    expect(answer.up).to_be_focused()
    answer.up.click()
    expect(answer.error).to_have_text(UNKNOWN)


def test_a_text_whose_error_was_dismissed_is_still_in_the_editor(demo):
    text = "😀" * 4096
    answer = demo.answer("3")
    answer.edit.click()
    answer.editor.fill(text)
    answer.save.click()
    expect(answer.error).to_have_text("Not saved: the text is too long.")
    demo.expect_error("413")
    expect(answer.retry).to_be_hidden()
    answer.dismiss.click()
    expect(answer.error).to_be_empty()
    answer.edit.click()
    expect(answer.editor).to_have_value(text)


def test_a_signal_given_offline_is_sent_once_online(demo, user):
    answer = demo.answer("1")
    demo.page.context.set_offline(True)
    answer.up.click()
    expect(answer.error).to_have_text(OFFLINE)
    answer.shows()
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    assert user.feedback("1") == {}
    demo.page.context.set_offline(False)
    answer.shows(answer.up)
    eventually(lambda: user.feedback("1"), {"helpful": None})
    expect(answer.error).to_be_empty()
    expect(answer.retry).to_be_hidden()
    expect(answer.status).to_have_text("Feedback saved")


def test_a_withdrawal_made_offline_is_sent_once_online(demo, user):
    answer = demo.answer("1")
    answer.up.click()
    demo.settled()
    demo.page.context.set_offline(True)
    answer.up.click()
    expect(answer.error).to_have_text(OFFLINE)
    answer.shows(answer.up)
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    assert user.feedback("1") == {"helpful": None}
    demo.page.context.set_offline(False)
    answer.shows()
    eventually(lambda: user.feedback("1"), {})
    expect(answer.error).to_be_empty()


def test_only_the_last_choice_made_offline_is_sent(demo, user):
    answer = demo.answer("3")
    demo.page.context.set_offline(True)
    for thumb in (answer.up, answer.down, answer.up, answer.down):
        thumb.click()
        expect(answer.error).to_have_text(OFFLINE)
        demo.settled()
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    demo.page.context.set_offline(False)
    answer.shows(answer.down)
    eventually(lambda: user.feedback("3"), {"not_helpful": None})
    demo.settled()
    expect(answer.error).to_be_empty()
    assert user.feedback("3") == {"not_helpful": None}


def test_a_dismissed_signal_is_not_sent_later(demo, user):
    answer, other = demo.answer("1"), demo.answer("3")
    demo.page.context.set_offline(True)
    answer.up.click()
    other.up.click()
    expect(answer.error).to_have_text(OFFLINE)
    expect(other.error).to_have_text(OFFLINE)
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    # Both failures: the signal, and the read of the stored feedback.
    demo.settled()
    answer.dismiss.click()
    expect(answer.error).to_be_empty()
    demo.page.context.set_offline(False)
    other.shows(other.up)
    demo.settled()
    answer.shows()
    assert user.feedback("1") == {}
    assert user.feedback("3") == {"helpful": None}


def test_an_unreachable_service_is_not_shown_as_being_offline(demo, user):
    answer = demo.answer("1")
    held = demo.intercept("POST")
    answer.up.click()
    held.one().abort()
    demo.expect_error("ERR_FAILED")
    expect(answer.error).to_have_text(UNREACHABLE)
    held.end()
    answer.retry.click()
    answer.shows(answer.up)
    expect(answer.status).to_have_text("Feedback saved")
    assert user.feedback("1") == {"helpful": None}
    expect(answer.error).to_be_empty()


def test_a_signal_that_is_stored_although_its_response_is_lost_is_shown(demo, user):
    answer = demo.answer("1")
    held = demo.intercept("POST")
    answer.up.click()
    call = held.one()
    assert call.fetch().status == 201
    call.abort()
    demo.expect_error("ERR_FAILED")
    demo.settled()
    answer.shows(answer.up)
    expect(answer.error).to_be_empty()
    assert user.feedback("1") == {"helpful": None}


def test_a_later_choice_is_sent_although_a_response_is_lost(demo, user):
    answer = demo.answer("1")
    held = demo.intercept("POST")
    answer.up.click()
    call = held.one()
    answer.up.click()
    assert call.fetch().status == 201
    assert user.feedback("1") == {"helpful": None}
    call.abort()
    demo.expect_error("ERR_FAILED")
    demo.settled()
    answer.shows()
    assert demo.calls == ["POST helpful", "DELETE helpful"]
    assert user.feedback("1") == {}


def test_a_slow_thumb_does_not_outlive_its_withdrawal(demo, user):
    answer = demo.answer("1")
    held = demo.intercept("POST")
    answer.up.click()
    call = held.one()
    answer.up.click()
    answer.shows()
    # The withdrawal waits until the signal is stored.
    assert demo.calls == ["POST helpful"]
    call.continue_()
    demo.settled()
    answer.shows()
    assert demo.calls == ["POST helpful", "DELETE helpful"]
    assert user.feedback("1") == {}


def test_intermediate_choices_are_not_sent(demo, user):
    answer = demo.answer("1")
    held = demo.intercept("POST")
    answer.up.click()
    call = held.one()
    for _ in range(6):
        answer.up.click()
    answer.shows(answer.up)
    call.continue_()
    demo.settled()
    answer.shows(answer.up)
    assert demo.calls == ["POST helpful"]
    assert user.feedback("1") == {"helpful": None}


def test_rapid_toggling_ends_with_the_last_click(demo, user):
    answer = demo.answer("1")
    for toggle in [answer.up, answer.down] * 6 + [answer.down, answer.up, answer.down]:
        toggle.click()
    demo.settled()
    answer.shows(answer.down)
    assert user.feedback("1") == {"not_helpful": None}
    for _ in range(7):
        answer.down.click()
    demo.settled()
    answer.shows()
    assert user.feedback("1") == {}


def test_an_older_read_does_not_undo_a_click(demo, user):
    answer = demo.answer("1")
    held = demo.intercept("GET")
    # A change in another tab makes the page read the feedback.
    changed = "id => new BroadcastChannel('hearback-feedback').postMessage({ messageId: id })"
    demo.page.evaluate(changed, user.message("1"))
    read = held.one()
    empty = read.fetch()
    held.end()
    answer.up.click()
    expect(answer.status).to_have_text("Feedback saved")
    read.fulfill(response=empty)
    demo.settled()
    answer.shows(answer.up)
    assert user.feedback("1") == {"helpful": None}


def test_a_click_before_the_first_read_is_kept(new_demo, new_user):
    user = new_user()
    demo = new_demo(user)
    user.submit_signal("1", "not_helpful", "because")
    held = demo.intercept("GET")
    demo.page.evaluate(SHOW_AGAIN, user.message("1"))
    read = held.one()
    before = read.fetch()
    held.end()
    answer = demo.answer("1")
    answer.up.click()
    read.fulfill(response=before)
    demo.settled()
    answer.shows(answer.up)
    assert user.feedback("1") == {"helpful": None}


# Configures the element again, with this answer only.
SHOW_AGAIN = """async id => {
    const { configure } = await import('/demo/hearback-feedback.js');
    for (const element of document.querySelectorAll('hearback-feedback')) {
        if (element.messageId !== id) element.remove();
    }
    const token = new URLSearchParams(location.hash.slice(1)).get('token');
    configure({ token });
}"""


def test_a_failed_read_is_shown_and_repeated(new_demo, user):
    demo = new_demo(user)
    demo.page.context.set_offline(True)
    demo.page.evaluate(SHOW_AGAIN, user.message("1"))
    answer = demo.answer("1")
    expect(answer.error).to_have_text("Your earlier feedback could not be loaded.")
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    user.submit_signal("1", "helpful")
    demo.page.context.set_offline(False)
    answer.shows(answer.up)
    expect(answer.error).to_be_empty()


def test_a_rejected_token_is_shown(demo, user):
    demo.page.evaluate("""async () => {
        const { configure } = await import('/demo/hearback-feedback.js');
        configure({ token: async () => 'expired' });
    }""")
    answer = demo.answer("1")
    expect(answer.error).to_have_text("Please sign in again to give feedback.")
    demo.expect_error("401")
    answer.up.click()
    expect(answer.error).to_have_text("Not saved: please sign in again.")
    answer.shows()
    assert user.feedback("1") == {}


SECRET = "eyJhbGciOiJIUzI1NiJ9.c2VjcmV0LWNsYWltcw.c2VjcmV0LXNpZ25hdHVyZQ"

# Values that a page may pass as its token, and the messages to its developer.
BAD_TOKENS = {
    "throws": ("() => { throw new Error(`no session for ${secret}`); }", "the token function threw Error: no session"),
    "throws-nothing": ("() => { throw undefined; }", "the token function threw undefined"),
    "rejects": ("async () => JSON.parse('<html>')", "the token function threw SyntaxError"),
    "returns-nothing": ("() => undefined", "the token function returned no token"),
    "returns-null": ("async () => null", "the token function returned no token"),
    "returns-an-object": ("() => ({ access_token: secret })", "it must be a string without white space"),
    "is-two-lines": ("() => secret + '\\nX-Other: header'", "it must be a string without white space"),
    "is-no-latin": ("`${secret}…`", "it must be a string without white space"),
    "hangs": ("() => new Promise(() => {})", "the token function did not answer in time"),
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_an_invalid_token_is_reported_and_never_shown(demo, user, name):
    token, detail = BAD_TOKENS[name]
    demo.settled()
    urls = []
    demo.page.on("request", lambda request: urls.append(request.url))
    demo.page.evaluate(f"""async secret => {{
        const {{ configure }} = await import('/demo/hearback-feedback.js');
        configure({{ token: {token}, timeout: 300 }});
    }}""", SECRET)
    answer = demo.answer("1")
    expect(answer.error).to_have_text("Please sign in again to give feedback.")
    answer.up.click()
    expect(answer.error).to_have_text("Not saved: please sign in again.")
    answer.shows()
    demo.expect_error(detail)
    assert not [each for each in demo.errors() if "secret" in each or SECRET in each]
    assert not [url for url in urls if "/api/v1/feedback" in url]
    assert user.feedback("1") == {}


def test_a_call_can_be_retried_after_a_failure_of_the_token_function(demo, user):
    demo.page.evaluate("""async () => {
        const { configure } = await import('/demo/hearback-feedback.js');
        const token = new URLSearchParams(location.hash.slice(1)).get('token');
        window.signedIn = false;
        configure({ token: () => { if (!signedIn) throw new TypeError('no session'); return token; } });
    }""")
    answer = demo.answer("1")
    answer.up.click()
    expect(answer.error).to_have_text("Not saved: please sign in again.")
    demo.expect_error("the token function threw TypeError: no session")
    demo.page.evaluate("signedIn = true")
    answer.retry.click()
    answer.shows(answer.up)
    eventually(lambda: user.feedback("1"), {"helpful": None})
    expect(answer.error).to_be_empty()
