"""`roomlore mcp`: the tools for models."""

import asyncio
from functools import partial
from typing import Annotated

import typer

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.models import check_scope
from roomlore.surfaces.cli.frame import Frame, frame_of

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
    read_only: Annotated[bool, typer.Option("--read-only", help="Without the tools that change memories.")] = False,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP in the place of standard input.")] = False,
    host: Annotated[
        str | None,
        typer.Option(
            help="Address, with `--http`; a public one needs an API key first.", show_default="the setting host"
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port, with `--http`; 0 takes a free one.")] = _PORT,
) -> None:
    """Serve tools for models over MCP: on standard input and output, or over HTTP."""
    frame, whose = frame_of(ctx), None if scope is None else check_scope(scope)
    try:
        if http:
            _over_http(frame, host, port, scope=whose, read_only=read_only)
        else:
            _over_stdio(frame, scope=whose, read_only=read_only)
    except ModuleNotFoundError as error:
        extras, missing = "mcp,server" if http else "mcp", (error.name or "").partition(".")[0]
        raise InvalidInput(
            f"MCP needs more than the core ({missing} is missing): pip install 'roomlore[{extras}]'."
        ) from error


def _over_stdio(frame: Frame, *, scope: str | None, read_only: bool) -> None:
    settings = frame.settings()
    from roomlore.surfaces.mcp import serve_stdio

    asyncio.run(serve_stdio(settings, tenant=frame.tenant, scope=scope, read_only=read_only))


def _over_http(frame: Frame, host: str | None, port: int, *, scope: str | None, read_only: bool) -> None:
    settings = frame.settings(host=host, port=port)
    from roomlore.surfaces.http import create_mcp_app, serve

    make_app = partial(create_mcp_app, scope=scope, read_only=read_only)
    asyncio.run(serve(settings, tenant=frame.tenant, listening=_tell, make_app=make_app))


def _tell(url: str) -> None:
    typer.echo(f"roomlore speaks MCP on {url}/mcp; stop it with Ctrl-C.")
