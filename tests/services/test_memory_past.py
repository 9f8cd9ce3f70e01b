"""`lore.memories`: what was remembered, what made it, and going back."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

import roomlore
from memory_rig import Rig, create, delete, merge, update
from roomlore import Conflict, InvalidInput, MemoryKind, MemoryStatus, Message, NewMemory, NotFound, Source
from roomlore.core.memory.log import STEP, active, replay
from roomlore.core.memory.memory import Action
from roomlore.core.privacy import is_mark, mark
from roomlore.storage.memory_log import MemoryLog
from roomlore_testkit import START, change, evolution
from storage_contracts.memory_log import SCOPE, apply, long_log

TEA = "group:茶"
GROUP = MemoryKind.GROUP
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def rig(storage_url: str) -> AsyncIterator[Rig]:
    async with roomlore.open(storage_url, background=False) as lore:
        yield Rig(lore.storage, lore=lore)


async def add(rig: Rig, *statements: str) -> list[str]:
    """Their ids, in the order in which evolutions see them."""
    made = [await rig.memories.add(TEA, text, kind=GROUP) for text in statements]
    return [one.memory_id for one in made]


async def said(rig: Rig) -> list[str]:
    return sorted(one.statement for one in await rig.memories.page(TEA))


async def in_force(rig: Rig):
    return {one.memory_id: one for one in await rig.memories.page(TEA)}


async def test_what_was_remembered_at_a_time(rig):
    assert await rig.memories.as_of(TEA, START) == []
    states = []
    for text in ("喝茶 tea", "coffee", "水"):
        made = await rig.memories.add(TEA, text)
        rig.clock.advance(60)
        changed = await rig.memories.update(made.memory_id, statement=f"{text}!")
        rig.clock.advance(60)
        states.append(await in_force(rig))
    await rig.memories.delete(changed.memory_id)
    for place, state in enumerate(states):
        at = START + (2 * place + 1) * MINUTE
        assert {one.memory_id: one for one in await rig.memories.as_of(TEA, at)} == state
        assert [one.statement for one in await rig.memories.as_of(TEA, at.replace(tzinfo=None))] == [
            f"{text}!" for text in ("喝茶 tea", "coffee", "水")[: place + 1]
        ]
    assert await rig.memories.as_of(TEA, START - MINUTE) == []
    assert await rig.memories.as_of("group:nobody", START) == []


async def test_what_is_known_since_long_was_not_remembered_then(rig):
    """An import says since when something is known; the log says since when it is known here."""
    old = NewMemory(scope=TEA, statement="likes tea", created_at=START - timedelta(days=90))
    [done] = await rig.memories.add_all([old])
    assert done.memory.created_at == START - timedelta(days=90)
    assert await rig.memories.as_of(TEA, START - MINUTE) == []
    assert await rig.memories.as_of(TEA, START) == [done.memory]


@pytest.mark.parametrize("at", ["yesterday", None, 5, START.date()], ids=str)
async def test_what_is_no_time_is_refused(lore, at):
    for asked in (lore.memories.as_of(TEA, at), lore.memories.diff(TEA, at)):
        with pytest.raises(InvalidInput, match=r"datetime"):
            await asked


@pytest.mark.parametrize(("day", "hours"), [(datetime.min, 8), (datetime.max, -8)], ids=["first", "last"])
async def test_a_time_beyond_the_calendar_is_told_as_people_write_it(lore, day, hours):
    at = day.replace(tzinfo=timezone(timedelta(hours=hours)))
    for asked in (lore.memories.as_of(TEA, at), lore.memories.changes(TEA, since=at)):
        with pytest.raises(InvalidInput, match="years 1 to 9999") as refused:
            await asked
        assert f" is {at.isoformat()}, " in str(refused.value)
        assert "such as 2024-05-01T12:00Z" in str(refused.value)
        assert "datetime" not in str(refused.value)


async def test_what_is_no_scope_is_refused(lore):
    for asked in (lore.memories.as_of("tea", START), lore.memories.diff("tea", START)):
        with pytest.raises(InvalidInput, match="scope"):
            await asked


async def test_a_long_log_is_read_in_pages(rig, monkeypatch):
    monkeypatch.setattr("roomlore.services.memories.history._TOUCHES", 3)
    for number in range(10):
        await rig.memories.add(TEA, f"事实 {number}")
        rig.clock.advance(60)
    assert len(await rig.memories.as_of(TEA, START + 4 * MINUTE)) == 5
    found = await rig.memories.diff(TEA, START + 4 * MINUTE)
    assert ([one.statement for one in found.added], found.unchanged) == ([f"事实 {n}" for n in range(5, 10)], 5)


def replayed(changes, number):
    """The memories in force after this entry, by lineage."""
    found = sorted(active(replay(changes[:number])), key=lambda one: (one.created_at, one.lineage_id))
    return {one.lineage_id: one for one in found}


async def past(rig: Rig, minutes: int):
    return {one.lineage_id: one for one in await rig.memories.as_of(SCOPE, START + minutes * MINUTE)}


async def test_the_past_of_a_long_log_is_not_read_from_its_beginning(rig, monkeypatch):
    read = []
    touches = MemoryLog.touches

    async def counted(self, **asked):
        found = await touches(self, **asked)
        read.append(len(found))
        return found

    entries = 12 * STEP + 7
    changes = long_log(entries)
    await apply(rig.storage, *changes, tenant=rig.tenant)
    monkeypatch.setattr(MemoryLog, "touches", counted)
    for number in (3, 5 * STEP, 10 * STEP + 99, entries):
        read.clear()
        assert await past(rig, number) == replayed(changes, number)
        assert sum(read) <= 1000
    read.clear()
    before, after = (5 * STEP + 9, 5 * STEP + 13)
    found = await rig.memories.diff(SCOPE, START + before * MINUTE, START + after * MINUTE)
    assert sum(read) <= 2000
    was, now = replayed(changes, before), replayed(changes, after)
    assert [(one.before, one.after) for one in found.changed] == [(was[name], now[name]) for name in was]
    assert sorted(one.number for each in found.changed for one in each.changes) == [before + n for n in (1, 2, 3, 4)]


async def test_an_old_log_is_read_from_its_beginning_until_it_has_snapshots(rig, monkeypatch):
    """As one is that a process of the version before writes."""
    changes = long_log(11 * STEP + 30)
    with monkeypatch.context() as before:
        before.setattr("roomlore.storage.memory_log.snapshots_due", lambda **_: 0)
        await apply(rig.storage, *changes[:-2], tenant=rig.tenant)
    for new, numbers in ((0, []), (1, [10 * STEP]), (1, [10 * STEP, 11 * STEP])):
        length = len(changes) - 2 + (len(numbers) if new else 0)
        await apply(rig.storage, *changes[length - new : length], tenant=rig.tenant)
        async with rig.storage.reading(rig.tenant) as work:
            kept = await work.maintenance.read_snapshots(scope=SCOPE, after=9 * STEP, until=99 * STEP, limit=99)
        assert [one.number for one in kept] == numbers
        for number in (5, 4 * STEP, length - 9, length):
            assert await past(rig, number) == replayed(changes, number)


async def test_what_changed_between_two_times(rig):
    names = await add(rig, "drinks tea", "meets on Mondays", "周五看番", "plays go", "stays")
    rig.clock.advance(60)
    changes = await rig.evolve(
        TEA, update("m1", "drinks green tea"), merge("周一见面，周五看番", "m2", "m3"), delete("m4"), create("new 新")
    )
    rig.clock.advance(60)
    found = await rig.memories.diff(TEA, START, START + MINUTE)
    assert (found.scope, found.start, found.end, found.unchanged) == (TEA, START, START + MINUTE, 1)
    assert [one.statement for one in found.added] == ["new 新"]
    assert [one.memory_id for one in found.removed] == names[2:4]
    assert [(one.before.memory_id, one.after, one.changes) for one in found.changed] == [
        (names[0], changes[0].memory, (changes[0],)),
        (names[1], changes[1].memory, (changes[1],)),
    ]
    assert found.changed[1].after.parents == tuple(names[1:3])
    back = await rig.memories.diff(TEA, START + MINUTE)
    assert (back.added, back.removed, back.changed, back.unchanged) == ((), (), (), 4)
    assert back.end == START + 2 * MINUTE
    with pytest.raises(InvalidInput, match="swap them"):
        await rig.memories.diff(TEA, START + MINUTE, START)


async def talk(rig: Rig, *texts: str) -> list[Source]:
    """Said in the room 茶."""
    said = [Message(id=f"m{n}", room_id="茶", sender_id="ann", text=text) for n, text in enumerate(texts, 1)]
    await rig.lore.messages.add(said)
    return [Source("茶", one.id) for one in said]


async def test_what_made_a_memory(rig):
    sources = await talk(rig, "我爱喝茶", "and coffee", "茶和咖啡都行", "both then", "gone")
    [tea] = await rig.evolve(TEA, create("likes tea", "c1", "c5"), sources=sources, evolution_id="e1")
    coffee = await rig.memories.add(TEA, "喝咖啡", kind=GROUP, sources=sources[1:2])
    await rig.memories.update(coffee.memory_id, confidence=0.5, sources=[*sources[1:3]])
    strong = update("m1", "likes tea", "c4")
    await rig.evolve(TEA, strong, sources=sources, evolution_id="e2")
    [merged] = await rig.evolve(TEA, merge("茶 and 咖啡", "m1", "m2"), evolution_id="e3")
    await rig.lore.messages.delete("茶", "m5")
    for asked in (tea.memory.memory_id, coffee.memory_id, merged.memory.memory_id):
        blame = await rig.memories.blame(asked)
        assert blame.memory == merged.memory
        assert [one.memory.version for one in blame.versions] == [2, 2, 1, 1]
        assert [one.change.number for one in blame.versions] == [5, 3, 2, 1]
        assert [one.change.memory.memory_id for one in blame.versions] == [
            one.memory.memory_id for one in blame.versions
        ]
        assert [one.evolution and one.evolution.evolution_id for one in blame.versions] == ["e3", None, None, "e1"]
        evidence = [[(one.source.message_id, one.message and one.message.text) for one in version.evidence]
                    for version in blame.versions]  # fmt: skip
        assert evidence == [
            [],
            [("m3", "茶和咖啡都行")],
            [("m2", "and coffee")],
            [("m1", "我爱喝茶"), ("m5", None), ("m4", "both then")],
        ]


async def test_what_was_deleted_and_what_was_restored_goes_back_to_what_it_was(rig):
    first = await rig.memories.add(TEA, "tea")
    await rig.memories.update(first.memory_id, statement="oolong")
    await rig.memories.delete(first.memory_id)
    assert [one.memory.statement for one in (await rig.memories.blame(first.memory_id)).versions] == ["oolong", "tea"]
    await rig.memories.restore(first.memory_id)
    blame = await rig.memories.blame(first.memory_id)
    assert (blame.memory.statement, [one.memory.version for one in blame.versions]) == ("tea", [1])


async def test_history_of_what_was_merged_is_its_own(rig):
    tea, coffee = await add(rig, "tea", "coffee")
    [merged] = await rig.evolve(TEA, merge("茶 and coffee", "m1", "m2"))
    assert [one.memory_id for one in await rig.memories.history(coffee)] == [coffee]
    assert [one.memory_id for one in await rig.memories.history(tea)] == [tea, merged.memory.memory_id]
    assert await rig.memories.head(coffee) == merged.memory


async def test_an_evolution_is_taken_back(rig):
    await add(rig, "drinks tea", "meets on Mondays", "周五看番", "plays go", "stays")
    before = await in_force(rig)
    rig.clock.advance(60)
    operations = [update("m1", "drinks green tea"), merge("周一见面，周五看番", "m2", "m3"), delete("m4", "不玩了"),
              create("new 新"), update("m5", "stays")]  # fmt: skip
    changes = await rig.evolve(TEA, *operations)
    assert [one.action.value for one in changes] == ["update", "merge", "delete", "create", "strength"]
    evolved = await in_force(rig)
    rig.clock.advance(60)
    back = await rig.memories.revert("e1", " 错了 ")
    assert {(one.action, one.undoes, one.reason, one.at) for one in back} == {
        (Action.REVERT, "e1", "错了", START + 2 * MINUTE)
    }
    assert await in_force(rig) == before
    assert (await rig.memories.changes(TEA))[-len(back) :] == back
    assert {one.memory_id: one for one in await rig.memories.as_of(TEA, START + MINUTE)} == evolved
    assert {one.memory_id: one for one in await rig.memories.as_of(TEA, START + 2 * MINUTE)} == before
    assert await rig.memories.revert("e1") == []
    assert await in_force(rig) == before
    new = next(one.memory for one in changes if one.action is Action.CREATE)
    gone = await rig.memories.head(new.memory_id)
    assert (gone.status, gone.change_summary) == (MemoryStatus.DEPRECATED, "错了")


async def test_what_was_changed_since_keeps_an_evolution_from_being_taken_back(rig):
    tea, go = await add(rig, "tea", "围棋 go")
    await rig.evolve(TEA, update("m1", "green tea"), delete("m2"))
    changed = await rig.memories.update(tea, statement="oolong")
    count = len(await rig.memories.changes(TEA))
    with pytest.raises(Conflict, match=f"changed since: .*{changed.memory_id}"):
        await rig.memories.revert("e1")
    assert await said(rig) == ["oolong"]
    assert len(await rig.memories.changes(TEA)) == count
    assert (await rig.memories.head(go)).status is MemoryStatus.DEPRECATED


async def test_evolutions_are_taken_back_from_the_last_to_the_first(rig):
    await add(rig, "tea")
    await rig.evolve(TEA, update("m1", "green tea"))
    await rig.evolve(TEA, update("m1", "绿茶"), evolution_id="e2")
    with pytest.raises(Conflict, match="Undo what came later first"):
        await rig.memories.revert("e1")
    await rig.memories.revert("e2")
    assert await said(rig) == ["green tea"]
    await rig.memories.revert("e1")
    assert await said(rig) == ["tea"]


async def test_what_would_come_back_twice_does_not_come_back(rig):
    await add(rig, "tea", "水")
    await rig.evolve(TEA, delete("m1"), create("milk"))
    [again] = await add(rig, " TEA")
    with pytest.raises(Conflict, match=f"{again}.* says that already"):
        await rig.memories.revert("e1")
    assert await said(rig) == ["TEA", "milk", "水"]
    await rig.memories.delete(again)
    await rig.memories.revert("e1")
    assert await said(rig) == ["tea", "水"]


async def test_what_is_merged_of_the_same_words_comes_back(rig):
    """Letter case apart, both say the same; neither stands in the other's way."""
    [first] = await add(rig, "tea 茶")
    other = replace(await rig.memories.get(first), memory_id="other", lineage_id="other", statement="TEA 茶")
    async with rig.storage.writing(rig.tenant) as work:
        await work.memories.lock(scope=TEA, now=START)
        await work.memories.apply(scope=TEA, changes=[change(2, other, at=START)])
    await rig.evolve(TEA, merge("tea or 茶", "m1", "m2"))
    await rig.memories.revert("e1")
    assert await said(rig) == ["TEA 茶", "tea 茶"]


async def test_an_extraction_is_taken_back(rig):
    made = await rig.memories.add("agent:bot", "对话摘要: hi", kind=MemoryKind.SHORT)
    short = replace(made, memory_id="x1", lineage_id="x1", statement="she moves 搬家", evolution_id="x1")
    async with rig.storage.writing(rig.tenant) as work:
        await work.memories.lock(scope="agent:bot", now=START)
        await work.memories.add_evolution(evolution=evolution("x1", scope="agent:bot"))
        entry = change(2, short, evolution_id="x1", at=START)
        await work.memories.apply(scope="agent:bot", changes=[entry])
    [back] = await rig.memories.revert("x1")
    assert (back.memory.memory_id, back.memory.status) == ("x1", MemoryStatus.DEPRECATED)
    assert await rig.memories.page("agent:bot") == [made]


async def test_an_evolution_that_changed_nothing_has_nothing_to_take_back(rig):
    await rig.evolve(TEA)
    assert await rig.memories.revert("e1") == []
    for unknown in ("e2", "", "\ud800", "a\x00b"):
        with pytest.raises(NotFound, match="no evolution"):
            await rig.memories.revert(unknown)
    with pytest.raises(InvalidInput, match="reason"):
        await rig.memories.revert("e1", "x" * 9_999)


async def test_evolutions_of_other_tenants_stay(rig):
    await rig.evolve(TEA, create("tea"))
    theirs = Rig(rig.storage, tenant="theirs")
    for asked in (
        theirs.memories.revert("e1"),
        theirs.memories.restore("id-000001"),
        theirs.memories.blame("id-000001"),
        theirs.memories.strength("id-000001", 1),
    ):
        with pytest.raises(NotFound):
            await asked
    assert (await theirs.memories.as_of(TEA, START), await said(rig)) == ([], ["tea"])


async def test_a_version_is_restored(rig):
    first = await rig.memories.add(TEA, "tea", kind=GROUP)
    second = await rig.memories.update(first.memory_id, statement="绿茶", reason="said so")
    assert await rig.memories.restore(second.memory_id) == second, "it is in force"
    rig.clock.advance(60)
    restored = await rig.memories.restore(first.memory_id, "还是茶")
    assert restored == replace(first, supported_at=START + MINUTE)
    assert await rig.memories.page(TEA) == [restored]
    [*_, entry] = await rig.memories.changes(TEA)
    assert (entry.action, entry.closes, entry.old_statement, entry.reason) == (
        Action.RESTORE, (second.memory_id,), "绿茶", "还是茶",
    )  # fmt: skip
    assert (await rig.memories.restore(second.memory_id)).change_summary == "said so"
    assert (await rig.memories.update(first.memory_id, statement="oolong")).version == 3


async def test_what_was_deleted_is_restored_as_it_was(rig):
    made = await rig.memories.add(TEA, "tea")
    gone = await rig.memories.delete(made.memory_id, "不喝了")
    assert gone.change_summary == "不喝了"
    assert await rig.memories.restore(made.memory_id) == made
    assert len(await rig.memories.changes(TEA)) == 3


async def test_what_was_merged_lives_again_beside_what_it_became(rig):
    tea, coffee = await add(rig, "tea", "咖啡")
    [merged] = await rig.evolve(TEA, merge("tea, 咖啡", "m1", "m2"))
    restored = await rig.memories.restore(coffee)
    assert await said(rig) == ["tea, 咖啡", "咖啡"]
    assert (await rig.memories.head(coffee), await rig.memories.head(tea)) == (restored, merged.memory)
    await rig.memories.restore(tea)
    assert await said(rig) == ["tea", "咖啡"]
    with pytest.raises(Conflict, match="changed since"):
        await rig.memories.revert("e1")


async def test_what_another_one_says_is_not_restored(rig):
    tea, coffee = await add(rig, "tea 茶", "coffee")
    await rig.memories.delete(tea)
    changed = await rig.memories.update(coffee, statement="TEA 茶")
    with pytest.raises(Conflict, match=changed.memory_id):
        await rig.memories.restore(tea)
    await rig.memories.restore(coffee)
    assert (await rig.memories.restore(tea)).statement == "tea 茶"


@pytest.mark.parametrize("left", ["", mark("他"), mark("he")], ids=["nothing", "zh", "en"])
async def test_what_was_redacted_does_not_come_back(rig, left):
    [tea] = await add(rig, "tea")
    [deleted] = await rig.evolve(TEA, delete("m1"))
    entry = change(3, replace(deleted.memory, statement=left), action=Action.REDACT, at=START)
    async with rig.storage.writing(rig.tenant) as work:
        await work.memories.lock(scope=TEA, now=START)
        await work.memories.apply(scope=TEA, changes=[entry])
    with pytest.raises(InvalidInput, match="redacted"):
        await rig.memories.restore(tea)
    with pytest.raises(Conflict, match=tea):
        await rig.memories.revert("e1")


async def test_what_a_person_who_was_forgotten_said_does_not_come_back(rig):
    """A person who is forgotten is taken out of the log itself, as if it had said so all along."""
    [source] = await talk(rig, "I drink oolong every single morning before work, 每天早上")
    await rig.evolve(TEA, create("drinks oolong every single morning before work", "c1"), sources=[source])
    [gone] = await rig.evolve(TEA, delete("m1"), evolution_id="e2")
    await rig.lore.privacy.forget("ann")
    assert is_mark((await rig.memories.get(gone.memory.memory_id)).statement)
    with pytest.raises(Conflict, match=gone.memory.memory_id):
        await rig.memories.revert("e2")
    with pytest.raises(InvalidInput, match="redacted"):
        await rig.memories.restore(gone.memory.memory_id)
    assert await rig.memories.page(TEA) == []


async def test_strength_is_set_as_of_now(rig):
    made = await rig.memories.add(TEA, "tea")
    rig.clock.advance(60)
    strong = await rig.memories.strength(made.memory_id, 0.25, "旧闻")
    assert strong == replace(made, strength=0.25, supported_at=START + MINUTE)
    assert await rig.memories.page(TEA) == [strong]
    [_, entry] = await rig.memories.changes(TEA)
    assert (entry.action, entry.memory, entry.reason) == (Action.STRENGTH, strong, "旧闻")
    changed = await rig.memories.update(made.memory_id, statement="绿茶")
    assert (await rig.memories.strength(made.memory_id, 1)).memory_id == changed.memory_id
    await rig.memories.delete(made.memory_id)
    with pytest.raises(Conflict, match="was deleted"):
        await rig.memories.strength(made.memory_id, 0)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "1", None], ids=str)
async def test_what_is_no_strength_is_refused(lore, value):
    made = await lore.memories.add(TEA, "tea")
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        await lore.memories.strength(made.memory_id, value)


@pytest.mark.parametrize("memory_id", ["nowhere", "", "\ud800", "a\x00b"], ids=repr)
async def test_there_is_no_such_memory(lore, memory_id):
    for asked in (
        lore.memories.restore(memory_id),
        lore.memories.strength(memory_id, 1),
        lore.memories.blame(memory_id),
    ):
        with pytest.raises(NotFound, match="no memory"):
            await asked


async def test_of_many_who_go_back_at_once_each_sees_what_is_there(rig):
    first = await rig.memories.add(TEA, "tea", kind=GROUP)
    await rig.memories.update(first.memory_id, statement="绿茶")
    await rig.evolve(TEA, update("m1", "oolong"), create("new"))
    asked = [rig.memories.revert("e1") for _ in range(4)]
    asked += [rig.memories.strength(first.memory_id, 0.5) for _ in range(3)]
    asked += [rig.memories.restore(first.memory_id) for _ in range(3)]
    done = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, Conflict) or not isinstance(one, BaseException) for one in done)
    log = await rig.memories.changes(TEA)
    assert [one.number for one in log] == list(range(1, len(log) + 1))
    assert {one.memory_id: one for one in active(replay(log))} == await in_force(rig)
    reverts = [one for one in done[:4] if isinstance(one, list) and one]
    assert len(reverts) <= 1
