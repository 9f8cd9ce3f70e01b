"""The contract of `Memories`, with random valid changes and the state that they must lead to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from random import Random
from typing import Any

import pytest

from roomlore.core.memory.log import active, replay
from roomlore.core.memory.memory import Action, Change, Memory, MemoryKind, MemoryStatus, Source
from roomlore.storage import Storage
from roomlore_testkit.builders import START, change, memory
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.contracts.hard_texts import HARD_TEXTS
from storage_contracts.memory_log import (
    MINUTE,
    SCOPE,
    after,
    apply,
    gone,
    log,
    merge,
    of_evolution,
    scope_of,
    update,
    versions,
)
from storage_contracts.texts import TENANT

_STATEMENTS = ("likes tea", "喜欢喝茶", "👋🏽 e\u0301", "a\x00b", "\ud800 lone", "\x1a0 \\", "")
MESSAGES = [f"m{n}" for n in range(1, 9)]


@dataclass
class Story:
    """A scope with random changes. `heads`: by lineage; `merged`: lineage to the one it was merged into."""

    scope: str
    rng: Random
    changes: list[Change] = field(default_factory=list)
    versions: dict[str, Memory] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)

    def go_on(self, count: int) -> list[Change]:
        """Return so many more changes."""
        return [self._keep(self._next()) for _ in range(count)]

    def head(self, memory_id: str) -> Memory:
        lineage = self.versions[memory_id].lineage_id
        while lineage in self.merged:
            lineage = self.merged[lineage]
        return self.versions[self.heads[lineage]]

    def _keep(self, made: Change) -> Change:
        self.changes.append(made)
        before = self.versions
        self.versions = replay([made], before)
        if made.memory.status is MemoryStatus.ACTIVE:
            self.heads[made.memory.lineage_id] = made.memory.memory_id
            self.merged.pop(made.memory.lineage_id, None)
        for closed in made.closes:
            lineage = before[closed].lineage_id
            if closed in made.memory.parents and lineage != made.memory.lineage_id:
                self.merged[lineage] = made.memory.lineage_id
        return made

    def _next(self) -> Change:
        steps: list[Callable[[], Change | None]] = [
            self._create,
            self._update,
            self._merge,
            self._delete,
            self._restore,
            self._strength,
            self._redact,
            self._revert,
        ]
        return self.rng.choice(steps)() or self._create()

    def _create(self) -> Change:
        memory_id = self._id()
        return self._change(Action.CREATE, self._told(memory(memory_id, scope=self.scope)))

    def _update(self, action: Action = Action.UPDATE) -> Change | None:
        found = active(self.versions)
        return self._upon(action, self.rng.choice(found)) if found else None

    def _merge(self) -> Change | None:
        found = active(self.versions)
        if len(found) < 3:
            return None
        return self._upon(Action.MERGE, *self.rng.sample(found, self.rng.choice([2, 3])))

    def _upon(self, action: Action, *parents: Memory) -> Change:
        first = parents[0]
        ids = tuple(one.memory_id for one in parents)
        new = replace(first, memory_id=self._id(), version=self._newest(first) + 1, parents=ids)
        return self._change(action, self._told(new), closes=ids, old_statement=first.statement)

    def _delete(self, action: Action = Action.DELETE) -> Change | None:
        found = active(self.versions)
        if not found:
            return None
        return self._change(action, replace(self.rng.choice(found), status=MemoryStatus.DEPRECATED))

    def _restore(self, action: Action = Action.RESTORE) -> Change | None:
        found = [one for one in self.versions.values() if one.status is MemoryStatus.DEPRECATED]
        if not found:
            return None
        back = replace(self.rng.choice(found), status=MemoryStatus.ACTIVE)
        beside = [one.memory_id for one in active(self.versions) if one.lineage_id == back.lineage_id]
        return self._change(action, back, closes=tuple(beside))

    def _revert(self) -> Change | None:
        return self.rng.choice([self._update, self._delete, self._restore])(Action.REVERT)

    def _strength(self) -> Change | None:
        one = self._any()
        if one is None:
            return None
        return self._change(
            Action.STRENGTH, replace(one, strength=self.rng.random(), sources=self._sources(), supported_at=self._at())
        )

    def _redact(self) -> Change | None:
        one = self._any()
        return self._change(Action.REDACT, replace(one, statement="", tags=(), sources=())) if one else None

    def _any(self) -> Memory | None:
        return self.rng.choice(list(self.versions.values())) if self.versions else None

    def _newest(self, one: Memory) -> int:
        return max(other.version for other in self.versions.values() if other.lineage_id == one.lineage_id)

    def _told(self, one: Memory) -> Memory:
        rng = self.rng
        return replace(
            one,
            kind=rng.choice(list(MemoryKind)),
            statement=rng.choice(_STATEMENTS),
            tags=tuple(rng.sample(_STATEMENTS, rng.choice([0, 2]))),
            confidence=rng.choice([None, rng.random()]),
            sources=self._sources(),
            fallback=rng.random() < 0.3,
            updated_at=self._at(),
        )

    def _sources(self) -> tuple[Source, ...]:
        return tuple(Source("room", message_id) for message_id in self.rng.sample(MESSAGES, self.rng.choice([0, 1, 3])))

    def _change(
        self, action: Action, one: Memory, *, closes: tuple[str, ...] = (), old_statement: str | None = None
    ) -> Change:
        number = len(self.changes) + 1
        return change(number, one, action=action, closes=closes, old_statement=old_statement, at=self._at())

    def _id(self) -> str:
        return f"{self.scope}-{len(self.changes):04}"

    def _at(self) -> datetime:
        """Return the time: several changes share one."""
        return START + timedelta(minutes=len(self.changes) // 5)


ALL = tuple(MemoryKind)
ACTIVE, DEPRECATED = MemoryStatus.ACTIVE, MemoryStatus.DEPRECATED


async def page(
    storage: Storage,
    *scopes: str,
    kinds: Sequence[MemoryKind] = ALL,
    status: MemoryStatus | None = ACTIVE,
    limit: int = 9999,
    offset: int = 0,
    tenant: str = TENANT,
) -> list[Memory]:
    """Return the page; if it is whole, check that `count` gives its length."""
    async with storage.reading(tenant) as work:
        chosen: dict[str, Any] = {"scopes": scopes, "kinds": kinds, "status": status}
        found = await work.memories.page(limit=limit, offset=offset, **chosen)
        if limit == 9999:
            assert await work.memories.count(**chosen) == len(found) + offset
    return found


async def citing(storage: Storage, *message_ids: str, room_id: str = "room", tenant: str = TENANT) -> list[str]:
    async with storage.reading(tenant) as work:
        found = await work.memories.citing(room_id=room_id, message_ids=message_ids)
    assert all(one.status is ACTIVE for one in found)
    return sorted(one.memory_id for one in found)


async def fallbacks(storage: Storage, *, after: str | None = None, limit: int = 99) -> list[tuple[str, Memory]]:
    async with storage.reading() as work:
        return await work.memories.fallbacks(after=after, limit=limit)


async def remember(storage: Storage, *memories: Memory, scope: str = SCOPE, tenant: str = TENANT) -> None:
    """Add new memories to a scope."""
    known = await scope_of(storage, tenant=tenant, scope=scope)
    start = known.changes + 1 if known else 1
    made = (change(number, replace(one, scope=scope)) for number, one in enumerate(memories, start))
    await apply(storage, *made, tenant=tenant, scope=scope)


class MemoriesContract:
    async def test_nothing_is_remembered(self, storage: Storage) -> None:
        assert await page(storage, SCOPE) == []
        assert await citing(storage, "m1") == []
        assert await fallbacks(storage) == []
        async with storage.reading(TENANT) as work:
            assert await work.memories.lineage(lineage_id="a") == []
            assert await work.memories.heads(memory_ids=["a"]) == {}

    async def test_empty_lists_find_nothing(self, storage: Storage) -> None:
        await remember(storage, memory("a", sources=(Source("room", "m1"),)))
        assert await page(storage) == []
        assert await page(storage, SCOPE, kinds=[]) == []
        assert await page(storage, SCOPE, limit=0) == []
        assert await citing(storage) == []
        async with storage.reading(TENANT) as work:
            assert await work.memories.by_id(memory_ids=[]) == []
            assert await work.memories.heads(memory_ids=[]) == {}

    async def test_pages_come_latest_first(self, storage: Storage) -> None:
        times = [3, 1, 3, 2]
        made = [memory(f"f{n}", updated_at=START + n_th * MINUTE) for n, n_th in enumerate(times)]
        await remember(storage, *made)
        latest = [made[2], made[0], made[3], made[1]]
        assert await page(storage, SCOPE) == latest
        assert await page(storage, SCOPE, limit=2) == latest[:2]
        assert await page(storage, SCOPE, limit=2, offset=1) == latest[1:3]
        assert await page(storage, SCOPE, offset=3) == latest[3:]
        assert await page(storage, SCOPE, limit=9, offset=9) == []

    async def test_short_memories_of_a_room_come_latest_first(self, storage: Storage) -> None:
        here, elsewhere = (Source("room", "m1"), Source("room", "m2")), (Source("b", "m1"),)
        old, new, gone = (
            memory(name, kind=MemoryKind.SHORT, sources=here, updated_at=START + n * MINUTE)
            for n, name in enumerate(["old", "new", "gone"])
        )
        away = memory("away", kind=MemoryKind.SHORT, sources=elsewhere)
        await remember(storage, old, new, gone, away, memory("fact", sources=here))
        await apply(storage, change(6, replace(gone, status=DEPRECATED, scope=SCOPE), action=Action.DELETE))
        other = memory("other", kind=MemoryKind.SHORT, sources=here, scope="agent:b")
        await remember(storage, other, scope="agent:b")

        async def found(room_id: str = "room", scope: str = SCOPE, limit: int = 9, tenant: str = TENANT) -> list[str]:
            async with storage.reading(tenant) as work:
                memories = await work.memories.short_of_room(scope=scope, room_id=room_id, limit=limit)
            return [one.memory_id for one in memories]

        assert await found() == ["new", "old"]
        assert await found(limit=1) == ["new"]
        assert await found("b") == ["away"]
        assert await found(scope="agent:b") == ["other"]
        assert await found("none") == await found(tenant="other") == await found(limit=0) == []

    async def test_pages_of_scopes_and_kinds(self, storage: Storage) -> None:
        fact = memory("fact")
        short = memory("short", kind=MemoryKind.SHORT, updated_at=START + MINUTE)
        group = memory("group", kind=MemoryKind.GROUP, scope="group:g", updated_at=START + 2 * MINUTE)
        await remember(storage, fact, short)
        await remember(storage, group, scope="group:g")
        assert await page(storage, SCOPE) == [short, fact]
        assert await page(storage, SCOPE, "group:g", "user:nobody") == [group, short, fact]
        assert await page(storage, SCOPE, SCOPE) == [short, fact]
        assert await page(storage, SCOPE, "group:g", kinds=[MemoryKind.FACT, MemoryKind.GROUP]) == [group, fact]
        assert await page(storage, SCOPE, kinds=[MemoryKind.GROUP]) == []

    async def test_pages_show_each_lineage_once(self, storage: Storage) -> None:
        a, b, c, d = (memory(name) for name in "abcd")
        await remember(storage, a, b, c, d)
        await apply(storage, update(5, a, "a2"), change(6, gone(b), action=Action.DELETE), merge(7, "c2", c, d))
        a2, c2 = after(a, "a2"), after(c, "c2", parents=("c", "d"))
        assert await page(storage, SCOPE) == [c2, a2]
        assert await page(storage, SCOPE, status=DEPRECATED) == [gone(d), gone(b)]
        assert await page(storage, SCOPE, status=None) == [gone(d), c2, gone(b), a2]

    async def test_a_restored_version_is_on_the_page(self, storage: Storage) -> None:
        a = memory("a")
        await apply(storage, change(1, a), update(2, a, "a2"))
        await apply(storage, change(3, a, action=Action.RESTORE, closes=("a2",)))
        assert await page(storage, SCOPE) == await page(storage, SCOPE, status=None) == [a]
        assert await page(storage, SCOPE, status=DEPRECATED) == []

    async def test_large_pages(self, storage: Storage) -> None:
        made = [memory(f"f{n:04}", updated_at=START + timedelta(seconds=n * 7 % 1000)) for n in range(2000)]
        await remember(storage, *made)
        latest = sorted(made, key=attrgetter("updated_at", "memory_id"), reverse=True)
        assert await page(storage, SCOPE) == latest
        assert await page(storage, SCOPE, limit=20, offset=1500) == latest[1500:1520]
        ids = [one.memory_id for one in made]
        assert len(await versions(storage, ids)) == 2000
        async with storage.reading(TENANT) as work:
            heads = await work.memories.heads(memory_ids=ids)
        assert heads == {one.memory_id: one for one in made}

    async def test_a_lineage_from_its_beginning(self, storage: Storage) -> None:
        a, b = memory("a"), memory("b")
        a2 = after(a, "a2")
        await apply(storage, change(1, a), change(2, b), update(3, a, "a2"), merge(4, "a3", a2, b))
        async with storage.reading(TENANT) as work:
            found = await work.memories.lineage(lineage_id="a")
            of_a_version = await work.memories.lineage(lineage_id="a2")
            latest = await work.memories.latest_versions(lineage_ids=["a", "b", "a2", "nobody"])
            assert await work.of("other").memories.latest_versions(lineage_ids=["a"]) == {}
            assert await work.memories.latest_versions(lineage_ids=[]) == {}
        assert found == [gone(a), gone(a2), after(a2, "a3", parents=("a2", "b"))]
        assert of_a_version == []
        assert latest == {"a": 3, "b": 1}

    async def test_what_says_some_words_is_found_in_every_scope(self, storage: Storage) -> None:
        for number, (scope, statement) in enumerate(
            (("user:a", "Likes Green tea"), ("user:b", "喜欢喝绿茶"), ("group:c", "100% tea")), start=1
        ):
            one = memory(f"s{number}", scope=scope, statement=statement, updated_at=START + timedelta(days=number))
            await apply(storage, change(1, one), scope=scope)
        async with storage.reading(TENANT) as work:
            for words, ids in (
                (["TEA"], ["s3", "s1"]),
                (["tea", "green"], ["s1"]),
                (["茶"], ["s2"]),
                (["%"], ["s3"]),
                (["coffee"], []),
            ):
                saying = await work.memories.saying(words=words, limit=9)
                assert [one.memory_id for one in saying] == ids
            assert await work.of("other").memories.saying(words=["tea"], limit=9) == []

    async def test_by_id_looks_in_every_scope(self, storage: Storage) -> None:
        await remember(storage, memory("a"))
        await remember(storage, memory("b"), scope="group:g")
        found = await versions(storage, ["a", "b", "b", "nowhere"])
        assert found == {"a": memory("a"), "b": memory("b", scope="group:g")}

    async def test_ids_of_which_a_part_is_known(self, storage: Storage) -> None:
        names = ["0189-茶-a1b2", "0189-茶-A1B2", "0189-x-ffff", "a1b2", "%_", "\ud800e"]
        await apply(storage, *(change(n, memory(name, scope=SCOPE)) for n, name in enumerate(names, 1)))
        await apply(storage, change(1, memory("theirs-a1b2", scope=SCOPE)), tenant="other")
        for part, expected in {
            "a1b2": ["0189-茶-a1b2", "a1b2"],
            "0189-茶": ["0189-茶-A1B2", "0189-茶-a1b2"],
            "9-x": [],
            "%": ["%_"],
            "_": ["%_"],
            "\ud800": ["\ud800e"],
            "0189-x-ffff1": [],
            "茶": [],
        }.items():
            async with storage.reading(TENANT) as work:
                found = await work.memories.ids_like(part=part, limit=9)
                assert sorted(found) == sorted(expected), part
                assert await work.memories.ids_like(part=part, limit=1) == found[:1]

    async def test_what_messages_support(self, storage: Storage) -> None:
        one, both, elsewhere = (Source("room", "m1"),), (Source("room", "m1"), Source("room", "m2")), Source("b", "m1")
        a, b, c = memory("a", sources=one * 2), memory("b", sources=both), memory("c", sources=(elsewhere,))
        await remember(storage, a, b, c)
        assert await citing(storage, "m1") == ["a", "b"]
        assert await citing(storage, "m1", "m2", "m9") == ["a", "b"]
        assert await citing(storage, "m2") == ["b"]
        assert await citing(storage, "m1", room_id="b") == ["c"]
        assert await citing(storage, "m1", tenant="other") == []

    async def test_only_the_active_version_is_supported(self, storage: Storage) -> None:
        a = memory("a", sources=(Source("room", "m1"),))
        a2 = after(a, "a2", sources=(Source("room", "m1"), Source("room", "m2")))
        await apply(storage, change(1, a), change(2, a2, action=Action.UPDATE, closes=("a",)))
        assert await citing(storage, "m1", "m2") == ["a2"]
        await apply(storage, change(3, a, action=Action.RESTORE, closes=("a2",)))
        assert (await citing(storage, "m1"), await citing(storage, "m2")) == (["a"], [])
        moved = replace(a, sources=(Source("room", "m3"),))
        await apply(storage, change(4, moved, action=Action.STRENGTH))
        assert (await citing(storage, "m1", "m2"), await citing(storage, "m3")) == ([], ["a"])
        await apply(storage, change(5, replace(a, sources=()), action=Action.REDACT))
        assert await citing(storage, *MESSAGES) == []

    async def test_what_waits_for_a_model(self, storage: Storage) -> None:
        def waiting(memory_id: str) -> Memory:
            return memory(memory_id, fallback=True)

        for tenant in ("b", "a", "a b"):
            await remember(storage, waiting("f2"), memory("f3"), waiting("f1"), tenant=tenant)
        await apply(storage, change(4, gone(waiting("f1")), action=Action.DELETE), tenant="a b")
        everything = [
            ("a", waiting("f1")),
            ("a", waiting("f2")),
            ("a b", waiting("f2")),
            ("b", waiting("f1")),
            ("b", waiting("f2")),
        ]
        assert await fallbacks(storage) == everything
        assert await fallbacks(storage, limit=2) == everything[:2]
        seen: list[tuple[str, Memory]] = []
        while found := await fallbacks(storage, after=_place(seen), limit=2):
            seen += found
        assert seen == everything
        made = replace(waiting("f1"), fallback=False, made_by="a model")
        await apply(storage, change(4, made, action=Action.STRENGTH), tenant="b")
        assert await fallbacks(storage, after=_place(everything[:3])) == everything[4:]


def _place(seen: Sequence[tuple[str, Memory]]) -> str | None:
    return f"{seen[-1][0]}\0{seen[-1][1].memory_id}" if seen else None


@pytest.mark.parametrize("seed", [1, 2])
class MemoryStoryContract:
    async def test_the_tables_are_the_log_replayed(self, storage: Storage, seed: int) -> None:
        rng = Random(seed)
        stories = [Story("user:ann", rng), Story("group:g", rng)]
        while any(len(story.changes) < 60 for story in stories):
            story = rng.choice(stories)
            await apply(storage, *story.go_on(rng.choice([1, 2, 9])), scope=story.scope)
        for story in stories:
            await _holds(storage, story)
        ours = [one for story in stories for one in active(story.versions)]
        for message_id in MESSAGES:
            cited = [one.memory_id for one in ours if Source("room", message_id) in one.sources]
            assert await citing(storage, message_id) == sorted(cited)
        waiting = sorted((one for one in ours if one.fallback), key=attrgetter("memory_id"))
        assert await fallbacks(storage) == [(TENANT, one) for one in waiting]


async def _holds(storage: Storage, story: Story) -> None:
    """Check that the store holds the final state of the story."""
    changes = await log(storage, scope=story.scope)
    assert changes == story.changes
    assert replay(changes) == story.versions == await versions(storage, list(story.versions))
    scope = await scope_of(storage, scope=story.scope)
    assert scope is not None
    assert (scope.changes, scope.active) == (len(changes), len(active(story.versions)))
    async with storage.reading(TENANT) as work:
        heads = await work.memories.heads(memory_ids=list(story.versions))
    assert heads == {memory_id: story.head(memory_id) for memory_id in story.versions}
    assert {one.memory_id for one in heads.values() if one.status is ACTIVE} == {
        one.memory_id for one in active(story.versions)
    }
    latest = sorted((story.versions[head] for head in story.heads.values()), key=_latest, reverse=True)
    for status in (None, ACTIVE, DEPRECATED):
        assert await page(storage, story.scope, status=status) == [
            one for one in latest if status in (None, one.status)
        ]


_latest = attrgetter("updated_at", "memory_id")


class MemoryTextsContract:
    async def test_in_memories_and_their_log(self, storage: Storage) -> None:
        with all_cases() as case:
            for text in HARD_TEXTS:
                with case(text):
                    first = memory(
                        text,
                        scope=text,
                        statement=text,
                        tags=(text, text),
                        category=text,
                        sources=(Source(text, text),),
                        change_summary=text,
                        evolution_id=text,
                        made_by=text,
                        fallback=True,
                    )
                    second = after(first, text + "2", statement=text, parents=(text,))
                    made = change(1, first, reason=text, evolution_id=text, undoes=text, actor=text)
                    closing = change(2, second, action=Action.UPDATE, closes=(text,), old_statement=text)
                    await apply(storage, made, closing, tenant=text, scope=text)
                    assert await log(storage, tenant=text, scope=text) == [made, closing]
                    assert await of_evolution(storage, text, tenant=text) == [made]
                    assert await versions(storage, [text, text + "2"], tenant=text) == {
                        text: gone(first),
                        text + "2": second,
                    }
                    assert await page(storage, text, tenant=text) == [second]
                    assert await citing(storage, text, room_id=text, tenant=text) == [text + "2"]
                    assert (await fallbacks(storage)).count((text, second)) == 1
                    async with storage.reading(text) as work:
                        assert await work.memories.heads(memory_ids=[text]) == {text: second}
                        assert await work.memories.lineage(lineage_id=text) == [gone(first), second]
                        (scope,) = await work.memories.scopes(after=None, limit=9)
                    assert scope.scope == text
