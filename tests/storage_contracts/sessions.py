"""The contracts of `Sessions`."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.sessions.session import Checkpoint, CheckpointRequest, DueCheckpoint, Session
from roomlore.storage import Storage
from roomlore_testkit.builders import START, checkpoint, entry, session
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.contracts.hard_texts import HARD_TEXTS
from storage_contracts.texts import ROOM, TENANT, erase, fill

MINUTE = timedelta(minutes=1)


async def save(storage: Storage, given: Session, *marks: Checkpoint) -> None:
    """Store these checkpoints and the session, in a unit of work that has locked the room."""
    async with storage.writing(given.tenant) as work:
        await work.rooms.lock(room_id=given.conversation_id, now=START)
        for one in marks:
            await work.sessions.mark(checkpoint=one)
        await work.sessions.save(session=given)


async def find(storage: Storage, *, tenant: str = TENANT, conversation_id: str = ROOM) -> Session | None:
    async with storage.reading(tenant) as work:
        return await work.sessions.find(conversation_id=conversation_id)


async def page(storage: Storage, *, tenant: str = TENANT, after: str | None = None, limit: int = 99) -> list[Session]:
    async with storage.reading(tenant) as work:
        return await work.sessions.page(after=after, limit=limit)


async def numbers(storage: Storage, *, before: int | None = None, limit: int = 99) -> list[int]:
    """Return the numbers of the room's checkpoints, in the order of `history`."""
    async with storage.reading(TENANT) as work:
        found = await work.sessions.history(conversation_id=ROOM, before=before, limit=limit)
    return [one.number for one in found]


async def take(
    storage: Storage, now: datetime, *, lease: timedelta = MINUTE, limit: int = 99
) -> Sequence[tuple[str, str, DueCheckpoint]]:
    async with storage.writing() as work:
        return await work.sessions.due(now=now, lease_until=now + lease, limit=limit)


async def schedule(
    storage: Storage,
    due: DueCheckpoint | None,
    was: datetime | None,
    *,
    tenant: str = TENANT,
    conversation_id: str = ROOM,
) -> bool:
    async with storage.writing(tenant) as work:
        return await work.sessions.schedule(conversation_id=conversation_id, due=due, was=was)


async def make_due(storage: Storage, at: datetime, conversation_id: str = ROOM, *, tenant: str = TENANT) -> None:
    """Create the first session of a room, due at that time."""
    await save(storage, session(tenant=tenant, conversation_id=conversation_id))
    assert await schedule(storage, DueCheckpoint(at=at), None, tenant=tenant, conversation_id=conversation_id)


def names(taken: Sequence[tuple[str, str, DueCheckpoint]]) -> list[str]:
    return [conversation_id for _, conversation_id, _ in taken]


class StopError(Exception):
    """Raised inside a unit of work."""


async def _save_and_stop(storage: Storage) -> None:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.sessions.mark(checkpoint=checkpoint(1))
        await work.sessions.save(session=session(1))
        assert await work.sessions.find(conversation_id=ROOM) == session(1)
        raise StopError


class SessionsContract:
    async def test_no_room_has_no_session(self, storage: Storage) -> None:
        assert await find(storage) is None
        assert await numbers(storage) == []

    async def test_a_room_without_a_session_of_its_own(self, storage: Storage) -> None:
        room = await fill(storage, [entry(1), entry(2)])
        bare = session(0, user_id="", revision=room.revision, next_arrival=3)
        assert await find(storage) == bare
        assert await page(storage) == [], "it is no session yet"

    async def test_a_session_comes_back_as_it_went_in(self, storage: Storage) -> None:
        made, changed = START + timedelta(microseconds=1), START + timedelta(days=1, microseconds=999999)
        summary = checkpoint(
            1,
            summary="病人对青霉素过敏 👋🏽",
            covers_arrival=7,
            covers_through="m7",
            turns=3,
            tokens=2**40,
            recent_turns=8,
            language="zh",
            coverage_assumed=True,
            made_by="a model",
            created_at=made,
        )
        full = session(
            asked=CheckpointRequest("7.0.ab.c1", made),
            state={"global_state": {"shared": {"键": 1}}},
            enterprise_id="e1",
            patient_id="p1",
            agent_key="triage",
            boundary=2**40,
            checkpoint=summary,
            marks=1,
            created_at=made,
            updated_at=changed,
        )
        await save(storage, full, summary)
        assert await find(storage) == full
        assert await page(storage) == [full]
        async with storage.reading(TENANT) as work:
            assert await work.sessions.history(conversation_id=ROOM, before=None, limit=9) == [summary]

    async def test_a_later_version_takes_the_place_of_all(self, storage: Storage) -> None:
        await save(storage, session(1, enterprise_id="e", state={"a": 1}, checkpoint=checkpoint(1)), checkpoint(1))
        later = session(2, user_id="bo", agent_key="k", boundary=9, marks=2, updated_at=START + MINUTE)
        await save(storage, later)
        assert await find(storage) == later

    async def test_the_room_goes_on_by_itself(self, storage: Storage) -> None:
        await save(storage, session(1, revision=77, next_arrival=77))
        assert await find(storage) == session(1)
        room = await fill(storage, [entry(1), entry(2)])
        assert await find(storage) == session(1, revision=room.revision, next_arrival=3)

    @pytest.mark.parametrize("version", [-1, 0, 1, 2, 4, 5])
    async def test_a_version_follows_the_one_stored(self, storage: Storage, version: int) -> None:
        for n in (1, 2):
            await save(storage, session(n, boundary=n))
        await save(storage, session(3, boundary=3))
        if version == 4:
            await save(storage, session(4, boundary=4))
        else:
            with pytest.raises(Conflict):
                await save(storage, session(version, boundary=99))
        stored = await find(storage)
        assert stored is not None
        assert stored.version == stored.boundary == (4 if version == 4 else 3)

    @pytest.mark.parametrize("version", [-1, 0, 2])
    async def test_the_first_version_is_one(self, storage: Storage, version: int) -> None:
        await fill(storage, [])
        with pytest.raises(Conflict):
            await save(storage, session(version))
        assert await page(storage) == []

    async def test_unknown_keys_of_the_state_stay(self, storage: Storage) -> None:
        state = {
            "global_state": {
                "shared": {},
                "entities": {"药": ["青霉素", None, 1.5, True]},
                "from_the_future": {"x": []},
            },
            "newer": {"a\x00b": "\ud800"},
            "": None,
        }
        await save(storage, session(1, state=state))
        stored = await find(storage)
        assert stored is not None
        assert stored.state == state

    @pytest.mark.parametrize("state", [{"a": object()}, {("a",): 1}, {"a": {1, 2}}], ids=["object", "tuple", "set"])
    async def test_a_state_that_is_no_json_is_refused(self, storage: Storage, state: Any) -> None:
        with pytest.raises(InvalidInput):
            await save(storage, session(1, state=state))

    async def test_writing_needs_the_lock(self, storage: Storage) -> None:
        await fill(storage, [])
        with pytest.raises(InvalidInput):
            async with storage.writing() as work:
                await work.sessions.save(session=session(1))
        with pytest.raises(InvalidInput):
            async with storage.writing(TENANT) as work:
                await work.sessions.mark(checkpoint=checkpoint(1))

    async def test_a_reading_unit_of_work_changes_nothing(self, storage: Storage) -> None:
        await make_due(storage, START)
        async with storage.reading(TENANT) as work:
            with pytest.raises(InvalidInput):
                await work.sessions.save(session=session(2))
            with pytest.raises(InvalidInput):
                await work.sessions.mark(checkpoint=checkpoint(1))
            with pytest.raises(InvalidInput):
                await work.sessions.due(now=START, lease_until=START + MINUTE, limit=1)
            with pytest.raises(InvalidInput):
                await work.sessions.schedule(conversation_id=ROOM, due=None, was=START)
        assert await find(storage) == session(1, due=DueCheckpoint(at=START))

    async def test_what_raises_leaves_no_session(self, storage: Storage) -> None:
        with pytest.raises(StopError):
            await _save_and_stop(storage)
        assert await find(storage) is None
        assert await numbers(storage) == []

    async def test_pages_go_by_conversation_id(self, storage: Storage) -> None:
        ids = ["a", "B", "é", "部", "\U0001f44b", "b"]
        for conversation_id in ids:
            await save(storage, session(conversation_id=conversation_id))
        await fill(storage, [], room_id="aa")
        await save(storage, session(tenant="other", conversation_id="ab"))
        assert [one.conversation_id for one in await page(storage)] == sorted(ids)
        assert [one.conversation_id for one in await page(storage, limit=2)] == ["B", "a"]
        assert [one.conversation_id for one in await page(storage, after="a", limit=2)] == ["b", "é"]
        assert await page(storage, after="\U0001f44b") == []
        assert await page(storage, limit=0) == []

    async def test_tenants_keep_sessions_of_the_same_name_apart(self, storage: Storage) -> None:
        await save(storage, session(1, user_id="ann", checkpoint=checkpoint(1)), checkpoint(1))
        theirs = checkpoint(1, summary="theirs")
        await save(storage, session(1, tenant="other", user_id="bo", checkpoint=theirs), theirs)
        ours = await find(storage)
        assert ours is not None
        assert (ours.user_id, ours.checkpoint) == ("ann", checkpoint(1))
        assert [one.user_id for one in await page(storage, tenant="other")] == ["bo"]
        assert [one.checkpoint for one in await page(storage, tenant="other")] == [theirs]


class SessionHistoryContract:
    async def test_history_comes_newest_first_a_page_at_a_time(self, storage: Storage) -> None:
        marks = [checkpoint(n, kind="reset" if n % 2 else "summary") for n in range(1, 6)]
        await save(storage, session(1), *marks)
        assert await numbers(storage) == [5, 4, 3, 2, 1]
        assert await numbers(storage, limit=2) == [5, 4]
        assert await numbers(storage, before=4, limit=2) == [3, 2]
        assert await numbers(storage, before=1) == []
        assert await numbers(storage, limit=0) == []

    async def test_numbers_and_ids_are_taken_once(self, storage: Storage) -> None:
        await save(storage, session(1), checkpoint(1))
        for taken in (checkpoint(1, checkpoint_id="other"), checkpoint(2, checkpoint_id="c1")):
            with pytest.raises(Conflict):
                await save(storage, session(2), taken)
        await save(storage, session(1, conversation_id="b"), checkpoint(1, conversation_id="b"))
        async with storage.reading(TENANT) as work:
            stored = await work.sessions.history(conversation_id=ROOM, before=None, limit=9)
        assert stored == [checkpoint(1)]

    async def test_the_one_in_force_is_the_one_the_session_names(self, storage: Storage) -> None:
        first, reset, second = checkpoint(1), checkpoint(2, kind="reset", summary=""), checkpoint(3)
        await save(storage, session(1, checkpoint=first), first)
        await save(storage, session(2, boundary=4, checkpoint=None), reset)
        bare = await find(storage)
        await save(storage, session(3, boundary=4, checkpoint=second), second)
        now = await find(storage)
        assert bare is not None
        assert now is not None
        assert (bare.checkpoint, now.checkpoint) == (None, second)

    async def test_a_checkpoint_outlives_the_message_it_ends_with(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        summary = checkpoint(1, covers_arrival=2, covers_through="m2")
        await save(storage, session(1, checkpoint=summary), summary)
        await erase(storage, 2)
        stored = await find(storage)
        assert stored is not None
        assert stored.checkpoint == summary
        assert await numbers(storage) == [1]


class SessionTextsContract:
    async def test_in_sessions_and_checkpoints(self, storage: Storage) -> None:
        with all_cases() as case:
            for text in HARD_TEXTS:
                with case(text):
                    summary = checkpoint(
                        1, checkpoint_id=text, conversation_id=text, summary=text, covers_through=text, made_by=text
                    )
                    full = session(
                        tenant=text,
                        conversation_id=text,
                        user_id=text,
                        enterprise_id=text,
                        patient_id=text,
                        agent_key=text,
                        state={text: {text: [text]}},
                        checkpoint=summary,
                    )
                    await save(storage, full, summary)
                    assert await schedule(storage, DueCheckpoint(at=START), None, tenant=text, conversation_id=text)
                    full = replace(full, due=DueCheckpoint(at=START))
                    assert await find(storage, tenant=text, conversation_id=text) == full
                    assert await page(storage, tenant=text) == [full]
                    async with storage.reading(text) as work:
                        history = await work.sessions.history(conversation_id=text, before=None, limit=9)
                    assert history == [summary]
                    taken = [one for one in await take(storage, START) if one[0] == text]
                    assert taken == [(text, text, DueCheckpoint(at=START))]


async def _take_and_stop(storage: Storage) -> None:
    async with storage.writing() as work:
        assert names(await work.sessions.due(now=START, lease_until=START + MINUTE, limit=9)) == [ROOM]
        raise StopError


class SessionDueContract:
    async def test_a_new_session_is_not_due(self, storage: Storage) -> None:
        await save(storage, session(1, due=DueCheckpoint(at=START, tries=3)))
        assert await find(storage) == session(1)
        assert await take(storage, START + timedelta(days=9)) == []

    async def test_saving_leaves_alone_when_it_is_due(self, storage: Storage) -> None:
        await make_due(storage, START)
        await save(storage, session(2))
        assert await find(storage) == session(2, due=DueCheckpoint(at=START))

    async def test_scheduling_leaves_all_else_alone(self, storage: Storage) -> None:
        given = session(1, state={"a": 1}, checkpoint=checkpoint(1), marks=1)
        await save(storage, given, checkpoint(1))
        due = DueCheckpoint(at=START + timedelta(microseconds=1), tries=2)
        assert await schedule(storage, due, None)
        assert await find(storage) == replace(given, due=due)

    async def test_scheduling_compares_with_what_was(self, storage: Storage) -> None:
        await save(storage, session(1))
        first, second = DueCheckpoint(at=START), DueCheckpoint(at=START + MINUTE, tries=1)
        assert not await schedule(storage, first, START)
        assert not await schedule(storage, None, START)
        assert await schedule(storage, first, None)
        assert not await schedule(storage, second, None)
        assert not await schedule(storage, second, START + timedelta(microseconds=1))
        assert await schedule(storage, second, START)
        assert await find(storage) == session(1, due=second)
        assert not await schedule(storage, None, None)
        assert await schedule(storage, None, START + MINUTE)
        assert await find(storage) == session(1)
        assert await schedule(storage, None, None), "it was not due and still is not"

    async def test_only_a_session_can_be_due(self, storage: Storage) -> None:
        assert not await schedule(storage, DueCheckpoint(at=START), None)
        await fill(storage, [entry(1)])
        assert not await schedule(storage, DueCheckpoint(at=START), None)
        assert not await schedule(storage, None, None)

    async def test_the_longest_waiting_of_any_tenant_come_first(self, storage: Storage) -> None:
        await make_due(storage, START + 3 * MINUTE, "a")
        await make_due(storage, START + 1 * MINUTE, "b", tenant="other")
        await make_due(storage, START + 2 * MINUTE, "c\x00")
        await make_due(storage, START + 5 * MINUTE, "d")
        await save(storage, session(conversation_id="never"))
        assert await take(storage, START) == []
        assert await take(storage, START + 4 * MINUTE, limit=0) == []
        assert await take(storage, START + 4 * MINUTE, limit=2) == [
            ("other", "b", DueCheckpoint(at=START + MINUTE)),
            (TENANT, "c\x00", DueCheckpoint(at=START + 2 * MINUTE)),
        ]
        first, *rest = await take(storage, START + 5 * MINUTE)
        assert first == (TENANT, "a", DueCheckpoint(at=START + 3 * MINUTE))
        assert sorted(names(rest)) == ["b", "c\x00", "d"], "two of them again"

    async def test_what_was_taken_is_due_again_when_its_lease_ends(self, storage: Storage) -> None:
        await make_due(storage, START)
        assert await schedule(storage, DueCheckpoint(at=START, tries=2), START)
        assert await take(storage, START) == [(TENANT, ROOM, DueCheckpoint(at=START, tries=2))]
        leased = DueCheckpoint(at=START + MINUTE, tries=2)
        assert await find(storage) == session(1, due=leased)
        assert await take(storage, START + MINUTE - timedelta(microseconds=1)) == []
        assert await take(storage, START + MINUTE) == [(TENANT, ROOM, leased)]

    async def test_one_whose_lease_ended_no_longer_decides(self, storage: Storage) -> None:
        await make_due(storage, START)
        await take(storage, START)
        await take(storage, START + MINUTE)
        assert not await schedule(storage, None, START + MINUTE)
        assert await schedule(storage, None, START + 2 * MINUTE)
        assert await take(storage, START + timedelta(days=9)) == []

    async def test_a_claim_that_raises_took_nothing(self, storage: Storage) -> None:
        await make_due(storage, START)
        with pytest.raises(StopError):
            await _take_and_stop(storage)
        assert names(await take(storage, START)) == [ROOM]

    async def test_takers_at_once_share_sessions_out(self, storage: Storage) -> None:
        rooms = [f"room {n:02}" for n in range(40)]
        for conversation_id in rooms:
            await make_due(storage, START, conversation_id)
        shares = await asyncio.gather(*(take(storage, START, limit=7) for _ in range(8)))
        assert sorted(name for share in shares for name in names(share)) == rooms
        assert all(len(share) <= 7 for share in shares)

    async def test_of_those_who_schedule_at_once_one_wins(self, storage: Storage) -> None:
        await save(storage, session(1))
        wins = await asyncio.gather(*(schedule(storage, DueCheckpoint(at=START, tries=n), None) for n in range(8)))
        stored = await find(storage)
        assert stored is not None
        assert wins.count(True) == 1
        assert stored.due == DueCheckpoint(at=START, tries=wins.index(True))
