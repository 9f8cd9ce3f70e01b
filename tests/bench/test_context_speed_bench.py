"""The bench of contexts: what it times is what callers wait for, and nothing that runs behind it."""

from bench.context_speed import fill, ingested, quiet

import roomlore


async def test_no_links_are_made_anew_while_it_times(tmp_path):
    entries, linked = await ingested(30)
    url = f"sqlite:///{tmp_path / 'filled.db'}"
    await fill(url, entries, 60, linked)
    async with roomlore.open(url, settings=quiet(), background=False) as lore:
        assert [(room.messages, room.linked) for room in await lore.rooms.page()] == [(30, linked)] * 2
        assert linked.by
        assert [step async for step in lore.index.drain() if step.part == "links"] == []
