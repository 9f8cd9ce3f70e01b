"""The state of a room for ingest: its people, its last messages, and the effect of the next one; and the part of a room
that a viewer may see, told as if nothing else had been said there.
"""

import sys
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice

from roomlore.core.analysis import Participants, analyse
from roomlore.core.audience import Window, covers
from roomlore.core.intake import as_stored
from roomlore.core.linking.calibration import UNCALIBRATED, Calibration, in_units
from roomlore.core.linking.model import LinkModel, link, link_as_corrected, surprise
from roomlore.core.linking.reading import read_ahead
from roomlore.core.linking.window import UNANSWERED, RoomWindow
from roomlore.core.models import Entry, Link, LinkKind, Message, MessageFeatures, Role, Room, StoredMessage, Target
from roomlore.core.relevance import CONTINUITY_MESSAGES, partners

WINDOW = 400
_FEW_LINKS = 16
"""Changes of links that take less time than to build a window."""
_READ_AT_ONCE = 128
"""Messages of a batch that are read before they are linked. Linking is so much work that each message would be read as
slowly as a first one: the processor then holds nothing of what reading takes."""
_STATE_BYTES, _ENTRY_BYTES, _PERSON_BYTES, _KEYWORD_BYTES, _COUNT_BYTES = 20_000, 1_200, 800, 70, 160
"""Approximate memory of objects besides texts and arrays."""
MOST_COUNTED = 3_000
"""The most messages of a room whose keyword counts are kept in memory."""


class RoomState:
    """The state of one room from a known revision on.

    Built from what is stored (the people, the last `WINDOW` entries and the calibration), it gives the same features
    and links as one that has followed the room from its first message: nothing depends on how the messages were split
    into batches. `learning`: True if further replies change the calibration.
    """

    def __init__(
        self,
        *,
        model: LinkModel,
        room: Room,
        participants: Mapping[str, str],
        entries: Sequence[Entry],
        calibration: Calibration = UNCALIBRATED,
        learning: bool = True,
    ) -> None:
        self.revision = room.revision
        self.next_arrival = room.next_arrival
        self.model = model
        self.participants = Participants.of(participants)
        self.entries: deque[Entry] = deque(maxlen=WINDOW)
        self._sizes: deque[int] = deque(maxlen=WINDOW)
        self._by_id: dict[str, Entry] = {}
        self._entry_bytes = 0
        self._counts: Counter[str] | None = None
        for entry in entries:
            self.take_in(entry)
        self._window: RoomWindow | None = None
        self.learning = learning
        self.calibration = calibration
        self.habits = calibration.habits()

    @property
    def window(self) -> RoomWindow:
        """The window over the entries, built on first use."""
        if self._window is None:
            self._window = RoomWindow.of(self.entries, self.model.kernel)
        return self._window

    def make_window_anew(self) -> None:
        """Rebuild the window from the entries on next use, after some of them changed."""
        self._window = None

    def relink(self, changed: Collection[Entry]) -> None:
        """Update the window with entries whose links changed: row by row if they are few, else it is built anew."""
        if self._window is not None and len(changed) <= _FEW_LINKS:
            self._window.relink(changed)
        else:
            self.make_window_anew()

    def rest(self, *, most: int) -> None:
        """Drop the window of a room of at most so many entries: it takes nearly a megabyte, and each entry takes some
        thirty microseconds to be in it again."""
        if len(self.entries) <= most:
            self._window = None

    def take_in(self, entry: Entry) -> Entry | None:
        """Append an entry. Return the oldest one, dropped, if there are more than `WINDOW`."""
        dropped = self.entries[0] if len(self.entries) == WINDOW else None
        if dropped is not None:
            self._entry_bytes -= self._sizes[0]
            self._by_id.pop(dropped.message.id, None)
        size = _bytes_of(entry)
        self.entries.append(entry)
        self._sizes.append(size)
        self._by_id[entry.message.id] = entry
        self._entry_bytes += size
        if self._counts is not None:
            self._counts.update(entry.features.keywords)
        return dropped

    def swap(self, place: int, entry: Entry) -> None:
        """Replace the entry at this index."""
        size = _bytes_of(entry)
        self._entry_bytes += size - self._sizes[place]
        self.entries[place], self._sizes[place], self._by_id[entry.message.id] = entry, size, entry

    def follow(
        self,
        room: Room,
        entries: Iterable[Entry],
        *,
        calibration: Calibration,
        learning: bool,
    ) -> None:
        """Take in what another writer appended up to the room's present revision, with its links."""
        for entry in entries:
            self.take_in(entry)
            self.participants.see(entry.message.sender_id, entry.message.sender_name)
            if self._window is not None:
                self._window.push(entry)
        self.calibration, self.learning = calibration, learning
        self.habits = calibration.habits()
        self.revision, self.next_arrival = room.revision, room.next_arrival

    @property
    def is_whole(self) -> bool:
        """True if every message of the room is in memory."""
        return len(self.entries) == self.next_arrival - 1

    @property
    def holds_all(self) -> bool:
        """True if every message of the room that is not deleted is in memory."""
        return len(self.entries) < WINDOW or self.is_whole

    @property
    def rests(self) -> bool:
        """True if the window is still to be built, which takes processor time."""
        return self._window is None

    def woken(self) -> "RoomState":
        """Return the state with its window built."""
        assert self.window is not None
        return self

    def size_bytes(self) -> int:
        """Return the approximate memory size in bytes."""
        window = 0 if self._window is None else self._window.size_bytes()
        counts = _COUNT_BYTES * len(self._counts or ())
        return _STATE_BYTES + window + counts + self._entry_bytes + _PERSON_BYTES * len(self.participants)

    def hear(
        self, message: StoredMessage, features: MessageFeatures, target: Entry | None, *, always: bool = False
    ) -> tuple[int, ...]:
        """Update the calibration from a platform reply, or from a correction, of which the model is `always` asked.
        Return the errors that were added, () if the model was not asked."""
        if not self.learning or target is None or target.message.id == message.id or message.role in UNANSWERED:
            return ()
        is_measured = always or self.calibration.due
        errors = surprise(self.model, self.window, message, features, target) if is_measured else None
        if errors is not None:
            self.calibration = self.calibration.heard(errors)
            self.habits = self.calibration.habits()
            return in_units(errors)
        if not always:
            self.calibration = self.calibration.passed()
        return ()

    def find(self, message_id: str) -> Entry | None:
        """Return the entry with this id, None if it is not in memory."""
        return self._by_id.get(message_id)

    def sender_of(self, message_id: str, more: int = 0) -> str | None:
        """Return the sender of a message that is in memory and stays there when so many more are taken in."""
        entry, dropped = self.find(message_id), len(self.entries) + more - WINDOW
        if entry is None or (dropped > 0 and entry.message.arrival < self.entries[dropped].message.arrival):
            return None
        return entry.message.sender_id

    def answered_elsewhere(self, messages: Iterable[Message]) -> list[str]:
        """Return the ids of the messages that these reply to and that are not in memory."""
        return [message.reply_to for message in messages if message.reply_to and message.reply_to not in self._by_id]

    def last(self, count: int) -> list[Entry]:
        """Return the newest `count` entries, in order of arrival."""
        newest = list(islice(reversed(self.entries), count))
        newest.reverse()
        return newest

    def at(self, arrival: int) -> Entry | None:
        """Return the entry with this arrival, None if it is not in memory."""
        place = self._place_of(arrival)
        entry = self.entries[place] if place < len(self.entries) else None
        return entry if entry is not None and entry.message.arrival == arrival else None

    def before(self, arrival: int, count: int) -> list[Entry] | None:
        """Return the newest `count` entries before this arrival, in order, fewer if the room has no more. None if there
        are more that are not in memory."""
        end = self._place_of(arrival)
        if end < count and not self.holds_all:
            return None
        return list(islice(self.entries, max(0, end - count), end))

    def _place_of(self, arrival: int) -> int:
        """Return the index of the first entry from this arrival on. Where no message was deleted, it is its distance
        from the first one."""
        entries = self.entries
        place = arrival - entries[0].message.arrival if entries else 0
        if 0 <= place < len(entries) and entries[place].message.arrival == arrival:
            return place
        return bisect_left(entries, arrival, key=lambda entry: entry.message.arrival)

    def target(self, room: Room, message_id: str | None, window: int) -> Target | None:
        """Return the input for choosing a context of the room as it is now, as it is stored: of this message, or of the
        newest one with role user. None unless all of it is in memory. Metadata is shared with the caller, who may
        change it, so a message with some is read."""
        entry = self._newest_of_user() if message_id is None else self.find(message_id)
        before = None if entry is None or entry.message.metadata else self.before(entry.message.arrival, window)
        if entry is None or before is None:
            return None
        return Target(
            room=room,
            entry=entry,
            window_messages=len(before),
            window_tokens=sum([earlier.message.tokens for earlier in before]),
            previous_at=before[-1].message.dated_at if before else None,
        )

    def _newest_of_user(self) -> Entry | None:
        return next((entry for entry in reversed(self.entries) if entry.message.role == Role.USER), None)

    @property
    def keyword_counts(self) -> Mapping[str, int] | None:
        """Return how many messages of the room have each keyword; None if that is not in memory."""
        return self._counts

    def count_keywords(self, counts: Mapping[str, int] | None = None) -> None:
        """Keep the keyword counts, by default those of the entries, and update them with each entry taken in."""
        known = counts if counts is not None else chain.from_iterable(entry.features.keywords for entry in self.entries)
        self._counts = Counter(known)

    def drop_counts(self) -> None:
        self._counts = None

    def begin(
        self, targets: Iterable[Entry], waiting: Iterable[Entry], corrected: Mapping[int, int | None] | None = None
    ) -> "Arrivals":
        """Start a batch.

        `targets`: stored messages that the batch replies to; `waiting`: stored replies to messages of the batch that
        arrived before their target did; `corrected`: the arrivals of messages whose links a person corrected, each with
        that of the message it answers, None if it answers nothing.
        """
        return Arrivals(self, targets, waiting, corrected or {})


def _bytes_of(entry: Entry) -> int:
    """Return the approximate size of an entry."""
    message = entry.message
    metadata_bytes = len(repr(message.metadata)) if message.metadata else 0
    texts = sys.getsizeof(message.text) + _KEYWORD_BYTES * len(entry.features.keywords) + 4 * metadata_bytes
    return _ENTRY_BYTES + texts + len(entry.link.thread_candidates.pack())


class Arrivals:
    """A batch in progress: the entries to append and the changed links of older messages.

    `heard`: what corrections added to the calibration, by the arrival of the corrected message.
    """

    def __init__(
        self,
        state: RoomState,
        targets: Iterable[Entry],
        waiting: Iterable[Entry],
        corrected: Mapping[int, int | None],
    ) -> None:
        self._state = state
        self._corrected = corrected
        self.heard: dict[int, tuple[int, ...]] = {}
        self._targets = {entry.message.id: entry for entry in targets}
        """The entries that a reply may answer, besides those of the state as they are now."""
        self._waiting: dict[str, list[int]] = {}
        self._older = {entry.message.arrival: entry for entry in waiting}
        for entry in self._older.values():
            self._wait(entry.message)
        self._fresh: dict[int, Entry] = {}
        self.relinked: dict[int, Link] = {}

    @property
    def entries(self) -> list[Entry]:
        return list(self._fresh.values())

    def absorb(self, messages: Sequence[Message], *, tokens: Sequence[int], now: datetime) -> None:
        """Assign arrivals, features and links to the messages, and link replies that waited for them."""
        state = self._state
        previous = state.entries[-1].message if state.entries else None
        for first in range(0, len(messages), _READ_AT_ONCE):
            part, batch = slice(first, first + _READ_AT_ONCE), list[StoredMessage]()
            for arrival, (message, count) in enumerate(
                zip(messages[part], tokens[part], strict=True), state.next_arrival
            ):
                previous = as_stored(message, arrival=arrival, tokens=count, previous=previous, now=now)
                batch.append(previous)
            self._take_all(batch)

    def take(self, stored: StoredMessage) -> None:
        """Process a message that has an arrival already: the next one of the room."""
        self._take_all([stored])

    def _take_all(self, batch: Sequence[StoredMessage]) -> None:
        for stored, features in zip(batch, self._read(batch), strict=True):
            self._take(stored, features)

    def _read(self, batch: Sequence[StoredMessage]) -> list[MessageFeatures]:
        """Return the features of the next messages, which are not among the room's entries yet."""
        state = self._state
        before = [(entry.message, entry.features) for entry in state.last(CONTINUITY_MESSAGES)]
        senders: dict[str, str] = {}
        for stored in batch:
            spoken_to = partners(stored, before, lambda one: senders.get(one) or state.sender_of(one, len(senders)))
            features = analyse(stored, state.participants, spoken_to)
            read_ahead(stored, features)
            before.append((stored, features))
            state.participants.see(stored.sender_id, stored.sender_name)
            senders[stored.id] = stored.sender_id
        return [features for _, features in before[-len(batch) :]]

    def _take(self, stored: StoredMessage, features: MessageFeatures) -> None:
        entry = self._place(stored, features)
        self._fresh[entry.message.arrival] = entry
        self._targets[entry.message.id] = entry
        self._adopt_all(self._waiting.pop(stored.id, ()), entry)
        if entry.link.kind is not LinkKind.CORRECTED:
            self._wait(entry.message)

    def _place(self, stored: StoredMessage, features: MessageFeatures) -> Entry:
        state = self._state
        entry = Entry(message=stored, features=features, link=self._link(stored, features))
        dropped = state.take_in(entry)
        if dropped is not None:
            self._targets.setdefault(dropped.message.id, dropped)
        state.window.push(entry)
        state.next_arrival = stored.arrival + 1
        return entry

    def _link(self, stored: StoredMessage, features: MessageFeatures) -> Link:
        """Return the link: as a person said, if that message still exists, else as the platform says, else a guess."""
        state, arrival = self._state, stored.arrival
        if arrival in self._corrected:
            answered = self._corrected[arrival]
            target = None if answered is None else self._target_at(answered)
            if (target is None) == (answered is None):
                if heard := state.hear(stored, features, target, always=True):
                    self.heard[arrival] = heard
                return link_as_corrected(state.window, stored, target)
        target = self._target(stored.reply_to) if stored.reply_to else None
        state.hear(stored, features, target)
        return link(state.model, state.window, stored, features, target, state.habits)

    def _target(self, message_id: str) -> Entry | None:
        return self._targets.get(message_id) or self._state.find(message_id)

    def _target_at(self, arrival: int) -> Entry | None:
        known = chain(self._targets.values(), self._state.entries)
        return next((entry for entry in known if entry.message.arrival == arrival), None)

    def _wait(self, message: StoredMessage) -> None:
        if message.reply_to and message.reply_to != message.id and self._target(message.reply_to) is None:
            self._waiting.setdefault(message.reply_to, []).append(message.arrival)

    def _adopt_all(self, arrivals: Iterable[int], target: Entry) -> None:
        """Link these messages, which replied to `target` before it arrived. All are linked by the present window, which
        takes in the new links at the end."""
        left = {arrival: thread for arrival in arrivals if (thread := self._adopt(arrival, target)) is not None}
        if left:
            moved = self._move(left, target.link.thread)
            self._state.relink([entry for arrival in moved if (entry := self._at(arrival)) is not None])

    def _adopt(self, arrival: int, target: Entry) -> int | None:
        """Make one link certain. Return the thread the message leaves, None if the link cannot be made."""
        entry = self._at(arrival)
        if entry is None or self._is_descendant(target, arrival):
            return None
        new = link(self._state.model, self._state.window, entry.message, entry.features, target)
        if new.kind is not LinkKind.PLATFORM:
            return None
        if arrival not in self._fresh:
            self.relinked[arrival] = new
        self._put(replace(entry, link=new))
        return entry.link.thread

    def _is_descendant(self, entry: Entry, arrival: int) -> bool:
        """Return True if linking the message at `arrival` to `entry` would close a cycle."""
        seen: set[int] = set()
        here: Entry | None = entry
        while here is not None and here.message.arrival not in seen:
            if here.message.arrival == arrival:
                return True
            seen.add(here.message.arrival)
            here = self._at(here.link.parent) if here.link.kind is not LinkKind.NEW and here.link.parent else None
        return False

    def _move(self, left: Mapping[int, int], new: int) -> set[int]:
        """Move the descendants of these messages, in the thread each left, into the new one, as far as they are in
        memory. Return the arrivals of all of them."""
        known = {e.message.arrival: e for e in (*self._older.values(), *self._state.entries, *self._fresh.values())}
        below: dict[tuple[int | None, int], list[Entry]] = {}
        for entry in known.values():
            if entry.link.kind is not LinkKind.NEW:
                below.setdefault((entry.link.parent, entry.link.thread), []).append(entry)
        moved, here = set(left), list(left.items())
        while here:
            parent, old = here.pop()
            for entry in below.get((parent, old), ()):
                if entry.message.arrival not in moved:
                    moved.add(entry.message.arrival)
                    here.append((entry.message.arrival, old))
                    self._put(replace(entry, link=replace(entry.link, thread=new)))
        return moved

    def _at(self, arrival: int) -> Entry | None:
        if arrival in self._fresh:
            return self._fresh[arrival]
        inside = next((e for e in self._state.entries if e.message.arrival == arrival), None)
        return inside or self._older.get(arrival)

    def _put(self, entry: Entry) -> None:
        arrival = entry.message.arrival
        if arrival in self._fresh:
            self._fresh[arrival] = entry
        if arrival in self._older:
            self._older[arrival] = entry
        if arrival in self.relinked:
            self.relinked[arrival] = entry.link
        self._targets[entry.message.id] = entry
        entries = self._state.entries
        for place, known in enumerate(entries):
            if known.message.arrival == arrival:
                self._state.swap(place, entry)


def is_seen(message: StoredMessage, windows: Sequence[Window]) -> bool:
    """Return True if the message was sent, and last edited, within one of these windows."""
    origin = message.origin
    return covers(windows, origin.first, origin.last)


def pointers(messages: Sequence[StoredMessage]) -> set[str]:
    """Return the ids of other messages that these name."""
    return {name for message in messages for name in (message.reply_to, message.root_id) if name}


def told_alone(message: StoredMessage, arrival: int, seen: Container[str]) -> StoredMessage:
    """Return a message with its place among those that are seen, and without the ids of others. `seen`: the ids of
    those among its `pointers` that may be told."""
    return replace(
        message,
        arrival=arrival,
        reply_to=message.reply_to if message.reply_to in seen else None,
        root_id=message.root_id if message.root_id in seen else None,
    )


def linked_alone(model: LinkModel, messages: Sequence[StoredMessage]) -> list[Entry]:
    """Return the messages, in order of arrival, with features and links that follow from them alone: hidden messages
    had a say in the stored ones."""
    if not messages:
        return []
    first = messages[0]
    room = Room(tenant="", room_id=first.room_id, created_at=first.at, next_arrival=first.arrival)
    state = RoomState(model=model, room=room, participants={}, entries=(), learning=False)
    arrivals = state.begin((), ())
    for message in messages:
        arrivals.take(message)
    return arrivals.entries
