"""Find group memories without a model: what people decided, ruled, planned and said of themselves.

A matter that a group settled: the messages that say so, who agreed, and what later messages changed. The statement of
such a memory says who said it and when, in their words, with what the words leave open. Measured by
`python -m bench meaning --only offline_weeks`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta, tzinfo
from functools import cached_property

from roomlore.core import lexicon
from roomlore.core.evolution.guards import is_order
from roomlore.core.evolution.offline.cues import (
    ACKNOWLEDGED,
    CLOCK,
    Purpose,
    Sense,
    acknowledges,
    agrees,
    is_statement,
    laughs,
    sense_of,
    times_in,
    words_beside,
)
from roomlore.core.evolution.offline.reading import WEEKDAY, Line, TermWeights, Wording, is_topical, keys_of, read
from roomlore.core.evolution.requests import Answer, Operation
from roomlore.core.memory.memory import Memory, Source
from roomlore.core.models import StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import fold, language, truncate

_DAYS = tuple(lexicon.values("weekdays", "en"))
_MONTHS = lexicon.values("months", "en")
_MONTH = lexicon.forms("month", "en")
_ZH_NUMBER = "[一二两兩三四五六七八九十]{1,3}|[0-9]{1,2}"
# A day that is still to come, each form in groups of its own; Mondays and 3号线 are none.
_NAMED = lazy_pattern(
    rf"\b(?P<next>next )?(?P<weekday>{lexicon.forms('weekday', 'en')})(?![s\w])"
    rf"|(?P<zhnext>下[个個]?)?{lexicon.forms('week', 'zh')}(?P<zhday>[一二三四五六日天])"
    r"|\b(?P<tomorrow>tomorrow)\b|(?P<zhtomorrow>明[天晚早])|(?P<zhafter>(?<!大)[后後]天)"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTH})\b"
    rf"|\b(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b"
    rf"|(?P<zm>{_ZH_NUMBER})月(?P<zd>{_ZH_NUMBER})[日号號]|\bthe (?P<d3>\d{{1,2}})(?:st|nd|rd|th)\b"
    rf"|(?<![月\d一二三四五六七八九十])(?P<zd3>{_ZH_NUMBER})[号號](?![线線楼樓])"
)
# Right before a day: it comes again and again.
_RECURRING = lazy_pattern(r"(?:\b(?:every|each) |每[个個]?)$")
_DIGITS: Mapping[str, int] = lexicon.values("digits", "zh")
_PAST = 45
"""A month's day that is at most this many days past is not the one of next year."""


def future_days(folded: str, on: date) -> Iterator[tuple[str, date]]:
    """Yield each day that a folded text of that day names, with the words that name it. A recurring one is no day."""
    for match in _NAMED.finditer(folded):
        if _RECURRING.search(folded[max(0, match.start() - 8) : match.start()]):
            continue
        day = _day(match, on)
        if day is not None:
            yield match[0], day


def _day(match: re.Match[str], on: date) -> date | None:
    if named := match["weekday"]:
        return _weekday(on, _DAYS.index(named[:3]), week_after=bool(match["next"]))
    if named := match["zhday"]:
        return _chinese_weekday(on, "一二三四五六日".index(named.replace("天", "日")), after=bool(match["zhnext"]))
    if match["tomorrow"] or match["zhtomorrow"]:
        return on + timedelta(days=1)
    if match["zhafter"]:
        return on + timedelta(days=2)
    month = match["m1"] or match["m2"]
    number = _MONTHS[month[:3]] if month else _number(match["zm"])
    day = _number(match["d1"] or match["d2"] or match["zd"] or match["d3"] or match["zd3"])
    return _of_month(on, number, day)


def _weekday(on: date, weekday: int, *, week_after: bool) -> date:
    """Return the next such day after this one; with "next" the one in the following week."""
    if week_after:
        return on + timedelta(days=7 - on.weekday() + weekday)
    return on + timedelta(days=(weekday - on.weekday()) % 7)


def _chinese_weekday(on: date, weekday: int, *, after: bool) -> date:
    """Return the day of this week, or of the next one if it is past or is named so."""
    day = on + timedelta(days=weekday - on.weekday() + 7 * after)
    return day if day >= on else day + timedelta(days=7)


def _number(text: str | None) -> int:
    if not text:
        return 0
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        return _DIGITS.get(text, 0)
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)


def _of_month(on: date, month: int, day: int) -> date | None:
    """Return the day; without a month the next one with that number. None if there is no such day."""
    try:
        if month:
            day_of_month = date(on.year, month, day)
            return day_of_month if (on - day_of_month).days <= _PAST else date(on.year + 1, month, day)
        day_of_month = date(on.year, on.month, day)
        return day_of_month if day_of_month >= on else date(on.year + on.month // 12, on.month % 12 + 1, day)
    except ValueError:
        return None


MAX_FOUND = 8
_MAX_KNOWN = 26
"""The number of memories from which nothing more is created; what changes is still updated."""
_ANSWERS = 6
"""The messages after one among which its answers are looked for."""
_ANSWERED_WITHIN = timedelta(hours=12)
_POINTED_AT = timedelta(days=3)
_GOES_ON = timedelta(minutes=5)
_NEIGHBOURS = 8
_CHANGED, _SAME_SUBJECT, _FEWEST_SHARED = 0.3, 0.6, 2
_SAME_DAY = 0.1
"""The share of subject words of two messages that name the same day."""
_SAID, _LIKE = 0.6, 0.5
_MAX_ABOUT = 4
_LASTING, _POINTED = 3, 5


@dataclass(eq=False)
class Settled:
    """Something that holds, as one message says it. `line`: the message; None for a memory of another maker. `handle`:
    of the memory that holds it, '' if none does. `about`: the subject, if the message only points at it."""

    text: str
    line: Line | None
    sense: Sense
    handle: str = ""
    about: tuple[str, ...] = ()
    agreed: tuple[Line, ...] = ()
    again: list[Line] = field(default_factory=list)
    over: bool = False
    changed: bool = False

    @cached_property
    def wording(self) -> Wording:
        return Wording.of(self.text)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Its subject words; of long English ones the beginning, as in "submit" and "submission"."""
        return frozenset(map(_beginning, filter(_is_subject, keys_of(fold(" ".join((self.text, *self.about)))))))

    @cached_property
    def named(self) -> frozenset[str]:
        """The subject words beside the sign by which it changes or cancels something."""
        if not self.sense.changes:
            return frozenset()
        return frozenset(map(_beginning, filter(_is_subject, words_beside(fold(self.text), self.sense.purposes[0]))))

    @property
    def evidence(self) -> tuple[Line, ...]:
        return (*((self.line,) if self.line else ()), *self.agreed, *self.again)

    @property
    def is_cancelling(self) -> bool:
        return "cancellation" in self.sense.purposes[:1]

    @property
    def is_fresh(self) -> bool:
        return bool(self.line and self.line.fresh) or any(settled.fresh for settled in (*self.agreed, *self.again))

    @property
    def score(self) -> float:
        return self.sense.score + len({settled.sender for settled in self.agreed})


class Finder:
    """Builds the operations of a reading. `deleted`: statements not to be made again."""

    def __init__(self, lines: Sequence[Line], memories: Mapping[str, Memory], *, deleted: Sequence[str]) -> None:
        self._lines = lines
        self._places = {line.message_id: at for at, line in enumerate(lines)}
        self._known = {handle: parse_statement(memory.statement) for handle, memory in memories.items()}
        self._statements = {handle: memory.statement for handle, memory in memories.items()}
        self._deleted = [Wording.of(parse_statement(statement).said) for statement in deleted]
        self._weights = TermWeights(Wording.of(line.text) for line in lines)
        self._subjects = _rarities(lines)
        self._settled = [
            Settled(parts.said, None, sense_of(fold(parts.said)), handle, parts.about)
            for handle, parts in self._known.items()
        ]

    def operations(self) -> Iterator[Operation]:
        for at in range(len(self._lines)):
            self._read(at)
        settled_now = [settled for settled in self._settled if not settled.over and settled.is_fresh]
        new = sorted((settled for settled in settled_now if not settled.handle), key=lambda ranked: -ranked.score)
        room = min(MAX_FOUND, max(_MAX_KNOWN - len(self._known), 0))
        kept = set(map(id, new[:room]))
        number = 0
        for settled in settled_now:
            if settled.handle or id(settled) in kept:
                number += 1
                yield self._operation(number, settled)

    def _operation(self, number: int, settled: Settled) -> Operation:
        evidence = tuple(dict.fromkeys(line.handle for line in settled.evidence if line.fresh or not settled.handle))
        statement = self._statement(settled)
        return Operation(
            line=number,
            kind="update" if settled.handle else "create",
            handles=(settled.handle,) if settled.handle else (),
            statement=statement,
            reason=_reason(settled, zh=language(settled.text) == "zh"),
            tags=settled.sense.purposes[:1] if settled.line else (),
            evidence=evidence,
        )

    def _statement(self, settled: Settled) -> str:
        if settled.line is None or (settled.handle and not settled.changed):
            return self._statements[settled.handle]
        return written(
            StatementParts(
                said=settled.text,
                name=settled.line.name,
                on=settled.line.on,
                about=settled.about,
                agreed=tuple(dict.fromkeys(line.name for line in settled.agreed)),
                days=tuple(dict(future_days(settled.line.folded, settled.line.on)).items()),
            )
        )

    def _read(self, at: int) -> None:
        """Add what a message settles, in place of what it replaces."""
        line = self._lines[at]
        sense = self._sense(at)
        agreed = self._agreement(at) if sense.purposes else ()
        if not sense.purposes and is_statement(line.folded):
            agreed = self._agreement(at, says=acknowledges)
            sense = ACKNOWLEDGED if agreed else sense
        new = Settled(line.text, line, sense, agreed=agreed)
        if self._is_said_again(new):
            return
        if (
            not sense.holds(len({agreeing.sender for agreeing in agreed}))
            or is_order(line.text)
            or self._is_laughed_at(at)
        ):
            return
        if any(self._weights.says(gone, new.wording) for gone in self._deleted):
            return
        old = self._replaced(new, at)
        if old is not None:
            self._replace(old, new)
        elif new.is_cancelling and not new.keys:
            return
        self._settled.append(new)

    def _sense(self, at: int) -> Sense:
        """Return what a message does. One that goes on after the speaker's own question changes what that asks to
        change."""
        line, sense = self._lines[at], sense_of(self._lines[at].folded)
        before = self._lines[at - 1] if at else None
        if before is None or before.sender != line.sender or line.at - before.at > _GOES_ON or not sense.purposes:
            return sense
        question = sense_of(before.folded)
        if not (question.asked and question.changes):
            return sense
        return replace(sense, purposes=(*sense.purposes, "change"), points=True)

    def _agreement(self, at: int, *, says: Callable[[str], bool] = agrees) -> tuple[Line, ...]:
        """Return the next messages of others that agree, up to one that settles something else."""
        line, agreements = self._lines[at], []
        for other in self._lines[at + 1 : at + 1 + _ANSWERS]:
            if other.at - line.at > _ANSWERED_WITHIN:
                break
            if other.sender == line.sender:
                if sense_of(other.folded).purposes:
                    break
                continue
            if other.answers not in ("", line.message_id):
                continue
            if says(other.text):
                agreements.append(other)
            elif sense_of(other.folded).holds(1):
                break
        return tuple(agreements)

    def _is_laughed_at(self, at: int) -> bool:
        """Return True if the speaker or two others laugh at it at once."""
        line = self._lines[at]
        near = [
            near_line for near_line in self._lines[at + 1 : at + 4] if near_line.at - line.at < timedelta(minutes=10)
        ]
        laughing = [near_line.sender for near_line in near if laughs(near_line.text) and not agrees(near_line.text)]
        mine = bool(near) and near[0].sender == line.sender and laughs(near[0].text)
        return mine or len({*laughing} - {line.sender}) > 1

    def _is_said_again(self, new: Settled) -> bool:
        """Note a message that says what is settled, and return True if one does."""
        assert new.line is not None
        for old in reversed(self._settled):
            if old.over or old.line is new.line:
                continue
            if old.line is None and self._known[old.handle].on and new.text.startswith(old.text):
                old.line, old.sense, old.agreed = new.line, new.sense, new.agreed
                return True
            if not new.sense.asked and len(new.keys) >= 1 and self._says(old, new):
                old.again.append(new.line)
                return True
        return False

    def _says(self, old: Settled, new: Settled) -> bool:
        if not old.wording.allows(new.wording) or not new.wording.details <= old.wording.details:
            return False
        likeness = self._weights.likeness(old.wording, new.wording)
        shared = len(old.keys & new.keys)
        return likeness >= _LIKE or (
            shared >= _FEWEST_SHARED and self._weights.share(old.wording, new.wording) >= _SAID
        )

    def _replaced(self, new: Settled, at: int) -> Settled | None:
        """Return what a message replaces: the settled thing of the same subject, or the one it points at."""
        best, most = None, 0.0
        for old in self._settled:
            if old.over or not self._may_replace(old, new):
                continue
            share = 1.0 if old.sense.timed and old.keys & new.named else self._share(old.keys, new.keys)
            if share >= self._least(old, new) and share >= most:
                best, most = old, share
        if best is None and new.sense.changes and self._points(new):
            best = self._pointed_at(new, at)
        return best

    def _points(self, new: Settled) -> bool:
        """Return True if a message has no subject of its own."""
        assert new.line is not None
        few = _POINTED if new.sense.points and new.sense.timed else _FEWEST_SHARED
        return bool(new.line.answers) or len(new.keys) < few

    def _least(self, old: Settled, new: Settled) -> float:
        days = {key for key in old.wording.details & new.wording.details if key.startswith(WEEKDAY)}
        if new.sense.changes:
            return _SAME_DAY if days else _CHANGED
        if self._is_another_time(old, new):
            return _SAME_DAY
        shared = len(old.keys & new.keys) + bool(old.wording.details & new.wording.details)
        return _SAME_SUBJECT if shared >= _FEWEST_SHARED and old.wording.details != new.wording.details else 2.0

    def _is_another_time(self, old: Settled, new: Settled) -> bool:
        """Return True if the same person names the same day again with another time of day."""
        if old.line is None or new.line is None or old.line.sender != new.line.sender:
            return False
        days = [dict(future_days(line.folded, line.on)).values() for line in (old.line, new.line)]
        times = [frozenset(match[0] for match in CLOCK.finditer(line.folded)) for line in (old.line, new.line)]
        return bool({*days[0]} & {*days[1]} and times[1]) and times[0] != times[1] and bool(old.keys & new.keys)

    def _may_replace(self, old: Settled, new: Settled) -> bool:
        if "person" in old.sense.purposes[:1]:
            return bool(old.line and new.line and old.line.sender == new.line.sender) and new.sense.changes
        return True

    def _share(self, keys: Collection[str], other: Collection[str]) -> float:
        """Return the share of the words of the shorter that both have, by rarity."""
        total = min(sum(map(self._rarity, keys)), sum(map(self._rarity, other)))
        return sum(self._rarity(key) for key in set(keys) & set(other)) / total if total else 0.0

    def _rarity(self, key: str) -> float:
        return self._subjects.get(key, 1.0)

    def _pointed_at(self, new: Settled, at: int) -> Settled | None:
        """Return what a message without a subject of its own changes: what it replies to, else the last thing with a
        time that the same person or a neighbouring message settled."""
        assert new.line is not None
        target = self._places.get(new.line.answers)
        for old in reversed(self._settled):
            if old.over or old.line is None:
                continue
            place = self._places[old.line.message_id]
            if target is not None and place == target:
                return old
            if not self._may_replace(old, new) or (new.is_cancelling and new.named and not new.named & old.keys):
                continue
            near = at - place <= _NEIGHBOURS or old.line.sender == new.line.sender
            recent = new.line.at - old.line.at <= _POINTED_AT
            if target is None and near and recent and (old.sense.timed or not new.sense.timed):
                return old
        return None

    def _replace(self, old: Settled, new: Settled) -> None:
        old.over = True
        new.handle, new.changed = old.handle, True
        assert new.line is not None
        if new.sense.points or len(new.keys) < _LASTING:
            new.about = tuple(dict.fromkeys((*old.about, *_surfaces(old, without=new.line.keys))))[:_MAX_ABOUT]
        if old.sense.timed and not new.sense.timed and "cancellation" not in new.sense.purposes:
            new.about = (*new.about, *times_in(" ".join((old.text, *old.about))))
        new.__dict__.pop("keys", None)


_NO_SUBJECT = lexicon.words("no_subject")
"""Words of time and change, which name no subject."""
_LONG = 5


def _is_subject(key: str) -> bool:
    return is_topical(key) and key not in _NO_SUBJECT


def _beginning(key: str) -> str:
    return key[:_LONG] if key.isascii() else key


def _surfaces(old: Settled, *, without: Collection[str]) -> Iterator[str]:
    """Yield the content words of a text in its order, without days and numbers."""
    folded = fold(old.text)
    text = old.text if len(old.text) == len(folded) else folded
    taken = 0
    for key, (start, end) in sorted(keys_of(folded).items(), key=lambda pair: (pair[1][0], -pair[1][1])):
        named = key in without or key.startswith(WEEKDAY) or key[:1].isdigit()
        if not named and start >= taken:
            taken = end
            yield text[start:end]


def _rarities(lines: Sequence[Line]) -> dict[str, float]:
    counts: defaultdict[str, int] = defaultdict(int)
    for line in lines:
        for key in set(map(_beginning, line.keys)):
            counts[key] += 1
    return {key: 1.0 / count**0.5 for key, count in counts.items()}


def _reason(settled: Settled, *, zh: bool) -> str:
    """Return what the messages do: in the language of the statement, without names, which may have to be forgotten."""
    if settled.changed and settled.handle:
        if settled.is_cancelling:
            return "后来的消息取消了它。" if zh else "A later message cancelled it."
        return "后来的消息改了它。" if zh else "A later message changed it."
    if settled.handle:
        return "又有消息说到。" if zh else "It was said again."
    english, chinese = _REASONS[settled.sense.purposes[0]]
    others = len({line.sender for line in settled.agreed})
    if zh:
        return f"{chinese}，另有 {others} 人认可。" if others else f"{chinese}。"
    agreed = "one other agreed" if others == 1 else f"{others} others agreed"
    return f"{english}, and {agreed}." if others else f"{english}."


_REASONS: Mapping[Purpose, tuple[str, str]] = {
    "change": ("A message says what changes", "消息里说有变动"),
    "cancellation": ("A message called something off", "消息里说取消"),
    "decision": ("It was decided", "消息里作了决定"),
    "rule": ("A message says what holds here", "消息里定了规矩"),
    "habit": ("A message says what is usual here", "消息里说了惯例"),
    "role": ("A message says who does what", "消息里说了谁负责什么"),
    "person": ("A message tells of a person", "消息里说到一个人的情况"),
    "plan": ("It was planned", "消息里说了安排"),
}


_LONGEST_SAID, _LONGEST_NAME, _LONGEST_NOTES = 240, 30, 90
_MAX_AGREED = 3
# A statement as it is written here: name, day and text, in both languages.
_SHAPE = lazy_pattern(
    r"(?P<name>[^:：()（）]+?)(?: \((?P<on>\d{4}-\d\d-\d\d)\): |（(?P<zhon>\d{4}-\d\d-\d\d)）：)(?P<said>.*)",
    re.DOTALL,
)
# The notes in brackets at the end of a statement.
_NOTES = lazy_pattern(r"(?P<said>.*)(?: \[(?P<notes>[^\[\]]*)\]|【(?P<zhnotes>[^【】]*)】)", re.DOTALL)
# The subject among the notes.
_ABOUT = lazy_pattern(r"(?:about|关于)(?: |：)(?P<about>[^;；]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementParts:
    """The parts of a statement. `said`: the words of the message. `about`: its subject, if the words only point at it.
    `agreed`: who agreed. `days`: words that name a day, with the day."""

    said: str
    name: str = ""
    on: date | None = None
    about: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()
    days: tuple[tuple[str, date], ...] = ()


def written(parts: StatementParts) -> str:
    """Return the statement."""
    zh = language(parts.said) == "zh"
    statement = truncate(parts.said, _LONGEST_SAID)
    name = truncate(re.sub(r"[:：()（）\[\]【】;；]", " ", parts.name), _LONGEST_NAME).strip() or "?"
    notes = truncate(("；" if zh else "; ").join(_notes(parts, zh=zh)), _LONGEST_NOTES)
    if zh:
        return f"{name}（{parts.on}）：{statement}" + (f"【{notes}】" if notes else "")
    return f"{name} ({parts.on}): {statement}" + (f" [{notes}]" if notes else "")


def _notes(parts: StatementParts, *, zh: bool) -> Iterator[str]:
    if parts.about:
        about = re.sub(r"[\[\]【】;；]", " ", " ".join(parts.about))
        yield f"关于：{about}" if zh else f"about {about}"
    for words, day in parts.days[:2]:
        yield f"{words} = {day}"
    if parts.agreed:
        names = [re.sub(r"[\[\]【】;；]", " ", name) for name in parts.agreed[:_MAX_AGREED]]
        yield f"同意：{'、'.join(names)}" if zh else f"agreed: {', '.join(names)}"


def parse_statement(statement: str) -> StatementParts:
    """Return the parts of a statement of `written`; of any other the whole as what was said."""
    shape = _SHAPE.fullmatch(statement)
    if not shape:
        return StatementParts(said=statement)
    noted = _NOTES.fullmatch(shape["said"])
    about = _ABOUT.search(noted["notes"] or noted["zhnotes"] or "") if noted else None
    return StatementParts(
        said=(noted["said"] if noted else shape["said"]),
        name=shape["name"],
        on=date.fromisoformat(shape["on"] or shape["zhon"]),
        about=tuple(about["about"].split()) if about else (),
    )


MOST_EARLIER = 800
"""The most messages before the new ones that are read."""
_MAX_NEW = 1_000


def offline_answer(
    messages: Sequence[StoredMessage],
    memories: Mapping[str, Memory],
    *,
    handles: Mapping[str, Source],
    zone: tzinfo,
    earlier: Sequence[StoredMessage] = (),
    people: Mapping[str, str] | None = None,
    deleted: Sequence[str] = (),
) -> Answer:
    """Return the operations for these messages, to be passed to `plan` with the same memories and handles.

    `messages`: the new ones, oldest first; of more than 1,000 the latest. `earlier`: what the room said before them,
    oldest first, read by an earlier evolution; the latest 800 are read to know what the new ones refer to. Nothing is
    found in `earlier` alone: each operation has a new message among its evidence. `handles`: `message_handles` of the
    sources of `(*earlier, *messages)`; a message without a handle is not read. `memories`: the active ones, by handle.
    `zone`: the time zone of days. `people`: sender ids to names, for messages without a name. `deleted`: statements
    that somebody deleted, which are not made again.

    At most 8 creates. A memory that new messages change or cancel gets an update with what they say; one that they
    repeat gets an update with its own statement, which the plan turns into a confirmation. Never deletes. The result
    is deterministic; no text makes it raise.
    """
    names = {source: handle for handle, source in handles.items()}
    given = [
        *((message, False) for message in earlier[-MOST_EARLIER:]),
        *((message, True) for message in messages[-_MAX_NEW:]),
    ]
    lines = read(list(_handled(given, names)), zone=zone, people=people or {})
    return Answer(tuple(Finder(lines, memories, deleted=deleted).operations()), ())


def _handled(
    given: Sequence[tuple[StoredMessage, bool]], names: Mapping[Source, str]
) -> Iterator[tuple[str, StoredMessage, bool]]:
    for message, fresh in given:
        if handle := names.get(Source(message.room_id, message.id)):
            yield handle, message, fresh
