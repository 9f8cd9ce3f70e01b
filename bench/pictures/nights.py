"""A group whose memory evolves for a week of nights. What people say and what the model answers is a script; what
becomes of it is roomlore's."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from bench.pictures.held import BEGIN
from roomlore import Lore, Message, Settings
from roomlore_testkit import FrozenClock
from roomlore_testkit.model_server import Asked, ModelServer

ROOM = "rowers"
_MODEL = "memory-evolve-model"
_PIER = "They row on Thursdays at six from the old pier"
_BREAKFAST = "划完船一起吃早饭，老周带茶和包子"
_PHONES = "Phones stay on shore"
_FRIDAY = "They row on Fridays at six from the old pier"
_NOVICES = "新人先在小船上练两次"
_RED = "红船漏水，修好之前不下水"
_LAST = "Whoever comes last washes the boat"
_HATS = "They row on Fridays at six, all in pirate hats"
_BOTH = "新人先在红船上练两次，红船已修好，最稳"
_BAG = "Phones stay on shore; one comes along in the dry bag"


@dataclass(frozen=True)
class Operation:
    """The wish of the model: `of` are statements that it was shown, `after` is where words of its evidence stand."""

    action: str
    reason: str
    statement: str = ""
    of: Sequence[str] = ()
    after: Sequence[str] = ()


@dataclass(frozen=True)
class Day:
    """The messages of a day, and what the model makes of them at night. `regret`: why somebody takes that back the next
    morning."""

    said: Sequence[tuple[str, str]]
    operations: Sequence[Operation]
    regret: str = ""


WEEK: Sequence[Day] = (
    Day(
        (
            ("Ines", "Shall we row on Thursday again? The water was perfect today."),
            ("阿涛", "周四可以，六点老码头见"),
            ("Noor", "Thursday at six is good for me too"),
            ("老周", "我带茶和包子，划完一起吃早饭"),
            ("Sam", "Breakfast after rowing is the best part of it"),
            ("Ines", "And no phones in the boat please, we lost two last year 😅"),
        ),
        (
            Operation("create", "three agree on it", _PIER, after=("on Thursday again", "周四可以", "Thursday at six")),
            Operation("create", "两个人都这么说", _BREAKFAST, after=("茶和包子", "Breakfast after")),
            Operation("create", "a rule after a loss", _PHONES, after=("no phones",)),
        ),
    ),
    Day(
        (
            ("阿涛", "周四风大，要不改周五？"),
            ("Noor", "Friday works, and Fridays are calmer anyway"),
            ("Ines", "Then let us row on Fridays from now on"),
            ("老周", "好，以后都周五"),
            ("Noor", "新人先在小船上练两次吧"),
            ("阿涛", "同意，小船稳一点"),
        ),
        (
            Operation(
                "update",
                "moved to Fridays for good",
                _FRIDAY,
                of=(_PIER,),
                after=("改周五", "Fridays from now", "都周五"),
            ),
            Operation("create", "大家同意", _NOVICES, after=("新人先在小船", "小船稳")),
        ),
    ),
    Day(
        (
            ("Sam", "The red boat leaks at the bow again"),
            ("阿涛", "红船先别用，我周末补"),
            ("Ines", "Red boat stays on land until then"),
            ("Sam", "And whoever comes last washes the boat, right?"),
            ("Noor", "Right, last one washes"),
        ),
        (
            Operation("create", "修好之前的安排", _RED, after=("leaks at the bow", "红船先别用", "stays on land")),
            Operation("create", "agreed by two", _LAST, after=("whoever comes last", "last one washes")),
        ),
    ),
    Day(
        (
            ("Sam", "New rule: on Fridays we all row in pirate hats 🏴‍☠️"),
            ("Noor", "haha aye aye"),
            ("阿涛", "哈哈哈我没有帽子"),
            ("Ines", "Pirate hats on Friday at six, arr"),
        ),
        (Operation("update", "a new rule for Fridays", _HATS, of=(_FRIDAY,), after=("New rule", "Pirate hats")),),
        regret="it took a joke for a rule",
    ),
    Day(
        (
            ("阿涛", "红船补好了，不漏了"),
            ("Ines", "Red boat is back in the water 👍"),
            ("老周", "那新人先用红船练，它最稳"),
            ("Noor", "Yes, the red one for the newcomers"),
            ("Sam", "Let us all wash the boats together from now on"),
            ("Ines", "Good, no more washing for the last one alone"),
        ),
        (
            Operation(
                "update",
                "红船修好，给新人用",
                _BOTH,
                of=(_NOVICES, _RED),
                after=("补好了", "新人先用红船", "red one for"),
            ),
            Operation("delete", "they wash together now", of=(_LAST,), after=("wash the boats", "no more washing")),
        ),
    ),
    Day(
        (
            ("Noor", "One phone should come along in the dry bag, for emergencies"),
            ("Sam", "Makes sense, I have a dry bag"),
            ("老周", "早饭我来，茶和包子照旧"),
        ),
        (
            Operation("update", "for emergencies", _BAG, of=(_PHONES,), after=("dry bag, for", "I have a dry bag")),
            Operation("keep", "", of=(_BREAKFAST,)),
        ),
    ),
)


@dataclass
class Script:
    """The model: answers each night with that night's operations, under the handles it was shown."""

    nights: list[Sequence[Operation]] = field(default_factory=lambda: [day.operations for day in WEEK])

    def __call__(self, request: Asked) -> str:
        memories, messages = _block(request, "memories"), _block(request, "messages")
        return "\n".join(
            json.dumps(_line(operation, memories, messages), ensure_ascii=False) for operation in self.nights.pop(0)
        )


def _line(operation: Operation, memories: Sequence[str], messages: Sequence[str]) -> Mapping[str, Any]:
    old = [_handle(memories, statement) for statement in operation.of]
    line: dict[str, Any] = {"action": operation.action, "change_reason": operation.reason}
    line |= {"statement": operation.statement} if operation.statement else {}
    line |= {"old_ids": old} if len(old) > 1 else {"old_id": old[0]} if old else {}
    return line | {"evidence": [_handle(messages, words) for words in operation.after]}


def _block(request: Asked, name: str) -> list[str]:
    return request.prompt.rsplit(f"<{name}>\n", 1)[-1].split(f"\n</{name}>", 1)[0].splitlines()


def _handle(lines: Sequence[str], words: str) -> str:
    return next(line.split()[0] for line in lines if words in line)


def settings(server: ModelServer, **more: Any) -> Settings:
    """The evolving model at this server."""
    entry = {"internal": True, "providers": [{"name": "local", "model_id": "scripted"}]}
    return Settings(
        models={_MODEL: entry}, providers={"local": {"base_url": server.url}}, durable_work="process", **more
    )


async def live(lore: Lore, clock: FrozenClock) -> None:
    """Six days are said; at two each night the group evolves, and what is regretted is taken back at nine."""
    for number, day in enumerate(WEEK):
        morning = BEGIN + timedelta(days=number, hours=9)
        await lore.messages.add(
            [
                Message(
                    id=f"r{number + 1}-{place}",
                    room_id=ROOM,
                    sender_id=who.lower(),
                    sender_name=who,
                    text=text,
                    sent_at=morning + timedelta(minutes=7 * place),
                )
                for place, (who, text) in enumerate(day.said, start=1)
            ]
        )
        clock.advance((BEGIN + timedelta(days=number + 1, hours=2) - clock.now()).total_seconds())
        done = await lore.memories.evolve(ROOM)
        if day.regret:
            clock.advance(timedelta(hours=7).total_seconds())
            await lore.memories.revert(done.evolution_id, day.regret)
