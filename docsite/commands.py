"""The generated parts of docs/reference/cli.md: the arguments and options of each command, from the program's own
help."""

import json
import re
from collections.abc import Iterator, Mapping
from enum import EnumMeta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from docsite.marked import escaped, in_words, table
from roomlore.surfaces import cli
from roomlore.surfaces.cli.app import app
from roomlore.surfaces.cli.language import BESIDE
from roomlore.surfaces.texts import words

DESCRIPTIONS = Path(cli.__file__).parent / "words" / "commands.json"
_SETTING = re.compile(r"the setting (\w+)")
_NOUNS = {int: "a whole number", float: "a number"}


def regions() -> Mapping[str, str]:
    """Return the tables by the names of their regions."""
    root = typer.main.get_command(app)
    told = {f"cli {name}": _parameters(command) for name, command in commands().items() if command.params}
    return {"commands": _overview(), "cli": _parameters(root), **told}


def commands() -> dict[str, Any]:
    """Return every command that does something by itself, by its name with those of its groups."""
    return dict(_within(typer.main.get_command(app), ()))


def descriptions() -> str:
    """Return the help of each command and group of the program in both languages, which its list of commands shows."""
    program: Any = typer.main.get_command(app)
    english = {name: one.help for name, one in program.commands.items()}
    chinese = {**words("help", "roomlore.surfaces.cli"), **BESIDE}
    texts = {name: (text, chinese[text]) for name, text in english.items()}
    rows = (f"  {json.dumps(name)}: {json.dumps(told, ensure_ascii=False)}" for name, told in texts.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def usage(name: str, command: Any) -> str:
    """Return the usage of a command, without its options."""
    return " ".join(["roomlore", name, *(_argument(one) for one in _arguments(command))])


def _within(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if path and (not inner or command.invoke_without_command):
        yield " ".join(path), command
    for name, one in inner.items():
        if one.hidden:
            continue
        yield from _within(one, (*path, name))


def _arguments(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "argument"]


def _overview() -> str:
    rows = [(f"[`roomlore {name}`](#{_anchor(usage(name, one))})", _first(one)) for name, one in commands().items()]
    return table("command", "what it does", rows=rows)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _first(command: Any) -> str:
    """Return the first sentence of a command's help."""
    return re.split(r"(?<=[.])\s", " ".join(command.help.split()))[0]


def _parameters(command: Any) -> str:
    shown = [*_arguments(command), *(one for one in command.params if one.param_type_name == "option")]
    shown = [one for one in shown if one.name != "help" and not one.hidden]
    rows = [(_names(one), _values(one), escaped(one.help or "")) for one in shown]
    return table("argument or option", "values", "meaning", rows=rows) if rows else "\n"


def _names(one: Any) -> str:
    if one.param_type_name == "argument":
        return f"`{_argument(one)}`"
    names = [*one.opts, *one.secondary_opts]
    if one.metavar:
        names[-1] += f" {one.metavar}"
    return ", ".join(f"`{name}`" for name in names)


def _argument(one: Any) -> str:
    name = one.metavar or one.name.upper()
    if not one.required and not name.startswith("["):
        name = f"[{name}]"
    return f"{name}..." if one.nargs < 0 else name


def _values(one: Any) -> str:
    return "; ".join(filter(None, (_kind(one), _default(one))))


def _kind(one: Any) -> str:
    kind = one.type_descriptor.annotation if one.type_descriptor else str
    inner = next((part for part in get_args(kind) if part is not type(None)), kind) if _wraps(kind) else kind
    if _wraps(inner):
        return _kind_of(get_args(inner)[0], one)
    return _kind_of(inner, one)


def _wraps(kind: Any) -> bool:
    return get_origin(kind) not in (None, Literal)


def _kind_of(kind: Any, one: Any) -> str:
    choices = get_args(kind) if get_origin(kind) is Literal else [m.value for m in kind] if _is_enum(kind) else ()
    if choices:
        return in_words(choices)
    noun = _NOUNS.get(kind, "")
    bounds = " ".join(f"{word} {bound:,g}" for word, bound in (("from", one.min), ("to", one.max)) if bound is not None)
    return f"{noun} {bounds}".strip()


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, EnumMeta)


def _default(one: Any) -> str:
    if isinstance(one.show_default, str):
        return "by default " + _SETTING.sub(r"[`\1`](settings.md#all-settings)", one.show_default)
    if one.default in (None, "", False) or not one.show_default or one.param_type_name == "argument":
        return ""
    value = one.opts[0] if one.default is True else one.default
    return f"by default `{value:g}`" if isinstance(value, float) else f"by default `{value}`"
