"""What `roomlore doctor` finds, in the words of the reader's language."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from roomlore.core.health_words import PARTS, SAYINGS, Saying


@cache
def words(language: str) -> Mapping[str, str]:
    """Those of findings by their keys, and those of parts under `part.`."""
    if language == "en":
        return {**SAYINGS, **{f"part.{part}": part for part in PARTS}}
    text = files("roomlore.surfaces.console").joinpath("words", f"doctor.{language}.json").read_text(encoding="utf-8")
    found: Mapping[str, str] = json.loads(text)
    return found


def told(said: Saying | None, *, language: str) -> str:
    """'' for nothing."""
    return said.by(words(language)) if said else ""


def part(name: str, *, language: str) -> str:
    """Where a name follows, as in `provider near`, it stays."""
    kind, space, which = name.partition(" ")
    return words(language)[f"part.{kind}"] + space + which
