"""Memories in SQL: which index is used, who waits for whom, and what the tables refuse."""

import asyncio
import re

import pytest
from plans import analyse, plan, without_statistics
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

from roomlore.storage import connect
from roomlore.storage.integrity import _FOUND_FROM, _LOG, _VERSIONS
from roomlore.storage.memories import (
    _BY_ID,
    _CITING,
    _COUNT,
    _FALLBACKS,
    _FALLBACKS_AFTER,
    _HEADS,
    _LINEAGE,
    _LINEAGES,
    _PAGE,
    _PAGE_BEFORE,
    _PAGE_FROM_END,
    _SHORT_OF_ROOM,
)
from roomlore.storage.memory_log import (
    _BY_NUMBER,
    _CHANGES,
    _CHANGES_SINCE,
    _KEYS,
    _LATEST,
    _LATEST_SINCE,
    _LOCK,
    _MARK,
    _NO_SUPPORT,
    _OF_EVOLUTION,
    _OF_LINEAGES,
    _OF_LINEAGES_BETWEEN,
    _OF_MEMORIES,
    _PAGE_AFTER,
    _TOUCHED,
    _TOUCHES,
)
from roomlore.storage.snapshots import _BETWEEN, _LAST, _NAMES, _SERVING
from roomlore.storage.work import _FIND, _MOVE
from roomlore_testkit import START, change, memory
from storage_contracts.memories import page
from storage_contracts.memory_log import SCOPE, apply, log, update
from storage_contracts.texts import TENANT

WALKS = {
    _PAGE: "ix_memories_scope",
    _COUNT: "ix_memories_scope",
    _HEADS: "uq_memories_head",
    _TOUCHED: "uq_memories_head",
    _FALLBACKS: "ix_memories_fallback",
    _FALLBACKS_AFTER: "ix_memories_fallback",
    _CHANGES_SINCE: "ix_memory_changes_at",
    _LATEST_SINCE: "ix_memory_changes_at",
    _VERSIONS: "ix_memories_scope",
    _OF_EVOLUTION: "ix_memory_changes_evolution",
    _OF_MEMORIES: "ix_memory_changes_memory",
    _OF_LINEAGES: "ix_memory_changes_memory",
    _PAGE_BEFORE: "ix_evolutions_scope",
    _PAGE_FROM_END: "ix_evolutions_scope",
}
ALONG_KEYS = (
    _BY_ID,
    _BY_NUMBER,
    _OF_LINEAGES_BETWEEN,
    _NAMES,
    _LAST,
    _BETWEEN,
    _SERVING,
    _LINEAGES,
    _LINEAGE,
    _CITING,
    _SHORT_OF_ROOM,
    _CHANGES,
    _KEYS,
    _LATEST,
    _LOCK,
    _MARK,
    _NO_SUPPORT,
    _PAGE_AFTER,
    _TOUCHES,
    _LOG,
    _FOUND_FROM,
)
MARKS = (_FIND, _MOVE)
TOO_MUCH = re.compile(
    r"""Seq\ Scan
    | BLOOM | AUTOMATIC
    | SCAN\ (memor|evolutions|watermarks)(?!ies\ USING\ INDEX\ ix_memories_fallback)
    | SEARCH\ memor\w+\ .*\(tenant=\?\)
    | Index\ Cond:\ \(tenant\ =\ \S+\)$""",
    re.VERBOSE | re.MULTILINE,
)
"""A whole table, or all of a tenant."""

_MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {many})"
_FILLING = (
    "INSERT INTO memory_scopes (scope_key, tenant, scope, changes, active, created_at) "
    + _MANY.format(many="{scopes}")
    + " SELECT i, 'acme', 'group:' || i, 20, 20, 0 FROM n",
    "INSERT INTO memories (memory_key, scope_key, tenant, memory_id, lineage_id, version, head, status, kind, "
    "statement, tags, category, strength, parents, sources, change_summary, made_by, fallback, created_at, updated_at, "
    "supported_at) "
    + _MANY.format(many="{memories}")
    + " SELECT i, (i - 1) / 20 + 1, 'acme', 'f' || i, 'f' || i, 1, {true}, 'active', 'fact', 'what is said', "
    "'[]', '', 1.0, '[]', '[]', '', 'caller', CASE WHEN i / 500 * 500 = i THEN {true} ELSE {false} END, i, i, i FROM n",
    "INSERT INTO memory_sources (tenant, room_id, message_id, memory_key) SELECT tenant, 'r' || scope_key, "
    "'m' || memory_key, memory_key FROM memories",
    "INSERT INTO memory_changes (scope_key, number, tenant, action, memory_id, memory, closes, reason, actor, at) "
    "SELECT scope_key, memory_key - (scope_key - 1) * 20, tenant, 'create', memory_id, '{{}}', '[]', '', 'caller', "
    "updated_at FROM memories",
    "INSERT INTO memory_snapshots (scope_key, number, tenant, at, reached_from, in_force) "
    "SELECT scope_key, number, tenant, at, at, '[]' FROM memory_changes",
)


def _engine(url: str):
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def _fill(url: str, scopes: int = 2_500) -> None:
    """20 memories in each scope, all of one tenant."""
    without_statistics(url)
    truth = {"true": "1", "false": "0"} if url.startswith("sqlite") else {"true": "true", "false": "false"}
    engine = _engine(url)
    with engine.begin() as connection:
        for statement in _FILLING:
            connection.exec_driver_sql(statement.format(scopes=scopes, memories=20 * scopes, **truth))
    engine.dispose()


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.mark.parametrize("analysed", [False, True])
def test_memories_are_found_along_indexes(url, analysed):
    _fill(url)
    if analysed:
        analyse(url)
    for statement, index in WALKS.items():
        assert index in plan(url, statement)
    for statement in (*WALKS, *ALONG_KEYS, *MARKS):
        found = plan(url, statement)
        assert not TOO_MUCH.search(found), found
    asyncio.run(_read_a_page(url))


@pytest.mark.parametrize("analysed", [False, True])
def test_a_page_finds_memories_by_their_keys_where_there_are_few(postgres_url, analysed):
    _fill(postgres_url, scopes=40)
    if analysed:
        analyse(postgres_url)
    found = plan(postgres_url, _PAGE)
    assert "Index Cond: (memory_key = " in found, found
    assert "Materialize" not in found, found


async def _read_a_page(url: str) -> None:
    storage = await connect(url)
    found = await page(storage, "group:77")
    await storage.close()
    assert [one.memory_id for one in found] == [f"f{n}" for n in range(1540, 1520, -1)]


@pytest.mark.parametrize(
    "damage", ["status = 'active'", "head = true", "head = true, status = 'active'", "version = 2"], ids=str
)
def test_the_tables_refuse_a_second_head(url, damage):
    asyncio.run(_update_once(url))
    engine = _engine(url)
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(text(f"UPDATE memories SET {damage} WHERE memory_id = 'a'"))
    engine.dispose()


async def _update_once(url: str) -> None:
    storage = await connect(url)
    await apply(storage, change(1, memory("a")), update(2, memory("a"), "a2"))
    await storage.close()


async def test_a_locked_scope_keeps_only_its_own_writers_waiting(postgres_url):
    storage = await connect(postgres_url)
    async with storage.writing(TENANT) as work:
        await work.memories.lock(scope=SCOPE, now=START)
        await work.memories.apply(scope=SCOPE, changes=[change(1, memory("a"))])
        late = asyncio.create_task(apply(storage, update(2, memory("a"), "a2")))
        async with asyncio.timeout(60):
            await apply(storage, change(1, memory("b", scope="user:bo")), scope="user:bo")
        assert not late.done()
        assert await log(storage) == []
    await late
    assert [one.number for one in await log(storage)] == [1, 2]
    await storage.close()
