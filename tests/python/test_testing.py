"""`FakeHearback` in the tests of an application, as its users write them."""

import asyncio

import pytest
from hearback import Conflict, NotFound, ServerError
from hearback.testing import FakeHearback


class Bot:
    """An application: it answers from a table, unless the test scripts another answer."""

    def __init__(self, hb):
        self.conversation = hb.project("shop").conversation("c-1", user_id="ada", labels={"model": "table"})

    def reply(self, message):
        turn = self.conversation.begin(message)
        answer = "Which order?" if "order number" in turn.context else "Within 30 days."
        turn.complete(answer)
        return answer


@pytest.fixture
def fake():
    return FakeHearback()


def test_the_bot_does_what_hearback_says_after_a_rejection(fake):
    fake.detect("No, I meant online orders", "rejected", instructions=["Ask for the order number."])
    with fake.client() as hb:
        bot = Bot(hb)
        assert bot.reply("How do I return an item?") == "Within 30 days."
        assert bot.reply("No, I meant online orders") == "Which order?"
        assert bot.reply("It is 17") == "Within 30 days."
    answers = [turn["assistant"]["text"] for turn in fake.turns.values()]
    assert answers == ["Within 30 days.", "Which order?", "Within 30 days."]
    assert {project for project, _, _ in fake.turns} == {"shop"}
    assert all(turn["user_id"] == "ada" and turn["labels"] == {"model": "table"} for turn in fake.turns.values())


def test_the_bot_answers_while_hearback_is_down_and_loses_nothing(fake):
    with fake.client(patience=0.1) as hb:
        bot = Bot(hb)
        fake.down = True
        assert bot.reply("How do I return an item?") == "Within 30 days."
        assert fake.turns == {}
        fake.down = False
        assert hb.flush(5)
        assert len(fake.turns) == 1


def test_the_bot_answers_after_an_error_of_hearback(fake):
    fake.fail(400)
    with fake.client() as hb:
        assert Bot(hb).reply("How do I return an item?") == "Within 30 days."
        assert hb.stats.unanswered == 1
    assert len(fake.turns) == 1


def test_feedback_is_recorded(fake):
    with fake.client() as hb:
        turn = hb.project("shop").conversation("c-1").register("Hi", "Hello", turn_id="t-1")
        turn.not_ok("Too long")
        event = {"userId": "ada", "sessionId": "s", "feedbackChannel": "explicit", "feedbackType": "comment"}
        receipt = hb.submit(event)
        assert receipt.wait(5, processed=True).status == "processed"
    reaction = fake.reactions[0]
    assert (reaction["conversation_id"], reaction["turn_id"]) == ("c-1", "t-1")
    assert (reaction["reaction"], reaction["text"]) == ("not_ok", "Too long")
    assert fake.events[receipt.id]["feedbackType"] == "comment"


def test_an_asynchronous_application(fake):
    fake.detect("thanks", "accepted")

    async def chat():
        async with fake.async_client() as hb:
            conversation = hb.project("shop").conversation()
            await (await conversation.begin("How do I return an item?")).complete("Within 30 days.")
            turn = await conversation.begin("thanks")
            assert turn.previous.accepted and turn.context == ""

    asyncio.run(chat())
    assert [sorted(turn) for turn in fake.turns.values()] == [["assistant", "ts", "user"], ["ts", "user"]]


def test_other_operations_respond_as_the_test_says(fake):
    fake.respond("GET", "/v1/preferences/ada/resolved", {"artifactType": "checklist"})
    with fake.client(strict=True) as hb:
        assert hb.api.resolve_preferences(user_id="ada") == {"artifactType": "checklist"}
        with pytest.raises(NotFound):
            hb.api.get_preferences(user_id="ada")


def test_a_strict_client_shows_a_mistake_of_the_application(fake):
    with fake.client(strict=True) as hb:
        conversation = hb.project("shop").conversation()
        conversation.register("Hi", "Hello", turn_id="t")
        with pytest.raises(Conflict):
            conversation.register("Hi", "Good morning", turn_id="t")
        fake.fail(500, times=1000)
        with pytest.raises(ServerError):
            hb.api.within(0.1).get_feedback(feedback_id="x")
