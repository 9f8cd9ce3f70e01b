"""`roomlore demo`: the bundled chat, three questions, and what to do next."""

import asyncio
import tempfile
from pathlib import Path

import typer
from rich.text import Text

from roomlore.core.exports import ImportReport
from roomlore.core.models import Context, StoredMessage
from roomlore.samples import DEMO_QUESTIONS, DEMO_ROOM, demo_path
from roomlore.settings import Settings
from roomlore.surfaces import logs
from roomlore.surfaces.cli import show
from roomlore.wiring import Lore, open_lore

_NEXT = """Next:
  your own chat   roomlore --db chat.db import PATH      Slack, Discord, Telegram, WhatsApp, Lark, IRC, OpenAI, JSONL
  its rooms       roomlore --db chat.db rooms
  a context       roomlore --db chat.db context ROOM MESSAGE --explain
  over HTTP       roomlore --db chat.db serve            then POST /messages and POST /context"""

Asked = tuple[StoredMessage, Context]


def demo() -> None:
    """Import a bundled group chat and show what matters for three of its messages."""
    logs.configure(form="console", level="warning")
    with tempfile.TemporaryDirectory(prefix="roomlore-demo-") as folder:
        report, asked = asyncio.run(_run(Path(folder) / "demo.db"))
    _tell(report, asked)


async def _run(database: Path) -> tuple[ImportReport, list[Asked]]:
    settings = Settings(database_url=f"sqlite:///{database}")
    async with open_lore(settings=settings) as lore:
        report = await lore.imports.run(demo_path())
        return report, [await _ask(lore, message_id) for message_id in DEMO_QUESTIONS]


async def _ask(lore: Lore, message_id: str) -> Asked:
    built = await lore.context.build(DEMO_ROOM, message_id)
    return (await lore.messages.get(DEMO_ROOM, message_id)).message, built


def _tell(report: ImportReport, asked: list[Asked]) -> None:
    out = show.console()
    out.print(f"A group chat of one working day: {report.added} messages in {DEMO_ROOM}, several talks at once.")
    out.print("Three of them are put to the bot. What does it need to know to answer?")
    for trigger, built in asked:
        out.print()
        show.context(built, trigger, out)
    out.print()
    spent = sum(built.tokens for _, built in asked)
    window = sum(built.window_tokens for _, built in asked)
    out.print(Text(f"Together {spent} tokens in the place of {window}: {1 - spent / window:.0%} saved.", "bold green"))
    out.print()
    typer.echo(_NEXT)
