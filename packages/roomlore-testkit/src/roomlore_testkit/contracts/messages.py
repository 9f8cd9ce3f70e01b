"""The contracts of the messages of a room: reading them, and `MessageWriter`, which appends them with what belongs to
them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace as changed
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from roomlore.core.audience import END, Window, covers, windows_of
from roomlore.core.errors import Conflict, InvalidInput, NotFound
from roomlore.core.intake import content_hash
from roomlore.core.linking.calibration import COUNTED, UNCALIBRATED, Linked
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.models import Entry, Link, LinkKind, MessageFeatures, MessageType, ReplyInfo, Role, StoredMessage
from roomlore.ports.storage import Storage
from roomlore_testkit.builders import START, entry, features, link
from roomlore_testkit.contracts.texts import (
    ROOM,
    TENANT,
    conversation,
    erase,
    everything,
    fill,
    relink,
    replace,
    threads_of,
)

_RICH = Entry(
    message=StoredMessage(
        id="m1",
        room_id=ROOM,
        sender_id="u1",
        text="你好 👋🏽 hello",
        sent_at=START + timedelta(microseconds=123457),
        sender_name="安娜",
        role=Role.ASSISTANT,
        reply_to="later",
        root_id="root",
        topic_id="topic",
        mentions=("u2", "小明"),
        has_tool_calls=True,
        turn_id="t1",
        metadata={"caption": "图", "nested": {"n": [1, 2.5, None, False]}},
        arrival=1,
        sent_at_estimated=True,
        heard_from=START - timedelta(days=1),
        heard_until=START + timedelta(microseconds=123456),
        tokens=7,
        edited_at=START + timedelta(days=1),
    ),
    features=MessageFeatures(
        message_type=MessageType.QUESTION,
        mentions=("u2",),
        addressed=("u2",),
        mentions_all=True,
        keywords=("net/http", "部署"),
        reply=ReplyInfo(kind="quote", message_id=None, sender_id="u2"),
        partners=("u2", "小明"),
    ),
    link=Link(
        kind=LinkKind.GUESS,
        thread=1,
        parent=1,
        parent_probability=0.1 + 0.2,
        new_probability=1 / 3,
        thread_candidates=ThreadCandidates.of([5, 3], [0.7, 1.0]),
    ),
)


async def became(
    storage: Storage, revision: int, *, after: int = 0, room_id: str = ROOM
) -> tuple[list[StoredMessage], list[int]]:
    """Return the answer of `changed`."""
    async with storage.reading() as work:
        return await work.messages.changed(tenant=TENANT, room_id=room_id, revision=revision, after=after)


_RICH_LATER = changed(_RICH, message=changed(_RICH.message, id="m5", arrival=5), link=link(5, 5, kind=LinkKind.NEW))


async def added(storage: Storage, since: int, through: int, *, after: int = 2, limit: int = 9) -> list[Entry] | None:
    """Return the answer of `appended`."""
    async with storage.reading() as work:
        return await work.messages.appended(
            tenant=TENANT, room_id=ROOM, since=since, through=through, after=after, limit=limit
        )


class MessagesContract:
    async def test_every_field_comes_back(self, storage: Storage) -> None:
        await fill(storage, [_RICH, entry(2)])
        assert await everything(storage) == [_RICH, entry(2)]

    async def test_by_id_and_by_arrival_in_order_of_arrival(self, storage: Storage) -> None:
        await fill(storage, [entry(n, id=f"m{9 - n}") for n in range(1, 7)])
        async with storage.reading() as work:
            named = await work.messages.by_id(tenant=TENANT, room_id=ROOM, message_ids=["m3", "m8", "none", "m5", "m3"])
            numbered = await work.messages.by_arrival(tenant=TENANT, room_id=ROOM, arrivals=[6, 99, 1, 4, 4, -1])
        assert [found.message.arrival for found in named] == [1, 4, 6]
        assert [found.message.arrival for found in numbered] == [1, 4, 6]

    async def test_the_newest_message_of_several_rooms(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2, text="茶\x00tea 👋🏽 later", sender_name="Bo"), entry(3)])
        await fill(storage, [entry(1, text="")], room_id="房间")
        await fill(storage, [], room_id="empty")
        await fill(storage, [entry(1, text="theirs")], room_id="theirs", tenant="other")
        await erase(storage, 3)
        async with storage.reading() as work:
            every = [ROOM, "房间", "empty", "theirs", "unknown"]
            found = await work.messages.newest_of(tenant=TENANT, room_ids=every, characters=2_000)
            assert {room_id: (one.room_id, one.arrival) for room_id, one in found.items()} == {
                ROOM: (ROOM, 2),
                "房间": ("房间", 1),
            }
            assert (found[ROOM].text, found[ROOM].sender_name) == ("茶\x00tea 👋🏽 later", "Bo")
            begun = (await work.messages.newest_of(tenant=TENANT, room_ids=[ROOM], characters=1))[ROOM]
            assert begun.text == "茶"
            for size in range(1, 9):
                cut = (await work.messages.newest_of(tenant=TENANT, room_ids=[ROOM], characters=size))[ROOM]
                assert len(cut.text) <= size
            assert await work.messages.newest_of(tenant=TENANT, room_ids=[], characters=9) == {}

    async def test_how_many_messages_rooms_had_between_times(self, storage: Storage) -> None:
        times = [START + timedelta(days=day) for day in range(4)]
        days = (-1, 0, 0, 0, 1, 2.5, 3)
        said = [entry(n, sent_at=START + timedelta(days=day)) for n, day in enumerate(days, start=1)]
        await fill(storage, said)
        await fill(storage, [entry(1, sent_at=times[2])], room_id="茶")
        await fill(storage, [entry(1)], room_id="theirs", tenant="other")
        await erase(storage, 5)
        async with storage.reading() as work:
            counted = partial(work.messages.sent_between, tenant=TENANT, times=times)
            every = [ROOM, "茶", "theirs", "unknown"]
            assert await counted(room_ids=every, most=9) == {ROOM: (3, 0, 1), "茶": (0, 0, 1)}
            assert await counted(room_ids=[ROOM], most=2) == {ROOM: (2, 0, 1)}, "no more are read than are asked for"
            assert await counted(room_ids=[], most=9) == {}
            few = await work.messages.sent_between(tenant=TENANT, room_ids=[ROOM], times=times[:2], most=9)
            assert few == {ROOM: (3,)}

    async def test_ids_that_begin_or_end_alike_in_order_of_arrival(self, storage: Storage) -> None:
        names = ["qq_1_a7", "qq_2_b7", "茶%1", "茶_1", "other"]
        await fill(storage, [entry(n, id=name) for n, name in enumerate(names, start=1)])

        async def like(part: str, room_id: str = ROOM, limit: int = 9) -> list[str]:
            async with storage.reading() as work:
                return await work.messages.ids_like(tenant=TENANT, room_id=room_id, part=part, limit=limit)

        assert await like("qq_") == ["qq_1_a7", "qq_2_b7"]
        assert await like("7") == ["qq_1_a7", "qq_2_b7"]
        assert await like("qq_", limit=1) == ["qq_1_a7"]
        assert await like("茶%") == ["茶%1"], "no character stands for others"
        assert await like("_2_") == []
        assert await like("qq_", room_id="elsewhere") == []

    async def test_ten_thousand_ids_at_once(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        asked = [f"m{n}" for n in range(2, 10_002)]
        async with storage.reading() as work:
            taken = await work.messages.fingerprints(tenant=TENANT, room_id=ROOM, message_ids=asked)
        assert list(taken) == ["m2"]

    async def test_fingerprints_are_the_content_hash(self, storage: Storage) -> None:
        await fill(storage, [_RICH])
        async with storage.reading() as work:
            found = await work.messages.fingerprints(tenant=TENANT, room_id=ROOM, message_ids=["m1", "m2"])
        assert found == {"m1": content_hash(changed(_RICH.message, tokens=0, edited_at=None))}

    async def test_what_a_batch_meets(self, storage: Storage) -> None:
        room = await fill(
            storage, [_RICH, entry(2), entry(3, id="部署 2", reply_to="later"), entry(4, reply_to="gone")]
        )
        await erase(storage, 2, 4)
        here: dict[str, Any] = {"tenant": TENANT, "room_id": ROOM}
        async with storage.reading() as work:
            met = await work.messages.met(**here, message_ids=["m1", "m2", "部署 2", "new"])
            assert met is not None
            assert met.fingerprints == await work.messages.fingerprints(**here, message_ids=["m1", "m2", "部署 2"])
            assert (met.room, met.awaited) == (await work.rooms.find(**here), False)
            assert met.room.revision > room.revision
            nothing = await work.messages.met(**here, message_ids=["new", "later"])
            assert nothing is not None
            assert (dict(nothing.fingerprints), nothing.awaited) == ({}, True)
            erased = await work.messages.met(**here, message_ids=["gone"])
            assert erased is not None
            assert not erased.awaited
            assert await work.messages.met(tenant=TENANT, room_id="unknown", message_ids=["m1"]) is None

    async def test_the_tail_is_the_newest_before_a_point(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 11)])
        async with storage.reading() as work:
            newest = await work.messages.tail(tenant=TENANT, room_id=ROOM, limit=3)
            earlier = await work.messages.tail(tenant=TENANT, room_id=ROOM, limit=3, before=6)
            none = await work.messages.tail(tenant=TENANT, room_id=ROOM, limit=3, before=1)
        assert [found.message.arrival for found in newest] == [8, 9, 10]
        assert [found.message.arrival for found in earlier] == [3, 4, 5]
        assert none == []

    async def test_the_tail_since_a_time_where_the_clock_ran_backwards(self, storage: Storage) -> None:
        minutes = [1, 50, 2, 60, 3, 70, 4, 5]
        entries = [entry(n, sent_at=START + timedelta(minutes=minute)) for n, minute in enumerate(minutes, start=1)]
        await fill(storage, entries)
        since = START + timedelta(minutes=50)
        async with storage.reading() as work:
            two = await work.messages.tail(tenant=TENANT, room_id=ROOM, limit=2, since=since)
            bounded = await work.messages.tail(tenant=TENANT, room_id=ROOM, limit=9, before=6, since=since)
            all_new = await work.messages.tail(tenant=TENANT, room_id=ROOM, limit=9, since=START)
        assert [found.message.arrival for found in two] == [4, 6]
        assert [found.message.arrival for found in bounded] == [2, 4]
        assert len(all_new) == 8

    async def test_recent_and_page_are_the_messages_alone(self, storage: Storage) -> None:
        entries = [entry(n) for n in range(1, 8)]
        await fill(storage, entries)
        said = [found.message for found in entries]
        async with storage.reading() as work:
            assert await work.messages.recent(tenant=TENANT, room_id=ROOM, limit=3) == said[4:]
            assert await work.messages.recent(tenant=TENANT, room_id=ROOM, limit=3, before=3) == said[:2]
            assert await work.messages.page(tenant=TENANT, room_id=ROOM, after=0, limit=4) == said[:4]
            assert await work.messages.page(tenant=TENANT, room_id=ROOM, after=4, limit=4) == said[4:]

    async def test_recent_and_page_with_the_hashes_that_fingerprints_tell(self, storage: Storage) -> None:
        texts = ["部署完成", "rolled back", "再试一次", "it works", "好"]
        await fill(storage, [entry(n, text=text, sender_id=f"u{n % 2}") for n, text in enumerate(texts, start=1)])
        await erase(storage, 2)
        here: dict[str, Any] = {"tenant": TENANT, "room_id": ROOM}
        async with storage.reading() as work:
            messages = work.messages
            pairs = [
                await messages.page_with_hashes(**here, after=0, limit=3),
                await messages.page_with_hashes(**here, after=1, limit=9, sender_id="u1"),
                await messages.recent_with_hashes(**here, limit=2),
                await messages.recent_with_hashes(**here, limit=2, before=4),
            ]
            plain = [
                await messages.page(**here, after=0, limit=3),
                await messages.page(**here, after=1, limit=9, sender_id="u1"),
                await messages.recent(**here, limit=2),
                await messages.recent(**here, limit=2, before=4),
            ]
            prints = await messages.fingerprints(**here, message_ids=["m1", "m3", "m4", "m5"])
        assert [[said.arrival for said, _ in found] for found in pairs] == [[1, 3, 4], [3, 5], [4, 5], [1, 3]]
        assert [[said for said, _ in found] for found in pairs] == plain
        assert all(prints[said.id] == known for found in pairs for said, known in found)
        assert len(set(prints.values())) == 4

    async def test_the_same_id_lives_in_two_rooms(self, storage: Storage) -> None:
        await fill(storage, [entry(1, text="here")])
        await fill(storage, [entry(1, room_id="other", text="there")], room_id="other")
        assert [found.message.text for found in await everything(storage)] == ["here"]
        assert [found.message.text for found in await everything(storage, room_id="other")] == ["there"]

    async def test_the_deleted_are_in_no_answer(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 5)])
        await erase(storage, 2, 4)
        ids = ["m1", "m2", "m3", "m4"]
        async with storage.reading() as work:
            messages = work.messages
            lists = [
                [found.message for found in await messages.by_id(tenant=TENANT, room_id=ROOM, message_ids=ids)],
                [found.message for found in await messages.by_arrival(tenant=TENANT, room_id=ROOM, arrivals=range(9))],
                [found.message for found in await messages.tail(tenant=TENANT, room_id=ROOM, limit=9)],
                [found.message for found in await messages.tail(tenant=TENANT, room_id=ROOM, limit=2, since=START)],
                await messages.recent(tenant=TENANT, room_id=ROOM, limit=9),
                await messages.page(tenant=TENANT, room_id=ROOM, after=0, limit=9),
            ]
            taken = await messages.fingerprints(tenant=TENANT, room_id=ROOM, message_ids=ids)
        assert [[said.id for said in found] for found in lists] == [["m1", "m3"]] * 6
        assert (taken["m2"], taken["m4"]) == ("", "")
        assert len(taken["m1"]) == len(taken["m3"]) == 64

    async def test_what_became_of_messages_since_a_revision(self, storage: Storage) -> None:
        before = await fill(storage, [entry(n) for n in range(1, 7)])
        assert await became(storage, before.revision) == ([], [])
        await replace(storage, entry(2, text="edited", edited_at=START))
        await erase(storage, 4, 3)
        await relink(storage, {5: link(1, 1)})
        await fill(storage, [entry(7), entry(8)])
        there = [entry(2, text="edited", edited_at=START), entry(5), entry(7), entry(8)]
        assert await became(storage, before.revision) == ([one.message for one in there], [3, 4])
        assert await became(storage, before.revision, after=3) == ([one.message for one in there[1:]], [4])
        assert await became(storage, before.revision, after=8) == ([], [])

    async def test_only_later_revisions_count_as_changes(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        edited = await replace(storage, entry(1, text="edited"))
        erased = await erase(storage, 1)
        assert await became(storage, 0) == ([entry(2).message], [1])
        assert await became(storage, edited.revision) == ([], [1])
        assert await became(storage, erased.revision) == ([], [])
        await erase(storage, 1)
        assert await became(storage, erased.revision) == ([], []), "it was deleted before"

    async def test_what_was_appended_is_known_if_nothing_else_happened(self, storage: Storage) -> None:
        first = await fill(storage, [entry(1), entry(2)])
        second = await fill(storage, [entry(3), entry(4, text="")])
        third = await fill(storage, [_RICH_LATER])
        assert await added(storage, first.revision, third.revision) == [entry(3), entry(4, text=""), _RICH_LATER]
        assert await added(storage, first.revision, second.revision) == [entry(3), entry(4, text="")]
        assert await added(storage, first.revision, third.revision, limit=2) is None
        assert await added(storage, third.revision, third.revision) == []
        assert await added(storage, third.revision, third.revision + 1) is None
        assert await added(storage, first.revision, third.revision, after=3) is None, "3 was added, too"

    @pytest.mark.parametrize(
        "change",
        [
            lambda storage: replace(storage, entry(1, text="changed")),
            lambda storage: erase(storage, 1),
            lambda storage: erase(storage, 4),
            lambda storage: erase(storage),
            lambda storage: relink(storage, {2: link(1, 1), 4: link(1, 1)}),
        ],
        ids=["an old edit", "an old one erased", "a new one erased", "nothing erased", "an old link and a new one"],
    )
    async def test_what_was_appended_is_not_all_if_anything_else_happened(
        self, storage: Storage, change: Callable[[Storage], Awaitable[object]]
    ) -> None:
        since = await fill(storage, [entry(1), entry(2)])
        await fill(storage, [entry(3), entry(4)])
        await change(storage)
        now = await fill(storage, [entry(5)])
        assert await added(storage, since.revision, now.revision) is None

    async def test_what_moved_to_another_thread_has_changed(self, storage: Storage) -> None:
        before = await fill(storage, [entry(1), entry(2), entry(3, link=link(2, 2))])
        await relink(storage, {2: link(1, 1)})
        assert await became(storage, before.revision) == ([entry(2).message, entry(3).message], [])

    async def test_changes_of_another_room_are_not_this_rooms(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        await fill(storage, [entry(1), entry(2)], room_id="other")
        assert await became(storage, 0) == ([entry(1).message], [])
        assert await became(storage, 0, room_id="no such room") == ([], [])

    async def test_what_one_sender_said(self, storage: Storage) -> None:
        said = [entry(n, sender_id="小明" if n % 3 == 0 else "ann") for n in range(1, 11)]
        await fill(storage, said)
        await fill(storage, [entry(1, sender_id="小明")], room_id="other")
        await erase(storage, 6)
        here: dict[str, Any] = {"tenant": TENANT, "room_id": ROOM, "sender_id": "小明"}
        async with storage.reading() as work:
            found = await work.messages.page(**here, after=0, limit=9)
            assert found == [said[2].message, said[8].message]
            assert await work.messages.page(**here, after=0, limit=1) == found[:1]
            assert await work.messages.page(**here, after=3, limit=9) == found[1:]
            assert await work.messages.page(**{**here, "sender_id": "nobody"}, after=0, limit=9) == []

    async def test_when_messages_were_said_that_were_edited_or_have_no_certain_time(self, storage: Storage) -> None:
        at, late, early = START, START + timedelta(days=1), START - timedelta(days=1)
        flagged: dict[str, Any] = {"sent_at": at, "sent_at_estimated": True}
        said = [
            entry(1, sent_at=at),
            entry(2, sent_at=at, edited_at=late),
            entry(3, sent_at=at, edited_at=early),
            entry(4, **flagged, heard_from=early, heard_until=late),
            entry(5, **flagged, heard_from=at, heard_until=at),
            entry(6, **flagged),
            entry(7, **flagged, heard_from=early, heard_until=early),
            entry(8, sent_at=at, edited_at=late),
        ]
        await fill(storage, said)
        await fill(storage, [entry(1, edited_at=START)], room_id="other")
        await erase(storage, 8)
        times = {2: (at, late), 3: (early, at), 4: (early, late), 6: (at, END), 7: (early, early)}
        async with storage.reading() as work:
            found = await work.messages.said(tenant=TENANT, room_id=ROOM)
            assert found == {arrival: Window(*its) for arrival, its in times.items()}
            assert await work.messages.said(tenant=TENANT, room_id="unknown") == {}
            origins = await work.messages.origins(tenant=TENANT, room_id=ROOM, message_ids=["m1", "m4", "m6"])
        assert {name: (one.first, one.last) for name, one in origins.items()} == {
            "m1": (at, at),
            "m4": (early, late),
            "m6": (at, END),
        }

    async def test_a_time_ahead_dates_neither_the_room_nor_what_was_said_since(self, storage: Storage) -> None:
        ahead: dict[str, Any] = {"sent_at": START + timedelta(days=9999), "sent_at_estimated": True}
        said = entry(1, **ahead, heard_from=START, heard_until=START, sender_id="ann")
        await fill(storage, [said, entry(2, sent_at=START)])
        async with storage.reading() as work:
            room = await work.rooms.find(tenant=TENANT, room_id=ROOM)
            since: dict[str, Any] = {"tenant": TENANT, "room_id": ROOM, "since": START + timedelta(minutes=1)}
            assert room is not None
            assert room.last_sent_at == START
            assert await work.messages.first_since(**since) is None
            assert await work.messages.tail(**since, limit=9) == []
            people = (await work.rooms.people(tenant=TENANT, room_ids=[ROOM]))[ROOM].people
            target = await work.messages.target(tenant=TENANT, room_id=ROOM, message_id="m2", window=9)
            threads = await work.messages.threads(tenant=TENANT, room_id=ROOM, after=0, limit=9)
            facts = await work.messages.facts(tenant=TENANT, room_id=ROOM, since=0)
        assert people["ann"].spoke == Window(START, START)
        assert target is not None
        assert target.previous_at == START
        assert {(one.first_sent_at, one.last_sent_at) for _, one in threads} == {(START, START)}
        assert facts is not None
        assert len(set(facts.sent_at.tolist())) == 1

    async def test_who_spoke_at_a_time_that_is_not_certain_was_there_in_its_middle_only(self, storage: Storage) -> None:
        def hour(number: float) -> datetime:
            return START + timedelta(hours=number)

        unsure: dict[str, Any] = {
            "sent_at": hour(2),
            "sent_at_estimated": True,
            "heard_from": hour(2),
            "heard_until": hour(4),
        }
        said = [entry(1, sent_at=hour(1), sender_id="ann"), entry(2, **unsure, sender_id="ann")]
        await fill(storage, [*said, entry(3, **unsure, sender_id="bo"), entry(4, sent_at=hour(4), sender_id="ann")])
        async with storage.reading() as work:
            people = (await work.rooms.people(tenant=TENANT, room_ids=[ROOM]))[ROOM]
        assert people.people["ann"].spoke == Window(hour(1), hour(4))
        shown = [when for when in range(6) if covers(windows_of(people, ["bo"]), hour(when), hour(when))]
        assert shown == [], "nobody knows when bo was there"

    @pytest.mark.parametrize("sender_id", [None, "ann", "bo", "nobody"])
    async def test_how_many_a_page_has_in_all(self, storage: Storage, sender_id: str | None) -> None:
        await fill(storage, [entry(n, sender_id="bo" if n in (2, 5, 6) else "ann") for n in range(1, 9)])
        await fill(storage, [entry(1)], room_id="other")
        await erase(storage, 5, 8)
        here: dict[str, Any] = {"tenant": TENANT, "room_id": ROOM, "sender_id": sender_id}
        async with storage.reading() as work:
            for after in range(10):
                listed = await work.messages.page(**here, after=after, limit=99)
                assert await work.messages.count(**here, after=after) == len(listed)
            assert await work.messages.count(tenant=TENANT, room_id="no such room", after=0, sender_id=sender_id) == 0

    async def test_the_first_since_a_time_where_the_clock_ran_backwards(self, storage: Storage) -> None:
        minutes = [5, 1, 70, 3, 60, 2]
        said = [entry(n, sent_at=START + timedelta(minutes=minute)) for n, minute in enumerate(minutes, start=1)]
        await fill(storage, said)
        await erase(storage, 1)
        expected = {0: 2, 1: 2, 2: 3, 60: 3, 70: 3, 71: None}
        async with storage.reading() as work:
            first = {
                minute: await work.messages.first_since(
                    tenant=TENANT, room_id=ROOM, since=START + timedelta(minutes=minute)
                )
                for minute in expected
            }
            assert await work.messages.first_since(tenant=TENANT, room_id="no such room", since=START) is None
        assert first == expected


class WriterContract:
    async def test_any_split_into_batches_stores_the_same(self, storage: Storage) -> None:
        entries = [
            entry(n, sender_id=f"u{n % 3}", sender_name=f"name {n}", features=features(keywords=(f"k{n % 4}", "all")))
            for n in range(1, 100)
        ]
        at_once = await fill(storage, entries)
        for one in entries:
            piecewise = await fill(storage, [one], room_id="piecewise")
        async with storage.reading() as work:
            people = [await work.rooms.participants(tenant=TENANT, room_id=room) for room in (ROOM, "piecewise")]
            words = [
                await work.messages.keyword_counts(
                    tenant=TENANT, room_id=room, keywords=["all", "k0", "k1", "k2", "k3"]
                )
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
            async with storage.writing() as work:
                await work.messages.append(tenant=TENANT, room_id=ROOM, entries=[entry(2)])

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
            async with storage.reading() as work:
                here = {"tenant": TENANT, "room_id": room_id}
                words = await work.messages.keyword_counts(**here, keywords=["all", "k0", "k1", "k2", "茶"])
                found = await work.messages.look_up(**here, words=["改", "text"])
                assert found is not None
                people = await work.rooms.participants(**here)
                entries = await work.messages.by_arrival(**here, arrivals=range(1, 9))
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
        async with storage.reading() as work:
            words = await work.messages.keyword_counts(tenant=TENANT, room_id=ROOM, keywords=["deploy", "rust"])
            people = await work.rooms.participants(tenant=TENANT, room_id=ROOM)
        assert words == {"deploy": 1, "rust": 1}
        assert people == {"ann": "Ann", "bo": "Bo"}

    async def test_an_edit_of_an_older_message_does_not_rename(self, storage: Storage) -> None:
        await fill(storage, [entry(1, sender_name="Old"), entry(2, sender_name="New")])
        await replace(storage, entry(1, sender_name="Older", text="x"))
        async with storage.reading() as work:
            assert await work.rooms.participants(tenant=TENANT, room_id=ROOM) == {"ann": "New"}

    async def test_a_name_goes_with_the_last_message_that_gives_it(self, storage: Storage) -> None:
        anns = [entry(2), entry(3, sender_name="Ann"), entry(4, sender_name="Anna"), entry(5)]
        bo = entry(6, sender_id="bo", sender_name="Bo")
        await fill(storage, [entry(1, sender_id="zoe"), *anns, bo, entry(7, sender_id="zoe")])

        async def people() -> list[tuple[str, str]]:
            async with storage.reading() as work:
                return list((await work.rooms.participants(tenant=TENANT, room_id=ROOM)).items())

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
        async with storage.reading() as work:
            assert await work.rooms.participants(tenant=TENANT, room_id=ROOM) == {"bo": ""}

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
        async with storage.reading() as work:
            people = await work.rooms.participants(tenant=TENANT, room_id=ROOM)
            words = await work.messages.keyword_counts(tenant=TENANT, room_id=ROOM, keywords=["deploy", "部署"])
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
        async with storage.writing() as work:
            await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            given = {2: link(1, 1)}
            relinked = await work.messages.relink(tenant=TENANT, room_id=ROOM, links=given, most=2)
        assert (relinked.changed, relinked.left) == (3, True)
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 7: 2, 8: 2, 9: 9}
        async with storage.writing() as work:
            room = await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            moved = await work.messages.follow(tenant=TENANT, room_id=ROOM, arrivals=[5, 6, 7, 9, 77])
            again = await work.messages.follow(tenant=TENANT, room_id=ROOM, arrivals=[1, 2, 5])
        assert (moved, again) == (3, 0)
        assert await threads_of(storage) == {1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 7: 1, 8: 2, 9: 9}
        async with storage.reading() as work:
            stored = await work.rooms.find(tenant=TENANT, room_id=ROOM)
            changes, _ = await work.messages.changed(tenant=TENANT, room_id=ROOM, revision=room.revision, after=0)
        assert stored is not None
        assert stored.revision == room.revision + 1
        assert [one.arrival for one in changes] == [5, 7]

    async def test_relinking_all_leaves_nothing(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2), entry(3, link=link(2, 2))])
        async with storage.writing() as work:
            await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            relinked = await work.messages.relink(tenant=TENANT, room_id=ROOM, links={2: link(1, 1)}, most=2)
        assert (relinked.changed, relinked.left) == (2, False)

    async def test_the_threads_of_a_room_are_read_in_pages(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2, link=link(1, 1)), entry(3, link=link(3, 2, kind=LinkKind.NEW))])
        await erase(storage, 2)
        async with storage.reading() as work:
            pages = [
                await work.messages.threads_after(tenant=TENANT, room_id=room_id, after=after, limit=2)
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
        async with storage.reading() as work:
            found = {
                arrival: await work.messages.answered_through(tenant=TENANT, room_id=ROOM, arrival=arrival)
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
        async with storage.writing() as work:
            await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            room = await work.messages.analyse_anew(tenant=TENANT, room_id=ROOM, entries=anew, linked=linked)
        assert room == changed(before, revision=before.revision + 1, linked=linked)
        assert await everything(storage) == [said[0], *anew, said[3]]
        async with storage.reading() as work:
            counts = await work.messages.keyword_counts(
                tenant=TENANT, room_id=ROOM, keywords=["deploy", "nginx", "部署"]
            )
            since, _ = await work.messages.changed(tenant=TENANT, room_id=ROOM, revision=before.revision, after=0)
            assert await work.rooms.find(tenant=TENANT, room_id=ROOM) == room
        assert counts == {"deploy": 1, "nginx": 2, "部署": 1}
        assert [message.arrival for message in since] == [2, 3]
        later = await fill(storage, [entry(5)])
        assert later.linked == linked, "who says nothing of the links leaves them"

    async def test_analysing_anew_needs_messages_that_are_there(self, storage: Storage) -> None:
        await fill(storage, conversation())
        await erase(storage, 2)
        for wrong in (entry(2), entry(3, id="other"), entry(9)):
            async with storage.writing() as work:
                await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
                with pytest.raises(NotFound):
                    await work.messages.analyse_anew(tenant=TENANT, room_id=ROOM, entries=[wrong])
