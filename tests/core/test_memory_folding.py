"""Which of an agent's short memories are merged or retired, and as what changes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roomlore.core.audience import evidence_of
from roomlore.core.memory.extraction import AT_ONCE, FOLDED, MAX_FOLDED, MAX_SHORT, fold_changes, fold_due
from roomlore.core.memory.memory import Action, Memory, MemoryKind, MemoryStatus, Source
from roomlore_testkit import builders
from roomlore_testkit.builders import START


def short(number: int, *tags: str, doubtful: str = "") -> Memory:
    at = START + timedelta(hours=number)
    return replace(
        builders.memory(f"s{number:03d}", scope="agent:bot", statement=f"note {number}"),
        kind=MemoryKind.SHORT,
        tags=tags,
        sources=(Source("r", f"m{number}"),),
        evidence=evidence_of([("r", at)]),
        doubtful=doubtful,
        supported_at=at,
    )


def changed(memories: list[Memory], statement: str | None):
    fold = fold_due(memories, new_id="new")
    now = START + timedelta(days=90)
    return fold, fold_changes(fold, statement, version=2, number=7, made_by="first/tiny", now=now)


def test_nothing_is_due_while_there_is_place():
    assert fold_due([short(n) for n in range(MAX_SHORT - 1)], new_id="new").memory_ids == frozenset()


def test_the_oldest_become_one_that_rests_on_all_their_messages():
    memories = [short(n, doubtful="not said" if n == 3 else "") for n in reversed(range(MAX_SHORT))]
    fold, (merge,) = changed(memories, "much was said")
    oldest = [f"s{n:03d}" for n in range(AT_ONCE)]
    assert (merge.number, merge.action, merge.actor, list(merge.closes)) == (7, Action.MERGE, "first/tiny", oldest)
    made = merge.memory
    assert (made.memory_id, made.lineage_id, made.version, made.statement) == (fold.id, "s000", 2, "much was said")
    assert made.sources == tuple(Source("r", f"m{n}") for n in range(AT_ONCE))
    assert (made.evidence[0].first, made.evidence[0].last) == (START, START + timedelta(hours=AT_ONCE - 1))
    assert (made.tags, made.doubtful, made.supported_at) == ((FOLDED,), "not said", START + timedelta(hours=9))
    assert fold.notes().splitlines()[0] == "[2024-05-01] note 0"


@pytest.mark.parametrize(("there", "gone"), [(MAX_SHORT, 1), (MAX_SHORT + 5, 6)])
def test_without_a_model_the_oldest_are_retired(there, gone):
    _, changes = changed([short(n) for n in range(there)], None)
    assert [change.action for change in changes] == [Action.DELETE] * gone
    assert [change.number for change in changes] == list(range(7, 7 + gone))
    assert [change.memory.memory_id for change in changes] == [f"s{n:03d}" for n in range(gone)]
    assert {change.memory.status for change in changes} == {MemoryStatus.DEPRECATED}
    assert all(change.reason and change.old_statement for change in changes)


def test_merged_ones_are_not_merged_again_and_the_oldest_of_them_is_retired():
    memories = [short(n, FOLDED) for n in range(MAX_FOLDED)] + [short(n) for n in range(MAX_FOLDED, MAX_SHORT)]
    fold, changes = changed(memories, "merged")
    assert [change.action for change in changes] == [Action.MERGE, Action.DELETE]
    assert fold.lineage_id == "s010"
    assert changes[1].memory.memory_id == "s000"
    assert len({change.number for change in changes}) == 2


def test_the_number_stays_bounded_whoever_answers():
    memories: list[Memory] = []
    for n in range(1000):
        fold = fold_due(memories, new_id=f"n{n}")
        statement = "merged" if n % 3 else None
        for change in fold_changes(fold, statement, version=2, number=1, made_by="m", now=START):
            gone = {*change.closes, change.memory.memory_id}
            memories = [memory for memory in memories if memory.memory_id not in gone]
            if change.action is Action.MERGE:
                memories.append(change.memory)
        memories.append(short(n))
        assert len(memories) <= MAX_SHORT
    assert sum(FOLDED in memory.tags for memory in memories) <= MAX_FOLDED
