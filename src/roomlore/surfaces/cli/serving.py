"""`roomlore serve`, `worker` and `mcp`: processes that run until they are stopped."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roomlore.core.audience import check_viewer
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import check_scope
from roomlore.surfaces.cli.frame import Frame, frame_of
from roomlore.surfaces.cli.language import say

if TYPE_CHECKING:
    from roomlore.settings import Settings
    from roomlore.wiring import Lore


def serve(
    ctx: typer.Context,
    host: Annotated[
        str | None,
        typer.Option(help="Address; a public one needs an API key first.", show_default="127.0.0.1, the setting host"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port; 0 takes a free one.", show_default="8765, the setting port")
    ] = None,
    work: Annotated[
        bool | None,
        typer.Option(
            "--work/--no-work",
            help="Do background work in this process; with `--no-work` run `roomlore worker` beside it.",
            show_default="on, the setting work_in_server",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that serve the port. For more than one take PostgreSQL.")
    ] = 1,
) -> None:
    """Serve the HTTP API and the web console until stopped."""
    frame = frame_of(ctx)
    settings = frame.settings(host=host, port=port, work_in_server=work)
    try:
        with _no_collections():
            http = _face("http")
    except ModuleNotFoundError as error:
        raise InvalidInput("server_not_installed", name=error.name) from error
    tell = partial(_tell, settings)
    if workers > 1:
        http.serve_in_processes(settings, workers, tenant=frame.tenant, listening=tell)
    else:
        asyncio.run(http.serve(settings, tenant=frame.tenant, listening=tell))


def _face(name: str) -> Any:
    from roomlore.settings.registry import face

    return face(name)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Pause garbage collection while modules are loaded. They stay, and a tenth of the time would go into looking
    through them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _tell(settings: Settings, url: str) -> None:
    """Print where the server listens and its zone, at once: whoever waits for the first line has both. Standard error
    is left to the log, which may be JSON."""
    listens = say(
        "roomlore listens on {url} (console at {url}/console, OpenAPI at {url}/openapi.json); stop it with Ctrl-C.",
        url=url,
    )
    typer.echo(f"{listens}\n{_zone(settings)}")


def _zone(settings: Settings) -> str:
    if settings.search.time_zone:
        return say("Days begin as in {zone} (the setting time_zone).", zone=settings.search.zone.key)
    return say("Days begin as in {zone} (the machine's own; time_zone sets another).", zone=settings.search.zone.key)


_LOOK_SECONDS = 1.0


def worker(
    ctx: typer.Context,
    at_once: Annotated[
        int | None,
        typer.Option(
            "--at-once",
            min=1,
            max=64,
            help="Pieces of durable work at a time.",
            show_default="4, the setting work_at_once",
        ),
    ] = None,
) -> None:
    """Do background work of all tenants until stopped."""
    frame = frame_of(ctx)
    asyncio.run(_work(frame.settings(work_at_once=at_once), frame.place()))


async def _work(settings: Settings, place: str) -> None:
    from roomlore.wiring import open_lore

    stop = _StopSignal()
    async with open_lore(settings=settings) as lore:
        await lore.jobs.begin()
        begins = say("roomlore works on {place}: {what}. Stop it with Ctrl-C.", place=place, what=_what(settings))
        typer.echo("\n".join([begins, *_manners(settings, lore)]))
        await _report_until(stop, lore)
        typer.echo(say("Stopping; what is not finished is left to whoever works next."))


class _StopSignal:
    """Set by the first SIGINT or SIGTERM. The second one ends the process at once, as without a handler."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}

    def _hear(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> bool:
        """Wait. Return True if the process was told to stop within this many seconds."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True


async def _report_until(stop: _StopSignal, lore: Lore) -> None:
    """Wait for the end, and report each time this process starts to work or to stand by."""
    working = True
    while not await stop.wait(_LOOK_SECONDS):
        if working is not (working := await lore.jobs.works_here()):
            typer.echo(say("Works now.") if working else say("Stands by: another process works on this database."))


def _what(settings: Settings) -> str:
    memories = say("short memories ({count} at a time)", count=settings.work.work_at_once)
    parts = [memories] if settings.evolution.extract_every else []
    parts += [say("indexes for search")]
    parts += [say("attachments in words")] if settings.attachments.read else []
    parts += [say("summaries of sessions")] if settings.sessions.auto_checkpoint else []
    return say(", ").join(parts)


def _manners(settings: Settings, lore: Lore) -> list[str]:
    manners = [_zone(settings)]
    if not lore.jobs.shared:
        return [
            *manners,
            say("Work is kept in this process alone (durable_work); one that is killed begins it anew from the data."),
        ]
    if settings.database.database_url.startswith("postgres"):
        return manners
    return [
        *manners,
        say("On SQLite one process works at a time, a server too: the others stand by and follow when it ends."),
    ]


_PORT = 8766


def mcp(
    ctx: typer.Context,
    scope: Annotated[
        str | None,
        typer.Option(
            help="Whose memories are meant where a call does not say, such as `user:anna`. It is no fence: a call may "
            "name another scope."
        ),
    ] = None,
    viewer: Annotated[
        str | None,
        typer.Option(
            help="To whom the answers are shown, `room:<id>` or `user:<id>`: they tell what these may know. Without it "
            "everything is told."
        ),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Without the tools that change memories.")] = False,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP in the place of standard input.")] = False,
    host: Annotated[
        str | None,
        typer.Option(
            help="Address, with `--http`; a public one needs an API key first.",
            show_default="127.0.0.1, the setting host",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port, with `--http`; 0 takes a free one.")] = _PORT,
) -> None:
    """Serve tools for models over MCP: on standard input and output, or over HTTP."""
    frame, whose = frame_of(ctx), None if scope is None else check_scope(scope)
    whom = None if viewer is None else str(check_viewer(viewer))
    try:
        if http:
            _over_http(frame, host, port, scope=whose, viewer=whom, read_only=read_only)
        else:
            _over_stdio(frame, scope=whose, viewer=whom, read_only=read_only)
    except ModuleNotFoundError as error:
        extras, missing = "mcp,server" if http else "mcp", (error.name or "").partition(".")[0]
        raise InvalidInput("mcp_not_installed", name=missing, extras=extras) from error


def _over_stdio(frame: Frame, *, scope: str | None, viewer: str | None, read_only: bool) -> None:
    settings = frame.settings()
    asyncio.run(
        _face("mcp").serve_stdio(settings, tenant=frame.tenant, scope=scope, viewer=viewer, read_only=read_only)
    )


def _over_http(
    frame: Frame, host: str | None, port: int, *, scope: str | None, viewer: str | None, read_only: bool
) -> None:
    settings = frame.settings(host=host, port=port)
    http = _face("http")
    make_app = partial(http.create_mcp_app, scope=scope, viewer=viewer, read_only=read_only)
    asyncio.run(http.serve(settings, tenant=frame.tenant, listening=_tell_url, make_app=make_app))


def _tell_url(url: str) -> None:
    typer.echo(say("roomlore speaks MCP on {url}/mcp; stop it with Ctrl-C.", url=url))
