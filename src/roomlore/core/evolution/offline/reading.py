"""Messages as the sentences people wrote themselves, each with the words by which two of them can be compared."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from functools import lru_cache

from roomlore.core.dialogue import sounds_like_agent
from roomlore.core.evolution.offline.general_words import WEEKDAY
from roomlore.core.memory.reading import name_of, own_words
from roomlore.core.models import Role, StoredMessage
from roomlore.core.quotes import split_quotes
from roomlore.core.stop_words import CHINESE, ENGLISH
from roomlore.core.summary.units import prose
from roomlore.core.text import HAN, fold, segment, singular, stem

_MOST_CHARACTERS = 2_000
_MOST_SENTENCES = 12
_MOST_KEYS = 24
_LONGEST_WORD = 40
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0]"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
)
URL = re.compile(rf"https?://[^\s<>\"'|`{HAN}，。；、！？）】」]+")
_MENTION = re.compile(r"&[a-z]{2,8};|:[a-z][a-z0-9_+-]{1,40}:|<[@#!][^<>\s]{1,80}>|@[\w.-]{1,60}")
_MARKED = re.compile("[@<&:]")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY = re.compile(
    r"(?<![a-z])(?P<en>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sun)days?(?![a-z])"
    r"|(?:每?个?个?(?:周|週|星期|礼拜|禮拜))(?P<zh>[一二三四五六日天末])(?![年间])"
)
_CHINESE_DAYS = dict(zip("一二三四五六日天末", (0, 1, 2, 3, 4, 5, 6, 6, 7), strict=True))
_WORD = re.compile(
    rf"(?P<latin>[a-z0-9\u00c0-\u024f](?:[a-z0-9_\u00c0-\u024f]|['’.+#/&:-](?=[a-z0-9\u00c0-\u024f]))*(?:\+\+|#)?)|(?P<han>[{HAN}]+)"
)
_NO_BEGINNING = frozenset("一几幾每两兩这這那哪我你您他她它很最没沒就都也们們的了着著吗嗎呢吧啊呀")
_NO_END = frozenset("的了着著过過吗嗎呢吧啊呀嘛啦我你您他她它这這那很就都也是")
_CONTRACTION = re.compile(r"['’](?:s|re|ve|ll|d|m|t)$")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Line:
    """A sentence somebody wrote. `number`: its place among all. `handle`: of its message. `day`: in the group's zone.
    `fresh`: of a message that no evolution has read before. `spans`: where each key stands in `folded`."""

    number: int
    handle: str
    sender: str
    name: str
    day: date
    fresh: bool
    text: str
    folded: str
    spans: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Reading:
    """`lines`: in order of time. `days`: on which anything was said that could be read, in order."""

    lines: tuple[Line, ...]
    days: tuple[date, ...]


def readable(message: StoredMessage) -> bool:
    """Whether a person wrote it."""
    person = message.role is Role.USER and not message.has_tool_calls
    return person and not sounds_like_agent(message.sender_name or message.sender_id)


def plain(text: str) -> str:
    """Without what cannot be seen, on one line."""
    return " ".join(_INVISIBLE.sub("", text).split())


def own_text(message: StoredMessage) -> str:
    """What the sender wrote: nothing quoted, nothing injected."""
    parts = split_quotes(own_words(message)[:_MOST_CHARACTERS])
    return "\n".join(part for part in parts if isinstance(part, str))


def keys_of(folded: str) -> dict[str, tuple[int, int]]:
    """The words of a sentence that carry meaning, each with its first place. A weekday is one in either language."""
    found: dict[str, tuple[int, int]] = {}
    rest = _blanked(URL, folded) if "://" in folded else folded
    rest = _blanked(_MENTION, rest) if _MARKED.search(rest) else rest
    for day in _WEEKDAY.finditer(rest):
        number = _CHINESE_DAYS[day["zh"]] if day["zh"] else _DAYS.index(day["en"][:3])
        found.setdefault(f"{WEEKDAY}{number}", day.span())
    rest = _blanked(_WEEKDAY, rest) if found else rest
    for word in _WORD.finditer(rest):
        if word.lastgroup == "han":
            for key, span in _han(word[0], word.start()):
                found.setdefault(key, span)
        elif key := _latin(word[0]):
            found.setdefault(key, word.span())
        if len(found) >= _MOST_KEYS:
            break
    return found


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: " " * len(found[0]), text)


@lru_cache(maxsize=1 << 15)
def _latin(token: str) -> str:
    token = _CONTRACTION.sub("", token)
    bare = token.replace("-", "").replace("'", "").replace("’", "")
    if not 1 < len(bare) <= _LONGEST_WORD or bare.isdigit():
        return ""
    return "" if token in ENGLISH or bare in ENGLISH or singular(bare) in ENGLISH else stem(bare)


def _han(run: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Words of two characters and more; of a longer one, which a segmenter cuts now here, now there, its pairs too."""
    for word in segment(run):
        if _carries(word):
            yield word, (at, at + len(word))
            for start in range(at, at + len(word) - 1) if len(word) > 2 else ():
                if _carries(part := word[start - at : start - at + 2]):
                    yield part, (start, start + 2)
        at += len(word)


@lru_cache(maxsize=1 << 15)
def _carries(word: str) -> bool:
    return len(word) > 1 and word not in CHINESE and word[0] not in _NO_BEGINNING and word[-1] not in _NO_END


def read(messages: Sequence[tuple[str, StoredMessage, bool]], *, zone: tzinfo, people: Mapping[str, str]) -> Reading:
    """`messages`: handle, message and whether it is fresh, in order of time."""
    kept = [one for one in messages if readable(one[1])]
    called = {name for _, one, _ in kept for name in (one.sender_id, one.sender_name, people.get(one.sender_id, ""))}
    names = frozenset(part for name in called for part in _name_parts(name))
    lines: list[Line] = []
    for one in kept:
        lines.extend(_lines(*one, first=len(lines), zone=zone, people=people, names=names))
    return Reading(tuple(lines), tuple(sorted({line.day for line in lines})))


def _name_parts(name: str) -> Iterator[str]:
    yield from (stem(part) for part in re.split(r"[\s_|@.-]+", fold(name[:_LONGEST_WORD])) if len(part) > 1)


def _lines(
    handle: str,
    message: StoredMessage,
    fresh: bool,
    *,
    first: int,
    zone: tzinfo,
    people: Mapping[str, str],
    names: frozenset[str],
) -> Iterator[Line]:
    name, day = name_of(message, people), message.at.astimezone(zone).date()
    for number, sentence in enumerate(prose(own_text(message))[:_MOST_SENTENCES], start=first):
        text = plain(sentence)
        folded = fold(text)
        yield Line(
            number=number,
            handle=handle,
            sender=message.sender_id,
            name=name,
            day=day,
            fresh=fresh,
            text=text,
            folded=folded,
            spans={key: span for key, span in keys_of(folded).items() if key not in names},
        )
