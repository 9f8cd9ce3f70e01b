"""The statement of a memory that is made without a model: who said it and when, in their words, with notes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import language, truncate
from roomlore.core.values import GONE

_LONGEST, _LONGEST_SAID, _LONGEST_NAME, _LONGEST_ABOUT = 390, 240, 30, 110
_MAX_AGREED = 3
# A statement as it is written here: name, day and text, in both languages.
_SHAPE = lazy_pattern(
    r"(?P<name>[^:：()（）]+?)(?: \((?P<on>\d{4}-\d\d-\d\d)\): |（(?P<zhon>\d{4}-\d\d-\d\d)）：)(?P<said>.*)",
    re.DOTALL,
)
# The notes in brackets at the end of a statement.
_NOTES = lazy_pattern(r"(?P<said>.*)(?: \[(?P<notes>[^\[\]]*)\]|【(?P<zhnotes>[^【】]*)】)", re.DOTALL)
# What ends a note.
_UNNOTED = lazy_pattern(r"[\[\]【】;；]")
# The subject among the notes.
_ABOUT = lazy_pattern(r"(?:about|关于)(?: |：)(?P<about>[^;；]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementParts:
    """The parts of a statement. `said`: the words of the message. `about`: what it goes on from, if it cannot be read
    alone, or what is left of what it changed. `agreed`: who agreed. `days`: words that name a day, with the day."""

    said: str
    name: str = ""
    on: date | None = None
    about: str = ""
    agreed: tuple[str, ...] = ()
    days: tuple[tuple[str, date], ...] = ()


def written(parts: StatementParts) -> str:
    """Return the statement."""
    zh = language(parts.said) == "zh"
    statement = truncate(parts.said, _LONGEST_SAID)
    name = truncate(re.sub(r"[:：()（）\[\]【】;；]", " ", parts.name), _LONGEST_NAME).strip() or "?"
    told = f"{name}（{parts.on}）：{statement}" if zh else f"{name} ({parts.on}): {statement}"
    notes = truncate(("；" if zh else "; ").join(_notes(parts, zh=zh)), _LONGEST - len(told))
    if not notes:
        return told
    return f"{told}【{notes}】" if zh else f"{told} [{notes}]"


def _notes(parts: StatementParts, *, zh: bool) -> Iterator[str]:
    if parts.about:
        about = truncate(_UNNOTED.sub(" ", parts.about.replace(GONE, "…")), _LONGEST_ABOUT).strip()
        yield f"关于：{about}" if zh else f"about {about}"
    for words, day in parts.days[:2]:
        yield f"{words} = {day}"
    if parts.agreed:
        names = [re.sub(r"[\[\]【】;；]", " ", name) for name in parts.agreed[:_MAX_AGREED]]
        yield f"同意：{'、'.join(names)}" if zh else f"agreed: {', '.join(names)}"


def parse_statement(statement: str) -> StatementParts:
    """Return the parts of a statement of `written`; of any other the whole as what was said."""
    shape = _SHAPE.fullmatch(statement)
    if not shape:
        return StatementParts(said=statement)
    noted = _NOTES.fullmatch(shape["said"])
    about = _ABOUT.search(noted["notes"] or noted["zhnotes"] or "") if noted else None
    return StatementParts(
        said=(noted["said"] if noted else shape["said"]),
        name=shape["name"],
        on=date.fromisoformat(shape["on"] or shape["zhon"]),
        about=about["about"].strip() if about else "",
    )
