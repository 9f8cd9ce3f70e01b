"""Links that people correct: what a message answers, or that it answers nothing, and what follows for later
messages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roomlore.core.errors import Conflict
from roomlore.core.linking.calibration import Habits, in_units
from roomlore.core.linking.model import LinkModel, link, link_as_corrected, surprise
from roomlore.core.linking.window import SIZE, UNANSWERED, RoomWindow
from roomlore.core.models import Entry, Link, LinkKind, StoredMessage

FOLLOWING = SIZE
"""So many messages after a corrected one are linked anew: no later one sees it in its window."""
MAX_BY_CHARS = 200


@dataclass(frozen=True, slots=True)
class StandingCorrection:
    """A correction in force. `answers`: the arrival of the message that is answered, None for nothing. `model`,
    `errors`: what it added to the calibration of this link model, '' and () if nothing."""

    answers: int | None
    model: str = ""
    errors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CorrectedPast:
    """The part of a room that is linked anew after a correction.

    `before`: the entries before the corrected one. `entries`: that one and those after it. `others`: older entries that
    the others reply to. `corrected`: as in `RoomState.begin`, of `entries`.
    """

    before: Sequence[Entry]
    entries: Sequence[Entry]
    others: Sequence[Entry]
    corrected: Mapping[int, int | None]


def check_answer(message: StoredMessage, target: StoredMessage | None, above: Collection[int]) -> None:
    """Raise `Conflict` if the message cannot be said to answer the target, or nothing if it is None. `above`: the
    arrivals of what the target answers, of what that answers, and so on."""
    if message.role in UNANSWERED:
        raise Conflict("message_role_answers_nothing", message=repr(message.id), role=message.role)
    if target is None:
        return
    if target.arrival >= message.arrival:
        raise Conflict("answer_before_question", message=repr(target.id), other=repr(message.id))
    if message.arrival in above:
        raise Conflict("answer_circular", message=repr(target.id), other=repr(message.id))


def _answered_by(target: Entry, known: Mapping[int, Entry]) -> set[int]:
    """Return the arrivals of the message, of what it answers, of what that answers, and so on."""
    seen: set[int] = set()
    here: Entry | None = target
    while here is not None and here.message.arrival not in seen:
        seen.add(here.message.arrival)
        link = here.link
        here = known.get(link.parent or 0) if link.kind is not LinkKind.NEW else None
    return seen


def links_after(model: LinkModel, past: CorrectedPast, habits: Habits) -> dict[int, Link]:
    """Return the links that come out otherwise than they are stored, by arrival: those of `past.entries`, and of
    earlier messages whose thread follows because they reply to one that arrived later."""
    window = RoomWindow.of(past.before, model.kernel)
    known = {entry.message.arrival: entry for entry in (*past.others, *past.before, *past.entries)}
    arrivals = {entry.message.id: arrival for arrival, entry in known.items()}
    stored = {arrival: entry.link for arrival, entry in known.items()}
    for entry in past.entries:
        message = entry.message
        answered = known.get(arrivals.get(message.reply_to or "", 0))
        new_link = _link(model, window, entry, answered, known, past.corrected, habits)
        known[message.arrival] = entry = replace(entry, link=new_link)
        window.push(entry)
    threads = _threads({arrival: entry.link for arrival, entry in known.items()})
    links = {arrival: replace(entry.link, thread=threads[arrival]) for arrival, entry in known.items()}
    return {arrival: link for arrival, link in links.items() if link != stored[arrival]}


def _link(
    model: LinkModel,
    window: RoomWindow,
    entry: Entry,
    replied: Entry | None,
    known: Mapping[int, Entry],
    corrected: Mapping[int, int | None],
    habits: Habits,
) -> Link:
    """Return the link of the next message, of which `replied` is the one that the platform names. A reply whose target
    arrived after it keeps its link, and no link closes a circle."""
    message = entry.message
    if message.arrival in corrected:
        answered = corrected[message.arrival]
        if answered is None or answered in known:
            return link_as_corrected(window, message, None if answered is None else known[answered])
    late = replied is not None and replied.message.arrival > message.arrival
    if late and entry.link.kind is LinkKind.PLATFORM:
        return entry.link
    target = None if replied is None or message.arrival in _answered_by(replied, known) else replied
    new_link = link(model, window, message, entry.features, target, habits)
    parent = known.get(new_link.parent or 0)
    if new_link.kind is LinkKind.NEW or parent is None or message.arrival not in _answered_by(parent, known):
        return new_link
    return replace(new_link, kind=LinkKind.NEW, thread=message.arrival)


def _threads(links: Mapping[int, Link]) -> dict[int, int]:
    """Return the thread of each message: that of what it answers, as far as that is known, else the one it is in."""
    threads: dict[int, int] = {}
    for first in links:
        path, here = [], first
        while here not in threads:
            path.append(here)
            its = links[here]
            if its.kind is LinkKind.NEW or its.parent is None or its.parent not in links or its.parent in path:
                threads[here] = its.thread
            else:
                here = its.parent
        for arrival in path:
            threads[arrival] = threads[here]
    return threads


@dataclass(frozen=True, slots=True)
class Threads:
    """The thread of each message of a room, in order of arrival. `parents`: what it answers, 0 for nothing."""

    arrivals: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]
    threads: npt.NDArray[np.int64]


def out_of_place(room: Threads) -> list[int]:
    """Return the arrivals of the messages that are in another thread than the first message of their chain of answers,
    each after what it answers. A circle, and what leads to it, stays as it is."""
    places = np.arange(len(room.arrivals))
    places_of_parents = np.searchsorted(room.arrivals, room.parents)
    places_of_parents[places_of_parents == len(places)] = 0
    answers = (room.parents > 0) & (room.arrivals[places_of_parents] == room.parents)
    above = np.where(answers, places_of_parents, places)
    top, depth = above, answers.astype(np.int64)
    for _ in range(len(places).bit_length()):  # each time twice as far up
        top, depth = top[top], depth + depth[top]
    wrong = ((above[top] == top) & (room.threads != room.threads[top])).nonzero()[0]
    moving: list[int] = room.arrivals[wrong[np.lexsort((wrong, depth[wrong]))]].tolist()
    return moving


def errors_shown(model: LinkModel, past: CorrectedPast) -> tuple[int, ...]:
    """Return what the correction of the first of `past.entries` adds to the calibration; () if it adds nothing: the
    message answers nothing, or one that the model does not consider."""
    first = past.entries[0]
    answered = past.corrected.get(first.message.arrival)
    known = (*past.others, *past.before)
    target = next((entry for entry in known if entry.message.arrival == answered), None)
    if target is None:
        return ()
    errors = surprise(model, RoomWindow.of(past.before, model.kernel), first.message, first.features, target)
    return () if errors is None else in_units(errors)
