"""Statements without a number that a later one replaces: who does something, at whose place, what is allowed."""

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roomlore.core.safety import forbids
from roomlore.core.text import asks, head, terms

_LONGEST = 200
"""Longer messages tell several things; what in them replaces what is not clear."""
_BACK = 40
"""Messages back in which what is replaced is looked for."""
_NAMES = 64
"""Speakers whose names are looked for, the most frequent."""
_ASSENTS = 4
"""The most terms that an assent to a place may have besides the place."""

Spot = tuple[int, tuple[int, int]]
"""The number of a text, and the span of it that was replaced."""

_UNABLE = re.compile(
    r"\b(?:can(?:no|['’])t(?! (?:wait|believe|complain))|won['’]t|not able to|unable to|will not)\b"
    r"|\b(?:sick|ill|off work|injured)\b|\bhave to (?:drop|pull) out\b"
    r"|(?<![少免大])不了|没法|沒法|无法|無法|请假|請假|[病伤傷]了|发烧|發燒|[没沒]空|有事"
)
_TAKES_OVER = (
    r"(?:['’]ll|['’]s| will| can| is)? ?(?:cover(?:s|ing)?\b|steps? in\b|stepping in\b|fill(?:s|ing)? in\b"
    r"|takes? over\b|taking over\b|stand(?:s|ing)? in\b|do(?:es|ing)? (?:it|that|this) instead\b|instead\b|swaps?\b)"
    r"|[来來去]?(?:顶|頂|替(?!补队)|代(?:班|替|[跑打值做]|一下)|接[手替班]|[补補]上|上吧)"
)
_MYSELF = r"(?:\bi|我)"
_OWN_PLACE = re.compile(r"\b(?:my|our) (?:place|house|flat|home|apartment|garden)\b|\bat mine\b|[我咱][们們]?家")
_THEIR_PLACE = r"(?:['’]s(?: (?:place|house|flat|home|apartment|garden))?(?=[\s.,!]|$)|家)"
_ASSENT = re.compile(
    r"\b(?:ok|okay|agreed|fine|good|great|deal|settled|then|so|sure|yes|see you)\b"
    r"|[好行][的吧啊呀]?|定了?|那就|可以|没问题|沒問題"
)
_DAY = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\btomorrow\b|\btonight\b|\bweekend\b"
    r"|(?:周|週|星期|[礼禮]拜)[一二三四五六日天末]|明[天晚]|今晚|[后後]天|\d{1,2}[号號]"
)
_ALLOWS = re.compile(
    r"\b(?:may|can|could|allowed to|ok(?:ay)? to|fine to|safe to|cleared to|good to)\b(?! not)"
    r"|(?<![不没沒])(?:可以|能|允[许許]|恢[复復])"
)
_TAKES_BACK = re.compile(
    r"\bwait\b|\bno[,.!]|\bno, |\bnot yet\b|\buntil then\b|\b(?:scratch|ignore|forget) that\b|\bcorrection\b"
    r"|\bmisread\b|\bmistake\b"
    r"|不[对對是]|等等|等一下|更正|[说說搞弄看][错錯]|先[别別不]|[还還]不[能行]|[别別]急"
)
_NONE = re.compile(r"\b(?:no|not|never|don['’]t|nothing|without) |[别別不禁停忌]")


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
    hosts = re.compile(rf"(?P<name>{names}){_THEIR_PLACE}") if names else None
    stands_in = re.compile(rf"(?P<name>{names or '(?!)'}|{_MYSELF})(?:{_TAKES_OVER})")
    last: deque[_Told] = deque(maxlen=_BACK)
    for place, (text, speaker) in enumerate(zip(texts, speakers, strict=True)):
        if not text.strip() or len(text) > _LONGEST:
            continue
        folded = head(text)
        if len(folded) != len(text) or asks(folded):  # folded letters of another length would move the spans
            continue
        one = _Told(place, head(speaker).strip(), folded, frozenset(term for term in terms(text) if len(term) > 1))
        if place >= since and last:
            spots = [*_persons(one, last, stands_in), *_hosts(one, last, hosts), *_allowed(one, last)]
            if spots:
                yield place, spots
        last.append(one)


def _names(speakers: Sequence[str]) -> str:
    """Return a pattern of the speakers' names, longer ones first; '' without any."""
    told = Counter(head(speaker).strip() for speaker in speakers)
    common = [name for name, _ in told.most_common(_NAMES) if len(name) > 1]
    return "|".join(re.escape(name) for name in sorted(common, key=len, reverse=True))


def _persons(one: _Told, last: Sequence[_Told], stands_in: re.Pattern[str]) -> list[Spot]:
    found = stands_in.search(one.text)
    if not found:
        return []
    name = found["name"] if found["name"] not in ("i", "我") else one.speaker
    unable = next((old for old in reversed(last) if old.speaker not in ("", name) and _UNABLE.search(old.text)), None)
    if unable is None or len(unable.speaker) < 2:
        return []
    for old in reversed(last):
        if old.place < unable.place and (at := old.text.find(unable.speaker)) >= 0:
            return [(old.place, (at, at + len(unable.speaker)))]
    return []


def _hosts(one: _Told, last: Sequence[_Told], hosts: re.Pattern[str] | None) -> list[Spot]:
    """Return the places of other hosts for a day, if a text agrees to one for it."""
    here, days = _host(one, hosts), set(_DAY.findall(one.text))
    if here is None or not days or not _ASSENT.search(one.text):
        return []
    left = _DAY.sub(" ", _ASSENT.sub(" ", one.text[: here[1][0]] + " " + one.text[here[1][1] :]))
    if len(terms(left)) > _ASSENTS:
        return []
    named = [(old, host) for old in last if (host := _host(old, hosts))]
    if all(host != here[0] for _, (host, _) in named):
        return []
    return [(old.place, span) for old, (host, span) in named if host != here[0] and days & set(_DAY.findall(old.text))]


def _host(one: _Told, hosts: re.Pattern[str] | None) -> tuple[str, tuple[int, int]] | None:
    """Return whose place a text names, and the span of it."""
    if own := _OWN_PLACE.search(one.text):
        return (one.speaker, own.span()) if one.speaker else None
    found = hosts.search(one.text) if hosts else None
    return (found["name"], found.span()) if found else None


def _allowed(one: _Told, last: Sequence[_Told]) -> list[Spot]:
    """Return the texts that allow what a text forbids and takes back."""
    if not (_TAKES_BACK.search(one.text) and (forbids(one.text) or _NONE.search(one.text))):
        return []
    denied = frozenset(
        term for found in _NONE.finditer(one.text) for term in terms(one.text[found.end() : found.end() + 24])[:4]
    )
    return [
        (old.place, (0, len(old.text)))
        for old in last
        if denied & old.terms and _ALLOWS.search(old.text) and not _NONE.search(old.text)
    ]
