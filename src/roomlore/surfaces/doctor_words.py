"""The findings of `roomlore doctor` in the languages of the surfaces."""

from roomlore.core.health import Saying
from roomlore.core.texts import catalogue


def phrase(saying: Saying | None, *, language: str) -> str:
    """Return a saying as text, '' for None."""
    return saying.text(language) if saying else ""


def part(name: str, *, language: str) -> str:
    """Return the text of a part. A name at its end stays, as in `provider near`."""
    kind, space, which = name.partition(" ")
    return catalogue(language, "doctor").get(f"part.{kind}", kind) + space + which
