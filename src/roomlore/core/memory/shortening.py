"""Shorten a note by clauses: first without losing anything, then without the clauses that matter least."""

import itertools
import re
from collections.abc import Sequence

from roomlore.core.summary.importance import importance
from roomlore.core.text import graphemes, head, segment, truncate

_LONGEST = 4_000
_MOST_CLAUSES = 80
_SENTENCES = re.compile(r"(?<=[;；。！!])\s*|(?<=\S[.])\s+(?=[A-Z])")
_CLAUSES = re.compile(r"(?<=[;；。！!，])\s*|(?<=[^\d],)\s+|(?<=\S[.])\s+(?=[A-Z])")
_SUBJECT = re.compile(r"(?P<name>[A-Z][^\s'’,;]+)(?:['’]s)? (?=\S)")
_MOST_SUBJECT = 6
"""The most Chinese characters of a subject."""
_FULL_STOP = re.compile(r"\s*(?P<mark>[.。])\s*\Z")
_DENIALS = re.compile(
    r"\b(?P<verb>do|does|did|is|are|was|were|have|has|had|would|could|should|must) not\b|\b(?P<can>cannot)\b"
)
_FIGURE = re.compile(r"\d|[一二三四五六七八九十百千万]{1,4}[点點号號月日元块塊个個次片毫]")
_NAME = re.compile(r"(?<=\s)[A-Z][a-z]+")
_FIGURES, _NAMES, _EACH = 0.6, 0.3, 0.01


def shortened(text: str, most: int) -> str:
    """Return a note in at most `most` characters. If it is longer: without the subject that a sentence repeats from the
    one before, then with contracted denials, then without the clauses of least weight; if one clause is left and is
    still too long, its beginning."""
    return truncate(_lighter(text[:_LONGEST], most), most)


def _tightened(text: str, most: int) -> str:
    """Return a note with no more of its words than fit, if it can do without any."""
    for step in (_without_repeated_subjects, _contracted):
        if graphemes(text) <= most:
            break
        text = step(text)
    return text


def _without_repeated_subjects(text: str) -> str:
    sentences = [part for part in _SENTENCES.split(text) if any(map(str.isalnum, part))]
    if len(sentences) < 2:
        return text
    told = sentences[:1]
    for before, sentence in itertools.pairwise(sentences):
        rest = _rest(before, sentence)
        if rest is None:
            told.append(sentence)
        else:
            told[-1] = _FULL_STOP.sub(lambda found: ";" if found["mark"] == "." else "；", told[-1])
            told.append(rest)
    return _joined(told)


def _rest(before: str, sentence: str) -> str | None:
    """Return a sentence without its subject if that is the subject of the one before; None if it is not."""
    first, second = _SUBJECT.match(before), _SUBJECT.match(sentence)
    if second:
        return sentence[second.end() :] if first and first["name"] == second["name"] else None
    ends = _word_ends(before) & _word_ends(sentence)
    end = max((end for end in ends if before[:end] == sentence[:end]), default=0)
    return sentence[end:] if end > 1 and sentence[end : end + 1] not in ("的", "") else None


def _word_ends(sentence: str) -> set[int]:
    """Return where the first words of a Chinese sentence end."""
    beginning = sentence[: 2 * _MOST_SUBJECT]
    if not beginning or beginning[0] < "\u2e80":
        return set()
    ends = itertools.accumulate(len(word) for word in segment(beginning))
    return {end for end in ends if end <= _MOST_SUBJECT}


def _contracted(text: str) -> str:
    return _DENIALS.sub(lambda found: "can't" if found["can"] else f"{found['verb']}n't", text)


def _lighter(text: str, most: int) -> str:
    """Return the clauses of most weight that fit together, in their order."""
    whole = _tightened(text, most)
    if graphemes(whole) <= most:
        return whole
    clauses = [part for part in _CLAUSES.split(text) if any(map(str.isalnum, part))][:_MOST_CLAUSES]
    if not clauses:
        return text
    order = sorted(range(len(clauses)), key=lambda at: (-_weight(clauses[at], at), at))
    kept: list[int] = []
    for at in order:
        tried = sorted([*kept, at])
        told = _tightened(_joined([clauses[one] for one in tried]), most)
        if graphemes(told) <= most:
            kept = tried
    return _tightened(_joined([clauses[at] for at in kept or order[:1]]), most).rstrip(",，;； ")


def _weight(clause: str, at: int) -> float:
    """Return how much a clause matters; of equal ones the earlier."""
    figures, names = bool(_FIGURE.search(clause)), bool(_NAME.search(clause))
    return importance(head(clause)) + _FIGURES * figures + _NAMES * names - _EACH * at


def _joined(parts: Sequence[str]) -> str:
    """Return the parts as one line, with a space after a mark that is not Chinese."""
    told = ""
    for part in parts:
        told += part if not told or told[-1] > "\u2e80" else f" {part}"
    return told
