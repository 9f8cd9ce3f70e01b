"""A database that build 526591a wrote is opened, read and written. `record_built.py` made it."""

import gzip
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest
from record_built import BEGUN, KEY, TALK
from schemas import engine_of, schema_of
from sqlalchemy import text

import roomlore
from roomlore import Conflict, Message, NotFound
from roomlore.core.errors import StorageBusy
from roomlore.core.memory.memory import EvidenceRoom
from roomlore.storage import connect, migrations, opening
from roomlore.storage.migrations import heard_times, smaller_rows
from roomlore_testkit import change, memory
from roomlore_testkit.embedding import HashEmbedder
from storage_contracts.memory_log import apply, log
from storage_contracts.texts import TENANT

HERE = Path(__file__).parent


@pytest.fixture
def sqlite_built(tmp_path: Path) -> str:
    (tmp_path / "built.db").write_bytes(gzip.decompress((HERE / "built_526591a.db.gz").read_bytes()))
    return f"sqlite:///{tmp_path / 'built.db'}"


@pytest.fixture
def postgres_built(empty_postgres: str) -> str:
    with psycopg.connect(empty_postgres) as connection:
        connection.execute((HERE / "built_526591a.postgresql.sql").read_bytes())
    return empty_postgres


@pytest.fixture
def big_sqlite_built(sqlite_built: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """As if it had too many messages to be rewritten."""
    monkeypatch.setattr(smaller_rows, "_MANY", 0)
    return sqlite_built


@pytest.fixture(params=["sqlite", "big_sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_built"))


@pytest.fixture
async def lore(url: str) -> AsyncIterator[roomlore.Lore]:
    settings = roomlore.Settings(vectors="sql")
    async with roomlore.open(url, settings=settings, embedder=HashEmbedder(), background=False) as opened:
        assert (await opened.index.status()).words == "rebuilding"
        async for _ in opened.index.rebuild(part="words", resume=True):
            pass
        yield opened


async def test_it_has_the_schema_of_a_new_one(url, request):
    await (await connect(url)).close()
    new = str(request.getfixturevalue("sqlite_url" if url.startswith("sqlite") else "postgres_url"))
    kept = {f"message_words_{event}" for event in ("added", "changed", "settled")}
    differing = {name for name, _ in set(schema_of(url)) ^ set(schema_of(new))}
    assert differing == (kept if smaller_rows._MANY == 0 else set())


async def test_it_is_sound(lore):
    report = await lore.privacy.verify()
    assert (report.faults, report.notes) == ((), ())
    assert report.checked == {
        "scopes": 2,
        "memories": 6,
        "changes": 8,
        "sources": 5,
        "rooms": 3,
        "messages": 20,
        "evolutions": 1,
        "vectors": 22,
    }


async def test_messages_are_there(lore):
    held = {one.id: one.text for one in await lore.messages.page("tea")}
    sent = {one.id: one.text for one in TALK if one.room_id == "tea"}
    del sent["m6"]
    assert held == sent | {"m7": "Noon it is, at the dumpling bar 🥟"}
    with pytest.raises(NotFound):
        await lore.messages.get("tea", "m6")
    assert (await lore.messages.get("tea", "m3")).message.metadata == {"client": "手机", "hard": "a\x00b"}
    (corrected,) = await lore.links.corrections("tea")
    assert (corrected.message_id, corrected.answers, corrected.by) == ("m7", "m3", "ann")
    (other,) = await lore.for_tenant("acme").messages.page("tea")
    assert other.text == "another tenant 别的租户"


async def test_rooms_people_and_records_are_there(lore):
    room = await lore.rooms.get("board")
    assert (room.name, room.kind) == ("Board 董事会", "private")
    assert (await lore.rooms.settings("tea"))["max_context_messages"] == (12, "room")
    people = (await lore.rooms.people("tea")).people
    assert set(people) == {"ann", "bo", "cy", "eve"}
    assert [stay.left_at for stay in people["eve"].stays] == [TALK[4].sent_at]
    assert (await lore.keys.authenticate(f"rl_{KEY}")).name == "console"
    assert (await lore.quotas.own())["messages_a_day"] == 1000
    (record,) = await lore.usage.page()
    assert (record.llm_response, record.user_feedback, record.success_indicator) == (
        "The deploy works",
        "helpful 有用",
        1.0,
    )


async def test_memories_and_their_log_are_there(lore):
    kept = {one.statement for one in await lore.memories.page("user:ann")}
    assert kept == {"Ann drinks green tea", "喜欢在周一早上部署"}
    (meets,) = await lore.memories.page("group:tea")
    versions = [one.statement for one in await lore.memories.history(meets.memory_id)]
    assert versions == ["The team meets on Fridays", "团队每周四开会"]
    changes = await lore.memories.changes("group:tea")
    assert [change.action for change in changes] == ["create", "update", "create", "delete", "create", "revert"]
    (evolution,) = await lore.memories.evolutions("group:tea")
    assert changes[-1].undoes == evolution.evolution_id
    assert (await lore.memories.as_of("group:tea", changes[0].at))[0].statement == "The team meets on Fridays"
    assert (await lore.memories.search("tea", "团队每周四开会")).hits[0].memory == meets


async def test_the_session_is_there(lore):
    context = await lore.sessions.query_context("chat", recent_turns=2)
    assert context.history == (
        "历史摘要: 问了两个问题 Two questions\n\n用户: Question 3? 问题\n助手: Answer 3 回答\n"
        "用户: Question 4? 问题\n助手: Answer 4 回答"
    )
    assert context.session.global_state.extra == {"language": "zh"}


async def test_contexts_and_searches_find_what_was_said(lore):
    context = await lore.context.build("tea", "m5")
    assert {"m1", "m4"} <= {one.message.id for one in context.messages}
    for question, answer in (("再部署", "m4"), ("dumpling", "m7"), ("日志 内存不足", "m2"), ("café", "m5")):
        found = await lore.messages.search("tea", question)
        assert (found.mode, found.hits[0].message.id) == ("hybrid", answer)


async def test_it_goes_on(lore):
    said = Message(id="m11", room_id="tea", sender_id="bo", text="部署又失败了 again 😱", reply_to="m5")
    await lore.messages.add(said)
    assert (await lore.messages.get("tea", "m11")).link.kind == "platform"
    (meets,) = await lore.memories.page("group:tea")
    await lore.memories.update(meets.memory_id, statement="The team meets on Tuesdays 每周二")
    await lore.sessions.write_turn("chat", "ann", "guide", "Question 5? 问题", "Answer 5 回答", turn_id="t5")
    await lore.sessions.checkpoint("chat", "Four questions", covers_through="t4-answer")
    async for _ in lore.index.drain():
        pass
    assert (await lore.messages.search("tea", "又失败了")).hits[0].message.id == "m11"
    assert [one.number for one in await lore.sessions.checkpoints("chat")] == [2, 1]
    assert [one.statement for one in await lore.memories.page("group:tea")] == ["The team meets on Tuesdays 每周二"]
    assert (await lore.privacy.verify()).faults == ()


async def test_what_was_added_before_is_a_duplicate(lore):
    unchanged = [one for one in TALK if one.id not in ("m6", "m7")]
    again = await lore.messages.add(unchanged)
    assert (len(again.duplicates), again.added) == (len(unchanged), ())
    with pytest.raises(Conflict):
        await lore.messages.add(replace(TALK[0], text="something else"))


_FAR = datetime(2099, 1, 1, tzinfo=UTC)


def _micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.fixture
def without_times(url: str) -> None:
    """What this build stored if m3 to m5 had come without a time, and m10 in the year 2099."""
    two, three, ten = (_micros(BEGUN + timedelta(minutes=minute)) for minute in (2, 3, 10))
    engine, tea = engine_of(url), "(SELECT room_key FROM rooms WHERE room_id = 'tea' AND tenant = 'default')"
    with engine.begin() as connection:
        for statement in (
            f"UPDATE messages SET sent_at = {two}, sent_at_estimated = true "
            f"WHERE room_key = {tea} AND arrival BETWEEN 3 AND 5",
            f"UPDATE messages SET sent_at = {_micros(_FAR)} WHERE room_key = {tea} AND arrival = 10",
            f"UPDATE rooms SET last_sent_at = {_micros(_FAR)} WHERE room_key = {tea}",
            f"UPDATE participants SET last_spoke_at = {_micros(_FAR)} WHERE room_key = {tea} AND sender_id = 'bo'",
            f"UPDATE participants SET first_spoke_at = {two} WHERE room_key = {tea} AND sender_id = 'cy'",
            *(
                f"UPDATE {table} SET {column} = replace(replace({column}, '{three},{three}', '{two},{two}'), "
                f"'{ten}]', '{_micros(_FAR)}]')"
                for table, column in (("memories", "evidence"), ("memory_changes", "memory"))
            ),
        ):
            connection.execute(text(statement))
    engine.dispose()


@pytest.mark.usefixtures("without_times")
async def test_what_had_no_time_was_heard_by_who_was_there_before_and_after(lore):
    """Eve left a minute before the next message with a time."""
    minutes = {minute: BEGUN + timedelta(minutes=minute) for minute in range(12)}
    said = {one.id: one for one in await lore.messages.page("tea")}
    for name in ("m3", "m4", "m5"):
        assert (said[name].origin.first, said[name].origin.last) == (minutes[2], minutes[6])
    ten = said["m10"]
    assert (ten.sent_at, ten.sent_at_estimated, ten.heard_from, ten.is_ahead) == (_FAR, True, minutes[9], True)
    assert ten.heard_until is not None
    assert (await lore.rooms.get("tea")).last_sent_at == minutes[9]
    spoke = {name: one.spoke for name, one in (await lore.rooms.people("tea")).people.items()}
    assert (spoke["bo"].end, spoke["cy"].start) == (minutes[9], minutes[6])
    assert [one.id for one in await lore.messages.page("tea", viewer="user:eve")] == ["m1", "m2"]
    assert [one.id for one in await lore.messages.page("tea", viewer="user:ann")] == list(said)
    (meets,) = await lore.memories.page("group:tea", viewer="user:ann")
    assert [(one.first, one.last) for one in meets.evidence] == [(minutes[2], minutes[6])]
    assert await lore.memories.page("group:tea", viewer="user:eve") == []
    versions = await lore.memories.history(meets.memory_id)
    assert [one.evidence for one in versions] == [meets.evidence] * 2
    assert (await lore.memories.changes("group:tea"))[0].memory.evidence == meets.evidence
    await lore.messages.add(Message(id="m11", room_id="tea", sender_id="bo", text="and now?"))
    assert (await lore.messages.get("tea", "m11")).message.at == (await lore.rooms.get("tea")).last_sent_at
    assert (await lore.rooms.get("tea")).last_sent_at > ten.heard_until - timedelta(seconds=1)
    assert (await lore.privacy.verify()).faults == ()


def _untimed(url: str) -> None:
    """Make messages of two rooms what this build stored of some without a time."""
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE messages SET sent_at_estimated = true WHERE arrival > 1"))
    engine.dispose()


def _version(url: str) -> str:
    engine = engine_of(url)
    with engine.connect() as connection:
        version = str(connection.scalar(text("SELECT version_num FROM alembic_version")))
    engine.dispose()
    return version


def _filled(url: str) -> tuple[str, dict[int, int]]:
    """Return the revision, and how many estimated messages of each room have the time within which they were said."""
    engine = engine_of(url)
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT room_key, count(heard_until) FROM messages WHERE sent_at_estimated GROUP BY room_key")
        ).all()
    engine.dispose()
    return _version(url), {row[0]: row[1] for row in rows}


async def test_a_killed_upgrade_goes_on_where_it_was(url, monkeypatch):
    _untimed(url)
    given, filled = heard_times._fill_room, []

    def once(connection, room, now):
        if filled:
            raise KeyboardInterrupt
        filled.append(room)
        given(connection, room, now)

    monkeypatch.setattr(heard_times, "_fill_room", once)
    with pytest.raises(KeyboardInterrupt):
        await connect(url)
    version, counts = _filled(url)
    assert version == heard_times.ADDED, "no server of this version serves"
    assert [room for room, count in counts.items() if count] == filled
    monkeypatch.setattr(heard_times, "_fill_room", given)
    await (await connect(url)).close()
    version, all_of_them = _filled(url)
    assert version == migrations.HEAD
    assert all(all_of_them.values())
    assert all_of_them[filled[0]] == counts[filled[0]]


async def test_servers_read_and_write_while_rooms_are_filled(postgres_built, monkeypatch):
    """A regression: the columns were added and filled in one transaction, which kept the table locked."""
    _untimed(postgres_built)
    given, wrote = heard_times._fill_room, []

    def beside(connection, room, now):
        with psycopg.connect(postgres_built) as other:
            other.execute("SET lock_timeout = '1s'")
            row = other.execute("SELECT * FROM messages WHERE room_key = %s ORDER BY arrival DESC LIMIT 1", [room])
            names = [column.name for column in row.description or ()]
            last = dict(zip(names, row.fetchone() or (), strict=True))
            new = last | {"arrival": last["arrival"] + 1, "message_id": "beside", "sent_at_estimated": False}
            marks = ", ".join(["%s"] * len(names))
            statement = f"INSERT INTO messages ({', '.join(names)}) VALUES ({marks})"
            other.execute(statement.encode(), [new[name] for name in names])
        wrote.append(room)
        given(connection, room, now)

    monkeypatch.setattr(heard_times, "_fill_room", beside)
    await (await connect(postgres_built)).close()
    version, counts = _filled(postgres_built)
    assert version == migrations.HEAD
    assert sorted(counts) == wrote
    assert all(counts.values())


async def test_an_upgrade_waits_for_a_locked_table_without_keeping_others_waiting(postgres_built, monkeypatch):
    monkeypatch.setattr(opening, "PATIENCE_SECONDS", 0.3)
    with psycopg.connect(postgres_built) as reader:
        reader.execute("SELECT count(*) FROM messages")
        with pytest.raises(StorageBusy, match="keep the tables locked"):
            await connect(postgres_built)
        assert _version(postgres_built) == "0022"
    await (await connect(postgres_built)).close()


async def test_texts_that_no_database_holds_pass_the_widening_of_evidence(tmp_path):
    """A regression: the migration wrote a lone surrogate as it is, and could not read an escaped one."""
    room_id, first = "room \ud83d", BEGUN
    made = memory(statement="half a sign: \ud83d", evidence=(EvidenceRoom(room_id, first, first),))
    url = f"sqlite:///{tmp_path}/surrogates.db"
    storage = await connect(url)
    await apply(storage, change(memory=made))
    at = round(first.timestamp() * 1_000_000)
    heard = heard_times._Said(np.array([at]), np.array([at - 60_000_000]), np.array([at]))
    with engine_of(url).connect() as connection:
        heard_times._widen(connection, {(TENANT, room_id): heard})
        connection.commit()
    (logged,) = await log(storage)
    await storage.close()
    assert logged.memory.statement == made.statement
    assert logged.memory.evidence == (EvidenceRoom(room_id, first - timedelta(minutes=1), first),)
