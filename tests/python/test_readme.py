"""The examples of clients/python/README.md, run as a reader pastes them, do what the page says."""

import contextlib
import pathlib
import re
import signal

import pytest
from bundle import PATIENCE, TENANT, eventually
from hearback import AsyncHearback, Hearback
from integration_fixtures import provider  # noqa: F401
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from support_bundle import PROJECT

PAGE = (pathlib.Path(__file__).parents[2] / "clients/python/README.md").read_text()
BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>\S.*) -->\n)?```python\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE)
USER = "user-123"
QUESTION = "Can I return an item?"
ANSWER = "Within 14 days."
CORRECTION = "No, I meant online orders"


def sections():
    """The blocks that run, by the heading above them."""
    pieces = re.split(r"(?:\A|^#)# (.+)$", PAGE, flags=re.MULTILINE)
    found = {heading: list(BLOCK.finditer(text)) for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    code = {heading: [block["code"] for block in blocks if not block["why"]] for heading, blocks in found.items()}
    return {heading: blocks for heading, blocks in code.items() if blocks}


@pytest.fixture
def back_end(bundle, monkeypatch):
    """A client with the settings of the page's reader."""
    monkeypatch.setenv("HEARBACK_URL", bundle.url)
    monkeypatch.setenv("HEARBACK_TOKEN", bundle.token("chat-bot", scope="feedback:on-behalf feedback:report"))
    monkeypatch.setenv("HEARBACK_TENANT", TENANT)
    for kind in (Hearback, AsyncHearback):
        # The machine may be busy.
        monkeypatch.setitem(kind.__init__.__kwdefaults__, "patience", PATIENCE)
    with Hearback(strict=True) as back_end:
        yield back_end


@pytest.fixture
def run(back_end):
    """Runs the blocks of a section in one namespace, calls `after` with it after each, and returns it."""
    with contextlib.ExitStack() as clients:
        # A block of the page sets another.
        clients.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))

        def run(heading, after=lambda page: None, **given):
            prompts = []

            def generate(prompt):
                prompts.append(prompt)
                return ANSWER

            page = {"hb": Hearback(), "prompt": "Be brief.", "prompts": prompts, "generate": generate, **given}
            clients.enter_context(page["hb"])
            for number, code in enumerate(sections()[heading], 1):
                exec(compile(code, f"{heading}, block {number}", "exec"), page)
                clients.enter_context(page["hb"])
                after(page)
            assert page["hb"].flush(PATIENCE)
            assert page["hb"].stats.failed == 0
            return page

        yield run


@pytest.fixture
def stored(back_end):
    """Reads a turn."""

    def stored(conversation_id, turn):
        at = {"tenant": TENANT, "project": PROJECT, "conversation_id": conversation_id, "turn_id": turn.id}
        return back_end.api.get_turn(**at)

    return stored


def texts(turn):
    return turn["user"]["text"], turn["assistant"]["text"]


def register(back_end, conversation_id, *texts, **members):
    return back_end.project(PROJECT).conversation(conversation_id, **members).register(*texts)


def test_the_first_lines_use_the_correction(run, back_end, stored):
    register(back_end, "chat-1", QUESTION, "In the shop.")
    page = run("hearback for Python")
    assert CORRECTION in page["turn"].context
    assert page["prompts"] == ["Be brief." + page["turn"].context]
    assert texts(stored("chat-1", page["turn"])) == (CORRECTION, ANSWER)


def test_a_turn(run, stored):
    page = run("Turns")
    turn = stored("chat-2", page["turn"])
    assert texts(turn) == ("How do I return an item?", ANSWER)
    assert turn["user_id"] == USER
    assert turn["labels"] == {"model": "m-1", "prompt_version": "v7"}
    assert turn["assistant"]["message_id"] == page["turn"].message_id


def test_reactions_are_stored_and_counted(run, back_end, stored):
    page = run("Reactions and receipts")
    assert page["receipt"].status == "processed"
    assert stored("chat-3", page["turn"])["satisfaction_rate"] == 1
    conversation = {"tenant": TENANT, "project": PROJECT, "conversation_id": "chat-3"}
    report = back_end.api.list_turns_with_feedback(**conversation, body={"user_id": USER})
    assert [turn["turn_id"] for turn in report["turns"]] == [page["turn"].id]


def test_an_event_counts_for_its_turn(run, back_end):
    page = run("Events")
    record = back_end.api.get_feedback(feedback_id=page["receipt"].wait(PATIENCE, processed=True).id)
    assert record["event"]["data"]["rating"] == 5
    assert record["counted"] == {"turn": page["turn"].id, "as": "ok"}


def test_the_background_is_delivered(run, back_end):
    page = run("The background")
    assert page["delivered"]
    assert page["hb"].stats.pending == 0
    assert register(page["hb"], "chat-9", QUESTION, ANSWER).receipt.status == "dropped"


def test_asyncio(run, stored):
    page = run("asyncio")
    assert texts(stored("chat-5", page["turn"])) == ("How do I return an item?", ANSWER)


def test_an_operation_and_its_error(run, back_end, capsys):
    register(back_end, "chat-9", QUESTION, ANSWER, labels={"model": "m-9"}).ok()
    eventually(lambda: "m-9" in [group["value"] for group in run("Every operation")["report"]["groups"]])
    assert "404 not_found" in capsys.readouterr().out


def test_lists_and_the_feed(run, back_end):
    turn = register(back_end, "chat-10", QUESTION, ANSWER)
    receipt = turn.not_ok("too long").wait(PATIENCE, processed=True)
    # Both lag a moment behind.
    eventually(lambda: receipt.id in [message.event.get("feedbackId") for message in back_end.feed()])
    eventually(lambda: turn.id in run("Lists and the feed")["rejected"])
    assert run("Lists and the feed")["cursor"]


def test_a_test_with_the_stand_in(run):
    run("Your own tests")["test_the_prompt_has_the_correction"]()


def test_the_integrations(run, stored, provider, monkeypatch):
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_BASE_URL", provider.url)
        monkeypatch.setenv(f"{name}_API_KEY", "key")
    message = {"role": "assistant", "content": "of OpenAI"}
    provider.reply({"model": "gpt-5", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    content = [{"type": "text", "text": "of Anthropic"}]
    provider.reply({"model": "claude", "content": content, "stop_reason": "end_turn"})
    chat_model = GenericFakeChatModel(messages=iter([AIMessage("of LangChain")]))
    turns = []
    run("Integrations", after=lambda page: turns.append(page["c"].turn), chat_model=chat_model)
    for conversation_id, turn, answer in zip(
        ("chat-6", "chat-7", "chat-8"), turns, ("of OpenAI", "of Anthropic", "of LangChain"), strict=True
    ):
        assert texts(stored(conversation_id, turn)) == (QUESTION, answer)
    first = stored("chat-6", turns[0])
    assert first["labels"] == {"model": "gpt-5", "prompt_version": "v7"}
    assert [each["reaction"]["reaction"] for each in first["reactions"]] == ["ok"]


def test_every_section_is_run_by_a_test():
    source = pathlib.Path(__file__).read_text()
    assert set(re.findall(r'\brun\("(.+?)"', source)) == set(sections())
