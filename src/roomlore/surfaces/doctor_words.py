"""The findings of `roomlore doctor` in the languages of the surfaces."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from roomlore.core.health import PARTS, SAYINGS, Saying


@cache
def words(language: str) -> Mapping[str, str]:
    """Return the texts of findings by their keys, and those of parts under `part.`."""
    if language == "en":
        return {**SAYINGS, **{f"part.{part}": part for part in PARTS}}
    text = files("roomlore.surfaces").joinpath("words", f"doctor.{language}.json").read_text(encoding="utf-8")
    found: Mapping[str, str] = json.loads(text)
    return found


def told(said: Saying | None, *, language: str) -> str:
    """Return a saying as text, '' for None."""
    return said.by(words(language)) if said else ""


def part(name: str, *, language: str) -> str:
    """Return the text of a part. A name at its end stays, as in `provider near`."""
    kind, space, which = name.partition(" ")
    return words(language).get(f"part.{kind}", kind) + space + which
