"""The two engines beside each other: what is written the same way is found the same way."""

import sqlite3
from collections.abc import AsyncIterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import make_url

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Entry
from roomlore.storage import Storage, UnitOfWork, connect
from roomlore.storage.words import Spelled, WordIndex
from roomlore_testkit import START, entry
from storage_contracts.texts import ROOM, TENANT, fill
from storage_contracts.words import Found, expected, found, look_up, reword, words_of

PIECES = [
    "deploy",
    "Deploy",
    "c++",
    "net/http",
    "部署",
    "部署失败了",
    "が",
    "안녕",
    "😀",
    "'",
    "\\",
    '"',
    "\x00",
    "\ud800",
]
PIECES += [":*&|!()", "AND", "NEAR(", "x" * 130, "a_b", "ß", "İ", "e\u0301", "\u202e", "%s", "again " * 300, "%x"]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=5).map(" ".join)
changes = st.one_of(
    st.tuples(st.just("append"), st.lists(texts, min_size=1, max_size=3)),
    st.tuples(st.just("edit"), st.integers(0, 9), texts),
    st.tuples(st.just("erase"), st.integers(0, 9)),
)
_rooms = count()


@pytest.fixture
async def engines(postgres_url: str) -> AsyncIterator[list[Storage]]:
    opened = [await connect("sqlite://"), await connect(postgres_url)]
    yield opened
    for storage in opened:
        await storage.close()


class Script:
    """A room's story, told to a store change by change, and what is left of it in the end."""

    def __init__(self, story: list[tuple]) -> None:
        self.room_id = f"room {next(_rooms)}"
        self.story = story
        self.standing: dict[int, Entry] = {}
        self.ever: list[str] = []

    async def tell(self, storage: Storage) -> None:
        self.standing, self.said = {}, 0
        for change in self.story:
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=self.room_id, now=START)
                await self._apply(work, change)

    async def _apply(self, work: UnitOfWork, change: tuple) -> None:
        if change[0] == "append":
            entries = [self._say(self.said + n, text) for n, text in enumerate(change[1], start=1)]
            self.said += len(entries)
            await work.messages.append(room_id=self.room_id, entries=entries)
        elif change[1] not in self.standing:
            return
        elif change[0] == "edit":
            await work.messages.replace(room_id=self.room_id, entries=[self._say(change[1], change[2])])
        else:
            del self.standing[change[1]]
            await work.messages.erase(room_id=self.room_id, arrivals=[change[1]], now=START)

    def _say(self, arrival: int, text: str) -> Entry:
        said = entry(arrival, text=text, sender_name=text[:3], metadata={"caption": text[-2:]})
        self.standing[arrival] = said
        self.ever += words_of(said.message)
        return said


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40)
@given(story=st.lists(changes, min_size=1, max_size=6))
async def test_any_story_gives_the_same_postings(engines, story):
    script = Script([("append", ["first"]), *story])
    answers: list[Found] = []
    for storage in engines:
        await script.tell(storage)
        words = list(dict.fromkeys([*script.ever, "'", "nowhere"]))
        answers.append(await found(storage, words, room_id=script.room_id))
        postings = await look_up(storage, [], room_id=script.room_id)
        assert postings is not None
        answers.append({"all words": [(postings.room.words, postings.room.messages, postings.room.revision)]})
    assert answers[:2] == answers[2:]
    assert answers[0] == expected([script.standing[n].message for n in sorted(script.standing)], words)


async def test_the_longest_messages_are_found_the_same(engines):
    endless = "".join(chr(0x4E00 + n) for n in range(20_000))
    entries = [entry(1, text=endless, sender_name=endless[::-1]), entry(2, text="again " * 2_000), entry(3)]
    words = [*words_of(entries[0].message)[::1000], "again"]
    answers = []
    for storage in engines:
        await fill(storage, entries)
        answers.append(await found(storage, words))
    assert answers[0] == answers[1]
    assert [length for _, _, length in answers[0][words[0]]] == [1023]
    assert answers[0]["again"] == [(2, 255, 1023)]


async def _index_otherwise(storage: Storage, spelled: Spelled) -> None:
    """As an older version read the message."""
    async with storage.writing(TENANT) as work:
        room = await work.rooms.lock(room_id=ROOM, now=START)
        held = work.messages._locks.held(TENANT, ROOM)
        await WordIndex(work.connection).put(held, [spelled], revision=room.revision)


async def test_rewording_replaces_whatever_was_indexed(engines):
    for storage, old in zip(engines, ["old words old", "'1xold':1,2 '1xwords':1"], strict=True):
        room = await fill(storage, [entry(1, text="new words"), entry(2, text="words")])
        await _index_otherwise(storage, Spelled(1, 5, old))
        assert await found(storage, ["old", "word", "words"]) == {
            "old": [(1, 2, 5)],
            "words": [(1, 1, 5)],
            "word": [(2, 1, 2)],
        }
        await reword(storage, entry(1, text="new words").message)
        assert await found(storage, ["old", "word", "words", "new"]) == {
            "old": [],
            "words": [],
            "word": [(1, 1, 3), (2, 1, 2)],
            "new": [(1, 1, 3)],
        }
        postings = await look_up(storage, [])
        assert postings is not None
        assert postings.room.words == room.words + 3 - 5


def _sound(url: str) -> list[str]:
    """Return the result of SQLite's own checks of the index and of the file."""
    with sqlite3.connect(make_url(url).database) as connection:
        connection.execute("INSERT INTO message_index (message_index) VALUES ('integrity-check')")
        return [row[0] for row in connection.execute("PRAGMA integrity_check")]


async def test_nothing_is_left_of_what_was_edited_and_erased(sqlite_url):
    storage = await connect(sqlite_url)
    script = Script([("append", ["deploy 部署", "again again"]), ("edit", 1, "other"), ("erase", 2), ("erase", 1)])
    await script.tell(storage)
    await storage.close()
    assert _sound(sqlite_url) == ["ok"]
    with sqlite3.connect(make_url(sqlite_url).database) as connection:
        assert connection.execute("SELECT count(*) FROM message_index_terms").fetchone() == (0,)


async def test_what_does_not_fit_the_numbers_of_sqlite_is_said(sqlite_url):
    storage = await connect(sqlite_url)
    await fill(storage, [entry(1)])
    with sqlite3.connect(make_url(sqlite_url).database) as connection:
        connection.execute("UPDATE rooms SET next_arrival = ?", (2**28,))
    with pytest.raises(InvalidInput, match="PostgreSQL"):
        await fill(storage, [entry(2**28)])
    await storage.close()
