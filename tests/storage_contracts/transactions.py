"""The contracts of transactions and tenants: all of a unit of work or none of it, and one writer to a room at a
time."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from roomlore.core.errors import Conflict, NotFound, UnknownRoom
from roomlore.core.experiments import UsageSelection
from roomlore.core.memory.log import STEP
from roomlore.core.memory.memory import Action, MemoryKind, Source
from roomlore.core.models import ApiKey
from roomlore.core.sessions.session import DueCheckpoint
from roomlore.storage import Storage, UnitOfWork
from roomlore_testkit.builders import START, change, checkpoint, entry, evolution, memory, session, usage_record
from storage_contracts.texts import ROOM, TENANT, conversation, digest, everything, fill


class _StopError(Exception):
    """Raised by a test inside a unit of work."""


async def append_one(storage: Storage, text: str, *, brief: bool = False) -> int:
    """Add one message at the room's next arrival; return that arrival."""
    async with storage.writing(TENANT, brief=brief) as work:
        room = await work.rooms.lock(room_id=ROOM, now=START)
        await asyncio.sleep(0)
        said = entry(room.next_arrival, text=text)
        await work.messages.append(room_id=ROOM, entries=[said])
        return room.next_arrival


async def _write_and_stop(storage: Storage) -> None:
    key = ApiKey(key_id="k1", tenant=TENANT, name="bot", scopes=(), created_at=START)
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.messages.append(room_id=ROOM, entries=[entry(1)])
        await work.usage.record(records=[usage_record("c1")])
        await work.keys.add(key=key, secret_hash=digest("k1"))
        raise _StopError


class TransactionsContract:
    async def test_what_raises_leaves_nothing(self, storage: Storage) -> None:
        with pytest.raises(_StopError):
            await _write_and_stop(storage)
        async with storage.reading(TENANT) as work:
            assert await work.rooms.find(room_id=ROOM) is None
            assert await work.messages.recent(room_id=ROOM, limit=9) == []
            assert await work.usage.find(context_id="c1") is None
            assert not await work.keys.any()

    async def test_a_conflict_leaves_nothing_of_its_batch(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        with pytest.raises(Conflict):
            await fill(storage, [entry(2), entry(3, id="m1")])
        assert await everything(storage) == [entry(1)]
        assert await append_one(storage, "again") == 2

    async def test_a_cancelled_writer_leaves_nothing_and_blocks_nobody(self, storage: Storage) -> None:
        entered = asyncio.Event()

        async def stuck() -> None:
            async with storage.writing(TENANT) as work:
                await work.rooms.lock(room_id=ROOM, now=START)
                await work.messages.append(room_id=ROOM, entries=[entry(1)])
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(stuck())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await append_one(storage, "next") == 1

    async def test_a_writer_cancelled_at_any_moment_blocks_nobody(self, storage: Storage) -> None:
        await fill(storage, [])
        for step in range(40):
            task = asyncio.create_task(append_one(storage, "cancelled"))
            await asyncio.sleep(step / 10_000)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        last = await append_one(storage, "last")
        assert [found.message.arrival for found in await everything(storage)] == list(range(1, last + 1))

    async def test_a_writer_cancelled_as_its_turn_comes_is_cancelled(self, storage: Storage) -> None:
        for steps in range(8):
            async with storage.writing():
                task = asyncio.create_task(append_one(storage, "cancelled"))
                await asyncio.sleep(0.01)
            for _ in range(steps):
                await asyncio.sleep(0)
            ended = task.done()
            task.cancel()
            (came,) = await asyncio.gather(task, return_exceptions=True)
            assert ended or isinstance(came, asyncio.CancelledError)
        assert await append_one(storage, "last") >= 1

    async def test_a_cancelled_reader_leaves_a_working_store(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 400)])
        for _ in range(8):
            task = asyncio.create_task(everything(storage))
            await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert len(await everything(storage)) == 399

    async def test_a_unit_of_work_reads_what_it_wrote(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.messages.append(room_id=ROOM, entries=[entry(1)])
            assert await work.messages.tail(room_id=ROOM, limit=9) == [entry(1)]

    async def test_concurrent_writers_never_share_an_arrival(self, storage: Storage) -> None:
        arrivals = await asyncio.gather(*(append_one(storage, f"text {n}") for n in range(24)))
        assert sorted(arrivals) == list(range(1, 25))
        stored = await everything(storage)
        assert [found.message.arrival for found in stored] == list(range(1, 25))
        assert {found.message.text for found in stored} == {f"text {n}" for n in range(24)}

    async def test_of_brief_writers_at_once_each_is_stored_when_it_returns(self, storage: Storage) -> None:
        async def add_and_look(number: int) -> bool:
            arrival = await append_one(storage, f"text {number}", brief=number % 4 > 0)
            return any(found.message.arrival == arrival for found in await everything(storage))

        assert all(await asyncio.gather(*map(add_and_look, range(40))))
        assert [found.message.arrival for found in await everything(storage)] == list(range(1, 41))

    async def test_of_brief_writers_at_once_each_has_its_own_error(self, storage: Storage) -> None:
        async def add(number: int) -> None:
            stops = number % 6 == 3
            async with storage.writing(TENANT, brief=True) as work:
                room = await work.rooms.lock(room_id=ROOM, now=START)
                said = entry(room.next_arrival, id=f"stopped {number}" if stops else f"m{number - number % 3}")
                await work.messages.append(room_id=ROOM, entries=[said])
                if stops:
                    raise _StopError

        came = await asyncio.gather(*map(add, range(30)), return_exceptions=True)
        kept = [found.message.id for found in await everything(storage)]
        assert sorted(kept) == sorted({f"m{number - number % 3}" for number in range(30)})
        assert Counter(type(error) for error in came) == {type(None): 10, Conflict: 15, _StopError: 5}
        assert await append_one(storage, "next", brief=True) == 11

    async def test_brief_writers_cancelled_at_any_moment_leave_nothing_of_their_own(self, storage: Storage) -> None:
        await fill(storage, [])
        for step in range(30):
            tasks = [asyncio.create_task(append_one(storage, f"{step} {n}", brief=True)) for n in range(6)]
            await asyncio.sleep(step / 10_000)
            for task in tasks[step % 3 :: 2]:
                task.cancel()
            came = await asyncio.gather(*tasks, return_exceptions=True)
            texts = {found.message.text for found in await everything(storage)}
            for n, result in enumerate(came):
                assert isinstance(result, asyncio.CancelledError) or f"{step} {n}" in texts
        last = await append_one(storage, "last", brief=True)
        assert [found.message.arrival for found in await everything(storage)] == list(range(1, last + 1))

    async def test_many_readers_beside_a_writer(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        results = await asyncio.gather(append_one(storage, "x"), *(everything(storage) for _ in range(20)))
        assert all(len(seen) in (1, 2) for seen in results[1:])  # type: ignore[arg-type]

    async def test_two_readings_may_be_open_at_once(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        async with storage.reading(TENANT) as one, storage.reading(TENANT) as two:
            first = await one.messages.recent(room_id=ROOM, limit=9)
            second = await two.messages.recent(room_id=ROOM, limit=9)
        assert first == second == [entry(1).message]

    async def test_ping_answers(self, storage: Storage) -> None:
        await storage.ping()


_SCOPE = "user:ann"
_IDS = ["m1", "m2", "m3", "m4", "later"]


async def _stored(storage: Storage) -> None:
    await fill(storage, conversation())
    await fill(storage, [entry(5, reply_to="later")])
    async with storage.writing(TENANT) as work:
        await work.usage.record(records=[usage_record("c1", success_indicator=1.0)])
        key = ApiKey(key_id="k1", tenant=TENANT, name="bot", scopes=(), created_at=START)
        await work.keys.add(key=key, secret_hash=digest("k1"))
        await work.progress.save_import_position(source="file", position="1", now=START)
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.sessions.mark(checkpoint=checkpoint(1))
        await work.sessions.save(session=session(1, checkpoint=checkpoint(1)))
        await work.memories.lock(scope=_SCOPE, now=START)
        fact = memory("f1", sources=(Source(ROOM, "m1"),))
        again = [change(number, fact, action=Action.STRENGTH) for number in range(2, STEP + 1)]
        await work.memories.apply(scope=_SCOPE, changes=[change(1, fact, evolution_id="e1"), *again])
        await work.memories.add_evolution(evolution=evolution("e1"))
        await work.progress.move_mark(room_id=ROOM, name="x", arrival=1, was=0, now=START)


async def _all_reads(work: UnitOfWork) -> dict[str, object]:
    """Return the answer of every read of a tenant, for everything the room holds."""
    rooms, messages, usage = work.rooms, work.messages, work.usage
    return {
        "rooms.find": await rooms.find(room_id=ROOM),
        "rooms.page": await rooms.page(after=None, limit=9),
        "rooms.page after": await rooms.page(after="", limit=9),
        "rooms.participants": await rooms.participants(room_id=ROOM),
        "rooms.people": await rooms.people(room_ids=[ROOM]),
        "rooms.of_sender": await rooms.of_sender(sender_id="ann"),
        "messages.fingerprints": await messages.fingerprints(room_id=ROOM, message_ids=_IDS),
        "messages.met": await messages.met(room_id=ROOM, message_ids=_IDS),
        "messages.origins": await messages.origins(room_id=ROOM, message_ids=_IDS),
        "messages.by_id": await messages.by_id(room_id=ROOM, message_ids=_IDS),
        "messages.by_arrival": await messages.by_arrival(room_id=ROOM, arrivals=[1, 2, 3, 4, 5]),
        "messages.tail": await messages.tail(room_id=ROOM, limit=9),
        "messages.tail before": await messages.tail(room_id=ROOM, limit=9, before=9),
        "messages.tail since": await messages.tail(room_id=ROOM, limit=9, since=START),
        "messages.recent": await messages.recent(room_id=ROOM, limit=9),
        "messages.recent_with_hashes": await messages.recent_with_hashes(room_id=ROOM, limit=9),
        "messages.page": await messages.page(room_id=ROOM, after=0, limit=9),
        "messages.page of": await messages.page(room_id=ROOM, after=0, limit=9, sender_id="ann"),
        "messages.page_with_hashes": await messages.page_with_hashes(room_id=ROOM, after=0, limit=9),
        "messages.page_with_hashes of": await messages.page_with_hashes(
            room_id=ROOM, after=0, limit=9, sender_id="ann"
        ),
        "messages.count": await messages.count(room_id=ROOM, after=0),
        "messages.count of": await messages.count(room_id=ROOM, after=0, sender_id="ann"),
        "messages.first_since": await messages.first_since(room_id=ROOM, since=START),
        "messages.changed": (await messages.changed(room_id=ROOM, revision=0, after=0))[0],
        "messages.target": await messages.target(room_id=ROOM, message_id="m2", window=9),
        "messages.target newest": await messages.target(room_id=ROOM, message_id=None, window=9),
        "messages.related": await messages.related(room_id=ROOM, entry=conversation()[1], hops=5, limit=9),
        "messages.waiting": await messages.waiting(room_id=ROOM, message_ids=_IDS),
        "messages.threads": await messages.threads(room_id=ROOM, after=0, limit=9),
        "messages.thread_members": await messages.thread_members(room_id=ROOM, thread=1, limit=9),
        "messages.keyword_counts": await messages.keyword_counts(room_id=ROOM, keywords=["deploy", "部署"]),
        "messages.look_up": await work.messages.look_up(room_id=ROOM, words=["text"]),
        "messages.facts": (await work.messages.facts(room_id=ROOM, since=0)).sender_ids,
        "messages.facts since": (await work.messages.facts(room_id=ROOM, since=1)).sender_ids,
        "usage.find": await usage.find(context_id="c1"),
        "usage.page": await usage.page(selection=UsageSelection(), after=None, limit=9),
        "usage.page room": await usage.page(selection=UsageSelection(room_id=ROOM, judged=True), after=None, limit=9),
        "usage.sums": await usage.sums(since=START),
        "keys.page": await work.keys.page(),
        "progress.import_position": await work.progress.import_position(source="file"),
        "sessions.find": await work.sessions.find(conversation_id=ROOM),
        "sessions.page": await work.sessions.page(after=None, limit=9),
        "sessions.page after": await work.sessions.page(after="", limit=9),
        "sessions.history": await work.sessions.history(conversation_id=ROOM, before=None, limit=9),
        "progress.marks": await work.progress.marks(room_id=ROOM, names=["x"]),
    } | await _memory_reads(work)


async def _memory_reads(work: UnitOfWork) -> dict[str, object]:
    memories = work.memories
    chosen: dict[str, Any] = {"scopes": [_SCOPE], "kinds": list(MemoryKind), "status": None}
    return {
        "memories.scope": await memories.scope(scope=_SCOPE),
        "memories.scopes": await memories.scopes(after=None, limit=9),
        "memories.scopes after": await memories.scopes(after="", limit=9),
        "memories.changes": await memories.changes(scope=_SCOPE, after=0, limit=9),
        "memories.changes since": await memories.changes(scope=_SCOPE, after=0, limit=9, since=START),
        "memories.touches": await memories.touches(scope=_SCOPE, after=0, limit=9),
        "memories.snapshot": await memories.snapshot(scope=_SCOPE, at=START + timedelta(days=9)),
        "memories.changes_by_number": await memories.changes_by_number(scope=_SCOPE, numbers=[1]),
        "memories.changes_of_lineages": await memories.changes_of_lineages(
            scope=_SCOPE, lineage_ids=["f1"], after=0, until=9
        ),
        "memories.latest_changes": await memories.latest_changes(scope=_SCOPE, limit=9),
        "memories.latest_changes since": await memories.latest_changes(scope=_SCOPE, limit=9, since=START),
        "memories.changes_of_evolution": await memories.changes_of_evolution(evolution_id="e1"),
        "memories.by_id": await memories.by_id(memory_ids=["f1"]),
        "memories.heads": await memories.heads(memory_ids=["f1"]),
        "memories.page": await memories.page(**chosen, limit=9),
        "memories.count": await memories.count(**chosen),
        "memories.lineage": await memories.lineage(lineage_id="f1"),
        "memories.latest_versions": await memories.latest_versions(lineage_ids=["f1"]),
        "memories.citing": await memories.citing(room_id=ROOM, message_ids=["m1"]),
        "memories.evolutions_by_id": await memories.evolutions_by_id(evolution_ids=["e1"]),
        "memories.evolutions": await memories.evolutions(scope=_SCOPE, before=None, limit=9),
        "memories.evolutions before": await memories.evolutions(scope=_SCOPE, before="e9", limit=9),
    }


class TenantsContract:
    async def test_every_read_answers_its_own_tenant(self, storage: Storage) -> None:
        """Guard the tests below: a read that finds nothing at all would pass them."""
        await _stored(storage)
        async with storage.reading(TENANT) as work:
            answers = await _all_reads(work)
        assert [name for name, answer in answers.items() if not answer] == []

    async def test_no_read_answers_another_tenant(self, storage: Storage) -> None:
        await _stored(storage)
        for other in ("", "other", "ACME", "acme ", "%", "acme' OR '1'='1"):
            async with storage.reading(other) as work:
                answers = await _all_reads(work)
                with pytest.raises(UnknownRoom):
                    await work.rooms.get(room_id=ROOM)
            assert [name for name, answer in answers.items() if answer] == [], other

    async def test_a_unit_over_all_tenants_refuses_what_needs_a_tenant(self, storage: Storage) -> None:
        await _stored(storage)
        async with storage.reading() as every:
            with pytest.raises(RuntimeError, match="over all tenants"):
                _ = every.tenant
            with pytest.raises(RuntimeError, match="over all tenants"):
                await every.rooms.page(after=None, limit=9)
            assert every.of(TENANT).tenant == TENANT
            answers = await _all_reads(every.of(TENANT))
        assert [name for name, answer in answers.items() if not answer] == []

    async def test_no_read_mixes_two_tenants_with_the_same_ids(self, storage: Storage) -> None:
        await _stored(storage)
        await fill(storage, [entry(1, text="theirs")], tenant="other")
        async with storage.reading("other") as work:
            assert [m.text for m in await work.messages.recent(room_id=ROOM, limit=9)] == ["theirs"]
            found = await work.messages.by_id(room_id=ROOM, message_ids=_IDS)
            assert await work.rooms.participants(room_id=ROOM) == {"ann": ""}
            (room,) = await work.rooms.page(after=None, limit=9)
        assert [one.message.text for one in found] == ["theirs"]
        assert room.messages == 1

    async def test_no_write_reaches_another_tenant(self, storage: Storage) -> None:
        await _stored(storage)
        async with storage.writing("other") as work:
            assert not await work.usage.respond(context_id="c1", llm_response="x")
            assert not await work.usage.judge(context_id="c1", feedback="x", score=0.0)
            assert not await work.keys.revoke(key_id="k1", now=START)
            await work.progress.forget_import_position(source="file")
            due = DueCheckpoint(at=START)
            assert not await work.sessions.schedule(conversation_id=ROOM, due=due, was=None)
            with pytest.raises(NotFound):
                await work.rooms.configure(room_id=ROOM, settings={"a": 1})
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.messages.erase(room_id=ROOM, arrivals=[1, 2, 3], now=START)
            with pytest.raises(NotFound):
                await work.messages.replace(room_id=ROOM, entries=[entry(1, text="x")])
        async with storage.reading(TENANT) as work:
            answers = await _all_reads(work)
            (record,) = await work.usage.page(selection=UsageSelection(), after=None, limit=9)
        assert [name for name, answer in answers.items() if not answer] == []
        assert record == usage_record("c1", success_indicator=1.0)

    async def test_the_same_context_id_in_two_tenants(self, storage: Storage) -> None:
        async with storage.writing("other") as work:
            await work.of(TENANT).usage.record(records=[usage_record("c1", tokens=1)])
            await work.usage.record(records=[usage_record("c1", tokens=2)])
            assert await work.usage.find(context_id="c1") == usage_record("c1", tokens=2)

    async def test_empty_filters_return_nothing(self, storage: Storage) -> None:
        await _stored(storage)
        async with storage.reading(TENANT) as work:
            assert await work.messages.fingerprints(room_id=ROOM, message_ids=[]) == {}
            assert await work.messages.by_id(room_id=ROOM, message_ids=[]) == []
            assert await work.messages.by_arrival(room_id=ROOM, arrivals=[]) == []
            assert await work.messages.waiting(room_id=ROOM, message_ids=[]) == []
            assert await work.messages.keyword_counts(room_id=ROOM, keywords=[]) == {}
            assert await work.messages.tail(room_id=ROOM, limit=0) == []
            assert await work.messages.recent(room_id=ROOM, limit=0) == []
            assert await work.messages.page(room_id=ROOM, after=0, limit=0) == []
            assert await work.rooms.page(after=None, limit=0) == []
