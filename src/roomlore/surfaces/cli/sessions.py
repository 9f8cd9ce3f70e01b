"""`roomlore session`: long conversations inside the model's window."""

import json
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

import typer

from roomlore.core.errors import InvalidInput
from roomlore.core.records import parse_time
from roomlore.core.sessions.models import Checkpoint, Session, SessionContext
from roomlore.core.sessions.value import SessionValue
from roomlore.surfaces.cli import show, show_sessions
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.plain import plain, session_line
from roomlore.wiring import Lore

T = TypeVar("T")

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
    """Begin a session. One that is there stays as it is; ids that it lacks are filled in."""
    brought = None if session is None else _read_object(_file(session), f"--from {session}")

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.create_session(
            conversation, user, enterprise_id=enterprise, patient_id=patient, session=brought
        )

    _tell_session(_run(ctx, work), as_json=as_json)


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the sessions."""
    found = _run(ctx, _all_sessions)
    if as_json:
        show.as_json([session_line(one) for one in found])
    elif found:
        show_sessions.sessions(found, show.console())
    else:
        database = show.inert(frame_of(ctx).place())
        typer.echo(f"There are no sessions in {database}; `roomlore session turn CONVERSATION` begins one.")


async def _all_sessions(lore: Lore) -> list[Session]:
    found: list[Session] = []
    while page := await lore.sessions.page(after=found[-1].conversation_id if found else None, limit=_PAGE):
        found += page
    return found


@app.command("show")
def show_(
    ctx: typer.Context,
    conversation: Conversation,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every field that was ever written.")] = False,
) -> None:
    """Show a session: who, how it stands, the last turns, and what agents keep with it."""

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.get_session(conversation)

    value = _run(ctx, work)
    if as_json:
        show.as_json(plain(value))
    else:
        show_sessions.whole(value, show.console())


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
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with everything the library gives.")] = False,
) -> None:
    """Show what a model would be given: the summary, the turns after it, and how full its window is."""
    asked = _text(query) or ""

    async def work(lore: Lore) -> tuple[SessionContext, int, bool]:
        built = await lore.sessions.query_context(conversation, asked, ratio, turns, window)
        return built, window or lore.settings.model_context_window, await _is_covered(lore, built)

    built, size, covered = _run(ctx, work)
    if as_json:
        show.as_json(plain(built))
    else:
        show_sessions.context(built, size, show.console(), covered=covered)


async def _is_covered(lore: Lore, built: SessionContext) -> bool:
    """Whether the checkpoint in force stands for everything, so that another one would change nothing."""
    if not built.checkpoint_id:
        return False
    latest = await lore.sessions.checkpoints(built.conversation_id, limit=1)
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
    """Store a turn: the user's query, the agent's answer, or both. Makes the session where there is none."""
    if not user_query and not agent_response:
        raise InvalidInput("A turn needs --user-query, --agent-response or both.")
    if user_query == agent_response == _STDIN:
        raise InvalidInput("Standard input is one text; give - to --user-query or to --agent-response, not to both.")
    asked, answered = _text(user_query), _text(agent_response)

    async def work(lore: Lore) -> Any:
        at = _time(sent_at, ZoneInfo(lore.settings.time_zone))
        return await lore.sessions.write_turn(conversation, user, agent, asked, answered, turn_id=turn_id, sent_at=at)

    written = _run(ctx, work)
    if as_json:
        show.as_json(plain(written))
    else:
        typer.echo(f"turn {show.inert(written.turn_id)} is in {show.inert(conversation, 80)} ({written.mode})")


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
    """Put a summary in the place of what it stands for; without one roomlore makes it."""
    told = _text(summary)
    if told is None and any(given is not None for given in (turns, covers_through, expected)):
        raise InvalidInput(
            "--turns, --covers-through and --expected belong to a summary; give a SUMMARY with them, or leave them out."
        )

    async def work(lore: Lore) -> Checkpoint | None:
        if told is None:
            return await lore.sessions.summarise(conversation)
        return await lore.sessions.checkpoint(conversation, told, turns, covers_through, expected)

    made = _run(ctx, work)
    if as_json:
        show.as_json(plain(made))
    elif made is None:
        typer.echo(f"Nothing was said in {show.inert(conversation, 80)} that no summary covers; nothing is changed.")
    else:
        show_sessions.made(made, show.console())


@app.command()
def reset(ctx: typer.Context, conversation: Conversation, as_json: SessionJson = False) -> None:
    """Begin the conversation anew: what was said is not shown any more. Nothing is deleted."""

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.reset(conversation)

    value = _run(ctx, work)
    if as_json:
        show.as_json(plain(value))
        return
    typer.echo(f"{show.inert(conversation, 80)} begins anew; what was said before stays stored and is not shown.")


@app.command()
def checkpoints(
    ctx: typer.Context,
    conversation: Conversation,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most checkpoints and resets.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List a conversation's checkpoints and resets, newest first."""

    async def work(lore: Lore) -> list[Checkpoint]:
        return await lore.sessions.checkpoints(conversation, limit=limit)

    found = _run(ctx, work)
    if as_json:
        show.as_json(plain(found))
    elif found:
        show_sessions.checkpoints(found, show.console())
    else:
        typer.echo(f"{show.inert(conversation, 80)} has no checkpoint yet.")


@app.command()
def state(
    ctx: typer.Context,
    conversation: Conversation,
    patch: Annotated[str, typer.Argument(help="A JSON merge patch; `-` is standard input.")],
    as_json: SessionJson = False,
) -> None:
    """Merge a patch into what agents keep with a session: objects merge, null removes."""
    wanted = _read_object(_text(patch) or "", "The patch")

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.patch_state(conversation, wanted)

    value = _run(ctx, work)
    if as_json:
        show.as_json(plain(value))
    else:
        show_sessions.state(value, show.console())


def _run(ctx: typer.Context, work: Callable[[Lore], Awaitable[T]]) -> T:
    return frame_of(ctx).run(work)


def _tell_session(value: SessionValue, *, as_json: bool) -> None:
    if as_json:
        show.as_json(plain(value))
    else:
        show_sessions.standing(value, show.console())


def _text(given: str | None) -> str | None:
    """What was given, or standard input in the place of `-`, without the line feed it ends with."""
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
