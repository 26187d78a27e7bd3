"""The element in a page: keyboard, names and roles, attributes, events, texts, appearance."""

import base64
import json
import re
import urllib.request

import pytest
from playwright.sync_api import expect

from bundle import eventually
from demo_page import LONG_URL, SENT

SNAPSHOT = """
- paragraph: /February 2028 has 28 days/
- group "Feedback on this answer":
  - button "Helpful"
  - button "Not helpful" [pressed]
  - button "Edit"
  - button "Details" [expanded]
- group "What was wrong?":
  - button "Inaccurate" [pressed]
  - button "Unsafe"
  - text: Tell us more about “Inaccurate” (optional)
  - textbox "Tell us more about “Inaccurate” (optional)"
  - button "Send"
- status: Feedback saved
- alert
"""

EDITOR_SNAPSHOT = """
- text: Your version of this answer
- textbox "Your version of this answer"
- text: /saves, Escape cancels/
- button "Cancel"
- button "Save"
- group "Feedback on this answer":
  - button "Helpful"
  - button "Not helpful"
- status
- alert
"""


def test_names_and_roles(demo):
    answer = demo.answer("3")
    answer.down.click()
    answer.inaccurate.click()
    demo.settled()
    expect(answer.element).to_match_aria_snapshot(SNAPSHOT)
    demo.answer("1").edit.click()
    expect(demo.answer("1").element).to_match_aria_snapshot(EDITOR_SNAPSHOT)


def test_everything_can_be_done_with_the_keyboard(demo, user):
    keys = demo.page.keyboard
    answer = demo.answer("3")
    answer.up.focus()
    keys.press("Tab")
    expect(answer.down).to_be_focused()
    keys.press("Space")
    answer.shows(answer.down)
    keys.press("Tab")
    expect(answer.edit).to_be_focused()
    keys.press("Tab")
    expect(answer.details).to_be_focused()
    keys.press("Tab")
    expect(answer.inaccurate).to_be_focused()
    keys.press("Enter")
    keys.press("Tab")
    keys.press("Tab")
    expect(answer.reason).to_be_focused()
    keys.type("a leap year")
    keys.press("Enter")
    # The row closes, and the button that opens it again has the focus.
    expect(answer.details).to_be_focused()
    demo.settled()
    assert user.feedback("3") == {"not_helpful": None, "inaccurate": "a leap year"}

    answer.edit.focus()
    keys.press("Enter")
    expect(answer.editor).to_be_focused()
    keys.press("Control+A")
    keys.type("29 days.")
    keys.press("Control+Enter")
    expect(answer.edit).to_be_focused()
    keys.press("Space")
    keys.type("discarded")
    keys.press("Escape")
    expect(answer.edit).to_be_focused()
    keys.press("Shift+Tab")
    keys.press("Space")
    demo.settled()
    assert user.feedback("3") == {"edit": "29 days."}
    answer.undo.focus()
    keys.press("Enter")
    demo.settled()
    assert user.feedback("3") == {"edit": "29 days.", "not_helpful": None, "inaccurate": "a leap year"}
    expect(answer.down).to_be_focused()
    keys.press("Space")
    demo.settled()

    remove = answer.edited.get_by_role("button")
    remove.focus()
    keys.press("Enter")
    expect(answer.edit).to_be_focused()
    demo.settled()
    assert user.feedback("3") == {}


def test_the_focus_moves_when_the_focused_control_disappears(new_demo, new_context, user):
    context = new_context()
    here, there = new_demo(user, context), new_demo(user, context)
    answer = here.answer("3")
    answer.down.click()
    here.settled()
    answer.reason.focus()
    elsewhere = there.answer("3")
    elsewhere.shows(elsewhere.down)
    elsewhere.down.click()
    answer.shows()
    expect(answer.down).to_be_focused()


def test_the_focus_is_visible(demo):
    answer = demo.answer("1")
    answer.up.focus()
    demo.page.keyboard.press("Tab")
    outline = answer.down.evaluate("node => getComputedStyle(node).outlineStyle")
    assert outline == "solid"


def test_another_element_may_contain_the_answer(demo, user):
    demo.page.evaluate("""id => {
        const answer = document.createElement('p');
        answer.id = 'held';
        answer.textContent = 'Held elsewhere.';
        const element = document.createElement('hearback-feedback');
        element.setAttribute('for', 'held');
        element.setAttribute('message-id', id);
        document.body.append(answer, element);
    }""", user.message("1"))
    element = demo.page.locator("hearback-feedback[for]")
    element.get_by_role("button", name="Edit").click()
    expect(element.get_by_role("textbox")).to_have_value("Held elsewhere.")
    element.get_by_role("button", name="Cancel").click()
    element.evaluate("element => { element.answerText = '*Held* elsewhere.'; }")
    element.get_by_role("button", name="Edit").click()
    expect(element.get_by_role("textbox")).to_have_value("*Held* elsewhere.")


def test_the_page_receives_events_of_changes_and_errors(demo, user):
    demo.page.evaluate("""() => {
        window.events = [];
        for (const type of ['hearback-change', 'hearback-error']) {
            document.addEventListener(type, ({ detail }) => {
                const { error, ...rest } = detail;
                events.push([type, rest, error?.name, error?.status, error?.problem?.error]);
            });
        }
    }""")
    answer = demo.answer("1")
    answer.up.click()
    demo.settled()
    answer.up.click()
    demo.settled()
    rejected = demo.answer("unregistered")
    rejected.up.click()
    expect(rejected.error).not_to_be_empty()
    demo.expect_error("404")

    def change(active):
        return {
            "messageId": user.message("1"),
            "signal": "helpful",
            "active": active,
            "reason": None,
            "source": "user",
        }

    failed = {"messageId": user.message("unregistered"), "signal": "helpful"}
    assert demo.page.evaluate("events") == [
        ["hearback-change", change(True), None, None, None],
        ["hearback-change", change(False), None, None, None],
        ["hearback-error", failed, "HearbackError", 404, "not_found"],
    ]


def test_texts_can_be_in_another_language(demo):
    demo.page.evaluate("""async () => {
        const { configure } = await import('/demo/hearback-feedback.js');
        const token = new URLSearchParams(location.hash.slice(1)).get('token');
        configure({ token, labels: { helpful: 'Hilfreich', edit: 'Bearbeiten' } });
        document.querySelector('hearback-feedback').labels = { edit: 'Ändern' };
    }""")
    first = demo.answer("1")
    expect(first.button("Hilfreich")).to_be_visible()
    expect(first.button("Ändern")).to_be_visible()
    expect(first.down).to_be_visible()
    expect(demo.answer("2").button("Bearbeiten")).to_be_visible()
    demo.settled()


def test_an_element_is_disabled_until_it_is_configured(new_context, bundle):
    page = new_context().new_page()
    page.goto(f"{bundle.url}/demo")
    page.evaluate("""async () => {
        const element = document.createElement('hearback-feedback');
        element.messageId = 'message';
        document.body.append(element);
        await customElements.whenDefined('hearback-feedback');
    }""")
    expect(page.get_by_role("button", name="Helpful", exact=True)).to_be_disabled()


def test_a_token_can_be_pasted(new_context, user):
    page = new_context().new_page()
    page.goto(f"{user.url}/demo")
    page.get_by_label("Token").fill(user.token)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text(f"You are {user.name} of acme. This page writes")).to_be_visible()


def signed(**claims):
    """A token with an invalid signature."""
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJIUzI1NiJ9.{payload}.c2lnbmVk"


BAD_TOKENS = {
    "nonsense": ("nonsense", "it is not a token of Hearback, or only a part of one. Copy the whole link."),
    "cut": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi", "it is not a token of Hearback"),
    "no-claims": ("a.bm90aGluZw.b", "it is not a token of Hearback"),
    "nobody": (signed(tenant="acme", projects=["hearback-demo"]), "it names no user or no tenant."),
    "no-projects": (signed(sub="ada", tenant="acme"), "it is not for the project hearback-demo"),
    "forged": (signed(sub="ada", tenant="acme", projects=["hearback-demo"]), "the server did not accept it."),
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_the_demo_explains_why_a_token_is_rejected(new_context, bundle, name):
    token, reason = BAD_TOKENS[name]
    page = new_context().new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{bundle.url}/demo#token={token}")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(f"This token does not open the demo: {reason}")
    expect(alert).not_to_contain_text(re.compile("undefined|null|JSON|Cannot read"))
    expect(page.get_by_label("Token")).to_be_focused()
    assert errors == []


def test_a_token_for_other_projects_is_rejected_with_the_command_for_a_valid_one(new_context, new_user):
    user = new_user("order-service")
    page = new_context().new_page()
    page.goto(user.demo)
    expect(page.get_by_role("alert")).to_contain_text(
        f"hearback token --sub {user.name} --tenant acme --projects hearback-demo"
    )


def test_the_token_function_is_called_before_each_call(demo, user):
    demo.page.evaluate("""async () => {
        const { configure } = await import('/demo/hearback-feedback.js');
        const token = new URLSearchParams(location.hash.slice(1)).get('token');
        window.tokenCalls = 0;
        configure({ token: async () => { tokenCalls += 1; return token; } });
    }""")
    demo.settled()
    before = demo.page.evaluate("tokenCalls")
    demo.answer("1").up.click()
    eventually(lambda: user.feedback("1"), {"helpful": None})
    demo.settled()
    assert demo.page.evaluate("tokenCalls") == before + 1


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/demo", "text/html; charset=utf-8"),
        ("/demo/", "text/html; charset=utf-8"),
        ("/demo/demo.js", "text/javascript; charset=utf-8"),
        ("/demo/demo.css", "text/css; charset=utf-8"),
        ("/demo/icon.svg", "image/svg+xml"),
        ("/demo/hearback-feedback.js", "text/javascript; charset=utf-8"),
    ],
)
def test_the_files_are_served_without_a_token_under_a_strict_policy(bundle, path, media_type):
    with urllib.request.urlopen(bundle.url + path) as response:
        assert response.headers["Content-Type"] == media_type
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-cache"
        policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy


SIZES = {"desktop": (1280, 900), "narrow": (360, 780)}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "appearance",
    [
        {"color_scheme": "light"},
        {"color_scheme": "dark"},
        {"forced_colors": "active", "reduced_motion": "reduce"},
    ],
    ids=["light", "dark", "forced"],
)
def test_it_is_readable_in_every_color_scheme_and_size(
    request, new_demo, new_context, user, screenshots, size, appearance
):
    width, height = SIZES[size]
    context = new_context(viewport={"width": width, "height": height}, **appearance)
    demo = new_demo(user, context)
    demo.answer("1").up.click()
    wrong = demo.answer("3")
    wrong.down.click()
    wrong.inaccurate.click()
    edit = demo.answer("2")
    edit.edit.click()
    edit.editor.fill("Charge a card once\n\nThe idempotency key now comes from the order.")
    edit.save.click()
    demo.answer("unregistered").up.click()
    demo.expect_error("404")
    demo.settled()
    demo.answer("1").edit.click()
    demo.answer("1").editor.fill(f"Measure first: {LONG_URL}")
    name = request.node.callspec.id
    demo.page.screenshot(path=screenshots / f"{name}.png", full_page=True)
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert demo.page.evaluate(overflow) <= 0
    for toggle in (wrong.down, wrong.inaccurate, demo.answer("1").save, demo.answer("unregistered").error):
        assert contrast(toggle) >= 4.5
    for toggle in (wrong.up, wrong.unsafe, wrong.edit, wrong.details, wrong.reason):
        assert contrast(toggle) >= 4.5
    for text in ("saves, Escape cancels", "Tell us more about"):
        assert contrast(demo.page.get_by_text(text).locator("visible=true")) >= 4.5
    wrong.send.click()
    expect(wrong.status).to_have_text(SENT)
    assert contrast(wrong.status) >= 4.5


def contrast(locator):
    """The contrast (WCAG 2) of an element's text to its background."""
    return locator.evaluate("""node => {
        const context = new OffscreenCanvas(1, 1)
            .getContext('2d', { willReadFrequently: true });
        const layers = [];
        for (let at = node; at; at = at.assignedSlot ?? at.parentNode ?? at.host) {
            if (at instanceof Element) layers.unshift(getComputedStyle(at).backgroundColor);
        }
        const paint = colours => {
            for (const colour of colours) {
                context.fillStyle = colour;
                context.fillRect(0, 0, 1, 1);
            }
            const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map(value => {
                const part = value / 255;
                return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const back = paint(['white', ...layers]);
        const front = paint([getComputedStyle(node).color]);
        return (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
    }""")
