"""Texts of the library in the language of the reader, and which language a request prefers.

Errors are phrases: a code with fields. What the library says as plain text, such as the reason of a message or the
error of a stored job, is found by patterns: the English texts of the catalogues, and of `words/told.zh.json`.
"""

import json
import re
from functools import cache
from importlib.resources import files
from operator import eq

from roomlore.core.errors import RoomloreError
from roomlore.core.texts import LANGUAGES, Phrase, catalogue

_LONGEST = 2_000
"""Characters; a longer plain text is not translated: with several places, the patterns take longer than linear time."""
_SHORTEST = 10
"""Characters; a text with fewer of its own would be found in any other."""
_OF_ANY_TEXT = frozenset({"error", "why", "known", "place", "first", "second", "places", "advice"})
_FORMS = {
    "field": r"\S+",
    "bound": r"\S+",
    "number": r"\S+",
    "provider": r"\S+",
    "status": r"\S+",
    "choices": r"'[^';]*'(?:(?:, | or )'[^';]*')*",
    "listed": r"(?:[^.;]|\.(?! ))+",
}
"""What stands at places of these names: one word, values in quotation marks, a list of names within one sentence."""
_BETWEEN = re.compile(r"(?<=[.?]) (?=\S)")
_PLACES = re.compile(r"\{\w+\}")
_PLACE = re.compile(r"\\\{(\w+)\\\}")


def text_of(text: str | RoomloreError, language: str) -> str:
    """Return the text of an error, or what else the library says, in this language; as it is where that has none."""
    text = str(text)
    if language == "en":
        return text
    if not isinstance(text, Phrase):
        return _recognised(text)
    parts = {name: text_of(part, language) if _is_text(part) else part for name, part in text.fields.items()}
    return catalogue(language)[text.code].format_map(parts)


def _is_text(part: object) -> bool:
    """Return True for a phrase, and for a plain text of several words. One word may be a name, and stays."""
    return isinstance(part, Phrase) or (isinstance(part, str) and " " in part)


def _recognised(text: str) -> str:
    """Return the Chinese of a plain text, or that as it is."""
    if len(text) > _LONGEST:
        return text
    for beginning, english, form in _known():
        if text.startswith(beginning) and (match := _pattern(english).fullmatch(text)):
            return form.format_map({name: _part(name, part) for name, part in match.groupdict().items()})
    return _by_sentence(text)


def _by_sentence(text: str) -> str:
    """Return the Chinese text of several sentences, or them as they are unless each has one."""
    english = _BETWEEN.split(text)
    chinese = list(map(_recognised, english)) if len(english) > 1 else []
    return text if not chinese or any(map(eq, chinese, english)) else "".join(chinese)


def _part(name: str, text: str) -> str:
    """Return the text of a place. The name of a field may also be a word of the library, and stays."""
    return text if name == "field" else _recognised(text)


@cache
def words(name: str, package: str = "roomlore.surfaces") -> dict[str, str]:
    """Return a catalogue of a package: the Chinese texts by the English ones, or by their keys."""
    return dict(json.loads((files(package) / "words" / f"{name}.zh.json").read_text(encoding="utf-8")))


@cache
def _known() -> tuple[tuple[str, str, str], ...]:
    """Return how each text of the library begins, the text, and its Chinese: first what is put around other errors,
    then the texts with the most words of their own."""

    def place(pair: tuple[str, str]) -> tuple[bool, int]:
        return not pair[0].startswith("{error}"), -len(_PLACES.sub("", pair[0]))

    english, chinese = catalogue("en"), catalogue("zh")
    errors = {text: chinese[code] for code, text in english.items() if len(_PLACES.sub("", text)) > _SHORTEST}
    ordered = sorted({**errors, **words("told")}.items(), key=place)
    return tuple((text.partition("{")[0], text, form) for text, form in ordered)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    pattern = _PLACE.sub(_group, re.escape(text))
    return re.compile(pattern.replace(r"\{\{", r"\{").replace(r"\}\}", r"\}"), re.DOTALL)


def _group(place: re.Match[str]) -> str:
    """Return the pattern of a place. A name or a number holds no semicolon, which begins another part of a sentence."""
    name = place[1]
    return f"(?P<{name}>{'.+' if name in _OF_ANY_TEXT else _FORMS.get(name, '[^;]+')})"


def preferred(header: str) -> str:
    """Return the available language that an Accept-Language header prefers; English if there is none."""
    wanted = []
    for place, part in enumerate(header[:1_000].split(",")):
        name, _, rest = part.strip().partition(";")
        wanted.append((-_weight(rest), place, name.partition("-")[0].strip().lower()))
    return next((name for weight, _, name in sorted(wanted) if weight < 0 and name in LANGUAGES), LANGUAGES[0])


def _weight(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
