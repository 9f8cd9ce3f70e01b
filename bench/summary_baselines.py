"""Plain summaries to compare with, each in its strongest fair form: sentences in time order under their speakers."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import log

import numpy as np

from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.summary.sentences import SpeakerText
from roomlore.core.text import sentences, words

# (earlier summary, said since, everything said before that, tokens) -> summary
Maker = Callable[[str, Sequence[SpeakerText], Sequence[SpeakerText], int], str]
Line = tuple[str, str]
SEED = 7
MOST = 3_000


def lines_of(summary: str) -> list[Line]:
    """The lines of a summary, each as (speaker, text)."""
    parts = [line.partition(": ") for line in summary.splitlines() if line.strip()]
    return [(speaker, text) if colon else ("", speaker) for speaker, colon, text in parts]


def pieces(speaker_texts: Iterable[SpeakerText]) -> list[Line]:
    return [
        (speaker_text.speaker, sentence) for speaker_text in speaker_texts for sentence in sentences(speaker_text.text)
    ]


def earlier(summary: str) -> list[Line]:
    return [(speaker, sentence) for speaker, text in lines_of(summary) for sentence in sentences(text)]


def rendered(chosen: Sequence[Line]) -> str:
    lines: list[str] = []
    for place, (speaker, text) in enumerate(chosen):
        if place and chosen[place - 1][0] == speaker:
            lines[-1] += f" {text}"
        else:
            lines.append(f"{speaker}: {text}")
    return "\n".join(lines)


def filled(given: Sequence[Line], order: Iterable[int], budget: int) -> str:
    """Takes sentences in this order as long as they fit; one that does not fit is passed over."""
    count = EncodingTokens().count
    chosen: list[int] = []
    total, misses = 0, 0
    for place in order:
        rough = count([rendered([given[place]])])[0]
        if total + rough > budget + 20 or misses > 30:
            misses += 1
            if misses > 30:
                break
            continue
        tried = sorted([*chosen, place])
        size = count([rendered([given[each] for each in tried])])[0]
        if size <= budget:
            chosen, total = tried, size
        else:
            misses += 1
    return rendered([given[each] for each in chosen])


def first(previous: str, speaker_texts: Sequence[SpeakerText], before: Sequence[SpeakerText], budget: int) -> str:
    """The first sentences of the whole history."""
    given = pieces([*before, *speaker_texts])[:MOST]
    return filled(given, range(len(given)), budget)


def last(previous: str, speaker_texts: Sequence[SpeakerText], before: Sequence[SpeakerText], budget: int) -> str:
    """The last sentences before the window, over as many rounds as fit."""
    given = pieces([*before, *speaker_texts])[-MOST:]
    return filled(given, reversed(range(len(given))), budget)


def drawn(previous: str, speaker_texts: Sequence[SpeakerText], before: Sequence[SpeakerText], budget: int) -> str:
    """Sentences drawn evenly from the whole history."""
    given = pieces([*before, *speaker_texts])
    return filled(given, random.Random(SEED).sample(range(len(given)), len(given)), budget)


def central(previous: str, speaker_texts: Sequence[SpeakerText], before: Sequence[SpeakerText], budget: int) -> str:
    """LexRank over the earlier summary and what was said since (Erkan and Radev 2004, continuous form)."""
    given = [*earlier(previous), *pieces(speaker_texts)][-MOST:]
    return filled(given, ranked(lexrank([words(text) for _, text in given])), budget)


def rare(previous: str, speaker_texts: Sequence[SpeakerText], before: Sequence[SpeakerText], budget: int) -> str:
    """Mean of term frequency times inverse sentence frequency, over the same."""
    given = [*earlier(previous), *pieces(speaker_texts)][-MOST:]
    return filled(given, ranked(tf_isf([words(text) for _, text in given])), budget)


def ranked(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda place: (-scores[place], place))


def tf_isf(sentences_words: Sequence[Sequence[str]]) -> list[float]:
    counts = Counter(word for sentence_words in sentences_words for word in set(sentence_words))
    scores = []
    for sentence_words in sentences_words:
        total = sum(n * log(len(sentences_words) / counts[word]) for word, n in Counter(sentence_words).items())
        scores.append(total / max(len(sentence_words), 1))
    return scores


def lexrank(sentences_words: Sequence[Sequence[str]], damping: float = 0.85) -> list[float]:
    table = cosines(sentences_words)
    table /= np.maximum(table.sum(axis=1, keepdims=True), 1e-9)
    ranks = np.full(len(sentences_words), 1 / max(len(sentences_words), 1))
    for _ in range(30):
        ranks = (1 - damping) / len(sentences_words) + damping * ranks @ table
    return [float(rank) for rank in ranks]


def cosines(sentences_words: Sequence[Sequence[str]]) -> np.ndarray:
    counts = Counter(word for sentence_words in sentences_words for word in set(sentence_words))
    column = {word: place for place, word in enumerate(counts)}
    table = np.zeros((len(sentences_words), len(column)), dtype=np.float32)
    for row, sentence_words in enumerate(sentences_words):
        for word, n in Counter(sentence_words).items():
            table[row, column[word]] = n * log(1 + len(sentences_words) / counts[word])
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
    likeness: np.ndarray = table @ table.T
    return likeness


BASELINES: dict[str, Maker] = {
    "first-N": first,
    "last-N": last,
    "random": drawn,
    "LexRank": central,
    "tf-isf": rare,
}
