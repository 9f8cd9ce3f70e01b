"""The messages that people wrote, as lines with their content words, and how alike two sentences are."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from functools import lru_cache

from roomlore.core import lexicon
from roomlore.core.memory.reading import name_of, own_words
from roomlore.core.mentions import sounds_like_agent, split_quotes, with_names
from roomlore.core.models import Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.summary.sentences import prose
from roomlore.core.text import CHINESE, ENGLISH, HAN, fold, rarity, segment, singular, stem, terms

WEEKDAY = "@"
"""The prefix of a weekday's key."""

GENERAL = ENGLISH | CHINESE | lexicon.words("general_word", "zh") | {*map(stem, lexicon.words("general_word", "en"))}


def is_topical(key: str) -> bool:
    """Return True if the word can be a topic, and is not just a number or a point of time."""
    return not (key in GENERAL or key.startswith(WEEKDAY) or key[:1].isdigit())


_MAX_CHARACTERS = 2_000
_MAX_SENTENCES = 12
_MAX_KEYS = 24
_LONGEST_WORD = 40
# Characters that nobody sees; line ends and tabs stay.
_INVISIBLE = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0]"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
)
# An address up to a blank or to Chinese text.
URL = lazy_pattern(rf"https?://[^\s<>\"'|`{HAN}，。；、！？）】」]+")
# A mention, an emoji in colons or an entity of HTML.
_MENTION = lazy_pattern(r"&[a-z]{2,8};|:[a-z][a-z0-9_+-]{1,40}:|<[@#!][^<>\s]{1,80}>|@[\w.-]{1,60}")
# A character without which no mention can be there: looking for it is cheap.
_MARKED = lazy_pattern("[@<&:]")
_DAYS = tuple(lexicon.values("weekdays", "en"))
# A weekday, in the plural too; sunny and 一周年 are none.
_WEEKDAY = lazy_pattern(
    rf"(?<![a-z])(?P<en>{lexicon.forms('weekday', 'en')})s?(?![a-z])"
    rf"|(?:每?个?个?{lexicon.forms('week', 'zh')})(?P<zh>[一二三四五六日天末])(?![年间])"
)
_CHINESE_DAYS = dict(zip("一二三四五六日天末", (0, 1, 2, 3, 4, 5, 6, 6, 7), strict=True))
# A word, with the marks inside such as c++ and node.js, or a run of Chinese.
_WORD = lazy_pattern(
    rf"(?P<latin>[a-z0-9\u00c0-\u024f](?:[a-z0-9_\u00c0-\u024f]|['’.+#/&:-](?=[a-z0-9\u00c0-\u024f]))*(?:\+\+|#)?)"
    rf"|(?P<han>[{HAN}]+)"
)
_NO_BEGINNING = frozenset("一几幾每两兩这這那哪我你您他她它很最没沒就都也们們的了着著吗嗎呢吧啊呀")
_NO_END = frozenset("的了着著过過吗嗎呢吧啊呀嘛啦我你您他她它这這那很就都也是")
# The end of he's and don't.
_CONTRACTION = lazy_pattern(r"['’](?:s|re|ve|ll|d|m|t)$")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Line:
    """A message of a person. `number`: its place among all. `on`: its day in the group's zone. `fresh`: True if no
    evolution has read it before. `answers`: the id of the message it replies to. `keys`: its content words."""

    number: int
    handle: str
    message_id: str
    answers: str
    sender: str
    name: str
    at: datetime
    on: date
    fresh: bool
    text: str
    folded: str
    keys: frozenset[str]


def readable(message: StoredMessage) -> bool:
    """Return True if a person wrote it."""
    person = message.role is Role.USER and not message.has_tool_calls
    return person and not sounds_like_agent(message.sender_name or message.sender_id)


def visible_line(text: str) -> str:
    """Return the text on one line, without invisible characters."""
    return " ".join(_INVISIBLE.sub("", text).split())


def own_text(message: StoredMessage) -> str:
    """Return the sender's own text, without quotations and injected blocks."""
    parts = split_quotes(own_words(message)[:_MAX_CHARACTERS])
    return "\n".join(part for part in parts if isinstance(part, str))


def keys_of(folded: str) -> dict[str, tuple[int, int]]:
    """Return the meaningful words of a sentence, each with its first position. A weekday has the same key in both
    languages."""
    places: dict[str, tuple[int, int]] = {}
    rest = _blanked(URL, folded) if "://" in folded else folded
    rest = _blanked(_MENTION, rest) if _MARKED.search(rest) else rest
    for day in _WEEKDAY.finditer(rest):
        number = _CHINESE_DAYS[day["zh"]] if day["zh"] else _DAYS.index(day["en"][:3])
        places.setdefault(f"{WEEKDAY}{number}", day.span())
    rest = _blanked(_WEEKDAY, rest) if places else rest
    for word in _WORD.finditer(rest):
        if word.lastgroup == "han":
            for key, span in _han(word[0], word.start()):
                places.setdefault(key, span)
        elif key := _latin(word[0]):
            places.setdefault(key, word.span())
        if len(places) >= _MAX_KEYS:
            break
    return places


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: " " * len(match[0]), text)


@lru_cache(maxsize=1 << 15)
def _latin(token: str) -> str:
    token = _CONTRACTION.sub("", token)
    bare = token.replace("-", "").replace("'", "").replace("’", "")
    if not 1 < len(bare) <= _LONGEST_WORD or bare.isdigit():
        return ""
    return "" if token in ENGLISH or bare in ENGLISH or singular(bare) in ENGLISH else stem(bare)


def _han(run: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield words of two or more characters; of a longer word, which a segmenter cuts inconsistently, its pairs too."""
    for word in segment(run):
        if _is_content_word(word):
            yield word, (at, at + len(word))
            for start in range(at, at + len(word) - 1) if len(word) > 2 else ():
                if _is_content_word(part := word[start - at : start - at + 2]):
                    yield part, (start, start + 2)
        at += len(word)


@lru_cache(maxsize=1 << 15)
def _is_content_word(word: str) -> bool:
    return len(word) > 1 and word not in CHINESE and word[0] not in _NO_BEGINNING and word[-1] not in _NO_END


def read(
    messages: Sequence[tuple[str, StoredMessage, bool]], *, zone: tzinfo, people: Mapping[str, str]
) -> tuple[Line, ...]:
    """Read messages. `messages`: handle, message and True if it is fresh, in order of time."""
    kept = [message for message in messages if readable(message[1])]
    return tuple(_line(number, *pair, zone=zone, people=people) for number, pair in enumerate(kept))


def _line(
    number: int, handle: str, message: StoredMessage, fresh: bool, *, zone: tzinfo, people: Mapping[str, str]
) -> Line:
    shown_text = with_names(own_text(message), people, message.mentions)
    text = visible_line(" ".join(prose(shown_text)[:_MAX_SENTENCES]))
    folded = fold(text)
    return Line(
        number=number,
        handle=handle,
        message_id=message.id,
        answers=message.reply_to or "",
        sender=message.sender_id,
        name=visible_line(name_of(message, people)),
        at=message.at,
        on=message.at.astimezone(zone).date(),
        fresh=fresh,
        text=text,
        folded=folded,
        keys=frozenset(keys_of(folded)),
    )


ALIKE = 0.5
"""Least share of common words of two sentences that say the same."""
CONTAINED, MAX_LONGER = 0.85, 3.0
"""Or the least share of a sentence that another contains, and the most times longer the other may be."""
_FEW = 100
_NEGATED = lexicon.pattern("negated")
_REMINDER = lexicon.pattern("reminder")
# A number in figures, or in words before what it counts.
_NUMBER = lazy_pattern(
    r"\d+(?:[.:]\d+)*"
    r"|(?<![一二两兩三四五六七八九十百千万半])[一二两兩三四五六七八九十百千万半]++(?=[点點号號元块塊個个次天周月年岁歲层層楼樓分])"
)


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence with its terms. `details`: numbers and weekdays. `negated`: it contains a denial or says that
    something changed."""

    terms: frozenset[str]
    details: frozenset[str]
    negated: bool

    @classmethod
    def of(cls, text: str, keys: Iterable[str] | None = None) -> "Wording":
        """Build from a text. `keys`: of the text, if known."""
        folded = fold(text)
        days = {key for key in (keys_of(folded) if keys is None else keys) if key.startswith(WEEKDAY)}
        details = frozenset(days.union(_NUMBER.findall(folded)))
        return cls(frozenset(terms(text)), details, bool(_NEGATED.search(_REMINDER.sub("", folded))))

    def allows(self, other: "Wording") -> bool:
        """Return True if the other one has all its details and the same polarity."""
        return self.negated == other.negated and self.details <= other.details


class TermWeights(dict[str, float]):
    """Rarity of terms among some wordings, as in BM25; computed on first use. Among few wordings no term counts as
    common, since repetition is what is looked for."""

    def __init__(self, wordings: Iterable[Wording]) -> None:
        super().__init__()
        self._counts = Counter[str]()
        self._all = 0
        for wording in wordings:
            self._counts.update(wording.terms)
            self._all += 1

    def __missing__(self, term: str) -> float:
        self[term] = weight = rarity(self._counts[term], max(self._all, _FEW))
        return weight

    def total(self, words: Iterable[str]) -> float:
        """Return the summed weight, independent of order."""
        return math.fsum([self[term] for term in words])

    def likeness(self, wording: Wording, other: Wording) -> float:
        """Return the share of all their terms that both have, in [0, 1]."""
        every = self.total(wording.terms | other.terms)
        return self.total(wording.terms & other.terms) / every if every else 0.0

    def share(self, part: Wording, whole: Wording) -> float:
        """Return the share of a part's terms that the whole has, in [0, 1]."""
        size = self.total(part.terms)
        return self.total(part.terms & whole.terms) / size if size else 0.0

    def says(self, wording: Wording, other: Wording) -> bool:
        """Return True if the other one says what was said."""
        if not wording.allows(other):
            return False
        short = self.total(other.terms) <= MAX_LONGER * self.total(wording.terms)
        return self.likeness(wording, other) >= ALIKE or (short and self.share(wording, other) >= CONTAINED)
