"""A database of an earlier version, with messages in it, is opened."""

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, insert

from roomlore.adapters.sql import connect, migrations, schema
from roomlore.adapters.sql.rows import features_row, message_row
from roomlore.adapters.sql.values import escape, to_micros
from roomlore.core.indexed import indexed_words
from roomlore.core.models import Entry
from roomlore.testing import START, entry
from roomlore.testing.contracts.facts import fact, facts
from roomlore.testing.contracts.filling import ROOM, TENANT, erase, fill, replace
from roomlore.testing.contracts.lexical import expected, found, words_of

_OLD_ROOM = ("room_key", "tenant", "room_id", "next_arrival", "revision", "messages", "created_at", "settings")


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
                connection.execute(insert(schema.features).values(features_row(key, TENANT, stored)))
    engine.dispose()


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
