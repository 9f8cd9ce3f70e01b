"""Memories as the library and the command line show them."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

import roomlore
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.memory.memory import Action
from roomlore.storage import Storage
from roomlore.surfaces.cli.app import app
from roomlore_testkit.builders import START, change, memory
from roomlore_testkit.case_table import all_cases

BOT = "agent:bot"


def run(*arguments: str, code: int = 0):
    result = CliRunner().invoke(app, ["--db", "tea.db", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


async def remember(storage: Storage, *, tenant: str = "default") -> None:
    """A memory of the bot in two versions, and one that has gone."""
    first = memory("m1", scope=BOT, statement="喜欢绿茶")
    second = memory("m2", scope=BOT, statement="Anna prefers green tea", lineage_id="m1", version=2, parents=("m1",))
    gone = memory("g1", scope=BOT, statement="rain")
    changes = [
        change(1, first),
        change(2, second, action=Action.UPDATE, closes=("m1",)),
        change(3, gone),
    ]
    async with storage.writing(tenant) as work:
        await work.memories.lock(scope=BOT, now=START)
        await work.memories.apply(scope=BOT, changes=changes)


@pytest.fixture
async def lore():
    async with roomlore.open("tea.db", background=False) as opened:
        await remember(opened.storage)
        yield opened


async def test_a_scope_shows_the_newest_versions(lore):
    assert {one.memory_id for one in await lore.memories.page(BOT)} == {"m2", "g1"}
    assert await lore.memories.page(BOT, status="deprecated") == []
    assert await lore.memories.page("agent:other") == []
    assert [one.memory_id for one in await lore.memories.page(BOT, limit=1, offset=1)] == ["g1"]
    assert await lore.memories.page(BOT, kinds=["group"]) == []


async def test_a_history_has_every_version(lore):
    for known in ("m1", "m2"):
        assert [one.memory_id for one in await lore.memories.history(known)] == ["m1", "m2"]
    assert (await lore.memories.get("m1")).statement == "喜欢绿茶"
    assert [one.number for one in await lore.memories.changes(BOT, after=1)] == [2, 3]


async def test_another_tenant_sees_nothing(lore):
    other = lore.for_tenant("other")
    assert await other.memories.page(BOT, status="all") == []
    assert await other.memories.changes(BOT) == []
    for asked in (other.memories.get("m1"), other.memories.history("m1"), other.memories.evolution("m1")):
        with pytest.raises(NotFound):
            await asked


NOT_TO_BE_ASKED = [
    ({"scope": "bot"}, "agent:<id>"),
    ({"scope": BOT, "status": "old"}, "active, ended, deprecated, all"),
    ({"scope": BOT, "kinds": ["long"]}, "short, fact, group"),
    ({"scope": BOT, "limit": 0}, "limit"),
]


async def test_what_cannot_be_asked_for_says_what_can(lore):
    with all_cases() as case:
        for asked, said in NOT_TO_BE_ASKED:
            with case(asked), pytest.raises(InvalidInput, match=said):
                await lore.memories.page(**asked)


def test_memories_on_the_command_line():
    async def make():
        async with roomlore.open("tea.db", background=False) as opened:
            await remember(opened.storage)

    asyncio.run(make())
    assert "Anna prefers green tea" in run("memory", "list", BOT).stdout
    assert {one["memory_id"] for one in json.loads(run("memory", "list", BOT, "--json").stdout)} == {"m2", "g1"}
    assert "喜欢绿茶" in run("memory", "history", "m2").stdout
    assert "Nothing is remembered" in run("memory", "list", "user:anna").stdout
    assert "There is no memory" in run("memory", "history", "nowhere", code=1).stderr
