"""The contracts of `Rooms`, `Usage`, `Keys` and `Imports`."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from roomlore.core.audience import PastKind, Presence, RoomKind, RoomPeople, Stay, Window
from roomlore.core.errors import Conflict, InvalidInput, NotFound, UnknownRoom
from roomlore.core.experiments import ArmSums, UsageSelection
from roomlore.core.models import ApiKey, Role, Room
from roomlore.storage import Storage
from roomlore_testkit.builders import START, entry, usage_record
from storage_contracts.texts import ROOM, TENANT, digest, erase, fill


class RoomsContract:
    async def test_a_room_has_a_name(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            before = await work.rooms.lock(room_id=ROOM, now=START)
            room = await work.rooms.rename(room_id=ROOM, name="茶会 \x00 Tea")
        assert (before.name, room.name, room.revision) == ("", "茶会 \x00 Tea", before.revision + 1)
        assert (before.title, room.title) == (ROOM, "茶会 \x00 Tea")
        async with storage.reading(TENANT) as work:
            assert await work.rooms.find(room_id=ROOM) == room
            for part in ("茶会", "tea", ROOM):
                assert await work.rooms.named_like(part=part, limit=5) == [room]
            assert await work.of("other").rooms.named_like(part="tea", limit=5) == []
        async with storage.writing(TENANT) as work:
            with pytest.raises(InvalidInput, match="Lock the room"):
                await work.rooms.rename(room_id=ROOM, name="")

    async def test_an_unknown_room_is_none(self, storage: Storage) -> None:
        async with storage.reading(TENANT) as work:
            assert await work.rooms.find(room_id=ROOM) is None
            with pytest.raises(UnknownRoom):
                await work.rooms.get(room_id=ROOM)

    async def test_locking_makes_a_room_once(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            made = await work.rooms.lock(room_id=ROOM, now=START)
        async with storage.writing(TENANT) as work:
            again = await work.rooms.lock(room_id=ROOM, now=START + timedelta(days=1))
        assert made == again == Room(tenant=TENANT, room_id=ROOM, created_at=START)

    async def test_locking_a_known_room_makes_none(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            assert await work.rooms.lock_known(room_id=ROOM) is None
            with pytest.raises(InvalidInput, match="Lock the room"):
                await work.rooms.rename(room_id=ROOM, name="Tea")
        async with storage.writing(TENANT) as work:
            assert await work.rooms.find(room_id=ROOM) is None
            made = await work.rooms.lock(room_id=ROOM, now=START)
        async with storage.writing(TENANT) as work:
            assert await work.of("other").rooms.lock_known(room_id=ROOM) is None
            assert await work.rooms.lock_known(room_id=ROOM) == made
            assert (await work.rooms.rename(room_id=ROOM, name="Tea")).name == "Tea"

    async def test_locking_while_reading_is_refused(self, storage: Storage) -> None:
        async with storage.reading(TENANT) as work:
            with pytest.raises(InvalidInput):
                await work.rooms.lock(room_id=ROOM, now=START)
            with pytest.raises(InvalidInput):
                await work.rooms.lock_known(room_id=ROOM)

    async def test_counters_follow_the_messages(self, storage: Storage) -> None:
        late, early = START + timedelta(hours=2), START - timedelta(hours=2)
        room = await fill(storage, [entry(1, sent_at=late), entry(2, sent_at=early)])
        assert (room.next_arrival, room.revision, room.messages) == (3, 1, 2)
        assert room.last_sent_at == early, "the time of the last to arrive, not the latest"
        async with storage.reading(TENANT) as work:
            assert await work.rooms.find(room_id=ROOM) == room

    async def test_rooms_are_paged_by_id(self, storage: Storage) -> None:
        for room_id in ["b", "房间", "a", "Z", "c"]:
            await fill(storage, [], room_id=room_id)
        async with storage.reading(TENANT) as work:
            first = await work.rooms.page(after=None, limit=2)
            rest = await work.rooms.page(after=first[-1].room_id, limit=10)
        assert [room.room_id for room in first + rest] == ["Z", "a", "b", "c", "房间"]

    async def test_settings_are_replaced_and_raise_the_revision(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        async with storage.writing(TENANT) as work:
            await work.rooms.configure(room_id=ROOM, settings={"a": 1, "b": [True, None, "词"]})
            room = await work.rooms.configure(room_id=ROOM, settings={"b": 0.5})
        assert (room.settings, room.revision, room.messages) == ({"b": 0.5}, 3, 1)
        async with storage.reading(TENANT) as work:
            assert await work.rooms.find(room_id=ROOM) == room

    async def test_an_unknown_room_cannot_be_configured(self, storage: Storage) -> None:
        with pytest.raises(NotFound):
            async with storage.writing(TENANT) as work:
                await work.rooms.configure(room_id=ROOM, settings={})

    async def test_participants_in_order_of_first_speaking(self, storage: Storage) -> None:
        await fill(storage, [entry(1, sender_id="zoe"), entry(2, sender_id="ann", sender_name="Ann")])
        await fill(storage, [entry(3, sender_id="zoe", sender_name="Zoë"), entry(4, sender_id="ann")])
        async with storage.reading(TENANT) as work:
            people = await work.rooms.participants(room_id=ROOM)
        assert list(people.items()) == [("zoe", "Zoë"), ("ann", "Ann")]

    async def test_the_newest_message_that_a_sender_wrote(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2, sender_id="zoe"), entry(3), entry(4, sender_id="zoe")])
        await fill(storage, [entry(1, sender_id="zoe")], room_id="other")
        async with storage.reading(TENANT) as work:
            found = [await work.rooms.last_spoken(room_id=ROOM, sender_id=who) for who in ("ann", "zoe", "x")]
            nowhere = await work.rooms.last_spoken(room_id="nowhere", sender_id="ann")
            elsewhere = await work.of("else").rooms.last_spoken(room_id=ROOM, sender_id="ann")
        assert (found, nowhere, elsewhere) == ([3, 4, 0], 0, 0)

    async def test_the_last_name_given_counts(self, storage: Storage) -> None:
        await fill(storage, [entry(1, sender_name="Old"), entry(2, sender_name="New"), entry(3)])
        async with storage.reading(TENANT) as work:
            assert await work.rooms.participants(room_id=ROOM) == {"ann": "New"}

    async def test_people_as_they_were_before_a_message(self, storage: Storage) -> None:
        said = [
            entry(1, sender_id="小李", sender_name="李\x00"),
            entry(2, sender_id="bo", sender_name="Bo"),
            entry(3, sender_id="ann"),
            entry(4, sender_id="小李", sender_name="雷"),
            entry(5, sender_id="小李"),
            entry(6, sender_id="ann", sender_name="Ann"),
        ]
        await fill(storage, said)
        await fill(storage, [entry(1)], tenant="other")

        async def before(arrival: int) -> list[tuple[str, str]]:
            async with storage.reading(TENANT) as work:
                people = await work.rooms.participants_before(room_id=ROOM, arrival=arrival)
            return list(people.items())

        assert await before(1) == []
        assert await before(4) == [("小李", "李\x00"), ("bo", "Bo"), ("ann", "")]
        assert await before(99) == [("小李", "雷"), ("bo", "Bo"), ("ann", "Ann")]
        await erase(storage, 2, 4)
        assert await before(99) == [("小李", "李\x00"), ("ann", "Ann")]

    async def test_the_rooms_of_a_sender(self, storage: Storage) -> None:
        for room_id in ["b", "房间", "a"]:
            await fill(storage, [entry(1), entry(2, sender_id="bo"), entry(3)], room_id=room_id)
        await fill(storage, [entry(1, sender_id="bo")], room_id="c")
        await fill(storage, [entry(1)], room_id="theirs", tenant="other")
        async with storage.reading(TENANT) as work:
            assert await work.rooms.of_sender(sender_id="ann") == ["a", "b", "房间"]
            assert await work.rooms.of_sender(sender_id="bo") == ["a", "b", "c", "房间"]
            assert await work.rooms.of_sender(sender_id="nobody") == []
            assert await work.of("other").rooms.of_sender(sender_id="ann") == ["theirs"]

    async def test_the_kind_of_a_room(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        for number, kind in enumerate((RoomKind.PUBLIC, None, RoomKind.DIRECT), start=2):
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=ROOM, now=START)
                room = await work.rooms.set_kind(room_id=ROOM, kind=kind)
            assert (room.kind, room.revision) == (kind, number)
            async with storage.reading(TENANT) as work:
                assert await work.rooms.find(room_id=ROOM) == room

    async def test_the_kinds_that_a_room_had(self, storage: Storage) -> None:
        past = (PastKind(None, START), PastKind(RoomKind.PUBLIC, START + timedelta(microseconds=1)))
        for room_id, kind, before in (
            (ROOM, RoomKind.PRIVATE, past),
            ("opened", RoomKind.PUBLIC, past[:1]),
            ("closed", RoomKind.PRIVATE, past[:1]),
            ("public", RoomKind.PUBLIC, ()),
        ):
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=room_id, now=START)
                room = await work.rooms.set_kind(room_id=room_id, kind=kind, past=before)
            assert room.past_kinds == before
            async with storage.reading(TENANT) as work:
                assert await work.rooms.find(room_id=room_id) == room
                known = await work.rooms.people(room_ids=[room_id])
            assert known[room_id] == RoomPeople(room_id, kind, past_kinds=before)
        async with storage.reading(TENANT) as work:
            partly = await work.rooms.partly_public()
            always = await work.rooms.used_last(limit=9, public=True)
            assert await work.of("other").rooms.partly_public() == []
        assert [room.room_id for room in partly] == ["opened", ROOM]
        assert [room.room_id for room in always] == ["public"]

    async def test_members_and_speakers_of_rooms(self, storage: Storage) -> None:
        later, last = START + timedelta(days=1), START + timedelta(days=2)
        agent: dict[str, Any] = {"sender_id": "bot", "role": Role.ASSISTANT, "sent_at": last}
        await fill(storage, [entry(1, sent_at=last), entry(2, sent_at=START), entry(3, **agent)])
        notices: dict[str, Any] = {"role": Role.SYSTEM, "sent_at": last}
        await fill(storage, [entry(4, sent_at=later), entry(5, sender_id="lurker", **notices)])
        await fill(storage, [entry(6, sender_id="system", **notices)])
        stays = {
            "lurker": [Stay(START, last)],
            "小李": [Stay(START, None, later), Stay(last, last)],
            "ann": [Stay(START)],
            "bot": [Stay(START)],
        }
        for complete in (False, True):
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=ROOM, now=START)
                await work.rooms.set_members(room_id=ROOM, stays=stays, complete=complete)
        people = {
            "lurker": Presence((Stay(START, last),)),
            "ann": Presence((Stay(START),), Window(START, last)),
            "小李": Presence((Stay(START, None, later), Stay(last, last))),
        }
        expected = RoomPeople(ROOM, None, True, people)
        async with storage.reading(TENANT) as work:
            of = partial(work.rooms.people)
            assert await of(room_ids=[ROOM, "unknown"]) == {ROOM: expected}
            assert await of(room_ids=[ROOM], persons=["ann", "eve"]) == {
                ROOM: replace(expected, people={"ann": people["ann"]})
            }
            assert await of(room_ids=[ROOM], persons=[]) == {ROOM: replace(expected, people={})}
            assert await of(room_ids=[]) == {}

    async def test_members_are_replaced(self, storage: Storage) -> None:
        for names in (["ann", "bo"], ["eve"]):
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=ROOM, now=START)
                stays = {name: [Stay(START, START)] for name in names}
                await work.rooms.set_members(room_id=ROOM, stays=stays, complete=False)
        async with storage.reading(TENANT) as work:
            found = (await work.rooms.people(room_ids=[ROOM]))[ROOM]
        assert (list(found.people), found.complete) == (["eve"], False)

    async def test_rooms_by_use_and_by_person(self, storage: Storage) -> None:
        for place, room_id in enumerate(["b", "房间", "a"]):
            await fill(storage, [entry(1, sent_at=START + timedelta(days=place))], room_id=room_id)
        await fill(storage, [], room_id="empty")
        await fill(storage, [entry(1)], room_id="theirs", tenant="other")
        for room_id in ("empty", "b"):
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=room_id, now=START)
                stays = {"bo": [Stay(START, None, START)]}
                await work.rooms.set_members(room_id=room_id, stays=stays, complete=True)
                await work.rooms.set_kind(room_id=room_id, kind=RoomKind.PUBLIC)
        async with storage.reading(TENANT) as work:
            of = partial(work.rooms.used_last)
            assert [room.room_id for room in await of(limit=9)] == ["a", "房间", "b", "empty"]
            assert [room.room_id for room in await of(limit=1)] == ["a"]
            assert [room.room_id for room in await of(limit=9, public=True)] == ["b", "empty"]
            assert [room.room_id for room in await of(limit=2, offset=1)] == ["房间", "b"]
            for part, names in (("", ["a", "房间", "b", "empty"]), ("EMP", ["empty"]), ("间", ["房间"]), ("%", [])):
                assert [one.room_id for one in await work.rooms.named_like(part=part, limit=9)] == names
            for part, names in (
                ("EMPTY", ["empty"]),
                ("empt", []),
                ("房间", ["房间"]),
                ("间", []),
                ("%", []),
                ("_", []),
            ):
                found = await work.rooms.named_like(part=part, limit=9, whole=True)
                assert [one.room_id for one in found] == names
            assert await of(limit=1) == [await work.rooms.find(room_id="a")]
            for person, rooms in (("bo", ["b", "empty"]), ("ann", ["a", "b", "房间"]), ("eve", [])):
                found = await work.rooms.of_person(person_id=person)
                assert [room.room_id for room in found] == rooms

    async def test_who_spoke_and_where(self, storage: Storage) -> None:
        await fill(storage, [entry(1, sender_id="u_1", sender_name="Anna", sent_at=START)], room_id="a")
        later = START + timedelta(days=1)
        await fill(storage, [entry(1, sender_id="u_1", sender_name="安娜"), entry(2, sender_id="u_1", sent_at=later)])
        await fill(storage, [entry(1, sender_id="ux1", sent_at=START)], room_id="b")
        await fill(storage, [entry(1, sender_id="bot", role=Role.ASSISTANT)], room_id="c")
        await fill(storage, [entry(1, sender_id="u_1")], room_id="theirs", tenant="other")
        async with storage.reading(TENANT) as work:
            of = partial(work.rooms.speakers, room_ids=None, limit=9)
            first, *rest = await of(part="")
            assert (first.sender_id, first.rooms, first.messages, first.last_spoke_at) == ("u_1", 2, 3, later)
            assert [(one.sender_id, one.is_agent) for one in rest] == [("ux1", False), ("bot", True)]
            for part, ids in (("U_", ["u_1"]), ("anna", ["u_1"]), ("娜", ["u_1"]), ("bo", ["bot"]), ("nobody", [])):
                assert [one.sender_id for one in await of(part=part)] == ids
            assert [one.sender_id for one in await of(part="", offset=1)] == ["ux1", "bot"]
            among = partial(work.rooms.speakers, part="", limit=9)
            assert [(one.sender_id, one.messages) for one in await among(room_ids=["a"])] == [("u_1", 1)]
            assert await among(room_ids=[]) == []
            assert await of(part="", offset=3) == []
            named = partial(work.rooms.names_of)
            assert await named(room_ids=["a", ROOM], sender_ids=["u_1", "bot", "nobody"]) == {
                one.room_id: {"u_1": one.name} for one in await work.rooms.voices(sender_id="u_1")
            }
            assert await named(room_ids=["a"], sender_ids=["bot"]) == {}
            assert await named(room_ids=[], sender_ids=["u_1"]) == await named(room_ids=["a"], sender_ids=[]) == {}
            found = await work.rooms.voices(sender_id="u_1")
            assert [(one.room_id, one.messages, one.last_arrival) for one in found] == [(ROOM, 2, 2), ("a", 1, 1)]
            assert found[1].name == "Anna"
            assert await work.rooms.voices(sender_id="nobody") == []
            assert await work.rooms.voices_of(sender_ids=["u_1", "nobody"]) == {"u_1": found}

    async def test_a_stamp_changes_with_the_room_and_its_people(self, storage: Storage) -> None:
        async def stamp() -> object:
            async with storage.reading(TENANT) as work:
                found = await work.rooms.stamps(room_ids=[ROOM, "unknown"])
            assert found.keys() <= {ROOM}
            return found.get(ROOM)

        assert await stamp() is None
        seen = [await stamp()]
        await fill(storage, [entry(1)])
        seen.append(await stamp())
        assert await stamp() == seen[-1], "nothing changed"
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.rooms.set_members(room_id=ROOM, stays={"ann": [Stay(START)]}, complete=True)
        seen.append(await stamp())
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.rooms.set_kind(room_id=ROOM, kind=RoomKind.PUBLIC)
        seen.append(await stamp())
        assert len(set(seen)) == len(seen)


class UsageContract:
    async def test_a_record_comes_back(self, storage: Storage) -> None:
        plain = usage_record("c1")
        full = usage_record(
            "c2", degraded="slow", arm="b", llm_response="yes", user_feedback="好", success_indicator=0.1 + 0.2
        )
        async with storage.writing(TENANT) as work:
            await work.usage.record(records=[plain, full])
        async with storage.reading(TENANT) as work:
            assert await work.usage.find(context_id="c1") == plain
            assert await work.usage.find(context_id="c2") == full
            assert await work.usage.find(context_id="c3") is None

    async def test_a_repeated_record_changes_nothing(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.usage.record(records=[usage_record("c1", tokens=1)])
            await work.usage.record(records=[usage_record("c1", tokens=2), usage_record("c2")])
            await work.usage.record(records=[])
        async with storage.reading(TENANT) as work:
            found = await work.usage.page(selection=UsageSelection(), after=None, limit=9)
        assert found == [usage_record("c1", tokens=1), usage_record("c2")]

    async def test_answers_and_feedback_are_noted(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.usage.record(records=[usage_record("c1")])
        async with storage.writing(TENANT) as work:
            assert await work.usage.respond(context_id="c1", llm_response="an answer")
            assert await work.usage.judge(context_id="c1", feedback="good", score=None)
            assert await work.usage.judge(context_id="c1", feedback=None, score=0.0)
        async with storage.reading(TENANT) as work:
            found = await work.usage.find(context_id="c1")
        noted = replace(usage_record("c1"), llm_response="an answer", user_feedback="good", success_indicator=0.0)
        assert found == noted

    async def test_an_unknown_record_takes_no_notes(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            assert not await work.usage.respond(context_id="c1", llm_response="x")
            assert not await work.usage.judge(context_id="c1", feedback="x", score=1.0)

    async def test_pages_by_room_judgement_and_place(self, storage: Storage) -> None:
        records = [
            usage_record(
                f"c{n}",
                room_id="ab"[n % 2],
                arm=("茶", "b", None)[n % 3],
                created_at=START + timedelta(minutes=n),
                success_indicator=0.0 if n > 3 else None,
            )
            for n in range(6)
        ]
        async with storage.writing(TENANT) as work:
            await work.usage.record(records=list(reversed(records)))

        async def ids(after: str | None, limit: int, **selected: Any) -> list[str]:
            async with storage.reading(TENANT) as work:
                found = await work.usage.page(selection=UsageSelection(**selected), after=after, limit=limit)
            return [record.context_id for record in found]

        assert await ids(None, 4) == ["c0", "c1", "c2", "c3"]
        assert await ids("c3", 4) == ["c4", "c5"]
        assert await ids("c0", 9, room_id="a") == ["c2", "c4"]
        assert await ids(None, 9, judged=True) == ["c4", "c5"]
        assert await ids(None, 9, room_id="b", judged=True) == ["c5"]
        assert await ids(None, 9, arm="茶") == ["c0", "c3"]
        assert await ids(None, 9, arm="") == []
        assert await ids(None, 9, since=START + timedelta(minutes=4)) == ["c4", "c5"]

    async def test_sums_of_each_arm(self, storage: Storage) -> None:
        records = [
            usage_record("c1", arm="b", room_id="r1", tokens=1, window_tokens=5, build_ms=2.0, success_indicator=0.5),
            usage_record("c2", arm="b", room_id="r1", degraded="empty", llm_response="yes", success_indicator=0.0),
            usage_record("c3", arm="b", room_id="r2", context_message_ids=(), relevance_scores={}, tokens=0),
            usage_record("c4"),
            usage_record("c5", arm="b", created_at=START - timedelta(microseconds=1)),
        ]
        async with storage.writing(TENANT) as work:
            await work.usage.record(records=records)
            await work.of("other").usage.record(records=records)
        async with storage.reading(TENANT) as work:
            plain, arm = await work.usage.sums(since=START)
            assert await work.of("nobody").usage.sums(since=START) == []
        assert (plain.arm, plain.contexts, plain.judged, plain.success_squares) == (None, 1, 0, 0.0)
        assert arm == ArmSums(
            arm="b",
            contexts=3,
            rooms=2,
            tokens=7,
            window_tokens=125,
            build_ms=5.0,
            scored=2,
            scores=0.75,
            degraded=1,
            answered=1,
            judged=2,
            success=0.5,
            success_squares=0.25,
        )

    async def test_old_records_are_deleted_from_the_oldest_on(self, storage: Storage) -> None:
        records = [usage_record(f"c{n}", created_at=START + timedelta(days=n)) for n in range(6)]
        async with storage.writing(TENANT) as work:
            await work.usage.record(records=records)
            await work.of("a茶").usage.record(records=records[:1])
        before, limit = START + timedelta(days=3), 2
        async with storage.writing(TENANT) as work:
            assert await work.usage.tenants() == ["acme", "a茶"]
            gone = [await work.usage.expire(before=before, limit=limit) for _ in range(3)]
        async with storage.reading(TENANT) as work:
            left = await work.usage.page(selection=UsageSelection(), after=None, limit=9)
            assert await work.of("a茶").usage.find(context_id="c0") == records[0]
        assert (gone, left) == ([2, 1, 0], records[3:])


_KEY = ApiKey(key_id="k1", tenant=TENANT, name="bot", scopes=("read", "write"), created_at=START)


async def _add(storage: Storage, *keys: ApiKey) -> None:
    async with storage.writing() as work:
        for key in keys:
            await work.keys.add(key=key, secret_hash=digest(key.key_id))


class KeysContract:
    async def test_a_key_is_found_by_its_hash_alone(self, storage: Storage) -> None:
        await _add(storage, _KEY)
        async with storage.reading() as work:
            assert await work.keys.match(secret_hash=digest("k1")) == _KEY
            assert await work.keys.match(secret_hash=digest("k2")) is None
            assert await work.keys.match(secret_hash=digest("")) is None

    async def test_an_id_or_a_hash_is_taken_once(self, storage: Storage) -> None:
        await _add(storage, _KEY)
        with pytest.raises(Conflict):
            await _add(storage, _KEY)
        with pytest.raises(Conflict):
            async with storage.writing() as work:
                await work.keys.add(key=replace(_KEY, key_id="k2"), secret_hash=digest("k1"))

    async def test_a_revoked_key_matches_nothing_and_stays_listed(self, storage: Storage) -> None:
        await _add(storage, _KEY)
        async with storage.writing(TENANT) as work:
            assert await work.keys.any()
            assert await work.keys.revoke(key_id="k1", now=START)
            assert not await work.keys.revoke(key_id="k2", now=START)
        async with storage.writing() as work:
            assert await work.keys.revoke(key_id="k1", now=START + timedelta(days=1))
        async with storage.reading(TENANT) as work:
            assert await work.keys.match(secret_hash=digest("k1")) is None
            assert await work.keys.page() == [replace(_KEY, revoked_at=START)]
            assert await work.keys.any()

    async def test_the_operator_sees_all_tenants_oldest_first(self, storage: Storage) -> None:
        older = replace(_KEY, key_id="k0", tenant="other", created_at=START - timedelta(days=1))
        await _add(storage, _KEY, older)
        async with storage.reading() as work:
            assert await work.keys.page() == [older, _KEY]
            assert await work.of("other").keys.page() == [older]

    async def test_no_key_at_first(self, storage: Storage) -> None:
        async with storage.reading() as work:
            assert not await work.keys.any()
            assert await work.keys.page() == []

    async def test_a_signing_key_is_kept_once(self, storage: Storage) -> None:
        async with storage.reading() as work:
            assert await work.keys.signing_key(name="cache") is None

        async def keep(secret: str) -> str:
            async with storage.writing() as work:
                return await work.keys.keep_signing_key(name="cache", secret=secret)

        first, *others = await asyncio.gather(*(keep(f"{number:064x}") for number in range(5)))
        assert set(others) == {first}
        async with storage.reading() as work:
            assert await work.keys.signing_key(name="cache") == first
            assert await work.keys.signing_key(name="another") is None


class ImportsContract:
    async def test_the_last_position_saved_counts(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.progress.save_import_position(source="a.jsonl", position="10", now=START)
            await work.progress.save_import_position(source="a.jsonl", position="20", now=START)
        async with storage.reading(TENANT) as work:
            assert await work.progress.import_position(source="a.jsonl") == "20"
            assert await work.progress.import_position(source="b.jsonl") is None

    async def test_a_position_can_be_forgotten(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.progress.save_import_position(source="a.jsonl", position="10", now=START)
        async with storage.writing(TENANT) as work:
            await work.progress.forget_import_position(source="a.jsonl")
            await work.progress.forget_import_position(source="never")
        async with storage.reading(TENANT) as work:
            assert await work.progress.import_position(source="a.jsonl") is None
