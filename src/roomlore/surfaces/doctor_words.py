"""The findings of `roomlore doctor` in the languages of the surfaces."""

from collections.abc import Mapping
from functools import cache

from roomlore.core.health import PARTS, SAYINGS, Saying
from roomlore.surfaces import texts


@cache
def words(language: str) -> Mapping[str, str]:
    """Return the texts of findings by their keys, and those of parts under `part.`."""
    if language == "en":
        return {**SAYINGS, **{f"part.{part}": part for part in PARTS}}
    return texts.words("doctor")


def phrase(saying: Saying | None, *, language: str) -> str:
    """Return a saying as text, '' for None."""
    return saying.by(words(language)) if saying else ""


def part(name: str, *, language: str) -> str:
    """Return the text of a part. A name at its end stays, as in `provider near`."""
    kind, space, which = name.partition(" ")
    return words(language).get(f"part.{kind}", kind) + space + which
