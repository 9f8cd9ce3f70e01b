"""Judge if a statement answers a question: the kind of thing that is asked for, and a learned comparison of vectors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from roomlore.core.search.hits import Floats, Vectors

Flags = NDArray[np.bool_]

KINDS = ("number", "time", "person", "place")
"""The kinds of things that a question can ask for, in the order of `asked_for` and `held`."""

_READ = 2_000
_ASKED = (
    re.compile(
        r"多少|几[点个天人位次层楼号]|幾[點個天人位次層樓號]|多[久长長大高远遠重]"
        r"|\bhow (?:many|much|long|often|far|old|tall)\b|\bwhat (?:time|share|date|number)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"什么时候|什麼時候|何时|何時|哪[天年日]|几[月日点号]|幾[月日點號]|\bwhen\b|\bwhat (?:time|day|date)\b"
        r"|\bwhich day\b",
        re.IGNORECASE,
    ),
    re.compile(r"谁|誰|哪位|\bwho(?:se|m)?\b", re.IGNORECASE),
    re.compile(r"哪里|哪裡|哪儿|哪兒|在哪|\bwhere\b", re.IGNORECASE),
)
_LATIN = re.compile("[a-z]+")
_DIGIT = re.compile(r"\d")
_CLOCK = re.compile(r"\d[:.]\d\d|\d ?[ap]m\b")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]")
_WORDS = tuple(
    frozenset(listed.split())
    for listed in (
        """one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty
        hundred thousand million half third first second once twice every each daily weekly monthly""",
        """monday mondays tuesday tuesdays wednesday wednesdays thursday thursdays friday fridays saturday saturdays
        sunday sundays january february march april may june july august september october november december spring
        summer autumn winter morning mornings afternoon afternoons evening evenings night nights noon midnight midday
        week weeks weekend weekends month months year years daily today tomorrow yesterday until after before past day
        days hour hours clock""",
        "by ask see call tell mr mrs ms dr mum dad mother father sister brother aunt uncle",
        "in at on behind beside under next near to from room floor street road door gate left right",
    )
)
_CHINESE = (
    re.compile("[一二两兩三四五六七八九十百千半]"),
    re.compile(
        "[0-9一二两兩三四五六七八九十][点點月日号號年]|[周週][一二三四五六日天末]|礼拜|禮拜|星期|每[天日周週月年晚]"
        "|[早晚]上|[上中下]午|凌晨|半夜|[今明昨后後]天|[去今明]年|[上下]个?[月周週]|[春夏秋冬]|月底|年底|之前|以后|以後"
    ),
    re.compile(
        "[老小阿][\u4e00-\u9fff]|老师|老師|经理|經理|医生|醫生|医师|醫師|大夫|师傅|師傅|教授|主管|教练|教練|会长|會長"
        "|[叔姐哥姨妈媽爸嫂由归歸找叫是]"
    ),
    re.compile("[在放于於至到楼樓室门門路街层層站店市区區柜櫃里裡厅廳院东東西南北]"),
)


def asked_for(question: str) -> tuple[bool, ...]:
    """Return for each of `KINDS` if the question asks for it."""
    return tuple(bool(kind.search(question[:_READ])) for kind in _ASKED)


def held(statements: Sequence[str]) -> Flags:
    """Return (statements, kinds): what each statement may hold. A kind is held in doubt."""
    found = [_held(statement[:_READ]) for statement in statements]
    return np.array(found, np.bool_).reshape(len(statements), len(KINDS))


def _held(text: str) -> list[bool]:
    folded = text.lower()
    latin = set(_LATIN.findall(folded))
    digit = bool(_DIGIT.search(text))
    found = [not latin.isdisjoint(words) for words in _WORDS]
    found[0] |= digit
    found[1] |= digit and bool(_CLOCK.search(folded))
    found[2] |= bool(_NAME.search(text))
    if not text.isascii():
        found = [flag or bool(kind.search(text)) for flag, kind in zip(found, _CHINESE, strict=True)]
    return found


@dataclass(frozen=True, slots=True)
class Matches:
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
