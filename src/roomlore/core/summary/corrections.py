"""Statements that a later one corrects or replaces: a summary keeps the later value, not the old one."""

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roomlore.core import lexicon
from roomlore.core.patterns import lazy_pattern
from roomlore.core.safety import forbids
from roomlore.core.text import HAN, asks, head, terms

_LONGEST = 200
"""Longer messages tell several things; what in them corrects or replaces what is not clear."""
_BACK = 40
"""Messages back in which what is corrected or replaced is looked for."""
_NAMES = 64
"""Speakers whose names are looked for, the most frequent."""
_ASSENTS = 4
"""The most terms that an assent to a place may have besides the place."""

Spot = tuple[int, tuple[int, int]]
"""The number of a text, and the span of it that was replaced."""

_UNABLE = lexicon.pattern("unable")
_TAKES_OVER = lexicon.alternatives("takes_over")
_MYSELF = lexicon.alternatives("myself")
_OWN_PLACE = lexicon.pattern("own_place")
_THEIR_PLACE = lexicon.alternatives("their_place")
_ASSENT = lexicon.pattern("settling")
_DAY = lexicon.pattern("near_day")
_ALLOWS = lexicon.pattern("allows")
_TAKES_BACK = lexicon.pattern("takes_back")
_NONE = lexicon.pattern("none_of_it")


@dataclass(frozen=True, slots=True)
class _Told:
    place: int
    speaker: str
    text: str
    terms: frozenset[str]


def replaced(texts: Sequence[str], speakers: Sequence[str], *, since: int = 0) -> Iterator[tuple[int, list[Spot]]]:
    """Yield each text at `since` or after it that replaces something, with what it replaces, in order of time.

    `speakers`: who says each text; '' if it is not known. A person is replaced by one who steps in after the first said
    that they cannot, a host by another place for the same day that somebody agrees to, and what was allowed by a later
    order not to that takes it back.
    """
    names = _names(speakers)
    # The home of a speaker, and a speaker who does something instead of another.
    hosts = re.compile(rf"(?P<name>{names}){_THEIR_PLACE}") if names else None
    stands_in = re.compile(rf"(?P<name>{names or '(?!)'}|{_MYSELF}){_TAKES_OVER}")
    last: deque[_Told] = deque(maxlen=_BACK)
    for place, (text, speaker) in enumerate(zip(texts, speakers, strict=True)):
        if not text.strip() or len(text) > _LONGEST:
            continue
        folded = head(text)
        if len(folded) != len(text) or asks(folded):  # folded letters of another length would move the spans
            continue
        spoken = _Told(place, head(speaker).strip(), folded, frozenset(term for term in terms(text) if len(term) > 1))
        if place >= since and last:
            spots = [*_persons(spoken, last, stands_in), *_hosts(spoken, last, hosts), *_allowed(spoken, last)]
            if spots:
                yield place, spots
        last.append(spoken)


def _names(speakers: Sequence[str]) -> str:
    """Return a pattern of the speakers' names, longer ones first; '' without any."""
    speakers_counted = Counter(head(speaker).strip() for speaker in speakers)
    common = [name for name, _ in speakers_counted.most_common(_NAMES) if len(name) > 1]
    return "|".join(re.escape(name) for name in sorted(common, key=len, reverse=True))


def _persons(spoken: _Told, last: Sequence[_Told], stands_in: re.Pattern[str]) -> list[Spot]:
    match = stands_in.search(spoken.text)
    if not match:
        return []
    name = match["name"] if match["name"] not in ("i", "我") else spoken.speaker
    unable = next((old for old in reversed(last) if old.speaker not in ("", name) and _UNABLE.search(old.text)), None)
    if unable is None or len(unable.speaker) < 2:
        return []
    for old in reversed(last):
        if old.place < unable.place and (at := old.text.find(unable.speaker)) >= 0:
            return [(old.place, (at, at + len(unable.speaker)))]
    return []


def _hosts(spoken: _Told, last: Sequence[_Told], hosts: re.Pattern[str] | None) -> list[Spot]:
    """Return the places of other hosts for a day, if a text agrees to one for it."""
    here, days = _host(spoken, hosts), set(_DAY.findall(spoken.text))
    if here is None or not days or not _ASSENT.search(spoken.text):
        return []
    left = _DAY.sub(" ", _ASSENT.sub(" ", spoken.text[: here[1][0]] + " " + spoken.text[here[1][1] :]))
    if len(terms(left)) > _ASSENTS:
        return []
    named = [(old, host) for old in last if (host := _host(old, hosts))]
    if all(host != here[0] for _, (host, _) in named):
        return []
    return [(old.place, span) for old, (host, span) in named if host != here[0] and days & set(_DAY.findall(old.text))]


def _host(spoken: _Told, hosts: re.Pattern[str] | None) -> tuple[str, tuple[int, int]] | None:
    """Return whose place a text names, and the span of it."""
    if own := _OWN_PLACE.search(spoken.text):
        return (spoken.speaker, own.span()) if spoken.speaker else None
    match = hosts.search(spoken.text) if hosts else None
    return (match["name"], match.span()) if match else None


def _allowed(spoken: _Told, last: Sequence[_Told]) -> list[Spot]:
    """Return the texts that allow what a text forbids and takes back."""
    if not (_TAKES_BACK.search(spoken.text) and (forbids(spoken.text) or _NONE.search(spoken.text))):
        return []
    denied = frozenset(
        term for match in _NONE.finditer(spoken.text) for term in terms(spoken.text[match.end() : match.end() + 24])[:4]
    )
    return [
        (old.place, (0, len(old.text)))
        for old in last
        if denied & old.terms and _ALLOWS.search(old.text) and not _NONE.search(old.text)
    ]


GONE = "[...]"
"""The mark in place of a value that was corrected."""
_NEAR = 60
"""The same for a correction that does not name its subject."""
_ELLIPTIC = 4.5
"""The most words of a correction that does not name its subject."""
_ASKED_BACK = 20
"""Messages in which a question for another value is answered."""

_NUMERAL = "一二两兩三四五六七八九十廿百千"
# A value that a later one may replace, by its kind: a day, a time, a numbered place, an amount.
_VALUE = lazy_pattern(
    rf"(?P<day>{lexicon.alternatives('value_day')})|(?P<clock>{lexicon.alternatives('value_clock')})"
    rf"|(?P<numbered>\b{lexicon.forms('numbered_place', 'en')} \d{{1,4}}[a-z]?\b)"
    rf"|(?P<amount>(?<![A-Za-z\d.])\d{{1,12}}(?:[.,]\d{{1,6}})?(?: ?%|万\d?| ?[a-z]{{1,12}}\b(?!')| ?[{HAN}]|(?![\d:]))"
    rf"|[{_NUMERAL}]{{1,4}}(?:[号號]{lexicon.forms('numbered_place', 'zh')}|{lexicon.forms('measure', 'zh')}))",
    re.IGNORECASE,
)
# The number of an amount; what is left is its unit.
_AMOUNT_UNIT = lazy_pattern(rf"[\d.,\s]+|[{_NUMERAL}]+|半\Z")
# A day of a month, unlike one of a week.
_DATE = lazy_pattern(r"\d|[号號日月]")
# A value after one of these is the old one.
_DENIED = lazy_pattern(rf"{lexicon.alternatives('old_value')}\s?\Z", re.IGNORECASE)
# A value before one of these cannot be had any longer.
_UNUSABLE = lexicon.pattern("unusable", re.IGNORECASE)
# A question for another value.
_ASKS_CHANGE = lexicon.pattern("asks_change", re.IGNORECASE)
# Before the old value, and between the old one and the new.
_FROM, _TO = (
    lazy_pattern(rf"{lexicon.alternatives('value_from')}\s?\Z", re.IGNORECASE),
    lazy_pattern(rf"\s?{lexicon.alternatives('value_to')}"),
)
# What says by itself that a value changes, and what says so beside the same subject.
_CHANGES = lexicon.pattern("changes_value", re.IGNORECASE)
_SETTLES = lexicon.pattern("settles_value", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Value:
    kind: str
    text: str
    span: tuple[int, int]
    denied: bool


@dataclass(frozen=True, slots=True)
class _Read:
    """A short message: its values, and the terms of the rest; a Chinese one has about two for each word."""

    place: int
    values: tuple[_Value, ...]
    terms: frozenset[str]

    @property
    def kinds(self) -> set[str]:
        return {value.kind for value in self.values}

    @property
    def size(self) -> float:
        return sum(1.0 if term.isascii() else 0.5 for term in self.terms)


@dataclass(frozen=True, slots=True)
class Corrected:
    """Texts without the values that were corrected; `corrections`: the places of those that correct."""

    texts: list[str]
    corrections: frozenset[int]


def corrected(texts: Sequence[str], speakers: Sequence[str] = (), *, since: int = 0) -> Corrected:
    """Return the texts in order of time without the values that one at `since` or after it corrects.

    A correction has a sign of change and a value of the same kind as an earlier one: a day, a time, a numbered place,
    or an amount of one unit. It names the subject, or has none and follows soon, or it answers a question that asks for
    that value. `speakers`: who says each text; with them, persons, hosts and permissions that were replaced are left
    out too.
    """
    gone: dict[int, set[tuple[int, int]]] = {}
    correcting = set[int]()
    both = (_values_corrected(texts, since), replaced(texts, speakers, since=since) if speakers else ())
    for place, old in (spot for each in both for spot in each):
        correcting.add(place)
        for where, span in old:
            gone.setdefault(where, set()).add(span)
    kept = [_without(text, gone[place]) if place in gone else text for place, text in enumerate(texts)]
    return Corrected(kept, frozenset(correcting))


def _values_corrected(texts: Sequence[str], since: int) -> Iterator[tuple[int, list[Spot]]]:
    """Yield each text at `since` or after it that corrects values, with those that it corrects."""
    last: deque[_Read] = deque(maxlen=_BACK)
    questions: deque[_Read] = deque(maxlen=_ASKED_BACK)
    for place, text in enumerate(texts):
        read = _read(place, text)
        if read is None:
            continue
        if asks(head(text)):
            if _ASKS_CHANGE.search(text):
                questions.append(read)
            continue
        if place >= since and (old := _replaced(read, text, last, questions)):
            yield place, old
        last.append(read)


def _read(place: int, text: str) -> _Read | None:
    """Return a short message that has a value."""
    if not text.strip() or len(text) > _LONGEST:
        return None
    values = []
    rest, at = [], 0
    for match in _VALUE.finditer(text):
        kind = match.lastgroup or ""
        if kind == "numbered":
            kind = match[0].split()[0].casefold()
        if kind == "amount":
            kind = _AMOUNT_UNIT.sub("", match[0]).casefold().rstrip("s") or "number"
        values.append(_Value(kind, match[0].casefold().replace(" ", ""), match.span(), _is_denied(text, match.span())))
        rest.append(text[at : match.start()])
        at = match.end()
    if not values:
        return None
    left = _SETTLES.sub(" ", _CHANGES.sub(" ", " ".join((*rest, text[at:]))))
    return _Read(place, tuple(values), frozenset(term for term in terms(left) if len(term) > 1))


def _is_denied(text: str, span: tuple[int, int]) -> bool:
    """Return True if the text says that a value of it is the old one."""
    before = max(0, span[0] - 12), span[0]
    if _DENIED.search(text, *before) or _UNUSABLE.match(text, span[1]):
        return True
    return bool(_FROM.search(text, *before) and _TO.match(text, span[1]))


def _replaced(read: _Read, text: str, last: Sequence[_Read], questions: Sequence[_Read]) -> list[Spot]:
    """Return the places and spans of the earlier values that this text corrects."""
    request = _granted(read, questions)
    changes = bool(_CHANGES.search(text)) or any(value.denied for value in read.values) or request is not None
    if request:
        last = [earlier_read for earlier_read in last if earlier_read.place < request.place]
    if not (changes or _SETTLES.search(text)):
        return []
    spots = []
    for kind in {value.kind for value in read.values}:
        new = {value.text for value in read.values if value.kind == kind and not value.denied}
        denied = {value.text for value in read.values if value.kind == kind and value.denied}
        target = _target(kind, new, denied, read, last, changes=changes) if new else None
        old = denied | ({value.text for value in target.values if value.kind == kind} if target else set())
        first = target.place if target else read.place
        for earlier_read in last:
            if earlier_read.place >= first:
                spans = [value.span for value in earlier_read.values if value.kind == kind and value.text in old - new]
                spots += [(earlier_read.place, span) for span in spans]
    return spots


def _granted(read: _Read, questions: Sequence[_Read]) -> _Read | None:
    """Return the last question that asks to change to a value of this text."""
    given = {(value.kind, value.text) for value in read.values if not value.denied}
    return next(
        (
            question
            for question in reversed(questions)
            if read.place - question.place <= _ASKED_BACK
            and any(
                kind == value.kind and (value.text.endswith(text) or text.endswith(value.text))
                for value in question.values
                for kind, text in given
            )
        ),
        None,
    )


def _target(
    kind: str, new: set[str], denied: set[str], read: _Read, last: Sequence[_Read], *, changes: bool
) -> _Read | None:
    """Return the last message with another value of this kind that is about the same, else the last with one if the
    correction names no subject."""
    others = []
    for value_read in reversed(last):
        held = {value.text for value in value_read.values if value.kind == kind and not value.denied}
        if held and not held & new:
            if held & denied or value_read.terms & read.terms:
                return value_read
            if read.place - value_read.place <= _NEAR:
                others.append(value_read)
    bare = read.size <= _ELLIPTIC and (changes or kind not in ("day", "clock", "number"))
    dated = any(_DATE.search(text) for text in new)

    def nearness(candidate: _Read) -> tuple[bool, int, int]:
        alike = any(bool(_DATE.search(value.text)) == dated for value in candidate.values if value.kind == kind)
        return alike, len(candidate.kinds & read.kinds), candidate.place

    return max(others, key=nearness) if others and bare else None


def _without(text: str, spans: set[tuple[int, int]]) -> str:
    """Return the text with a mark in place of the values, '' if nothing else is left."""
    text_left, at = "", 0
    for start, end in sorted(spans):
        between = text[at:start]
        text_left = text_left + between + GONE if between.strip() or not text_left.endswith(GONE) else text_left
        at = end
    text_left += text[at:]
    return text_left if terms(text_left) else ""
