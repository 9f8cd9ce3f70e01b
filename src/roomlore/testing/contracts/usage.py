"""What `Usage` must do."""

from dataclasses import replace

from roomlore.ports.storage import Storage
from roomlore.testing.builders import usage_record
from roomlore.testing.contracts.filling import TENANT


class UsageContract:
    async def test_a_record_comes_back(self, storage: Storage) -> None:
        plain = usage_record("c1")
        full = usage_record(
            "c2", degraded="slow", arm="b", llm_response="yes", user_feedback="好", success_indicator=0.1 + 0.2
        )
        async with storage.writing() as work:
            await work.usage.record(tenant=TENANT, records=[plain, full])
        async with storage.reading() as work:
            assert await work.usage.find(tenant=TENANT, context_id="c1") == plain
            assert await work.usage.find(tenant=TENANT, context_id="c2") == full
            assert await work.usage.find(tenant=TENANT, context_id="c3") is None

    async def test_a_repeated_record_changes_nothing(self, storage: Storage) -> None:
        async with storage.writing() as work:
            await work.usage.record(tenant=TENANT, records=[usage_record("c1", tokens=1)])
            await work.usage.record(tenant=TENANT, records=[usage_record("c1", tokens=2), usage_record("c2")])
            await work.usage.record(tenant=TENANT, records=[])
        async with storage.reading() as work:
            found = await work.usage.page(tenant=TENANT, room_id=None, judged=False, after=None, limit=9)
        assert found == [usage_record("c1", tokens=1), usage_record("c2")]

    async def test_answers_and_feedback_are_noted(self, storage: Storage) -> None:
        async with storage.writing() as work:
            await work.usage.record(tenant=TENANT, records=[usage_record("c1")])
        async with storage.writing() as work:
            assert await work.usage.respond(tenant=TENANT, context_id="c1", llm_response="an answer")
            assert await work.usage.judge(tenant=TENANT, context_id="c1", feedback="good", score=None)
            assert await work.usage.judge(tenant=TENANT, context_id="c1", feedback=None, score=0.0)
        async with storage.reading() as work:
            found = await work.usage.find(tenant=TENANT, context_id="c1")
        noted = replace(usage_record("c1"), llm_response="an answer", user_feedback="good", success_indicator=0.0)
        assert found == noted

    async def test_an_unknown_record_takes_no_notes(self, storage: Storage) -> None:
        async with storage.writing() as work:
            assert not await work.usage.respond(tenant=TENANT, context_id="c1", llm_response="x")
            assert not await work.usage.judge(tenant=TENANT, context_id="c1", feedback="x", score=1.0)

    async def test_pages_by_room_judgement_and_place(self, storage: Storage) -> None:
        records = [
            usage_record(f"c{n}", room_id="ab"[n % 2], success_indicator=0.0 if n > 3 else None) for n in range(6)
        ]
        async with storage.writing() as work:
            await work.usage.record(tenant=TENANT, records=list(reversed(records)))

        async def ids(room_id: str | None, judged: bool, after: str | None, limit: int) -> list[str]:
            async with storage.reading() as work:
                found = await work.usage.page(tenant=TENANT, room_id=room_id, judged=judged, after=after, limit=limit)
            return [record.context_id for record in found]

        assert await ids(None, False, None, 4) == ["c0", "c1", "c2", "c3"]
        assert await ids(None, False, "c3", 4) == ["c4", "c5"]
        assert await ids("a", False, "c0", 9) == ["c2", "c4"]
        assert await ids(None, True, None, 9) == ["c4", "c5"]
        assert await ids("b", True, None, 9) == ["c5"]
