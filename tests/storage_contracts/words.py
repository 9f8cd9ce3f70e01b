"""The contracts of `LexicalIndex` and of index states."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace as changed
from dataclasses import replace as dataclasses_replace
from datetime import timedelta
from typing import NamedTuple

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.linking.calibration import UNLINKED, Linked
from roomlore.core.models import Entry, LinkKind, Message, MessageType, Role, StoredMessage
from roomlore.core.search.hits import ROLES, EmbeddingModel, IndexState, Postings
from roomlore.core.search.query import indexed_words
from roomlore.storage import Storage
from roomlore_testkit.builders import START, entry, features, link
from roomlore_testkit.case_table import all_cases
from storage_contracts.texts import ROOM, TENANT, conversation, erase, everything, fill, relink, replace


class Fact(NamedTuple):
    """One line of `FactRows`."""

    arrival: int
    sent_at: int
    sender_id: str
    sender_name: str
    role: Role
    length: int
    question: bool
    parent: int
    parent_odds: float
    thread: int
    deleted: bool


async def facts(storage: Storage, *, since: int = 0, tenant: str = TENANT) -> list[Fact]:
    async with storage.reading(tenant) as work:
        rows = await work.messages.facts(room_id=ROOM, since=since)
    columns = (
        rows.arrivals.tolist(),
        rows.sent_at.tolist(),
        rows.sender_ids,
        rows.sender_names,
        [ROLES[code] for code in rows.roles.tolist()],
        rows.lengths.tolist(),
        rows.questions.tolist(),
        rows.parents.tolist(),
        rows.parent_odds.tolist(),
        rows.threads.tolist(),
        rows.deleted.tolist(),
    )
    return list(map(Fact._make, zip(*columns, strict=True)))


def fact(stored: Entry) -> Fact:
    """Return the line for an entry."""
    message, place = stored.message, stored.link
    return Fact(
        arrival=message.arrival,
        sent_at=(message.at - START) // timedelta(microseconds=1) + 1_714_554_000_000_000,
        sender_id=message.sender_id,
        sender_name=message.sender_name,
        role=message.role,
        length=len(indexed_words(message)),
        question=stored.features.message_type is MessageType.QUESTION,
        parent=place.parent or 0,
        parent_odds=place.parent_probability,
        thread=place.thread,
        deleted=False,
    )


async def arrivals_since(storage: Storage, revision: int) -> list[int]:
    return [row.arrival for row in await facts(storage, since=revision)]


class FactsContract:
    async def test_facts_say_what_ranking_asks(self, storage: Storage) -> None:
        entries = [
            entry(1, sent_at=START - timedelta(days=30_000), sender_id="a\x00b\x1a", sender_name="\x1a,\x1a\x1a"),
            entry(
                2,
                sender_id="bo",
                sender_name="小明",
                text="why does the deploy fail? 为什么",
                role=Role.ASSISTANT,
                features=features(message_type=MessageType.QUESTION),
                link=link(1, 1, parent_probability=0.625),
            ),
        ]
        await fill(storage, entries)
        rows = await facts(storage)
        assert rows == [fact(one) for one in entries]
        assert [row.sent_at < 0 for row in rows] == [True, False]
        assert [row.question for row in rows] == [False, True]

    async def test_facts_come_in_order_of_arrival(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 400)])
        await replace(storage, entry(7, text="edited"))
        assert [row.arrival for row in await facts(storage)] == list(range(1, 400))
        assert await arrivals_since(storage, 0) == list(range(1, 400))

    async def test_facts_since_a_revision_are_of_what_was_written_after_it(self, storage: Storage) -> None:
        first = await fill(storage, conversation())
        second = await fill(storage, [entry(5), entry(6)])
        assert await arrivals_since(storage, first.revision) == [5, 6]
        assert await arrivals_since(storage, second.revision) == []
        edited = entry(2, text="another length altogether, so it is", link=link(1, 1))
        await replace(storage, edited)
        assert await facts(storage, since=second.revision) == [fact(edited)]
        assert await arrivals_since(storage, first.revision) == [2, 5, 6]

    async def test_the_deleted_are_told_once_something_was_known(self, storage: Storage) -> None:
        room = await fill(storage, conversation())
        await erase(storage, 2, 4)
        assert [row.arrival for row in await facts(storage)] == [1, 3]
        told = await facts(storage, since=room.revision)
        assert [(row.arrival, row.length, row.deleted) for row in told] == [(2, 0, True), (4, 0, True)]

    async def test_new_links_are_told_with_all_that_moves_along(self, storage: Storage) -> None:
        linked = [entry(2), entry(3, link=link(2, 2)), entry(4, link=link(2, 3)), entry(5, link=link(5, None))]
        room = await fill(storage, [entry(1), *linked, entry(6, link=link(2, 2, kind=LinkKind.NEW))])
        await relink(storage, {2: link(1, 1, parent_probability=1.0, kind=LinkKind.PLATFORM)})
        told = await facts(storage, since=room.revision)
        assert [(row.arrival, row.parent, row.parent_odds, row.thread) for row in told] == [
            (2, 1, 1.0, 1),
            (3, 2, 0.75, 1),
            (4, 3, 0.75, 1),
        ]

    async def test_an_edit_that_moves_a_thread_tells_of_all_that_moves(self, storage: Storage) -> None:
        room = await fill(storage, [entry(1), entry(2), entry(3, link=link(2, 2)), entry(4)])
        await replace(storage, entry(2, link=link(1, 1)))
        assert await facts(storage, since=room.revision) == [fact(one) for one in (await everything(storage))[1:3]]

    async def test_a_room_nobody_knows_has_no_facts(self, storage: Storage) -> None:
        await fill(storage, conversation())
        assert await facts(storage, tenant="other") == []
        assert await facts(storage, tenant="other", since=0) == []


MOST_WORDS, MAX_TIMES = 1023, 255
"""The limits of the index: a longer message counts as one of this many words, a more frequent word as this frequent."""

Found = dict[str, list[tuple[int, int, int]]]
"""Each word with (arrival, count, length) of each message that contains it."""


async def look_up(
    storage: Storage, words: Sequence[str], *, tenant: str = TENANT, room_id: str = ROOM
) -> Postings | None:
    async with storage.reading(tenant) as work:
        return await work.messages.look_up(room_id=room_id, words=words)


async def found(storage: Storage, words: Iterable[str], *, tenant: str = TENANT, room_id: str = ROOM) -> Found:
    """Return the result of a look-up, read as its docstring says, with the length of each message."""
    postings = await look_up(storage, list(words), tenant=tenant, room_id=room_id)
    assert postings is not None
    async with storage.reading(tenant) as work:
        facts = await work.messages.facts(room_id=room_id, since=0)
    lengths = dict(zip(facts.arrivals.tolist(), facts.lengths.tolist(), strict=True))
    places = zip(postings.arrivals.tolist(), postings.counts.tolist(), strict=True)
    rows = [(arrival, count, lengths[arrival]) for arrival, count in places]
    begins = [0, *postings.ends.tolist()]
    assert begins[-1] == len(rows)
    return {word: rows[begin:end] for word, begin, end in zip(postings.words, begins[:-1], begins[1:], strict=True)}


def expected(messages: Iterable[StoredMessage], words: Iterable[str]) -> Found:
    """Return the expected result of a look-up in a room of these messages."""
    held = [(message.arrival, Counter(indexed_words(message))) for message in messages]
    return {
        word: [
            (arrival, min(said[word], MAX_TIMES), min(said.total(), MOST_WORDS)) for arrival, said in held if said[word]
        ]
        for word in words
    }


def words_of(*messages: Message) -> list[str]:
    """Return the distinct words of these messages."""
    return list(dict.fromkeys(word for message in messages for word in indexed_words(message)))


async def reword(storage: Storage, *messages: StoredMessage) -> None:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.messages.reword(room_id=ROOM, messages=messages)


class _StopError(Exception):
    """Raised inside a unit of work."""


async def _write_and_stop(storage: Storage) -> None:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.messages.append(room_id=ROOM, entries=[entry(5, text="brand new deploy")])
        await work.messages.replace(room_id=ROOM, entries=[entry(1, text="brand")])
        await work.messages.erase(room_id=ROOM, arrivals=[3], now=START)
        raise _StopError


def spoken() -> list[Entry]:
    """Return messages in two languages, one of them with a caption and one with nothing to index but a name."""
    return [
        entry(1, text="deploy the deploy script to net/http v1.2 😀"),
        entry(2, sender_id="bo", sender_name="小明", text="部署脚本失败了，部署 c++ again"),
        entry(3, text="", metadata={"caption": "a picture of the deploy"}),
        entry(4, sender_name="...", text="!!!"),
    ]


_ODD_WORDS = [
    "",
    "'",
    '"',
    "\\",
    "''",
    ":*&|!()",
    "AND",
    "NEAR",
    "a b",
    "%x",
    "\x00",
    "\ud800",
    "x" * 200,
    "1x",
    "_",
    "*",
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

    async def test_a_word_that_no_message_has_finds_nothing(self, storage: Storage) -> None:
        await fill(storage, spoken())
        there = expected([one.message for one in spoken()], ["deploy", "script"])
        with all_cases() as case:
            for word in _ODD_WORDS:
                with case(word):
                    assert await found(storage, ["deploy", word, "script"]) == {**there, word: []}

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
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.messages.append(room_id=ROOM, entries=spoken())
            postings = await work.messages.look_up(room_id=ROOM, words=["script"])
        assert postings is not None
        assert postings.arrivals.tolist() == [1]

    async def test_counts_and_lengths_have_their_limits(self, storage: Storage) -> None:
        await fill(storage, [entry(1, text="again " * 300), entry(2, text="again " * 3000)])
        assert await found(storage, ["again"]) == {"again": [(1, MAX_TIMES, 301), (2, MAX_TIMES, MOST_WORDS)]}

    async def test_every_count_there_can_be_is_told(self, storage: Storage) -> None:
        entries = [entry(n, text="again " * n) for n in range(1, MAX_TIMES + 1)]
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
            async with storage.writing(TENANT) as work:
                await work.messages.reword(room_id=ROOM, messages=[spoken()[0].message])


STATE = IndexState(
    name="vectors",
    model=EmbeddingModel(name="an/embedder-小\x00", dimensions=384),
    generation="g1",
    cursor=("acme", 'room "\x00\ud800', 7),
    updated_at=START,
)


async def find(storage: Storage, name: str = STATE.name) -> IndexState | None:
    async with storage.reading() as work:
        return await work.progress.index_state(name=name)


async def save(storage: Storage, state: IndexState, *, expected: str | None) -> bool:
    async with storage.writing() as work:
        return await work.progress.save_index_state(state=state, expected=expected)


async def rooms_after(storage: Storage, tenant: str, room_id: str, limit: int = 99) -> list[tuple[str, str]]:
    async with storage.reading() as work:
        rooms = await work.progress.rooms_after(tenant=tenant, room_id=room_id, limit=limit)
    return [(room.tenant, room.room_id) for room in rooms]


class IndexStatesContract:
    async def test_a_state_comes_back_as_it_was_saved(self, storage: Storage) -> None:
        assert await find(storage) is None
        assert await save(storage, STATE, expected=None)
        assert await find(storage) == STATE
        assert await find(storage, "another") is None

    async def test_a_later_state_takes_its_place(self, storage: Storage) -> None:
        await save(storage, STATE, expected=None)
        await save(storage, dataclasses_replace(STATE, name="another"), expected=None)
        whole = dataclasses_replace(STATE, cursor=None, generation="g2", updated_at=START + timedelta(days=1))
        assert await save(storage, whole, expected="g1")
        assert await find(storage) == whole
        assert await find(storage, "another") == dataclasses_replace(STATE, name="another")

    async def test_whoever_expects_another_generation_changes_nothing(self, storage: Storage) -> None:
        assert not await save(storage, STATE, expected="g0")
        assert await find(storage) is None
        await save(storage, STATE, expected=None)
        assert not await save(storage, dataclasses_replace(STATE, generation="g2"), expected="g0")
        assert not await save(storage, dataclasses_replace(STATE, generation="g2"), expected=None)
        assert await find(storage) == STATE

    async def test_saving_needs_a_writing_unit_of_work(self, storage: Storage) -> None:
        async with storage.reading() as work:
            with pytest.raises(InvalidInput):
                await work.progress.save_index_state(state=STATE, expected=None)

    async def test_rooms_of_another_link_model_are_found(self, storage: Storage) -> None:
        made = {
            "today": Linked(by="m5"),
            "before": Linked(by="m4"),
            "after": Linked(by="m6"),
            "unknown": UNLINKED,
            "walked": Linked(walk="m5", walked=2),
            "walked by another": Linked(walk="m6", walked=2),
        }
        for room_id, linked in made.items():
            async with storage.writing("a") as work:
                await work.rooms.lock(room_id=room_id, now=START)
                said = [entry(n) for n in (1, 2, 3)]
                await work.messages.append(room_id=room_id, entries=said, linked=linked)
        async with storage.writing("b") as work:
            await work.rooms.lock(room_id="empty", now=START)
        async with storage.reading() as work:
            waiting = await work.progress.rooms_to_link(model="m5", limit=9)
            assert len(await work.progress.rooms_to_link(model="m5", limit=2)) == 2
            assert await work.progress.left_to_link(model="m5") == (5, 4 * 3 + 1)
            assert await work.progress.left_to_link(model="m4") == (5, 5 * 3)
        assert {room.room_id: room.linked for room in waiting} == {
            room_id: linked for room_id, linked in made.items() if room_id != "today"
        }

    async def test_rooms_of_all_tenants_in_one_order(self, storage: Storage) -> None:
        places = [("a", "1"), ("a", "z"), ("b", "0"), ("b", "房间"), ("租户", "a")]
        for tenant, room_id in reversed(places):
            await fill(storage, [entry(1)], tenant=tenant, room_id=room_id)
        assert await rooms_after(storage, "", "") == places
        for at, (tenant, room_id) in enumerate(places):
            assert await rooms_after(storage, tenant, room_id) == places[at + 1 :]
        assert await rooms_after(storage, "a", "5", limit=2) == places[1:3]
        assert await rooms_after(storage, "aa", "") == places[2:]
