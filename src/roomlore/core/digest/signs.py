"""The signs by which it is judged if a message decides something: what it says, and what others say around it."""

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from roomlore.core import lexicon
from roomlore.core.evolution.offline.cues import agrees, laughs, sense_of
from roomlore.core.memory.scoring import asked_for, held, is_dense_script
from roomlore.core.models import Entry
from roomlore.core.text import fold, greets, keywords, thanks, words
from roomlore.core.transcript import spoken_text

Floats = NDArray[np.float64]

_AROUND = ("refusal", "acknowledgement", "proposes", "alternatives", "opens_answer", "evades", "promises", "fulfils",
           "task", "negation", "concludes", "takes_up")  # fmt: skip
_OWN = ("settling", "wishes", "new_topic", "replaces", "before_question", "assent", "question_opening", "question_word",
        "needs_no_answer", "weekday", "frame_word", "pointing", "farewell", "taking_up", "past", "changes_value",
        "unable", "changed", "decided", "takes_back", "opening", "when", "courtesy", "first_person", "idle_question",
        "you", "second_person", "everyone_mentioned", "takes_over", "asks_plainly", "lasts_from", "polls",
        "unopposed")  # fmt: skip
_PURPOSES = ("change", "decision", "cancellation", "plan", "rule")
AROUND = ("agrees", "laughs", "thanks", "score of the rules", "names a day or a time", "short", "asks", "asks at last",
          *_AROUND)  # fmt: skip
"""The signs of a message that count in those around it too."""
SAYS = (*AROUND, *_OWN, *_PURPOSES, "asks for what holds", "points", "greets", "question mark", "length", "a few words",
        "kind asked for", "kinds held", "ellipsis", "dense script", "addressed", "reply")  # fmt: skip
PLACE = ("related after", "others after", "related before", "others before", "pause after", "pause before",
         "goes on", "went on", "messages after", "last", "again", "again by sender", "again by others", "words before",
         "asked before", "answers a question")  # fmt: skip
RULES = ("label", "open by the rules", "needs nothing", "evidence of an answer", "answers", "replied to")
"""The signs of `points`."""
EVIDENCE = ("constant", *SAYS, *(f"{name} after" for name in AROUND), *(f"{name} before" for name in AROUND), *PLACE,
            *RULES)  # fmt: skip
"""The names of the signs, in order."""
_READ = 400
_LONG, _MOST = 30, 3
_SHORT, _FEW = 2, 4
_NEAR, _LAST, _HOUR = 60, 6, 3600.0
_ASKS = AROUND.index("asks")
_QUIET, _BUSY = 60, 200
"""Messages a day of a quiet room, and of a busy one."""


def says(entry: Entry, *, asks: bool, asks_last: bool) -> Floats:
    """Return the signs of what a message says, in the order of `SAYS`."""
    said = _read(spoken_text(entry.message)[:_READ])
    addressed, reply = bool(entry.features.addressed), entry.message.reply_to is not None
    return np.array([*said[0], asks, asks_last, *said[1], addressed, reply], np.float64)


@cache
def _patterns() -> Sequence[re.Pattern[str]]:
    return [lexicon.pattern(name) for name in (*_AROUND, *_OWN)]


@lru_cache(maxsize=1 << 12)
def _read(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    folded, content = fold(text), len(keywords(text))
    sense = sense_of(folded)
    return (
        (
            agrees(text),
            laughs(text),
            thanks(folded),
            max(-1.0, min(sense.score, 3.0)),
            sense.timed,
            content < _SHORT,
        ),
        (
            *(bool(pattern.search(folded)) for pattern in _patterns()),
            *(purpose in sense.purposes for purpose in _PURPOSES),
            sense.asked,
            sense.points,
            greets(folded),
            "?" in text or "？" in text,
            min(len(words(folded)), _LONG) / _LONG,
            content < _FEW,
            any(asked_for(text)),
            int(held([text])[0].sum()) / _FEW,
            any(mark in text for mark in ("…", "...", "。。")),
            is_dense_script(text),
        ),
    )


def busy(entries: Sequence[Entry]) -> float:
    """Return how much is said a day: 0 up to the messages of a quiet room, 1 from those of a busy one."""
    if not entries:
        return 0.0
    days = max(1.0, (entries[-1].message.at - entries[0].message.at) / timedelta(days=1))
    least, most = np.log(_QUIET), np.log(_BUSY)
    return float(np.clip((np.log(len(entries) / days) - least) / (most - least), 0.0, 1.0))


def evidence(
    says: Callable[[Entry], Floats],
    entries: Sequence[Entry],
    at: int,
    *,
    related: Sequence[Entry],
    leading: Sequence[Entry],
    rules: Sequence[float],
) -> Floats:
    """Return the signs of the message at a place, in the order of `EVIDENCE`. `says`: the signs of what each says;
    `related`, `leading`: later and earlier messages that are about the same; `rules`: those of `RULES`."""
    entry = entries[at]
    others = _of_others(related, entry)
    leading_others = _of_others(leading, entry)
    sides = [[says(other)[: len(AROUND)] for other in side] for side in (others, leading_others)]
    summed = [np.minimum(np.sum(rows, 0), _MOST) / _MOST if rows else np.zeros(len(AROUND)) for rows in sides]
    place = _place(entries, at, related, leading, others, leading_others)
    asked = any(says(one)[_ASKS] for one in leading if one.message.sender_id == entry.message.sender_id)
    answers = any(row[_ASKS + 1] for row in sides[1])
    return np.array([1.0, *says(entry), *summed[0], *summed[1], *place, asked, answers, *rules])


def _of_others(entries: Sequence[Entry], entry: Entry) -> list[Entry]:
    return [other for other in entries if other.message.sender_id != entry.message.sender_id]


def _place(
    entries: Sequence[Entry],
    at: int,
    related: Sequence[Entry],
    leading: Sequence[Entry],
    others: Sequence[Entry],
    leading_others: Sequence[Entry],
) -> Sequence[float]:
    """Return how a message stands among the others, in the order of `PLACE`."""
    entry, sender = entries[at], entries[at].message.sender_id
    later, content = entries[at + 1 : at + 1 + _NEAR], set(entry.features.keywords)
    again = [one.message.sender_id == sender for one in later if not content.isdisjoint(one.features.keywords)]
    earlier = [one for one in entries[max(0, at - _NEAR // 5) : at] if not content.isdisjoint(one.features.keywords)]
    answer = next((one for one in later[: _NEAR // 6] if one.message.sender_id != sender), None)
    return (
        _part(len(related), 6),
        _part(len({one.message.sender_id for one in others}), 4),
        _part(len(leading), 6),
        _part(len({one.message.sender_id for one in leading_others}), 4),
        _pause(entry, answer) if answer else 1.0,
        _pause(entries[at - 1], entry) if at else 1.0,
        bool(later) and later[0].message.sender_id == sender,
        at > 0 and entries[at - 1].message.sender_id == sender,
        _part(len(entries) - at - 1, _NEAR),
        len(entries) - at <= _LAST,
        _part(len(again), 4),
        _part(sum(again), 3),
        _part(len(again) - sum(again), 4),
        _part(len(earlier), 4),
    )


def _part(count: int, most: int) -> float:
    return min(count, most) / most


def _pause(entry: Entry, later: Entry) -> float:
    return min(1.0, (later.message.at - entry.message.at).total_seconds() / _HOUR)
