"""Quotas of tenants: what is counted, what is refused, and what a refusal says."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

import roomlore
from roomlore.core import quotas as core
from roomlore.core.errors import ModelUnavailable, QuotaExceeded, StorageUnavailable, TokensExceeded
from roomlore.services.quotas import OTHERS, QuotaKeeper
from roomlore_testkit import FrozenClock, backends

NOON = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/a.db" if request.param == "sqlite" else request.getfixturevalue("empty_postgres")


def said(name, room="team"):
    return roomlore.Message(id=name, room_id=room, sender_id="ann", text=f"The deploy of {name} is done.")


def opened(url, **limits):
    return roomlore.open(url, settings=roomlore.Settings(**limits), background=False)


def keeper(lore, clock, **limits):
    return QuotaKeeper(
        backends(storage=lore.storage, clock=clock, telemetry=lore.telemetry), usual=core.Quotas(**limits)
    )


async def test_messages_of_a_day_are_limited_and_the_refusal_says_what_to_do(url):
    async with opened(url, quota_messages_a_day=3) as lore:
        await lore.messages.add([said("a"), said("b")])
        with pytest.raises(QuotaExceeded) as refused:
            await lore.messages.add([said("c"), said("d")])
        assert (refused.value.limit, refused.value.used, refused.value.most) == ("messages_a_day", 2, 3)
        text = str(refused.value)
        for part in ("2 of the 3 messages", "messages_a_day", "2 more", "reset at", "roomlore tenants limit"):
            assert part in text
        assert 0 < refused.value.wait_seconds <= 86_400
        assert [one.id for one in await lore.messages.page("team")] == ["a", "b"], "a refused batch adds nothing"
        await lore.messages.add(said("c"))
        assert (await lore.messages.add(said("a"))).duplicates == ("a",), "what is stored already counts for nothing"
        other = lore.for_tenant("other")
        await other.messages.add([said("a"), said("b"), said("c")])


async def test_what_was_counted_survives_a_restart_and_is_shared_by_processes(url):
    async with opened(url, quota_messages_a_day=4) as first, opened(url, quota_messages_a_day=4) as second:
        await first.messages.add(said("a"))
        await second.messages.add([said("b"), said("c")])
    async with opened(url, quota_messages_a_day=4) as third:
        await third.messages.add(said("d"))
        with pytest.raises(QuotaExceeded):
            await third.messages.add(said("e"))


async def test_writers_at_once_never_pass_the_limit(url):
    async with opened(url, quota_messages_a_day=10) as first, opened(url, quota_messages_a_day=10) as second:
        adds = [
            lore.messages.add(said(f"{name}-{number}", room=f"room-{number % 4}"))
            for name, lore in (("one", first), ("two", second))
            for number in range(12)
        ]
        ended = await asyncio.gather(*adds, return_exceptions=True)
        refused = [one for one in ended if isinstance(one, QuotaExceeded)]
        assert len(refused) == 14
        rooms = await first.rooms.page()
        assert sum(room.messages for room in rooms) == 10


def exported(path, count):
    lines = [
        {"id": f"m{number}", "room_id": f"room-{number % 3}", "sender_id": "ann", "text": f"说到第 {number} 条 and on"}
        for number in range(count)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


async def stored(lore):
    return {message.id async for message in lore.messages.export()}


async def test_an_import_stores_what_the_quota_allows_and_goes_on_after_it_was_raised(url, tmp_path):
    path = exported(tmp_path / "a.jsonl", 25)
    async with opened(url, quota_messages_a_day=10, max_batch_messages=8) as lore:
        with pytest.raises(QuotaExceeded) as refused:
            await lore.imports.run(path)
        text = str(refused.value)
        for part in ("limit of 10 messages", "It added 10 messages, which stay", "Import the same after", "UTC"):
            assert part in text
        assert "fewer at a time" not in text
        assert (refused.value.limit, refused.value.most) == ("messages_a_day", 10)
        assert refused.value.wait_seconds > 0
        assert await stored(lore) == {f"m{number}" for number in range(10)}
        with pytest.raises(QuotaExceeded, match="It added 0 messages"):
            await lore.imports.run(path)
        await lore.quotas.set(messages_a_day=100)
        report = await lore.imports.run(path)
        assert (report.resumed, report.added, report.duplicates) == (True, 15, 2), (
            "the last whole batch is not read again"
        )
        assert len(await stored(lore)) == 25


async def test_a_batch_larger_than_the_quota_of_a_day_is_imported_day_by_day(url, tmp_path):
    path = exported(tmp_path / "a.jsonl", 12)
    async with opened(url, quota_messages_a_day=5) as lore:
        with pytest.raises(QuotaExceeded, match="It added 5 messages"):
            await lore.imports.run(path)
        await lore.quotas.set(messages_a_day=10)  # as of another day
        with pytest.raises(QuotaExceeded, match="It added 5 messages"):
            await lore.imports.run(path)
        await lore.quotas.set(messages_a_day=15)
        report = await lore.imports.run(path)
        assert (report.added, report.duplicates) == (2, 10)


async def test_an_import_of_messages_that_are_stored_already_takes_the_last_free_place(url, tmp_path):
    """A regression: it tried as many places at a time as were free, a thousand times inside each other."""
    async with opened(url, quota_messages_kept=1_199) as lore:
        await lore.imports.run(exported(tmp_path / "a.jsonl", 1_198))
        with pytest.raises(QuotaExceeded, match="It added 1 messages"):
            await lore.imports.run(exported(tmp_path / "b.jsonl", 1_200))
        assert len(await stored(lore)) == 1_199


async def test_an_import_says_that_messages_must_go_where_time_does_not_help(url, tmp_path):
    async with opened(url, quota_messages_kept=4) as lore:
        with pytest.raises(QuotaExceeded, match="Import the same after messages were deleted or archived"):
            await lore.imports.run(exported(tmp_path / "a.jsonl", 9))
        assert len(await stored(lore)) == 4


async def test_the_messages_kept_are_limited_until_some_are_deleted(url):
    async with opened(url, quota_messages_kept=3) as lore:
        await lore.messages.add([said("a"), said("b"), said("c")])
        with pytest.raises(QuotaExceeded) as refused:
            await lore.messages.add(said("d"))
        assert refused.value.limit == "messages_kept"
        assert refused.value.wait_seconds is None
        assert "Delete or archive messages" in str(refused.value)
        await lore.messages.delete("team", "a")
        await lore.messages.add(said("d"))


async def test_a_tenant_has_limits_of_its_own(url):
    async with opened(url, quota_messages_a_day=1) as lore:
        assert await lore.quotas.set(messages_a_day=None, requests_a_minute=5) == {
            "messages_a_day": None,
            "requests_a_minute": 5,
        }
        await lore.messages.add([said("a"), said("b")])
        shown = {one.limit: (one.used, one.most, one.own) for one in await lore.quotas.standing()}
        assert shown["messages_a_day"] == (None, None, True)
        assert shown["requests_a_minute"] == (0, 5, True)
        with pytest.raises(QuotaExceeded):
            await lore.for_tenant("other").messages.add([said("a"), said("b")])
        assert await lore.quotas.reset(["messages_a_day"]) == {"requests_a_minute": 5}
        with pytest.raises(QuotaExceeded):
            await lore.messages.add([said("c"), said("d")])
        assert await lore.quotas.reset() == {}
        assert await lore.quotas.tenants() == ["default"]


@pytest.mark.parametrize("wrong", [{"messages": 1}, {"messages_a_day": -1}, {"messages_a_day": True}])
async def test_a_limit_that_is_none_is_refused(wrong):
    async with opened("sqlite://") as lore:
        with pytest.raises(roomlore.InvalidInput):
            await lore.quotas.set(**wrong)


async def test_limits_that_are_set_at_once_are_all_kept(url):
    async with opened(url) as lore:
        await asyncio.gather(
            *(lore.quotas.set(**{name: number}) for number, name in enumerate(core.LIMITS, start=1)),
        )
        assert await lore.quotas.own() == {name: number for number, name in enumerate(core.LIMITS, start=1)}


async def test_requests_of_a_minute_are_limited_over_processes_and_begin_anew(url):
    clock = FrozenClock(NOON)
    async with opened(url) as lore:
        one, two = (keeper(lore, clock, requests_a_minute=200) for _ in range(2))
        admitted = 0
        for _ in range(200):
            for process in (one, two):
                try:
                    await process.admit("team")
                except QuotaExceeded:
                    continue
                admitted += 1
        assert admitted == 200
        with pytest.raises(QuotaExceeded) as refused:
            await one.admit("team")
        assert refused.value.wait_seconds == 30
        clock.advance(30)
        await one.admit("team")


async def test_requests_seldom_ask_the_database(url, monkeypatch):
    clock = FrozenClock(NOON)
    async with opened(url) as lore:
        kept = keeper(lore, clock, requests_a_minute=5_000)
        await kept.admit("team")
        monkeypatch.setattr(lore.storage, "writing", None)
        monkeypatch.setattr(lore.storage, "reading", None)
        for _ in range(99):
            await kept.admit("team")


async def test_what_an_outage_keeps_from_being_counted_is_logged_once_a_minute(monkeypatch, caplog):
    def down(**_):
        raise StorageUnavailable("The database does not answer.")

    clock = FrozenClock(NOON)
    async with opened("sqlite://") as lore:
        kept = keeper(lore, clock, requests_a_minute=10, messages_a_day=10, model_tokens_a_day=10)
        monkeypatch.setattr(lore.storage, "reading", down)
        monkeypatch.setattr(lore.storage, "writing", down)

        async def logged():
            caplog.clear()
            for tenant in ("team", "other"):
                await kept.admit(tenant)
                await kept.check(tenant)
                await kept.charge_tokens(tenant, 5)
            return [one.message for one in caplog.records if one.name == "roomlore.services.quotas"]

        warnings = ["requests are not counted", "quotas are not checked", "tokens of models are counted later"]
        assert await logged() == warnings
        clock.advance(59)
        assert await logged() == []
        clock.advance(1)
        assert await logged() == warnings


async def test_a_day_begins_anew(url):
    clock = FrozenClock(NOON)
    async with opened(url) as lore:
        kept = keeper(lore, clock, model_tokens_a_day=100)
        await kept.charge_tokens("team", 100)
        with pytest.raises(TokensExceeded) as refused:
            await kept.check_tokens("team")
        assert isinstance(refused.value, ModelUnavailable), "what does without a model does so"
        assert refused.value.resets_at == datetime(2026, 5, 2, tzinfo=UTC)
        clock.advance(12 * 3600)
        await kept.check_tokens("team")
        await kept.charge_tokens("team", 40)
        (told,) = [one for one in await kept.standings("team") if one.limit == "model_tokens_a_day"]
        assert told.used == 40


async def test_the_metrics_name_a_hundred_tenants_at_most():
    clock = FrozenClock(NOON)
    async with opened("sqlite://") as lore:
        kept = keeper(lore, clock, requests_a_minute=0)
        for number in range(120):
            with pytest.raises(QuotaExceeded):
                await kept.admit(f"tenant-{number}")
        refusals = {labels["tenant"]: value for labels, value in lore.series("roomlore_quota_refusals_total")}
        assert len(refusals) == 101
        assert refusals[OTHERS] == 20
        limits = lore.series("roomlore_quota_limit")
        assert len(limits) == 100
        assert limits[0][0] == {"tenant": "tenant-0", "limit": "requests_a_minute"}
