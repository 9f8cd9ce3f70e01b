"""Persons, hosts and permissions that a later message replaces: a summary keeps the later one."""

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roomlore.core import lexicon
from roomlore.core.safety import forbids
from roomlore.core.text import asks, head, terms

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
