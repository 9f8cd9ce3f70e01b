"""The checks of `python -m bench crash` see each thing that must not be."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from bench.crash_checks import Known, violations
from bench.crash_items import ROOMS, answer, item, memory
from bench.crash_model import Request
from bench.crash_stored import Step, Stored

from bench import crash_forgetting
from roomlore import StoredMessage
from roomlore.ports.durable import WorkState
from roomlore.services.extraction import EXTRACTION
from roomlore_testkit import builders

TOLD, ALONE, KEPT = (next(room for room in ROOMS if room.name == name) for name in ("told", "alone", "kept"))
REPLY = "alone/0-reply"
MARK = "told/4#0"


def said() -> dict[str, list[StoredMessage]]:
    """Five questions with replies that were handed in, and one reply that was asked for."""
    messages: dict[str, list[StoredMessage]] = {room.name: [] for room in ROOMS}
    for message in (message for number in range(5) for message in item(TOLD, number).messages):
        _store(messages["told"], message.id, text=message.text, sender_id=message.sender_id, role=message.role)
    asked = item(ALONE, 0).messages[0]
    _store(messages["alone"], asked.id, text=asked.text, sender_id=asked.sender_id)
    replied = {"sender_id": "bot", "role": "assistant", "reply_to": asked.id, "metadata": {"roomlore_reply": {}}}
    _store(messages["alone"], REPLY, text=answer("alone/0", 1), **replied)
    return messages


def _store(messages: list[StoredMessage], message_id: str, **fields: object) -> None:
    messages.append(builders.message(len(messages) + 1, id=message_id, **fields))


def known() -> Known:
    handed_in = {room.name: {"told": 5, "alone": 1}.get(room.name, 0) for room in ROOMS}
    acknowledged: dict[tuple[str, int], tuple[str, str] | None] = {("told", number): None for number in range(5)}
    acknowledged["alone", 0] = (REPLY, answer("alone/0", 1))
    requests = [Request(1, 1, "reply", "alone/0"), Request(1, 2, "memory", MARK)]
    return Known(handed_in=handed_in, acknowledged=acknowledged, requests=requests)


def stored() -> Stored:
    raw = memory(MARK, 2)
    evolution = builders.evolution(
        scope="agent:bot", room_id="told", first_arrival=1, last_arrival=10, messages=10, raw_answer=raw
    )
    kept = builders.memory("x", scope="agent:bot", statement=raw, evolution_id=evolution.evolution_id)
    return Stored(
        messages=said(),
        evolutions=[evolution],
        memories=[kept],
        steps=[Step("w", 2, 0.0)],
        works=[work()],
        windows={"kept": []},
    )


def with_a_merge(times: int = 1, steps: int = 1) -> tuple[Known, Stored]:
    """The extraction also merged the oldest memories."""
    asked, before = known(), stored()
    merge = builders.evolution(
        scope="agent:bot", room_id="told", first_arrival=1, last_arrival=10, evolution_id="merge",
        raw_answer=memory("", 3), facts={"folded": ["x"]},
    )  # fmt: skip
    kept = builders.memory("y", scope="agent:bot", statement=memory("", 3), evolution_id="merge")
    return replace(asked, requests=[*asked.requests, Request(1, 3, "fold", "notes")]), replace(
        before,
        evolutions=[*before.evolutions, *[merge] * times],
        memories=[*before.memories, kept],
        steps=[*before.steps, *[Step("w", 3, 1.0)] * steps],
    )


def test_a_merge_of_short_memories_is_no_second_extraction():
    assert violations(*with_a_merge()) == []


@pytest.mark.parametrize(("times", "steps"), [(2, 1), (0, 1), (1, 0), (1, 2)])
def test_a_merge_is_there_once_and_was_paid_for_once(times, steps):
    assert violations(*with_a_merge(times, steps))


def work(**fields: object) -> WorkState:
    about = {"agent_id": "bot", "room_id": "told", "last": 10}
    given = {
        "work_id": "w",
        "name": EXTRACTION,
        "partition": "told",
        "arguments": about,
        "status": "done",
        "attempts": 1,
        "progress": "",
        "error": "",
        "created_at": builders.START,
        "updated_at": builders.START,
    }
    return WorkState(**(given | fields))  # type: ignore[arg-type]


def with_messages(room: str, change: Callable[[list[StoredMessage]], object]) -> Stored:
    messages = said()
    change(messages[room])
    return replace(stored(), messages=messages)


def asked(*requests: Request) -> Known:
    return replace(known(), requests=[*known().requests, *requests])


def test_what_is_whole_passes() -> None:
    assert violations(known(), stored()) == []


def test_only_another_life_may_ask_again() -> None:
    again = known()
    again.requests = [Request(0, 3, "reply", "alone/0"), *again.requests]
    assert violations(again, stored()) == []
    again.requests = [Request(1, 0, "reply", "alone/0"), *known().requests]
    assert violations(again, stored()) == ["reply alone/0: requests 0 and 1 were made in one life"]


EVOLUTION = stored().evolutions[0]
MEMORY = stored().memories[0]
LOST = {
    "alone/0-reply was acknowledged and is lost": with_messages("alone", lambda m: m.pop()),
    "told/0 was acknowledged and is lost": with_messages("told", lambda m: m.pop(0)),
    "told/3 is stored 2 times": with_messages("told", lambda m: m.append(replace(m[6], arrival=11))),
    "told/3 says something else": with_messages("told", lambda m: m.__setitem__(6, replace(m[6], text="something"))),
    "stranger was never handed in": with_messages("alone", lambda m: m.append(builders.message(3, id="stranger"))),
    "alone: arrivals are not 1 to 2": with_messages("alone", lambda m: m.__setitem__(1, replace(m[1], arrival=3))),
    "alone/0-reply is no reply of bot to alone/0": with_messages(
        "alone", lambda m: m.__setitem__(1, replace(m[1], reply_to=None))
    ),
    "kept: its session does not show what is stored": replace(stored(), windows={"kept": ["more"]}),
    "the extraction of bot in told up to 10 is missing": replace(stored(), evolutions=[], memories=[]),
    "the extraction of bot in told up to 9 was not due": replace(
        stored(), evolutions=[replace(EVOLUTION, last_arrival=9)]
    ),
    "the extraction of bot in told up to 10 is there 2 times": replace(stored(), evolutions=[EVOLUTION, EVOLUTION]),
    "begins before the one before it ends": replace(
        stored(), evolutions=[EVOLUTION, replace(EVOLUTION, evolution_id="e2", first_arrival=7, last_arrival=11)]
    ),
    "made 0 memories, not 1": replace(stored(), memories=[]),
    "made 2 memories, not 1": replace(stored(), memories=[MEMORY, MEMORY]),
    "memories come from e9, which is no extraction": replace(stored(), memories=[replace(MEMORY, evolution_id="e9")]),
    "made a memory of another answer": replace(
        stored(), memories=[replace(MEMORY, statement=memory(MARK, 9))]
    ),
    "made a memory of other messages": replace(
        stored(), memories=[replace(MEMORY, statement=memory("told/3#0", 2))]
    ),
    "read 4 messages with 5 replies": replace(stored(), evolutions=[replace(EVOLUTION, messages=4)]),
    "read 10 messages with 3 replies": replace(stored(), evolutions=[replace(EVOLUTION, first_arrival=6)]),
    "work w is failed: why": replace(stored(), works=[work(status="failed", error="why")]),
    "work w is waiting": replace(stored(), works=[work(status="waiting")]),
    "no work is written for the extraction of bot in told up to 10": replace(stored(), works=[]),
    "is there 2 times": replace(stored(), works=[work(), work(work_id="v")]),
    "the finished steps are of []": replace(stored(), steps=[]),
    "the finished steps are of [2, 2]": replace(stored(), steps=[Step("w", 2, 0.0), Step("w", 2, 0.0)]),
    "the finished steps are of [1]": replace(stored(), steps=[Step("w", 1, 0.0)]),
    "the file is broken": replace(stored(), troubles=["the file is broken"]),
}  # fmt: skip
PAID = {
    "memory told/4#0: request 2 is kept, and the model was asked once more, 3": Request(2, 3, "memory", MARK),
    "reply alone/0: request 1 is kept, and the model was asked once more, 3": Request(2, 3, "reply", "alone/0"),
    "memory told/2#0: a model was asked, and nothing came of it": Request(2, 3, "memory", "told/2#0"),
    "reply (of nothing known): a model was asked, and nothing came of it": Request(2, 3, "reply", ""),
}


@pytest.mark.parametrize("wrong", LOST)
def test_what_is_lost_or_there_twice_is_seen(wrong: str) -> None:
    assert any(wrong in line for line in violations(known(), LOST[wrong]))


@pytest.mark.parametrize("wrong", PAID)
def test_what_was_paid_twice_is_seen(wrong: str) -> None:
    assert wrong in violations(asked(PAID[wrong]), stored())


def test_a_kept_answer_that_no_model_gave_is_seen() -> None:
    none = replace(known(), requests=known().requests[:1])
    assert violations(none, stored()) == ["memory told/4#0: kept, and no model was asked"]


def test_what_was_seen_while_they_lived_is_told() -> None:
    assert violations(replace(known(), wrong=["it died"]), stored()) == ["it died"]


def test_items_are_the_same_every_time() -> None:
    assert [item(room, number) for room in ROOMS for number in range(9)] == [
        item(room, number) for room in ROOMS for number in range(9)
    ]


def forgetting_known() -> Known:
    return Known(handed_in={crash_forgetting.FORGET: 1, "ben-0": 2})


def forgetting_stored(change: Callable[[list[StoredMessage]], object] = lambda _: None) -> crash_forgetting.Stored:
    messages: list[StoredMessage] = []
    for number in range(2):
        one = crash_forgetting.of_ben("ben-0", number)
        _store(messages, one.id, room_id=one.room_id, sender_id=one.sender_id, text=one.text)
    change(messages)
    return crash_forgetting.Stored(messages=messages)


FORGETTING = {
    "ben-0/1 of Ben's in shared is stored 0 times": lambda m: m.pop(),
    "ben-0/0 of Ben's in person-0-0 is stored 2 times": lambda m: m.append(m[0]),
    "ben-0/0 of Ben's in person-0-0 is stored 0 times": lambda m: m.__setitem__(0, replace(m[0], text="[forgotten]")),
    "ben-0/9 in shared is nothing that Ben said": lambda m: m.append(replace(m[1], id="ben-0/9")),
    "x in shared is left of person-0": lambda m: m.append(replace(m[1], id="x", sender_id="person-0")),
}


def test_what_forgetting_leaves_whole_passes() -> None:
    assert crash_forgetting.violations(forgetting_known(), forgetting_stored()) == []


@pytest.mark.parametrize("wrong", FORGETTING)
def test_what_forgetting_loses_or_leaves_is_seen(wrong: str) -> None:
    assert wrong in crash_forgetting.violations(forgetting_known(), forgetting_stored(FORGETTING[wrong]))
