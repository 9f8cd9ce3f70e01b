"""First steps: `roomlore demo`, a bundled chat with three questions to it, two searches and what to do next; and
`roomlore new`, programs to begin with."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from roomlore import samples
from roomlore.core.errors import Conflict
from roomlore.core.evaluation import WINDOW_MESSAGES
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.samples import DEMO_QUESTIONS, DEMO_ROOM, DemoQuestion, demo_path
from roomlore.surfaces.cli import data, searching, show
from roomlore.surfaces.cli.frame import Frame, frame_of
from roomlore.surfaces.cli.language import App, say

if TYPE_CHECKING:
    from roomlore.core.context import Context
    from roomlore.core.evaluation import RoomScore
    from roomlore.core.search.hits import SearchAnswer
    from roomlore.wiring import Lore

_SEARCHES = ("what did Anna say about the BOM this week", "这周谁说先不发公告")
"""The chat is of one working day in Shanghai, which is in one week in every time zone."""
_HITS = 2
_PAUSE = timedelta(hours=1)
_QUOTED = 60
"""The most characters of a message that is named."""
_TRY = "try.db"

_ASIDE = 42
"""The column at which it is said what a command is for."""


@dataclass(frozen=True, slots=True)
class _Figures:
    """Totals over the contexts of all messages of users. `shown`: messages in all contexts together; `window`: how many
    the last messages are that a context is compared with."""

    asked: int
    shown: int
    tokens: int
    window: int
    window_tokens: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its context. `missing`: what an answer needs and the context does not hold. Only where nothing is
    missing a context is shown; else it is told what is. `in_window`: the last messages lack nothing either."""

    message: StoredMessage
    context: Context
    missing: list[StoredMessage]
    in_window: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    """`score`: of the same contexts as `roomlore eval` measures them."""

    messages: int
    asked: list[_Asked]
    figures: _Figures
    score: RoomScore
    found: list[SearchAnswer]
    zone: ZoneInfo


def demo(ctx: typer.Context) -> None:
    """See it work on a bundled group chat. It shows what matters for three questions after a pause, and searches twice.

    The chat is deleted afterwards, unless --db names a database to keep it in.
    """
    frame = frame_of(ctx)
    with _kept_or_not(frame) as own:
        shown = own.run(_run, creates=True)
    out = show.console()
    _tell(shown, out)
    _tell_next(frame.database)


@contextmanager
def _kept_or_not(frame: Frame) -> Iterator[Frame]:
    if frame.database is not None:
        yield frame
        return
    with tempfile.TemporaryDirectory(prefix="roomlore-demo-") as folder:
        yield replace(frame, database=f"sqlite:///{Path(folder) / 'demo.db'}")


async def _run(lore: Lore) -> _Shown:
    await lore.imports.run(demo_path())
    await data.follow(lore.index.drain())
    chat = await lore.messages.page(DEMO_ROOM, limit=200, viewer=None)
    return _Shown(
        messages=len(chat),
        asked=[await _ask(lore, question, chat) for question in DEMO_QUESTIONS],
        figures=await _figures(lore, chat),
        score=(await lore.evaluation.run([DEMO_ROOM])).rooms[0],
        found=[
            await lore.messages.search(DEMO_ROOM, text, limit=_HITS, asked_at="newest", viewer=None)
            for text in _SEARCHES
        ],
        zone=lore.settings.search.zone,
    )


async def _ask(lore: Lore, question: DemoQuestion, chat: Sequence[StoredMessage]) -> _Asked:
    """Build the context of a question that is asked an hour after the chat, and delete the question again."""
    message_id = f"q{(await lore.rooms.get(DEMO_ROOM)).next_arrival}"  # the id of a deleted message stays taken
    question_message = Message(
        id=message_id,
        room_id=DEMO_ROOM,
        sender_id=question.sender_id,
        sender_name=question.sender_name,
        text=question.text,
        mentions=question.mentions,
        sent_at=chat[-1].at + _PAUSE,
    )
    await lore.messages.add(question_message)
    try:
        built = await lore.context.build(DEMO_ROOM, message_id, viewer=None)
        message = (await lore.messages.get(DEMO_ROOM, message_id, viewer=None)).message
    finally:
        await lore.messages.delete(DEMO_ROOM, message_id)
    held = {in_context.message.id for in_context in built.messages}
    window = {chat_message.id for chat_message in chat[-built.window_messages :]}
    missing = [
        chat_message for chat_message in chat if chat_message.id in question.needed and chat_message.id not in held
    ]
    return _Asked(message, built, missing, in_window=window.issuperset(question.needed))


async def _figures(lore: Lore, chat: Sequence[StoredMessage]) -> _Figures:
    """Measure the strategy in force on every message of a user. Nothing is recorded."""
    written = [m.id for m in chat if m.role is Role.USER]
    compared = [await lore.context.compare(DEMO_ROOM, message_id, viewer=None) for message_id in written]
    built = [next(explanation for explanation in explanations if explanation.in_force) for explanations in compared]
    return _Figures(
        asked=len(built),
        shown=sum(len(explanation.taken) for explanation in built),
        tokens=sum(explanation.tokens for explanation in built),
        window=max(explanation.window_messages for explanation in built),
        window_tokens=sum(explanation.window_tokens for explanation in built),
    )


def _tell(shown: _Shown, out: Console) -> None:
    chat = say(
        "{room}: {count} messages of one working day, several talks at once.", room=DEMO_ROOM, count=shown.messages
    )
    asking = say(
        "Each of {count} questions comes an hour after the last message. What does one need to know to answer it?",
        count=len(shown.asked),
    )
    score = say("The longer the bar, the more likely a message belongs with the question; “recent” only fills up.")
    out.print(f"{chat}\n{asking}\n{score}")
    for answered in [complete for complete in shown.asked if not complete.missing]:
        out.print()
        show.context(answered.context, answered.message, out, numbers=False)
    if lacking := list(_lacking(shown.asked)):
        out.print()
        out.print(Text("\n".join(lacking)))
    out.print()
    out.print(say("Contexts compared with the plain last messages, with the settings that `roomlore context` uses:"))
    for figure in _figure_lines(shown):
        out.print(Padding(Text(figure, "bold green"), (0, 0, 0, 2), expand=False))
    for answer in shown.found:
        out.print()
        out.print(Text(say("Search: {query}", query=answer.query), "bold"))
        searching.found_in_lines(answer, out, shown.zone)


def _lacking(questions: Sequence[_Asked]) -> Iterator[str]:
    for question in questions:
        if question.missing:
            missing = "; ".join(f"{message.id} ({_quoted(message)})" for message in question.missing)
            yield say(
                "Not right: the context of “{asked}” lacks {missing}", asked=_quoted(question.message), missing=missing
            )


def _quoted(message: StoredMessage) -> str:
    return f"{show.name(message)}: {show.text_of(message, _QUOTED)}"


def _figure_lines(shown: _Shown) -> Iterator[str]:
    questions, figures, score = shown.asked, shown.figures, shown.score
    yield say(
        "An hour later: {held} of {count} contexts hold all that the answer needs. The last {last} messages: {window}.",
        held=sum(not question.missing for question in questions),
        count=len(questions),
        last=figures.window,
        window=sum(question.in_window for question in questions),
    )
    yield say(
        "During the chat: {replies} messages are platform replies, which name the message they answer. With the name "
        "hidden, {held} of {replies} contexts hold that message. The last {last} messages: {window}.",
        replies=score.found.cases,
        held=score.found.hits,
        last=WINDOW_MESSAGES,
        window=score.window.hits,
    )
    yield say(
        "Size, for all {count} messages of people: {mean:.1f} messages in a context on average, {tokens:,} tokens in "
        "all contexts. The last {last} messages: {window:,} tokens ({saved}).",
        count=figures.asked,
        mean=figures.shown / figures.asked,
        tokens=figures.tokens,
        last=figures.window,
        window=figures.window_tokens,
        saved=show.verdict(figures.tokens, figures.window_tokens),
    )


def _tell_next(database: str | None) -> None:
    program, kept = _program(), shlex.quote(database or _TRY)
    lines = [
        (f"--db {kept} serve", say("open http://127.0.0.1:8765")),
        (f"--db {kept} ask {DEMO_ROOM} {say('when is the web deploy')}", ""),
        (f"--db chat.db import {say('PATH')}", say("Slack, Telegram, WhatsApp, ...")),
        (f"--db chat.db context {say('ROOM')} --explain", say("in your own room")),
    ]
    if not database:
        lines.insert(0, (f"--db {kept} demo", say("keep this chat")))
    typer.echo(f"\n{say('Type next:')}")
    for typed, aside in lines:
        command = f"  {program} {typed}"
        typer.echo(f"{show.padded(command, _ASIDE)}  # {aside}" if aside else command)


def _program() -> str:
    """Return the command to type: in a clone the program may not be on the PATH."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "roomlore" and not shutil.which("roomlore") else "roomlore"


new_app = App(no_args_is_help=True, help="Write a program to begin with.")


class Platform(StrEnum):
    DISCORD = "discord"
    LARK = "lark"
    SLACK = "slack"
    TELEGRAM = "telegram"
    WECOM = "wecom"


@dataclass(frozen=True, slots=True)
class _Needs:
    """The requirements of a bot. `variables`: of the environment, beside the key of the model."""

    extras: str
    packages: str
    variables: tuple[str, ...]


_NEEDS = {
    Platform.DISCORD: _Needs("openai", "discord.py", ("DISCORD_TOKEN",)),
    Platform.LARK: _Needs("server,openai", "httpx", ("LARK_APP_ID", "LARK_APP_SECRET", "LARK_VERIFICATION_TOKEN")),
    Platform.SLACK: _Needs("openai", "aiohttp", ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")),
    Platform.TELEGRAM: _Needs("openai", "httpx", ("TELEGRAM_TOKEN",)),
    Platform.WECOM: _Needs(
        "server,openai", "httpx cryptography", ("WECOM_CORP_ID", "WECOM_SECRET", "WECOM_TOKEN", "WECOM_AES_KEY")
    ),
}


@new_app.command()
def bot(
    platform: Annotated[Platform, typer.Option(help="The chat platform.", show_default=False)],
    folder: Annotated[Path, typer.Argument(help="Where to write it; made if it is not there.")] = Path(),
) -> None:
    """Write a small bot for a chat platform, and `roomlore.yaml` with its model. No file is overwritten."""
    program, settings = folder / f"{platform}_bot.py", folder / "roomlore.yaml"
    if program.exists():
        raise Conflict("path_exists", path=program)
    folder.mkdir(parents=True, exist_ok=True)
    _write(program)
    kept = settings.exists()
    if not kept:
        _write(settings)
    needs = _NEEDS[platform]
    begin = [] if folder == Path() else [f"cd {folder}"]
    written = (
        "{program} is written; {settings} was there and stays." if kept else "{program} and {settings} are written."
    )
    lines = [
        say(written, program=program, settings=settings),
        say(
            "The commands of roomlore in this folder use the database that {settings} names. Next:",
            settings=settings.name,
        ),
        *begin,
        f"pip install 'roomlore[{needs.extras}]' {needs.packages}",
        f"export OPENAI_API_KEY=... {' '.join(f'{name}=...' for name in needs.variables)}",
        f"python {program.name}",
    ]
    typer.echo("\n  ".join(lines))


def _write(path: Path) -> None:
    text = (files(samples) / "bots" / f"{path.name}.txt").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
