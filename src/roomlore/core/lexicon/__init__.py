"""The words of each language that rules look for, as data: a language is a file beside this module.

An entry has a name, `why` it stands there, and its forms, one a line: `words` are matched as whole words, `parts`
anywhere. A form is a fragment of a regular expression; `{name}` in it stands for the forms of another entry of the same
language. Instead of forms, `list` has plain words for look-up, and `values` says what each word stands for. `signs` has
what belongs to no language, such as emoji. A language that lacks an entry has no words for it.
"""

import re
import tomllib
from collections.abc import Mapping
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
    read = (one for one in files(__name__).iterdir() if one.name.endswith(".toml"))
    named = sorted((one.name.removesuffix(".toml"), one) for one in read)
    return {name: tomllib.loads(one.read_text("utf-8")) for name, one in named}


def pattern(name: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that finds an entry in a text of any language."""
    return lazy_pattern(alternatives(name), flags)


def alternatives(name: str, language: str = "") -> str:
    """Return the regular expression of an entry, with the bounds of words: in one language, or in all."""
    found = []
    for one in _chosen(language):
        if whole := _forms(one, name, "words"):
            found.append(rf"\b(?:{whole})\b")
        if parts := _forms(one, name, "parts"):
            found.append(parts)
    return f"(?:{'|'.join(found) or _NOTHING})"


def forms(name: str, language: str) -> str:
    """Return the regular expression of an entry in one language, without the bounds of words, as part of another."""
    return f"(?:{'|'.join(filter(None, (_forms(language, name, key) for key in ('words', 'parts')))) or _NOTHING})"


def words(name: str, language: str = "") -> frozenset[str]:
    """Return the plain words of an entry, in one language or in all."""
    found = [_entry(one, name).get("list", "") for one in _chosen(language)]
    return frozenset(word for one in found for word in (one.split() if isinstance(one, str) else one))


def values(name: str, language: str) -> Mapping[str, Any]:
    """Return what each word of an entry stands for."""
    return _entry(language, name)["values"]  # type: ignore[no-any-return]


def _chosen(language: str) -> tuple[str, ...]:
    return (language,) if language else tuple(languages())


def _entry(language: str, name: str) -> Mapping[str, Any]:
    return languages()[language].get(name, {})


def _forms(language: str, name: str, key: str) -> str:
    """Return forms of an entry as alternatives, with those of the entries that they name."""
    lines = _entry(language, name).get(key, "").splitlines()
    return _REFERENCE.sub(lambda named: forms(named[1], language), "|".join(lines))
