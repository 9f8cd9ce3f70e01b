"""Choose what a digest shows of the talks of a span, and in what order, within a number of tokens."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from roomlore.core.attachments import descriptions_of
from roomlore.core.digest.digest import ORDER, Digest, DigestEntry, DigestLine, Why
from roomlore.core.digest.points import concerns, ends_asking, is_asking, says_little, speaks_of_decision
from roomlore.core.digest.talks import (
    Sentence,
    Talk,
    WordRarity,
    sentences_of,
    shortened,
    span_of,
    talks_of,
    title_of,
)
from roomlore.core.digest.written import Written, WrittenLine
from roomlore.core.mentions import with_names
from roomlore.core.models import Entry, Message, TalkState
from roomlore.core.text import asks, fold, language

Count = Callable[[Sequence[str]], list[int]]

_BONUS: dict[Why, float] = {"waits": 20.0, "mentions": 10.0, "question": 0.6, "decision": 0.8, "talk": 0.0}
"""The weight that a reason adds to a talk. What concerns the reader is always among the first."""
_SENDERS = 0.5
_WORTH_SHOWING = 2.0
"""The weight of a talk of three messages."""
_LONGEST = 48
"""Tokens of a message that is shown as a whole. Of a longer one a sentence is shown."""
_SHORTEST, _AROUND = 16, 6
"""The fewest tokens of a message that is shown as a whole where many conversations share the room, and those of its
mark and ids."""
_EACH = 9
"""Least tokens of a line with all that is around it, which bounds how many talks are looked at."""
_LEAST = 6
"""Tokens of the shortest line, such as `- ok [m1]`."""
_MAX_LINES = 4
_MESSAGES_A_LINE = 6
"""A talk is shown in one more line for this many messages."""
_ALWAYS = 3
"""The lines that a conversation of any length may have."""
_SAYS_SOMETHING = 0.1
"""The least worth of a sentence that is shown only because there is room."""
_POINT = 3
"""A message that waits, decides or asks is shown as a whole if it is this many times as long."""
_SHORT_MESSAGE = 4 * _LONGEST
"""Most characters of a message that may be shown as a whole."""
_TITLE = 60
_ATTACHED = 160
"""Most characters of what was said of the attachments of a message."""


@dataclass(frozen=True)
class _Weighed:
    """A talk with what it holds for the reader."""

    talk: Talk
    waiting: tuple[Entry, ...]
    mentioning: tuple[Entry, ...]

    @cached_property
    def why(self) -> Why:
        if self.waiting:
            return "waits"
        if self.mentioning:
            return "mentions"
        if self.talk.decisions:
            return "decision"
        return "question" if self.talk.open_questions else "talk"

    @property
    def size(self) -> float:
        return math.log2(1 + len(self.talk.entries)) + _SENDERS * math.log2(len(self.talk.senders))

    @cached_property
    def weight(self) -> float:
        return self.size + _BONUS[self.why]

    @property
    def matters(self) -> bool:
        """True if it is shown before what others decided."""
        return self.weight >= _WORTH_SHOWING or self.why != "talk"

    @property
    def tells(self) -> bool:
        """True if it is more than greetings and the like."""
        return not all(says_little(entry.message.text) for entry in self.talk.entries) or self.why != "talk"

    @property
    def key(self) -> tuple[Entry, ...]:
        """The messages because of which it is shown where it is."""
        return self.waiting or self.mentioning or self.talk.decisions[::-1] or self.talk.open_questions

    @cached_property
    def exchanged(self) -> tuple[Entry, ...]:
        """Its answered questions, each with the first answer that is not another one's."""
        entries: list[Entry] = []
        for question in self.talk.questions:
            if first := next((one for one in self.talk.span.answers(question) if one not in entries), None):
                entries += [question, first]
        return tuple(entries)

    @cached_property
    def reasons(self) -> Mapping[int, Why]:
        """The reasons for which its messages are shown, by arrival."""
        talk = self.talk
        named: dict[Why, tuple[Entry, ...]] = {
            "mentions": self.mentioning[:1],
            "question": talk.open_questions,
            "decision": talk.decisions,
            "waits": self.waiting,
        }
        return {entry.message.arrival: why for why, entries in named.items() for entry in entries}

    @cached_property
    def besides(self) -> tuple[Entry, ...]:
        """The messages that wait, are open or decide, beside its first line."""
        points = (*self.waiting, *self.talk.decisions[::-1], *self.talk.open_questions)
        by_arrival = {entry.message.arrival: entry for entry in points if entry is not self.key[0]}
        return tuple(by_arrival.values())


class DigestDraft:
    """A digest whose conversations are chosen and have no titles yet."""

    def __init__(
        self,
        room_id: str,
        entries: Sequence[Entry],
        *,
        max_tokens: int,
        count: Count,
        for_user: str | None = None,
        answered: Collection[str] = (),
        after: int = 0,
        messages: int | None = None,
        people: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Choose what the digest of these entries, in order of arrival, shows in at most `max_tokens` tokens.

        `for_user`: the reader, whose own messages are not news. `answered`: the ids of the reader's messages before
        these that some of these reply to. `messages`: how many messages the span has, if not all are given. `people`:
        the names of people whom they mention. The same input gives the same digest.
        """
        talks = talks_of(entries)
        own = {entry.message.id for entry in entries if entry.message.sender_id == for_user} | set(answered)
        weighed = [talk_weighed for talk in talks if (talk_weighed := _weigh(talk, for_user, own)) is not None]
        self._page = _Page(WordRarity.among(talks, people), count, max_tokens)
        self._rows = self._page.rows(_best(weighed, max_tokens))
        self._tells = sum(talk_weighed.tells for talk_weighed in weighed)
        self._whole = _whole(talks)
        self._made = Digest(
            room_id=room_id,
            for_user=for_user,
            after=after,
            since=entries[0].message.at if entries else None,
            messages=len(entries) if messages is None else messages,
            read=len(entries),
            entries=(),
            left=0,
            tokens=0,
        )

    @property
    def threads(self) -> list[int]:
        """The threads that it shows as a whole: one conversation has all their messages and no others."""
        return [row.one.talk.thread for row in self._rows if row.one.talk.thread in self._whole]

    @property
    def talks(self) -> dict[int, Talk]:
        """The conversations that it shows, by their place in it."""
        return {place: row.one.talk for place, row in enumerate(self._rows)}

    def finished(
        self, titles: Mapping[int, str], written: Mapping[int, Written] | None = None, *, model: str | None = None
    ) -> Digest:
        """Return the digest. `titles`: of threads; other conversations get one made of their messages. `written`: what
        `model` wrote of the conversations at these places; the others are made of their own sentences."""
        known = {thread: title for thread, title in titles.items() if title and thread in self._whole}
        shown = self._page.filled(self._rows, known, written or {})
        left, tokens = max(0, self._tells - len(shown)), self._page.tokens(shown)
        return replace(self._made, entries=tuple(shown), left=left, tokens=tokens, model=model if written else None)


def _whole(talks: Sequence[Talk]) -> set[int]:
    """Return the threads of which one talk has all messages and no others."""
    held = [{entry.link.thread for entry in talk.entries} for talk in talks]
    counts = Counter(thread for threads in held for thread in threads)
    return {min(threads) for threads in held if len(threads) == 1 and counts[min(threads)] == 1}


def _weigh(talk: Talk, reader: str | None, own: AbstractSet[str]) -> _Weighed | None:
    """Return the talk with what concerns the reader; None if only the reader speaks in it. `own`: the ids of the
    reader's messages."""
    if reader is None:
        return _Weighed(talk, (), ())
    if talk.senders == (reader,):
        return None
    named = [entry for entry in talk.entries if entry.message.sender_id != reader and concerns(entry, reader, own)]
    waiting = tuple(entry for entry in named if talk.span.asks_of(entry, reader, own))
    spoken = max((entry.message.arrival for entry in talk.entries if entry.message.sender_id == reader), default=0)
    mentioning = tuple(entry for entry in named if entry.message.arrival > spoken)
    return _Weighed(talk, waiting, mentioning)


def _best(weighed: Sequence[_Weighed], max_tokens: int) -> list[_Weighed]:
    """Return the talks that a digest of this size may show, of most weight first. Decisions are looked for in those
    alone that may be shown, since that takes time."""
    most = max(1, max_tokens // _EACH)
    first = sorted(weighed, key=lambda candidate: -(candidate.size + _quick_bonus(candidate)))[: 2 * most]
    first = [candidate for candidate in first if candidate.tells] or first
    return sorted(first, key=lambda candidate: (-candidate.weight, candidate.talk.entries[0].message.arrival))


def _quick_bonus(weighed: _Weighed) -> float:
    if weighed.waiting or weighed.mentioning:
        return _BONUS["waits"] if weighed.waiting else _BONUS["mentions"]
    return _BONUS["question"] if weighed.talk.open_questions else 0.0


@dataclass(frozen=True, slots=True)
class _Row:
    """A talk that is shown. `best`: its sentences, the most telling first."""

    one: _Weighed
    entry: DigestEntry
    best: Sequence[Sentence]


class _Page:
    """Fills a digest: first a line for each talk, the heaviest first, then headings and further lines."""

    def __init__(self, words: WordRarity, count: Count, max_tokens: int) -> None:
        self._words = words
        self._count = count
        self._left = max_tokens
        self._max = max_tokens
        self._cap = _LONGEST

    def rows(self, chosen: Sequence[_Weighed]) -> list[_Row]:
        """Return those that there is room for, in the order in which they are shown, with their first lines."""
        wanted = sum(weighed.weight >= _WORTH_SHOWING for weighed in chosen) or 1
        self._cap = min(_LONGEST, max(_SHORTEST, self._max // wanted - _AROUND))
        page_rows: list[_Row] = []
        for matters in (True, False):
            part = (self._begun(weighed) for weighed in chosen if weighed.matters is matters)
            page_rows += [self._with_points(row) for row in [row for row in part if row is not None]]
        if not page_rows:
            page_rows = [row for weighed in chosen[:1] if (row := self._begun(weighed, cut=True)) is not None]
        return sorted(
            page_rows,
            key=lambda row: (ORDER.index(row.one.why), -row.one.weight, row.entry.first_at, row.entry.thread_id),
        )

    def filled(
        self, rows: Sequence[_Row], titles: Mapping[int, str], written: Mapping[int, Written]
    ) -> list[DigestEntry]:
        """Return the entries with headings and further lines."""
        self._cap = _LONGEST
        rewritten = [self._rewritten(row, written.get(place)) for place, row in enumerate(rows)]
        grown = [
            line or self._grown(row, titles.get(row.one.talk.thread)) for row, line in zip(rows, rewritten, strict=True)
        ]
        self._fill_up(rows, grown, [place for place, line in enumerate(rewritten) if line is None])
        while grown and self.tokens(grown) > self._max:
            grown.pop()
        return grown

    def _fill_up(self, rows: Sequence[_Row], grown: list[DigestEntry], places: Sequence[int]) -> None:
        """Give the conversations at these places further lines in turn, one each, as long as there is room: up to
        three, or two for three messages."""
        waiting = {place: _further(rows[place], grown[place]) for place in places if grown[place].full}
        while waiting:
            for place, sentences in list(waiting.items()):
                entry = grown[place]
                if sentences and (len(entry.lines) < _ALWAYS or 3 * len(entry.lines) < 2 * entry.messages):
                    line = self._line(rows[place].one, sentences.pop(0))
                    grown[place] = self._with_line(entry, line)
                if grown[place] is entry:
                    del waiting[place]

    def tokens(self, entries: Sequence[DigestEntry]) -> int:
        return self._count(["\n".join(entry.rendered() for entry in entries)])[0] if entries else 0

    def _begun(self, weighed: _Weighed, *, cut: bool = False) -> _Row | None:
        """Return the talk with its first line; None if there is no room. `cut`: the line ends with an ellipsis."""
        best = sentences_of(weighed.talk, self._words.weights(weighed.talk), self._words)
        if cut:
            best = [replace(sentence, text=shortened(sentence.text, _LEAST * 4)) for sentence in best[:1]]
        best = [sentence for sentence in best if sentence.whole or cut]
        line = self._lead(weighed, best) if self._left >= _LEAST else None
        if line is None:
            return None
        entry = _entry(weighed, line)
        tokens = self._cost(entry)
        if tokens > self._left:
            return None
        self._left -= tokens
        return _Row(weighed, entry, best)

    def _with_points(self, row: _Row) -> _Row:
        """Return the talk with a line for each message that waits, is open or decides that there is room for."""
        entry = row.entry
        for point in row.one.besides:
            line = self._line_on(row.one, point, row.best)
            entry = entry if line is None else self._with_line(entry, line)
        return replace(row, entry=entry)

    def _with_line(self, entry: DigestEntry, line: DigestLine) -> DigestEntry:
        """Return the entry with a line more, in order of time."""
        lines = sorted((*entry.lines, line), key=lambda line: line.sent_at)
        return self._tried(entry, replace(entry, lines=tuple(lines)))

    def _lead(self, weighed: _Weighed, best: Sequence[Sentence]) -> DigestLine | None:
        """Return the line of a talk: of the message because of which it is shown, else its most telling one that is
        short enough; None if there is no room for any."""
        for entry in weighed.key:
            if line := self._line_on(weighed, entry, best):
                return line
        sizes = self._count([sentence.text for sentence in best])
        few = [sentence for sentence, size in zip(best, sizes, strict=True) if size <= max(_LONGEST, min(sizes))]
        return self._line(weighed, few[0]) if few else None

    def _line_on(self, weighed: _Weighed, entry: Entry, best: Sequence[Sentence]) -> DigestLine | None:
        """Return the line of a message: all of a short one, else its sentence that asks or decides, else its most
        telling one. None if it has no whole sentence that there is room for."""
        near = [sentence for sentence in best if sentence.entry is entry]
        sizes = self._count([sentence.text for sentence in near])
        fit = [sentence for sentence, size in zip(near, sizes, strict=True) if size <= self._left]
        if not fit:
            return None
        return self._line(weighed, max(fit, key=lambda sentence: (self._is_point(weighed, sentence), sentence.worth)))

    def _is_point(self, weighed: _Weighed, sentence: Sentence) -> bool:
        if is_asking(sentence.entry) and (sentence.entry in weighed.key or ends_asking(sentence.entry)):
            return asks(fold(sentence.text))
        return speaks_of_decision(sentence.text)

    def _whole(self, sentence: Sentence, why: Why) -> str:
        """Return the whole message of a sentence if it is short, else the sentence."""
        text, times = self._words.text_of(sentence.entry.message), 1 if why == "talk" else _POINT
        most = min(times * self._cap, self._left)
        short = len(text) <= times * _SHORT_MESSAGE and self._count([text])[0] <= most
        return " ".join(text.split()) if short else sentence.text

    def _line(self, weighed: _Weighed, sentence: Sentence) -> DigestLine:
        message = sentence.entry.message
        why = weighed.reasons.get(message.arrival, "talk")
        return DigestLine(
            message_id=message.id,
            sender_id=message.sender_id,
            sender_name=message.sender_name,
            sent_at=message.at,
            text=self._with_attached(message, self._whole(sentence, why)),
            decides=sentence.entry in weighed.talk.decisions,
            why=why,
        )

    def _with_attached(self, message: Message, text: str) -> str:
        """Return the text with what was said of the attachments behind it, where there is room for both."""
        notes = descriptions_of(message, language(text)) if message.metadata and message.text.strip() else ""
        whole = f"{text} {shortened(notes, _ATTACHED)}"
        return whole if notes and self._count([whole])[0] <= self._left else text

    def _cost(self, entry: DigestEntry) -> int:
        return self._count([f"{entry.rendered()}\n"])[0]

    def _grown(self, row: _Row, title: str | None) -> DigestEntry:
        """Return the entry with as much more as there is room for: its heading, and further lines in order of time."""
        weighed, best = row.one, row.best
        entry = replace(row.entry, title=self._title(row, title))
        grown = self._tried(entry, replace(entry, full=True))
        shown = {line.message_id for line in entry.lines}
        wanted = min(_MAX_LINES, 1 + len(weighed.talk.entries) // _MESSAGES_A_LINE) - len(shown)
        first, then = (*weighed.key, *weighed.talk.decisions), weighed.exchanged
        ranked = sorted(
            best, key=lambda candidate: 0 if candidate.entry in first else 1 if candidate.entry in then else 2
        )
        for sentence in ranked if grown.full else ():
            if wanted <= 0:
                break
            if sentence.entry.message.id in shown or says_little(sentence.entry.message.text):
                continue
            shown.add(sentence.entry.message.id)
            wanted -= 1
            grown = self._with_line(grown, self._line(weighed, sentence))
        return grown

    def _title(self, row: _Row, title: str | None) -> str:
        """Return the title of an entry. One that is shown for a request is not named by what it decided."""
        if row.one.why == "waits" and row.one.talk.decisions:
            asked = next(line for line in row.entry.lines if line.why == "waits")
            return shortened(asked.text, _TITLE)
        return title or title_of(row.one.talk, self._words, row.best)

    def _rewritten(self, row: _Row, written: Written | None) -> DigestEntry | None:
        """Return the entry in a model's words, as much of it as there is room for; None if there is none."""
        if written is None:
            return None
        title = self._named(written.title) or self._title(row, None)
        lines = tuple(self._written_line(row.one, line) for line in written.lines)
        for full, count in [(True, n) for n in range(len(lines), 0, -1)] + [(False, 1)]:
            shown = tuple(sorted(lines[:count], key=lambda line: line.sent_at))
            more = replace(row.entry, title=title, lines=shown, full=full)
            if self._tried(row.entry, more) is more:
                return more
        return None

    def _named(self, text: str) -> str:
        return with_names(text, self._words.people, ())

    def _written_line(self, weighed: _Weighed, line: WrittenLine) -> DigestLine:
        cited = [entry for entry in weighed.talk.entries if entry.message.id in line.message_ids]
        first = next(entry.message for entry in cited if entry.message.id == line.message_ids[0])
        return DigestLine(
            message_id=first.id,
            sender_id=first.sender_id,
            sender_name=first.sender_name,
            sent_at=first.at,
            text=self._named(line.text),
            more=line.message_ids[1:],
            decides=any(entry in weighed.talk.decisions for entry in cited),
            why=min((weighed.reasons.get(entry.message.arrival, "talk") for entry in cited), key=ORDER.index),
        )

    def _tried(self, entry: DigestEntry, more: DigestEntry) -> DigestEntry:
        extra = self._cost(more) - self._cost(entry)
        if extra > self._left:
            return entry
        self._left -= extra
        return more


def _further(row: _Row, entry: DigestEntry) -> list[Sentence]:
    """Return the most telling sentence of each message that the entry does not show: first answered questions and their
    answers, then by worth."""
    shown = {line.message_id for line in entry.lines}
    sentences: list[Sentence] = []
    for sentence in sorted(row.best, key=lambda ranked: ranked.entry not in row.one.exchanged):
        message = sentence.entry.message
        if message.id not in shown and sentence.worth >= _SAYS_SOMETHING and not says_little(message.text):
            shown.add(message.id)
            sentences.append(sentence)
    return sentences


def _entry(weighed: _Weighed, line: DigestLine) -> DigestEntry:
    """Return the entry of a talk with one line, still without a title."""
    talk = weighed.talk
    names = {entry.message.sender_id: entry.message.sender_name for entry in talk.entries}
    first, last = span_of(talk)
    return DigestEntry(
        thread_id=talk.entries[0].message.id,
        title="",
        people=tuple(names[sender] or sender for sender in talk.senders),
        sender_ids=talk.senders,
        first_at=first,
        last_at=last,
        state=TalkState.OPEN if weighed.waiting else talk.state,
        messages=len(talk.entries),
        why=weighed.why,
        lines=(line,),
    )
