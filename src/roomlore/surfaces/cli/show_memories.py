"""Memories and their history for people to read, as git shows commits."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from roomlore.core.memory.models import Action, Change, Evolution, MemoryStatus
from roomlore.core.memory.words_diff import words_diff
from roomlore.surfaces.cli import show

SHORT = 8
_WHOLE = 12
_LONGEST = 4_000
_STYLES = {"+": "green", "-": "red", "~": "yellow", "=": "dim", " ": ""}
_MARKS = {"same": ("", "", ""), "gone": ("[-", "-]", "red"), "new": ("{+", "+}", "green")}


def short(known: str) -> str:
    """The end of a long id, by which a command finds it again: ids that were made one after the other begin alike."""
    return show.inert(known if len(known) <= _WHOLE else known[-SHORT:])


def clock(moment: datetime, zone: ZoneInfo) -> str:
    try:
        return show.clock(moment.astimezone(zone))
    except OverflowError:
        return show.clock(moment)


def statement(said: str, style: str = "") -> Text:
    return Text(show.inert(said, _LONGEST), style)


def difference(old: str, new: str) -> Text:
    """The new statement with what is gone as [-...-] and what is new as {+...+}, in colour where there is colour."""
    text = Text()
    for piece in words_diff(show.inert(old, _LONGEST), show.inert(new, _LONGEST)):
        begun, ended, style = _MARKS[piece.became]
        text.append(f"{begun}{piece.text}{ended}", style)
    return text


def lines(found: Iterable[tuple[str, str, Text, str]], out: Console) -> None:
    """Of each line its sign, the short id, what is said, and why below it."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for sign, known, said, why in found:
        whole = Text.assemble(said, ("\n" + show.inert(why), "dim")) if why else said
        grid.add_row(Text(sign, _STYLES[sign]), Text(known, "yellow"), whole)
    if grid.row_count:
        out.print(indented(grid))


def indented(what: RenderableType, by: int = 2) -> Padding:
    return Padding(what, (0, 0, 0, by), expand=False)


def changes(found: Iterable[Change], out: Console) -> None:
    """Changes as lines: what is new (+), gone (-), said otherwise (~), and in one line what was confirmed (=)."""
    entries = list(found)
    lines((_line(one) for one in entries if not _is_confirmed(one)), out)
    confirmed = [short(one.memory.memory_id) for one in entries if _is_confirmed(one)]
    if confirmed:
        count = f"{len(confirmed)} {'memory' if len(confirmed) == 1 else 'memories'} confirmed: "
        out.print(indented(Text.assemble(("= ", "dim"), count, (", ".join(confirmed), "yellow"))))


def _is_confirmed(one: Change) -> bool:
    return one.action is Action.STRENGTH and one.evolution_id is not None


def _line(one: Change) -> tuple[str, str, Text, str]:
    sign = _sign(one)
    return sign, short(one.memory.memory_id), _said(one, sign), one.reason


def _sign(one: Change) -> str:
    if one.action in (Action.STRENGTH, Action.REDACT) or (one.closes and one.memory.status is MemoryStatus.ACTIVE):
        return "~"
    return "+" if one.memory.status is MemoryStatus.ACTIVE else "-"


def _said(one: Change, sign: str) -> Text:
    said = one.memory.statement
    if one.action is Action.STRENGTH:
        return Text.assemble(statement(said), (f"  (strength {one.memory.strength:.2f})", "dim"))
    if sign != "~" or one.old_statement is None:
        return statement(said, "" if sign == "~" else _STYLES[sign])
    whole = difference(one.old_statement, said)
    others = " and ".join(short(known) for known in one.closes) if len(one.closes) > 1 else ""
    return Text.assemble(whole, (f"  (of {others})", "dim")) if others else whole


def log(found: Sequence[Change], records: dict[str, Evolution], out: Console, zone: ZoneInfo) -> None:
    """Changes, the newest first, those of one evolution together below what made them."""
    for number, (_, together) in enumerate(groupby(found, key=_together)):
        if number:
            out.print()
        of_one = list(together)
        out.print(_head(of_one[0], records, zone))
        changes(reversed(of_one), out)


def _together(one: Change) -> tuple[str, str | int]:
    """Changes without an evolution stand alone, but for those that one revert made."""
    if one.undoes:
        return "undoes", one.undoes
    return ("evolution", one.evolution_id) if one.evolution_id else ("change", one.number)


def _head(one: Change, records: dict[str, Evolution], zone: ZoneInfo) -> Text:
    what, known = _together(one)
    named = f"revert of {short(str(known))}" if what == "undoes" else f"{what} {_known(known)}"
    parts = [clock(one.at, zone), show.inert(one.actor, 60), *_read(records.get(str(known)))]
    return Text.assemble((named, "bold yellow"), "  ", "  ".join(parts))


def _known(known: str | int) -> str:
    return str(known) if isinstance(known, int) else short(known)


def _read(record: Evolution | None) -> Iterator[str]:
    if record is not None:
        yield f"{record.messages} message{'' if record.messages == 1 else 's'}"
