"""Answers that a model has room for. Bytes of UTF-8 are what tokens follow, in English and in Chinese alike."""

import re
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from roomlore.core.text import graphemes, truncate

T = TypeVar("T", bound=BaseModel)

ANSWER_BYTES = 16_000
_HALVES = re.compile(r"[\ud800-\udfff]")


def sendable(text: str) -> str:
    """With a sign in the place of halves of characters, which no JSON can hold."""
    return _HALVES.sub("\ufffd", text)


def shortened(text: str, most_bytes: int) -> tuple[str, bool]:
    """The beginning that fits, with an ellipsis where it was cut, never inside a character; and whether it was."""
    whole = sendable(text)
    encoded = whole.encode()
    if len(encoded) <= most_bytes:
        return whole, False
    beginning = encoded[:most_bytes].decode(errors="ignore")
    return f"{truncate(beginning, graphemes(beginning) - 1)}…", True


def fitting(items: Sequence[T], most_bytes: int = ANSWER_BYTES) -> list[T]:
    """The first ones that fit together, one at least."""
    kept: list[T] = []
    for item in items:
        most_bytes -= len(item.model_dump_json(exclude_none=True).encode())
        if kept and most_bytes < 0:
            break
        kept.append(item)
    return kept
