"""The contract of `Messages`."""

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from roomlore.core.intake import content_hash
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.models import Entry, Link, LinkKind, MessageFeatures, MessageType, ReplyInfo, Role, StoredMessage
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry, link
from roomlore.testing.contracts.texts import ROOM, TENANT, erase, everything, fill, relink, replace

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
        mentions=("u2", "小明"),
        has_tool_calls=True,
        turn_id="t1",
        metadata={"caption": "图", "nested": {"n": [1, 2.5, None, False]}},
        arrival=1,
        sent_at_estimated=True,
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

    async def test_the_edited_messages_of_a_room(self, storage: Storage) -> None:
        times = {2: START + timedelta(days=1), 4: START - timedelta(days=1), 5: START}
        said = [entry(number, edited_at=times.get(number)) for number in range(1, 6)]
        await fill(storage, said)
        await fill(storage, [entry(1, edited_at=START)], room_id="other")
        await erase(storage, 5)
        async with storage.reading() as work:
            assert await work.messages.edited(tenant=TENANT, room_id=ROOM) == {2: times[2], 4: times[4]}
            assert await work.messages.edited(tenant=TENANT, room_id="unknown") == {}

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
