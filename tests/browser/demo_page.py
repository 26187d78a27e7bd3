"""The demo in a browser: its answers and its calls."""

import re
import urllib.parse

from playwright.sync_api import expect

from bundle import eventually
from tab import Tab

FEEDBACK = re.compile(r"/api/v1/feedback(\?|$)")
SENT = "Thank you. Your feedback was sent."
SIGNALS = re.compile(r"POST|DELETE")

# A long text that must not widen a page.
LONG_URL = "https://example.com/" + "a-path-that-is-much-too-long-to-type/" * 12 + "?token=" + "0123456789abcdef" * 12


class DemoPage(Tab):
    """One tab with the demo."""

    def __init__(self, context, user):
        super().__init__(context)
        self.user = user
        # Calls that change something, as "POST helpful".
        self.calls = []
        self.page.on("request", self._on_request)

    def _on_request(self, request):
        if FEEDBACK.search(request.url) and SIGNALS.match(request.method):
            self.calls.append(f"{request.method} {signal_of(request)}")

    def open(self):
        self.page.goto(self.user.demo)
        self.settled()
        return self

    def reload(self):
        self.page.reload()
        self.settled()

    def answer(self, turn):
        return Answer(self, turn)

    def settled(self):
        """Waits until all feedback is read and no call is in progress."""
        expect(self.page.get_by_role("heading", name="What the server has")).to_be_visible()
        eventually(self._pending, 0)

    def _pending(self):
        count = "all => all.filter(each => each.matches(':state(pending)')).length"
        return self.page.locator("hearback-feedback").evaluate_all(count)

    def intercept(self, method, signal=None):
        """Holds calls until the test continues them."""
        return Interception(self.page, method, signal)


class Answer:
    """One answer with its feedback."""

    def __init__(self, demo, turn):
        self.demo = demo
        message = demo.user.message(turn)
        self.element = demo.page.locator(f'hearback-feedback[message-id="{message}"]')
        self.up = self.button("Helpful")
        self.down = self.button("Not helpful")
        self.inaccurate = self.button("Inaccurate")
        self.unsafe = self.button("Unsafe")
        self.edit = self.button("Edit")
        self.save = self.button("Save")
        self.retry = self.button("Try again")
        self.dismiss = self.button("Dismiss")
        self.undo = self.button("Undo")
        self.details = self.button("Details")
        self.send = self.button("Send")
        self.reason = self.element.get_by_role("textbox", name=re.compile("^Tell us more"))
        self.editor = self.element.get_by_role("textbox", name="Your version of this answer")
        self.edited = self.element.get_by_role("region", name="Your version")
        self.error = self.element.get_by_role("alert")
        self.status = self.element.get_by_role("status")

    def button(self, name):
        # Hidden buttons, too: they must not be pressed either.
        return self.element.get_by_role("button", name=name, exact=True, include_hidden=True)

    def give_reason(self, text):
        """Sends a text with the chosen reason, and waits for the confirmation."""
        self.reason.fill(text)
        self.reason.press("Enter")
        expect(self.status).to_have_text(SENT)

    def shows(self, *pressed):
        """Waits until exactly these toggles are pressed."""
        for toggle in (self.up, self.down, self.inaccurate, self.unsafe):
            if toggle in pressed:
                expect(toggle).to_have_attribute("aria-pressed", "true")
            else:
                expect(toggle).not_to_have_attribute("aria-pressed", "true")


class Interception:
    """Calls that are held."""

    def __init__(self, page, method, signal):
        self._page = page
        self._method = method
        self._signal = signal
        self._held = []
        self._ended = False
        page.route(FEEDBACK, self._take)

    def _take(self, route):
        request = route.request
        is_held = request.method == self._method and not self._ended
        if is_held and (self._signal is None or self._signal == signal_of(request)):
            self._held.append(route)
        else:
            route.continue_()

    def one(self):
        """Waits for a held call, and returns it."""
        eventually(self._has_call, True)
        return self._held.pop(0)

    def end(self):
        """Lets later calls pass."""
        self._ended = True

    def _has_call(self):
        # Playwright calls the handler only during a call.
        self._page.evaluate("0")
        return len(self._held) > 0


def signal_of(request):
    if request.method == "POST":
        return request.post_data_json["signal"]
    query = urllib.parse.urlsplit(request.url).query
    return dict(urllib.parse.parse_qsl(query)).get("signal")
