"""Translate what the library says in English, such as an error or the reason of a message, and read which language a
request prefers.

The English texts are the keys of the catalogues `told` and `errors` in `words`, as patterns with fields. The command
line imports this module at its start, so it imports nothing heavy.
"""

import json
import re
from functools import cache
from importlib.resources import files
from operator import eq

LANGUAGES = ("en", "zh")
_LONGEST = 2_000
"""Characters; a longer text is not translated: with several places, the patterns take longer than linear time."""
_OF_ANY_TEXT = frozenset({"error", "why", "known", "place"})
_FORMS = {
    "field": r"\S+",
    "bound": r"\S+",
    "number": r"\S+",
    "choices": r"'[^';]*'(?:(?:, | or )'[^';]*')*",
    "listed": r"(?:[^.;]|\.(?! ))+",
}
"""What stands at places of these names: one word, values in quotation marks, a list of names within one sentence."""
_BETWEEN = re.compile(r"(?<=[.?]) (?=\S)")
_PLACE = re.compile(r"\\\{(\w+)\\\}")


def into_chinese(said: str) -> str:
    """Return the Chinese text of what the library says, or that as it is."""
    if len(said) > _LONGEST:
        return said
    for pattern, text in patterns():
        if found := pattern.fullmatch(said):
            return text.format_map({name: _part(name, value) for name, value in found.groupdict().items()})
    return _by_sentence(said)


def _by_sentence(said: str) -> str:
    """Return the Chinese text of several sentences, or them as they are unless each has one."""
    sentences = _BETWEEN.split(said)
    told = list(map(into_chinese, sentences)) if len(sentences) > 1 else []
    return said if not told or any(map(eq, told, sentences)) else "".join(told)


def _part(name: str, said: str) -> str:
    """Return the text of a place. The name of a field may also be a word of the library, and stays."""
    return said if name == "field" else into_chinese(said)


@cache
def words(name: str, package: str = "roomlore.surfaces") -> dict[str, str]:
    """Return a catalogue of a package: the Chinese texts by the English ones, or by their keys."""
    return dict(json.loads((files(package) / "words" / f"{name}.zh.json").read_text(encoding="utf-8")))


@cache
def patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns of what the library says with their texts: first what is put around other errors, then those
    with the most words of their own."""

    def place(pair: tuple[str, str]) -> tuple[bool, int]:
        return not pair[0].startswith("{error}"), -len(re.sub(r"\{\w+\}", "", pair[0]))

    ordered = sorted({**words("told"), **words("errors")}.items(), key=place)
    return tuple((re.compile(_PLACE.sub(_group, re.escape(said)), re.DOTALL), text) for said, text in ordered)


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
