"""Messages as a model reads them: who said what, when, in answer to what, and where something is left out."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from roomlore.core.attachments import caption_of, with_attachments
from roomlore.core.memory.reading import own_words
from roomlore.core.mentions import with_names
from roomlore.core.models import Candidate, Message, Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.prompt import INVISIBLE, is_label, neutral
from roomlore.core.sessions.session import Language
from roomlore.core.text import fold, language, truncate

_CLOSES = lazy_pattern(r"(\A\s*)<(?=\s{0,9}/)")
"""The closing of a tag at the beginning of a line, since a caller's prompt may be enclosed in tags of its own."""
# What would divide a name from its text, or forge a tag.
_SPLITS_A_NAME = lazy_pattern(r"[\s:：<>\[\]]+")
_NAME_CHARACTERS = 64
_INDENT = "  "
# Parentheses in a name, which would close those around it.
_PARENTHESES = lazy_pattern("[()（）]")


def text_or_caption(message: Message) -> str:
    """Return the text, else the caption of a picture and what was said of it."""
    return message.text if message.text.strip() else caption_of(message) or message.text


def spoken_text(message: Message) -> str:
    """Return the text, else a picture's caption; '' if it has neither, or only what roomlore wrote."""
    text = text_or_caption(message)
    return "" if text is message.text and not own_words(message) else text


def is_own(message: Message, agent_id: str) -> bool:
    """Return True if the agent said it."""
    return message.role is Role.ASSISTANT and message.sender_id == agent_id


class Speakers:
    """Gives each person of a room a unique name.

    `people`: sender ids to names. `agents`: ids and names that no person may be given. `several`: True if each text
    needs its speaker named.
    """

    def __init__(self, people: Mapping[str, str], *, agents: Iterable[str] = (), several: bool = True) -> None:
        names = {sender: _name(name) or _name(sender) for sender, name in people.items()}
        self._taken = {_visible(_name(agent)) for agent in agents} | {"memory"}
        self._names = _unambiguous(names, self._taken)
        self.several = several

    def name_of(self, sender_id: str) -> str:
        """Return the sender's name; the id of an unknown sender."""
        return self._called(sender_id, sender_id)

    def with_names(self, message: Message, text: str) -> str:
        """Return the text with the names of the people whom it mentions by their ids."""
        return with_names(text, self._names, message.mentions)

    def line(self, message: Message, text: str, *, at: str = "", about: str = "") -> str:
        """Return the text as a model reads it.

        `at`: the time in front of the name. `about`: the note behind the name.
        """
        if not self.several:
            before = " ".join(part for part in (f"[{at}]" if at else "", f"({about})" if about else "") if part)
            return neutral(f"{before} {text}" if before else text)
        name = self._called(message.sender_id, message.sender_name)
        head = f"{name} ({about}):" if about else f"{name}:"
        first, *others = map(_without_closing_tag, text.splitlines() or [""])
        lines = [f"[{at}] {head} {first}" if at else f"{head} {first}", *(_INDENT + line for line in others)]
        return neutral("\n".join(lines))

    def _called(self, sender_id: str, name: str) -> str:
        known = self._names.get(sender_id)
        return known or _unambiguous({sender_id: _name(name) or _name(sender_id)}, self._taken)[sender_id]


def people_of(messages: Iterable[Message], known: Mapping[str, str]) -> dict[str, str]:
    """Return the senders of these messages with their names: the room's, else the last one used in the messages."""
    people: dict[str, str] = {}
    for message in messages:
        people[message.sender_id] = (
            known.get(message.sender_id) or message.sender_name or people.get(message.sender_id, "")
        )
    return people


def _without_closing_tag(line: str) -> str:
    return _CLOSES.sub(r"\1‹", line) if "<" in line else line


def _name(name: str) -> str:
    return truncate(_SPLITS_A_NAME.sub(" ", name).strip(), _NAME_CHARACTERS)


def _visible(name: str) -> str:
    """Return the visible form of the name; invisible characters distinguish nobody."""
    folded = fold(name)
    return folded if folded.isascii() and folded.isprintable() else INVISIBLE.sub("", folded).strip()


def _unambiguous(names: Mapping[str, str], taken: set[str]) -> dict[str, str]:
    """Return the names, with the sender's id beside each that is ambiguous or that looks as if it contained an id."""
    looks = {sender: _visible(name) for sender, name in names.items()}
    often = Counter(looks.values())
    return {
        sender: f"{name} ({_PARENTHESES.sub('', _name(sender))})"
        if often[looks[sender]] > 1 or looks[sender] in taken or is_label(name) or looks[sender].endswith(")")
        else name
        for sender, name in names.items()
    }


PAUSE = timedelta(hours=1)
"""The least pause that is noted."""
_DAY = timedelta(days=1)
_LAST_TEXTS = 8


@dataclass(frozen=True, slots=True)
class _Phrases:
    """The notes about messages, in one language. A note with a number has two forms, singular and plural."""

    no_text: str
    you: str
    far: str
    between: str
    answer: str
    left_out: tuple[str, str]
    hours: tuple[str, str]
    days: tuple[str, str]
    now: str
    weekdays: tuple[str, ...]


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
        now="now: {}, {}",
        weekdays=("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
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
        now="现在：{}，{}",
        weekdays=("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
    ),
}


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message that is shown. `answers`: id of the one it answers, if noted. `at`: its time, in the reader's zone;
    None if not noted. `far`: True if search found it in the room before."""

    message: Message
    answers: str | None = None
    at: datetime | None = None
    far: bool = False


def timed(candidates: Iterable[Candidate], zone: tzinfo) -> list[ShownMessage]:
    """Return the candidates with content, with their times.

    Tool calls, tool results and messages that roomlore wrote for a model are omitted.
    """
    return [
        ShownMessage(
            candidate.message,
            candidate.answers or candidate.message.reply_to,
            local(candidate.message.at, zone),
            candidate.is_far,
        )
        for candidate in candidates
        if speaks(candidate.message)
    ]


def local(at: datetime | None, zone: tzinfo) -> datetime | None:
    """Return the time in the zone. Platforms write year 1 for an unknown date, which some zones cannot represent."""
    if at is None:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    try:
        return aware.astimezone(zone)
    except OverflowError:
        return aware


def language_of(shown: Sequence[Message], query: Message | None) -> Language:
    """Return the language of the message to answer, or if it has no word, of those before it."""
    question = text_or_caption(query) if query else ""
    if any(letter.isalpha() for letter in question):
        return language(question)
    return language("\n".join(text_or_caption(message) for message in shown[-_LAST_TEXTS:]))


class Transcript:
    """Renders messages in their order.

    `own`: True for the model's own messages. `now`: the present in the reader's zone, noted before the last message, or
    None. `silent`: arrivals of messages with nothing to show, which are not counted as left out.
    """

    def __init__(
        self,
        shown: Sequence[ShownMessage],
        *,
        speakers: Speakers,
        own: Callable[[Message], bool],
        language: Language,
        now: datetime | None = None,
        silent: Iterable[int] = (),
    ) -> None:
        self._shown = shown
        self._speakers = speakers
        self._own = own
        self._language = language
        self._phrases = _PHRASES[language]
        self._by_id = {shown_message.message.id: shown_message for shown_message in shown}
        self._now = now
        known = (
            shown_message.message.arrival for shown_message in shown if isinstance(shown_message.message, StoredMessage)
        )
        self._arrivals = sorted({*known, *silent})

    def messages(self) -> Iterator[dict[str, str]]:
        """Yield them as role and content: `assistant` for the model's own messages, `user` for all else."""
        for place, shown in enumerate(self._shown):
            if not self._own(shown.message):
                yield {"role": "user", "content": "\n".join(self._lines(place))}
                continue
            notes = [*self._notes(place), *self._about(place)]
            if notes:
                yield {"role": "user", "content": self._bracketed(notes)}
            yield {"role": "assistant", "content": neutral(self._text(shown.message))}

    def prompt(self) -> str:
        """Return them as lines of one text."""
        return "\n".join(line for place in range(len(self._shown)) for line in self._lines(place))

    def _lines(self, place: int) -> Iterator[str]:
        notes, shown = self._notes(place), self._shown[place]
        if notes:
            yield self._bracketed(notes)
        about = self._phrases.between.join(self._about(place))
        text = self._speakers.with_names(shown.message, self._text(shown.message))
        yield self._speakers.line(shown.message, text, at=_clock(shown.at), about=about)

    def _notes(self, place: int) -> list[str]:
        """Return notes about a new day, the gap to the message before, and in front of the last message the present."""
        shown, before = self._shown[place], self._shown[place - 1] if place else None
        now = self._now if shown is self._shown[-1] else None
        now_note = (
            [self._phrases.now.format(f"{now:%Y-%m-%d %H:%M}", self._phrases.weekdays[now.weekday()])] if now else []
        )
        if shown.at is None:
            return now_note
        is_told = (before and _same_day(shown, before)) or (now and now.date() == shown.at.date())
        day = "" if is_told else f"{shown.at:%Y-%m-%d}"
        between = (self._left_out(before, shown), self._pause(before, shown)) if before else ()
        return [note for note in (day, *between, *now_note) if note]

    def _left_out(self, before: ShownMessage, shown_message: ShownMessage) -> str:
        if not isinstance(before.message, StoredMessage) or not isinstance(shown_message.message, StoredMessage):
            return ""
        first, last = before.message.arrival, shown_message.message.arrival
        shown = bisect_left(self._arrivals, last) - bisect_right(self._arrivals, first)
        return _counted(self._phrases.left_out, last - first - 1 - shown)

    def _pause(self, before: ShownMessage, shown: ShownMessage) -> str:
        pause = shown.at.astimezone(UTC) - before.at.astimezone(UTC) if shown.at and before.at else timedelta()
        if pause >= 2 * _DAY:
            return _counted(self._phrases.days, pause // _DAY)
        return _counted(self._phrases.hours, pause // PAUSE)

    def _about(self, place: int) -> list[str]:
        """Return a note that the message is from elsewhere, and which one it answers."""
        shown, before = self._shown[place], self._shown[place - 1] if place else None
        notes = [self._phrases.far] if shown.far and self._is_long_ago(shown) else []
        answered = self._by_id.get(shown.answers or "")
        if answered is None or answered is shown or not self._speakers.several:
            return notes
        plain = shown.at is None or self._own(shown.message) or shown.message.reply_to != answered.message.id
        return notes if answered is before and plain else [*notes, self._answer(shown, answered)]

    def _is_long_ago(self, shown: ShownMessage) -> bool:
        """Return True unless the message is known to be less than a pause older than the last one."""
        last = self._shown[-1].at
        return shown.at is None or last is None or last.astimezone(UTC) - shown.at.astimezone(UTC) >= PAUSE

    def _answer(self, shown: ShownMessage, answered: ShownMessage) -> str:
        own = self._own(answered.message)
        name = self._phrases.you if own else self._speakers.name_of(answered.message.sender_id)
        day = f" {answered.at:%Y-%m-%d}" if answered.at and not _same_day(shown, answered) else ""
        return self._phrases.answer.format(f"{name}{day} {_clock(answered.at)}".rstrip())

    def _text(self, message: Message) -> str:
        return with_attachments(message, self._language) or self._phrases.no_text

    def _bracketed(self, notes: Iterable[str]) -> str:
        return f"[{self._phrases.between.join(notes)}]"


def speaks(message: Message) -> bool:
    """Return True for a text or a picture: no tool call or result, and nothing that roomlore wrote."""
    if message.role is Role.TOOL:
        return False
    return bool(spoken_text(message).strip()) or not (message.has_tool_calls or message.text.strip())


def _counted(forms: tuple[str, str], number: int) -> str:
    return forms[number > 1].format(number) if number > 0 else ""


def _same_day(shown: ShownMessage, other: ShownMessage) -> bool:
    return shown.at is not None and other.at is not None and shown.at.date() == other.at.date()


def _clock(at: datetime | None) -> str:
    return f"{at:%H:%M}" if at else ""
