"""The talks of a span: the stretches of its threads, by the stored probabilities of sharing one; the telling sentences
of a talk, and its title."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from itertools import chain
from types import MappingProxyType

from roomlore.core.digest.points import Span, is_asking, says_little, speaks_of_decision
from roomlore.core.mentions import with_names
from roomlore.core.models import Entry, Message, Role, TalkState
from roomlore.core.prompt import neutral
from roomlore.core.summary.sentences import unsplit
from roomlore.core.text import asks, fold, graphemes, keywords, rarity, truncate
from roomlore.core.transcript import Speakers, people_of, spoken_text

_SAME_TALK = 0.65
"""Least mean probability of sharing a thread with the newest members of a talk. A talk that is cut in two is shown in
two entries; one that mixes two conversations says what nobody said."""
_NEWEST = 5
_LONGEST = 16
"""Most messages of a talk. A longer one is cut where it pauses, since a conversation of hundreds has many subjects."""
_EDGE = 0.25
"""The share of a long talk at each end in which it is not cut."""
_NO_TITLE = "…"


@dataclass(frozen=True)
class Talk:
    """A stretch of a thread, in order of arrival. `thread`: the arrival of the thread's first message. `within`: the
    messages of the span, by which it is known what is answered and settled; by default its own."""

    thread: int
    entries: tuple[Entry, ...]
    within: Span | None = None

    @cached_property
    def span(self) -> Span:
        return Span(self.entries) if self.within is None else self.within

    @cached_property
    def senders(self) -> tuple[str, ...]:
        """The sender ids in order of first speaking."""
        return tuple(dict.fromkeys(entry.message.sender_id for entry in self.entries))

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of its messages with each keyword."""
        return Counter(chain.from_iterable(entry.features.keywords for entry in self.entries))

    @cached_property
    def questions(self) -> tuple[Entry, ...]:
        """The questions in it."""
        return tuple(entry for entry in self.entries if is_asking(entry))

    @cached_property
    def open_questions(self) -> tuple[Entry, ...]:
        """The questions that nobody answers later."""
        return tuple(entry for entry in self.questions if self.span.is_open(entry))

    @cached_property
    def decisions(self) -> tuple[Entry, ...]:
        """The messages that decide, change or cancel something."""
        return tuple(entry for entry in self.entries if self.span.decides(entry))

    @property
    def state(self) -> TalkState:
        if self.open_questions:
            return TalkState.OPEN
        return TalkState.ANSWERED if self.questions else TalkState.CLOSED


def talks_of(entries: Iterable[Entry]) -> list[Talk]:
    """Return the talks of these entries (in order of arrival), in the order they began, without notices of the system,
    tool calls and messages without words."""
    spoken = [entry for entry in entries if is_said(entry)]
    span = Span(spoken)
    talks = [Talk(group[0].link.thread, part, span) for group in _grouped(spoken) for part in _stretches(tuple(group))]
    return sorted(talks, key=lambda talk: talk.entries[0].message.arrival)


def is_said(entry: Entry) -> bool:
    """Return True if a person or an agent says something in words."""
    message = entry.message
    speaks = message.role in (Role.USER, Role.ASSISTANT) and not message.has_tool_calls
    return speaks and bool(spoken_text(message).strip())


def _grouped(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Put each message to the talk whose newest members it most likely belongs with."""
    groups: list[list[Entry]] = []
    place: dict[int, int] = {}
    for entry in entries:
        likely: defaultdict[int, list[float]] = defaultdict(list)
        candidates = entry.link.thread_candidates
        for arrival, probability in zip(candidates.arrivals.tolist(), candidates.probabilities.tolist(), strict=True):
            if (group := place.get(arrival)) is not None:
                likely[group].append(probability)
        best, most = len(groups), _SAME_TALK
        for group, shares in likely.items():
            newest = shares[-_NEWEST:]
            mean = sum(newest) / len(newest)
            if mean >= most:
                best, most = group, mean
        if best == len(groups):
            groups.append([])
        groups[best].append(entry)
        place[entry.message.arrival] = best
    return groups


def _stretches(entries: tuple[Entry, ...]) -> Iterator[tuple[Entry, ...]]:
    """Yield the parts of a talk, cut at its longest pauses until none is too long."""
    waiting = [entries]
    while waiting:
        part = waiting.pop()
        if len(part) <= _LONGEST:
            yield part
            continue
        edge = max(1, int(_EDGE * len(part)))
        cut = max(range(edge, len(part) - edge + 1), key=lambda at: (_pause(part, at), -abs(2 * at - len(part))))
        waiting += [part[cut:], part[:cut]]


def _pause(part: Sequence[Entry], at: int) -> timedelta:
    return part[at].message.at - part[at - 1].message.at


_READ = 2_000
_MAX_SENTENCES = 6
"""The characters and the sentences of one message that are looked at."""
_KNOWN = 1 << 10
"""The texts whose sentences are kept: a message is in many contexts, one after another."""
_ONCE = 0.1
"""The worth of a word that only one message of a talk uses, beside one that two do: the subject comes up again."""
_OPENING = 1.15
"""The factor of a talk's first message, which mostly names the subject."""
_LITTLE = 0.1
"""The factor of a greeting and the like."""
_SHORT = 3.0
_FEW = 20
"""Among fewer talks no word counts as common."""
_TELLING = 0.25
"""The least worth of a decision that names a talk, beside the most telling sentence."""
_TITLE = 60
_TITLE_WORDS = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a message. `worth`: how much it tells of its talk. `whole`: False if the message goes on where it
    ends."""

    entry: Entry
    text: str
    worth: float
    whole: bool = True


class WordRarity:
    """The rarity of words. `counts`: how many of the `texts` have each. `people`: names by id, which tell nothing of a
    subject, and which texts have in place of the ids that they mention."""

    def __init__(self, counts: Mapping[str, int], *, texts: int, people: Mapping[str, str]) -> None:
        self._counts = counts
        self._texts = max(texts, _FEW)
        self.people = people
        self.names = frozenset(fold(name) for pair in people.items() for name in pair if name)

    @classmethod
    def among(cls, talks: Sequence[Talk], people: Mapping[str, str] = MappingProxyType({})) -> "WordRarity":
        """Return the rarity of words among the talks of a span. `people`: names of others than those who speak."""
        counts = Counter[str]()
        for talk in talks:
            counts.update({word for entry in talk.entries for word in entry.features.keywords})
        spoke = {entry.message.sender_id: entry.message.sender_name for talk in talks for entry in talk.entries}
        return cls(counts, texts=len(talks), people={**people, **spoke})

    def text_of(self, message: Message) -> str:
        """Return what a message says, with names in place of the ids of people."""
        return with_names(spoken_text(message), self.people, message.mentions)

    def rarity(self, word: str) -> float:
        return rarity(self._counts.get(word, 0), self._texts)

    def weights(self, talk: Talk) -> dict[str, float]:
        """Return how much each word of the talk tells of it: often used in it, and rare elsewhere."""
        return {
            word: self.rarity(word) * (math.log2(count) if count > 1 else _ONCE)
            for word, count in talk.counts.items()
            if word not in self.names
        }


def sentences_of(talk: Talk, weights: Mapping[str, float], words: WordRarity) -> list[Sentence]:
    """Return the sentences of the talk, the most telling first."""
    all_sentences = []
    for place, entry in enumerate(talk.entries):
        said = words.text_of(entry.message)
        texts = _first_sentences(said[:_READ])
        for at, text in enumerate(texts, 1):
            known = _keywords(text)
            worth = sum([weights.get(word, 0.0) for word in known])
            worth *= _LITTLE if says_little(text) else 1.0
            worth = (worth / math.sqrt(_SHORT + len(known)) + 0.01) * (_OPENING if place == 0 else 1.0)
            all_sentences.append(Sentence(entry, text, worth, len(said) <= _READ or at < len(texts)))
    return sorted(all_sentences, key=lambda sentence: (-sentence.worth, sentence.entry.message.arrival))


@lru_cache(maxsize=_KNOWN)
def _first_sentences(text: str) -> tuple[str, ...]:
    """Return the first sentences of a text. Who is spoken to stays with what is asked: 'Rena! Could you …'."""
    parts = unsplit(text)[:_MAX_SENTENCES]
    if len(parts) > 1 and len(_keywords(parts[0])) <= 1 and asks(fold(parts[1])):
        end = text.index(parts[1], len(parts[0])) + len(parts[1])
        parts[:2] = [text[text.index(parts[0]) : end]]
    return tuple(" ".join(part.split()) for part in parts if part.strip())


_keywords = lru_cache(maxsize=_KNOWN)(keywords)


def title_of(talk: Talk, words: WordRarity, best: Sequence[Sentence] | None = None) -> str:
    """Return the title of a talk: its decision, else its most telling sentence, shortened, and the words it often uses
    that this lacks.

    `best`: its sentences, the most telling first, if they are known.
    """
    weights = words.weights(talk)
    best = sentences_of(talk, weights, words) if best is None else best
    if not best:
        return ""
    first = _deciding(talk, best) or best[0]
    sentence = shortened(first.text, _TITLE)
    again = [word for word, count in talk.counts.items() if count > 1 and word in weights]
    telling = sorted(again, key=lambda word: (-weights[word], word))
    held = set(_keywords(sentence))
    missing = [word for word in telling[:_TITLE_WORDS] if word not in held and word not in sentence.casefold()]
    tail = ", ".join(truncate(word, 24) for word in missing)
    return f"{sentence} ({tail})" if tail else sentence


def summary_of(entries: Sequence[Entry]) -> str:
    """Return a line for each thread of these entries: its title by its newest ones, and who speaks in it."""
    threads: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        threads[entry.link.thread].append(entry)
    speakers = Speakers(people_of((entry.message for entry in entries), {}))
    talks = [
        Talk(thread, tuple(sorted(its, key=lambda member: member.message.arrival)[-_LONGEST:]))
        for thread, its in threads.items()
    ]
    words = WordRarity.among(talks)
    lines = []
    for talk, its in zip(talks, threads.values(), strict=True):
        names = map(speakers.name_of, dict.fromkeys([entry.message.sender_id for entry in its]))
        lines.append(neutral(f"{title_of(talk, words) or _NO_TITLE} · {', '.join(dict.fromkeys(names))}"))
    return "\n".join(lines)


def _deciding(talk: Talk, best: Sequence[Sentence]) -> Sentence | None:
    """Return the sentence that says what the talk decided last; None for one that tells too little, such as "let's do
    it"."""
    if not talk.decisions:
        return None
    its = [
        sentence
        for sentence in best
        if sentence.entry is talk.decisions[-1] and sentence.worth >= _TELLING * best[0].worth
    ]
    return min(its, key=lambda sentence: not speaks_of_decision(sentence.text), default=None)


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
