"""Turns that a client of `anthropic` registers by itself."""

import json

import anthropic
import pytest
from hearback.integrations.anthropic import conversation, wrap
from integration_fixtures import ANSWER, CORRECTION, QUESTION, Sdk, Verdict
from integration_fixtures import chat, client, original, provider, run  # noqa: F401

MODEL = "claude-1-20200101"


def asked(text=QUESTION, **options):
    return {"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": text}], **options}


def message(*content, stop_reason="end_turn"):
    return {
        "id": "msg-1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": block} if isinstance(block, str) else block for block in content],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def tool_use(id="tool-1", kind="tool_use"):
    return {"type": kind, "id": id, "name": "web_search", "input": {}}


def events(*texts, stop_reason="end_turn"):
    """Of a message with several blocks of text."""
    sent = [{"type": "message_start", "message": message(stop_reason=None)}, {"type": "ping"}]
    for index, text in enumerate(texts):
        at = {"index": index}
        sent.append({"type": "content_block_start", **at, "content_block": {"type": "text", "text": ""}})
        for part in (text[:5], text[5:]):
            sent.append({"type": "content_block_delta", **at, "delta": {"type": "text_delta", "text": part}})
        sent.append({"type": "content_block_stop", **at})
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
    return [*sent, {"type": "message_stop"}]


@pytest.fixture
def sdk():
    clients = anthropic.Anthropic, anthropic.AsyncAnthropic
    return Sdk(*clients, anthropic.DefaultHttpxClient, anthropic.DefaultAsyncHttpxClient, wrap)


def test_an_answer_completes_the_turn_of_its_question(provider, chat, client):
    provider.reply(message("Within 30 days,", " with the receipt."))
    assert type(client) is anthropic.Anthropic
    with conversation(chat.id, prompt_version="v7") as c:
        client.messages.create(**asked())
    assert chat.texts(c.turn) == (QUESTION, ANSWER)
    assert chat.stored(c.turn)["labels"] == {"model": MODEL, "prompt_version": "v7"}
    assert provider.requests == [asked()]


def test_messages_that_can_be_read_once_are_sent(provider, chat, client):
    provider.reply(message(ANSWER))
    with conversation(chat.id) as c:
        client.messages.create(**asked(messages=iter(asked()["messages"])))
    assert provider.requests == [asked()]
    assert chat.texts(c.turn) == (QUESTION, ANSWER)


def test_the_text_blocks_of_a_message_are_joined(provider, chat, client):
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    content = [{"type": "text", "text": "What is this?"}, image, {"type": "text", "text": "And that?"}]
    provider.reply(message(ANSWER))
    with conversation(chat.id) as c:
        client.messages.create(**asked(content))
    assert chat.texts(c.turn) == ("What is this?\nAnd that?", ANSWER)


def test_a_loop_of_tool_calls_is_one_turn(provider, chat, client):
    provider.reply(message("Let me look.", tool_use(), stop_reason="tool_use"))
    provider.reply(message(ANSWER))
    request = asked()
    with conversation(chat.id) as c:
        reply = client.messages.create(**request)
        first = c.turn
        assert chat.texts(first) == (QUESTION, None)
        result = {"type": "tool_result", "tool_use_id": "tool-1", "content": "Order 7"}
        request["messages"] += [
            {"role": "assistant", "content": reply.content},
            {"role": "user", "content": [result, {"type": "text", "text": "Go on."}]},
        ]
        client.messages.create(**request)
    assert c.turn is first
    assert chat.texts(first) == (QUESTION, ANSWER)


def test_a_model_that_pauses_answers_in_the_next_message(provider, chat, client):
    provider.reply(message("Searching.", tool_use(kind="server_tool_use"), stop_reason="pause_turn"))
    provider.reply(message(ANSWER))
    request = asked()
    with conversation(chat.id) as c:
        request["messages"].append({"role": "assistant", "content": client.messages.create(**request).content})
        client.messages.create(**request)
    assert chat.texts(c.turn) == (QUESTION, ANSWER)


def test_a_parsed_answer_is_registered_as_text(provider, chat, client):
    provider.reply(message('{"days": 30}'))
    with conversation(chat.id) as c:
        parsed = client.messages.parse(**asked(), output_format=Verdict)
    assert parsed.parsed_output == Verdict(days=30)
    assert chat.texts(c.turn) == (QUESTION, '{"days": 30}')


def test_the_beta_of_messages_is_registered(provider, chat, client):
    provider.reply(message(ANSWER))
    with conversation(chat.id) as c:
        client.beta.messages.create(**asked())
    assert chat.texts(c.turn) == (QUESTION, ANSWER)


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ({}, "{context}"),
        ({"system": "Be brief."}, "Be brief.\n\n{context}"),
        (
            {"system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]},
            [
                {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "{context}"},
            ],
        ),
    ],
    ids=["none", "text", "blocks"],
)
def test_the_context_can_be_added_to_the_system_prompt(provider, chat, original, system, expected):
    client = wrap(original, chat.project, add_context=True)
    provider.reply(message(ANSWER))
    provider.reply(message("Within 14 days."))
    with conversation(chat.id) as c:
        client.messages.create(**asked(**system))
        client.messages.create(**asked(CORRECTION, **system))
    assert CORRECTION in c.turn.context
    assert provider.requests[0] == asked(**system)
    added = provider.requests[1]["system"]
    text, wanted = (added, expected) if isinstance(added, str) else (added[-1]["text"], expected[-1]["text"])
    assert text == wanted.replace("{context}", c.turn.context.strip())
    assert isinstance(added, str) or added[:-1] == expected[:-1]


def test_a_stream_is_collected_while_it_passes(provider, chat, client):
    provider.stream(events("Within 30 days,", " with the receipt."))
    with conversation(chat.id) as c:
        stream = client.messages.create(**asked(), stream=True)
        assert type(stream) is anthropic.Stream
        received = [event.type for event in stream]
    assert received[0] == "message_start"
    assert received[-1] == "message_stop"
    assert chat.texts(c.turn) == (QUESTION, ANSWER)
    assert chat.stored(c.turn)["labels"] == {"model": MODEL}


def test_the_stream_helper_is_registered(provider, chat, client):
    provider.stream(events(ANSWER))
    with conversation(chat.id) as c:
        with client.messages.stream(**asked()) as stream:
            assert "".join(stream.text_stream) == ANSWER
        assert stream.get_final_message().model == MODEL
    assert chat.texts(c.turn) == (QUESTION, ANSWER)


def test_a_stream_that_ends_with_a_tool_call_leaves_the_turn_open(provider, chat, client):
    provider.stream(events("Let me look.", stop_reason="tool_use"))
    with conversation(chat.id) as c:
        list(client.messages.create(**asked(), stream=True))
    assert chat.texts(c.turn) == (QUESTION, None)


def test_an_error_within_a_stream_raises_as_ever_and_leaves_the_turn_open(provider, chat, client):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    provider.stream([*events(ANSWER)[:4], error])
    with conversation(chat.id) as c, pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        with client.messages.stream(**asked()) as stream:
            stream.until_done()
    assert chat.texts(c.turn) == (QUESTION, None)


def test_a_stream_that_the_caller_stops_leaves_the_turn_open(provider, chat, client):
    provider.stream(events(ANSWER))
    with conversation(chat.id) as c, client.messages.stream(**asked()) as stream:
        next(stream.text_stream)
    assert chat.texts(c.turn) == (QUESTION, None)


def test_the_repeat_of_a_failed_call_completes_its_turn(provider, chat, client):
    provider.reply({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}, status=429)
    provider.reply(message(ANSWER))
    with conversation(chat.id) as c:
        with pytest.raises(anthropic.RateLimitError, match="Slow down"):
            client.messages.create(**asked())
        failed = c.turn
        assert chat.texts(failed) == (QUESTION, None)
        client.messages.create(**asked())
    assert c.turn is failed
    assert chat.texts(failed) == (QUESTION, ANSWER)


def test_a_raw_response_is_registered(provider, chat, client):
    provider.reply(message(ANSWER))
    with conversation(chat.id) as c:
        reply = client.messages.with_raw_response.create(**asked())
    assert reply.parse().content[0].text == ANSWER
    assert chat.texts(c.turn) == (QUESTION, ANSWER)


def test_a_client_with_middleware_is_wrapped_too(provider, chat, client):
    provider.reply(message(ANSWER))
    with conversation(chat.id) as c:
        client.with_middleware(lambda request, call_next: call_next(request)).messages.create(**asked())
    assert chat.texts(c.turn) == (QUESTION, ANSWER)


def test_a_request_of_bytes_passes(provider, chat, client):
    provider.reply(message(ANSWER))
    with conversation(chat.id) as c:
        reply = client.post("/v1/messages", content=json.dumps(asked()).encode(), cast_to=anthropic.types.Message)
    assert reply.content[0].text == ANSWER
    assert c.turn is None


def test_nothing_is_registered_outside_of_a_conversation(provider, chat, client):
    provider.reply(message(ANSWER))
    client.messages.create(**asked())
    assert chat.completed() == 0


class TestAsync:
    def test_an_answer_completes_the_turn_of_its_question(self, provider, chat, run):
        provider.reply(message(ANSWER))
        provider.reply(message("Within 14 days."))

        async def test(client):
            async with conversation(chat.id) as c:
                await client.messages.create(**asked())
                first = c.turn
                await client.messages.create(**asked(CORRECTION))
            return first, c.turn

        first, second = run(test, add_context=True)
        assert chat.texts(first) == (QUESTION, ANSWER)
        assert chat.texts(second) == (CORRECTION, "Within 14 days.")
        assert provider.requests[1]["system"] == second.context.strip()

    def test_streams_are_collected_while_they_pass(self, provider, chat, run):
        provider.stream(events(ANSWER))
        provider.stream(events("Yes."))

        async def test(client):
            async with conversation(chat.id) as c:
                stream = await client.messages.create(**asked(), stream=True)
                assert type(stream) is anthropic.AsyncStream
                async for _ in stream:
                    pass
                first = c.turn
                async with client.messages.stream(**asked("Online too?")) as stream:
                    assert await stream.get_final_text() == "Yes."
            return first, c.turn

        first, second = run(test)
        assert chat.texts(first) == (QUESTION, ANSWER)
        assert chat.texts(second) == ("Online too?", "Yes.")

    def test_a_raw_response_is_registered(self, provider, chat, run):
        provider.reply(message(ANSWER))

        async def test(client):
            async with conversation(chat.id) as c:
                reply = await client.messages.with_raw_response.create(**asked())
                assert (await reply.parse()).content[0].text == ANSWER
            return c.turn

        assert chat.texts(run(test)) == (QUESTION, ANSWER)
