"""What a scope remembered at a time, what became of it, and what made a memory, for people to read."""

from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.text import Text

from roomlore.core.memory.models import Memory, MemoryStatus
from roomlore.core.memory.past import Blame, BlamedVersion, Evidence, MemoryDiff
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.show_memories import clock, difference, indented, lines, short, statement

_TEXT = 300


def as_of(found: Sequence[Memory], out: Console, zone: ZoneInfo) -> None:
    shape = show.table("memory", "since", "version", "statement", right=("version",), fixed=("memory", "since"))
    out.print(show.rows(shape, (_then(one, zone) for one in found)))


def _then(one: Memory, zone: ZoneInfo) -> list[str]:
    return [short(one.memory_id), clock(one.updated_at, zone), str(one.version), show.inert(one.statement)]


def diff(found: MemoryDiff, out: Console, zone: ZoneInfo) -> None:
    """What is new, gone and said otherwise, and how much of each."""
    place = show.inert(found.scope, 80)
    out.print(Text(f"{place}  {clock(found.start, zone)} to {clock(found.end, zone)} ({zone.key})", "bold"))
    lines(_diff_lines(found), out)
    counts = {
        "added": len(found.added),
        "changed": len(found.changed),
        "removed": len(found.removed),
        "unchanged": found.unchanged,
    }
    out.print(Text(", ".join(f"{count} {what}" for what, count in counts.items()), "dim"))


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
    """A memory as it stands, a line for each thing known of it."""
    out.print(statement(one.statement, "bold"))
    standing = one.status.value + (", to be made again by a model" if one.fallback else "")
    known = {
        "memory": f"{one.memory_id} (version {one.version})",
        "of": f"{one.scope}, {one.kind.value}",
        "status": standing,
        "strength": f"{strength:.2f} now, {one.strength:.2f} when last supported",
        "confidence": "" if one.confidence is None else f"{one.confidence:.2f}",
        "category": one.category,
        "tags": ", ".join(one.tags),
        "began": clock(one.created_at, zone),
        "supported": clock(one.supported_at, zone),
        "messages": str(len(one.sources)) if one.sources else "",
    }
    for name, value in known.items():
        if value:
            out.print(Text.assemble((f"  {name:<11}", "dim"), show.inert(value)))


def versions(found: Blame, out: Console, zone: ZoneInfo, *, evidence: bool) -> None:
    """Every version with what made it, the newest first; with the messages that it rests on, if wanted."""
    for one in found.versions:
        out.print()
        out.print(_made(one, zone))
        out.print(indented(_changed(one, found)))
        if one.memory.change_summary:
            out.print(indented(Text(show.inert(one.memory.change_summary), "dim")))
        for said in one.evidence if evidence else ():
            out.print(indented(_message(said, zone), 4))
        if one.evidence and not evidence:
            count = f"{len(one.evidence)} message{'' if len(one.evidence) == 1 else 's'}"
            out.print(indented(Text(f"rests on {count} that the versions before do not have", "dim")))


def _made(one: BlamedVersion, zone: ZoneInfo) -> Text:
    made = one.memory
    mark = ("  in force", "bold green") if made.status is MemoryStatus.ACTIVE else ""
    parts = [clock(made.updated_at, zone), show.inert(made.made_by, 60)]
    if made.evolution_id:
        parts.append(f"evolution {short(made.evolution_id)}")
    if one.evolution is not None and one.evolution.prompt_hash:
        parts.append(f"prompt {show.inert(one.evolution.prompt_name, 40)} {one.evolution.prompt_hash[:8]}")
    head = (f"v{made.version} {short(made.memory_id)}", "bold yellow")
    return Text.assemble(head, "  ", "  ".join(parts), mark)


def _changed(one: BlamedVersion, found: Blame) -> Text:
    """Against the version before, where that is known; what was merged in is shown as it was."""
    before = {other.memory.memory_id: other.memory for other in found.versions}
    parent = before.get(one.memory.parent_id or "")
    if parent is None:
        return statement(one.memory.statement)
    told = difference(parent.statement, one.memory.statement)
    others = " and ".join(short(known) for known in one.memory.parents[1:])
    return Text.assemble(told, (f"  (merged with {others})", "dim")) if others else told


def _message(said: Evidence, zone: ZoneInfo) -> Text:
    place = f"{show.inert(said.source.room_id, 40)}/{show.inert(said.source.message_id, 40)}"
    if said.message is None:
        return Text(f"(a message that is not here any more)  {place}", "dim")
    when, who = clock(said.message.at, zone), show.name(said.message)
    return Text.assemble(
        (f"{when}  ", "dim"), (f"{who}: ", "bold"), show.inert(said.message.text, _TEXT), (f"  {place}", "dim")
    )
