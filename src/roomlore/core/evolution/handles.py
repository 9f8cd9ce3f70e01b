"""Handles: the short names under which a model sees memories and messages, and the only ones it can use."""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.models import Memory, Source

T = TypeVar("T")
_FULL_WIDTH = {0xFF01 + at: 0x21 + at for at in range(94)}
_HANDLE = re.compile(r"[a-z][0-9]{1,6}")
_LONGEST = 60


def handles_of(memories: Iterable[Memory]) -> dict[str, Memory]:
    """m1, m2, … in the order given."""
    return _numbered("m", memories)


def message_handles(messages: Iterable[Source]) -> dict[str, Source]:
    """c1, c2, … in the order given."""
    return _numbered("c", messages)


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


def _span(offered: Mapping[str, object]) -> str:
    names = list(offered)
    return f"use {names[0]} to {names[-1]}" if names else "nothing was offered"


def _numbered(letter: str, things: Iterable[T]) -> dict[str, T]:
    return {f"{letter}{number}": thing for number, thing in enumerate(things, start=1)}
