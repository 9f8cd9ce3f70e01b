"""The reference is what the code says: it has everything, and what is made from the code beside it is as it would be
made now."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import cached_property
from typing import TypedDict, Unpack

import pytest
from docsite import commands, marked, reference, sync_stub

import roomlore
from roomlore.adapters.telemetry import METRICS, SUMMARIES
from roomlore.settings import known_fields
from roomlore_importers import FORMATS
from roomlore_server.http.problems import KINDS, STATUS, status_of

PAGES = reference.pages()
COMMANDS = commands.commands()


def section(name: str) -> str:
    found = re.search(rf"^## `roomlore {name}\b(?! [a-z]).*?(?=^## |\Z)", PAGES["cli.md"], re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference/cli.md says nothing of roomlore {name}"
    return found.group()


def test_the_pages_in_the_repository_have_nothing_that_is_made():
    for name, text in PAGES.items():
        kept = (reference.REFERENCE / name).read_text(encoding="utf-8")
        regions = re.findall(r"^<!-- made: .+ -->\n(.*\n)", kept, re.MULTILINE)
        assert set(regions) == {"<!-- end -->\n"}
        assert len(kept) < len(text)


def test_the_types_of_the_synchronous_client_are_those_of_the_async_one():
    assert sync_stub.STUB.read_text(encoding="utf-8") == sync_stub.stub(), "`make reference` makes it anew"


def test_the_list_of_commands_says_what_the_commands_say():
    assert commands.DESCRIPTIONS.read_text(encoding="utf-8") == commands.descriptions(), (
        "`make reference` makes it anew"
    )


def test_options_and_functions_of_the_caller_are_written_for_a_program_that_does_not_await():
    class Options(TypedDict, total=False):
        call: Callable[[int], Awaitable[str]]

    def verb(self, name: str, **options: Unpack[Options]) -> AsyncGenerator[str, None]: ...

    written = "def verb(self, name: str, *, call: Callable[[int], str | Awaitable[str]] = ...)"
    assert sync_stub._Types().function(verb) == f"{written} -> Generator[str, None, None]: ...\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_headed_by_how_it_is_called_and_every_option_told(name):
    told = section(name)
    assert told.splitlines()[0] == f"## `{commands.usage(name, COMMANDS[name])}`"
    shown = [one for one in COMMANDS[name].params if one.name != "help"]
    for one in shown:
        assert one.help, f"{one.name} of roomlore {name} has no help"
    options = [one for one in shown if one.param_type_name == "option"]
    spelled = {spelling for one in options for spelling in (*one.opts, *one.secondary_opts)}
    rows = "\n".join(line.split(" | ")[0] for line in told.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(--?[a-z-]+)", rows)) == spelled


def test_no_command_is_invented_and_each_is_in_the_overview():
    headed = re.findall(r"^## `roomlore ([a-z-]+(?: [a-z-]+)?)", PAGES["cli.md"], re.MULTILINE)
    assert sorted(headed) == sorted(COMMANDS)
    assert re.findall(r"^\| \[`roomlore ([a-z -]+)`\]", PAGES["cli.md"], re.MULTILINE) == list(COMMANDS)


def test_every_format_is_named():
    row = re.search(r"`--format` \|(.*)", section("import")).group(1)
    assert set(re.findall(r"[\w-]+", row)) >= set(FORMATS)


def test_every_setting_is_told_with_its_range():
    rows = re.findall(r"^\| `(\w+)`(?: \*room\*)? \| .* \| (.+) \| (.+) \|$", PAGES["settings.md"], re.MULTILINE)
    assert [name for name, _, _ in rows] == list(known_fields())
    assert "| `strategy` *room* | `threaded` | one of threaded, weighted, recent |" in PAGES["settings.md"]


async def test_every_path_is_told_with_its_scope():
    rows = re.findall(r"^\| `(/\S*)` \| ([A-Z]+) \| (\w+) \|", PAGES["http.md"], re.MULTILINE)
    scopes = {(path, method): scope for path, method, scope in rows}
    for path, method in scopes:
        assert f"## {method} {path}\n" in PAGES["http-fields.md"]
    assert scopes["/messages", "POST"] == "write"
    assert scopes["/context", "POST"] == "read"
    assert scopes["/metrics", "GET"] == "admin"
    assert scopes["/health/live", "GET"] == "none"
    assert "| `/memory/diff/{group_id}` | GET | admin | query: `from`, and if you like `to` |" in PAGES["http.md"]
    corrected = "| write | query: if you like `viewer` · body: `answers`, and if you like `by` |"
    assert f"| `/messages/{{room_id}}/{{message_id}}/link` | PUT {corrected}" in PAGES["http.md"]


def test_every_metric_and_every_problem_is_told():
    told = set(re.findall(r"^\| `(roomlore_\w+)[`{]", PAGES["http.md"], re.MULTILINE))
    assert told == set(METRICS) | {f"roomlore_{name}" for name in SUMMARIES}
    kinds = re.findall(r"^\| (\d+) \| `urn:roomlore:([a-z-]+)`", PAGES["http.md"], re.MULTILINE)
    assert [(int(status), name) for status, name in kinds] == [(kind.status, kind.name) for kind in KINDS]
    assert {status_of(error()) for error in STATUS} <= {kind.status for kind in KINDS}


async def test_every_public_name_and_verb_is_told():
    told = PAGES["python.md"]
    heads = set(re.findall(r"^#{2,3} `?([\w.]+)`?$", told, re.MULTILINE))
    assert [name for name in roomlore.__all__ if not {name, f"roomlore.{name}"} & heads] == []
    async with roomlore.open("sqlite://", background=False) as lore:
        for name, kind in vars(roomlore.Lore).items():
            if name[0] != "_" and isinstance(kind, cached_property):
                service = getattr(lore, name)
                verbs = {verb for verb in dir(service) if verb[0] != "_" and callable(getattr(service, verb))}
                assert {f"lore.{name}.{verb}" for verb in verbs} <= heads
    assert "<object" not in told
    assert " at 0x" not in told


def test_a_region_that_the_page_lacks_is_an_error():
    page = "prose\n\n<!-- made: one -->\nold\n<!-- end -->\n\nmore prose\n"
    assert marked.filled(page, {"one": "new\n"}) == page.replace("old", "new")
    for made in ({}, {"one": "", "two": ""}, {"two": ""}):
        with pytest.raises(KeyError, match="lacks"):
            marked.filled(page, made)


def test_cells_stay_in_their_columns():
    told = marked.table("a", "b", rows=[("`x | y`", "this | that")])
    assert told.splitlines()[-2] == "| <code>x &#124; y</code> | this &#124; that |"
    assert marked.escaped("a <id>\n  in `<code>`") == "a &lt;id> in `<code>`"
