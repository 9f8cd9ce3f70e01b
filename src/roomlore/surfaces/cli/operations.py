"""`roomlore doctor`, `backup`, `restore`, `keys`, `tenants`, `jobs` and `models`: commands for operators."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from rich.text import Text

from roomlore.core.errors import InvalidInput
from roomlore.core.health import Finding, Verdict, worst
from roomlore.core.quotas import LIMITS, check_limits
from roomlore.surfaces import doctor_words
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.derived import Call, command
from roomlore.surfaces.cli.frame import AsJson, Group, frame_of
from roomlore.surfaces.cli.language import App, interface_language, parted, say, translated
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.verbs import operations as verbs

if TYPE_CHECKING:
    from roomlore.core.chat import ModelStatus
    from roomlore.core.models import ApiKey
    from roomlore.core.quotas import Standing
    from roomlore.services.jobs import Job
    from roomlore.services.models import ModelService, ModelTrial
    from roomlore.wiring import Lore

T = TypeVar("T")
_NO_LIMIT, _USUAL_LIMIT = "none", "usual"


def doctor(
    ctx: typer.Context,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Also send each model a short request; providers may charge for it."),
    ] = False,
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="Also compare the database's indexes with its tables; takes longer."),
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, max=600, help="Seconds that each look may take.")] = 10.0,
    every: Annotated[bool, typer.Option("--all", help="Show what works or is off too.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: `verdict`, the worst there is, and `findings`.")
    ] = False,
) -> None:
    """Check that everything works, and say what to do; exits with 1 if something is broken."""
    from roomlore.wiring import diagnose

    how: Literal["quick", "thorough"] = "thorough" if thorough else "quick"
    findings = asyncio.run(diagnose(frame_of(ctx).settings(), ask=ask, integrity=how, timeout_seconds=timeout))
    verdict = worst(findings)
    if as_json:
        show.as_json({"verdict": verdict, "findings": [_finding_fields(finding) for finding in findings]})
    else:
        _tell_health(findings, verdict, every=every)
    if verdict == "fail":
        raise typer.Exit(1)


_HEALTH = {
    "ok": "Everything that is set up works.",
    "warn": "It works. Worth a look:",
    "fail": "Something does not work:",
}


def _tell_health(findings: list[Finding], verdict: Verdict, *, every: bool) -> None:
    """Print how it stands, then what has to be done or may be; with `every` all that was found."""
    out = show.console()
    out.print(Text(say(_HEALTH[verdict]), "bold"))
    if told := [finding for finding in findings if every or finding.todo or finding.verdict in ("warn", "fail")]:
        shape = show.table("", "part", "ms", "what was found", "what to do", right=("ms",), fixed=("", "part"))
        out.print(show.rows(shape, map(_finding_line, told)))
    if not every:
        fine = sum(finding.verdict == "ok" for finding in findings)
        off = say(", ").join(
            _part_of(finding) for finding in findings if finding.verdict == "off" and finding not in told
        )
        out.print(
            Text(say("{count} checks passed. Not set up: {off}. `--all` shows them all.", count=fine, off=off), "dim")
        )


def _part_of(finding: Finding) -> str:
    return show.inert(doctor_words.part(finding.part, language=interface_language()))


def _finding_fields(finding: Finding) -> dict[str, object]:
    texts = {"told": finding.told, "advice": finding.advice, "ms": finding.ms}
    return {"part": finding.part, "verdict": finding.verdict, **texts}


def _finding_line(finding: Finding) -> list[str]:
    ms = "–" if finding.ms is None else f"{finding.ms:.0f}"
    language = interface_language()
    state, todo = (
        doctor_words.phrase(finding.said, language=language),
        doctor_words.phrase(finding.todo, language=language),
    )
    return [say(finding.verdict), _part_of(finding), ms, *(parted(show.inert(text)) for text in (state, todo))]


def backup(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A new folder, which appears only once the backup is whole.")],
) -> None:
    """Back up the database of all tenants, durable work and archives, while others go on writing."""
    from roomlore.wiring import write_backup

    written = write_backup(frame_of(ctx).settings(), folder)
    typer.echo(say("The backup is in {folder}.", folder=written))


def restore(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder that `backup` wrote.")],
) -> None:
    """Fill a new database from a backup; nothing that is there is overwritten."""
    from roomlore.wiring import restore_backup

    restore_backup(frame_of(ctx).settings(), folder)
    typer.echo(say("The backup is restored. Check it with `roomlore verify`, for each tenant."))


keys_app = App(cls=Group, no_args_is_help=True, help="Make, list and revoke API keys of the HTTP service.")


@keys_app.command("create")
def create_key(
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
    notice = say(
        "Key {key} for tenant {tenant}: {scopes}. It is shown this once:",
        key=key.key_id,
        tenant=key.tenant,
        scopes=", ".join(key.scopes),
    )
    typer.echo(notice, err=True)
    typer.echo(secret)


@keys_app.command("list")
def list_keys(
    ctx: typer.Context,
    every_tenant: Annotated[bool, typer.Option("--all-tenants", help="Those of every tenant.")] = False,
    as_json: AsJson = False,
) -> None:
    """List keys, revoked ones included. Secrets are not stored and cannot be shown."""

    async def work(lore: Lore) -> list[ApiKey]:
        return await lore.keys.list(all_tenants=every_tenant)

    keys = frame_of(ctx).run(work)
    if as_json:
        show.as_json([{**to_jsonable(key), "tenant": key.tenant} for key in keys])
        return
    shape = show.table("id", "tenant", "name", "scopes", "created", "revoked", fixed=("id", "created", "revoked"))
    show.console().print(show.rows(shape, map(_key_line, keys)))


def _key_line(key: ApiKey) -> list[str]:
    name, scopes = show.inert(key.name), ", ".join(key.scopes)
    return [key.key_id, show.inert(key.tenant), name, scopes, show.clock(key.created_at), show.clock(key.revoked_at)]


@keys_app.command("revoke")
def revoke_key(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(help="The id that `keys list` shows, or a name that only one key has or had.")],
) -> None:
    """Revoke a key: from now on it is refused."""

    async def work(lore: Lore) -> str:
        return await lore.keys.revoke(key)

    typer.echo(say("Key {key} is revoked.", key=frame_of(ctx).run(work)))


tenants_app = App(cls=Group, invoke_without_command=True, help="See what tenants use, and give one its own limits.")


@tenants_app.callback()
def list_tenants(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List every tenant, and how much of its limits it has used."""
    if ctx.invoked_subcommand is not None:
        return

    async def work(lore: Lore) -> dict[str, list[Standing]]:
        return {tenant: await lore.quotas.standing(tenant) for tenant in await lore.quotas.tenants()}

    standings_by_tenant = frame_of(ctx).run(work)
    if as_json:
        show.as_json({tenant: to_jsonable(standings) for tenant, standings in standings_by_tenant.items()})
        return
    lines = [
        _standing_line(tenant, standing) for tenant, standings in standings_by_tenant.items() for standing in standings
    ]
    shape = show.table(
        "tenant", "limit", "used", "most", "reset at", right=("used", "most"), fixed=("limit", "reset at")
    )
    show.console().print(show.rows(shape, lines))


def _standing_line(tenant: str, standing: Standing) -> list[str]:
    used = "–" if standing.used is None else f"{standing.used:,}"
    most = say(_NO_LIMIT) if standing.most is None else f"{standing.most:,}"
    return [
        show.inert(tenant),
        standing.limit,
        used,
        f"{most}{' *' if standing.own else ''}",
        show.clock(standing.resets_at),
    ]


def _limit(what: str) -> Any:
    return typer.Option(
        help=f"{what} A whole number, `none` for no limit, or `usual` for that of the settings.",
    )


@tenants_app.command("limit")
def set_limits(
    ctx: typer.Context,
    messages_a_day: Annotated[str | None, _limit("Messages that it may add in a day.")] = None,
    model_tokens_a_day: Annotated[str | None, _limit("Tokens of models that it may use in a day.")] = None,
    messages_kept: Annotated[str | None, _limit("Messages that it may keep.")] = None,
    requests_a_minute: Annotated[str | None, _limit("HTTP requests that it may send in a minute.")] = None,
    attachments_a_day: Annotated[str | None, _limit("Attachments that models may describe in a day.")] = None,
    attachment_bytes_a_day: Annotated[str | None, _limit("Bytes of attachments that models may read in a day.")] = None,
    as_json: AsJson = False,
) -> None:
    """Give the tenant limits of its own, in place of those of the settings; without options show them."""
    chosen = {name: ctx.params[name] for name in LIMITS if ctx.params[name] is not None}
    usual = [name for name, value in chosen.items() if value == _USUAL_LIMIT]
    own: Any = {name: _limit_in_option(name, value) for name, value in chosen.items() if value != _USUAL_LIMIT}
    check_limits(own)  # before anything is changed

    async def work(lore: Lore) -> Mapping[str, int | None]:
        if usual:
            await lore.quotas.reset(usual)
        if own:
            await lore.quotas.set(**own)
        return await lore.quotas.own()

    frame = frame_of(ctx)
    limits = frame.run(work, creates=True)
    if as_json:
        show.as_json(dict(limits))
    elif limits:
        limits_text = say(", ").join(
            f"{name} {say(_NO_LIMIT) if most is None else f'{most:,}'}" for name, most in limits.items()
        )
        typer.echo(say("Tenant {tenant} has limits of its own: {limits}.", tenant=frame.tenant, limits=limits_text))
    else:
        typer.echo(say("Tenant {tenant} has the limits of the settings.", tenant=frame.tenant))


def _limit_in_option(name: str, value: str) -> int | None:
    if value == _NO_LIMIT:
        return None
    try:
        return int(value)
    except ValueError as error:
        option = "--" + name.replace("_", "-")
        raise InvalidInput("quota_option_invalid", option=option, value=f"{value!r:.60}") from error


async def _check_shared(lore: Lore, _: Mapping[str, Any]) -> None:
    if not lore.jobs.shared:
        raise InvalidInput("work_in_memory_elsewhere")


async def _jobs(_: Lore, page: verbs.JobPage, __: Call) -> None:
    if page.jobs:
        shape = show.table(
            "job", "room", "status", "attempts", "changed", "what it says", right=("attempts",), fixed=("job",)
        )
        show.console().print(show.rows(shape, map(_job_line, page.jobs)))
    else:
        typer.echo(say("No jobs."))


async def _job(_: Lore, job: Job, __: Call) -> None:
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
        show.inert(translated(says), 160),
    ]


jobs_app = App(cls=Group, invoke_without_command=True)
jobs_app.callback()(
    command(verbs.LIST_JOBS, _jobs, in_json=lambda page, _: page.jobs, without=("after",), before=_check_shared)
)
jobs_app.command("show")(command(verbs.GET_JOB, _job, before=_check_shared))
jobs_app.command("retry")(command(verbs.RETRY_JOB, _job, before=_check_shared))
models_app = App(cls=Group, invoke_without_command=True, help="List language models, and try them.")


@models_app.callback()
def list_models(
    ctx: typer.Context,
    internal: Annotated[
        bool, typer.Option("--internal", help="Those for roomlore's own use too, such as `memory-summary-model`.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the models with their providers, and which of these have a key."""
    if ctx.invoked_subcommand is not None:
        return
    models = _with_models(ctx, lambda models: models.list_available_models(internal=internal))
    if as_json:
        show.as_json(to_jsonable(models))
    elif models:
        shape = show.table("model", "name", "provider", "its id there", "key", "stands", fixed=("model",))
        show.console().print(show.rows(shape, (line for model in models for line in _model_lines(model))))
    else:
        typer.echo(
            say("No models to choose from; name some under `models:` in the section `memory:` of roomlore.yaml.")
        )


@models_app.command("test")
def try_models(
    ctx: typer.Context,
    model: Annotated[str | None, typer.Argument(help="Only this one; by default all, internal ones too.")] = None,
    as_json: AsJson = False,
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


def _model_lines(model: ModelStatus) -> Iterator[list[str]]:
    name, shown = show.inert(model.model_id), show.inert(model.display_name)
    for place, provider in enumerate(model.providers):
        names = (name, shown) if not place else ("", "")
        there = (show.inert(provider.name), show.inert(provider.model_id))
        yield [
            *names,
            *there,
            show.inert(provider.key_variable) if provider.key_variable else say("needs none"),
            say("ready") if provider.usable else say("not ready"),
        ]


def _trial_line(trial: ModelTrial) -> list[str]:
    tokens = f"{trial.usage.input_tokens} + {trial.usage.output_tokens}"
    who = [show.inert(trial.model_id), show.inert(trial.provider), show.inert(trial.provider_model_id)]
    if trial.error:
        return [*who, f"{trial.seconds:.1f}", "–", show.inert(translated(trial.error))]
    return [*who, f"{trial.seconds:.1f}", tokens, say("answered: {text}", text=show.inert(trial.text, 60))]
