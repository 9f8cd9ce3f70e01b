"""`roomlore serve`: the HTTP service."""

import asyncio
from typing import Annotated

import typer

from roomlore.core.errors import InvalidInput
from roomlore.surfaces.cli.frame import frame_of


def serve(
    ctx: typer.Context,
    host: Annotated[
        str | None, typer.Option(help="Address; a public one needs an API key first.", show_default="the setting host")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.", show_default="the setting port")] = None,
    work: Annotated[
        bool | None,
        typer.Option(
            "--work/--no-work",
            help="Do the work behind the calls here, or leave it to `roomlore worker`.",
            show_default="the setting work_in_server",
        ),
    ] = None,
) -> None:
    """Serve the HTTP API and the web console until stopped."""
    frame = frame_of(ctx)
    settings = frame.settings(host=host, port=port, work_in_server=work)
    try:
        from roomlore.surfaces.http import serve as serve_http
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"Serving needs the extra `server` ({error.name} is missing): pip install 'roomlore[server]'."
        ) from error
    asyncio.run(serve_http(settings, tenant=frame.tenant, listening=_tell))


def _tell(url: str) -> None:
    typer.echo(
        f"roomlore listens on {url} (console at {url}/console, OpenAPI at {url}/openapi.json); stop it with Ctrl-C."
    )
