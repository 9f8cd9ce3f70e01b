"""Python values in the form that both engines can store: escaped text, JSON, microseconds; rows to values and back.

PostgreSQL cannot store NUL, and neither engine a lone surrogate. Such a character is written as U+001A (SUBSTITUTE) and
a code, and U+001A itself is doubled, so every text is restored unchanged. Statements do that with all texts.
"""

import json
import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import HASH_DIGITS

DAMAGE = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""The errors that reading a damaged row may raise."""
MARK = "\x1a"
_UNHOLDABLE = re.compile("[\x00\x1a\ud800-\udfff]")
_SPELLING = re.compile("\x1a(\x1a|0|u[0-9a-f]{4})")
_WILD = re.compile("[!%_]")
_HASH_CHARACTERS = -(-HASH_DIGITS * 4 // 6)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_QUOTED = encode_basestring


def escape(text: str) -> str:
    """Return the text without NUL, lone surrogates or single U+001A. Raise `InvalidInput` if it is no text."""
    if not isinstance(text, str):
        raise InvalidInput("string_needed", value=f"{text!r:.60}")
    return _UNHOLDABLE.sub(_spell, text)


def _spell(match: re.Match[str]) -> str:
    character = match.group()
    if character == MARK:
        return MARK + MARK
    return f"{MARK}0" if character == "\x00" else f"{MARK}u{ord(character):04x}"


def unescape(text: str) -> str:
    """Return the text that `escape` was given."""
    return _SPELLING.sub(_read, text) if MARK in text else text


def _read(match: re.Match[str]) -> str:
    spelling = match.group(1)
    if spelling == MARK:
        return MARK
    return "\x00" if spelling == "0" else chr(int(spelling[1:], 16))


def literal(text: str) -> str:
    """Return the pattern of LIKE, with `!` as its escape, that only this text fits."""
    return _WILD.sub(r"!\g<0>", text)


def containing(part: str) -> str:
    """Return the pattern of LIKE, with `!` as its escape, of the texts that contain a part."""
    return f"%{literal(part)}%"


def list_text(items: Sequence[str | None]) -> str:
    """Return a list of strings as JSON; None is null. Encoding a list is several times as slow as encoding strings."""
    return f"[{','.join(['null' if item is None else _QUOTED(item) for item in items])}]" if items else "[]"


@lru_cache(maxsize=1 << 14)
def read_list(text: str) -> tuple[str, ...]:
    """Return the list that `list_text` wrote. Most lists are plain words, and splitting those is four times as fast as
    parsing."""
    if text == "[]":
        return ()
    if "\\" in text or "null" in text:
        return tuple(json.loads(text))
    return tuple(text[2:-2].split('","'))


def read_texts(text: str | None) -> list[str]:
    """Return the texts that a statement gathered as one JSON list; None is none."""
    return [unescape(text_read) for text_read in json.loads(text)] if text and text != "[]" else []


def pairs_text(pairs: Sequence[tuple[Any, ...]]) -> str:
    """Return a list of pairs of strings as JSON."""
    return _ENCODE(pairs) if pairs else "[]"


def read_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs that `pairs_text` wrote."""
    return () if text == "[]" else tuple((first, second) for first, second in json.loads(text))


def mapping_text(mapping: Mapping[str, Any]) -> str:
    """Return a JSON object. Raises TypeError or ValueError for values that JSON does not have."""
    return _ENCODE(dict(mapping)) if mapping else "{}"


def read_mapping(text: str) -> dict[str, Any]:
    return {} if text == "{}" else json.loads(text)


def names_text(ids: Sequence[str]) -> str:
    """Return ids for `among`: a JSON list whose members are escaped as the columns are."""
    return f"[{','.join([_QUOTED(escape(name)) for name in ids])}]"


def numbers_text(numbers: Sequence[int]) -> str:
    """Return numbers for `among`."""
    return f"[{','.join(map(str, map(int, numbers)))}]"


def read_numbers(text: str) -> list[int]:
    """Return the list that `numbers_text` wrote. Raises ValueError for anything else."""
    numbers = json.loads(text)
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise ValueError(f"This is no list of numbers: {text!r:.60}")
    return numbers


def hash_text(digits: str) -> str:
    """Return a content hash, which has hex digits, as stored: in base 64."""
    return b2a_base64(bytes.fromhex(digits), newline=False)[:_HASH_CHARACTERS].decode()


def read_hash(text: str) -> str:
    """Return the content hash from its column. Earlier versions stored its digits, or those of the whole SHA-256."""
    return a2b_base64(text + "==").hex() if len(text) == _HASH_CHARACTERS else text[:HASH_DIGITS]


def to_micros(at: datetime) -> int:
    """Return microseconds since 1970 for an aware time."""
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def to_micros_or_none(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


@lru_cache(maxsize=1 << 12)
def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def from_micros_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
