"""`roomlore new`: programs to begin with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from roomlore import samples
from roomlore.core.errors import Conflict
from roomlore.surfaces.cli.language import say

app = typer.Typer(no_args_is_help=True, help="Write a program to begin with.")


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


@app.command()
def bot(
    platform: Annotated[Platform, typer.Option(help="The chat platform.", show_default=False)],
    folder: Annotated[Path, typer.Argument(help="Where to write it; made if it is not there.")] = Path(),
) -> None:
    """Write a small bot for a chat platform, and `roomlore.yaml` with its model. No file is overwritten."""
    program, settings = folder / f"{platform}_bot.py", folder / "roomlore.yaml"
    if program.exists():
        raise Conflict(f"{program} is there already; remove it, or name another folder.")
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
