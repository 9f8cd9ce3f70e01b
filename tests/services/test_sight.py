"""The rights of a viewer are cached while no room changes, and never longer."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roomlore
from roomlore import EvidenceRoom, Lore, Member
from roomlore.core.audience import EvidenceTable, check_viewer
from roomlore.core.memory.writing import NewMemory
from roomlore.ports.audience import KnownWindows, Sight, view_for
from roomlore.wiring import resources
from roomlore_testkit import FrozenClock
from roomlore_testkit.builders import START

ROOMS, PEOPLE = ("a", "b", "c"), ("ann", "bo", "小李")
VIEWERS = ("room:a", "room:new", "user:ann", "user:a")


@pytest.fixture
async def lore() -> AsyncIterator[Lore]:
    async with roomlore.open("sqlite://", background=False) as opened:
        yield opened


async def table_of(lore: Lore) -> EvidenceTable:
    new = [
        NewMemory(scope="user:ann", statement=f"{room} {hour}", evidence=[EvidenceRoom(room, at, at)])
        for room in ROOMS
        for hour in (1, 30)
        for at in (START + timedelta(hours=hour),)
    ]
    await lore.memories.add_all(new)
    first = (await lore.memories.page("user:ann"))[0]
    await lore.memories.share(first.memory_id, "room:b")
    return EvidenceTable(await lore.memories.page("user:ann"))


changes = st.lists(
    st.tuples(
        st.sampled_from(["kind", "all", "join", "leave", "later", "say", "wait", "forget"]),
        st.sampled_from(ROOMS),
        st.sampled_from(PEOPLE),
        st.sampled_from(["direct", "private", "public", None]),
    ),
    max_size=12,
)


async def change(
    lore: Lore, clock: FrozenClock, number: int, what: str, room: str, person: str, kind: str | None
) -> None:
    if what == "kind":
        await lore.rooms.set_kind(room, kind)
    elif what == "all":
        await lore.rooms.set_members(room, [Member(person, START), Member("ann", START)])
    elif what == "join":
        await lore.rooms.add_members(room, [Member(person, clock.now())])
    elif what == "leave":
        await lore.rooms.remove_members(room, [person])
    elif what == "later":
        await lore.rooms.remove_members(room, [person], at=clock.now() + timedelta(hours=6))
    elif what == "say":
        await lore.messages.add(roomlore.Message(id=f"m{number}", room_id=room, sender_id=person, sent_at=clock.now()))
    elif what == "forget":
        await lore.privacy.forget(person)
    clock.advance(4 * 3600)


@given(changes)
@settings(max_examples=40, deadline=None)
async def test_what_is_kept_is_what_would_be_read(steps: list[tuple[str, str, str, str | None]]) -> None:
    clock = FrozenClock(START)
    with patch.object(resources, "SystemClock", lambda: clock):
        async with roomlore.open("sqlite://", background=False) as lore:
            table = await table_of(lore)
            known = KnownWindows(most=2)
            sights = {viewer: Sight(check_viewer(viewer), known) for viewer in VIEWERS}
            for number, step in enumerate([("wait", "a", "ann", None), *steps]):
                await change(lore, clock, number, *step)
                for viewer, sight in sights.items():
                    async with lore.storage.reading(lore.tenant) as work:
                        kept = await sight.of(work, table, clock.now())
                        whom = check_viewer(viewer)
                        view = await view_for(work, viewer=whom, rooms=table.rooms, now=clock.now())
                    assert kept.tolist() == table.visible(view).tolist(), viewer


async def test_nothing_is_decided_anew_while_nothing_changes(lore: Lore) -> None:
    table = await table_of(lore)
    await lore.rooms.set_members("a", ["ann"])
    sight = Sight(check_viewer("room:a"), KnownWindows())

    async def asked() -> np.ndarray:
        async with lore.storage.reading(lore.tenant) as work:
            return await sight.of(work, table, lore.now())

    first = await asked()
    with patch.object(EvidenceTable, "visible", side_effect=AssertionError):
        assert await asked() is first
        await lore.messages.add(roomlore.Message(id="m1", room_id="a", sender_id="ann"))
        assert await asked() is first
    await lore.rooms.set_kind("b", "public")
    assert (await asked()).sum() > first.sum()


async def test_a_reading_that_ends_late_does_not_replace_a_newer_one(lore: Lore) -> None:
    """A regression: who had left a room saw what was said there afterwards, while an older reading came to its end."""
    for room in ("a", "b"):
        await lore.rooms.set_members(room, ["ann"])
    known, ends = KnownWindows(), {"old": asyncio.Event(), "new": asyncio.Event()}

    async def asked(rooms: list[str], end: str = "") -> dict[str, Any]:
        async def people(**given: Any) -> Any:
            found = await work.rooms.people(**given)
            if end:
                begun.set()
                await ends[end].wait()
            return found

        async with lore.storage.reading(lore.tenant) as work:
            stamps = await work.rooms.stamps(room_ids=rooms)
            slow: Any = SimpleNamespace(tenant=lore.tenant, rooms=SimpleNamespace(people=people))
            return dict(await known.of(slow, people=frozenset({"ann"}), stamps=stamps))

    begun = asyncio.Event()
    old = asyncio.create_task(asked(["a"], "old"))
    await begun.wait()
    await lore.rooms.remove_members("a", ["ann"])
    left = await asked(["a"])
    begun.clear()
    new = asyncio.create_task(asked(["a", "b"], "new"))
    await begun.wait()
    ends["old"].set()
    assert (await old)["a"] != left["a"]
    ends["new"].set()
    assert (await new)["a"] == left["a"]
    assert known._known[lore.tenant, frozenset({"ann"})]["a"][1] == left["a"]
