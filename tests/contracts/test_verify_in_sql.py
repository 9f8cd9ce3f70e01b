"""Every check of `verify` on every backend: sound where all is well, and told where a row was damaged by hand."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from roomlore.adapters.sql import SqlStorage
from roomlore.core.memory.models import Action, Change, Memory, MemoryStatus, Source
from roomlore.core.soundness.report import VerifyReport
from roomlore.services.privacy.verify import Verifier
from roomlore.services.privacy.verify_indexes import IndexChecks
from roomlore.testing import START, FrozenClock, change, entry, evolution, memory
from roomlore.testing.contracts.filling import ROOM, TENANT, erase, fill

SCOPE, GROUP = "user:ann", "group:茶"
GONE = MemoryStatus.DEPRECATED
CITED = (Source(ROOM, "m1"), Source(ROOM, "m2"))


def following(old: Memory, memory_id: str, version: int, **fields: Any) -> Memory:
    return replace(old, memory_id=memory_id, version=version, parents=(old.memory_id,), **fields)


def story(scope: str, prefix: str) -> list[Change]:
    """Two memories, one of them changed and then merged into the other, and one that is deleted."""
    a = memory(f"{prefix}a", scope=scope, statement="安妮喝绿茶", sources=CITED, evolution_id="e1")
    b, c = memory(f"{prefix}b", scope=scope), memory(f"{prefix}c", scope=scope)
    a2 = following(a, f"{prefix}a2", 2, statement="安妮只喝绿茶")
    both = replace(following(b, f"{prefix}b2", 2), parents=(b.memory_id, a2.memory_id))
    steps = [
        (Action.CREATE, a, ()),
        (Action.CREATE, b, ()),
        (Action.CREATE, c, ()),
        (Action.UPDATE, a2, (a.memory_id,)),
        (Action.MERGE, both, (b.memory_id, a2.memory_id)),
        (Action.DELETE, replace(c, status=GONE), ()),
    ]
    return [
        change(number, made, action=action, closes=closes, evolution_id="e1" if number == 1 else None)
        for number, (action, made, closes) in enumerate(steps, start=1)
    ]


async def write(storage: SqlStorage, scope: str, changes: Sequence[Change], *, tenant: str = TENANT) -> None:
    async with storage.writing() as work:
        await work.memory_log.lock(tenant=tenant, scope=scope, now=START)
        await work.memory_log.apply(tenant=tenant, scope=scope, changes=changes)


async def damage(storage: SqlStorage, sql: str) -> None:
    async with storage.writing() as work:
        for statement in sql.split("; "):
            await work.connection.run(statement)


async def verify(storage: SqlStorage, scope: str | None = None) -> VerifyReport:
    indexes = IndexChecks(storage=storage, vectors=None)
    return await Verifier(storage=storage, clock=FrozenClock(), indexes=indexes).verify(
        tenant=TENANT, scope=scope, progress=None
    )


@pytest.fixture
async def filled(storage: SqlStorage) -> AsyncIterator[SqlStorage]:
    await fill(storage, [entry(1), entry(2), entry(3)])
    async with storage.writing() as work:
        await work.evolutions.add(tenant=TENANT, evolution=evolution("e1"))
        await work.watermarks.move(tenant=TENANT, room_id=ROOM, name="evolution", arrival=3, was=0, now=START)
    await write(storage, SCOPE, story(SCOPE, "u"))
    await write(storage, GROUP, story(GROUP, "g"))
    return storage


async def test_what_was_written_in_order_is_sound(filled):
    report = await verify(filled)
    assert report.sound
    assert report.faults == ()
    assert report.checked == {"scopes": 2, "memories": 10, "changes": 12, "sources": 8, "evolutions": 2}
    assert [note.where for note in report.notes] == ["vectors"]


async def test_one_scope_alone_and_other_tenants(filled):
    await write(filled, SCOPE, story(SCOPE, "u"), tenant="other")
    await damage(filled, "UPDATE memories SET statement = 'x' WHERE tenant = 'other'")
    await damage(filled, "UPDATE memories SET statement = 'x' WHERE memory_id = 'ga'")
    assert (await verify(filled, SCOPE)).checked["scopes"] == 1
    assert (await verify(filled, SCOPE)).sound
    assert (await verify(filled, "user:nobody")).checked == {}
    assert (await verify(filled)).counts == {"log and tables": 1}


DAMAGE = {
    "a changed word": ("UPDATE memories SET statement = 'x' WHERE memory_id = 'ua'", "log and tables", "statement"),
    "a changed strength": ("UPDATE memories SET strength = 0.25 WHERE memory_id = 'ub2'", "log and tables", "strength"),
    "a changed log": (
        "UPDATE memory_changes SET memory = replace(memory, '\"strength\":1.0', '\"strength\":0.5') WHERE number = 2",
        "log and tables",
        "strength",
    ),
    "a lost version": ("DELETE FROM memories WHERE memory_id = 'ua'", "versions", "2, not 1"),
    "a lost lineage": ("DELETE FROM memories WHERE memory_id = 'uc'", "log and tables", "the table does not"),
    "a lost parent": ("DELETE FROM memories WHERE memory_id = 'ua'", "parents", "ua is not there"),
    "a row from elsewhere": (
        "UPDATE memories SET lineage_id = 'zz', memory_id = 'zz' WHERE memory_id = 'uc'",
        "log and tables",
        "the log does not",
    ),
    "no head": ("UPDATE memories SET head = FALSE WHERE memory_id = 'uc'", "head", "0 heads"),
    "another head": (
        "UPDATE memories SET head = FALSE, status = 'deprecated' WHERE lineage_id = 'ub'; "
        "UPDATE memories SET head = TRUE WHERE memory_id = 'ub'",
        "head",
        "by the log ub2",
    ),
    "a deleted memory that lives": (
        "UPDATE memories SET status = 'active' WHERE memory_id = 'uc'",
        "counters",
        "there are 2",
    ),
    "not merged": ("UPDATE memories SET merged_into = NULL WHERE memory_id = 'ua2'", "merged into", "into ub"),
    "merged elsewhere": ("UPDATE memories SET merged_into = 'uc' WHERE memory_id = 'ua2'", "merged into", "into uc"),
    "a gap in the log": ("DELETE FROM memory_changes WHERE number = 2", "log gap", "follows number 1"),
    "a log cut short": ("DELETE FROM memory_changes WHERE number = 6", "counters", "there are 5"),
    "a wrong count of changes": ("UPDATE memory_scopes SET changes = 9", "counters", "says 9; there are 6"),
    "a wrong count of memories": ("UPDATE memory_scopes SET active = 4", "counters", "says 4; there are 1"),
    "a lost record": ("DELETE FROM evolutions", "evolutions", "e1 is not there"),
    "lost support": ("DELETE FROM memory_sources WHERE message_id = 'm2'", "support", "is not found from message m2"),
    "wrong support": (
        "INSERT INTO memory_sources (tenant, room_id, message_id, memory_key)"
        " SELECT tenant, 'room', 'm2', memory_key FROM memories WHERE memory_id = 'uc'",
        "support",
        "is found from message m2",
    ),
    "a mark beyond the end": ("UPDATE watermarks SET arrival = 4", "watermarks", "stands at 4; the room ends at 3"),
    "a mark of no room": ("UPDATE watermarks SET room_id = 'gone'", "watermarks", "ends at 0"),
    "an unknown kind": ("UPDATE memories SET kind = 'magic' WHERE memory_id = 'ua'", "unreadable", "magic"),
    "rubbish in the log": ("UPDATE memory_changes SET memory = '{' WHERE number = 3", "unreadable", "JSON"),
    "rubbish among sources": ("UPDATE memories SET sources = '[' WHERE memory_id = 'ua'", "unreadable", ""),
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_damage_is_named(filled, name):
    sql, check, told = DAMAGE[name]
    await damage(filled, sql)
    report = await verify(filled)
    assert not report.sound
    mine = [fault for fault in report.faults if fault.check == check]
    assert mine, report.faults
    assert any(told in fault.found for fault in mine)
    assert all(fault.mend for fault in mine)
    assert report.counts[check] == len(mine)


async def test_several_active_versions_are_named(filled):
    """The database holds to one head alone; an active version that is no head is what it refuses, unless it is told
    otherwise by somebody who takes its checks away."""
    async with filled.writing() as work:
        if work.connection.dialect.name == "sqlite":
            await work.connection.run("PRAGMA ignore_check_constraints = ON")
        else:
            await work.connection.run("ALTER TABLE memories DROP CONSTRAINT ck_memories_active_is_head")
        await work.connection.run("UPDATE memories SET status = 'active' WHERE memory_id = 'ub'")
    assert (await verify(filled)).counts["active"] == 1


async def test_evidence_that_is_gone_is_a_note(filled):
    await erase(filled, 2)
    await damage(filled, "UPDATE memory_sources SET message_id = 'm9' WHERE message_id = 'm1'")
    for table in ("memories", "memory_changes"):
        column = "sources" if table == "memories" else "memory"
        await damage(filled, f"UPDATE {table} SET {column} = replace({column}, 'm1', 'm9')")
    report = await verify(filled)
    assert report.sound
    notes = [note.found for note in report.notes if note.where == f"scope {SCOPE}"]
    assert any("deleted" in note for note in notes)
    assert any("unknown" in note for note in notes)


async def test_an_evolution_without_its_changes_is_a_note(filled):
    async with filled.writing() as work:
        await work.evolutions.add(tenant=TENANT, evolution=replace(evolution("e2"), started_at=START + timedelta(1)))
    report = await verify(filled)
    assert report.sound
    assert any("e2 was applied" in note.found for note in report.notes)
