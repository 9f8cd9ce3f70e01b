"""Chats as text with a line of time and name before each message: QQ's own export, and MemoTrace's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise
from typing import Any

from roomlore.core.models import Message, Role
from roomlore.core.records import Bad, Item, Parsed, Position
from roomlore.importers.export_files import LONGEST_TEXT, TOO_LONG, Line, Options, Source, excerpt, read_lines
from roomlore.importers.shapes import RECALL_NOTICE, Passage, after_position, in_zone, kept

_STAMP = re.compile(r"(?P<at>\d{4}-\d{2}-\d{2} \d{1,2}:\d{2}:\d{2}) (?P<who>\S[^\n]{0,300})")
_PERSON = re.compile(r"(?P<name>[^\n]*?)(?:\((?P<number>[^()\n]{1,100})\)|<(?P<mail>[^<>\n]{1,200})>)")
_TITLES = re.compile(r"(?:【[^】\n]{0,60}】\s*)+")
_CHAT = re.compile(r"消息对象[:：]\s*(?P<name>[^\n]+?)\s*")
_HEADS = ("消息记录（此消息记录为文本格式", "消息分组:", "消息分组：", "消息对象:", "消息对象：", "=====")
_QUOTE = re.compile(r"引用:(?P<who>[^:\n]{1,100}):(?P<text>[^\n]*)")
_SYSTEM_PEOPLE = ("系统消息", "10000", "系统")
_HEAD_LINES = 40


@dataclass(slots=True)
class _Draft:
    at: str
    who: str
    state: dict[str, Any]
    lines: list[str]
    end: int
    size: int = 0

    def add(self, text: str, end: int) -> None:
        self.lines.append(text)
        self.size += len(text)
        self.end = end


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat; the room is the chat's name in the file, else the file's name.

    Times are local, of `options.timezone`. A person's id is the number or address in brackets, else the name.
    """
    yield from after_position(_Chat(source, options, resume_from).items(), resume_from)


def is_qq(lines: list[str]) -> bool:
    """Return True for the first lines of QQ's own export."""
    return any(line.lstrip("\ufeff").startswith(_HEADS[:-1]) for line in lines[:_HEAD_LINES])


def blocks(lines: list[str]) -> int:
    """Return how many of the lines begin a message whose text is on the next line."""
    begins = [_STAMP.fullmatch(line) is not None for line in lines]
    return sum(one and not following for one, following in pairwise(begins))


class _Chat:
    def __init__(self, source: Source, options: Options, resume_from: Position | None) -> None:
        self._source = source
        self._options = options
        self._room = options.room_id or _chat_name(source)
        self._start = dict(resume_from["start"]) if resume_from else {}
        self._passage = Passage.resumed(self._start)
        self._draft: _Draft | None = None

    def items(self) -> Iterator[Item]:
        for line in read_lines(self._source, offset=self._start.get("offset", 0), number=self._start.get("line", 0)):
            yield from self._take(line)
        yield from self._finish()

    def _take(self, line: Line) -> Iterator[Item]:
        text = line.text.lstrip("\ufeff")
        stamp = _STAMP.fullmatch(text) if line.whole else None
        if stamp is not None:
            yield from self._finish()
            self._draft = _Draft(stamp["at"], stamp["who"], line.before, [], line.end)
        elif not line.whole:
            yield from self._finish()
            yield self._bad(line, TOO_LONG)
        elif self._draft is not None and self._draft.size < LONGEST_TEXT and not text.startswith(_HEADS):
            self._draft.add(text, line.end)
        elif text.strip() and not text.startswith(_HEADS):
            yield from self._finish()
            yield self._bad(line, "no time and no message before it to continue")

    def _bad(self, line: Line, reason: str) -> Bad:
        self._passage.start = self._passage.start or line.before
        return Bad({"offset": line.end, "start": self._passage.start}, line.number, reason, excerpt(line.text))

    def _finish(self) -> Iterator[Parsed]:
        draft, self._draft = self._draft, None
        if draft is not None:
            message = self._message(draft)
            yield Parsed(message, {"offset": draft.end, "start": self._passage.start})

    def _message(self, draft: _Draft) -> Message:
        person, shown = _person(draft.who)
        lines, quoted = _without_quote(draft.lines)
        text = "\n".join(lines).strip()
        system = person in _SYSTEM_PEOPLE or RECALL_NOTICE.fullmatch(text) is not None
        local = _local(draft.at)
        return Message(
            id=self._passage.take(local.isoformat() if local else "", person, text, draft.state),
            room_id=self._room,
            sender_id="system" if system else person,
            sender_name="" if system else shown,
            role=Role.SYSTEM if system else Role.USER,
            text=text,
            sent_at=local and in_zone(local, self._options.timezone),
            metadata=kept({"quoted": quoted}),
        )


def _local(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - the zone is added by the caller
    except ValueError:
        return None


def _person(who: str) -> tuple[str, str]:
    """Return (id, name). A title such as 【管理员】 before the name is left out."""
    found = _PERSON.fullmatch(who)
    shown = _TITLES.sub("", found["name"] if found else who, count=1).strip()
    person = (found["number"] or found["mail"]) if found else shown
    return person or who.strip(), shown or person


def _without_quote(lines: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the lines without the quote that MemoTrace writes after a message, and the quote."""
    last = next((place for place in range(len(lines) - 1, -1, -1) if lines[place].strip()), None)
    found = _QUOTE.fullmatch(lines[last]) if last is not None else None
    if found is None or last is None:
        return lines, {}
    return lines[:last], {"sender": found["who"], "text": found["text"]}


def _chat_name(source: Source) -> str:
    before = source.bytes_read, source.repaired
    heads = (_CHAT.fullmatch(line.text.lstrip("\ufeff")) for line in islice(read_lines(source), _HEAD_LINES))
    name = next((found["name"] for found in heads if found), "")
    source.bytes_read, source.repaired = before
    return name or source.stem
