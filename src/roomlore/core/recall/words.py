"""Extract the current topic of a conversation, for choosing facts."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roomlore.core.memory.reading import CHECKPOINT_MARK
from roomlore.core.recall.recollection import ConversationMessage
from roomlore.core.search.hits import Floats
from roomlore.core.subjects import subjects
from roomlore.core.text import SYLLABIC, roots, terms

_OLDER = 0.25
_ANSWER = 0.5
_CLOSE = r"</memory(?:_context)?>"
_BLOCK = re.compile(rf"<memory(?:_context)?\b[^>]{{0,200}}>.*?{_CLOSE}", re.DOTALL | re.IGNORECASE)
_END = re.compile(_CLOSE, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """A text of the topic, and its weight."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Topic:
    """The topic. `parts`: its texts, the oldest first. `asked`: the user's last message, '' if there is none."""

    parts: tuple[Part, ...] = ()
    asked: str = ""

    @property
    def text(self) -> str:
        """The topic as one text, the newest last."""
        return "\n".join(part.text for part in self.parts)


def topic_of(messages: Sequence[ConversationMessage], max_turns: int) -> Topic:
    """Return the user's last `max_turns` messages and the final answers between and after them.

    Tool results, messages that call tools, system messages and memory blocks are excluded. Each turn counts a quarter
    of the one after it, and an answer half of a question. Each message is weighted separately, so that a long answer
    does not dominate the question that follows it.
    """
    parts: list[Part] = []
    asked, turn = "", 0
    for message in reversed(messages if max_turns > 0 else ()):
        text = _own(message)
        if not text:
            continue
        user = message.role == "user"
        parts.append(Part(text, _OLDER**turn * (1.0 if user else _ANSWER)))
        if user:
            asked, turn = asked or text, turn + 1
            if turn >= max_turns:
                break
    return Topic(tuple(reversed(parts)), asked)


def _own(message: ConversationMessage) -> str:
    if message.role not in ("user", "assistant") or (message.role == "assistant" and message.has_tool_calls):
        return ""
    if message.text.lstrip().startswith(CHECKPOINT_MARK):
        return ""
    return _without_blocks(message.text).strip()


def _without_blocks(text: str) -> str:
    """Remove blocks. An unclosed one is not a block: C++ has a header <memory>."""
    end = max((close.end() for close in _END.finditer(text)), default=0)
    return _BLOCK.sub(" ", text[:end]) + text[end:]


_Places = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Counted:
    """The words of one text: their indices in a vocabulary, and the weight of each."""

    places: _Places
    weights: Floats


_SUBJECT = 0.5
"""The weight of a subject that is named, by which two languages meet, beside that of a word."""


def concepts(text: str) -> dict[str, float]:
    """Return the roots of a text and the subjects it names, each with its weight. A repeated root counts less each
    time."""
    found = {word: 1 + math.log(often) for word, often in Counter(roots(text)).items()}
    return found | {f"<{name}>": _SUBJECT for name in sorted(subjects(text))}


class Vocabulary:
    """Words by index. It only grows, so that earlier counts stay valid."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def count(self, text: str) -> Counted:
        """Return the words of a fact."""
        found = concepts(text)
        places = [self._places.setdefault(word, len(self._places)) for word in found]
        return Counted(np.array(places, np.int32), np.fromiter(found.values(), float, len(found)))

    def place(self, word: str) -> int:
        """Return the index of a word; -1 if no fact has it."""
        return self._places.get(word, -1)


class WordIndex:
    """The words of facts. `counted`: a row for each fact, all by one vocabulary, which may contain further words.
    `used`: the number of distinct words of the facts."""

    def __init__(self, vocabulary: Vocabulary, counted: Sequence[Counted]) -> None:
        self.vocabulary = vocabulary
        self.size = len(counted)
        sizes = [line.places.size for line in counted]
        rows = np.repeat(np.arange(self.size, dtype=np.int32), sizes)
        places = np.concatenate([np.zeros(0, np.int32), *(line.places for line in counted)])
        weights = np.concatenate([np.zeros(0), *(line.weights for line in counted)])
        found = np.bincount(places, minlength=len(vocabulary))
        self._rarity = np.log((1 + self.size) / (1 + found)) + 1
        weights = weights * self._rarity[places]
        lengths = np.sqrt(np.bincount(rows, weights * weights, minlength=self.size))
        weights /= np.where(lengths > 0, lengths, 1)[rows]
        by_word = np.argsort(places, kind="stable")
        self._rows, self._weights = rows[by_word], weights[by_word]
        self._starts = np.concatenate([[0], np.cumsum(found)])
        self.used = int(np.count_nonzero(found))

    def similarities(self, parts: Sequence[Part]) -> Floats:
        """Return the cosine of each fact with each part, as their weighted mean, in [0, 1]."""
        wanted: dict[str, float] = defaultdict(float)
        total = 0.0
        for part in parts:
            words = self._direction(concepts(part.text))
            if words:
                total += part.weight
                for word, weight in words.items():
                    wanted[word] += part.weight * weight
        return self._sum((self._place(word), weight) for word, weight in wanted.items()) / (total or 1.0)

    def reach(self, text: str) -> Floats:
        """Return each fact's share of those words of the text that any fact has, weighted by rarity, in [0, 1]."""
        known = sorted({self._place(word) for word in concepts(text)} - {-1})
        worth = [(place, float(self._rarity[place]) ** 2) for place in known]
        found = np.zeros(self.size)
        for place, worth_of_word in worth:
            found[self._rows[self._span(place)]] += worth_of_word
        return found / (sum(worth_of_word for _, worth_of_word in worth) or 1.0)

    def own(self, words: Iterable[str]) -> set[str]:
        """Return those of the words that at most one of the facts has."""
        places = {word: self._place(word) for word in words}
        return {
            word for word, place in places.items() if place < 0 or self._starts[place + 1] - self._starts[place] <= 1
        }

    def _direction(self, words: Mapping[str, float]) -> Mapping[str, float]:
        """Return a text as a vector of length 1."""
        unknown = math.log(1 + self.size) + 1
        weights = {}
        for word, weight in words.items():
            place = self._place(word)
            weights[word] = weight * (float(self._rarity[place]) if place >= 0 else unknown)
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()}

    def _sum(self, wanted: Iterable[tuple[int, float]]) -> Floats:
        found = [(self._span(place), weight) for place, weight in wanted if place >= 0]
        if not found:
            return np.zeros(self.size)
        rows = np.concatenate([self._rows[span] for span, _ in found])
        weights = np.concatenate([self._weights[span] * weight for span, weight in found])
        return np.bincount(rows, weights, minlength=self.size).astype(float)

    def _place(self, word: str) -> int:
        """Return the index of a word; -1 if none of these facts has it."""
        place = self.vocabulary.place(word)
        within = 0 <= place < self._starts.size - 1
        return place if within and self._starts[place] < self._starts[place + 1] else -1

    def _span(self, place: int) -> slice:
        return slice(self._starts[place], self._starts[place + 1])


def amount(text: str) -> float:
    """Return the number of words in a text; in a script without spaces two characters are one word."""
    return sum(_amount(word) for word in set(terms(text)))


def _amount(word: str) -> float:
    if not SYLLABIC.match(word):
        return 1.0
    return 0.5 if len(word) == 1 else 0.0
