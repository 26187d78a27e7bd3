"""Thumbs and their reasons: what the user sees, and what the server stores."""

from playwright.sync_api import expect

from bundle import eventually


def test_a_thumb_is_stored_with_its_conversation_and_trace(demo, user):
    answer = demo.answer("1")
    answer.up.click()
    answer.shows(answer.up)
    eventually(lambda: user.feedback("1"), {"helpful": None})
    [row] = user.rows(user.message("1"))
    assert row["chat_id"] == f"demo-{user.name}-1"
    assert row["trace_id"] == "demo-trace-1"
    expect(answer.status).to_have_text("Feedback saved")


def test_the_same_thumb_again_withdraws_it(demo, user):
    answer = demo.answer("1")
    answer.up.click()
    eventually(lambda: user.feedback("1"), {"helpful": None})
    answer.up.click()
    answer.shows()
    eventually(lambda: user.feedback("1"), {})
    demo.settled()
    expect(answer.status).to_have_text("Feedback withdrawn")
    assert demo.calls == ["POST helpful", "DELETE helpful"]


def test_the_other_thumb_replaces_the_first_in_one_call(demo, user):
    answer = demo.answer("1")
    answer.up.click()
    demo.settled()
    held = demo.intercept("POST", "not_helpful")
    answer.down.click()
    answer.shows(answer.down)
    call = held.one()
    assert demo.calls == ["POST helpful", "POST not_helpful"]
    assert user.feedback("1") == {"helpful": None}
    call.continue_()
    demo.settled()
    answer.shows(answer.down)
    assert demo.calls == ["POST helpful", "POST not_helpful"]
    assert user.feedback("1") == {"not_helpful": None}


def test_a_thumb_waits_for_the_response_to_the_other_one(demo, user):
    answer = demo.answer("1")
    held = demo.intercept("POST", "helpful")
    answer.up.click()
    call = held.one()
    answer.down.click()
    answer.shows(answer.down)
    # If the first thumb were stored after the second, it would withdraw the second.
    assert demo.calls == ["POST helpful"]
    call.continue_()
    demo.settled()
    answer.shows(answer.down)
    assert demo.calls == ["POST helpful", "POST not_helpful"]
    assert user.feedback("1") == {"not_helpful": None}


def test_a_thumb_that_is_restored_while_it_is_withdrawn_is_sent_again(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    demo.settled()
    held = demo.intercept("POST", "helpful")
    answer.up.click()
    call = held.one()
    answer.down.click()
    answer.shows(answer.down)
    call.continue_()
    demo.settled()
    answer.shows(answer.down)
    assert user.feedback("3") == {"not_helpful": None}


def test_a_page_that_is_closed_after_a_switch_leaves_one_thumb(new_demo, user):
    demo = new_demo(user)
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    demo.settled()
    with demo.page.expect_request(lambda request: request.method == "POST"):
        answer.up.click()
    demo.page.goto("about:blank")
    eventually(lambda: user.feedback("3"), {"helpful": None})


def test_a_failed_switch_keeps_the_first_thumb(demo, user):
    answer = demo.answer("1")
    answer.up.click()
    demo.settled()
    held = demo.intercept("POST", "not_helpful")
    answer.down.click()
    answer.shows(answer.down)
    held.one().abort()
    demo.expect_error("ERR_FAILED")
    answer.shows(answer.up)
    held.end()
    demo.settled()
    answer.shows(answer.up)
    assert user.feedback("1") == {"helpful": None}
    answer.retry.click()
    demo.settled()
    answer.shows(answer.down)
    assert user.feedback("1") == {"not_helpful": None}


def test_reasons_are_separate_signals(demo, user):
    answer = demo.answer("3")
    expect(answer.inaccurate).to_be_hidden()
    answer.down.click()
    answer.inaccurate.click()
    answer.unsafe.click()
    demo.settled()
    answer.shows(answer.down, answer.inaccurate, answer.unsafe)
    assert user.feedback("3") == {"not_helpful": None, "inaccurate": None, "unsafe": None}
    answer.unsafe.click()
    demo.settled()
    answer.shows(answer.down, answer.inaccurate)
    assert user.feedback("3") == {"not_helpful": None, "inaccurate": None}


def test_a_reason_is_sent_after_its_thumb(demo, user):
    answer = demo.answer("3")
    held = demo.intercept("POST", "not_helpful")
    answer.down.click()
    answer.inaccurate.click()
    answer.shows(answer.down, answer.inaccurate)
    call = held.one()
    assert demo.calls == ["POST not_helpful"]
    call.abort()
    demo.expect_error("ERR_FAILED")
    answer.shows()
    held.end()
    demo.settled()
    assert user.feedback("3") == {}
    answer.retry.click()
    demo.settled()
    answer.shows(answer.down, answer.inaccurate)
    assert user.feedback("3") == {"not_helpful": None, "inaccurate": None}


def test_withdrawing_the_thumb_withdraws_its_reasons(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    answer.unsafe.click()
    demo.settled()
    answer.down.click()
    answer.shows()
    demo.settled()
    expect(answer.inaccurate).to_be_hidden()
    assert user.feedback("3") == {}


def test_the_other_thumb_withdraws_the_reasons(demo, user):
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    demo.settled()
    answer.up.click()
    answer.shows(answer.up)
    demo.settled()
    assert user.feedback("3") == {"helpful": None}


def test_the_panel_shows_the_stored_feedback(demo, user):
    stored = demo.page.get_by_role("region", name="What the server has")
    rows = stored.get_by_role("listitem")
    expect(demo.page.get_by_text("Nothing yet.")).to_be_visible()
    demo.answer("3").down.click()
    demo.answer("3").inaccurate.click()
    expect(rows).to_have_count(2)
    assert sorted(user.feedback("3")) == ["inaccurate", "not_helpful"]
    demo.answer("3").down.click()
    expect(demo.page.get_by_text("Nothing yet.")).to_be_visible()
    assert user.feedback("3") == {}
