"""Sessions for people to read."""

import json
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from roomlore.core.sessions.models import Checkpoint, Session, SessionContext
from roomlore.core.sessions.value import SessionValue, own_state
from roomlore.surfaces.cli import show

_BAR = 24
_LONG = 20_000
_ID = 80


def sessions(found: Iterable[Session], out: Console) -> None:
    """Sessions, a line each."""
    shape = show.table("conversation", "mode", "user", "changed", "checkpoint", fixed=("mode", "changed"))
    out.print(show.rows(shape, map(_line, found)))


def _line(one: Session) -> list[str]:
    checkpoint = one.checkpoint_id or "–"
    names = show.inert(one.conversation_id, _ID), str(one.mode), show.inert(one.user_id, _ID) or "–"
    return [*names, show.clock(one.updated_at), checkpoint]


def standing(value: SessionValue, out: Console) -> None:
    """How a session stands, in a line."""
    meta, flow, said = value.meta, value.flow_context, value.message_context
    parts = [
        said.mode,
        _turns(flow.turn_count),
        *_named("user", meta.user_id),
        *_named("agent", flow.current_agent_key),
        *_named("enterprise", meta.enterprise_id),
        *_named("patient", meta.patient_id),
        f"changed {show.clock(datetime.fromtimestamp(meta.updated_at, UTC))}",
    ]
    out.print(Text.assemble((show.inert(meta.conversation_id, _ID), "bold"), ": ", ", ".join(parts)))


def whole(value: SessionValue, out: Console) -> None:
    """A session: how it stands, its summary, the last turns, and what is kept with it."""
    standing(value, out)
    said = value.message_context
    if said.summary:
        out.print()
        out.print(Text(f"summary (checkpoint {show.inert(said.checkpoint_message_id, _ID)})", "bold"))
        _lines(said.summary, out)
    if said.window_messages:
        out.print()
        out.print(Text("the last turns", "bold"))
        for message in said.window_messages:
            _lines(f"{message.get('role', '')}: {message.get('content', '')}", out)
    out.print()
    state(value, out)


def state(value: SessionValue, out: Console) -> None:
    """What agents keep with a session: everything that does not follow from its messages, empty values left out."""
    kept = _filled(own_state(value.to_json()))
    if kept.get("user_snapshot") == {"user_id": value.meta.user_id}:
        del kept["user_snapshot"]
    out.print(Text("state", "bold") if kept else Text("no state is kept with it", "dim"))
    if kept:
        _lines(json.dumps(kept, ensure_ascii=False, indent=2), out)


def context(built: SessionContext, window: int, out: Console, *, covered: bool) -> None:
    """The history line by line, then the gauge and what to do. `covered`: whether a summary stands for all of it."""
    if built.history:
        _lines(built.history, out)
    else:
        out.print(Text("(nothing is shown)", "dim"))
    out.print()
    out.print(_gauge(built, window))
    for note in _notes(built, covered=covered):
        out.print(Text(note, "yellow"))
    if built.covers_through:
        checkpoint = built.checkpoint_id or "none"
        told = f"history through message {show.inert(built.covers_through, _ID)}, checkpoint in force: {checkpoint}"
        out.print(Text(told, "dim"), soft_wrap=True)


def _gauge(built: SessionContext, window: int) -> Text:
    share = built.token_ratio
    full = min(_BAR, round(share * _BAR))
    colour = "yellow" if built.should_checkpoint_summary else "green"
    told = f"{built.estimated_tokens:,} of {window:,} tokens ({share * 100:.1f} %)"
    return Text.assemble(
        ("█" * full, colour), ("░" * (_BAR - full), "dim"), f" {told}, {_turns(built.turns)}, {built.mode}"
    )


def _notes(built: SessionContext, *, covered: bool) -> Iterator[str]:
    if covered and built.should_checkpoint_summary:
        yield _beyond_help(built)
        return
    name = shlex.quote(show.inert(built.conversation_id, _ID))
    if built.truncated:
        yield "truncated: the oldest turns do not fit the window and are left out"
    if built.should_checkpoint_summary:
        yield f"asks for a checkpoint: `roomlore session checkpoint {name}` makes one, or give it a summary of your own"


def _beyond_help(built: SessionContext) -> str:
    trouble = "do not fit" if built.truncated else "fill the share of the window"
    return (
        f"the last turns {trouble} although a summary covers them; name a larger window (--window) or fewer turns "
        "(--turns)"
    )


def made(one: Checkpoint, out: Console) -> None:
    """A checkpoint that was just put in force."""
    _lines(one.summary, out)
    out.print()
    covers = f", through message {show.inert(one.covers_through, _ID)}" if one.covers_through else ""
    out.print(
        Text(
            f"checkpoint {one.checkpoint_id} (number {one.number}, by {show.inert(one.made_by, _ID)}): "
            f"{one.tokens:,} tokens stand for {_turns(one.turns)}{covers}",
            "green",
        ),
        soft_wrap=True,
    )


def checkpoints(found: Iterable[Checkpoint], out: Console) -> None:
    """Checkpoints and resets, a line each."""
    columns = ("number", "made", "by", "turns", "tokens", "summary")
    shape = show.table(*columns, right=("number", "turns", "tokens"), fixed=("made",))
    out.print(show.rows(shape, map(_mark, found)))


def _mark(one: Checkpoint) -> list[str]:
    made_at = show.clock(one.created_at)
    if one.kind == "reset":
        return [str(one.number), made_at, "–", "–", "–", "(reset: begun anew)"]
    numbers = [str(one.turns), f"{one.tokens:,}"]
    return [str(one.number), made_at, show.inert(one.made_by, _ID), *numbers, show.inert(one.summary, 160)]


def _lines(text: str, out: Console) -> None:
    """Text of several lines, each made inert; how far a line is indented is kept."""
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        out.print(Text(" " * (len(line) - len(bare)) + show.inert(bare, _LONG)), soft_wrap=True)


def _named(what: str, name: str | None) -> list[str]:
    return [f"{what} {show.inert(name, _ID)}"] if name else []


def _filled(part: dict[str, Any]) -> dict[str, Any]:
    """Without empty texts, lists and objects."""
    kept = {name: _filled(inner) if isinstance(inner, dict) else inner for name, inner in part.items()}
    return {name: inner for name, inner in kept.items() if inner not in ("", None, [], {})}


def _turns(count: int) -> str:
    return f"{count:,} turn" if count == 1 else f"{count:,} turns"
