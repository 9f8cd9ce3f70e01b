"""The past of memories: in force at a time, changes between two times, restoring, and reverting an evolution."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roomlore.core.errors import Conflict
from roomlore.core.memory.log import Touch, Walk, active, diff, makers, origins, replay, reverted, touched
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus
from roomlore.testing import START, change, memory
from roomlore.testing.contracts.memories import Story

GONE = MemoryStatus.DEPRECATED
MINUTE = timedelta(minutes=1)
seeds = st.integers(0, 10**6)


class Evolving(Story):
    """An evolution makes, merges, deletes and strengthens; it restores nothing."""

    def evolve(self, length: int) -> list[Change]:
        """So many changes of the evolution 'e'; they may build on each other."""
        steps = [self._create, self._update, self._merge, self._delete, self._strength]
        number = len(self.changes)
        for _ in range(length):
            self._keep(replace(self.rng.choice(steps)() or self._create(), evolution_id="e"))
        return self.changes[number:]

    def _keep(self, made: Change) -> Change:
        """Keep a change whose statement is not empty: another test covers redaction."""
        told = made.memory.statement or "空"
        return super()._keep(replace(made, memory=replace(made.memory, statement=told)))

    def _any(self) -> Memory | None:
        """Return a memory that is in force, None if there is none."""
        found = active(self.versions)
        return self.rng.choice(found) if found else None


def story(seed: int, length: int) -> Evolving:
    made = Evolving("group:茶", Random(seed))
    made.go_on(length)
    return made


def by_id(memories) -> dict[str, Memory]:
    return {one.memory_id: one for one in memories}


def at_time(changes: list[Change], at: datetime) -> list[Memory]:
    """The memories in force at a time, read all at once."""
    walk = Walk(at)
    walk.take([Touch.of(one) for one in changes])
    return walk.chosen(changes)


def walked(changes: list[Change], walk: Walk, size: int) -> list[Change]:
    """The changes that count."""
    start = walk.number
    while not walk.done:
        walk.take([Touch.of(one) for one in changes if one.number > walk.read][:size])
    return [one for one in changes if start < one.number <= walk.number]


@given(seeds, st.integers(0, 60), st.integers(-1, 14), st.integers(1, 70))
def test_what_was_in_force_is_what_the_log_says_up_to_then(seed, length, minutes, size):
    changes, at = story(seed, length).changes, START + minutes * MINUTE
    so_far = [one for one in changes if one.at <= at]
    walk = Walk(at)
    assert walked(changes, walk, size) == so_far
    assert by_id(walk.chosen(changes)) == by_id(active(replay(so_far))) == by_id(at_time(changes, at))
    assert [one.created_at for one in walk.chosen(changes)] == sorted(one.created_at for one in walk.chosen(changes))


@given(seeds, st.integers(1, 40), st.integers(-1, 9), st.integers(20, 40))
def test_where_clocks_disagree_the_order_of_the_log_counts(seed, length, minutes, size):
    """Up to the last entry of that time, wherever it stands."""
    rng = Random(seed)
    changes = [replace(one, at=one.at + rng.randrange(-3, 4) * MINUTE) for one in story(seed, length).changes]
    at = START + minutes * MINUTE
    last = max((one.number for one in changes[:size] if one.at <= at), default=0)
    walk = Walk(at)
    walk.take([Touch.of(one) for one in changes[:size]])
    assert walk.number == last
    assert by_id(walk.chosen(changes)) == by_id(active(replay(changes[:last])))


def test_a_page_of_later_changes_ends_the_walk():
    late = [change(n, memory(f"m{n}"), at=START + timedelta(days=1)) for n in range(1, 4)]
    walk = Walk(START)
    walk.take([Touch.of(one) for one in late])
    assert walk.done
    assert (walk.number, walk.read, walk.chosen(late)) == (0, 3, [])


@given(seeds, st.integers(0, 60), st.integers(0, 12), st.integers(0, 12), st.integers(1, 30))
def test_a_difference_is_between_what_was_in_force(seed, length, one, other, size):
    changes = story(seed, length).changes
    start, end = START + min(one, other) * MINUTE, START + max(one, other) * MINUTE
    before = Walk(start)
    walked(changes, before, size)
    after = Walk(end, after=before)
    between = walked(changes, after, size)
    found = diff("group:茶", start, end, before=before.chosen(changes), after=after.chosen(changes), changes=between)
    was, now = [{m.lineage_id: m for m in at_time(changes, at)} for at in (start, end)]
    assert {m.lineage_id: m for m in after.chosen(changes)} == now
    assert {m.lineage_id for m in found.added} == now.keys() - was.keys()
    assert {m.lineage_id for m in found.removed} == was.keys() - now.keys()
    both = was.keys() & now.keys()
    assert len(found.changed) + found.unchanged == len(both)
    for revised in found.changed:
        name = revised.before.lineage_id
        assert (revised.before, revised.after) == (was[name], now[name])
        assert was[name] != now[name]
        assert revised.changes == tuple(
            one for one in changes if start < one.at <= end and one.memory.lineage_id == name
        )  # fmt: skip


def test_a_merged_memory_is_removed_and_a_strengthened_one_is_unchanged():
    a, b, c = memory("a"), memory("b"), memory("c")
    merged = replace(a, memory_id="a2", version=2, parents=("a", "b"), statement="两者 both")
    strong = replace(c, strength=0.5)
    changes = [
        change(1, a), change(2, b), change(3, c),
        change(4, merged, action=Action.MERGE, closes=("a", "b"), at=START + 9 * MINUTE),
        change(5, strong, action=Action.STRENGTH, at=START + 9 * MINUTE),
    ]  # fmt: skip
    found = diff("user:ann", START, START, before=[a, b, c], after=[merged, strong], changes=changes[3:])
    assert (found.added, found.removed, found.unchanged) == ((), (b,), 1)
    [revised] = found.changed
    assert (revised.before, revised.after, revised.changes) == (a, merged, (changes[3],))


@given(seeds, st.integers(1, 60))
def test_a_memory_goes_back_to_all_it_was_made_of(seed, length):
    told = story(seed, length)
    for name, one in told.versions.items():
        found, missing = origins(name, told.versions)
        expected, ahead = {name}, list(one.parents)
        while ahead:
            parent = ahead.pop()
            if parent not in expected:
                expected.add(parent)
                ahead += told.versions[parent].parents
        assert (found.keys(), missing) == (expected, set())
        made = makers(told.changes)
        assert all(made[name].number >= made[other].number for other in found)


def test_the_origins_of_what_was_merged_over_and_over_are_found_at_once():
    """As many paths as there are subsets."""
    versions = {"0a": memory("0a"), "0b": memory("0b")}
    for n in range(1, 200):
        versions |= {
            f"{n}{side}": memory(f"{n}{side}", parents=(f"{n - 1}a", f"{n - 1}b")) for side in "ab"
        }  # fmt: skip
    assert len(origins("199a", versions)[0]) == 399
    del versions["7b"]
    assert origins("199a", versions)[1] == {"7b"}


def take_back(told: Story, own: list[Change], number: int, reason: str = "") -> list[Change]:
    names = touched(own)
    lineages = {told.versions[name].lineage_id for name in names}
    return reverted(
        own,
        logged=[one for one in told.changes if one.memory.memory_id in names],
        versions=[one for one in told.versions.values() if one.lineage_id in lineages],
        number=number,
        reason=reason,
        now=START + timedelta(days=1),
    )


@given(seeds, st.integers(0, 30), st.integers(1, 12))
def test_taking_an_evolution_back_gives_what_was_before(seed, length, width):
    told = story(seed, length)
    before = dict(told.versions)
    own = told.evolve(width)
    back = take_back(told, own, len(told.changes), "错了 wrong")
    after = replay([*told.changes, *back])
    assert {name: after[name] for name in before} == before
    assert all(after[name].status is GONE for name in after.keys() - before.keys())
    assert [one.number for one in back] == list(range(len(told.changes) + 1, len(told.changes) + len(back) + 1))
    assert all((one.action, one.undoes, one.evolution_id) == (Action.REVERT, "e", None) for one in back)
    assert {one.memory.memory_id for one in back} <= set(touched(own))
    told.changes += back
    told.versions = after
    assert take_back(told, own, len(told.changes)) == [], "once"


@example(5, 18, 3, 3)
@example(3, 7, 3, 3)
@given(seeds, st.integers(1, 20), st.integers(1, 6), st.integers(1, 8))
def test_what_was_changed_since_is_left_and_named(seed, length, width, later):
    told = story(seed, length)
    own = told.evolve(width)
    left = dict(told.versions)
    told.go_on(later)
    lineages = {left[name].lineage_id for name in touched(own)}
    now = {name: one for name, one in told.versions.items() if one.lineage_id in lineages}
    names = set(touched(own))
    changed = {name for name in names if now[name] != left[name]}
    changed |= {name for name, one in now.items() if one.status is MemoryStatus.ACTIVE and name not in names}
    redacted = {one.memory.memory_id for one in told.changes[-later:] if one.action is Action.REDACT} & names
    if changed | redacted:
        with pytest.raises(Conflict) as raised:
            take_back(told, own, len(told.changes))
        assert any(repr(name) in str(raised.value) for name in changed | redacted)
    else:
        after = replay(take_back(told, own, len(told.changes)), told.versions)
        assert {name: after[name] for name in told.versions.keys() - names} == {
            name: one for name, one in told.versions.items() if name not in names
        }  # fmt: skip


@pytest.mark.parametrize("left", ["", "[已删除]", "[forgotten]"])
def test_what_was_redacted_does_not_come_back(left):
    """Its log was rewritten with it: nothing else tells."""
    gone = memory("a", statement=left, status=GONE)
    own = change(2, gone, action=Action.DELETE, evolution_id="e")
    told = Story("user:ann", Random(0), changes=[change(1, memory("a", statement=left)), own])
    told.versions = {"a": gone}
    with pytest.raises(Conflict, match="'a'"):
        take_back(told, [own], 2)


def test_evolutions_that_build_on_each_other_go_back_last_first():
    a = memory("a")
    a2, a3 = [replace(a, memory_id=f"a{n}", version=n, parents=(p,)) for n, p in ((2, "a"), (3, "a2"))]
    first = change(2, a2, action=Action.UPDATE, closes=("a",), evolution_id="e1")
    second = change(3, a3, action=Action.UPDATE, closes=("a2",), evolution_id="e2")
    told = Story("user:ann", Random(0), changes=[change(1, a), first, second])
    told.versions = replay(told.changes)
    with pytest.raises(Conflict, match="'a2', 'a3'"):
        take_back(told, [first], 3)
    told.changes += take_back(told, [second], 3)
    told.versions = replay(told.changes)
    told.changes += take_back(told, [first], 4)
    assert [(one.number, one.undoes, one.memory, one.closes) for one in told.changes[3:]] == [
        (4, "e2", a2, ("a3",)),
        (5, "e1", a, ("a2",)),
    ]


def test_taking_a_merge_and_a_deletion_back_reads_like_a_log():
    a, b, c, d = (memory(name, statement=f"说 {name}") for name in "abcd")
    merged = replace(a, memory_id="a2", version=2, parents=("a", "b"), statement="both 两者")
    own = [
        change(5, merged, action=Action.MERGE, closes=("a", "b"), evolution_id="e"),
        change(6, replace(c, status=GONE, change_summary="old"), action=Action.DELETE, evolution_id="e"),
        change(7, replace(d, strength=0.5), action=Action.STRENGTH, evolution_id="e"),
        change(8, memory("n"), evolution_id="e"),
    ]
    told = Story("user:ann", Random(0), changes=[change(n, one) for n, one in enumerate((a, b, c, d), 1)] + own)
    told.versions = replay(told.changes)
    back = take_back(told, own, 8, "why")
    assert [(one.memory, one.closes, one.old_statement) for one in back] == [
        (memory("n", status=GONE, change_summary="why"), (), "statement n"),
        (d, (), "说 d"),
        (c, (), None),
        (b, (), None),
        (a, ("a2",), "both 两者"),
    ]
    assert {one.reason for one in back} == {"why"}
