"""`roomlore tenants`: what tenants use, and their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roomlore.core.errors import InvalidInput
from roomlore.core.quotas import LIMITS, check_limits
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.cli.language import say
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roomlore.core.quotas import Standing
    from roomlore.wiring import Lore

app = typer.Typer(cls=Group, invoke_without_command=True, help="See what tenants use, and give one its own limits.")
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
_NONE, _USUAL = "none", "usual"


@app.callback()
def tenants(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List every tenant, and how much of its limits it has used."""
    if ctx.invoked_subcommand is not None:
        return

    async def work(lore: Lore) -> dict[str, list[Standing]]:
        return {tenant: await lore.quotas.standing(tenant) for tenant in await lore.quotas.tenants()}

    found = frame_of(ctx).run(work)
    if as_json:
        show.as_json({tenant: to_jsonable(standings) for tenant, standings in found.items()})
        return
    lines = [_line(tenant, one) for tenant, standings in found.items() for one in standings]
    shape = show.table(
        "tenant", "limit", "used", "most", "reset at", right=("used", "most"), fixed=("limit", "reset at")
    )
    show.console().print(show.rows(shape, lines))


def _line(tenant: str, one: Standing) -> list[str]:
    used = "–" if one.used is None else f"{one.used:,}"
    most = say(_NONE) if one.most is None else f"{one.most:,}"
    return [show.inert(tenant), one.limit, used, f"{most}{' *' if one.own else ''}", show.clock(one.resets_at)]


@app.command("limit")
def limit(
    ctx: typer.Context,
    messages_a_day: Annotated[
        str | None,
        typer.Option(
            help="Messages that it may add in a day. A whole number, `none` for no limit, or "
            "`usual` for that of the settings."
        ),
    ] = None,
    model_tokens_a_day: Annotated[
        str | None,
        typer.Option(
            help="Tokens of models that it may use in a day. A whole number, `none` for no limit, or "
            "`usual` for that of the settings."
        ),
    ] = None,
    messages_kept: Annotated[
        str | None,
        typer.Option(
            help="Messages that it may keep. A whole number, `none` for no limit, or `usual` for that of the settings."
        ),
    ] = None,
    requests_a_minute: Annotated[
        str | None,
        typer.Option(
            help="HTTP requests that it may send in a minute. A whole number, `none` for no limit, or "
            "`usual` for that of the settings."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give the tenant limits of its own, in place of those of the settings; without options show them."""
    given = (messages_a_day, model_tokens_a_day, messages_kept, requests_a_minute)
    chosen = {name: value for name, value in zip(LIMITS, given, strict=True) if value is not None}
    usual = [name for name, value in chosen.items() if value == _USUAL]
    own: Any = {name: _number(name, value) for name, value in chosen.items() if value != _USUAL}
    check_limits(own)  # before anything is changed

    async def work(lore: Lore) -> Mapping[str, int | None]:
        if usual:
            await lore.quotas.reset(usual)
        if own:
            await lore.quotas.set(**own)
        return await lore.quotas.own()

    frame = frame_of(ctx)
    found = frame.run(work, creates=True)
    if as_json:
        show.as_json(dict(found))
    elif found:
        told = say(", ").join(f"{name} {say(_NONE) if most is None else f'{most:,}'}" for name, most in found.items())
        typer.echo(say("Tenant {tenant} has limits of its own: {limits}.", tenant=frame.tenant, limits=told))
    else:
        typer.echo(say("Tenant {tenant} has the limits of the settings.", tenant=frame.tenant))


def _number(name: str, value: str) -> int | None:
    if value == _NONE:
        return None
    try:
        return int(value)
    except ValueError as error:
        option = "--" + name.replace("_", "-")
        raise InvalidInput(f"{option} is {value!r:.60}; give a whole number, `none` or `usual`.") from error
