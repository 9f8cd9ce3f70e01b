"""What `Sessions` must do."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.sessions.models import Checkpoint, Due, Session
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, checkpoint, entry, session
from roomlore.testing.contracts.filling import ROOM, TENANT, erase, fill
from roomlore.testing.contracts.texts import HARD_TEXTS

MINUTE = timedelta(minutes=1)


async def save(storage: Storage, given: Session, *marks: Checkpoint) -> None:
    """Marks these checkpoints and keeps the session, in a unit of work that has locked the room."""
    async with storage.writing() as work:
        await work.rooms.lock(tenant=given.tenant, room_id=given.conversation_id, now=START)
        for one in marks:
            await work.sessions.mark(tenant=given.tenant, checkpoint=one)
        await work.sessions.save(session=given)


async def find(storage: Storage, *, tenant: str = TENANT, conversation_id: str = ROOM) -> Session | None:
    async with storage.reading() as work:
        return await work.sessions.find(tenant=tenant, conversation_id=conversation_id)


async def page(storage: Storage, *, tenant: str = TENANT, after: str | None = None, limit: int = 99) -> list[Session]:
    async with storage.reading() as work:
        return await work.sessions.page(tenant=tenant, after=after, limit=limit)


async def numbers(storage: Storage, *, before: int | None = None, limit: int = 99) -> list[int]:
    """Those of the checkpoints of the room, as `history` gives them."""
    async with storage.reading() as work:
        found = await work.sessions.history(tenant=TENANT, conversation_id=ROOM, before=before, limit=limit)
    return [one.number for one in found]


async def take(
    storage: Storage, now: datetime, *, lease: timedelta = MINUTE, limit: int = 99
) -> Sequence[tuple[str, str, Due]]:
    async with storage.writing() as work:
        return await work.sessions.due(now=now, lease_until=now + lease, limit=limit)


async def schedule(
    storage: Storage, due: Due | None, was: datetime | None, *, tenant: str = TENANT, conversation_id: str = ROOM
) -> bool:
    async with storage.writing() as work:
        return await work.sessions.schedule(tenant=tenant, conversation_id=conversation_id, due=due, was=was)


async def make_due(storage: Storage, at: datetime, conversation_id: str = ROOM, *, tenant: str = TENANT) -> None:
    """A first session of a room, due at that time."""
    await save(storage, session(tenant=tenant, conversation_id=conversation_id))
    assert await schedule(storage, Due(at=at), None, tenant=tenant, conversation_id=conversation_id)


def names(taken: Sequence[tuple[str, str, Due]]) -> list[str]:
    return [conversation_id for _, conversation_id, _ in taken]


class StopError(Exception):
    """Raised inside a unit of work."""


async def _save_and_stop(storage: Storage) -> None:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        await work.sessions.mark(tenant=TENANT, checkpoint=checkpoint(1))
        await work.sessions.save(session=session(1))
        assert await work.sessions.find(tenant=TENANT, conversation_id=ROOM) == session(1)
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
            made_by="a model",
            created_at=made,
        )
        full = session(
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
        async with storage.reading() as work:
            assert await work.sessions.history(tenant=TENANT, conversation_id=ROOM, before=None, limit=9) == [summary]

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
            async with storage.writing() as work:
                await work.sessions.mark(tenant=TENANT, checkpoint=checkpoint(1))

    async def test_a_reading_unit_of_work_changes_nothing(self, storage: Storage) -> None:
        await make_due(storage, START)
        async with storage.reading() as work:
            with pytest.raises(InvalidInput):
                await work.sessions.save(session=session(2))
            with pytest.raises(InvalidInput):
                await work.sessions.mark(tenant=TENANT, checkpoint=checkpoint(1))
            with pytest.raises(InvalidInput):
                await work.sessions.due(now=START, lease_until=START + MINUTE, limit=1)
            with pytest.raises(InvalidInput):
                await work.sessions.schedule(tenant=TENANT, conversation_id=ROOM, due=None, was=START)
        assert await find(storage) == session(1, due=Due(at=START))

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
        async with storage.reading() as work:
            stored = await work.sessions.history(tenant=TENANT, conversation_id=ROOM, before=None, limit=9)
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


@pytest.mark.parametrize("text", HARD_TEXTS, ids=ascii)
class SessionTextsContract:
    async def test_in_sessions_and_checkpoints(self, storage: Storage, text: str) -> None:
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
        assert await schedule(storage, Due(at=START), None, tenant=text, conversation_id=text)
        full = replace(full, due=Due(at=START))
        assert await find(storage, tenant=text, conversation_id=text) == full
        assert await page(storage, tenant=text) == [full]
        async with storage.reading() as work:
            assert await work.sessions.history(tenant=text, conversation_id=text, before=None, limit=9) == [summary]
        assert await take(storage, START) == [(text, text, Due(at=START))]
