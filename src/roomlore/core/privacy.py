"""Remove a person from stored data: the traces of them in texts (their id, and what they said, word for word), messages
and memories without the person, and the report of what was removed.

A short text belongs to nobody: 'good morning' is said by everybody. The weight of a text is its number of characters; a
wide one (Chinese, say) counts twice. A passage below `MIN` is never attributed to the person; from `SURE` on it always
is; between the two it is unless somebody else wrote the same, which the caller finds out.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from roomlore.core.audience import EvidenceRoom, evidence_of
from roomlore.core.json_values import in_json, is_id
from roomlore.core.memory.memory import Change, Evolution, Memory, Source
from roomlore.core.models import MessageFeatures, ReplyInfo, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import graphemes, language

MIN = 12
SURE = 32
_ANCHOR = 6
"""The least number of code points of a passage: no code point weighs more than two."""
_NAME_MIN = 3
_ID_MIN = 4
_WORD_MAX = 20
"""Letters of an ordinary word; a longer run of letters is an id."""
_MARKS = {"zh": "[已删除]", "en": "[forgotten]"}
_INSIDE_A_WORD = r"[0-9A-Za-z_-]"
_ADDRESSED = "(?:" + "|".join(f"(?<={sign})" for sign in ("@", "id=", 'id="', "id='", 'id":"', 'id": "')) + ")"
_BEGINS, _CALLS = "(?m:^)", r"(?=[ \t]?[:,：，])"
# A letter or a figure, beside which a name is a part of a longer word.
_EDGE = lazy_pattern(r"[0-9A-Za-z_]")
# The end of a sentence.
_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+|(?<=[。！？；])")
# A quoted line, or a quotation in its marks.
_QUOTATION = lazy_pattern(
    r"^[ \t]*(?:>|＞|&gt;)[^\n]*|\"[^\"\n]*\"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」|『[^『』]*』", re.MULTILINE
)
_ISOLATES = "[\u2066-\u2069\u200e\u200f]*"
_OWN_WORDS = frozenset({"user", "group", "agent", "facts", "extraction", "evolution", "forgetting"})
"""Words that roomlore writes before a colon: 'user:ben' is no trace of somebody whose id is 'user'."""

Span = tuple[int, int]


def _always(_: str) -> bool:
    return True


def mark(text: str) -> str:
    """Return the mark for removed text, in the text's language."""
    return _MARKS[language(text)]


def is_mark(text: str) -> bool:
    return text in _MARKS.values()


def count_marks(text: str) -> int:
    """Return how often a mark stands in the text."""
    return sum(text.count(sign) for sign in _MARKS.values())


def has_mark(text: str) -> bool:
    """Return True if something was removed from the text."""
    return any(sign in text for sign in _MARKS.values())


def weight(text: str) -> int:
    """Return the number of graphemes, wide ones counted twice."""
    wide = 0 if text.isascii() else sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return graphemes(text) + wide


def passages(text: str) -> list[str]:
    """Return the recognisable passages of a text: all of it, each of its lines, and its longer sentences, without those
    below the least weight."""
    whole = text.strip()
    lines = [line.strip() for line in whole.splitlines()] if "\n" in whole else []
    sentences = [part.strip() for line in lines or [whole] for part in _SENTENCE.split(line)]
    whole_lines = [line for line in dict.fromkeys([whole, *lines]) if weight(line) >= MIN]
    return list(dict.fromkeys([*whole_lines, *(sentence for sentence in sentences if weight(sentence) >= SURE)]))


class Traces:
    """Finds and removes the traces of one person.

    `user_id`: matches inside texts as a whole word, case-insensitively. A short id or a small number matches only
    behind an @ or an 'id=', since it may be any word. So does one of letters alone ("will"), and also at the beginning
    of a line before a colon or a comma; in an identifier it matches as a whole word. `texts`: the person's passages.
    `names`: the names that others use, removed only if `and_names` is set.
    """

    def __init__(self, user_id: str, texts: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self.user_id = user_id
        word, flags = _word(user_id), re.IGNORECASE if user_id.lower() != user_id.upper() else 0
        # An id that tells nothing by itself counts only where it is addressed.
        self._word = re.compile(word if _is_telling(user_id) else _ADDRESSED + word, flags)
        ordinary = _is_telling(user_id) and user_id.isalpha() and len(user_id) <= _WORD_MAX
        # The id as an id: addressed, or before a colon at the beginning of a line.
        self._id = re.compile(f"{_ADDRESSED}{word}|{_BEGINS}{word}{_CALLS}", flags) if ordinary else self._word
        self._lowered = user_id.lower()
        self.names = frozenset(name.strip() for name in names if weight(name.strip()) >= _NAME_MIN)
        self._names = _any_of(self.names)
        self._calls = _any_of(self.names, before=f"@{_ISOLATES}", flags=re.IGNORECASE)
        self.said = frozenset(texts)
        lengths: dict[str, set[int]] = {}
        for passage in self.said:
            lengths.setdefault(passage[:_ANCHOR], set()).add(len(passage))
        self._lengths = {anchor: sorted(sizes, reverse=True) for anchor, sizes in lengths.items()}

    def and_also(self, more: "Traces") -> "Traces":
        """Return the traces of the same person with further ones added."""
        return Traces(self.user_id, self.said | more.said, self.names | more.names)

    def repeated(self, text: str, counts: Callable[[str], bool] = _always) -> bool:
        """Return True if the text contains a passage of the person that counts."""
        return next(self.repeats(text, counts), None) is not None

    def repeats(self, text: str, counts: Callable[[str], bool] = _always) -> Iterator[Span]:
        """Yield the position of each passage in the text that counts, from left to right."""
        if not self.said:
            return
        at, last = 0, len(text) - _ANCHOR
        while at <= last:
            lengths = self._lengths.get(text[at : at + _ANCHOR])
            size = self._at(text, at, lengths, counts) if lengths else 0
            if size:
                yield at, at + size
            at += size or 1

    def quotes(self, text: str, counts: Callable[[str], bool] = _always) -> list[Span]:
        """Return the positions of passages that count and are quoted."""
        spans = list(self.repeats(text, counts))
        quotations = [match.span() for match in _QUOTATION.finditer(text)] if spans else []
        return [span for span in spans if _within(span, quotations)]

    def ids(self, text: str, *, named: bool = False) -> Iterator[Span]:
        """Yield the position of each mention of the id. `named`: the text is known to name the person, so that an
        ordinary word is the id too."""
        if self._lowered in text.lower():
            yield from (match.span() for match in (self._word if named else self._id).finditer(text))

    def calls(self, text: str) -> Iterator[Span]:
        """Yield the position of the name in each '@name'."""
        if self._calls and "@" in text:
            yield from (match.span(1) for match in self._calls.finditer(text))

    def has_id(self, text: str) -> bool:
        """Return True if the text, or the identifier that it is, mentions the id."""
        return self.is_named(text) or next(self.ids(text), None) is not None

    def in_label(self, name: str) -> bool:
        """Return True if a name that somebody gave something mentions the id: 'phone of maria'."""
        return self.is_named(name) or next(self.ids(name, named=True), None) is not None

    def names_them(self, text: str) -> bool:
        """Return True if the text mentions the id or a name of the person."""
        return self.has_id(text) or (self._names is not None and self._names.search(text) is not None)

    def tells(self, text: str) -> bool:
        """Return True if another sender's text concerns the person: by the id, or by a name beside a passage. Equal
        words alone do not count."""
        return self.has_id(text) or (self.names_them(text) and self.repeated(text))

    def in_path(self, path: str) -> bool:
        """Return True if the path of a file, 'chats/anna.json', contains the person's id as a whole word."""
        ends = [rf"(?{sign}{_INSIDE_A_WORD})" for sign in ("<!", "!")]
        return re.search(ends[0] + re.escape(self.user_id) + ends[1], path) is not None

    def mentioned(self, text: str) -> bool:
        """Return True if the text, or the identifier that it is ('user:anna'), mentions the person."""
        return self.has_id(text) or self.repeated(text)

    def is_named(self, name: str) -> bool:
        """Return True if an identifier such as 'user:anna' or 'facts:anna' has the person's id as a part, letter by
        letter. A text with white space beside it is not an identifier: 'anna: see you'."""
        if name == self.user_id or self.user_id not in name:
            return name == self.user_id
        if any(sign.isspace() for sign in name.replace(self.user_id, "", 1)):
            return False
        return f":{self.user_id}:" in (f"{name}:" if self.user_id in _OWN_WORDS else f":{name}:")

    def named_in(self, name: str) -> bool:
        """Return True if an identifier contains the person's id, case-sensitively."""
        if self.is_named(name):
            return True
        if self.user_id not in name or self.user_id in _OWN_WORDS:
            return False
        matches = (match for match in self._word.finditer(name) if match.group() == self.user_id)
        return any(_stands_alone(name, *match.span()) for match in matches)

    def redact(self, text: str, *, and_names: bool = False) -> str:
        """Return the text with a mark in place of each trace; the person's id alone becomes the mark."""
        if self.is_named(text):
            return mark(text)
        spans = [*self.ids(text, named=and_names), *self.repeats(text)]
        if and_names and self._names:
            spans += [match.span() for match in self._names.finditer(text)]
        return cut_out(text, spans)

    def redact_name(self, name: str) -> str:
        """Return an identifier with a mark in place of the id."""
        return mark(name) if self.is_named(name) else cut_out(name, list(self.ids(name, named=True)))

    def redact_others(self, text: str) -> str:
        """Return another sender's text without the id, and without passages if it names the person."""
        if self.names_them(text):
            return self.redact(text)
        return text

    def _at(self, text: str, at: int, lengths: Iterable[int], counts: Callable[[str], bool]) -> int:
        """Return the length of the longest passage at this position, 0 for none; grouped by length, since many passages
        may begin alike."""
        left = len(text) - at
        fitting = (text[at : at + size] for size in lengths if size <= left)
        return next((len(passage) for passage in fitting if passage in self.said and counts(passage)), 0)


def cut_out(text: str, spans: Sequence[Span]) -> str:
    """Return the text with one mark in place of each run of spans; white space around a run stays."""
    if not spans:
        return text
    sign, kept, at = mark(text), [], 0
    for first, last in _joined(spans):
        run = text[first:last]
        start, end = last - len(run.lstrip()), first + len(run.rstrip())
        if start >= end:
            continue
        kept += [text[at:start], sign]
        at = end
    return "".join([*kept, text[at:]])


def _joined(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _within(span: Span, regions: Sequence[Span]) -> bool:
    """Return True if a region contains the span. `regions`: ascending, without overlap."""
    at = bisect_right(regions, span[0], key=itemgetter(0)) - 1
    return at >= 0 and span[1] <= regions[at][1]


def _is_telling(user_id: str) -> bool:
    return weight(user_id) >= _ID_MIN and not (user_id.isdecimal() and len(user_id) <= _ID_MIN)


def _stands_alone(name: str, start: int, end: int) -> bool:
    """Return True if no letter, digit, - or _ is adjacent: '小林子' is another name than '小林'."""
    return not any(sign.isalnum() or sign in "-_" for sign in name[max(start - 1, 0) : start] + name[end : end + 1])


def _word(name: str) -> str:
    """Return the pattern of a name that is no part of a longer word or name; between Chinese characters every position
    is a boundary."""
    before = rf"(?<!{_INSIDE_A_WORD})(?<![0-9A-Za-z]\.)" if _EDGE.match(name) else ""
    after = rf"(?!{_INSIDE_A_WORD})(?!\.[0-9A-Za-z])" if _EDGE.match(name[-1]) else ""
    return before + re.escape(name) + after


def _any_of(names: Iterable[str], *, before: str = "", flags: int = 0) -> re.Pattern[str] | None:
    """Return a pattern that finds any of the names, the longest first; None without names."""
    known = sorted(set(names), key=len, reverse=True)
    return re.compile(f"{before}({'|'.join(map(_word, known))})", flags) if known else None


_RUN, _WIDE_RUN, _WIDE_MIN = 24, 8, 6
"""The length of a common run that counts as a copy; a shorter one if nearly all of its characters are wide."""
_LINE_MIN = 8
"""The least weight of a line that counts as a copy anywhere; a shorter one counts if it is quoted."""
# The marks of quotation before a line.
_INDENT = lazy_pattern(r"^[>＞\s]*+", re.MULTILINE)


def without_copies(text: str, copied: Iterable[str]) -> str:
    """Return the text with a mark in place of every run, line or quoted line that it shares with one of these texts."""
    spans: list[Span] = []
    for copied_text in copied:
        spans += [*_shared(text, copied_text), *_repeated(text, copied_text)]
    return cut_out(text, spans)


def _shared(text: str, copied_text: str) -> list[Span]:
    spans: list[Span] = []
    for size in (_WIDE_RUN, _RUN):
        known = {copied_text[at : at + size] for at in range(len(copied_text) - size + 1)}
        if size == _WIDE_RUN:
            known = {run for run in known if _is_wide(run)}
        if known:
            spans += [(at, at + size) for at in range(len(text) - size + 1) if text[at : at + size] in known]
    return spans


def _repeated(text: str, copied_text: str) -> list[Span]:
    lines = {line.strip() for line in copied_text.splitlines()} - {""}
    spans = [span for span in _quoted(text) if text[slice(*span)] in lines]
    for line in lines:
        if weight(line) >= _LINE_MIN:
            spans += _places(text, line)
    return spans


def _quoted(text: str) -> Iterator[Span]:
    """Yield the spans of quoted text on each line, of all lines above it too."""
    for indent in _INDENT.finditer(text):
        if ">" in indent[0] or "＞" in indent[0]:
            at = indent.end()
            line_end = text.find("\n", at)
            yield at, at + len(text[at : line_end if line_end >= 0 else None].rstrip())


def _places(text: str, line: str) -> Iterator[Span]:
    at = text.find(line)
    while at >= 0:
        yield at, at + len(line)
        at = text.find(line, at + len(line))


def _is_wide(run: str) -> bool:
    return sum(unicodedata.east_asian_width(sign) in "WF" for sign in run) >= _WIDE_MIN


@dataclass(frozen=True, slots=True)
class Left:
    """A remaining trace of the person. `place`: the table, cache or index; `count`: number of entries; `why`: the
    obstacle, and what to do."""

    place: str
    count: int
    why: str


LISTED = ("rooms_removed", "retired", "rewritten")
"""The lists of ids in a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """The result of forgetting, or with `dry_run` the expected one.

    `places`: entries removed or rewritten, by place; places without any are omitted. `rooms_removed`: rooms removed
    entirely. `retired`: ids of memories deprecated because they rested on the person alone; `rewritten`: ids of
    memories that stay, without the person. `same_words`: entries of others, by place, with words that the person said
    too; they stay since nothing links them to the person. `left`: what remains and why; if another try may remove it,
    background work tries again, and calling again continues at once. `checked`: rows of each table that were searched
    at the end; empty with `dry_run`. `unlisted`: how many rooms and memories are missing from the lists of ids:
    finished work keeps no ids, as they may be names.
    """

    user_id: str
    dry_run: bool
    places: Mapping[str, int] = field(default_factory=dict)
    rooms_removed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    same_words: Mapping[str, int] = field(default_factory=dict)
    left: tuple[Left, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict)
    started_at: datetime
    finished_at: datetime
    unlisted: Mapping[str, int] = field(default_factory=dict)

    def after(self, earlier: "ForgetReport") -> "ForgetReport":
        """Return the report of this run together with that of an earlier one, which left something."""
        values: dict[str, Any] = {
            name: tuple(dict.fromkeys((*getattr(earlier, name), *getattr(self, name)))) for name in LISTED
        }
        values |= {name: getattr(self, name) or getattr(earlier, name) for name in ("checked", "same_words")}
        places = dict(Counter(earlier.places) + Counter(self.places))
        return replace(self, places=places, started_at=earlier.started_at, **values)

    @property
    @in_json
    def counts(self) -> Mapping[str, int]:
        """The number of rooms that were removed, and of memories that were retired or rewritten, listed or not."""
        return {name: len(getattr(self, name)) + self.unlisted.get(name, 0) for name in LISTED}

    @property
    @in_json
    def complete(self) -> bool:
        """True if nothing is left that roomlore can reach."""
        return not self.left

    @property
    @in_json
    def found(self) -> bool:
        """True if anything of the person was here."""
        return bool(self.places or self.counts["rooms_removed"])


PLACES_IN_WORDS: Mapping[str, str] = {
    "messages": "messages of the person",
    "archived messages": "archived messages of the person",
    "messages of others": "messages of others, which stay without what they quote or name of the person",
    "memories": "versions of memories",
    "memory_changes": "entries of the log of memories",
    "memory_scopes": "memories about the person, as a whole",
    "evolutions": "records of evolutions",
    "checkpoints": "summaries of sessions",
    "watermarks": "reading positions",
    "rooms_due": "notes of work that is due",
    "room_members": "memberships in rooms",
    "durable work": "pieces of background work",
    "link_corrections": "corrected links",
    "context_usage_records": "records of contexts",
    "participants": "names in rooms",
    "message_features": "links of messages",
    "message_words": "words of messages in the index",
    "index_outbox": "messages waiting for the index",
    "memory_outbox": "memories waiting for the index",
    "memory_sources": "sources of memories",
    "import_positions": "positions of imports",
    "api_keys": "API keys",
}
"""What the places of a report hold, for people; the others are called what they are."""


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with every text changed, including field names; a number that may be an id changes if it is
    one."""
    if isinstance(value, str):
        return change(value)
    if is_id(value):
        changed = change(str(value))
        return value if changed == str(value) else changed
    if isinstance(value, Mapping):
        return {change(name): each_text(inner, change) for name, inner in value.items()}
    return [each_text(inner, change) for inner in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Taken:
    """The parts of another sender's message that are copied from the person.

    `answered`: the person's texts that the platform, a turn or a quotation links it to. `counts`: True if a passage was
    the person's by then. `linked`: passages count anywhere, otherwise only in quotations. `called`: it mentions the
    person by '@name'. `named`: its mentions or its reply link name the person.
    """

    answered: Sequence[str] = ()
    counts: Callable[[str], bool] = lambda _: True
    linked: bool = False
    called: bool = False
    named: bool = False

    def redact(self, text: str, traces: Traces) -> str:
        """Return the text with a mark in place of each copied part."""
        text = without_copies(text, self.answered)
        passages = traces.repeats if self.linked else traces.quotes
        calls = traces.calls(text) if self.called else ()
        return cut_out(text, [*traces.ids(text, named=self.named), *calls, *passages(text, self.counts)])


def without_person(message: StoredMessage, traces: Traces, *, taken: Taken, gone: Container[str]) -> StoredMessage:
    """Return another sender's message without the person.

    `gone`: ids of the person's messages in its room; no reference to them stays.
    """

    def change(text: str) -> str:
        return mark(text) if traces.is_named(text) else taken.redact(text, traces)

    return replace(
        message,
        text=taken.redact(message.text, traces),
        metadata=each_text(message.metadata, change),
        mentions=tuple(mention for mention in message.mentions if mention != traces.user_id),
        reply_to=_kept(message.reply_to, traces, gone),
        root_id=_kept(message.root_id, traces, gone),
        topic_id=_kept(message.topic_id, traces, ()),  # a label of others too, though its message is gone
        turn_id=_kept(message.turn_id, traces, gone),
    )


def features_without(features: MessageFeatures, traces: Traces, *, gone: Container[str]) -> MessageFeatures:
    """Return the features of another sender's message, without the person."""
    return replace(
        features,
        mentions=_others(features.mentions, traces),
        addressed=_others(features.addressed, traces),
        partners=_others(features.partners, traces),
        reply=_reply_without(features.reply, traces, gone),
    )


def _kept(name: str | None, traces: Traces, gone: Container[str]) -> str | None:
    return None if name is None or name in gone or traces.named_in(name) else name


def _others(sender_ids: Sequence[str], traces: Traces) -> tuple[str, ...]:
    return tuple(sender_id for sender_id in sender_ids if sender_id != traces.user_id)


def _reply_without(reply: ReplyInfo | None, traces: Traces, gone: Container[str]) -> ReplyInfo | None:
    if reply is None:
        return None
    theirs = reply.sender_id == traces.user_id or _kept(reply.message_id, traces, gone) != reply.message_id
    return replace(reply, message_id=None, sender_id=None) if theirs else reply


_LONGEST_NAME = 40
"""A text without a space in the facts of an evolution, up to this length, is an identifier."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Removes a person from the memories of a scope.

    `texts_of`: the person's texts in a message, None if the message is not theirs. `edited_at`: when the person last
    changed it. `deleted`: deleted sources that may have been theirs. `others`: sources that are messages of other
    people. `whole`: the scope is the person's own. `emptied`: the scope is that of a room that is removed: what others
    said elsewhere stays. `shared`: the scope is that of a room in which the person spoke: without a source, a statement
    that repeats a passage counts as theirs.
    """

    traces: Traces
    texts_of: Callable[[Source], str | None]
    others: frozenset[Source] = frozenset()
    whole: bool = False
    emptied: bool = False
    shared: bool = False
    edited_at: Callable[[Source], datetime | None] = lambda _: None
    deleted: frozenset[Source] = frozenset()

    def theirs(self, memory: Memory) -> bool:
        """Return True if the person supports it."""
        return self.whole or any(map(self.supports, memory.sources))

    def supports(self, source: Source) -> bool:
        """Return True if the message is the person's, or may have been."""
        return source in self.deleted or self.texts_of(source) is not None

    def rests_on_them_alone(self, memory: Memory) -> bool:
        """Return True if nobody else supports it (an assistant alone does not count), if it has no messages and nobody
        else said it, or if the person changed a message since, so that their share of the words is unknown."""
        if self.whole:
            return True
        if self.emptied:
            return not self.others.intersection(memory.sources)
        if not memory.sources:
            return set(memory.said_by) == {self.traces.user_id}
        if not self.theirs(memory):
            return False
        return not self.others.intersection(memory.sources) or any(self._changed_since(memory))

    def _changed_since(self, memory: Memory) -> Iterable[bool]:
        times = (self.edited_at(source) for source in memory.sources)
        return (at is not None and at > memory.updated_at for at in times)

    def version(self, memory: Memory) -> Memory:
        """Return the version without the person; redacted entirely if it rests on them alone."""
        if self.rests_on_them_alone(memory):
            return replace(
                memory, statement=mark(memory.statement), tags=(), category="", change_summary="", doubtful="",
                sources=(), **self._people(memory),
                evidence=self._evidence(memory), shared_with=tuple(map(self.traces.redact_name, memory.shared_with)),
                made_by=self.traces.redact_name(memory.made_by),
            )  # fmt: skip
        change = self._change(memory)
        return replace(
            memory,
            statement=change(memory.statement),
            tags=tuple(dict.fromkeys(map(change, memory.tags))),
            category=change(memory.category),
            change_summary=change(memory.change_summary),
            doubtful=change(memory.doubtful),
            **self._people(memory),
            made_by=self.traces.redact_name(memory.made_by),
            sources=tuple(source for source in memory.sources if not self.supports(source)),
            evidence=self._evidence(memory),
            shared_with=tuple(map(self.traces.redact_name, memory.shared_with)),
        )

    def _people(self, memory: Memory) -> dict[str, Any]:
        """Return whom it is about and who said it, without the person."""
        others = tuple(person for person in memory.said_by if not self.traces.named_in(person))
        return {"owner": self.traces.redact_name(memory.owner), "said_by": others}

    def _evidence(self, memory: Memory) -> tuple[EvidenceRoom, ...]:
        """Return the evidence, which stays although messages go: without it the memory would be for all."""
        return evidence_of(
            (), (replace(room, room_id=self.traces.redact_name(room.room_id)) for room in memory.evidence)
        )

    def statements(self, memories: Iterable[Memory]) -> dict[str, str]:
        """Return the changed statements, old to new, since entries of the log contain the earlier statement."""
        both = ((memory.statement, self.version(memory).statement) for memory in memories)
        return {before: after for before, after in both if before != after}

    def entry(self, change: Change, statements: Mapping[str, str]) -> Change:
        """Return an entry of the log without the person."""
        alone, redact = self.rests_on_them_alone(change.memory), self._change(change.memory)
        return replace(
            change,
            memory=self.version(change.memory),
            old_statement=self._before(change, statements),
            reason="" if alone else redact(change.reason),
            actor=self.traces.redact_name(change.actor),
        )

    def _before(self, change: Change, statements: Mapping[str, str]) -> str | None:
        statement = change.old_statement
        if statement is None:
            return None
        if self.whole or (self.emptied and self.rests_on_them_alone(change.memory)):
            return mark(statement)
        return statements.get(statement, self._others(change.memory)(statement))

    def _change(self, memory: Memory) -> Callable[[str], str]:
        """Return the rewrite for a memory the person only mentioned: names stay, since they may be another person's."""
        if not self.theirs(memory):
            return self._others(memory)
        texts = [text for text in map(self.texts_of, memory.sources) if text]

        def change(text: str) -> str:
            return self.traces.redact(without_copies(text, texts), and_names=True)

        return change

    def _others(self, memory: Memory) -> Callable[[str], str]:
        """Return the rewrite for a memory that rests on others: equal words alone stay."""
        return self.traces.redact if self.shared and not memory.sources else self.traces.redact_others


def record_without(evolution: Evolution, traces: Traces, *, touched: bool) -> Evolution:
    """Return the record of an evolution without the person. `touched`: it read something that they said; then the
    model's texts are removed, and of the facts every text that is not an identifier."""
    if touched:
        return replace(
            evolution, raw_answer="", quarantined=(), error="", facts=each_text(evolution.facts, _names_only(traces))
        )
    return replace(
        evolution,
        raw_answer=traces.redact_others(evolution.raw_answer),
        quarantined=tuple(
            (traces.redact_others(line), traces.redact_others(why)) for line, why in evolution.quarantined
        ),
        error=traces.redact_others(evolution.error),
        facts=each_text(evolution.facts, traces.redact_others),
    )


def _names_only(traces: Traces) -> Callable[[str], str]:
    def change(text: str) -> str:
        is_name = text.isascii() and len(text) <= _LONGEST_NAME and not any(sign.isspace() for sign in text)
        return traces.redact_name(text) if is_name else mark(text)

    return change
