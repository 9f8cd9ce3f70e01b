"""Labelled rooms: reading them, and making quiet rooms out of busy ones."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roomlore.core.models import Role, StoredMessage

Stamps = npt.NDArray[np.float64]

_LEADING = re.compile(r"^@?([^\s:,]{2,30})\s?[:,]+\s+")


@dataclass(frozen=True, slots=True)
class Label:
    """`parents`: places in the room of the messages answered. `starts`: labelled as a start. `conversation`: None where
    unlabelled."""

    conversation: str | None
    parents: tuple[int, ...]
    annotated: bool
    starts: bool = False


@dataclass(frozen=True, slots=True)
class LabelledRoom:
    name: str
    messages: tuple[StoredMessage, ...]
    labels: tuple[Label, ...]


def load_rooms(folder: Path) -> Iterator[LabelledRoom]:
    """Every `*.messages.jsonl` of a folder with its `*.gold.jsonl`, by name."""
    for path in sorted(folder.glob("*.messages.jsonl")):
        yield load_room(path)


def load_room(path: Path) -> LabelledRoom:
    messages = load_messages(path)
    places = {message.id: place for place, message in enumerate(messages)}
    gold = _rows(path.with_name(path.name.replace(".messages.", ".gold.")))
    labels = tuple(_label(row, places) for row in gold)
    return LabelledRoom(path.name.split(".messages.")[0], messages, labels)


def load_messages(path: Path) -> tuple[StoredMessage, ...]:
    """The messages of one room; arrivals count from 1."""
    return tuple(_message(row, place + 1) for place, row in enumerate(_rows(path)))


def _rows(path: Path) -> list[dict[str, object]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _message(row: dict[str, object], arrival: int) -> StoredMessage:
    return StoredMessage(
        id=str(row["id"]),
        room_id=str(row["room_id"]),
        sender_id=str(row["sender_id"]),
        text=str(row["text"]),
        role=Role(str(row["role"])),
        sent_at=datetime.fromisoformat(str(row["sent_at"])).replace(tzinfo=UTC),
        arrival=arrival,
    )


def _label(row: dict[str, object], places: dict[str, int]) -> Label:
    parents = row["parents"]
    assert isinstance(parents, list)
    others = tuple(places[str(parent)] for parent in parents if parent != row["id"])
    conversation = None if row["conv"] is None else str(row["conv"])
    return Label(conversation, others, bool(row["annotated"]), row["id"] in parents)


def with_seconds(room: LabelledRoom, rng: np.random.Generator) -> LabelledRoom:
    """Spreads messages stamped to the minute over that minute."""
    stamps = np.array([message.at.timestamp() for message in room.messages])
    for minute in np.unique(stamps):
        here = np.flatnonzero(stamps == minute)
        stamps[here] += np.sort(rng.uniform(0, 60, len(here)))
    return replace(room, messages=_at(room.messages, np.maximum.accumulate(stamps)))


def _at(messages: Sequence[StoredMessage], stamps: Sequence[float] | Stamps) -> tuple[StoredMessage, ...]:
    return tuple(
        replace(m, sent_at=datetime.fromtimestamp(float(s), UTC)) for m, s in zip(messages, stamps, strict=True)
    )


def without_names(room: LabelledRoom, share: float, rng: np.random.Generator) -> LabelledRoom:
    """Takes away a share of the leading "name:", or writes it as "@name"."""
    people = {message.sender_id.lower() for message in room.messages}
    ats = rng.random() < 0.5

    def rewrite(message: StoredMessage) -> StoredMessage:
        lead = _LEADING.match(message.text)
        if lead is None or lead[1].lower() not in people:
            return message
        rest = message.text[lead.end() :]
        if rng.random() < share:
            return replace(message, text=rest)
        return replace(message, text=f"@{lead[1]} {rest}") if ats else message

    return replace(room, messages=tuple(rewrite(message) for message in room.messages))


def quiet(room: LabelledRoom, rng: np.random.Generator) -> LabelledRoom:
    """The labelled conversations of a room, told one after the other with some overlap, at another pace."""
    talks = _conversations(room)
    crowd = rng.choice([0.1, 0.3, 0.6, 1.0, 1.5, 2.5])
    stretch = float(np.exp(rng.uniform(-0.5, 2.0)))
    begin, timed = room.messages[0].at.timestamp(), []
    for talk in talks:
        stamps = begin + _pace(talk, room, stretch, rng)
        timed += list(zip(stamps.tolist(), talk, strict=True))
        length = float(stamps[-1] - begin) + 60 * stretch
        begin += length * float(rng.exponential(1.0)) / crowd
    timed.sort()
    return _rearranged(room, [place for _, place in timed], [stamp for stamp, _ in timed])


def _conversations(room: LabelledRoom) -> list[list[int]]:
    """Places of each conversation that was labelled from its first message on."""
    talks: dict[str, list[int]] = {}
    for place, (message, label) in enumerate(zip(room.messages, room.labels, strict=True)):
        if label.conversation is not None and message.role is Role.USER:
            talks.setdefault(label.conversation, []).append(place)
    return [talk for talk in talks.values() if all(room.labels[place].annotated for place in talk)]


def _pace(talk: list[int], room: LabelledRoom, stretch: float, rng: np.random.Generator) -> Stamps:
    """Seconds from the start to each message of a conversation: its own gaps, stretched, now and then a long pause."""
    own = np.diff(
        [room.messages[place].at.timestamp() for place in talk], prepend=room.messages[talk[0]].at.timestamp()
    )
    gaps = np.minimum(own, 1800) * rng.uniform(0.3, 1.2, len(talk)) + rng.exponential(20, len(talk))
    pauses = (rng.random(len(talk)) < 0.03) * rng.exponential(5400, len(talk))
    gaps = gaps * stretch * np.exp(rng.normal(0, 0.5, len(talk))) + pauses
    gaps[0] = 0
    return np.cumsum(gaps)


def _rearranged(room: LabelledRoom, order: list[int], stamps: list[float]) -> LabelledRoom:
    new = {old: place for place, old in enumerate(order)}
    messages = _at([replace(room.messages[old], arrival=place + 1) for old, place in new.items()], stamps)
    labels = tuple(
        Label(
            room.labels[old].conversation,
            tuple(new[p] for p in room.labels[old].parents if p in new),
            True,
            room.labels[old].starts,
        )
        for old in order
    )
    return LabelledRoom(room.name + "-quiet", messages, labels)
