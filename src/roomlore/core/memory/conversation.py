"""The conversations of an agent in a room: what it says, what speaks to it, and what led to that."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from roomlore.core.memory.reading import own_words
from roomlore.core.models import Entry, LinkKind, Role, StoredMessage

_LED = 5
"""The most messages that a conversation is followed back along its links."""
_PAUSE = timedelta(minutes=10)
"""A person who talks to the agent goes on talking to it for so long, unless the person turns to somebody else."""


def conversations_of(agent_id: str, entries: Iterable[Entry], *, alone: bool) -> list[StoredMessage]:
    """Return the messages of the agent's conversations among these entries of one room, in order of arrival.

    `alone`: nobody else is in the room than one person and the agent, so everything said belongs to them.
    """
    said = sorted((entry for entry in entries if speaks(entry)), key=lambda entry: entry.message.arrival)
    if alone:
        return [entry.message for entry in said]
    room = _Room(agent_id, said)
    between = room.between()
    found = between | room.led_to(between) | room.joining(between) | room.beside(between)
    return [entry.message for entry in said if entry.message.arrival in found]


def speaks(entry: Entry) -> bool:
    """Return True if a person or an agent says something of their own in it."""
    return entry.message.role in (Role.USER, Role.ASSISTANT) and bool(own_words(entry.message))


class _Room:
    """The entries of a room by arrival, with the message that each one answers."""

    def __init__(self, agent_id: str, said: Sequence[Entry]) -> None:
        self._agent = agent_id
        self._said = {entry.message.arrival: entry for entry in said}
        self._answered = _answered(said, agent_id)
        self._turns = {entry.message.turn_id for entry in said if self._is_agent(entry) and entry.message.turn_id}

    def between(self) -> set[int]:
        """Return the arrivals of the agent's messages, of those it answers and of those that speak to it."""
        found = {arrival for arrival, entry in self._said.items() if self._is_agent(entry) or self._is_to_agent(entry)}
        return found | {
            self._answered[arrival]
            for arrival in found
            if arrival in self._answered and self._is_agent(self._said[arrival])
        }

    def led_to(self, between: set[int]) -> set[int]:
        """Return what these answer, and what that answers, and so on."""
        found: set[int] = set()
        for arrival in between:
            for _ in range(_LED):
                if arrival not in self._answered:
                    break
                arrival = self._answered[arrival]
                found.add(arrival)
        return found

    def joining(self, between: set[int]) -> set[int]:
        """Return what answers a person's message to the agent."""
        return {arrival for arrival, answered in self._answered.items() if answered in between}

    def beside(self, between: set[int]) -> set[int]:
        """Return what a person says shortly before or after talking with the agent, and to nobody else."""
        times: dict[str, list[datetime]] = defaultdict(list)
        for arrival in between:
            entry = self._said[arrival]
            times[self._partner(entry)].append(entry.message.at)
        for when in times.values():
            when.sort()
        return {
            arrival
            for arrival, entry in self._said.items()
            if _is_near(entry.message.at, times.get(entry.message.sender_id, ())) and not self._is_to_others(entry)
        }

    def _partner(self, entry: Entry) -> str:
        """Return the person who speaks, or whom the agent answers."""
        answered = self._said.get(self._answered.get(entry.message.arrival, 0))
        return answered.message.sender_id if answered and self._is_agent(entry) else entry.message.sender_id

    def _is_agent(self, entry: Entry) -> bool:
        return entry.message.role is Role.ASSISTANT and entry.message.sender_id == self._agent

    def _is_to_agent(self, entry: Entry) -> bool:
        reply = entry.features.reply
        named = {*entry.message.mentions, *entry.features.mentions, *entry.features.addressed}
        if self._agent in named or (reply and reply.sender_id == self._agent):
            return True
        if entry.message.turn_id and entry.message.turn_id in self._turns:
            return True
        answered = self._said.get(self._answered.get(entry.message.arrival, 0))
        return answered is not None and self._is_agent(answered)

    def _is_to_others(self, entry: Entry) -> bool:
        named = {*entry.message.mentions, *entry.features.mentions, *entry.features.addressed} - {self._agent}
        answered = self._said.get(self._answered.get(entry.message.arrival, 0))
        besides = answered and answered.message.sender_id not in (self._agent, entry.message.sender_id)
        return bool(named or besides)


def _answered(said: Sequence[Entry], agent_id: str) -> Mapping[int, int]:
    """Return the arrival that each one answers: as a person or the platform says, else the query of its turn, else as
    the link model guesses. An agent's message always answers something, so its likeliest parent counts in any case."""
    arrivals = {entry.message.arrival for entry in said}
    by_id = {entry.message.id: entry.message.arrival for entry in said}
    queries = {
        entry.message.turn_id: entry.message.arrival
        for entry in said
        if entry.message.turn_id and entry.message.role is Role.USER
    }
    found: dict[int, int] = {}
    for entry in said:
        message, link = entry.message, entry.link
        guessed = link.parent if link.kind is not LinkKind.NEW or message.sender_id == agent_id else None
        asked = queries.get(message.turn_id or "") if message.role is Role.ASSISTANT else None
        corrected = link.kind is LinkKind.CORRECTED
        answered = guessed if corrected else by_id.get(message.reply_to or "") or asked or guessed
        if answered in arrivals and answered is not None and answered < message.arrival:
            found[message.arrival] = answered
    return found


def _is_near(at: datetime, times: Sequence[datetime]) -> bool:
    place = bisect_left(times, at)
    return any(abs(near - at) <= _PAUSE for near in times[max(place - 1, 0) : place + 1])
