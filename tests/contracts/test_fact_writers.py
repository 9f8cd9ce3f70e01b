"""Facts with several writers, on every engine: nothing is lost, nothing is twice, and the log gives the tables back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from random import Random

import pytest

import roomlore
from roomlore import Conflict, Lore, Memory, MemoryStatus, NewMemory, Source
from roomlore.core.memory.log import active, replay
from roomlore.core.memory.memory import MemoryKind
from roomlore.core.memory.writing import normal

ANNA = "user:anna"
STATEMENTS = ("likes tea", "LIKES  tea", "喜欢喝茶", "喜欢喝茶 ", "👋🏽 e\u0301", "a\x00b", "\ud800 lone", "\x1a0 \\")


@pytest.fixture
async def writers(storage_url: str) -> AsyncIterator[list[Lore]]:
    """Two that share nothing but the database; a database in memory has one."""
    async with AsyncExitStack() as opened:
        count = 1 if storage_url == "sqlite://" else 2
        lores = [await opened.enter_async_context(roomlore.open(storage_url, background=False)) for _ in range(count)]
        yield [lores[0], lores[-1]]


async def outcomes(*work):
    return await asyncio.gather(*work, return_exceptions=True)


async def check(lore: Lore, *scopes: str) -> None:
    """The log has no gap, and replaying it gives the tables; no two facts in force say the same."""
    for scope in scopes:
        log = await lore.memories.changes(scope, limit=9_999)
        assert [one.number for one in log] == list(range(1, len(log) + 1))
        versions = replay(log)
        async with lore.storage.reading(lore.tenant) as work:
            stored = await work.memories.by_id(memory_ids=list(versions))
            held = await work.memories.scope(scope=scope)
        assert {one.memory_id: one for one in stored} == versions
        found = await lore.memories.page(scope, limit=9_999)
        assert sorted(one.memory_id for one in found) == sorted(one.memory_id for one in active(versions))
        said = [(one.kind, normal(one.statement), tuple(each.room_id for each in one.evidence)) for one in found]
        assert len(said) == len(set(said))
        assert held is None or (held.changes, held.active) == (len(log), len(found))


async def test_of_two_that_saw_the_same_one_wins(writers):
    one, two = writers
    fact = await one.memories.add(ANNA, "tea", confidence=0.5)
    seen = {"expected": fact.memory_id}
    done = await outcomes(
        one.memories.update(fact.memory_id, confidence=0, **seen),
        two.memories.update(fact.memory_id, statement="乌龙茶", **seen),
        one.memories.delete(fact.memory_id, **seen),
    )
    assert [type(each) for each in done if not isinstance(each, Memory)] == [Conflict, Conflict]
    assert len(await two.memories.changes(ANNA)) == 2
    await check(two, ANNA)


async def test_those_that_saw_nothing_go_on_from_each_other(writers):
    one, two = writers
    fact = await one.memories.add(ANNA, "tea", confidence=0.5)
    done = await outcomes(
        *(writer.memories.update(fact.memory_id, tags=[str(n)]) for n, writer in enumerate(writers * 3)),
        one.memories.update(fact.memory_id, confidence=0),
        two.memories.update(fact.memory_id, category="饮料"),
    )
    assert [each for each in done if not isinstance(each, Memory)] == []
    head = await two.memories.head(fact.memory_id)
    assert (head.version, head.confidence, head.category) == (9, 0.0, "饮料")
    await check(two, ANNA)


async def test_of_many_adders_one_adds(writers):
    done = await outcomes(
        *(writer.memories.add(ANNA, text) for text in ("喜欢茶", "喜欢茶 ") for writer in writers * 2)
    )
    assert len({each.memory_id for each in done}) == 1
    await check(writers[1], ANNA)


async def test_an_id_goes_to_one_scope(writers):
    """No lock holds an id across scopes: the table does."""
    done = await outcomes(
        *(writer.memories.add(f"user:{n}", f"fact {n}", memory_id="same") for n, writer in enumerate(writers * 4))
    )
    made = [each for each in done if isinstance(each, Memory)]
    assert [type(each) for each in done if each not in made] == [Conflict] * 7
    [there] = made
    assert await writers[0].memories.get("same") == there
    await check(writers[0], *(f"user:{n}" for n in range(8)))


async def test_an_id_that_went_elsewhere_meanwhile_is_reported(writers):
    batches = [[NewMemory(scope=f"user:{n}", statement=f"fact {n}", memory_id="same")] for n in range(8)]
    done = await outcomes(
        *(
            writer.memories.add_all(batch, on_conflict="report")
            for writer, batch in zip(writers * 4, batches, strict=True)
        )
    )
    assert sorted(one.outcome for [one] in done) == ["added", *["conflict"] * 7]


async def test_batches_over_several_scopes_do_not_wait_for_each_other_in_a_ring(writers):
    scopes = ["user:c", "agent:b", "group:a"]
    batches = [
        [NewMemory(scope=scope, statement=f"{n} {place}") for place, scope in enumerate(order)]
        for n, order in enumerate((scopes, scopes[::-1], scopes, scopes[::-1]))
    ]
    done = await asyncio.wait_for(
        outcomes(*(writer.memories.add_all(batch) for writer, batch in zip(writers * 2, batches, strict=True))), 20
    )
    assert [[one.outcome for one in each] for each in done] == [["added"] * 3] * 4
    await check(writers[1], *scopes)


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_happens_the_log_gives_the_tables_back(writers, seed):
    """Adds, updates, deletes and imports by chance, three at a time."""
    rng, scopes = Random(seed), ["user:a", "agent:部"]
    ids: list[str] = ["nowhere"]

    await writers[0].messages.add([roomlore.Message(id=f"m{n}", room_id="room", sender_id="u") for n in range(3)])

    def step():
        writer = rng.choice(writers)
        statement, scope = rng.choice(STATEMENTS), rng.choice(scopes)
        confidence, named = rng.choice([None, 0, 0.5, 1]), rng.choice(ids)
        sources = [Source("room", f"m{n}") for n in range(rng.randrange(3))]
        keeper, own = writer.memories, f"own {rng.randrange(4)}"
        expected, ending = rng.choice([None, None, named]), rng.randrange(3)
        document = {"facts": [{"id": str(ending), "content": statement}]}
        steps = [
            lambda: keeper.add(scope, statement, confidence=confidence, sources=sources),
            lambda: keeper.add(scope, statement, memory_id=own, kind=MemoryKind.GROUP),
            lambda: keeper.update(named, confidence=confidence, expected=expected),
            lambda: keeper.update(named, statement=f"{statement}{ending}", sources=sources),
            lambda: keeper.delete(named, "why"),
            lambda: keeper.import_facts(document, scope=scope),
        ]
        return rng.choice(steps)()

    for _ in range(12):
        done = await outcomes(*(step() for _ in range(3)))
        assert [
            each for each in done if isinstance(each, Exception) and not isinstance(each, roomlore.RoomloreError)
        ] == []
        ids += [each.memory_id for each in done if isinstance(each, Memory)]
    assert len(ids) > 5
    await check(writers[0], *scopes)
    await check(writers[1], *scopes)
    for memory_id in ids[1:]:
        history = await writers[0].memories.history(memory_id)
        assert [one.version for one in history] == list(range(1, len(history) + 1))
        assert sum(one.status is MemoryStatus.ACTIVE for one in history) <= 1
