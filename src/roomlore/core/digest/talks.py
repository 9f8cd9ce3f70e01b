"""Group the messages of a span into talks: the stretches of its threads, by the stored probabilities of sharing one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from roomlore.core.evolution.offline.cues import agrees, sense_of
from roomlore.core.models import Entry, MessageType, Role, TalkState
from roomlore.core.summary.sentences import unsplit
from roomlore.core.text import asks, fold, thanks
from roomlore.core.transcript import spoken_text

_SAME_TALK = 0.65
"""Least mean probability of sharing a thread with the newest members of a talk. A talk that is cut in two is shown in
two entries; one that mixes two conversations says what nobody said."""
_NEWEST = 5
_LONGEST = 16
"""Most messages of a talk. A longer one is cut where it pauses, since a conversation of hundreds has many subjects."""
_EDGE = 0.25
"""The share of a long talk at each end in which it is not cut."""
_ANSWERED = 0.42
"""Least probability of sharing a thread with a question at which a later message by somebody else answers it."""
_DECISIONS: frozenset[str] = frozenset(("decision", "change", "cancellation"))
_DECISION_CHARACTERS = 400
_LAST_CHARACTERS = 400
_AGREEING = 4
"""The messages after a decision among which those that agree are looked for."""


@dataclass(frozen=True)
class Talk:
    """A stretch of a thread, in order of arrival. `thread`: the arrival of the thread's first message. `answered`: the
    arrivals of messages of the span that somebody else answers later."""

    thread: int
    entries: tuple[Entry, ...]
    answered: frozenset[int] = frozenset()

    @cached_property
    def senders(self) -> tuple[str, ...]:
        """The sender ids in order of first speaking."""
        return tuple(dict.fromkeys(entry.message.sender_id for entry in self.entries))

    @cached_property
    def questions(self) -> tuple[Entry, ...]:
        """The questions in it."""
        return tuple(entry for entry in self.entries if is_asking(entry))

    @cached_property
    def open_questions(self) -> tuple[Entry, ...]:
        """The questions that nobody answers later. The asker's thanks say that an answer came another way."""
        return tuple(
            entry
            for entry in self.questions
            if entry.message.arrival not in self.answered and not self._is_thanked_for(entry)
        )

    @cached_property
    def answers(self) -> Mapping[int, tuple[Entry, ...]]:
        """By the arrival of a question, the later messages of others that likely answer it, without those that ask
        something back."""
        found: defaultdict[int, list[Entry]] = defaultdict(list)
        asked = {entry.message.arrival: entry.message.sender_id for entry in self.questions}
        for entry in (one for one in self.entries if not _ends_asking(one)):
            candidates = entry.link.thread_candidates
            for arrival, probability in zip(
                candidates.arrivals.tolist(), candidates.probabilities.tolist(), strict=True
            ):
                if probability >= _ANSWERED and asked.get(arrival, entry.message.sender_id) != entry.message.sender_id:
                    found[arrival].append(entry)
        return {arrival: tuple(its) for arrival, its in found.items()}

    def is_left_to(self, question: Entry) -> bool:
        """Return True if a question that is put to one person still waits for them: nobody answered it."""
        return question.message.arrival not in self.answers and not self._is_thanked_for(question)

    @cached_property
    def decisions(self) -> tuple[Entry, ...]:
        """The messages that decide, change or cancel something."""
        entries = self.entries
        return tuple(entry for at, entry in enumerate(entries) if _decides(entry, entries[at + 1 : at + 1 + _AGREEING]))

    @property
    def state(self) -> TalkState:
        if self.open_questions:
            return TalkState.OPEN
        return TalkState.ANSWERED if self.questions else TalkState.CLOSED

    def _is_thanked_for(self, question: Entry) -> bool:
        asked = question.message
        own = (one.message for one in self.entries if one.message.sender_id == asked.sender_id)
        return any(one.arrival > asked.arrival and thanks(fold(one.text)) for one in own)


def is_asking(entry: Entry) -> bool:
    """Return True if a person asks something."""
    return entry.features.message_type is MessageType.QUESTION and entry.message.role is Role.USER


def _ends_asking(entry: Entry) -> bool:
    """Return True if the last sentence of a question asks: 'The printer? Call Jim' is an answer."""
    text = spoken_text(entry.message)[-_LAST_CHARACTERS:]
    last = next((one for one in reversed(unsplit(text)) if one.strip()), "")
    return is_asking(entry) and asks(fold(last))


def _decides(entry: Entry, after: Sequence[Entry]) -> bool:
    message = entry.message
    if message.role is not Role.USER or len(message.text) > _DECISION_CHARACTERS:
        return False
    if not speaks_of_decision(message.text):
        return False
    agreed = {one.message.sender_id for one in after if agrees(one.message.text)} - {message.sender_id}
    return sense_of(fold(message.text)).holds(len(agreed))


def speaks_of_decision(text: str) -> bool:
    """Return True if a text says above all that something is decided, changed or cancelled. If it holds is not
    considered."""
    sense = sense_of(fold(text))
    return bool(sense.purposes) and sense.purposes[0] in _DECISIONS and not sense.asked


def talks_of(entries: Iterable[Entry]) -> list[Talk]:
    """Return the talks of these entries (in order of arrival), in the order they began, without notices of the system,
    tool calls and messages without words."""
    groups, answered = _grouped([entry for entry in entries if is_said(entry)])
    found = [Talk(group[0].link.thread, part, answered) for group in groups for part in _stretches(tuple(group))]
    return sorted(found, key=lambda talk: talk.entries[0].message.arrival)


def talk_of(entries: Sequence[Entry]) -> Talk:
    """Return these entries of one thread, in order of arrival, as one talk."""
    sender: dict[int, str] = {}
    answered: set[int] = set()
    for entry in entries:
        candidates, own = entry.link.thread_candidates, entry.message.sender_id
        for arrival, probability in zip(candidates.arrivals.tolist(), candidates.probabilities.tolist(), strict=True):
            if probability >= _ANSWERED and sender.get(arrival, own) != own:
                answered.add(arrival)
        sender[entry.message.arrival] = own
    return Talk(entries[0].link.thread, tuple(entries), frozenset(answered))


def is_said(entry: Entry) -> bool:
    """Return True if a person or an agent says something in words."""
    message = entry.message
    speaks = message.role in (Role.USER, Role.ASSISTANT) and not message.has_tool_calls
    return speaks and bool(spoken_text(message).strip())


def _grouped(entries: Sequence[Entry]) -> tuple[list[list[Entry]], frozenset[int]]:
    """Put each message to the talk whose newest members it most likely belongs with. Return the talks, and the arrivals
    of messages that somebody else answers."""
    groups: list[list[Entry]] = []
    place: dict[int, int] = {}
    sender: dict[int, str] = {}
    answered: set[int] = set()
    for entry in entries:
        likely: defaultdict[int, list[float]] = defaultdict(list)
        candidates = entry.link.thread_candidates
        for arrival, probability in zip(candidates.arrivals.tolist(), candidates.probabilities.tolist(), strict=True):
            if (group := place.get(arrival)) is not None:
                likely[group].append(probability)
                if probability >= _ANSWERED and sender[arrival] != entry.message.sender_id:
                    answered.add(arrival)
        best, most = len(groups), _SAME_TALK
        for group, shares in likely.items():
            newest = shares[-_NEWEST:]
            mean = sum(newest) / len(newest)
            if mean >= most:
                best, most = group, mean
        if best == len(groups):
            groups.append([])
        groups[best].append(entry)
        place[entry.message.arrival], sender[entry.message.arrival] = best, entry.message.sender_id
    return groups, frozenset(answered)


def _stretches(entries: tuple[Entry, ...]) -> Iterator[tuple[Entry, ...]]:
    """Yield the parts of a talk, cut at its longest pauses until none is too long."""
    waiting = [entries]
    while waiting:
        part = waiting.pop()
        if len(part) <= _LONGEST:
            yield part
            continue
        edge = max(1, int(_EDGE * len(part)))
        cut = max(range(edge, len(part) - edge + 1), key=lambda at: (_pause(part, at), -abs(2 * at - len(part))))
        waiting += [part[cut:], part[:cut]]


def _pause(part: Sequence[Entry], at: int) -> timedelta:
    return part[at].message.at - part[at - 1].message.at
