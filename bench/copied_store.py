"""A large store in minutes: rooms that are really ingested, and copies of them by SQL.

A room that is larger than the ingested part is that part, said again and again: its messages have ids, times and
threads of their own.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    Text,
    cast,
    create_engine,
    func,
    insert,
    literal,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

from bench.built_store import MadeUpRoom, fill, opened
from bench.progress import Progress
from roomlore.storage import schema
from roomlore.storage.words import before

_INGESTED = 10
_OF_ROOMS = (schema.rooms, schema.participants, schema.keyword_counts)
_OF_MESSAGES = (schema.messages, schema.features, schema.message_words)
_ARRIVALS = ("arrival", "thread", "parent")
_AT_ONCE = 10
_GAP = 60_000_000
"""Microseconds between a part of a room and its repetition."""


async def build(url: str, messages: int, *, big: int, room: int = 1_000) -> None:
    """Fill a store that has no room yet: `room-0` with `big` messages, a multiple of 20 * `room` or less than that, and
    rooms of `room` messages."""
    async with opened(url, plain=True) as lore:
        if await lore.rooms.page(limit=1):
            return
    repeated = min(big, 20 * room)
    rooms = [MadeUpRoom(0, repeated), *(MadeUpRoom(number, room) for number in range(1, _INGESTED + 1))]
    await fill(url, rooms, plain=True)
    with _copying(url) as store:
        _repeat(store, repeated, big // repeated)
        _copy(store, max(0, (messages - big) // room - _INGESTED), room)


@contextlib.contextmanager
def _copying(url: str) -> Iterator[Connection]:
    """Connect to a store whose new rows may be lost if the machine fails."""
    address = make_url(url)
    if address.get_backend_name() == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
    engine = create_engine(address)
    try:
        with engine.connect() as store:
            if engine.dialect.name == "sqlite":
                store.execute(text("PRAGMA synchronous = OFF"))
            else:
                store.execute(text("SET synchronous_commit = off"))
            yield store
            store.commit()
        if engine.dialect.name == "postgresql":
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as store:
                store.execute(text("VACUUM ANALYZE"))
    finally:
        engine.dispose()


def _repeat(store: Connection, repeated: int, times: int) -> None:
    """Append the messages of `room-0` to it until it has them `times` times."""
    key = store.execute(select(schema.rooms.c.room_key).where(schema.rooms.c.room_id == "room-0")).scalar_one()
    sent = schema.messages.c.sent_at
    first, last = store.execute(select(func.min(sent), func.max(sent)).where(schema.messages.c.room_key == key)).one()
    later = last - first + _GAP
    progress = Progress("messages repeated", (times - 1) * repeated)
    for number in range(1, times):
        for table in _OF_MESSAGES:
            own = {name: table.c[name] + number * repeated for name in _ARRIVALS if name in table.c}
            if table is schema.messages:
                own |= {
                    "message_id": cast(table.c.arrival + (number * repeated - 1), Text),
                    "sent_at": sent + number * later,
                }
            _insert(store, table, own, table.c.room_key == key, table.c.arrival <= repeated)
        store.commit()
        progress.at(number * repeated)
    for table in (schema.keyword_counts, schema.participants):
        store.execute(update(table).where(table.c.room_key == key).values(messages=table.c.messages * times))
    more, spoken = (times - 1) * repeated, (times - 1) * later
    people, rooms = schema.participants.c, schema.rooms.c
    grown = {"last_arrival": people.last_arrival + more, "last_spoke_at": people.last_spoke_at + spoken}
    store.execute(update(schema.participants).where(people.room_key == key).values(grown))
    grown = {
        "messages": rooms.messages * times,
        "words": rooms.words * times,
        "next_arrival": rooms.next_arrival + more,
        "last_sent_at": rooms.last_sent_at + spoken,
    }
    store.execute(update(schema.rooms).where(rooms.room_key == key).values(grown))
    store.commit()
    progress.end(more)


def _copy(store: Connection, copies: int, room: int) -> None:
    """Copy the ingested rooms in turn, under names of their own."""
    progress = Progress("messages copied", copies * room)
    keys = schema.rooms.c.room_key
    last = store.execute(select(func.max(keys))).scalar_one()
    templates = store.execute(select(keys).where(schema.rooms.c.room_id != "room-0").order_by(keys)).scalars().all()
    for number in range(copies):
        key, template = last + 1 + number, templates[number % len(templates)]
        own: dict[str, ColumnElement[Any]] = {
            "room_key": literal(key),
            "room_id": literal(f"room-{_INGESTED + 1 + number}"),
        }
        if store.dialect.name == "postgresql":  # its words have the key of the room before them
            words = cast(schema.message_words.c.words, Text)
            own["words"] = cast(func.replace(words, f"'{before(template)}", f"'{before(key)}"), TSVECTOR)
        for table in (*_OF_ROOMS, *_OF_MESSAGES):
            mine = {name: own[name] for name in own if name in table.c and table.c[name] is not schema.rooms.c.words}
            _insert(store, table, mine, table.c.room_key == template)
        if number % _AT_ONCE == 0:
            store.commit()
            progress.at(number * room)
    if store.dialect.name == "postgresql":
        sequence = func.pg_get_serial_sequence("rooms", "room_key")
        store.execute(select(func.setval(sequence, last + copies)))
    store.commit()
    progress.end(copies * room)


def _insert(store: Connection, table: Table, own: Mapping[str, Any], *which: ColumnElement[bool]) -> None:
    """Insert rows of a table again, with some values of their own."""
    columns = [own.get(column.name, column) for column in table.c]
    store.execute(insert(table).from_select(list(table.c), select(*columns).where(*which)))
