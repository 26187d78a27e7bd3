"""Turns that a client of `openai` registers by itself."""

import asyncio
import logging
import threading
import time

import openai
import pytest
from hearback import AsyncHearback, Hearback
from hearback.integrations.openai import conversation, wrap
from integration_fixtures import ANSWER, CORRECTION, QUESTION, Sdk, Verdict
from integration_fixtures import chat, client, original, provider, run  # noqa: F401
from opentelemetry import trace

MODEL = "gpt-5-2025-08-07"
TOOLS = [{"type": "function", "function": {"name": "find_order", "parameters": {"type": "object", "properties": {}}}}]


def asked(text=QUESTION):
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def completion(content, *, tool_calls=None, others=()):
    messages = [{"role": "assistant", "content": content, "tool_calls": tool_calls}]
    messages += [{"role": "assistant", "content": other} for other in others]
    choices = [
        {"index": index, "message": message, "finish_reason": "tool_calls" if tool_calls else "stop"}
        for index, message in enumerate(messages)
    ]
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": choices}


def chunks(text, *, done=True):
    first, *rest = text.split(" ")
    # With `n`, other choices are in between.
    deltas = [(0, {"role": "assistant", "content": first}), (1, {"role": "assistant", "content": "?"})]
    deltas += [(0, {"content": f" {word}"}) for word in rest]
    sent = [[{"index": index, "delta": delta, "finish_reason": None}] for index, delta in deltas]
    sent += [[{"index": 0, "delta": {}, "finish_reason": "stop"}]] if done else []
    # With `stream_options={"include_usage": True}`.
    sent += [[]]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    return [*({**head, "choices": choices} for choices in sent), "[DONE]"]


def output_message(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg-1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def response(*output):
    return {
        "id": "resp-1",
        "object": "response",
        "created_at": 1,
        "model": MODEL,
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed",
    }


def response_events(text):
    item = output_message(text)
    part = {"type": "output_text", "text": "", "annotations": []}
    at = {"output_index": 0, "content_index": 0, "item_id": "msg-1"}
    events = [
        {"type": "response.created", "response": {**response(), "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **at, "part": part},
        {"type": "response.output_text.delta", **at, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response(item)},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


@pytest.fixture
def sdk():
    clients = openai.OpenAI, openai.AsyncOpenAI
    return Sdk(*clients, openai.DefaultHttpxClient, openai.DefaultAsyncHttpxClient, wrap)


def create(client, text=QUESTION, **options):
    return client.chat.completions.create(model="gpt-5", messages=asked(text), **options)


class TestChatCompletions:
    def test_an_answer_completes_the_turn_of_its_question(self, provider, chat, client):
        provider.reply(completion(ANSWER))
        with conversation(chat.id, prompt_version="v7", labels={"tier": "free"}, trace_id="t-1") as c:
            assert c.turn is None
            assert create(client).choices[0].message.content == ANSWER
        stored = chat.stored(c.turn)
        assert (stored["user"]["text"], stored["assistant"]["text"]) == (QUESTION, ANSWER)
        assert stored["assistant"]["message_id"] == c.turn.message_id
        assert stored["labels"] == {"model": MODEL, "prompt_version": "v7", "tier": "free"}
        assert stored["trace_id"] == "t-1"
        assert provider.requests == [{"model": "gpt-5", "messages": asked()}]

    def test_the_user_can_rate_the_latest_answer(self, provider, chat, client):
        provider.reply(completion(ANSWER))
        with conversation(chat.id) as c:
            create(client)
        c.turn.not_ok("Too long")
        reaction = chat.stored(c.turn)["reactions"][0]["reaction"]
        assert (reaction["reaction"], reaction["text"]) == ("not_ok", "Too long")

    def test_of_several_choices_the_first_is_the_answer(self, provider, chat, client):
        provider.reply(completion(ANSWER, others=["Never."]))
        with conversation(chat.id) as c:
            create(client, n=2)
        assert chat.texts(c.turn) == (QUESTION, ANSWER)

    def test_the_text_parts_of_a_message_are_joined(self, provider, chat, client):
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        parts = [{"type": "text", "text": "What is this?"}, image, {"type": "text", "text": "And that?"}]
        provider.reply(completion(ANSWER))
        with conversation(chat.id) as c:
            client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": parts}])
        assert chat.texts(c.turn) == ("What is this?\nAnd that?", ANSWER)

    def test_a_loop_of_tool_calls_is_one_turn(self, provider, chat, client):
        call = {"id": "call-1", "type": "function", "function": {"name": "find_order", "arguments": "{}"}}
        provider.reply(completion("Let me look.", tool_calls=[call]))
        provider.reply(completion(ANSWER))
        messages = asked()
        with conversation(chat.id) as c:
            reply = client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS)
            first = c.turn
            assert chat.texts(first) == (QUESTION, None)
            messages += [reply.choices[0].message, {"role": "tool", "tool_call_id": "call-1", "content": "Order 7"}]
            client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS)
        assert c.turn is first
        assert chat.texts(first) == (QUESTION, ANSWER)

    def test_a_refusal_is_an_answer(self, provider, chat, client):
        body = completion(None)
        body["choices"][0]["message"]["refusal"] = "I cannot help with that."
        provider.reply(body)
        with conversation(chat.id) as c:
            create(client)
        assert chat.texts(c.turn) == (QUESTION, "I cannot help with that.")

    def test_a_parsed_answer_is_registered_as_text(self, provider, chat, client):
        provider.reply(completion('{"days": 30}'))
        with conversation(chat.id) as c:
            parsed = client.chat.completions.parse(model="gpt-5", messages=asked(), response_format=Verdict)
        assert parsed.choices[0].message.parsed == Verdict(days=30)
        assert chat.texts(c.turn) == (QUESTION, '{"days": 30}')

    def test_a_stream_is_collected_while_it_passes(self, provider, chat, client):
        provider.stream(chunks(ANSWER))
        with conversation(chat.id) as c:
            stream = create(client, stream=True)
            assert type(stream) is openai.Stream
            received = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
        assert "".join(received).replace("?", "") == ANSWER
        assert chat.texts(c.turn) == (QUESTION, ANSWER)
        assert chat.stored(c.turn)["labels"] == {"model": MODEL}

    def test_a_stream_may_end_after_its_conversation_was_left(self, provider, chat, client):
        provider.stream(chunks(ANSWER))
        with conversation(chat.id) as c:
            stream = create(client, stream=True)
        list(stream)
        assert chat.texts(c.turn) == (QUESTION, ANSWER)

    def test_the_stream_helper_is_registered(self, provider, chat, client):
        provider.stream(chunks(ANSWER))
        with conversation(chat.id) as c:
            with client.chat.completions.stream(model="gpt-5", messages=asked()) as stream:
                final = stream.get_final_completion()
        assert final.choices[0].message.content == ANSWER
        assert chat.texts(c.turn) == (QUESTION, ANSWER)

    @pytest.mark.parametrize("stream", [chunks(ANSWER, done=False), chunks(ANSWER)[:4]], ids=["no end", "cut"])
    def test_a_stream_without_its_end_leaves_the_turn_open(self, provider, chat, client, stream):
        provider.stream(stream)
        with conversation(chat.id) as c:
            list(create(client, stream=True))
        assert chat.texts(c.turn) == (QUESTION, None)

    def test_a_lost_stream_raises_as_ever_and_leaves_the_turn_open(self, provider, chat, client):
        provider.stream(chunks(ANSWER), cut=3)
        with conversation(chat.id) as c, pytest.raises(openai.APIConnectionError):
            list(create(client, stream=True))
        assert chat.texts(c.turn) == (QUESTION, None)

    def test_a_stream_that_the_caller_stops_leaves_the_turn_open(self, provider, chat, client):
        provider.stream(chunks(ANSWER))
        with conversation(chat.id) as c, create(client, stream=True) as stream:
            next(stream)
        assert chat.texts(c.turn) == (QUESTION, None)

    def test_the_repeat_of_a_failed_call_completes_its_turn(self, provider, chat, client):
        provider.reply({"error": {"message": "Slow down"}}, status=429)
        provider.reply(completion(ANSWER))
        with conversation(chat.id) as c:
            with pytest.raises(openai.RateLimitError, match="Slow down"):
                create(client)
            failed = c.turn
            assert chat.texts(failed) == (QUESTION, None)
            create(client)
        assert c.turn is failed
        assert chat.texts(failed) == (QUESTION, ANSWER)

    def test_a_raw_response_is_registered(self, provider, chat, client):
        provider.reply(completion(ANSWER))
        provider.stream(chunks("Yes, of course."))
        raw = client.chat.completions.with_raw_response
        with conversation(chat.id) as c:
            reply = raw.create(model="gpt-5", messages=asked())
            first = c.turn
            assert reply.headers["content-type"] == "application/json"
            assert reply.parse().choices[0].message.content == ANSWER
            list(raw.create(model="gpt-5", messages=asked("Online too?"), stream=True).parse())
        assert chat.texts(first) == (QUESTION, ANSWER)
        assert chat.texts(c.turn) == ("Online too?", "Yes, of course.")

    def test_a_response_that_the_caller_streams_is_not_registered(self, provider, chat, client):
        provider.reply(completion(ANSWER))
        with conversation(chat.id) as c:
            with client.chat.completions.with_streaming_response.create(model="gpt-5", messages=asked()) as reply:
                assert ANSWER.encode() in reply.read()
        assert c.turn is None


class TestContext:
    def test_what_the_user_says_about_the_answer_before_is_known(self, provider, chat, client):
        provider.reply(completion(ANSWER))
        provider.reply(completion("Within 14 days."))
        with conversation(chat.id) as c:
            create(client)
            create(client, CORRECTION)
        assert c.turn.previous.rejected
        assert CORRECTION in c.turn.context
        assert provider.requests[1]["messages"] == asked(CORRECTION)

    @pytest.mark.parametrize(
        ("instructions", "expected"),
        [
            ([], "{context}"),
            ([{"role": "developer", "content": "Be brief."}], "Be brief.\n\n{context}"),
            (
                [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}],
                [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "{context}"}],
            ),
        ],
        ids=["none", "text", "parts"],
    )
    def test_it_can_be_added_to_the_system_message(self, provider, chat, original, instructions, expected):
        client = wrap(original, chat.project, add_context=True)
        provider.reply(completion(ANSWER))
        provider.reply(completion("Within 14 days."))
        messages = [*instructions, {"role": "user", "content": CORRECTION}]
        with conversation(chat.id) as c:
            create(client)
            client.chat.completions.create(model="gpt-5", messages=messages)
        assert provider.requests[0]["messages"] == asked()
        system, question = provider.requests[1]["messages"]
        assert repr(system["content"]) == repr(expected).replace("{context}", repr(c.turn.context.strip())[1:-1])
        assert question == messages[-1]
        assert messages == [*instructions, {"role": "user", "content": CORRECTION}]


class TestResponses:
    def test_an_answer_completes_the_turn_of_its_question(self, provider, chat, client):
        provider.reply(response(output_message(ANSWER)))
        with conversation(chat.id, prompt_version="v7") as c:
            assert client.responses.create(model="gpt-5", input=QUESTION).output_text == ANSWER
        assert chat.texts(c.turn) == (QUESTION, ANSWER)
        assert chat.stored(c.turn)["labels"] == {"model": MODEL, "prompt_version": "v7"}

    def test_a_loop_of_tool_calls_is_one_turn(self, provider, chat, client):
        call = {"type": "function_call", "id": "fc-1", "call_id": "call-1", "name": "find_order", "arguments": "{}"}
        provider.reply(response(call))
        provider.reply(response(output_message(ANSWER)))
        parts = [{"type": "input_text", "text": QUESTION}, {"type": "input_image", "image_url": "data:,"}]
        given = [{"role": "user", "content": parts}]
        with conversation(chat.id) as c:
            reply = client.responses.create(model="gpt-5", input=given)
            first = c.turn
            assert chat.texts(first) == (QUESTION, None)
            given += [*reply.output, {"type": "function_call_output", "call_id": "call-1", "output": "Order 7"}]
            client.responses.create(model="gpt-5", input=given)
        assert c.turn is first
        assert chat.texts(first) == (QUESTION, ANSWER)

    def test_a_tool_that_the_provider_runs_does_not_delay_the_answer(self, provider, chat, client):
        hosted = {"call_id": "call-1", "status": "completed"}
        call = {"type": "shell_call", "id": "sh-1", "action": {"commands": ["ls"]}, **hosted}
        output = {"type": "shell_call_output", "id": "so-1", "output": [], **hosted}
        search = {"type": "web_search_call", "id": "ws-1", "status": "completed"}
        provider.reply(response(search, call, output, output_message(ANSWER)))
        with conversation(chat.id) as c:
            client.responses.create(model="gpt-5", input=QUESTION)
        assert chat.texts(c.turn) == (QUESTION, ANSWER)

    def test_a_stream_is_collected_while_it_passes(self, provider, chat, client):
        provider.stream(response_events(ANSWER))
        with conversation(chat.id) as c:
            events = list(client.responses.create(model="gpt-5", input=QUESTION, stream=True))
        assert [event.type for event in events] == [event["type"] for event in response_events(ANSWER)]
        assert chat.texts(c.turn) == (QUESTION, ANSWER)

    def test_the_stream_helper_is_registered(self, provider, chat, client):
        provider.stream(response_events(ANSWER))
        with conversation(chat.id) as c:
            with client.responses.stream(model="gpt-5", input=QUESTION) as stream:
                assert stream.get_final_response().output_text == ANSWER
        assert chat.texts(c.turn) == (QUESTION, ANSWER)

    def test_a_parsed_answer_is_registered_as_text(self, provider, chat, client):
        provider.reply(response(output_message('{"days": 30}')))
        with conversation(chat.id) as c:
            parsed = client.responses.parse(model="gpt-5", input=QUESTION, text_format=Verdict)
        assert parsed.output_parsed == Verdict(days=30)
        assert chat.texts(c.turn) == (QUESTION, '{"days": 30}')

    def test_the_context_is_added_to_the_instructions(self, provider, chat, original):
        client = wrap(original, chat.project, add_context=True)
        for text in (ANSWER, "Within 14 days."):
            provider.reply(response(output_message(text)))
        with conversation(chat.id) as c:
            client.responses.create(model="gpt-5", input=QUESTION, instructions="Be brief.")
            client.responses.create(model="gpt-5", input=CORRECTION, instructions="Be brief.")
        given = [request["instructions"] for request in provider.requests]
        assert given == ["Be brief.", f"Be brief.\n\n{c.turn.context.strip()}"]


class TestWrap:
    def test_a_wrapped_client_keeps_its_type_and_the_original_registers_nothing(self, provider, chat, original, client):
        assert type(client) is openai.OpenAI
        provider.reply(completion("returns"))
        with conversation(chat.id) as c:
            create(original)
        assert c.turn is None

    def test_a_client_with_other_options_is_wrapped_too(self, provider, chat, client):
        provider.reply(completion(ANSWER))
        with conversation(chat.id) as c:
            create(client.with_options(timeout=30))
        assert chat.texts(c.turn) == (QUESTION, ANSWER)

    def test_a_client_that_is_wrapped_twice_registers_one_turn(self, provider, chat, client):
        provider.reply(completion(ANSWER))
        with conversation(chat.id):
            create(wrap(client, chat.other_project))
        assert chat.completed() == 1

    def test_nothing_is_registered_outside_of_a_conversation(self, provider, chat, client, caplog):
        provider.reply(completion(ANSWER))
        with caplog.at_level(logging.DEBUG, "hearback"):
            assert create(client).choices[0].message.content == ANSWER
        assert "outside of a conversation" in caplog.text
        assert chat.completed() == 0

    def test_a_project_of_the_other_kind_is_rejected(self, chat, original):
        with pytest.raises(TypeError, match="asynchronous"):
            wrap(openai.AsyncOpenAI(api_key="none"), chat.project)

    def test_without_hearback_the_model_is_called_after_the_patience(self, provider, original):
        hearback = Hearback("http://127.0.0.1:9", "none", tenant="acme", patience=0.1)
        client = wrap(original, hearback.project("support"), add_context=True)
        provider.reply(completion(ANSWER))
        start = time.monotonic()
        with conversation() as c:
            assert create(client).choices[0].message.content == ANSWER
        assert time.monotonic() - start < 2
        assert c.turn.receipt.status == "pending"
        hearback.close(timeout=0)

    def test_what_cannot_be_read_is_sent_all_the_same(self, provider, chat, client, caplog):
        provider.reply({"id": "x", "object": "chat.completion", "choices": []})
        with conversation(chat.id) as c:
            assert create(client).choices == []
        assert "A turn is not registered: IndexError" in caplog.text
        assert chat.texts(c.turn) == (QUESTION, None)

    def test_an_active_span_replaces_the_given_trace(self, provider, chat, client):
        provider.reply(completion(ANSWER))
        span = trace.NonRecordingSpan(trace.SpanContext(0xABC, 0xDEF, is_remote=False))
        with conversation(chat.id, trace_id="t-1", span_id="s-1") as c, trace.use_span(span):
            create(client)
        stored = chat.stored(c.turn)
        assert (stored["trace_id"], stored["span_id"]) == (f"{0xABC:032x}", f"{0xDEF:016x}")


class TestConversation:
    def test_a_second_call_with_the_same_message_is_not_the_user_asking_again(self, provider, chat, original, caplog):
        client = wrap(original, chat.project, add_context=True)
        for text in (ANSWER, "online", "Within 14 days."):
            provider.reply(completion(text))
        with conversation(chat.id):
            create(client)
        with conversation(chat.id) as c:
            for _ in range(2):
                create(client, CORRECTION)
        contexts = [request["messages"][0]["content"] for request in provider.requests[1:]]
        assert contexts == [f"Be brief.\n\n{c.turn.context.strip()}"] * 2
        assert chat.texts(c.turn) == (CORRECTION, "online")
        assert chat.stored(c.turn)["user_feedback_status"] == "neutral"
        assert chat.completed() == 2
        assert "answered twice" in caplog.text and CORRECTION not in caplog.text

    def test_a_message_that_is_sent_again_in_a_block_of_its_own_is_the_user_asking_again(self, provider, chat, client):
        turns = []
        for _ in range(2):
            provider.reply(completion(ANSWER))
            with conversation(chat.id) as c:
                create(client)
            turns.append(c.turn)
        assert chat.stored(turns[0])["user_feedback_status"] == "rejected"
        assert turns[1].previous.rejected

    def test_a_back_end_names_the_user(self, provider, bundle, original, user):
        token = bundle.token("back-end", scope="feedback:on-behalf feedback:report")
        provider.reply(completion(ANSWER))
        with Hearback(bundle.url, token, patience=10) as hearback:
            with conversation(user_id=user) as c:
                create(wrap(original, hearback.project("support")))
            hearback.flush()
            path = {"tenant": "acme", "project": "support", "conversation_id": c.id, "turn_id": c.turn.id}
            assert hearback.api.get_turn(**path)["user_id"] == user

    def test_each_thread_has_its_own(self, provider, chat, client):
        met, turns = threading.Barrier(2), {}

        def talk(name):
            with conversation(f"{chat.id}-{name}") as c:
                met.wait(10)
                create(client, f"I am {name}")
                turns[name] = c.turn

        for _ in range(2):
            provider.reply(completion(ANSWER))
        threads = [threading.Thread(target=talk, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, turn in turns.items():
            assert chat.texts(turn, f"{chat.id}-{name}") == (f"I am {name}", ANSWER)

    def test_an_inner_one_ends_with_its_block(self, provider, chat, client):
        for _ in range(2):
            provider.reply(completion(ANSWER))
        with conversation(chat.id) as outer:
            with conversation() as inner:
                create(client)
            assert outer.turn is None
            create(client)
        assert inner.turn.id != outer.turn.id


class TestAsync:
    def test_an_answer_completes_the_turn_of_its_question(self, provider, chat, run):
        provider.reply(completion(ANSWER))
        provider.reply(response(output_message("Within 14 days.")))

        async def test(client):
            async with conversation(chat.id) as c:
                await client.chat.completions.create(model="gpt-5", messages=asked())
                first = c.turn
                await client.responses.create(model="gpt-5", input=CORRECTION, instructions="Be brief.")
            return first, c.turn

        first, second = run(test, add_context=True)
        assert chat.texts(first) == (QUESTION, ANSWER)
        assert chat.texts(second) == (CORRECTION, "Within 14 days.")
        assert second.previous.rejected
        assert provider.requests[1]["instructions"] == f"Be brief.\n\n{second.context.strip()}"

    def test_streams_are_collected_while_they_pass(self, provider, chat, run):
        provider.stream(chunks(ANSWER))
        provider.stream(chunks("Yes."))
        provider.stream(response_events("No."))

        async def test(client):
            turns, completions = [], client.chat.completions
            with conversation(chat.id) as c:
                stream = await completions.create(model="gpt-5", messages=asked(), stream=True)
                assert type(stream) is openai.AsyncStream
                async for _ in stream:
                    pass
                turns.append(c.turn)
                async with completions.stream(model="gpt-5", messages=asked("Online?")) as stream:
                    await stream.until_done()
                turns.append(c.turn)
                async with client.responses.stream(model="gpt-5", input="Sundays?") as stream:
                    await stream.until_done()
            return [*turns, c.turn]

        turns = run(test)
        assert [chat.texts(turn) for turn in turns] == [(QUESTION, ANSWER), ("Online?", "Yes."), ("Sundays?", "No.")]

    def test_raw_responses_are_registered(self, provider, chat, run):
        provider.reply(completion(ANSWER))

        async def test(client):
            with conversation(chat.id) as c:
                reply = await client.chat.completions.with_raw_response.create(model="gpt-5", messages=asked())
                assert reply.parse().choices[0].message.content == ANSWER
            return c.turn

        assert chat.texts(run(test)) == (QUESTION, ANSWER)

    def test_a_stream_that_the_caller_stops_leaves_the_turn_open(self, provider, chat, run):
        provider.stream(chunks(ANSWER))

        async def test(client):
            with conversation(chat.id) as c:
                async with await client.chat.completions.create(model="gpt-5", messages=asked(), stream=True) as stream:
                    await anext(stream)
            return c.turn

        assert chat.texts(run(test)) == (QUESTION, None)

    def test_each_task_has_its_own_conversation(self, provider, chat, run):
        for _ in range(2):
            provider.reply(completion(ANSWER))

        async def test(client):
            async def talk(name):
                with conversation(f"{chat.id}-{name}") as c:
                    await client.chat.completions.create(model="gpt-5", messages=asked(f"I am {name}"))
                return c.turn

            return await asyncio.gather(talk("a"), talk("b"))

        for name, turn in zip("ab", run(test), strict=True):
            assert chat.texts(turn, f"{chat.id}-{name}") == (f"I am {name}", ANSWER)

    def test_a_conversation_may_be_left_in_another_context(self, chat):
        async def talk():
            with conversation(chat.id):
                yield

        async def test():
            talking = talk()
            await asyncio.create_task(anext(talking))
            await talking.aclose()

        asyncio.run(test())
