"""The console's own words, one catalogue a language, and which language a visitor reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Tongue:
    """A language with its words by key."""

    language: str
    words: Mapping[str, str]

    def say(self, key: str, **values: object) -> str:
        """The words of this key; raises `KeyError` where there are none."""
        return self.words[key].format(**values)


@cache
def tongue(language: str) -> Tongue:
    text = files("roomlore.surfaces.console").joinpath("words", f"{language}.json").read_text(encoding="utf-8")
    return Tongue(language, json.loads(text))


def preferred(header: str) -> str:
    """The language of an Accept-Language header that there is, the most wanted first; English where there is none."""
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
