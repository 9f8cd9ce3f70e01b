"""KakaoTalk's chat as text, of phones and of Windows, and as a table, of Macs."""

import re
from collections.abc import Iterator, Sequence
from datetime import date

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position, parse_time
from roomlore_importers.chat_lines import ChatText, Content, Head, by_length, content_of, moves_of
from roomlore_importers.export_files import Options, Source, first_lines
from roomlore_importers.shapes import id_at, local_time, named
from roomlore_importers.wechat import records
from roomlore_importers.written_dates import CLOCK, clock_time, read_day, read_moment

COLUMNS = ["Date", "User", "Message"]
_WINDOWS = lazy_pattern(rf"\[(?P<sender>[^\n]{{1,80}}?)\] \[{CLOCK}\] ?(?P<text>.*)", re.DOTALL)
"""A message of Windows; its day stands above it."""
_PHONE = lazy_pattern(
    r"(?P<stamp>(?:\d{1,4}[년./-]|[^\W\d_]{3,9}\.? \d)[^\n]{3,34}?\d{1,2}:\d\d"
    r"(?:[ \u202f\u00a0]?[AaPp]\.? ?[Mm]\b\.?)?)"
    r"(?:, (?P<sender>[^\n]{1,80}?) : (?P<text>.*)|[:,] (?P<notice>[^\n]+)|$)",
    re.DOTALL,
)
"""A message or notice of a phone, or the time that Android writes above the messages of a day."""
_SAVED = lazy_pattern(r"(?:저장한 ?날짜|Date Saved|Saved Date|保存日時?) ?[:：]", re.I)
"""The line below the title."""
_TITLES = tuple(
    lazy_pattern(pattern)
    for pattern in (
        r"(?P<title>.+?) ?(?:님과의|님과|과의?|와의?)? ?카카오톡 대화",
        r"KakaoTalk Chats with (?P<title>.+)",
        r"(?P<title>.+?) with KakaoTalk Chats",
        r"(?P<title>.+?) (?:KakaoTalk|Talk) Chats",
        r"Chat with (?P<title>.+)",
    )
)
"""How the first line names the chat."""
_TITLE_END = lazy_pattern(
    r"(?:-\d{1,3})?\.txt$|(?: \(\d{1,6} ?(?:명|people|members)\)| \d{1,6})(?=(?:-\d{1,3})?(?:\.txt)?$)"
)
"""What stands behind the name of a chat: how many people are in it, and the number of the file."""
_COUNTED = lazy_pattern(r"\(\d{1,6} ?(?:명|people|members)\)")
"""How many people are in a group."""


class _Kakao:
    def __init__(self, source: Source) -> None:
        lines = first_lines(source)
        title = _title(lines)
        self.room = _room(title) or source.stem
        senders = (match["sender"] or "" for line in lines if (match := _WINDOWS.match(line) or _PHONE.match(line)))
        self.names = by_length(senders)
        group = len(self.names) > 2 or _COUNTED.search(title) or any(moves_of(line.strip()) for line in lines)
        self.facts = RoomFacts(RoomKind.PRIVATE) if group else None

    def head(self, text: str, chat: ChatText) -> Head | date | bool | None:
        plain = text.lstrip("\ufeff")
        if match := _WINDOWS.fullmatch(plain):
            at = clock_time(match)
            return Head(match["sender"], match["text"], at) if at else None
        if match := _PHONE.fullmatch(plain):
            moment = read_moment(match["stamp"])
            if moment is not None and (match["sender"] or match["notice"]):
                return Head(match["sender"] or "", match["text"] if match["sender"] else match["notice"], moment)
            return True if moment is not None else None
        if _SAVED.match(plain):
            return True
        day = read_day(plain)
        if day is not None and day.words and (day.weekday is not None or plain.startswith("---")):
            return day.day(month_first=True)
        notice = plain.strip()
        known = notice.startswith(self.names) or notice.endswith("습니다.")
        return Head("", notice) if chat.day and known and moves_of(notice) else None

    def content(self, text: str) -> Content:
        return content_of(text, bare=True)


def _title(lines: Sequence[str]) -> str:
    """Return the line above the one with the date of the export, '' if there is none."""
    saved = next((place for place, line in enumerate(lines[:4]) if _SAVED.match(line.lstrip("\ufeff"))), 0)
    return lines[saved - 1].strip("\ufeff ") if saved else ""


def _room(title: str) -> str:
    plain = _TITLE_END.sub("", title)
    names = (match["title"] for pattern in _TITLES if (match := pattern.fullmatch(plain)))
    return _TITLE_END.sub("", next(names, plain if plain != title else "")).strip()


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat; the room is the chat's name in the first line, else the file's name.

    Words such as "사진" alone stand for what the export left out. The one who exported is called "You" or "회원님".
    """
    first = next(records(source, 0, 0), None)
    if first is not None and _cells(first.cells) == COLUMNS:
        yield from _table(source, options, resume_from or {"offset": first.end, "line": first.last, "facts": {}})
    else:
        yield from ChatText(source, options, resume_from, _Kakao(source)).items(resume_from)


def _cells(cells: Sequence[str]) -> list[str]:
    return [cell.strip("\ufeff ") for cell in cells]


def _table(source: Source, options: Options, start: Position) -> Iterator[Item]:
    room, facts = options.room_id or options.id_of(source.stem), start["facts"]
    for row in records(source, start["offset"], start["line"]):
        facts = dict(facts)
        position = {"offset": row.end, "line": row.last, "facts": facts}
        moment = local_time(row.cells[0], options.timezone) if len(row.cells) == len(COLUMNS) else None
        if moment is not None:
            yield _of_row(row.cells[1], row.cells[2], moment.isoformat(), position, room)
        elif row.reason or any(row.cells):
            yield row.bad(position)


def _of_row(sender: str, text: str, moment: str, position: Position, room: str) -> Parsed:
    moved = moves_of(text.strip())
    content = Content(text, Role.SYSTEM) if moved or not sender else content_of(text.strip(), bare=True)
    person = sender or (moved[0].person if moved else "")
    message = Message(
        id=id_at(position["facts"], moment, sender, text),
        room_id=room,
        sender_id=person or "system",
        sender_name=person,
        role=content.role,
        text=content.text,
        sent_at=parse_time(moment),
        metadata=content.metadata,
    )
    return Parsed(message, position, room=named(RoomFacts(RoomKind.PRIVATE) if moved else None, ""), moves=moved)


def is_kakao(lines: Sequence[str]) -> bool:
    """Return True for the first lines of an export of KakaoTalk."""
    if _cells(lines[0].split(",")) == COLUMNS:
        return True
    heads = sum(bool(_WINDOWS.fullmatch(line)) for line in lines)
    phone = [match for line in lines if (match := _PHONE.fullmatch(line.lstrip("\ufeff"))) and match["sender"]]
    saved = any(_SAVED.match(line) for line in lines[:3])
    many = heads + sum(read_moment(match["stamp"]) is not None for match in phone)
    return many > 0 if saved else many >= 0.3 * len(lines)
