"""The form of a memory made by rules: who said it and when, in their words, with what the words leave open."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from roomlore.core.text import language, truncate

_LONGEST_SAID, _LONGEST_NAME, _LONGEST_NOTES = 240, 30, 90
_MAX_AGREED = 3
_SHAPE = re.compile(
    r"(?P<name>[^:：()（）]+?)(?: \((?P<on>\d{4}-\d\d-\d\d)\): |（(?P<zhon>\d{4}-\d\d-\d\d)）：)(?P<said>.*)",
    re.DOTALL,
)
_NOTES = re.compile(r"(?P<said>.*)(?: \[(?P<notes>[^\[\]]*)\]|【(?P<zhnotes>[^【】]*)】)", re.DOTALL)
_ABOUT = re.compile(r"(?:about|关于)(?: |：)(?P<about>[^;；]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementParts:
    """The parts of a statement. `said`: the words of the message. `about`: its subject, if the words only point at it.
    `agreed`: who agreed. `days`: words that name a day, with the day."""

    said: str
    name: str = ""
    on: date | None = None
    about: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()
    days: tuple[tuple[str, date], ...] = ()


def written(parts: StatementParts) -> str:
    """Return the statement."""
    zh = language(parts.said) == "zh"
    said = truncate(parts.said, _LONGEST_SAID)
    name = truncate(re.sub(r"[:：()（）\[\]【】;；]", " ", parts.name), _LONGEST_NAME).strip() or "?"
    notes = truncate(("；" if zh else "; ").join(_notes(parts, zh=zh)), _LONGEST_NOTES)
    if zh:
        return f"{name}（{parts.on}）：{said}" + (f"【{notes}】" if notes else "")
    return f"{name} ({parts.on}): {said}" + (f" [{notes}]" if notes else "")


def _notes(parts: StatementParts, *, zh: bool) -> Iterator[str]:
    if parts.about:
        about = re.sub(r"[\[\]【】;；]", " ", " ".join(parts.about))
        yield f"关于：{about}" if zh else f"about {about}"
    for words, day in parts.days[:2]:
        yield f"{words} = {day}"
    if parts.agreed:
        names = [re.sub(r"[\[\]【】;；]", " ", one) for one in parts.agreed[:_MAX_AGREED]]
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
        about=tuple(about["about"].split()) if about else (),
    )
