"""Choose sentences for a summary within a number of tokens."""

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import regex

from roomlore.core.summary.sentences import SpeakerText, Unit, label_of, units
from roomlore.core.text import GRAPHEME, rarity

_JOINED = r"(?!\p{GCB=Extend}|\p{GCB=ZWJ}|\p{GCB=SpacingMark})"
_SENTENCE = regex.compile(rf"(?:[。！？；…]+[”’」』）)\"']*+|(?<![.!?])[.!?]++[”’)\]\"']*+(?=\s|\Z)|\n+){_JOINED}")


def cut(text: str, max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """Return the longest beginning of a text that fits, in whole graphemes; '' if none does."""
    if count([text])[0] <= max_tokens:
        return text
    ends = [0, *(found.end() for found in GRAPHEME.finditer(text))]
    return text[: ends[_most(text, ends, max_tokens, count)]].rstrip()


def cut_at_sentence(text: str, max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """Return the longest beginning of whole sentences that fits; if not even one does, of whole graphemes."""
    if count([text])[0] <= max_tokens:
        return text
    ends = [0, *(found.end() for found in _SENTENCE.finditer(text))]
    return text[: ends[_most(text, ends, max_tokens, count)]].rstrip() or cut(text, max_tokens, count)


def sentence_parts(text: str) -> list[str]:
    """Return the sentences of a text with all that is between them, so that together they are the text."""
    ends = [0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(ends) if end > start]


def _most(text: str, ends: Sequence[int], max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> int:
    """Return the index of an end up to which the text fits, and beyond which it (nearly always) does not. The first
    fits."""
    fits, beyond = 0, len(ends)
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if count([text[: ends[middle]].rstrip()])[0] <= max_tokens:
            fits = middle
        else:
            beyond = middle
    return fits


# Exact tokens of each text.
Count = Callable[[Sequence[str]], list[int]]

# The worth of a covered word; the worth of a sentence besides its words, and the fewest words for that.
_AGAIN = 0.15
_WHOLE = 5.0
_FEWEST = 4
# Neighbours often share a label.
_LABEL_SHARE = 0.7
# The number of further units tried in the remaining budget, and the number looked for.
_TRIES = 25
_MARGIN = 12
_FULL_WIDTH = tuple("。！？…；”’」』）")


def extract(previous: str, said: Sequence[SpeakerText], *, max_tokens: int, count: Count) -> str:
    """Return a summary in at most `max_tokens` tokens of the `previous` one ('' if none) and the messages after it.

    Sentences in order of time, shortened to a clause if that is better, under their speakers' labels, a line for each
    change of speaker. '' only if all texts are blank or not one character fits. The same input gives the same summary;
    no input raises. Reads the first 20,000 characters of each message.
    """
    found = units(previous, said)
    chosen = fitting(list(by_worth(found, max_tokens, count)), max_tokens, count)
    if chosen:
        return rendered(_extended(chosen, found, max_tokens, count))
    return next((short for text in _plain(previous, said) if (short := cut(text, max_tokens, count))), "")


def _plain(previous: str, said: Sequence[SpeakerText]) -> Iterator[str]:
    """Yield the fallback texts if no sentence fits or none has a word."""
    yield from (line.strip() for line in previous.splitlines() if line.strip())
    yield from (f"{label_of(one.speaker)}{' '.join(one.text.split())}" for one in said if one.text.strip())


def rendered(chosen: Sequence[Unit]) -> str:
    """Return the sentences in order of time, a line for each change of speaker."""
    text, label = "", None
    for unit in sorted(chosen, key=lambda unit: unit.place):
        if unit.label != label or not text:
            text += f"\n{unit.label}{unit.text}" if text else f"{unit.label}{unit.text}"
        else:
            text += unit.text if text.endswith(_FULL_WIDTH) else f" {unit.text}"
        label = unit.label
    return text


def by_worth(found: Sequence[Unit], max_tokens: int, count: Count) -> Iterator[Unit]:
    """Yield units, best first, no two of one sentence; ends some way after the budget is spent."""
    costs = _costs(found, count)
    weights = _weights(found)
    said: set[str] = set()

    def gain(at: int) -> float:
        unit = found[at]
        most = sum(weights[word] for word in unit.words)
        worth = sum(weights[word] * (_AGAIN if word in said else 1) for word in unit.words)
        whole = _WHOLE * min(1.0, len(unit.words) / _FEWEST)
        importance = math.exp(unit.importance * worth / most) if unit.importance and most else 1.0
        return unit.odds * importance * (worth + whole) / costs[at][1]

    queue = [(-gain(at), at) for at in range(len(found)) if costs[at][0] <= max_tokens]
    heapq.heapify(queue)
    taken: set[int] = set()
    spent = 0
    while queue and spent <= max_tokens + _MARGIN * max(costs[queue[0][1]][0], 1):
        _, at = heapq.heappop(queue)
        if found[at].place in taken:
            continue
        now = -gain(at)
        # Gains only decrease as words are covered, so a unit that still leads is the best of all.
        if queue and now > queue[0][0]:
            heapq.heappush(queue, (now, at))
            continue
        taken.add(found[at].place)
        said.update(found[at].words)
        spent += costs[at][0]
        yield found[at]


def _costs(found: Sequence[Unit], count: Count) -> list[tuple[int, float]]:
    """Return the tokens of each unit by itself, and with its share of the label."""
    labels = list(dict.fromkeys(unit.label for unit in found))
    shares = dict(zip(labels, count([f"\n{label}" for label in labels]), strict=True))
    alone = count([unit.text for unit in found])
    return [(tokens, tokens + _LABEL_SHARE * shares[unit.label]) for unit, tokens in zip(found, alone, strict=True)]


def _weights(found: Sequence[Unit]) -> dict[str, float]:
    """Return the rarity of each word among the sentences."""
    places = defaultdict[str, set[int]](set)
    for unit in found:
        for word in unit.words:
            places[word].add(unit.place)
    sentences = len({unit.place for unit in found})
    return {word: rarity(len(held), sentences) for word, held in places.items()}


def fitting(order: Sequence[Unit], max_tokens: int, count: Count) -> list[Unit]:
    """Return as many of the best as fit exactly, then those of the next few that still fit."""
    fits, beyond = 0, len(order) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if count([rendered(order[:middle])])[0] <= max_tokens:
            fits = middle
        else:
            beyond = middle
    chosen = list(order[:fits])
    for unit in order[fits : fits + _TRIES]:
        if count([rendered([*chosen, unit])])[0] <= max_tokens:
            chosen.append(unit)
    return chosen


def _extended(chosen: Sequence[Unit], found: Sequence[Unit], max_tokens: int, count: Count) -> list[Unit]:
    """Return the chosen units, best first, extended to whole sentences if there is room."""
    wholes = {unit.place: unit for unit in reversed(found)}
    grown = [wholes[unit.place] for unit in chosen]
    left = max_tokens - count([rendered(chosen)])[0]
    if count([rendered(grown)])[0] <= max_tokens:
        return grown
    kept = list(chosen)
    sizes = count([unit.text for unit in (*grown, *chosen)])
    for at, whole in enumerate(grown):
        if sizes[at] - sizes[len(kept) + at] > left + _MARGIN or whole == kept[at]:
            continue
        tried = [*kept[:at], whole, *kept[at + 1 :]]
        spent = count([rendered(tried)])[0]
        if spent <= max_tokens:
            kept, left = tried, max_tokens - spent
    return kept
