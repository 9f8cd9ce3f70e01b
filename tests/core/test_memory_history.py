"""The past of memories: in force at a time, changes between two times, restoring, and reverting an evolution."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import cycle, pairwise
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roomlore.core.errors import Conflict
from roomlore.core.memory.log import (
    LATER,
    STEP,
    LogState,
    Snapshot,
    Touch,
    Walk,
    active,
    diff,
    makers,
    origins,
    replay,
    reverted,
    snapshots,
    snapshots_due,
    touched,
)
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus
from roomlore_testkit import START, change, memory
from storage_contracts.memories import Story

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


@pytest.mark.parametrize("size", [1, 7, LATER, 10 * LATER])
@pytest.mark.parametrize(("later", "number"), [(LATER, 1), (LATER - 1, LATER + 1)])
def test_many_later_changes_in_a_row_end_the_walk(size, later, number):
    """An entry of a clock that is far behind counts only if it follows soon."""
    times = [START, *[START + timedelta(days=1)] * later, START]
    changes = [Touch(n, at, f"m{n}", (), True) for n, at in enumerate(times, start=1)]
    walk = Walk(START)
    while not walk.done:
        walk.take(changes[walk.read :][:size])
    assert walk.number == number
    assert len(walk.in_force) == number


def kept(touches: list[Touch], batches: list[int]) -> list[Snapshot]:
    """The snapshots that are stored while so many entries are written at once, again and again."""
    found: list[Snapshot] = []
    changes, state, sizes = 0, LogState(), cycle(batches)
    active = []
    for one in touches:
        state.add(one)
        active.append(state.active)
    while changes < len(touches):
        changes = min(changes + next(sizes), len(touches))
        last = found[-1].number if found else 0
        if until := snapshots_due(last=last, changes=changes, active=active[changes - 1]):
            start = LogState(found[-1] if found else None)
            found += snapshots(start, touches[last:until], last=last, until=until)
    return found


def scattered(rng: Random, length: int) -> list[Touch]:
    """A log of entries of all kinds, whose clocks disagree: some a little, a few by far."""
    touches: list[Touch] = []
    active: list[str] = []
    ended: list[str] = []
    for number in range(1, length + 1):
        closes = tuple(rng.sample(active, min(len(active), rng.choice([0, 0, 1, 2]))))
        staying = [name for name in active if name not in closes]
        effect = rng.choice(["new", "new", "ends", "back", "touched"])
        name = f"m{number}"
        if effect in ("ends", "touched") and staying:
            name = rng.choice(staying)
        elif effect in ("back", "touched") and ended:
            name = rng.choice(ended)
        leaves = {"ends": False, "touched": None}.get(effect, True)
        if name == f"m{number}":
            leaves = True
        now = leaves if leaves is not None else name in active
        active = [one for one in staying if one != name] + [name] * now
        ended = [one for one in (*ended, *closes) if one != name] + [name] * (not now)
        clock = rng.choice(
            [0] * 40 + [-90, 90] + [rng.randrange(-3, 4)] * 20 + [-length, 10 * length] * rng.choice([0, 1])
        )
        touches.append(Touch(number, START + (number + clock) * MINUTE, name, closes, leaves))
    return touches


@settings(max_examples=25)
@given(seeds, st.integers(0, 3000), st.lists(st.integers(1, 900), min_size=1, max_size=6))
def test_the_past_is_the_same_from_a_snapshot_as_from_the_beginning(seed, length, batches):
    rng = Random(seed)
    touches = scattered(rng, length)
    stored = kept(touches, [*batches, 4000] if seed % 3 == 0 else batches)
    for minute in [-length, 0, length, 11 * length, *(rng.randrange(length + 1) for _ in range(12))]:
        at = START + minute * MINUTE
        start = max((one for one in stored if one.serves(at)), key=lambda one: one.number, default=None)
        whole, short = Walk(at), Walk(at, start=start)
        for walk, size in ((whole, 1000), (short, rng.choice([1, 99, 1000]))):
            while not walk.done:
                walk.take(touches[walk.read :][:size])
        assert (short.number, short.in_force) == (whole.number, whole.in_force)


@pytest.mark.parametrize("active", [10, 600])
def test_snapshots_stand_as_far_apart_as_they_are_large(active):
    """And a walk from the last one before any moment is short, also where an entry is of a clock far ahead."""
    touches = [Touch(n, START + n * MINUTE, f"m{n}", (f"m{n - active}",), True) for n in range(1, 8001)]
    touches[2000] = replace(touches[2000], at=START + timedelta(days=999))
    stored = kept(touches, [1])
    apart = [later.number - one.number for one, later in pairwise(stored)]
    assert all(max(STEP, active) <= each < active + 2 * STEP for each in apart)
    for number in range(1500, 8001, 500):
        serving = [one.number for one in stored if one.serves(START + number * MINUTE)]
        assert number - max(serving) < active + 2 * STEP


def test_an_old_log_gets_its_snapshots_in_steps():
    ends, last = [], 0
    while until := snapshots_due(last=last, changes=9_999, active=50):
        ends.append(until)
        last = until
    assert ends == [2500, 5000, 7500, 9750]


def test_there_are_snapshots_of_whole_steps_alone():
    state = LogState()
    assert state.snapshot() is None
    for number in range(1, STEP + 2):
        state.add(Touch(number, START - number * MINUTE, "m", (), True))
        assert (state.snapshot() is None) == (number != STEP)


@given(seeds, st.integers(0, 60), st.integers(0, 12), st.integers(0, 12), st.integers(1, 30))
def test_a_difference_is_between_what_was_in_force(seed, length, one, other, size):
    changes = story(seed, length).changes
    start, end = START + min(one, other) * MINUTE, START + max(one, other) * MINUTE
    before = Walk(start)
    walked(changes, before, size)
    after = Walk(end)
    between = [one for one in walked(changes, after, size) if one.number > before.number]
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
