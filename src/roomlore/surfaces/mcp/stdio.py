"""Serving a host that started this program: requests on standard input, answers on standard output."""

from mcp import stdio_server

from roomlore.core.memory.models import check_scope
from roomlore.core.models import DEFAULT_TENANT
from roomlore.settings import Settings
from roomlore.surfaces.mcp.server import make_server
from roomlore.surfaces.mcp.tool import Visitor
from roomlore.wiring import open_lore


async def serve_stdio(
    settings: Settings, *, tenant: str = DEFAULT_TENANT, scope: str | None = None, read_only: bool = False
) -> None:
    """Serves until standard input ends. While it does, whatever else writes to standard output goes to standard error.

    `scope`: whose memories are meant where a call does not say. `read_only`: without the tools that change memories.
    Raises `InvalidInput`, `StorageUnavailable`.
    """
    whose = None if scope is None else check_scope(scope)
    async with open_lore(settings=settings, tenant=tenant, background=settings.work_in_server) as lore:
        server = make_server(Visitor(lore=lore, may_write=not read_only, scope=whose))
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
