"""Seed 004, sections 6.1 and 7.1: the settings, their environment variables, and what each of them changes."""

import json

import pytest
from group_chat import GROUP, TALK, ids, said
from rig import command

import roomlore
from roomlore import Lore, Settings

VARIABLES = {
    "MEMORY_ENABLE_INTELLIGENT_MEMORY": (True, "false", False),
    "MEMORY_FALLBACK_ON_ERROR": (True, "false", False),
    "MEMORY_MAX_CONTEXT_MESSAGES": (20, "7", 7),
    "MEMORY_TIME_WINDOW_HOURS": (24, "48", 48),
    "MEMORY_RELEVANCE_THRESHOLD": (0.3, "0.5", 0.5),
    "MEMORY_REPLY_CHAIN_WEIGHT": (0.4, "0.5", 0.5),
    "MEMORY_USER_CONTINUITY_WEIGHT": (0.15, "0.1", 0.1),
    "MEMORY_TIME_DECAY_WEIGHT": (0.2, "0.3", 0.3),
    "MEMORY_MENTION_RELATION_WEIGHT": (0.15, "0.1", 0.1),
    "MEMORY_KEYWORD_OVERLAP_WEIGHT": (0.1, "0.2", 0.2),
    "MEMORY_CONTEXT_BUILD_TIMEOUT_SECONDS": (5, "2", 2),
    "MEMORY_ENABLE_ASYNC_DATA_COLLECTION": (True, "false", False),
}


def name_of(variable: str) -> str:
    return variable.removeprefix("MEMORY_").lower()


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_default_is_as_in_the_document(variable):
    assert getattr(Settings(), name_of(variable)) == VARIABLES[variable][0]


@pytest.mark.parametrize("variable", VARIABLES)
async def test_the_variable_of_the_environment_sets_it(monkeypatch, variable):
    _, text, value = VARIABLES[variable]
    monkeypatch.setenv(variable, text)
    async with roomlore.open("sqlite://") as lore:
        assert getattr(lore.settings, name_of(variable)) == value


def test_the_whole_file_of_the_document_is_taken(monkeypatch):
    for variable, (default, _, _) in VARIABLES.items():
        monkeypatch.setenv(variable, str(default).lower())
    shown = {one["name"]: one for one in json.loads(command("settings", "--json").stdout)}
    assert {variable: shown[name_of(variable)]["source"] for variable in VARIABLES} == {one: one for one in VARIABLES}


async def test_a_variable_wins_over_the_file_and_an_argument_over_both(monkeypatch, tmp_path):
    (tmp_path / "roomlore.yaml").write_text("memory:\n  max_context_messages: 3\n  time_window_hours: 3\n")
    monkeypatch.setenv("MEMORY_MAX_CONTEXT_MESSAGES", "4")
    async with roomlore.open("sqlite://") as lore:
        assert (lore.settings.max_context_messages, lore.settings.time_window_hours) == (4, 3)
    async with roomlore.open("sqlite://", settings=Settings(max_context_messages=5)) as lore:
        assert lore.settings.max_context_messages == 5


async def built(lore: Lore) -> list[str]:
    await lore.messages.add(TALK)
    return ids(await lore.context.build(GROUP, "m7", strategy="weighted"))


async def test_max_context_messages_bounds_what_is_chosen(monkeypatch):
    monkeypatch.setenv("MEMORY_MAX_CONTEXT_MESSAGES", "1")
    async with roomlore.open("sqlite://") as lore:
        assert await built(lore) == ["m5"]


async def test_relevance_threshold_says_what_is_chosen(monkeypatch):
    monkeypatch.setenv("MEMORY_RELEVANCE_THRESHOLD", "0")
    async with roomlore.open("sqlite://") as lore:
        assert await built(lore) == [f"m{number}" for number in range(1, 7)]
    monkeypatch.setenv("MEMORY_RELEVANCE_THRESHOLD", "1")
    async with roomlore.open("sqlite://") as lore:
        assert await built(lore) == []


@pytest.mark.parametrize(("hours", "taken"), [("1", []), ("3", ["m1"])])
async def test_time_window_hours_says_how_far_back(monkeypatch, hours, taken):
    monkeypatch.setenv("MEMORY_TIME_WINDOW_HOURS", hours)
    monkeypatch.setenv("MEMORY_RELEVANCE_THRESHOLD", "0")
    async with roomlore.open("sqlite://") as lore:
        await lore.messages.add([said(1, "bob", "几点？", minute=-120), said(2, "ann", "七点", minute=0)])
        assert ids(await lore.context.build(GROUP, "m2", strategy="weighted")) == taken


WEIGHTS = [variable for variable in VARIABLES if variable.endswith("_WEIGHT")]


@pytest.mark.parametrize("variable", WEIGHTS)
async def test_a_weight_of_the_environment_is_the_share_of_its_signal(monkeypatch, variable):
    for other in WEIGHTS:
        monkeypatch.setenv(other, "1" if other == variable else "0")
    monkeypatch.setenv("MEMORY_RELEVANCE_THRESHOLD", "0")
    signal = name_of(variable).removesuffix("_weight")
    async with roomlore.open("sqlite://") as lore:
        await lore.messages.add(TALK)
        context = await lore.context.build(GROUP, "m7", strategy="weighted")
    assert len(context.messages) == 6
    assert [one.score for one in context.messages] == [getattr(one.signals, signal) for one in context.messages]


@pytest.mark.parametrize("value", ["-0.1", "nan", "many"])
def test_a_weight_that_is_none_is_refused(monkeypatch, value):
    monkeypatch.setenv("MEMORY_REPLY_CHAIN_WEIGHT", value)
    shown = command("settings")
    assert shown.exit_code == 1
    assert f"reply_chain_weight is {value} (from MEMORY_REPLY_CHAIN_WEIGHT)" in " ".join(shown.output.split())
