"""The promises of `lore.usage`: pages, exports without forgotten people, reports for each arm, and expiry."""

import asyncio
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore import InvalidInput, Message, Settings
from roomlore.services.contexts import UsageExpiry, UsageRecorder, UsageService, usage_service
from roomlore.services.contexts.strategies import Strategy
from roomlore.storage.usage import Usage
from roomlore_testkit import FrozenClock, backends, entry, usage_record
from storage_contracts.texts import TENANT, erase, fill

NOW = datetime.now(UTC)


def said(number: int, room: str = "tea", **fields) -> Message:
    given = {"sender_id": "ann", "text": f"乌龙茶 or green tea {number}?", "sent_at": NOW + timedelta(seconds=number)}
    return Message(id=f"m{number}", room_id=room, **(given | fields))


async def used(lore, room: str = "tea", count: int = 3) -> list[str]:
    """The contexts of as many messages."""
    await lore.messages.add([said(number, room) for number in range(count)])
    return [(await lore.context.build(room, f"m{number}")).context_id for number in range(count)]


async def rows(exported) -> list[dict]:
    return [row async for row in exported]


async def test_pages_begin_with_the_oldest(lore):
    made = await used(lore)
    first = await lore.usage.page(limit=2)
    rest = await lore.usage.page(after=first[-1].context_id, limit=2)
    assert [one.context_id for one in (*first, *rest)] == made
    assert await lore.usage.page(room_id="coffee") == []
    assert await lore.usage.page(judged=True) == []
    await lore.context.feedback(made[1], score=0.0)
    assert [one.context_id for one in await lore.usage.page(judged=True, days=1)] == [made[1]]
    assert await lore.for_tenant("other").usage.page() == []


async def test_records_of_contexts_that_come_soon_after_each_other_share_a_transaction(lore, monkeypatch):
    await lore.messages.add([said(number) for number in range(5)])
    monkeypatch.setattr(usage_service, "_GATHER_SECONDS", 30.0)
    record, recorded = Usage.record, []

    async def counted(self, *, records):
        recorded.append(len(records))
        await record(self, records=records)

    monkeypatch.setattr(Usage, "record", counted)
    for number in range(5):
        await lore.context.build("tea", f"m{number}")
        await asyncio.sleep(0)
    assert len(await lore.usage.page()) == 5, "who asks for them does not wait for others"
    assert recorded == [5], "jobs that run by themselves write in transactions of their own"


@pytest.mark.parametrize("days", [0, -1, True, "7", float("nan"), 1e9])
async def test_days_that_are_none_are_refused(lore, days):
    with pytest.raises(InvalidInput, match="days is"):
        await lore.usage.report(days=days)
    with pytest.raises(InvalidInput, match="days is"):
        await lore.usage.page(days=days)
    with pytest.raises(InvalidInput, match="days is"):
        await rows(lore.usage.export(days=days))


async def test_an_exported_row_has_all_that_training_needs(lore):
    made = await used(lore)
    await lore.context.respond(made[2], "乌龙")
    await lore.context.feedback(made[2], text="yes", score=0.5)
    (row,) = await rows(lore.usage.export(judged=True))
    record = await lore.context.usage(made[2])
    assert row["message"]["text"] == said(2).text
    assert [(one["id"], one["score"]) for one in row["context"]] == list(record.relevance_scores.items())
    assert "乌龙茶" in row["message"]["keywords"]
    assert (row["llm_response"], row["user_feedback"], row["success_indicator"]) == ("乌龙", "yes", 0.5)


async def test_forgotten_and_deleted_messages_stand_in_no_export(lore):
    await lore.messages.add([said(1), said(2, sender_id="bob", text="bob here: oolong tea?"), said(3)])
    for number in (1, 2, 3):
        await lore.context.build("tea", f"m{number}")
    await lore.messages.delete("tea", ["m1"])
    exported = await rows(lore.usage.export())
    assert [row["message"]["id"] for row in exported] == ["m2", "m3"]
    assert [one["id"] for row in exported for one in row["context"]] == ["m2"]
    assert sum(row["gone"] for row in exported) == 2
    await lore.privacy.forget("bob")
    assert "bob" not in str(await rows(lore.usage.export()))
    assert "bob" not in str(await lore.usage.page())


async def test_a_record_that_is_written_after_its_sender_was_forgotten_is_not_kept(lore):
    lore = lore.for_tenant(TENANT)
    await fill(lore.storage, [entry(1, sender_id="bob"), entry(2)])
    await erase(lore.storage, 1)
    recorder = UsageRecorder(storage=lore.storage, telemetry=lore.telemetry)
    for context_id, message_id in (("c1", "m1"), ("c2", "m2"), ("c3", "m9")):
        recorder.put(lore.tenant, usage_record(context_id, trigger_message_id=message_id))
    await recorder.close()
    assert [one.context_id for one in await lore.usage.page()] == ["c2"]


async def test_the_report_tells_the_arms_apart():
    arms = {"plain": {"strategy": "recent", "share": 1}, "soft": {"share": 3}}
    async with roomlore.open("sqlite://", settings=Settings(experiment=arms)) as lore:
        scores = {"plain": 0.0, "soft": 1.0}
        for number in range(40):
            await lore.messages.add([said(1, f"r{number}"), said(2, f"r{number}")])
            built = await lore.context.build(f"r{number}", "m2")
            await lore.context.feedback(built.context_id, score=scores[built.arm])
        own = await lore.context.build("r1", "m2", strategy="weighted")
        assert own.arm is None
        report = await lore.usage.report(days=1)
        assert report.until - report.since == timedelta(days=1)
        outside, plain, soft = report.arms
        assert [one.arm for one in report.arms] == [None, "plain", "soft"]
        assert (outside.contexts, plain.contexts + soft.contexts) == (1, 40)
        assert 1 < plain.contexts < soft.contexts
        assert (plain.rooms, soft.rooms) == (plain.contexts, soft.contexts)
        assert [(one.success, one.success_margin) for one in (plain, soft)] == [(0.0, 0.0), (1.0, 0.0)]
        assert plain.degraded == soft.degraded == plain.answered == 0
        assert plain.tokens == plain.window_tokens > 0
        exported = await rows(lore.usage.export(arm="plain"))
        assert {row["arm"] for row in exported} == {"plain"}
        assert len(exported) == plain.contexts


async def test_a_context_that_failed_counts_for_its_arm():
    settings = Settings(experiment={"a": {}, "b": {"max_context_messages": 5}}, context_build_timeout_seconds=0.5)

    async def never(gatherer, target, options):
        await asyncio.sleep(600)

    async with roomlore.open("sqlite://", settings=settings, strategies={"never": Strategy(never)}) as lore:
        await lore.messages.add([said(1)])
        built = await lore.context.build("tea", "m1", strategy="never")
        assert built.degraded
        (arm,) = (await lore.usage.report()).arms
        assert (arm.arm, arm.degraded) == (built.arm, 1.0)
        assert arm.arm in ("a", "b")


async def test_an_export_holds_one_page_in_memory(lore):
    lore = lore.for_tenant(TENANT)
    await fill(lore.storage, [entry(1), entry(2), entry(3)])
    long = "x" * 20_000
    for start in range(0, 1_200, 100):
        batch = [usage_record(f"c{start + number:05}", llm_response=long) for number in range(100)]
        async with lore.storage.writing(lore.tenant) as work:
            await work.usage.record(records=batch)
    tracemalloc.start()
    try:
        count = 0
        async for _ in lore.usage.export():
            count += 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 1_200
    assert most < 1_200 * len(long) / 2


async def test_old_records_go(lore):
    clock = FrozenClock(NOW)
    begun = NOW - timedelta(days=10)
    records = [usage_record(f"c{n:04}", created_at=begun + timedelta(minutes=n)) for n in range(1_300)]
    async with lore.storage.writing(lore.tenant) as work:
        await work.usage.record(records=records)
        await work.of("other").usage.record(records=[replace(records[0], created_at=NOW), records[1]])
    expiry = UsageExpiry(backends(storage=lore.storage, clock=clock), days=10)
    await expiry.run()
    assert len(await lore.usage.page(limit=9_999)) == 1_300
    clock.advance(60 * 1_200)
    await expiry.run()
    service = UsageService(
        backends(storage=lore.storage, clock=clock),
        tenant=lore.tenant,
        recorder=UsageRecorder(storage=lore.storage, telemetry=lore.telemetry),
    )
    assert [one.context_id for one in await service.page(limit=9_999)] == [f"c{n:04}" for n in range(1_200, 1_300)]
    assert [one.context_id for one in await lore.for_tenant("other").usage.page()] == ["c0000"]
