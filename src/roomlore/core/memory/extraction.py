"""Short memories of an agent: the conversation that is extracted, when, the check and shortening of a summary of it,
and the merging of the oldest so that their number is bounded."""

import hashlib
import itertools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from roomlore.core.audience import evidence_of
from roomlore.core.errors import BadModelOutput
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus
from roomlore.core.memory.reading import own_words, without_times
from roomlore.core.models import Entry, LinkKind, Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.safety import importance
from roomlore.core.summary import says_nothing
from roomlore.core.text import graphemes, head, segment, terms, truncate

_LED = 5
"""The most messages that a conversation is followed back along its links."""
_PAUSE = timedelta(minutes=10)
"""A person who talks to the agent goes on talking to it for so long, unless the person turns to somebody else."""


def conversations_of(agent_id: str, entries: Iterable[Entry], *, alone: bool) -> list[StoredMessage]:
    """Return the messages of the agent's conversations among these entries of one room, in order of arrival.

    `alone`: nobody else is in the room than one person and the agent, so everything said belongs to them.
    """
    spoken = sorted((entry for entry in entries if speaks(entry)), key=lambda entry: entry.message.arrival)
    if alone:
        return [entry.message for entry in spoken]
    room = _Room(agent_id, spoken)
    between = room.between()
    arrivals = between | room.led_to(between) | room.joining(between) | room.beside(between)
    return [entry.message for entry in spoken if entry.message.arrival in arrivals]


def speaks(entry: Entry) -> bool:
    """Return True if a person or an agent says something of their own in it."""
    return entry.message.role in (Role.USER, Role.ASSISTANT) and bool(own_words(entry.message))


class _Room:
    """The entries of a room by arrival, with the message that each one answers."""

    def __init__(self, agent_id: str, entries: Sequence[Entry]) -> None:
        self._agent = agent_id
        self._said = {entry.message.arrival: entry for entry in entries}
        self._answered = _answered(entries, agent_id)
        self._turns = {entry.message.turn_id for entry in entries if self._is_agent(entry) and entry.message.turn_id}

    def between(self) -> set[int]:
        """Return the arrivals of the agent's messages, of those it answers and of those that speak to it."""
        arrivals = {
            arrival for arrival, entry in self._said.items() if self._is_agent(entry) or self._is_to_agent(entry)
        }
        return arrivals | {
            self._answered[arrival]
            for arrival in arrivals
            if arrival in self._answered and self._is_agent(self._said[arrival])
        }

    def led_to(self, between: set[int]) -> set[int]:
        """Return what these answer, and what that answers, and so on."""
        arrivals: set[int] = set()
        for arrival in between:
            for _ in range(_LED):
                if arrival not in self._answered:
                    break
                arrival = self._answered[arrival]
                arrivals.add(arrival)
        return arrivals

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


def _answered(entries: Sequence[Entry], agent_id: str) -> Mapping[int, int]:
    """Return the arrival that each one answers: as a person or the platform says, else the query of its turn, else as
    the link model guesses. An agent's message always answers something, so its likeliest parent counts in any case."""
    arrivals = {entry.message.arrival for entry in entries}
    by_id = {entry.message.id: entry.message.arrival for entry in entries}
    queries = {
        entry.message.turn_id: entry.message.arrival
        for entry in entries
        if entry.message.turn_id and entry.message.role is Role.USER
    }
    answered_by_arrival: dict[int, int] = {}
    for entry in entries:
        message, link = entry.message, entry.link
        guessed = link.parent if link.kind is not LinkKind.NEW or message.sender_id == agent_id else None
        queried = queries.get(message.turn_id or "") if message.role is Role.ASSISTANT else None
        corrected = link.kind is LinkKind.CORRECTED
        answered = guessed if corrected else by_id.get(message.reply_to or "") or queried or guessed
        if answered in arrivals and answered is not None and answered < message.arrival:
            answered_by_arrival[message.arrival] = answered
    return answered_by_arrival


def _is_near(at: datetime, times: Sequence[datetime]) -> bool:
    place = bisect_left(times, at)
    return any(abs(near - at) <= _PAUSE for near in times[max(place - 1, 0) : place + 1])


_LONGEST = 4_000
_MOST_CLAUSES = 80
# The end of a sentence; the full stop of 1.5 is none.
_SENTENCES = lazy_pattern(r"(?<=[;；。！!])\s*|(?<=\S[.])\s+(?=[A-Z])")
# The end of a clause; the comma of 1,000 is none.
_CLAUSES = lazy_pattern(r"(?<=[;；。！!，])\s*|(?<=[^\d],)\s+|(?<=\S[.])\s+(?=[A-Z])")
# The name that begins an English sentence.
_SUBJECT = lazy_pattern(r"(?P<name>[A-Z][^\s'’,;]+)(?:['’]s)? (?=\S)")
_MOST_SUBJECT = 6
"""The most Chinese characters of a subject."""
# The full stop at the end.
_FULL_STOP = lazy_pattern(r"\s*(?P<mark>[.。])\s*\Z")
# A denial that can be written shorter.
_DENIALS = lazy_pattern(
    r"\b(?P<verb>do|does|did|is|are|was|were|have|has|had|would|could|should|must) not\b|\b(?P<can>cannot)\b"
)
# A figure, or a Chinese number before what it counts.
_FIGURE = lazy_pattern(r"\d|[一二三四五六七八九十百千万]{1,4}[点點号號月日元块塊个個次片毫]")
# A word with a capital letter inside a clause.
_NAME = lazy_pattern(r"(?<=\s)[A-Z][a-z]+")
_FIGURES, _NAMES, _EACH = 0.6, 0.3, 0.01


def shortened(text: str, most: int) -> str:
    """Return a note in at most `most` characters. If it is longer: without the subject that a sentence repeats from the
    one before, then with contracted denials, then without the clauses of least weight; if one clause is left and is
    still too long, its beginning."""
    return truncate(_lighter(text[:_LONGEST], most), most)


def _tightened(text: str, most: int) -> str:
    """Return a note with no more of its words than fit, if it can do without any."""
    for step in (_without_repeated_subjects, _contracted):
        if graphemes(text) <= most:
            break
        text = step(text)
    return text


def _without_repeated_subjects(text: str) -> str:
    sentences = [part for part in _SENTENCES.split(text) if any(map(str.isalnum, part))]
    if len(sentences) < 2:
        return text
    kept_sentences = sentences[:1]
    for before, sentence in itertools.pairwise(sentences):
        rest = _rest(before, sentence)
        if rest is None:
            kept_sentences.append(sentence)
        else:
            kept_sentences[-1] = _FULL_STOP.sub(lambda match: ";" if match["mark"] == "." else "；", kept_sentences[-1])
            kept_sentences.append(rest)
    return _joined(kept_sentences)


def _rest(before: str, sentence: str) -> str | None:
    """Return a sentence without its subject if that is the subject of the one before; None if it is not."""
    first, second = _SUBJECT.match(before), _SUBJECT.match(sentence)
    if second:
        return sentence[second.end() :] if first and first["name"] == second["name"] else None
    ends = _word_ends(before) & _word_ends(sentence)
    end = max((end for end in ends if before[:end] == sentence[:end]), default=0)
    return sentence[end:] if end > 1 and sentence[end : end + 1] not in ("的", "") else None


def _word_ends(sentence: str) -> set[int]:
    """Return where the first words of a Chinese sentence end."""
    beginning = sentence[: 2 * _MOST_SUBJECT]
    if not beginning or beginning[0] < "\u2e80":
        return set()
    ends = itertools.accumulate(len(word) for word in segment(beginning))
    return {end for end in ends if end <= _MOST_SUBJECT}


def _contracted(text: str) -> str:
    return _DENIALS.sub(lambda match: "can't" if match["can"] else f"{match['verb']}n't", text)


def _lighter(text: str, most: int) -> str:
    """Return the clauses of most weight that fit together, in their order."""
    whole = _tightened(text, most)
    if graphemes(whole) <= most:
        return whole
    clauses = [part for part in _CLAUSES.split(text) if any(map(str.isalnum, part))][:_MOST_CLAUSES]
    if not clauses:
        return text
    order = sorted(range(len(clauses)), key=lambda at: (-_weight(clauses[at], at), at))
    kept: list[int] = []
    for at in order:
        tried = sorted([*kept, at])
        lighter = _tightened(_joined([clauses[clause] for clause in tried]), most)
        if graphemes(lighter) <= most:
            kept = tried
    return _tightened(_joined([clauses[at] for at in kept or order[:1]]), most).rstrip(",，;； ")


def _weight(clause: str, at: int) -> float:
    """Return how much a clause matters; of equal ones the earlier."""
    figures, names = bool(_FIGURE.search(clause)), bool(_NAME.search(clause))
    return importance(head(clause)) + _FIGURES * figures + _NAMES * names - _EACH * at


def _joined(parts: Sequence[str]) -> str:
    """Return the parts as one line, with a space after a mark that is not Chinese."""
    text = ""
    for part in parts:
        text += part if not text or text[-1] > "\u2e80" else f" {part}"
    return text


MAX_SHORT = 50
"""The most active short memories of an agent and room."""
AT_ONCE = 10
"""The number of memories merged into one."""
MAX_FOLDED = 10
"""The most merged ones. The oldest beyond them are retired."""
FOLDED_CHARACTERS = 400
FOLDED = "folded"
"""The tag of a merged memory. It is not merged again, so that what it rests on stays a readable number of messages."""
_MERGED = "One of the oldest short memories of a room, merged into a longer one."
_RETIRED = "Retired: the room has more short memories than are kept. It can be restored."


@dataclass(frozen=True, slots=True)
class Fold:
    """The memories to merge and retire. `id`: of the merged memory and of the record of the merge. `merged`: the
    memories to be merged, the oldest first. `retired`: those to retire beside that. `overdue`: those to retire if no
    model merges anything."""

    id: str = ""
    merged: tuple[Memory, ...] = ()
    retired: tuple[Memory, ...] = ()
    overdue: tuple[Memory, ...] = ()

    @property
    def memory_ids(self) -> frozenset[str]:
        """The ids of all of them."""
        return frozenset(memory.memory_id for memory in (*self.merged, *self.retired, *self.overdue))

    @property
    def lineage_id(self) -> str:
        """The lineage that the merged memory continues: that of the oldest one."""
        return self.merged[0].lineage_id if self.merged else ""

    def notes(self) -> str:
        """Return a line for each memory to be merged, with its day."""
        return "\n".join(f"[{memory.supported_at:%Y-%m-%d}] {memory.statement}" for memory in self.merged)


def fold_due(memories: Sequence[Memory], *, new_id: str) -> Fold:
    """Return what is due before the memory `new_id` is added to the active short memories of an agent and room."""
    left = len(memories) + 1 - MAX_SHORT
    if left <= 0:
        return Fold()
    oldest = sorted(memories, key=lambda memory: (memory.supported_at, memory.created_at, memory.memory_id))
    folded = [memory for memory in oldest if FOLDED in memory.tags]
    plain = [memory for memory in oldest if FOLDED not in memory.tags]
    return Fold(
        id="z" + hashlib.sha256(new_id.encode("utf-8", "surrogatepass")).hexdigest()[:31],
        merged=tuple(plain[:AT_ONCE]) if len(plain) >= AT_ONCE else (),
        retired=tuple(folded[: max(len(folded) + 1 - MAX_FOLDED, 0)]),
        overdue=tuple(oldest[:left]),
    )


def fold_changes(
    fold: Fold, statement: str | None, *, version: int, number: int, made_by: str, now: datetime
) -> list[Change]:
    """Return the changes, from `number` on. `statement`: the model's; None if there is none, and then the oldest are
    retired. `version`: the number of the merged memory in its lineage."""
    if not statement or not fold.merged:
        return [_retired(memory, fold, number + place, now) for place, memory in enumerate(fold.overdue)]
    merge = _merge(fold, statement, version=version, number=number, made_by=made_by, now=now)
    return [merge, *(_retired(memory, fold, number + 1 + place, now) for place, memory in enumerate(fold.retired))]


def _merge(fold: Fold, statement: str, *, version: int, number: int, made_by: str, now: datetime) -> Change:
    memory = replace(
        fold.merged[0],
        memory_id=fold.id,
        version=version,
        parents=tuple(memory.memory_id for memory in fold.merged),
        statement=statement,
        tags=(FOLDED,),
        sources=tuple(dict.fromkeys(source for memory in fold.merged for source in memory.sources)),
        evidence=evidence_of((), [room for memory in fold.merged for room in memory.evidence]),
        shared_with=(),
        change_summary=_MERGED,
        evolution_id=fold.id,
        made_by=made_by,
        fallback=False,
        doubtful="; ".join(dict.fromkeys(memory.doubtful for memory in fold.merged if memory.doubtful)),
        updated_at=now,
        supported_at=max(memory.supported_at for memory in fold.merged),
    )
    return Change(
        number=number,
        scope=memory.scope,
        action=Action.MERGE,
        memory=memory,
        closes=memory.parents,
        old_statement=fold.merged[0].statement,
        reason=_MERGED,
        evolution_id=fold.id,
        actor=made_by,
        at=now,
    )


def _retired(memory: Memory, fold: Fold, number: int, now: datetime) -> Change:
    return Change(
        number=number,
        scope=memory.scope,
        action=Action.DELETE,
        memory=replace(memory, status=MemoryStatus.DEPRECATED, change_summary=_RETIRED, updated_at=now),
        old_statement=memory.statement,
        reason=_RETIRED,
        evolution_id=fold.id,
        actor="roomlore",
        at=now,
    )


MAX_MESSAGES = 40
"""The most messages of a short memory. What is more waits for the next one."""
MAX_ARRIVALS = 1000
"""The most arrivals that one extraction moves over, since it reads all of them to find the agent's conversations."""
MAX_PASSED = 200
"""The most skipped messages that are remembered: a later reply may answer one of them."""
LOOK_BACK = 40
"""The longest time before an agent's first reply at which its conversation may begin."""
IMPORTED = "imported"
"""The name of the watermark up to which a room was imported; nothing below it is extracted."""
SUMMARY_CHARACTERS = 100
SUMMARY_TOKENS = 200
FALLBACK_CHARACTERS = 200
FALLBACK = "fallback"
_FALLBACK_LABEL = "对话摘要: "
_MIN_CHARACTERS = 5
_NOTHING = ("无有效记忆", "no_memory")
_ECHO = 4
"""Consecutive terms that mark an answer as a copy of its instructions."""
# What a model thinks before it answers, though it may not close it.
_THOUGHTS = lazy_pattern(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)


def watermark(agent_id: str) -> str:
    """Return the name of the watermark up to which an agent's replies were extracted."""
    return f"extraction:{agent_id}"


def extraction_end(replies: Sequence[int], every: int) -> int | None:
    """Return the reply at which the next extraction is due, of the replies' arrivals (ascending, all after the
    watermark); None if there are too few."""
    return replies[every - 1] if len(replies) >= every else None


def first_mark(reply: int, imported: int) -> int:
    """Return the watermark with which extraction begins, given the arrival of the agent's first live reply."""
    return max(reply - 1 - LOOK_BACK, imported, 0)


def cut_at(last: int, arrivals: Sequence[int], *, after: int) -> int:
    """Return the arrival that ends an extraction of `MAX_MESSAGES` messages at most. `arrivals`: those of the
    messages up to `last`, ascending; some may be from before the watermark `after`."""
    return last if len(arrivals) <= MAX_MESSAGES else max(arrivals[MAX_MESSAGES - 1], after + 1)


def extraction_id(tenant: str, agent_id: str, room_id: str, last: int) -> str:
    """Return the id of the memory extracted from the messages up to arrival `last`; deterministic."""
    named = "\x00".join((tenant, agent_id, room_id, str(last)))
    return "x" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:31]


def again_id(memory_id: str, attempt: int) -> str:
    """Return the id of a retried extraction of a memory that was made without a model."""
    return "y" + hashlib.sha256(f"{memory_id}\x00{attempt}".encode("utf-8", "surrogatepass")).hexdigest()[:31]


def attempt_at(age_seconds: float) -> int:
    """Return the attempt due for a memory of this age: a new one each time the age doubles from a minute on, then every
    hour."""
    minutes = max(int(age_seconds // 60), 0)
    return minutes.bit_length() if minutes < 64 else 6 + (minutes - 4) // 60


def kept(answer: str, *, instructions: str = "", most: int = SUMMARY_CHARACTERS) -> str | None:
    """Return the part of a model's summary to keep, on one line, shortened to `most` characters, without its reasoning
    and the times of lines that it copied; None if it says that nothing is worth keeping.

    Raises `BadModelOutput` if it is empty or shorter than 5 characters, or repeats `instructions`, the prompt without
    the conversation.
    """
    thoughts = _THOUGHTS.match(answer)
    text = " ".join(without_times(answer[thoughts.end() if thoughts else 0 :]).split())
    if any(mark in text.casefold() for mark in _NOTHING) or says_nothing(text):
        return None
    if graphemes(text) < _MIN_CHARACTERS:
        raise BadModelOutput("summary_too_short", most=_MIN_CHARACTERS)
    if _echoes(text, instructions):
        raise BadModelOutput("summary_repeats_instructions")
    return shortened(text, most)


def _echoes(text: str, instructions: str) -> bool:
    """Return True if at least half of the text occurs in the instructions word for word."""
    ngrams_of_instructions, ngrams_of_text = _ngrams(instructions), _ngrams(text)
    return bool(ngrams_of_text) and 2 * len(ngrams_of_text & ngrams_of_instructions) >= len(ngrams_of_text)


def _ngrams(text: str) -> set[tuple[str, ...]]:
    words = terms(text)
    return {tuple(words[at : at + _ECHO]) for at in range(len(words) - _ECHO + 1)}


def fallback(conversation: str) -> str:
    """Return the summary used if no model answers: the beginning of the conversation, without times."""
    return _FALLBACK_LABEL + truncate(without_times(conversation), FALLBACK_CHARACTERS)
