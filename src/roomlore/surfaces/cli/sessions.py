"""`roomlore session`: commands on sessions, and their output."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.errors import InvalidInput
from roomlore.core.sessions.session import Checkpoint, Session, SessionContext, SessionValue, TurnResult, own_state
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.derived import Call, command
from roomlore.surfaces.cli.frame import AsJson, Group, ShownTo, frame_of, viewer_of
from roomlore.surfaces.cli.given import STDIN, json_object, text_of
from roomlore.surfaces.cli.language import App, helped, say
from roomlore.surfaces.jsonable import session_line, to_jsonable
from roomlore.verbs import sessions as verbs

if TYPE_CHECKING:
    from roomlore.verbs.table import Verb
    from roomlore.wiring import Lore

_BAR = 24
_LONG = 20_000
_ID = 80


def sessions(listed: Iterable[Session], out: Console) -> None:
    """Print sessions, one in each line."""
    shape = show.table("conversation", "mode", "user", "changed", "checkpoint", fixed=("mode", "changed"))
    out.print(show.rows(shape, map(_line, listed)))


def _line(session: Session) -> list[str]:
    checkpoint = session.checkpoint_id or "–"
    names = show.inert(session.conversation_id, _ID), str(session.mode), show.inert(session.user_id, _ID) or "–"
    return [*names, show.clock(session.updated_at), checkpoint]


def standing(value: SessionValue, out: Console) -> None:
    """Print a session's state in one line."""
    meta, flow, messages = value.meta, value.flow_context, value.message_context
    parts = [
        messages.mode,
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
    messages = value.message_context
    if messages.summary:
        out.print()
        heading = say("summary (checkpoint {checkpoint})", checkpoint=show.inert(messages.checkpoint_message_id, _ID))
        out.print(Text(heading, "bold"))
        _lines(messages.summary, out)
    if messages.window_messages:
        out.print()
        out.print(Text(say("the last turns"), "bold"))
        for message in messages.window_messages:
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
        line = say(
            "history through message {message}, checkpoint in force: {checkpoint}",
            message=show.inert(built.covers_through, _ID),
            checkpoint=built.checkpoint_id or say("none"),
        )
        out.print(Text(line, "dim"), soft_wrap=True)


def _gauge(built: SessionContext, window: int) -> Text:
    share = built.token_ratio
    full = min(_BAR, round(share * _BAR))
    colour = "yellow" if built.should_checkpoint_summary else "green"
    summary = say(
        "{tokens:,} of {window:,} tokens ({share:.1f} %)",
        tokens=built.estimated_tokens,
        window=window,
        share=share * 100,
    )
    parts = say(", ").join((summary, _turns(built.turns), built.mode))
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


def print_checkpoint(checkpoint: Checkpoint, out: Console) -> None:
    """Print a checkpoint that was just put in force."""
    _lines(checkpoint.summary, out)
    out.print()
    through = show.inert(checkpoint.covers_through or "", _ID)
    line = say(
        "checkpoint {checkpoint} (number {number}, by {by}): {tokens:,} tokens stand for {turns}{covers}",
        checkpoint=checkpoint.checkpoint_id,
        number=checkpoint.number,
        by=show.inert(checkpoint.made_by, _ID),
        tokens=checkpoint.tokens,
        turns=_turns(checkpoint.turns),
        covers=say(", through message {message}", message=through) if through else "",
    )
    out.print(Text(line, "green"), soft_wrap=True)
    if checkpoint.coverage_assumed:
        assumed = say("coverage assumed: tell it with --covers-through or --token, else turns may be lost")
        out.print(Text(assumed, "yellow"), soft_wrap=True)


def print_checkpoints(checkpoints: Iterable[Checkpoint], out: Console) -> None:
    """Print checkpoints and resets, one in each line."""
    columns = ("number", "made", "by", "turns", "tokens", "summary")
    shape = show.table(*columns, right=("number", "turns", "tokens"), fixed=("made",))
    out.print(show.rows(shape, map(_mark, checkpoints)))


def _mark(checkpoint: Checkpoint) -> list[str]:
    made_at = show.clock(checkpoint.created_at)
    if checkpoint.kind == "reset":
        return [str(checkpoint.number), made_at, "–", "–", "–", say("(reset: begun anew)")]
    numbers = [str(checkpoint.turns), f"{checkpoint.tokens:,}"]
    return [
        str(checkpoint.number),
        made_at,
        show.inert(checkpoint.made_by, _ID),
        *numbers,
        show.inert(checkpoint.summary, 160),
    ]


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


app = App(
    cls=Group, no_args_is_help=True, help="Long conversations inside the model's window: turns, summaries, state."
)

_PAGE = 500
_KEPT = verbs.CONTEXT.stored
_NAMES = {
    "conversation_id": "conversation",
    "user_id": "user",
    "enterprise_id": "enterprise",
    "patient_id": "patient",
    "session": "from",
    "agent_code": "agent",
    "token_threshold_ratio": "ratio",
    "recent_turns": "turns",
    "model_context_window": "window",
    "checkpoint_token": "token",
    "expected_checkpoint": "expected",
}


def _command(name: str, verb: Verb, tells: Callable[[Any, Call], None], **options: Any) -> None:
    """Add a command. `tells`: prints the answer for people."""

    async def shows(_: Lore, answer: Any, call: Call) -> None:
        tells(answer, call)

    app.command(name)(command(verb, shows, names=_NAMES, bounded=False, **options))


def _conversation(call: Call) -> str:
    return show.inert(call.asked["conversation_id"], _ID)


def _written(turn: TurnResult, call: Call) -> None:
    sentence, name = "turn {turn} is in {conversation} ({mode})", show.inert(turn.turn_id)
    typer.echo(say(sentence, turn=name, conversation=_conversation(call), mode=turn.mode))


def _summarised(made: Checkpoint | None, call: Call) -> None:
    if made is None:
        sentence = "Nothing was said in {conversation} that no summary covers; nothing is changed."
        typer.echo(say(sentence, conversation=_conversation(call)))
    else:
        print_checkpoint(made, show.console())


def _begun_anew(_: SessionValue, call: Call) -> None:
    sentence = "{conversation} begins anew; what was said before stays stored and is not shown."
    typer.echo(say(sentence, conversation=_conversation(call)))


def _listed(checkpoints: list[Checkpoint], call: Call) -> None:
    if checkpoints:
        print_checkpoints(checkpoints, show.console())
    else:
        typer.echo(say("{conversation} has no checkpoint yet.", conversation=_conversation(call)))


async def _context(lore: Lore, built: SessionContext, call: Call) -> None:
    window = call.gives.get("model_context_window") or lore.settings.sessions.model_context_window
    print_context(built, window, show.console(), covered=await _is_covered(lore, built))


async def _is_covered(lore: Lore, built: SessionContext) -> bool:
    """Return True if the checkpoint in force covers everything, so that another one would change nothing."""
    if not built.checkpoint_id:
        return False
    latest = await lore.sessions.checkpoints(built.conversation_id, limit=1, viewer=None)
    return [(checkpoint.checkpoint_id, checkpoint.covers_through) for checkpoint in latest] == [
        (built.checkpoint_id, built.covers_through)
    ]


def _check_turn(values: Mapping[str, Any]) -> None:
    query, answer = values["user_query"], values["agent_response"]
    if not query and not answer:
        raise InvalidInput("turn_options_missing")
    if query == answer == STDIN:
        raise InvalidInput("standard_input_twice")


def _check_summary(values: Mapping[str, Any]) -> None:
    about = (values[name] for name in ("turns", "covers_through", "token", "expected"))
    if values["summary"] is None and any(given is not None for given in about):
        raise InvalidInput("summary_options_alone")


_command("create", verbs.CREATE, lambda value, _: standing(value, show.console()), creates=True)


@app.command("list", help=helped(verbs.LIST.help))
def list_(ctx: typer.Context, viewer: ShownTo = None, as_json: AsJson = False) -> None:
    async def work(lore: Lore) -> list[Session]:
        sessions_read, whom = list[Session](), await viewer_of(lore, viewer)
        while page := await lore.sessions.page(
            after=sessions_read[-1].conversation_id if sessions_read else None, limit=_PAGE, viewer=whom
        ):
            sessions_read += page
        return sessions_read

    sessions_read = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(map(session_line, sessions_read)))
    elif sessions_read:
        sessions(sessions_read, show.console())
    else:
        database = show.inert(frame_of(ctx).place())
        typer.echo(
            say("There are no sessions in {place}; `roomlore session turn CONVERSATION` begins one.", place=database)
        )


_command("show", verbs.GET, lambda value, _: whole(value, show.console()), for_viewer=True)
app.command("context")(
    command(verbs.CONTEXT, _context, names=_NAMES, without=_KEPT, piped=("query",), bounded=False, for_viewer=True)
)
_command("turn", verbs.TURN, _written, piped=("user_query", "agent_response"), checks=_check_turn, creates=True)
_command("checkpoint", verbs.CHECKPOINT, _summarised, placed=("summary",), piped=("summary",), checks=_check_summary)
_command("reset", verbs.RESET, _begun_anew)
_command("checkpoints", verbs.CHECKPOINTS, _listed, without=("before",), for_viewer=True)


@app.command()
def state(
    ctx: typer.Context,
    conversation: Annotated[str, typer.Argument(help=helped(verbs.GET["conversation_id"].help))],
    patch: Annotated[str, typer.Argument(help="A JSON merge patch; `-` is standard input.")],
    as_json: AsJson = False,
) -> None:
    """Merge a patch into the data that agents store with a session: objects merge, null removes."""
    wanted = json_object(text_of(patch), "The patch")

    async def work(lore: Lore) -> SessionValue:
        return await lore.sessions.patch_state(conversation, wanted, viewer=None)

    value = frame_of(ctx).run(work)
    show.as_json(to_jsonable(value)) if as_json else print_state(value, show.console())
