"""What `LexicalIndex` must do."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace as changed

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.indexed import indexed_words
from roomlore.core.models import Entry, Message, StoredMessage
from roomlore.core.search import Postings
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry
from roomlore.testing.contracts.facts import arrivals_since
from roomlore.testing.contracts.filling import ROOM, TENANT, erase, fill, replace

MOST_WORDS, MOST_TIMES = 1023, 255
"""A longer message counts as one of this many words, a word that stands more often in it as standing this often."""

Found = dict[str, list[tuple[int, int, int]]]
"""Word to (arrival, count, length) of each message it stands in."""


async def look_up(
    storage: Storage, words: Sequence[str], *, tenant: str = TENANT, room_id: str = ROOM
) -> Postings | None:
    async with storage.reading() as work:
        return await work.lexical.look_up(tenant=tenant, room_id=room_id, words=words)


async def found(storage: Storage, words: Iterable[str], *, tenant: str = TENANT, room_id: str = ROOM) -> Found:
    """What a look-up gives, read as its docstring says."""
    postings = await look_up(storage, list(words), tenant=tenant, room_id=room_id)
    assert postings is not None
    rows = list(zip(postings.arrivals.tolist(), postings.counts.tolist(), postings.lengths.tolist(), strict=True))
    begins = [0, *postings.ends.tolist()]
    assert begins[-1] == len(rows)
    return {word: rows[begin:end] for word, begin, end in zip(postings.words, begins[:-1], begins[1:], strict=True)}


def expected(messages: Iterable[StoredMessage], words: Iterable[str]) -> Found:
    """What a look-up ought to find in a room of these messages."""
    held = [(message.arrival, Counter(indexed_words(message))) for message in messages]
    return {
        word: [
            (arrival, min(said[word], MOST_TIMES), min(said.total(), MOST_WORDS))
            for arrival, said in held
            if said[word]
        ]
        for word in words
    }


def words_of(*messages: Message) -> list[str]:
    """The distinct words of these messages."""
    return list(dict.fromkeys(word for message in messages for word in indexed_words(message)))


async def reword(storage: Storage, *messages: StoredMessage) -> None:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        await work.lexical.reword(tenant=TENANT, room_id=ROOM, messages=messages)


class _StopError(Exception):
    """Raised inside a unit of work."""


async def _write_and_stop(storage: Storage) -> None:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        await work.writer.append(tenant=TENANT, room_id=ROOM, entries=[entry(5, text="brand new deploy")])
        await work.writer.replace(tenant=TENANT, room_id=ROOM, entries=[entry(1, text="brand")])
        await work.writer.erase(tenant=TENANT, room_id=ROOM, arrivals=[3], now=START)
        raise _StopError


def spoken() -> list[Entry]:
    """Messages in two languages, one of them with a caption and one with nothing to index but a name."""
    return [
        entry(1, text="deploy the deploy script to net/http v1.2 😀"),
        entry(2, sender_id="bo", sender_name="小明", text="部署脚本失败了，部署 c++ again"),
        entry(3, text="", metadata={"caption": "a picture of the deploy"}),
        entry(4, sender_name="...", text="!!!"),
    ]


class LexicalContract:
    async def test_an_unknown_room_has_no_postings(self, storage: Storage) -> None:
        assert await look_up(storage, ["deploy"]) is None

    async def test_every_word_is_found_where_it_stands(self, storage: Storage) -> None:
        entries = spoken()
        room = await fill(storage, entries)
        messages = [one.message for one in entries]
        words = [*words_of(*messages), "nowhere", "無"]
        assert await found(storage, words) == expected(messages, words)
        assert room.words == sum(len(indexed_words(message)) for message in messages) > 0

    async def test_a_look_up_brings_the_room_along(self, storage: Storage) -> None:
        room = await fill(storage, spoken())
        for words in (["deploy"], ["nowhere"], []):
            postings = await look_up(storage, words)
            assert postings is not None
            assert postings.room == room
            assert postings.words == tuple(words)
            assert len(postings.ends) == len(words)

    @pytest.mark.parametrize(
        "word",
        ["", "'", '"', "\\", "''", ":*&|!()", "AND", "NEAR", "a b", "%x", "\x00", "\ud800", "x" * 200, "1x", "_", "*"],
        ids=ascii,
    )
    async def test_a_word_that_no_message_has_finds_nothing(self, storage: Storage, word: str) -> None:
        await fill(storage, spoken())
        assert await found(storage, ["deploy", word, "script"]) == {
            **expected([one.message for one in spoken()], ["deploy", "script"]),
            word: [],
        }

    async def test_any_split_into_batches_indexes_the_same(self, storage: Storage) -> None:
        entries = [entry(n, text=f"all {n % 5} {'again ' * (n % 7)}", sender_id=f"u{n % 3}") for n in range(1, 90)]
        at_once = await fill(storage, entries)
        for one in entries:
            piecewise = await fill(storage, [one], room_id="piecewise")
        words = words_of(*[one.message for one in entries])
        assert await found(storage, words) == await found(storage, words, room_id="piecewise")
        assert at_once.words == piecewise.words

    async def test_rooms_with_the_same_words_do_not_see_each_other(self, storage: Storage) -> None:
        await fill(storage, [entry(1, text="deploy deploy"), entry(2, text="script")])
        await fill(storage, [entry(1, text="script"), entry(2, text="deploy")], room_id="other")
        await fill(storage, [entry(1, text="deploy script")], tenant="other")
        assert await found(storage, ["deploy"]) == {"deploy": [(1, 2, 3)]}
        assert await found(storage, ["deploy"], room_id="other") == {"deploy": [(2, 1, 2)]}
        assert await found(storage, ["deploy"], tenant="other") == {"deploy": [(1, 1, 3)]}
        assert await look_up(storage, ["deploy"], tenant="other", room_id="other") is None

    async def test_an_edit_takes_the_old_words_out(self, storage: Storage) -> None:
        await fill(storage, spoken())
        new = entry(1, text="rollback script")
        room = await replace(storage, new)
        messages = [new.message, *[one.message for one in spoken()[1:]]]
        words = words_of(*messages, spoken()[0].message)
        assert await found(storage, words) == expected(messages, words)
        assert room.words == sum(len(indexed_words(message)) for message in messages)

    async def test_an_edit_to_nothing_and_back(self, storage: Storage) -> None:
        await fill(storage, spoken())
        empty = entry(1, sender_name="...", text="")
        await replace(storage, empty)
        assert (await found(storage, ["script"]))["script"] == []
        await replace(storage, spoken()[0])
        words = words_of(*[one.message for one in spoken()])
        assert await found(storage, words) == expected([one.message for one in spoken()], words)

    async def test_erasing_takes_the_words_out(self, storage: Storage) -> None:
        await fill(storage, spoken())
        await erase(storage, 1, 3)
        room = await erase(storage, 1, 99)
        left = [spoken()[1].message, spoken()[3].message]
        words = words_of(*[one.message for one in spoken()])
        assert await found(storage, words) == expected(left, words)
        assert room.words == sum(len(indexed_words(message)) for message in left)

    async def test_what_raises_leaves_the_index_as_it_was(self, storage: Storage) -> None:
        await fill(storage, spoken())
        before = await found(storage, ["deploy", "script", "brand"])
        with pytest.raises(_StopError):
            await _write_and_stop(storage)
        assert await found(storage, ["deploy", "script", "brand"]) == before

    async def test_a_unit_of_work_finds_what_it_wrote(self, storage: Storage) -> None:
        async with storage.writing() as work:
            await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            await work.writer.append(tenant=TENANT, room_id=ROOM, entries=spoken())
            postings = await work.lexical.look_up(tenant=TENANT, room_id=ROOM, words=["script"])
        assert postings is not None
        assert postings.arrivals.tolist() == [1]

    async def test_counts_and_lengths_have_their_limits(self, storage: Storage) -> None:
        await fill(storage, [entry(1, text="again " * 300), entry(2, text="again " * 3000)])
        assert await found(storage, ["again"]) == {"again": [(1, MOST_TIMES, 301), (2, MOST_TIMES, MOST_WORDS)]}

    async def test_every_count_there_can_be_is_told(self, storage: Storage) -> None:
        entries = [entry(n, text="again " * n) for n in range(1, MOST_TIMES + 1)]
        await fill(storage, entries)
        assert await found(storage, ["again"]) == expected([one.message for one in entries], ["again"])

    async def test_rewording_changes_nothing_but_the_revision(self, storage: Storage) -> None:
        entries = spoken()
        room = await fill(storage, entries)
        messages = [one.message for one in entries]
        words = words_of(*messages)
        await reword(storage, *messages)
        postings = await look_up(storage, words)
        assert postings is not None
        assert postings.room == changed(room, revision=room.revision + 1)
        assert await found(storage, words) == expected(messages, words)
        assert await arrivals_since(storage, room.revision) == [1, 2, 3, 4]

    async def test_rewording_brings_no_deleted_message_back(self, storage: Storage) -> None:
        await fill(storage, spoken())
        room = await erase(storage, 1)
        await reword(storage, spoken()[0].message)
        postings = await look_up(storage, ["script"])
        assert postings is not None
        assert postings.arrivals.tolist() == []
        assert postings.room.words == room.words

    async def test_rewording_needs_the_lock(self, storage: Storage) -> None:
        await fill(storage, spoken())
        with pytest.raises(InvalidInput):
            async with storage.writing() as work:
                await work.lexical.reword(tenant=TENANT, room_id=ROOM, messages=[spoken()[0].message])
