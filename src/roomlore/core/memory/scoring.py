"""Score memories for a question: its words and kind, the learned comparison of vectors, and the judgement if a
statement answers it."""

import math
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from roomlore.core import lexicon
from roomlore.core.patterns import lazy_pattern
from roomlore.core.search.hits import Floats, Ints, Vectors
from roomlore.core.text import CHINESE as CHINESE_STOP
from roomlore.core.text import (
    SYLLABIC,
    in_other_script,
    is_question,
    is_written,
    pieces_in,
    terms,
    unframed,
    without_grammar,
    written,
)

Flags = NDArray[np.bool_]
_Rows = NDArray[np.int32]

KINDS = ("number", "time", "person", "place", "age", "clock", "colour", "contact", "measure", "money", "name")
"""The kinds of things that a question can ask for, in the order of `asked_for` and `held`."""

_READ = 2_000
# What asks for each of `KINDS`.
_ASKED = tuple(lazy_pattern(lexicon.alternatives(f"asks_{kind}", "en"), re.IGNORECASE) for kind in KINDS)
# What asks for each of them in Chinese.
_ASKED_CHINESE = tuple(lazy_pattern(lexicon.alternatives(f"asks_{kind}", "zh")) for kind in KINDS)
# A run of small Latin letters.
_LATIN_WORDS = lazy_pattern("[a-z]+")
# A figure.
_DIGIT = lazy_pattern(r"\d")
# A time of day.
_CLOCK = lazy_pattern(r"\d[:.]\d\d|\d ?[ap]m\b", re.IGNORECASE)
# A capital letter inside a sentence, which may begin a name.
_NAME = lazy_pattern(r"(?<=[a-z,;] )[A-Z][a-z]")
# A number or an address that reaches a person or opens a thing.
_CONTACT = lazy_pattern(r"\d{3}|@|[A-Z]\d")
# A sign of a currency.
_MONEY = lazy_pattern("[$€£¥₹]")
# A figure with the letter of a unit.
_MEASURE = lazy_pattern(r"\d ?(?:[mglk]{1,2}|cm|%|°)(?![a-z])")
_SIGNS = {
    "number": (_DIGIT,),
    "time": (_CLOCK,),
    "clock": (_CLOCK,),
    "person": (_NAME,),
    "name": (_NAME,),
    "contact": (_CONTACT,),
    "money": (_MONEY,),
    "measure": (_MEASURE,),
}
_WORDS = tuple(lexicon.words(f"holds_{kind}", "en") for kind in KINDS)
# By kind; in Chinese a word is not divided from others, so that a character may say it.
_CHINESE = tuple(lazy_pattern(lexicon.alternatives(f"holds_{kind}", "zh")) for kind in KINDS)


def asked_for(question: str) -> tuple[bool, ...]:
    """Return for each of `KINDS` if the question asks for it."""
    question = question[:_READ]
    asked = [bool(kind.search(question)) for kind in _ASKED] if _LATIN.search(question) else [False] * len(KINDS)
    if question.isascii():
        return tuple(asked)
    return tuple(one or bool(kind.search(question)) for one, kind in zip(asked, _ASKED_CHINESE, strict=True))


def held(statements: Sequence[str]) -> Flags:
    """Return (statements, kinds): what each statement may hold. A kind is held in doubt."""
    held_kinds = [_held(statement[:_READ]) for statement in statements]
    return np.array(held_kinds, np.bool_).reshape(len(statements), len(KINDS))


def _held(text: str) -> list[bool]:
    folded = text.lower()
    latin = set(_LATIN_WORDS.findall(folded))
    kinds = [not latin.isdisjoint(words) for words in _WORDS]
    for place, kind in enumerate(KINDS):
        kinds[place] |= any(sign.search(text) for sign in _SIGNS.get(kind, ()))
    if not text.isascii():
        kinds = [flag or bool(kind.search(text)) for flag, kind in zip(kinds, _CHINESE, strict=True)]
    return kinds


@dataclass(frozen=True, slots=True)
class MemoryMatches:
    """The match of each memory with a question, and True for each in a dense script. `weights`: of the
    model."""

    values: Floats
    dense_script: Flags
    weights: Floats


@dataclass(frozen=True, slots=True)
class Direction:
    """A vector of length 1 to compare statements with, made from one question. `length`: that before; `offsets`: what
    is subtracted, for a statement in an alphabet and for one in a dense script."""

    vector: Vectors
    length: float
    offsets: tuple[float, float]

    def of(self, cosines: Floats, dense_script: Flags) -> Floats:
        """Return how well statements match, from their cosines with `vector`; NaN stays NaN."""
        matches: Floats = self.length * cosines - np.where(dense_script, self.offsets[1], self.offsets[0])
        return matches


@dataclass(frozen=True, slots=True)
class AnswerModel:
    """A learned comparison of a question's vector with a statement's, for one embedding model.

    `questions`, `statements`: mean vectors (2, dimensions), of texts in an alphabet and in a dense script. A match is
    the product of both, each less its mean, through the matrix left @ right.T + same. `weights`: those of the score, in
    the order of `scoring.EVIDENCE`.
    """

    model: str
    questions: Floats
    statements: Floats
    left: Floats
    right: Floats
    same: float
    weights: Floats

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the model that these arrays hold."""
        numbers = {name: np.asarray(arrays[name], np.float64) for name in ("questions", "statements", "left", "right")}
        return cls(
            model=str(arrays["model"]),
            same=float(arrays["same"]),
            weights=np.asarray(arrays["weights"], np.float64),
            **numbers,
        )

    def direction(self, question: Vectors, *, dense_script: bool) -> Direction:
        """Return the direction of a question's vector (dimensions,)."""
        own = question - self.questions[int(dense_script)]
        turned = self.right @ (self.left.T @ own) + self.same * own
        length = float(np.linalg.norm(turned))
        below, above = (self.statements @ turned).tolist()
        return Direction(np.asarray(turned / (length or 1.0), np.float32), length, (below, above))


_MAX_TERMS = 128
_EMBEDDED_CHARS = 1_500
# A word of a Chinese question that is no word of its answer.
_ASKING = lazy_pattern(lexicon.alternatives("interrogative", "zh"))
_GROUP = lexicon.pattern("the_group")
# The group, where its members are meant; the group chat is not them.
_THE_GROUP = lazy_pattern(
    r"\b(?:the|this|our) group(?:(?P<of>['’]s)|(?!['’]))\b(?! (?:name|chat|owner|admin|rule))", re.IGNORECASE
)


# Which one of several is meant: a word with a figure, a name inside a sentence, a numbered thing, a Chinese name.
_WHICH_ONE = lazy_pattern(
    r"(?<![A-Za-z])[A-Za-z]{0,20}\d[A-Za-z\d]{0,40}|(?<=[a-z,;] )(?!Mrs?\b|Ms\b|Dr\b)[A-Z][a-z]+"
    r"|[A-Z一二三四五六七八九十] ?[号號楼樓层層座栋棟]"
    r"|[老小阿](?![师師板闆时時孩区區朋心学學人])[一-鿿]|[一-鿿](?=老师|老師|[姐哥叔姨总總]|师傅|師傅|医生|醫生|教练|教練|经理|經理)"
)


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """A parsed question. `terms`: its distinct content terms. `which`: words that say which one is meant, folded.
    `embed`: the text to embed. `asked`: for each of `KINDS` if it asks for it. `dense_script`: it is in a dense script.
    `phrase`: it is no question."""

    text: str
    terms: tuple[str, ...]
    which: tuple[str, ...]
    embed: str
    asked: tuple[bool, ...]
    dense_script: bool
    phrase: bool


def read_question(text: str, *, of_group: bool) -> MemoryQuestion:
    """Parse a question. `of_group`: True if the memories are a group's. Then "the group" is ignored, since it
    distinguishes nothing and matches any statement with that word; the question is asked about the members."""
    meant = _of_members(text) if of_group else text
    return MemoryQuestion(
        text=text,
        terms=_content(_ASKING.sub(" ", unframed(meant))),
        which=tuple(dict.fromkeys(one.lower() for one in _WHICH_ONE.findall(meant)))[:_MAX_TERMS],
        embed=meant.strip()[:_EMBEDDED_CHARS],
        asked=asked_for(meant),
        dense_script=is_dense_script(meant),
        phrase=not is_question(meant),
    )


def _content(text: str) -> tuple[str, ...]:
    """Return the distinct content terms. Of Chinese, a pair with a stop word is none, nor is what lies within known
    words or across two."""
    found = dict.fromkeys(terms(text))
    if in_other_script(text):
        found = without_grammar([*found, *written(text)])
    if text.isascii():
        return tuple(found)[:_MAX_TERMS]
    known = {character for term in found if len(term) == 2 and term in _meanings() for character in term}
    return tuple(term for term in found if not SYLLABIC.match(term) or _is_content(term, known))[:_MAX_TERMS]


def _is_content(term: str, known: Container[str]) -> bool:
    if len(term) == 2 and term in _meanings():
        return True
    return not all(character in known for character in term) and not any(
        character in CHINESE_STOP for character in term
    )


def _of_members(text: str) -> str:
    text = _GROUP.sub("成员", text)
    return _THE_GROUP.sub(lambda match: "the members'" if match["of"] else "the members", text)


CHINESE = (
    "公司在城东租了一间新的办公室",
    "他们打算明年换一套电脑系统",
    "成员大多住在南方的几个城市",
    "会议室在二楼走廊的尽头",
    "她最喜欢的颜色是深蓝色",
    "图书馆周一不开门",
    "项目的预算已经用掉一半",
    "他每天早上跑五公里",
    "我们决定把聚会推迟到下个月",
    "价格比去年涨了一成",
    "手机没电的时候请打座机",
    "医生建议他少吃盐",
    "报名表要在截止日期之前交",
    "群里的人说话都很客气",
    "电影票可以在网上买",
    "老板不在的时候由副手负责",
    "这个软件只支持最新的浏览器",
    "孩子们喜欢在公园里玩球",
    "资料保存在共享文件夹里",
    "冬天的时候这里经常下雪",
    "他们经常为了小事争论",
    "新来的同事以前是老师",
    "火车晚点了四十分钟",
    "大家同意不在晚上讨论工作",
)
ENGLISH = (
    "The company rented a new office in the east of the city",
    "They intend to replace their computer system next year",
    "Most members live in a few cities in the south",
    "The meeting room is at the end of the corridor on the second floor",
    "Her favourite colour is dark blue",
    "The library is closed on Mondays",
    "Half of the project's budget has been spent",
    "He runs five kilometres every morning",
    "We decided to put the party off until next month",
    "Prices rose by a tenth since last year",
    "Please call the landline when the mobile is flat",
    "The doctor advised him to eat less salt",
    "The form has to be handed in before the deadline",
    "People in the group are polite to each other",
    "Cinema tickets can be bought online",
    "The deputy is in charge while the boss is away",
    "This software only supports the latest browsers",
    "The children like to play ball in the park",
    "The material is kept in a shared folder",
    "It often snows here in winter",
    "They often argue about small things",
    "The new colleague used to be a teacher",
    "The train was forty minutes late",
    "Everybody agreed not to discuss work in the evening",
)


BACKGROUND = CHINESE + ENGLISH
"""The statements of `BackgroundVectors`, in this order."""

EVIDENCE = (
    "constant",
    "words",
    "words of a phrase",
    "meant",
    "worth",
    "rarest",
    "others meant",
    "another one",
    "meant, kind missing",
    *(f"{kind} held" for kind in KINDS),
    *(f"{kind} missing" for kind in KINDS),
    "nearness",
    "others",
    "dense script",
    "across",
    "match",
)
"""The signs of an answer, in the order of their weights. A phrase is no question.
"meant", "worth", "rarest": see `Met`; "others meant": the greatest share meant among the other memories, of a
question; "another one": "meant" where a word is missing that says which one is asked about; "meant, kind missing":
the same of a kind asked for;
"others": the greatest nearness among the other memories;
"dense script": the memory is in one; "across": the question is in another kind of script."""
_KINDS = slice(EVIDENCE.index(f"{KINDS[0]} held"), EVIDENCE.index("nearness"))
_OF_WORDS = _KINDS.stop
WORDS_ALONE = (
    -2.248,
    3.109,
    0.410,
    1.375,
    2.045,
    -0.732,
    -2.464,
    -2.057,
    -2.101,
    0.433,
    0.816,
    1.040,
    0.865,
    -0.305,
    0.770,
    -0.333,
    0.221,
    0.856,
    1.068,
    0.106,
    -1.328,
    -0.987,
    0.251,
    -0.939,
    -3.030,
    -5.079,
    -4.297,
    -2.560,
    -1.941,
    -1.611,
    -2.883,
)
"""The weights if there are no vectors, made by `python -m training.train_answers`."""
ANY_MODEL = (
    -1.774,
    -1.369,
    1.602,
    1.866,
    1.275,
    0.559,
    -1.208,
    -1.067,
    -1.635,
    0.130,
    0.604,
    0.828,
    0.529,
    0.140,
    0.870,
    0.167,
    -0.035,
    0.376,
    0.648,
    -0.395,
    -1.261,
    -1.182,
    -0.160,
    -1.120,
    -3.873,
    -4.766,
    -4.580,
    -3.297,
    -2.042,
    -1.935,
    -3.093,
    0.935,
    -0.745,
)
"""The weights for a model of embeddings that has none of its own."""
_ALONE = np.array(WORDS_ALONE)
_SINGLE = 0.35
"""The weight of a single Chinese character, or piece of another script without spaces, beside a pair."""
_WRITTEN = 0.2
"""The weight of a word with its accents beside it without them."""
_UNSEEN = 5
"""Virtual memories added to a scope: in a small scope the rarity of words cannot be estimated."""
# A Latin letter.
_LATIN = lazy_pattern("[A-Za-z]")
_MIN_DEVIATION = 0.005
"""The least standard deviation of cosines: smaller differences are chance."""


def is_dense_script(text: str) -> bool:
    """Return True if it is mostly Chinese, Japanese or Korean; a character of these counts as three letters."""
    return 3 * len(SYLLABIC.findall(text)) >= max(1, len(_LATIN.findall(text)))


@cache
def _in_background() -> Mapping[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for statement in BACKGROUND:
        for term in set(terms(statement)):
            counts[term] += 1
    return dict(counts)


@cache
def _meanings() -> Mapping[str, tuple[int, ...]]:
    """Return the numbers of the meanings of each term that has any."""
    meanings: dict[str, list[int]] = defaultdict(list)
    for number, same in enumerate(lexicon.same_meaning()):
        for word in same:
            # A Chinese word is one pair of characters, or one character.
            meanings[word if SYLLABIC.match(word) else terms(word)[0]].append(number)
    return {term: tuple(numbers) for term, numbers in meanings.items()}


@dataclass(frozen=True, slots=True)
class Met:
    """The terms of a question that each memory has. `shares`: of their worth, in [0, 1]; `meant`: the same, counting a
    term for which it has another word of the same meaning; `worth`: that, not divided; `rarest`: it has the term of the
    greatest worth."""

    shares: Floats
    meant: Floats
    worth: Floats
    rarest: Flags


class StatementTerms:
    """The terms of a set of statements. `held`: (statements, kinds), the kinds of things that each may hold."""

    def __init__(self, statements: Sequence[str]) -> None:
        places: dict[str, list[int]] = defaultdict(list)
        meant: dict[int, list[int]] = defaultdict(list)
        meanings = _meanings()
        for place, statement in enumerate(statements):
            said = {*terms(statement), *written(statement)}
            for term in said:
                places[term].append(place)
            for meaning in {meaning for term in said for meaning in meanings.get(term, ())}:
                meant[meaning].append(place)
        self._size = len(statements)
        self._places = {term: np.array(rows, np.int32) for term, rows in places.items()}
        self._meant = {meaning: np.array(rows, np.int32) for meaning, rows in meant.items()}
        # Of terms asked for; there are no more than there are words with a meaning.
        self._same: dict[str, _Rows | None] = {}
        self._background = _in_background()
        self.held = held(statements)
        self._folded = [statement[:_READ].lower() for statement in statements]

    def lacking(self, which: Sequence[str]) -> Flags:
        """Return for each statement if it lacks one of these."""
        return np.array([any(one not in text for one in which) for text in self._folded], np.bool_)

    def met(self, wanted: Iterable[str]) -> Met:
        """Return what each statement has of these terms. A term is worth more the fewer statements have it, here and in
        the background; an unknown term counts too."""
        worths, meant, rarest = np.zeros(self._size), np.zeros(self._size), np.zeros(self._size, np.bool_)
        total, most, having = 0.0, 0.0, None
        for term in wanted:
            worth = self._worth(term)
            total += worth
            places = self._places.get(term)
            if places is not None:
                worths[places] += worth
            if worth > most:
                most, having = worth, places
            same = self._of_meaning(term, places)
            if same is not None:
                meant[same] += worth
        if having is not None:
            rarest[having] = True
        if total <= 0:
            return Met(worths, meant, meant, rarest)
        return Met(np.minimum(worths / total, 1.0), np.minimum(meant / total, 1.0), meant, rarest)

    def _of_meaning(self, term: str, places: _Rows | None) -> _Rows | None:
        """Return the statements that have the term or another word of its meaning; None if none has."""
        meanings = _meanings().get(term)
        if meanings is None:
            return places
        if term not in self._same:
            same = [self._meant[meaning] for meaning in meanings if meaning in self._meant]
            self._same[term] = np.unique(np.concatenate(same)) if same else None
        return self._same[term]

    def _worth(self, term: str) -> float:
        here = _rarity(len(self._places.get(term, ())), self._size + _UNSEEN)
        worth = here * _rarity(self._background.get(term, 0), len(BACKGROUND))
        if is_written(term):
            return worth * _WRITTEN
        return worth * _SINGLE if pieces_in(term) == 1 else worth


def _rarity(having: int, size: int) -> float:
    """Return 1 for a term that no statement has, near 0 for one that all have."""
    return math.log((size + 1) / (having + 0.5)) / math.log((size + 1) / 0.5)


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines with one question, and True for each statement in a dense script."""

    values: Floats
    dense_script: Flags

    def of_script(self, dense_script: bool) -> Floats:
        chosen: Floats = self.values[self.dense_script == dense_script]
        return chosen


class BackgroundVectors:
    """The vectors of `BACKGROUND`, (48, dimensions)."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = _of_length_one(vectors)
        self._dense_script = np.arange(len(BACKGROUND)) < len(CHINESE)

    def cosines(self, question: Vectors) -> Cosines:
        """Return the cosines with the question's vector, (dimensions,)."""
        cosines: Floats = (self._vectors @ _of_length_one(question[None])[0]).astype(float)
        return Cosines(cosines, self._dense_script)


def cosines_of(vectors: Vectors, question: Vectors) -> Floats:
    """Return the cosine of each row (n, dimensions) with the question's vector (dimensions,)."""
    cosines: Floats = (_of_length_one(vectors) @ _of_length_one(question[None])[0]).astype(float)
    return cosines


def _of_length_one(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def nearness(memories: Cosines, background: Cosines, sample: Cosines | None = None) -> Floats:
    """Return how many standard deviations each memory exceeds the unrelated statements; NaN if its cosine is.

    `sample`: of the scope's other memories, if `memories` are only the nearest of very many; otherwise each is compared
    with the rest.
    """
    nearness_of = np.full(memories.values.size, np.nan)
    for dense_script in (True, False):
        mine = memories.dense_script == dense_script
        if not mine.any():
            continue
        around = background.of_script(dense_script)
        if sample is None:
            nearness_of[mine] = _above_others(memories.values[mine], around)
        else:
            nearness_of[mine] = _above(memories.values[mine], np.concatenate([around, sample.of_script(dense_script)]))
    return nearness_of


def _above(values: Floats, around: Floats) -> Floats:
    above: Floats = (values - around.mean()) / max(float(around.std()), _MIN_DEVIATION)
    return above


def _above_others(values: Floats, around: Floats) -> Floats:
    """Return each value compared with `around` and all other values."""
    known = values[~np.isnan(values)]
    count = around.size + known.size - 1
    sums, squares = around.sum() + known.sum(), np.square(around).sum() + np.square(known).sum()
    means = (sums - values) / count
    variances = (squares - np.square(values)) / count - np.square(means)
    above: Floats = (values - means) / np.sqrt(np.maximum(variances, _MIN_DEVIATION**2))
    return above


@dataclass(frozen=True, slots=True)
class Scores:
    """A value in [0, 1] for each memory. `words`: the share of the question's worth that it has; another word of the
    same meaning counts half. `meaning`: the score by meaning alone, 0 if unknown."""

    total: Floats
    words: Floats
    meaning: Floats

    def best(self, threshold: float, limit: int) -> Ints:
        """Return the indices of the highest scores at or above the threshold, the highest first; equal ones in their
        order."""
        order = np.argsort(-self.total, kind="stable")
        return order[self.total[order] >= threshold][:limit]

    def nothing(self, threshold: float, *, words_alone: bool) -> str | None:
        """Return why no memory reaches the threshold, with what to do; None if one does."""
        if not self.total.size:
            return "There is no memory to search."
        best = float(self.total.max())
        if best >= threshold:
            return None
        reached = f"The best of {self.total.size:,} memories scores {_below(best, threshold)}"
        how = "Words alone were compared: ask in the words of the memories" if words_alone else "Ask in other words"
        return f"{reached}; the threshold is {threshold:g}. {how}, or give a lower threshold."


def _below(value: float, threshold: float) -> str:
    """Return the value with two digits, or with as many as it takes to differ from the threshold."""
    return next((text for digits in (2, 4) if float(text := f"{value:.{digits}f}") < threshold), f"{value:.9f}")


def score(
    question: MemoryQuestion,
    words: StatementTerms,
    near: Floats | None = None,
    matches: MemoryMatches | None = None,
) -> Scores:
    """Return the scores. `near`: from `nearness`; None, or NaN for a memory, if only words count. `matches`: None if no
    comparison was learned for the model."""
    met = words.met(question.terms)
    signs, shares = _signs(question, words, met), (met.shares + met.meant) / 2
    if near is None:
        return Scores(_logistic(np.add(*_of_words(question, words, signs, _ALONE))), shares, np.zeros(shares.size))
    weights = np.array(ANY_MODEL) if matches is None else matches.weights
    kinds, own = _of_words(question, words, signs, weights)
    meant = kinds + _of_meaning(question, near, matches, weights[_OF_WORDS:])
    total, unknown = meant + own, np.isnan(near)
    if unknown.any():
        total = np.where(unknown, np.add(*_of_words(question, words, signs, _ALONE)), total)
        meant = np.where(unknown, -np.inf, meant)
    return Scores(_logistic(total), shares, _logistic(meant))


def _of_words(question: MemoryQuestion, words: StatementTerms, signs: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return what the constant and the kinds of things asked for add, for each memory, and what the words add."""
    own: Floats = weights[3 : _KINDS.start] @ signs[1:] + (weights[1] + weights[2] * question.phrase) * signs[0]
    if not any(question.asked):
        return np.full(own.size, weights[0]), own
    wanted, kinds = np.array(question.asked), weights[_KINDS]
    held, missing = kinds[: len(KINDS)] * wanted, kinds[len(KINDS) :] * wanted
    added: Floats = weights[0] + missing.sum() + words.held @ (held - missing)
    return added, own


def _signs(question: MemoryQuestion, words: StatementTerms, met: Met) -> Floats:
    """Return the signs of words without that of a phrase and without the kinds, a row a sign."""
    signs = np.zeros((_KINDS.start - 2, met.meant.size))
    signs[0], signs[1], signs[2], signs[3] = met.shares, met.meant, met.worth, met.rarest
    if not question.phrase:
        signs[4] = _best_of_others(met.meant)
    if question.which:
        signs[5] = met.meant * words.lacking(question.which)
    if any(question.asked):
        signs[6] = met.meant * (np.array(question.asked) & ~words.held).any(axis=1)
    return signs


def _of_meaning(question: MemoryQuestion, near: Floats, matches: MemoryMatches | None, weights: Floats) -> Floats:
    added: Floats = weights[0] * near + weights[1] * _best_of_others(near)
    if matches is not None:
        across = matches.dense_script != question.dense_script
        added += weights[2] * matches.dense_script + weights[3] * across + weights[4] * matches.values
    return added


def evidence(question: MemoryQuestion, words: StatementTerms, near: Floats) -> Floats:
    """Return the columns of `EVIDENCE` that need no learned comparison, a row a memory."""
    wanted, signs = np.array(question.asked), _signs(question, words, words.met(question.terms))
    kinds = (*(wanted & words.held).T, *(wanted & ~words.held).T)
    signs_of_words = (signs[0], signs[0] * question.phrase, *signs[1:])
    return np.column_stack([np.ones(near.size), *signs_of_words, *kinds, near, _best_of_others(near)]).astype(float)


def _best_of_others(near: Floats) -> Floats:
    """Return for each memory the greatest value among the others; 0 if none is known."""
    if near.size < 2:
        return np.zeros(near.size)
    # NaN comes last.
    first, second = (-np.sort(-near)[:2]).tolist()
    if second != second:
        return np.zeros(near.size)
    others: Floats = np.where(near == first, second, first)
    return others


def _logistic(values: Floats) -> Floats:
    """Return the logistic function, rounded, so that equal evidence gives equal values in any order of summation."""
    with np.errstate(over="ignore"):
        return np.round(1 / (1 + np.exp(-values)), 9)
