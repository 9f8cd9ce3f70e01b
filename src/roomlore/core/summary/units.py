"""What a summary is chosen from: the sentences of the one before it and of what was said since, in their readings."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from roomlore.core.dialogue import sounds_like_agent
from roomlore.core.summary.clauses import readings
from roomlore.core.summary.cues import AGENT, CROWD, worth
from roomlore.core.summary.quotes import unsplit
from roomlore.core.text import READ_LIMIT, truncate, words

# A sentence of the earlier summary stands for those it was chosen before; one that somebody wrote, for more, and it has
# none of the signs by which speech is judged.
_EARLIER, _WRITTEN = math.log(1.3), 0.7
_MACHINES = frozenset({"Tool", "System", "工具", "系统"})
_LONGEST_LABEL = 40
_LABEL = re.compile(r"(?P<label>[^\s:：。！？.!?][^:：。！？!?]{0,39}(?:: |：))(?=\S)")


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `speaker`: a label such as "User", "用户" or a name; may be ''."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One reading of a sentence. `place`: the sentence's place in time, shared by its readings. `label`: who says it,
    as written before it. `words`: each once. `odds`: how likely it is to be asked for, against the others."""

    place: int
    label: str
    text: str
    words: tuple[str, ...]
    odds: float


# A label and the sentences of one message.
_Told = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Sentence:
    """`written`: somebody wrote it as a part of a summary, so it is short already."""

    label: str
    text: str
    odds: float
    written: bool = False


def units(previous: str, said: Sequence[Said]) -> list[Unit]:
    """All readings with at least one word, in order of time."""
    told = [(label_of(one.speaker), prose(one.text)) for one in said]
    found = []
    for place, sentence in enumerate((*_earlier(previous, told), *_since(told))):
        whole, *parts = readings(sentence.text) or [""]
        for number, text in enumerate([whole] if sentence.written else [whole, *parts]):
            held = tuple(dict.fromkeys(words(text)))
            if len(held) > (number > 0):
                odds = math.exp(sentence.odds + worth(text))
                found.append(Unit(place, sentence.label, text, held, odds))
    return found


def _since(told: Sequence[_Told]) -> Iterator[_Sentence]:
    for label, texts in told:
        odds = _crowd(texts) + _station(label)
        for text in texts:
            yield _Sentence(label, text, odds)


def _earlier(previous: str, told: Sequence[_Told]) -> Iterator[_Sentence]:
    """Sentences of the earlier summary, discounted for their speakers' long messages as those said since are."""
    crowds = _crowds(told)
    for line in previous.splitlines():
        named = _LABEL.match(line)
        label, text = (named["label"], line[named.end() :]) if named else ("", line)
        written = not label and "" not in crowds
        odds = _EARLIER + (_WRITTEN if written else crowds[label] + _station(label))
        for sentence in unsplit(text[:READ_LIMIT]):
            yield _Sentence(label, " ".join(sentence.split()), odds, written)


def prose(text: str) -> list[str]:
    """The sentences of a text, each on one line, without blocks of code. Reads the first 20,000 characters."""
    found, code = [], False
    for sentence in unsplit(text[:READ_LIMIT]):
        fences = sentence.count("```")
        if not (code or fences):
            found.append(" ".join(sentence.split()))
        code ^= fences % 2 == 1
    return found


def _crowd(texts: Sequence[str]) -> float:
    """The more sentences a message has, the less each is likely to be asked for."""
    return CROWD * math.log(max(len(texts), 1))


def _crowds(told: Sequence[_Told]) -> defaultdict[str, float]:
    """What is usual for each speaker, and for one who has said nothing since."""
    found = defaultdict[str, list[float]](list)
    for label, texts in told:
        if texts:
            found[label].append(_crowd(texts))
    usual = fmean(crowd for crowds in found.values() for crowd in crowds) if found else 0.0
    return defaultdict(lambda: usual, {label: fmean(crowds) for label, crowds in found.items()})


def _station(label: str) -> float:
    name = label.rstrip(": ：")
    return AGENT if name in _MACHINES or sounds_like_agent(name) else 0.0


def label_of(speaker: str) -> str:
    """What stands before a speaker's words, such as "User: "; '' for nobody."""
    name = truncate(" ".join(speaker.replace(":", " ").replace("：", " ").split()), _LONGEST_LABEL - 2).strip()
    return f"{name}: " if name else ""
