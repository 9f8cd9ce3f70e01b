"""Facts prepared for recall and ranked for the current topic of a conversation: pinned ones always, safety facts if the
conversation touches their subject, then by worth."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from roomlore.core import lexicon
from roomlore.core.evolution.requests import strength_at
from roomlore.core.memory.memory import Memory, MemoryKind
from roomlore.core.memory.reading import CHECKPOINT_MARK
from roomlore.core.patterns import lazy_pattern
from roomlore.core.recall.recollection import (
    HEAD,
    TAIL,
    ConversationMessage,
    Recalled,
    RecallOptions,
    Recollection,
    block_of,
    line_of,
    text_of,
)
from roomlore.core.safety import PINNED, is_declared, is_safety
from roomlore.core.search.hits import Floats, Ints
from roomlore.core.subjects import FIELDS, subjects, topic_names, topics
from roomlore.core.text import CHINESE, is_question, last_roots, pieces_in, roots, terms

_OLDER = 0.25
_ANSWER = 0.5
_CLOSE = r"</memory(?:_context)?>"
# A block of memories inside a text, which is no word of its writer.
_BLOCK = lazy_pattern(rf"<memory(?:_context)?\b[^>]{{0,200}}>.*?{_CLOSE}", re.DOTALL | re.IGNORECASE)
# The end of such a block.
_END = lazy_pattern(_CLOSE, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TopicPart:
    """A text of the topic, and its weight."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Topic:
    """The topic. `parts`: its texts, the oldest first. `asked`: the user's last message, '' if there is none."""

    parts: tuple[TopicPart, ...] = ()
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
    parts: list[TopicPart] = []
    query, turn = "", 0
    for message in reversed(messages if max_turns > 0 else ()):
        text = _own(message)
        if not text:
            continue
        user = message.role == "user"
        parts.append(TopicPart(text, _OLDER**turn * (1.0 if user else _ANSWER)))
        if user:
            query, turn = query or text, turn + 1
            if turn >= max_turns:
                break
    return Topic(tuple(reversed(parts)), query)


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
_STOP = 0.5
"""The weight of a Chinese stop word. It is kept, since a single character may be one and part of a word."""


def concepts(text: str) -> dict[str, float]:
    """Return the roots of a text and the subjects it names, each with its weight. A repeated root counts less each
    time."""
    word_weights = {
        word: (1 + math.log(often)) * (_STOP if word in CHINESE else 1) for word, often in Counter(roots(text)).items()
    }
    return word_weights | {f"<{name}>": _SUBJECT for name in sorted(subjects(text))}


_BINDS = last_roots(lexicon.words("binds"))
_TASTE = last_roots(lexicon.words("taste"))


def binding(words: Collection[str]) -> int:
    """Return 2 for the roots of a fact that limits or directs what may be done, 0 for those of a taste, else 1."""
    limits = not _BINDS.isdisjoint(words) or any(map(str.isdigit, words))
    return 1 + limits - (not _TASTE.isdisjoint(words))


class Vocabulary:
    """Words by index. It only grows, so that earlier counts stay valid."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def count(self, word_weights: Mapping[str, float]) -> Counted:
        """Return the words of a fact."""
        places = [self._places.setdefault(word, len(self._places)) for word in word_weights]
        return Counted(np.array(places, np.int32), np.fromiter(word_weights.values(), float, len(word_weights)))

    def place(self, word: str) -> int:
        """Return the index of a word; -1 if no fact has it."""
        return self._places.get(word, -1)


class FactWords:
    """The words of facts. `counted`: a row for each fact, all by one vocabulary, which may contain further words.
    `used`: the number of distinct words of the facts."""

    def __init__(self, vocabulary: Vocabulary, counted: Sequence[Counted]) -> None:
        self.vocabulary = vocabulary
        self.size = len(counted)
        sizes = [line.places.size for line in counted]
        rows = np.repeat(np.arange(self.size, dtype=np.int32), sizes)
        places = np.concatenate([np.zeros(0, np.int32), *(line.places for line in counted)])
        weights = np.concatenate([np.zeros(0), *(line.weights for line in counted)])
        counts = np.bincount(places, minlength=len(vocabulary))
        self._rarity = np.log((1 + self.size) / (1 + counts)) + 1
        weights = weights * self._rarity[places]
        lengths = np.sqrt(np.bincount(rows, weights * weights, minlength=self.size))
        weights /= np.where(lengths > 0, lengths, 1)[rows]
        by_word = np.argsort(places, kind="stable")
        self._rows, self._weights = rows[by_word], weights[by_word]
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self.used = int(np.count_nonzero(counts))

    def similarities(self, parts: Iterable[tuple[Mapping[str, float], float]]) -> Floats:
        """Return the cosine of each fact with the words of each part, as their mean, weighted by part, in [0, 1]."""
        wanted: dict[str, float] = defaultdict(float)
        total = 0.0
        for word_weights, part_weight in parts:
            words = self._direction(word_weights)
            if words:
                total += part_weight
                for word, weight in words.items():
                    wanted[word] += part_weight * weight
        return self._sum((self._place(word), weight) for word, weight in wanted.items()) / (total or 1.0)

    def reach(self, text: str) -> Floats:
        """Return each fact's share of those words of the text that any fact has, weighted by rarity, in [0, 1]."""
        known = sorted({self._place(word) for word in concepts(text)} - {-1})
        worth = [(place, float(self._rarity[place]) ** 2) for place in known]
        reach = np.zeros(self.size)
        for place, worth_of_word in worth:
            reach[self._rows[self._span(place)]] += worth_of_word
        return reach / (sum(worth_of_word for _, worth_of_word in worth) or 1.0)

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
        spans = [(self._span(place), weight) for place, weight in wanted if place >= 0]
        if not spans:
            return np.zeros(self.size)
        rows = np.concatenate([self._rows[span] for span, _ in spans])
        weights = np.concatenate([self._weights[span] * weight for span, weight in spans])
        return np.bincount(rows, weights, minlength=self.size).astype(float)

    def _place(self, word: str) -> int:
        """Return the index of a word; -1 if none of these facts has it."""
        place = self.vocabulary.place(word)
        within = 0 <= place < self._starts.size - 1
        return place if within and self._starts[place] < self._starts[place + 1] else -1

    def _span(self, place: int) -> slice:
        return slice(self._starts[place], self._starts[place + 1])


class FactTopics:
    """The topics of facts. `named`: those of each fact, by number."""

    def __init__(self, named: Sequence[frozenset[int]]) -> None:
        rows = np.repeat(np.arange(len(named)), [len(topics_of_fact) for topics_of_fact in named])
        self._weights: Floats = np.zeros((len(topic_names()), len(named)))
        self._weights[[topic for topics_of_fact in named for topic in topics_of_fact], rows] = 1.0
        self._rarity = np.log((1 + len(named)) / (1 + self._weights.sum(axis=1))) + 1
        self._weights *= self._rarity[:, np.newaxis]
        lengths = np.sqrt((self._weights**2).sum(axis=0))
        self._weights /= np.where(lengths > 0, lengths, 1)

    def similarities(self, parts: Iterable[tuple[frozenset[int], float]]) -> Floats:
        """Return the cosine of each fact with the topics of each part, as their mean, weighted by part, in [0, 1]."""
        wanted: Floats = np.zeros(len(self._weights))
        total = 0.0
        for named, part_weight in parts:
            if named:
                total += part_weight
                rarity = self._rarity[[*named]]
                wanted[[*named]] += part_weight * rarity / np.sqrt((rarity**2).sum())
        about = np.flatnonzero(wanted)
        return wanted[about] @ self._weights[about] / (total or 1.0)


def amount(text: str) -> float:
    """Return the number of words in a text; in a script without spaces two characters are one word."""
    return sum(_amount(word) for word in set(terms(text)))


def _amount(word: str) -> float:
    return (1.0, 0.5, 0.0)[min(pieces_in(word), 2)]


_SHARE = 0.5
"""The share of the budget that safety facts of the same field get before all others."""
_RESERVED = 0.15
"""The share of the budget kept for safety facts that seem not to be touched: the rules may be wrong."""
_NEAR = 2.0
"""The number of standard deviations above the mean cosine from which vectors alone say that a subject is touched."""


def is_pinned(memory: Memory) -> bool:
    """Return True if a caller pinned the fact, by its category or a tag."""
    return memory.category == PINNED or PINNED in memory.tags


def searchable(memory: Memory) -> str:
    """Return the text by which a fact is found: its statement and the name of its category."""
    return f"{memory.statement} {memory.category}" if memory.category else memory.statement


class Safety:
    """The pinned facts and the safety facts of a set, by their places. `places`: of the safety facts."""

    def __init__(self, memories: Sequence[Memory], words: FactWords) -> None:
        self._words = words
        self.pinned = [place for place, memory in enumerate(memories) if is_pinned(memory)]
        self._declared = {place for place, memory in enumerate(memories) if is_declared(memory.category)}
        safety_places = [p for p, m in enumerate(memories) if p in self._declared or is_safety(m.statement)]
        self.places = safety_places
        self._subjects = {place: subjects(memories[place].statement) for place in safety_places}
        self._telling = {place: words.own(_content(memories[place].statement)) for place in safety_places}

    def first(self, topic: Topic, score: Floats, tokens: Ints, budget: int, nearness: Floats | None) -> list[int]:
        """Return the places of the facts that come before all others, in their order.

        The pinned ones; then safety facts that share a subject or a word with the conversation; then, within half the
        budget, those of the same field, such as an allergy to a drug where any medicine is talked of.
        """
        named = subjects(topic.text)
        topic_roots = set(roots(topic.text))
        near, same_field = [], []
        for place, own in self._subjects.items():
            if own & named - FIELDS or self._telling[place] & topic_roots or _is_near(nearness, place):
                near.append(place)
            elif own & named:
                same_field.append(place)
        places = dict.fromkeys((*self.pinned, *_best_first(near, score)))
        left = _SHARE * budget - sum(int(tokens[place]) for place in places)
        for place in _best_first(same_field, score):
            left -= int(tokens[place])
            if left < 0:
                break
            places[place] = None
        return list(places)

    def reserved(self, first: Sequence[int], score: Floats, tokens: Ints, budget: int) -> list[int]:
        """Return the places of the other safety facts that have room kept for them, declared ones before recognised
        ones."""
        left, places = _RESERVED * budget, []
        others = [place for place in self._subjects if place not in set(first)]
        for place in sorted(others, key=lambda place: (place not in self._declared, -score[place], place)):
            if tokens[place] <= left:
                left -= int(tokens[place])
                places.append(place)
        return places


def _content(statement: str) -> set[str]:
    """Return the terms that name a subject; a single piece of a script without spaces names none."""
    return {term for term in roots(statement) if len(term) > 1 and pieces_in(term) != 1 and term not in _GENERAL}


_GENERAL = frozenset(roots(" ".join(lexicon.words("general_safety"))))


def _is_near(nearness: Floats | None, place: int) -> bool:
    return nearness is not None and bool(nearness[place] >= _NEAR)


def _best_first(places: Sequence[int], score: Floats) -> list[int]:
    return sorted(places, key=lambda place: (-float(score[place]), place))


def in_order(first: Sequence[int], order: Ints) -> Ints:
    """Return the order with these places before all others."""
    if not first:
        return order
    return np.concatenate([np.array(first, np.int64), order[~np.isin(order, first)]])


Count = Callable[[Sequence[str]], list[int]]
DEFAULT_CONFIDENCE = 0.5
_STALE = 4
_FEW_WORDS = 1000


@dataclass(frozen=True, slots=True)
class _Ready:
    counted: Counted
    topics: frozenset[int]
    binding: int
    tokens: int


class FactSet:
    """Facts in a fixed order, independent of the input order: the last changed first. `count`: counts tokens.

    `labelled`: each line names its fact's scope. `known`: an earlier set, whose work is reused.
    """

    def __init__(
        self, memories: Iterable[Memory], *, count: Count, labelled: bool = False, known: "FactSet | None" = None
    ) -> None:
        self.memories = sorted(memories, key=lambda m: (m.updated_at, m.memory_id), reverse=True)
        self.labelled = labelled
        self.lines = [line_of(text_of(m), m.scope if labelled else "") for m in self.memories]
        self._keys = [(line, m.category) for line, m in zip(self.lines, self.memories, strict=True)]
        reusable = known is not None and known.labelled == labelled
        self._vocabulary, self._ready = known.work() if known and reusable else (Vocabulary(), {})
        self._complete(count)
        used = [self._ready[key] for key in self._keys]
        self._ready = dict(zip(self._keys, used, strict=True))
        self.tokens: Ints = np.array([fact.tokens for fact in used], np.int64)
        self.frame = sum(count([HEAD, TAIL]))
        self.confidence: Floats = np.array([confidence_of(m) for m in self.memories], float)
        self._fading = [place for place, m in enumerate(self.memories) if _fades(m)]
        self.words = FactWords(self._vocabulary, [fact.counted for fact in used])
        self.topics = FactTopics([fact.topics for fact in used])
        self.binding: Floats = np.array([fact.binding for fact in used], float)
        self.price: Floats = np.power(self.tokens + _LINE, _PRICE).astype(float)
        self.places = {memory.memory_id: place for place, memory in enumerate(self.memories)}
        self.safety = Safety(self.memories, self.words)
        self.binding[self.safety.places] += 1

    def confidence_at(self, now: datetime) -> Floats:
        """Return the confidence of each fact; for a group memory without one, its decayed strength."""
        if not self._fading:
            return self.confidence
        confidence = self.confidence.copy()
        confidence[self._fading] = [strength_at(self.memories[place], now) for place in self._fading]
        return confidence

    def __len__(self) -> int:
        return len(self.memories)

    def work(self) -> "tuple[Vocabulary, dict[tuple[str, str], _Ready]]":
        """Return the prepared lines for the next set; nothing if most of the vocabulary belongs to removed facts."""
        if len(self._vocabulary) > _STALE * self.words.used + _FEW_WORDS:
            return Vocabulary(), {}
        return self._vocabulary, dict(self._ready)

    def _complete(self, count: Count) -> None:
        new = {key: m for key, m in zip(self._keys, self.memories, strict=True) if key not in self._ready}
        for (key, memory), tokens in zip(new.items(), count([line for line, _ in new]), strict=True):
            word_weights = concepts(searchable(memory))
            counted = self._vocabulary.count(word_weights)
            self._ready[key] = _Ready(counted, topics(word_weights), binding(word_weights), tokens)


def _fades(memory: Memory) -> bool:
    return memory.kind is MemoryKind.GROUP and memory.confidence is None


def confidence_of(memory: Memory) -> float:
    """Return the confidence, in [0, 1]; 0 stays 0, and None becomes the default."""
    given = DEFAULT_CONFIDENCE if memory.confidence is None else memory.confidence
    return min(1.0, max(0.0, given))


_STEEPNESS = 8
_STEP = 0.7
_FAR = 1e3
_PRICE = 0.25
_LINE = 60
_NEARNESS = 0.05
_TOPIC = 0.05
"""The weight of the cosine of topics beside that of words: more than the words that any two texts share by chance."""
_BINDING = 0.0017
"""What a step of `binding` counts beside a similarity, where the facts that fit are chosen."""
_BELOW = 0.12
"""It counts at most this share of the best match, so that a match from long ago comes before it."""
_TIE = 1e-6
"""Its weight among facts of which none is similar: it decides between those of one confidence."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """A value for each fact; `order`: the best first, equal ones in the order of the facts. `first`: the facts that
    come before all others, pinned or of safety; they begin the order."""

    similarity: Floats
    relevance: Floats
    confidence: Floats
    score: Floats
    order: Ints
    first: tuple[int, ...] = ()


def rank(
    facts: FactSet,
    topic: Topic,
    options: RecallOptions,
    cosines: Floats | None = None,
    confidence: Floats | None = None,
) -> Ranking:
    """Score facts by similarity and confidence; without a topic, by confidence alone.

    `cosines`: of the facts' vectors with the topic's, for the similarities 'embedding' and 'hybrid'. `confidence`: the
    present one, if it changed since the facts were prepared.
    """
    sure = facts.confidence if confidence is None else confidence
    if not topic.parts:
        nothing = np.zeros(len(facts))
        pinned = facts.safety.pinned
        return Ranking(nothing, nothing, sure, sure, in_order(pinned, _descending(sure)), tuple(pinned))
    read = [(concepts(part.text), part.weight) for part in topic.parts]
    similarity = fits = alike = _similarity(facts, read, options, cosines)
    if options.scale == "fit":
        alike = similarity + _TOPIC * facts.topics.similarities((topics(words), weight) for words, weight in read)
        fits = _scaled(alike, facts, options.max_tokens)
    worth = options.similarity_weight * fits + options.confidence_weight * sure
    relevance = np.minimum(fits, 1.0) * (alike > 0)  # what binds may stand a little above the best match
    score = options.similarity_weight * relevance + options.confidence_weight * sure
    near = None if cosines is None else _nearness(cosines)
    first = facts.safety.first(topic, score, facts.tokens, options.max_tokens, near)
    return Ranking(similarity, relevance, sure, score, in_order(first, _descending(worth)), tuple(first))


def choose(facts: FactSet, ranking: Ranking, max_tokens: int) -> list[int]:
    """Return the facts that fit, the best first. A little room is kept for the safety facts that are not touched."""
    budget = max_tokens - facts.frame
    reserved = facts.safety.reserved(ranking.first, ranking.score, facts.tokens, budget)
    if not reserved:
        return fill(ranking.order, facts.tokens, budget)
    others = ranking.order[~np.isin(ranking.order, reserved)]
    chosen = [*reserved, *fill(others, facts.tokens, budget - int(facts.tokens[reserved].sum()))]
    return [place for place in ranking.order.tolist() if place in set(chosen)]


def fill(order: Ints, tokens: Ints, budget: int) -> list[int]:
    """Return as many whole facts as fit, in order; one that does not fit is skipped for smaller ones after it."""
    costs = tokens[order]
    taken: list[int] = []
    start = 0
    while start < order.size and budget > 0:
        fits = int(np.searchsorted(np.cumsum(costs[start : start + budget + 1]), budget, side="right"))
        taken += order[start : start + fits].tolist()
        budget -= int(costs[start : start + fits].sum())
        start += fits
        smaller = np.flatnonzero(costs[start:] <= budget)
        if not smaller.size:
            break
        start += int(smaller[0])
    return taken


def _similarity(
    facts: FactSet, read: Sequence[tuple[Mapping[str, float], float]], options: RecallOptions, cosines: Floats | None
) -> Floats:
    if options.similarity == "embedding" and cosines is not None:
        return _NEARNESS * _nearness(cosines)
    words = facts.words.similarities(read)
    if options.similarity == "hybrid" and cosines is not None:
        return words + _NEARNESS * _nearness(cosines)
    return words


def _nearness(cosines: Floats) -> Floats:
    """Return the distance of each cosine above their mean, in standard deviations, since models differ in the range of
    their cosines."""
    deviation = float(cosines.std()) if cosines.size else 0.0
    if deviation < 1e-9:
        return np.zeros(cosines.size)
    nearness: Floats = np.maximum((cosines - cosines.mean()) / deviation, 0.0)
    return nearness


def _scaled(similarity: Floats, facts: FactSet, max_tokens: int) -> Floats:
    """Return similarities on [0, 1] with the steepest step at the end of the budget, so that confidence decides between
    facts of about equal relevance, and not against relevance. A longer fact must be slightly more similar, and so must
    a taste, beside a fact that limits what may be done."""
    if not similarity.any():
        return _TIE * facts.binding
    value = similarity / facts.price
    top = float(value.max())
    value += min(_BINDING, _BELOW * top) * facts.binding
    ratio = np.minimum(value / _margin(value, facts, max_tokens), _FAR) ** _STEEPNESS
    step = ratio / (1 + ratio)
    relevance: Floats = _STEP * step + (1 - _STEP) * value / top
    return relevance


def _margin(value: Floats, facts: FactSet, max_tokens: int) -> float:
    """Return the value half-way between the last fact that would fit by value alone and the first that would not."""
    order = _best(value, max_tokens // int(facts.tokens.min()) + 2)
    fit = int(np.searchsorted(np.cumsum(facts.tokens[order]), max_tokens - facts.frame, side="right"))
    if fit >= value.size:
        fit = (value.size + 1) // 2
    last, next_one = value[order[max(fit, 1) - 1]], value[order[min(max(fit, 1), value.size - 1)]]
    margin = float(last + next_one) / 2
    return margin if margin > 0 else float(value[value > 0].min()) / 2


def _best(values: Floats, most: int) -> Ints:
    """Return the indices of the largest values, the largest first. Avoids a full sort if there are many more."""
    if most >= values.size:
        return _descending(values)
    places = np.sort(np.argpartition(-values, most)[:most])
    return places[_descending(values[places])]


def _descending(values: Floats) -> Ints:
    return np.argsort(-values, kind="stable")


_SHARPNESS = 4
_MIN = 0.1
_REACH = 2.0
_ASKED = -1.35
_TOLD = 0.8


def may_stay(before: Sequence[int], fresh: Sequence[int], facts: FactSet, ranking: Ranking, topic: Topic) -> bool:
    """Return True if `before` (indices of facts) should stay instead of `fresh`.

    The facts stay unless a requested one is missing. A missing fact counts by its share of the fresh facts' similarity,
    the strongest above all, and by the share of the last message's words that the best missing fact covers; longer
    messages lower the expected share. A question changes the facts easily; anything else seldom does. If all facts fit,
    all are shown.
    """
    shown = np.zeros(len(facts), bool)
    shown[list(before)] = True
    chosen = np.array(fresh, np.int64)
    missing = chosen[~shown[chosen]]
    if not missing.size:
        return True
    if len(fresh) == len(facts) or not shown[list(ranking.first)].all():
        return False
    if not topic.asked:
        return True
    share = _share(missing, chosen, ranking.similarity)
    if share < _MIN:
        return True
    strength = share + _REACH * float(facts.words.reach(topic.asked)[missing].max())
    return strength - math.log1p(amount(topic.asked)) <= (_ASKED if is_question(topic.asked) else _TOLD)


def _share(missing: Ints, chosen: Ints, similarity: Floats) -> float:
    top = float(similarity[chosen].max())
    if top <= 0:
        return 0.0
    strength = (similarity / top) ** _SHARPNESS
    return float(strength[missing].sum() / strength[chosen].sum())


def recollect(
    facts: FactSet,
    topic: Topic,
    options: RecallOptions,
    *,
    count: Count,
    cosines: Floats | None = None,
    confidence: Floats | None = None,
    previous: Sequence[str] = (),
    degraded: str | None = None,
) -> Recollection:
    """Return the facts worth their tokens. `confidence`: the present one. `previous`: the ids of those shown before, in
    order, () for none."""
    ranking = rank(facts, topic, options, cosines, confidence)
    fresh = choose(facts, ranking, options.max_tokens)
    chosen, text, tokens = _fitting(facts, fresh, options.max_tokens, count)
    kept = _kept(facts, previous) if options.sticky else None
    if kept is not None and may_stay(kept, chosen, facts, ranking, topic):
        old, old_text, old_tokens = _fitting(facts, kept, options.max_tokens, count)
        if old == kept:
            return _recollection(facts, ranking, old, old_text, old_tokens, kept=True, degraded=degraded)
    return _recollection(facts, ranking, chosen, text, tokens, kept=False, degraded=degraded)


def _kept(facts: FactSet, previous: Sequence[str]) -> list[int] | None:
    """Return the indices of the facts shown before; None if there were none or one of them is gone."""
    places = [facts.places.get(memory_id, -1) for memory_id in previous]
    return places if places and min(places) >= 0 and len(set(places)) == len(places) else None


def _fitting(facts: FactSet, places: Sequence[int], max_tokens: int, count: Count) -> tuple[list[int], str, int]:
    """Return as many of these facts as fit, counted as a whole block, with the block and its tokens."""
    kept = list(places)
    while kept:
        text = block_of([facts.lines[place] for place in kept])
        tokens = count([text])[0]
        if tokens <= max_tokens:
            return kept, text, tokens
        kept.pop()
    return [], "", 0


def _recollection(
    facts: FactSet,
    ranking: Ranking,
    places: Sequence[int],
    text: str,
    tokens: int,
    *,
    kept: bool,
    degraded: str | None,
) -> Recollection:
    recalled = tuple(
        Recalled(
            memory=facts.memories[place],
            similarity=float(ranking.similarity[place]),
            relevance=float(ranking.relevance[place]),
            confidence=float(ranking.confidence[place]),
            score=float(ranking.score[place]),
        )
        for place in places
    )
    return Recollection(facts=recalled, text=text, tokens=tokens, considered=len(facts), kept=kept, degraded=degraded)
