"""The input of a model: memories and messages, one line each under a handle, and the limits of its answer."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from itertools import count
from typing import TypeVar

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.requests import Rules, is_stale
from roomlore.core.memory.memory import Memory, Source
from roomlore.core.memory.reading import as_conversation, stamp
from roomlore.core.memory.writing import is_longer
from roomlore.core.models import StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import fitting, fold, terms

T = TypeVar("T")
_FULL_WIDTH = {0xFF01 + at: 0x21 + at for at in range(94)}
# The handle of a line.
_HANDLE = lazy_pattern(r"[a-z][0-9]{1,6}")
# A text that looks like the handle of a memory.
_NAMED = lazy_pattern(r"m[0-9]+")
_LONGEST = 60


def handles_of(memories: Iterable[Memory], *, shown: Iterable[str] = ()) -> dict[str, Memory]:
    """Return memories by handle m1, m2, … in the order given. A handle that occurs in a text of `shown`, which the
    model reads too, is skipped, so that user text cannot address a memory even if the model follows it."""
    named = {name for text in shown for name in _NAMED.findall(unicodedata.normalize("NFKC", text).lower())}
    free = (name for name in (f"m{number}" for number in count(1)) if name not in named)
    return dict(zip(free, memories, strict=False))


def message_handles(messages: Iterable[Source]) -> dict[str, Source]:
    """Return messages by handle c1, c2, … in the order given."""
    return {f"c{number}": message for number, message in enumerate(messages, start=1)}


def find(handle: str, offered: Mapping[str, T]) -> T:
    """Return the item with this handle, in any case and width. An id is never accepted.

    Raises `InvalidInput` with the reason if there is none.
    """
    name = handle.strip().translate(_FULL_WIDTH).lower() if len(handle) <= _LONGEST else ""
    if name in offered:
        return offered[name]
    if _HANDLE.fullmatch(name):
        raise InvalidInput("handle_not_offered", handle=name, offered=_span(offered))
    raise InvalidInput("handle_invalid", handle=f"{handle[:_LONGEST]!r:.60}", offered=_span(offered))


def offered_as(handle: str, offered: Mapping[str, T]) -> T | None:
    """Return the item as `find` does, or None if there is none."""
    try:
        return find(handle, offered)
    except InvalidInput:
        return None


def _span(offered: Mapping[str, object]) -> str:
    names = list(offered)
    return f"use {names[0]} to {names[-1]}" if names else "nothing was offered"


_PROSE = lazy_pattern(r"(?<![a-z0-9])[,.!?;:'\"()\[\]]|[,.!?;:'\"()\[\]](?![a-z0-9])|[、。“”‘’《》〈〉「」『』【】…—]")
"""Punctuation without meaning; inside 1.5 and node.js it has one."""
# A blank that divides no two words.
_LOOSE_SPACE = lazy_pattern(r"(?<![a-z0-9]) | (?![a-z0-9])")
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_WHITE = frozenset("\t\n\r")
_ROUNDING = 1e-9


@lru_cache(maxsize=1 << 10)
def comparison_form(statement: str) -> str:
    """Return the form in which statements are compared: folded, without white space and punctuation that carry no
    meaning."""
    return _LOOSE_SPACE.sub("", " ".join(_PROSE.sub(" ", fold(statement)).split()))


def clean_statement(given: str, rules: Rules) -> str:
    """Return the statement on one line. Raises `InvalidInput` with the reason if it cannot be kept."""
    if is_longer(given, rules.statement_chars):
        raise InvalidInput("statement_too_long", most=rules.statement_chars)
    if not given.isprintable() and any(_is_control(character) for character in given):
        raise InvalidInput("statement_with_controls")
    if not comparison_form(given):
        raise InvalidInput("statement_empty")
    return " ".join(given.split())


def clean_line(given: str) -> str:
    """Return the text on one line, without control characters."""
    if given.isprintable():
        return " ".join(given.split())
    return " ".join("".join(" " if _is_control(character) else character for character in given).split())


def most_deleted(active: int, rules: Rules) -> int:
    """Return the number of active memories that an evolution may delete, at least one."""
    return max(1, math.floor(rules.delete_share * active + _ROUNDING))


def _is_control(character: str) -> bool:
    return character not in _WHITE and (character in _DIRECTIONS or unicodedata.category(character) in {"Cc", "Cs"})


MESSAGE_CHARACTERS = 24_000
"""Code points of all messages together. Unused space of short messages does not go to long ones, so one long message
cannot crowd out others."""
_MIN_CHARACTERS = 120
_INERT = str.maketrans(
    {
        **dict.fromkeys("<＜﹤", "‹"),
        **dict.fromkeys(">＞﹥", "›"),
        **dict.fromkeys("{｛﹛", "("),
        **dict.fromkeys("}｝﹜", ")"),
    }
)


@dataclass(frozen=True, slots=True)
class ShownMessages:
    """Messages as shown to a model. `text`: a line for each message with content of its own. `handles`: of these
    messages only."""

    text: str
    handles: Mapping[str, Source]


def inert(text: str) -> str:
    """Return the text on one line, without anything that could end a block, begin a tag or be JSON."""
    return clean_line(text.translate(_INERT))


def says_nothing(answer: str) -> bool:
    """Return True if the answer says, in the form the prompts ask for, that there is nothing to do: an empty list,
    fenced or not."""
    return "".join(line for line in answer.split() if not line.startswith("```")) == "[]"


def show_memories(offered: Mapping[str, Memory], *, now: datetime) -> str:
    """Return a line for each memory: handle, version, the day it was last supported, whether it is stale or
    doubtful, statement."""
    return "\n".join(
        f"{handle} [{_about(memory, stale=is_stale(memory, now))}]: {inert(memory.statement)}"
        for handle, memory in offered.items()
    )


def show_messages(
    messages: Sequence[StoredMessage],
    *,
    room_id: str,
    quoted: Mapping[str, StoredMessage],
    people: Mapping[str, str],
    zone: tzinfo,
) -> ShownMessages:
    """Return the messages of one room in order: handle, time in `zone`, name, text. `quoted`, `people`: as for
    `as_conversation`."""
    most = max(MESSAGE_CHARACTERS // max(len(messages), 1), _MIN_CHARACTERS)
    spoken = ((message, inert(as_conversation([message], quoted=quoted, people=people))) for message in messages)
    shown = [(message, cut) for message, line in spoken if (cut := fitting(line, most))]
    handles = message_handles(Source(room_id, message.id) for message, _ in shown)
    lines = (
        f"{handle} [{stamp(message.at, zone)}] {line}" for handle, (message, line) in zip(handles, shown, strict=True)
    )
    return ShownMessages("\n".join(lines), handles)


def lines_of(shown: str) -> dict[str, str]:
    """Return the lines of `show_messages` by handle, without the times: 'name: text'."""
    parts = (line.partition(" ") for line in shown.splitlines())
    return {handle: rest.partition("] ")[2] for handle, _, rest in parts}


def _about(memory: Memory, *, stale: bool) -> str:
    words = [f"v{memory.version}", f"{memory.supported_at:%Y-%m-%d}", *(["stale"] if stale else [])]
    if memory.confidence is not None:
        words.append(f"confidence {memory.confidence:.2f}")
    if memory.doubtful:
        words.append(f"doubtful: {inert(memory.doubtful).rstrip('.')}")
    return ", ".join(words)


STATEMENT_CHARACTERS = 480
"""Average code points allowed for a memory. Statements made by an evolution never need more; statements of callers
may."""


def chosen(memories: Sequence[Memory], text: str, *, most: int) -> list[Memory]:
    """Return at most `most` memories, the oldest lineage first: those that share the largest part of their words with
    what was said, and of equal ones those changed last. A long one that does not fit is skipped.

    `memories`: the last changed first.
    """
    if len(memories) > most or sum(len(memory.statement) for memory in memories) > most * STATEMENT_CHARACTERS:
        heard = set(terms(text))
        memories = _fitting(sorted(memories, key=lambda memory: -_share(memory, heard)), most)
    return sorted(memories, key=lambda memory: (memory.created_at, memory.memory_id))


def _fitting(memories: Sequence[Memory], most: int) -> list[Memory]:
    fitting_memories: list[Memory] = []
    room = most * STATEMENT_CHARACTERS
    for memory in memories:
        if len(fitting_memories) < most and len(memory.statement) <= room:
            fitting_memories.append(memory)
            room -= len(memory.statement)
    return fitting_memories


def _share(memory: Memory, heard: set[str]) -> float:
    words = set(terms(memory.statement))
    return len(words & heard) / len(words) if words else 0.0
