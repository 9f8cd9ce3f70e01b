"""Forgetting a person through `roomlore.open`, on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from bench.as_of import ACTIVE, APART, BEGAN, log_of

import roomlore
from forget_rig import CHINESE, ENGLISH, OTHER_ROOM, ROOM, Figure, everything, fill, in_postgres, replays
from roomlore import Lore, Message, Role, Settings, Source
from roomlore.storage.values import StoredRow
from roomlore_testkit.embedding import HashEmbedder

both = pytest.mark.parametrize("who", [ENGLISH, CHINESE], ids=["en", "zh"])


@pytest.fixture
async def lore(storage_url) -> AsyncIterator[Lore]:
    settings = Settings(durable_work="process", vectors="sql")
    async with roomlore.open(storage_url, settings=settings, embedder=HashEmbedder(), background=False) as opened:
        yield opened


async def index(lore: Lore) -> None:
    async for _ in lore.index.drain():
        pass


def telling(tables: dict[str, list[StoredRow]], who: Figure) -> list[tuple[str, str, str]]:
    """Which columns of which tables hold something of the person."""
    cells = [(table, column, text) for table, rows in tables.items() for row in rows for column, text in _cells(row)]
    return [(table, column, trace) for table, column, text in cells for trace in who.traces if trace in text]


def _cells(row: StoredRow) -> list[tuple[str, str]]:
    return [(column, text) for column, texts in row.texts.items() for text in texts]


@both
async def test_nothing_of_the_person_is_left_in_any_row(lore, who):
    await fill(lore, who)
    await index(lore)
    report = await lore.privacy.forget(who.user_id)
    assert report.left == ()
    assert report.complete
    assert report.rooms_removed == (f"dm:{who.user_id}", who.user_id)
    assert sum(report.checked.values()) > 0
    assert telling(await everything(lore), who) == []


@both
async def test_the_log_gives_the_tables_back(lore, who):
    await fill(lore, who)
    assert await replays(lore)
    report = await lore.privacy.forget(who.user_id)
    assert await replays(lore)
    assert (await lore.privacy.verify()).sound
    log = await lore.memories.changes(f"group:{ROOM}")
    assert len(log) == 7
    assert {"alone", "short"} & set(report.retired) == {"short"}
    assert set(report.rewritten) == {"both", "copy"}


@both
async def test_what_others_said_and_know_stays(lore, who):
    await fill(lore, who)
    await lore.privacy.forget(who.user_id)
    said = {message.id: message for message in await lore.messages.page(ROOM)}
    assert list(said) == ["ben-1", "bot-3", "ben-4", "ben-6", "ben-10"]
    mark = "[forgotten]" if who is ENGLISH else "[已删除]"
    assert (said["ben-1"].text, said["ben-10"].text) == (who.plain, "good morning")
    assert said["bot-3"].text.removeprefix("noted: ") == mark
    assert said["ben-4"].text.splitlines() == [f"> {mark}", f"> {mark}", "", f"ok @{mark}"]
    assert said["ben-4"].reply_to is None
    assert said["ben-6"].mentions == ()
    kept = {memory.memory_id: memory.statement for memory in await lore.memories.page(f"group:{ROOM}")}
    assert kept["both"] == who.shared.replace(who.name, mark)
    assert f"{who.plain}!" in kept.values()
    assert len(kept) == 2
    answer = await lore.messages.search(ROOM, who.plain, mode="lexical")
    assert {hit.message.id for hit in answer.hits[:2]} & {"ben-1", "ben-6"}
    assert not (await lore.messages.search(ROOM, who.secret, mode="lexical")).hits
    async with lore.storage.reading(lore.tenant) as work:
        people = await work.rooms.participants(room_id=ROOM)
    assert people == {"ben": "Ben", "bot": ""}


@both
async def test_a_dry_run_changes_nothing_and_says_what_would_go(lore, who):
    await fill(lore, who)
    before = await everything(lore)
    shown = await lore.privacy.forget(who.user_id, dry_run=True)
    assert await everything(lore) == before
    done = await lore.privacy.forget(who.user_id)
    assert (shown.dry_run, done.dry_run) == (True, False)
    assert shown.checked == {}
    assert (shown.rooms_removed, set(shown.retired), set(shown.rewritten)) == (
        done.rooms_removed, set(done.retired), set(done.rewritten)
    )  # fmt: skip
    for place in ("messages", "messages of others", "memories", "evolutions", "memory_scopes"):
        assert shown.places[place] == done.places[place] > 0


async def test_forgetting_leaves_a_line_in_the_log_that_names_nobody(lore, caplog):
    await fill(lore, ENGLISH)
    with caplog.at_level("INFO", logger="roomlore"):
        await lore.privacy.forget(ENGLISH.user_id, dry_run=True)
        assert [record for record in caplog.records if "forgotten" in record.getMessage()] == []
        report = await lore.privacy.forget(ENGLISH.user_id)
    (record,) = [record for record in caplog.records if record.getMessage() == "a person was forgotten"]
    assert (record.removed, record.complete) == (sum(report.places.values()), True)
    assert not [trace for trace in ENGLISH.traces if trace in str(vars(record))]


async def test_what_others_said_elsewhere_of_a_removed_room_stays(lore):
    """Only Cai spoke on the board; what is known of it also rests on what Ann said in the team."""
    await lore.messages.add(Message(id="a", room_id="team", sender_id="ann", text="the board meets on Mondays"))
    await lore.messages.add(Message(id="c", room_id="board", sender_id="cai", text="my knee hurts on stairs"))
    theirs, others = [Source("board", "c")], [Source("team", "a")]
    await lore.memories.add("group:board", "It meets on Mondays", sources=others, memory_id="kept")
    await lore.memories.add("group:board", "Stairs are a problem", sources=theirs, memory_id="gone")
    await lore.memories.add("group:board", "A quiet room", memory_id="noted")
    await index(lore)
    report = await lore.privacy.forget("cai")
    assert (report.complete, report.rooms_removed, set(report.retired)) == (True, ("board",), {"gone", "noted"})
    (kept,) = await lore.memories.page("group:board")
    assert (kept.memory_id, kept.statement, kept.sources) == ("kept", "It meets on Mondays", tuple(others))
    found = await lore.memories.search("board", "It meets on Mondays", threshold=0)
    assert [hit.memory.memory_id for hit in found.hits] == ["kept"]
    assert await replays(lore)
    assert (await lore.privacy.verify()).sound
    again = await lore.privacy.forget("cai")
    assert (again.places, again.left) == ({}, ())


async def test_forgetting_twice_finds_nothing_more(lore):
    await fill(lore, ENGLISH)
    await lore.privacy.forget(ENGLISH.user_id)
    before = await everything(lore)
    again = await lore.privacy.forget(ENGLISH.user_id)
    assert (again.places, again.left, again.retired) == ({}, (), ())
    assert await everything(lore) == before


async def test_another_tenant_keeps_the_same_person(lore):
    other = lore.for_tenant("other")
    await fill(lore, ENGLISH)
    await fill(other, ENGLISH)
    before = await everything(other)
    await lore.privacy.forget(ENGLISH.user_id)
    assert await everything(other) == before
    assert await lore._resources.durable.page(prefix="other:")


async def test_work_in_rooms_of_the_person_goes_and_other_work_stays(lore):
    await fill(lore, ENGLISH)
    report = await lore.privacy.forget(ENGLISH.user_id)
    assert report.places["durable work"] == 1
    assert [one.arguments for one in await lore._resources.durable.page()] == [{"room_id": OTHER_ROOM}]


async def test_who_comes_back_is_somebody_new(lore):
    who = ENGLISH
    await fill(lore, who)
    scope, room_id = f"user:{who.user_id}", f"dm:{who.user_id}"
    await lore.recall.build(scopes=[scope], messages=[])
    await lore.messages.search(room_id, "fine", mode="lexical")
    await lore.privacy.forget(who.user_id)
    await lore.memories.add(scope, "likes tea")
    again = Message(id="1", room_id=room_id, sender_id=who.user_id, text="hello there")
    await lore.messages.add(again)
    assert [memory.statement for memory in await lore.memories.page(scope)] == ["likes tea"]
    recalled = await lore.recall.build(scopes=[scope], messages=[])
    assert "likes tea" in recalled.text
    assert who.told not in recalled.text
    assert [hit.message.id for hit in (await lore.messages.search(room_id, "hello fine", mode="lexical")).hits] == ["1"]
    assert (await lore.memories.search(scope, who.told)).hits == ()


async def test_a_nick_that_is_a_word_goes_only_where_it_is_addressed(lore):
    def said(number: int, text: str, sender_id: str = "ben", **more: Any) -> Message:
        return Message(id=f"{number}", room_id=ROOM, sender_id=sender_id, text=text, **more)

    await lore.messages.add(
        [
            said(1, "shall we go to the market on Sunday?", "will"),
            said(2, "I will come, will you?"),
            said(3, "will: fine", "cid"),
            said(4, "not without will", "cid", mentions=("will",)),
            said(5, "then will is it", "cid", reply_to="1"),
        ]
    )
    await lore.keys.create("phone of will")
    report = await lore.privacy.forget("will")
    assert report.left == ()
    assert {one.id: one.text for one in await lore.messages.page(ROOM)} == {
        "2": "I will come, will you?",
        "3": "[forgotten]: fine",
        "4": "not without [forgotten]",
        "5": "then [forgotten] is it",
    }
    assert [key.name for key in await lore.keys.list()] == ["phone of [forgotten]"]


@pytest.mark.parametrize(
    "words", ["the quiz starts at eight in the old mill", "知识竞赛今晚八点在老磨坊开始"], ids=["en", "zh"]
)
async def test_who_said_it_first_keeps_it_in_an_answer_too(lore, words):
    """A regression: the answer of whoever had said it first was emptied."""
    mark = "[forgotten]" if words.isascii() else "[已删除]"

    def said(number: int, text: str, sender_id: str, **more: Any) -> Message:
        return Message(id=f"{number}", room_id=ROOM, sender_id=sender_id, text=text, **more)

    await lore.messages.add(
        [
            said(1, words, "ben"),
            said(2, f"{words}\n{words[::-1]}", "anna-7", reply_to="1"),
            said(3, words, "ben", reply_to="2"),
            said(4, words, "cid", reply_to="2"),
            said(5, words, "cid", reply_to="2"),
            said(6, f"{words}\n{words[::-1]}", "ben", reply_to="2"),
        ]
    )
    assert (await lore.privacy.forget("anna-7")).left == ()
    texts = {one.id: one.text for one in await lore.messages.page(ROOM)}
    assert texts == {"1": words, "3": words, "4": mark, "5": mark, "6": f"{words}\n{mark}"}


async def test_many_messages_go_in_parts(lore):
    many = [Message(id=f"m{n}", room_id=ROOM, sender_id="u-12345", text=f"line {n} of what I say") for n in range(450)]
    rest = [
        Message(id=f"b{n}", room_id=ROOM, sender_id="ben", text=f"answer {n}", reply_to=f"m{n}") for n in range(120)
    ]
    await lore.messages.add([*many, *rest])
    report = await lore.privacy.forget("u-12345")
    assert (report.places["messages"], report.places["messages of others"], report.left) == (450, 120, ())
    room = await lore.rooms.get(ROOM)
    assert room.messages == 120


async def test_nobody_of_that_name(lore):
    await lore.messages.add(Message(id="1", room_id=ROOM, sender_id="ben", text="hello"))
    report = await lore.privacy.forget("nobody-1")
    assert (report.places, report.left, report.complete) == ({}, (), True)


@pytest.mark.parametrize("given", ["", "  ", None, 7, "x" * 600], ids=["empty", "blank", "none", "number", "long"])
async def test_no_id(lore, given):
    with pytest.raises(roomlore.InvalidInput, match="sender id"):
        await lore.privacy.forget(given)


@both
async def test_no_row_of_any_schema_on_postgresql(postgres_url, who: Figure):
    settings = Settings(durable_work="dbos", vectors="sql")
    async with roomlore.open(postgres_url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
        await fill(lore, who)
        assert {table for table, _ in in_postgres(postgres_url, who)} >= {"messages", "memories", "workflow_input"}
        report = await lore.privacy.forget(who.user_id)
        assert report.left == ()
    assert in_postgres(postgres_url, who) == []


RULES = {"en": "what was the password policy again, twelve signs?", "zh": "密码规则到底是怎么规定的来着是不是要十二位"}
tongues = pytest.mark.parametrize("tongue", ["en", "zh"])


async def speak_alike(lore: Lore, words: str) -> None:
    def said(number: int, room_id: str, sender: str, text: str = words, **more) -> Message:
        at = datetime(2026, 3, 1, 9, number, tzinfo=UTC)
        return Message(id=str(number), room_id=room_id, sender_id=sender, text=text, sent_at=at, **more)

    await lore.messages.add(
        [
            said(0, "desk", "dan"),
            said(1, "desk", "anna-12", sender_name="Anna Lund"),
            said(2, "desk", "ben"),
            said(3, "desk", "ben", f"> {words}\nno idea"),
            said(4, "desk", "ben", f"{words} no idea", reply_to="1"),
            said(5, "desk", "ben", f"@Anna Lund {words}"),
            said(6, "desk", "ben", f"anna-12: {words}"),
            said(7, "desk", "bot", f"You ask: {words}", role=Role.ASSISTANT),
            said(8, "desk", "bot", f"You ask: {words}", role=Role.ASSISTANT, reply_to="2"),
            said(9, "elsewhere", "cid"),
            said(10, "elsewhere", "cid", f"Anna Lund asks: {words}"),
        ]
    )
    await lore.memories.add("user:cid", words, sources=[Source("elsewhere", "9")], memory_id="cids")
    await lore.sessions.create_session("elsewhere", "cid", session={"global_state": {"shared": {"note": words}}})


async def texts(lore: Lore) -> dict[str, str]:
    found = [*await lore.messages.page("desk"), *await lore.messages.page("elsewhere")]
    return {one.id: one.text for one in found}


@tongues
async def test_merely_the_same_words_are_counted_and_stay(lore, tongue):
    """A regression: what others said by themselves was erased, in rooms too where the person never spoke."""
    words, mark = RULES[tongue], {"en": "[forgotten]", "zh": "[已删除]"}[tongue]
    await speak_alike(lore, words)
    shown = await lore.privacy.forget("anna-12", dry_run=True)
    report = await lore.privacy.forget("anna-12")
    assert report.left == ()
    assert shown.same_words == report.same_words == {"messages of others": 4, "memories": 1}
    said = await texts(lore)
    assert {number for number, text in said.items() if text == words} == {"0", "2", "9"}
    assert said["3"] == f"> {mark}\nno idea"
    assert said["4"] == f"{mark} no idea"
    assert said["5"] == f"@{mark} {mark}"
    assert said["6"] == f"{mark}: {mark}"
    assert (said["7"], said["8"]) == (f"You ask: {mark}", f"You ask: {words}")
    assert said["10"] == f"Anna Lund asks: {mark}"
    assert [memory.statement for memory in await lore.memories.page("user:cid")] == [words]
    session = await lore.sessions.get_session("elsewhere")
    assert session.global_state.shared == {"note": words}
    assert (await lore.privacy.verify()).sound


@tongues
async def test_the_same_words_go_where_asked_for_in_shared_rooms_and_later(lore, tongue):
    words = RULES[tongue]
    await speak_alike(lore, words)
    shown = await lore.privacy.forget("anna-12", dry_run=True, same_words=True)
    report = await lore.privacy.forget("anna-12", same_words=True)
    assert report.left == ()
    assert shown.same_words == report.same_words == {"messages of others": 2, "memories": 1}
    assert {number for number, text in (await texts(lore)).items() if words in text} == {"0", "9"}


async def test_numbers_of_a_log_are_not_taken_for_a_person_who_is_called_by_one(lore):
    scope, middle = "group:log", BEGAN + 260 * APART
    await log_of(lore, scope, 300)
    known = await lore.memories.as_of(scope, middle)
    await lore.messages.add(Message(id="m1", room_id="tea", sender_id="250", text="I row on Fridays"))
    report = await lore.privacy.forget("250")
    assert (report.left, report.complete) == ((), True)
    assert (await lore.memories.as_of(scope, middle)) == known
    assert len(known) == ACTIVE
    assert (await lore.privacy.verify()).sound
