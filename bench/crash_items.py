"""The messages in the rooms of `crash`: each follows from the room and a number, so the next process says the same.

Every text carries its label, 'room/number', and every answer of the scripted model the number of its request, so that
what is stored can be traced back to what was said and to the one request that was kept.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from roomlore import Message, Role

Kind = Literal["plain", "told", "asked"]
AGENTS = ("bot", "guide")
_ASKED = re.compile(r"\bask (\S+):")
_ANSWERED = re.compile(r"\banswer to (\S+) \(request (\d+)\)")
_NUMBERED = re.compile(r"\brequest (\d+)\b")
_WORDS = ("the deploy is stuck again", "谁在跑迁移？", "me, wait a minute", "好的", "lunch at noon?", "午饭去哪儿吃 🍜")


@dataclass(frozen=True, slots=True)
class Room:
    """`plain`: people talk. `told`: a bot that finds its replies by itself hands them in. `asked`: replies are asked
    for, of `agents` agents in turn. `session`: the room has a session."""

    name: str
    kind: Kind
    agents: int = 1
    session: bool = False


ROOMS = (
    Room("square", "plain"),
    Room("told", "told"),
    Room("alone", "asked"),
    Room("pair", "asked", agents=2),
    Room("kept", "asked", session=True),
)


@dataclass(frozen=True, slots=True)
class Item:
    """Messages handed in at once. `agent`: the agent that is asked for a reply, '' if none is."""

    messages: Sequence[Message]
    agent: str = ""


def item(room: Room, number: int) -> Item:
    if room.kind == "plain":
        return Item([_message(room, number, place) for place in range(1 + number % 3)])
    label = f"{room.name}/{number}"
    agent = AGENTS[number % room.agents]
    text = f"ask {label}: is node {number} backed up? 节点 {number} 备份好了吗？"
    question = Message(id=label, room_id=room.name, sender_id=f"person-{number % 3}", text=text)
    if room.kind == "asked":
        return Item([question], agent)
    reply = Message(
        id=f"{label}-reply",
        room_id=room.name,
        sender_id=agent,
        role=Role.ASSISTANT,
        text=answer(label, 0),
        reply_to=label,
    )
    return Item([question, reply])


def answer(label: str, request: int) -> str:
    """Return an agent's reply to the message with this label."""
    return "".join(answer_pieces(label, request))


def answer_pieces(label: str, request: int) -> list[str]:
    """The same as it is streamed: whatever is stored of it tells what it was."""
    return [f"answer to {label} (request {request}): ", "it is, ", "and it took ", f"{len(label)} minutes. ", "好了。"]


def memory(mark: str, request: int) -> str:
    """Return the memory of messages that end with the answer of this mark; now and then there is none."""
    nothing = "7#" in mark
    return f"NO_MEMORY, says request {request}" if nothing else f"request {request} remembers {mark} 备份"


def last_asked(text: str) -> str:
    """The label of the last question in it, '' for none."""
    matches = _ASKED.findall(text)
    return matches[-1] if matches else ""


def last_answered(text: str) -> tuple[str, int]:
    """The label of the last answer in it and the request that gave it; ('', 0) for none."""
    matches = _ANSWERED.findall(text)
    return (matches[-1][0], int(matches[-1][1])) if matches else ("", 0)


def mark_of(text: str) -> str:
    """Return what tells the last answer in it from all others, 'label#request'; '' for none."""
    label, request = last_answered(text)
    return f"{label}#{request}" if label else ""


def request_of(text: str) -> int:
    """Return the number of the request that gave this text, 0 for none."""
    match = _NUMBERED.search(text)
    return int(match[1]) if match else 0


def _message(room: Room, number: int, place: int) -> Message:
    word = _WORDS[(number + place) % len(_WORDS)]
    return Message(
        id=f"{room.name}/{number}.{place}",
        room_id=room.name,
        sender_id=f"person-{(number + place) % 4}",
        text=f"{room.name}/{number}.{place} {word}",
    )
