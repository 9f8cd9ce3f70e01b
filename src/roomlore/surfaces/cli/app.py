"""The program `roomlore`: all commands together."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from roomlore.core.models import DEFAULT_TENANT
from roomlore.surfaces.cli import (
    audience,
    chat,
    data,
    demo,
    digest,
    evaluation,
    facts,
    forgetting,
    links,
    memory,
    new,
    operations,
    rooms,
    serving,
    sessions,
    usage,
)
from roomlore.surfaces.cli.frame import Frame, Group
from roomlore.surfaces.cli.language import translate_help

app = typer.Typer(
    cls=Group,
    name="roomlore",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"roomlore {version('roomlore')}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    db: Annotated[
        str | None,
        typer.Option(
            help="The database: a path ending in `.db`, or a URL such as `sqlite:///chat.db` or `postgresql://user@host/name`.",
            show_default="the setting database_url",
            metavar="URL",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Whose rooms.", metavar="NAME")] = DEFAULT_TENANT,
    config: Annotated[
        str | None, typer.Option(help="The configuration file in the place of `roomlore.yaml`.", metavar="PATH")
    ] = None,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """The memory layer for chat agents: store messages, and get the ones that matter, each with its reason."""
    ctx.obj = Frame(config=config, database=db, tenant=tenant)


app.command("import")(data.import_)
app.command("export")(data.export)
app.command("context")(rooms.context)
app.command("search")(rooms.search)
app.command("chat")(chat.chat)
app.command("rooms")(rooms.rooms)
app.command("audience")(audience.audience)
app.command("visible")(audience.visible)
app.command("share")(audience.share)
app.command("rename")(rooms.rename)
app.command("threads")(rooms.threads)
app.command("digest")(digest.digest)
app.command("eval")(evaluation.evaluate)
app.command("settings")(rooms.settings)
app.command("tune")(operations.tune)
app.command("reindex")(data.reindex)
app.command("partition")(data.partition)
app.command("serve")(serving.serve)
app.command("mcp")(serving.mcp)
app.command("worker")(serving.worker)
app.command("demo")(demo.demo)
app.command("doctor")(operations.doctor)
app.command("forget")(forgetting.forget)
app.command("verify")(forgetting.verify)
app.add_typer(sessions.app, name="session")
app.add_typer(operations.keys_app, name="keys")
app.add_typer(links.app, name="links")
app.add_typer(memory.app, name="memory")
app.add_typer(facts.app, name="facts")
app.add_typer(operations.models_app, name="models")
app.add_typer(operations.jobs_app, name="jobs")
app.add_typer(usage.app, name="usage")
app.add_typer(new.app, name="new")


def main() -> None:
    """Run the program `roomlore`. Characters that the terminal cannot show are replaced."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    program = typer.main.get_command(app)
    translate_help(program)
    program()
