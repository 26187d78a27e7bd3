"""Reloads, tabs, users, and elements that share or change their message."""

from playwright.sync_api import expect

from bundle import eventually


def give_feedback(demo):
    # A background tab is painted, and so clicked, only once a second.
    demo.page.bring_to_front()
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    answer.give_reason("a leap year")
    answer.edit.click()
    answer.editor.fill("29 days.")
    answer.save.click()
    demo.settled()


def expect_feedback(demo):
    answer = demo.answer("3")
    answer.shows(answer.down, answer.inaccurate)
    expect(answer.edited).to_contain_text("29 days.")
    if answer.details.get_attribute("aria-expanded") == "false":
        answer.details.click()
    expect(answer.reason).to_have_value("a leap year")


def test_a_reload_shows_the_feedback(demo):
    give_feedback(demo)
    demo.reload()
    expect_feedback(demo)


def test_another_browser_shows_the_feedback(new_demo, user):
    give_feedback(new_demo(user))
    expect_feedback(new_demo(user))


def test_every_page_of_the_rows_is_read(new_demo, new_context, user):
    give_feedback(new_demo(user))
    context = new_context()
    # One row per page.
    context.route(
        "**/api/v1/feedback?**",
        lambda route: route.continue_(url=f"{route.request.url}&limit=1"),
    )
    expect_feedback(new_demo(user, context))


def test_nothing_private_is_stored_in_the_browser_or_sent_to_other_tabs(new_demo, new_context, user):
    context = new_context()
    listener = new_demo(user, context)
    listener.page.evaluate("""() => {
        window.received = [];
        new BroadcastChannel('hearback-feedback').onmessage = ({ data }) => received.push(data);
    }""")
    give_feedback(new_demo(user, context))
    messages = listener.page.evaluate("received")
    assert {tuple(message.items()) for message in messages} == {(("messageId", user.message("3")),)}
    stored = listener.page.evaluate("""async () => [
        localStorage.length, sessionStorage.length, document.cookie,
        (await indexedDB.databases()).length, (await caches.keys()).length,
    ]""")
    assert stored == [0, 0, "", 0, 0]


def test_a_tab_shows_feedback_given_in_another(new_demo, new_context, user):
    context = new_context()
    here, there = new_demo(user, context), new_demo(user, context)
    here.page.bring_to_front()
    here.answer("1").up.click()
    answer = there.answer("1")
    answer.shows(answer.up)
    there.page.bring_to_front()
    answer.up.click()
    here.answer("1").shows()
    eventually(lambda: user.feedback("1"), {})
    give_feedback(here)
    expect_feedback(there)


def show(demo, message_id):
    """Gives the first element of a demo another message; returns the element and its thumb up."""
    demo.page.bring_to_front()
    element = demo.page.locator("hearback-feedback").first
    element.evaluate("(element, id) => { element.messageId = id; }", message_id)
    demo.settled()
    return element, element.get_by_role("button", name="Helpful", exact=True)


def test_users_see_only_their_own_feedback(new_demo, new_user):
    ada, eve = new_user(), new_user()
    of_ada, of_eve = new_demo(ada), new_demo(eve)
    give_feedback(of_ada)
    # Both users have access to the project of the message, and may rate it.
    element, up = show(of_eve, ada.message("3"))
    expect(up).to_have_attribute("aria-pressed", "false")
    expect(element).not_to_contain_text("29 days.")
    up.click()
    of_eve.settled()
    assert [row["signal"] for row in eve.rows(ada.message("3"))] == ["helpful"]
    expected = {"not_helpful": None, "inaccurate": "a leap year", "edit": "29 days."}
    assert ada.feedback("3") == expected
    of_ada.reload()
    expect_feedback(of_ada)


def test_a_message_of_another_project_is_rejected(new_demo, new_user):
    ada, kim = new_user("hearback-demo,billing"), new_user()
    ada.register("of-billing", "billing")
    of_kim = new_demo(kim)
    element, up = show(of_kim, ada.message("of-billing"))
    up.click()
    expect(element.get_by_role("alert")).to_contain_text("has no record of this answer")
    expect(up).to_have_attribute("aria-pressed", "false")
    of_kim.expect_error("404")
    assert kim.rows(ada.message("of-billing")) == []


def test_another_user_on_the_same_page_starts_without_feedback(demo, new_user):
    demo.answer("1").up.click()
    demo.settled()
    other = new_user()
    demo.page.evaluate("""async token => {
        const { configure } = await import('/demo/hearback-feedback.js');
        configure({ token });
    }""", other.token)
    demo.settled()
    demo.answer("1").shows()


def test_elements_of_one_message_share_its_state(demo, user):
    demo.page.evaluate("""id => {
        const twin = document.createElement('hearback-feedback');
        twin.id = 'twin';
        twin.messageId = id;
        document.body.append(twin);
    }""", user.message("1"))
    twin = demo.page.locator("#twin").get_by_role("button", name="Helpful", exact=True)
    demo.page.locator("main").get_by_role("button", name="Helpful", exact=True).first.click()
    expect(twin).to_have_attribute("aria-pressed", "true")
    twin.click()
    demo.settled()
    demo.answer("2").shows()
    assert demo.calls == ["POST helpful", "DELETE helpful"]
    assert user.feedback("1") == {}


def test_an_element_that_is_reused_shows_its_new_message(demo, user):
    answer = demo.answer("1")
    answer.down.click()
    answer.reason.fill("never sent")
    answer.edit.click()
    answer.editor.fill("never saved")
    demo.settled()
    element = answer.element.element_handle()
    element.evaluate("(element, id) => { element.messageId = id; }", user.message("3"))
    demo.settled()
    reused = demo.page.locator("hearback-feedback").first
    expect(reused).to_have_attribute("message-id", user.message("3"))
    expect(reused.get_by_role("textbox")).to_have_count(0)
    expect(reused.get_by_role("button", name="Details")).to_have_count(0)
    down = reused.get_by_role("button", name="Not helpful")
    expect(down).to_have_attribute("aria-pressed", "false")
    down.click()
    demo.settled()
    assert user.feedback("3") == {"not_helpful": None}
    assert user.feedback("1") == {"not_helpful": None}
    element.evaluate("(element, id) => { element.messageId = id; }", user.message("1"))
    expect(down).to_have_attribute("aria-pressed", "true")
    reused.get_by_role("button", name="Details").click()
    expect(reused.get_by_role("textbox")).to_have_value("")


def test_an_element_that_is_removed_and_inserted_again_still_works(demo, user):
    answer = demo.answer("1")
    moved = """element => {
        const { parentNode } = element;
        element.remove();
        window.setTimeout(() => parentNode.append(element));
    }"""
    answer.element.evaluate(moved)
    answer.up.click()
    demo.settled()
    answer.shows(answer.up)
    assert user.feedback("1") == {"helpful": None}


def test_feedback_given_just_before_leaving_is_stored(demo, user):
    demo.answer("1").up.click()
    demo.page.goto("about:blank")
    eventually(lambda: user.feedback("1"), {"helpful": None})
