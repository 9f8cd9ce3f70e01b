"""Links that people correct: what a message answers, or that it answers nothing, and what follows for later
messages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from roomlore.core.errors import InvalidInput
from roomlore.core.linking.calibration import in_units
from roomlore.core.linking.model import LinkModel, link, link_as_corrected, surprise
from roomlore.core.linking.window import SIZE, UNANSWERED, RoomWindow
from roomlore.core.models import Entry, Link, LinkKind, StoredMessage

FOLLOWING = SIZE
"""So many messages after a corrected one are linked anew: no later one sees it in its window."""
MAX_BY_CHARS = 200


class CorrectionKind(StrEnum):
    """What a person said of a message: it answers another, it answers nothing; or that an earlier correction is taken
    back."""

    ANSWERS = "answers"
    NOTHING = "nothing"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """An entry of the log of corrections of a room.

    `number`: its place in the log of its room, from 1. `message_id`: the corrected message. `answers`: the message it
    answers, None if it answers nothing or the correction is undone. `standing`: True if it is in force. `by`: who
    corrected it.
    """

    room_id: str
    number: int
    message_id: str
    kind: CorrectionKind
    answers: str | None = None
    standing: bool
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """A correction in force. `answers`: the arrival of the message that is answered, None for nothing. `model`,
    `errors`: what it added to the calibration of this link model, '' and () if nothing."""

    answers: int | None
    model: str = ""
    errors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """The part of a room that is linked anew after a correction.

    `before`: the entries before the corrected one. `entries`: that one and those after it. `others`: older entries that
    the others reply to. `corrected`: as in `RoomState.begin`, of `entries`.
    """

    before: Sequence[Entry]
    entries: Sequence[Entry]
    others: Sequence[Entry]
    corrected: Mapping[int, int | None]


def check_answer(message: StoredMessage, target: Entry | None, thread: Iterable[Entry]) -> None:
    """Raise `InvalidInput` if the message cannot be said to answer the target, or nothing if it is None. `thread`: the
    messages of the thread of the target."""
    if message.role in UNANSWERED:
        raise InvalidInput(f"Message {message.id!r} has the role {message.role}: such messages answer nothing.")
    if target is None:
        return
    if target.message.arrival >= message.arrival:
        raise InvalidInput(
            f"Message {target.message.id!r} came after {message.id!r}: a message answers one that came before it."
        )
    if message.arrival in _answered_by(target, thread):
        raise InvalidInput(
            f"Message {target.message.id!r} answers {message.id!r} itself, maybe through others: correct it first."
        )


def _answered_by(target: Entry, thread: Iterable[Entry]) -> set[int]:
    """Return the arrivals of what the target answers, what that answers, and so on."""
    links = {entry.message.arrival: entry.link for entry in thread}
    seen: set[int] = set()
    here: Link | None = target.link
    while here is not None and here.kind is not LinkKind.NEW and here.parent is not None and here.parent not in seen:
        seen.add(here.parent)
        here = links.get(here.parent)
    return seen


def links_after(model: LinkModel, past: Past, temperature: float) -> dict[int, Link]:
    """Return the links of `past.entries` that come out otherwise than they are stored, by arrival.

    A reply whose target arrived after it keeps its link: it moves with the thread of its target.
    """
    window = RoomWindow.of(past.before)
    by_id = {entry.message.id: entry for entry in (*past.others, *past.before, *past.entries)}
    by_arrival = {entry.message.arrival: entry for entry in by_id.values()}
    changed: dict[int, Link] = {}
    for entry in past.entries:
        message = entry.message
        new = _link(model, window, entry, past.corrected, by_id, by_arrival, temperature)
        if new != entry.link:
            changed[message.arrival] = new
            entry = replace(entry, link=new)
            by_id[message.id] = by_arrival[message.arrival] = entry
        window.push(entry)
    return changed


def _link(
    model: LinkModel,
    window: RoomWindow,
    entry: Entry,
    corrected: Mapping[int, int | None],
    by_id: Mapping[str, Entry],
    by_arrival: Mapping[int, Entry],
    temperature: float,
) -> Link:
    message = entry.message
    if message.arrival in corrected:
        answered = corrected[message.arrival]
        if answered is None or answered in by_arrival:
            return link_as_corrected(window, message, None if answered is None else by_arrival[answered])
    target = by_id.get(message.reply_to) if message.reply_to else None
    if target is not None and target.message.arrival > message.arrival:
        if entry.link.kind is not LinkKind.CORRECTED:
            return entry.link
        target = None if message.arrival in _answered_by(target, by_arrival.values()) else target
    return link(model, window, message, entry.features, target, temperature)


def errors_shown(model: LinkModel, past: Past) -> tuple[int, ...]:
    """Return what the correction of the first of `past.entries` adds to the calibration; () if it adds nothing: the
    message answers nothing, or one that the model does not consider."""
    first = past.entries[0]
    answered = past.corrected.get(first.message.arrival)
    known = (*past.others, *past.before)
    target = next((entry for entry in known if entry.message.arrival == answered), None)
    if target is None:
        return ()
    errors = surprise(model, RoomWindow.of(past.before), first.message, first.features, target)
    return () if errors is None else in_units(errors)
