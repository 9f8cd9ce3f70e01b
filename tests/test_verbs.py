"""The table of verbs and what derives from it."""

import html
import inspect
import pkgutil
import re
from importlib import import_module

import pytest
import typer.main

import roomlore
from console_rig import LANGUAGES, asking, page
from roomlore import Settings, verbs
from roomlore.surfaces.cli.app import app
from roomlore.verbs.table import NEEDED, Choice, Many, Number, Text
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


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", settings=Settings()) as opened:
        yield opened


@pytest.fixture
async def http(lore):
    async with asking(lore) as client:
        yield client


def _fields_of(shown: str) -> dict[str, str]:
    """Return what a form has of each field that a person fills in, by its name: the label, the field and the hint."""
    inside = shown.partition('class="stack"')[2].partition("</form>")[0]
    found = re.findall(r"<label>.*?(?=<label>|<p><button)", inside, re.DOTALL)
    return {re.search(r' name="(\w+)"', one)[1]: html.unescape(one) for one in found}


def _says_as_the_table(field: str, argument, language: str) -> bool:
    """Return True if the help is the hint or the label, which has no full stop. Pages call the words of a choice by
    names of their own."""
    said = getattr(argument.help, language).replace("`", "")
    words = argument.form.words if isinstance(argument.form, Choice) else ()
    parts = re.split(rf"(?:{'|'.join(words)})(?=[:：])", said) if words else [said[:-1]]
    return all(part.strip() in field for part in parts)


def _outside(form) -> list[str]:
    """Return what is just outside the bounds."""
    match form:
        case Text(most):
            return ["字" * (most + 1)]
        case Number(low, high):
            return [str(low - 0.01), str(high + 0.01), "nan", "x"]
        case Choice():
            return ["odd"]
        case Many(Text(most), many):
            return ["字" * (most + 1), ",".join(map(str, range(many + 1)))]
    raise AssertionError(form)


def _inside(form) -> list[str]:
    """Return what is just within the bounds."""
    match form:
        case Text(most):
            return ["字" * most, "👩‍👩‍👧‍👦" * min(most, 64)]
        case Number(low, high):
            return [str(low), str(high)]
        case Choice(words):
            return list(words)
        case Many(Text(most), many):
            return ["字" * most, ",".join(map(str, range(many)))]
    raise AssertionError(form)


def _written_by() -> dict:
    added = {name: VERBS["facts.add"][name] for name in ("statement", "confidence", "category", "tags", "kind")}
    return {**added, "reason": VERBS["facts.change"]["reason"]}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_form_that_adds_a_fact_says_what_the_table_says(http, language):
    shown = _fields_of(await page(http, "/console/memory/write?scope=group:anna", language=language))
    written = _written_by()
    assert shown.pop("seen_in"), "who may see it, which a caller tells by the viewer"
    assert list(shown) == list(written)
    for name, argument in written.items():
        assert _says_as_the_table(shown[name], argument, language), name
        assert (" required" in shown[name]) == argument.is_needed, name
        if isinstance(argument.form, Choice):
            assert re.findall(r'<option value="(\w+)"', shown[name]) == list(argument.form.words)
        else:
            units = int(re.search(r'maxlength="(\d+)"', shown[name])[1])
            assert all(len(one.encode("utf-16-le")) // 2 <= units for one in _inside(argument.form)), name


@pytest.mark.parametrize("name", _written_by())
async def test_the_form_that_adds_a_fact_has_the_bounds_of_the_table(http, lore, name):
    path, form = "/console/memory/write?scope=group:anna", _written_by()[name].form
    token = re.search(r'name="token" value="([^"]+)"', await page(http, path))[1]
    for number, (typed, status) in enumerate(
        [*((one, 422) for one in _outside(form)), *((one, 303) for one in _inside(form))]
    ):
        answer = await http.post(path, data={"token": token, "statement": f"no {number}", name: typed})
        assert answer.status_code == status, (typed[:40], answer.text[-600:])
        assert (f'id="wrong-{name}"' in answer.text) == (status == 422)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_form_that_asks_back_takes_the_reason_of_its_verb(http, lore, language):
    await lore.memories.add("group:tea", "we drink tea", memory_id="f1")
    for what in ("delete", "restore"):
        path, reason = f"/console/memory/change?what={what}&id=f1", VERBS[f"memories.{what}"]["reason"]
        shown = await page(http, path, language=language)
        assert list(_fields_of(shown)) == ["reason"]
        assert _says_as_the_table(_fields_of(shown)["reason"], reason, language)
        token = re.search(r'name="token" value="([^"]+)"', shown)[1]
        (long,) = _outside(reason.form)
        back = await http.post(path, data={"token": token, "reason": long}, headers=LANGUAGES[language])
        assert (back.status_code, 'id="wrong-reason"' in back.text, long in back.text) == (422, True, True)
        done = await http.post(path, data={"token": token, "reason": _inside(reason.form)[0]})
        assert done.status_code == 303
