"""IRC logs as irssi, weechat, HexChat, mIRC, ZNC and the Ubuntu log bot write them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import unquote

from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position
from roomlore_importers.export_files import TOO_LONG, Line, Options, Source
from roomlore_importers.shapes import LineReader, in_zone

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HALF_A_DAY = 12 * 3600

_CLOCK = lazy_pattern(
    r"(?:[A-Z][a-z]{2} \d{1,2} )?\[?(?:(?P<date>\d{4}-\d\d-\d\d)[ T])?(?P<hour>\d{1,2}):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d))?(?:[.,]\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?(?: ?(?P<half>[AaPp][Mm]))?\]?(?=[ \t])"
)
_SAID = lazy_pattern(r"\s*+(?><(?=[^<>]*+>)[\s@+%&~!.]*(?P<nick>[^<>\s][^<>]*)>)(?:\s(?P<text>.*))?$", re.DOTALL)
_ACTED = lazy_pattern(r"\s*\*\s?(?P<nick>[^\s*]+)(?: (?P<text>.*))?$", re.DOTALL)
_NOTICE = lazy_pattern(r"\s*-(?P<nick>[^\s:>!-][^\s:>]*?)(?::[^\s]*)?- (?P<text>.*)$", re.DOTALL)
_TABBED = lazy_pattern(r"\t(?P<who>[^\t]*)\t(?P<text>.*)$", re.DOTALL)
_EVENT = lazy_pattern(
    r"\s*(?:(?:={3}|\*{3}|-!-|-->|<--|--|=!=)\s+(?=\S)|(?=\[(?:Users [#&]|[ @+%]\S+\])))(?P<text>.*)$", re.DOTALL
)
_WHO = lazy_pattern(
    r"(?:Joins: |Parts: |Quits: )(?P<coming>\S+)|(?P<nick>[^\s*]+) (?:[\[(][^\])]*[\])] ?)*"
    r"(?:(?:has |is now |was |changed|changes|joined|left|quit|sets )|进入|离开|加入|退出|被)"
)
_MARKER = lazy_pattern(r"\s*(?:---? (?:Log |Day |日)|\*{4} (?:BEGIN|ENDING)|Session (?:Start|Time|Close|Ident))")
_PLAIN_DATE = lazy_pattern(r"(?<!\d)(\d{4})[-_./]?([01]\d)[-_./]?([0-3]\d)(?!\d)")
_LONG_DATE = lazy_pattern(r"(?P<month>[A-Za-z]{3}|\d{1,2}月)\.? +(?P<day>\d{1,2})\b.{0,80}?\b(?P<year>\d{4})\b")


@dataclass(slots=True)
class _Calendar:
    """The current day and second of the log; the day counts from 0 if no date is known."""

    day: int = 0
    second: int = -1
    dated: bool = False

    def turn_to(self, day: date) -> None:
        self.day, self.second, self.dated = day.toordinal(), -1, True

    def tick(self, second: int) -> None:
        """Set the time. A clock that jumps back by more than half a day has passed midnight."""
        self.day += second < self.second - _HALF_A_DAY
        self.second = second

    def next_day(self) -> None:
        self.day, self.second = self.day + 1, -1

    @property
    def stamp(self) -> str:
        return f"{self.day:07d}T{self.second:05d}"

    def moment(self) -> datetime | None:
        if not self.dated or self.second < 0 or self.day > date.max.toordinal():
            return None
        return datetime.combine(date.fromordinal(self.day), time()) + timedelta(seconds=self.second)


@dataclass(slots=True)
class _Utterance:
    """The content of a line, before it has an id."""

    nick: str
    text: str
    role: Role = Role.USER
    metadata: dict[str, Any] = field(default_factory=dict)


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield one message per line; joins, quits, topics and mode changes are system messages.

    Days come from the lines, from "Day changed" lines, from the file's name or from `options.day`; a clock that jumps
    back has passed midnight. Without any date `sent_at` is None.
    """
    yield from _Log(source, options, resume_from).items(resume_from)


class _Log(LineReader):
    def __init__(self, source: Source, options: Options, resume_from: Position | None) -> None:
        super().__init__(source, options, resume_from)
        self._room = options.room_id or options.id_of(room_name(source))
        self._calendar = self._calendar_at_start()

    def _calendar_at_start(self) -> _Calendar:
        if self._start:
            return _Calendar(self._start["day"], self._start["second"], self._start["dated"])
        calendar = _Calendar()
        folders = "/".join(self._source.path.resolve().parts[-4:-1])  # such as 2004/11/15
        day = self._options.day or _plain_date(self._source.stem) or _plain_date(folders)
        if day is not None:
            calendar.turn_to(day)
        return calendar

    def _take(self, line: Line) -> Iterator[Item]:
        if not line.whole:
            yield self._bad(line, TOO_LONG)
        elif line.text.strip() and not self._marker(line.text):
            yield self._item(line)

    def _item(self, line: Line) -> Item:
        state = self._state(line)
        clock = _CLOCK.match(line.text)
        try:
            utterance = _utterance(line.text, clock)
        except ValueError as error:
            return self._bad(line, str(error))
        moment = self._moment(clock)
        key = self._passage.take(self._calendar.stamp, utterance.nick, utterance.text, state)
        return Parsed(self._message(key, utterance, moment), self._position(line.end))

    def _state(self, line: Line) -> dict[str, Any]:
        calendar = self._calendar
        return {
            "offset": line.start, "line": line.number - 1,
            "day": calendar.day, "second": calendar.second, "dated": calendar.dated,
        }  # fmt: skip

    def _marker(self, text: str) -> bool:
        """Take the date from a line that opens or closes a log or begins a day."""
        if _MARKER.match(text) is None:
            return False
        day = _plain_date(text) or _long_date(text)
        if day is not None and "Close" not in text and "close" not in text:
            self._calendar.turn_to(day)
        elif "Day changed" in text:
            self._calendar.next_day()
        return True

    def _moment(self, clock: re.Match[str] | None) -> datetime | None:
        """Return the line's time in UTC, None if it has none of its own."""
        if clock is None:
            return None
        if clock["date"] and (day := _plain_date(clock["date"])):
            self._calendar.turn_to(day)
        self._calendar.tick(_second(clock))
        local = self._calendar.moment()
        if local is None:
            return None
        if clock["zone"]:
            local = datetime.fromisoformat(f"{local.isoformat()}{clock['zone']}")
        return in_zone(local, self._options.timezone)

    def _message(self, key: str, utterance: _Utterance, moment: datetime | None) -> Message:
        return Message(
            id=key,
            room_id=self._room,
            sender_id=utterance.nick,
            sender_name=utterance.nick,
            role=utterance.role,
            text=utterance.text,
            sent_at=moment,
            metadata=utterance.metadata,
        )


def _utterance(line: str, clock: re.Match[str] | None) -> _Utterance:
    """Raise ValueError, with the reason as its text, for a line that no IRC program writes."""
    if clock is not None and _second(clock) < 0:
        raise ValueError("no such time of day")
    body = line[clock.end() :] if clock else line
    if (tabbed := _TABBED.match(body)) and clock and not tabbed["who"].startswith("<"):
        return _tabbed(tabbed["who"], tabbed["text"])
    if match := _SAID.match(body):
        return _Utterance(match["nick"].strip(), match["text"] or "")
    if event := _EVENT.match(body):
        return _event(event["text"])
    if notice := _NOTICE.match(body):
        return _Utterance(notice["nick"], notice["text"], metadata={"notice": True})
    if acted := _ACTED.match(body):
        return _acted(acted["nick"], acted["text"] or "")
    raise ValueError("neither <nick> text, * nick action nor an event")


def is_log_line(text: str) -> bool:
    """Return True if an IRC program could have written this line."""
    clock = _CLOCK.match(text)
    try:
        return _MARKER.match(text) is not None or bool(_utterance(text, clock))
    except ValueError:
        return False


def _tabbed(who: str, text: str) -> _Utterance:
    prefix = who.strip()
    if prefix in ("-->", "<--", "--", "=!=", ""):
        return _event(text)
    if prefix == "*":
        nick, _, rest = text.partition(" ")
        return _acted(nick or "unknown", rest)
    return _Utterance(prefix.lstrip("@+%&~!") or "unknown", text)


def _acted(nick: str, text: str) -> _Utterance:
    """Return the utterance: HexChat and mIRC write joins as actions."""
    notice = f"{nick} {text}"
    if re.match(r"\S+ (?:[\[(][^\])]*[\])] ?)?(?:has (?:joined|left|quit)|is now known as)\b", notice):
        return _event(notice)
    return _Utterance(nick, text, metadata={"action": True})


def _event(text: str) -> _Utterance:
    who = _WHO.match(text)
    nick = (who["coming"] or who["nick"]) if who else "system"
    return _Utterance(nick, text, Role.SYSTEM)


def _second(clock: re.Match[str]) -> int:
    """Return the second of the day; negative for an impossible time."""
    hour, minute, second = int(clock["hour"]), int(clock["minute"]), int(clock["second"] or 0)
    if clock["half"]:
        hour = hour % 12 + (12 if clock["half"] in ("PM", "pm", "Pm", "pM") else 0)
    return hour * 3600 + minute * 60 + min(second, 59) if hour < 24 and minute < 60 and second < 62 else -1


def room_name(source: Source) -> str:
    """Return the channel in the file's name, else the name without its date, else the name."""
    name = unquote(source.stem)
    if channel := re.search(r"#+[^\s#]+", name):
        name = channel.group()
    return _PLAIN_DATE.sub("", name).strip("-_. ") or name


def _plain_date(text: str) -> date | None:
    match = _PLAIN_DATE.search(text)
    return _day(int(match[1]), int(match[2]), int(match[3])) if match else None


def _long_date(text: str) -> date | None:
    """Return the date of a text such as Mon Nov 15 21:14:00 2004, its month in English or Chinese."""
    match = _LONG_DATE.search(text)
    if match is None:
        return None
    month = match["month"].removesuffix("月").lower()
    number = int(month) if month.isdigit() else _MONTHS.index(month) + 1 if month in _MONTHS else 0
    return _day(int(match["year"]), number, int(match["day"]))


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
