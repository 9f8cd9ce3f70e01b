"""`roomlore context`: what matters for a message."""

from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console

from roomlore.core.context import Context
from roomlore.core.models import Entry
from roomlore.services.contexts import STRATEGIES
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

_COLUMNS = (
    "→      the message that this one answers, as far as roomlore can tell",
    "score  how likely it matters, in [0, 1]; under `weighted` the weighted sum of the five signals",
    "reply  nearness along the reply chain          user   the same speaker, or one just spoken with",
    "time   halves every half-life                  @      mentions",
    "words  rarity of the words both use",
)


def context(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id.")],
    message: Annotated[
        str | None, typer.Argument(help="The message's id; by default the newest that a user wrote.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help=f"{', '.join(f'`{name}`' for name in STRATEGIES)}; by default the room's.")
    ] = None,
    most: Annotated[int | None, typer.Option("--max", help="Most messages.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens that the texts take together.")] = None,
    as_prompt: Annotated[
        bool, typer.Option("--prompt", help="As one text for a model, the message itself at the end.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with everything the library gives.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the columns mean and how the message was read.")
    ] = False,
) -> None:
    """Show the messages that matter for a message, each with its score, signals and reason."""

    async def work(lore: Lore) -> tuple[Context, Entry, ZoneInfo]:
        built = await lore.context.build(room, message, strategy=strategy, max_messages=most, max_tokens=max_tokens)
        return built, await lore.messages.get(room, built.message_id), ZoneInfo(lore.settings.time_zone)

    if as_prompt and (as_json or explain):
        raise typer.BadParameter("--prompt gives one text; leave out --json and --explain.")
    built, trigger, zone = frame_of(ctx).run(work)
    if as_prompt:
        typer.echo(show.inert_piece(built.to_prompt(query=trigger.message, zone=zone)))
        return
    if as_json:
        show.as_json(plain(built))
        return
    out = show.console()
    show.context(built, trigger.message, out)
    if explain:
        _explain(trigger, built, out)


def _explain(trigger: Entry, built: Context, out: Console) -> None:
    features, link = trigger.features, trigger.link
    out.print()
    for line in _COLUMNS:
        out.print(line)
    out.print()
    out.print(f"type       {features.message_type}")
    out.print(f"keywords   {show.inert(', '.join(features.keywords)) or '–'}")
    out.print(f"mentions   {show.inert(', '.join(features.mentions)) or '–'}")
    out.print(f"answers    {show.inert(built.parent or '–')} ({link.kind}, probability {link.parent_probability:.2f})")
    out.print(f"new topic  probability {link.new_probability:.2f}")
