"""Labelled rooms: reading them, and telling their conversations anew in rooms of other kinds."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from zlib import crc32

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
        sender_name=str(row.get("sender_name", "")),
        reply_to=None if row.get("reply_to") is None else str(row["reply_to"]),
        root_id=None if row.get("root_id") is None else str(row["root_id"]),
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


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a talk. `parents`: places in the talk. `gap`: seconds since the line before it in the talk.
    `replies`: the platform says what it answers, its first parent."""

    speaker: str
    text: str
    parents: tuple[int, ...]
    starts: bool
    gap: float
    role: Role = Role.USER
    replies: bool = False
    rooted: bool = False


Talk = list[Line]


def talks_of(room: LabelledRoom) -> list[Talk]:
    """Return each conversation that was labelled from its first message on."""
    places: dict[str, list[int]] = {}
    for place, (message, label) in enumerate(zip(room.messages, room.labels, strict=True)):
        if label.conversation is not None and message.role is Role.USER:
            places.setdefault(label.conversation, []).append(place)
    whole = [talk for talk in places.values() if all(room.labels[place].annotated for place in talk)]
    return [_talk(room, talk) for talk in whole]


def _talk(room: LabelledRoom, places: list[int]) -> Talk:
    at = {place: number for number, place in enumerate(places)}
    stamps = [room.messages[place].at.timestamp() for place in places]
    gaps = np.diff(stamps, prepend=stamps[0]).tolist()
    return [
        Line(
            speaker=room.messages[place].sender_id,
            text=room.messages[place].text,
            parents=tuple(at[parent] for parent in room.labels[place].parents if parent in at),
            starts=room.labels[place].starts,
            gap=gap,
        )
        for place, gap in zip(places, gaps, strict=True)
    ]


def woven(name: str, talks: Sequence[tuple[float, Talk]], begin: float, agent: str = "") -> LabelledRoom:
    """Return the room in which these talks, each with the second it begins at, run beside each other."""
    told = [
        (start + float(moment), number, place)
        for number, (start, talk) in enumerate(talks)
        for place, moment in enumerate(np.cumsum([0.0, *(line.gap for line in talk[1:])]))
    ]
    told.sort()
    new = {(number, place): arrival for arrival, (_, number, place) in enumerate(told)}
    messages, labels = [], []
    for arrival, (at, number, place) in enumerate(told):
        line = talks[number][1][place]
        parents = tuple(new[number, parent] for parent in line.parents)
        root = new[number, 0]
        messages.append(
            StoredMessage(
                id=str(arrival),
                room_id=name,
                sender_id=line.speaker,
                text=line.text,
                role=line.role,
                sent_at=datetime.fromtimestamp(begin + at, UTC),
                arrival=arrival + 1,
                reply_to=str(parents[0]) if line.replies and parents else None,
                root_id=str(root) if line.rooted and root != arrival else None,
            )
        )
        labels.append(Label(str(number), parents, True, line.starts))
    return LabelledRoom(name, tuple(messages), tuple(labels))


def quiet(room: LabelledRoom, rng: np.random.Generator) -> LabelledRoom:
    """Return the conversations of a room told one after the other with some overlap, at another pace."""
    crowd = rng.choice([0.1, 0.3, 0.6, 1.0, 1.5, 2.5])
    stretch = float(np.exp(rng.uniform(-0.5, 2.0)))
    start, told = 0.0, []
    for talk in _of_some_length(talks_of(room), rng):
        paced = _stretched(talk, stretch, rng)
        told.append((start, paced))
        length = sum(line.gap for line in paced[1:]) + 60 * stretch
        start += length * float(rng.exponential(1.0)) / crowd
    return woven(room.name + "-quiet", told, room.messages[0].at.timestamp())


def _of_some_length(talks: list[Talk], rng: np.random.Generator) -> list[Talk]:
    """Return the talks of a room where short ones are as rare as people there make them."""
    least, kept = int(rng.choice([1, 1, 4, 8])), float(rng.choice([0.0, 0.2]))
    return [talk for talk in talks if len(talk) >= least or rng.random() < kept] or talks


def _stretched(talk: Talk, stretch: float, rng: np.random.Generator) -> Talk:
    """Return the talk with its own gaps, stretched, and now and then a long pause."""
    own = np.array([line.gap for line in talk])
    gaps = np.minimum(own, 1800) * rng.uniform(0.3, 1.2, len(talk)) + rng.exponential(20, len(talk))
    pauses = (rng.random(len(talk)) < 0.03) * rng.exponential(5400, len(talk))
    gaps = gaps * stretch * np.exp(rng.normal(0, 0.5, len(talk))) + pauses
    return [replace(line, gap=float(gap)) for line, gap in zip(talk, gaps, strict=True)]


def team(room: LabelledRoom, rng: np.random.Generator) -> LabelledRoom:
    """Return the conversations of a room told by a small cast that is in everything."""
    cast = _cast(room, int(rng.integers(3, 13)), rng)
    talks = [_salted(talk, number, salt) for salt in (_salt(rng),) for number, talk in enumerate(_cut(room, rng))]
    named = float(rng.choice([0.0, 0.1, 0.3, 0.7]))
    talks = [_recast(talk, cast, named, rng) for talk in talks]
    talks = _with_platform_links(talks, rng)
    return woven(room.name + "-team", _in_turn(talks, rng), room.messages[0].at.timestamp())


def begun_anew(room: LabelledRoom, rng: np.random.Generator) -> list[LabelledRoom]:
    """Return the room cut into short ones; what answers a message of another one is no longer scored."""
    cuts = np.cumsum(np.exp(rng.uniform(np.log(8), np.log(120), len(room.messages)))).astype(int).tolist()
    ends = [0, *(cut for cut in cuts if cut < len(room.messages)), len(room.messages)]
    return [_part(room, first, end) for first, end in pairwise(ends)]


def _part(room: LabelledRoom, first: int, end: int) -> LabelledRoom:
    messages = [replace(message, arrival=place) for place, message in enumerate(room.messages[first:end], 1)]
    labels = []
    for label in room.labels[first:end]:
        parents = tuple(parent - first for parent in label.parents if parent >= first)
        known = label.annotated and bool(parents or not label.parents)
        labels.append(replace(label, parents=parents, annotated=known))
    return replace(room, messages=tuple(messages), labels=tuple(labels))


def _salt(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 0.0, 0.3, 0.6]))


def _cut(room: LabelledRoom, rng: np.random.Generator) -> list[Talk]:
    """Return the talks of a room in any order, few of them tiny; in most rooms they end early."""
    talks = _of_some_length([talk for talk in talks_of(room) if len(talk) > 2 or rng.random() < 0.25], rng)
    if rng.random() < 5 / 6:
        longest = int(rng.choice([10, 16, 40]))
        talks = [talk[: int(rng.integers(3, longest + 1))] for talk in talks]
    return [talks[place] for place in rng.permutation(len(talks))] if rng.random() < 0.5 else talks


def _cast(room: LabelledRoom, size: int, rng: np.random.Generator) -> tuple[list[str], Stamps]:
    people = sorted({message.sender_id for message in room.messages if message.role is Role.USER})
    chosen = [people[place] for place in rng.permutation(len(people))[:size]]
    return chosen, rng.dirichlet(np.full(len(chosen), 3.0))


def _recast(talk: Talk, cast: tuple[list[str], Stamps], named: float, rng: np.random.Generator) -> Talk:
    """Return the talk told by members of the cast; a share `named` of the leading names stays, rewritten."""
    people, weights = cast
    parts = list(dict.fromkeys(line.speaker for line in talk))
    order = rng.choice(len(people), len(people), replace=False, p=weights)
    roles = {part: people[order[number % len(people)]] for number, part in enumerate(parts)}
    lower = {part.lower(): role for part, role in roles.items()}
    ats = rng.random() < 0.5

    def rewritten(text: str) -> str:
        lead = _LEADING.match(text)
        if lead is None or lead[1].lower() not in lower:
            return text
        rest = text[lead.end() :]
        if rng.random() >= named:
            return rest or text
        return f"@{lower[lead[1].lower()]} {rest}" if ats else f"{lower[lead[1].lower()]}: {rest}"

    return [replace(line, speaker=roles[line.speaker], text=rewritten(line.text)) for line in talk]


_WORD = re.compile(r"[A-Za-z]{4,}")


def _salted(talk: Talk, number: int, share: float) -> Talk:
    """Return the talk with a share of its words made its own, so that talks differ in what they are about."""
    if not share:
        return talk

    def salted(found: re.Match[str]) -> str:
        word = found[0].lower()
        return f"{word}q{number}" if crc32(f"{word} {number}".encode()) % 1000 < share * 1000 else found[0]

    return [replace(line, text=_WORD.sub(salted, line.text)) for line in talk]


def _in_turn(talks: Sequence[Talk], rng: np.random.Generator) -> list[tuple[float, Talk]]:
    """Return the talks at the pace of one room, one after the other with some overlap and pauses."""
    median = float(np.exp(rng.uniform(np.log(4), np.log(120))))
    spread = float(rng.uniform(0.6, 1.6))
    crowd = float(rng.choice([0.2, 0.5, 1.0, 1.5, 2.5]))
    halts = float(rng.choice([0.0, 0.005, 0.02]))
    lulls, lull = float(rng.choice([0.0, 0.3, 0.6, 0.9])), float(np.exp(rng.uniform(np.log(90), np.log(7200))))
    start, told = 0.0, []
    for talk in talks:
        gaps = median * np.exp(rng.normal(0, spread, len(talk)))
        gaps += (rng.random(len(talk)) < halts) * rng.exponential(3600, len(talk))
        paced = [replace(line, gap=float(gap)) for line, gap in zip(talk, gaps, strict=True)]
        told.append((start, paced))
        length = sum(line.gap for line in paced[1:]) + 2 * median
        start += length * float(rng.exponential(1.0)) / crowd
        start += float(rng.exponential(lull)) if rng.random() < lulls else 0.0
    return told


def _with_platform_links(talks: list[Talk], rng: np.random.Generator) -> list[Talk]:
    """Return the talks of a room where the platform tells some replies, or some threads."""
    replies = float(rng.choice([0.0, 0.0, 0.1, 0.3]))
    rooted = float(rng.choice([0.0, 0.0, 0.0, 0.3]))
    return [
        [replace(line, replies=bool(line.parents) and rng.random() < replies, rooted=in_thread) for line in talk]
        for talk, in_thread in zip(talks, (rng.random(len(talks)) < rooted).tolist(), strict=True)
    ]


AGENTS = ("nova", "helper", "robin", "assistant", "xiaoke", "mia")


def with_agent(room: LabelledRoom, rng: np.random.Generator) -> LabelledRoom:
    """Return a room in which a small cast talks with one agent, several at once, amid their own chatter.

    Whoever helped is the agent: it answers each message that is to it once, soon, and at length.
    """
    cast = _cast(room, int(rng.integers(3, 10)), rng)
    agent, salt = AGENTS[rng.integers(len(AGENTS))], 0.5 * _salt(rng)
    talks = [_salted(talk, number, salt) for number, talk in enumerate(talks_of(room))]
    asked = [talk for talk in talks if len(_turns(talk)) > 5 or (len(_turns(talk)) > 1 and rng.random() < 0.35)]
    chat = [talk for talk in _cut(room, rng) if rng.random() < 0.5]
    days = float(rng.choice([6, 24, 48])) * 3600
    style = _AgentStyle.drawn(rng)
    told = [_with_agent(turns, cast[0], agent, style, rng) for turns in _wandering(asked, rng)]
    begun = _scheduled([talk for talk in told if len(talk) > 1], days, rng)
    named = float(rng.choice([0.0, 0.1, 0.4]))
    chat = [_recast(talk, cast, named, rng) for talk in chat]
    chat = [_drawn_in(talk, agent, style, rng) if rng.random() < 0.15 else talk for talk in chat]
    aside = _in_turn(chat, rng)
    last = max((start for start, _ in aside), default=0.0) + 1
    chatter = [(start / last * days * rng.uniform(0.98, 1.02), talk) for start, talk in aside]
    return woven(room.name + "-agent", [*begun, *chatter], room.messages[0].at.timestamp())


@dataclass(frozen=True, slots=True)
class _AgentStyle:
    """The ways in which people of one room address the agent, and the platform marks its answers."""

    replied: float
    mentioned: float
    answers_linked: float
    ats: bool
    echo: float
    longest: int
    pause: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> "_AgentStyle":
        replied, mentioned = ((0.0, 1.0), (1.0, 0.0), (0.5, 0.5), (0.0, 0.5), (0.3, 0.3))[rng.integers(5)]
        return cls(
            replied=replied,
            mentioned=mentioned,
            answers_linked=float(rng.choice([1.0, 1.0, 0.5, 0.0])),
            ats=bool(rng.random() < 0.7),
            echo=float(rng.choice([0.0, 0.2, 0.5])),
            longest=int(rng.choice([6, 10, 16])),
            pause=float(rng.uniform(20, 120)),
        )


Turns = list[tuple[bool, str]]


def _wandering(talks: Sequence[Talk], rng: np.random.Generator) -> list[Turns]:
    """Return the turns of talks with an agent, many of which go from one subject to another."""
    turns = [_turns(talk) for talk in talks]
    told: list[Turns] = []
    while turns:
        count = int(rng.choice([1, 2, 3], p=[0.9, 0.1, 0.0]))
        parts, turns = turns[:count], turns[count:]
        even = [part[: len(part) // 2 * 2] for part in parts[:-1]]
        told.append([turn for part in (*even, parts[-1]) for turn in part])
    return told


def _with_agent(turns: Turns, people: list[str], agent: str, style: _AgentStyle, rng: np.random.Generator) -> Talk:
    """Return the talk between one person and the agent, turn by turn; in a fifth somebody else joins in."""
    asker, other = (people[place] for place in rng.choice(len(people), 2, replace=False))
    turns = turns[: 2 * int(rng.integers(1, style.longest + 1))]
    joined = int(rng.integers(1, len(turns) + 1)) if rng.random() < 0.2 else len(turns)
    paused = int(rng.integers(1, len(turns) + 1)) if rng.random() < 0.33 else len(turns)
    lines: Talk = []
    for number, (mine, text) in enumerate(turns):
        before = (number - 1,) if number else ()
        if not mine:
            linked = rng.random() < style.answers_linked
            words = _echo(turns[number - 1][1], style.echo, rng)
            gap = float(rng.uniform(1, 30))
            lines.append(Line(agent, f"{text} {words}".strip(), before, False, gap, Role.ASSISTANT, linked))
            continue
        speaker = other if number >= joined and rng.random() < 0.5 else asker
        replies = bool(before) and rng.random() < style.replied
        called = not number or (not replies and rng.random() < max(style.mentioned, 0.1))
        said = (f"@{agent} {text}" if style.ats else f"{agent}: {text}") if called else text
        gap = float(style.pause * np.exp(rng.normal(0, 1)))
        gap += float(rng.uniform(1800, 30_000)) if paused <= number < paused + 2 else 0.0
        lines.append(Line(speaker, said, before, not before, gap, Role.USER, replies))
    return lines


def _drawn_in(talk: Talk, agent: str, style: _AgentStyle, rng: np.random.Generator) -> Talk:
    """Return a talk among people in which one of them calls the agent in, and it gives the next answer."""
    place = int(rng.integers(1, max(2, len(talk))))
    answers = [number for number, line in enumerate(talk) if place in line.parents]
    if place >= len(talk) or not answers:
        return talk
    lines = list(talk)
    text = _LEADING.sub("", talk[place].text)
    lines[place] = replace(talk[place], text=f"@{agent} {text}" if style.ats else f"{agent}: {text}", replies=False)
    answer = talk[answers[0]]
    lines[answers[0]] = replace(answer, speaker=agent, role=Role.ASSISTANT, text=_LEADING.sub("", answer.text))
    return lines


def _turns(talk: Talk) -> Turns:
    """Return (said by the one who asked, text) with what each side says in a row made one."""
    turns: Turns = []
    for line in talk:
        mine, lead = line.speaker == talk[0].speaker, _LEADING.match(line.text)
        text = line.text[lead.end() :] if lead else line.text
        if turns and turns[-1][0] == mine:
            turns[-1] = (mine, f"{turns[-1][1]} {text}")
        else:
            turns.append((mine, text))
    return turns


def _echo(text: str, share: float, rng: np.random.Generator) -> str:
    """Return some of the words of what is answered: agents repeat what they were asked."""
    return " ".join(word for word in text.split() if rng.random() < share)


def _scheduled(talks: Sequence[Talk], days: float, rng: np.random.Generator) -> list[tuple[float, Talk]]:
    """Return the talks at their times: most in two busy hours, some just after another of the same person's ended."""
    busy = rng.uniform(0, days, 2)
    begun: list[tuple[float, Talk]] = []
    for talk in talks:
        start = float(rng.choice(busy) + rng.uniform(0, 3600)) if rng.random() < 0.75 else float(rng.uniform(0, days))
        if begun and rng.random() < 0.12:
            before, earlier = begun[rng.integers(len(begun))]
            start = before + sum(line.gap for line in earlier[1:]) + float(rng.exponential(90))
            again = earlier[0].speaker
            talk = [replace(line, speaker=again) if line.speaker == talk[0].speaker else line for line in talk]
        begun.append((start, talk))
    return begun
