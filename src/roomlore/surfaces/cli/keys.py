"""`roomlore keys`: the API keys of the HTTP service."""

from typing import Annotated

import typer

from roomlore.core.models import ApiKey
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

app = typer.Typer(cls=Group, no_args_is_help=True, help="Make, list and revoke API keys of the HTTP service.")


@app.command()
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What will use the key.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="`read`, `write` or `admin`; may be repeated. By default `read` and `write`."),
    ] = None,
) -> None:
    """Make a key for the tenant and print its secret, once."""

    async def work(lore: Lore) -> tuple[ApiKey, str]:
        return await lore.keys.create(name, scopes=tuple(scope or ("read", "write")))

    key, secret = frame_of(ctx).run(work)
    typer.echo(f"Key {key.key_id} for tenant {key.tenant}: {', '.join(key.scopes)}. It is shown this once:", err=True)
    typer.echo(secret)


@app.command("list")
def list_(
    ctx: typer.Context,
    every_tenant: Annotated[bool, typer.Option("--all-tenants", help="Those of every tenant.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List keys, revoked ones too. Secrets are not kept and cannot be shown."""

    async def work(lore: Lore) -> list[ApiKey]:
        return await lore.keys.list(all_tenants=every_tenant)

    found = frame_of(ctx).run(work)
    if as_json:
        show.as_json([{**plain(key), "tenant": key.tenant} for key in found])
        return
    shape = show.table("id", "tenant", "name", "scopes", "created", "revoked", fixed=("id", "created", "revoked"))
    show.console().print(show.rows(shape, map(_line, found)))


def _line(key: ApiKey) -> list[str]:
    name, scopes = show.inert(key.name), ", ".join(key.scopes)
    return [key.key_id, show.inert(key.tenant), name, scopes, show.clock(key.created_at), show.clock(key.revoked_at)]


@app.command()
def revoke(ctx: typer.Context, key_id: Annotated[str, typer.Argument(help="The id that `keys list` shows.")]) -> None:
    """Revoke a key: from now on it opens nothing."""

    async def work(lore: Lore) -> None:
        await lore.keys.revoke(key_id)

    frame_of(ctx).run(work)
    typer.echo(f"Key {key_id} is revoked.")
