"""The telling sentences of a talk, and its title."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from roomlore.core.digest.talks import Talk, speaks_of_decision
from roomlore.core.models import Entry
from roomlore.core.summary.sentences import unsplit
from roomlore.core.text import fold, graphemes, keywords, rarity, truncate
from roomlore.core.transcript import spoken_text

_READ = 2_000
_MAX_SENTENCES = 6
"""The characters and the sentences of one message that are looked at."""
_ONCE = 0.1
"""The worth of a word that only one message of a talk uses, beside one that two do: the subject comes up again."""
_OPENING = 1.15
"""The factor of a talk's first message, which mostly names the subject."""
_SHORT = 3.0
_FEW = 20
"""Among fewer talks no word counts as common."""
_TELLING = 0.25
"""The least worth of a decision that names a talk, beside the most telling sentence."""
_TITLE = 60
_TITLE_WORDS = 3
_LEADING_NAME = re.compile(r"\A@?(?P<name>[^\s:：,，]{1,40})[:：,，]\s*(?=\S)")
_LEADING_MENTION = re.compile(r"\A@[^\s:：,，]{1,40}\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a message. `worth`: how much it tells of its talk."""

    entry: Entry
    text: str
    worth: float


class Words:
    """The rarity of words. `counts`: how many of the `texts` have each. `names`: of people, which tell nothing of a
    subject."""

    def __init__(self, counts: Mapping[str, int], *, texts: int, names: Iterable[str]) -> None:
        self._counts = counts
        self._texts = max(texts, _FEW)
        self.names = frozenset(map(fold, names))

    @classmethod
    def among(cls, talks: Sequence[Talk]) -> "Words":
        """Return the rarity of words among the talks of a span."""
        counts = Counter[str]()
        for talk in talks:
            counts.update({word for entry in talk.entries for word in entry.features.keywords})
        said = [entry.message for talk in talks for entry in talk.entries]
        names = [name for one in said for name in (one.sender_id, one.sender_name) if name]
        return cls(counts, texts=len(talks), names=names)

    def rarity(self, word: str) -> float:
        return rarity(self._counts.get(word, 0), self._texts)

    def weights(self, talk: Talk) -> dict[str, float]:
        """Return how much each word of the talk tells of it: often used in it, and rare elsewhere."""
        counts = Counter(word for entry in talk.entries for word in entry.features.keywords)
        return {
            word: self.rarity(word) * (math.log2(count) if count > 1 else _ONCE)
            for word, count in counts.items()
            if word not in self.names
        }


def sentences_of(talk: Talk, weights: Mapping[str, float], names: Collection[str]) -> list[Sentence]:
    """Return the sentences of the talk, the most telling first, without a name of `names` that they begin with."""
    found = []
    for place, entry in enumerate(talk.entries):
        for text in sentences_in(entry, names):
            known = keywords(text)
            worth = sum(weights.get(word, 0.0) for word in known)
            size = math.sqrt(_SHORT + len(known))
            found.append(Sentence(entry, text, (worth / size + 0.01) * (_OPENING if place == 0 else 1.0)))
    return sorted(found, key=lambda one: (-one.worth, one.entry.message.arrival))


def sentences_in(entry: Entry, names: Collection[str]) -> list[str]:
    """Return the first sentences of a message, each on one line, without a name that it begins by addressing."""
    found = [" ".join(one.split()) for one in unsplit(spoken_text(entry.message)[:_READ])[:_MAX_SENTENCES]]
    return [_plain(one, names) for one in found if one]


def _plain(text: str, names: Collection[str]) -> str:
    named = _LEADING_NAME.match(text)
    return text[named.end() :] if named and fold(named["name"]) in names else text


def title_of(talk: Talk, words: Words, best: Sequence[Sentence] | None = None) -> str:
    """Return the title of a talk: its decision, else its most telling sentence, shortened, and the words it often uses
    that this lacks.

    `best`: its sentences, the most telling first, if they are known.
    """
    weights = words.weights(talk)
    best = sentences_of(talk, weights, words.names) if best is None else best
    if not best:
        return ""
    first = _deciding(talk, best) or best[0]
    sentence = shortened(_LEADING_MENTION.sub("", first.text), _TITLE)
    again = Counter(word for entry in talk.entries for word in entry.features.keywords)
    telling = sorted((word for word in weights if again[word] > 1), key=lambda word: (-weights[word], word))
    held = set(keywords(sentence))
    missing = [word for word in telling[:_TITLE_WORDS] if word not in held and word not in sentence.casefold()]
    tail = ", ".join(truncate(word, 24) for word in missing)
    return f"{sentence} ({tail})" if tail else sentence


def _deciding(talk: Talk, best: Sequence[Sentence]) -> Sentence | None:
    """Return the sentence that says what the talk decided last; None for one that tells too little, such as "let's do
    it"."""
    if not talk.decisions:
        return None
    its = [one for one in best if one.entry is talk.decisions[-1] and one.worth >= _TELLING * best[0].worth]
    return min(its, key=lambda one: not speaks_of_decision(one.text), default=None)


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` graphemes, cut between words if it has spaces, with an ellipsis."""
    if graphemes(text) <= most:
        return text
    cut = truncate(text, most - 1)
    space = cut.rfind(" ")
    if space >= len(cut) // 2:
        cut = cut[:space]
    return cut.rstrip(" ,.;:，。；：、") + "…"


def span_of(talk: Talk) -> tuple[datetime, datetime]:
    """Return when the first and the last message of a talk were sent."""
    times = [entry.message.at for entry in talk.entries]
    return min(times), max(times)
