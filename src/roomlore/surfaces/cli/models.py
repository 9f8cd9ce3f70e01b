"""`roomlore models`: which language models there are, and whether they answer. Needs no database."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, TypeVar

import typer

from roomlore.services.models import ModelService, ModelStanding, ModelTrial
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import open_models

T = TypeVar("T")

app = typer.Typer(cls=Group, invoke_without_command=True, help="List language models, and try them.")


@app.callback()
def list_models(
    ctx: typer.Context,
    internal: Annotated[
        bool, typer.Option("--internal", help="Those for roomlore's own use too, such as `memory-summary-model`.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the models to choose from with their providers, and which of these have a key."""
    if ctx.invoked_subcommand is not None:
        return
    found = _with_models(ctx, lambda models: models.list_available_models(internal=internal))
    if as_json:
        show.as_json(plain(found))
    elif found:
        shape = show.table("model", "name", "provider", "its id there", "key", "stands", fixed=("model",))
        show.console().print(show.rows(shape, (line for one in found for line in _lines(one))))
    else:
        typer.echo("No models to choose from; name some under `models:` in roomlore.yaml.")


@app.command("test")
def try_(
    ctx: typer.Context,
    model: Annotated[str | None, typer.Argument(help="Only this one; by default all, internal ones too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Ask every provider of every model for a word, and say what came back; 1 if a model has none that answers."""
    trials = _with_models(ctx, lambda models: models.test(model))
    if as_json:
        show.as_json(plain(trials))
    else:
        shape = show.table(
            "model", "provider", "its id there", "seconds", "tokens", "what came back", right=("seconds",)
        )
        show.console().print(show.rows(shape, map(_trial_line, trials)))
    if {trial.model_id for trial in trials} - {trial.model_id for trial in trials if not trial.error}:
        raise typer.Exit(1)


def _with_models(ctx: typer.Context, work: Callable[[ModelService], Awaitable[T]]) -> T:
    settings = frame_of(ctx).settings()

    async def inside() -> T:
        async with open_models(settings) as models:
            return await work(models)

    return asyncio.run(inside())


def _lines(model: ModelStanding) -> Iterator[list[str]]:
    name, shown = show.inert(model.model_id), show.inert(model.display_name)
    for place, provider in enumerate(model.providers):
        told = (name, shown) if not place else ("", "")
        there = (show.inert(provider.name), show.inert(provider.model_id))
        yield [
            *told,
            *there,
            show.inert(provider.key_variable or "needs none"),
            "ready" if provider.usable else "not ready",
        ]


def _trial_line(trial: ModelTrial) -> list[str]:
    tokens = f"{trial.usage.input_tokens} + {trial.usage.output_tokens}"
    who = [show.inert(trial.model_id), show.inert(trial.provider), show.inert(trial.provider_model_id)]
    if trial.error:
        return [*who, f"{trial.seconds:.1f}", "–", show.inert(trial.error)]
    return [*who, f"{trial.seconds:.1f}", tokens, f"answered: {show.inert(trial.text, 60)}"]
