"""Checks read the messages of a room a page at a time, however long and however many; and a room that goes."""

from collections.abc import Sequence

import pytest
from verifying import damage, unguarded, verify

from roomlore.core.models import Room
from roomlore.storage import Storage
from roomlore.storage.schema import features
from roomlore.storage.values import OrphanRow, ReadMessage
from roomlore_testkit import START, entry
from storage_contracts.texts import ROOM, TENANT, erase, fill


async def read(storage: Storage, *, after: int = 0, limit: int = 1000) -> Sequence[ReadMessage]:
    """A page, read when its unit of work is closed."""
    async with storage.reading(TENANT) as work:
        reading = await work.maintenance.read_messages(room_id=ROOM, after=after, limit=limit)
    return reading()


async def pages(storage: Storage, limit: int) -> list[list[int]]:
    found: list[list[int]] = []
    while page := await read(storage, after=found[-1][-1] if found else 0, limit=limit):
        found.append([one.number for one in page])
    return found


@pytest.mark.parametrize(
    ("limit", "told"), [(1000, [[1, 2, 3], [4], [5, 6]]), (2, [[1, 2], [3, 4], [5, 6]])], ids=["long", "many"]
)
async def test_a_page_ends_where_its_texts_are_long(storage, limit, told):
    """Two million characters, of texts and what callers keep with them; and one message at least."""
    texts = ["x" * 700_000, "茶" * 700_000, "", "y" * 2_500_000, "", "tea 茶"]
    beside = {3: {"caption": "z" * 700_000}}
    await fill(storage, [entry(n, text=text, metadata=beside.get(n, {})) for n, text in enumerate(texts, 1)])
    assert await pages(storage, limit) == told
    report = await verify(storage)
    assert report.faults == ()
    assert report.checked["messages"] == len(texts)


async def test_what_stands_behind_a_page_that_is_not_full_is_checked(storage):
    await fill(storage, [entry(n, text="x" * 1_500_000) for n in (1, 2, 3)])
    await damage(storage, "DELETE FROM message_features WHERE arrival = 3")
    assert (await verify(storage)).counts == {"message features": 1}


async def test_a_message_whose_text_is_no_more_is_unreadable(storage):
    await fill(storage, [entry(number) for number in (1, 2, 3)])
    async with storage.outside() as connection:
        if connection.dialect.name == "sqlite":
            await connection.run("PRAGMA writable_schema = ON")
            await connection.run(
                "UPDATE sqlite_master SET sql = replace(sql, 'text TEXT NOT NULL', 'text TEXT')"
                " WHERE type = 'table' AND name = 'messages'"
            )
            await connection.run("PRAGMA writable_schema = RESET")
        else:
            await connection.run("ALTER TABLE messages ALTER text DROP NOT NULL")
        await connection.run("UPDATE messages SET text = NULL WHERE arrival = 2")
    report = await verify(storage)
    assert (report.counts, report.checked["messages"]) == ({"unreadable": 1}, 3)


async def test_words_beside_a_message_that_cannot_be_read_are_unknown(storage):
    await fill(storage, [entry(number) for number in (1, 2, 3, 4)])
    await damage(storage, "UPDATE messages SET role = 'king' WHERE arrival <= 2")
    await damage(storage, "UPDATE message_words SET words = '', length = 0 WHERE arrival = 3")
    await damage(storage, "DELETE FROM message_words WHERE arrival = 2")
    assert [one.words for one in await read(storage)] == ["unknown", "missing", "other", "right"]


SOME = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {many})"
STRAY_WORDS = (
    f"{SOME} INSERT INTO message_words (room_key, arrival, tenant, length, changed, words)"
    " SELECT room_key, 100 + n, tenant, length, changed, words FROM message_words, numbers WHERE arrival = 1"
)
COLUMNS = ", ".join(column.name for column in features.columns if column.name not in ("room_key", "arrival"))
STRAY_FEATURES = (
    f"{SOME} INSERT INTO message_features (room_key, arrival, {COLUMNS})"
    f" SELECT room_key, 100 + n, {COLUMNS} FROM message_features, numbers WHERE arrival = 1"
)


@pytest.mark.parametrize(("of_features", "of_words"), [(3, 997), (1003, 1500)])
async def test_orphan_rows_of_both_tables_are_counted_whole(storage, of_features, of_words):
    await fill(storage, [entry(1, text="喝茶 tea")])
    await unguarded(storage, "message_features", STRAY_FEATURES.format(many=of_features))
    await unguarded(storage, "message_words", STRAY_WORDS.format(many=of_words))
    report = await verify(storage)
    assert report.counts == {"orphan rows": of_features + of_words}
    assert len(report.faults) == 1000


async def test_orphan_rows_are_told_by_table_room_and_arrival(storage):
    await fill(storage, [entry(1)])
    await fill(storage, [entry(1)], room_id="茶")
    await unguarded(storage, "message_features", STRAY_FEATURES.format(many=2))
    await unguarded(storage, "message_words", STRAY_WORDS.format(many=2))
    found: list[OrphanRow] = []
    async with storage.reading(TENANT) as work:
        for _ in range(4):
            found += await work.maintenance.orphan_rows(after=found[-1] if found else None, limit=3)
        assert await work.of("other").maintenance.orphan_rows(after=None, limit=3) == []
    places = [(one.table, one.room_key, one.arrival) for one in found]
    first, second = sorted({one.room_key for one in found})
    assert places == [
        (table, room_key, arrival)
        for table in ("message_features", "message_words")
        for room_key in (first, second)
        for arrival in (101, 102)
    ]


async def left_of(storage: Storage, limit: int) -> Room | None:
    """The room after some more of it was removed."""
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.maintenance.remove_room(room_id=ROOM, limit=limit)
    async with storage.reading(TENANT) as work:
        return await work.rooms.find(room_id=ROOM)


async def test_a_room_that_goes_is_sound_after_every_step(storage):
    said = ["我们喝茶吧", "gone", "one two three", "茶 and tea", "ok"]
    await fill(storage, [entry(number, text=text) for number, text in enumerate(said, 1)])
    await fill(storage, [entry(1, text="another room 另一个房间")], room_id="other")
    await erase(storage, 2)
    kept = {one.number: one.length for one in await read(storage)}
    counted = []
    while room := await left_of(storage, 2):
        assert (await verify(storage)).faults == ()
        counted.append((room.messages, room.words))
    assert counted == [(3, kept[3] + kept[4] + kept[5]), (1, kept[5]), (0, 0)]
    assert (await verify(storage)).checked == {"rooms": 1, "messages": 1}


@pytest.mark.parametrize("storage_url", ["sqlite"], indirect=True)
async def test_what_has_no_place_in_a_column_hinders_neither_a_check_nor_a_room_that_goes(storage):
    """SQLite takes anything in any column."""
    await fill(storage, [entry(number) for number in (1, 2, 3)])
    await damage(storage, "UPDATE message_words SET length = 'many' WHERE arrival = 1")
    await damage(storage, "UPDATE messages SET message_id = x'00ff' WHERE arrival = 2")
    assert (await verify(storage)).counts == {"message words": 1, "unreadable": 1, "room counters": 1}
    while await left_of(storage, 2):
        pass
    assert (await verify(storage)).faults == ()
