"""The frame of every command: the global options, an open roomlore, and errors in one sentence."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
import typer
from typer.core import TyperGroup

from roomlore.core.errors import NotFound, RoomloreError
from roomlore.core.models import DEFAULT_TENANT
from roomlore.settings import Settings, row
from roomlore.surfaces import logs
from roomlore.sync import SyncLore, open_sync
from roomlore.wiring import Lore, open_lore

T = TypeVar("T")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Frame:
    """The global options."""

    config: str | None = None
    database: str | None = None
    tenant: str = DEFAULT_TENANT

    def settings(self, **arguments: Any) -> Settings:
        """Return the settings, with the command line's arguments on top. The log goes to standard error from here
        on."""
        settings = Settings(self.config, database_url=self.database, **arguments)
        logs.configure(form=settings.server.log_format, level=settings.server.log_level)
        for name in settings.ignored:
            log.warning("no setting of roomlore, ignored", variable=name)
        return settings

    def place(self) -> str:
        """Return the database as text for people, with its password masked."""
        return _place(Settings(self.config, database_url=self.database))

    def run(self, work: Callable[[Lore], Awaitable[T]], **arguments: Any) -> T:
        """Open roomlore for one piece of work, without background indexing."""
        settings = self.settings(**arguments)

        async def inside() -> T:
            async with open_lore(settings=settings, tenant=self.tenant, background=False) as lore:
                try:
                    return await work(lore)
                except NotFound as error:
                    raise NotFound(f"{error} Looked for in {_place(settings)}.") from error

        return asyncio.run(inside())

    @contextmanager
    def opened(self, **arguments: Any) -> Iterator[SyncLore]:
        """Open roomlore with its background work, on its own event loop, for an interactive command."""
        with open_sync(settings=self.settings(**arguments), tenant=self.tenant) as lore:
            yield lore


def _place(settings: Settings) -> str:
    return row("database_url", settings.database.database_url, "").value


class Group(TyperGroup):
    """Commands that print an error as one sentence on standard error and exit with 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RoomloreError as error:
            sys.stderr.write(f"roomlore: {error}\n")
            raise typer.Exit(1) from error


def frame_of(ctx: typer.Context) -> Frame:
    frame = ctx.obj
    assert isinstance(frame, Frame)
    return frame
