"""The table of verbs and what derives from it."""

import inspect
import pkgutil
import re
from importlib import import_module

import pytest
import typer.main

from roomlore import Settings, verbs
from roomlore.surfaces.cli.app import app
from roomlore.verbs.table import NEEDED
from roomlore_server.http import create_app
from roomlore_server.mcp import TOOLS

MODULES = [import_module(f"roomlore.verbs.{one.name}") for one in pkgutil.iter_modules(verbs.__path__)]
EVERY = [verb for module in MODULES for verb in getattr(module, "VERBS", ())]
VERBS = {verb.name: verb for verb in EVERY}
HAN = re.compile(r"[\u4e00-\u9fff]")
BY_HAND = {"facts.delete", "facts.history", "memories.delete", "sessions.list"}
"""Verbs whose commands ask first, are those of another noun, or print every page."""
COMMANDS = {name: verb for name, verb in VERBS.items() if verb.command and name not in BY_HAND}


@pytest.fixture(scope="module")
def operations():
    paths = create_app(Settings()).openapi()["paths"]
    return {f"{method.upper()} {path}": found for path, by in paths.items() for method, found in by.items()}


def test_every_verb_and_argument_has_help_in_both_languages():
    assert len(VERBS) == len(EVERY), "two verbs have one name"
    for one in [*VERBS.values(), *(one for verb in VERBS.values() for one in verb.arguments)]:
        assert one.en.endswith("."), one
        assert HAN.search(one.zh), one
        assert one.zh.endswith("。"), one


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_verb_takes_its_arguments(verb):
    """What `run` needs is given by arguments that are needed, and what it may be given by the others."""
    taken = list(inspect.signature(verb.run).parameters.values())[2:]
    named = {one.name: one.default for one in taken if one.kind is inspect.Parameter.KEYWORD_ONLY}
    needed = {name for name, default in named.items() if default is inspect.Parameter.empty}
    written_twice = {name for name in named.keys() - needed if verb[name].default is not None}
    assert written_twice == set(), "the table has the default, and fills it in"
    if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken):
        assert named.keys() == verb.by_name.keys()
    assert needed <= {one.name for one in verb.arguments if one.default is not None}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_verb_is_where_the_table_says(verb, operations):
    assert verb.tool in {"", *(tool.name for tool in TOOLS)}
    group_alone = getattr(_command_of(verb), "commands", None) and not _command_of(verb).invoke_without_command
    assert not (verb.command and group_alone), "nothing happens without one of its commands"
    if verb.route:
        path = re.escape(verb.route).replace(r"\{", "{").replace(r"\}", "}")
        pattern = re.compile(re.sub(r"\{\w+\}", r"\\{\\w+\\}", path))
        assert [name for name in operations if pattern.fullmatch(name)], verb.route


@pytest.mark.parametrize("verb", COMMANDS.values(), ids=COMMANDS)
def test_a_command_has_the_help_of_its_verb(verb):
    command = _command_of(verb)
    assert command.help == verb.en
    told = {getattr(one, "help", None) for one in command.params}
    assert [one.name for one in verb.arguments if one.default is NEEDED and not _is_told(one.en, told)] == []


def _command_of(verb):
    command = typer.main.get_command(app)
    for name in verb.command.split():
        command = command.commands[name]
    return command


def _is_told(help_: str, told: set[str | None]) -> bool:
    return any(one is not None and one.startswith(help_) for one in told)
