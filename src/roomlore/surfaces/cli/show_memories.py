"""Memories and their history for people to read, as git shows commits."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from roomlore.core.evolution.requests import strength_at
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
    MemoryHit,
    MemoryStatus,
    last_day,
)
from roomlore.core.recall.recollection import Recalled
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


def statement(text: str, style: str = "") -> Text:
    return Text(show.inert(text, _LONGEST), style)


def difference(old: str, new: str) -> Text:
    """Return the new statement with removed words as [-...-] and new ones as {+...+}, in colour if there is colour."""
    text = Text()
    for piece in words_diff(show.inert(old, _LONGEST), show.inert(new, _LONGEST)):
        begun, ended, style = _MARKS[piece.became]
        text.append(f"{begun}{piece.text}{ended}", style)
    return text


def held(memory_: Memory, zone: ZoneInfo) -> str:
    """Return the statement, with since when it holds and when it ends, if that is known."""
    begins = "" if memory_.valid_from is None else say("from {time}", time=_day_or_time(memory_.valid_from, zone))
    ends = say("until {end}", end=end_of(memory_, zone)) if memory_.valid_until else ""
    times = " ".join(filter(None, (begins, ends)))
    return show.inert(memory_.statement) + (f" ({times})" if times else "")


def end_of(memory_: Memory, zone: ZoneInfo) -> str:
    """Return when a memory ends; '' if it does not. One that ends at midnight holds to the end of the day before."""
    return "" if memory_.valid_until is None else end_at(memory_.valid_until, zone)


def end_at(ends: datetime, zone: ZoneInfo) -> str:
    """Return a time at which something ends: at midnight that is the end of the day before."""
    day = last_day(ends, zone)
    return say("the end of {day}", day=day.isoformat()) if day else show.clock(ends, zone)


def _day_or_time(at: datetime, zone: ZoneInfo) -> str:
    return show.clock(at, zone)[:_DAY_CHARS] if _is_midnight(at, zone) else show.clock(at, zone)


def _is_midnight(at: datetime, zone: ZoneInfo) -> bool:
    return show.clock(at, zone).endswith(" 00:00")


def lines(rows: Iterable[tuple[str, str, Text, str]], out: Console) -> None:
    """Print lines of a sign, the short id, the statement, and below it the reason."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for sign, known, sentence, why in rows:
        whole = (
            Text.assemble(sentence, ("\n" + "\n".join(map(show.inert, why.splitlines())), "dim")) if why else sentence
        )
        grid.add_row(Text(sign, _STYLES[sign]), Text(known, "yellow"), whole)
    if grid.row_count:
        out.print(indented(grid))


def indented(what: RenderableType, by: int = 2) -> Padding:
    return Padding(what, (0, 0, 0, by), expand=False)


def changes(logged: Iterable[Change], out: Console) -> None:
    """Print changes as lines: new (+), removed (-), reworded (~), and in one line the confirmed ones (=)."""
    entries = list(logged)
    lines((_line(entry) for entry in entries if not _is_confirmed(entry)), out)
    confirmed = [short(entry.memory.memory_id) for entry in entries if _is_confirmed(entry)]
    if confirmed:
        count = several(len(confirmed), "{count} memory confirmed: ", "{count} memories confirmed: ")
        out.print(indented(Text.assemble(("= ", "dim"), count, (", ".join(confirmed), "yellow"))))


def _is_confirmed(change: Change) -> bool:
    return change.action is Action.STRENGTH and change.evolution_id is not None


def _line(change: Change) -> tuple[str, str, Text, str]:
    sign = _sign(change)
    doubt = say("doubtful: {why}", why=change.memory.doubtful) if change.memory.doubtful else ""
    return (
        sign,
        short(change.memory.memory_id),
        _change_text(change, sign),
        "\n".join(filter(None, (change.reason, doubt))),
    )


def _sign(change: Change) -> str:
    if change.action in (Action.STRENGTH, Action.REDACT, Action.SHARE) or (
        change.closes and change.memory.status is MemoryStatus.ACTIVE
    ):
        return "~"
    return "+" if change.memory.status is MemoryStatus.ACTIVE else "-"


def _change_text(change: Change, sign: str) -> Text:
    text = change.memory.statement
    if change.action is Action.STRENGTH:
        return _noted(statement(text), say("(strength {strength:.2f})", strength=change.memory.strength))
    if sign != "~" or change.old_statement is None:
        whole = statement(text, "" if sign == "~" else _STYLES[sign])
    else:
        whole = difference(change.old_statement, text)
        if len(change.closes) > 1:
            others = say(" and ").join(short(known) for known in change.closes)
            whole = _noted(whole, say("(of {memories})", memories=others))
    return _noted(whole, say("(restored)")) if change.action is Action.RESTORE else whole


def _noted(text: Text, note: str) -> Text:
    return Text.assemble(text, (f"  {note}", "dim"))


def log(entries: Sequence[Change], records: dict[str, Evolution], out: Console, zone: ZoneInfo) -> None:
    """Print changes, the newest first. Those of one evolution are together below its heading."""
    for number, (_, together) in enumerate(groupby(entries, key=_together)):
        if number:
            out.print()
        of_one = list(together)
        out.print(_head(of_one[0], records, zone))
        changes(reversed(of_one), out)


def _together(change: Change) -> tuple[str, str | int]:
    """Return the key of a group of changes. Changes without an evolution stand alone, except those of one revert."""
    if change.undoes:
        return "undoes", change.undoes
    return ("evolution", change.evolution_id) if change.evolution_id else ("change", change.number)


_HEADS = {"undoes": "revert of {known}", "evolution": "evolution {known}", "change": "change {known}"}


def _head(change: Change, records: dict[str, Evolution], zone: ZoneInfo) -> Text:
    what, known = _together(change)
    named = say(_HEADS[what], known=str(known) if isinstance(known, int) else short(known))
    parts = [show.clock(change.at, zone), maker(change.actor), *_read(records.get(str(known)))]
    return Text.assemble((named, "bold yellow"), "  ", "  ".join(parts))


def _read(record: Evolution | None) -> Iterator[str]:
    if record is not None:
        yield show.counted(record.messages, "message")


_TEXT = 300


def as_of(memories: Sequence[Memory], out: Console, zone: ZoneInfo) -> None:
    shape = show.table("memory", "since", "version", "statement", right=("version",), fixed=("memory", "since"))
    out.print(show.rows(shape, (_then(memory_, zone) for memory_ in memories)))


def _then(memory_: Memory, zone: ZoneInfo) -> list[str]:
    return [short(memory_.memory_id), show.clock(memory_.updated_at, zone), str(memory_.version), held(memory_, zone)]


def diff(difference_of: MemoryDiff, out: Console, zone: ZoneInfo, *, end: str) -> None:
    """Print new, removed and reworded memories, and their numbers. `end`: the end of the time in words."""
    place = show.inert(difference_of.scope, 80)
    span = say("{start} to {end} ({zone})", start=show.clock(difference_of.start, zone), end=end, zone=zone.key)
    out.print(Text(f"{place}  {span}", "bold"))
    lines(_diff_lines(difference_of), out)
    counts = {
        "{count} added": len(difference_of.added),
        "{count} changed": len(difference_of.changed),
        "{count} removed": len(difference_of.removed),
        "{count} unchanged": difference_of.unchanged,
    }
    out.print(Text(say(", ").join(say(what, count=count) for what, count in counts.items()), "dim"))


def _diff_lines(difference_of: MemoryDiff) -> Iterator[tuple[str, str, Text, str]]:
    for revised in difference_of.changed:
        marked = difference(revised.before.statement, revised.after.statement)
        why = "; ".join(change.reason for change in revised.changes if change.reason)
        yield "~", short(revised.after.memory_id), marked, why
    for new in difference_of.added:
        yield "+", short(new.memory_id), statement(new.statement, "green"), new.change_summary
    for gone in difference_of.removed:
        yield "-", short(gone.memory_id), statement(gone.statement, "red"), ""


def maker(name: str) -> str:
    """Return who made something, for people: a model, or how it was made without one."""
    return say({"offline": "rules", "caller": "by hand"}.get(name, "")) or show.inert(name, 60)


def state(memory_: Memory, now: datetime) -> str:
    """Return if a memory is in force, or how it ended."""
    ended = memory_.status is MemoryStatus.ACTIVE and memory_.valid_until is not None and memory_.valid_until <= now
    return say("ended" if ended else memory_.status.value)


def listed(memory_: Memory, now: datetime, zone: ZoneInfo) -> str:
    """Return the statement with its times, and if it is in force no more."""
    mark = "" if state(memory_, now) == say(MemoryStatus.ACTIVE.value) else f"  ({state(memory_, now)})"
    return f"{held(memory_, zone)}{mark}"


def recalled(facts: Iterable[Recalled | MemoryHit], out: Console, now: datetime, zone: ZoneInfo) -> None:
    """Print facts in their order, each with its score."""
    for fact in facts:
        head = Text.assemble((f"{fact.score:.2f}  ", "green"), (f"{short(fact.memory.memory_id)}  ", "yellow"))
        out.print(Text.assemble(head, statement(listed(fact.memory, now, zone))))


def memory(memory_: Memory, now: datetime, out: Console, zone: ZoneInfo) -> None:
    """Print a memory, one property in each line."""
    out.print(statement(memory_.statement, "bold"))
    standing = state(memory_, now) + (say(", to be made again by a model") if memory_.fallback else "")
    strength = strength_at(memory_, now)
    known = {
        "memory": say("{memory} (version {number})", memory=memory_.memory_id, number=memory_.version),
        "of": f"{memory_.scope}{say(', ')}{say(memory_.kind.value)}",
        "status": standing,
        "strength": say("{strength:.2f} now, {then:.2f} when last supported", strength=strength, then=memory_.strength),
        "confidence": "" if memory_.confidence is None else f"{memory_.confidence:.2f}",
        "category": memory_.category,
        "tags": ", ".join(memory_.tags),
        "about": memory_.owner,
        "said by": ", ".join(memory_.said_by),
        "holds from": "" if memory_.valid_from is None else _day_or_time(memory_.valid_from, zone),
        "holds until": end_of(memory_, zone),
        "began": show.clock(memory_.created_at, zone),
        "supported": show.clock(memory_.supported_at, zone),
        "messages": str(len(memory_.sources)) if memory_.sources else "",
        "doubtful": memory_.doubtful,
    }
    for name, value in known.items():
        if value:
            out.print(Text.assemble((f"  {show.padded(say(name), 12)}", "dim"), show.inert(value)))


def versions(blame: Blame, out: Console, zone: ZoneInfo, *, evidence: bool) -> None:
    """Print every version with its origin, the newest first. `evidence`: with the messages that support it."""
    for version in blame.versions:
        out.print()
        out.print(_made(version, zone))
        out.print(indented(_changed(version, blame)))
        if version.memory.change_summary:
            out.print(indented(Text(show.inert(version.memory.change_summary), "dim")))
        if version.memory.doubtful:
            remark = say("doubtful: {why}", why=show.inert(translated(version.memory.doubtful)))
            out.print(indented(Text(remark, "yellow")))
        for evidence_message in version.evidence if evidence else ():
            out.print(indented(_message(evidence_message, zone), 4))
        if version.evidence and not evidence:
            remark = say(
                "rests on {messages} that the versions before do not have",
                messages=show.counted(len(version.evidence), "message"),
            )
            out.print(indented(Text(remark, "dim")))


def _made(version: BlamedVersion, zone: ZoneInfo) -> Text:
    made = version.memory
    mark = (f"  {say('in force')}", "bold green") if made.status is MemoryStatus.ACTIVE else ""
    parts = [show.clock(made.updated_at, zone), maker(made.made_by)]
    if made.evolution_id:
        parts.append(say("evolution {known}", known=short(made.evolution_id)))
    if version.evolution is not None and version.evolution.prompt_hash:
        named = f"{show.inert(version.evolution.prompt_name, 40)} {version.evolution.prompt_hash[:8]}"
        parts.append(say("prompt {named}", named=named))
    head = (f"v{made.version} {short(made.memory_id)}", "bold yellow")
    return Text.assemble(head, "  ", "  ".join(parts), mark)


def _changed(version: BlamedVersion, blame: Blame) -> Text:
    """Return the difference from the version before, if that is known. A merged memory is shown in full."""
    before = {other.memory.memory_id: other.memory for other in blame.versions}
    parent = before.get(version.memory.parent_id or "")
    if parent is None:
        return statement(version.memory.statement)
    marked = difference(parent.statement, version.memory.statement)
    others = say(" and ").join(short(known) for known in version.memory.parents[1:])
    return Text.assemble(marked, (f"  {say('(merged with {memories})', memories=others)}", "dim")) if others else marked


def _message(evidence_: Evidence, zone: ZoneInfo) -> Text:
    place = f"{show.inert(evidence_.source.room_id, 40)}/{show.inert(evidence_.source.message_id, 40)}"
    if evidence_.message is None:
        return Text(f"{say('(a message that is not here any more)')}  {place}", "dim")
    when, who = show.clock(evidence_.message.at, zone), show.name(evidence_.message)
    return Text.assemble(
        (f"{when}  ", "dim"), (f"{who}: ", "bold"), show.inert(evidence_.message.text, _TEXT), (f"  {place}", "dim")
    )
