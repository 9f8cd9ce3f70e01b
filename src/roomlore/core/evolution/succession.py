"""Whether a statement is the next version of a memory, as far as words tell.

What an update says takes the place of what was remembered. So it must speak of the same, and what it drops of the
memory (a number, a day, a name, a denial) must be replaced or called off by a message. Where that cannot be seen, the
memory stays: refusing loses nothing that the memory says.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from roomlore.core.evolution.guards import said
from roomlore.core.evolution.handles import found
from roomlore.core.evolution.particulars import Names, Particular, denials, particulars, turns, without_particulars
from roomlore.core.terms import terms

_RELATED = 1 / 3
"""Least share of the words of the shorter of two statements that both have, where they speak of the same."""
_STILL = 0.7
"""Least share of a memory's words in a message that says it."""
_HAN_WORD = 3
"""Chinese characters that may be one word or name."""
_GENERAL_WORDS = """
group member peopl everybodi everyon team usual alway typic regular time day week
群 里 组 組 大 家 每 天 日 周 週 晚 早 上 下 午 个 個 们 們 人 点 點 从 從 对 對 为 為 以 及
"""
_GENERAL = frozenset(_GENERAL_WORDS.split())


class Wording:
    """A text taken apart. `words`: that tell what it is about, without names, numbers, days and what all have; in
    Chinese single characters. `pairs`: the same of neighbouring Chinese characters."""

    def __init__(self, text: str, names: Names) -> None:
        self.text = text
        self._names = names

    @cached_property
    def particulars(self) -> frozenset[Particular]:
        return particulars(self.text, self._names)

    @cached_property
    def named(self) -> frozenset[Particular]:
        return frozenset(one for one in self.particulars if one.kind == "name")

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(term for term in self._terms if not _is_pair(term))

    @cached_property
    def telling(self) -> frozenset[str]:
        """Stems, and pairs of Chinese characters: single ones stand everywhere."""
        return frozenset(term for term in self._terms if _is_pair(term) or term[0] < "\u2e80")

    @cached_property
    def denials(self) -> int:
        return denials(self.text)

    @cached_property
    def turns(self) -> bool:
        return turns(self.text)

    @cached_property
    def _terms(self) -> list[str]:
        return [term for term in terms(without_particulars(self.text, self._names)) if term not in _GENERAL]


class Talk:
    """What was said under each handle, as 'name: text', and what is remembered. Takes each text apart once."""

    def __init__(self, lines: Mapping[str, str], statements: Sequence[str]) -> None:
        speakers = {line.partition(": ")[0].partition(" (re ")[0] for line in lines.values()}
        self._names = Names(sorted(speakers), [*lines.values(), *statements])
        self._found: dict[str, Wording] = {}
        self._lines = lines

    @property
    def every(self) -> list[Wording]:
        return [self.of(line) for line in self._lines.values()]

    def cited(self, handles: Sequence[str]) -> list[Wording]:
        """Of the messages under these handles."""
        return [self.of(line) for handle in handles if (line := found(handle, self._lines))]

    def of(self, text: str) -> Wording:
        if text not in self._found:
            self._found[text] = Wording(text, self._names)
        return self._found[text]


def is_related(memory: Wording, statement: Wording) -> bool:
    """Whether both speak of the same."""
    if not memory.words or not statement.words:
        return bool(set(terms(memory.text)) & set(terms(statement.text)))
    return len(memory.words & statement.words) >= _RELATED * min(len(memory.words), len(statement.words))


def is_spoken_of(one: Wording, messages: Sequence[Wording]) -> bool:
    """Whether a message has a word or a name of it, in Chinese two neighbouring characters."""
    return any(one.telling & message.telling or one.named & message.named for message in messages)


def still_says(memory: Wording, messages: Sequence[Wording]) -> bool:
    """Whether a message says what the memory says, and none that speaks of it calls it off."""
    shares = [(_share(memory, message), message) for message in messages]
    same = any(share >= _STILL and _as_denied(memory, message) for share, message in shares)
    return same and all(_as_denied(memory, message) or not message.turns for share, message in shares if share)


def loss(memory: Wording, statement: Wording, messages: Sequence[Wording], *, merged: bool = False) -> str:
    """Why the statement must not take the place of the memory, though both speak of the same; '' where it may.

    `merged`: it takes the place of others too, so it may say more.
    """
    if said(memory.text) == said(statement.text):
        return ""
    lost = _dropped(memory, statement, messages) or _undenied(memory, statement, messages)
    return lost if lost or merged else _denied(memory, statement, messages) or _worn(memory, statement, messages)


def _share(memory: Wording, message: Wording) -> float:
    return len(memory.words & message.words) / len(memory.words) if memory.words else 0.0


def _as_denied(one: Wording, other: Wording) -> bool:
    return bool(one.denials) == bool(other.denials)


def _dropped(memory: Wording, statement: Wording, messages: Sequence[Wording]) -> str:
    """What is called off, or replaced by what a message names, may go."""
    off = {one for message in messages if message.turns for one in message.particulars}
    named = {one for message in messages for one in message.particulars}
    new = {one.kind for one in (statement.particulars - memory.particulars) & named}
    gone = [one for one in memory.particulars - statement.particulars - off if one.kind not in new]
    first = min(((one.kind, one.value) for one in gone), default=None)
    return f"It drops the {first[0]} {first[1]!r}, and no message gives another or calls it off." if first else ""


def _undenied(memory: Wording, statement: Wording, messages: Sequence[Wording]) -> str:
    about = _about(memory, statement, messages)
    if statement.denials < memory.denials and all(message.denials for message in about):
        return "It no longer denies what the memory denies, and no message says so."
    return ""


def _denied(memory: Wording, statement: Wording, messages: Sequence[Wording]) -> str:
    about = _about(memory, statement, messages)
    if statement.denials > memory.denials and not any(message.denials for message in about):
        return "It denies what the memory says, and no message does."
    return ""


def _about(memory: Wording, statement: Wording, messages: Sequence[Wording]) -> list[Wording]:
    return [message for message in messages if message.words & (memory.words | statement.words)]


def _worn(memory: Wording, statement: Wording, messages: Sequence[Wording]) -> str:
    """One that only leaves words out, or puts a single word in the place of others, needs a message that does so."""
    put = statement.words - memory.words
    if not memory.words - statement.words:
        return ""
    counted = statement.particulars - memory.particulars - statement.named
    if not put and not counted and not any(message.turns for message in messages):
        return "It only leaves out a part of the memory."
    if put and _is_a_word(put) and not any(put & message.words for message in messages):
        return "It differs from the memory in a word that no message says."
    return ""


def _is_a_word(put: frozenset[str]) -> bool:
    return len(put) <= (1 if any(term[0] < "\u2e80" for term in put) else _HAN_WORD)


def _is_pair(term: str) -> bool:
    return len(term) == 2 and all(ord(character) > 0x2E7F for character in term)
