"""Texts for people: a code with fields, and the text of each code in a catalogue per language.

The catalogues are those of gettext, `errors.po` and `doctor.po` in `locale/<language>/LC_MESSAGES`, with the codes as
msgid. Each is read once, when its first text is made.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from importlib.resources import files
from typing import Any, Self

LANGUAGES = ("en", "zh")
_ENTRY = re.compile(r'^msgid ((?:".*"\n)+)msgstr ((?:".*"(?:\n|$))+)', re.MULTILINE)
"""A code and its text, each of one line or more. What is obsolete begins with `#~`, and is no entry."""


class Phrase(str):
    """The English text of a code, which keeps the code and its fields so that it can be said in another language. A
    field may be a phrase itself, or an error, whose text is taken."""

    code: str
    fields: Mapping[str, Any]

    def __new__(cls, code: str, /, **fields: object) -> Self:
        """Raise `KeyError` if no catalogue has the code, or a field is missing."""
        plain = {name: str(value) if isinstance(value, BaseException) else value for name, value in fields.items()}
        phrase = super().__new__(cls, catalogue("en")[code].format_map(plain))
        phrase.code, phrase.fields = code, plain
        return phrase

    def __str__(self) -> str:
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], Mapping[str, Any]]:
        return (self.code,), self.fields


def sentences(first: str, *others: str) -> str:
    """Return texts one after the other; '' is left out."""
    whole = first
    for text in filter(None, others):
        whole = Phrase("sentences", first=whole, second=text) if whole else text
    return whole


def also(errors: Sequence[str]) -> str:
    """Return the texts of several errors as one."""
    return reduce(lambda error, why: Phrase("also", error=error, why=why), errors)


@cache
def catalogue(language: str, name: str = "errors") -> Mapping[str, str]:
    """Return the texts of a language by code. `name`: of the file."""
    place = files("roomlore").joinpath("locale", language, "LC_MESSAGES", f"{name}.po")
    entries = _ENTRY.findall(place.read_text(encoding="utf-8"))
    return {code: _unquoted(text) for quoted, text in entries if (code := _unquoted(quoted))}


def _unquoted(lines: str) -> str:
    return "".join(map(json.loads, lines.splitlines()))
