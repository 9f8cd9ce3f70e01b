"""Every check of `verify` on every backend: sound where all is well, and told where a row was damaged by hand."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from verifying import damage, unguarded, verify

from roomlore.core.memory.log import STEP, active, replay
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus, Source
from roomlore.core.search.hits import EmbeddingModel, IndexState
from roomlore.services.memories import MemoryPast
from roomlore.storage import Storage, UnitOfWork
from roomlore.storage.values import WORDS
from roomlore_testkit import START, FrozenClock, backends, change, entry, evolution, memory
from roomlore_testkit.case_table import all_cases
from storage_contracts.memory_log import long_log, snapshot
from storage_contracts.texts import ROOM, TENANT, erase, fill

SCOPE, GROUP = "user:ann", "group:茶"
GONE = MemoryStatus.DEPRECATED
CITED = (Source(ROOM, "m1"), Source(ROOM, "m2"))


def following(old: Memory, memory_id: str, version: int, **fields: Any) -> Memory:
    return replace(old, memory_id=memory_id, version=version, parents=(old.memory_id,), **fields)


def story(scope: str, prefix: str) -> list[Change]:
    """Two memories, one of them changed and then merged into the other, and one that is deleted."""
    a = memory(f"{prefix}a", scope=scope, statement="安妮喝绿茶", sources=CITED, evolution_id="e1")
    b, c = memory(f"{prefix}b", scope=scope), memory(f"{prefix}c", scope=scope)
    a2 = following(a, f"{prefix}a2", 2, statement="安妮只喝绿茶", change_summary="She said so", evolution_id=None)
    both = replace(following(b, f"{prefix}b2", 2), parents=(b.memory_id, a2.memory_id))
    gone = replace(c, status=GONE, change_summary="说错了")
    steps = [
        (Action.CREATE, a, (), None),
        (Action.CREATE, b, (), None),
        (Action.CREATE, c, (), None),
        (Action.UPDATE, a2, (a.memory_id,), a.statement),
        (Action.MERGE, both, (b.memory_id, a2.memory_id), b.statement),
        (Action.DELETE, gone, (), c.statement),
    ]
    return [
        change(
            number,
            made,
            action=action,
            closes=closes,
            old_statement=old,
            reason=made.change_summary,
            evolution_id="e1" if number == 1 else None,
        )
        for number, (action, made, closes, old) in enumerate(steps, start=1)
    ]


async def write(storage: Storage, scope: str, changes: Sequence[Change], *, tenant: str = TENANT) -> None:
    async with storage.writing(tenant) as work:
        await work.memories.lock(scope=scope, now=START)
        await work.memories.apply(scope=scope, changes=changes)


@pytest.fixture
async def filled(storage: Storage) -> AsyncIterator[Storage]:
    await fill(storage, [entry(1), entry(2), entry(3)])
    async with storage.writing(TENANT) as work:
        await work.memories.add_evolution(evolution=evolution("e1"))
        await work.progress.move_mark(room_id=ROOM, name="evolution", arrival=3, was=0, now=START)
    await write(storage, SCOPE, story(SCOPE, "u"))
    await write(storage, GROUP, story(GROUP, "g"))
    return storage


async def test_what_was_written_in_order_is_sound(filled):
    report = await verify(filled)
    assert report.sound
    assert report.faults == ()
    assert report.checked == {
        "scopes": 2,
        "memories": 10,
        "changes": 12,
        "sources": 8,
        "evolutions": 2,
        "rooms": 1,
        "messages": 3,
    }
    assert [note.where for note in report.notes] == ["vectors"]


async def test_one_scope_alone_and_other_tenants(filled):
    await write(filled, SCOPE, story(SCOPE, "u"), tenant="other")
    await damage(filled, "UPDATE memories SET statement = 'x' WHERE tenant = 'other'")
    await damage(filled, "UPDATE memories SET statement = 'x' WHERE memory_id = 'ga'")
    assert (await verify(filled, SCOPE)).checked["scopes"] == 1
    assert (await verify(filled, SCOPE)).sound
    assert (await verify(filled, "user:nobody")).checked == {}
    assert (await verify(filled)).counts == {"log and tables": 1}


def _entry(number: int, column: str, value: str) -> str:
    return f"UPDATE memory_changes SET {column} = {value} WHERE number = {number}"


def _support(tenant: str, message_id: str, *, key: str = "memory_key") -> str:
    return (
        "INSERT INTO memory_sources (tenant, room_id, message_id, memory_key)"
        f" SELECT {tenant}, 'room', {message_id}, {key} FROM memories WHERE memory_id = 'uc'"
    )


DAMAGE = {
    "a changed word": ("UPDATE memories SET statement = 'x' WHERE memory_id = 'ua'", "log and tables", "statement"),
    "a changed strength": ("UPDATE memories SET strength = 0.25 WHERE memory_id = 'ub2'", "log and tables", "strength"),
    "a changed log": (
        "UPDATE memory_changes SET memory = replace(memory, '\"strength\":1.0', '\"strength\":0.5') WHERE number = 2",
        "log and tables",
        "strength",
    ),
    "a lost version": ("DELETE FROM memories WHERE memory_id = 'ua'", "versions", "2, not 1"),
    "a lost lineage": ("DELETE FROM memories WHERE memory_id = 'uc'", "log and tables", "the table does not"),
    "a lost parent": ("DELETE FROM memories WHERE memory_id = 'ua'", "parents", "ua is not there"),
    "a row from elsewhere": (
        "UPDATE memories SET lineage_id = 'zz', memory_id = 'zz' WHERE memory_id = 'uc'",
        "log and tables",
        "the log does not",
    ),
    "no head": ("UPDATE memories SET head = FALSE WHERE memory_id = 'uc'", "head", "0 heads"),
    "another head": (
        "UPDATE memories SET head = FALSE, status = 'deprecated' WHERE lineage_id = 'ub'; "
        "UPDATE memories SET head = TRUE WHERE memory_id = 'ub'",
        "head",
        "by the log ub2",
    ),
    "a deleted memory that lives": (
        "UPDATE memories SET status = 'active' WHERE memory_id = 'uc'",
        "counters",
        "there are 2",
    ),
    "not merged": ("UPDATE memories SET merged_into = NULL WHERE memory_id = 'ua2'", "merged into", "into ub"),
    "merged elsewhere": ("UPDATE memories SET merged_into = 'uc' WHERE memory_id = 'ua2'", "merged into", "into uc"),
    "an update called a merge": (_entry(4, "action", "'merge'"), "log entries", "is merge; what it did to ua2"),
    "a merge called an update": (_entry(5, "action", "'update'"), "log entries", "is update; what it did to ub2"),
    "a deletion called a strength": (_entry(6, "action", "'strength'"), "log entries", "is strength"),
    "a deletion called a revert": (_entry(6, "action", "'revert'"), "log entries", "takes back no evolution"),
    "an update that takes back": (_entry(4, "undoes", "'e1'"), "log entries", "it takes back e1"),
    "another old statement": (_entry(5, "old_statement", "'安妮喝茶'"), "log entries", "What it says was said before"),
    "an old statement of something new": (_entry(1, "old_statement", "'x'"), "log entries", "was said before"),
    "a lost old statement": (_entry(6, "old_statement", "NULL"), "log entries", "was said before"),
    "another reason": (_entry(4, "reason", "'没说'"), "log entries", "Its reason"),
    "a lost reason": (_entry(6, "reason", "''"), "log entries", "Its reason"),
    "a reason of an evolution that gave none": (_entry(1, "reason", "'x'"), "log entries", "Its reason"),
    "a gap in the log": ("DELETE FROM memory_changes WHERE number = 2", "log gap", "follows number 1"),
    "a log cut short": ("DELETE FROM memory_changes WHERE number = 6", "counters", "there are 5"),
    "a wrong count of changes": ("UPDATE memory_scopes SET changes = 9", "counters", "says 9; there are 6"),
    "a wrong count of memories": ("UPDATE memory_scopes SET active = 4", "counters", "says 4; there are 1"),
    "a lost record": ("DELETE FROM evolutions", "evolutions", "e1 is not there"),
    "lost support": ("DELETE FROM memory_sources WHERE message_id = 'm2'", "support", "is not found from message m2"),
    "wrong support": (_support("tenant", "'m2'"), "support", "is found from message m2"),
    "support by a message that supports nothing": (
        _support("tenant", "'m3'"),
        "support",
        "from message m3 of room room",
    ),
    "support by a message of nowhere": (_support("tenant", "'nie'"), "support", "from message nie of room room"),
    "support of nothing": (_support("tenant", "'m1'", key="memory_key + 1000"), "support", "is not there"),
    "support of another tenant's memory": (
        "UPDATE memories SET tenant = 'other' WHERE memory_id = 'uc'; " + _support("'acme'", "'m1'"),
        "support",
        "is not there",
    ),
    "a mark beyond the end": ("UPDATE watermarks SET arrival = 4", "watermarks", "stands at 4; the room ends at 3"),
    "a mark of no room": ("UPDATE watermarks SET room_id = 'gone'", "watermarks", "ends at 0"),
    "lost features": ("DELETE FROM message_features WHERE arrival = 2", "message features", "is not there"),
    "features of another tenant": (
        "UPDATE message_features SET tenant = 'other' WHERE arrival = 2",
        "message features",
        "is not there",
    ),
    "lost words": ("DELETE FROM message_words WHERE arrival = 2", "message words", "is not there"),
    "other words": ("UPDATE message_words SET words = '茶' WHERE arrival = 1", "message words", "other words"),
    "another count of words": ("UPDATE message_words SET length = 9 WHERE arrival = 1", "message words", "other words"),
    "another text": ("UPDATE messages SET text = '喝茶 tea' WHERE arrival = 1", "message words", "other words"),
    "words of a deleted message": (
        "UPDATE messages SET deleted_at = 1 WHERE arrival = 3",
        "message words",
        "other words",
    ),
    "a wrong count of messages": ("UPDATE rooms SET messages = 4", "room counters", "says 4 messages; there are 3"),
    "a wrong count of all words": ("UPDATE rooms SET words = 1", "room counters", "says 1 words"),
    "an unknown role": ("UPDATE messages SET role = 'king' WHERE arrival = 1", "unreadable", "king"),
    "an unknown link": ("UPDATE message_features SET link_kind = 'magic'", "unreadable", "magic"),
    "an unknown kind": ("UPDATE memories SET kind = 'magic' WHERE memory_id = 'ua'", "unreadable", "magic"),
    "rubbish in the log": ("UPDATE memory_changes SET memory = '{' WHERE number = 3", "unreadable", "JSON"),
    "rubbish among sources": ("UPDATE memories SET sources = '[' WHERE memory_id = 'ua'", "unreadable", ""),
}


class _Restored(Exception):
    pass


class _Within:
    """The storage as one unit of work sees it, with what it has changed."""

    def __init__(self, storage: Storage, work: UnitOfWork) -> None:
        self._storage = storage
        self._work = work

    @asynccontextmanager
    async def reading(self, tenant: str | None = None) -> AsyncIterator[UnitOfWork]:
        yield self._work if tenant is None else self._work.of(tenant)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


async def test_damage_is_named(filled):
    """Each damage is taken back by rolling back the unit of work that did it."""
    with all_cases() as case:
        for name, (sql, check, told) in DAMAGE.items():
            with case(name), suppress(_Restored):
                async with filled.writing() as work:
                    for statement in sql.split("; "):
                        await work.connection.run(statement)
                    report = await verify(_Within(filled, work))
                    assert not report.sound
                    mine = [fault for fault in report.faults if fault.check == check]
                    assert mine, report.faults
                    assert any(told in fault.found for fault in mine)
                    assert all(fault.mend for fault in mine)
                    assert report.counts[check] == len(mine)
                    raise _Restored
    assert (await verify(filled)).sound


STRAY_WORDS = (
    "INSERT INTO message_words (room_key, arrival, tenant, length, changed, words)"
    " SELECT room_key, arrival + {by}, tenant, length, changed, words FROM message_words"
)
SETTLE = ("UPDATE message_words SET pending = 0", "UPDATE rooms SET pending_from = NULL")
LOSE_THE_INDEX = "INSERT INTO message_index (message_index) VALUES ('delete-all')"
INDEX_ANEW = (
    "INSERT INTO message_index (rowid, words) SELECT arrival,"
    " printf('%xx', room_key) || replace(words, ' ', printf(' %xx', room_key)) FROM message_words"
    " WHERE words <> '' AND NOT pending"
)


async def test_rows_of_messages_that_are_not_there_are_named(filled):
    await unguarded(filled, "message_words", STRAY_WORDS.format(by=100))
    report = await verify(filled)
    assert report.counts["orphan rows"] == 3
    assert {fault.where for fault in report.faults if fault.check == "orphan rows"} == {"table message_words"}
    assert any("message at arrival 102" in fault.found for fault in report.faults)


async def test_features_of_messages_that_are_not_there_are_named(filled):
    await unguarded(filled, "message_features", "UPDATE message_features SET arrival = 7 WHERE arrival = 1")
    report = await verify(filled)
    assert report.counts == {"message features": 1, "orphan rows": 1}


async def indexed_on_sqlite(storage: Storage) -> None:
    """Index the messages that wait for it. PostgreSQL keeps its index of the rows by itself."""
    async with storage.reading() as work:
        if work.connection.dialect.name != "sqlite":
            pytest.skip("no index stands beside the rows")
    for statement in SETTLE:
        await damage(storage, statement)


async def test_words_that_the_index_lost_are_named_and_filled_in_again(filled):
    await indexed_on_sqlite(filled)
    await damage(filled, LOSE_THE_INDEX)
    report = await verify(filled)
    assert report.counts == {"word index": 1}
    assert "Not indexed are arrivals 1, 2, 3." in report.faults[0].found
    await damage(filled, INDEX_ANEW)
    assert (await verify(filled)).sound


@pytest.mark.parametrize(
    ("place", "told"),
    [(9, " Indexed without such a message are arrivals 9."), (2, "")],
    ids=["of nobody", "of one that is there"],
)
async def test_words_that_the_index_has_of_other_messages_are_named(filled, place, told):
    await indexed_on_sqlite(filled)
    word = f"SELECT {place}, printf('%xx茶', room_key) FROM rooms"
    await damage(filled, f"INSERT INTO message_index (rowid, words) {word}")
    report = await verify(filled)
    assert report.counts == {"word index": 1}
    assert report.faults[0].found == f"The index has 10 words; the rows of its messages have 9.{told}"


async def test_lost_words_are_put_back_by_reading_the_messages_anew(filled):
    await damage(filled, "DELETE FROM message_words WHERE arrival = 2")
    async with filled.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        messages = await work.messages.messages_by_arrival(room_id=ROOM, arrivals=[1, 2, 3])
        await work.messages.reword(room_id=ROOM, messages=messages)
    assert (await verify(filled)).counts == {"room counters": 1}
    await damage(filled, "UPDATE rooms SET words = (SELECT sum(length) FROM message_words)")
    assert (await verify(filled)).sound


async def test_an_index_of_other_words_is_a_note(filled):
    await damage(filled, "UPDATE message_words SET words = '茶' WHERE arrival = 1")
    model = EmbeddingModel(name="words-0", dimensions=0)
    state = IndexState(name=WORDS, model=model, generation="g", cursor=None, updated_at=START)
    async with filled.writing() as work:
        await work.progress.save_index_state(state=state, expected=None)
    report = await verify(filled)
    assert report.sound
    assert "word index" in {note.where for note in report.notes}


async def test_words_are_the_same_in_the_rows_whatever_is_said(storage):
    """Words that stand often, of both languages, strange signs, captions, names; and messages that say nothing."""
    said = [
        "茶 " * 400,
        "tea TEA a.b/c 你好 👋🏽 e\u0301 ' \\ \"",
        "",
        " a\x00b \ud800",
        "x" * 200,
        "long words " * 2000,
    ]
    await fill(
        storage,
        [
            entry(number, text=text, sender_name="安妮 O'Neil", metadata={"caption": "一张图 of tea"})
            for number, text in enumerate(said, start=1)
        ],
    )
    await erase(storage, 5)
    report = await verify(storage)
    assert report.faults == ()
    assert report.checked["messages"] == len(said)


@pytest.mark.parametrize("many", [1000, 1001])
async def test_rooms_of_several_pages_are_read_to_their_end(storage, many):
    await fill(storage, [entry(number) for number in range(1, many + 1)])
    assert (await verify(storage)).checked == {"rooms": 1, "messages": many}
    await damage(storage, "DELETE FROM message_features WHERE arrival >= 999")
    assert (await verify(storage)).counts == {"message features": many - 998}


@pytest.mark.parametrize("scope", [SCOPE, None], ids=["of one scope", "of all"])
async def test_surplus_support_of_many_messages_is_counted_whole(filled, scope):
    await damage(
        filled,
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1500)"
        " INSERT INTO memory_sources (tenant, room_id, message_id, memory_key)"
        " SELECT tenant, 'room', '茶' || n, memory_key FROM memories, numbers WHERE memory_id IN ('uc', 'gc')",
    )
    report = await verify(filled, scope)
    assert report.counts == {"support": 1500 if scope else 3000}


async def test_a_message_that_cannot_be_read_is_counted_with_the_others(filled):
    await damage(filled, "UPDATE messages SET role = 'king' WHERE arrival = 1")
    assert (await verify(filled)).counts == {"unreadable": 1}


async def test_several_active_versions_are_named(filled):
    """The database holds to one head alone; an active version that is no head is what it refuses, unless it is told
    otherwise by somebody who takes its checks away."""
    async with filled.writing() as work:
        if work.connection.dialect.name == "sqlite":
            await work.connection.run("PRAGMA ignore_check_constraints = ON")
        else:
            await work.connection.run("ALTER TABLE memories DROP CONSTRAINT ck_memories_active_is_head")
        await work.connection.run("UPDATE memories SET status = 'active' WHERE memory_id = 'ub'")
    assert (await verify(filled)).counts["active"] == 1


async def test_evidence_that_is_gone_is_a_note(filled):
    await erase(filled, 2)
    await damage(filled, "UPDATE memory_sources SET message_id = 'm9' WHERE message_id = 'm1'")
    for table in ("memories", "memory_changes"):
        column = "sources" if table == "memories" else "memory"
        await damage(filled, f"UPDATE {table} SET {column} = replace({column}, 'm1', 'm9')")
    report = await verify(filled)
    assert report.sound
    notes = [note.found for note in report.notes if note.where == f"scope {SCOPE}"]
    assert any("deleted" in note for note in notes)
    assert any("unknown" in note for note in notes)


async def test_an_evolution_without_its_changes_is_a_note(filled):
    async with filled.writing(TENANT) as work:
        await work.memories.add_evolution(evolution=replace(evolution("e2"), started_at=START + timedelta(1)))
    report = await verify(filled)
    assert report.sound
    assert any("e2 was applied" in note.found for note in report.notes)


SNAPSHOTS = {
    "another state": ("UPDATE memory_snapshots SET in_force = '[248,249]' WHERE number = 250", 1, "is not the state"),
    "another time": ("UPDATE memory_snapshots SET at = at + 1", 2, "is not the state"),
    "another beginning": ("UPDATE memory_snapshots SET reached_from = reached_from - 1", 2, "is not the state"),
    "an entry that is not there": (
        "UPDATE memory_snapshots SET in_force = '[248,249,999]' WHERE number = 500",
        1,
        "entries that the log does not have",
    ),
    "rubbish": ("UPDATE memory_snapshots SET in_force = '{' WHERE number = 500", 1, "JSON"),
    "no number": ("UPDATE memory_snapshots SET in_force = '[2.5]' WHERE number = 500", 1, "no list of numbers"),
    "of no entry": ("UPDATE memory_snapshots SET number = 1500 WHERE number = 500", 1, "no such entry after 502"),
    "of another entry": ("UPDATE memory_snapshots SET number = 260 WHERE number = 250", 1, "is not the state"),
}


@pytest.mark.parametrize("what", SNAPSHOTS)
async def test_a_wrong_snapshot_is_found_and_mended_as_it_is_said(storage, what):
    """And what comes after it is stored."""
    sql, wrong, told = SNAPSHOTS[what]
    changes = long_log(4 * STEP)
    await write(storage, SCOPE, changes[: 2 * STEP + 2])
    assert (await verify(storage)).sound
    await damage(storage, sql)
    report = await verify(storage)
    assert report.counts == {"snapshots": wrong}
    assert told in report.faults[0].found
    await damage(storage, "DELETE FROM memory_snapshots")
    await write(storage, SCOPE, changes[2 * STEP + 2 :])
    assert (await verify(storage)).sound
    last = await snapshot(storage, START + timedelta(days=9))
    assert last is not None
    assert last.number == 4 * STEP


async def test_changes_are_stored_and_the_past_is_read_beside_a_snapshot_that_cannot_be_read(storage):
    changes = long_log(3 * STEP)
    await write(storage, SCOPE, changes[: 2 * STEP])
    await damage(storage, "UPDATE memory_snapshots SET in_force = '{'")
    await write(storage, SCOPE, changes[2 * STEP :])
    assert await snapshot(storage, START + timedelta(days=9)) is None
    past = MemoryPast(backends(storage=storage, clock=FrozenClock()), tenant=TENANT)
    assert await past.as_of(SCOPE, START + timedelta(days=9)) == active(replay(changes))


async def test_a_log_of_several_pages_is_compared_with_its_snapshots(storage, monkeypatch):
    monkeypatch.setattr("roomlore.services.privacy.verify._PAGE", 100)
    await write(storage, SCOPE, long_log(3 * STEP))
    assert (await verify(storage)).sound
    await damage(storage, "UPDATE memory_snapshots SET in_force = '[1]' WHERE number = 500")
    assert (await verify(storage)).counts == {"snapshots": 1}
