"""Shorten a conversation: choose sentences within a number of tokens, or make a language model's summary fit for use:
no refusal, no repeated prompt, and nothing lost that must not be."""

import heapq
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

import regex

from roomlore.core import lexicon
from roomlore.core.errors import BadModelOutput
from roomlore.core.patterns import lazy_pattern
from roomlore.core.safety import SAFETY, Coverage, importance
from roomlore.core.summary.sentences import SpeakerText, Unit, label_of, speaker_weight, units, worth
from roomlore.core.text import GRAPHEME, HAN, graphemes, head, rarity
from roomlore.core.text import sentences as sentences_of

_JOINED = r"(?!\p{GCB=Extend}|\p{GCB=ZWJ}|\p{GCB=SpacingMark})"
# The end of a sentence, with its closing marks; not inside a grapheme.
_SENTENCE = regex.compile(rf"(?:[。！？；…]+[”’」』）)\"']*+|(?<![.!?])[.!?]++[”’)\]\"']*+(?=\s|\Z)|\n+){_JOINED}")


def cut(text: str, max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """Return the longest beginning of a text that fits, in whole graphemes; '' if none does."""
    if count([text])[0] <= max_tokens:
        return text
    ends = [0, *(match.end() for match in GRAPHEME.finditer(text))]
    return text[: ends[_most(text, ends, max_tokens, count)]].rstrip()


def cut_at_sentence(text: str, max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """Return the longest beginning of whole sentences that fits; if not even one does, of whole graphemes."""
    if count([text])[0] <= max_tokens:
        return text
    ends = [0, *(match.end() for match in _SENTENCE.finditer(text))]
    return text[: ends[_most(text, ends, max_tokens, count)]].rstrip() or cut(text, max_tokens, count)


def sentence_parts(text: str) -> list[str]:
    """Return the sentences of a text with all that is between them, so that together they are the text."""
    ends = [0, *(match.end() for match in _SENTENCE.finditer(text)), len(text)]
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


def extract(previous: str, speeches: Sequence[SpeakerText], *, max_tokens: int, count: Count) -> str:
    """Return a summary in at most `max_tokens` tokens of the `previous` one ('' if none) and the messages after it.

    Sentences in order of time, shortened to a clause if that is better, under their speakers' labels, a line for each
    change of speaker. '' only if all texts are blank or not one character fits. The same input gives the same summary;
    no input raises. Reads the first 20,000 characters of each message.
    """
    all_units = units(previous, speeches)
    chosen = fitting(list(by_worth(all_units, max_tokens, count)), max_tokens, count)
    if chosen:
        return rendered(_extended(chosen, all_units, max_tokens, count))
    return next((short for text in _plain(previous, speeches) if (short := cut(text, max_tokens, count))), "")


def _plain(previous: str, speeches: Sequence[SpeakerText]) -> Iterator[str]:
    """Yield the fallback texts if no sentence fits or none has a word."""
    yield from (line.strip() for line in previous.splitlines() if line.strip())
    yield from (
        f"{label_of(speech.speaker)}{' '.join(speech.text.split())}" for speech in speeches if speech.text.strip()
    )


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


def by_worth(all_units: Sequence[Unit], max_tokens: int, count: Count) -> Iterator[Unit]:
    """Yield units, best first, no two of one sentence; ends some way after the budget is spent."""
    costs = _costs(all_units, count)
    weights = _weights(all_units)
    spoken_words: set[str] = set()

    def gain(at: int) -> float:
        unit = all_units[at]
        most = sum(weights[word] for word in unit.words)
        worth = sum(weights[word] * (_AGAIN if word in spoken_words else 1) for word in unit.words)
        whole = _WHOLE * min(1.0, len(unit.words) / _FEWEST)
        importance = math.exp(unit.importance * worth / most) if unit.importance and most else 1.0
        return unit.odds * importance * (worth + whole) / costs[at][1]

    queue = [(-gain(at), at) for at in range(len(all_units)) if costs[at][0] <= max_tokens]
    heapq.heapify(queue)
    taken: set[int] = set()
    spent = 0
    while queue and spent <= max_tokens + _MARGIN * max(costs[queue[0][1]][0], 1):
        _, at = heapq.heappop(queue)
        if all_units[at].place in taken:
            continue
        now = -gain(at)
        # Gains only decrease as words are covered, so a unit that still leads is the best of all.
        if queue and now > queue[0][0]:
            heapq.heappush(queue, (now, at))
            continue
        taken.add(all_units[at].place)
        spoken_words.update(all_units[at].words)
        spent += costs[at][0]
        yield all_units[at]


def _costs(all_units: Sequence[Unit], count: Count) -> list[tuple[int, float]]:
    """Return the tokens of each unit by itself, and with its share of the label."""
    labels = list(dict.fromkeys(unit.label for unit in all_units))
    shares = dict(zip(labels, count([f"\n{label}" for label in labels]), strict=True))
    alone = count([unit.text for unit in all_units])
    return [(tokens, tokens + _LABEL_SHARE * shares[unit.label]) for unit, tokens in zip(all_units, alone, strict=True)]


def _weights(all_units: Sequence[Unit]) -> dict[str, float]:
    """Return the rarity of each word among the sentences."""
    places = defaultdict[str, set[int]](set)
    for unit in all_units:
        for word in unit.words:
            places[word].add(unit.place)
    sentences = len({unit.place for unit in all_units})
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


def _extended(chosen: Sequence[Unit], all_units: Sequence[Unit], max_tokens: int, count: Count) -> list[Unit]:
    """Return the chosen units, best first, extended to whole sentences if there is room."""
    wholes = {unit.place: unit for unit in reversed(all_units)}
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


_MIN = 5
# The line that opens a block of code around an answer.
_FENCE = lazy_pattern(r"\s*```[^\n`]*\n")
# The heading of a summary, with its marks of Markdown.
_LABEL = lazy_pattern(
    rf"\A\s*(?:#{{1,6}}\s*)?(?:\*\*|__)?(?:{lexicon.alternatives('summary_label')})(?:\*\*|__)?\s*(?:[:：](?:\*\*|__)?|\n)",
    re.IGNORECASE,
)
# An answer that says only that there is nothing to keep.
_NOTHING = lazy_pattern(rf"[\s\W_]*(?:{lexicon.alternatives('no_summary')})[\s\W_]*", re.IGNORECASE)
_REFUSAL = lexicon.pattern("refused_answer")
_READ = 20_000
_REFUSED_IN = 2
"""Sentences from the beginning in which a model refuses."""
_SHORT = 400
"""Characters of an answer in which its last sentence is read too."""
# A word: one character of Chinese, a run of letters otherwise.
_WORD = regex.compile(rf"[{HAN}]|[\p{{L}}\p{{N}}]+")
_RUN = 8
"""Words in a row that only one who copies has in common with a prompt."""
_ECHOED = 0.3
"""The share of an answer's runs from which it repeats the prompt."""
_LINES = 0.5
"""The share of the tokens that lines added to a model's summary get, if it leaves no more."""


def says_nothing(text: str) -> bool:
    """Return True if an answer is only the mark, or the words, that nothing is worth keeping."""
    return _NOTHING.fullmatch(text) is not None


def accepted(answer: str, *, max_tokens: int, count: Count) -> str:
    """Return the summary in a model's answer: without fences and a leading label, and in at most `max_tokens` tokens; a
    longer one without its sentences of least weight.

    Raise `BadModelOutput` if it is shorter than 5 characters, cut or not, refuses, or says that nothing is worth
    keeping.
    """
    summary = _bare(answer)
    if says_nothing(summary):
        raise BadModelOutput("summary_says_nothing")
    if refuses(summary):
        raise BadModelOutput("summary_refused")
    summary = shortened(summary, max_tokens, count)
    if graphemes(summary) < _MIN:
        raise BadModelOutput("model_summary_too_short", most=_MIN)
    return summary


def refuses(answer: str) -> bool:
    """Return True if an answer is no summary but an apology, a refusal, or an offer of help."""
    sentences = sentences_of(head(answer[:_READ]))
    read = sentences[:_REFUSED_IN] + (sentences[-1:] if len(answer) <= _SHORT else [])
    return any(_REFUSAL.search(sentence) for sentence in read)


def echoes(answer: str, instructions: str) -> bool:
    """Return True if an answer repeats the instructions that asked for it."""
    runs_of_answer, runs_of_instructions = _runs(answer), _runs(instructions)
    return bool(runs_of_answer) and len(runs_of_answer & runs_of_instructions) >= _ECHOED * len(runs_of_answer)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(head(text))
    return {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}


def shortened(summary: str, max_tokens: int, count: Count) -> str:
    """Return a summary in at most `max_tokens` tokens: the sentences of most weight as they stand; if not even one
    fits, the longest beginning."""
    if count([summary])[0] <= max_tokens:
        return summary
    parts = sentence_parts(summary)
    weights = [worth(part) + importance(part) for part in parts]
    order = sorted(range(len(parts)), key=lambda at: (-weights[at], at))
    text, fits, beyond = "", 0, len(order) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        tried = _joined(parts, set(order[:middle]))
        if count([tried])[0] <= max_tokens:
            text, fits = tried, middle
        else:
            beyond = middle
    return text if graphemes(text) >= _MIN else cut_at_sentence(summary, max_tokens, count)


def _joined(parts: Sequence[str], kept: Collection[int]) -> str:
    """Return the parts at these places as they stand, with the space before what is left out between two of them."""
    parts_joined, gap = list[str](), ""
    for at, part in enumerate(parts):
        if at in kept:
            parts_joined.append(part if part[:1].isspace() else gap + part)
            gap = ""
        else:
            gap = gap or part[: len(part) - len(part.lstrip())]
    return "".join(parts_joined).strip()


def completed(summary: str, previous: str, speeches: Sequence[SpeakerText], *, max_tokens: int, count: Count) -> str:
    """Return a model's summary with the sentences it lacks of those that must not be lost, in at most `max_tokens`
    tokens.

    `previous`, `speeches`: what it summarises. What is added stands below it, under its speakers' labels.
    """
    lacking = _lacking(summary, units(previous, speeches), max_tokens, count)
    room = max_tokens - count([f"{summary}\n"])[0]
    grave = [unit for unit in lacking if unit.importance >= SAFETY]
    added = fitting(grave, max_tokens, count)
    others = [unit for unit in lacking if unit.importance < SAFETY]
    spent = count([rendered(added)])[0] if added else 0
    added = fitting([*added, *others], max(spent, room, int(_LINES * max_tokens)), count) if others else added
    if not added:
        return summary
    lines = rendered(added)
    left = max_tokens - count([f"\n{lines}"])[0]
    while left >= _MIN:
        text = f"{shortened(summary, left, count)}\n{lines}"
        over = count([text])[0] - max_tokens
        if over <= 0:
            return text
        left -= over
    return lines


def _lacking(summary: str, all_units: Sequence[Unit], max_tokens: int, count: Count) -> list[Unit]:
    """Return the sentences that must not be lost and that the summary does not stand for, best first."""
    wholes = {unit.place: unit for unit in reversed(all_units)}.values()
    held = Coverage(sentences_of(summary), [unit.text for unit in wholes])
    needed = [
        unit
        for unit in wholes
        if unit.importance and (unit.importance >= SAFETY or speaker_weight(unit.label) == 0) and unit.text not in held
    ]
    lacking = []
    for unit in by_worth(needed, max_tokens, count):
        if unit.text not in held:
            lacking.append(unit)
            held.add(unit.text)
    return lacking


def without_label(summary: str) -> str:
    """Return a summary without the labels before it ('Summary:', '历史摘要：', '**Summary:**', one or several)."""
    bare = summary.strip()
    while match := _LABEL.match(bare):
        bare = bare[match.end() :].strip()
    return bare


def _bare(answer: str) -> str:
    """Return the answer without a label and a fence, in either order."""
    for _ in range(2):
        fence = _FENCE.match(answer)
        inside = answer[fence.end() :].rstrip().removesuffix("```").rstrip() if fence else answer
        answer = _LABEL.sub("", inside, count=1)
    return answer.strip()
