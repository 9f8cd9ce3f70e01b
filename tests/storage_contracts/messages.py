"""The contracts of the messages of a room: reading them, and `MessageWriter`, which appends them with what belongs to
them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace as changed
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from roomlore.core.audience import END, Window, covers, windows_of
from roomlore.core.intake import HASH_DIGITS, content_hash
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.models import Entry, Link, LinkKind, MessageFeatures, MessageType, ReplyInfo, Role, StoredMessage
from roomlore.storage import Storage
from roomlore_testkit.builders import START, entry, link
from storage_contracts.texts import ROOM, TENANT, erase, everything, fill, relink, replace

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
    async with storage.reading(TENANT) as work:
        return await work.messages.changed(room_id=room_id, revision=revision, after=after)


_RICH_LATER = changed(_RICH, message=changed(_RICH.message, id="m5", arrival=5), link=link(5, 5, kind=LinkKind.NEW))


async def added(storage: Storage, since: int, through: int, *, after: int = 2, limit: int = 9) -> list[Entry] | None:
    """Return the answer of `appended`."""
    async with storage.reading(TENANT) as work:
        return await work.messages.appended(room_id=ROOM, since=since, through=through, after=after, limit=limit)


class MessagesContract:
    async def test_every_field_comes_back(self, storage: Storage) -> None:
        await fill(storage, [_RICH, entry(2)])
        assert await everything(storage) == [_RICH, entry(2)]

    async def test_by_id_and_by_arrival_in_order_of_arrival(self, storage: Storage) -> None:
        await fill(storage, [entry(n, id=f"m{9 - n}") for n in range(1, 7)])
        async with storage.reading(TENANT) as work:
            named = await work.messages.by_id(room_id=ROOM, message_ids=["m3", "m8", "none", "m5", "m3"])
            numbered = await work.messages.by_arrival(room_id=ROOM, arrivals=[6, 99, 1, 4, 4, -1])
        assert [found.message.arrival for found in named] == [1, 4, 6]
        assert [found.message.arrival for found in numbered] == [1, 4, 6]

    async def test_the_newest_message_of_several_rooms(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2, text="茶\x00tea 👋🏽 later", sender_name="Bo"), entry(3)])
        await fill(storage, [entry(1, text="")], room_id="房间")
        await fill(storage, [], room_id="empty")
        await fill(storage, [entry(1, text="theirs")], room_id="theirs", tenant="other")
        await erase(storage, 3)
        async with storage.reading(TENANT) as work:
            every = [ROOM, "房间", "empty", "theirs", "unknown"]
            found = await work.messages.newest_of(room_ids=every, characters=2_000)
            assert {room_id: (one.room_id, one.arrival) for room_id, one in found.items()} == {
                ROOM: (ROOM, 2),
                "房间": ("房间", 1),
            }
            assert (found[ROOM].text, found[ROOM].sender_name) == ("茶\x00tea 👋🏽 later", "Bo")
            begun = (await work.messages.newest_of(room_ids=[ROOM], characters=1))[ROOM]
            assert begun.text == "茶"
            for size in range(1, 9):
                cut = (await work.messages.newest_of(room_ids=[ROOM], characters=size))[ROOM]
                assert len(cut.text) <= size
            assert await work.messages.newest_of(room_ids=[], characters=9) == {}

    async def test_how_many_messages_rooms_had_between_times(self, storage: Storage) -> None:
        times = [START + timedelta(days=day) for day in range(4)]
        days = (-1, 0, 0, 0, 1, 2.5, 3)
        said = [entry(n, sent_at=START + timedelta(days=day)) for n, day in enumerate(days, start=1)]
        await fill(storage, said)
        await fill(storage, [entry(1, sent_at=times[2])], room_id="茶")
        await fill(storage, [entry(1)], room_id="theirs", tenant="other")
        await erase(storage, 5)
        async with storage.reading(TENANT) as work:
            counted = partial(work.messages.sent_between, times=times)
            every = [ROOM, "茶", "theirs", "unknown"]
            assert await counted(room_ids=every, most=9) == {ROOM: (3, 0, 1), "茶": (0, 0, 1)}
            assert await counted(room_ids=[ROOM], most=2) == {ROOM: (2, 0, 1)}, "no more are read than are asked for"
            assert await counted(room_ids=[], most=9) == {}
            few = await work.messages.sent_between(room_ids=[ROOM], times=times[:2], most=9)
            assert few == {ROOM: (3,)}

    async def test_the_newest_entries_of_several_rooms_since_a_time(self, storage: Storage) -> None:
        days = (0, 3, 1, 2, 4, 5)
        asking = {2: {"mentions": ("bo_1",)}, 3: {"addressed": ("bo_1",)}, 4: {"mentions_all": True}}
        asking[6] = {"reply": ReplyInfo(kind="quote", message_id="m1", sender_id="bo_1")}
        said = [entry(n, sent_at=START + timedelta(days=day)) for n, day in enumerate(days, start=1)]
        said = [changed(one, features=changed(one.features, **asking.get(one.message.arrival, {}))) for one in said]
        await fill(storage, said)
        await fill(storage, [entry(1, sent_at=START + timedelta(days=2.5))], room_id="茶")
        await fill(storage, [entry(1)], room_id="theirs", tenant="other")
        await erase(storage, 5)

        async def latest(since: float = 0.5, limit: int = 9, each: int = 9, **more: str) -> list[tuple[str, int]]:
            every, begin = [ROOM, "茶", "theirs", "unknown"], START + timedelta(days=since)
            async with storage.reading(TENANT) as work:
                found = await work.messages.latest_in(room_ids=every, since=begin, limit=limit, each=each, **more)
            return [(one.message.room_id, one.message.arrival) for one in found]

        assert await latest() == [(ROOM, 6), (ROOM, 2), ("茶", 1), (ROOM, 4), (ROOM, 3)], "by time, not by arrival"
        assert await latest(limit=2) == [(ROOM, 6), (ROOM, 2)]
        assert await latest(since=2.2) == [(ROOM, 6), (ROOM, 2), ("茶", 1)]
        assert await latest(each=3) == [(ROOM, 6), (ROOM, 2), ("茶", 1)], "a deleted message counts among the newest"
        assert await latest(naming="bo_1") == [(ROOM, 6), (ROOM, 2), (ROOM, 4), (ROOM, 3)]
        async with storage.reading(TENANT) as work:
            assert await work.messages.latest_in(room_ids=[], since=START, limit=9, each=9) == []

    async def test_ids_that_begin_or_end_alike_in_order_of_arrival(self, storage: Storage) -> None:
        names = ["qq_1_a7", "qq_2_b7", "茶%1", "茶_1", "other"]
        await fill(storage, [entry(n, id=name) for n, name in enumerate(names, start=1)])

        async def like(part: str, room_id: str = ROOM, limit: int = 9) -> list[str]:
            async with storage.reading(TENANT) as work:
                return await work.messages.ids_like(room_id=room_id, part=part, limit=limit)

        assert await like("qq_") == ["qq_1_a7", "qq_2_b7"]
        assert await like("7") == ["qq_1_a7", "qq_2_b7"]
        assert await like("qq_", limit=1) == ["qq_1_a7"]
        assert await like("茶%") == ["茶%1"], "no character stands for others"
        assert await like("_2_") == []
        assert await like("qq_", room_id="elsewhere") == []

    async def test_ten_thousand_ids_at_once(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        asked = [f"m{n}" for n in range(2, 10_002)]
        async with storage.reading(TENANT) as work:
            taken = await work.messages.fingerprints(room_id=ROOM, message_ids=asked)
        assert list(taken) == ["m2"]

    async def test_fingerprints_are_the_content_hash(self, storage: Storage) -> None:
        await fill(storage, [_RICH])
        async with storage.reading(TENANT) as work:
            found = await work.messages.fingerprints(room_id=ROOM, message_ids=["m1", "m2"])
        assert found == {"m1": content_hash(changed(_RICH.message, tokens=0, edited_at=None))}

    async def test_what_a_batch_meets(self, storage: Storage) -> None:
        room = await fill(
            storage, [_RICH, entry(2), entry(3, id="部署 2", reply_to="later"), entry(4, reply_to="gone")]
        )
        await erase(storage, 2, 4)
        async with storage.reading(TENANT) as work:
            met = await work.messages.met(room_id=ROOM, message_ids=["m1", "m2", "部署 2", "new"])
            assert met is not None
            assert met.fingerprints == await work.messages.fingerprints(
                room_id=ROOM, message_ids=["m1", "m2", "部署 2"]
            )
            assert (met.room, met.awaited) == (await work.rooms.find(room_id=ROOM), False)
            assert met.room.revision > room.revision
            nothing = await work.messages.met(room_id=ROOM, message_ids=["new", "later"])
            assert nothing is not None
            assert (dict(nothing.fingerprints), nothing.awaited) == ({}, True)
            erased = await work.messages.met(room_id=ROOM, message_ids=["gone"])
            assert erased is not None
            assert not erased.awaited
            assert await work.messages.met(room_id="unknown", message_ids=["m1"]) is None

    async def test_the_tail_is_the_newest_before_a_point(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 11)])
        async with storage.reading(TENANT) as work:
            newest = await work.messages.tail(room_id=ROOM, limit=3)
            earlier = await work.messages.tail(room_id=ROOM, limit=3, before=6)
            none = await work.messages.tail(room_id=ROOM, limit=3, before=1)
        assert [found.message.arrival for found in newest] == [8, 9, 10]
        assert [found.message.arrival for found in earlier] == [3, 4, 5]
        assert none == []

    async def test_the_tail_since_a_time_where_the_clock_ran_backwards(self, storage: Storage) -> None:
        minutes = [1, 50, 2, 60, 3, 70, 4, 5]
        entries = [entry(n, sent_at=START + timedelta(minutes=minute)) for n, minute in enumerate(minutes, start=1)]
        await fill(storage, entries)
        since = START + timedelta(minutes=50)
        async with storage.reading(TENANT) as work:
            two = await work.messages.tail(room_id=ROOM, limit=2, since=since)
            bounded = await work.messages.tail(room_id=ROOM, limit=9, before=6, since=since)
            ended = await work.messages.tail(room_id=ROOM, limit=2, since=START, until=since)
            all_new = await work.messages.tail(room_id=ROOM, limit=9, since=START)
        assert [found.message.arrival for found in two] == [4, 6]
        assert [found.message.arrival for found in bounded] == [2, 4]
        assert [found.message.arrival for found in ended] == [7, 8]
        assert len(all_new) == 8

    async def test_recent_and_page_are_the_messages_alone(self, storage: Storage) -> None:
        entries = [entry(n) for n in range(1, 8)]
        await fill(storage, entries)
        said = [found.message for found in entries]
        async with storage.reading(TENANT) as work:
            assert await work.messages.recent(room_id=ROOM, limit=3) == said[4:]
            assert await work.messages.recent(room_id=ROOM, limit=3, before=3) == said[:2]
            assert await work.messages.page(room_id=ROOM, after=0, limit=4) == said[:4]
            assert await work.messages.page(room_id=ROOM, after=4, limit=4) == said[4:]

    async def test_recent_and_page_with_the_hashes_that_fingerprints_tell(self, storage: Storage) -> None:
        texts = ["部署完成", "rolled back", "再试一次", "it works", "好"]
        await fill(storage, [entry(n, text=text, sender_id=f"u{n % 2}") for n, text in enumerate(texts, start=1)])
        await erase(storage, 2)
        async with storage.reading(TENANT) as work:
            messages = work.messages
            pairs = [
                await messages.page_with_hashes(room_id=ROOM, after=0, limit=3),
                await messages.page_with_hashes(room_id=ROOM, after=1, limit=9, sender_id="u1"),
                await messages.recent_with_hashes(room_id=ROOM, limit=2),
                await messages.recent_with_hashes(room_id=ROOM, limit=2, before=4),
            ]
            plain = [
                await messages.page(room_id=ROOM, after=0, limit=3),
                await messages.page(room_id=ROOM, after=1, limit=9, sender_id="u1"),
                await messages.recent(room_id=ROOM, limit=2),
                await messages.recent(room_id=ROOM, limit=2, before=4),
            ]
            prints = await messages.fingerprints(room_id=ROOM, message_ids=["m1", "m3", "m4", "m5"])
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
        async with storage.reading(TENANT) as work:
            messages = work.messages
            lists = [
                [found.message for found in await messages.by_id(room_id=ROOM, message_ids=ids)],
                [found.message for found in await messages.by_arrival(room_id=ROOM, arrivals=range(9))],
                [found.message for found in await messages.tail(room_id=ROOM, limit=9)],
                [found.message for found in await messages.tail(room_id=ROOM, limit=2, since=START)],
                await messages.recent(room_id=ROOM, limit=9),
                await messages.page(room_id=ROOM, after=0, limit=9),
            ]
            taken = await messages.fingerprints(room_id=ROOM, message_ids=ids)
        assert [[said.id for said in found] for found in lists] == [["m1", "m3"]] * 6
        assert (taken["m2"], taken["m4"]) == ("", "")
        assert len(taken["m1"]) == len(taken["m3"]) == HASH_DIGITS

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
        async with storage.reading(TENANT) as work:
            found = await work.messages.page(room_id=ROOM, sender_id="小明", after=0, limit=9)
            assert found == [said[2].message, said[8].message]
            assert await work.messages.page(room_id=ROOM, sender_id="小明", after=0, limit=1) == found[:1]
            assert await work.messages.page(room_id=ROOM, sender_id="小明", after=3, limit=9) == found[1:]
            assert await work.messages.page(room_id=ROOM, sender_id="nobody", after=0, limit=9) == []

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
        async with storage.reading(TENANT) as work:
            found = await work.messages.said(room_id=ROOM)
            assert found == {arrival: Window(*its) for arrival, its in times.items()}
            assert await work.messages.said(room_id="unknown") == {}
            origins = await work.messages.origins(room_id=ROOM, message_ids=["m1", "m4", "m6"])
        assert {name: (one.first, one.last) for name, one in origins.items()} == {
            "m1": (at, at),
            "m4": (early, late),
            "m6": (at, END),
        }

    async def test_a_time_ahead_dates_neither_the_room_nor_what_was_said_since(self, storage: Storage) -> None:
        ahead: dict[str, Any] = {"sent_at": START + timedelta(days=9999), "sent_at_estimated": True}
        said = entry(1, **ahead, heard_from=START, heard_until=START, sender_id="ann")
        await fill(storage, [said, entry(2, sent_at=START)])
        async with storage.reading(TENANT) as work:
            room = await work.rooms.find(room_id=ROOM)
            since: dict[str, Any] = {"room_id": ROOM, "since": START + timedelta(minutes=1)}
            assert room is not None
            assert room.last_sent_at == START
            assert await work.messages.first_since(**since) is None
            assert await work.messages.tail(**since, limit=9) == []
            people = (await work.rooms.people(room_ids=[ROOM]))[ROOM].people
            target = await work.messages.target(room_id=ROOM, message_id="m2", window=9)
            threads = await work.messages.threads(room_id=ROOM, after=0, limit=9)
            facts = await work.messages.facts(room_id=ROOM, since=0)
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
        async with storage.reading(TENANT) as work:
            people = (await work.rooms.people(room_ids=[ROOM]))[ROOM]
        assert people.people["ann"].spoke == Window(hour(1), hour(4))
        shown = [when for when in range(6) if covers(windows_of(people, ["bo"]), hour(when), hour(when))]
        assert shown == [], "nobody knows when bo was there"

    @pytest.mark.parametrize("sender_id", [None, "ann", "bo", "nobody"])
    async def test_how_many_a_page_has_in_all(self, storage: Storage, sender_id: str | None) -> None:
        await fill(storage, [entry(n, sender_id="bo" if n in (2, 5, 6) else "ann") for n in range(1, 9)])
        await fill(storage, [entry(1)], room_id="other")
        await erase(storage, 5, 8)
        here: dict[str, Any] = {"room_id": ROOM, "sender_id": sender_id}
        async with storage.reading(TENANT) as work:
            for after in range(10):
                listed = await work.messages.page(**here, after=after, limit=99)
                assert await work.messages.count(**here, after=after) == len(listed)
            assert await work.messages.count(room_id="no such room", after=0, sender_id=sender_id) == 0

    async def test_the_first_since_a_time_where_the_clock_ran_backwards(self, storage: Storage) -> None:
        minutes = [5, 1, 70, 3, 60, 2]
        said = [entry(n, sent_at=START + timedelta(minutes=minute)) for n, minute in enumerate(minutes, start=1)]
        await fill(storage, said)
        await erase(storage, 1)
        expected = {0: 2, 1: 2, 2: 3, 60: 3, 70: 3, 71: None}
        async with storage.reading(TENANT) as work:
            first = {
                minute: await work.messages.first_since(room_id=ROOM, since=START + timedelta(minutes=minute))
                for minute in expected
            }
            assert await work.messages.first_since(room_id="no such room", since=START) is None
        assert first == expected
