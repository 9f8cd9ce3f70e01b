"""What `LexicalIndex.facts` must do."""

from datetime import timedelta
from typing import NamedTuple

from roomlore.core.indexed import indexed_words
from roomlore.core.models import Entry, LinkKind, MessageType, Role
from roomlore.core.search import ROLES
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry, features, link
from roomlore.testing.contracts.filling import ROOM, TENANT, conversation, erase, everything, fill, relink, replace


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
    async with storage.reading() as work:
        rows = await work.lexical.facts(tenant=tenant, room_id=ROOM, since=since)
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
    """The line that an entry comes to."""
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
