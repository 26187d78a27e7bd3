"""The layout of the element: long words, narrow screens, touch."""

import pytest
from playwright.sync_api import expect

from demo_page import LONG_URL

PHONE = {"viewport": {"width": 375, "height": 812}, "has_touch": True, "is_mobile": True}

# Moves the answer's element into a container, directly or inside a div.
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


def assert_fits(demo):
    width, shown, scale = demo.page.evaluate(WIDTHS)
    # A phone scales a page that is too wide.
    assert (width, shown, scale) == (375, 375, 1)


@pytest.mark.parametrize("depth", ["direct", "wrapped"])
@pytest.mark.parametrize("kind", ["grid", "flex", "cell"])
def test_a_long_url_does_not_widen_the_page(new_demo, new_context, user, kind, depth):
    demo = new_demo(user, new_context(**PHONE))
    demo.page.evaluate(PLACE, [kind, depth, user.message("3")])
    answer = demo.answer("3")
    answer.edit.click()
    answer.editor.fill(LONG_URL)
    assert_fits(demo)
    assert answer.editor.bounding_box()["width"] > 200
    answer.save.click()
    demo.settled()
    expect(answer.edited).to_contain_text(LONG_URL)
    assert_fits(demo)
    answer.down.click()
    answer.reason.fill(LONG_URL)
    assert_fits(demo)
    answer.send.click()
    expect(answer.reason).to_be_hidden()
    assert_fits(demo)


def test_long_reasons_and_texts_do_not_widen_the_page(new_demo, new_context, user):
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
    assert_fits(demo)
    answer.send.click()
    expect(answer.element.get_by_role("textbox")).to_have_count(0)
    assert_fits(demo)
    answer.edit.click()
    assert_fits(demo)
    answer.element.get_by_role("textbox").fill("29.")
    answer.save.click()
    assert_fits(demo)
    demo.settled()
    answer.element.evaluate("element => { element.messageId = 'unknown'; }")
    demo.page.get_by_role("button", name="Helpful", exact=True).click()
    expect(demo.page.locator("hearback-feedback").get_by_role("alert")).to_contain_text("Donau")
    demo.expect_error("404")
    assert_fits(demo)


def test_touch_targets_are_large_enough(new_demo, new_context, user):
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


def test_shortcuts_are_shown_only_where_there_is_a_keyboard(new_demo, new_context, user):
    phone, desk = new_demo(user, new_context(**PHONE)), new_demo(user, new_context())
    for demo, is_shown in ((desk, True), (phone, False)):
        answer = demo.answer("3")
        answer.edit.click()
        hint = answer.element.get_by_text("Escape cancels")
        if is_shown:
            expect(hint).to_be_visible()
        else:
            expect(hint).to_be_hidden()
        described = answer.editor.get_attribute("aria-describedby").split()
        assert ("hint" in described) is is_shown


def test_a_thumb_does_not_move_other_controls(demo):
    answer = demo.answer("2")
    controls = (answer.up, answer.down, answer.edit, answer.button("Regenerate"))
    before = [control.bounding_box() for control in controls]
    answer.down.click()
    expect(answer.details).to_be_visible()
    answer.inaccurate.click()
    demo.settled()
    assert [control.bounding_box() for control in controls] == before
