"""The evaluation of roomlore on one's own rooms: what is asked, and what was found."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roomlore.core.context import (
    ContextOptions,
    filled,
    follows_pause,
    least_messages,
    threaded_picks,
    topic_last,
)
from roomlore.core.errors import InvalidInput
from roomlore.core.json_values import in_json
from roomlore.core.linking.model import LinkModel, select
from roomlore.core.linking.room import RoomState
from roomlore.core.models import Entry, Room

WINDOW_MESSAGES = 20
"""The plain window that contexts are compared with."""
RANKS = (1, 5, 10)
FEW_CASES = 30
"""From fewer cases a share says little."""
_CONFIDENT = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of cases. `hits`: how many of `cases` were right."""

    hits: int
    cases: int

    @property
    def value(self) -> float | None:
        """The share, None without a case."""
        return self.hits / self.cases if self.cases else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval that holds the share of all cases 19 times of 20 (Wilson); None without a case."""
        if not self.cases:
            return None
        n, p, z = self.cases, self.hits / self.cases, _CONFIDENT
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        """Return the share with its interval, for people."""
        if self.interval is None:
            return "–"
        low, high = self.interval
        return f"{self.hits / self.cases:.1%} ({100 * low:.0f}–{100 * high:.0f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomScore:
    """The contexts of one room if its platform replies are hidden.

    `messages`: in the room; `replies`: how many of them answer a message according to the platform. `found`: contexts
    that hold the answered message. `window`: the same for the last 20 messages. `tokens` and `window_tokens`: of both,
    together. `size`: messages of a context on average.
    """

    room_id: str
    messages: int
    replies: int
    found: Share
    window: Share
    size: float
    tokens: int
    window_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with what answers it: ids of messages, or words that an answer contains. `viewer`: who asks, None for
    somebody who may see everything. `message_id`: the message of the room that asks it, None if there is none."""

    question: str
    room_id: str | None = None
    answers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    viewer: str | None = None
    message_id: str | None = None

    def answered_by(self, message_id: str, text: str) -> bool:
        """Return True if the message answers it."""
        if self.answers:
            return message_id in self.answers
        return all(word.casefold() in text.casefold() for word in self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionScore:
    """The answers to questions. `recall`: by rank, the share of questions with an answer among the first hits.
    `missed`: those without one. `tokens`: of the first ten hits on average. `ms`: of a search on average. `contexts`:
    of the questions that a message asks, those whose context holds an answer; `context_tokens`: of these contexts on
    average."""

    recall: Mapping[str, Share]
    missed: tuple[str, ...]
    tokens: float
    ms: float
    contexts: Share
    context_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ForbiddenText:
    """A text that a viewer must not be shown."""

    text: str
    viewer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A forbidden text that a viewer is shown. `where`: `search`, `memories` or `digest`, with the room or scope."""

    text: str
    viewer: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The result of an evaluation. `asked`: None without a file of questions. `forbidden`: how many texts were
    looked for."""

    rooms: tuple[RoomScore, ...]
    asked: QuestionScore | None
    forbidden: int
    leaks: tuple[Leak, ...]
    seed: int
    seconds: float

    @property
    @in_json
    def found(self) -> Share:
        """The contexts of all rooms that hold the answered message."""
        return _sum(room.found for room in self.rooms)

    @property
    def window(self) -> Share:
        """The same for the last 20 messages."""
        return _sum(room.window for room in self.rooms)

    @property
    def tokens(self) -> int:
        return sum(room.tokens for room in self.rooms)

    @property
    def window_tokens(self) -> int:
        return sum(room.window_tokens for room in self.rooms)


def caution(evaluation: Evaluation) -> str | None:
    """Return why the share of contexts says little, None if it does not."""
    tried = evaluation.found.cases
    if not tried or tried >= FEW_CASES:
        return None
    were = "Only 1 reply was tried" if tried == 1 else f"Only {tried} replies were tried"
    return f"{were}: the shares may come out quite otherwise with more. Trust them from {FEW_CASES} on."


def _sum(shares: Iterable[Share]) -> Share:
    listed = list(shares)
    return Share(hits=sum(share.hits for share in listed), cases=sum(share.cases for share in listed))


def sampled(arrivals: Sequence[int], most: int, seed: int, room_id: str) -> list[int]:
    """Return at most `most` of the arrivals, ascending; the same for the same seed and room."""
    if len(arrivals) <= most:
        return list(arrivals)
    keyed = {arrival: hashlib.sha256(f"{seed}:{room_id}:{arrival}".encode()).digest() for arrival in arrivals}
    return sorted(sorted(arrivals, key=keyed.__getitem__)[:most])


def context_without_reply(
    entry: Entry,
    before: Sequence[Entry],
    *,
    room: Room,
    people: Mapping[str, str],
    model: LinkModel,
    options: ContextOptions,
) -> list[int]:
    """Return the arrivals of the context of a message as if the platform had not said what it answers.

    `before`: the entries before it. What the platform says of the others is known, as when the message was written.
    """
    message = entry.message
    here = replace(room, next_arrival=message.arrival)
    state = RoomState(
        model=model,
        room=here,
        participants=people,
        entries=before,
        calibration=room.linked.calibration,
        learning=False,
    )
    arrivals = state.begin((), ())
    arrivals.take(replace(message, reply_to=None, root_id=None))
    link, most = arrivals.entries[0].link, options.max_context_messages
    chosen = threaded_picks(link, dict(select(link, most)), most)
    messages = topic_last(message, [earlier.message for earlier in before])
    least = least_messages(message, room, options)
    paused = bool(least) and follows_pause(message.dated_at, messages[-1].dated_at if messages else None)
    return sorted(filled(chosen, messages, least, link, most=most, paused=paused).chances)


def read_questions(rows: Iterable[Mapping[str, Any]]) -> list[Question]:
    """Return the questions of rows such as {"question": "...", "room_id": "team", "answers": ["m1"]}.

    Raise `InvalidInput` that names the row.
    """
    return [_question(number, row) for number, row in enumerate(rows, 1)]


def _question(number: int, row: Mapping[str, Any]) -> Question:
    question = _text(number, row, "question")
    answers, words = _texts(number, row, "answers"), _texts(number, row, "words")
    if bool(answers) == bool(words):
        raise InvalidInput("question_answers_missing", number=number)
    room_id, viewer = row.get("room_id"), row.get("viewer")
    if room_id is None and viewer is None:
        raise InvalidInput("question_place_missing", number=number)
    message_id = row.get("message_id")
    if message_id is not None and (room_id is None or not isinstance(message_id, str)):
        raise InvalidInput("question_room_missing", number=number)
    return Question(
        question=question, room_id=room_id, answers=answers, words=words, viewer=viewer, message_id=message_id
    )


def read_forbidden(rows: Iterable[Mapping[str, Any]]) -> list[ForbiddenText]:
    """Return the forbidden texts of rows such as {"text": "...", "viewer": "room:team"}. Raise `InvalidInput`."""
    return [
        ForbiddenText(text=_text(number, row, "text"), viewer=_text(number, row, "viewer"))
        for number, row in enumerate(rows, 1)
    ]


def _text(number: int, row: Mapping[str, Any], name: str) -> str:
    value = row.get(name) if isinstance(row, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput("row_value_not_text", number=number, name=name, value=f"{value!r:.60}")
    return value


def _texts(number: int, row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name, [])
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise InvalidInput("row_value_not_list", number=number, name=name, value=f"{value!r:.60}")
    return tuple(value)
