"""The words of each language that rules look for, as data: a language is a file beside this module.

An entry has a name, `why` it stands there, and its forms, one a line: `words` are matched as whole words, `parts`
anywhere; what `unless` matches is passed over, such as a denial. A form is a fragment of a regular expression; `{name}`
in it stands for the forms of another entry, of the same language or of `signs`. Instead of forms, `list` has plain
words for look-up, and `values` says what each word stands for. `signs` has what belongs to no language, such as emoji,
or to all. A language that lacks an entry has no words for it.

A language that `spoken` or `script` of `signs` names is read only in texts that have its words or its letters. Its file
is loaded at the first of them, and accents in its forms are optional.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, cast

from roomlore.core.folding import unaccented
from roomlore.core.patterns import LazyPattern, lazy_pattern

# It matches nothing.
_NOTHING = "(?!)"
# The name of an entry in braces; a count of repetitions in braces has figures.
_REFERENCE = lazy_pattern(r"\{([a-z_]+)\}")
# A class of characters, which an accent inside does not end, or a letter beyond ASCII.
_ACCENTED = lazy_pattern(r"\[[^\]]*\]|[^\W\d_a-zA-Z]")
# A run of letters.
_WORD = lazy_pattern(r"[^\W\d_]+")
_SIGNS = "signs"
_READ, _SHORT = 400, 40
"""The characters at the beginning of a text that tell its languages, and those of a short text."""


@cache
def languages() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return the entries of each language by their names, the languages in alphabetical order."""
    return {name: _entries(name) for name in _names()}


def pattern(name: str, flags: int = 0, *, only: str = "", without: str = "") -> re.Pattern[str]:
    """Return a pattern that finds an entry in a text, in one language only or in those of the text without one. It has
    the methods `search`, `match`, `findall` and `finditer`; others, such as `sub`, find what is always read only."""
    return cast("re.Pattern[str]", _Entry(name, flags, only, without))


def alternatives(name: str, *chosen: str) -> str:
    """Return the regular expression of an entry, with the bounds of words: in some languages, or in those that are
    always read."""
    expressions = []
    for language in chosen or always():
        if whole := _forms(language, name, "words"):
            expressions.append(rf"\b(?:{whole})\b")
        if parts := _forms(language, name, "parts"):
            expressions.append(parts)
    return f"(?:{'|'.join(expressions) or _NOTHING})"


def forms(name: str, language: str) -> str:
    """Return the regular expression of an entry in one language, without the bounds of words, as part of another."""
    return f"(?:{'|'.join(filter(None, (_forms(language, name, key) for key in ('words', 'parts')))) or _NOTHING})"


def words(name: str, *chosen: str) -> frozenset[str]:
    """Return the plain words of an entry, in some languages or in those that are always read."""
    return frozenset(_split(_entry(language, name).get("list", "") for language in chosen or always()))


def values(name: str, language: str) -> Mapping[str, Any]:
    """Return what each word of an entry stands for."""
    table: Mapping[str, Any] = _entry(language, name)["values"]
    return table


def same_meaning() -> Sequence[Sequence[str]]:
    """Return sets of words of which one may stand for another, the languages together."""
    return [meaning.split() for meaning in re.split(r" / |\n", _entry(_SIGNS, "same_meaning")["values"].strip())]


@cache
def always() -> tuple[str, ...]:
    """Return the languages that are read in every text."""
    return tuple(name for name in _names() if name not in _vocabulary() and name not in _scripts())


@lru_cache(maxsize=1 << 6)
def spoken(text: str) -> tuple[str, ...]:
    """Return the languages that a text is read in: those that are always read, and those that it has most words or
    letters of, unless English has more; English is left out if it has fewer."""
    beginning = text[:_READ].lower()
    telling, shared, english_only = _telling()
    # Parting at spaces takes a third of the time; marks beside a word matter in a short text only.
    told = set(beginning.split() if len(beginning) > _SHORT else _WORD.findall(beginning))
    if not beginning.isascii():
        told.update(_accents().intersection(beginning))
    if not telling.isdisjoint(told) or (not shared.isdisjoint(told) and english_only.isdisjoint(told)):
        told.update(_WORD.findall(beginning))
        counts = {language: len(told & vocabulary) for language, vocabulary in _vocabulary().items()}
        most, english = max(counts.values()), len(told & _english())
        if most >= english:
            chosen = [language for language, count in counts.items() if count == most]
            return (*chosen, *((_SIGNS,) if most > max(1, english) else always()))
    if not beginning.isascii() and (chosen := [name for name, sign in _scripts().items() if sign.search(beginning)]):
        # Chinese words mean other things in Japanese.
        left_out = "zh" if "ja" in chosen and _japanese().search(beginning) else ""
        return (*chosen, *(name for name in always() if name != left_out))
    return always()


class _Entry(LazyPattern):
    """An entry as a pattern, compiled for each language at the first text that is in it."""

    def __init__(self, name: str, flags: int, only: str, without: str) -> None:
        read = (only,) if only else tuple(language for language in always() if language != without)
        super().__init__(alternatives(name, *read), flags)
        self._name, self._only = name, only
        self._always = lazy_pattern(alternatives(name, *read), flags)
        self._hints = () if only else tuple(words(f"{name}_hint", *read))
        self._further: dict[tuple[str, ...], Sequence[_Passing]] = {}

    def search(self, text: str, *span: int) -> re.Match[str] | None:
        """Return the first match."""
        if further := self._patterns(text):
            return next((match for each in further for match in each.finditer(text, *span)), None)
        if not self._hints:
            return self._always.search(text, *span)
        # Looking for a part of all forms is many times as fast as the pattern, and a loop twice as fast as `any`.
        for hint in self._hints:
            if hint in text:
                return self._always.search(text, *span)
        return None

    def match(self, text: str, *span: int) -> re.Match[str] | None:
        """Return the match at the beginning."""
        if further := self._patterns(text):
            at = span[0] if span else 0
            return next(
                (match for each in further for match in each.finditer(text, *span) if match.start() == at), None
            )
        return self._always.match(text, *span)

    def finditer(self, text: str, *span: int) -> Iterator[re.Match[str]]:
        """Return all matches."""
        if further := self._patterns(text):
            return (match for each in further for match in each.finditer(text, *span))
        return self._always.finditer(text, *span)

    def findall(self, text: str, *span: int) -> list[Any]:
        """Return the text of all matches, or what their groups hold."""
        if further := self._patterns(text):
            return [match[0] for each in further for match in each.finditer(text, *span)]
        return self._always.findall(text, *span)

    def _patterns(self, text: str) -> "Sequence[_Passing]":
        """Return the patterns for a text that is in further languages; none for one that is always read."""
        read = (self._only,) if self._only else spoken(text)
        if read is always():
            return ()
        if read not in self._further:
            self._further[read] = tuple(self._of(read))
        return self._further[read]

    def _of(self, read: Sequence[str]) -> "Iterator[_Passing]":
        """Yield the patterns for some languages; none if the further ones of them lack the entry."""
        if self._only or any(_entry(language, self._name) for language in read if language not in always()):
            for language in read:
                if _entry(language, self._name):
                    yield _passing(self._name, language, tuple(set(read) - {language}), self._flags)


class _Passing:
    """An entry in one language, without what it passes over there, or in others of the same text."""

    def __init__(self, name: str, language: str, others: Sequence[str], flags: int) -> None:
        passed = "|".join(filter(None, (_forms(read, name, "unless") for read in (language, *others)))) or _NOTHING
        self._pattern = re.compile(f"(?:{passed})|(?P<hit>{alternatives(name, language)})", flags)

    def finditer(self, text: str, *span: int) -> Iterator[re.Match[str]]:
        """Yield the matches that are not passed over."""
        return (match for match in self._pattern.finditer(text, *span) if match["hit"] is not None)


_passing = cache(_Passing)


@cache
def _names() -> Sequence[str]:
    names = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


@cache
def _entries(language: str) -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((files(__name__) / f"{language}.toml").read_text("utf-8"))


def _entry(language: str, name: str) -> Mapping[str, Any]:
    return _entries(language).get(name, {})


@cache
def _scripts() -> Mapping[str, re.Pattern[str]]:
    """Return the letters by which a language is known."""
    scripts = values("script", _SIGNS)
    return {language: re.compile(letters) for language, letters in scripts.items() if language in _names()}


@cache
def _japanese() -> re.Pattern[str]:
    """Return the pattern of a text that is in Japanese alone."""
    return re.compile(alternatives("japanese", _SIGNS), re.DOTALL)


@cache
def _vocabulary() -> Mapping[str, frozenset[str]]:
    """Return the words by which each language is known, with and without their accents."""
    lists = [(name, _split((held,))) for name, held in values("spoken", _SIGNS).items() if name in _names()]
    return {
        language: frozenset((*held, *(unaccented(word) for word in held if len(word) > 1))) for language, held in lists
    }


@cache
def _telling() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the words of other languages that no English text has, those that some have, and those of English only."""
    vocabulary = frozenset[str]().union(*_vocabulary().values())
    held = vocabulary - _english()
    shared = held & frozenset(_split((_entry(_SIGNS, "also_english")["list"],)))
    return held - shared, shared, _english() - vocabulary


@cache
def _accents() -> frozenset[str]:
    return frozenset(
        letter for letter in frozenset().union(*_vocabulary().values()) if letter > "\x7f" and len(letter) < 2
    )


@cache
def _english() -> frozenset[str]:
    return frozenset(word for word in words("stop_word", "en") if len(word) > 1 or word in "ai")


def _split(lists: Iterable[str | Sequence[str]]) -> list[str]:
    return [word for items in lists for word in (items.split() if isinstance(items, str) else items)]


def _forms(language: str, name: str, key: str) -> str:
    """Return forms of an entry as alternatives, with those of the entries that they name."""
    joined = "|".join(_entry(language, name).get(key, "").splitlines())
    if language in _vocabulary():
        joined = _ACCENTED.sub(_either, joined)
    return _REFERENCE.sub(lambda ref: forms(ref[1], language if _entry(language, ref[1]) else _SIGNS), joined)


def _either(written: re.Match[str]) -> str:
    """Return a letter with or without its accent, also as ae, oe or ue; a class of characters with both."""
    letters = written[0]
    if letters[0] == "[":
        at = 2 if letters[1] == "^" else 1
        return (
            letters[:at]
            + "".join(unaccented(each) for each in letters if each > "\x7f" and each.isalpha())
            + letters[at:]
        )
    plain = unaccented(letters)
    return f"(?:{letters}|{plain}e?)" if letters in "äöü" else f"(?:{letters}|{plain})"
