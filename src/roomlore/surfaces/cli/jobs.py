"""`roomlore jobs`: work that is done behind the calls, and having what failed done again."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from roomlore.core.errors import InvalidInput
from roomlore.ports.durable import WorkStatus
from roomlore.services.jobs import Job
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

T = TypeVar("T")

app = typer.Typer(cls=Group, invoke_without_command=True, help="See the work done behind the calls, and retry it.")
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="The id that `roomlore jobs` shows.")]


@app.callback()
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
        show.as_json(plain(found))
    elif found:
        shape = show.table(
            "job", "room", "status", "attempts", "changed", "what it says", right=("attempts",), fixed=("job",)
        )
        show.console().print(show.rows(shape, map(_line, found)))
    else:
        typer.echo("No jobs.")


@app.command("show")
def show_job(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job as it stands."""
    _show(_with(ctx, lambda lore: lore.jobs.get(job_id)), as_json)


@app.command("retry")
def retry(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Have a job done again that failed or was cancelled, by whoever works."""
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
        show.as_json(plain(job))
        return
    for name, value in plain(job).items():
        if value != "":
            typer.echo(f"{name:12}{show.inert(str(value))}")


def _line(job: Job) -> list[str]:
    says = job.error or job.progress
    changed = job.updated_at.strftime("%m-%d %H:%M:%S")
    return [
        show.inert(job.job_id),
        show.inert(job.room_id, 40),
        job.status,
        str(job.attempts),
        changed,
        show.inert(says, 160),
    ]
