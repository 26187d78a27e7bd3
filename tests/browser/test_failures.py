"""What is refused or lost on the way, and what comes in another order than it was wanted."""

from playwright.sync_api import expect

from bundle import eventually


def test_a_refusal_is_told_and_rolled_back(demo, user):
    answer = demo.answer("unregistered")
    answer.up.click()
    expect(answer.error).to_have_text("Not saved: the service does not know this answer.")
    answer.shows()
    assert user.feedback("unregistered") == {}
    # The service has come to know it.
    user.register("unregistered")
    answer.retry.click()
    answer.shows(answer.up)
    eventually(lambda: user.feedback("unregistered"), {"helpful": None})
    expect(answer.error).to_be_empty()
    expect(answer.retry).to_be_hidden()
    demo.expect_error("404")


def test_without_a_connection_it_rolls_back_and_can_be_tried_again(demo, user):
    answer = demo.answer("1")
    demo.page.context.set_offline(True)
    answer.up.click()
    expect(answer.error).to_have_text("Not saved: there is no connection.")
    answer.shows()
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    demo.page.context.set_offline(False)
    demo.settled()
    assert user.feedback("1") == {}
    answer.retry.click()
    demo.settled()
    answer.shows(answer.up)
    assert user.feedback("1") == {"helpful": None}


def test_a_withdrawal_that_fails_leaves_the_thumb(demo, user):
    answer = demo.answer("1")
    answer.up.click()
    demo.settled()
    demo.page.context.set_offline(True)
    answer.up.click()
    expect(answer.error).to_have_text("Not saved: there is no connection.")
    answer.shows(answer.up)
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    demo.page.context.set_offline(False)
    demo.settled()
    assert user.feedback("1") == {"helpful": None}


def test_what_was_stored_although_its_answer_was_lost_is_shown(demo, user):
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


def test_what_was_wanted_since_is_sent_although_an_answer_was_lost(demo, user):
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
    # The withdrawal waits for the thumb.
    assert demo.calls == ["POST helpful"]
    call.continue_()
    demo.settled()
    answer.shows()
    assert demo.calls == ["POST helpful", "DELETE helpful"]
    assert user.feedback("1") == {}


def test_what_was_wanted_in_between_is_not_sent(demo, user):
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


def test_rapid_toggling_ends_as_the_last_click_says(demo, user):
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


def test_an_older_reading_does_not_undo_a_click(demo, user):
    answer = demo.answer("1")
    held = demo.intercept("GET")
    # A change elsewhere has the page read the answer.
    changed = "id => new BroadcastChannel('hearback-feedback').postMessage({ messageId: id })"
    demo.page.evaluate(changed, user.message("1"))
    reading = held.one()
    nothing = reading.fetch()
    held.end()
    answer.up.click()
    eventually(lambda: user.feedback("1"), {"helpful": None})
    expect(answer.status).to_have_text("Feedback saved")
    reading.fulfill(response=nothing)
    demo.settled()
    answer.shows(answer.up)
    assert user.feedback("1") == {"helpful": None}


def test_a_click_before_the_first_reading_holds(new_demo, new_user):
    user = new_user()
    demo = new_demo(user)
    user.say("1", "not_helpful", "because")
    held = demo.intercept("GET")
    demo.page.evaluate(SHOW_AGAIN, user.message("1"))
    reading = held.one()
    before = reading.fetch()
    held.end()
    answer = demo.answer("1")
    answer.up.click()
    reading.fulfill(response=before)
    demo.settled()
    answer.shows(answer.up)
    assert user.feedback("1") == {"helpful": None}


# Starts over with nothing known, and with the one answer alone.
SHOW_AGAIN = """async id => {
    const { configure } = await import('/demo/hearback-feedback.js');
    for (const element of document.querySelectorAll('hearback-feedback')) {
        if (element.messageId !== id) element.remove();
    }
    const token = new URLSearchParams(location.hash.slice(1)).get('token');
    configure({ token });
}"""


def test_a_reading_that_fails_is_told_and_made_up_for(new_demo, user):
    demo = new_demo(user)
    demo.page.context.set_offline(True)
    demo.page.evaluate(SHOW_AGAIN, user.message("1"))
    answer = demo.answer("1")
    expect(answer.error).to_have_text("Your feedback could not be loaded.")
    demo.expect_error("ERR_INTERNET_DISCONNECTED")
    user.say("1", "helpful")
    demo.page.context.set_offline(False)
    answer.shows(answer.up)
    expect(answer.error).to_be_empty()


def test_a_token_that_is_refused_is_told(demo, user):
    demo.page.evaluate("""async () => {
        const { configure } = await import('/demo/hearback-feedback.js');
        configure({ token: async () => 'expired' });
    }""")
    answer = demo.answer("1")
    expect(answer.error).to_have_text("Not saved: please sign in again.")
    demo.expect_error("401")
    assert user.feedback("1") == {}
