"""The console in a browser: its pages, its requests and its errors."""

import contextlib
import re
import urllib.parse

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tab import Tab

GO = "address => { history.pushState(null, '', address); dispatchEvent(new Event('popstate')); }"
INSIGHTS = re.compile(r"/v1/projects/[^/]+/insights")
REPORT = "feedback:report"
PHONE = {"width": 360, "height": 740}


class ConsolePage(Tab):
    """One tab with the console."""

    def __init__(self, context, bundle, others=()):
        """`others` are origins that the page may ask, too."""
        self.url = bundle.url
        self.origins = set()
        self._others = set(others)
        super().__init__(context)
        # Paths with queries that the server may have logged, or a proxy.
        self._addresses = []
        self.page.on("request", self._on_request)

    def _is_elsewhere(self):
        """Whether the tab shows a page of another origin, which may do what it likes."""
        return self.page.url.startswith(tuple(self._others))

    def _on_console(self, message):
        if not self._is_elsewhere():
            super()._on_console(message)

    def _on_request(self, request):
        if self._is_elsewhere():
            return
        address = urllib.parse.urlsplit(request.url)
        if address.scheme not in ("blob", "data"):
            self.origins.add(f"{address.scheme}://{address.netloc}")
            self._addresses.append(f"{address.path}?{address.query}")

    def open(self, view="", user=None, /, **settings):
        """Opens a view by its address, with the user's token as the printed link has it."""
        query = urllib.parse.urlencode(settings)
        path = f"/console/{view}" if view else "/console"
        fragment = f"#token={user.token}" if user else ""
        self.page.goto(f"{self.url}{path}{'?' if query else ''}{query}{fragment}")
        if user:
            self.settled()
        return self

    def show(self, view, **settings):
        """Goes to a view without loading the page, as the Back button does."""
        address = f"/console/{view}?{urllib.parse.urlencode(settings)}"
        self.page.evaluate(GO, address)
        self.settled()

    def sign_in(self, token):
        """Signs in with a pasted token."""
        field = self.page.get_by_label("Token", exact=True)
        assert field.get_attribute("type") == "password"
        field.fill(token)
        self.page.get_by_role("button", name="Sign in").click()

    def settled(self):
        """Waits until nothing loads."""
        expect(self.page.locator("main h1")).to_be_visible()
        expect(self.page.locator("[aria-busy]")).to_have_count(0)

    def panel(self, title):
        heading = self.page.get_by_role("heading", name=title)
        return self.page.get_by_role("region", name=title, exact=True).filter(has=heading)

    def rows(self, title):
        """The texts of a table by the first cell of each row, as a screen reader finds them without opening it."""
        rows = self.panel(title).locator("tbody tr")
        cells = rows.evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
        return {first: [plain(cell) for cell in others] for first, *others in cells}

    @property
    def settings(self):
        """The path and the query of the address."""
        address = urllib.parse.urlsplit(self.page.url)
        return address.path, dict(urllib.parse.parse_qsl(address.query))

    def widths(self):
        return self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")

    def assert_accessible(self, name, screenshots):
        # Between the schemes, only colours differ.
        for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
            self.page.emulate_media(color_scheme=scheme)
            self.page.screenshot(path=screenshots / f"console-{name}-{scheme}.png", full_page=True)
            found = Axe().run(self.page, options={"resultTypes": ["violations"]} | rules).response["violations"]
            assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == [], (name, scheme)

    def assert_clean(self):
        """Also, no other origin was asked, and no token was in an address."""
        super().assert_clean()
        assert self.origins - self._others == {self.url}
        assert [address for address in self._addresses if "token=" in address] == []


@contextlib.contextmanager
def desk_of(user, browser, bundle, view, project):
    """A tab in which the user is signed in. Tests go to a view of their own, without loading the page again."""
    context = browser.new_context(reduced_motion="reduce")
    tab = ConsolePage(context, bundle).open(view, user, project=project)
    yield tab
    tab.assert_clean()
    context.close()


def plain(text):
    return text.replace("\u202f", " ").replace("\u2212", "-")
