"""The words of each language that rules look for, as data: a language is a file beside this module.

An entry has a name, `why` it stands there, and its forms, one a line: `words` are matched as whole words, `parts`
anywhere. A form is a fragment of a regular expression; `{name}` in it stands for the forms of another entry of the same
language. Instead of forms, `list` has plain words for look-up, and `values` says what each word stands for. `signs` has
what belongs to no language, such as emoji, or to all. A language that lacks an entry has no words for it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from roomlore.core.patterns import lazy_pattern

# It matches nothing.
_NOTHING = "(?!)"
# The name of an entry in braces; a count of repetitions in braces has figures.
_REFERENCE = lazy_pattern(r"\{([a-z_]+)\}")


@cache
def languages() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return the entries of each language by their names, the languages in alphabetical order."""
    names = sorted(file.name for file in files(__name__).iterdir() if file.name.endswith(".toml"))
    return {name.removesuffix(".toml"): tomllib.loads((files(__name__) / name).read_text("utf-8")) for name in names}


def pattern(name: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that finds an entry in a text of any language."""
    return lazy_pattern(alternatives(name), flags)


def alternatives(name: str, *chosen: str) -> str:
    """Return the regular expression of an entry, with the bounds of words: in some languages, or in all."""
    expressions = []
    for language in chosen or languages():
        if whole := _forms(language, name, "words"):
            expressions.append(rf"\b(?:{whole})\b")
        if parts := _forms(language, name, "parts"):
            expressions.append(parts)
    return f"(?:{'|'.join(expressions) or _NOTHING})"


def forms(name: str, language: str) -> str:
    """Return the regular expression of an entry in one language, without the bounds of words, as part of another."""
    return f"(?:{'|'.join(filter(None, (_forms(language, name, key) for key in ('words', 'parts')))) or _NOTHING})"


def words(name: str, *chosen: str) -> frozenset[str]:
    """Return the plain words of an entry, in some languages or in all."""
    lists = [_entry(language, name).get("list", "") for language in chosen or languages()]
    return frozenset(word for items in lists for word in (items.split() if isinstance(items, str) else items))


def values(name: str, language: str) -> Mapping[str, Any]:
    """Return what each word of an entry stands for."""
    table: Mapping[str, Any] = _entry(language, name)["values"]
    return table


def same_meaning() -> Sequence[Sequence[str]]:
    """Return sets of words of which one may stand for another, the languages together."""
    return [meaning.split() for meaning in re.split(r" / |\n", _entry("signs", "same_meaning")["values"].strip())]


def _entry(language: str, name: str) -> Mapping[str, Any]:
    return languages()[language].get(name, {})


def _forms(language: str, name: str, key: str) -> str:
    """Return forms of an entry as alternatives, with those of the entries that they name."""
    lines = _entry(language, name).get(key, "").splitlines()
    return _REFERENCE.sub(lambda named: forms(named[1], language), "|".join(lines))
