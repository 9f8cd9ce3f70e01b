"""The words of WhatsApp and of phones in many languages, as `whatsapp.toml` has them."""

import tomllib
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any

MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
"""Characters that say in which direction a text runs."""
_ENDS = " .。।۔\u200e\u200f\u202a\u202c"
_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'))


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "whatsapp.toml").read_text("utf-8"))


def stamp_words() -> dict[str, Any]:
    """Return what stands in dates and times."""
    table: dict[str, Any] = _table()["stamps"]
    return table


def letters(text: str) -> str:
    """Return the letters and digits of a text in lower case, with the marks that belong to them."""
    folded = _folded(text)
    return "".join(sign for sign in folded if sign.isalnum() or unicodedata.category(sign)[0] == "M")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


@cache
def sentences(name: str) -> frozenset[str]:
    """Return the sentences of the app of this name, in lower case and without their full stops."""
    return frozenset(map(_folded, _table()["sentences"][name]))


def says(text: str, name: str) -> bool:
    """Return True if the text is one of the app's sentences of this name."""
    return _folded(text.strip(_ENDS)) in sentences(name)


@cache
def _kinds_left_out() -> dict[str, str]:
    table = _table()["left_out"]
    return {_folded(label): "file" if kind == "media" else kind for kind, labels in table.items() for label in labels}


def kind_left_out(label: str) -> str | None:
    """Return what was left out, by the label that the app writes in its place; None if the text is no known label."""
    return _kinds_left_out().get(_folded(label.strip(f"<>{_ENDS}")))


def tells_creation(notice: str) -> bool:
    """Return True if a notice says that the group was created. What it quotes, such as the name of the group, is not
    read."""
    spoken = _folded(" ".join(notice.translate(_QUOTES).split('"')[::2]))
    return any(all(word in spoken for word in words.split()) for words in sentences("created"))
