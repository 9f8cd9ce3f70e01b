"""Serving on a port."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from roomlore.core.addresses import is_loopback
from roomlore.core.errors import Forbidden, InvalidInput
from roomlore.core.models import DEFAULT_TENANT
from roomlore.settings import Settings
from roomlore.surfaces.http.app import beside, create_app
from roomlore.surfaces.http.connections import BACKLOG, Bounded, Limits, bounded, most_connections, told_seldom
from roomlore.wiring import Lore, open_lore

_GRACE_SECONDS = 10
_TICKS_A_LOOK = 5  # of a tenth of a second


async def serve(
    settings: Settings,
    *,
    listening: Callable[[str], None],
    tenant: str = DEFAULT_TENANT,
    make_app: Callable[[Lore], FastAPI] = create_app,
) -> None:
    """Serves until the process is told to stop. `listening` is called with the URL once the port takes connections;
    `tenant`: whose rooms those without a key see while none exists; `make_app`: what is served.

    Raises `Forbidden` for an address that others can reach while no API key exists, `InvalidInput` for an address that
    cannot be had, `StorageUnavailable`.
    """
    async with open_lore(settings=settings, tenant=tenant, background=settings.work_in_server) as lore:
        if not is_loopback(settings.host) and not await lore.keys.any():
            raise Forbidden(
                f"{settings.host} can be reached from other machines and no API key exists; make one first with "
                "`roomlore keys create NAME`, or serve on 127.0.0.1."
            )
        with bind(settings.host, settings.port) as door:
            app = make_app(lore)
            config = uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                http=_protocol(settings),
                ws="none",
                backlog=BACKLOG,
                timeout_keep_alive=settings.idle_connection_seconds,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
            listening(_url(door))
            server = _Server(config)
            async with beside(app, lore):
                with told_seldom():
                    await server.serve([door])
                await _until_ended(server.server_state.tasks)


async def _until_ended(requests: Collection["asyncio.Task[None]"]) -> None:
    """Requests broken off at the end, such as a long reply, put their things in order while the database is open."""
    if requests:
        await asyncio.wait(requests, timeout=_GRACE_SECONDS)


def _protocol(settings: Settings) -> type[asyncio.Protocol]:
    return bounded(Limits(most_connections(settings.max_connections), settings.request_timeout_seconds))


class _Server(uvicorn.Server):
    """Stops on SIGINT and SIGTERM by returning, so that what is still to be written is written. Ends connections that
    are kept waiting for too long."""

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_A_LOOK == 0:
            now = asyncio.get_running_loop().time()
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, Bounded):
                    connection.look(now)
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ends this server alone. MCP's streams come with a handler that would break off those of every later server
        in the process too."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raise `InvalidInput` if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        door = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidInput(
            f"Port {port} of {host!r} cannot be had ({error.strerror}); choose another with --host and --port."
        ) from error
    # asyncio sets TCP_NODELAY only on connections of a socket that names its protocol, and `create_server` leaves it 0.
    # Without it the body of an answer waits 40 ms for the acknowledgement of the head.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=door.detach())


def _url(door: socket.socket) -> str:
    host, port = door.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
