"""Judges for evolutions: what becomes of each line of a model's answer, and what rules remember of a week."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import roomlore
from bench.verdicts import Case, Judged, Verdict, has
from roomlore.adapters.inprocess import SystemClock
from roomlore.core.evolution.guards import checked_answer
from roomlore.core.models import Message
from roomlore_testkit import memory

_TEMPLATE = '{"action": "create", "evidence": ["c9"], "statement": "an example", "change_reason": "an example"}'
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ALL_DAYS = 3_650
_AFTER = timedelta(minutes=30)


class CaseClock(SystemClock):
    """A clock that stands at the time of the case that is played; `at` None is the system's."""

    at: datetime | None = None

    def now(self) -> datetime:
        return self.at.astimezone(UTC) if self.at else super().now()


CLOCK = CaseClock()
_DONE: Mapping[str, Mapping[str, Verdict]] = {
    "applied": {"applied": "right", "doubtful": "partly", "refused": "wrong"},
    "doubtful": {"applied": "wrong", "doubtful": "right", "refused": "right"},
    "refused": {"applied": "wrong", "doubtful": "partly", "refused": "right"},
}


async def evolution(lore: roomlore.Lore, case: Case) -> list[Judged]:
    """Judge each line of an answer: applied, applied with a mark of doubt, or refused. Of a good line a mark is partly
    right; of one that should be refused too."""
    offered = {
        memory_case["handle"]: memory(f"id{memory_case['handle']}", statement=memory_case["text"])
        for memory_case in case["memories"]
    }
    answer = checked_answer(
        "\n".join(_line(operation_case) for operation_case in case["answer"]),
        template=_TEMPLATE,
        offered=offered,
        shown="\n".join(map(_shown, case["messages"])),
        silent=lambda _text: False,
        repair=lambda text: text,
    )
    done = {operation.line - 1: "doubtful" if operation.doubtful else "applied" for operation in answer.operations}
    for operation in answer.operations:
        if any(handle not in offered for handle in operation.handles):
            done[operation.line - 1] = "refused"
    judgements = []
    for wanted, lines in case["expect"].items():
        for at in lines:
            became = done.get(at, "refused")
            why = f"{became}, not {wanted}: {case['answer'][at]}"
            judgements.append(Judged(f"{wanted}, {case['kind']}", _DONE[wanted][became], why))
    return judgements


def _line(given: Mapping[str, Any]) -> str:
    names = {"content": "statement", "message_ids": "evidence"}
    return json.dumps({names.get(key, key): value for key, value in given.items()}, ensure_ascii=False)


def _shown(message: Mapping[str, Any]) -> str:
    at = datetime.fromisoformat(message["at"])
    text = " ".join(message["text"].split())
    return f"{message['id']} [{_WEEKDAYS[at.weekday()]} {at:%Y-%m-%d %H:%M}] {message['sender']}: {text}"


async def offline_weeks(lore: roomlore.Lore, case: Case) -> list[Judged]:
    """Judge what rules remember after a week in which they read each day at its end."""
    nights = [held async for held in _nights(lore, case)]
    return list(_week(case, nights[-1]))


async def notes(lore: roomlore.Lore, case: Case) -> list[Judged]:
    """Judge a later note: a correction takes the place of what was settled, a note on something else of nothing."""
    nights = [held async for held in _nights(lore, case)]
    known = any(any(has(statement, case["before"]["words"]) for statement in held) for held in nights)
    missing = [entry for entry in case["after"] if not any(has(one, entry["words"]) for one in nights[-1])]
    left = [one for one in nights[-1] for entry in case["gone"] if has(one, entry["words"])]
    yielded = [
        Judged("settled things are remembered", "right" if known else "wrong", f"{case['before']} not in {nights[0]}")
    ]
    if case["kind"] == "unrelated":
        verdict: Verdict = "right" if not missing or not known else "wrong"
        return [*yielded, Judged("unrelated notes overwrite nothing", verdict, f"{missing} lost, {nights[-1]}")]
    good = not missing and not left
    why = f"lacks {missing}, still {left}, of {nights[-1]}"
    return [
        *yielded,
        Judged("corrections are applied", "right" if good else "partly" if not left else "wrong", why),
        Judged("what was corrected is not in force", "wrong" if left else "right", why),
    ]


async def _nights(lore: roomlore.Lore, case: Case) -> AsyncIterator[list[str]]:
    """Yield what is remembered after each day of a chat."""
    room = case["id"]
    for _, messages in groupby(case["messages"], key=lambda message: message["at"][:10]):
        told = list(messages)
        CLOCK.at = datetime.fromisoformat(told[-1]["at"]) + _AFTER
        await lore.messages.add([_message(room, message) for message in told])
        await lore.memories.evolve(room, days=_ALL_DAYS, mode="offline")
        yield [one.statement for one in await lore.memories.page(f"group:{room}")]


def _week(case: Case, held: Sequence[str]) -> Iterator[Judged]:
    for hold in case["holds"]:
        met = any(has(statement, hold["words"]) for statement in held)
        yield Judged("what holds", "right" if met else "wrong", f"lacks {hold['say']}")
    for kind in ("outdated", "noise"):
        for gone in case[kind]:
            broken = [
                statement for statement in held if has(statement, gone["words"]) and not _is_hold(case, statement)
            ]
            yield Judged(f"{kind} is not held", "wrong" if broken else "right", f"has {broken}")
    for statement in held:
        yield Judged(
            "memories made", "right" if _is_hold(case, statement) else "partly", f"nobody asked for {statement}"
        )


def _is_hold(case: Case, statement: str) -> bool:
    return any(has(statement, hold["words"]) for hold in case["holds"])


def _message(room: str, given: Mapping[str, Any]) -> Message:
    sender = given["sender"]
    at = datetime.fromisoformat(given["at"])
    return Message(id=given["id"], room_id=room, sender_id=sender, sender_name=sender, text=given["text"], sent_at=at)
