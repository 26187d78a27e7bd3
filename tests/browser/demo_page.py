"""The demo in a browser: its answers, and what went over the wire."""

import re
import urllib.parse

from playwright.sync_api import expect

from bundle import eventually

FEEDBACK = re.compile(r"/api/v1/feedback(\?|$)")
SENT = "Thank you. Your feedback was sent."
SIGNALS = re.compile(r"POST|DELETE")

# What people paste, and no page may get wider for.
LONG_URL = "https://example.com/" + "a-path-that-nobody-would-ever-type/" * 12 + "?token=" + "0123456789abcdef" * 12


class DemoPage:
    """One tab with the demo."""

    def __init__(self, context, user):
        self.user = user
        self.page = context.new_page()
        # What the page said of itself, and what the browser said of it.
        self._errors = []
        self._expected = []
        # Calls that change something, as "POST helpful".
        self.calls = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self._errors.append(str(error)))
        self.page.on("request", self._sent)

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self._errors.append(message.text)

    def _sent(self, request):
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
        """Waits until every answer is read and nothing is under way."""
        expect(self.page.get_by_role("heading", name="What the server has")).to_be_visible()
        eventually(self._pending, 0)

    def _pending(self):
        count = "all => all.filter(each => each.matches(':state(pending)')).length"
        return self.page.locator("hearback-feedback").evaluate_all(count)

    def expect_error(self, text):
        """Waits for an error that the browser is to report; it may do so more than once."""
        eventually(lambda: any(text in error for error in self.heard()), True)
        self._expected.append(text)

    def unexpected_errors(self):
        def unexpected(error):
            return not any(text in error for text in self._expected)

        return list(filter(unexpected, self.heard()))

    def heard(self):
        """What the page and the browser reported so far."""
        # Playwright hands events over only while it is asked something.
        self.page.evaluate("0")
        return self._errors

    def intercept(self, method, signal=None):
        """Stops calls on their way; the test lets them go on to the server."""
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
        # Hidden ones too: a chip that nobody sees is not pressed either.
        return self.element.get_by_role("button", name=name, exact=True, include_hidden=True)

    def give_reason(self, text):
        """Sends a text with what is chosen, and waits until it has arrived."""
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
    """Calls that wait on their way."""

    def __init__(self, page, method, signal):
        self._page = page
        self._method = method
        self._signal = signal
        self._held = []
        self._ended = False
        page.route(FEEDBACK, self._take)

    def _take(self, route):
        request = route.request
        mine = request.method == self._method and not self._ended
        if mine and (self._signal is None or self._signal == signal_of(request)):
            self._held.append(route)
        else:
            route.continue_()

    def one(self):
        """The call that waits, once it does."""
        eventually(self._waits, True)
        return self._held.pop(0)

    def end(self):
        """Lets what comes from now on pass."""
        self._ended = True

    def _waits(self):
        # Playwright calls the handler only while it is asked something.
        self._page.evaluate("0")
        return len(self._held) > 0


def signal_of(request):
    if request.method == "POST":
        return request.post_data_json["signal"]
    query = urllib.parse.urlsplit(request.url).query
    return dict(urllib.parse.parse_qsl(query)).get("signal")
