"""The messages of many rooms that matter: what waits for a person, what was decided, which questions are open."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from roomlore.core.digest.digest import Why
from roomlore.core.digest.points import Span, is_asking
from roomlore.core.digest.talks import is_said
from roomlore.core.models import Entry, StoredMessage

MOST_PARTS = 100
"""The parts, of the newest messages first, in which an overview can be read."""


@dataclass(frozen=True, slots=True)
class Point:
    """A message that matters. `title`: of its room. `why`: it waits for the person, decides, or is an open question.
    `whole`: the viewer may see all that was said in the room."""

    title: str
    message: StoredMessage
    why: Why
    whole: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """What matters in the rooms since a time, the newest first. `messages`: how many were looked at. `back_to`: when
    the oldest of them was sent, None if they are all. `last_at`: when the last message of these rooms was sent, None
    if there is none."""

    points: tuple[Point, ...]
    messages: int
    back_to: datetime | None
    last_at: datetime | None


def waiting_of(entries: Sequence[Entry], person: str) -> list[Entry]:
    """Return the messages of a room, in order of arrival, that ask something of a person that nobody answered or
    did."""
    spoken = [entry for entry in entries if is_said(entry)]
    span, own = Span(spoken), {entry.message.id for entry in spoken if entry.message.sender_id == person}
    return [entry for entry in spoken if span.asks_of(entry, person, own)]


def settled_and_open(entries: Sequence[Entry], arrivals: Container[int]) -> Iterator[tuple[Entry, Why]]:
    """Yield the messages of a room with these arrivals that decide, and the open questions among them. `entries`: of
    the room, in order of arrival, by which it is known what is answered and settled."""
    spoken = [entry for entry in entries if is_said(entry)]
    span = Span(spoken)
    for entry in spoken:
        if entry.message.arrival not in arrivals:
            continue
        if span.decides(entry):
            yield entry, "decision"
        elif is_asking(entry) and span.is_open(entry):
            yield entry, "question"
