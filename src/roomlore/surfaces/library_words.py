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


def into_chinese(sentence: str) -> str:
    """Return the Chinese text of what the library says, or that as it is."""
    if len(sentence) > _LONGEST:
        return sentence
    for pattern, text in patterns():
        if match := pattern.fullmatch(sentence):
            return text.format_map({name: _part(name, value) for name, value in match.groupdict().items()})
    return _by_sentence(sentence)


def _by_sentence(text: str) -> str:
    """Return the Chinese text of several sentences, or them as they are unless each has one."""
    sentences = _BETWEEN.split(text)
    translated_sentences = list(map(into_chinese, sentences)) if len(sentences) > 1 else []
    return (
        text
        if not translated_sentences or any(map(eq, translated_sentences, sentences))
        else "".join(translated_sentences)
    )


def _part(name: str, value: str) -> str:
    """Return the text of a place. The name of a field may also be a word of the library, and stays."""
    return value if name == "field" else into_chinese(value)


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
    return tuple((re.compile(_PLACE.sub(_group, re.escape(english)), re.DOTALL), text) for english, text in ordered)


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
