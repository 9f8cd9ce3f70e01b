"""`roomlore backup` and `restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.cli.language import say


def backup(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A new folder, which appears only once the backup is whole.")],
) -> None:
    """Back up the database of all tenants, durable work and archives, while others go on writing."""
    from roomlore.wiring import write_backup

    written = write_backup(frame_of(ctx).settings(), folder)
    typer.echo(say("The backup is in {folder}.", folder=written))


def restore(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder that `backup` wrote.")],
) -> None:
    """Fill a new database from a backup; nothing that is there is overwritten."""
    from roomlore.wiring import restore_backup

    restore_backup(frame_of(ctx).settings(), folder)
    typer.echo(say("The backup is restored. Check it with `roomlore verify`, for each tenant."))
