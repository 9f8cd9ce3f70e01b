"""Read from its cues, in both languages, if a sentence decides, rules, appoints, plans, cancels or prefers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from roomlore.core import lexicon
from roomlore.core.dates.languages import names_time
from roomlore.core.evolution.offline.reading import keys_of
from roomlore.core.patterns import lazy_pattern
from roomlore.core.safety import is_safety
from roomlore.core.text import HAN, HANGUL, KANA, asks, fold, greets, sentences, thanks

Purpose = Literal["change", "cancellation", "decision", "rule", "habit", "role", "person", "plan"]


class _Cue(NamedTuple):
    purpose: Purpose
    weight: float
    spaced: re.Pattern[str]
    chinese: re.Pattern[str]


def _cue(purpose: Purpose, weight: float) -> _Cue:
    return _Cue(
        purpose, weight, lexicon.pattern(purpose, without="zh"), lazy_pattern(lexicon.alternatives(purpose, "zh"))
    )


CLOCK = lexicon.pattern("clock_time")
DAY = lexicon.pattern("day")
_CUES = (
    _cue("change", 1.0),
    _cue("cancellation", 1.2),
    _cue("decision", 0.9),
    _cue("rule", 0.8),
    _cue("habit", 0.9),
    _cue("role", 0.9),
    _cue("person", 0.9),
    _cue("plan", 0.3),
)
_ANNOUNCED = lexicon.pattern("announcement")
_JOKES = lexicon.pattern("joke")
_SUPPOSED = lexicon.pattern("supposition")
_HEARSAY = lexicon.pattern("hearsay")
_PAST = lexicon.pattern("past")
_AGREES = lexicon.pattern("assent")
_REFUSES = lexicon.pattern("refusal")
# Logs, code and shell commands, which say nothing that a memory could hold.
_MACHINE = lazy_pattern(
    r"[{}<>|\\]|\(\)|::|\A\W*(?:error|warn(?:ing)?|info|debug|exception|traceback|caused by|at \w+\.)\b|\A[$#]"
    r"|\A【?[^\s：:】]{0,10}(?:助手|机器人|機器人|bot)[】：:]|\A[!-~]+\Z|\A\[[^\]]{1,8}\]\Z"
)
_DOSE = lexicon.pattern("amount_taken")
_CORRELATIVE = lexicon.pattern("no_question")
_DOES_IT = lexicon.pattern("does_it_myself")
_POINTING = lexicon.pattern("pointing")
# A Chinese character.
_HAN_RUN = lazy_pattern(f"[{HAN}]")
# What counts as a word: one character of Chinese or Japanese, a run of letters otherwise.
_WORDS = lazy_pattern(rf"[{HAN}{KANA}]|[a-z0-9'’\u00df-\u024f\u0400-\u052f{HANGUL}]+")
_ECHOES = lexicon.pattern("echo")
_FIRM = frozenset(("change", "cancellation"))
_LASTING = frozenset(("change", "cancellation", "decision", "role", "habit", "person"))
_FEWEST, _SHORT, _SHORT_HAN, _BRIEF = 4, 6, 8, 0.4
_MIN = 0.8
_SAFETY, _DOSED, _ANNOUNCEMENT, _NUMBER, _FIXED, _TIMED = 1.2, 0.9, 0.4, 0.2, 0.7, 0.4
_JOKE, _SUPPOSITION, _QUESTION, _RUMOUR, _STORY, _BARE = 1.6, 1.0, 0.5, 0.9, 0.8, 0.5
_FURTHER = 0.35
_AGREED, _MAX_AGREED = 0.5, 2
# A figure, which makes a message more definite.
_FIGURE = lazy_pattern(r"\d")
_LONGEST_ANSWER, _LONGEST_AGREEMENT = 40, 160


@dataclass(frozen=True, slots=True)
class Sense:
    """The purposes of a message. `purposes`: strongest first; empty if it says nothing that may hold. `score`: how sure
    that is, from 0.8 it is taken by itself. `asked`: it is a question, which holds only if others agree. `points`: it
    may speak of something that an earlier message names. `timed`: it names a day or a time of day."""

    purposes: tuple[Purpose, ...]
    score: float
    asked: bool
    points: bool
    timed: bool

    @property
    def changes(self) -> bool:
        """True if it changes or cancels something."""
        return not {"change", "cancellation"}.isdisjoint(self.purposes)

    @property
    def passes(self) -> bool:
        """True if it is over when its day is; a rule or a habit goes on."""
        return {"habit", "rule"}.isdisjoint(self.purposes)

    def holds(self, agreed: int) -> bool:
        """Return True if it holds, given the number of people who agreed with it."""
        if not self.purposes or (self.asked and not agreed):
            return False
        return self.score + _AGREED * min(agreed, _MAX_AGREED) >= _MIN


_NOTHING = Sense((), 0.0, asked=False, points=False, timed=False)

_ACKNOWLEDGES = lexicon.pattern("acknowledgement")


def acknowledges(text: str) -> bool:
    """Return True if a short message takes note of what was said before it."""
    return len(text) <= _LONGEST_ANSWER and bool(_ACKNOWLEDGES.search(fold(text)))


@lru_cache(maxsize=1 << 12)
def sense_of(folded: str) -> Sense:
    """Return what a folded message does."""
    if _MACHINE.search(folded) or len(_WORDS.findall(folded)) < _FEWEST:
        return _NOTHING
    weights = sorted(_weights(folded), reverse=True)
    day, clock = bool(DAY.search(folded)) or names_time(folded), bool(CLOCK.search(folded))
    is_asking = asks(_CORRELATIVE.sub(" ", folded))
    if day or clock:
        weights.append((_FIXED * day + _TIMED * clock, "plan"))
    score = sum(weight if not at else weight * _FURTHER for at, (weight, _) in enumerate(sorted(weights, reverse=True)))
    score += _ANNOUNCEMENT * bool(_ANNOUNCED.search(folded)) + _NUMBER * bool(_FIGURE.search(folded))
    purposes = tuple(dict.fromkeys(purpose for _, purpose in weights))
    firm = not _FIRM.isdisjoint(purposes)
    score -= sum(_deductions(folded, is_asking=is_asking, firm=firm, passing=_LASTING.isdisjoint(purposes)))
    return Sense(purposes, score, asked=is_asking, points=bool(_POINTING.search(folded)), timed=day or clock)


def _weights(folded: str) -> Iterator[tuple[float, Purpose]]:
    han = bool(_HAN_RUN.search(folded)) and "zh" in lexicon.spoken(folded)
    for cue in _CUES:
        if cue.spaced.search(folded) or (han and cue.chinese.search(folded)):
            yield cue.weight, cue.purpose
    if is_safety(folded):
        yield _SAFETY, "person"
    elif _DOSE.search(folded):
        yield _DOSED, "person"


def _deductions(folded: str, *, is_asking: bool, firm: bool, passing: bool) -> Iterator[float]:
    if _JOKES.search(folded):
        yield _JOKE
    if _SUPPOSED.search(folded):
        yield _SUPPOSITION
    if _HEARSAY.search(folded):
        yield _RUMOUR
    if _PAST.search(folded) and not firm:
        yield _STORY if passing else _STORY / 2
    if not firm and len(_WORDS.findall(folded)) < (_SHORT_HAN if _HAN_RUN.search(folded) else _SHORT):
        yield _BRIEF
    if _ECHOES.search(folded) and passing:
        yield _BRIEF
    if is_asking:
        yield _QUESTION
    if thanks(folded) or greets(folded):
        yield _BARE


def manners_of(folded: str) -> tuple[bool, ...]:
    """Return how a folded message speaks: it announces, jokes, supposes, tells what others say or what is past, takes
    note of something, and has a figure."""
    patterns = (_ANNOUNCED, _JOKES, _SUPPOSED, _HEARSAY, _PAST, _ECHOES, _FIGURE)
    return tuple(bool(pattern.search(folded)) for pattern in patterns)


_BESIDE_HAN, _BESIDE = 4, 16
"""Characters beside a sign of change in which its subject is looked for."""


def words_beside(folded: str, purpose: Purpose) -> frozenset[str]:
    """Return the content words before the signs of a purpose in a folded text; beside those that cancel, after them
    too."""
    words_near = set[str]()
    for cue in _CUES:
        if cue.purpose != purpose:
            continue
        for sign, near in ((cue.chinese, _BESIDE_HAN), (cue.spaced, _BESIDE)):
            for match in sign.finditer(folded):
                words_near.update(keys_of(folded[max(match.start() - near, 0) : match.start()]))
                after = near if purpose == "cancellation" else 0
                words_near.update(
                    keys_of(match[0] if after else ""), keys_of(folded[match.end() : match.end() + after])
                )
    return frozenset(words_near)


def agrees(text: str) -> bool:
    """Return True if a short message, or the first or last sentence of a longer one, agrees with what was said before
    it."""
    if len(text) > _LONGEST_ANSWER:
        parts = sentences(text[:_LONGEST_AGREEMENT])
        return len(text) <= _LONGEST_AGREEMENT and len(parts) > 1 and any(map(agrees, (parts[0], parts[-1])))
    folded = fold(text)
    return bool(_AGREES.search(folded)) and not _REFUSES.search(folded)


def times_in(text: str) -> list[str]:
    """Return the days and times of day that a text names, as written."""
    folded = fold(text)
    written = text if len(text) == len(folded) else folded
    spans = sorted(match.span() for pattern in (DAY, CLOCK) for match in pattern.finditer(folded))
    return [written[start:end] for start, end in spans]


def does_it(folded: str) -> bool:
    """Return True if the sender of a folded text does, takes or keeps something."""
    return bool(_DOES_IT.search(folded))


def laughs(text: str) -> bool:
    """Return True if a message treats something as a joke."""
    return bool(_JOKES.search(fold(text[: 4 * _LONGEST_ANSWER])))
