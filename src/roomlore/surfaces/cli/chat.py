"""`roomlore chat`: talk with a model that remembers the room."""

from __future__ import annotations

import re
import sys
import uuid
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.errors import InvalidInput, RoomloreError
from roomlore.core.models import Message
from roomlore.core.replies.reply import Reply, ReplyEvent, ReplyStarted, ReplyText
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.cli.given import STDIN, text_of
from roomlore.surfaces.cli.language import causes, say, translated
from roomlore.surfaces.jsonable import named

if TYPE_CHECKING:
    from roomlore.services.replies import ReplyArguments
    from roomlore.sync import SyncLore

_STOPPED = 130
_COMMAND = re.compile(r"/[a-z]{1,20}")
_HELP = "/context shows what mattered for your last message, /quit or Ctrl-D ends, Ctrl-C stops an answer."


def chat(
    ctx: typer.Context,
    question: Annotated[
        list[str] | None,
        typer.Argument(help="Answered once, then the program ends; `-` is standard input. Left out, you talk."),
    ] = None,
    room: Annotated[str, typer.Option(help="The room's id.")] = "terminal",
    sender: Annotated[str, typer.Option("--as", help="Who you are: a sender id.", metavar="SENDER")] = "you",
    name: Annotated[str, typer.Option(help="Your name.")] = "",
    agent: Annotated[str, typer.Option(help="Who answers: a sender id.")] = "assistant",
    model: Annotated[
        str | None,
        typer.Option(
            help="Which model answers, one of those that `roomlore models` lists.",
            show_default="the setting reply_model, or the only one there is",
        ),
    ] = None,
    system: Annotated[str | None, typer.Option(help="What the model is told to be.")] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Every event of an answer as one line of JSON: `event` is its name, beside its fields."
        ),
    ] = False,
) -> None:
    """Talk with a model that is shown what matters of the room. Both sides are stored there."""
    typed_question = _question_of(question)
    with frame_of(ctx).opened() as lore:
        talk = _Talk(
            lore=lore,
            room=room,
            sender=sender,
            name=name,
            arguments={"agent_id": agent, "model_id": model, "system_prompt": system},
            as_json=as_json,
        )
        if typed_question is None:
            talk.go_on()
        elif not talk.answer(typed_question):
            raise typer.Exit(_STOPPED)


def _question_of(question: list[str] | None) -> str | None:
    """Return the one question; None for a talk at a terminal."""
    if question and question != [STDIN]:
        text = " ".join(question)
    elif not question and sys.stdin.isatty():
        return None
    else:
        text = text_of(STDIN)
    if not text.strip():
        raise InvalidInput("question_missing")
    return text


@dataclass(slots=True, kw_only=True)
class _Talk:
    """A person's talk with the model in a room."""

    lore: SyncLore
    room: str
    sender: str
    name: str
    arguments: ReplyArguments
    as_json: bool
    out: Console = field(default_factory=show.console)
    last: str | None = None

    def go_on(self) -> None:
        """Read lines from the terminal and answer them until the person ends the talk."""
        _edit_lines()
        self.out.print(Text(f"{say('Room {room}.', room=show.inert(self.room, 80))} {say(_HELP)}", "dim"))
        while (line := self._line()) is not None:
            with suppress(KeyboardInterrupt):
                self._obey(line)

    def answer(self, text: str) -> bool:
        """Answer the text. Return True if the answer is complete."""
        message = Message(
            id=uuid.uuid4().hex,
            room_id=self.room,
            sender_id=self.sender,
            sender_name=self.name,
            text=text,
        )
        self.last = message.id
        shown = _Shown(self.out, as_json=self.as_json)
        try:
            with closing(self.lore.replies.stream(message, **self.arguments)) as events:
                for event in events:
                    shown.take(event)
        except KeyboardInterrupt:
            shown.stopped()
            return False
        finally:
            shown.close()
        return True

    def _line(self) -> str | None:
        """Return the typed line; None at the end. Ctrl-C discards what was typed so far."""
        while True:
            try:
                line = input(f"{show.inert(self.name or self.sender, 24)}> ").strip()
            except EOFError:
                self.out.print()
                return None
            except KeyboardInterrupt:
                self.out.print()
                continue
            if line:
                return None if line == "/quit" else line

    def _obey(self, line: str) -> None:
        if _COMMAND.fullmatch(line) and line != "/context":
            unknown = say("There is no {command}.", command=line)
            self.out.print(say(_HELP) if line == "/help" else f"{unknown} {say(_HELP)}")
            return
        try:
            if line == "/context":
                self._context()
            else:
                self.answer(line)
        except RoomloreError as error:
            sys.stderr.write(f"roomlore: {translated(error)}\n")

    def _context(self) -> None:
        built = self.lore.context.build(self.room, self.last, viewer=None)
        show.context(built, self.lore.messages.get(self.room, built.message_id, viewer=None).message, self.out)


class _Shown:
    """Prints an answer as it arrives: its text alone, or every event as JSON."""

    def __init__(self, out: Console, *, as_json: bool) -> None:
        self._out = out
        self._as_json = as_json
        self._started: ReplyStarted | None = None
        self._open = False
        self._waiting = out.status("…", spinner="dots")
        if not as_json:
            self._waiting.start()

    def take(self, event: ReplyEvent) -> None:
        if self._as_json:
            name, content = named(event)
            show.as_json({"event": name, **content}, indent=None)
        elif isinstance(event, ReplyStarted):
            self._started = event
        elif isinstance(event, ReplyText):
            self._write(event.text)
        elif isinstance(event, Reply):
            self._end(event)

    def stopped(self) -> None:
        if not self._as_json:
            self._write(f" {say('(stopped)')}")

    def close(self) -> None:
        """Move to the beginning of a line."""
        self._waiting.stop()
        if self._open:
            self._out.print()
            self._open = False

    def _write(self, text: str) -> None:
        self._waiting.stop()
        self._open = True
        self._out.print(Text(show.inert_piece(text)), end="", soft_wrap=True)

    def _end(self, reply: Reply) -> None:
        self.close()
        if self._started is not None and self._out.is_terminal:
            self._out.print(Text(_footer(self._started, reply), "dim"))


def _footer(started: ReplyStarted, reply: Reply) -> str:
    remarks = [
        show.inert(started.model_id, 40),
        show.inert(reply.provider, 40),
        say("{count} of the room's messages shown", count=started.messages),
        say("{asked} + {answered} tokens", asked=reply.usage.input_tokens, answered=reply.usage.output_tokens),
    ]
    if started.truncated:
        remarks.append(say("cut to the model's window"))
    if started.degraded:
        remarks.append(say("degraded: {why}", why=causes(show.inert(started.degraded, 80))))
    return " · ".join(filter(None, remarks))


def _edit_lines() -> None:
    """Enable arrow keys and a history if the terminal's library for them is installed."""
    with suppress(ImportError):
        import readline  # noqa: F401
