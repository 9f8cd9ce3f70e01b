"""`roomlore demo`: the bundled chat, three questions to the bot, two searches, and what to do next."""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.context import Context
from roomlore.core.models import StoredMessage
from roomlore.core.search import SearchAnswer
from roomlore.samples import DEMO_QUESTIONS, DEMO_ROOM, demo_path
from roomlore.surfaces.cli import indexing, search, show
from roomlore.surfaces.cli.frame import Frame, frame_of
from roomlore.wiring import Lore

_SEARCHES = ("what did Anna say about the BOM this morning", "今天上午谁说先不发公告")
_HITS = 3
_TRY = "try.db"
_ZONE = ZoneInfo("Asia/Shanghai")

_NEXT = """
Next:
  this chat       {keep}{program} --db {kept} search {room} who paid for lunch
  in a browser    {keep}{program} --db {kept} serve     then open http://127.0.0.1:8765
  your own chat   {program} --db chat.db import PATH    Slack, Discord, Telegram, WhatsApp, Lark, IRC, OpenAI
  its rooms       {program} --db chat.db rooms
  a search        {program} --db chat.db search ROOM what you want to know
  a context       {program} --db chat.db context ROOM --explain"""


@dataclass(frozen=True, slots=True)
class _Shown:
    messages: int
    asked: list[tuple[StoredMessage, Context]]
    found: list[SearchAnswer]


def demo(ctx: typer.Context) -> None:
    """Import a bundled group chat, show what matters for three of its messages, and search it twice.

    It leaves nothing behind, unless --db says where to keep the chat.
    """
    frame = frame_of(ctx)
    with _kept_or_not(frame) as own:
        shown = own.run(_run, time_zone=_ZONE.key)
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
    await indexing.follow(lore.index.drain())
    return _Shown(
        messages=(await lore.rooms.get(DEMO_ROOM)).messages,
        asked=[await _ask(lore, message_id) for message_id in DEMO_QUESTIONS],
        found=[await lore.messages.search(DEMO_ROOM, text, limit=_HITS, asked_at="newest") for text in _SEARCHES],
    )


async def _ask(lore: Lore, message_id: str) -> tuple[StoredMessage, Context]:
    built = await lore.context.build(DEMO_ROOM, message_id)
    return (await lore.messages.get(DEMO_ROOM, message_id)).message, built


def _tell(shown: _Shown, out: Console) -> None:
    out.print(f"A group chat of one working day: {shown.messages} messages in {DEMO_ROOM}, several talks at once.")
    out.print("Three of them are put to the bot. What does it need to know to answer?")
    for trigger, built in shown.asked:
        out.print()
        show.context(built, trigger, out)
    out.print()
    spent = sum(built.tokens for _, built in shown.asked)
    window = sum(built.window_tokens for _, built in shown.asked)
    out.print(Text(f"Together {spent} tokens in the place of {window}: {1 - spent / window:.0%} saved.", "bold green"))
    for answer in shown.found:
        out.print()
        out.print(Text(f"Search: {answer.query}", "bold"))
        search.found(answer, out, _ZONE)


def _tell_next(database: str | None) -> None:
    program, kept = _program(), shlex.quote(database or _TRY)
    keep = "" if database else f"{program} --db {kept} demo && "
    typer.echo(_NEXT.format(program=program, kept=kept, keep=keep, room=DEMO_ROOM))


def _program() -> str:
    """What to type: from a clone the program may not be on the PATH."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "roomlore" and not shutil.which("roomlore") else "roomlore"
