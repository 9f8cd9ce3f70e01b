"""Values that a later message corrects: a summary keeps the later value, not the old one, and every value that still
holds."""

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from roomlore.core import lexicon
from roomlore.core.patterns import lazy_pattern
from roomlore.core.summary.replacements import Spot, replaced
from roomlore.core.text import asks, head, terms
from roomlore.core.values import (
    CLOCK,
    DAY,
    NUMBER,
    SELF,
    Value,
    clause_around,
    cut_out,
    shared,
    values_in,
    weight,
    without_values,
    words_of,
)

_LONGEST = 300
"""Longer messages tell several things; what in them corrects what is not clear."""
_BACK = 40
"""Messages with values in which the one that is corrected is looked for."""
_NEAR = 60
"""Messages back in which it is looked for if the correction does not name its subject."""
_ELLIPTIC = 4.5
"""The most words of a correction that does not name its subject."""
_SUBJECT = 1.0
"""The most words in the clause of a value that does not name its subject."""
_SHORT = 8
"""Words of a message that states how long something shall be, without a sign of change."""
_ASKED_BACK = 20
"""Messages in which a question for another value is answered."""
_CONTEXT = 3
"""Messages before a correction that may name its subject."""
_SURER = 0.15
"""By how much more the words of one value must meet a correction than those of another value of its message."""
_CHANGED, _SETTLED, _STATED = 0.3, 0.6, 1.1
"""How many words of the subject there must be beside a sign of change, beside a weak one, and without any."""
_BESIDE, _COMMON = 0.5, 0.1
"""What a word of the subject is worth in another clause of the correction, and one that says nothing of which value."""
_HALF, _KIND, _TIMED, _SHARE = 0.2, 0.1, 0.4, 0.3
"""What the same half of the day is worth, the same unit, a number that may be a time beside one, and all words of an
earlier clause beside a few of it."""
_LASTING = frozenset(("days", "weeks", "week", "month", "year", "年", "岁", "歲", "time"))
"""Units in which people tell how long or how often something was, beside how it shall be."""

# A day of a month, unlike one of a week.
_DATE = lazy_pattern(r"\d|[号號日月]")
# A question for another value.
_ASKS_CHANGE = lexicon.pattern("asks_change", re.IGNORECASE)
# What says by itself that a value changes, and what says so beside the same subject.
_CHANGES = lexicon.pattern("changes_value", re.IGNORECASE)
_SETTLES = lexicon.pattern("settles_value", re.IGNORECASE)
# What stands before a value that cannot be.
_CANNOT = lexicon.pattern("cannot", re.IGNORECASE)
# What was, may be or comes in addition, which changes nothing.
_TELLS = lexicon.pattern("tells_value", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Target:
    """A value of a message. `own`: the words of its clause that no other value of its kind there has. `clause`: all of
    them. `heading`: words that may be about it too: of the clauses around it, or of the first clause of its kind.
    `asked`: it is asked for, or one that cannot be. `told`: it was so, may be so or comes in addition. `bounds`: where
    its clause stands."""

    place: int
    value: Value
    own: frozenset[str]
    clause: frozenset[str]
    heading: frozenset[str]
    asked: bool
    told: bool
    bounds: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Read:
    """A short message. `size`: about how many words it has besides its values. `context`: what was said before it."""

    place: int
    text: str
    values: tuple[_Target, ...]
    size: float
    context: Sequence[str]

    @property
    def kinds(self) -> set[str]:
        return {each.value.kind for each in self.values}


@dataclass(frozen=True, slots=True)
class Corrected:
    """Texts without the values that were corrected; `corrections`: the places of those that correct."""

    texts: list[str]
    corrections: frozenset[int]


def corrected(texts: Sequence[str], speakers: Sequence[str] = (), *, since: int = 0) -> Corrected:
    """Return the texts in order of time without the values that one at `since` or after it corrects.

    A correction has a value of the same kind as an earlier one: a day, a time, a numbered place, or an amount of one
    unit. It has a sign of change and names the subject, or has none and follows soon, or it answers a question that
    asks for that value; without a sign it states the value of the same subject. Of several values it takes the one
    whose clause has its subject, and none where that is unsure. `speakers`: who says each text; with them, persons,
    hosts and permissions that were replaced are left out too.
    """
    gone: dict[int, set[tuple[int, int]]] = {}
    correcting = set[int]()
    both = (_values_corrected(texts, speakers, since), replaced(texts, speakers, since=since) if speakers else ())
    for place, old in (spot for each in both for spot in each):
        correcting.add(place)
        for where, span in old:
            gone.setdefault(where, set()).add(span)
    kept = [cut_out(text, gone[place]) if place in gone else text for place, text in enumerate(texts)]
    return Corrected(kept, frozenset(correcting))


def _values_corrected(texts: Sequence[str], speakers: Sequence[str], since: int) -> Iterator[tuple[int, list[Spot]]]:
    """Yield each text at `since` or after it that corrects values, with those that it corrects."""
    last: deque[_Read] = deque(maxlen=_BACK)
    questions: deque[_Read] = deque(maxlen=_ASKED_BACK)
    gone: dict[Spot, _Target] = {}
    for place, text in enumerate(texts):
        read = _read(place, text, speakers[place] if speakers else "", texts[max(0, place - _CONTEXT) : place])
        if read is None:
            continue
        if all(each.asked for each in read.values):
            if _ASKS_CHANGE.search(text):
                questions.append(read)
        elif old := _replaced(read, last, questions, gone):
            gone.update(((each.place, each.value.span), each) for each in old)
            if place >= since:
                yield place, [(each.place, each.value.span) for each in old]
        last.append(read)


def _read(place: int, text: str, speaker: str, before: Sequence[str] = ()) -> _Read | None:
    """Return a short message that has a value."""
    if not text.strip() or len(text) > _LONGEST:
        return None
    values = values_in(text)
    if not values:
        return None
    left = _SETTLES.sub(" ", _CHANGES.sub(" ", without_values(text, values)))
    clauses = [_named(value.clause, speaker) for value in values]
    targets, whole, firsts = [], asks(head(text)), dict[str, frozenset[str]]()
    for value, clause in zip(values, clauses, strict=True):
        others = [
            other
            for near, other in zip(values, clauses, strict=True)
            if near is not value and near.kind == value.kind and near.text != value.text
        ]
        bounds = clause_around(text, value.span)
        asked, told = _spoken(text, value.span, bounds, whole)
        if any(other.is_of_kind(value) for other in values if other is not value):
            heading = firsts.setdefault(value.kind, clause)
        else:
            heading = _named(words_of(text[slice(*clause_around(text, (bounds[0] - 1, bounds[1] + 1)))]), speaker)
        targets.append(_Target(place, value, clause.difference(*others), clause, heading, asked, told, bounds))
    return _Read(place, text, tuple(targets), _size(frozenset(terms(left))), before)


def _spoken(text: str, span: tuple[int, int], bounds: tuple[int, int], asked: bool) -> tuple[bool, bool]:
    """Return whether a value is asked for, and whether it only was so or may be so. `asked`: the text asks
    something."""
    start, after = bounds
    clause = text[start:after]
    if asked and after < len(text):
        asked = asks(head(clause)) or not words_of(text[after:])
    return asked or bool(_CANNOT.search(text, start, span[0])), bool(_TELLS.search(clause))


def _named(words: frozenset[str], speaker: str) -> frozenset[str]:
    """Return the words with the name of the speaker who says I."""
    return words - {SELF} | words_of(speaker) if SELF in words and speaker else words - {SELF}


def _replaced(
    read: _Read, last: Sequence[_Read], questions: Sequence[_Read], gone: Mapping[Spot, _Target]
) -> list[_Target]:
    """Return the earlier values that a message corrects."""
    request = _granted(read, questions)
    if request:
        last = [earlier_read for earlier_read in last if earlier_read.place < request.place]
    told = [
        one
        for earlier in last
        for one in earlier.values
        if not one.value.denied and (one.place, one.value.span) not in gone and (one.value.kind != NUMBER or one.clause)
    ]
    denied = [
        one
        for each in read.values
        if each.value.denied
        for one in told
        if one.value.is_same(each.value)
        and (each.value.kind != NUMBER or len(each.value.text) > 1 or shared(one.clause, words_of(read.text)))
    ]
    changes = [(-1, -1)] if denied or request else [match.span() for match in _CHANGES.finditer(read.text)]
    settles = [match.span() for match in _SETTLES.finditer(read.text)]
    claims: list[tuple[float, _Target, _Target]] = []
    spots = {(one.place, one.value.span): one for one in denied}
    for each in read.values:
        if each.asked or each.value.denied:
            continue
        least = _CHANGED if _is_for(each, read, changes) else _SETTLED if _is_for(each, read, settles) else _STATED
        if claim := _claim(each, read, told, last, least):
            claims.append((claim[0], each, claim[1]))
    taken = set[int]()
    for _, each, target in sorted(claims, key=lambda claim: -claim[0]):
        if id(target) in taken:
            continue
        taken.add(id(target))
        again = [one for one in told if one is target or _says_again(one, target)]
        spots.update(((one.place, one.value.span), one) for one in again if not one.value.is_same(each.value))
    return list(spots.values())


def _is_for(value: _Target, read: _Read, signs: Sequence[tuple[int, int]]) -> bool:
    """Return True if a sign of change may be one of a value: it is in its clause, or in that of no other value."""
    others = [each.bounds for each in read.values if each.bounds != value.bounds]
    return any(not any(start <= at < end for start, end in others) for at, _ in signs)


def _granted(read: _Read, questions: Sequence[_Read]) -> _Read | None:
    """Return the last question that asks to change to a value of this text."""
    given = [each.value for each in read.values if not each.value.denied]
    return next(
        (
            question
            for question in reversed(questions)
            if read.place - question.place <= _ASKED_BACK
            and any(
                value.kind == each.value.kind
                and (each.value.text.endswith(value.text) or value.text.endswith(each.value.text))
                for each in question.values
                for value in given
            )
        ),
        None,
    )


def _claim(
    new: _Target, read: _Read, told: Sequence[_Target], last: Sequence[_Read], least: float
) -> tuple[float, _Target] | None:
    """Return the earlier value that a value corrects, and how many words of its subject are there; None if it may be
    one of several."""
    if _is_no_correction(new, read, least):
        return None
    fitting = _fitting(new.value, told)
    headings = _headings(fitting, last)
    unsure = False
    for beside, upto in _besides(new, read, least):
        near = [one for one in fitting if one.place < upto]
        needed = max(least, _SETTLED) if upto < read.place else least
        scores = _scores(new, read, near, beside, headings)
        if not scores or scores[0][0] < needed:
            continue
        score, best = scores[0]
        if new.value.kind == NUMBER and score < _STATED and (best.value.kind == NUMBER or least > _CHANGED):
            continue
        if least == _STATED and not _is_stated(new, best):
            return None
        others = [other for other, one in scores if one.place == best.place and not one.value.is_same(best.value)]
        if not others or score - others[0] >= _SURER:
            return score, best
        unsure = True
    if unsure or least == _STATED or not _is_bare(new, read, least):
        return None
    unnamed = [one for _, one in _scores(new, read, fitting, frozenset(), headings)]
    return _nearest(new, read, [one for one in unnamed if new.value.kind in (one.value.kind, NUMBER)], last)


def _is_no_correction(new: _Target, read: _Read, least: float) -> bool:
    """Return True if a value tells what was or may be, or how long something lasts, or is a number, without a sign of
    change."""
    if least == _STATED and (new.told or new.value.kind == NUMBER):
        return True
    lasting = new.value.kind in _LASTING and least > _CHANGED
    return (new.told and (lasting or new.value.kind == DAY)) or (lasting and read.size > _SHORT)


def _fitting(new: Value, told: Sequence[_Target]) -> list[_Target]:
    """Return the earlier values that one may stand in place of: of a message, those of its unit and its half of the
    day, if there are any."""
    fitting = [one for one in told if new.is_of_kind(one.value) and not (new.is_amount and new.contradicts(one.value))]
    exact = {one.place for one in fitting if new.is_amount and one.value.kind == new.kind}
    fitting = [one for one in fitting if one.place not in exact or one.value.kind == new.kind]
    halves = {one.place for one in fitting if one.value.half and one.value.half == new.half}
    return [one for one in fitting if one.place not in halves or one.value.half in ("", new.half)]


def _headings(fitting: Sequence[_Target], last: Sequence[_Read]) -> dict[int, frozenset[str]]:
    """Return for each message the words of all clauses of a kind, if only one value of it can be meant."""
    headings = dict[int, frozenset[str]]()
    for earlier in last:
        mine = [one for one in fitting if one.place == earlier.place]
        if mine and len({one.value.text for one in mine}) == 1:
            clauses = (each.clause for each in earlier.values if each.value.kind == mine[0].value.kind)
            headings[earlier.place] = frozenset[str]().union(*clauses)
    return headings


def _scores(
    new: _Target,
    read: _Read,
    fitting: Sequence[_Target],
    beside: frozenset[str],
    headings: Mapping[int, frozenset[str]],
) -> list[tuple[float, _Target]]:
    """Return how well the words of a value meet those of earlier ones that it may correct, the best and latest first.

    It corrects none that its message tells again, and none of a message that has the value itself for the same subject.
    """
    rivals = [each for each in read.values if each is not new and not each.asked and each.value.is_of_kind(new.value)]
    scores = [(_meets(new, beside, one, headings.get(one.place, frozenset())), one) for one in fitting]
    same = {one.place: score for score, one in scores if one.value.is_same(new.value)}
    measured = new.value.is_amount or new.value.kind == CLOCK  # a day or a place told again only names the subject
    left = [
        (score, one)
        for score, one in scores
        if (one.place not in same or (measured and score > max(same[one.place], 0.0)))
        and not any(
            one.value.is_same(each.value) and _meets(each, frozenset(), one, frozenset()) >= score for each in rivals
        )
    ]
    return sorted(left, key=lambda each: (-each[0], -each[1].place))


def _besides(new: _Target, read: _Read, least: float) -> Iterator[tuple[frozenset[str], int]]:
    """Yield words beside its clause that may name the subject of a correction, and up to which message it is looked
    for: none, those before it in its message, and if that is short, those said before."""
    yield frozenset(), read.place
    rivals = [each.clause for each in read.values if each is not new and each.value.is_of_kind(new.value)]
    values = [each.value for each in read.values if each.value.kind != DAY and each.value.span[1] <= new.value.span[0]]
    before = words_of(without_values(read.text[: new.value.span[0]], values))
    yield before.difference({SELF}, new.clause, *rivals), read.place
    if least < _STATED and (read.size <= _ELLIPTIC or _size(new.clause) <= _SUBJECT):
        for back in range(1, len(read.context) + 1):
            said = frozenset[str]().union(*map(words_of, read.context[-back:]))
            yield said.difference({SELF}, new.clause, *rivals), read.place - back


def _meets(new: _Target, beside: frozenset[str], one: _Target, heading: frozenset[str]) -> float:
    """Return how many words of the subject of an earlier value a correction has. `heading`: words of a message in which
    no other value can be meant."""
    sides: float = len(new.value.sides & one.value.sides) if new.value.is_amount else 0.0
    if new.value.half and one.value.half:
        sides = _HALF * (new.value.half == one.value.half)
    kind = _KIND * (new.value.kind in (one.value.kind, NUMBER)) + _TIMED * (new.value.timed and one.value.kind == CLOCK)
    return (
        sides
        + kind
        + (named := weight(shared(one.own, new.clause)))
        + _SHARE * named / (weight(one.own) or 1.0)
        + _BESIDE * weight(shared(one.own, beside) | shared((heading | one.heading) - one.own, new.clause))
        - _BESIDE * (one.asked or one.told)
        - _BESIDE * (one.value.kind == NUMBER != new.value.kind)
        + _COMMON * weight(shared(one.clause - one.own, new.clause | beside))
    )


def _is_stated(new: _Target, old: _Target) -> bool:
    """Return True if a value without a sign of change says the same of the same subject."""
    kind = new.value.kind
    if kind != old.value.kind or (kind == DAY and not _DATE.search(new.value.text)):
        return False
    named = weight(shared(old.own, new.clause)) + len(new.value.sides & old.value.sides) * new.value.is_amount
    return named >= 1


def _is_bare(new: _Target, read: _Read, least: float) -> bool:
    """Return True if a correction names no subject."""
    if read.size > _ELLIPTIC or not (least == _CHANGED or new.value.kind not in (DAY, CLOCK, NUMBER)):
        return False
    start, end = new.bounds
    left = without_values(read.text[:end], [each.value for each in read.values if each.value.span[1] <= end], start)
    return _size(words_of(_SETTLES.sub(" ", _CHANGES.sub(" ", left)))) <= _SUBJECT


def _size(words: Collection[str]) -> float:
    """Return about how many words there are; Chinese has about two for each."""
    return sum(1.0 if word.isascii() else 0.5 for word in words if len(word) > 1)


def _nearest(new: _Target, read: _Read, old: Sequence[_Target], last: Sequence[_Read]) -> tuple[float, _Target] | None:
    """Return the last earlier value of the kind, None if its message has several."""
    old = [one for one in old if not one.asked]
    places = {one.place for one in old}
    near = [earlier for earlier in last if earlier.place in places and read.place - earlier.place <= _NEAR]
    if not near:
        return None
    dated = bool(_DATE.search(new.value.text))

    def nearness(candidate: _Read) -> tuple[bool, int, int]:
        values = [each.value for each in candidate.values if each.value.kind == new.value.kind]
        alike = any(bool(_DATE.search(value.text)) == dated for value in values)
        return alike, len(candidate.kinds & read.kinds), candidate.place

    nearest = max(near, key=nearness)
    mine = [one for one in old if one.place == nearest.place]
    told, new_ones = ([each for each in one.values if each.value.kind == new.value.kind] for one in (nearest, read))
    if len(told) == len(new_ones) > 1:
        mine = [one for one in mine if one is told[new_ones.index(new)]]
    return (0.0, mine[0]) if len({one.value.text for one in mine}) == 1 else None


def _says_again(one: _Target, target: _Target) -> bool:
    if not one.value.is_same(target.value) or one.value.contradicts(target.value):
        return False
    return weight(one.clause) < 1 or bool(shared(target.own or target.clause, one.clause))
