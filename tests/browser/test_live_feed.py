"""The live feed on a page, under the content security policy of the demo page."""

import json

from playwright.sync_api import expect

from bundle import EVENTS_OF_RATING, Bundle, eventually

# Follows the feed with the options that a test gives, and keeps what the page receives.
FOLLOW = """async (options) => {
    const { followFeed } = await import('/demo/hearback-live.js');
    window.events = [];
    window.states = [];
    window.feed = followFeed({
        ...options,
        onEvent: (event) => {
            window.events.push(event);
            if (options.fails) throw new Error('a mistake of the page');
            if (options.closes) window.feed.close();
        },
        onState: (state, error) => window.states.push([state, error?.status ?? null]),
    });
}"""

class Follower:
    """A page that follows the feed."""

    def __init__(self, context, user):
        self.page = context.new_page()
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self._user = user
        # The page without a token: nothing on it follows the feed.
        self.page.goto(f"{user.url}/demo")

    def follow(self, **options):
        self.page.evaluate(FOLLOW, {"token": self._user.token, **options})
        return self

    def events(self):
        return [event["eventId"] for event in self.page.evaluate("window.events")]

    def states(self):
        return [tuple(state) for state in self.page.evaluate("window.states")]

    def is_open(self):
        eventually(lambda: self.states()[-1], ("open", None))
        return self


def ids(user):
    return {event["eventId"] for event in user.listed()}


def received_once(follower, count):
    eventually(lambda: len(follower.events()), count)
    assert len(set(follower.events())) == count


def test_a_page_receives_events_as_they_happen_and_those_it_missed(new_context, user):
    context = new_context()
    follower = Follower(context, user).follow().is_open()
    user.rate()
    received_once(follower, EVENTS_OF_RATING)
    assert set(follower.events()) == ids(user)
    last = follower.page.evaluate("window.feed.lastEventId")
    follower.page.close()
    user.rate()
    follower = Follower(context, user).follow(after=last)
    # Also those of the first rating: `last` never points to the last 15 seconds.
    received_once(follower, 2 * EVENTS_OF_RATING)
    assert set(follower.events()) == ids(user)


def test_a_page_connects_again_and_receives_each_event_once(tmp_path, bundle, new_context):
    own = Bundle(bundle.command, tmp_path)
    try:
        user = own.user("ada")
        follower = Follower(new_context(), user).follow().is_open()
        user.rate()
        received_once(follower, EVENTS_OF_RATING)
        own.stop()
        eventually(lambda: follower.states()[-1], ("waiting", 0))
        own.start()
        user.rate()
        received_once(follower, 2 * EVENTS_OF_RATING)
        assert set(follower.events()) == ids(user)
    finally:
        own.stop()


def test_a_page_that_fails_on_an_event_receives_the_next(new_context, user):
    follower = Follower(new_context(), user).follow(fails=True).is_open()
    user.rate()
    received_once(follower, EVENTS_OF_RATING)
    assert follower.errors == EVENTS_OF_RATING * ["a mistake of the page"]
    assert follower.states()[-1] == ("open", None)


def test_what_the_server_rejects_ends_the_feed(new_context, user):
    context = new_context()
    follower = Follower(context, user).follow(filter={"channels": ["other"]})
    eventually(lambda: follower.states()[-1], ("closed", 400))
    follower = Follower(context, user).follow(after="never")
    eventually(lambda: follower.states()[-1], ("closed", 400))
    # Another token may be accepted.
    follower = Follower(context, user).follow(token="an.old.token")
    eventually(lambda: follower.states()[-1], ("waiting", 401))


def test_a_page_that_closes_the_feed_within_a_frame_resumes_before_it(new_context, user):
    user.rate()
    eventually(lambda: len(ids(user)), EVENTS_OF_RATING)
    after = user.call("GET", "/v1/feedback/events?limit=1")["last_event_id"]
    context = new_context()
    follower = Follower(context, user).follow(after=after, closes=True)
    eventually(lambda: follower.states()[-1], ("closed", None))
    assert len(follower.events()) == 1
    last = follower.page.evaluate("window.feed.lastEventId")
    follower = Follower(context, user).follow(after=last)
    received_once(follower, EVENTS_OF_RATING)


def test_a_page_connects_again_after_an_error_of_api_gateway(new_context, user):
    context, failed = new_context(), []

    def fail_first(socket):
        socket.connect_to_server()
        if not failed:
            failed.append(True)
            frame = {"message": "Internal server error", "connectionId": "c", "requestId": "r"}
            socket.on_message(lambda _: socket.send(json.dumps(frame)))

    context.route_web_socket(lambda url: True, fail_first)
    follower = Follower(context, user).follow().is_open()
    assert ("waiting", 503) in follower.states()
    user.rate()
    received_once(follower, EVENTS_OF_RATING)


def test_a_closed_feed_receives_nothing(new_context, user):
    follower = Follower(new_context(), user).follow().is_open()
    follower.page.evaluate("window.feed.close()")
    eventually(lambda: follower.states()[-1], ("closed", None))
    user.rate()
    eventually(lambda: len(ids(user)), EVENTS_OF_RATING)
    assert follower.events() == []


def test_the_demo_shows_events_as_they_happen(demo):
    state = demo.page.locator("#feed-state")
    expect(state).to_have_attribute("data-state", "open")
    demo.answer("1").up.click()
    happened = demo.page.locator("#events li[data-event='feedback.processed']")
    expect(happened).to_have_count(1)
    expect(happened).to_contain_text("explicit")
