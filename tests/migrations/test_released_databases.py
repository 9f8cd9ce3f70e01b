"""A database that release 0.1.0 wrote is opened, read and written by what comes after it."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from schemas import schema_of
from test_built_databases import (  # noqa: F401 - the same checks as of an older build
    test_contexts_and_searches_find_what_was_said,
    test_it_goes_on,
    test_messages_are_there,
    test_rooms_people_and_records_are_there,
    test_the_session_is_there,
    test_what_was_added_before_is_a_duplicate,
)

import roomlore
from roomlore.storage import connect
from roomlore_testkit.embedding import HashEmbedder

HERE = Path(__file__).parent
RELEASES = ("0.1.0",)


@pytest.fixture(params=[f"{release} {engine}" for release in RELEASES for engine in ("sqlite", "postgres")])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    release, engine = request.param.split()
    if engine == "sqlite":
        (tmp_path / "built.db").write_bytes(gzip.decompress((HERE / f"built_{release}.db.gz").read_bytes()))
        return f"sqlite:///{tmp_path / 'built.db'}"
    empty = str(request.getfixturevalue("empty_postgres"))
    with psycopg.connect(empty) as connection:
        connection.execute((HERE / f"built_{release}.postgresql.sql").read_bytes())
    return empty


@pytest.fixture
async def lore(url: str) -> AsyncIterator[roomlore.Lore]:
    settings = roomlore.Settings(vectors="sql")
    async with roomlore.open(url, settings=settings, embedder=HashEmbedder(), background=False) as opened:
        assert (await opened.index.status()).words == "whole"
        yield opened


async def test_it_has_the_schema_of_a_new_one(url, request):
    await (await connect(url)).close()
    new = str(request.getfixturevalue("sqlite_url" if url.startswith("sqlite") else "postgres_url"))
    assert set(schema_of(url)) == set(schema_of(new))


async def test_it_is_sound(lore):
    report = await lore.privacy.verify()
    assert (report.faults, report.notes) == ((), ())
    assert (report.checked["memories"], report.checked["changes"], report.checked["messages"]) == (7, 10, 20)


async def test_memories_and_their_log_are_there(lore):
    kept = {one.statement for one in await lore.memories.page("user:ann")}
    assert kept == {"Ann drinks green tea", "喜欢在周一早上部署"}
    (meets,) = await lore.memories.page("group:tea")
    versions = [one.statement for one in await lore.memories.history(meets.memory_id)]
    assert versions == ["The team meets on Fridays", "团队每周四开会"]
    changes = await lore.memories.changes("group:tea")
    assert [change.action for change in changes[:4]] == ["create", "update", "create", "delete"]
    (evolution,) = await lore.memories.evolutions("group:tea")
    assert {change.undoes for change in changes[-2:]} == {evolution.evolution_id}
    assert (await lore.memories.as_of("group:tea", changes[0].at))[0].statement == "The team meets on Fridays"
    assert (await lore.memories.search("tea", "团队每周四开会")).hits[0].memory == meets
