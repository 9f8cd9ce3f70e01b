"""The contract of the writer of messages."""

from dataclasses import replace as changed
from datetime import timedelta

import pytest

from roomlore.core.errors import Conflict, InvalidInput, NotFound
from roomlore.core.linking.calibration import COUNTED, UNCALIBRATED, Linked
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.models import LinkKind
from roomlore.storage import Storage
from roomlore_testkit.builders import START, entry, features, link
from storage_contracts.texts import ROOM, TENANT, conversation, erase, everything, fill, relink, replace, threads_of


class WriterContract:
    async def test_any_split_into_batches_stores_the_same(self, storage: Storage) -> None:
        entries = [
            entry(n, sender_id=f"u{n % 3}", sender_name=f"name {n}", features=features(keywords=(f"k{n % 4}", "all")))
            for n in range(1, 100)
        ]
        at_once = await fill(storage, entries)
        for one in entries:
            piecewise = await fill(storage, [one], room_id="piecewise")
        async with storage.reading(TENANT) as work:
            people = [await work.rooms.participants(room_id=room) for room in (ROOM, "piecewise")]
            words = [
                await work.messages.keyword_counts(room_id=room, keywords=["all", "k0", "k1", "k2", "k3"])
                for room in (ROOM, "piecewise")
            ]
        assert people[0] == people[1] == {f"u{n % 3}": f"name {n}" for n in (97, 98, 99)}
        assert list(people[0]) == list(people[1])
        assert words[0] == words[1]
        assert (at_once.messages, at_once.next_arrival) == (piecewise.messages, piecewise.next_arrival) == (99, 100)
        assert at_once.last_sent_at == piecewise.last_sent_at

    async def test_a_gap_or_a_repeated_arrival_is_a_conflict(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        for wrong in ([entry(3)], [entry(1)], [entry(2), entry(4)]):
            with pytest.raises(Conflict):
                await fill(storage, wrong)
        assert await everything(storage) == [entry(1)]

    async def test_a_taken_id_is_a_conflict_even_when_deleted(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await erase(storage, 2)
        for taken in ("m1", "m2"):
            with pytest.raises(Conflict):
                await fill(storage, [entry(3, id=taken)])

    async def test_writing_needs_the_lock(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        with pytest.raises(InvalidInput):
            async with storage.writing(TENANT) as work:
                await work.messages.append(room_id=ROOM, entries=[entry(2)])

    async def test_metadata_that_is_not_json_is_refused(self, storage: Storage) -> None:
        with pytest.raises(InvalidInput, match="m1"):
            await fill(storage, [entry(1, metadata={"when": START})])

    async def test_edits_at_once_are_the_same_as_one_after_the_other(self, storage: Storage) -> None:
        said = [entry(n, sender_id="ann", features=features(keywords=(f"k{n % 3}", "all"))) for n in range(1, 9)]
        others = [
            entry(n, sender_id=f"u{n}", text=f"改了 {n}", features=features(keywords=(f"k{n % 2}", "茶")))
            for n in (2, 5, 7)
        ]
        told = []
        for room_id, groups in (("at once", [others[::-1]]), ("piecewise", [[one] for one in others])):
            await fill(storage, said, room_id=room_id)
            for group in groups:
                room = await replace(storage, *group, room_id=room_id)
            async with storage.reading(TENANT) as work:
                words = await work.messages.keyword_counts(room_id=room_id, keywords=["all", "k0", "k1", "k2", "茶"])
                found = await work.messages.look_up(room_id=room_id, words=["改", "text"])
                assert found is not None
                people = await work.rooms.participants(room_id=room_id)
                entries = await work.messages.by_arrival(room_id=room_id, arrivals=range(1, 9))
            told.append((room.messages, words, people, [one.message.text for one in entries], list(found.arrivals)))
        assert told[0] == told[1]
        assert told[0][1]["茶"] == 3

    async def test_edits_of_what_is_not_there_change_nothing(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        for wrong in (entry(3), entry(2, id="other")):
            with pytest.raises(NotFound):
                await replace(storage, entry(1, text="changed"), wrong)
        assert await everything(storage) == [entry(1), entry(2)]

    async def test_an_edit_takes_the_place_of_what_it_edits(self, storage: Storage) -> None:
        await fill(storage, conversation())
        edited = entry(
            3,
            text="changed",
            metadata={"a": 1},
            sender_name="Ann",
            edited_at=START + timedelta(days=1),
            features=features(keywords=("rust",), mentions=("bo",)),
            link=link(1, 2, parent_probability=0.5, thread_candidates=ThreadCandidates.of([1], [0.5])),
        )
        room = await replace(storage, edited)
        assert (room.revision, room.messages, room.next_arrival) == (2, 4, 5)
        assert (await everything(storage))[2] == edited
        async with storage.reading(TENANT) as work:
            words = await work.messages.keyword_counts(room_id=ROOM, keywords=["deploy", "rust"])
            people = await work.rooms.participants(room_id=ROOM)
        assert words == {"deploy": 1, "rust": 1}
        assert people == {"ann": "Ann", "bo": "Bo"}

    async def test_an_edit_of_an_older_message_does_not_rename(self, storage: Storage) -> None:
        await fill(storage, [entry(1, sender_name="Old"), entry(2, sender_name="New")])
        await replace(storage, entry(1, sender_name="Older", text="x"))
        async with storage.reading(TENANT) as work:
            assert await work.rooms.participants(room_id=ROOM) == {"ann": "New"}

    async def test_a_name_goes_with_the_last_message_that_gives_it(self, storage: Storage) -> None:
        anns = [entry(2), entry(3, sender_name="Ann"), entry(4, sender_name="Anna"), entry(5)]
        bo = entry(6, sender_id="bo", sender_name="Bo")
        await fill(storage, [entry(1, sender_id="zoe"), *anns, bo, entry(7, sender_id="zoe")])

        async def people() -> list[tuple[str, str]]:
            async with storage.reading(TENANT) as work:
                return list((await work.rooms.participants(room_id=ROOM)).items())

        await erase(storage, 4)
        assert await people() == [("zoe", ""), ("ann", "Ann"), ("bo", "Bo")]
        await replace(storage, entry(2, sender_name="Annie"), entry(3))
        assert await people() == [("zoe", ""), ("ann", "Annie"), ("bo", "Bo")]
        await replace(storage, entry(2, sender_id="bo", sender_name="Bob"))
        assert await people() == [("zoe", ""), ("bo", "Bo"), ("ann", "")]
        await erase(storage, 1, 6)
        assert await people() == [("bo", "Bob"), ("ann", ""), ("zoe", "")]

    async def test_an_edit_of_the_sender_moves_the_count(self, storage: Storage) -> None:
        await fill(storage, [entry(1, sender_id="ann"), entry(2, sender_id="bo")])
        await replace(storage, entry(1, sender_id="bo"))
        async with storage.reading(TENANT) as work:
            assert await work.rooms.participants(room_id=ROOM) == {"bo": ""}

    async def test_only_what_is_there_can_be_edited(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await erase(storage, 2)
        for missing in (entry(3), entry(2), entry(1, id="other")):
            with pytest.raises(NotFound):
                await replace(storage, missing)

    async def test_erasing_takes_people_and_words_along(self, storage: Storage) -> None:
        await fill(storage, conversation())
        room = await erase(storage, 2, 3, 4)
        assert (room.messages, room.next_arrival, room.revision) == (1, 5, 2)
        async with storage.reading(TENANT) as work:
            people = await work.rooms.participants(room_id=ROOM)
            words = await work.messages.keyword_counts(room_id=ROOM, keywords=["deploy", "部署"])
        assert people == {"ann": ""}
        assert words == {"deploy": 1, "部署": 1}

    async def test_erasing_twice_or_nothing_changes_only_the_revision(self, storage: Storage) -> None:
        await fill(storage, conversation())
        once = await erase(storage, 2)
        twice = await erase(storage, 2, 77)
        nothing = await erase(storage)
        assert once.messages == twice.messages == nothing.messages == 3
        assert (once.revision, twice.revision, nothing.revision) == (2, 3, 4)

    async def test_relinking_moves_what_hangs_below(self, storage: Storage) -> None:
        await fill(
            storage,
            [
                entry(1),
                entry(2),
                entry(3, link=link(2, 2)),
                entry(4, link=link(2, 3)),
                entry(5, link=link(5, 2, kind=LinkKind.NEW)),
                entry(6, link=link(1, 1)),
                entry(7, link=link(2, 4, kind=LinkKind.PLATFORM)),
            ],
        )
        new = link(
            1,
            1,
            kind=LinkKind.PLATFORM,
            parent_probability=1.0,
            new_probability=0.0,
            thread_candidates=ThreadCandidates.of([1], [1]),
        )
        room = await relink(storage, {2: new})
        assert room.revision == 2
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 1, 4: 1, 5: 5, 6: 1, 7: 1}
        assert (await everything(storage))[1].link == new

    async def test_relinking_without_a_new_thread_moves_nothing(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2, link=link(1, 1)), entry(3, link=link(1, 2))])
        await relink(storage, {2: link(1, 1, parent_probability=1.0)})
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 1}

    async def test_several_links_at_once_go_by_arrival(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2), entry(3, link=link(2, 2)), entry(4, link=link(2, 3))])
        await relink(storage, {3: link(3, None), 2: link(1, 1)})
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 3, 4: 3}

    async def test_relinking_past_a_deleted_message(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2), entry(3, link=link(2, 2)), entry(4, link=link(2, 3))])
        await erase(storage, 3)
        await relink(storage, {2: link(1, 1)})
        assert await threads_of(storage) == {1: 1, 2: 1, 4: 1}

    async def test_relinking_in_a_circle_ends(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2, link=link(2, 4)), entry(3, link=link(2, 2)), entry(4, link=link(2, 3))])
        await relink(storage, {2: link(1, 4)})
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 1, 4: 1}

    async def test_so_many_move_and_the_others_are_to_follow(self, storage: Storage) -> None:
        """A chain of six below m2, whose fourth message was deleted; m9 starts something new below it."""
        below = [entry(n, link=link(2, n - 1)) for n in range(3, 9)]
        await fill(storage, [entry(1), entry(2), *below, entry(9, link=link(9, 8, kind=LinkKind.NEW))])
        await erase(storage, 6)
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            given = {2: link(1, 1)}
            relinked = await work.messages.relink(room_id=ROOM, links=given, most=2)
        assert (relinked.changed, relinked.left) == (3, True)
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 7: 2, 8: 2, 9: 9}
        async with storage.writing(TENANT) as work:
            room = await work.rooms.lock(room_id=ROOM, now=START)
            moved = await work.messages.follow(room_id=ROOM, arrivals=[5, 6, 7, 9, 77])
            again = await work.messages.follow(room_id=ROOM, arrivals=[1, 2, 5])
        assert (moved, again) == (3, 0)
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 7: 1, 8: 2, 9: 9}
        async with storage.reading(TENANT) as work:
            stored = await work.rooms.find(room_id=ROOM)
            changes, _ = await work.messages.changed(room_id=ROOM, revision=room.revision, after=0)
        assert stored is not None
        assert stored.revision == room.revision + 1
        assert [one.arrival for one in changes] == [5, 7]

    async def test_relinking_all_leaves_nothing(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2), entry(3, link=link(2, 2))])
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            relinked = await work.messages.relink(room_id=ROOM, links={2: link(1, 1)}, most=2)
        assert (relinked.changed, relinked.left) == (2, False)

    async def test_the_threads_of_a_room_are_read_in_pages(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2, link=link(1, 1)), entry(3, link=link(3, 2, kind=LinkKind.NEW))])
        await erase(storage, 2)
        async with storage.reading(TENANT) as work:
            pages = [
                await work.messages.threads_after(room_id=room_id, after=after, limit=2)
                for room_id, after in ((ROOM, 0), (ROOM, 2), (ROOM, 3), ("nowhere", 0))
            ]
        assert [
            list(zip(page.arrivals.tolist(), page.parents.tolist(), page.threads.tolist(), strict=True))
            for page in pages
        ] == [[(1, 0, 1), (2, 1, 1)], [(3, 0, 3)], [], []]

    async def test_what_a_message_answers_through_others(self, storage: Storage) -> None:
        """m1 replies to m5, which came later; m4 starts something new; m6 and m7 are a circle."""
        await fill(
            storage,
            [
                entry(1, link=link(5, 5)),
                entry(2, link=link(5, 1)),
                entry(3, link=link(5, 2)),
                entry(4, link=link(4, 3, kind=LinkKind.NEW)),
                entry(5),
                entry(6, link=link(6, 7)),
                entry(7, link=link(6, 6)),
            ],
        )
        async with storage.reading(TENANT) as work:
            found = {
                arrival: await work.messages.answered_through(room_id=ROOM, arrival=arrival)
                for arrival in (3, 4, 5, 6, 99)
            }
        assert found == {3: [1, 2, 5], 4: [], 5: [], 6: [6, 7], 99: []}

    async def test_what_is_not_there_cannot_be_linked(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await erase(storage, 2)
        for missing in (2, 9):
            with pytest.raises(NotFound):
                await relink(storage, {missing: link(1, 1)})

    async def test_an_edit_that_changes_the_thread_moves_what_hangs_below(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2), entry(3, link=link(2, 2))])
        await replace(storage, entry(2, link=link(1, 1)))
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 1}

    async def test_analysing_anew_puts_features_and_links_and_leaves_the_rest(self, storage: Storage) -> None:
        said = conversation()
        before = await fill(storage, said)
        other = features(keywords=("nginx",), mentions=("bo",))
        anew = [changed(one, features=other, link=link(one.message.arrival)) for one in said[1:3]]
        calibration = UNCALIBRATED.heard([0.25] * COUNTED).passed()
        linked = Linked(walk="m5", walked=3, calibration=calibration)
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            room = await work.messages.analyse_anew(room_id=ROOM, entries=anew, linked=linked)
        assert room == changed(before, revision=before.revision + 1, linked=linked)
        assert await everything(storage) == [said[0], *anew, said[3]]
        async with storage.reading(TENANT) as work:
            counts = await work.messages.keyword_counts(room_id=ROOM, keywords=["deploy", "nginx", "部署"])
            since, _ = await work.messages.changed(room_id=ROOM, revision=before.revision, after=0)
            assert await work.rooms.find(room_id=ROOM) == room
        assert counts == {"deploy": 1, "nginx": 2, "部署": 1}
        assert [message.arrival for message in since] == [2, 3]
        later = await fill(storage, [entry(5)])
        assert later.linked == linked, "who says nothing of the links leaves them"

    async def test_analysing_anew_needs_messages_that_are_there(self, storage: Storage) -> None:
        await fill(storage, conversation())
        await erase(storage, 2)
        for wrong in (entry(2), entry(3, id="other"), entry(9)):
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=ROOM, now=START)
                with pytest.raises(NotFound):
                    await work.messages.analyse_anew(room_id=ROOM, entries=[wrong])
