"""Deleting a room: what goes, what stays, and what others may see afterwards."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from audience_rig import heard_in, remember
from forget_rig import CHINESE, ENGLISH, ROOM, everything, fill, replays
from roomlore import Lore, MemoryKind, Message, Settings, Source
from roomlore.core.deletion import NO_ROOM
from roomlore.core.errors import Conflict, NotFound, RoomloreError
from roomlore.services.privacy import RoomDeletions, room_memories
from roomlore_testkit.embedding import HashEmbedder

OLD = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def lore(storage_url) -> AsyncIterator[Lore]:
    settings = Settings(durable_work="process", vectors="sql")
    async with roomlore.open(storage_url, settings=settings, embedder=HashEmbedder(), background=False) as opened:
        yield opened


def said(number: int, text: str = "the mill closes in May", room: str = "tea", **more) -> Message:
    given = {"id": f"{room}-{number}", "sender_id": ("ann", "bo")[number % 2], "sent_at": OLD + timedelta(hours=number)}
    return Message(**{"room_id": room, "text": f"{number}: {text}", **given, **more})


def cells(tables) -> list[tuple[str, str, str]]:
    rows = [(table, row) for table, its in tables.items() for row in its]
    return [(table, column, text) for table, row in rows for column, texts in row.texts.items() for text in texts]


async def drained(lore: Lore) -> None:
    async for _ in lore.index.drain():
        pass


@pytest.mark.parametrize("who", [ENGLISH, CHINESE], ids=["en", "zh"])
async def test_nothing_of_the_room_is_left_in_any_row_and_the_dry_run_told_it(lore, who):
    await fill(lore, who)
    await drained(lore)
    before = cells(await everything(lore))
    would = await lore.rooms.delete(ROOM, dry_run=True)
    assert cells(await everything(lore)) == before, "a dry run changes nothing"
    did = await lore.rooms.delete(ROOM)
    assert (did.complete, did.dry_run, would.dry_run) == (True, False, True), did.left
    for name in ("name", "places", "retired", "rewritten", "stays"):
        assert getattr(did, name) == getattr(would, name)
    assert (did.retired, did.stays) == (("short",), {"people": 2})
    assert did.places["messages"] == 8
    left = [(table, column, text) for table, column, text in cells(await everything(lore))]
    assert [cell for cell in left if ROOM in cell[2].split(":")] == []
    mine = await lore.memories.changes(f"user:{who.user_id}")
    given = [one[:2] for one in left if who.secret in one[2]]
    assert given == [("memory_changes", "reason"), ("sessions", "state")], "callers gave it, outside the room"
    assert [one.reason for one in mine] == [who.secret]
    assert await replays(lore)
    assert (await lore.privacy.verify()).sound


def sources(*named: str) -> list[Source]:
    return [Source(*one.split("/")) for one in named]


RESTS = {
    "the room alone": (["tea/tea-1", "tea/tea-2"], None),
    "another room too": (["tea/tea-1", "den/den-1"], "stays"),
    "another room": (["den/den-2"], "stays"),
    "nothing: a caller gave it": ([], "stays"),
}


@pytest.mark.parametrize(("on", "becomes"), RESTS.values(), ids=RESTS)
async def test_a_fact_stays_if_it_rests_on_something_else(lore, on, becomes):
    await lore.messages.add([*map(said, range(4)), *(said(n, room="den") for n in range(3))])
    fact = await lore.memories.add("user:ann", "works at the mill", sources=sources(*on))
    await lore.memories.add("group:tea", "closes in May", kind=MemoryKind.GROUP, sources=sources("den/den-1"))
    would = await lore.rooms.delete("tea", dry_run=True)
    await lore.rooms.delete("tea")
    now = await lore.memories.get(fact.memory_id, viewer=None)
    assert now.statement == ("works at the mill" if becomes else "[forgotten]")
    assert now.sources == tuple(source for source in sources(*on) if source.room_id == "den")
    assert would.retired == (() if becomes else (fact.memory_id,))
    assert would.rewritten == ((fact.memory_id,) if len(on) == 2 and becomes else ())
    assert await lore.memories.page("user:ann", viewer=None) == ([now] if becomes else [])
    assert await lore.memories.page("group:tea", viewer=None) == [], "the room's own memory goes, whatever it rests on"
    assert await lore.memories.changes("group:tea") == []
    assert await replays(lore)
    assert (await lore.privacy.verify()).sound


async def test_the_reason_of_a_change_that_rests_on_the_room_too_goes(lore):
    await lore.messages.add([said(1), said(1, room="den")])
    fact = await lore.memories.add("user:ann", "works there", sources=sources("den/den-1"))
    fact = await lore.memories.update(fact.memory_id, confidence=0.4, reason="told in the den")
    both = sources("tea/tea-1", "den/den-1")
    fact = await lore.memories.update(fact.memory_id, statement="works here", sources=both, reason="closes in May")
    await lore.rooms.delete("tea")
    assert (await lore.memories.get(fact.memory_id, viewer=None)).statement == "works here"
    changes = await lore.memories.changes("user:ann")
    assert [entry.reason for entry in changes[:3]] == ["", "told in the den", ""]
    assert await replays(lore)


@pytest.mark.parametrize("gone", ["tea", 'te"a', "t%a", "te\\a", "茶\x1a", "te\x00a"])
async def test_only_the_logs_that_name_the_room_are_read(lore, monkeypatch, gone):
    await lore.messages.add([said(1, room=gone), said(1, room="den"), said(1, room="tear")])
    of = {"on": [Source(gone, f"{gone}-1")], "den": sources("den/den-1"), "tear": sources("tear/tear-1"), "none": []}
    facts = {who: await lore.memories.add(f"user:{who}", "drinks tea", sources=its) for who, its in of.items()}
    for who in ("shared", "ended"):
        facts[who] = await lore.memories.add(f"user:{who}", "drinks tea")
        await lore.memories.share(facts[who].memory_id, f"room:{gone}")
    await lore.memories.unshare(facts["ended"].memory_id, f"room:{gone}")
    read, whole = set(), room_memories._changed

    async def recorded(work, redaction, scope):
        read.add(scope)
        return await whole(work, redaction, scope)

    monkeypatch.setattr(room_memories, "_changed", recorded)
    assert (await lore.rooms.delete(gone)).complete
    assert read == {"user:on", "user:shared", "user:ended"}
    assert [cell for cell in cells(await everything(lore)) if gone in cell[2].split(":")] == []


async def test_others_see_no_more_of_a_fact_than_before():
    rooms = {"dm": "ann", "team": "ann bo", "crew": "ann bo", "square": "ann eve"}
    viewers = ["room:dm", "room:team", "room:crew", "room:square", "user:ann", "user:bo", "user:eve"]
    facts = {
        "only in the team": ["team"],
        "in both": ["team", "crew"],
        "in the team and in public": ["team", "square"],
        "in the crew and in public": ["crew", "square"],
    }
    for gone in ("team", "square"):
        async with heard_in(rooms, direct="dm") as lore:
            for statement, where in facts.items():
                await remember(lore, statement, *where)
            shared = await remember(lore, "shared with the room", "dm")
            await lore.memories.share(shared, f"room:{gone}")

            async def seen(lore=lore) -> dict[str, set[str]]:
                return {
                    viewer: {one.statement for one in await lore.memories.page("user:ann", viewer=viewer)}
                    for viewer in viewers
                }

            before = await seen()
            await lore.rooms.delete(gone)
            for again in (False, True):
                if again:  # a room of the same id, of somebody else
                    await lore.messages.add([said(1, room=gone, sender_id="mallory")])
                    await lore.rooms.set_kind(gone, "public")
                after = await seen()
                assert all(after[viewer] <= before[viewer] for viewer in viewers)
                assert after[f"room:{gone}"] <= before["room:square"] - {"in the crew and in public"}
            if gone == "square":
                assert "in the crew and in public" in after["room:crew"], "what all had heard limits nobody"
                assert "in the team and in public" in after["user:bo"]
            else:
                left = {one.evidence[0].room_id for one in await lore.memories.page("user:ann", viewer=None)}
                assert NO_ROOM in left
                assert not any("in both" in its for its in after.values())


async def test_the_room_is_hidden_from_the_first_transaction_on(lore, monkeypatch):
    await lore.messages.add([*map(said, range(4)), *(said(n, room="den") for n in range(3))])
    await lore.memories.add("group:tea", "closes in May", kind=MemoryKind.GROUP)
    await lore.sessions.create_session("tea", "ann")
    await lore.rooms.mark_read("tea", "ann")
    await drained(lore)

    async def nothing(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(RoomDeletions, "_go", nothing)
    with pytest.raises(RuntimeError):
        await lore.rooms.delete("tea")
    assert [room.room_id for room in await lore.rooms.page()] == ["den"]
    assert [hit.message.room_id for hit in (await lore.messages.search(query="mill closes")).hits if hit] != []
    assert {hit.message.room_id for hit in (await lore.messages.search(query="mill closes")).hits} == {"den"}
    assert await lore.memories.page("group:tea", viewer=None) == []
    assert await lore.rooms.meant("tea") == ""
    async with lore.storage.reading(lore.tenant) as work:
        assert {room.room_id for room in await work.rooms.of_person(person_id="ann")} == {"den"}
        assert {voice.room_id for voice in await work.rooms.voices(sender_id="ann")} == {"den"}
        assert await work.rooms.named_like(part="te", limit=9) == []
    reads = [
        lambda: lore.rooms.get("tea"),
        lambda: lore.rooms.named("tea"),
        lambda: lore.rooms.threads("tea"),
        lambda: lore.rooms.people("tea"),
        lambda: lore.rooms.rename("tea", "Tea"),
        lambda: lore.messages.page("tea"),
        lambda: lore.messages.search("tea", "mill"),
        lambda: lore.context.build("tea"),
        lambda: lore.digest("tea"),
        lambda: lore.sessions.query_context("tea"),
    ]
    for read in reads:
        with pytest.raises(NotFound):
            await read()
    writes = [
        lambda: lore.messages.add([said(9)]),
        lambda: lore.sessions.create_session("tea", "ann"),
        lambda: lore.rooms.set_members("tea", ["ann"]),
        lambda: lore.rooms.set_kind("tea", "public"),
        lambda: lore.rooms.delete("tea", dry_run=True),
        lambda: lore.memories.add("group:tea", "opens in June", kind=MemoryKind.GROUP),
    ]
    for write in writes:
        with pytest.raises(Conflict) as refused:
            await write()
        assert refused.value.code == "room_being_deleted"
    assert (await lore.privacy.verify()).sound
    assert (await lore.messages.add([said(9, room="den")])).added == ("den-9",)


async def test_a_batch_for_two_rooms_leaves_the_other_one_whole(lore, monkeypatch):
    await lore.messages.add([said(1)])

    async def nothing(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as killed:
        killed.setattr(RoomDeletions, "_go", nothing)
        with pytest.raises(RuntimeError):
            await lore.rooms.delete("tea")
    with pytest.raises(Conflict):
        await lore.messages.add([said(2, room="den"), said(2)])
    with pytest.raises(NotFound):
        await lore.rooms.get("den")
    calls = (lore.messages.add([said(n, room=room)]) for n, room in enumerate(("oak", "tea", "elm")))
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one).__name__ for one in done] == ["AddReport", "Conflict", "AddReport"], "each for itself"
    assert (await lore.rooms.delete("tea")).complete, "the same call goes on"
    assert len((await lore.messages.add([said(2, room="den"), said(2)])).added) == 2


async def test_a_person_of_the_same_id_is_forgotten_while_their_room_is_deleted(lore, monkeypatch):
    """A request is found by the id of its room, which may be that of the person who goes."""
    await lore.messages.add([said(1, room="ann"), said(2, room="ann", sender_id="ann"), said(1, room="den")])

    async def nothing(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as killed:
        killed.setattr(RoomDeletions, "_go", nothing)
        with pytest.raises(RuntimeError):
            await lore.rooms.delete("ann")
    await lore.privacy.forget("ann")
    assert (await lore.rooms.delete("ann")).complete
    assert (await lore.messages.add([said(1, room="ann")])).added == ("ann-1",)
    assert (await lore.privacy.verify()).sound


async def test_a_room_that_begins_anew_knows_nothing_of_before(lore):
    await lore.messages.add([*map(said, range(8))])
    await lore.memories.add("group:tea", "closes in May", kind=MemoryKind.GROUP, sources=sources("tea/tea-1"))
    await lore.rooms.configure("tea", {"max_context_tokens": 500})
    await lore.rooms.mark_read("tea", "ann")
    await lore.context.build("tea")
    await drained(lore)
    old = await lore.rooms.get("tea")
    await lore.rooms.delete("tea")
    with pytest.raises(NotFound):
        await lore.rooms.delete("tea")
    await lore.messages.add([said(1, "quite other words")])
    room = await lore.rooms.get("tea")
    assert (room.messages, room.next_arrival, room.settings, room.name) == (1, 2, {}, "")
    assert room.created_at > old.created_at
    await drained(lore)
    assert [hit.message.text for hit in (await lore.messages.search("tea", "mill closes")).hits] == []
    await lore.memories.add("group:tea", "opens in June", kind=MemoryKind.GROUP, sources=sources("tea/tea-1"))
    assert [one.statement for one in await lore.memories.page("group:tea", viewer=None)] == ["opens in June"]
    assert [entry.number for entry in await lore.memories.changes("group:tea")] == [1]
    found = await lore.memories.search("group:tea", "closes in May")
    assert [hit.memory.statement for hit in found.hits] in ([], ["opens in June"])
    async with lore.storage.reading(lore.tenant) as work:
        assert await work.progress.marks_of_room(room_id="tea", prefix="") == {}
    assert (await lore.privacy.verify()).sound


async def test_archives_go_with_the_room(storage_url, tmp_path):
    settings = Settings(archive_folder=str(tmp_path / "kept"))
    async with roomlore.open(storage_url, settings=settings, background=False) as lore:
        await lore.messages.add([*map(said, range(9)), *(said(n, room="den") for n in range(9))])
        await lore.archives.run(days=30)
        would = await lore.rooms.delete("tea", dry_run=True)
        assert would.places["archives"] == 1
        assert (await lore.rooms.delete("tea")).complete
        (kept,) = await lore.archives.kept()
        assert (kept.room_id, len(list((tmp_path / "kept").rglob("*.gz")))) == ("den", 1)
        assert (await lore.privacy.verify()).sound


async def test_the_same_export_is_imported_again(lore, tmp_path):
    export = tmp_path / "tea.jsonl"
    line = {"room_id": "tea", "sender_id": "ann", "sent_at": "2020-01-01T00:00:00Z"}
    export.write_text("".join(json.dumps(line | {"id": f"{n}", "text": f"{n} cups"}) + "\n" for n in range(5)))
    first = await lore.imports.run([export])
    async with lore.storage.writing(lore.tenant) as work:  # one that broke off
        await work.progress.save_import_position(source="sha-of-it", position="{}", now=lore.now())
    await lore.rooms.delete("tea")
    again = await lore.imports.run([export])
    assert (again.added, first.added, again.resumed) == (5, 5, False)
    async with lore.storage.reading(lore.tenant) as work:
        assert await work.progress.import_position(source="sha-of-it") is None


async def test_what_was_derived_before_the_room_was_hidden_goes_too(lore, monkeypatch):
    """A memory that is stored while the room is removed, from messages that were read before."""
    await lore.messages.add([*map(said, range(4))])
    whole = RoomDeletions._without_vectors

    async def derive(self, gone, last, numbers):
        monkeypatch.setattr(RoomDeletions, "_without_vectors", whole)
        fact = await lore.memories.add("user:ann", "works at the mill")
        async with lore.storage.writing(lore.tenant) as work:
            row = (await work.maintenance.versions(after=0, limit=9))[0][0]
            source = f"INSERT INTO memory_sources VALUES ('{lore.tenant}', 'tea', 'tea-1', {row})"
            await work.connection.run(source)
            listed = '[["tea", "tea-1"]]'
            await work.connection.run(f"UPDATE memories SET sources = '{listed}' WHERE memory_key = {row}")
        assert fact.memory_id
        return await whole(self, gone, last, numbers)

    monkeypatch.setattr(RoomDeletions, "_without_vectors", derive)
    assert (await lore.rooms.delete("tea")).complete
    assert await lore.memories.page("user:ann", viewer=None) == []


async def test_vectors_that_cannot_be_removed_keep_the_room_hidden(storage_url):
    settings = Settings(durable_work="process", vectors="sql")
    async with roomlore.open(storage_url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
        await lore.messages.add([*map(said, range(4))])
        await drained(lore)
    async with roomlore.open(storage_url, settings=Settings(durable_work="process"), background=False) as lore:
        report = await lore.rooms.delete("tea")
        assert [one.place for one in report.left] == ["rooms"]
        with pytest.raises(RoomloreError):
            await lore.rooms.get("tea")
    async with roomlore.open(storage_url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
        assert (await lore.rooms.delete("tea")).complete
        assert (await lore.privacy.verify()).sound


async def test_a_job_deletes_a_room_of_many_messages(storage_url):
    settings = Settings(durable_work="process")
    async with roomlore.open(storage_url, settings=settings) as lore:
        await lore.messages.add([*map(said, range(450))])
        begun = await lore.rooms.begin_deletion("tea")
        assert begun.places["messages"] == 450
        assert (await lore.jobs.wait(begun.job_id, 60)).status == "done"
        with pytest.raises(NotFound):
            await lore.rooms.get("tea")
        assert (await lore.privacy.verify()).sound
        await lore.messages.add([said(1)])
        with pytest.raises(NotFound):
            await lore.rooms.begin_deletion("cocoa")
