"""Replies that break off, are cut, are left, or cannot be stored: nothing is lost silently, nothing is paid twice."""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reply_rig import (
    asks,
    chat,
    counted,
    gathered,
    last,
    recalling,
    replying,
    text_of,
    until_broken,
    until_nothing_waits,
)
from roomlore import (
    BadModelOutput,
    BudgetTooSmall,
    Conflict,
    InvalidInput,
    Message,
    ModelUnavailable,
    ReplyStarted,
    ReplyText,
    Role,
    StorageUnavailable,
    Tool,
    ToolCall,
)
from roomlore.core.errors import StorageDamaged
from roomlore.core.replies.reply import REPLY
from roomlore.services.replies import ReplyService
from roomlore.services.replies.deferred import Deferred
from roomlore_testkit.model_server import Break, Fails, Hangs, Says
from session_rig import summarise_all

BROKEN = Says(pieces=["Gre", "en, ", "I ", "say"], breaks=Break(after=2))


async def stored(lore):
    return [(m.role, m.text) for m in await lore.messages.page("r")]


@pytest.mark.parametrize(
    ("question", "said", "reason", "closing"),
    [
        ("Green or black tea?", "Green tea is", "length", "(The answer was too long and ends here.)"),
        ("绿茶还是红茶？", "绿茶是", "length", "（回答太长，到这里为止。）"),
        ("Green or black tea?", "", "content_filter", "Sorry, I would rather not talk about this."),
        ("绿茶还是红茶？", "", "content_filter", "抱歉，这个话题我不太方便聊。"),
    ],
)
async def test_an_answer_that_is_cut_ends_politely(question, said, reason, closing):
    async with replying([Says(text=said, finish_reason=reason)]) as (lore, _):
        events = await gathered(lore, asks(question))
        whole = f"{said}\n\n{closing}" if said else closing
        assert text_of(events) == last(events).text == whole
        assert last(events).finish_reason == reason
        assert await stored(lore) == [(Role.USER, question), (Role.ASSISTANT, whole)]
        assert counted(lore, f'roomlore_replies_total{{result="{reason}"}}') == 1


async def test_the_closing_words_are_settings():
    script = [Says(text="Green", finish_reason="length"), Says(text="", finish_reason="content_filter")]
    async with replying(script, length_text="(cut)", content_filter_text="(no)") as (lore, _):
        assert (await lore.replies.reply(asks())).text == "Green\n\n(cut)"
        assert (await lore.replies.reply(asks(message_id="q2"))).text == "(no)"


@pytest.mark.parametrize("letter", ["t", "茶", "👩‍👩‍👧‍👦", "e\u0301\u0302"])
async def test_an_answer_without_end_ends_where_it_can_still_be_stored(letter):
    endless = Says(pieces=[letter * 30] * 2000, between=0.001)
    async with replying([endless], max_text_chars=3000, length_text="(cut)") as (lore, server):
        events = await gathered(lore, asks())
        reply = last(events)
        assert text_of(events) == reply.text
        assert reply.finish_reason == "length"
        said = reply.text.removesuffix("\n\n(cut)")
        assert said == letter * (len(said) // len(letter))
        assert 1900 < len(reply.text) <= 3000
        assert server.requests[0].answered_at is None
        assert (await lore.replies.reply(asks())).text == reply.text


async def test_what_breaks_off_is_kept_beside_and_the_message_can_be_replied_to_again():
    async with replying([BROKEN, "Green."]) as (lore, server):
        seen, error = await until_broken(lore.replies.stream(asks()))
        assert isinstance(error, ModelUnavailable)
        assert text_of(seen) == "Green, "
        _, part = await lore.messages.page("r")
        assert (part.text, part.reply_to, part.turn_id, part.role) == ("Green, ", "q", "q", Role.ASSISTANT)
        assert part.metadata[REPLY]["broken_off"] == "failed"
        reply = await lore.replies.reply(asks())
        assert (reply.text, reply.repeated) == ("Green.", False)
        assert chat(server.requests[-1]) == [("user", "Green or black tea?")]
        assert await stored(lore) == [
            (Role.USER, "Green or black tea?"),
            (Role.ASSISTANT, "Green, "),
            (Role.ASSISTANT, "Green."),
        ]
        assert (await lore.replies.reply(asks())).repeated
        assert counted(lore, 'roomlore_replies_total{result="failed"}') == 1


async def test_later_prompts_show_a_broken_attempt_only_until_there_is_a_reply():
    async with replying([BROKEN, "One.", "Green.", "Two."]) as (lore, server):
        await until_broken(lore.replies.stream(asks()))
        await lore.replies.reply(asks("And?", "q1", reply_to="q"))
        assert ("assistant", "Green,") in chat(server.requests[1])
        await lore.replies.reply(asks())
        await lore.replies.reply(asks("And then?", "q2", reply_to="q"))
        said = "\n".join(text for role, text in chat(server.requests[3]) if role == "assistant")
        assert "Green." in said
        assert "Green," not in said


async def test_what_breaks_off_before_its_first_word_leaves_the_message_alone():
    async with replying([Fails(status=500)]) as (lore, _):
        with pytest.raises(ModelUnavailable):
            await lore.replies.reply(asks())
        assert await stored(lore) == [(Role.USER, "Green or black tea?")]


@pytest.mark.parametrize("first", [Fails(status=500), Hangs(), Says(text=""), Says(pieces=[" ", "\n"])])
async def test_the_next_provider_answers_where_the_first_does_not(first):
    async with replying([first], ["Green."], model_timeout_seconds=2) as (lore, _):
        reply = await lore.replies.reply(asks())
        assert reply.text == "Green."
        assert reply.provider == "p1"


async def test_a_stream_that_hangs_amid_its_text_breaks_off():
    hanging = replace(BROKEN, breaks=Break(after=2, how="hang"))
    async with replying([hanging], ["Never."], model_timeout_seconds=2) as (lore, _):
        with pytest.raises(ModelUnavailable):
            await lore.replies.reply(asks())
        assert (await stored(lore))[-1] == (Role.ASSISTANT, "Green, ")


async def test_an_empty_answer_is_an_error_and_no_message():
    async with replying([Says(pieces=[" ", "\n"])]) as (lore, _):
        with pytest.raises((BadModelOutput, ModelUnavailable)):
            await lore.replies.reply(asks())
        assert await stored(lore) == [(Role.USER, "Green or black tea?")]


async def test_what_a_consumer_saw_who_leaves_is_kept():
    slow = Says(pieces=["Green, ", "I ", "say"], between=0.2)
    async with replying([slow, "Green."]) as (lore, server):
        async with aclosing(lore.replies.stream(asks())) as events:
            async for event in events:
                if isinstance(event, ReplyText):
                    break
        part = (await lore.messages.page("r"))[-1]
        assert (part.text, part.metadata[REPLY]["broken_off"]) == ("Green, ", "abandoned")
        assert server.requests[0].answered_at is None
        assert (await lore.replies.reply(asks())).text == "Green."
        assert counted(lore, 'roomlore_replies_total{result="abandoned"}') == 1


async def test_a_call_that_is_cancelled_keeps_what_was_said_and_ends_the_request():
    slow = Says(pieces=["Green, ", "I ", "say"], between=0.3)
    async with replying([slow]) as (lore, server):
        said = asyncio.Event()

        async def read():
            async for event in lore.replies.stream(asks()):
                if isinstance(event, ReplyText):
                    said.set()

        reading = asyncio.create_task(read())
        await said.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert (await stored(lore))[-1] == (Role.ASSISTANT, "Green, ")
        assert server.requests[0].answered_at is None


@pytest.fixture
def closes_soon(monkeypatch) -> None:
    """What cannot be stored is not waited for at the end."""
    monkeypatch.setattr("roomlore.services.replies.request._CLOSE_SECONDS", 0.2)


class _Slow:
    """Stores messages a while after it is asked to, or not at all."""

    def __init__(self, messages, *, fails: bool | Exception = False) -> None:
        self._messages = messages
        self._fails = StorageUnavailable("The disk is full.") if fails is True else fails
        self.asked = asyncio.Event()

    async def add(self, messages):
        if messages[0].role is Role.USER:
            return await self._messages.add(messages)
        self.asked.set()
        await asyncio.sleep(0.1)
        if self._fails:
            raise self._fails
        return await self._messages.add(messages)


def storing(lore, messages) -> ReplyService:
    return ReplyService(
        tenant=lore.tenant,
        parts=lore._resources.replies,
        messages=messages,
        contexts=lore.context,
        sessions=lore.sessions,
    )


async def test_a_reply_that_is_being_stored_is_stored_though_nobody_waits():
    async with replying(["Green."]) as (lore, _):
        slow = _Slow(lore.messages)
        replying_ = asyncio.create_task(storing(lore, slow).reply(asks()))
        await slow.asked.wait()
        replying_.cancel()
        with pytest.raises(asyncio.CancelledError):
            await replying_
        assert await stored(lore) == [(Role.USER, "Green or black tea?"), (Role.ASSISTANT, "Green.")]
        assert (await lore.replies.reply(asks())).repeated


async def test_of_two_processes_the_faster_one_replies(sqlite_url):
    async with replying(["Green."], url=sqlite_url) as (lore, _), replying(["Black."], url=sqlite_url) as (other, _):
        slow = lore.replies.stream(asks())
        await anext(slow)
        assert (await other.replies.reply(asks())).text == "Black."
        seen, error = await until_broken(slow)
        assert isinstance(error, Conflict)
        assert "ask again" in str(error)
        assert text_of(seen) == "Green."
        assert (await lore.replies.reply(asks())).text == "Black."
        assert len(await lore.messages.page("r")) == 2


async def test_two_that_store_the_same_message_at_once_agree(sqlite_url):
    async with replying(["Green."], url=sqlite_url) as (lore, _), replying(["Black."], url=sqlite_url) as (other, _):
        both = await asyncio.gather(lore.replies.reply(asks(), agent_id="a"), other.replies.reply(asks(), agent_id="b"))
        assert [reply.text for reply in both] == ["Green.", "Black."]
        assert len(await lore.messages.page("r")) == 3


@pytest.mark.usefixtures("closes_soon")
async def test_a_reply_says_that_its_text_is_stored_later():
    async with replying(["Green."]) as (lore, _):
        seen, error = await until_broken(storing(lore, _Slow(lore.messages, fails=True)).stream(asks()))
        assert error is None
        assert str(last(seen).degraded).endswith("if the process lives. The disk is full.")
        assert text_of(seen) == "Green."


@pytest.mark.usefixtures("closes_soon")
async def test_a_reply_that_waits_for_the_database_is_given_again_and_no_model_is_asked():
    async with replying(["Green.", "Black."]) as (lore, server):
        full = storing(lore, _Slow(lore.messages, fails=True))
        await until_broken(full.stream(asks()))
        again = last((await until_broken(full.stream(asks())))[0])
        assert (again.text, again.repeated, len(server.requests)) == ("Green.", True, 1)
        assert "if the process lives" in str(again.degraded)


def deferred(room_id: str, message_id: str) -> Deferred:
    asked = asks(message_id=message_id, room_id=room_id)
    return Deferred(asked, "assistant", [asked])


async def test_what_waits_for_a_room_is_stored_together_and_does_not_wait_for_another_room():
    async with replying([]) as (lore, _):
        later, stored, held = lore._resources.replies.later, asyncio.Queue[list[str]](), asyncio.Event()

        async def write(waited):
            if waited[0].asked.room_id == "slow":
                await held.wait()
            stored.put_nowait([one.asked.id for one in waited])

        for room, place in (("slow", "1"), ("slow", "2"), ("r", "3"), ("r", "4")):
            later.add(lore.tenant, deferred(room, place), write)
        async with asyncio.timeout(20):
            assert await stored.get() == ["3", "4"]
            later.add(lore.tenant, deferred("slow", "5"), write)
            held.set()
            assert [await stored.get() for _ in range(2)] == [["1", "2"], ["5"]]


@pytest.mark.parametrize("error", [Conflict("It is stored already."), ValueError("nobody foresaw this")])
async def test_one_message_that_cannot_be_stored_keeps_back_no_other_that_waits(error):
    async with replying([]) as (lore, _):
        later, stored = lore._resources.replies.later, asyncio.Queue[str]()

        async def write(waited):
            if any(one.asked.id == "2" for one in waited):
                raise error
            for one in waited:
                stored.put_nowait(one.asked.id)

        for number in range(5):
            later.add(lore.tenant, deferred("r", str(number)), write)
        async with asyncio.timeout(20):
            assert [await stored.get() for _ in range(4)] == ["0", "1", "3", "4"]
        assert counted(lore, 'roomlore_replies_stored_later_total{result="refused"}') == 1


async def waited(lore, *batch: Deferred) -> list[tuple[str, str]]:
    """Who said what in the room, after this has waited for the database."""
    for one in batch:
        lore._resources.replies.later.add(lore.tenant, one, lore.replies._store._write_later)
    await until_nothing_waits(lore)
    return [(message.sender_id, message.text) for message in await lore.messages.page("r")]


def asked_and_answered(agents=("assistant",), **given) -> list[Deferred]:
    """What waits after a question that each agent answered."""
    asked = asks(**given)
    dated = replace(asked, sent_at=datetime(2026, 3, 1, tzinfo=UTC), turn_id=asked.id)
    answers = [
        replace(dated, id=f"{asked.id}-{agent}", sender_id=agent, role=Role.ASSISTANT, text="Green.", reply_to=asked.id)
        for agent in agents
    ]
    return [
        Deferred(asked, agents[0], [dated]),
        *(Deferred(dated, one.sender_id, [one]) for one in answers),
    ]


@pytest.mark.parametrize("session", [False, True])
async def test_what_two_agents_answered_without_the_database_is_stored_in_order(session):
    async with replying([]) as (lore, _):
        if session:
            await lore.sessions.create_session("r", "ann")
        said = await waited(
            lore, *asked_and_answered(("a", "b"), message_id="q1"), *asked_and_answered(message_id="q2")
        )
        assert [sender for sender, _ in said] == ["ann", "a", "b", "ann", "assistant"]


async def test_a_question_that_was_stored_before_it_waited_is_stored_once_with_its_answer():
    async with replying([]) as (lore, _):
        await lore.messages.add([replace(asks(message_id="q1"), sent_at=datetime(2026, 2, 28, tzinfo=UTC))])
        assert [sender for sender, _ in await waited(lore, *asked_and_answered(message_id="q1"))] == [
            "ann",
            "assistant",
        ]
        assert counted(lore, 'roomlore_replies_stored_later_total{result="stored"}') == 2


async def test_a_question_is_stored_after_what_waits_for_its_room(monkeypatch):
    """Though the next attempt to store it would come in a minute."""
    monkeypatch.setattr("roomlore.services.replies.deferred._FIRST_PAUSE_SECONDS", 60)
    async with replying(["Mild."]) as (lore, _):
        later, failed = lore._resources.replies.later, asyncio.Event()

        async def write(waited):
            if not failed.is_set():
                failed.set()
                raise StorageUnavailable("The database is down.")
            await lore.replies._store._write_later(waited)

        for one in asked_and_answered(message_id="q1"):
            later.add(lore.tenant, one, write)
        await failed.wait()
        reply = await lore.replies.reply(asks("Why?", "q2"))
        assert reply.degraded is None
        assert [message.text for message in await lore.messages.page("r")] == [
            "Green or black tea?",
            "Green.",
            "Why?",
            "Mild.",
        ]


@pytest.mark.parametrize("stored", ["deleted", "another question"])
async def test_an_answer_is_not_stored_without_the_question_that_it_answers(stored):
    async with replying([]) as (lore, _):
        await lore.messages.add([asks("Something else", "q1")])
        if stored == "deleted":
            await lore.messages.delete("r", "q1")
        said = await waited(lore, *asked_and_answered(message_id="q1"), *asked_and_answered(message_id="q2"))
        assert said[-2:] == [("ann", "Green or black tea?"), ("assistant", "Green.")]
        assert len(said) == (2 if stored == "deleted" else 3)
        assert counted(lore, 'roomlore_replies_stored_later_total{result="refused"}') == 2


class _Down:
    async def add(self, _):
        await asyncio.sleep(0.05)
        raise StorageUnavailable("The database is down.")


@pytest.mark.usefixtures("closes_soon")
async def test_two_agents_that_are_asked_at_once_without_the_database_both_reply():
    async with replying(["Green.", "Black."]) as (lore, _):
        down = storing(lore, _Down())
        replies = await asyncio.gather(down.reply(asks(), agent_id="a"), down.reply(asks(), agent_id="b"))
        assert {reply.text for reply in replies} == {"Green.", "Black."}


async def test_what_is_dropped_while_it_waits_for_a_turn_is_not_stored(monkeypatch):
    monkeypatch.setattr("roomlore.services.replies.deferred.MAX_WAITING", 5)
    async with replying([]) as (lore, _):
        later, stored, held = lore._resources.replies.later, asyncio.Queue[str](), asyncio.Event()

        async def write(waited):
            await held.wait()
            for one in waited:
                stored.put_nowait(one.asked.id)

        for room in ("1", "2", "3", "4", "r"):
            later.add(lore.tenant, deferred(room, room), write)
        await asyncio.sleep(0)
        for number in range(5, 10):
            later.add(lore.tenant, deferred("r", str(number)), write)
        held.set()
        async with asyncio.timeout(20):
            assert [await stored.get() for _ in range(5)] == ["5", "6", "7", "8", "9"]
        await until_nothing_waits(lore)
        counts = [
            counted(lore, f'roomlore_replies_stored_later_total{{result="{result}"}}') for result in ("lost", "stored")
        ]
        assert counts == [5, 5]


async def test_if_too_much_waits_for_the_database_the_oldest_is_lost(monkeypatch):
    monkeypatch.setattr("roomlore.services.replies.deferred.MAX_WAITING", 3)
    async with replying([]) as (lore, _):
        later, stored, back = lore._resources.replies.later, asyncio.Queue[str](), asyncio.Event()

        async def write(waited):
            if not back.is_set():
                raise StorageUnavailable("The database is down.")
            for one in waited:
                stored.put_nowait(one.asked.id)

        for room, place in (("r", "1"), ("other", "2"), ("r", "3"), ("other", "4")):
            later.add(lore.tenant, deferred(room, place), write)
            await asyncio.sleep(0)
        assert [[one.id for one in later.of_room(lore.tenant, room)] for room in ("r", "other")] == [["3"], ["2", "4"]]
        back.set()
        async with asyncio.timeout(20):
            assert {await stored.get() for _ in range(3)} == {"2", "3", "4"}
        assert counted(lore, 'roomlore_replies_stored_later_total{result="lost"}') == 1


async def test_what_waits_when_the_process_is_closed_is_counted_as_lost(monkeypatch, caplog):
    monkeypatch.setattr("roomlore.services.replies.request._CLOSE_SECONDS", 0.05)
    async with replying([]) as (lore, _):

        async def write(_):
            raise StorageUnavailable("The database is down.")

        later = lore._resources.replies.later
        for room, place in (("r", "1"), ("other", "2"), ("r", "3")):
            later.add(lore.tenant, deferred(room, place), write)
        await asyncio.sleep(0)
        assert counted(lore, "roomlore_replies_waiting") == 3
        closing = asyncio.create_task(lore._resources.replies.background.close())
        await asyncio.sleep(0)
        later.add(lore.tenant, deferred("late", "4"), write)
        await closing
        assert counted(lore, 'roomlore_replies_stored_later_total{result="lost"}') == 4
        assert counted(lore, "roomlore_replies_waiting") == 0
    lost = sorted((one.room, one.waiting) for one in caplog.records if "was closed" in one.message)
    assert lost == [("late", 1), ("other", 1), ("r", 2)]


class _Flaky:
    """Fails to store what is no user's twice in a row, each time."""

    def __init__(self, messages) -> None:
        self._messages = messages
        self._failed = 0

    async def add(self, messages):
        if messages[0].role is Role.USER:
            return await self._messages.add(messages)
        self._failed += 1
        if self._failed % 3:
            raise StorageUnavailable("The connection was lost.")
        return await self._messages.add(messages)


async def test_what_was_paid_for_survives_a_moment_without_a_database():
    async def leaf(_: ToolCall) -> str:
        return "leaf"

    async with replying([Says(tool_calls=[ToolCall("c", "look", "{}")]), "Green."]) as (lore, server):
        flaky = storing(lore, _Flaky(lore.messages))
        assert (await flaky.reply(asks(), tools=[Tool("look")], call_tool=leaf)).text == "Green."
        assert len(server.requests) == 2
        assert [m.text for m in await lore.messages.page("r")] == ["Green or black tea?", "", "leaf", "Green."]


async def test_what_cannot_be_kept_of_a_broken_reply_is_in_the_log(caplog):
    async with replying([BROKEN]) as (lore, _):
        damaged = _Slow(lore.messages, fails=StorageDamaged("The disk is broken."))
        with caplog.at_level(logging.ERROR), pytest.raises(ModelUnavailable):
            await storing(lore, damaged).reply(asks())
        assert "was not stored" in caplog.text


async def test_a_model_that_breaks_off_after_tools_is_not_asked_for_them_again():
    calls = Says(text="Looking.", tool_calls=[ToolCall("c", "look", "{}")])
    asked_for = []

    async def look(call: ToolCall) -> str:
        asked_for.append(call)
        return "leaf"

    async with replying([calls, BROKEN, "Green."]) as (lore, server):
        with pytest.raises(ModelUnavailable):
            await lore.replies.reply(asks(), tools=[Tool("look")], call_tool=look)
        reply = await lore.replies.reply(asks(), tools=[Tool("look")], call_tool=look)
        assert reply.text == "Looking.\n\nGreen."
        assert len(asked_for) == 1
        assert len(server.requests) == 3
        assert [m.text for m in await lore.messages.page("r")][-2:] == ["Looking.\n\nGreen, ", "Looking.\n\nGreen."]


async def test_a_prompt_that_cannot_fit_is_refused_and_the_message_kept():
    async with replying(["Green."]) as (lore, server):
        with pytest.raises(BudgetTooSmall, match="model_context_window"):
            await lore.replies.reply(asks("tea " * 500), model_context_window=200)
        assert server.requests == []
        assert (await lore.replies.reply(asks("tea " * 500))).text == "Green."
        assert counted(lore, 'roomlore_replies_total{result="refused"}') == 1


async def test_a_summary_too_long_for_the_window_is_left_out():
    async with replying(["Green."]) as (lore, server):
        await lore.sessions.write_turn("r", "ann", "assistant", "I like tea.", "Good.")
        await summarise_all(lore, "r", "Ann likes tea very much. " * 40)
        events = await gathered(lore, asks(), model_context_window=300, max_tokens=50)
        assert isinstance(events[0], ReplyStarted)
        assert events[0].truncated
        assert events[0].prompt_tokens <= 250
        assert chat(server.requests[0])[-1] == ("user", "Green or black tea?")


class _Recall:
    name = "facts"

    def __init__(self, answer) -> None:
        self._answer = answer
        self.asked: list[dict] = []

    async def recall(self, **asked) -> str:
        self.asked.append(asked)
        if isinstance(self._answer, float):
            await asyncio.sleep(self._answer)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (RuntimeError("secret words"), "failed"),
        (StorageUnavailable(), "failed"),
        (60.0, "timeout"),
        (None, "failed"),
        ("too much " * 2000, "too_long"),
        ("", "nothing"),
    ],
)
async def test_a_hook_that_brings_nothing_is_left_out_and_never_an_error(answer, result, caplog):
    async with replying(["Green."], recall_timeout_seconds=2) as (lore, server):
        good = _Recall("Ann takes no sugar.")
        events = await gathered_from(recalling(lore, _Recall(answer), good))
        assert last(events).text == "Green."
        assert server.requests[0].body["messages"][-2]["content"] == "<memory>\nAnn takes no sugar.\n</memory>"
        assert counted(lore, f'roomlore_recalls_total{{recall="facts",result="{result}"}}') == 1
        assert counted(lore, 'roomlore_recalls_total{recall="facts",result="used"}') == 1
        assert ("goes without" in caplog.text) == (result != "nothing")
        assert "secret" not in caplog.text


async def gathered_from(replies):
    return [event async for event in replies.stream(asks())]


async def test_a_hook_sees_what_the_reply_sees_and_its_budget():
    async with replying(["Green."]) as (lore, _):
        await lore.messages.add(asks("Tea at four?", "1", "bob"))
        hook = _Recall("x")
        await recalling(lore, hook).reply(asks(reply_to="1"), agent_id="tea")
        (asked,) = hook.asked
        assert [m.id for m in asked["messages"]] == ["1", "q"]
        assert (asked["tenant"], asked["room_id"], asked["agent_id"]) == ("default", "r", "tea")
        assert asked["max_tokens"] == 2000


async def test_a_message_written_by_another_while_it_is_replied_to_does_no_harm():
    async with replying([Says(text="Green.", after=0.1)]) as (lore, _):
        reply = asyncio.create_task(lore.replies.reply(asks()))
        await asyncio.sleep(0.05)
        await lore.messages.add(Message(id="x", room_id="r", sender_id="bob", text="Wait!"))
        assert (await reply).text == "Green."


async def test_bad_results_do_not_store_the_answer_of_a_tool():
    async with replying([Says(tool_calls=[ToolCall("c", "look", "{}")])]) as (lore, _):
        with pytest.raises(InvalidInput):
            await lore.replies.reply(asks(), tools=[Tool("look")], tool_results=["x"])
        assert await lore.rooms.page() == []
