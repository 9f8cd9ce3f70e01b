"""The language of the command line: what it prints is in Chinese under a Chinese locale or MEMORY_LANGUAGE=zh.

The English texts are the keys of the catalogues in `words`: `help` of options and commands, and `said`, what commands
print, with its fields. What the library says is in those of `texts`. JSON is the same in every language.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand

from roomlore.core.errors import RoomloreError
from roomlore.surfaces.texts import text_of, words

if TYPE_CHECKING:
    from roomlore.verbs.table import Help

F = TypeVar("F", bound=Callable[..., Any])
_VARIABLES = ("MEMORY_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_OWN_HELP = "显示帮助后退出。"
_EXTRAS = ("default: ", "env var: ", "required")
_USAGE = ("Usage:", "[OPTIONS]", "COMMAND [ARGS]...")
_NAMES_WIDTH = 36
# The braces around what must be given.
_BRACES = re.compile(r"\{([^{}]*)\}")
# Where a longer Latin word begins behind a Chinese character or mark.
_LATIN = re.compile(r"(?<=[\u3001-\u9fff\uff09-\uffef])(?=[（《“]?[A-Za-z0-9_.'/-]{6})")
_COMMA = re.compile(r", (?!\d)")
_ONE_LINE = 24  # Chinese characters


def interface_language() -> Literal["en", "zh"]:
    """Return the language for help and errors: that of MEMORY_LANGUAGE, else of the locale."""
    given = (os.environ.get(name, "").strip() for name in _VARIABLES)  # noqa: TID251 - help loads no settings
    return "zh" if next(filter(None, given), "").lower().startswith("zh") else "en"


BESIDE: dict[str, str] = {}
"""The Chinese of help whose texts stand side by side, by the English."""


def helped(*parts: Help | tuple[str, str]) -> str:
    """Return a help text in English, made of these parts, and keep its Chinese for `translate_help`."""
    english, chinese = ("".join(texts) for texts in zip(*parts, strict=True))
    if BESIDE.setdefault(english, chinese) != chinese:
        raise ValueError(f"The help {english!r} has two texts in Chinese.")
    return english


def say(english: str, /, **values: object) -> str:
    """Return a text of the command line in the user's language, with its fields filled."""
    known = _words("said") if interface_language() == "zh" else {}
    return known.get(english, english).format_map(values)


def several(count: int, singular: str, many: str, /, **values: object) -> str:
    """Return one of two texts by the number, which is their field `count`. Chinese has the second one only."""
    single = count == 1 and interface_language() != "zh"
    return say(singular if single else many, count=count, **values)


def causes(reason: str) -> str:
    """Return reasons of the library, which semicolons or commas separate, in the user's language."""
    if interface_language() != "zh":
        return reason
    return "；".join(map(_cause, reason.split("; ")))


def _cause(reason: str) -> str:
    text = text_of(reason, "zh")
    return text if text != reason else "，".join(text_of(part, "zh") for part in _COMMA.split(reason))


class Shown:
    """A command, or a group of them, whose help is in the user's language. In English it is that of Typer."""

    def get_usage(self, ctx: Any) -> str:
        usage = _BRACES.sub(r"\1", super().get_usage(ctx))  # type: ignore[misc]
        for english in _USAGE:
            usage = usage.replace(english, say(english))
        return usage

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
            option.help = option.help if interface_language() == "en" else _OWN_HELP
        return option

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if interface_language() == "en":
            super().format_help(ctx, formatter)  # type: ignore[misc]
        else:
            print_help(self, ctx, _rows(self, ctx))


class Command(Shown, TyperCommand):
    """A command of the program. It takes options by their older names too, and shows the names of its arguments in
    capitals."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for parameter in self.params:
            if parameter.param_type_name == "argument" and not getattr(parameter, "metavar", None):
                parameter.metavar = str(parameter.name).strip("_").upper()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for parameter in self.params for name in parameter.opts}
        return super().parse_args(ctx, [newer for word in args for newer in _newer(word, known)])


_OLDER = {"--everywhere": "--all", "--sender": "--as", "--agent-id": "--agent", "--model-id": "--model"}


def _newer(word: str, known: Collection[str]) -> Iterator[str]:
    """Yield an option under its present name, if the command has that and not the older one. `--room` before what has a
    place now is left out."""
    name, sign, value = word.partition("=")
    newer = _OLDER.get(name, name)
    if name == "--room" and name not in known and "room" in known:
        yield from (value,) if sign else ()
    else:
        yield f"{newer}{sign}{value}" if newer in known and name not in known else word


class App(typer.Typer):
    """Commands whose help is in the user's language."""

    def command(self, name: str | None = None, **given: Any) -> Callable[[F], F]:
        return super().command(name, **{"cls": Command, **given})


def translate_help(command: Any) -> None:
    """Put the help of a command, and of those below it, into the user's language. Show switches without a type."""
    known = {**_words("help"), **BESIDE} if interface_language() == "zh" else {}
    for each in all_commands(command):
        each.help = known.get(each.help or "", each.help)
        for parameter in each.params:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
            if (text := getattr(parameter, "help", None)) is not None:
                parameter.help = known.get(text, text)
            if known and isinstance(shown := getattr(parameter, "show_default", None), str):
                parameter.show_default = shown.replace("the setting ", "设置 ").replace(", ", "，")


def print_help(command: Any, context: Any, panels: Mapping[str, Sequence[tuple[str, Any]]]) -> None:
    """Print the help of a command with these rows under titles. A Chinese text has no spaces, and is folded at the end
    of a line."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Padding(Text(command.get_usage(context), "bold"), 1))
    console.print(Padding(_folded(command.help), (0, 1, 1, 1)))
    for title, rows in panels.items():
        _print_panel(console, say(title), rows)


def _rows(command: Any, context: Any) -> Mapping[str, Sequence[tuple[str, Any]]]:
    names = command.list_commands(context) if hasattr(command, "list_commands") else ()
    below = [one for name in names if (one := command.get_command(context, name)) and not one.hidden]
    return {
        "Arguments": _rows_of(command, context, "argument"),
        "Options": option_rows(command, context),
        "Commands": [(one.name, _folded(one.help)) for one in below],
    }


def option_rows(command: Any, context: Any) -> list[tuple[str, Any]]:
    """Return the options of a command with their help, without those that no command has for itself."""
    return _rows_of(command, context, "option")


def _rows_of(command: Any, context: Any, kind: str) -> list[tuple[str, Any]]:
    shown = (one for one in command.get_params(context) if not getattr(one, "hidden", False))
    return [_row(one, context) for one in shown if one.param_type_name == kind]


def _print_panel(console: Any, title: str, rows: Sequence[tuple[str, Any]]) -> None:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(max_width=_NAMES_WIDTH, overflow="fold")
    table.add_column(ratio=1)
    for name, text in rows:
        table.add_row(Text(name, "bold cyan"), _folded(text) if isinstance(text, str) else text)
    if rows:
        console.print(Panel(table, title=title, title_align="left", border_style="dim"))


def _row(parameter: Any, context: Any) -> tuple[str, Any]:
    """Return the names of a parameter, and its help with the default at its end."""
    names, text = parameter.get_help_record(context)
    extra = text[len(parameter.help or "") :].strip()
    for english in _EXTRAS:
        extra = extra.replace(english, say(english))
    return names, _folded(parameter.help).append(f" {extra}" if extra else "", "dim")


def _folded(text: str | None) -> Any:
    from rich.text import Text

    folded = Text.from_markup(parted(text or ""))
    folded.overflow = "fold"
    return folded


def parted(text: str) -> str:
    """Return a Chinese text of more than a line with a space before each longer word of Latin letters, so that a line
    breaks there and not within the word."""
    return _LATIN.sub(" ", text) if len(text) > _ONE_LINE else text


def print_usage_error(error: Any) -> None:
    """Print in Chinese what is wrong with the arguments and options of a command."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console, context = Console(stderr=True, highlight=False), getattr(error, "ctx", None)
    if context is not None:
        asked = f"{context.command_path} {context.help_option_names[0]}"
        console.print(Text(context.get_usage(), "bold"))
        console.print(Text.assemble("运行 ", (f"'{asked}'", "blue"), " 查看帮助。", style="dim"))
    text = Text(text_of(error.format_message(), "zh"), overflow="fold")
    console.print(Panel(text, title="错误", title_align="left", border_style="red"))


def translated(text: str | RoomloreError) -> str:
    """Return what the library says in the user's language, or as it is if it is not among the translated texts."""
    return text_of(text, interface_language())


def all_commands(command: Any) -> Iterator[Any]:
    """Yield the command and those below it that are built. The program's own are translated when they are."""
    yield command
    below = getattr(command, "commands", {})
    for inner in below.values() if isinstance(below, dict) else ():
        yield from all_commands(inner)


def _words(name: str) -> Mapping[str, str]:
    return words(name, "roomlore.surfaces.cli")
