"""What `Imports` must do."""

from roomlore.ports.storage import Storage
from roomlore.testing.builders import START
from roomlore.testing.contracts.filling import TENANT


class ImportsContract:
    async def test_the_last_position_saved_counts(self, storage: Storage) -> None:
        async with storage.writing() as work:
            await work.imports.save(tenant=TENANT, source="a.jsonl", position="10", now=START)
            await work.imports.save(tenant=TENANT, source="a.jsonl", position="20", now=START)
        async with storage.reading() as work:
            assert await work.imports.position(tenant=TENANT, source="a.jsonl") == "20"
            assert await work.imports.position(tenant=TENANT, source="b.jsonl") is None

    async def test_a_position_can_be_forgotten(self, storage: Storage) -> None:
        async with storage.writing() as work:
            await work.imports.save(tenant=TENANT, source="a.jsonl", position="10", now=START)
        async with storage.writing() as work:
            await work.imports.forget(tenant=TENANT, source="a.jsonl")
            await work.imports.forget(tenant=TENANT, source="never")
        async with storage.reading() as work:
            assert await work.imports.position(tenant=TENANT, source="a.jsonl") is None
