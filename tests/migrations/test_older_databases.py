"""A database of an earlier version, with messages in it, is opened."""

import json
import struct
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Column, Connection, LargeBinary, MetaData, Table, create_engine, insert, text, update

import roomlore
from roomlore.adapters.sql import connect, migrations, schema
from roomlore.adapters.sql.rows import escape, to_micros, unescape
from roomlore.adapters.sql.shapes import LOGGED, features_row, message_row
from roomlore.adapters.sql.words import spell_message
from roomlore.core.audience import BEGINNING, END, EvidenceRoom, Presence, RoomPeople, Window
from roomlore.core.linking.candidates import NO_THREAD_CANDIDATES, ThreadCandidates
from roomlore.core.models import Entry, LinkKind, Role
from roomlore.core.search.query import indexed_words
from roomlore.ports.storage import RoomBehind
from roomlore_testkit import START, change, checkpoint, entry, link, memory, session
from roomlore_testkit.contracts.evolutions import take
from roomlore_testkit.contracts.memories import page
from roomlore_testkit.contracts.memory_log import SCOPE, apply, log
from roomlore_testkit.contracts.sessions import find, save
from roomlore_testkit.contracts.texts import ROOM, TENANT, erase, fill, replace
from roomlore_testkit.contracts.words import expected, fact, facts, found, words_of

_OLD_ROOM = ("room_key", "tenant", "room_id", "next_arrival", "revision", "messages", "created_at", "settings")


_OLD_FEATURES = Table(
    "message_features", MetaData(), *(Column(one.name, one.type) for one in [*schema.features.c][:-1]),
    Column("mates", LargeBinary),
)  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without a table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    return str(request.getfixturevalue("empty_postgres"))


def _engine(url: str):
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def _make(url: str, revision: str, rooms: dict[str, list[Entry]], deleted: set[int] = frozenset()) -> None:
    """A database as that revision left it."""
    engine = _engine(url)
    with engine.begin() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        command.upgrade(config, revision)
        for key, (room_id, entries) in enumerate(rooms.items(), start=1):
            room = (key, TENANT, room_id, len(entries) + 1, 9, len(entries), to_micros(START), "{}")
            connection.execute(insert(schema.rooms).values(dict(zip(_OLD_ROOM, room, strict=True))))
            for stored in entries:
                row = list(message_row(key, TENANT, stored.message))
                row[-1] = to_micros(START) if stored.message.arrival in deleted else None
                connection.execute(insert(schema.messages).values(row))
                *others, _ = features_row(key, TENANT, stored)
                connection.execute(
                    insert(_OLD_FEATURES).values([*others, _ten_bytes_each(stored.link.thread_candidates)])
                )
            if revision != "0001":
                _index(connection, key, [one for one in entries if one.message.arrival not in deleted])
    engine.dispose()


def _ten_bytes_each(candidates: ThreadCandidates) -> bytes:
    """The candidates of a message as versions before 0013 keep them."""
    return b"".join(struct.pack("<qH", at, round(65535 * share)) for at, share in candidates.by_arrival().items())


def _index(connection: Connection, key: int, entries: list[Entry]) -> None:
    """The words of a room's messages, as versions from 0002 on keep them."""
    spelled = [spell_message(one.message, key, connection.dialect, one.message.arrival) for one in entries]
    for one in spelled:
        row = (key, one.arrival, TENANT, one.length, 9, one.words)
        connection.execute(insert(schema.message_words).values(row))
    words = sum(one.length for one in spelled)
    connection.execute(update(schema.rooms).where(schema.rooms.c.room_key == key).values(words=words))


def _sql(url: str, *statements: str) -> list[tuple]:
    """Return the rows of the last of these statements."""
    engine = _engine(url)
    with engine.begin() as connection:
        for statement in statements:
            given = connection.execute(text(statement))
        rows = [tuple(row) for row in given] if given.returns_rows else []
    engine.dispose()
    return rows


async def test_words_of_messages_already_there_are_found(empty_url):
    said = [
        entry(1, text="deploy the c++ script 部署失败"),
        entry(2, text="a\x00b \ud800 it's \\ deploy", sender_name="小明"),
        entry(3, text="gone with the deploy"),
        entry(4, text="", metadata={"caption": "a picture \x00"}),
    ]
    _make(empty_url, "0001", {ROOM: said, "other": [entry(1, text="deploy")], "empty": []}, deleted={3})
    storage = await connect(empty_url)
    left = [said[0], said[1], said[3]]
    words = words_of(*[one.message for one in said])
    assert await found(storage, words) == expected([one.message for one in left], words)
    assert await found(storage, ["deploy"], room_id="other") == expected([entry(1, text="deploy").message], ["deploy"])
    assert await facts(storage) == [fact(one) for one in left]
    async with storage.reading() as work:
        rooms = await work.rooms.page(tenant=TENANT, after=None, limit=9)
    assert {room.room_id: room.words for room in rooms} == {
        "empty": 0,
        "other": 2,
        ROOM: sum(len(indexed_words(one.message)) for one in left),
    }
    await storage.close()


async def test_an_older_database_goes_on_being_written(empty_url):
    said = [entry(n, text=f"deploy {n} 部署") for n in range(1, 6)]
    _make(empty_url, "0001", {ROOM: said})
    storage = await connect(empty_url)
    await replace(storage, entry(1, text="rolled back"))
    await erase(storage, 2)
    await fill(storage, [entry(6, text="deploy again")])
    left = [entry(1, text="rolled back"), *said[2:], entry(6, text="deploy again")]
    words = words_of(*[one.message for one in (*said, *left)])
    assert await found(storage, words) == expected([one.message for one in left], words)
    assert [row.arrival for row in await facts(storage, since=9)] == [1, 2, 6]
    await storage.close()


async def test_many_messages_are_read_page_by_page(empty_url):
    said = {escape(f"room {n}"): [entry(m, text=f"word{m}") for m in range(1, 702)] for n in range(3)}
    _make(empty_url, "0001", said)
    storage = await connect(empty_url)
    for room_id, entries in said.items():
        words = words_of(*[one.message for one in entries[::100]])
        held = await found(storage, words, room_id=room_id)
        assert held == expected([one.message for one in entries], words)
    await storage.close()


async def test_thread_candidates_are_packed_anew(empty_url):
    far = ThreadCandidates.of([1, 3, 900, 70_000], [0.25, 1.0, 0.0, 0.5])
    candidates = [NO_THREAD_CANDIDATES, ThreadCandidates.of([1], [0.7]), far]
    said = [entry(place, link=link(place, thread_candidates=one)) for place, one in enumerate(candidates, 1)]
    _make(empty_url, "0012", {ROOM: said})
    storage = await connect(empty_url)
    async with storage.reading() as work:
        held = await work.messages.by_arrival(tenant=TENANT, room_id=ROOM, arrivals=[1, 2, 3])
    assert [one.link.thread_candidates for one in held] == candidates
    await storage.close()


_SHOWN = "SELECT message_id, query, answer FROM ai_message ORDER BY create_time"


def _turn() -> list[Entry]:
    return [
        entry(1, text="deploy? 部署", turn_id="t"),
        entry(2, text="done", role=Role.ASSISTANT, turn_id="t"),
    ]


@pytest.mark.parametrize("revision", ["0001", "0002"])
async def test_rooms_already_there_get_sessions(empty_url, revision):
    said = _turn()
    _make(empty_url, revision, {ROOM: said, "empty": []})
    before = _sql(empty_url, _SHOWN)
    storage = await connect(empty_url)
    words = words_of(*[one.message for one in said])
    assert await found(storage, words) == expected([one.message for one in said], words)
    bare = session(0, user_id="", revision=9, next_arrival=3)
    assert await find(storage) == bare
    await save(storage, session(1, checkpoint=checkpoint(1)), checkpoint(1))
    kept = session(1, revision=9, next_arrival=3, checkpoint=checkpoint(1))
    assert await find(storage) == kept
    await fill(storage, [entry(3, text="and then? 部署")])
    async with storage.reading() as work:
        changed = await work.messages.changed(tenant=TENANT, room_id=ROOM, revision=9, after=0)
    assert changed == ([entry(3, text="and then? 部署").message], [])
    await storage.close()
    assert before == [("m1", "deploy? 部署", "done")]
    assert _sql(empty_url, _SHOWN) == [
        *before,
        ("m3", "and then? 部署", None),
        ("c1", "[MEMORY_CHECKPOINT]", "Summary: summary 1"),
    ]


async def test_the_view_keeps_its_grants_and_what_was_built_over_it(empty_postgres):
    _make(empty_postgres, "0002", {ROOM: _turn()})
    _sql(empty_postgres, "CREATE VIEW mine AS SELECT answer FROM ai_message", "GRANT SELECT ON ai_message TO PUBLIC")
    await (await connect(empty_postgres)).close()
    assert _sql(empty_postgres, "SELECT answer FROM mine") == [("done",)]
    granted = "SELECT grantee FROM information_schema.table_privileges WHERE table_name = 'ai_message'"
    assert ("PUBLIC",) in _sql(empty_postgres, granted)


async def test_rooms_with_sessions_get_memories(empty_url):
    said = _turn()
    _make(empty_url, "0003", {ROOM: said})
    storage = await connect(empty_url)
    words = words_of(*[one.message for one in said])
    assert await found(storage, words) == expected([one.message for one in said], words)
    await save(storage, session(1, checkpoint=checkpoint(1)), checkpoint(1))
    assert await log(storage) == await page(storage, SCOPE) == []
    await apply(storage, change(1, memory("f1")))
    assert await log(storage) == [change(1, memory("f1"))]
    assert await page(storage, SCOPE) == [memory("f1")]
    await storage.close()
    assert [row[0] for row in _sql(empty_url, _SHOWN)] == ["m1", "c1"]


async def test_rooms_with_memories_get_leases_and_find_their_senders(empty_url):
    _make(empty_url, "0004", {ROOM: [entry(1)]})
    _sql(empty_url, f"INSERT INTO participants VALUES (1, 'ann', '{TENANT}', '', 1, 1, 1)")
    storage = await connect(empty_url)
    assert await take(storage, "a")
    assert not await take(storage, "b")
    async with storage.reading() as work:
        assert await work.rooms.of_sender(tenant=TENANT, sender_id="ann") == [ROOM]
        assert await work.progress.rooms_behind(name="x", least=1, after=("", ""), limit=9) == [
            RoomBehind(TENANT, ROOM, 0)
        ]
    await storage.close()


@pytest.mark.parametrize("revision", ["0002", "0006"])
async def test_rooms_already_there_are_linked_anew(empty_url, revision):
    said = [
        entry(1, text="does the deploy of nginx fail?", sender_id="bo", sender_name="Bo"),
        entry(2, text="no", reply_to="m1"),
        entry(3, text="bo: the nginx deploy works here"),
    ]
    _make(empty_url, revision, {ROOM: said, "empty": []})
    async with roomlore.open(empty_url, tenant=TENANT, background=False) as lore:
        assert (await lore.index.status()).rooms_to_link == 1
        assert [step.done async for step in lore.index.relink()] == [3]
        assert (await lore.index.status()).rooms_to_link == 0
        assert (await lore.messages.get(ROOM, "m2")).link.kind == LinkKind.PLATFORM
        assert (await lore.messages.get(ROOM, "m3")).features.addressed == ("bo",)


async def test_who_spoke_when_is_read_from_older_messages(empty_url):
    late = START + timedelta(days=2)
    said = [entry(1), entry(2, sender_id="bot", role=Role.ASSISTANT), entry(3, sent_at=late), entry(4, sender_id="bo")]
    _make(empty_url, "0008", {ROOM: said}, deleted={4})
    people = "INSERT INTO participants VALUES (1, '{}', 'default', '', 1, 3, 1)"
    _sql(empty_url, *(people.format(name) for name in ("ann", "bot", "bo")))
    storage = await connect(empty_url)
    async with storage.reading() as work:
        found = (await work.rooms.people(tenant=TENANT, room_ids=[ROOM]))[ROOM]
    await storage.close()
    assert found == RoomPeople(ROOM, people={"ann": Presence(spoke=Window(said[0].message.at, late))})


async def test_who_answered_in_a_room_is_an_agent_there(empty_url):
    """Somebody may answer in one room and be a person in another; who sent notices of the platform is neither."""
    roles = {"ann": [Role.USER], "bot": [Role.ASSISTANT], "tool": [Role.TOOL], "notices": [Role.SYSTEM]}
    roles["both"] = [Role.USER, Role.ASSISTANT]
    here = [(name, role) for name, its in roles.items() for role in its]
    said = [entry(number, sender_id=name, role=role) for number, (name, role) in enumerate(here, start=1)]
    _make(empty_url, "0011", {ROOM: said, "other": [entry(1, sender_id="bot")]})
    columns = "room_key, sender_id, tenant, name, first_arrival, last_arrival, messages"
    people = f"INSERT INTO participants ({columns}) VALUES ({{}}, '{{}}', 'default', '', 1, 3, 1)"
    _sql(empty_url, *(people.format(1, name) for name in roles), people.format(2, "bot"))
    storage = await connect(empty_url)
    await storage.close()
    answering = _sql(empty_url, "SELECT room_key, sender_id FROM participants WHERE answers ORDER BY sender_id")
    assert answering == [(1, "bot"), (1, "both"), (1, "tool")]


async def test_memories_of_older_databases_get_the_rooms_of_their_messages(empty_url):
    room, gone = "茶室", "gone"
    said = [entry(1), entry(2), entry(3)]
    _make(empty_url, "0009", {room: said}, deleted={2})
    sources = [(room, "m1"), (room, "m2"), (gone, "x")]
    told = escape(json.dumps(sources))
    version = json.loads(unescape(LOGGED.text(memory("f1")))) | {"sources": sources}
    version = {name: value for name, value in version.items() if name not in ("evidence", "shared_with")}
    engine = _engine(empty_url)
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO memory_scopes VALUES (1, :tenant, 'user:ann', 2, 2, 0, 0)"), {"tenant": TENANT}
        )
        for key, (name, its) in enumerate({"f1": told, "f2": "[]"}.items(), start=1):
            connection.execute(
                text(
                    "INSERT INTO memories VALUES (:key, 1, :tenant, :name, :name, 1, true, NULL, 'active', 'fact', 's',"
                    " '[]', '', 1, NULL, '[]', :sources, '', NULL, 'caller', false, 0, 0, 0)"
                ),
                {"key": key, "tenant": TENANT, "name": name, "sources": its},
            )
        connection.execute(
            text(
                "INSERT INTO memory_changes VALUES (1, 1, :tenant, 'create', 'f1', :memory, '[]', NULL, '', NULL, NULL,"
                " 'caller', 0)"
            ),
            {"tenant": TENANT, "memory": escape(json.dumps(version, ensure_ascii=False))},
        )
    engine.dispose()
    storage = await connect(empty_url)
    async with storage.reading() as work:
        found = {one.memory_id: one for one in await work.memories.by_id(tenant=TENANT, memory_ids=["f1", "f2"])}
        logged = await work.memories.changes(tenant=TENANT, scope="user:ann", after=0, limit=9)
    await storage.close()
    first, last = said[0].message.at, said[1].message.at
    assert found["f1"].evidence == (EvidenceRoom(gone, BEGINNING, END), EvidenceRoom(room, first, last))
    assert found["f2"].evidence == ()
    assert logged[0].memory.evidence == found["f1"].evidence


async def test_usage_records_get_their_mean_score(empty_url):
    _make(empty_url, "0013", {})
    written = (
        "INSERT INTO context_usage_records (tenant, context_id, room_id, user_id, trigger_message_id, strategy, "
        "context_message_ids, relevance_scores, tokens, window_tokens, build_ms, created_at) VALUES "
        "('t', '{0}', 'r', 'ann', 'm1', 'recent', '[]', '{1}', 1, 2, 0.5, 0)"
    )
    _sql(empty_url, written.format("c1", "{}"), written.format("c2", '{"m1"\\:0.25,"m2"\\:0.5}'))
    await (await connect(empty_url)).close()
    assert _sql(empty_url, "SELECT context_id, mean_score FROM context_usage_record ORDER BY context_id") == [
        ("c1", None),
        ("c2", 0.375),
    ]
