"""The language of the command line: what it prints is in Chinese under a Chinese locale or MEMORY_LANGUAGE=zh.

The English texts are the keys of the catalogues in `words`: `help` of options and commands, and `said`, what commands
print, with its fields. What the library says is in those of `texts`. JSON is the same in every language.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from roomlore.core.errors import RoomloreError
from roomlore.surfaces.texts import text_of, words

if TYPE_CHECKING:
    from roomlore.verbs.table import Help

_PANELS = {
    "ARGUMENTS_PANEL_TITLE": "参数",
    "OPTIONS_PANEL_TITLE": "选项",
    "COMMANDS_PANEL_TITLE": "命令",
    "ERRORS_PANEL_TITLE": "错误",
    "DEFAULT_STRING": "[默认：{}]",
    "REQUIRED_LONG_STRING": "[必填]",
    "DEPRECATED_STRING": "（已弃用）",
    "ENVVAR_STRING": "[环境变量：{}]",
    "ABORTED_TEXT": "已取消。",
    "RICH_HELP": "运行 [blue]'{command_path} {help_option}'[/] 查看帮助。",
}
_VARIABLES = ("MEMORY_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_OWN_HELP = "显示帮助后退出。"
_USAGE = ("Usage:", "[OPTIONS]", "COMMAND [ARGS]...")
_COMMA = re.compile(r", (?!\d)")


def interface_language() -> Literal["en", "zh"]:
    """Return the language for help and errors: that of MEMORY_LANGUAGE, else of the locale."""
    given = (os.environ.get(name, "").strip() for name in _VARIABLES)  # noqa: TID251 - help loads no settings
    return "zh" if next(filter(None, given), "").lower().startswith("zh") else "en"


BESIDE: dict[str, str] = {}
"""The Chinese of help whose texts stand side by side, by the English."""


def helped(*parts: Help) -> str:
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
    """Return reasons of the library, which commas separate, in the user's language."""
    if interface_language() != "zh":
        return reason
    parts = _COMMA.split(reason)
    translated_parts = [text_of(part, "zh") for part in parts]
    return text_of(reason, "zh") if translated_parts == parts else "，".join(translated_parts)


def translate_help(command: Any) -> None:
    """Put the help of a command, and of those below it, and the errors of options into the user's language."""
    if interface_language() != "zh":
        return
    _translate_typer()
    known = {**_words("help"), **BESIDE}
    for each in all_commands(command):
        each.help = known.get(each.help or "", each.help)
        for parameter in each.params:
            if (help_text := getattr(parameter, "help", None)) is not None:
                parameter.help = known.get(help_text, help_text)
            if isinstance(shown := getattr(parameter, "show_default", None), str):
                parameter.show_default = shown.replace("the setting ", "设置 ")
        own = each.get_help_option
        each.get_help_option = lambda context, own=own: _with_help(own(context))


@cache
def _translate_typer() -> None:
    """Put what Typer itself prints into Chinese, once."""
    from typer import rich_utils

    for name, text in _PANELS.items():
        setattr(rich_utils, name, text)
    _fold_help(rich_utils)
    _translate_usage_errors(rich_utils)


def _fold_help(rich_utils: Any) -> None:
    """Have long Chinese texts folded: they have no spaces, and Typer would cut them at the end of a line."""
    if (made := getattr(rich_utils, "_make_rich_text", None)) is None:
        return

    def folded(**given: Any) -> Any:
        text = made(**given)
        text.overflow = "fold"
        return text

    rich_utils._make_rich_text = folded  # noqa: SLF001


def _translate_usage_errors(rich_utils: Any) -> None:
    """Have what Typer itself says of arguments and options said in Chinese."""
    print_error, print_help = rich_utils.rich_format_error, rich_utils.rich_format_help

    def in_chinese(self: Any) -> None:
        if (context := getattr(self, "ctx", None)) is not None:
            usage = context.get_usage()
            context.get_usage = lambda: _usage_in_chinese(usage)
        told_of_error = text_of(self.format_message(), "zh")
        self.format_message = lambda: told_of_error
        print_error(self)

    def help_in_chinese(*, obj: Any, ctx: Any, markup_mode: Any) -> None:
        own = obj.get_usage
        obj.get_usage = lambda context: _usage_in_chinese(own(context))
        print_help(obj=obj, ctx=ctx, markup_mode=markup_mode)

    rich_utils.rich_format_error = in_chinese
    rich_utils.rich_format_help = help_in_chinese


def _usage_in_chinese(usage: str) -> str:
    for english in _USAGE:
        usage = usage.replace(english, _words("said")[english])
    return usage


def translated(text: str | RoomloreError) -> str:
    """Return what the library says in the user's language, or as it is if it is not among the translated texts."""
    return text_of(text, interface_language())


def all_commands(command: Any) -> Iterator[Any]:
    """Yield the command and those below it that are built. The program's own are translated when they are."""
    yield command
    below = getattr(command, "commands", {})
    for inner in below.values() if isinstance(below, dict) else ():
        yield from all_commands(inner)


def _with_help(option: Any) -> Any:
    if option is not None:
        option.help = _OWN_HELP
    return option


def _words(name: str) -> Mapping[str, str]:
    return words(name, "roomlore.surfaces.cli")
