"""A summary chosen from a conversation: the sentences that hold most of what may be asked for, for their tokens.

Greedy maximum coverage with a budget (Lin and Bilmes 2010): a sentence is worth its rare words that nothing chosen
says yet, times its odds of being asked for, over what it costs. Measured in docs/explanation/summaries.md.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from roomlore.core.summary.cutting import cut
from roomlore.core.summary.units import Said, Unit, label_of, units

# Exact tokens of each text.
Count = Callable[[Sequence[str]], list[int]]

# What a word is worth that is said already; what a sentence is worth besides its words, and the fewest words for that.
_AGAIN = 0.15
_WHOLE = 5.0
_FEWEST = 4
# Neighbours often share a label.
_LABEL_SHARE = 0.7
# How many more are tried in what is left, and how many of them are looked for.
_TRIES = 25
_MARGIN = 12
_FULL_WIDTH = tuple("。！？…；”’」』）")


def extract(previous: str, said: Sequence[Said], *, max_tokens: int, count: Count) -> str:
    """A summary in at most `max_tokens` tokens of the `previous` one ('' if none) and what was said after it.

    Sentences in order of time, shortened to a clause where that pays, under their speakers' labels, a line for each
    change of speaker. '' only where all texts are blank or not one character fits. The same input gives the same
    summary; no input raises. Reads the first 20,000 characters of each message.
    """
    found = units(previous, said)
    chosen = _fitting(list(_by_worth(found, max_tokens, count)), max_tokens, count)
    if chosen:
        return rendered(_grown(chosen, found, max_tokens, count))
    return next((short for text in _plain(previous, said) if (short := cut(text, max_tokens, count))), "")


def _plain(previous: str, said: Sequence[Said]) -> Iterator[str]:
    """What to fall back on where no sentence fits or none has a word."""
    yield from (line.strip() for line in previous.splitlines() if line.strip())
    yield from (f"{label_of(one.speaker)}{' '.join(one.text.split())}" for one in said if one.text.strip())


def rendered(chosen: Sequence[Unit]) -> str:
    """The sentences in order of time, a line for each change of speaker."""
    text, label = "", None
    for unit in sorted(chosen, key=lambda unit: unit.place):
        if unit.label != label or not text:
            text += f"\n{unit.label}{unit.text}" if text else f"{unit.label}{unit.text}"
        else:
            text += unit.text if text.endswith(_FULL_WIDTH) else f" {unit.text}"
        label = unit.label
    return text


def _by_worth(found: Sequence[Unit], max_tokens: int, count: Count) -> Iterator[Unit]:
    """Units to take, best first, no two of one sentence; ends some way after the budget is spent."""
    costs = _costs(found, count)
    weights = _weights(found)
    said: set[str] = set()

    def gain(at: int) -> float:
        unit = found[at]
        worth = sum(weights[word] * (_AGAIN if word in said else 1) for word in unit.words)
        whole = _WHOLE * min(1.0, len(unit.words) / _FEWEST)
        return unit.odds * (worth + whole) / costs[at][1]

    queue = [(-gain(at), at) for at in range(len(found)) if costs[at][0] <= max_tokens]
    heapq.heapify(queue)
    taken: set[int] = set()
    spent = 0
    while queue and spent <= max_tokens + _MARGIN * max(costs[queue[0][1]][0], 1):
        _, at = heapq.heappop(queue)
        if found[at].place in taken:
            continue
        now = -gain(at)
        # Gains only fall as words are said, so one that still leads now is the best of all.
        if queue and now > queue[0][0]:
            heapq.heappush(queue, (now, at))
            continue
        taken.add(found[at].place)
        said.update(found[at].words)
        spent += costs[at][0]
        yield found[at]


def _costs(found: Sequence[Unit], count: Count) -> list[tuple[int, float]]:
    """Tokens of each unit by itself, and with its share of the label."""
    labels = list(dict.fromkeys(unit.label for unit in found))
    shares = dict(zip(labels, count([f"\n{label}" for label in labels]), strict=True))
    alone = count([unit.text for unit in found])
    return [(tokens, tokens + _LABEL_SHARE * shares[unit.label]) for unit, tokens in zip(found, alone, strict=True)]


def _weights(found: Sequence[Unit]) -> dict[str, float]:
    """How rare each word is among the sentences."""
    places = defaultdict[str, set[int]](set)
    for unit in found:
        for word in unit.words:
            places[word].add(unit.place)
    sentences = len({unit.place for unit in found})
    return {word: _rarity(len(held), sentences) for word, held in places.items()}


def _rarity(found: int, sentences: int) -> float:
    return math.log1p((sentences - found + 0.5) / (found + 0.5))


def _fitting(order: Sequence[Unit], max_tokens: int, count: Count) -> list[Unit]:
    """As many of the best as fit exactly, then whichever of the next few still do."""
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


def _grown(chosen: Sequence[Unit], found: Sequence[Unit], max_tokens: int, count: Count) -> list[Unit]:
    """The chosen, best first, those for which there is room as whole sentences."""
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
