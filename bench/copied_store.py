"""A large SQLite store in a minute: some rooms that are really ingested, and copies of them by SQL."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from bench.built_store import MadeUpRoom, fill
from bench.progress import Progress

_INGESTED = 10
_TABLES = ("rooms", "messages", "participants", "message_features", "keyword_counts", "message_words")
_AT_ONCE = 10


async def build(path: Path, messages: int, *, big: int, room: int = 1_000) -> None:
    """Fill a new store: `room-0` with `big` messages, and rooms of `room` messages; the words of each are indexed."""
    rooms = [MadeUpRoom(0, big), *(MadeUpRoom(number, room) for number in range(1, _INGESTED + 1))]
    await fill(f"sqlite:///{path}", rooms, plain=True)
    _copy(path, max(0, (messages - big) // room - _INGESTED), room)


def _copy(path: Path, copies: int, room: int) -> None:
    progress = Progress("messages copied", copies * room)
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA synchronous = OFF")
        last = store.execute("SELECT max(room_key) FROM rooms").fetchone()[0]
        templates = [key for (key,) in store.execute("SELECT room_key FROM rooms WHERE room_id <> 'room-0'")]
        for number in range(copies):
            _copy_room(store, templates[number % len(templates)], last + 1 + number, f"room-{_INGESTED + 1 + number}")
            if number % _AT_ONCE == 0:
                store.commit()
                progress.at(number * room)
    store.close()
    progress.end(copies * room)


def _copy_room(store: sqlite3.Connection, template: int, key: int, room_id: str) -> None:
    for table in _TABLES:
        columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
        values = [{"room_key": "?", "room_id": "?"}.get(name, name) for name in columns]
        given: Sequence[object] = (key, room_id) if "room_id" in columns else (key,)
        store.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {table} WHERE room_key = ?",
            (*given, template),
        )
