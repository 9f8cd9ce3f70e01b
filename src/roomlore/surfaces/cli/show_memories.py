"""Memories and their history for people to read, as git shows commits."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from roomlore.core.memory.log import words_diff
from roomlore.core.memory.memory import (
    Action,
    Blame,
    BlamedVersion,
    Change,
    Evidence,
    Evolution,
    Memory,
    MemoryDiff,
    MemoryStatus,
)
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.language import say, several, translated

SHORT = 8
_WHOLE = 12
_LONGEST = 4_000
_DAY_CHARS = 10
_STYLES = {"+": "green", "-": "red", "~": "yellow", "=": "dim", " ": ""}
_MARKS = {"same": ("", "", ""), "gone": ("[-", "-]", "red"), "new": ("{+", "+}", "green")}


def short(known: str) -> str:
    """Return the end of a long id, which commands accept: ids made one after the other begin alike."""
    return show.inert(known if len(known) <= _WHOLE else known[-SHORT:])


def statement(said: str, style: str = "") -> Text:
    return Text(show.inert(said, _LONGEST), style)


def difference(old: str, new: str) -> Text:
    """Return the new statement with removed words as [-...-] and new ones as {+...+}, in colour if there is colour."""
    text = Text()
    for piece in words_diff(show.inert(old, _LONGEST), show.inert(new, _LONGEST)):
        begun, ended, style = _MARKS[piece.became]
        text.append(f"{begun}{piece.text}{ended}", style)
    return text


def held(one: Memory, zone: ZoneInfo) -> str:
    """Return the statement, with since when it holds and when it ends, if that is known."""
    begins = "" if one.valid_from is None else say("from {time}", time=_day_or_time(one.valid_from, zone))
    ends = say("until {end}", end=end_of(one, zone)) if one.valid_until else ""
    told = " ".join(filter(None, (begins, ends)))
    return show.inert(one.statement) + (f" ({told})" if told else "")


def end_of(one: Memory, zone: ZoneInfo) -> str:
    """Return when a memory ends; '' if it does not. One that ends at midnight holds to the end of the day before."""
    return "" if one.valid_until is None else end_at(one.valid_until, zone)


def end_at(ends: datetime, zone: ZoneInfo) -> str:
    """Return a time at which something ends: at midnight that is the end of the day before."""
    last = _day_or_time(ends - timedelta(minutes=1), zone)[:_DAY_CHARS]
    return say("the end of {day}", day=last) if _is_midnight(ends, zone) else show.clock(ends, zone)


def _day_or_time(at: datetime, zone: ZoneInfo) -> str:
    return show.clock(at, zone)[:_DAY_CHARS] if _is_midnight(at, zone) else show.clock(at, zone)


def _is_midnight(at: datetime, zone: ZoneInfo) -> bool:
    return show.clock(at, zone).endswith(" 00:00")


def lines(found: Iterable[tuple[str, str, Text, str]], out: Console) -> None:
    """Print lines of a sign, the short id, the statement, and below it the reason."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for sign, known, said, why in found:
        whole = Text.assemble(said, ("\n" + "\n".join(map(show.inert, why.splitlines())), "dim")) if why else said
        grid.add_row(Text(sign, _STYLES[sign]), Text(known, "yellow"), whole)
    if grid.row_count:
        out.print(indented(grid))


def indented(what: RenderableType, by: int = 2) -> Padding:
    return Padding(what, (0, 0, 0, by), expand=False)


def changes(found: Iterable[Change], out: Console) -> None:
    """Print changes as lines: new (+), removed (-), reworded (~), and in one line the confirmed ones (=)."""
    entries = list(found)
    lines((_line(one) for one in entries if not _is_confirmed(one)), out)
    confirmed = [short(one.memory.memory_id) for one in entries if _is_confirmed(one)]
    if confirmed:
        count = several(len(confirmed), "{count} memory confirmed: ", "{count} memories confirmed: ")
        out.print(indented(Text.assemble(("= ", "dim"), count, (", ".join(confirmed), "yellow"))))


def _is_confirmed(one: Change) -> bool:
    return one.action is Action.STRENGTH and one.evolution_id is not None


def _line(one: Change) -> tuple[str, str, Text, str]:
    sign = _sign(one)
    doubt = say("doubtful: {why}", why=one.memory.doubtful) if one.memory.doubtful else ""
    return sign, short(one.memory.memory_id), _said(one, sign), "\n".join(filter(None, (one.reason, doubt)))


def _sign(one: Change) -> str:
    if one.action in (Action.STRENGTH, Action.REDACT, Action.SHARE) or (
        one.closes and one.memory.status is MemoryStatus.ACTIVE
    ):
        return "~"
    return "+" if one.memory.status is MemoryStatus.ACTIVE else "-"


def _said(one: Change, sign: str) -> Text:
    said = one.memory.statement
    if one.action is Action.STRENGTH:
        return _noted(statement(said), say("(strength {strength:.2f})", strength=one.memory.strength))
    if sign != "~" or one.old_statement is None:
        whole = statement(said, "" if sign == "~" else _STYLES[sign])
    else:
        whole = difference(one.old_statement, said)
        if len(one.closes) > 1:
            others = say(" and ").join(short(known) for known in one.closes)
            whole = _noted(whole, say("(of {memories})", memories=others))
    return _noted(whole, say("(restored)")) if one.action is Action.RESTORE else whole


def _noted(said: Text, note: str) -> Text:
    return Text.assemble(said, (f"  {note}", "dim"))


def log(found: Sequence[Change], records: dict[str, Evolution], out: Console, zone: ZoneInfo) -> None:
    """Print changes, the newest first. Those of one evolution are together below its heading."""
    for number, (_, together) in enumerate(groupby(found, key=_together)):
        if number:
            out.print()
        of_one = list(together)
        out.print(_head(of_one[0], records, zone))
        changes(reversed(of_one), out)


def _together(one: Change) -> tuple[str, str | int]:
    """Return the key of a group of changes. Changes without an evolution stand alone, except those of one revert."""
    if one.undoes:
        return "undoes", one.undoes
    return ("evolution", one.evolution_id) if one.evolution_id else ("change", one.number)


_HEADS = {"undoes": "revert of {known}", "evolution": "evolution {known}", "change": "change {known}"}


def _head(one: Change, records: dict[str, Evolution], zone: ZoneInfo) -> Text:
    what, known = _together(one)
    named = say(_HEADS[what], known=str(known) if isinstance(known, int) else short(known))
    parts = [show.clock(one.at, zone), show.inert(one.actor, 60), *_read(records.get(str(known)))]
    return Text.assemble((named, "bold yellow"), "  ", "  ".join(parts))


def _read(record: Evolution | None) -> Iterator[str]:
    if record is not None:
        yield show.counted(record.messages, "message")


_TEXT = 300


def as_of(found: Sequence[Memory], out: Console, zone: ZoneInfo) -> None:
    shape = show.table("memory", "since", "version", "statement", right=("version",), fixed=("memory", "since"))
    out.print(show.rows(shape, (_then(one, zone) for one in found)))


def _then(one: Memory, zone: ZoneInfo) -> list[str]:
    return [short(one.memory_id), show.clock(one.updated_at, zone), str(one.version), held(one, zone)]


def diff(found: MemoryDiff, out: Console, zone: ZoneInfo, *, end: str) -> None:
    """Print new, removed and reworded memories, and their numbers. `end`: the end of the time in words."""
    place = show.inert(found.scope, 80)
    span = say("{start} to {end} ({zone})", start=show.clock(found.start, zone), end=end, zone=zone.key)
    out.print(Text(f"{place}  {span}", "bold"))
    lines(_diff_lines(found), out)
    counts = {
        "{count} added": len(found.added),
        "{count} changed": len(found.changed),
        "{count} removed": len(found.removed),
        "{count} unchanged": found.unchanged,
    }
    out.print(Text(say(", ").join(say(what, count=count) for what, count in counts.items()), "dim"))


def _diff_lines(found: MemoryDiff) -> Iterator[tuple[str, str, Text, str]]:
    for revised in found.changed:
        told = difference(revised.before.statement, revised.after.statement)
        why = "; ".join(change.reason for change in revised.changes if change.reason)
        yield "~", short(revised.after.memory_id), told, why
    for new in found.added:
        yield "+", short(new.memory_id), statement(new.statement, "green"), new.change_summary
    for gone in found.removed:
        yield "-", short(gone.memory_id), statement(gone.statement, "red"), ""


def memory(one: Memory, strength: float, out: Console, zone: ZoneInfo) -> None:
    """Print a memory, one property in each line."""
    out.print(statement(one.statement, "bold"))
    standing = say(one.status.value) + (say(", to be made again by a model") if one.fallback else "")
    known = {
        "memory": say("{memory} (version {number})", memory=one.memory_id, number=one.version),
        "of": f"{one.scope}{say(', ')}{say(one.kind.value)}",
        "status": standing,
        "strength": say("{strength:.2f} now, {then:.2f} when last supported", strength=strength, then=one.strength),
        "confidence": "" if one.confidence is None else f"{one.confidence:.2f}",
        "category": one.category,
        "tags": ", ".join(one.tags),
        "about": one.owner,
        "said by": ", ".join(one.said_by),
        "holds from": "" if one.valid_from is None else _day_or_time(one.valid_from, zone),
        "holds until": end_of(one, zone),
        "began": show.clock(one.created_at, zone),
        "supported": show.clock(one.supported_at, zone),
        "messages": str(len(one.sources)) if one.sources else "",
        "doubtful": one.doubtful,
    }
    for name, value in known.items():
        if value:
            out.print(Text.assemble((f"  {show.padded(say(name), 12)}", "dim"), show.inert(value)))


def versions(found: Blame, out: Console, zone: ZoneInfo, *, evidence: bool) -> None:
    """Print every version with its origin, the newest first. `evidence`: with the messages that support it."""
    for one in found.versions:
        out.print()
        out.print(_made(one, zone))
        out.print(indented(_changed(one, found)))
        if one.memory.change_summary:
            out.print(indented(Text(show.inert(one.memory.change_summary), "dim")))
        if one.memory.doubtful:
            told = say("doubtful: {why}", why=translated(show.inert(one.memory.doubtful)))
            out.print(indented(Text(told, "yellow")))
        for said in one.evidence if evidence else ():
            out.print(indented(_message(said, zone), 4))
        if one.evidence and not evidence:
            told = say(
                "rests on {messages} that the versions before do not have",
                messages=show.counted(len(one.evidence), "message"),
            )
            out.print(indented(Text(told, "dim")))


def _made(one: BlamedVersion, zone: ZoneInfo) -> Text:
    made = one.memory
    mark = (f"  {say('in force')}", "bold green") if made.status is MemoryStatus.ACTIVE else ""
    parts = [show.clock(made.updated_at, zone), show.inert(made.made_by, 60)]
    if made.evolution_id:
        parts.append(say("evolution {known}", known=short(made.evolution_id)))
    if one.evolution is not None and one.evolution.prompt_hash:
        named = f"{show.inert(one.evolution.prompt_name, 40)} {one.evolution.prompt_hash[:8]}"
        parts.append(say("prompt {named}", named=named))
    head = (f"v{made.version} {short(made.memory_id)}", "bold yellow")
    return Text.assemble(head, "  ", "  ".join(parts), mark)


def _changed(one: BlamedVersion, found: Blame) -> Text:
    """Return the difference from the version before, if that is known. A merged memory is shown in full."""
    before = {other.memory.memory_id: other.memory for other in found.versions}
    parent = before.get(one.memory.parent_id or "")
    if parent is None:
        return statement(one.memory.statement)
    told = difference(parent.statement, one.memory.statement)
    others = say(" and ").join(short(known) for known in one.memory.parents[1:])
    return Text.assemble(told, (f"  {say('(merged with {memories})', memories=others)}", "dim")) if others else told


def _message(said: Evidence, zone: ZoneInfo) -> Text:
    place = f"{show.inert(said.source.room_id, 40)}/{show.inert(said.source.message_id, 40)}"
    if said.message is None:
        return Text(f"{say('(a message that is not here any more)')}  {place}", "dim")
    when, who = show.clock(said.message.at, zone), show.name(said.message)
    return Text.assemble(
        (f"{when}  ", "dim"), (f"{who}: ", "bold"), show.inert(said.message.text, _TEXT), (f"  {place}", "dim")
    )
