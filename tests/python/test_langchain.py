"""Turns that chat models of LangChain register by themselves."""

import asyncio

import pytest
from hearback.integrations.langchain import AsyncHearbackCallbackHandler, HearbackCallbackHandler, conversation
from integration_fixtures import ANSWER, CORRECTION, QUESTION, chat  # noqa: F401
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate

CALL = {"id": "call-1", "name": "find_order", "args": {}}


def model(*answers, **options):
    """A chat model with these answers. One that is an exception is raised."""

    class Scripted(GenericFakeChatModel):
        received: list = []

        def _generate(self, messages, *args, **kwargs):
            self.received.append(messages)
            return super()._generate(messages, *args, **kwargs)

    def replies():
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            metadata = {"model_name": "gpt-5-2025-08-07"}
            yield answer if isinstance(answer, AIMessage) else AIMessage(answer, response_metadata=metadata)

    return Scripted(messages=replies(), **options)


@pytest.fixture
def handler(chat):
    return HearbackCallbackHandler(chat.project)


def test_an_answer_completes_the_turn_of_its_question(chat, handler):
    bot = model(ANSWER, callbacks=[handler])
    with conversation(chat.id, prompt_version="v7") as c:
        bot.invoke([SystemMessage("Be brief."), HumanMessage(QUESTION)])
    assert chat.texts(c.turn) == (QUESTION, ANSWER)
    assert chat.stored(c.turn)["labels"] == {"model": "gpt-5-2025-08-07", "prompt_version": "v7"}


def test_the_handler_of_a_chain_is_called_too(chat, handler):
    chain = ChatPromptTemplate([("system", "Be brief."), ("user", "{question}")]) | model(ANSWER)
    with conversation(chat.id) as c:
        chain.invoke({"question": QUESTION}, {"callbacks": [handler]})
    assert chat.texts(c.turn) == (QUESTION, ANSWER)


def test_the_text_parts_of_a_message_are_joined(chat, handler):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    parts = [{"type": "text", "text": "What is this?"}, image, {"type": "text", "text": "And that?"}]
    with conversation(chat.id) as c:
        model(ANSWER, callbacks=[handler]).invoke([HumanMessage(parts)])
    assert chat.texts(c.turn) == ("What is this?\nAnd that?", ANSWER)


def test_a_loop_of_tool_calls_is_one_turn(chat, handler):
    bot = model(AIMessage("Let me look.", tool_calls=[CALL]), ANSWER, callbacks=[handler])
    messages = [HumanMessage(QUESTION)]
    with conversation(chat.id) as c:
        messages.append(bot.invoke(messages))
        first = c.turn
        assert chat.texts(first) == (QUESTION, None)
        bot.invoke([*messages, ToolMessage("Order 7", tool_call_id="call-1")])
    assert c.turn is first
    assert chat.texts(first) == (QUESTION, ANSWER)


def test_a_stream_is_registered_when_it_ends(chat, handler):
    bot = model(ANSWER, callbacks=[handler])
    with conversation(chat.id) as c:
        assert "".join(chunk.text for chunk in bot.stream(QUESTION)) == ANSWER
    assert chat.texts(c.turn) == (QUESTION, ANSWER)


def test_a_stream_that_the_caller_stops_leaves_the_turn_open(chat, handler):
    stream = model(ANSWER, callbacks=[handler]).stream(QUESTION)
    with conversation(chat.id) as c:
        next(stream)
        stream.close()
    assert chat.texts(c.turn) == (QUESTION, None)


def test_the_repeat_of_a_failed_call_completes_its_turn(chat, handler):
    with conversation(chat.id) as c:
        with pytest.raises(ValueError, match="overloaded"):
            model(ValueError("overloaded"), callbacks=[handler]).invoke(QUESTION)
        failed = c.turn
        assert chat.texts(failed) == (QUESTION, None)
        model(ANSWER, callbacks=[handler]).invoke(QUESTION)
    assert c.turn is failed
    assert chat.texts(failed) == (QUESTION, ANSWER)


def test_nothing_is_registered_outside_of_a_conversation(chat, handler):
    assert model(ANSWER, callbacks=[handler]).invoke(QUESTION).text == ANSWER
    assert chat.completed() == 0


@pytest.mark.parametrize("system", [[], [("system", "Be brief.")]], ids=["none", "text"])
def test_a_step_of_the_chain_adds_the_context(chat, handler, system):
    bot = model(ANSWER, "Within 14 days.", callbacks=[handler])
    chain = ChatPromptTemplate([*system, ("user", "{question}")]) | handler.context | bot
    with conversation(chat.id) as c:
        chain.invoke({"question": QUESTION})
        assert [message.text for message in bot.received[0]] == [*(text for _, text in system), QUESTION]
        chain.invoke({"question": CORRECTION})
    instructions, question = bot.received[1]
    assert CORRECTION in c.turn.context
    assert instructions.text == "\n\n".join([*(text for _, text in system), c.turn.context.strip()])
    assert question.text == CORRECTION
    assert chat.completed() == 2
    assert chat.texts(c.turn) == (CORRECTION, "Within 14 days.")


class TestAsync:
    def test_an_answer_completes_the_turn_of_its_question(self, chat):
        async def test():
            async with chat.async_project() as project, conversation(chat.id) as c:
                handler = AsyncHearbackCallbackHandler(project)
                bot = model(ANSWER, "Within 14 days.", callbacks=[handler])
                chain = ChatPromptTemplate([("user", "{question}")]) | handler.context | bot
                await chain.ainvoke({"question": QUESTION})
                first = c.turn
                async for _ in chain.astream({"question": CORRECTION}):
                    pass
                return first, c.turn

        first, second = asyncio.run(test())
        assert chat.texts(first) == (QUESTION, ANSWER)
        assert second.previous.rejected
        assert chat.texts(second) == (CORRECTION, "Within 14 days.")

    def test_a_failed_call_leaves_the_turn_open(self, chat):
        async def test():
            async with chat.async_project() as project, conversation(chat.id) as c:
                bot = model(ValueError("overloaded"), callbacks=[AsyncHearbackCallbackHandler(project)])
                with pytest.raises(ValueError, match="overloaded"):
                    await bot.ainvoke(QUESTION)
                return c.turn

        assert chat.texts(asyncio.run(test())) == (QUESTION, None)

    def test_a_synchronous_handler_serves_asynchronous_calls(self, chat, handler):
        async def test():
            with conversation(chat.id) as c:
                await model(ANSWER, callbacks=[handler]).ainvoke(QUESTION)
            return c.turn

        assert chat.texts(asyncio.run(test())) == (QUESTION, ANSWER)
