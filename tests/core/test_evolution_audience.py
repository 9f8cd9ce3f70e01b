"""The evidence of what an evolution makes, and what it leaves for others."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roomlore.core.audience import EvidenceRoom, Presence, RoomKind, RoomPeople, Stay, Window
from roomlore.core.evolution.audience import Heard, with_evidence
from roomlore.core.evolution.requests import Plan
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus, Source
from roomlore.core.models import Origin
from roomlore_testkit import START, memory

DAY = timedelta(days=1)
SAID = {Source("dm", f"c{number}"): Origin(START + number * DAY, "ann") for number in (1, 2, 3)}
DIRECT = RoomPeople("dm", RoomKind.DIRECT, people={"ann": Presence(spoke=Window(START, START))})
BEFORE = (EvidenceRoom("dm", START, START),)
PUBLIC = (EvidenceRoom("square", START, START),)


def plan(action: Action, new: Memory, *closes: str) -> Plan:
    return Plan(
        changes=(Change(number=7, scope=new.scope, action=action, memory=new, closes=closes, at=START + 9 * DAY),)
    )


def updated(*old: Memory, cited: int = 2) -> tuple[Plan, list[Memory]]:
    head, sources = old[0], tuple(source for one in old for source in one.sources)
    new = replace(
        head,
        memory_id="new",
        version=2,
        parents=tuple(one.memory_id for one in old),
        statement="moved to Berlin 搬到柏林",
        sources=(*sources, Source("dm", f"c{cited}")),
    )
    action = Action.UPDATE if len(old) == 1 else Action.MERGE
    return plan(action, new, *new.parents), list(old)


def only(given: Plan, old: list[Memory], room: RoomPeople = DIRECT, replaced: frozenset[str] = frozenset()) -> Change:
    (change,) = with_evidence(given, old, Heard(room, SAID, replaced)).changes
    return change


def test_a_new_memory_has_the_evidence_that_it_cites():
    made = only(plan(Action.CREATE, memory("f", sources=(Source("dm", "c2"),))), [])
    assert made.memory.evidence == (EvidenceRoom("dm", START + 2 * DAY, START + 2 * DAY),)


def test_a_memory_that_cites_nothing_rests_on_all_that_was_read():
    assert only(plan(Action.CREATE, memory("f")), []).memory.evidence == (
        EvidenceRoom("dm", START + DAY, START + 3 * DAY),
    )


def test_an_update_of_what_was_said_here_is_one():
    change = only(*updated(memory("f", evidence=BEFORE)))
    assert (change.action, change.closes, change.memory.lineage_id, change.number) == (Action.UPDATE, ("f",), "f", 7)
    assert change.memory.evidence == (EvidenceRoom("dm", START, START + 2 * DAY),)


@pytest.mark.parametrize(
    "old",
    [
        memory("f", evidence=PUBLIC),
        memory("f"),
        memory("f", evidence=BEFORE, shared_with=("everyone",)),
        memory("f", evidence=BEFORE, shared_with=("room:team",)),
    ],
    ids=["public", "a caller's", "shared with everyone", "shared with a room"],
)
def test_what_others_may_see_stays_and_the_change_stands_beside_it(old):
    change = only(*updated(old))
    made = change.memory
    assert (change.action, change.closes, change.old_statement) == (Action.CREATE, (), None)
    assert (made.lineage_id, made.version, made.parents, made.shared_with) == ("new", 1, ("f",), ())
    assert {one.room_id for one in made.evidence} == {"dm", *(one.room_id for one in old.evidence)}


def test_a_merge_closes_what_is_of_the_room_alone():
    change = only(*updated(memory("p", evidence=PUBLIC), memory("f", evidence=BEFORE)))
    assert (change.action, change.closes, change.memory.parents) == (Action.CREATE, ("f",), ("p", "f"))


def test_a_public_room_may_change_all():
    square = RoomPeople("square", RoomKind.PUBLIC)
    heard = Heard(square, {Source("square", "c2"): Origin(START, "ann")})
    given, old = updated(memory("f"))
    assert with_evidence(given, old, heard).changes[0].action is Action.UPDATE


@pytest.mark.parametrize("action", [Action.STRENGTH, Action.DELETE])
def test_what_others_may_see_is_neither_strengthened_nor_deleted(action):
    old = memory("f", evidence=PUBLIC, sources=(Source("square", "s"),))
    status = MemoryStatus.DEPRECATED if action is Action.DELETE else MemoryStatus.ACTIVE
    given = plan(action, replace(old, status=status, strength=0.9))
    found = with_evidence(given, [old], Heard(DIRECT, SAID))
    assert found.changes == ()
    assert len(found.rejected) == (action is Action.DELETE)
    own = replace(old, evidence=BEFORE)
    assert len(with_evidence(given, [own], Heard(DIRECT, SAID)).changes) == 1


def test_numbers_have_no_gap_where_a_change_is_left_out():
    old = memory("f", evidence=PUBLIC)
    strong = plan(Action.STRENGTH, old).changes
    new = replace(plan(Action.CREATE, memory("g")).changes[0], number=8)
    found = with_evidence(Plan(changes=(*strong, new)), [old], Heard(DIRECT, SAID))
    assert [(change.number, change.memory.memory_id) for change in found.changes] == [(7, "g")]


def test_who_left_keeps_what_was_known_then():
    stays = {"ann": Stay(START, START), "bo": Stay(START, START, START + DAY)}
    team = RoomPeople("dm", RoomKind.PRIVATE, True, {name: Presence((stay,)) for name, stay in stays.items()})
    old = memory("f", evidence=BEFORE)
    assert only(*updated(old, cited=1), room=team).action is Action.UPDATE
    assert only(*updated(old, cited=2), room=team).action is Action.CREATE


def test_the_next_version_still_replaces_what_the_first_did():
    own = memory("f", evidence=BEFORE, parents=("public", "gone"))
    assert only(*updated(own), replaced=frozenset({"public"})).memory.parents == ("f", "public")


def test_a_share_stays_with_the_same_statement_and_evidence_alone():
    old = memory("f", evidence=BEFORE, shared_with=("room:dm",), sources=(Source("dm", "c0"),))
    assert only(*updated(old)).memory.shared_with == ()
    wide = replace(old, evidence=(EvidenceRoom("dm", START, START + 5 * DAY),))
    confirmed = plan(Action.STRENGTH, replace(wide, sources=(*wide.sources, Source("dm", "c2"))))
    assert only(confirmed, [wide]).memory.shared_with == ("room:dm",)


@pytest.mark.parametrize(
    ("told", "action"),
    [
        (RoomPeople("app", RoomKind.DIRECT, people={"ann": Presence()}), Action.UPDATE),
        (RoomPeople("app", RoomKind.DIRECT, people={"ben": Presence()}), Action.CREATE),
        (RoomPeople("app", RoomKind.DIRECT, people={"ann": Presence(), "ben": Presence()}), Action.CREATE),
        (RoomPeople("app", RoomKind.PRIVATE, people={"ann": Presence()}), Action.CREATE),
        (RoomPeople("app"), Action.CREATE),
    ],
)
def test_what_somebody_said_to_agents_alone_changes_by_what_they_hear_elsewhere(told, action):
    given, old = updated(memory("f", evidence=(EvidenceRoom("app", START, START),)))
    (change,) = with_evidence(given, old, Heard(DIRECT, SAID, others={"app": told})).changes
    assert change.action is action


def test_what_was_edited_is_also_said_when_it_was_edited():
    edited = {**SAID, Source("dm", "c2"): Origin(START + 2 * DAY, "ann", START + 5 * DAY)}
    given, old = updated(memory("old", evidence=BEFORE, sources=(Source("dm", "c1"),)))
    (change,) = with_evidence(given, old, Heard(DIRECT, edited)).changes
    assert change.memory.evidence == (EvidenceRoom("dm", START, START + 5 * DAY),)
