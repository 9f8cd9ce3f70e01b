"""The short memories of a room stay few: the oldest are merged by a model, or retired without one."""

import pytest

import roomlore
from extraction_rig import CHINESE, ENGLISH, MODEL, Tongue, both, conversation, extracted, memories, opened, replies
from roomlore import Settings
from roomlore.core.memory.extraction import AT_ONCE, FOLDED, MAX_SHORT
from roomlore.core.memory.memory import Action
from roomlore_testkit.model_server import Asked, ModelServer


@pytest.fixture(autouse=True)
def _begins_at_once(monkeypatch) -> None:
    """A memory of each of sixty replies need not wait for the replies that may follow."""
    monkeypatch.setattr("roomlore.wiring.work._TOGETHER_SECONDS", 0)


def scripted(said: Tongue):
    def answer(asked: Asked) -> str:
        if "<memories>" in asked.prompt:
            return said.long * 2
        return f"{said.summary} {conversation(asked).splitlines()[0]}"

    return answer


async def changes(lore) -> list:
    async with lore.storage.reading("default") as work:
        return list(await work.memories.changes(scope="agent:bot", after=0, limit=1000))


@both
async def test_the_oldest_are_merged_into_a_longer_one(said):
    async with ModelServer(scripted(said)) as server, opened(server, extract_every=1) as lore:
        await replies(lore, said, MAX_SHORT)
        await replies(lore, said, 3, room="other")
        await extracted(lore)
        assert len(await memories(lore)) == MAX_SHORT + 3
        await replies(lore, said, 5, first=MAX_SHORT + 1)
        await extracted(lore)
        found = await memories(lore)
        (folded,) = [memory for memory in found if FOLDED in memory.tags]
        assert len(found) == MAX_SHORT + 3 + 5 - AT_ONCE + 1
        assert folded.statement == said.long * 2
        assert [source.message_id for source in folded.sources] == [
            name for n in range(1, AT_ONCE + 1) for name in (f"q{n}-bot", f"a{n}-bot")
        ]
        (merge,) = [change for change in await changes(lore) if change.action is Action.MERGE]
        assert len(merge.closes) == AT_ONCE
        (asked,) = [asked for asked in server.requests if "<memories>" in asked.prompt]
        assert asked.prompt.count(said.summary) == AT_ONCE
        async with lore.storage.reading("default") as work:
            (record,) = await work.memories.evolutions_by_id(evolution_ids=[merge.evolution_id])
        assert (record.prompt_name, record.model, record.raw_answer) == ("memory_fold", "first/tiny", folded.statement)
        history = await lore.memories.history(merge.closes[3])
        assert history


async def test_without_a_model_the_oldest_go_and_can_be_restored():
    given = Settings(models={MODEL: None}, durable_work="process", extract_every=1)
    async with roomlore.open("sqlite://", settings=given) as lore:
        await replies(lore, CHINESE, MAX_SHORT + 4)
        await extracted(lore)
        found = await memories(lore)
        assert len(found) == MAX_SHORT
        assert CHINESE.asks.format(5) in found[0].statement
        gone = [change for change in await changes(lore) if change.action is Action.DELETE]
        assert [change.reason != "" for change in gone] == [True] * 4
        await lore.memories.restore(gone[0].memory.memory_id)
        assert len(await memories(lore)) == MAX_SHORT + 1
        await replies(lore, CHINESE, 1, first=100)
        await extracted(lore)
        assert len(await memories(lore)) == MAX_SHORT


@pytest.mark.parametrize("answer", ["NO_MEMORY", "?"])
async def test_a_model_that_cannot_merge_them_is_as_good_as_none(answer):
    def answered(asked: Asked) -> str:
        return answer if "<memories>" in asked.prompt else ENGLISH.summary

    async with ModelServer(answered) as server, opened(server, extract_every=1) as lore:
        await replies(lore, ENGLISH, MAX_SHORT + 1)
        await extracted(lore)
        assert len(await memories(lore)) == MAX_SHORT
