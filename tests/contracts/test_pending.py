"""Messages that are counted and indexed later are found like all others: before, after, and in between."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace as changed

import pytest
from sqlalchemy import select
from verifying import damage

from engines import ENGINES
from roomlore.core.models import Entry
from roomlore.storage import Storage, connect, pending
from roomlore.storage.engine import Statement
from roomlore.storage.schema import message_words
from roomlore_testkit import START, entry, features
from storage_contracts.texts import ROOM, TENANT, erase, everything, fill, replace
from storage_contracts.words import expected, found, look_up

_PENDING = Statement(lambda: select(message_words.c.arrival).where(message_words.c.pending))
WORDS = ("alfa", "bravo", "again", "茶")
FEW = 4


@pytest.fixture(params=ENGINES)
async def storage(request: pytest.FixtureRequest) -> AsyncIterator[Storage]:
    opened = await connect(str(request.getfixturevalue(request.param)))
    yield opened
    await opened.close()


def said(arrival: int, text: str | None = None) -> Entry:
    text = text or " ".join(WORDS[: 1 + arrival % 4]) + " again" * (arrival % 3)
    return entry(arrival, text=text, features=features(keywords=tuple(dict.fromkeys(text.split()))))


async def check(storage: Storage) -> None:
    """Compare what is found and counted with the messages that are there."""
    there = await everything(storage)
    counts = Counter(word for one in there for word in one.features.keywords)
    async with storage.reading(TENANT) as work:
        room = await work.rooms.find(room_id=ROOM)
        assert room is not None
        assert await work.messages.every_keyword_count(room=room) == (counts or None)
        few = await work.messages.keyword_counts(room_id=ROOM, keywords=["none", *WORDS])
    assert few == {word: counts[word] for word in WORDS if counts[word]}
    assert await found(storage, WORDS) == expected([one.message for one in there], WORDS)


async def waiting(storage: Storage) -> list[int]:
    """Return the arrivals that are pending."""
    async with storage.reading(TENANT) as work:
        return sorted(row[0] for row in await work.connection.fetch(_PENDING))


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ([1, 1, 1], [1, 2, 3]),
        ([1, 1, 1, 1], []),
        ([1, 1, 1, 1, 1], [5]),
        ([2, 3], []),
        ([2, 9, 2], [12, 13]),
        ([9, 1], [10]),
        ([1, 2, 9], []),
    ],
)
async def test_messages_wait_until_there_are_many(storage, monkeypatch, parts, left):
    monkeypatch.setattr(pending, "MOST_PENDING", FEW)
    arrival = 0
    for count in parts:
        await fill(storage, [said(arrival + place) for place in range(1, count + 1)])
        arrival += count
        await check(storage)
    assert await waiting(storage) == left


async def test_what_changes_earlier_messages_settles_the_room(storage):
    await fill(storage, [said(number) for number in range(1, 6)])
    for change in (
        lambda: replace(storage, said(2, "bravo 茶 茶")),
        lambda: erase(storage, 3),
        lambda: restored(storage, said(3)),
        lambda: analysed_anew(storage, changed(said(1), features=features(keywords=("again",)))),
    ):
        assert await waiting(storage) != []
        await change()
        assert await waiting(storage) == []
        await check(storage)
        newest = max(one.message.arrival for one in await everything(storage))
        await fill(storage, [said(newest + 1)])
        await check(storage)


async def restored(storage: Storage, *entries: Entry) -> None:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.messages.restore(room_id=ROOM, entries=entries)


async def analysed_anew(storage: Storage, *entries: Entry) -> None:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.messages.analyse_anew(room_id=ROOM, entries=entries)


async def test_what_one_unit_of_work_adds_in_parts_waits_as_a_whole(storage, monkeypatch):
    monkeypatch.setattr(pending, "MOST_PENDING", FEW)
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        for number in (1, 2, 3):
            await work.messages.append(room_id=ROOM, entries=[said(number)])
    assert await waiting(storage) == [1, 2, 3]
    await fill(storage, [said(4)])
    assert await waiting(storage) == []
    await check(storage)


async def test_a_message_that_the_version_before_indexed_at_once_is_counted_once(storage, monkeypatch):
    """It knows neither column: its message is not pending, between others that are."""
    monkeypatch.setattr(pending, "MOST_PENDING", FEW)
    await fill(storage, [said(1), said(2), said(3)])
    await damage(storage, "UPDATE message_words SET pending = (1 = 0) WHERE arrival = 2")
    count = "INSERT INTO keyword_counts (room_key, keyword, tenant, messages)"
    for word in said(2).features.keywords:
        await damage(storage, f"{count} SELECT room_key, '{word}', tenant, 1 FROM rooms")
    assert await waiting(storage) == [1, 3]
    await check(storage)
    await fill(storage, [said(4)])
    assert await waiting(storage) == []
    await check(storage)


async def test_a_room_of_which_all_messages_wait_has_no_other_words(storage):
    await fill(storage, [said(1, "!!!"), said(2, "alfa")])
    assert await found(storage, ["bravo", "", "alfa"]) == {"bravo": [], "": [], "alfa": [(2, 1, 2)]}
    postings = await look_up(storage, [])
    assert postings is not None
    assert not postings.arrivals.size
