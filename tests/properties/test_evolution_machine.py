"""Any history of evolutions, changes by hand, restorations, reverts, stale answers and crashes: the tables are what the
log says, every moment can be looked at again, what is taken back is as it was, and no check finds a fault but that
thoughts which are applied late leave no record.

The model is a double that says whatever the machine thinks of; all else is real, the database too.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from itertools import count
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import roomlore
from memory_rig import Rig
from roomlore import Conflict, MemoryKind, MemoryStatus, Message
from roomlore.core.errors import RoomloreError, StorageUnavailable
from roomlore.core.evolution.prompt import comparison_form
from roomlore.core.evolution.requests import Operation, Plan
from roomlore.core.memory.log import active, replay, touched
from roomlore.core.memory.memory import Change, Memory
from roomlore.core.memory.writing import normal
from roomlore_testkit import FaultyStorage
from storage_contracts.memories import Story

SCOPE, ROOM, GROUP = "group:茶", "茶", MemoryKind.GROUP
STATEMENTS = [
    "喝茶", "likes tea", " LIKES  tea", "周五看番 🎬", "e\u0301té is short", "不聊政治", "plays go", "围棋和 go",
    "Likes tea.", "晚上活跃", "meets on Mondays", "周五看番🎬，偏好科幻",
]  # fmt: skip
CRASHES = ["commit", "memories.apply", "memories.lock", "memories.add_evolution", "progress.move_mark"]
_ids = count()
places = st.integers(0, 10**6)
statements = st.sampled_from(STATEMENTS)
operations = st.lists(
    st.tuples(
        st.sampled_from(["update", "merge", "create", "delete", "keep"]),
        st.lists(st.integers(1, 6), min_size=1, max_size=4),
        statements,
        st.lists(st.integers(1, 4), max_size=2),
    ),
    max_size=5,
)
Given = list[tuple[str, list[int], str, list[int]]]
deeds = st.tuples(st.sampled_from(["add", "update", "delete", "restore", "strength", "revert"]), places, statements)
Deed = tuple[str, int, str]


def as_lines(given: Given) -> str:
    """As a model writes it."""
    return "\n".join(
        json.dumps(
            {
                "action": "update" if kind == "merge" else kind,
                "old_ids": [] if kind == "create" else [f"m{n}" for n in (handles if kind == "merge" else handles[:1])],
                "statement": statement,
                "evidence": [f"c{n}" for n in evidence],
                "change_reason": "说的",
            },
            ensure_ascii=False,
        )
        for kind, handles, statement, evidence in given
    )


def as_operations(given: Given) -> list[Operation]:
    return [
        Operation(
            line=line,
            kind="update" if kind == "merge" else kind,
            handles=() if kind == "create" else tuple(f"m{n}" for n in (handles if kind == "merge" else handles[:1])),
            statement=statement,
        )
        for line, (kind, handles, statement, _) in enumerate(given, 1)
    ]


class EvolutionMachine(RuleBasedStateMachine):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.told = Story(SCOPE, Random(0))
        self.seen: list[tuple[datetime, dict[str, Memory]]] = []
        self.plans: list[tuple[Plan, str]] = []
        self.said = 0

    @initialize()
    def open(self) -> None:
        lore = self.runner.run(self.closing.enter_async_context(roomlore.open(self.url, background=False)))
        self.lore = lore.for_tenant(f"tenant {next(_ids)}")
        self.faults = FaultyStorage(self.lore.storage)
        self.rig = Rig(self.faults, tenant=self.lore.tenant)
        self.memories = self.rig.memories
        for place, statement in enumerate(STATEMENTS[:7:2]):
            self.do(("add", place, statement))

    @rule(deed=deeds)
    def do(self, deed: Deed) -> None:
        """Something by hand."""
        self.attempt(self.deed(*deed))

    @rule(deed=deeds, others=st.lists(deeds, min_size=1, max_size=2))
    def do_at_once(self, deed: Deed, others: list[Deed]) -> None:
        async def all_of_it() -> None:
            done = await asyncio.gather(*(self.deed(*one) for one in (deed, *others)), return_exceptions=True)
            for one in done:
                if isinstance(one, BaseException) and not isinstance(one, RoomloreError):
                    raise one

        self.attempt(all_of_it())

    @rule(number=st.integers(1, 4))
    def say(self, number: int) -> None:
        batch = [Message(id=f"m{self.said + n}", room_id=ROOM, sender_id="ann", text="喝茶 tea") for n in range(number)]
        self.said += number
        self.runner.run(self.lore.messages.add(batch))

    @rule(given=operations, meanwhile=st.lists(deeds, max_size=2))
    def evolve(self, given: Given, meanwhile: list[Deed]) -> None:
        """Evolve while others change the memories, so that the model's answer is stale."""

        async def others() -> None:
            for one in meanwhile:
                await self.tried(self.deed(*one))

        self.say(1)
        self.rig.thinking.answer, self.rig.thinking.meanwhile = as_lines(given), others
        done = self.attempt(self.memories.evolve(ROOM, mode="llm"))
        if done is not None:
            own = [one for one in self.told.changes if one.evolution_id == done.evolution_id]
            assert list(done.changes) == own
            stats = done.stats
            assert stats.created + stats.updated + stats.deleted <= len(own)

    @rule(given=operations)
    def evolve_and_take_back(self, given: Given) -> None:
        before = active(self.told.versions)
        self.evolve(given, [])
        names = dict.fromkeys(one.evolution_id for one in self.told.changes if one.evolution_id)
        changed = active(self.told.versions) != before
        self.do(("revert", len(names) - 1, ""))
        assert not changed or active(self.told.versions) == before

    @rule(given=operations, where=st.sampled_from(CRASHES))
    def crash_in_an_evolution(self, given: Given, where: str) -> None:
        """Nothing is left of it; the next one waits until the lease runs out."""

        async def breaks() -> None:
            self.faults.fail(where)

        self.say(1)
        self.rig.thinking.answer, self.rig.thinking.meanwhile = as_lines(given), breaks
        self.crashed(self.memories.evolve(ROOM, mode="llm"))
        self.rig.clock.advance(120)

    @rule(deed=deeds, where=st.sampled_from(CRASHES[:3]))
    def crash(self, deed: Deed, where: str) -> None:
        self.faults.fail(where)
        self.crashed(self.tried(self.deed(*deed), StorageUnavailable))

    @rule(given=operations)
    def think(self, given: Given) -> None:
        """A plan that is applied some time later, or never."""
        offer = self.runner.run(self.rig.offer(SCOPE))
        latest = self.runner.run(self.rig.latest(offer[1]))
        name = f"thought {next(_ids)}"
        self.plans.append((self.rig.plan(SCOPE, offer, as_operations(given), name, latest=latest), name))

    @rule(place=places, forced=st.booleans())
    def apply_what_was_thought(self, place: int, forced: bool) -> None:
        """Apply an old plan, which conflicts with later changes. `forced`: as if nobody had looked at the numbers."""
        if not self.plans:
            return
        made, name = self.plans.pop(place % len(self.plans))
        number = len(self.told.changes)
        stale = bool(made.changes) and made.changes[0].number != number + 1
        force = stale and forced and not self.repeats(made)
        self.rig.clock.advance(1)
        changes = [
            replace(one, at=self.rig.clock.now(), number=number + n if force else one.number)
            for n, one in enumerate(made.changes, 1)
        ]
        self.attempt(self.rig.apply(SCOPE, replace(made, changes=tuple(changes)), name))
        assert force or (len(self.told.changes) == number) is (stale or not made.changes)

    def repeats(self, made: Plan) -> bool:
        there = {comparison_form(one.statement) for one in active(self.told.versions)}
        return any(comparison_form(one.memory.statement) in there for one in made.changes)

    async def deed(self, what: str, place: int, statement: str) -> Any:
        """One of the verbs, on any version or evolution there is."""
        if what == "add":
            return await self.memories.add(SCOPE, statement, kind=GROUP)
        if what == "revert":
            names = list(dict.fromkeys(one.evolution_id for one in self.told.changes if one.evolution_id))
            return await self.revert(names[place % len(names)]) if names else None
        versions = list(self.told.versions)
        if not versions:
            return None
        name = versions[place % len(versions)]
        verbs: dict[str, Callable[[], Awaitable[Any]]] = {
            "update": lambda: self.memories.update(name, statement=statement, reason="r"),
            "delete": lambda: self.memories.delete(name, "gone"),
            "restore": lambda: self.memories.restore(name),
            "strength": lambda: self.memories.strength(name, place % 11 / 10),
        }
        return await verbs[what]()

    async def revert(self, name: str) -> None:
        log = await self.log()
        try:
            made = await self.memories.revert(name, "back")
        except Conflict:
            self.check_conflict(log, await self.log(), name)
            raise
        if made and made[0].number == len(log) + 1:
            self.check_reverted([*log, *made], name)

    def check_conflict(self, before: Sequence[Change], log: Sequence[Change], name: str) -> None:
        """Something else touched the same since, or says the same by now; or others were at it at the same time."""
        own = [one for one in log if one.evolution_id == name]
        versions = replay(log)
        lineages = {versions[one].lineage_id for one in touched(own)}
        later = [one for one in log[own[-1].number :] if {versions[n].lineage_id for n in touched([one])} & lineages]
        others = {normal(one.statement) for one in active(versions) if one.lineage_id not in lineages}
        assert len(before) < len(log) or later or any(normal(versions[one].statement) in others for one in touched(own))

    def check_reverted(self, log: Sequence[Change], name: str) -> None:
        own = [one for one in log if one.evolution_id == name]
        before, now = replay(log[: own[0].number - 1]), replay(log)
        for one in touched(own):
            assert now[one] == before[one] if one in before else now[one].status is MemoryStatus.DEPRECATED
        if own[-1].number + 1 == next(one.number for one in log if one.undoes == name):
            assert {one.memory_id: one for one in active(now)} == {one.memory_id: one for one in active(before)}

    def crashed(self, work: Awaitable[Any]) -> None:
        before = list(self.told.changes)
        try:
            self.attempt(work)
        except StorageUnavailable:
            pass
        finally:
            self.faults.heal()
        assert self.told.changes == before

    def attempt(self, work: Awaitable[Any]) -> Any:
        """Return the result, or None if it was refused: then nothing was changed, unless others did."""
        self.rig.clock.advance(1)
        try:
            return self.runner.run(self.tried(work))
        finally:
            self.faults.heal()
            self.look()

    async def tried(self, work: Awaitable[Any], *passes: type[Exception]) -> Any:
        try:
            return await work
        except (Conflict, *passes):
            return None

    def look(self) -> None:
        """Takes in what happened; what was in the log stays there."""
        log = self.runner.run(self.log())
        known = len(self.told.changes)
        assert log[:known] == self.told.changes
        for one in log[known:]:
            self.told._keep(one)

    async def log(self) -> list[Change]:
        async with self.lore.storage.reading(self.lore.tenant) as work:
            return await work.memories.changes(scope=SCOPE, after=0, limit=10**6)

    @invariant()
    def the_tables_are_what_the_log_says(self) -> None:
        versions = self.told.versions
        assert versions == replay(self.told.changes)
        assert [one.number for one in self.told.changes] == list(range(1, len(self.told.changes) + 1))
        self.runner.run(self._compare(versions))

    async def _compare(self, versions: dict[str, Memory]) -> None:
        tenant, names = self.lore.tenant, list(versions)
        lineages = {one.lineage_id for one in versions.values()}
        async with self.lore.storage.reading(tenant) as work:
            stored = await work.memories.by_id(memory_ids=names)
            heads = await work.memories.heads(memory_ids=names)
            scope = await work.memories.scope(scope=SCOPE)
            rows = [await work.memories.lineage(lineage_id=name) for name in sorted(lineages)]
        assert {one.memory_id: one for one in stored} == versions
        assert heads == {name: self.told.head(name) for name in names}
        assert sum(map(len, rows)) == len(versions)
        assert all(sum(one.status is MemoryStatus.ACTIVE for one in row) <= 1 for row in rows)
        assert await self.lore.memories.count(SCOPE, status="all") == len(lineages)
        assert (scope.active if scope else 0) == len(active(versions))

    @invariant()
    def nothing_is_said_twice(self) -> None:
        found = active(self.told.versions)
        assert len({normal(one.statement) for one in found}) == len(found)
        if not hasattr(self, "rig"):
            return
        cached = self.runner.run(self.rig.cache.read(tenant=self.lore.tenant, scope=SCOPE, kind=GROUP))
        assert len(cached) == len(found)
        assert all(cached.all_saying(one.statement) == (one,) for one in found)

    @invariant()
    def every_moment_can_be_looked_at_again(self) -> None:
        if not hasattr(self, "rig"):
            return
        now = {one.memory_id: one for one in active(self.told.versions)}
        self.seen.append((self.rig.clock.now(), now))
        for at, then in (self.seen[-1], self.seen[len(self.seen) // 2]):
            assert {one.memory_id: one for one in self.runner.run(self.memories.as_of(SCOPE, at))} == then

    def teardown(self) -> None:
        if hasattr(self, "rig"):
            for at, then in self.seen:
                assert {one.memory_id: one for one in self.runner.run(self.memories.as_of(SCOPE, at))} == then
            report = self.runner.run(self.lore.privacy.verify(SCOPE))
            assert [fault for fault in report.faults if fault.check != "evolutions"] == []
        self.runner.run(self.closing.aclose())
        self.runner.close()


def run(url: str, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: EvolutionMachine(url),
        settings=settings(
            max_examples=examples, phases=[Phase.generate], stateful_step_count=steps,
            derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )  # fmt: skip


def test_any_history_can_be_read_and_taken_back():
    run("sqlite://", examples=6, steps=25)


def test_any_history_can_be_read_and_taken_back_on_postgresql(postgres_url):
    run(postgres_url, examples=2, steps=20)
