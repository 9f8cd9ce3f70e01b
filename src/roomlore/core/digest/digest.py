"""A digest: what happened in a room, entry by entry, and its forms for models."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Literal

from roomlore.core.models import TalkState
from roomlore.core.prompt import neutral

DIGEST_TOKENS, FEWEST_TOKENS, MAX_TOKENS = 800, 50, 100_000
"""The most tokens of a digest where a call does not say, and the least and the most that a call may say."""
Why = Literal["waits", "mentions", "question", "decision", "talk"]
"""`waits`: something in it was asked of the reader, who has not written since. `mentions`: it names the reader, or
everybody. `question`: it holds a question that nobody answered. `decision`: something was decided, changed or
cancelled. `talk`: none of these."""

ORDER: tuple[Why, ...] = ("waits", "mentions", "decision", "question", "talk")
"""What matters most is shown first."""
_MARKS: dict[Why, str] = {"waits": "@", "mentions": "@", "question": "?", "decision": "!", "talk": "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestLine:
    """The part of a digest that shows one message. `text`: the message, or a whole sentence of a long one; of a digest
    that a model wrote, its words. `more`: further messages that a line of a model cites. `decides`: it says that
    something was decided, changed or cancelled. `why`: what it is shown for."""

    message_id: str
    sender_id: str
    sender_name: str
    sent_at: datetime
    text: str
    more: tuple[str, ...] = ()
    decides: bool = False
    why: Why = "talk"

    @property
    def mark(self) -> str:
        return _MARKS["decision" if self.decides and self.why == "talk" else self.why]

    @property
    def name(self) -> str:
        return self.sender_name or self.sender_id

    @property
    def cited(self) -> tuple[str, ...]:
        """The ids of the messages behind it."""
        return (self.message_id, *self.more)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestEntry:
    """A stretch of a thread.

    `thread_id`: the id of the first message of it in the span, with which `rooms.thread` gives the thread. `people`:
    names in order of first speaking. `messages`: how many it has. `why`: why it is shown where it is, the strongest
    reason. `full`: shown with its heading; else only as its line.
    """

    thread_id: str
    title: str
    people: tuple[str, ...]
    sender_ids: tuple[str, ...]
    first_at: datetime
    last_at: datetime
    state: TalkState
    messages: int
    why: Why
    lines: tuple[DigestLine, ...]
    full: bool = False

    def rendered(self, zone: tzinfo = UTC) -> str:
        """Return the entry as text: one line, or a heading and a line for each sentence, in order of time. A title that
        a line repeats is left out."""
        if not self.full:
            return "\n".join(_inert(f"{line.mark} {line.text} {_cited(line)}") for line in self.lines)
        state = "" if self.state is TalkState.CLOSED else f" · {self.state}"
        about = f"{_few(self.people)} · {_times(self.first_at, self.last_at, zone)}{state}"
        first, title, rest = self.lines[0], "" if self.titled_by else f"{self.title} · ", self.lines
        if self.titled_by is first and first.mark == _MARKS[self.why]:
            title, rest = f"{first.text} {_cited(first)} · ", self.lines[1:]
            title = f"{first.name}: {title}" if len(self.people) > 1 else title
        lines = (f"{line.mark.replace('-', '')} {line.name}: {line.text} {_cited(line)}".strip() for line in rest)
        return "\n  ".join(map(_inert, (f"{_MARKS[self.why]} {title}{about}", *lines)))

    @property
    def titled_by(self) -> DigestLine | None:
        """The line that says the same as the title."""
        # Words that it often uses may follow.
        named = (self.title.removesuffix("…"), self.title.rpartition(" (")[0].removesuffix("…"))
        return next((line for line in self.lines for text in named if text and text in line.text), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A summary of a room since a message.

    `after`: the arrival of the last message before it, 0 if it begins with the first, or if the viewer may see only a
    part of the room. `since`: when its first message was sent, None if there is none. `messages`: how many there are;
    `read`: the newest of them that it was made of, if there are too many. `left`: how many further talks are not shown,
    without those that only greet, agree or laugh.
    `tokens`: of `to_prompt`. `model`: the model that wrote it, None if it is made of the messages' own sentences.
    `degraded`: None, or why no model wrote it.
    """

    room_id: str
    for_user: str | None
    after: int
    since: datetime | None
    messages: int
    read: int
    entries: tuple[DigestEntry, ...]
    left: int
    tokens: int
    model: str | None = None
    degraded: str | None = None

    def to_prompt(self, *, zone: tzinfo = UTC) -> str:
        """Return the digest as one text for a model or a person, '' if nothing happened.

        A line begins with `@` if it concerns the reader, `?` for an open question, `!` for a decision, else `-`; what
        stands in brackets is the message's id. `zone`: the time zone of the times.
        """
        return "\n".join(self._rendered(zone))

    def sections(self) -> Iterator[tuple[Why, list[tuple[DigestEntry, list[DigestLine]]]]]:
        """Yield the lines by what they are shown for, in order of time, and last what else was said, thread by
        thread."""
        for why in ORDER[:-1]:
            points = [(entry, line) for entry in self.entries for line in entry.lines if line.why == why]
            if points:
                yield why, [(entry, [line]) for entry, line in sorted(points, key=lambda point: point[1].sent_at)]
        talks = [(entry, [line for line in entry.lines if line.why == "talk"]) for entry in self.entries]
        if rest := [(entry, lines) for entry, lines in talks if lines]:
            yield "talk", rest

    def _rendered(self, zone: tzinfo) -> Iterator[str]:
        for entry in self.entries:
            yield entry.rendered(zone)


def _inert(text: str) -> str:
    """Return the text on one line: a name or an id with a line break must not look like another line."""
    return neutral(" ".join(text.split()))


def _cited(line: DigestLine) -> str:
    return f"[{', '.join(line.cited)}]"


def _few(people: tuple[str, ...]) -> str:
    named = ", ".join(people[:_MAX_PEOPLE])
    return named if len(people) <= _MAX_PEOPLE else f"{named} +{len(people) - _MAX_PEOPLE}"


_MAX_PEOPLE = 4


def _times(first: datetime, last: datetime, zone: tzinfo) -> str:
    begin, end = first.astimezone(zone), last.astimezone(zone)
    if begin.date() != end.date():
        return f"{begin:%m-%d %H:%M}–{end:%m-%d %H:%M}"
    if (begin.hour, begin.minute) == (end.hour, end.minute):
        return f"{begin:%m-%d %H:%M}"
    return f"{begin:%m-%d %H:%M}–{end:%H:%M}"
