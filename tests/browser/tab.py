"""One tab of the browser, with the errors that its page, its scripts and the browser report."""

from bundle import eventually


class Tab:
    def __init__(self, context):
        self.page = context.new_page()
        self._errors = []
        self._expected = []
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self._errors.append(str(error)))

    def _on_console(self, message):
        if message.type in ("error", "warning"):
            self._errors.append(message.text)

    def expect_error(self, text):
        """Waits for an expected error of the browser, which may report it more than once."""
        eventually(lambda: any(text in error for error in self.errors()), True)
        self._expected.append(text)

    def errors(self):
        """The errors and warnings so far."""
        # Playwright delivers events only during a call.
        self.page.evaluate("0")
        return self._errors

    def assert_clean(self):
        """No script failed, and the content security policy stopped nothing, unless the test expects it."""
        unexpected = [error for error in self.errors() if not any(text in error for text in self._expected)]
        assert unexpected == [], unexpected
