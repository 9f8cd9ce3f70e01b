"""`roomlore session`: commands on sessions, and their output."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.errors import InvalidInput
from roomlore.core.records import parse_time
from roomlore.core.sessions.session import Checkpoint, Session, SessionContext, SessionValue, own_state
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Group, ShownTo, frame_of, viewer_of
from roomlore.surfaces.cli.language import say
from roomlore.surfaces.jsonable import session_line, to_jsonable

if TYPE_CHECKING:
    from roomlore.wiring import Lore

T = TypeVar("T")

_BAR = 24
_LONG = 20_000
_ID = 80


def sessions(found: Iterable[Session], out: Console) -> None:
    """Print sessions, one in each line."""
    shape = show.table("conversation", "mode", "user", "changed", "checkpoint", fixed=("mode", "changed"))
    out.print(show.rows(shape, map(_line, found)))


def _line(one: Session) -> list[str]:
    checkpoint = one.checkpoint_id or "–"
    names = show.inert(one.conversation_id, _ID), str(one.mode), show.inert(one.user_id, _ID) or "–"
    return [*names, show.clock(one.updated_at), checkpoint]


def standing(value: SessionValue, out: Console) -> None:
    """Print a session's state in one line."""
    meta, flow, said = value.meta, value.flow_context, value.message_context
    parts = [
        said.mode,
        _turns(flow.turn_count),
        *_named("user {name}", meta.user_id),
        *_named("agent {name}", flow.current_agent_key),
        *_named("enterprise {name}", meta.enterprise_id),
        *_named("patient {name}", meta.patient_id),
        say("changed {time}", time=show.clock(datetime.fromtimestamp(meta.updated_at, UTC))),
    ]
    out.print(Text.assemble((show.inert(meta.conversation_id, _ID), "bold"), say(": "), say(", ").join(parts)))


def whole(value: SessionValue, out: Console) -> None:
    """Print a session: its state, its summary, the last turns, and the data stored with it."""
    standing(value, out)
    said = value.message_context
    if said.summary:
        out.print()
        told = say("summary (checkpoint {checkpoint})", checkpoint=show.inert(said.checkpoint_message_id, _ID))
        out.print(Text(told, "bold"))
        _lines(said.summary, out)
    if said.window_messages:
        out.print()
        out.print(Text(say("the last turns"), "bold"))
        for message in said.window_messages:
            _lines(f"{message.get('role', '')}: {message.get('content', '')}", out)
    out.print()
    print_state(value, out)


def print_state(value: SessionValue, out: Console) -> None:
    """Print the data that agents store with a session: everything that does not follow from its messages, without empty
    values."""
    kept = _filled(own_state(value.to_json()))
    if kept.get("user_snapshot") == {"user_id": value.meta.user_id}:
        del kept["user_snapshot"]
    out.print(Text(say("state"), "bold") if kept else Text(say("no state is kept with it"), "dim"))
    if kept:
        _lines(json.dumps(kept, ensure_ascii=False, indent=2), out)


def print_context(built: SessionContext, window: int, out: Console, *, covered: bool) -> None:
    """Print the history line by line, then the gauge and what to do. `covered`: a summary stands for all of it."""
    if built.history:
        _lines(built.history, out)
    else:
        out.print(Text(say("(nothing is shown)"), "dim"))
    out.print()
    out.print(_gauge(built, window))
    for note in _notes(built, covered=covered):
        out.print(Text(note, "yellow"))
    if built.covers_through:
        told = say(
            "history through message {message}, checkpoint in force: {checkpoint}",
            message=show.inert(built.covers_through, _ID),
            checkpoint=built.checkpoint_id or say("none"),
        )
        out.print(Text(told, "dim"), soft_wrap=True)


def _gauge(built: SessionContext, window: int) -> Text:
    share = built.token_ratio
    full = min(_BAR, round(share * _BAR))
    colour = "yellow" if built.should_checkpoint_summary else "green"
    told = say(
        "{tokens:,} of {window:,} tokens ({share:.1f} %)",
        tokens=built.estimated_tokens,
        window=window,
        share=share * 100,
    )
    parts = say(", ").join((told, _turns(built.turns), built.mode))
    return Text.assemble(("█" * full, colour), ("░" * (_BAR - full), "dim"), f" {parts}")


def _notes(built: SessionContext, *, covered: bool) -> Iterator[str]:
    if built.coverage_assumed:
        yield say("coverage assumed: what the summary covers was not told; the newest turns of it are shown too")
    if covered and built.should_checkpoint_summary:
        yield _window_advice(built)
        return
    name = shlex.quote(show.inert(built.conversation_id, _ID))
    if built.truncated:
        yield say("truncated: the oldest turns do not fit the window and are left out")
    if built.should_checkpoint_summary:
        command = f"`roomlore session checkpoint {name}`"
        yield say(
            "asks for a checkpoint: {command} makes one, or give it a summary of your own and --covers-through",
            command=command,
        )


def _window_advice(built: SessionContext) -> str:
    reason = say("do not fit") if built.truncated else say("fill the share of the window")
    return say(
        "the last turns {reason} although a summary covers them; name a larger window (--window) or fewer turns "
        "(--turns)",
        reason=reason,
    )


def print_checkpoint(one: Checkpoint, out: Console) -> None:
    """Print a checkpoint that was just put in force."""
    _lines(one.summary, out)
    out.print()
    through = show.inert(one.covers_through or "", _ID)
    told = say(
        "checkpoint {checkpoint} (number {number}, by {by}): {tokens:,} tokens stand for {turns}{covers}",
        checkpoint=one.checkpoint_id,
        number=one.number,
        by=show.inert(one.made_by, _ID),
        tokens=one.tokens,
        turns=_turns(one.turns),
        covers=say(", through message {message}", message=through) if through else "",
    )
    out.print(Text(told, "green"), soft_wrap=True)
    if one.coverage_assumed:
        assumed = say("coverage assumed: tell it with --covers-through or --token, else turns may be lost")
        out.print(Text(assumed, "yellow"), soft_wrap=True)


def print_checkpoints(found: Iterable[Checkpoint], out: Console) -> None:
    """Print checkpoints and resets, one in each line."""
    columns = ("number", "made", "by", "turns", "tokens", "summary")
    shape = show.table(*columns, right=("number", "turns", "tokens"), fixed=("made",))
    out.print(show.rows(shape, map(_mark, found)))


def _mark(one: Checkpoint) -> list[str]:
    made_at = show.clock(one.created_at)
    if one.kind == "reset":
        return [str(one.number), made_at, "–", "–", "–", say("(reset: begun anew)")]
    numbers = [str(one.turns), f"{one.tokens:,}"]
    return [str(one.number), made_at, show.inert(one.made_by, _ID), *numbers, show.inert(one.summary, 160)]


def _lines(text: str, out: Console) -> None:
    """Print a text of several lines, each made safe for the terminal. Indentation is kept."""
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        out.print(Text(" " * (len(line) - len(bare)) + show.inert(bare, _LONG)), soft_wrap=True)


def _named(what: str, name: str | None) -> list[str]:
    return [say(what, name=show.inert(name, _ID))] if name else []


def _filled(part: dict[str, Any]) -> dict[str, Any]:
    """Return the data without empty texts, lists and objects."""
    kept = {name: _filled(inner) if isinstance(inner, dict) else inner for name, inner in part.items()}
    return {name: inner for name, inner in kept.items() if inner not in ("", None, [], {})}


def _turns(count: int) -> str:
    return show.counted(count, "turn")


app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Long conversations inside the model's window: turns, summaries, state."
)

_PAGE = 500
_STDIN = "-"
_EXAMPLE = '\'{"global_state": {"current_intent": "refund"}}\''

Conversation = Annotated[str, typer.Argument(help="The conversation: the id of its room.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
SessionJson = Annotated[bool, typer.Option("--json", help="The session as JSON.")]


@app.command()
def create(
    ctx: typer.Context,
    conversation: Conversation,
    user: Annotated[str, typer.Option(help="Whom the agent talks with.")] = "",
    enterprise: Annotated[str | None, typer.Option(help="An enterprise id to keep with the session.")] = None,
    patient: Annotated[str | None, typer.Option(help="A patient id to keep with the session.")] = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="A file with the JSON of an older session, whose state is taken over; `-` is standard input.",
            metavar="FILE",
        ),
    ] = None,
    as_json: SessionJson = False,
) -> None:
    """Create a session. An existing one stays as it is; missing ids are filled in."""
    brought = None if session is None else _read_object(_file(session), f"--from {session}")

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.create_session(
            conversation, user, enterprise_id=enterprise, patient_id=patient, session=brought, viewer=None
        )

    _tell_session(frame_of(ctx).run(work, creates=True), as_json=as_json)


@app.command("list")
def list_(ctx: typer.Context, viewer: ShownTo = None, as_json: AsJson = False) -> None:
    """List the sessions."""

    async def work(lore: Lore) -> list[Session]:
        found, whom = list[Session](), await viewer_of(lore, viewer)
        while page := await lore.sessions.page(
            after=found[-1].conversation_id if found else None, limit=_PAGE, viewer=whom
        ):
            found += page
        return found

    found = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(map(session_line, found)))
    elif found:
        sessions(found, show.console())
    else:
        database = show.inert(frame_of(ctx).place())
        typer.echo(
            say("There are no sessions in {place}; `roomlore session turn CONVERSATION` begins one.", place=database)
        )


@app.command("show")
def show_(
    ctx: typer.Context,
    conversation: Conversation,
    viewer: ShownTo = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every field that was ever written.")] = False,
) -> None:
    """Show a session: the user, its state, the last turns, and the data that agents store with it."""

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.get_session(conversation, viewer=await viewer_of(lore, viewer))

    value = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(value))
    else:
        whole(value, show.console())


@app.command()
def context(
    ctx: typer.Context,
    conversation: Conversation,
    query: Annotated[
        str | None, typer.Option(help="What the user says now: counted, not stored. `-` is standard input.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(help="What the model takes, in tokens.", show_default="the setting model_context_window"),
    ] = None,
    turns: Annotated[
        int | None, typer.Option(help="Turns shown verbatim at least.", show_default="the setting recent_turns")
    ] = None,
    ratio: Annotated[
        float | None,
        typer.Option(
            help="Share of the window from which a checkpoint is asked for.",
            show_default="the setting token_threshold_ratio",
        ),
    ] = None,
    viewer: ShownTo = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with everything the library gives.")] = False,
) -> None:
    """Show the context for a model: the summary, the turns after it, and how full its window is."""
    asked = _text(query) or ""

    async def work(lore: Lore) -> tuple[SessionContext, int, bool]:
        whom = await viewer_of(lore, viewer)
        built = await lore.sessions.query_context(conversation, asked, ratio, turns, window, viewer=whom)
        return built, window or lore.settings.sessions.model_context_window, await _is_covered(lore, built)

    built, size, covered = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(built))
    else:
        print_context(built, size, show.console(), covered=covered)


async def _is_covered(lore: Lore, built: SessionContext) -> bool:
    """Return True if the checkpoint in force covers everything, so that another one would change nothing."""
    if not built.checkpoint_id:
        return False
    latest = await lore.sessions.checkpoints(built.conversation_id, limit=1, viewer=None)
    return [(one.checkpoint_id, one.covers_through) for one in latest] == [(built.checkpoint_id, built.covers_through)]


@app.command()
def turn(
    ctx: typer.Context,
    conversation: Conversation,
    user_query: Annotated[str | None, typer.Option(help="What the user said; `-` is standard input.")] = None,
    agent_response: Annotated[str | None, typer.Option(help="What the agent answered; `-` is standard input.")] = None,
    user: Annotated[str, typer.Option(help="Who asked; by default the session's user.")] = "",
    agent: Annotated[str, typer.Option(help="Which agent answered.")] = "",
    turn_id: Annotated[str | None, typer.Option(help="An id of your own makes the command safe to repeat.")] = None,
    sent_at: Annotated[
        str | None,
        typer.Option(
            help="When, such as `2024-05-01T12:30Z`; by default now. Without a zone it is in that of the setting "
            "`time_zone`."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store a turn: the user's query, the agent's answer, or both. Creates the session if there is none."""
    if not user_query and not agent_response:
        raise InvalidInput("A turn needs --user-query, --agent-response or both.")
    if user_query == agent_response == _STDIN:
        raise InvalidInput("Standard input is one text; give - to --user-query or to --agent-response, not to both.")
    asked, answered = _text(user_query), _text(agent_response)

    async def work(lore: Lore) -> Any:
        at = _time(sent_at, lore.settings.search.zone)
        return await lore.sessions.write_turn(conversation, user, agent, asked, answered, turn_id=turn_id, sent_at=at)

    written = frame_of(ctx).run(work, creates=True)
    if as_json:
        show.as_json(to_jsonable(written))
    else:
        told = say(
            "turn {turn} is in {conversation} ({mode})",
            turn=show.inert(written.turn_id),
            conversation=show.inert(conversation, 80),
            mode=written.mode,
        )
        typer.echo(told)


@app.command()
def checkpoint(
    ctx: typer.Context,
    conversation: Conversation,
    summary: Annotated[
        str | None, typer.Argument(help="The summary; `-` is standard input. Left out, roomlore makes it.")
    ] = None,
    turns: Annotated[
        int | None, typer.Option(help="Turns shown verbatim at least.", show_default="the setting recent_turns")
    ] = None,
    covers_through: Annotated[
        str | None, typer.Option(help="The last message that the summary stands for, as `session context` names it.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="The `checkpoint_token` of the context that was summarised, from `session context --json`."),
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option(
            help="The checkpoint that must be in force, `''` for none; if another one is, nothing is changed."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The checkpoint as JSON; `null` where there was nothing to summarise.")
    ] = False,
) -> None:
    """Replace a part of the history by a summary; without one roomlore makes it."""
    told = _text(summary)
    if told is None and any(given is not None for given in (turns, covers_through, token, expected)):
        raise InvalidInput(
            "--turns, --covers-through, --token and --expected belong to a summary; give a SUMMARY with them, or leave "
            "them out."
        )

    async def work(lore: Lore) -> Checkpoint | None:
        if told is None:
            return await lore.sessions.summarise(conversation, viewer=None)
        return await lore.sessions.checkpoint(conversation, told, turns, covers_through, token, expected, viewer=None)

    made = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(made))
    elif made is None:
        typer.echo(
            say(
                "Nothing was said in {conversation} that no summary covers; nothing is changed.",
                conversation=show.inert(conversation, 80),
            )
        )
    else:
        print_checkpoint(made, show.console())


@app.command()
def reset(ctx: typer.Context, conversation: Conversation, as_json: SessionJson = False) -> None:
    """Reset the conversation: earlier messages are no longer shown. Nothing is deleted."""

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.reset(conversation, viewer=None)

    value = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(value))
        return
    typer.echo(
        say(
            "{conversation} begins anew; what was said before stays stored and is not shown.",
            conversation=show.inert(conversation, 80),
        )
    )


@app.command()
def checkpoints(
    ctx: typer.Context,
    conversation: Conversation,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of checkpoints and resets.")] = 20,
    viewer: ShownTo = None,
    as_json: AsJson = False,
) -> None:
    """List a conversation's checkpoints and resets, newest first."""

    async def work(lore: Lore) -> list[Checkpoint]:
        whom = await viewer_of(lore, viewer)
        return await lore.sessions.checkpoints(conversation, limit=limit, viewer=whom)

    found = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(found))
    elif found:
        print_checkpoints(found, show.console())
    else:
        typer.echo(say("{conversation} has no checkpoint yet.", conversation=show.inert(conversation, 80)))


@app.command()
def state(
    ctx: typer.Context,
    conversation: Conversation,
    patch: Annotated[str, typer.Argument(help="A JSON merge patch; `-` is standard input.")],
    as_json: SessionJson = False,
) -> None:
    """Merge a patch into the data that agents store with a session: objects merge, null removes."""
    wanted = _read_object(_text(patch) or "", "The patch")

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.patch_state(conversation, wanted, viewer=None)

    value = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(value))
    else:
        print_state(value, show.console())


def _tell_session(value: SessionValue, *, as_json: bool) -> None:
    if as_json:
        show.as_json(to_jsonable(value))
    else:
        standing(value, show.console())


def _text(given: str | None) -> str | None:
    """Return the given text, or standard input for `-`, without the line feed at its end."""
    return _read(sys.stdin.buffer.read(), "Standard input").removesuffix("\n") if given == _STDIN else given


def _file(path: str) -> str:
    if path == _STDIN:
        return _text(path) or ""
    try:
        return _read(Path(path).read_bytes(), path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error


def _read(raw: bytes, place: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place} is not UTF-8: byte {error.start} cannot be read. Encode it as UTF-8.") from error


def _read_object(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{place} is not JSON: {error}. Write an object such as {_EXAMPLE}.") from error
    if not isinstance(value, dict):
        raise InvalidInput(f"{place} is {text.strip()[:60]!r}; write an object such as {_EXAMPLE}.")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _time(text: str | None, zone: ZoneInfo) -> datetime | None:
    if text is None:
        return None
    moment = parse_time(text, zone=zone)
    if moment is None:
        raise InvalidInput(f"--sent-at is {text!r}; write a time such as 2024-05-01T12:30Z.")
    return moment
