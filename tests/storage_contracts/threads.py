"""The contracts of threads, of their titles, and of links and corrections to them."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.linking.calibration import COUNTED, Calibration, Linked
from roomlore.core.linking.corrections import StandingCorrection
from roomlore.core.models import Correction, CorrectionKind, Entry, LinkKind, Role
from roomlore.storage import Storage
from roomlore.storage.values import GrownThread
from roomlore_testkit.builders import START, entry, features, link
from roomlore_testkit.contracts.hard_texts import HARD_TEXTS
from storage_contracts.texts import ROOM, TENANT, conversation, erase, everything, fill, relink, replace


async def _related(
    storage: Storage, of: Entry, *, hops: int = 5, limit: int = 50, before: int | None = None
) -> list[str]:
    async with storage.reading(TENANT) as work:
        found = await work.messages.related(room_id=ROOM, entry=of, hops=hops, limit=limit, before=before)
    return [near.message.id for near in found]


def _chain(length: int) -> list[Entry]:
    return [entry(n, reply_to=f"m{n - 1}" if n > 1 else None) for n in range(1, length + 1)]


def _arrivals(found: Sequence[Entry]) -> list[int]:
    return [near.message.arrival for near in found]


class ThreadsContract:
    async def test_a_target_is_all_a_context_begins_with(self, storage: Storage) -> None:
        room = await fill(storage, [entry(n, tokens=n) for n in range(1, 7)])
        async with storage.reading(TENANT) as work:
            found = await work.messages.target(room_id=ROOM, message_id="m5", window=3)
        assert found is not None
        assert (found.room, found.entry) == (room, entry(5, tokens=5))
        assert (found.window_messages, found.window_tokens) == (3, 2 + 3 + 4)
        assert found.previous_at == entry(4).message.sent_at

    async def test_the_first_message_is_a_target_with_an_empty_window(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        async with storage.reading(TENANT) as work:
            found = await work.messages.target(room_id=ROOM, message_id="m1", window=3)
        assert found is not None
        assert (found.window_messages, found.window_tokens, found.previous_at) == (0, 0, None)

    async def test_the_newest_target_is_the_last_said_by_a_user(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2), entry(3, role=Role.ASSISTANT), entry(4)])
        await erase(storage, 4)
        async with storage.reading(TENANT) as work:
            found = await work.messages.target(room_id=ROOM, message_id=None, window=9)
            gone = await work.messages.target(room_id=ROOM, message_id="m4", window=9)
            unknown = await work.messages.target(room_id="nowhere", message_id=None, window=9)
        assert found is not None
        assert found.entry.message.id == "m2"
        assert gone is unknown is None

    async def test_the_window_of_a_target_leaves_out_the_deleted(self, storage: Storage) -> None:
        await fill(storage, [entry(n, tokens=10**n) for n in range(1, 5)])
        await erase(storage, 3)
        async with storage.reading(TENANT) as work:
            found = await work.messages.target(room_id=ROOM, message_id="m4", window=2)
        assert found is not None
        assert (found.window_messages, found.window_tokens) == (2, 110)
        assert found.previous_at == entry(2).message.sent_at

    async def test_related_goes_up_and_down_by_hops(self, storage: Storage) -> None:
        chain = _chain(12)
        await fill(storage, chain)
        assert await _related(storage, chain[5], hops=2) == ["m4", "m5", "m7", "m8"]
        assert await _related(storage, chain[5], hops=5) == [f"m{n}" for n in range(1, 12) if n != 6]

    async def test_related_knows_siblings_and_the_same_root(self, storage: Storage) -> None:
        entries = [
            entry(1),
            entry(2, reply_to="m1"),
            entry(3, reply_to="m1"),
            entry(4, root_id="m1"),
            entry(5),
            entry(6, reply_to="m3", root_id="m1"),
            entry(7, root_id="m1"),
        ]
        await fill(storage, entries)
        assert await _related(storage, entries[2]) == ["m1", "m2", "m6"]
        assert await _related(storage, entries[5]) == ["m1", "m2", "m3", "m4", "m7"]
        assert await _related(storage, entries[0]) == ["m2", "m3", "m4", "m6", "m7"]
        assert await _related(storage, entries[4]) == []

    async def test_a_platform_thread_is_its_root_and_its_newest_messages(self, storage: Storage) -> None:
        entries = [entry(n, root_id="m1" if n % 2 else None) for n in range(2, 12)]
        await fill(storage, [entry(1), *entries])
        await erase(storage, 7)

        async def of_root(root_id: str, limit: int, before: int) -> list[int]:
            async with storage.reading(TENANT) as work:
                return await work.messages.of_root(room_id=ROOM, root_id=root_id, limit=limit, before=before)

        assert await of_root("m1", 9, 12) == [1, 11, 9, 5, 3]
        assert await of_root("m1", 2, 11) == [1, 9, 5]
        assert await of_root("m4", 9, 12) == [4]
        assert await of_root("m99", 9, 12) == []

    async def test_a_topic_is_its_newest_entries(self, storage: Storage) -> None:
        entries = [entry(n, topic_id=(None, "a", "b 🏔")[n % 3]) for n in range(1, 13)]
        await fill(storage, entries)
        await erase(storage, 7)

        async def of_topic(topic_id: str | None, limit: int, before: int) -> list[int]:
            async with storage.reading(TENANT) as work:
                found = await work.messages.of_topic(room_id=ROOM, topic_id=topic_id, limit=limit, before=before)
            assert {one.message.topic_id for one in found} <= {topic_id}
            return [one.message.arrival for one in found]

        assert await of_topic("a", 9, 99) == [1, 4, 10]
        assert await of_topic(None, 9, 99) == [3, 6, 9, 12]
        assert await of_topic("b 🏔", 9, 99) == [2, 5, 8, 11]
        assert await of_topic("a", 2, 10) == [1, 4]
        assert await of_topic(None, 2, 10) == [6, 9]
        assert await of_topic("c", 2, 10) == []

    async def test_related_keeps_the_nearest_when_cut(self, storage: Storage) -> None:
        entries = [*_chain(8), *(entry(n, root_id="m1") for n in range(9, 30))]
        await fill(storage, entries)
        assert await _related(storage, entries[4], limit=3) == ["m3", "m4", "m6"]
        assert await _related(storage, entries[0], hops=1, limit=4) == ["m2", "m9", "m10", "m11"]

    async def test_related_before_an_arrival_spends_no_limit_on_what_came_later(self, storage: Storage) -> None:
        entries = [*_chain(8), *(entry(n, root_id="m1") for n in range(9, 30))]
        await fill(storage, entries)
        assert await _related(storage, entries[4], limit=3, before=5) == ["m2", "m3", "m4"]

    async def test_related_before_an_arrival_keeps_what_the_entry_answers(self, storage: Storage) -> None:
        entries = [entry(1), entry(2, reply_to="m4"), entry(3, reply_to="m2"), entry(4), entry(5, reply_to="m4")]
        await fill(storage, entries)
        assert await _related(storage, entries[1], before=2) == ["m4"]

    async def test_reply_circles_end(self, storage: Storage) -> None:
        entries = [entry(1, reply_to="m3"), entry(2, reply_to="m1"), entry(3, reply_to="m2"), entry(4, reply_to="m4")]
        await fill(storage, entries)
        assert await _related(storage, entries[0], hops=50) == ["m2", "m3"]
        assert await _related(storage, entries[3], hops=50) == []

    async def test_related_leaves_out_the_deleted(self, storage: Storage) -> None:
        chain = _chain(4)
        await fill(storage, chain)
        await erase(storage, 3)
        assert await _related(storage, chain[3]) == []
        assert await _related(storage, chain[0]) == ["m2"]

    async def test_a_very_popular_message_is_bounded(self, storage: Storage) -> None:
        entries = [entry(1), *(entry(n, reply_to="m1") for n in range(2, 1500))]
        await fill(storage, entries)
        assert await _related(storage, entries[0], limit=3) == ["m2", "m3", "m4"]
        assert await _related(storage, entries[700], limit=4) == ["m1", "m699", "m700", "m702"]

    async def test_waiting_are_those_whose_reply_is_not_linked_yet(self, storage: Storage) -> None:
        await fill(
            storage,
            [
                entry(1, reply_to="later"),
                entry(2, reply_to="later", link=link(1, 1, kind=LinkKind.PLATFORM)),
                entry(3, reply_to="other"),
                entry(4, reply_to="later", link=link(1, 1)),
                entry(5),
            ],
        )
        async with storage.reading(TENANT) as work:
            found = await work.messages.waiting(room_id=ROOM, message_ids=["later", "never"])
        assert _arrivals(found) == [1, 4]

    async def test_threads_are_paged_by_their_first_arrival(self, storage: Storage) -> None:
        await fill(
            storage,
            [
                entry(1, text="first"),
                entry(2, text="second"),
                entry(3, sender_id="bo", link=link(1, 1)),
                entry(4, link=link(1, 3)),
                entry(5, sender_id="cy", text="fifth"),
            ],
        )
        async with storage.reading(TENANT) as work:
            two = await work.messages.threads(room_id=ROOM, after=0, limit=2)
            rest = await work.messages.threads(room_id=ROOM, after=2, limit=2)
        assert [arrival for arrival, _ in two + rest] == [1, 2, 5]
        first = two[0][1]
        assert (first.thread_id, first.room_id, first.messages, first.first_text) == ("m1", ROOM, 3, "first")
        assert first.senders == ("ann", "bo")
        assert (first.first_sent_at, first.last_sent_at) == (entry(1).message.sent_at, entry(4).message.sent_at)

    async def test_a_thread_outlives_its_first_message(self, storage: Storage) -> None:
        await fill(storage, [entry(1, text="gone"), entry(2, sender_id="bo", link=link(1, 1)), entry(3)])
        await erase(storage, 1, 3)
        async with storage.reading(TENANT) as work:
            found = await work.messages.threads(room_id=ROOM, after=0, limit=9)
        assert [(arrival, thread.thread_id, thread.first_text) for arrival, thread in found] == [(1, "m1", "text 2")]
        assert found[0][1].senders == ("bo",)

    async def test_members_are_the_newest_of_a_thread(self, storage: Storage) -> None:
        await fill(storage, [entry(1), *(entry(n, link=link(1 + n % 2, 1)) for n in range(2, 9))])
        await erase(storage, 8)
        async with storage.reading(TENANT) as work:
            found = await work.messages.thread_members(room_id=ROOM, thread=1, limit=3)
            none = await work.messages.thread_members(room_id=ROOM, thread=99, limit=3)
        assert _arrivals(found) == [2, 4, 6]
        assert none == []

    async def test_replies_that_the_platform_states(self, storage: Storage) -> None:
        stated = [entry(n, link=link(1, 1, kind=LinkKind.PLATFORM)) for n in (2, 4, 5)]
        await fill(storage, [entry(1), stated[0], entry(3, link=link(1, 1)), *stated[1:]])
        await erase(storage, 4)
        async with storage.reading(TENANT) as work:
            assert await work.messages.platform_replies(room_id=ROOM) == [2, 5]
            assert await work.messages.platform_replies(room_id="nowhere") == []

    async def test_the_newest_members_of_several_threads(self, storage: Storage) -> None:
        await fill(storage, [entry(1), *(entry(n, link=link(1 + n % 3, 1)) for n in range(2, 12))])
        await fill(storage, [entry(1)], room_id="other")
        await erase(storage, 11)
        async with storage.reading(TENANT) as work:
            found = await work.messages.members_of(room_id=ROOM, threads=[1, 3, 99], each=2)
            none = await work.messages.members_of(room_id=ROOM, threads=[], each=2)
        assert [(one.message.arrival, one.link.thread) for one in found] == [(5, 3), (6, 1), (8, 3), (9, 1)]
        assert none == []

    async def test_keywords_are_counted_once_a_message(self, storage: Storage) -> None:
        await fill(storage, conversation())
        await fill(storage, [entry(5, features=features(keywords=("部署", "rust")))])
        async with storage.reading(TENANT) as work:
            counts = await work.messages.keyword_counts(room_id=ROOM, keywords=["deploy", "部署", "rust", "none"])
        assert counts == {"deploy": 2, "部署": 2, "rust": 1}

    async def test_the_deleted_wait_for_nothing_and_head_nothing(self, storage: Storage) -> None:
        await fill(storage, [entry(1, reply_to="later", features=features(keywords=("word",)))])
        await erase(storage, 1)
        async with storage.reading(TENANT) as work:
            assert await work.messages.waiting(room_id=ROOM, message_ids=["later"]) == []
            assert await work.messages.threads(room_id=ROOM, after=0, limit=9) == []
            assert await work.messages.thread_members(room_id=ROOM, thread=1, limit=9) == []
            assert await work.messages.keyword_counts(room_id=ROOM, keywords=["word"]) == {}


_ERRORS = tuple(range(COUNTED))


async def _add(
    storage: Storage,
    arrival: int,
    answers: int | None = None,
    *,
    kind: CorrectionKind | None = None,
    by: str = "eve",
    room_id: str = ROOM,
    errors: tuple[int, ...] = (),
) -> int:
    said = kind or (CorrectionKind.NOTHING if answers is None else CorrectionKind.ANSWERS)
    undone = said is CorrectionKind.UNDONE
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=room_id, now=START)
        return await work.corrections.add(
            room_id=room_id,
            arrival=arrival,
            kind=said,
            standing=None if undone else StandingCorrection(answers, "model" if errors else "", errors),
            by=by,
            at=START + timedelta(seconds=arrival),
        )


async def _standing(storage: Storage, *arrivals: int, tenant: str = TENANT) -> dict[int, StandingCorrection]:
    async with storage.reading(tenant) as work:
        return await work.corrections.standing(room_id=ROOM, arrivals=arrivals)


async def _page(storage: Storage, *, before: int | None = None, limit: int = 10) -> list[Correction]:
    async with storage.reading(TENANT) as work:
        return await work.corrections.page(room_id=ROOM, before=before, limit=limit)


async def _in_force(storage: Storage, after: tuple[str, int] = ("", 0), limit: int = 10) -> list[tuple[str, int]]:
    async with storage.reading(TENANT) as work:
        found = await work.corrections.in_force(after=after, limit=limit)
    return [(one.room_id, one.number) for one in found]


class CorrectionsContract:
    async def test_the_last_one_of_a_message_is_in_force(self, storage: Storage) -> None:
        await fill(storage, [entry(number) for number in range(1, 6)])
        numbers = [
            await _add(storage, 3, 1),
            await _add(storage, 4),
            await _add(storage, 3, 2),
            await _add(storage, 4, kind=CorrectionKind.UNDONE),
        ]
        assert numbers == [1, 2, 3, 4]
        assert await _standing(storage, 1, 3, 4, 99) == {3: StandingCorrection(2)}
        assert await _standing(storage) == {}
        assert await _standing(storage, 3, tenant="other") == {}
        assert [(one.number, one.standing) for one in await _page(storage)] == [
            (4, False),
            (3, True),
            (2, False),
            (1, False),
        ]

    async def test_the_log_names_messages_newest_first(self, storage: Storage) -> None:
        await fill(storage, [entry(number) for number in range(1, 6)])
        await _add(storage, 3, 1)
        await _add(storage, 4, by="王敏")
        newest, oldest = await _page(storage)
        assert newest == Correction(
            room_id=ROOM,
            number=2,
            message_id="m4",
            kind=CorrectionKind.NOTHING,
            standing=True,
            by="王敏",
            at=START + timedelta(seconds=4),
        )
        assert (oldest.message_id, oldest.kind, oldest.answers) == ("m3", CorrectionKind.ANSWERS, "m1")
        assert await _page(storage, before=2) == [oldest]
        assert await _page(storage, limit=1) == [newest]
        async with storage.reading(TENANT) as work:
            assert await work.corrections.page(room_id="none", before=None, limit=5) == []
            assert await work.of("other").corrections.page(room_id=ROOM, before=None, limit=5) == []

    async def test_those_in_force_are_listed_by_room_and_number(self, storage: Storage) -> None:
        for room_id in ("b", "a", "å"):
            await fill(storage, [entry(number) for number in range(1, 4)], room_id=room_id)
            await _add(storage, 2, 1, room_id=room_id)
            await _add(storage, 3, room_id=room_id)
            await _add(storage, 2, room_id=room_id)
        wanted = [("a", 2), ("a", 3), ("b", 2), ("b", 3), ("å", 2), ("å", 3)]
        assert await _in_force(storage) == wanted
        assert await _in_force(storage, ("a", 2), 3) == wanted[1:4]
        assert await _in_force(storage, ("å", 3)) == []
        async with storage.reading("other") as work:
            assert await work.corrections.in_force(after=("", 0), limit=5) == []

    async def test_erasing_a_message_ends_its_log(self, storage: Storage) -> None:
        await fill(storage, [entry(number) for number in range(1, 6)])
        await _add(storage, 3, 1)
        await _add(storage, 4, 3)
        await erase(storage, 3)
        (left,) = await _page(storage)
        assert (left.message_id, left.answers, left.standing) == ("m4", None, True)
        assert await _standing(storage, 3, 4) == {4: StandingCorrection(3)}
        assert await _add(storage, 5, 4) == 3

    async def test_what_it_added_to_the_calibration(self, storage: Storage) -> None:
        await fill(storage, [entry(number) for number in range(1, 6)])
        await _add(storage, 3, 1, errors=_ERRORS)
        await _add(storage, 4, 1)
        assert (await _standing(storage, 3))[3] == StandingCorrection(1, "model", _ERRORS)
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.corrections.hear(room_id=ROOM, model="next", errors={4: _ERRORS}, arrivals=(3, 4, 5))
        assert await _standing(storage, 3, 4) == {3: StandingCorrection(1), 4: StandingCorrection(1, "next", _ERRORS)}

    async def test_links_and_calibration_change_together(self, storage: Storage) -> None:
        before = await fill(storage, [entry(number) for number in range(1, 4)])
        linked = Linked(by="model", calibration=Calibration(1, 1, _ERRORS))
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            relinked = await work.messages.relink(
                room_id=ROOM, links={3: link(1, 1, kind=LinkKind.CORRECTED, parent_probability=1.0)}, linked=linked
            )
        room = relinked.room
        assert (room.linked, room.revision) == (linked, before.revision + 1)
        assert (await everything(storage))[2].link.kind is LinkKind.CORRECTED

    async def test_a_corrected_link_waits_for_nothing(self, storage: Storage) -> None:
        said = entry(2, reply_to="m9", link=link(1, 1, kind=LinkKind.CORRECTED, parent_probability=1.0))
        await fill(storage, [entry(1), said, entry(3, reply_to="m9")])
        async with storage.reading(TENANT) as work:
            found = await work.messages.waiting(room_id=ROOM, message_ids=["m9"])
        assert [one.message.id for one in found] == ["m3"]

    async def test_the_lock_is_needed(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        async with storage.writing(TENANT) as work:
            with pytest.raises(InvalidInput, match="Lock the room"):
                await work.corrections.add(
                    room_id=ROOM,
                    arrival=1,
                    kind=CorrectionKind.NOTHING,
                    standing=StandingCorrection(None),
                    by="eve",
                    at=START,
                )

    async def test_any_name_comes_back(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        for by in HARD_TEXTS:
            await _add(storage, 1, by=by)
        assert [one.by for one in await _page(storage, limit=99)] == HARD_TEXTS[::-1]

    async def test_a_room_is_removed_with_them(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await _add(storage, 2, 1)
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            while await work.maintenance.remove_room(room_id=ROOM, limit=1) >= 0:
                pass
        assert await _in_force(storage) == []
        await fill(storage, [entry(1), entry(2)])
        assert await _standing(storage, 2) == {}


async def _two_threads(storage: Storage) -> None:
    """Store the threads 1 (messages 1, 2, 4) and 3 (3, 5), both with titles."""
    parents = {1: None, 2: 1, 3: None, 4: 2, 5: 3}
    threads = {1: 1, 2: 1, 3: 3, 4: 1, 5: 3}
    await fill(storage, [entry(n, link=link(threads[n], parents[n])) for n in threads])
    await _put(storage, {1: ("茶 \0", 3), 3: ("Tea", 2)})


async def _put(storage: Storage, titles: dict[int, tuple[str, int]], *, tenant: str = TENANT) -> None:
    async with storage.writing(tenant) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.titles.put(room_id=ROOM, titles=titles, made_by="p/m", now=START)


async def _titles(storage: Storage, *threads: int, tenant: str = TENANT) -> dict[int, str]:
    async with storage.reading(tenant) as work:
        return await work.titles.find(room_id=ROOM, threads=threads or (1, 2, 3))


async def _grown(storage: Storage, after: int, through: int, *, tenant: str = TENANT) -> list[GrownThread]:
    async with storage.reading(tenant) as work:
        return await work.titles.grown(room_id=ROOM, after=after, through=through)


async def _stale(storage: Storage) -> list[tuple[str, str]]:
    async with storage.reading() as work:
        return await work.titles.stale_rooms(limit=9)


class TitlesContract:
    async def test_titles_are_found_by_thread(self, storage: Storage) -> None:
        await _two_threads(storage)
        assert await _titles(storage) == {1: "茶 \0", 3: "Tea"}
        assert await _titles(storage, 3) == {3: "Tea"}
        async with storage.reading(TENANT) as work:
            assert await work.titles.find(room_id=ROOM, threads=()) == {}
            assert await work.titles.find(room_id="nowhere", threads=(1,)) == {}

    async def test_a_tenant_has_titles_of_its_own(self, storage: Storage) -> None:
        await _two_threads(storage)
        await fill(storage, [entry(1)], tenant="other")
        assert await _titles(storage, tenant="other") == {}
        await _put(storage, {1: ("Coffee", 1)}, tenant="other")
        assert await _titles(storage, tenant="other") == {1: "Coffee"}
        assert await _titles(storage) == {1: "茶 \0", 3: "Tea"}

    async def test_a_later_title_takes_the_place_and_an_empty_one_does_not(self, storage: Storage) -> None:
        await _two_threads(storage)
        await _put(storage, {1: ("Coffee", 4), 3: ("", 4)})
        assert await _titles(storage) == {1: "Coffee", 3: "Tea"}
        assert await _grown(storage, 0, 9) == [GrownThread(1, 3, 4), GrownThread(3, 2, 4)]

    async def test_threads_that_grew_are_told_with_their_sizes(self, storage: Storage) -> None:
        await _two_threads(storage)
        assert await _grown(storage, 0, 5) == [GrownThread(1, 3, 3), GrownThread(3, 2, 2)]
        assert await _grown(storage, 4, 5) == [GrownThread(3, 2, 2)]
        assert await _grown(storage, 3, 4) == [GrownThread(1, 3, 3)]
        assert await _grown(storage, 5, 9) == []
        assert await _grown(storage, 0, 9, tenant="other") == []

    async def test_an_edit_takes_the_title_of_its_thread_away(self, storage: Storage) -> None:
        await _two_threads(storage)
        await replace(storage, entry(4, link=link(1, 2), text="new"))
        assert await _titles(storage) == {3: "Tea"}
        assert await _stale(storage) == [(TENANT, ROOM)]
        assert await _grown(storage, 5, 5) == [GrownThread(1, 3, 0)], "it is to be made again"

    async def test_a_deletion_takes_the_title_of_its_thread_away(self, storage: Storage) -> None:
        await _two_threads(storage)
        await erase(storage, 5)
        assert await _titles(storage) == {1: "茶 \0"}

    async def test_a_link_to_another_thread_takes_both_titles_away(self, storage: Storage) -> None:
        await _two_threads(storage)
        await relink(storage, {4: link(1, 1)})
        assert await _titles(storage) == {1: "茶 \0", 3: "Tea"}, "the thread is the same"
        await relink(storage, {2: link(3, 1)})
        assert await _titles(storage) == {}

    async def test_a_thread_that_lost_all_its_messages_is_told_until_it_is_dropped(self, storage: Storage) -> None:
        await _two_threads(storage)
        await relink(storage, {3: link(1, 2)})
        assert await _grown(storage, 9, 9) == [GrownThread(1, 5, 0), GrownThread(3, 0, 0)]
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.titles.drop_stale(room_id=ROOM, threads=[3])
        assert await _grown(storage, 9, 9) == [GrownThread(1, 5, 0)]

    async def test_an_analysis_that_moves_a_message_takes_both_titles_away(self, storage: Storage) -> None:
        await _two_threads(storage)
        for thread, left in ((3, {1: "茶 \0", 3: "Tea"}), (1, {})):
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=ROOM, now=START)
                await work.messages.analyse_anew(room_id=ROOM, entries=[entry(5, link=link(thread, 3))])
            assert await _titles(storage) == left

    async def test_a_new_message_leaves_titles_as_they_are(self, storage: Storage) -> None:
        await _two_threads(storage)
        await fill(storage, [entry(6, link=link(1, 4))])
        assert await _titles(storage) == {1: "茶 \0", 3: "Tea"}
        assert await _stale(storage) == []

    async def test_what_is_not_to_be_made_again_is_dropped(self, storage: Storage) -> None:
        await _two_threads(storage)
        await erase(storage, 5)
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.titles.drop_stale(room_id=ROOM, threads=[1, 3])
        assert await _stale(storage) == []
        assert await _titles(storage) == {1: "茶 \0"}, "a title that stands is not dropped"
