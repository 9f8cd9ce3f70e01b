"""Values of other programs' JSON converted to the types of a message, without errors."""

import json
import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import PurePosixPath
from typing import Any

from roomlore.core.attachments import kind_of
from roomlore.core.audience import NOTHING_TOLD, Move, RoomFacts
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import MAX_METADATA_DEPTH, Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import Line, Options, Source, derived_id, excerpt, read_lines

_ROLES = {
    "user": Role.USER, "human": Role.USER, "customer": Role.USER,
    "assistant": Role.ASSISTANT, "ai": Role.ASSISTANT, "bot": Role.ASSISTANT, "model": Role.ASSISTANT,
    "gpt": Role.ASSISTANT,
    "system": Role.SYSTEM, "developer": Role.SYSTEM,
    "tool": Role.TOOL, "function": Role.TOOL,
}  # fmt: skip


def event_of(given: object) -> dict[str, Any]:
    """Return an event of a platform; an empty one, which names nothing, for what is no JSON object."""
    return dict(given) if isinstance(given, Mapping) else {}


def obj(value: object) -> dict[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects in a list; empty if it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """Return the texts in a list that are not empty; none if it is no list."""
    return [text for text in value if isinstance(text, str) and text] if isinstance(value, list) else []


def name(value: object) -> str:
    """Return an id or name: text as it is, an integer as digits, else ''."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def first_name(*values: object) -> str:
    """Return the first usable id or name, else ''."""
    return next((first for value in values if (first := name(value))), "")


def words(value: object) -> str:
    """Return text as it is, numbers as digits, anything else as ''."""
    return name(value) or (str(value) if isinstance(value, float) else "")


def role(value: object) -> Role | None:
    """Return the role that this word means, None if it means none."""
    return _ROLES.get(value.lower()) if isinstance(value, str) else None


def local_time(value: object, zone: tzinfo) -> datetime | None:
    """Return the time as `parse_time` does, with naive ISO text as local time of the zone."""
    if not isinstance(value, str):
        return parse_time(value)
    try:
        return in_zone(datetime.fromisoformat(value), zone)
    except ValueError:
        return parse_time(value)


def in_zone(moment: datetime, zone: tzinfo) -> datetime | None:
    """Return the UTC time of a local time (an aware one keeps its own zone); None outside the calendar."""
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return None


def named(room: RoomFacts | None, called: str, room_id: str = "") -> RoomFacts | None:
    """Return what an export says of a room, with what the platform calls it, unless that is its id."""
    if not called or called == room_id:
        return room
    return replace(room or NOTHING_TOLD, name=called)


def size(value: object) -> int:
    """Return how many values a list has; 0 if it is no list."""
    return len(value) if isinstance(value, list) else 0


def joined(parts: Iterable[object], separator: str = " ") -> str:
    """Return the non-empty texts among the parts, joined."""
    return separator.join(part for part in parts if isinstance(part, str) and part)


def kept(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without empty values; values that a store cannot hold are written as text."""
    return {key: _storable(value, 2) for key, value in values.items() if value not in (None, "", [], {}, False)}


def spoken(
    position: Position,
    options: Options,
    *,
    id: str,  # noqa: A002
    room: str,
    sender: str,
    called: str = "",
    text: str = "",
    at: object = None,
    role: Role = Role.USER,
    several: bool = False,
    deleted: bool = False,
    edited: object = None,
    answers: str = "",
    root: str = "",
    topic: str = "",
    mentions: Iterable[str] = (),
    held: Iterable[Mapping[str, Any]] = (),
    facts: RoomFacts | None = None,
    moves: Iterable[Move] = (),
    deletes: str = "",
    **metadata: object,
) -> Parsed:
    """Return a message of which an export tells this. `several`: ids are of their room alone, so the room precedes them
    where all rooms become one. A deleted message has no text; the names of what it holds are its caption."""
    before = f"{room}/" if several and options.room_id else ""
    files = [dict(each) for each in held if each]
    caption = joined((metadata.pop("caption", ""), *(each.get("name") for each in files)), "\n")
    message = Message(
        id=before + id,
        room_id=options.room_id or room,
        sender_id=sender or "system",
        sender_name=called,
        role=role,
        text="" if deleted else text,
        sent_at=parse_time(at),
        reply_to=before + answers if answers else None,
        root_id=before + root if root else None,
        topic_id=topic or None,
        mentions=tuple(dict.fromkeys(filter(None, mentions))),
        metadata=kept({"deleted": deleted, "attachments": files, "caption": caption} | metadata),
    )
    told = None if options.room_id else facts
    moved = () if options.room_id and several else tuple(move for move in moves if move.person)
    return Parsed(message, position, edited_at=parse_time(edited), room=told, moves=moved, deletes=deletes or None)


def counted(given: Iterable[object]) -> dict[str, int]:
    """Return how often each reaction was given."""
    return dict(Counter(reaction for reaction in given if isinstance(reaction, str) and reaction))


def attached(*, kind: object = "", **facts: object) -> dict[str, Any]:
    """Return an attachment in the form that all importers give: `type`, `name`, `mime_type`, `caption`, `url`, and
    `file`, its place in the export. `kind`: what the program calls it. {} if nothing is told."""
    given = {key: " ".join(words(value).split()) if key == "caption" else words(value) for key, value in facts.items()}
    if given.get("url") and "://" not in given["url"]:
        given["file"] = given.pop("url")  # a program that keeps copies puts the place of the copy here
    form = kind_of(words(kind), *(given.get(key) for key in ("mime_type", "name", "file")))
    name = given.get("name") or PurePosixPath(given.get("file", "").replace("\\", "/")).name
    return kept({"type": form, **given, "name": name}) if form else {}


_LABELS = ("图片", "语音", "视频", "文件", "表情", "动画表情")


def labelled(label: object, **facts: object) -> list[dict[str, Any]]:
    """Return the attachments of a message that holds one thing, by its Chinese label; none for a label of anything
    else, such as a link."""
    return [attached(kind=label, **facts)] if label in _LABELS else []


_LABELLED = lazy_pattern(
    r"\s*!?\[(?P<label>图片|照片|语音|视频|文件|表情|表情包|动画表情|位置|名片|(?:图片|语音|视频|文件|位置|名片)消息)"
    r"(?:[:：| ]\s?(?P<name>[^\[\]\n]{0,200}))?\]"
    r"(?:\((?P<url>https?://[^\s()]{1,400})\)| ?(?P<file>[^\[\]\n]{1,200}\.\w{2,5}))?\s*"
)


def without_labels(message: Message) -> Message:
    """Return a message of nothing but labels such as `[图片]`, which programs write in place of what they leave out,
    with what these stand for as attachments, and no text. Any other message is returned as it is."""
    if message.role is not Role.USER or not message.text.lstrip().startswith(("[", "![")):
        return message
    at, attachments = 0, []
    while match := _LABELLED.match(message.text, at):
        at = match.end()
        label, about = match["label"].removesuffix("消息"), (match["file"] or match["name"] or "").strip()
        named = label in ("文件", "位置", "名片") or "." in about
        attachments.append(attached(kind=label, **{"name" if named else "caption": about}, url=match["url"]))
    if not attachments or at < len(message.text):
        return message
    known = objects(message.metadata.get("attachments"))
    pairs = (
        zip(attachments, known, strict=True)
        if len(attachments) == len(known)
        else ((attachment, {}) for attachment in known or attachments)
    )
    held = [{**attachment, **more} for attachment, more in pairs]
    names = joined(attachment.get("name") for attachment in held if attachment["type"] == "file")
    caption = {"caption": names} if names and not message.metadata.get("caption") else {}
    return replace(message, text="", metadata={**message.metadata, **caption, "attachments": held})


def storable(value: dict[str, Any]) -> dict[str, Any]:
    """Return the object; values that a store cannot hold are written as text."""
    return {key: _storable(inner, 2) for key, inner in value.items()}


def _storable(value: object, level: int) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, dict | list):
        return value
    if level > MAX_METADATA_DEPTH:
        return json.dumps(value)
    if isinstance(value, dict):
        return {key: _storable(inner, level + 1) for key, inner in value.items()}
    return [_storable(inner, level + 1) for inner in value]


def id_at(facts: dict[str, Any], moment: object, *parts: object) -> str:
    """Return an id made of the time and these parts. If they repeat at the same time, the id ends in a number. `facts`
    keep what was counted at that time."""
    stamp = str(moment)
    counts = dict(facts["counts"]) if facts.get("stamp") == stamp else {}
    key = derived_id(stamp, *parts)
    counts[key] = counts.get(key, 0) + 1
    facts.update(stamp=stamp, counts=counts)
    return key if counts[key] == 1 else f"{key}-{counts[key]}"


RECALL_NOTICE = lazy_pattern(r"[^\n]{0,200}(?:撤回了?(?:一条|成员的?一条|了)?消息|recalled a message)[^\n]{0,200}")
"""A line of the platform about a recall, which holds nothing of the recalled message."""
_LONGEST = 1 << 16


class Said:
    """The latest messages by who said what, or by when it was said if the export has no names; for exports whose quotes
    give no id. `by_words`: by the words alone, since the quotes do not say who said them."""

    KEPT = 1 << 14

    def __init__(self, *, by_words: bool = False) -> None:
        self._by_words = by_words
        self._ids: OrderedDict[str, str] = OrderedDict()

    def answered(self, message: Message) -> Message:
        """Return the message as an answer to what it quotes in `metadata.quoted`, if that was said lately."""
        quoted = obj(message.metadata.get("quoted"))
        meant = words(quoted.get("text")) if self._by_words else first_name(quoted.get("sent_at"), quoted.get("sender"))
        earlier = self._ids.get(derived_id(meant, words(quoted.get("text")))) if meant else None
        if message.role is not Role.SYSTEM:
            when = message.sent_at.isoformat() if message.sent_at else ""
            key = derived_id(message.text if self._by_words else message.sender_name or when, message.text)
            self._ids[key] = message.id
            self._ids.move_to_end(key)
            if len(self._ids) > self.KEPT:
                self._ids.popitem(last=False)
        return replace(message, reply_to=earlier) if earlier else message


class Passage:
    """Count repetitions. `latest`: the latest time stamp so far (ISO text, which sorts by time). `part`: how often a
    passage was cut because it grew too long. `start`: the caller's state at its first message."""

    def __init__(self, start: dict[str, Any]) -> None:
        self.latest = start.get("latest", "")
        self.part = start.get("part", 0)
        self.start = start
        self._seen: Counter[str] = Counter()

    def take(self, stamp: str, sender: str, text: str, state: dict[str, Any]) -> str:
        """Return the message's id; `state` becomes the passage's start if this message begins one."""
        if stamp > self.latest or len(self._seen) >= _LONGEST or not self.start:
            self._begin(stamp, state)
        key = derived_id(stamp, self.latest, self.part, sender, text)
        self._seen[key] += 1
        repeated = self._seen[key]
        return key if repeated == 1 else f"{key}-{repeated}"

    def _begin(self, stamp: str, state: dict[str, Any]) -> None:
        self.part += stamp <= self.latest and len(self._seen) >= _LONGEST
        self.latest = max(self.latest, stamp)
        self._seen.clear()
        self.start = {**state, "latest": self.latest, "part": self.part}


@dataclass(slots=True, kw_only=True)
class Draft:
    """A message that may have further lines. `end`: where it ends so far. `state`: the reader's at its first line."""

    lines: list[str]
    state: dict[str, Any]
    end: int
    size: int = 0

    def add(self, text: str, end: int) -> None:
        self.lines.append(text)
        self.size += len(text)
        self.end = end


class LineReader:
    """What reads a text line by line. A position has the start of its passage, from which reading goes on."""

    def __init__(self, source: Source, options: Options, resume_from: Position | None) -> None:
        self._source = source
        self._options = options
        self._start: dict[str, Any] = dict(resume_from["start"]) if resume_from else {}
        self._passage = Passage(self._start)

    def items(self, resume_from: Position | None) -> Iterator[Item]:
        """Yield the items after `resume_from`; those of its passage before it are read a second time."""
        done = resume_from["offset"] if resume_from else -1
        return (item for item in self._items() if item.position["offset"] > done)

    def _items(self) -> Iterator[Item]:
        for line in read_lines(self._source, offset=self._start.get("offset", 0), number=self._start.get("line", 0)):
            yield from self._take(line)
        yield from self._finish()

    def _take(self, line: Line) -> Iterator[Item]:
        """Yield what is complete now that this line was read."""
        raise NotImplementedError

    def _finish(self) -> Iterator[Item]:
        """Yield the message whose lines were read, if there is one."""
        return iter(())

    def _state(self, line: Line) -> dict[str, Any]:
        """Return the state that is needed to read this line again."""
        return line.before

    def _position(self, end: int) -> Position:
        return {"offset": end, "start": self._passage.start}

    def _bad(self, line: Line, reason: str) -> Bad:
        self._passage.start = self._passage.start or self._state(line)
        return Bad(self._position(line.end), line.number, reason, excerpt(line.text))
