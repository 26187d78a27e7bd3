"""The live feed in a browser, with its own WebSocket and under the content security policy of the demo page."""

import uuid

import pytest

# Collects frames until there are `count` events, and returns those frames. Every call is of the page itself.
LISTEN = """async ({ token, count, event, after }) => {
    const authorization = { authorization: `Bearer ${token}` };
    const ticket = await fetch('/v1/feedback/events/ticket', { method: 'POST', headers: authorization });
    const { url, ticket: name } = await ticket.json();
    const socket = new WebSocket(`${url}?ticket=${name}`);
    const frames = [];
    const received = new Promise((resolve, reject) => {
        socket.onerror = () => reject(new Error('the connection failed'));
        socket.onclose = () => reject(new Error('the connection was closed'));
        socket.onopen = () => socket.send(JSON.stringify({ action: 'subscribe', after }));
        socket.onmessage = async ({ data }) => {
            const frame = JSON.parse(data);
            frames.push(frame);
            if (frame.type === 'subscribed' && event) {
                const body = JSON.stringify(event);
                await fetch('/v1/feedback/submit', { method: 'POST', headers: authorization, body });
            }
            const ids = frames.flatMap(({ events = [] }) => events.map(({ eventId }) => eventId));
            if (new Set(ids).size >= count) resolve(frames);
        };
    });
    try {
        return await received;
    } finally {
        socket.onclose = null;
        socket.close();
    }
}"""


def event(user, number):
    return {
        "feedbackId": str(uuid.uuid4()),
        "userId": user.name,
        "sessionId": "s",
        "feedbackChannel": "explicit",
        "feedbackType": "rating",
        "artifactId": f"artifact-{number}",
        "data": {"rating": 5},
    }


@pytest.fixture
def page(new_context, user):
    page = new_context().new_page()
    page.goto(f"{user.url}/demo")
    return page


def listen(page, user, count, event=None, after=None):
    arguments = {"token": user.token, "count": count, "event": event, "after": after}
    return page.evaluate(LISTEN, arguments)


def events(frames):
    return {event["eventId"]: event for frame in frames for event in frame.get("events", [])}


def test_a_page_receives_events_as_they_happen_and_after_a_reload(page, user):
    frames = listen(page, user, 3, event(user, 1))
    assert frames[0]["type"] == "subscribed"
    first = events(frames)
    kinds = sorted(event["eventType"] for event in first.values())
    assert kinds == ["feedback.processed"] + 2 * ["learning.signal.generated"]
    # What happens while the page is away is received when it returns.
    page.goto("about:blank")
    user.call("POST", "/v1/feedback/submit", event(user, 2))
    page.goto(f"{user.url}/demo")
    later = events(listen(page, user, 6, after=frames[0]["lastEventId"]))
    assert set(first) < set(later)
    listed = user.call("GET", "/v1/feedback/events")["events"]
    assert set(later) == {event["eventId"] for event in listed}
