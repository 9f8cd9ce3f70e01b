"""Check which index is walked by what evolving and searching ask of many rooms, one of them big."""

import asyncio
import re

import pytest
from plans import analyse, plan, without_statistics
from sqlalchemy import create_engine

from roomlore.storage import connect
from roomlore.storage.messages import _COUNT, _COUNT_OF, _FIRST_SINCE, _MET, _PAGE_OF
from roomlore.storage.rooms import _ROOMS_OF
from roomlore.storage.values import RoomBehind
from roomlore.storage.work import _BEHIND

WALKS = {
    "sqlite": {
        _BEHIND: "sqlite_autoindex_rooms_1 ((tenant,room_id)>(?,?))",
        _COUNT: "sqlite_autoindex_messages_1 (room_key=? AND arrival>?)",
        _COUNT_OF: "sqlite_autoindex_messages_1 (room_key=? AND arrival>?)",
        _PAGE_OF: "sqlite_autoindex_messages_1 (room_key=? AND arrival>?)",
        _FIRST_SINCE: "ix_messages_sent_at (room_key=? AND sent_at>?)",
        _ROOMS_OF: "ix_participants_sender (tenant=? AND sender_id=?)",
    },
    "postgresql": {
        _BEHIND: "uq_rooms_tenant_room_id",
        _COUNT: "pk_messages",
        _COUNT_OF: "pk_messages",
        _PAGE_OF: "pk_messages",
        _FIRST_SINCE: "ix_messages_sent_at",
        _ROOMS_OF: "ix_participants_sender",
    },
}
TOO_MUCH = re.compile(r"Seq Scan|AUTOMATIC|BLOOM|SCAN (rooms|messages|participants|watermarks)", re.MULTILINE)
"""A whole table."""
SORTS = re.compile(r"Sort|TEMP B-TREE")

ROOMS = 50_000
_MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {many})"
_FILLING = (
    "INSERT INTO rooms (room_key, tenant, room_id, next_arrival, revision, messages, created_at, settings) "
    + _MANY.format(many=ROOMS)
    + " SELECT i, 't' || (i / 500), 'room' || i, 201, 1, 200, 0, '{}' FROM n",
    "INSERT INTO watermarks (tenant, room_id, name, arrival, updated_at) SELECT tenant, room_id, 'evolution', "
    "CASE WHEN room_key / 1000 * 1000 = room_key THEN 20 ELSE 180 END, 0 FROM rooms",
    "INSERT INTO participants (room_key, sender_id, tenant, name, first_arrival, last_arrival, messages) "
    "SELECT room_key, 'u' || (room_key / 10), tenant, '', 1, 1, 1 FROM rooms",
    "INSERT INTO messages (room_key, arrival, tenant, message_id, sender_id, sender_name, role, text, sent_at, "
    "sent_at_estimated, mentions, has_tool_calls, metadata, tokens, content_hash) "
    + _MANY.format(many=20_000)
    + " SELECT 7, i, 't0', 'm' || i, 'u' || (i - i / 50 * 50), '', 'user', 'text', i, FALSE, '[]', FALSE, '{}', 1, '' "
    "FROM n",
    "INSERT INTO message_features (room_key, arrival, tenant, message_type, mentions, addressed, mentions_all, "
    "keywords, partners, link_kind, thread, parent, parent_probability, new_probability, thread_candidates) "
    "SELECT room_key, arrival, tenant, 'casual', "
    "'[]', '[]', FALSE, '[]', '[]', 'guess', 1, arrival - 1, 0.9, 0.1, {nothing} FROM messages",
)


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def _fill(url: str) -> None:
    without_statistics(url)
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for statement in _FILLING:
            connection.exec_driver_sql(statement.replace("{nothing}", "x''" if url.startswith("sqlite") else "''"))
    engine.dispose()


def _check_plans(url: str) -> None:
    for statement, index in WALKS[url.partition(":")[0]].items():
        found = plan(url, statement)
        assert index in found, found
        assert not TOO_MUCH.search(found), found
    behind = plan(url, _BEHIND)
    assert not SORTS.search(behind), behind
    met = plan(url, _MET)
    assert "ix_messages_reply_to" in met, met
    assert not re.search(r"Seq Scan|SCAN (messages|rooms)", met), met
    assert "pk_watermarks" in behind or "watermarks USING PRIMARY KEY (tenant=? AND room_id=? AND name=?)" in behind


def test_fifty_thousand_rooms_are_walked_along_indexes(url):
    _fill(url)
    _check_plans(url)
    analyse(url)
    _check_plans(url)
    asyncio.run(_read(url))


async def _read(url: str) -> None:
    storage = await connect(url)
    async with storage.reading("t7") as work:
        found = await work.progress.rooms_behind(name="evolution", least=50, after=("", ""), limit=99)
        assert found == sorted(
            (RoomBehind(f"t{n // 500}", f"room{n}", 20) for n in range(1000, ROOMS + 1, 1000)), key=_place
        )
        rest = await work.progress.rooms_behind(name="evolution", least=50, after=_place(found[30]), limit=5)
        assert rest == found[31:36]
        assert await work.rooms.of_sender(sender_id="u355") == [f"room{n}" for n in range(3550, 3560)]
        assert await work.of("t0").messages.count(room_id="room7", after=10_000, sender_id="u7") == 200
    await storage.close()


def _place(room: RoomBehind) -> tuple[str, str]:
    return room.tenant, room.room_id
