"""The sentences and clauses that a summary is chosen from, and how likely each is to be asked for later."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import NamedTuple

import regex

from roomlore.core import lexicon
from roomlore.core.dates.languages import names_time
from roomlore.core.mentions import sounds_like_agent
from roomlore.core.patterns import lazy_pattern
from roomlore.core.safety import DECISION, SAFETY, WHOLE, importance
from roomlore.core.summary.corrections import corrected
from roomlore.core.text import (
    AS_LONG_AS_A_WORD,
    HAN,
    OTHER_LETTER,
    READ_LIMIT,
    asks,
    greets,
    head,
    language,
    sentences,
    truncate,
    words,
)
from roomlore.core.values import GONE

_LONGEST = 600
_MAX = 6
# Marks that enclose, which a sentence must not end inside; a smiley is none.
_PAIRS = tuple(
    (lazy_pattern(opening), lazy_pattern(closing))
    for opening, closing in (
        ("“", "”"),
        ("「", "」"),
        ("『", "』"),
        ("《", "》"),
        ("【", "】"),
        (r"(?<![:;=-])[(（]", r"(?<![:;=-])[)）]"),
        (r"\[", r"\]"),
    )
)
# An apostrophe closes nothing, so only opening single quotation marks are matched with an end.
_SINGLE = lazy_pattern(r"(?<![^\s(“\"])['‘](?=[^\W\d])"), lazy_pattern(r"(?<=\S)['’](?!\w)")
# Text that continues a sentence after a quotation.
_GOES_ON = lazy_pattern(r"[a-z，、]|就|便|才|然后|然後")


def unsplit(text: str) -> list[str]:
    """Return the sentences of a text; those within one quotation or bracket are joined if it ends on the same line,
    within six sentences and 600 characters."""
    spans = _spans(text)
    whole_sentences, at = list[str](), 0
    while at < len(spans):
        upto = _whole(text, spans, at)
        if whole_sentences and whole_sentences[-1] == GONE:
            whole_sentences[-1] = text[spans[at - 1][0] : spans[upto][1]]
        else:
            whole_sentences.append(text[spans[at][0] : spans[upto][1]])
        at = upto + 1
    return whole_sentences


def is_fragment(part: str, whole: str) -> bool:
    """Return True if a part of a sentence has one half of a quotation or bracket that the sentence has both halves
    of."""
    return not _is_balanced(part) and _is_balanced(whole)


def _spans(text: str) -> list[tuple[int, int]]:
    spans, at = [], 0
    for sentence in sentences(text):
        start = text.index(sentence, at)
        at = start + len(sentence)
        spans.append((start, at))
    return spans


def _whole(text: str, spans: list[tuple[int, int]], first: int) -> int:
    """Return the last sentence that belongs to the quotation opened in the first; the first if it is not closed."""
    start, whole = spans[first][0], first
    if first == len(spans) - 1:
        return first
    for last, (_, end) in enumerate(spans[first : first + _MAX], first):
        if end - start > _LONGEST or "\n" in text[start:end]:
            break
        if _opens(text[start:end]):
            continue
        whole = last
        if last in (first, len(spans) - 1) or not _GOES_ON.match(text, spans[last + 1][0]):
            break
    return whole


def _opens(text: str) -> bool:
    return any(opened > closed for opened, closed in _marks(text))


def _is_balanced(text: str) -> bool:
    *pairs, single = _marks(text)
    return all(opened == closed for opened, closed in pairs) and single[0] <= single[1]


def _marks(text: str) -> list[tuple[int, int]]:
    """Return how often each kind is opened and closed; the single quotation marks come last."""
    counts = [(len(opening.findall(text)), len(closing.findall(text))) for opening, closing in (*_PAIRS, _SINGLE)]
    return [(text.count('"') % 2, 0), *counts]


class Cue(NamedTuple):
    weight: float
    sign: re.Pattern[str]


# The end of a former state, or a decision.
CHANGED = lexicon.pattern("changed_state", re.IGNORECASE)
# A telephone number; a date, a version and a price are none.
_PHONE = lazy_pattern(
    r"(?<![a-z\d./-])(?!(?:19|20)\d\d[ -])\+?\(?\d{2,4}\)?(?:[ -]?\d{3,4}){1,4}(?<=\d{4})(?![a-z\d]|[.,/-]\d)"
)
# A sentence says when.
_WHEN, _TIME_TOLD = lexicon.pattern("time_told"), 0.6
# What makes a sentence more, or less, likely to be asked for.
_CUES = (
    Cue(0.5, lexicon.pattern("about_self")),
    Cue(0.3, lexicon.pattern("experience")),
    Cue(0.1, lexicon.pattern("count_told")),
    Cue(0.2, lexicon.pattern("liking")),
    Cue(0.2, lexicon.pattern("intent")),
    Cue(0.15, lexicon.pattern("family")),
    Cue(0.3, lexicon.pattern("biography")),
    Cue(0.8, lexicon.pattern("harm")),
    Cue(0.3, CHANGED),
    Cue(0.6, lexicon.pattern("to_remember")),
    Cue(0.8, _PHONE),
    Cue(-0.5, lexicon.pattern("courtesy")),
    Cue(-0.3, lexicon.pattern("closing_phrase")),
    Cue(-0.15, lexicon.pattern("to_reader")),
    Cue(-0.8, lazy_pattern("[{}<>=]|\\(\\)|^[#|`]")),
)
# A name: a capital letter inside a sentence, a title, Latin letters in Chinese, a quotation.
_NAME = lazy_pattern(
    rf"(?<=[a-z,;:'\"] )(?!I\b)[A-Z][A-Za-z]+|《[^《》]+》|(?<=[{HAN}])[A-Za-z]{{2,}}|[“「][^”」]{{2,30}}[”」]"
)
_NAMES, _MAX_NAMES = 0.25, 2
# It says little without the sentence before it.
_VAGUE = lexicon.pattern("vague")
# A word, or as much of a script without spaces, or a number.
_SIZE = lazy_pattern(rf"(?:[a-z]++|{OTHER_LETTER})+(?:['’][a-z]+)?|{AS_LONG_AS_A_WORD}|\d+(?:[.,:]\d+)*")
_SHORT, _FEW_HAN, _FEW = -0.7, 8, 5
_POINTING, _POINTING_UPTO = -0.3, 1.6
_QUESTION, _GREETING, AGENT, CROWD = -0.5, -0.8, -0.8, -0.5


def worth(text: str) -> float:
    """Return the log-odds of a sentence or a part of one, whoever said it."""
    folded = head(text)
    total = sum(cue.weight for cue in _CUES if cue.sign.search(folded))
    total += _TIME_TOLD * bool(_WHEN.search(folded) or names_time(folded))
    total += _NAMES * min(_MAX_NAMES, len(_NAME.findall(text)))
    total += _fragment(folded)
    if asks(folded):
        total += _QUESTION
    return total + _GREETING if greets(folded) else total


def _fragment(folded: str) -> float:
    """Return the deduction for a short text and for one that refers to another."""
    size = len(_SIZE.findall(folded)) / (_FEW_HAN if language(folded) == "zh" else _FEW)
    if size >= _POINTING_UPTO:
        return 0.0
    return (_SHORT if size < 1 else 0.0) + (_POINTING if _VAGUE.search(folded) else 0.0)


LONGEST = 600
_MAX_CLAUSES = 8
_PERSON = rf"{lexicon.forms('pronoun', 'en')}\b"
_LINK = lexicon.forms("conjunction", "en")
# Where a clause begins that can stand alone.
_CUT = lazy_pattern(
    r"(?<=[^\s\d];)\s+|\s+[-–—]+\s+|(?<=[，；])"
    rf"|(?<=[^\s\d],)\s+(?=(?:{_LINK}\s)?{_PERSON})"
    r"|(?<=[^\s\d],)\s+(?=(?:which|where|who|including|especially|with|but|because|so|while|since|although|though)\s)"
    rf"|\s+(?=(?:so that|because|but|so|while|which)\s{_PERSON})",
    re.IGNORECASE,
)
_JOINT = lexicon.pattern("joint", re.IGNORECASE)
# A clause under a condition is not used without the condition.
_CONDITION = lexicon.pattern("condition", re.IGNORECASE)
_UNITS = (
    r"(?:[mk]?g|m?l|[ckm]?m|lbs?|oz|[gmk]b|[ap]\.?m|k|miles?|hours?|hrs?|min(?:ute)?s?|days?|weeks?|months?|years?|euros?"
    r"|dollars?|pounds?|tablets?|pills?)\b"
)
# `bare`: a number without a unit, matched whole so that it is read once. A sentence must not lose these, unless it is
# long: a negation, an allergy, a number with its unit, a change.
_KEPT = lazy_pattern(
    rf"{lexicon.alternatives('kept_word')}"
    rf"|[€$£¥]\s?\d|\d[\d.,:/]*+(?:\s?(?:[%°{HAN}]|{_UNITS})|(?P<bare>))"
    r"|(?:(?<![一二两兩三四五六七八九十百千万萬半])|(?<=千[万萬]))[一二两兩三四五六七八九十百千万萬半]++(?:[元块塊点點号號日月年岁歲斤克米平天周次片粒度]|公[里斤]|毫克|分[钟鐘]|小[时時])"
    rf"|{CHANGED.pattern}",
    re.IGNORECASE,
)
_LONG = 240
# What can begin a sentence of its own.
_STANDS = lazy_pattern(rf"(?i:{_PERSON})|[A-Z《“{HAN}]")
# Words that open a sentence and say nothing.
_OPENING = lazy_pattern(rf"{lexicon.alternatives('opening')}+", re.IGNORECASE)
# The mark or the number of an item of a list.
_BULLET = lazy_pattern(r"\A(?:[-*•#>|]+|\d{1,3}[.)、])\s+")
# Marks and emoji, which are no words.
_LOOSE = regex.compile(r"(?:[\s,，;；:：、~～–—-]|(?=[\u2600-\u27bf\U0001f300-\U0001faff])\X)++")
# A Chinese character.
_HAN = lazy_pattern(f"[{HAN}]")
_MARKS = tuple(".!?。！？…")
_ENDS, _CLOSING = (*_MARKS, "；", ";"), "”’」』）)]\"'"


def readings(sentence: str) -> list[str]:
    """Return the readings of a sentence, the whole first; each ends with a mark that `sentences` splits at. Empty if
    nothing but emoji or punctuation is left."""
    sentence = truncate(_BULLET.sub("", sentence).replace("**", ""), LONGEST)
    sentence_readings = dict.fromkeys((closed(sentence), *_parts(_without_opening(sentence))))
    return [reading for reading in sentence_readings if reading]


def closed(text: str) -> str:
    """Return the text with a full stop unless it has an end mark; trailing emoji are removed."""
    if text.endswith(_MARKS):
        return text
    tail = next((run.start() for run in _LOOSE.finditer(text) if run.end() == len(text)), None)
    text = text[:tail]
    if not text or text.rstrip(_CLOSING).endswith(_ENDS):
        return text
    return text + ("。" if language(text) == "zh" else ".")


def _without_opening(sentence: str) -> str:
    opening = _OPENING.match(sentence)
    return _capital(sentence[opening.end() :]) if opening else sentence


def _parts(sentence: str) -> list[str]:
    """Return the sentence and the runs of its clauses that can begin a sentence."""
    cuts = [match.span() for match in _CUT.finditer(sentence)]
    if len(cuts) >= _MAX_CLAUSES or _CONDITION.search(sentence):
        return [closed(sentence)]
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(sentence)]
    kept_from, kept_to = _kept(sentence)
    parts_kept = [closed(sentence)]
    for first, start in enumerate(starts):
        opening = _JOINT.match(sentence, start) if first else None
        start = opening.end() if opening else start
        if start <= kept_from and (not first or _STANDS.match(sentence, start)):
            parts = [sentence[start:end] for end in ends[first:] if end >= kept_to]
            parts_kept += [closed(_capital(part)) for part in parts if not is_fragment(part, sentence)]
    return parts_kept


def _kept(sentence: str) -> tuple[int, int]:
    """Return the span that a part must include at least."""
    spans = [match.span() for match in _KEPT.finditer(sentence) if match["bare"] is None]
    if not spans or len(sentence) + 2 * len(_HAN.findall(sentence)) > _LONG:
        return len(sentence), 0
    return spans[0][0], spans[-1][1]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:] if text[:2].isascii() and text else text


# A sentence of the earlier summary represents those it was chosen over; one that a person wrote represents more, and it
# lacks the features by which speech is scored.
_EARLIER, _WRITTEN = math.log(1.3), 0.7
_MACHINES = frozenset({"Tool", "System", "工具", "系统"})
_LONGEST_LABEL = 40
# The speaker before a colon; a colon inside a sentence is none.
_LABEL = lazy_pattern(r"(?P<label>[^\s:：。！？.!?][^:：。！？!?]{0,39}(?:: |：))(?=\S)")


@dataclass(frozen=True, slots=True)
class SpeakerText:
    """One message. `speaker`: a label such as "User", "用户" or a name; may be ''."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One reading of a sentence. `place`: the sentence's position in time, shared by its readings. `label`: the
    speaker, as written before it. `words`: each once. `odds`: the relative odds of being asked for. `importance`: what
    the first sentence that says this has besides, in log-odds, because it must not be lost."""

    place: int
    label: str
    text: str
    words: tuple[str, ...]
    odds: float
    importance: float = 0.0


_CORRECTION = 0.8
"""The importance of a sentence that corrects a value."""

# A label and the sentences of one message.
_Told = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence. `written`: a person wrote it as part of a summary, so it is short already. `corrects`: it is of a
    message that corrects an earlier one."""

    label: str
    text: str
    odds: float
    written: bool = False
    corrects: bool = False


def units(previous: str, speeches: Sequence[SpeakerText]) -> list[Unit]:
    """Return all readings with at least one word, in order of time, without values that were corrected later."""
    earlier = [_labelled(line) for line in previous.splitlines()]
    texts = [*(text for _, text in earlier), *(speech.text for speech in speeches)]
    speakers = [*(label.rstrip(": ：") for label, _ in earlier), *(speech.speaker for speech in speeches)]
    read = corrected(texts, speakers, since=len(earlier))
    lines = [(label, text) for (label, _), text in zip(earlier, read.texts, strict=False)]
    spoken = [
        (label_of(speech.speaker), prose(text))
        for speech, text in zip(speeches, read.texts[len(earlier) :], strict=True)
    ]
    corrects = [place in read.corrections for place in range(len(earlier), len(read.texts))]
    readings_of = lru_cache(maxsize=256)(_read)  # people repeat themselves
    all_units = []
    for place, sentence in enumerate((*_earlier(lines, spoken), *_since(spoken, corrects))):
        parts = readings_of(sentence.text)
        left = _CORRECTION if sentence.corrects else DECISION if GONE in sentence.text else 0.0
        kept = max(importance(sentence.text), left)
        for number, (text, held, worthy) in enumerate(
            parts[:1] if sentence.written or _is_whole(sentence.text, kept) else parts
        ):
            if len(held) > (number > 0) and not (len(held) == 1 and greets(head(text))):
                odds = math.exp(sentence.odds + worthy)
                all_units.append(Unit(place, sentence.label, text, held, odds, kept))
    return all_units


def _is_whole(sentence: str, kept: float) -> bool:
    """Return True if a sentence must not be shortened."""
    return kept >= SAFETY or (kept >= WHOLE and len(sentence) + 2 * len(_HAN.findall(sentence)) <= _LONG)


def _read(sentence: str) -> list[tuple[str, tuple[str, ...], float]]:
    """Return each reading of a sentence with its words and its worth, the whole sentence first."""
    parts = readings(sentence) or [""]
    return [(text, tuple(dict.fromkeys(words(text))), worth(text)) for text in parts]


def _since(spoken: Sequence[_Told], corrects: Sequence[bool]) -> Iterator[_Sentence]:
    for (label, texts), correcting in zip(spoken, corrects, strict=True):
        odds = _length_discount(texts) + speaker_weight(label)
        for text in texts:
            yield _Sentence(label, text, odds, corrects=correcting)


def _labelled(line: str) -> tuple[str, str]:
    named = _LABEL.match(line)
    return (named["label"], line[named.end() :]) if named else ("", line)


def _earlier(lines: Sequence[tuple[str, str]], spoken: Sequence[_Told]) -> Iterator[_Sentence]:
    """Yield the sentences of the earlier summary, discounted for their speakers' long messages like later ones."""
    crowds = _speaker_discounts(spoken)
    for label, text in lines:
        written = not label and "" not in crowds
        odds = _EARLIER + (_WRITTEN if written else crowds[label] + speaker_weight(label))
        for sentence in unsplit(text[:READ_LIMIT]):
            yield _Sentence(label, " ".join(sentence.split()), odds, written)


def prose(text: str) -> list[str]:
    """Return the sentences of a text, each on one line, without blocks of code. Reads the first 20,000 characters."""
    lines, code = [], False
    for sentence in unsplit(text[:READ_LIMIT]):
        fences = sentence.count("```")
        if not (code or fences):
            lines.append(" ".join(sentence.split()))
        code ^= fences % 2 == 1
    return lines


def _length_discount(texts: Sequence[str]) -> float:
    """Return the discount for long messages: the more sentences, the less likely each is asked for."""
    return CROWD * math.log(max(len(texts), 1))


def _speaker_discounts(spoken: Sequence[_Told]) -> defaultdict[str, float]:
    """Return the usual discount of each speaker, and the default for one without later messages."""
    discounts = defaultdict[str, list[float]](list)
    for label, texts in spoken:
        if texts:
            discounts[label].append(_length_discount(texts))
    usual = fmean(crowd for crowds in discounts.values() for crowd in crowds) if discounts else 0.0
    return defaultdict(lambda: usual, {label: fmean(crowds) for label, crowds in discounts.items()})


def speaker_weight(label: str) -> float:
    """Return the discount for what a machine says."""
    name = label.rstrip(": ：")
    return AGENT if name in _MACHINES or sounds_like_agent(name) else 0.0


def label_of(speaker: str) -> str:
    """Return the label before a speaker's words, such as "User: "; '' for nobody."""
    name = truncate(" ".join(speaker.replace(":", " ").replace("：", " ").split()), _LONGEST_LABEL - 2).strip()
    return f"{name}: " if name else ""
