"""The console: signing in, the views Overview and Compare, and how they fail."""

import contextlib
import datetime
import itertools
import pathlib
import re
import uuid

import pytest
from playwright.sync_api import Error, expect

from bundle import eventually
from console_page import INSIGHTS, PHONE, REPORT, desk_of, plain

PROJECT = "console-shop"
EMPTY = "console-empty"
VIEWS = ("overview", "compare")
# Enough users of each version for a verdict, and too few of each model.
OF_A_VERSION = 24
OF_A_MODEL = 6
# A spreadsheet would execute it.
FORMULA = '=HYPERLINK("https://example.com")'

_names = itertools.count(1)


def event(user, rating, labels, at, **more):
    return {
        "feedbackId": str(uuid.uuid4()),
        "userId": user,
        "sessionId": "s",
        "artifactId": str(uuid.uuid4()),
        "feedbackChannel": "explicit",
        "feedbackType": "rating",
        "data": {"rating": rating},
        "timestamp": at.isoformat(),
        "context": {"projectId": PROJECT, "labels": labels},
    } | more


def two_days(now):
    """Users of v1 are satisfied, those of v2 are not, as one of v3; nobody can tell of the models."""
    yesterday = now - datetime.timedelta(days=1)
    for number in range(OF_A_VERSION):
        yield event(f"old-{number}", 5, {"prompt_version": "v1"}, yesterday)
        yield event(f"new-{number}", 1, {"prompt_version": "v2"}, now)
    yield event("someone", 3, {"prompt_version": FORMULA}, now)
    corrected = {"feedbackChannel": "correction", "feedbackType": "modification", "data": {}}
    correction = {"correctionType": "accuracy", "correctedValue": "Within 60 days."}
    yield event("somebody", 1, {}, now, **corrected, correctionData=correction)
    for number in range(OF_A_MODEL):
        yield event(f"large-{number}", 4, {"model": "large"}, now)
        yield event(f"small-{number}", 2 + number % 3, {"model": "small"}, now)


@pytest.fixture(scope="module")
def analyst(bundle):
    """A reader of a project with feedback of two days, and of one without any."""
    back_end = bundle.user("back-end", PROJECT, "feedback:on-behalf")
    analyst = bundle.user("analyst", f"{PROJECT},{EMPTY}", REPORT)
    events = list(two_days(datetime.datetime.now(datetime.UTC)))
    result = back_end.call("POST", "/v1/feedback/batch", {"events": events})
    assert len(result["results"]) == len(events)
    back_end.register("1", PROJECT)

    def counted():
        total = analyst.call("GET", f"/v1/projects/{PROJECT}/insights")["total"]
        return total["events"], total["turns"]["registered"]

    eventually(counted, (len(events), 1))
    return analyst


@pytest.fixture(scope="module")
def desk(browser, bundle, analyst):
    with desk_of(analyst, browser, bundle, "overview", PROJECT) as desk:
        yield desk


def test_the_console_is_small_and_loads_at_once(console):
    sizes = {}

    def received(response):
        sizes[response.url.rpartition("/")[2]] = int(response.headers["content-length"])

    console.page.on("response", received)
    console.open("overview")
    expect(console.page.get_by_role("heading", name="Hearback console")).to_be_visible()
    assert sorted(sizes) == ["console.css", "console.js", "icon.svg", "overview"]
    assert sum(sizes.values()) < 100_000


def today():
    return datetime.datetime.now(datetime.UTC).date()


def test_a_link_signs_in_and_leaves_no_token_in_the_address(console, analyst):
    console.open("", analyst)
    first = today() - datetime.timedelta(days=29)
    assert console.settings == ("/console/overview", {"project": PROJECT, "from": str(first), "to": str(today())})
    kept = "JSON.stringify([location.href, history.state, localStorage, sessionStorage, document.cookie])"
    assert analyst.token not in console.page.evaluate(kept)
    console.page.go_back()
    assert analyst.token not in console.page.url


def test_the_overview_shows_the_numbers_of_the_project(desk):
    desk.show("overview", project=PROJECT)
    users = 2 * OF_A_VERSION + 1 + 2 * OF_A_MODEL
    cards = plain(desk.page.locator(".cards").inner_text())
    assert f"{users} users with a verdict" in cards
    assert "0 of 1 answer" in cards
    assert "95 % interval" in cards
    trend = desk.rows("Satisfaction over time")
    assert len(trend) == 30
    yesterday = list(trend)[-2]
    assert trend[yesterday] == ["100 %86 to 100 %", str(OF_A_VERSION)]
    assert desk.rows("Explicit and inferred")["Explicit"][0] == str(users)
    assert desk.rows("Types of feedback")["rating"][1:] == [str(users), "98 %"]
    image = desk.panel("Satisfaction over time").get_by_role("img")
    expect(image).to_have_attribute("aria-label", re.compile(r"Lowest .* highest 100"))


def test_a_chart_is_read_by_keyboard_and_as_a_table(desk):
    desk.show("overview", project=PROJECT)
    panel = desk.panel("Satisfaction over time")
    slider = panel.get_by_role("slider")
    slider.focus()
    slider.press("ArrowLeft")
    value = plain(slider.get_attribute("aria-valuetext"))
    assert f"100 % (86 to 100 %), {OF_A_VERSION} users" in value
    expect(panel.locator(".readout")).to_contain_text(f"{OF_A_VERSION} users")
    toggle = panel.get_by_role("button", name="Table")
    table = panel.get_by_role("region", name="Table: Satisfaction over time")
    assert table.bounding_box()["height"] <= 1
    toggle.press("Enter")
    assert table.bounding_box()["height"] > 300


def test_what_changed_is_compared_with_the_period_before(desk):
    desk.show("overview", project=PROJECT, **{"from": today(), "to": today(), "by": "label.prompt_version"})
    expect(desk.page.locator(".card").first).to_contain_text("Lower")
    expect(desk.page.locator(".card").first).to_contain_text("against the day before")
    changes = desk.rows("What changed")
    assert changes["v2"][0] == "0 %0 to 14 %"
    assert changes["v2"][-1] == "–"


def test_a_comparison_says_that_a_value_is_worse(desk):
    desk.show("compare", project=PROJECT, by="label.prompt_version", a="v1", b="v2")
    expect(desk.page.locator(".verdict")).to_have_text("▼ v2 is worse than v1")
    expect(desk.page.locator(".explained")).to_contain_text("−100 points")
    values = desk.rows("All values")
    assert values["v1"][2] == "100 %86 to 100 %"
    assert values["v2"][4] == str(OF_A_VERSION)
    # v1 was first, so they are compared from the day of v2.
    desk.page.get_by_role("button", name="Compare from").click()
    expect(desk.page.locator(".verdict")).to_have_text("? Cannot tell yet whether v2 is better than v1")
    assert desk.settings[1]["from"] == str(today())


def test_a_comparison_that_cannot_tell_says_how_many_users_are_missing(desk):
    desk.show("compare", project=PROJECT, by="label.model")
    expect(desk.page.locator(".verdict")).to_contain_text("Cannot tell yet")
    expect(desk.page.locator(".explained")).to_contain_text("Fewer than 20 users")
    expect(desk.page.locator(".explained")).to_contain_text(re.compile(r"About [\d,]+ more users of each are needed"))
    _, settings = desk.settings
    assert {settings["a"], settings["b"]} == {"large", "small"}
    expect(desk.page.get_by_role("radio", name=f"B: {settings['a']}")).to_be_disabled()


def test_an_incomplete_comparison_says_so(desk):
    def answer(route):
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"incomplete": True, "verdict": "no_difference_found"})

    desk.page.route("**/insights/compare?**", answer)
    desk.show("compare", project=PROJECT, by="label.prompt_version", a="v2", b="v1")
    desk.page.unroute("**/insights/compare?**")
    expect(desk.page.locator(".verdict")).to_have_text("= No difference found between v1 and v2")
    expect(desk.page.locator(".notice")).to_contain_text("Feedback may be missing")


def test_the_overview_says_why_answers_were_corrected(desk):
    desk.show("overview", project=PROJECT)
    assert desk.rows("Reasons") == {"Accuracy corrected": ["", "1", "100 %"]}


def test_what_answers_have_values_of_can_be_chosen(desk):
    # A project without task types.
    desk.show("overview", project=PROJECT)
    assert desk.rows("What changed").keys() >= {"large", "small"}
    desk.show("compare", project=PROJECT)
    picker = desk.page.get_by_label("By", exact=True)
    assert picker.locator("option").all_inner_texts() == ["Model", "Prompt version"]
    picker.select_option("Model")
    expect(desk.page.get_by_role("radio", name="A: large").or_(desk.page.get_by_role("radio", name="A: small"))).to_have_count(2)
    assert desk.settings[1]["by"] == "label.model"


def test_a_label_without_values_says_where_they_come_from(desk):
    desk.show("compare", project=PROJECT, by="label.region")
    expect(desk.page.get_by_role("heading", name="Nothing to compare by label region")).to_be_visible()
    assert desk.page.get_by_label("By", exact=True).input_value() == "label.region"


def test_a_view_is_the_same_after_a_reload_and_another_sign_in(console, analyst):
    console.open("compare", analyst, project=PROJECT, by="label.prompt_version", a="v2", b="v1", points=10)
    verdict = "▲ v1 is better than v2"
    expect(console.page.locator(".verdict")).to_have_text(verdict)
    before = console.settings
    console.page.reload()
    expect(console.page.locator(".command code")).to_have_text(
        f"hearback token --sub analyst --tenant acme --projects {PROJECT} --scope {REPORT}"
    )
    console.sign_in(analyst.token)
    expect(console.page.locator(".verdict")).to_have_text(verdict)
    expect(console.page.get_by_label("Difference that matters")).to_have_value("10")
    assert console.settings == before


def test_back_leads_to_the_view_before(console, analyst):
    console.open("overview", analyst, project=PROJECT)
    console.page.get_by_role("link", name="Compare").click()
    expect(console.page.locator(".verdict")).to_be_visible()
    console.page.get_by_role("button", name="7 days").click()
    console.settled()
    # The focus stays on the control.
    expect(console.page.get_by_role("button", name="7 days")).to_be_focused()
    console.page.go_back()
    expect(console.page.get_by_role("button", name="30 days")).to_have_attribute("aria-pressed", "true")
    console.page.go_back()
    expect(console.page.get_by_role("heading", name="Overview")).to_be_visible()


def test_a_token_that_the_server_rejects_leads_to_the_sign_in_page(console, analyst):
    console.open("overview", project=PROJECT)
    console.sign_in("not a token")
    expect(console.page.get_by_role("alert")).to_contain_text("This is not a token")
    header, payload, _ = analyst.token.split(".")
    console.sign_in(f"{header}.{payload}.forged")
    expect(console.page.get_by_role("alert")).to_contain_text("The server did not accept the token")
    console.expect_error("401")
    console.sign_in(analyst.token)
    console.settled()
    expect(console.page.locator(".cards")).to_be_visible()


@pytest.mark.parametrize(
    ("scope", "project", "lacks"),
    [("", PROJECT, f"the scope {REPORT}"), (REPORT, "another", "the project another")],
)
def test_a_rejection_names_what_the_token_lacks(console, bundle, scope, project, lacks):
    reader = bundle.user(f"console-{next(_names)}", PROJECT, scope)
    console.open("overview", reader, project=project)
    console.expect_error("403")
    alert = console.page.get_by_role("alert").filter(has_text="The token lacks")
    expect(alert).to_contain_text(lacks)
    expect(alert.locator("code")).to_contain_text(f"--projects {project} --scope {REPORT}")


def test_a_server_that_cannot_be_reached_can_be_asked_again(console, analyst):
    console.page.route(INSIGHTS, lambda route: route.abort())
    console.open("overview", analyst, project=PROJECT)
    expect(console.page.get_by_role("alert")).to_contain_text("The server cannot be reached")
    console.expect_error("ERR_FAILED")
    console.page.unroute(INSIGHTS)
    console.page.get_by_role("button", name="Try again").click()
    expect(console.page.locator(".cards")).to_be_visible()


def test_a_project_without_feedback_says_what_to_do_next(console, analyst):
    console.open("overview", analyst, project=EMPTY)
    for view in ("Overview", "Compare"):
        console.page.get_by_role("link", name=view).click()
        expect(console.page.get_by_role("heading", name=view)).to_be_visible()
        expect(console.page.get_by_role("heading", name="No feedback yet")).to_be_visible()
        expect(console.page.locator(".command code")).to_have_text(f"hearback demo --tenant acme --project {EMPTY}")
    console.page.get_by_label("Project").select_option(PROJECT)
    expect(console.page.get_by_role("heading", name="No feedback yet")).to_have_count(0)


def test_a_superseded_request_is_aborted(console, analyst):
    console.open("overview", analyst, project=PROJECT)
    aborted = []
    console.page.on("requestfailed", lambda request: aborted.append(request.url))
    long = f"from={today() - datetime.timedelta(days=89)}"
    held = []
    console.page.route(lambda url: INSIGHTS.search(url) and long in url, lambda route: held.append(route))
    console.page.get_by_role("button", name="90 days").click()
    expect(console.page.locator("[aria-busy]")).to_have_count(1)
    console.page.get_by_role("button", name="7 days").click()
    console.settled()
    assert len(console.rows("Satisfaction over time")) == 7
    eventually(lambda: any(long in url for url in aborted), True)
    for route in held:
        # The page has aborted it, but Playwright waits for its end.
        with contextlib.suppress(Error):
            route.abort()


def test_a_file_contains_no_formula(desk):
    desk.show("compare", project=PROJECT, by="label.prompt_version")
    with desk.page.expect_download() as download:
        desk.panel("All values").get_by_role("button", name="CSV").click()
    text = pathlib.Path(download.value.path()).read_text()
    lines = text.splitlines()
    assert lines[0].startswith("Prompt version,Satisfaction,Low,High,Users")
    assert any(line.startswith("v1,1,0.86") for line in lines)
    assert any(line.startswith("\"'=HYPERLINK(") for line in lines)


def test_times_are_in_the_readers_zone_with_utc_beside_them(new_console, analyst):
    console = new_console(timezone_id="Asia/Kathmandu")
    console.open("overview", analyst, project=PROJECT)
    time = console.page.locator(".about time")
    utc = datetime.datetime.fromisoformat(time.get_attribute("datetime")[:19])
    assert time.get_attribute("title") == f"{utc} UTC"
    local = utc + datetime.timedelta(hours=5, minutes=45)
    assert time.inner_text().endswith(f"{local:%H:%M}")


def test_the_views_fit_a_narrow_screen(new_console, analyst):
    console = new_console(viewport=PHONE)
    console.open("overview", analyst, project=PROJECT, by="label.prompt_version")
    for view in ("Overview", "Compare"):
        console.page.get_by_role("link", name=view).click()
        expect(console.page.get_by_role("heading", name=view)).to_be_visible()
        console.settled()
        for toggle in console.page.get_by_role("button", name=re.compile("^Table")).all():
            toggle.click()
        assert console.widths() == [PHONE["width"]] * 2
        console.page.locator("#period").click()
        assert console.widths() == [PHONE["width"]] * 2


def test_every_page_is_accessible_in_light_and_dark(console, desk, screenshots):
    console.open("overview")
    expect(console.page.get_by_role("heading", name="Hearback console")).to_be_visible()
    console.assert_accessible("sign-in", screenshots)
    week = today() - datetime.timedelta(days=6)
    for view in VIEWS:
        desk.show(view, project=PROJECT, by="label.prompt_version", **{"from": week})
        desk.page.get_by_role("button", name=re.compile("^Table")).first.click()
        desk.assert_accessible(view, screenshots)
    desk.show("overview", project=EMPTY)
    desk.assert_accessible("empty", screenshots)
