"""How much room the element takes: long words, narrow screens, fingers."""

import pytest
from playwright.sync_api import expect

from demo_page import LONG_URL

PHONE = {"viewport": {"width": 375, "height": 812}, "has_touch": True, "is_mobile": True}

# Puts the first answer's element into a container of the page, as its item or within a plain one.
PLACE = """([kind, depth, id]) => {
    const item = document.querySelector(`hearback-feedback[message-id="${id}"]`);
    const inner = depth === 'direct' ? item : document.createElement('div');
    if (inner !== item) inner.append(item);
    const side = document.createElement('div');
    side.textContent = 'AI';
    let box;
    if (kind === 'cell') {
        box = document.createElement('table');
        const cells = box.insertRow();
        cells.insertCell().append(side);
        cells.insertCell().append(inner);
    } else {
        box = document.createElement('div');
        box.style.display = kind;
        if (kind === 'grid') box.style.gridTemplateColumns = 'auto 1fr';
        box.append(side, inner);
    }
    document.querySelector('#conversation').replaceChildren(box);
}"""

WIDTHS = """() => [document.documentElement.scrollWidth, innerWidth, visualViewport.scale]"""


def fits(demo):
    width, shown, scale = demo.page.evaluate(WIDTHS)
    # A phone shows a page that is too wide smaller.
    assert (width, shown, scale) == (375, 375, 1)


@pytest.mark.parametrize("depth", ["direct", "wrapped"])
@pytest.mark.parametrize("kind", ["grid", "flex", "cell"])
def test_a_long_url_makes_no_page_wider(new_demo, new_context, user, kind, depth):
    demo = new_demo(user, new_context(**PHONE))
    demo.page.evaluate(PLACE, [kind, depth, user.message("3")])
    answer = demo.answer("3")
    answer.edit.click()
    answer.editor.fill(LONG_URL)
    fits(demo)
    assert answer.editor.bounding_box()["width"] > 200
    answer.save.click()
    demo.settled()
    expect(answer.edited).to_contain_text(LONG_URL)
    fits(demo)
    answer.down.click()
    answer.reason.fill(LONG_URL)
    fits(demo)
    answer.send.click()
    expect(answer.reason).to_be_hidden()
    fits(demo)


def test_a_long_reason_and_long_texts_of_the_page_make_it_no_wider(new_demo, new_context, user):
    demo = new_demo(user, new_context(**PHONE))
    demo.page.evaluate("""async word => {
        const { configure } = await import('/demo/hearback-feedback.js');
        const token = new URLSearchParams(location.hash.slice(1)).get('token');
        const reasons = [{ value: 'long', label: word }, { value: 'longer', label: `An ${word}` }];
        const labels = { edited: word, errorUnknownMessage: word, sent: word, editor: word, reasonText: word };
        configure({ token, reasons, labels });
    }""", "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen" * 2)
    demo.page.evaluate(PLACE, ["flex", "direct", user.message("3")])
    answer = demo.answer("3")
    answer.down.click()
    fits(demo)
    answer.send.click()
    expect(answer.element.get_by_role("textbox")).to_have_count(0)
    fits(demo)
    answer.edit.click()
    fits(demo)
    answer.element.get_by_role("textbox").fill("29.")
    answer.save.click()
    fits(demo)
    demo.settled()
    answer.element.evaluate("element => { element.messageId = 'nobody-knows-it'; }")
    demo.page.get_by_role("button", name="Helpful", exact=True).click()
    expect(demo.page.locator("hearback-feedback").get_by_role("alert")).to_contain_text("Donau")
    demo.expect_error("404")
    fits(demo)


def test_what_a_finger_presses_is_large_enough(new_demo, new_context, user):
    demo = new_demo(user, new_context(**PHONE))
    answer = demo.answer("2")
    answer.down.click()
    answer.inaccurate.click()
    answer.reason.fill("why")
    demo.answer("3").edit.click()
    demo.answer("unregistered").up.click()
    expect(demo.answer("unregistered").error).not_to_be_empty()
    demo.expect_error("404")
    demo.page.route("**/api/v1/feedback**", lambda route: route.abort())
    demo.answer("1").up.click()
    expect(demo.answer("1").retry).to_be_visible()
    demo.expect_error("ERR_FAILED")
    controls = demo.page.locator("hearback-feedback").locator("button, input, textarea")
    sizes = {}
    for control in controls.all():
        if control.is_visible():
            box = control.bounding_box()
            name = control.get_attribute("part")
            sizes[name] = (box["width"] >= 44, box["height"] >= 44)
    assert {name for name, large in sizes.items() if large != (True, True)} == set()
    assert {"button retry", "button dismiss", "button details", "button save", "button chip unsafe"} <= set(sizes)
    # Safari on phones zooms in on a field with a smaller font.
    for field in ("input", "textarea"):
        size = demo.page.locator("hearback-feedback").locator(f"{field}:visible").first.evaluate(
            "node => parseFloat(getComputedStyle(node).fontSize)"
        )
        assert size >= 16


def test_shortcuts_are_told_where_there_is_a_keyboard_alone(new_demo, new_context, user):
    phone, desk = new_demo(user, new_context(**PHONE)), new_demo(user, new_context())
    for demo, told in ((desk, True), (phone, False)):
        answer = demo.answer("3")
        answer.edit.click()
        hint = answer.element.get_by_text("Escape cancels")
        if told:
            expect(hint).to_be_visible()
        else:
            expect(hint).to_be_hidden()
        described = answer.editor.get_attribute("aria-describedby").split()
        assert ("hint" in described) is told


def test_a_thumb_moves_nothing_that_was_there(demo):
    answer = demo.answer("2")
    there = (answer.up, answer.down, answer.edit, answer.button("Regenerate"))
    before = [control.bounding_box() for control in there]
    answer.down.click()
    expect(answer.details).to_be_visible()
    answer.inaccurate.click()
    demo.settled()
    assert [control.bounding_box() for control in there] == before
