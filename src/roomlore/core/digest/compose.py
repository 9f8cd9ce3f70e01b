"""Choose what a digest shows of the talks of a span, and in what order, within a number of tokens."""

import math
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from roomlore.core.digest.digest import Digest, DigestEntry, DigestLine, Why
from roomlore.core.digest.talks import Talk, talks_of
from roomlore.core.digest.wording import Sentence, Words, sentences_of, span_of, title_of
from roomlore.core.evolution.offline.cues import agrees, sense_of
from roomlore.core.models import Entry, Role
from roomlore.core.summary.select import cut
from roomlore.core.text import fold

Count = Callable[[Sequence[str]], list[int]]

_ORDER: tuple[Why, ...] = ("waits", "mentions", "question", "decision", "talk")
_BONUS: dict[Why, float] = {"waits": 20.0, "mentions": 10.0, "question": 0.6, "decision": 0.8, "talk": 0.0}
"""The weight that a reason adds to a talk. What concerns the reader is always among the first."""
_SENDERS = 0.5
_WORTH_SHOWING = 2.0
"""The weight of a talk of three messages."""
_SHORTEST, _LONGEST = 8, 48
"""Tokens of a line besides its mark and ids."""
_AROUND = 6
_EACH = 9
"""Least tokens of a line with all that is around it, which bounds how many talks are looked at."""
_MAX_LINES = 4
_MESSAGES_A_LINE = 6
"""A talk is shown in one more line for this many messages."""
_TOO_LONG = 0.6
_DECISION_CHARACTERS = 400
_DECISIONS: frozenset[str] = frozenset(("decision", "change", "cancellation"))
_AGREEING = 4
"""The messages after a decision among which those that agree are looked for."""


@dataclass(frozen=True)
class _Weighed:
    """A talk with what it holds for the reader."""

    talk: Talk
    waiting: tuple[Entry, ...]
    mentioning: tuple[Entry, ...]

    @cached_property
    def decisions(self) -> tuple[Entry, ...]:
        entries = self.talk.entries
        return tuple(entry for at, entry in enumerate(entries) if _decides(entry, entries[at + 1 : at + 1 + _AGREEING]))

    @cached_property
    def why(self) -> Why:
        if self.waiting:
            return "waits"
        if self.mentioning:
            return "mentions"
        if self.talk.open_questions:
            return "question"
        return "decision" if self.decisions else "talk"

    @property
    def size(self) -> float:
        return math.log2(1 + len(self.talk.entries)) + _SENDERS * math.log2(len(self.talk.senders))

    @cached_property
    def weight(self) -> float:
        return self.size + _BONUS[self.why]

    @property
    def key(self) -> tuple[Entry, ...]:
        """The messages because of which it is shown where it is."""
        return self.waiting or self.mentioning or self.talk.open_questions or self.decisions


def make_digest(
    room_id: str,
    entries: Sequence[Entry],
    *,
    max_tokens: int,
    count: Count,
    for_user: str | None = None,
    answered: Collection[str] = (),
    after: int = 0,
    messages: int | None = None,
) -> Digest:
    """Return the digest of these entries, in order of arrival, in at most `max_tokens` tokens of its text.

    `for_user`: the reader, whose own messages are not news. `answered`: the ids of the reader's messages before these
    that some of these reply to. `messages`: how many messages the span has, if not all
    are given. The same input gives the same digest.
    """
    talks = talks_of(entries)
    own = {entry.message.id for entry in entries if entry.message.sender_id == for_user} | set(answered)
    weighed = [one for talk in talks if (one := _weigh(talk, for_user, own)) is not None]
    chosen = _best(weighed, max_tokens)
    shown = _Page(Words.among(talks), count, max_tokens).filled(chosen)
    return Digest(
        room_id=room_id,
        for_user=for_user,
        after=after,
        since=entries[0].message.at if entries else None,
        messages=len(entries) if messages is None else messages,
        read=len(entries),
        entries=tuple(shown),
        left=len(weighed) - len(shown),
        tokens=_tokens(shown, count),
    )


def _weigh(talk: Talk, reader: str | None, own: AbstractSet[str]) -> _Weighed | None:
    """Return the talk with what concerns the reader; None if only the reader speaks in it. `own`: the ids of the
    reader's messages."""
    if reader is None:
        return _Weighed(talk, (), ())
    if talk.senders == (reader,):
        return None
    spoken = max((entry.message.arrival for entry in talk.entries if entry.message.sender_id == reader), default=0)
    later = [entry for entry in talk.entries if entry.message.arrival > spoken]
    mentioning = tuple(entry for entry in later if _mentions(entry, reader, own))
    waiting = tuple(entry for entry in mentioning if entry in talk.questions)
    return _Weighed(talk, waiting, mentioning)


def _mentions(entry: Entry, reader: str, own: AbstractSet[str]) -> bool:
    features, reply = entry.features, entry.features.reply
    answered = entry.message.reply_to in own or (reply is not None and reply.sender_id == reader)
    return answered or features.mentions_all or reader in features.mentions or reader in features.addressed


def _decides(entry: Entry, after: Sequence[Entry]) -> bool:
    message = entry.message
    if message.role is not Role.USER or len(message.text) > _DECISION_CHARACTERS:
        return False
    sense = sense_of(fold(message.text))
    if not sense.purposes or sense.purposes[0] not in _DECISIONS or sense.asked:
        return False
    agreed = {one.message.sender_id for one in after if agrees(one.message.text)} - {message.sender_id}
    return sense.holds(len(agreed))


def _best(weighed: Sequence[_Weighed], max_tokens: int) -> list[_Weighed]:
    """Return the talks that a digest of this size may show, of most weight first. Decisions are looked for in those
    alone that may be shown, since that takes time."""
    most = max(1, max_tokens // _EACH)
    first = sorted(weighed, key=lambda one: -(one.size + _quick_bonus(one)))[: 2 * most]
    return sorted(first, key=lambda one: (-one.weight, one.talk.entries[0].message.arrival))


def _quick_bonus(one: _Weighed) -> float:
    if one.waiting or one.mentioning:
        return _BONUS["waits"] if one.waiting else _BONUS["mentions"]
    return _BONUS["question"] if one.talk.open_questions else 0.0


class _Page:
    """Fills a digest: first a line for each talk, the heaviest first, then headings and further lines."""

    def __init__(self, words: Words, count: Count, max_tokens: int) -> None:
        self._words = words
        self._count = count
        self._left = max_tokens
        self._max = max_tokens

    def filled(self, chosen: Sequence[_Weighed]) -> list[DigestEntry]:
        cap = self._cap(chosen)
        found: list[tuple[_Weighed, DigestEntry, list[Sentence]]] = []
        for one in chosen:
            best = sentences_of(one.talk, self._words.weights(one.talk), self._words.names)
            entry = _entry(one, self._lead(one, best, cap))
            tokens = self._cost(entry)
            if tokens <= self._left:
                self._left -= tokens
                found.append((one, entry, best))
        found.sort(key=lambda row: (_ORDER.index(row[0].why), -row[0].weight, row[1].first_at, row[1].thread_id))
        grown = [self._grown(one, entry, best) for one, entry, best in found]
        while grown and _tokens(grown, self._count) > self._max:
            grown.pop()
        return grown

    def _cap(self, chosen: Sequence[_Weighed]) -> int:
        """Return the tokens of a line if all talks that are worth it are to be shown."""
        wanted = sum(one.weight >= _WORTH_SHOWING for one in chosen) or 1
        return min(_LONGEST, max(_SHORTEST, self._max // wanted - _AROUND))

    def _lead(self, one: _Weighed, best: Sequence[Sentence], cap: int) -> DigestLine:
        """Return the line of a talk: of the message because of which it is shown, else its most telling one."""
        key = one.key[0].message.arrival if one.key else best[0].entry.message.arrival
        near = [sentence for sentence in best if sentence.entry.message.arrival == key]
        sizes = self._count([sentence.text for sentence in near])
        worths = [
            sentence.worth * (1.0 if size <= cap else _TOO_LONG) for sentence, size in zip(near, sizes, strict=True)
        ]
        return self._line(near[worths.index(max(worths))], cap)

    def _line(self, sentence: Sentence, cap: int) -> DigestLine:
        message = sentence.entry.message
        return DigestLine(
            message_id=message.id,
            sender_id=message.sender_id,
            sender_name=message.sender_name,
            sent_at=message.at,
            text=_within(sentence.text, cap, self._count),
        )

    def _cost(self, entry: DigestEntry) -> int:
        return self._count([f"{entry.rendered()}\n"])[0]

    def _grown(self, one: _Weighed, entry: DigestEntry, best: Sequence[Sentence]) -> DigestEntry:
        """Return the entry with as much more as there is room for: its heading, and further lines in order of time."""
        entry = replace(entry, title=title_of(one.talk, self._words, best))
        grown = self._tried(entry, replace(entry, full=True))
        shown = {line.message_id for line in entry.lines}
        wanted = min(_MAX_LINES, 1 + len(one.talk.entries) // _MESSAGES_A_LINE) - 1
        keys = {entry.message.arrival for entry in one.key}
        for sentence in sorted(best, key=lambda one: one.entry.message.arrival not in keys) if grown.full else ():
            if not wanted:
                break
            if sentence.entry.message.id in shown:
                continue
            shown.add(sentence.entry.message.id)
            wanted -= 1
            lines = sorted((*grown.lines, self._line(sentence, _LONGEST)), key=lambda line: line.sent_at)
            grown = self._tried(grown, replace(grown, lines=tuple(lines)))
        return grown

    def _tried(self, entry: DigestEntry, more: DigestEntry) -> DigestEntry:
        extra = self._cost(more) - self._cost(entry)
        if extra > self._left:
            return entry
        self._left -= extra
        return more


def _entry(one: _Weighed, line: DigestLine) -> DigestEntry:
    """Return the entry of a talk with one line, still without a title."""
    talk = one.talk
    names = {entry.message.sender_id: entry.message.sender_name for entry in talk.entries}
    first, last = span_of(talk)
    return DigestEntry(
        thread_id=talk.entries[0].message.id,
        title="",
        people=tuple(names[sender] or sender for sender in talk.senders),
        sender_ids=talk.senders,
        first_at=first,
        last_at=last,
        state=talk.state,
        messages=len(talk.entries),
        why=one.why,
        lines=(line,),
    )


def _within(text: str, cap: int, count: Count) -> str:
    """Return the text in at most `cap` tokens, cut between words with an ellipsis."""
    if count([text])[0] <= cap:
        return text
    short = cut(text, max(1, cap - 1), count)
    space = short.rfind(" ")
    if space >= len(short) // 2:
        short = short[:space]
    return short.rstrip(" ,.;:，。；：、") + "…"


def _tokens(entries: Sequence[DigestEntry], count: Count) -> int:
    return count(["\n".join(entry.rendered() for entry in entries)])[0] if entries else 0
