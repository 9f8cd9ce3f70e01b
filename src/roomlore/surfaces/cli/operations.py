"""`roomlore doctor`, `keys`, `jobs` and `models`: commands for operators."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from roomlore.core.errors import InvalidInput
from roomlore.core.health import Finding, worst
from roomlore.ports.durable import WorkStatus
from roomlore.surfaces import doctor_words
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.cli.language import interface_language, say, translated
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.core.models import ApiKey
    from roomlore.services.jobs import Job
    from roomlore.services.models import ModelService, ModelStatus, ModelTrial
    from roomlore.wiring import Lore

T = TypeVar("T")


def doctor(
    ctx: typer.Context,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Ask every model that can be asked for a word too; providers may charge for it."),
    ] = False,
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="Compare indexes with tables too, where every page is read; takes longer."),
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, max=600, help="Seconds that each look may take.")] = 10.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: `verdict`, the worst there is, and `findings`.")
    ] = False,
) -> None:
    """Check everything in the settings and say what to do; exits with 1 if something is broken."""
    from roomlore.wiring import diagnose

    how: Literal["quick", "thorough"] = "thorough" if thorough else "quick"
    found = asyncio.run(diagnose(frame_of(ctx).settings(), ask=ask, integrity=how, timeout_seconds=timeout))
    verdict = worst(found)
    if as_json:
        show.as_json({"verdict": verdict, "findings": [_told(one) for one in found]})
    else:
        shape = show.table("", "part", "ms", "what was found", "what to do", right=("ms",), fixed=("", "part"))
        show.console().print(show.rows(shape, map(_line, found)))
    if verdict == "fail":
        raise typer.Exit(1)


def _told(finding: Finding) -> dict[str, object]:
    told = {"told": finding.told, "advice": finding.advice, "ms": finding.ms}
    return {"part": finding.part, "verdict": finding.verdict, **told}


def _line(finding: Finding) -> list[str]:
    ms = "–" if finding.ms is None else f"{finding.ms:.0f}"
    language = interface_language()
    state, todo = doctor_words.told(finding.said, language=language), doctor_words.told(finding.todo, language=language)
    part = doctor_words.part(finding.part, language=language)
    return [say(finding.verdict), show.inert(part), ms, show.inert(state), show.inert(todo)]


keys_app = typer.Typer(cls=Group, no_args_is_help=True, help="Make, list and revoke API keys of the HTTP service.")


@keys_app.command()
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What will use the key.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="`read`, `write` or `admin`; may be repeated. By default `read` and `write`."),
    ] = None,
) -> None:
    """Create an API key for the tenant and print its secret, once."""

    async def work(lore: Lore) -> tuple[ApiKey, str]:
        return await lore.keys.create(name, scopes=tuple(scope or ("read", "write")))

    key, secret = frame_of(ctx).run(work, creates=True)
    told = say(
        "Key {key} for tenant {tenant}: {scopes}. It is shown this once:",
        key=key.key_id,
        tenant=key.tenant,
        scopes=", ".join(key.scopes),
    )
    typer.echo(told, err=True)
    typer.echo(secret)


@keys_app.command("list")
def list_(
    ctx: typer.Context,
    every_tenant: Annotated[bool, typer.Option("--all-tenants", help="Those of every tenant.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List keys, revoked ones included. Secrets are not stored and cannot be shown."""

    async def work(lore: Lore) -> list[ApiKey]:
        return await lore.keys.list(all_tenants=every_tenant)

    found = frame_of(ctx).run(work)
    if as_json:
        show.as_json([{**to_jsonable(key), "tenant": key.tenant} for key in found])
        return
    shape = show.table("id", "tenant", "name", "scopes", "created", "revoked", fixed=("id", "created", "revoked"))
    show.console().print(show.rows(shape, map(_key_line, found)))


def _key_line(key: ApiKey) -> list[str]:
    name, scopes = show.inert(key.name), ", ".join(key.scopes)
    return [key.key_id, show.inert(key.tenant), name, scopes, show.clock(key.created_at), show.clock(key.revoked_at)]


@keys_app.command()
def revoke(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(help="The id that `keys list` shows, or a name that only one key has or had.")],
) -> None:
    """Revoke a key: from now on it is refused."""

    async def work(lore: Lore) -> str:
        return await lore.keys.revoke(key)

    typer.echo(say("Key {key} is revoked.", key=frame_of(ctx).run(work)))


jobs_app = typer.Typer(cls=Group, invoke_without_command=True, help="See the work done behind the calls, and retry it.")
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="The id that `roomlore jobs` shows.")]


@jobs_app.callback()
def list_jobs(
    ctx: typer.Context,
    status: Annotated[WorkStatus | None, typer.Option(help="Only those that stand so.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only those of this kind, such as `extraction`.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most jobs.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the tenant's jobs, the newest first."""
    if ctx.invoked_subcommand is not None:
        return
    found = _with(ctx, lambda lore: lore.jobs.page(status=status, kind=kind, limit=limit))
    if as_json:
        show.as_json(to_jsonable(found))
    elif found:
        shape = show.table(
            "job", "room", "status", "attempts", "changed", "what it says", right=("attempts",), fixed=("job",)
        )
        show.console().print(show.rows(shape, map(_job_line, found)))
    else:
        typer.echo(say("No jobs."))


@jobs_app.command("show")
def show_job(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job."""
    _show(_with(ctx, lambda lore: lore.jobs.get(job_id)), as_json)


@jobs_app.command("retry")
def retry(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Run a failed or cancelled job again, in any process that works."""
    _show(_with(ctx, lambda lore: lore.jobs.retry(job_id)), as_json)


def _with(ctx: typer.Context, ask: Callable[[Lore], Awaitable[T]]) -> T:
    async def asked(lore: Lore) -> T:
        if not lore.jobs.shared:
            raise InvalidInput(
                "Here work is kept in the memory of the process that does it, so no other can see it. Ask that process"
                " (GET /jobs), or keep work beside the database: pip install 'roomlore[durable]', and leave the setting"
                " durable_work at auto."
            )
        return await ask(lore)

    return frame_of(ctx).run(asked)


def _show(job: Job, as_json: bool) -> None:
    if as_json:
        show.as_json(to_jsonable(job))
        return
    for name, value in to_jsonable(job).items():
        if value != "":
            typer.echo(f"{show.padded(say(name.replace('_', ' ')), 12)}{show.inert(str(value))}")


def _job_line(job: Job) -> list[str]:
    says = job.error or job.progress
    changed = show.local(job.updated_at).strftime("%m-%d %H:%M:%S")
    return [
        show.inert(job.job_id),
        show.inert(job.room_id, 40),
        say(job.status),
        str(job.attempts),
        changed,
        translated(show.inert(says, 160)),
    ]


models_app = typer.Typer(cls=Group, invoke_without_command=True, help="List language models, and try them.")


@models_app.callback()
def list_models(
    ctx: typer.Context,
    internal: Annotated[
        bool, typer.Option("--internal", help="Those for roomlore's own use too, such as `memory-summary-model`.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the models with their providers, and which of these have a key."""
    if ctx.invoked_subcommand is not None:
        return
    found = _with_models(ctx, lambda models: models.list_available_models(internal=internal))
    if as_json:
        show.as_json(to_jsonable(found))
    elif found:
        shape = show.table("model", "name", "provider", "its id there", "key", "stands", fixed=("model",))
        show.console().print(show.rows(shape, (line for one in found for line in _lines(one))))
    else:
        typer.echo(
            say("No models to choose from; name some under `models:` in the section `memory:` of roomlore.yaml.")
        )


@models_app.command("test")
def try_(
    ctx: typer.Context,
    model: Annotated[str | None, typer.Argument(help="Only this one; by default all, internal ones too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Ask every provider of every model for one word and show the results; exits with 1 if a model has no provider that
    answers."""
    trials = _with_models(ctx, lambda models: models.test(model))
    if as_json:
        show.as_json(to_jsonable(trials))
    else:
        shape = show.table(
            "model", "provider", "its id there", "seconds", "tokens", "what came back", right=("seconds",)
        )
        show.console().print(show.rows(shape, map(_trial_line, trials)))
    if {trial.model_id for trial in trials} - {trial.model_id for trial in trials if not trial.error}:
        raise typer.Exit(1)


def _with_models(ctx: typer.Context, work: Callable[[ModelService], Awaitable[T]]) -> T:
    from roomlore.wiring import open_models

    settings = frame_of(ctx).settings()

    async def inside() -> T:
        async with open_models(settings) as models:
            return await work(models)

    return asyncio.run(inside())


def _lines(model: ModelStatus) -> Iterator[list[str]]:
    name, shown = show.inert(model.model_id), show.inert(model.display_name)
    for place, provider in enumerate(model.providers):
        told = (name, shown) if not place else ("", "")
        there = (show.inert(provider.name), show.inert(provider.model_id))
        yield [
            *told,
            *there,
            show.inert(provider.key_variable) if provider.key_variable else say("needs none"),
            say("ready") if provider.usable else say("not ready"),
        ]


def _trial_line(trial: ModelTrial) -> list[str]:
    tokens = f"{trial.usage.input_tokens} + {trial.usage.output_tokens}"
    who = [show.inert(trial.model_id), show.inert(trial.provider), show.inert(trial.provider_model_id)]
    if trial.error:
        return [*who, f"{trial.seconds:.1f}", "–", translated(show.inert(trial.error))]
    return [*who, f"{trial.seconds:.1f}", tokens, say("answered: {text}", text=show.inert(trial.text, 60))]
