"""Handles: the short names under which a model sees memories and messages, and the only ones it can use."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import count
from typing import TypeVar

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.models import Memory, Source

T = TypeVar("T")
_FULL_WIDTH = {0xFF01 + at: 0x21 + at for at in range(94)}
_HANDLE = re.compile(r"[a-z][0-9]{1,6}")
_NAMED = re.compile(r"m[0-9]+")
_LONGEST = 60


def handles_of(memories: Iterable[Memory], *, shown: Iterable[str] = ()) -> dict[str, Memory]:
    """m1, m2, … in the order given. One that stands in a text of `shown`, which a model reads too, names nothing: what
    people write cannot address a memory, even where a model does as it says."""
    named = {name for text in shown for name in _NAMED.findall(unicodedata.normalize("NFKC", text).lower())}
    free = (name for name in (f"m{number}" for number in count(1)) if name not in named)
    return dict(zip(free, memories, strict=False))


def message_handles(messages: Iterable[Source]) -> dict[str, Source]:
    """c1, c2, … in the order given."""
    return {f"c{number}": message for number, message in enumerate(messages, start=1)}


def find(handle: str, offered: Mapping[str, T]) -> T:
    """What was offered under this handle, in any case and width. An id is never looked at, whatever it looks like.

    Raises `InvalidInput` with the reason why there is nothing.
    """
    name = handle.strip().translate(_FULL_WIDTH).lower() if len(handle) <= _LONGEST else ""
    if name in offered:
        return offered[name]
    if _HANDLE.fullmatch(name):
        raise InvalidInput(f"{name} was not offered; {_span(offered)}.")
    raise InvalidInput(f"{handle[:_LONGEST]!r:.60} is no handle, and ids are not looked up; {_span(offered)}.")


def found(handle: str, offered: Mapping[str, T]) -> T | None:
    """As `find`; None where there is nothing, and nobody asks why."""
    try:
        return find(handle, offered)
    except InvalidInput:
        return None


def _span(offered: Mapping[str, object]) -> str:
    names = list(offered)
    return f"use {names[0]} to {names[-1]}" if names else "nothing was offered"
