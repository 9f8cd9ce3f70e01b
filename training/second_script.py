"""Telling a part of a room in a second script: rooms in which two languages are written.

An English word becomes a made-up word of Chinese characters, the same one for the same stem, so that what overlapped in
words still does. Words that the linker reads as cues become the Chinese ones; names, links and code stay as they are.
"""

import re
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from roomlore.core.models import Role
from roomlore.core.text import ENGLISH, stemmed
from training.rooms import LabelledRoom

_CHARACTERS = (
    "水火山石田林海河风云雨雪电气光声色味门窗桌椅床灯书笔纸墨车船飞机路桥城村店厂校园花草树果鱼鸟马牛羊猪狗猫米面菜肉油盐茶酒衣帽"
    "鞋袜手足头眼耳口鼻心血骨皮金银铜铁木土沙泥春夏秋冬东西南北红黄蓝绿黑白青紫军兵官民工农商医师父母兄弟姐妹子王公主客家国州县市镇"
)
_CUES = {
    chinese: words.split()
    for chinese, words in {
        "什么": "what whats what's which",
        "怎么": "how how's",
        "为什么": "why",
        "哪里": "where where's wheres",
        "谁": "who whos",
        "有人": "anyone anybody someone somebody",
        "大家": "everyone everybody guys all folks",
        "问题": "problem question trying",
        "有没有": "is are has have any",
        "能不能": "can could will would",
        "你好": "hi hello hey hiya yo greetings",
        "谢谢": "thanks thank thx ty tnx",
        "好的": "ok okay sure right k kk cool great nice",
        "是的": "yes yeah yep yup true indeed",
        "不是": "no nope nah",
        "而且": "and also plus",
        "但是": "but though except",
        "因为": "because cause so",
        "或者": "or",
        "这个": "this these it its it's",
        "那个": "that those that's thats",
        "他": "he she they them",
        "你": "you your u ur you're",
        "试试": "try use check",
        "我": "i my me im i'm i've our we",
        "哈哈": "lol haha hehe heh lmao xd",
    }.items()
}
_CUE_OF = {word: chinese for chinese, words in _CUES.items() for word in words}
_ASKED_FIRST = frozenset(["有没有", "能不能"])
_PARTICLES = ("的", "了", "是", "在", "就", "也", "很", "")
_MARKS = str.maketrans({",": "，", ".": "。", "?": "？", "!": "！", ";": "；", "(": "（", ")": "）"})
_PLAIN = re.compile(r"([(\"']*)([A-Za-z]+(?:'[A-Za-z]+)?)([.,?!;)\"']*)")
_LEAD = re.compile(r"@?[^\s:,]{2,30}\s?[:,]+\s+")


@dataclass(frozen=True, slots=True)
class _Manner:
    """The shares of two scripts in one room: of people who rather write the second one, of talks that are in
    their first speaker's script (the others in either), of lines in their speaker's own script whatever the talk's, of
    lines that switch, of short ones that do, of words that both languages write in Latin letters."""

    people: float
    by_people: float
    own: float
    switched: float
    short: float
    loans: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> "_Manner":
        loans = float(rng.choice([0.0, 0.1, 0.25]))
        if rng.random() < 0.12:
            return cls(1.0, 0.0, 0.0, float(rng.choice([0.02, 0.05, 0.1])), float(rng.choice([0.1, 0.2, 0.3])), loans)
        return cls(
            people=float(rng.choice([0.2, 0.4, 0.6, 0.8])),
            by_people=float(rng.choice([0.0, 0.5, 0.9])),
            own=float(rng.choice([0.0, 0.05, 0.3, 1.0], p=[0.8, 0.1, 0.05, 0.05])),
            switched=float(rng.choice([0.0, 0.0, 0.01, 0.05])),
            short=float(rng.choice([0.0, 0.03, 0.1])),
            loans=loans,
        )


def bilingual(room: LabelledRoom, rng: np.random.Generator) -> LabelledRoom:
    """Return the room with a part of its talks, or of its people, in a second script."""
    manner = _Manner.drawn(rng)
    people = sorted({message.sender_id for message in room.messages})
    writes = dict(zip(people, (rng.random(len(people)) < manner.people).tolist(), strict=True))
    kept = frozenset(person.lower() for person in people)
    talks: dict[str | None, bool] = {}
    messages = []
    for message, label in zip(room.messages, room.labels, strict=True):
        own = writes[message.sender_id]
        if label.conversation not in talks:
            talks[label.conversation] = own if rng.random() < manner.by_people else rng.random() < manner.people
        second = talks[label.conversation]
        if message.role is Role.USER and rng.random() < manner.own:
            second = own
        switches = manner.short if len(message.text.split()) < 4 else manner.switched
        if second != (rng.random() < switches) and message.role is not Role.SYSTEM:
            message = replace(message, text=retold(message.text, kept, manner.loans))
        messages.append(message)
    return replace(room, name=room.name + "-bilingual", messages=tuple(messages))


def retold(text: str, kept: frozenset[str], loans: float) -> str:
    """Return a text in the second script; `kept`: names in lower case; `loans`: the share of words that stay."""
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    told, apart = "", True
    for chunk in text[start:].split():
        plain = _PLAIN.fullmatch(chunk)
        word = plain[2].lower() if plain else ""
        if plain is None or word in kept or _is_loan(word, loans):
            told, apart = f"{told} {chunk} ", True
            continue
        new = _CUE_OF.get(word) or _particle(word) if word in ENGLISH or word in _CUE_OF else _made_up(word)
        if new in _ASKED_FIRST and told:
            new = "有" if new == "有没有" else "会"
        content = new == _made_up(word)
        told += plain[1].translate(_MARKS) + ("" if apart or not content else "的") + new
        told += plain[3].translate(_MARKS)
        apart = not content or bool(plain[3])
    return text[:start] + " ".join(told.split())


def _is_loan(word: str, share: float) -> bool:
    return word not in ENGLISH and word not in _CUE_OF and crc32(f"loan {stemmed(word)}".encode()) % 1000 < share * 1000


def _particle(word: str) -> str:
    return _PARTICLES[crc32(word.encode()) % len(_PARTICLES)]


def _made_up(word: str) -> str:
    number = crc32(stemmed(word).encode())
    first, second = number % len(_CHARACTERS), number // len(_CHARACTERS) % len(_CHARACTERS)
    return _CHARACTERS[first] + ("" if number % 7 == 0 else _CHARACTERS[second])
