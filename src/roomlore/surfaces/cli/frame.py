"""What every command shares: the global options, an open roomlore, and errors told in a sentence."""

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
        """The settings with what the command line says on top; from here on the log goes to standard error."""
        settings = Settings(self.config, database_url=self.database, **arguments)
        logs.configure(form=settings.log_format, level=settings.log_level)
        for name in settings.ignored:
            log.warning("no setting of roomlore, ignored", variable=name)
        return settings

    def place(self) -> str:
        """The database for people to read, its password masked."""
        return _place(Settings(self.config, database_url=self.database))

    def run(self, work: Callable[[Lore], Awaitable[T]], **arguments: Any) -> T:
        """Opens roomlore for one piece of work, without indexing behind it."""
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
        """Opens roomlore with the work behind it, on a loop of its own, for somebody who sits at the terminal."""
        with open_sync(settings=self.settings(**arguments), tenant=self.tenant) as lore:
            yield lore


def _place(settings: Settings) -> str:
    return row("database_url", settings.database_url, "").value


class Group(TyperGroup):
    """Commands whose errors are one sentence on standard error and the exit status 1."""

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
