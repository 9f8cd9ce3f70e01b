"""Short memories: when they are made, of what, and what happens when a model or the store fails."""

import asyncio
import json
import logging
import time
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

import roomlore
from extraction_rig import (
    CHINESE,
    ENGLISH,
    MODEL,
    PATIENT,
    SOON,
    ask,
    both,
    conversations,
    extracted,
    mark,
    memories,
    opened,
    records,
    replies,
    reply,
    settings,
    talk,
    until,
    warnings_of,
    with_times,
)
from roomlore import Message, Role, Settings
from roomlore.adapters.inprocess import InProcessWork
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.chat import ChatAnswer
from roomlore.core.errors import ModelUnavailable, StorageUnavailable
from roomlore.core.memory.extraction import watermark
from roomlore.core.memory.memory import Action, MemoryKind, Source
from roomlore.core.text import graphemes
from roomlore.services.extraction.extraction_service import PROMPT, Extracted, MemorySummaries, _Answer
from roomlore.storage.work import Watermarks
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.model_server import Break, Drops, Fails, Hangs, ModelServer, Says, Sends

NO_USABLE_ANSWER = "a model provider gave no usable answer"
NO_MODEL = (
    "a memory holds sentences of its conversation, since no model summarised it;"
    " set up a model, or ignore this if you want none"
)


# What a memory is.


@both
async def test_every_fifth_reply_makes_a_memory_of_all_that_was_said_with_the_agent(said):
    async with ModelServer(default=said.summary) as server, opened(server) as lore:
        for n in range(1, 11):
            await replies(lore, said, 1, first=n)
            await extracted(lore)
            assert len(server.requests) == n // 5
        first, second = await memories(lore)
        for text, numbers in zip(conversations(server), (range(1, 6), range(6, 11)), strict=True):
            assert text == "\n".join(
                line for n in numbers for line in (f"Lin: {said.asks.format(n)}", f"bot: {said.replies.format(n)}")
            )
        assert second.sources == tuple(Source("r", name) for n in range(6, 11) for name in (f"q{n}-bot", f"a{n}-bot"))
        assert (first.statement, first.kind, first.scope, first.version) == (
            said.summary,
            MemoryKind.SHORT,
            "agent:bot",
            1,
        )
        assert (first.made_by, first.fallback, first.status) == ("first/tiny", False, "active")
        assert not first.statement.startswith("对话摘要")
        assert server.requests[0].body["max_tokens"] == 200


@both
async def test_its_record_says_what_it_was_made_of_and_by(said):
    async with ModelServer(default=f"  {said.summary}\n") as server, opened(server) as lore:
        await replies(lore, said, 5)
        await extracted(lore)
        (record,), (memory,) = await records(lore), await memories(lore)
        prompt = await PackagedPrompts().find("memory_summary", language="zh" if said is CHINESE else "en")
        assert (record.evolution_id, record.kind, record.status) == (memory.evolution_id, "extraction", "applied")
        assert (record.room_id, record.first_arrival, record.last_arrival, record.messages) == ("r", 1, 10, 10)
        assert (record.prompt_name, record.prompt_hash) == ("memory_summary", prompt.hash)
        assert (record.model, record.raw_answer) == ("first/tiny", f"  {said.summary}\n")
        assert (record.usage.input_tokens, record.usage.output_tokens) == (7, 3)
        async with lore.storage.reading("default") as work:
            (change,) = await work.memories.changes(scope="agent:bot", after=0, limit=9)
        assert (change.number, change.action, change.memory) == (1, Action.CREATE, memory)
        assert (change.actor, change.evolution_id) == ("first/tiny", record.evolution_id)
        assert await mark(lore) == 10
        assert server.requests[0].prompt == prompt.fill({"conversation": with_times(server.requests[0])})


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("记" * 150, "记" * 100),
        ("m" * 150, "m" * 100),
        ("👩‍👩‍👧‍👦" * 120, "👩‍👩‍👧‍👦" * 100),
        ("é" * 101, "é" * 100),
        ("中a" * 60, "中a" * 50),
        ("🇨🇳🇫🇷" * 55, "🇨🇳🇫🇷" * 50),
        ("  Anna pays.\n", "Anna pays."),
        ("<think>Who pays? 谁付？</think>\n\nAnna pays.", "Anna pays."),
    ],
)
async def test_at_most_a_hundred_characters_are_kept_and_none_is_cut(answer, kept):
    async with ModelServer(default=answer) as server, opened(server) as lore:
        await replies(lore, CHINESE, 5)
        await extracted(lore)
        (memory,) = await memories(lore)
    assert memory.statement == kept
    assert graphemes(memory.statement) <= 100


@both
async def test_an_answer_that_repeats_its_instructions_is_not_used(said):
    told = await PackagedPrompts().find(PROMPT, language="zh" if said is CHINESE else "en")
    echo = [line for line in told.text.splitlines() if len(line) > 40][-1]
    servers = ModelServer(default=echo), ModelServer(default=said.summary)
    async with servers[0], servers[1], opened(*servers) as lore:
        await replies(lore, said, 5)
        await extracted(lore)
        (memory,) = await memories(lore)
    assert (memory.statement, memory.made_by) == (said.summary, "second/tiny")


async def test_a_memory_stands_on_one_line():
    async with ModelServer(default="Lin dines at seven.\n- on Friday\r\n\ttoo") as server, opened(server) as lore:
        await replies(lore, ENGLISH, 5)
        await extracted(lore)
        (memory,) = await memories(lore)
    assert memory.statement == "Lin dines at seven. - on Friday too"


async def test_copied_lines_lose_their_times():
    copied = "[Tue 2026-11-24 05:46] Lin: dinner at seven\n[Tue 2026-11-24 05:47] bot: noted"
    async with ModelServer(default=copied) as server, opened(server) as lore:
        await replies(lore, ENGLISH, 5)
        await extracted(lore)
        (memory,) = await memories(lore)
    assert memory.statement == "Lin: dinner at seven bot: noted"


@pytest.mark.parametrize(
    "answer",
    [
        "NO_MEMORY",
        "无有效记忆",
        "无有效记忆。",
        "**NO_MEMORY**",
        "no_memory",
        "我看了一遍：无有效记忆",
        "There is NO_MEMORY here.",
        "No memory.",
        "無有效記憶。",
    ],
)
async def test_nothing_worth_keeping_is_not_kept(answer, caplog):
    caplog.set_level(logging.INFO, "roomlore")
    async with ModelServer(default=answer) as server, ModelServer() as other, opened(server, other) as lore:
        await replies(lore, ENGLISH, 5)
        await extracted(lore)
        assert await memories(lore) == []
        (record,) = await records(lore)
        assert (record.status, record.raw_answer, record.model) == ("nothing", answer, "first/tiny")
        assert await mark(lore) == 10
        assert (len(server.requests), other.requests) == (1, [])
        assert 'roomlore_extractions_total{result="nothing"} 1.0' in lore.prometheus().decode()
    assert ("INFO", "a model found nothing worth keeping") in [(r.levelname, r.getMessage()) for r in caplog.records]
    assert warnings_of(caplog) == []


async def test_the_model_ships_with_providers_and_is_hidden():
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        standings = {model.model_id: model for model in await lore.models.list_available_models(internal=True)}
        offers = [(provider.name, provider.model_id) for provider in standings[MODEL].providers]
        assert offers[:2] == [("openrouter", "google/gemma-3-12b-it"), ("siliconflow", "Qwen/Qwen2.5-7B-Instruct")]
        assert MODEL not in [model.model_id for model in await lore.models.list_available_models()]


# What can go wrong.


def is_fallback(memory, said) -> bool:
    talked = f"Lin: {said.asks.format(1)}\nbot: {said.replies.format(1)}"
    return memory.fallback and memory.made_by == "fallback" and memory.statement.startswith(f"对话摘要: {talked}")


@both
async def test_a_model_that_is_not_registered_is_a_fallback(said, caplog):
    given = Settings(models={MODEL: None}, durable_work="process")
    async with roomlore.open("sqlite://", settings=given) as lore:
        await replies(lore, said, 5)
        await extracted(lore)
        (memory,), (record,) = await memories(lore), await records(lore)
        assert is_fallback(memory, said)
        assert (record.model, record.prompt_name, record.raw_answer) == ("", "", "")
        assert 'roomlore_extractions_total{result="fallback"} 1.0' in lore.prometheus().decode()
    ((text, why),) = warnings_of(caplog, "why")
    assert text == NO_MODEL
    assert MODEL in why


@both
async def test_no_provider_with_a_key_is_a_fallback(said, caplog, monkeypatch):
    for name in ("OPENROUTER_API_KEY", "SILICONFLOW_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with roomlore.open("sqlite://", settings=Settings(durable_work="process")) as lore:
        await replies(lore, said, 5)
        await extracted(lore)
        (memory,) = await memories(lore)
        assert is_fallback(memory, said)
    ((text, why),) = warnings_of(caplog, "why")
    assert text == NO_MODEL
    assert "OPENROUTER_API_KEY or SILICONFLOW_API_KEY" in why


async def test_the_log_says_once_that_no_model_answers_and_once_that_one_does_again(caplog):
    caplog.set_level(logging.INFO)
    answers = [None, None, None, None, "Ann moves to Oslo.", "Ann moves to Oslo.", None]

    class Models:
        async def complete(self, *_, **__):
            if (text := answers.pop(0)) is None:
                raise ModelUnavailable
            return ChatAnswer(text=text, provider="p", model_id="m")

    summaries = MemorySummaries(models=Models(), prompts=PackagedPrompts(), timeout_seconds=5)
    made = [await summaries.of("Ann: I move to Oslo.") for _ in range(3)]
    made.append(await summaries.merged("Ann moves. Ann moves to Oslo."))
    made += [await summaries.of("Ann: I move to Oslo.") for _ in range(3)]
    assert [one.is_fallback for one in made] == [True] * 4 + [False] * 2 + [True]
    told = [record.message for record in caplog.records if record.name.endswith("extraction_service")]
    assert told == [NO_MODEL, "a model makes short memories again", NO_MODEL]


TROUBLES = {
    "time-out": (Hangs(), "timeout"),
    "slow": (Says(text="too late to be of use", after=60), "timeout"),
    "cut": (Drops(), "dropped"),
    "error": (Fails(status=500), "broken"),
    "down": (Fails(status=503), "broken"),
    "limited": (Fails(status=429, headers={"retry-after": "60"}), "limited"),
    "no key": (Fails(status=401), "refused"),
    "garbage": (Sends(body=b"\xff\xfe<html>"), "broken"),
    "not an answer": (Sends(body=b'["well", 1]'), "broken"),
    "cut in the middle": (Says(text="half of an answer", breaks=Break(how="drop")), "dropped"),
    "half of it": (Says(text="half of an answer", breaks=Break(how="end")), "broken"),
    "empty": (Says(text=""), "broken"),
    "null": (Says(content=None), "broken"),
    "blank": (Says(text=" \n\t　"), "broken"),
    "too short": (Says(text="ok"), "unusable"),
    "too short in Chinese": (Says(text=" 嗯，好的 "), "unusable"),
    "four emoji": (Says(text="👩‍👩‍👧‍👦" * 4), "unusable"),
    "thoughts alone": (Says(text="<think>Let me see what Anna said"), "unusable"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_the_next_provider_is_asked_where_one_fails(trouble, caplog):
    answer, cause = TROUBLES[trouble]
    said = CHINESE if "Chinese" in trouble else ENGLISH
    async with ModelServer(default=answer) as bad, ModelServer(default=said.summary) as good:
        async with opened(bad, good, seconds=SOON if cause == "timeout" else PATIENT) as lore:
            await replies(lore, said, 5)
            await extracted(lore)
            (memory,) = await memories(lore)
        assert (memory.statement, memory.made_by, memory.fallback) == (said.summary, "second/tiny", False)
        read = conversations(bad)
        assert read == conversations(good)[: len(read)]
        assert read or cause == "timeout", "time may be over before a busy machine has sent the request"
    warned = warnings_of(caplog, "model", "provider", "attempt", "cause")
    assert warned == [(NO_USABLE_ANSWER, MODEL, "first", 1, cause)]
    told = "".join(str(vars(record)) for record in caplog.records)
    assert said.replies.format(5) not in told


@both
async def test_a_provider_that_is_not_there_is_passed_over(said, caplog):
    async with ModelServer() as gone, ModelServer(default=said.summary) as good:
        await gone.stop()
        async with opened(gone, good) as lore:
            await replies(lore, said, 5)
            await extracted(lore)
            (memory,) = await memories(lore)
    assert memory.made_by == "second/tiny"
    assert warnings_of(caplog, "provider", "attempt", "cause") == [(NO_USABLE_ANSWER, "first", 1, "unreachable")]


@both
async def test_where_all_fail_the_beginning_is_kept_and_flagged(said, caplog):
    async with (
        ModelServer(default=Hangs()) as one,
        ModelServer(default=Fails(status=500)) as two,
        opened(one, two, seconds=SOON) as lore,
    ):
        long = said.long * 2
        await lore.messages.add([ask(1, long), reply(1, said.replies.format(1)), *talk(said, range(2, 6))])
        await extracted(lore)
        (memory,), (record,) = await memories(lore), await records(lore)
        assert memory.statement == f"对话摘要: Lin: {long}"[:206]
        assert (memory.fallback, memory.made_by, record.status) == (True, "fallback", "applied")
        assert [source.message_id for source in memory.sources] == [
            name for n in range(1, 6) for name in (f"q{n}-bot", f"a{n}-bot")
        ]
        async with lore.storage.reading() as work:
            flagged = await work.memories.fallbacks(after=None, limit=9)
        assert flagged == [("default", memory)]
    attempts = [(*warned[:3],) for warned in warnings_of(caplog, "provider", "attempt")]
    assert attempts == [(NO_USABLE_ANSWER, "first", 1), (NO_USABLE_ANSWER, "second", 2), (NO_MODEL, None, None)]


@pytest.mark.parametrize("character", ["记", "m", "👩‍👩‍👧‍👦", "é", "🇨🇳"])
async def test_a_fallback_cuts_no_character_and_a_short_talk_is_whole(character):
    async with ModelServer(default=Fails()) as server, opened(server, extract_every=1) as lore:
        await lore.messages.add(reply(1, character * 300))
        await lore.messages.add(reply(2, character * 50))
        await extracted(lore)
        long, short = [memory.statement for memory in await memories(lore)]
        assert sorted([long, short]) == sorted(
            ["对话摘要: bot: " + character * 195, "对话摘要: bot: " + character * 50]
        )
        assert [graphemes(text) for text in sorted([long, short], key=len)] == [61, 206]


async def test_an_answer_that_nobody_foresaw_is_a_fallback_too(caplog, monkeypatch):
    def broken(_: str, **__: str) -> None:
        raise KeyError("小明 said something")

    monkeypatch.setattr("roomlore.services.extraction.extraction_service.kept", broken)
    async with ModelServer(default=CHINESE.summary) as server, opened(server) as lore:
        await replies(lore, CHINESE, 5)
        await extracted(lore)
        (memory,) = await memories(lore)
        assert memory.fallback
        assert len(server.requests) == 1
    assert warnings_of(caplog, "why") == [(NO_MODEL, "KeyError")]


@both
async def test_storing_that_fails_loses_neither_the_reply_nor_the_memory(said, caplog, monkeypatch):
    from roomlore.storage.memory_log import MemoryLog

    apply, down = MemoryLog.apply, [True]

    async def failing(self, **given) -> None:
        if down[0]:
            raise StorageUnavailable("The disk is full.")
        await apply(self, **given)

    monkeypatch.setattr(MemoryLog, "apply", failing)
    monkeypatch.setattr("roomlore.services.extraction.extraction_service._LOOK_AGAIN_SECONDS", 0.2)
    async with ModelServer(default=said.summary) as server, opened(server) as lore:
        await replies(lore, said, 5)

        async def warned() -> bool:
            return bool(warnings_of(caplog))

        await until(warned)
        assert (await lore.messages.get("r", "a5-bot")).message.text == said.replies.format(5)
        assert (await memories(lore), await records(lore), await mark(lore)) == ([], [], 0)
        down[0] = False
        await extracted(lore)
        (memory,) = await memories(lore)
        assert (memory.statement, len(server.requests)) == (said.summary, 1)
    warned, full = set(warnings_of(caplog, "kind", "why")), "StorageUnavailable: The disk is full."
    assert warned == {(f"an attempt at durable work failed: {full}", "extraction", full)}


# What a reply waits for.


async def test_a_room_that_fails_each_time_keeps_no_other_back(monkeypatch):
    """More rooms than are looked at together, and the one that fails is always the first of them."""
    start = InProcessWork.start

    async def fails_for_one(self, name, *, work_id, partition, arguments):
        if arguments["room_id"] == "bad":
            raise StorageUnavailable("There is no room for this one.")
        return await start(self, name, work_id=work_id, partition=partition, arguments=arguments)

    monkeypatch.setattr(InProcessWork, "start", fails_for_one)
    async with ModelServer(default=ENGLISH.summary) as server, opened(server, extract_every=1) as lore:
        rooms = ["bad", *(f"r{n}" for n in range(60))]
        await lore.messages.add([reply(1, "Friday at seven.", room) for room in rooms])

        async def all_made() -> bool:
            return len(await records(lore)) == 60

        await until(all_made)


@both
async def test_writing_a_reply_does_not_wait_for_a_model_that_hangs(said):
    async with ModelServer(default=Hangs()) as server, opened(server, seconds=600, extract_every=1) as lore:
        await replies(lore, said, 1)

        async def hanging() -> bool:
            return bool(server.requests)

        await until(hanging)
        begun = time.monotonic()
        for n in range(2, 12):
            await replies(lore, said, 1, first=n)
            await lore.sessions.write_turn("talk", "u1", "bot", said.asks.format(n), said.replies.format(n))
        assert time.monotonic() - begun < 60
        assert server.requests[0].left_at is None
        server.default = said.summary
        # What hangs is broken off here, so that closing does not wait for it.
        await server.stop()
        await server.start()


async def test_a_broken_summariser_never_reaches_who_writes(monkeypatch):
    async def broken(self, conversation: str) -> None:
        raise RuntimeError

    monkeypatch.setattr("roomlore.services.extraction.extraction_service.MemorySummaries.of", broken)
    async with ModelServer() as server, opened(server, extract_every=1) as lore:
        for n in range(1, 6):
            report = await lore.messages.add(reply(n, "好的"))
            assert report.added == (f"a{n}-bot",)
            await asyncio.sleep(0.02)
        turn = await lore.sessions.write_turn("s", "u1", "bot", "在吗", "在")
        assert len(turn.message_ids) == 2


# What counts.


async def test_a_turn_of_a_session_counts():
    async with ModelServer(default=CHINESE.summary) as server, opened(server) as lore:
        for n in range(1, 11):
            await lore.sessions.write_turn("s", "u1", "doctor", f"问{n}", f"答{n}")
        await extracted(lore)
        assert len(await memories(lore, "doctor")) == 2
        assert [text.splitlines() for text in conversations(server)] == [
            [line for n in numbers for line in (f"u1: 问{n}", f"doctor: 答{n}")]
            for numbers in (range(1, 6), range(6, 11))
        ]


@pytest.mark.parametrize("size", [1, 7, 100])
async def test_replies_count_however_many_come_in_one_call(size):
    async with ModelServer(default=ENGLISH.summary) as server, opened(server) as lore:
        everything = [reply(n, f"reply {n}") for n in range(1, 101)]
        for at in range(0, 100, size):
            await lore.messages.add(everything[at : at + size])
        await extracted(lore)
        made = await records(lore)
        assert [(record.first_arrival, record.last_arrival) for record in made] == [
            (n, n + 4) for n in range(1, 101, 5)
        ]
        assert len(server.requests) == len(await memories(lore)) == 20
        assert await mark(lore) == 100


@pytest.mark.parametrize(("every", "made"), [(1, 10), (3, 3), (5, 2), (11, 0), (0, 0)])
async def test_how_often_is_a_setting(every, made):
    async with ModelServer(default=ENGLISH.summary) as server, opened(server, extract_every=every) as lore:
        await replies(lore, ENGLISH, 10)
        await extracted(lore)
        assert len(await memories(lore)) == len(server.requests) == made
        assert all(len(text.splitlines()) == 2 * every for text in conversations(server))


async def test_agents_and_rooms_and_tenants_are_counted_apart():
    async with ModelServer(default=ENGLISH.summary) as server, opened(server) as lore:
        other = lore.for_tenant("other")
        for n in range(1, 6):
            await replies(lore, ENGLISH, 1, first=n, agent="anna")
            await replies(lore, ENGLISH, 1, first=n, agent="bob")
        await replies(lore, ENGLISH, 4, room="second", agent="anna")
        await replies(other, ENGLISH, 5, agent="anna")
        await extracted(lore)
        assert [len(await memories(lore, name)) for name in ("anna", "bob")] == [1, 1]
        assert len(await memories(other, "anna")) == 1
        assert await mark(lore, "second", "anna") == 0
        assert len(server.requests) == 3
        await replies(lore, ENGLISH, 1, first=5, room="second", agent="anna")
        await extracted(lore)
        assert {record.room_id for record in await records(lore, "anna")} == {"r", "second"}
        ids = [memory.memory_id for memory in (*await memories(lore, "anna"), *await memories(other, "anna"))]
        assert len(set(ids)) == 3


async def test_only_replies_count():
    async with ModelServer(default=ENGLISH.summary) as server, opened(server, extract_every=2) as lore:
        said = {"room_id": "r", "sender_id": "bot", "text": "something"}
        await lore.messages.add([
            *(Message(id=f"call{n}", role=Role.ASSISTANT, has_tool_calls=True, **said) for n in range(5)),
            *(Message(id=f"tool{n}", role=Role.TOOL, **said) for n in range(5)),
            *(Message(id=f"user{n}", role=Role.USER, **said) for n in range(5)),
            *(Message(id=f"system{n}", role=Role.SYSTEM, **said) for n in range(5)),
            reply(1, "one reply"),
        ])  # fmt: skip
        await extracted(lore)
        assert (server.requests, await mark(lore)) == ([], 0)
        await lore.messages.add(reply(1, "one reply"))  # the same again
        await lore.messages.edit("r", "a1-bot", text="one reply, edited")
        await extracted(lore)
        assert server.requests == []
        await lore.messages.add(reply(2, "another"))
        await extracted(lore)
        assert conversations(server) == [
            "\n".join(["bot: something"] * 10 + ["bot: one reply, edited", "bot: another"])
        ]


async def test_replies_deleted_before_the_fifth_do_not_count():
    async with ModelServer(default=CHINESE.summary) as server, opened(server) as lore:
        await replies(lore, CHINESE, 4)
        await lore.messages.delete("r", ["a2-bot", "q4-bot", "a4-bot"])
        await replies(lore, CHINESE, 2, first=5)
        await extracted(lore)
        assert await memories(lore) == []
        await replies(lore, CHINESE, 1, first=7)
        await extracted(lore)
        (memory,) = await memories(lore)
        assert [source.message_id for source in memory.sources] == [
            "q1-bot", "a1-bot", "q2-bot", "q3-bot", "a3-bot", "q5-bot", "a5-bot", "q6-bot", "a6-bot", "q7-bot", "a7-bot"
        ]  # fmt: skip


@pytest.mark.parametrize("gone", [["a3-bot"], ["a5-bot"], ["a1-bot", "a4-bot"], [f"a{n}-bot" for n in range(1, 6)]])
async def test_replies_deleted_while_the_work_waits_change_nothing_of_what_is_due(gone):
    """The piece is handed in, and held up behind another room's."""
    go_on = asyncio.Event()

    async def answer(_: object) -> str:
        await go_on.wait()
        return ENGLISH.summary

    async with ModelServer(answer) as server, opened(server, work_at_once=1) as lore:

        async def handed_in(pieces: int) -> None:
            async def there() -> bool:
                return bool(server.requests) and len(await lore.jobs.page()) == pieces

            await until(there)

        await replies(lore, ENGLISH, 5, room="before", agent="other")
        await handed_in(1)
        await lore.messages.add([reply(n, f"reply {n}") for n in range(1, 6)])
        await handed_in(2)
        await lore.messages.delete("r", gone)
        await lore.messages.add([reply(n, f"reply {n}") for n in range(6, 11)])
        go_on.set()
        await extracted(lore)
        made = await records(lore)
        assert [record.last_arrival for record in made] == [5, 10]
        assert [record.messages for record in made] == [5 - len(gone), 5]
        left = [f"bot: reply {n}" for n in range(1, 11) if f"a{n}-bot" not in gone]
        read = [line for text in conversations(server)[1:] for line in text.splitlines()]
        assert read == left
        assert len(await memories(lore)) == (2 if len(gone) < 5 else 1)


def happening(lore, server, change):
    """Return an answer before which something happens to the room, each time that the model is asked."""

    async def answer(_: object) -> str:
        await change(lore, len(server.requests))
        return ENGLISH.summary

    return answer


def deletes(*ids: str):
    async def delete(lore, time: int) -> None:
        if time == 1:
            await lore.messages.delete("r", list(ids))

    return delete


def edits(times: int):
    async def edit(lore, time: int) -> None:
        if time <= times:
            await lore.messages.edit("r", "q1-bot", text=f"change {time}")

    return edit


@pytest.mark.parametrize(
    ("change", "asked", "sources"),
    [
        (deletes("q1-bot", "a2-bot"), 2, 8),
        (deletes(*(f"{kind}{n}-bot" for kind in "qa" for n in range(1, 6))), 1, None),
        (edits(1), 2, 10),
        (edits(9), 2, None),
    ],
    ids=["some are deleted", "all are deleted", "one is edited", "one is edited each time"],
)
async def test_what_changes_while_the_model_reads_is_read_once_more_at_most(sqlite_url, change, asked, sources):
    """A regression: a statement was kept of messages that were deleted meanwhile, and nothing told what it came
    from."""
    async with (
        ModelServer(default=ENGLISH.summary) as server,
        opened(server, url=sqlite_url) as lore,
        roomlore.open(sqlite_url, settings=settings(server), background=False) as other,
    ):
        server.answer = happening(other, server, change)
        await replies(lore, ENGLISH, 5)
        await extracted(lore)
        assert len(server.requests) == asked
        assert [len(memory.sources) for memory in await memories(lore)] == ([sources] if sources else [])
        (record,) = await records(lore)
        assert (record.status, record.raw_answer) == (("applied", ENGLISH.summary) if sources else ("nothing", ""))
        assert record.usage.output_tokens == 3 * asked, "what was answered in vain is counted too"
        assert await mark(lore) == 10


async def test_an_answer_that_an_earlier_version_paid_for_is_kept(monkeypatch):
    """Its step has no digest, and messages that are in the window by now were not read for it."""
    given = _Answer.of

    def of_old_step(step, window, spent):
        old = {name: value for name, value in step.items() if name != "digest"}
        return given({**old, "read": step["read"][:-1]}, window, spent)

    monkeypatch.setattr(_Answer, "of", of_old_step)
    async with ModelServer(default=ENGLISH.summary) as server, opened(server) as lore:
        await replies(lore, ENGLISH, 5)
        await extracted(lore)
        assert [len(memory.sources) for memory in await memories(lore)] == [9]
        assert len(server.requests) == 1


async def test_a_step_is_read_by_the_versions_before_and_theirs_is_read_here(monkeypatch):
    """A regression: a step recorded four values a message, which a worker of build 526591a could not unpack."""
    given, steps = _Answer.of, []

    def of_step_with_intervals(step, window, spent):
        steps.append(json.loads(json.dumps(step)))
        return given({**step, "read": [[*pair, pair[1], pair[1]] for pair in step["read"]]}, window, spent)

    monkeypatch.setattr(_Answer, "of", of_step_with_intervals)
    async with ModelServer(default=ENGLISH.summary) as server, opened(server) as lore:
        await replies(lore, ENGLISH, 5)
        await extracted(lore)
        assert [len(memory.sources) for memory in await memories(lore)] == [10]
    (step,) = steps
    read = {arrival: datetime.fromisoformat(at) for arrival, at in step.pop("read")}
    assert list(read) == list(range(1, 11))
    assert len(step.pop("digest")) == 64
    assert set(step) <= {field.name for field in fields(Extracted)}, "build 526591a refuses another name"


async def test_what_is_edited_is_read_as_it_is_then():
    async with ModelServer(default=CHINESE.summary) as server, opened(server) as lore:
        await replies(lore, CHINESE, 4)
        await lore.messages.edit("r", "a4-bot", text="改成八点了")
        await replies(lore, CHINESE, 1, first=5)
        await extracted(lore)
        assert "bot: 改成八点了" in conversations(server)[0]


async def test_a_room_that_another_process_removed_begins_again(sqlite_url):
    """A regression: the process that had written to the room began no count in it, so nothing was extracted."""
    async with (
        ModelServer(default=ENGLISH.summary) as server,
        roomlore.open(sqlite_url, settings=settings(server), background=False) as lore,
        roomlore.open(sqlite_url, settings=settings(server), background=False) as other,
    ):
        for _ in range(2):
            for n in range(1, 4):
                await replies(lore, ENGLISH, 1, first=n)
            assert await mark(lore) == 0
            assert (await other.privacy.forget("u1", is_id=True)).rooms_removed == ("r",)


async def test_what_is_imported_is_never_extracted(tmp_path):
    async with ModelServer(default=CHINESE.summary) as server, opened(server) as lore:
        await replies(lore, CHINESE, 3)
        old = [replace(reply(n, f"旧{n}"), id=f"old{n}") for n in range(20)]
        await brought_in(lore, tmp_path, old)
        await extracted(lore)
        assert server.requests == []
        assert await mark(lore) == 26
        await replies(lore, CHINESE, 4, first=4)
        await extracted(lore)
        assert server.requests == []
        await replies(lore, CHINESE, 1, first=8)
        await extracted(lore)
        assert len(server.requests) == 1
        assert "旧" not in conversations(server)[0]


async def test_a_room_that_was_imported_first_begins_with_what_is_said_in_it(tmp_path):
    async with ModelServer(default=CHINESE.summary) as server, opened(server) as lore:
        await brought_in(lore, tmp_path, [replace(reply(n, f"旧{n}"), id=f"old{n}") for n in range(20)])
        await replies(lore, CHINESE, 5)
        await extracted(lore)
        assert len(server.requests) == 1


async def test_what_is_imported_while_a_memory_is_kept_is_not_extracted_either(postgres_url, tmp_path, monkeypatch):
    """The import has read the mark, and the memory moves it before the import does."""
    find, read = Watermarks.marks, asyncio.Event()

    async def slowly(self, **named):
        found = await find(self, **named)
        if found and not read.is_set():
            read.set()
            await asyncio.sleep(0.3)
        return found

    async with ModelServer(default=ENGLISH.summary) as server, opened(server, url=postgres_url) as lore:
        await replies(lore, ENGLISH, 2)
        was = await mark(lore)
        monkeypatch.setattr(Watermarks, "marks", slowly)
        old = [replace(reply(n, f"old {n}"), id=f"old{n}") for n in range(20)]
        importing = asyncio.ensure_future(brought_in(lore, tmp_path, old))
        await read.wait()
        async with lore.storage.writing(lore.tenant) as work:
            moving = {"name": watermark("bot"), "arrival": was + 1, "was": was, "now": datetime(2026, 1, 1, tzinfo=UTC)}
            assert await work.progress.move_mark(room_id="r", **moving)
        await importing
        await extracted(lore)
        assert (await mark(lore), server.requests) == (24, [])


async def brought_in(lore, tmp_path, messages) -> None:
    import json

    lines = [
        {"id": m.id, "room_id": m.room_id, "sender_id": m.sender_id, "text": m.text, "role": m.role.value,
         "sent_at": "2024-05-01T10:00:00Z"}
        for m in messages
    ]  # fmt: skip
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    report = await lore.imports.run(path)
    assert report.added == len(messages)


async def test_rooms_and_agents_of_any_name(sqlite_url):
    rooms = ["家庭群 👪", "half \ud800", "nul \x00 inside", "r" * 512, "%41/:?#"]
    async with (
        ModelServer(default=CHINESE.summary) as server,
        opened(server, url=sqlite_url, durable_work="dbos") as lore,
    ):
        for room in rooms:
            await replies(lore, CHINESE, 5, room=room, agent=room[:256])
        await extracted(lore)
        with all_cases() as case:
            for room in rooms:
                with case(repr(room)):
                    (memory,) = await memories(lore, room[:256])
                    assert (memory.statement, memory.sources[0].room_id) == (CHINESE.summary, room)
