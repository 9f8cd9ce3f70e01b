"""The messages and the work in the rooms of `crash --what evolution`: each follows from the room and a number.

Every text carries its label, 'room/number.place', and every line of the scripted model's answers the number of its
request, so that what is remembered can be traced to the one request that was kept.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roomlore import Message
from roomlore.core.evolution.requests import EvolutionResult

Act = Literal["", "begin", "evolve", "edit"]
"""The work of a number: it adds messages, hands an evolution in, evolves here and now, or changes a memory by hand."""
ANN = "ann"
ABOUT = f"user:{ANN}"
_PEOPLE = ("ben", "cora", "大卫")
_WORDS = (
    "the deploy is stuck again",
    "谁在跑迁移？",
    "hot pot on Friday, as always",
    "周五还是老地方",
    "好的",
    "no pings 🌙",
)
_HABITS = ("eats hot pot on Fridays", "周五吃火锅", "deploys on Mondays", "不在晚上打扰别人", "asks before merging")
_ACT_EVERY = 4
_NO_LINE_EVERY = 13
_MEMORY = re.compile(r"^(m\d+) \[[^\]\n]*\]: (.*)$", re.MULTILINE)
_MESSAGE = re.compile(r"^(c\d+) \[[^\]\n]*\] [^\n]*?(\w+/\d+\.\d+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Room:
    """`acts`: in turn, one for every fourth number. `scope`: what evolves there. `alone`: whether nothing but durable
    work evolves it, and nobody changes its memories by hand."""

    name: str
    scope: str
    acts: Sequence[Act] = ()
    alone: bool = True


ROOMS = (
    Room("begun", "group:begun", ("begin",)),
    Room("direct", "group:direct", ("evolve",), alone=False),
    Room("mixed", "group:mixed", ("begin", "evolve", "edit", "evolve"), alone=False),
    Room("waiting", "group:waiting"),
    Room("about", ABOUT, ("begin",)),
)
"""`waiting` is evolved by the schedule alone, which evolves the others too."""
SCOPES = (*dict.fromkeys(f"group:{room.name}" for room in ROOMS), ABOUT)
ALONE = frozenset(f"group:{room.name}" for room in ROOMS if room.alone) | {ABOUT}
"""Scopes that only durable work evolves, one after the other."""


def act(room: Room, number: int) -> Act:
    if not room.acts or number % _ACT_EVERY != _ACT_EVERY - 1:
        return ""
    return room.acts[number // _ACT_EVERY % len(room.acts)]


def messages(room: Room, number: int) -> list[Message]:
    """Return the messages added at once if the number does nothing else."""
    if room.scope == ABOUT:
        return [_message(room, number, place, sender) for place, sender in enumerate((ANN, _PEOPLE[number % 3]))]
    return [_message(room, number, place, _PEOPLE[(number + place) % 3]) for place in range(1 + number % 3)]


def edited(label: str) -> str:
    """Return the change that somebody makes to a memory by hand."""
    return f"edit {label}: 手改的"


def report_of(result: EvolutionResult) -> str:
    """Return what somebody is told of an evolution, in a line."""
    did = [f"{change.number} {change.action.value} {change.memory.memory_id}" for change in result.changes]
    return "; ".join([f"{result.messages} messages", *did, *(rejection.reason for rejection in result.rejected)])


@dataclass(frozen=True, slots=True)
class Shown:
    """The input of a model: statements and the labels of messages, by handle."""

    memories: Mapping[str, str]
    labels: Mapping[str, str]

    @classmethod
    def of(cls, prompt: str) -> "Shown":
        return cls(dict(_MEMORY.findall(prompt)), dict(_MESSAGE.findall(prompt)))

    @property
    def scope(self) -> str:
        """Whose memories they are: each number of that room has a message of somebody else's."""
        label = next(iter(self.labels.values()), "/")
        room = label.partition("/")[0]
        alone = room == "about" and all(label.endswith(".0") for label in self.labels.values())
        return ABOUT if alone else f"group:{room}"


def answer(number: int, shown: Shown) -> str:
    """Return the model's answer: lines of all kinds, some that cannot be followed, and now and then none that can."""
    if number % _NO_LINE_EVERY == 0:
        return f"I am sorry, request {number} is too much for me."
    chance = random.Random(number)
    handles = chance.sample(list(shown.memories), len(shown.memories))
    evidence = chance.sample(list(shown.labels), min(2, len(shown.labels)))
    operations = [_operation(number, "keep", old_id="m1"), _operation(number, "delete", old_id="m99")]
    operations += [_operation(number, "create", place=place, evidence=evidence) for place in range(number % 3)]
    if handles and number % 4:
        handle = handles.pop()
        update = {"old_id": handle, "evidence": evidence, "confidence": 0.7}
        operations.append(_operation(number, "update", place=7, habits=_habits(shown, handle), **update))
    if len(handles) > 2 and number % 3 == 1:
        both = [handles.pop(), handles.pop()]
        operations.append(_operation(number, "update", place=8, habits=_habits(shown, *both), old_ids=both))
    if handles and number % 5 == 2:
        operations.append(_operation(number, "delete", old_id=handles.pop(), evidence=list(shown.labels)))
    if handles and number % 2:
        said = handles.pop()
        operations.append(
            {**_operation(number, "update", old_id=said, evidence=evidence), "statement": shown.memories[said]}
        )
    return "\n".join(json.dumps(operation, ensure_ascii=False) for operation in operations)


def _operation(
    number: int, action: str, *, place: int | None = None, habits: str = "", **fields: Any
) -> dict[str, Any]:
    """`habits`: of the memories that an update is to replace, which it keeps."""
    habit_text = habits or _HABITS[(number + (place or 0)) % 5]
    statement = {} if place is None else {"statement": f"request n{number}p{place} by n{number} {habit_text}"}
    return {"action": action, **statement, "change_reason": f"request {number}", **fields}


def _habits(shown: Shown, *handles: str) -> str:
    """Return what these memories say, without the requests that said it: each habit once."""
    statements = [shown.memories[handle] for handle in handles]
    habits = [
        statement.split(" ", 4)[4] if statement.startswith("request n") else statement for statement in statements
    ]
    return " & ".join(dict.fromkeys(habit for habit_list in habits for habit in habit_list.split(" & ")))


def _message(room: Room, number: int, place: int, sender: str) -> Message:
    label = f"{room.name}/{number}.{place}"
    return Message(
        id=label, room_id=room.name, sender_id=sender, text=f"{label} {_WORDS[(number + place) % len(_WORDS)]}"
    )
