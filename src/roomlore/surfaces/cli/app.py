"""The program `roomlore`: all commands together, each imported when it is used."""

import gc
import json
import re
import sys
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import chain
from typing import Annotated, Any

import typer

from roomlore.core import DEFAULT_TENANT
from roomlore.surfaces.cli.frame import Frame, Group, UsageError
from roomlore.surfaces.cli.language import (
    App,
    Command,
    helped,
    interface_language,
    option_rows,
    print_help,
    print_usage_error,
    say,
    translate_help,
)

PLACES = {
    "add": "plain:add",
    "context": "rooms:context",
    "remember": "facts:remember",
    "recall": "plain:recall",
    "reply": "plain:reply",
    "ask": "searching:search",
    "demo": "first_steps:demo",
    "import": "data:import_",
    "digest": "rooms:digest",
    "forget": "privacy:forget",
    "doctor": "operations:doctor",
    "serve": "serving:serve",
    "export": "data:export",
    "search": "searching:search",
    "chat": "chat:chat",
    "rooms": "rooms:rooms",
    "audience": "privacy:audience",
    "visible": "memory:visible",
    "share": "privacy:share",
    "rename": "rooms:rename",
    "delete-room": "privacy:delete_room",
    "threads": "rooms:threads",
    "eval": "quality:evaluate",
    "settings": "rooms:settings",
    "tune": "quality:tune",
    "reindex": "data:reindex",
    "partition": "data:partition",
    "mcp": "serving:mcp",
    "worker": "serving:worker",
    "backup": "operations:backup",
    "restore": "operations:restore",
    "move": "move:move",
    "verify": "privacy:verify",
    "session": "sessions:app",
    "keys": "operations:keys_app",
    "archive": "archive:app",
    "tenants": "operations:tenants_app",
    "messages": "messages:messages_app",
    "links": "messages:links_app",
    "memory": "memory:app",
    "facts": "facts:app",
    "models": "operations:models_app",
    "jobs": "operations:jobs_app",
    "usage": "quality:usage_app",
    "new": "first_steps:new_app",
    "help": "app:help_",
}
"""The module of this package with each command, and the function or the group of commands in it; those of the first
screen first."""

_FIRST = tuple(PLACES)[:12]
_ROOMS = ("rooms", "rename", "delete-room", "audience", "settings", "threads", "messages", "links", "chat", "session")
_MORE = {
    "Rooms": _ROOMS,
    "Memory": ("memory", "facts", "visible", "share"),
    "Data": ("export", "archive", "backup", "restore", "move", "verify", "reindex", "partition"),
    "Quality": ("eval", "tune", "usage"),
    "Operation": ("worker", "mcp", "keys", "tenants", "models", "jobs", "new"),
}
"""The commands by what they are about, beside those of the first screen. One that is in neither is an older name."""
_LISTED = frozenset(chain(_FIRST, *_MORE.values()))
_SENTENCE = re.compile(r"(?<=[.;])\s|(?<=[。；])|\n\n")
"""The end of a sentence."""


class Commands(UserDict[str, Any]):
    """The commands by name, each imported and built when it is looked up. `prepare` is called with each."""

    prepare: Callable[[Any], None] | None = None

    def __getitem__(self, name: str) -> Any:
        if isinstance(place := self.data[name], str):
            self.data[name] = self._prepared(_built(name, place))
        return self.data[name]

    def listed(self) -> "Commands":
        """Return commands with their names and help only, which need no import. One without a description is
        imported."""
        return Commands({name: self._described(name) for name in self})

    def _described(self, name: str) -> Any:
        description = _descriptions().get(name)
        return self[name] if description is None else self._prepared(Command(name, help=helped(description)))

    def _prepared(self, command: Any) -> Any:
        if self.prepare is not None:
            self.prepare(command)
        return command


def _built(name: str, place: str) -> Any:
    module, _, inside = place.partition(":")
    attribute = getattr(import_module(f"{__package__}.{module}"), inside)
    alone = App()
    if isinstance(attribute, typer.Typer):
        alone.add_typer(attribute, name=name)
    else:
        alone.command(name)(attribute)
    command = typer.main.get_group(alone).commands[name]
    command.hidden = name not in _LISTED
    return command


@cache
def _descriptions() -> Mapping[str, tuple[str, str]]:
    """Return the help of each command in English and Chinese, which `make reference` writes from the commands."""
    return dict(json.loads((files(__package__) / "words" / "commands.json").read_text(encoding="utf-8")))


class Program(Group):
    """The group of all commands. Its help imports none of them."""

    commands: Commands

    def __init__(self, **given: Any) -> None:
        super().__init__(**given | {"commands": Commands(PLACES)})

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters. Those of completion work and are not shown."""
        parameters: list[Any] = list(super().get_params(ctx))
        for parameter in parameters:
            parameter.hidden = "completion" in str(parameter.name)
        return parameters

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        more = [(say(title), ", ".join(names)) for title, names in _MORE.items()]
        panels = {"Commands": self._lines(_FIRST), "More: `roomlore help all` says what each does": more}
        print_help(self, ctx, {**panels, "Options": option_rows(self, ctx)})

    def print_all(self, ctx: Any) -> None:
        """Print every command with its help in a line, by what they are about."""
        groups = {title: self._lines(names) for title, names in _MORE.items()}
        print_help(self, ctx, {"Commands": self._lines(_FIRST), **groups})

    def _lines(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return commands with the first sentence of their help."""
        listed = self.commands.listed()
        return [(name, _SENTENCE.split(" ".join(listed[name].help.split()))[0].rstrip(".。;；")) for name in names]


app = typer.Typer(
    cls=Program,
    name="roomlore",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"roomlore {version('roomlore')}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    db: Annotated[
        str | None,
        typer.Option(
            help="The database: a path ending in `.db`, or a URL.",
            show_default="roomlore.db, the setting database_url",
            metavar="URL",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="The tenant, where there are several.", metavar="NAME")] = DEFAULT_TENANT,
    config: Annotated[
        str | None, typer.Option(help="The configuration file, in place of `roomlore.yaml`.", metavar="PATH")
    ] = None,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """The memory layer for chat agents: store messages, and get the ones that matter, each with its reason."""
    ctx.obj = Frame(config=config, database=db, tenant=tenant)


def help_(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(help="A command, such as `memory list`; `all` lists every command.")
    ] = None,
) -> None:
    """Show the help of the program, of a command, or of `all` commands."""
    program = ctx.find_root()
    if command == ["all"]:
        program.command.print_all(program)  # type: ignore[attr-defined]
    else:
        program.command.main([*(command or ()), "--help"], prog_name=program.info_name, standalone_mode=False)


def main() -> None:
    """Run the program `roomlore`. Characters that the terminal cannot show are replaced."""
    gc.disable()  # until the modules are loaded (`frame.collect_garbage`): it takes a sixth of a short command's time
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    program = typer.main.get_command(app)
    assert isinstance(program, Program)
    program.commands.prepare = translate_help
    translate_help(program)
    if interface_language() == "en":
        program()
    sys.exit(_run(program))


def _run(program: Program) -> int:
    """Run the program in Chinese, and return its status. In English Typer prints what is wrong of arguments itself."""
    try:
        status = program.main(standalone_mode=False)
    except UsageError as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # its help is printed already
            print_usage_error(error)
        return 2
    except typer.Abort:
        typer.echo("已取消。", err=True)
        return 1
    return status if isinstance(status, int) else 0
