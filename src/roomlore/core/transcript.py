"""Messages as a model reads them: who said what, when, in answer to what, and where something is left out.

Only what is written here stands at the beginning of a line: a time or a note in brackets, or a speaker's name. The
further lines of a text are indented, so nobody's text can pass for a line of somebody else.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from roomlore.core.models import Candidate, Message, Role, StoredMessage
from roomlore.core.sessions.models import Language
from roomlore.core.speaking import Speakers, said, words
from roomlore.core.text import language

PAUSE = timedelta(hours=1)
"""A silence that is told."""
_DAY = timedelta(days=1)
_LAST_TEXTS = 8


@dataclass(frozen=True, slots=True)
class _Phrases:
    """What is told of messages, in one language. What tells a number has two forms, for one and for more."""

    no_text: str
    you: str
    far: str
    between: str
    answer: str
    left_out: tuple[str, str]
    hours: tuple[str, str]
    days: tuple[str, str]


_PHRASES = {
    "en": _Phrases(
        no_text="(no text)",
        you="you",
        far="from earlier, found by search",
        between=", ",
        answer="in reply to {}",
        left_out=("{} message not shown", "{} messages not shown"),
        hours=("{} hour later", "{} hours later"),
        days=("{} day later", "{} days later"),
    ),
    "zh": _Phrases(
        no_text="（没有文字）",
        you="你",
        far="早先的消息，由搜索找到",
        between="，",
        answer="回复 {}",
        left_out=("略去 {} 条消息", "略去 {} 条消息"),
        hours=("{} 小时后", "{} 小时后"),
        days=("{} 天后", "{} 天后"),
    ),
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A message that is shown. `answers`: id of the one it answers, where that is told. `at`: when it was said, in the
    reader's zone; None where that is not told. `far`: whether search found it in the room before."""

    message: Message
    answers: str | None = None
    at: datetime | None = None
    far: bool = False


def timed(candidates: Iterable[Candidate], zone: tzinfo) -> list[Shown]:
    """Return the candidates that say something, with their times.

    What tools were asked and what they gave is left out, and what roomlore itself wrote into the room for a model.
    """
    return [
        Shown(one.message, one.answers or one.message.reply_to, local(one.message.at, zone), one.is_far)
        for one in candidates
        if _speaks(one.message)
    ]


def local(at: datetime | None, zone: tzinfo) -> datetime | None:
    """Return the time in the zone; platforms write year 1 where they know no date, and no zone reaches before it."""
    if at is None:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    try:
        return aware.astimezone(zone)
    except OverflowError:
        return aware


def language_of(shown: Sequence[Message], query: Message | None) -> Language:
    """Return the language of the message to answer, or where it has no word, of those before it."""
    asked = words(query) if query else ""
    if any(letter.isalpha() for letter in asked):
        return language(asked)
    return language("\n".join(words(message) for message in shown[-_LAST_TEXTS:]))


class Transcript:
    """Renders messages in their order. `own`: whether a message is the model's own."""

    def __init__(
        self, shown: Sequence[Shown], *, speakers: Speakers, own: Callable[[Message], bool], language: Language
    ) -> None:
        self._shown = shown
        self._speakers = speakers
        self._own = own
        self._phrases = _PHRASES[language]
        self._by_id = {one.message.id: one for one in shown}
        self._arrivals = sorted(one.message.arrival for one in shown if isinstance(one.message, StoredMessage))

    def messages(self) -> Iterator[dict[str, str]]:
        """Yield them as role and content: `assistant` for the model's own messages, `user` for all else."""
        for place, one in enumerate(self._shown):
            if not self._own(one.message):
                yield {"role": "user", "content": "\n".join(self._lines(place))}
                continue
            told = [*self._notes(place), *self._about(place)]
            if told:
                yield {"role": "user", "content": self._bracketed(told)}
            yield {"role": "assistant", "content": self._text(one.message)}

    def prompt(self) -> str:
        """Return them as lines of one text."""
        return "\n".join(line for place in range(len(self._shown)) for line in self._lines(place))

    def _lines(self, place: int) -> Iterator[str]:
        notes, one = self._notes(place), self._shown[place]
        if notes:
            yield self._bracketed(notes)
        about = self._phrases.between.join(self._about(place))
        yield self._speakers.line(one.message, self._text(one.message), at=_clock(one.at), about=about)

    def _notes(self, place: int) -> list[str]:
        """Tell of the day where it is another one, and of what lies between this message and the one before."""
        one, before = self._shown[place], self._shown[place - 1] if place else None
        if one.at is None:
            return []
        day = "" if before and _same_day(one, before) else f"{one.at:%Y-%m-%d}"
        between = (self._left_out(before, one), self._pause(before, one)) if before else ()
        return [note for note in (day, *between) if note]

    def _left_out(self, before: Shown, one: Shown) -> str:
        if not isinstance(before.message, StoredMessage) or not isinstance(one.message, StoredMessage):
            return ""
        first, last = before.message.arrival, one.message.arrival
        shown = bisect_left(self._arrivals, last) - bisect_right(self._arrivals, first)
        return _counted(self._phrases.left_out, last - first - 1 - shown)

    def _pause(self, before: Shown, one: Shown) -> str:
        pause = one.at.astimezone(UTC) - before.at.astimezone(UTC) if one.at and before.at else timedelta()
        if pause >= 2 * _DAY:
            return _counted(self._phrases.days, pause // _DAY)
        return _counted(self._phrases.hours, pause // PAUSE)

    def _about(self, place: int) -> list[str]:
        """Tell what the line alone does not: that it is from elsewhere, and which one it answers."""
        one, before = self._shown[place], self._shown[place - 1] if place else None
        told = [self._phrases.far] if one.far else []
        answered = self._by_id.get(one.answers or "")
        if answered is None or answered is one or not self._speakers.several:
            return told
        plain = one.at is None or self._own(one.message) or one.message.reply_to != answered.message.id
        return told if answered is before and plain else [*told, self._answer(one, answered)]

    def _answer(self, one: Shown, answered: Shown) -> str:
        own = self._own(answered.message)
        name = self._phrases.you if own else self._speakers.name_of(answered.message.sender_id)
        day = f" {answered.at:%Y-%m-%d}" if answered.at and not _same_day(one, answered) else ""
        return self._phrases.answer.format(f"{name}{day} {_clock(answered.at)}".rstrip())

    def _text(self, message: Message) -> str:
        return words(message).strip() or self._phrases.no_text

    def _bracketed(self, told: Iterable[str]) -> str:
        return f"[{self._phrases.between.join(told)}]"


def _speaks(message: Message) -> bool:
    """Tell whether it is something said, or a picture: no tool's chatter, and nothing that roomlore wrote."""
    if message.role is Role.TOOL:
        return False
    return bool(said(message).strip()) or not (message.has_tool_calls or message.text.strip())


def _counted(forms: tuple[str, str], number: int) -> str:
    return forms[number > 1].format(number) if number > 0 else ""


def _same_day(one: Shown, other: Shown) -> bool:
    return one.at is not None and other.at is not None and one.at.date() == other.at.date()


def _clock(at: datetime | None) -> str:
    return f"{at:%H:%M}" if at else ""
