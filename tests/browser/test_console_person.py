"""The console's view Person: preferences with their sources, the way back to a version, and erasing a user."""

import uuid

import pytest
from playwright.sync_api import expect

from bundle import eventually
from console_page import PHONE, REPORT, desk_of

PROJECT = "console-people"
ON_BEHALF = f"{REPORT} feedback:on-behalf"


@pytest.fixture(scope="module")
def support(bundle):
    return bundle.user("person-support", PROJECT, ON_BEHALF)


@pytest.fixture(scope="module")
def desk(browser, bundle, support):
    with desk_of(support, browser, bundle, "person", PROJECT) as desk:
        yield desk


@pytest.fixture
def person(support):
    """A user who changed the level of detail twice, and whose rating of a checklist taught its average."""
    name = f"person-{uuid.uuid4().hex[:8]}"
    path = f"/v1/preferences/{name}"
    for version, level in enumerate(("overview", "deep-dive")):
        support.call("PUT", path, {"preferenceVersion": version, "globalPreferences": {"detailLevel": level}})
    event = {"feedbackId": str(uuid.uuid4()), "userId": name, "sessionId": "s", "context": {"artifactType": "checklist"}}
    rated = {"feedbackChannel": "explicit", "feedbackType": "rating", "data": {"rating": 4}}
    support.call("POST", "/v1/feedback/submit", event | rated)
    eventually(lambda: support.call("GET", path)["preferenceVersion"], 3)
    return name


def values(tab):
    return tab.rows("Preferences")


def versions(tab):
    return [text.split(" · ")[0] for text in tab.page.locator(".versions > li").all_inner_texts()]


def test_each_value_says_where_it_came_from(desk, person):
    desk.show("person", project=PROJECT, user=person)
    assert values(desk) == {
        "Communication style": ["Everywhere", "technical", "default"],
        "Detail level": ["Everywhere", "deep-dive", "set by the user"],
        "Learning mode": ["Everywhere", "on", "default"],
        "Average rating": ["checklist", "4", "learned"],
        "Sample count": ["checklist", "1", "learned"],
    }


def test_the_history_says_what_each_version_changed(desk, person):
    desk.show("person", project=PROJECT, user=person)
    assert versions(desk) == ["Version 3", "Version 2", "Version 1"]
    items = desk.page.locator(".versions > li")
    expect(items.nth(0)).to_contain_text("Learned from feedback")
    expect(items.nth(0)).to_contain_text("Average rating (checklist): not set → 4")
    expect(items.nth(1)).to_contain_text("Detail level (Everywhere): overview → deep-dive")


def test_an_earlier_version_can_be_restored(desk, person, support):
    desk.show("person", project=PROJECT, user=person)
    desk.page.get_by_role("button", name="Go back to version 1").click()
    expect(desk.page.get_by_text("Version 4 has what was set in version 1.")).to_be_visible()
    desk.settled()
    assert versions(desk)[0] == "Version 4"
    assert values(desk)["Detail level"] == ["Everywhere", "overview", "set by the user"]
    # What was learned stays.
    assert support.call("GET", f"/v1/preferences/{person}")["artifactPreferences"]["checklist"]["averageRating"] == 4


def test_a_change_in_between_is_not_overwritten(desk, person, support):
    desk.show("person", project=PROJECT, user=person)
    body = {"preferenceVersion": 3, "globalPreferences": {"communicationStyle": "casual"}}
    support.call("PUT", f"/v1/preferences/{person}", body)
    desk.page.get_by_role("button", name="Go back to version 1").click()
    desk.expect_error("409")
    expect(desk.page.get_by_role("alert")).to_be_visible()
    desk.page.get_by_role("button", name="Try again").click()
    expect(desk.page.get_by_text("Version 4 applies.")).to_be_visible()
    assert values(desk)["Communication style"][1] == "casual"
    assert values(desk)["Detail level"][1] == "deep-dive"


def test_a_user_without_preferences_has_the_defaults(desk):
    desk.show("person", project=PROJECT)
    desk.page.get_by_label("User").fill("person-unknown")
    desk.page.get_by_role("button", name="Open").click()
    expect(desk.page.get_by_role("heading", name="Only defaults")).to_be_visible()
    desk.expect_error("404")
    assert desk.settings[1]["user"] == "person-unknown"


def test_a_token_without_the_scope_is_told_which_it_lacks(console, bundle, person):
    console.open("person", bundle.user("person-analyst", PROJECT, REPORT), project=PROJECT, user=person)
    alert = console.page.get_by_role("alert")
    expect(alert).to_contain_text("The token lacks the scope feedback:on-behalf.")
    expect(alert).to_contain_text("--scope 'feedback:report feedback:on-behalf'")
    console.expect_error("403")


def test_erasing_a_person_needs_the_administrators_scope(desk, person):
    desk.show("person", project=PROJECT, user=person)
    erase = desk.panel("Erase")
    expect(erase).to_contain_text("feedback:admin")
    expect(erase.get_by_role("button", name="Erase")).to_have_count(0)


def test_a_person_is_erased_after_a_confirmation(console, bundle, person, support):
    console.open("person", bundle.user("person-admin", PROJECT, f"{ON_BEHALF} feedback:admin"), project=PROJECT, user=person)
    console.expect_error("404")
    start = console.page.get_by_role("button", name="Erase this person…")
    start.click()
    dialog = console.page.get_by_role("dialog", name=f"Erase {person}?")
    confirm = dialog.get_by_role("button", name="Erase", exact=True)
    expect(confirm).to_be_disabled()
    dialog.get_by_label("Type the user’s id to confirm").fill(person[:-1])
    expect(confirm).to_be_disabled()
    dialog.get_by_role("button", name="Cancel").click()
    assert support.call("GET", f"/v1/preferences/{person}")["preferenceVersion"] == 3
    start.click()
    dialog.get_by_label("Type the user’s id to confirm").fill(person)
    confirm.click()
    panel = console.panel("Erase")
    expect(panel).to_contain_text("Being erased.")
    expect(panel).to_contain_text("Erased.", timeout=60_000)
    expect(panel).to_contain_text("Removed: 1 event, 3 versions of preferences.")


def test_the_view_fits_a_narrow_screen_and_is_accessible(console, bundle, person, screenshots):
    admin = bundle.user("person-admin", PROJECT, f"{ON_BEHALF} feedback:admin")
    console.open("person", admin, project=PROJECT, user=person)
    console.expect_error("404")
    size = console.page.viewport_size
    console.page.set_viewport_size(PHONE)
    assert console.widths() == [PHONE["width"]] * 2
    console.page.set_viewport_size(size)
    console.assert_accessible("person", screenshots)
    console.page.get_by_role("button", name="Erase this person…").click()
    console.assert_accessible("erase", screenshots)
