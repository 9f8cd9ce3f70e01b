"""The reference is complete: every command, option, setting, path, metric and kind of problem is in it as it is."""

import re
from pathlib import Path

import pytest
import typer

from roomlore.adapters.inprocess.telemetry import METRICS, SUMMARIES
from roomlore.core.context import ContextOptions
from roomlore.importers import FORMATS
from roomlore.settings import Settings, explain, range_of
from roomlore.surfaces.cli.app import app as commands
from roomlore.surfaces.http.problems import _KINDS, _OWN_KINDS, STATUS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
CLI = (REFERENCE / "cli.md").read_text(encoding="utf-8")
HTTP = (REFERENCE / "http.md").read_text(encoding="utf-8")
SETTINGS = (REFERENCE / "settings.md").read_text(encoding="utf-8")


def every_command(command, path=()):
    if path and getattr(command, "invoke_without_command", False):
        yield " ".join(path), command
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from every_command(inner, (*path, name))
    else:
        yield " ".join(path), command


COMMANDS = dict(every_command(typer.main.get_command(commands)))


def section(name: str) -> str:
    found = re.search(rf"^## `roomlore {name}\b.*?(?=^## |\Z)", CLI, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference/cli.md says nothing of roomlore {name}"
    return found.group()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_described(name):
    told = section(name)
    parameters = [one for one in COMMANDS[name].params if one.name != "help"]
    options = {
        spelling
        for one in parameters
        if one.param_type_name == "option"
        for spelling in (*one.opts, *one.secondary_opts)
    }
    described = set(
        re.findall(r"`(--?[a-z-]+)", "\n".join(line for line in told.splitlines() if line.startswith("| `")))
    )
    assert described == options
    heading = told.splitlines()[0]
    for one in parameters:
        if one.param_type_name == "argument":
            assert one.name.upper() in heading


def test_no_command_is_invented():
    assert set(re.findall(r"^## `roomlore ([a-z]+(?: [a-z-]+)?)", CLI, re.MULTILINE)) == set(COMMANDS)


def test_every_global_option_is_described():
    head = CLI.partition("\n## ")[0]
    for one in typer.main.get_command(commands).params:
        for spelling in one.opts:
            assert f"`{spelling}" in head


def test_every_format_is_named():
    assert set(re.findall(r"`(\w+)`", re.search(r"`--format` \|(.*)", section("import")).group(1))) == set(FORMATS)


def test_every_setting_is_described_as_it_is(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    rooms = ContextOptions().flat()
    expected = [
        f"| `{row.name}`{' *room*' if row.name in rooms else ''} | {f'`{row.value}`' if row.value else ''} "
        f"| {range_of(row.name)} | {row.description} |"
        for row in explain(Settings())
    ]
    assert [line for line in SETTINGS.splitlines() if line.startswith("| `")] == expected


async def test_every_path_is_described(http):
    paths = (await http.get("/openapi.json")).json()["paths"]
    there = {(path, method.upper()) for path, methods in paths.items() for method in methods}
    assert set(re.findall(r"^\| `(/\S*)` \| ([A-Z]+) \| \w+ \|", HTTP, re.MULTILINE)) == there


def test_every_metric_is_described():
    told = set(re.findall(r"^\| `(roomlore_\w+)[`{]", HTTP, re.MULTILINE))
    assert told == set(METRICS) | {f"roomlore_{name}" for name in SUMMARIES}


def test_every_kind_of_problem_is_described():
    told = re.findall(r"^\| (\d+) \| `urn:roomlore:([a-z-]+)`", HTTP, re.MULTILINE)
    own = [(STATUS[error], kind) for error, (kind, _) in _OWN_KINDS.items()]
    usual = [(status, kind) for status, (kind, _) in _KINDS.items()]
    assert sorted((int(status), kind) for status, kind in told) == sorted(usual + own)
