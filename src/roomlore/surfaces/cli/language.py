"""The language of the command line: help and frequent errors in Chinese under a Chinese locale or MEMORY_LANGUAGE=zh.

Everything else that a command prints is in English, so that programs and documentation find it as it is.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from typer import rich_utils

_PANELS = {
    "ARGUMENTS_PANEL_TITLE": "参数",
    "OPTIONS_PANEL_TITLE": "选项",
    "COMMANDS_PANEL_TITLE": "命令",
    "ERRORS_PANEL_TITLE": "错误",
    "DEFAULT_STRING": "[默认：{}]",
    "REQUIRED_LONG_STRING": "[必填]",
}
_VARIABLES = ("MEMORY_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_OWN_HELP = "显示帮助后退出。"
_OF_ANY_TEXT = frozenset({"error", "why", "known", "place"})
_PLACE = re.compile(r"\\\{(\w+)\\\}")


def interface_language() -> Literal["en", "zh"]:
    """Return the language for help and errors: that of MEMORY_LANGUAGE, else of the locale."""
    given = (os.environ.get(name, "").strip() for name in _VARIABLES)  # noqa: TID251 - help loads no settings
    return "zh" if next(filter(None, given), "").lower().startswith("zh") else "en"


def translate_help(command: Any) -> None:
    """Put the help of a command, and of those below it, into the user's language."""
    if interface_language() != "zh":
        return
    for name, text in _PANELS.items():
        setattr(rich_utils, name, text)
    _fold_help()
    known = _words("help")
    for one in _all(command):
        one.help = known.get(one.help or "", one.help)
        for parameter in one.params:
            if (said := getattr(parameter, "help", None)) is not None:
                parameter.help = known.get(said, said)
            if isinstance(shown := getattr(parameter, "show_default", None), str):
                parameter.show_default = shown.replace("the setting ", "设置 ")
        own = one.get_help_option
        one.get_help_option = lambda context, own=own: _with_help(own(context))


def _fold_help() -> None:
    """Have long Chinese texts folded: they have no spaces, and Typer would cut them at the end of a line."""
    if (made := getattr(rich_utils, "_make_rich_text", None)) is None:
        return

    def folded(**given: Any) -> Any:
        text = made(**given)
        text.overflow = "fold"
        return text

    rich_utils._make_rich_text = folded  # noqa: SLF001


def translated(error: str) -> str:
    """Return the text of an error in the user's language, or as it is if it is not among the translated ones."""
    return into_chinese(error) if interface_language() == "zh" else error


def into_chinese(error: str) -> str:
    """Return the Chinese text of an error, or the error as it is."""
    for pattern, text in _errors():
        if found := pattern.fullmatch(error):
            return text.format_map({name: into_chinese(value) for name, value in found.groupdict().items()})
    return error


def _all(command: Any) -> Iterator[Any]:
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from _all(below)


def _with_help(option: Any) -> Any:
    if option is not None:
        option.help = _OWN_HELP
    return option


@cache
def _words(name: str) -> Mapping[str, str]:
    return dict(json.loads((files(__package__) / "words" / f"{name}.zh.json").read_text(encoding="utf-8")))


@cache
def _errors() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns of the translated errors with their texts: first what is put around other errors, then those
    with the most words of their own."""

    def place(pair: tuple[str, str]) -> tuple[bool, int]:
        return not pair[0].startswith("{error}"), -len(re.sub(r"\{\w+\}", "", pair[0]))

    ordered = sorted(_words("errors").items(), key=place)
    return tuple((re.compile(_PLACE.sub(_group, re.escape(said)), re.DOTALL), text) for said, text in ordered)


def _group(place: re.Match[str]) -> str:
    """Return the pattern of a place. A name or a number holds no semicolon, which begins another part of a sentence."""
    name = place[1]
    return f"(?P<{name}>{'.+' if name in _OF_ANY_TEXT else '[^;]+'})"
