"""LINE's chat as text: of a phone with tabs between time, name and words, of a computer with blanks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Position
from roomlore_importers.chat_lines import (
    ChatText,
    Content,
    Head,
    by_length,
    content_of,
    is_gone,
    kind_of_word,
    moves_of,
)
from roomlore_importers.export_files import Options, Source, first_lines
from roomlore_importers.written_dates import CLOCK, Day, clock_time, month_first, read_day

_TABBED = lazy_pattern(rf"{CLOCK}\t(?:(?P<sender>[^\t]*)\t)?(?P<text>.*)", re.DOTALL)
"""A message of a phone; a notice has one tab, or no name between two."""
_SPACED = lazy_pattern(rf"{CLOCK} (?P<rest>\S.*)", re.DOTALL)
"""A message of a computer."""
_TITLE = lazy_pattern(r"\ufeff?\[LINE\] ?(?P<title>[^\n]+)")
"""The first line of a file, which is also how the file is called."""
_NAMED = tuple(
    (lazy_pattern(pattern), direct)
    for pattern, direct in (
        (r"Chat history with (.+)", True),
        (r"Chat history in (.+)", False),
        (r"(.+?) ?とのトーク(?:履歴)?", True),
        (r"(.+?) ?のトーク(?:履歴)?", False),
        (r"[與与] ?(.+?) ?的聊天[記纪记][錄录]", True),
        (r"(.+?) ?的聊天[記纪记][錄录]", False),
        (r"ประวัติการ(?:แชท|สนทนา)(?:กับ|ใน)? ?(.+)", None),
        (r"(.+?) ?님과의? (?:주고받은 )?(?:대화|채팅).*", True),
        (r"(?:Riwayat (?:obrolan|chat)|Historial del? chat|Histórico de conversa) \w{2,6} (.+)", None),
    )
)
"""How the title names the chat; True for one of two people, None if the words do not tell."""
_LEARNED = 3
"""Lines that must share a beginning of several words for it to be a name."""


class _Line:
    def __init__(self, source: Source) -> None:
        lines = first_lines(source)
        self._tabs = any(_TABBED.match(line) for line in lines)
        self._month_first = month_first(day for line in lines if (day := read_day(line)))
        title = next((match["title"] for line in lines[:1] if (match := _TITLE.match(line))), "")
        self.room, direct = _room(title or re.sub(r"^\[LINE\] ?", "", source.stem))
        tabbed = [match for line in lines if (match := _TABBED.match(line))]
        rests = [match["rest"] for line in lines if (match := _SPACED.match(line))]
        self.names = by_length((match["sender"] or "") for match in tabbed) if self._tabs else _names(rests)
        notices = [match["text"] for match in tabbed if not match["sender"]] if self._tabs else rests
        group = len(self.names) > 2 or direct is False or any(map(moves_of, notices))
        self.facts = RoomFacts(RoomKind.PRIVATE if group else RoomKind.DIRECT) if group or direct else None

    def head(self, text: str, chat: ChatText) -> Head | date | bool | None:
        if match := _TABBED.match(text) if self._tabs else None:
            at = clock_time(match)
            return Head(match["sender"] or "", match["text"], at) if at else None
        if match := _SPACED.match(text) if not self._tabs else None:
            return self._spaced(match, chat)
        day = read_day(text)
        if day is None or not (day.words and (day.weekday is not None or chat.after_blank)):
            return None
        return day.day(month_first=self._month_first)

    def _spaced(self, match: re.Match[str], chat: ChatText) -> Head | None:
        at, rest = clock_time(match), match["rest"]
        if at is None:
            return None
        if self._is_notice(rest):
            return Head("", rest, at)
        name = next((name for name in self.names if rest.startswith(f"{name} ")), "")
        if not name and chat.latest and chat.latest.date() == chat.day and at < chat.latest.time():
            return None  # a line of a message that begins like a time: no message is older than the one before it
        name = name or rest.partition(" ")[0]
        return Head(name, rest[len(name) + 1 :], at)

    def _is_notice(self, rest: str) -> bool:
        """Return True for a notice: "Ann left the group", but not "Ann I left the group", which Ann wrote."""
        if is_gone(rest):
            return True
        moved = moves_of(rest)
        begun = moved and any(moved[0].person.startswith(f"{name} ") for name in self.names)
        return bool(moved) and (not begun or moved[0].person in self.names)

    def content(self, text: str) -> Content:
        if "\n" in text and len(text) > 1 and text.startswith('"') and text.endswith('"'):
            text = text[1:-1].replace('""', '"')
        return content_of(text, bare=not self._tabs)


def _room(title: str) -> tuple[str, bool | None]:
    """Return the name of the chat, and whether it is one of two people; None if the title does not tell."""
    for pattern, direct in _NAMED:
        if match := pattern.fullmatch(title.strip()):
            return match[1], direct
    return title, None


def _names(rests: Sequence[str]) -> tuple[str, ...]:
    """Return the names in front of the words of messages: what stands before a word such as "Photos" alone is one, else
    the words with which all messages that begin alike begin."""
    texts = [rest for rest in rests if not moves_of(rest) and not is_gone(rest)]
    names = {rest.rpartition(" ")[0] for rest in texts if kind_of_word(rest.rpartition(" ")[2])}
    left: dict[str, list[list[str]]] = {}
    for rest in texts:
        if not any(rest.startswith(f"{name} ") for name in names if name):
            left.setdefault(rest.split(" ")[0], []).append(rest.split(" "))
    for group in (parts for parts in left.values() if len(parts) > 1):
        shared, shortest = 1, min(map(len, group)) - 1
        while len(group) >= _LEARNED and shared < shortest and len({parts[shared] for parts in group}) == 1:
            shared += 1
        names.add(" ".join(group[0][:shared]))
    return by_length(names)


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat; the room is the chat's name in the first line, else in the file's name.

    Messages of several lines are in quotation marks; notices have no name. Calls are system messages of who made them.
    """
    yield from ChatText(source, options, resume_from, _Line(source)).items(resume_from)


def is_line(lines: Sequence[str]) -> bool:
    """Return True for the first lines of an export of LINE: it has days with their weekday, times and tabs or names."""
    titled = any(_TITLE.match(line) for line in lines[:2])
    dated = list(_days(lines))
    tabbed = sum(_TABBED.match(line) is not None for line in lines)
    spaced = sum(_SPACED.match(line) is not None for line in lines)
    if titled:
        return bool(dated) and tabbed + spaced > 0
    return bool(dated) and read_day(lines[0]) is not None and max(tabbed, spaced) >= 0.3 * (len(lines) - len(dated))


def _days(lines: Iterable[str]) -> Iterator[Day]:
    return (day for line in lines if (day := read_day(line)) and day.words and not line.startswith("-"))
