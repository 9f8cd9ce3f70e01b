"""Judge whether a message replaces something that was settled: by what both are about, the values they give, who
speaks, and what was just asked."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

from roomlore.core import lexicon
from roomlore.core.evolution.offline.cues import Purpose, does_it, words_beside
from roomlore.core.evolution.offline.nets import net
from roomlore.core.evolution.offline.reading import is_topical, keys_of
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import fold, terms
from roomlore.core.values import CLAUSE_END, CLOCK, DAY, NUMBER, NUMBERED, Value, values_in

EVIDENCE = (
    "constant",
    "share of words",
    "rare words",
    "words beside the sign",
    "characters",
    "asked about it",
    "asked about its value",
    "a value of its kind",
    "of its values the same",
    "its value as the old one",
    "another value as the old one",
    "changes",
    "corrects a value",
    "cancels",
    "same sender",
    "sender named",
    "same purpose",
    "answers a question",
    "of somebody else",
    "says that it is something else",
    "another number of a kind",
    "another relative",
    "the same number of a kind",
    "another person",
    "cancels its day",
    "clause of its value",
    "the rest stays",
    "words of its own",
    "its clause shares words",
    "its clause has words of its own",
    "its clause names nothing",
    "names somebody else",
    "days apart",
    "just said",
    "just said by the sender",
    "nearest in words",
    "last of the sender with a value of its kind",
    "only one with a value of its kind",
    "near and a value of its kind",
    "near and changes",
    "near and same sender",
    "answers with a value of its kind to what was asked about it",
    "answers its own with a value of its kind",
)
READ = 600
"""The characters of a text that are compared."""
LEAST = 0.5
"""The probability from which a message replaces what was settled."""
_PLAIN = 0.8
"""The probability where it is plain."""
_BESIDE, _SAME_WORDS, _RECENT = 0.4, 0.8, 0.25
_AGAINST = (
    "another value as the old one",
    "of somebody else",
    "says that it is something else",
    "another number of a kind",
    "another relative",
)
_OTHERS = lexicon.pattern("of_others")
_NEW_TOPIC = lexicon.pattern("new_topic")
_RELATIVES = lexicon.pattern("relative")
_STAYS = lexicon.pattern("rest_stays")
_CORRECTS = lexicon.pattern("changes_value")

# A thing with its number or letter, as in bed 4, 3号机 and year 6.
_NUMBERED = lazy_pattern(
    rf"\b(?P<noun>{lexicon.forms('numbered_thing', 'en')}) (?P<number>\d{{1,4}}|[a-d])\b"
    r"|(?P<zhnumber>\d{1,4}|[一二三四五六七八九十A-Da-d初高大小])[号號]?"
    rf"(?P<zhnoun>{lexicon.forms('numbered_thing', 'zh')})"
    r"|(?P<zhkind>科目?|第|初|高)(?P<zhafter>[一二三四五六七八九十\d]{1,3})"
)
# A number that may be a time of day.
_HOUR = lazy_pattern(r"(?:1?\d|2[0-4])(?:[.:][0-5]\d)?|[01]\d[0-5]\d|2[0-3][0-5]\d")
# A word with a capital letter inside a sentence.
_NAME = lazy_pattern(r"(?<=[a-z,;:'’] )[A-Z][A-Za-z]+")
_DATES = lexicon.words("capitalised_date", "en")
_NO_SUBJECT = lexicon.words("no_subject")
"""Words of time and change, which name no subject."""
_LONG = 5
Rarity = Callable[[str], float]


def subject_words(folded: str) -> frozenset[str]:
    """Return the words of a folded text that name what it is about; of long English ones the beginning, as in "submit"
    and "submission"."""
    return _subjects(keys_of(folded))


def beginning(key: str) -> str:
    """Return the part of a word by which it is compared."""
    return key[:_LONG] if key.isascii() else key


def _subjects(keys: Iterable[str]) -> frozenset[str]:
    return frozenset(beginning(key) for key in keys if is_topical(key) and key not in _NO_SUBJECT)


def corrects(folded: str) -> bool:
    """Return True if a folded text says that a value changes, or mends what was said."""
    return bool(_CORRECTS.search(folded))


@dataclass(frozen=True, eq=False)
class Statement:
    """A text as it is compared. `about`: what it goes on from, '' if it stands alone."""

    text: str
    about: str = ""
    purposes: tuple[Purpose, ...] = ()

    @cached_property
    def folded(self) -> str:
        return fold(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """The subject words of the text itself."""
        return subject_words(self.folded)

    @cached_property
    def all_words(self) -> frozenset[str]:
        """Those of the text and of what it goes on from."""
        return self.words | subject_words(fold(self.about)) if self.about else self.words

    @cached_property
    def characters(self) -> frozenset[str]:
        """Its Chinese characters that say something."""
        return frozenset(term for term in terms(f"{self.text} {self.about}") if len(term) == 1 and not term.isascii())

    @cached_property
    def corrects(self) -> bool:
        """True if it says that a value changes."""
        return corrects(self.folded)

    @cached_property
    def does_it(self) -> bool:
        """True if its sender does, takes or keeps something."""
        return does_it(self.folded)

    @cached_property
    def names_others(self) -> bool:
        """True if it names people outside the group, in any of its clauses."""
        return bool(_OTHERS.search(self.folded))

    @cached_property
    def is_new_topic(self) -> bool:
        """True if it says that it begins something else."""
        return bool(_NEW_TOPIC.search(self.folded))

    @cached_property
    def leaves_rest(self) -> bool:
        """True if it says that the rest stays."""
        return bool(_STAYS.search(self.folded))

    @cached_property
    def relatives(self) -> frozenset[str]:
        """The members of a family whom it names."""
        return frozenset(_RELATIVES.findall(self.folded))

    @cached_property
    def of_others(self) -> bool:
        """True if it tells of people outside the group in the clause of a value, or of a sign of change."""
        if not self.values or len(self.folded) != len(self.text):
            return self.names_others
        ends = [value.span[1] for value in self.values]
        return any(_OTHERS.search(self.folded[_clause_start(self.folded, end) : end]) for end in ends)

    def clause_words(self, values: Sequence[Value]) -> frozenset[str]:
        """Return the subject words of the clause of the first of some values; without any, of the whole."""
        if not values or len(self.folded) != len(self.text):
            return self.words
        start, end = values[0].span
        after = CLAUSE_END.search(self.folded, end)
        return subject_words(self.folded[_clause_start(self.folded, start) : after.start() if after else None])

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that a capital letter inside a sentence shows to be names, without days and months."""
        return frozenset(name.casefold() for name in _NAME.findall(self.text)) - _DATES

    @cached_property
    def values(self) -> list[Value]:
        return values_in(self.text)

    @cached_property
    def about_values(self) -> list[Value]:
        return values_in(self.about) if self.about else []

    @cached_property
    def numbered(self) -> Mapping[str, frozenset[str]]:
        """The numbers of each kind of thing that is told apart by a number."""
        found: dict[str, set[str]] = {}
        for match in _NUMBERED.finditer(fold(f"{self.text} {self.about}")):
            noun = match["noun"] or match["zhnoun"] or match["zhkind"]
            found.setdefault(noun, set()).add(match["number"] or match["zhnumber"] or match["zhafter"])
        return {noun: frozenset(numbers) for noun, numbers in found.items()}

    @cached_property
    def beside(self) -> frozenset[str]:
        """The subject words beside the sign by which it changes or cancels something."""
        signs = [purpose for purpose in self.purposes if purpose in ("change", "cancellation")][:1]
        return _subjects(words_beside(self.folded, signs[0])) if signs else frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """How a message stands to something settled. `same_sender`: one person said both. `named`: the sender is named in
    it. `apart`, `lines`: the time between them, and the messages from one to the other, at least 1. `people_of_old`,
    `people_of_new`: the members whom each names."""

    same_sender: bool
    named: bool
    lines: int
    people_of_old: frozenset[str]
    people_of_new: frozenset[str]
    apart: timedelta


def evidence(
    olds: Sequence[tuple[Statement, Circumstances]], new: Statement, asked: str, *, answers: bool, rarity: Rarity
) -> list[tuple[float, ...]]:
    """Return for each of the settled things, oldest first, the signs that `new` replaces it, in the order of
    `EVIDENCE`. `asked`: what `new` goes on from, '' for nothing; `answers`: that was a question. `rarity`: of a subject
    word, in (0, 1]."""
    before = Statement(asked)
    rows = [_alone(old, new, near, before, answers=answers, rarity=rarity) for old, near in olds]
    nearest = max((row.nearness for row in rows), default=0.0)
    of_kind = [place for place, row in enumerate(rows) if row.of_kind]
    of_sender = [place for place in of_kind if olds[place][1].same_sender]
    return [
        (
            *row.signs,
            float(row.nearness > 0 and row.nearness == nearest),
            float(place in of_sender[-1:]),
            float(of_kind == [place]),
            row.nearness * row.of_kind,
            row.nearness * ("change" in new.purposes),
            row.nearness * olds[place][1].same_sender,
            float(answers and row.of_kind and row.asked > 0),
            float(answers and row.of_kind and olds[place][1].same_sender),
        )
        for place, row in enumerate(rows)
    ]


class _Alone(NamedTuple):
    """The signs of one settled thing, whatever the others are."""

    signs: tuple[float, ...]
    nearness: float
    of_kind: bool
    asked: float


def _alone(
    old: Statement, new: Statement, near: Circumstances, asked: Statement, *, answers: bool, rarity: Rarity
) -> _Alone:
    told = [*old.values, *old.about_values]
    fresh = [value for value in new.values if not value.denied]
    given_up = [value for value in new.values if value.denied]
    kinds = [value for value in fresh if any(_is_alike(value, known) and not opposes(value, known) for known in told)]
    differing = [value for value in kinds if all(value.text != known.text for known in told if _is_alike(value, known))]
    repeated = sum(any(value.text == known.text for known in told) for value in fresh)
    known_texts = {known.text for known in told}
    own = new.words - old.all_words - asked.words
    clause = new.clause_words(differing or fresh)
    common = math.fsum(map(rarity, old.all_words & new.words))
    asked_share = _share(old.all_words, asked.words, rarity)
    share = _share(old.all_words, new.words, rarity)
    signs = (
        1.0,
        share,
        min(2.0, common) / 2,
        _share(old.all_words, new.beside, rarity),
        min(2.0, math.fsum(map(rarity, old.characters & new.characters))) / 2,
        asked_share,
        float(any(value.text in known_texts for value in asked.values)),
        float(bool(differing)),
        repeated / len(fresh) if fresh else 0.0,
        float(any(value.text in known_texts for value in given_up)),
        float(bool(given_up) and all(value.text not in known_texts for value in given_up)),
        float("change" in new.purposes),
        float(new.corrects),
        float("cancellation" in new.purposes),
        float(near.same_sender),
        float(near.named),
        float(not {*old.purposes}.isdisjoint(new.purposes)),
        float(answers),
        float(new.of_others and not old.names_others),
        float(new.is_new_topic),
        float(_is_another(old, new)),
        float(bool(old.relatives and new.relatives) and old.relatives.isdisjoint(new.relatives)),
        float(any(old.numbered.get(noun, frozenset()) & numbers for noun, numbers in new.numbered.items())),
        float(bool(near.people_of_old and near.people_of_new - near.people_of_old)),
        float("cancellation" in new.purposes and not known_texts.isdisjoint(_days(new) | _days(asked))),
        max((value.covers(known) for value in differing for known in told if _is_alike(value, known)), default=0.0),
        float(new.leaves_rest),
        min(1.0, len(own) / 6),
        min(1.0, math.fsum(map(rarity, clause & old.all_words))),
        min(1.0, len(clause & own) / 3),
        float(not clause),
        min(1.0, len(new.names - old.names - asked.names) / 2),
        min(1.0, near.apart / timedelta(days=14)),
        1 / near.lines,
        near.same_sender / near.lines,
    )
    return _Alone(signs, max(share, min(1.0, common / 2), 0.8 * asked_share), bool(differing), asked_share)


def likelihoods(rows: Sequence[Sequence[float]], *, agreed: bool) -> list[float]:
    """Return for each settled thing how likely it is that the message replaces just this; what is left to 1 is that it
    replaces none. `agreed`: others agreed with the message, or took note of it."""
    if not rows:
        return []
    scores = net("succession").scores(rows).tolist()
    most = max(scores)
    whole = math.exp(-most) + math.fsum(math.exp(score - most) for score in scores)
    likely = [math.exp(score - most) / whole for score in scores]
    if max(likely) >= LEAST:
        return likely
    plain = [place for place, signs in enumerate(rows) if _is_plain(dict(zip(EVIDENCE, signs, strict=True)), agreed)]
    if plain:
        best = max(plain, key=lambda place: (rows[place][EVIDENCE.index("nearest in words")], place))
        likely[best] = max(likely[best], _PLAIN)
    return likely


def _is_plain(signs: Mapping[str, float], agreed: bool) -> bool:
    """Return True if it is plain what a message replaces: it names the subject beside its sign of change, or tells
    another time of what it names in the same words, or names nothing and can mean only this."""
    if any(signs[name] for name in _AGAINST):
        return False
    changes = signs["changes"] or signs["corrects a value"]
    if signs["words beside the sign"] >= _BESIDE and (signs["cancels"] or (changes and signs["a value of its kind"])):
        return True
    again = signs["share of words"] >= _SAME_WORDS and signs["of its values the same"] and signs["same sender"]
    if again and signs["a value of its kind"]:
        return True
    only = signs["last of the sender with a value of its kind"] or signs["only one with a value of its kind"]
    if changes and only and signs["a value of its kind"] and signs["rare words"] and signs["same sender"]:
        return True
    bare = signs["its clause names nothing"] and not signs["words of its own"] and signs["days apart"] <= _RECENT
    return bool(changes and signs["a value of its kind"] and only and bare and (signs["same sender"] or agreed))


def opposes(value: Value, known: Value) -> bool:
    """Return True if an amount is of another side than a known one; a time of day changes together with its side."""
    return value.is_amount and value.contradicts(known)


def _is_alike(value: Value, known: Value) -> bool:
    """Return True if one may stand in place of the other; a time of day may be told by its number alone."""
    if value.kind.startswith(NUMBERED):
        return False
    return value.is_of_kind(known) or ({value.kind, known.kind} == {CLOCK, NUMBER} and _is_hour(value, known))


def _is_hour(*values: Value) -> bool:
    return all(value.kind == CLOCK or _HOUR.fullmatch(value.text) is not None for value in values)


def _days(statement: Statement) -> set[str]:
    return {value.text for value in statement.values if value.kind == DAY}


def _clause_start(folded: str, at: int) -> int:
    """Return where the clause of a place begins."""
    return max((match.end() for match in CLAUSE_END.finditer(folded, 0, at)), default=0)


def _share(words: Collection[str], others: Collection[str], rarity: Rarity) -> float:
    """Return the share of the words of the shorter that both have, by rarity."""
    total = min(math.fsum(map(rarity, words)), math.fsum(map(rarity, others)))
    return min(1.0, math.fsum(map(rarity, set(words) & set(others))) / total) if total else 0.0


def _is_another(old: Statement, new: Statement) -> bool:
    """Return True if they are of different things of one kind, such as beds 3 and 5."""
    return any(old.numbered.get(noun, numbers).isdisjoint(numbers) for noun, numbers in new.numbered.items())
