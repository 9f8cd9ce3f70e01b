"""The checks of `python -m bench crash --what evolution` see each thing that must not be."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bench.crash_checks import Known
from bench.crash_stored import Step
from bench.evolution_again import Told, planned
from bench.evolution_checks import violations
from bench.evolution_items import ROOMS, SCOPES, Shown, act, answer, messages, report_of
from bench.evolution_model import EvolutionRequest
from bench.evolution_stored import PLACES, Stored

from roomlore import StoredMessage
from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.requests import Rules
from roomlore.core.memory.log import active, replay
from roomlore.core.memory.memory import Change, Evolution, MemoryStatus
from roomlore.ports.durable import WorkState
from roomlore.services.evolution import EVOLUTION
from roomlore.services.evolution.piece import result_of
from roomlore_testkit import builders

BEGUN, DIRECT = ROOMS[0], ROOMS[1]
SCOPE = BEGUN.scope
ENDS = (6, 9)
"""Arrivals at which the two evolutions of the room `begun` end; the numbers 0 to 2 and 4 were said by then."""
REQUESTS = (5, 7)
"""Both answers have lines that cannot be followed beside those that can."""


def said() -> list[StoredMessage]:
    given = [message for number in (0, 1, 2, 4, 5) for message in messages(BEGUN, number)]
    return [
        builders.message(place, id=one.id, room_id="begun", sender_id=one.sender_id, text=one.text)
        for place, one in enumerate(given, start=1)
    ]


def world() -> tuple[list[Evolution], list[Change], list[EvolutionRequest]]:
    """Two evolutions of one room, one after the other."""
    records: list[Evolution] = []
    log: list[Change] = []
    asked: list[EvolutionRequest] = []
    for place, (number, last) in enumerate(zip(REQUESTS, ENDS, strict=True)):
        first = ENDS[place - 1] + 1 if place else 1
        one, request = evolved(f"e{number}", number, first, last, log)
        records.append(one.record)
        log += one.own
        asked.append(request)
    return records, log, asked


def evolved(name: str, number: int, first: int, last: int, before: Sequence[Change]) -> tuple[Told, EvolutionRequest]:
    covered = [message.id for message in said()[first - 1 : last]]
    in_force = [memory.statement for memory in active(replay(before))]
    shown = Shown(
        {f"m{at}": statement for at, statement in enumerate(in_force, start=1)},
        {f"c{at}": label for at, label in enumerate(covered, start=1)},
    )
    at = builders.START + timedelta(days=1, minutes=number)
    record = builders.evolution(
        name, scope=SCOPE, kind="evolution", status="applied", room_id="begun", first_arrival=first, last_arrival=last,
        messages=len(covered), raw_answer=answer(number, shown), quarantined=(), model="scripted/m", finished_at=at,
    )  # fmt: skip
    one = Told(record=record, before=list(before), own=[], messages=said(), shown=shown)
    plan = planned(one, Rules())
    assert plan is not None
    changes = [replace(change, memory=_named(change, number)) for change in plan.changes]
    record = replace(record, quarantined=tuple((refused.text, refused.reason) for refused in plan.rejected))
    request = EvolutionRequest(number, number, "evolution", f"prompt {number}", shown=shown)
    return replace(one, record=record, own=changes), request


def _named(change: Change, number: int) -> Any:
    """New ids tell the evolution, as real ones do."""
    memory = change.memory
    renamed = {
        field: value.replace("another", f"of{number}")
        for field in ("memory_id", "lineage_id")
        if (value := getattr(memory, field)).startswith("another")
    }
    return replace(memory, **renamed)


RECORDS, LOG, ASKED = world()


def work(name: str, **fields: Any) -> WorkState:
    given: dict[str, Any] = {
        "work_id": f"w{name}",
        "name": EVOLUTION,
        "partition": SCOPE,
        "arguments": {"evolution_id": name, "scope": SCOPE},
        "status": "done",
        "attempts": 1,
        "progress": "",
        "error": "",
        "created_at": builders.START,
        "updated_at": builders.START,
    }
    return WorkState(**(given | fields))


def stored(**fields: Any) -> Stored:
    given: dict[str, Any] = {
        "messages": {room.name: said() if room is BEGUN else [] for room in ROOMS},
        "logs": {scope: LOG if scope == SCOPE else [] for scope in SCOPES},
        "records": {scope: RECORDS if scope == SCOPE else [] for scope in SCOPES},
        "marks": {place: ENDS[-1] if place[0] == SCOPE else 0 for place in PLACES},
        "steps": [Step(f"we{number}", number, 0.0) for number in REQUESTS],
        "works": [work(f"e{number}") for number in REQUESTS],
    }
    return Stored(**(given | fields))


def with_log(log: Sequence[Change]) -> Stored:
    return stored(logs={scope: log if scope == SCOPE else [] for scope in SCOPES})


def with_records(records: Sequence[Evolution]) -> Stored:
    return stored(records={scope: records if scope == SCOPE else [] for scope in SCOPES})


def with_messages(change: Callable[[list[StoredMessage]], object]) -> Stored:
    changed = said()
    change(changed)
    return stored(messages={room.name: changed if room is BEGUN else [] for room in ROOMS})


def known(*more: EvolutionRequest, **fields: Any) -> Known:
    handed_in = {room.name: 6 if room is BEGUN else 0 for room in ROOMS}
    acknowledged = {("begun", number): None for number in range(6) if not act(BEGUN, number)}
    given: dict[str, Any] = {
        "handed_in": handed_in,
        "acknowledged": {**acknowledged, ("begun", 3): ("job", "e5")},
        "requests": [*ASKED, *more],
    }
    return Known(**(given | fields))


def test_what_is_whole_passes() -> None:
    assert {change.action.value for change in LOG} >= {"create", "update"}
    assert all(record.quarantined for record in RECORDS)
    assert violations(known(), stored()) == []


FIRST = [change for change in LOG if change.evolution_id == "e5"]
SECOND = [change for change in LOG if change.evolution_id == "e7"]
MADE = replace(LOG[-1], memory=replace(LOG[-1].memory, statement="something else"))
FORGOTTEN = replace(LOG[0], memory=replace(LOG[0].memory, status=MemoryStatus.DEPRECATED))
MARKS = {place: 8 if place[0] == SCOPE else 0 for place in PLACES}
WRONG = {
    "begun/5.0 was handed in and is not stored as it was": with_messages(lambda m: m.pop(8)),
    "begun/5.0 is stored 2 times": with_messages(lambda m: m.append(replace(m[8], arrival=len(m) + 1))),
    "stranger was never handed in": with_messages(
        lambda m: m.append(builders.message(len(m) + 1, id="stranger", room_id="begun"))
    ),
    "begun: arrivals are not 1 to": with_messages(lambda m: m.__setitem__(-1, replace(m[-1], arrival=99))),
    "its answer asks for": with_log(LOG[:-1]),
    "e7 of group:begun: its answer asks for": with_log([*LOG[:-1], MADE]),
    "e5 of group:begun: its answer asks for": with_log([FORGOTTEN, *LOG[1:]]),
    "changes come from e7, which has no record": with_records(RECORDS[:1]),
    "e7 is applied, and 0 changes are its own": with_log(FIRST),
    "e7 is nothing, and 1 changes are its own": with_records([RECORDS[0], replace(RECORDS[1], status="nothing")]),
    "the changes of e7 lie apart": with_log([*SECOND[:1], *FIRST, *SECOND[1:]]),
    "its mark in begun is at 8, and its last evolution ended at 9": stored(marks=MARKS),
    "read a message of begun twice": with_records([RECORDS[0], replace(RECORDS[1], first_arrival=6)]),
    "or passed one over": with_records([RECORDS[0], replace(RECORDS[1], first_arrival=8)]),
    "two evolutions end at 6": with_records([RECORDS[0], replace(RECORDS[1], first_arrival=1, last_arrival=6)]),
    "e7 of group:begun says that it read 2 messages": with_records([RECORDS[0], replace(RECORDS[1], messages=2)]),
    "it refused other lines of its answer": with_records([RECORDS[0], replace(RECORDS[1], quarantined=())]),
    "the evolution e5 was handed in and is no work": stored(works=[work("e7")]),
    "work we5 is failed: why": stored(works=[work("e5", status="failed", error="why"), work("e7")]),
    "work we5 is waiting": stored(works=[work("e5", status="waiting"), work("e7")]),
    "work we5 of group:begun: the answers [] were written, and [5] is kept": stored(steps=[Step("we7", 7, 0.0)]),
    "work we5 of group:begun: the answers [4, 5] were written": stored(
        steps=[Step("we5", 4, 0.0), Step("we5", 5, 0.0), Step("we7", 7, 0.0)]
    ),
    "work we5 of group:begun: the answers [6] were written": stored(steps=[Step("we5", 6, 0.0), Step("we7", 7, 0.0)]),
    "work we8 of group:begun: the answers [8] were written, and [] is kept": stored(
        works=[*(work(f"e{number}") for number in REQUESTS), work("e8")],
        steps=[Step("we5", 5, 0.0), Step("we7", 7, 0.0), Step("we8", 8, 0.0)],
    ),
    "work we8 of group:mixed: the answers [] were written, and [5] is kept": stored(
        works=[work("e7"), work("e5", work_id="we8", arguments={"evolution_id": "e5", "scope": "group:mixed"})]
    ),
    "the file is broken": stored(troubles=["the file is broken"]),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_half_done_lost_or_there_twice_is_seen(wrong: str) -> None:
    assert any(wrong in line for line in violations(known(), WRONG[wrong]))


def test_an_answer_that_is_kept_and_asked_for_again_is_seen() -> None:
    again = replace(ASKED[1], life=9, number=9)
    assert violations(known(again), stored()) == ["request 7 is kept, and the model was asked once more, 9"]


def test_messages_of_an_unusable_answer_that_are_asked_about_again_are_seen() -> None:
    """An evolution of which no line was followed counts its messages as read: no later one may read them."""
    no_line = "I am sorry, request 6 is too much for me."
    failed = replace(
        RECORDS[1],
        evolution_id="e6",
        status="failed",
        raw_answer=no_line,
        quarantined=tuple((one.text, one.reason) for one in read_answer(no_line).rejected),
        finished_at=RECORDS[1].finished_at - timedelta(seconds=30),
    )
    works = [work(name) for name in ("e5", "e6", "e7")]
    steps = [Step(f"we{number}", number, 0.0) for number in (5, 6, 7)]
    sorry = replace(ASKED[1], number=6)
    seen = replace(with_records([RECORDS[0], failed, RECORDS[1]]), works=works, steps=steps)
    told_again = violations(known(sorry), seen)
    assert any("two evolutions end at 9" in line for line in told_again)
    assert "request 6 is kept, and the model was asked once more, 7" in told_again


def test_only_another_life_may_ask_again() -> None:
    before = replace(ASKED[1], life=6, number=6)
    assert violations(known(before), stored()) == []
    in_the_same = replace(ASKED[1], number=6)
    assert violations(known(in_the_same), stored()) == ["requests 6 and 7 show the same and were made in one life"]


def test_a_model_that_was_shown_other_memories_or_messages_is_seen() -> None:
    shown = ASKED[1].shown
    other = [
        replace(ASKED[1], shown=replace(shown, memories={})),
        replace(ASKED[1], shown=replace(shown, memories={"m1": "never said"})),
        replace(ASKED[1], shown=replace(shown, labels={"c1": "begun/0.0"})),
    ]
    found = [violations(known(requests=[ASKED[0], one]), stored()) for one in other]
    assert any("other memories than there were" in line for line in found[0])
    assert any("memories that its scope did not have" in line for line in found[1])
    assert any("was shown ['begun/0.0'], and it read" in line for line in found[2])


def test_an_evolution_that_no_model_was_asked_for_is_seen() -> None:
    assert "e7: no model was asked" in violations(known(requests=ASKED[:1]), stored())


def test_what_somebody_was_told_of_an_evolution_is_what_is_stored() -> None:
    """That of the room `direct` stands for one of `begun`, whose record is there."""
    right = report_of(result_of(RECORDS[1], SECOND))
    place = ("direct", 3)
    assert act(DIRECT, 3) == "evolve"
    assert violations(known(acknowledged={place: ("e7", right)}), stored()) == []
    wrong = violations(known(acknowledged={place: ("e7", "1 messages")}), stored())
    assert wrong == ["direct/3: the evolution e7 is not stored as somebody was told"]
    gone = violations(known(acknowledged={place: ("e8", right)}), stored())
    assert gone == ["direct/3: the evolution e8 is not stored as somebody was told"]


def test_others_may_overtake_work_where_others_evolve_too() -> None:
    mixed = work("e8", arguments={"evolution_id": "e8", "scope": "group:mixed"})
    steps = [Step("we5", 5, 0.0), Step("we7", 7, 0.0), Step("we8", 6, 0.0), Step("we8", 8, 0.0)]
    works = [*(work(f"e{number}") for number in REQUESTS), mixed]
    assert violations(known(), stored(works=works, steps=steps)) == []


def test_a_change_by_hand_that_is_lost_is_seen() -> None:
    number = next(number for number in range(99) if act(ROOMS[2], number) == "edit")
    edited = {("mixed", number): ("v1", "edit")}
    assert violations(known(acknowledged=edited), stored()) == [f"mixed/{number}: what was changed by hand is lost"]


def test_what_was_seen_while_they_lived_is_told() -> None:
    assert violations(replace(known(), wrong=["it died"]), stored()) == ["it died"]


def test_what_is_shown_is_read_from_a_prompt() -> None:
    prompt = (
        "Rules\n<memories>\nm1 [v1, 2026-11-22]: 周五吃火锅\nm2 [v2, 2026-11-22, stale]: request 3.7\n</memories>\n"
        "<messages>\nc1 [Sun 2026-11-22 09:00] ann: about/1.0 好的\nc2 [Sun 2026-11-22 09:00] ben: about/1.1 ok\n"
    )
    shown = Shown.of(prompt)
    assert dict(shown.memories) == {"m1": "周五吃火锅", "m2": "request 3.7"}
    assert dict(shown.labels) == {"c1": "about/1.0", "c2": "about/1.1"}
    assert shown.scope == "group:about"
    assert replace(shown, labels={"c1": "about/1.0"}).scope == "user:ann"
