"""Seed 001: facts chosen by the last turns, the score, exact tokens, the configuration."""

import importlib.metadata
import json
import time
from statistics import mean

import pytest
from developer import (
    ANN,
    DOCKER,
    FACTS,
    FASTAPI,
    HINTS,
    LITERAL,
    PROJECT,
    PYTEST,
    REACT,
    calls_tool,
    know,
    ranked,
    recalled,
    similar,
    talk,
)
from rig import command, served

import roomlore
from roomlore import InvalidInput, Message, Settings

TWO_FACTS = 24
"""Tokens for a block of two of the facts."""


# 1. 基于对话上下文的智能 Facts 召回


@pytest.mark.parametrize(
    ("topic", "first"),
    [("How do I write tests with pytest?", PYTEST), ("React 的前端怎么写？", REACT), ("Docker 容器怎么部署？", DOCKER)],
)
async def test_another_topic_gets_other_facts_first(topic, first):
    assert ranked(await recalled(talk(topic)))[0] == first


@pytest.mark.parametrize("fact", [PYTEST, FASTAPI, HINTS])
async def test_the_example_finds_similar_to_the_project(fact):
    assert fact in similar(await recalled(talk(*PROJECT)))


@pytest.mark.parametrize("fact", [DOCKER, REACT])
async def test_the_example_finds_not_similar_to_the_project(fact):
    assert fact not in similar(await recalled(talk(*PROJECT)))


async def test_facts_of_other_topics_are_left_out_where_the_budget_is_small():
    found = await recalled(talk(*PROJECT), max_tokens=TWO_FACTS)
    assert ranked(found) == [FASTAPI, PYTEST]


async def test_a_rare_word_counts_more_than_one_that_many_facts_share():
    common = [f"Writes Python scripts, number {number}" for number in range(8)]
    async with roomlore.open("sqlite://", settings=LITERAL) as lore:
        await know(lore, [*common, "Plays the cello"])
        found = await lore.recall.build([ANN], talk("Python or cello?"))
    assert ranked(found)[0] == "Plays the cello"


async def test_the_score_is_six_tenths_similarity_and_four_tenths_confidence():
    async with roomlore.open("sqlite://", settings=LITERAL) as lore:
        await know(lore, {PYTEST: 0.9, DOCKER: 0.3, REACT: 0.0})
        found = await lore.recall.build([ANN], talk("How do I write tests?"))
    shown = {one.memory.statement: one for one in found.facts}
    assert 0 < shown[PYTEST].similarity < 1
    assert shown[PYTEST].score == pytest.approx(0.6 * shown[PYTEST].similarity + 0.4 * 0.9)
    assert (shown[DOCKER].score, shown[REACT].score) == (pytest.approx(0.4 * 0.3), 0.0)


async def test_of_equally_similar_facts_the_more_certain_one_comes_first():
    async with roomlore.open("sqlite://", settings=LITERAL) as lore:
        await know(lore, {"Writes tests in the morning": 0.2, "Writes tests in the evening": 0.8})
        found = await lore.recall.build([ANN], talk("Which tests?"))
    assert ranked(found) == ["Writes tests in the evening", "Writes tests in the morning"]


# 2. 精确的 Token 计算

COUNTS = {
    "This is a test string to count tokens accurately.": 10,
    "患者男，六十五岁，高血压病史十年，对青霉素过敏，曾于二〇一九年行阑尾切除术。": 56,
    "明天 9:30 AM 的 stand-up 改到 10 点，OK 吗？": 22,
    "": 0,
}


@pytest.mark.parametrize("text", COUNTS)
async def test_tokens_are_those_of_cl100k_base(text):
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        await lore.messages.add(Message(id="m", room_id="r", sender_id="ann", text=text))
        assert (await lore.messages.get("r", "m")).message.tokens == COUNTS[text]


def test_the_encoding_is_cl100k_base_unless_set_otherwise():
    assert Settings().token_encoding == "cl100k_base"


async def test_the_tokens_of_a_block_are_those_of_its_text():
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        await know(lore)
        found = await lore.recall.build([ANN], talk(*PROJECT))
        await lore.messages.add(Message(id="m", room_id="r", sender_id="ann", text=found.text))
        assert found.tokens == (await lore.messages.get("r", "m")).message.tokens


@pytest.mark.parametrize("budget", range(0, 60, 7))
async def test_a_block_keeps_to_its_budget_with_whole_facts(budget):
    found = await recalled(talk(*PROJECT), max_tokens=budget)
    assert found.tokens <= budget
    lines = [line.removeprefix("- ") for line in found.text.splitlines()[1:-1]]
    assert lines == ranked(found)
    assert set(lines) <= set(FACTS)


# 3. 多轮对话上下文


async def test_one_message_alone_finds_less_than_three_turns():
    alone, three = [similar(await recalled(talk(*texts))) for texts in (PROJECT[-1:], PROJECT)]
    assert alone == {PYTEST}
    assert three == {PYTEST, FASTAPI, HINTS}


@pytest.mark.parametrize(("before", "seen"), [(2, True), (3, False)])
async def test_three_turns_count_and_no_more(before, seen):
    found = await recalled(talk("Docker 容器", *["继续"] * before))
    assert (DOCKER in similar(found)) is seen


@pytest.mark.parametrize(("turns", "seen"), [(4, True), (1, False)])
async def test_the_turns_are_an_argument(turns, seen):
    found = await recalled(talk("Docker 容器", *["继续"] * 3), max_context_turns=turns)
    assert (DOCKER in similar(found)) is seen


async def test_final_answers_count():
    messages = [{"role": "user", "content": "这个用什么？"}, {"role": "assistant", "content": "用 Docker"}]
    assert similar(await recalled([*messages, {"role": "user", "content": "好"}])) == {DOCKER}


@pytest.mark.parametrize("part", ["an answer that calls a tool", "a tool's result", "a system message"])
async def test_what_nobody_said_to_the_user_does_not_count(part):
    answer, result = calls_tool("Docker")
    left_out = {
        "an answer that calls a tool": [answer, {**result, "content": "ok"}],
        "a tool's result": [{**answer, "content": ""}, result],
        "a system message": [{"role": "system", "content": "Docker"}],
    }[part]
    messages = [{"role": "user", "content": "这个用什么？"}, *left_out, {"role": "user", "content": "好"}]
    assert similar(await recalled(messages)) == set()


# 配置选项

DEFAULTS = {
    "enabled": True,
    "max_injection_tokens": 2000,
    "max_context_turns": 3,
    "similarity_weight": 0.6,
    "confidence_weight": 0.4,
}


@pytest.mark.parametrize("key", DEFAULTS)
def test_the_default_is_as_in_the_document(key):
    assert getattr(Settings(), key) == DEFAULTS[key]


def configured(tmp_path, monkeypatch, line: str) -> None:
    (tmp_path / "config.yaml").write_text(f"memory:\n  {line}\n", encoding="utf-8")
    monkeypatch.setenv("ROOMLORE_CONFIG", "config.yaml")


async def found_with(tmp_path, monkeypatch, line: str):
    configured(tmp_path, monkeypatch, line)
    async with roomlore.open("sqlite://") as lore:
        await know(lore, {PYTEST: 0.1, FASTAPI: 0.2, DOCKER: 0.9})
        return await lore.recall.build([ANN], talk("Which framework, FastAPI?", "继续", "继续", "How do I test?"))


async def test_enabled_false_in_the_file_recalls_nothing(tmp_path, monkeypatch):
    found = await found_with(tmp_path, monkeypatch, "enabled: false")
    assert (found.text, found.facts) == ("", ())


async def test_max_injection_tokens_in_the_file_is_the_budget(tmp_path, monkeypatch):
    found = await found_with(tmp_path, monkeypatch, "max_injection_tokens: 16")
    assert (len(found.facts), found.tokens <= 16) == (1, True)


async def test_max_context_turns_in_the_file(tmp_path, monkeypatch):
    found = await found_with(tmp_path, monkeypatch, "max_context_turns: 4")
    assert similar(found) == {PYTEST, FASTAPI}


async def test_similarity_weight_in_the_file(tmp_path, monkeypatch):
    found = await found_with(tmp_path, monkeypatch, "similarity_weight: 0.0")
    assert {one.memory.statement: one.score for one in found.facts} == pytest.approx(
        {DOCKER: 0.36, FASTAPI: 0.08, PYTEST: 0.04}
    )


async def test_confidence_weight_in_the_file(tmp_path, monkeypatch):
    found = await found_with(tmp_path, monkeypatch, "confidence_weight: 0.0")
    assert {one.memory.statement for one in found.facts if one.score == 0} == {FASTAPI, DOCKER}


def test_a_value_out_of_range_stops_the_start_and_is_named(tmp_path, monkeypatch):
    configured(tmp_path, monkeypatch, "similarity_weight: 1.5")
    shown = command("settings")
    assert shown.exit_code != 0
    assert "similarity_weight is 1.5" in shown.output.replace("\n", " ")


# 性能影响


async def test_a_hundred_facts_are_ranked_in_less_than_ten_milliseconds():
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        await know(lore, [f"Uses tool {number} for job {number * 7}" for number in range(100)])
        took = []
        for number in range(30):
            begun = time.perf_counter()
            await lore.recall.build([ANN], talk(f"Which tool for job {number}?"))
            took.append(time.perf_counter() - begun)
    assert mean(sorted(took)[:5]) < 0.010


# 向后兼容性


@pytest.mark.parametrize("messages", [[], calls_tool("Docker"), [{"role": "system", "content": "Docker"}]])
async def test_without_a_conversation_confidence_alone_decides(messages):
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        await know(lore, {PYTEST: 0.9, DOCKER: 0.1, REACT: 0.5, HINTS: 0.0})
        found = await lore.recall.build([ANN], messages)
    assert ranked(found) == [PYTEST, REACT, DOCKER, HINTS]


# The faces


async def test_the_same_recall_is_a_route():
    async with roomlore.open("sqlite://", settings=LITERAL) as lore, served(lore) as http:
        await know(lore)
        body = {"scopes": [ANN], "messages": talk(*PROJECT), "max_tokens": TWO_FACTS}
        answer = (await http.post("/recall", json=body)).json()
    assert [one["memory"]["statement"] for one in answer["facts"]] == [FASTAPI, PYTEST]
    assert answer["text"].startswith("<memory>\n- ")


async def test_a_bad_weight_is_refused_and_named():
    with pytest.raises(InvalidInput, match="similarity_weight"):
        await recalled(talk("Docker"), similarity_weight=-1)


# Differences


async def test_similarity_counts_scaled_to_what_fits_the_block_unless_set_literal():
    scaled, literal = await recalled(talk(*PROJECT), Settings()), await recalled(talk(*PROJECT))
    best, plain = scaled.facts[0], literal.facts[0]
    assert best.similarity == plain.similarity == plain.relevance < best.relevance
    assert best.score == pytest.approx(0.6 * best.relevance + 0.4 * best.confidence)


def test_neither_tiktoken_nor_scikit_learn_is_needed():
    needed = [one.lower() for one in importlib.metadata.requires("roomlore") or [] if "extra ==" not in one]
    assert [one for one in needed if one.startswith(("tiktoken", "scikit-learn"))] == []


def test_the_file_is_roomlore_yaml_unless_another_is_named(tmp_path):
    for name, turns in (("config.yaml", 5), ("roomlore.yaml", 4)):
        (tmp_path / name).write_text(f"memory:\n  max_context_turns: {turns}\n", encoding="utf-8")
    assert turns_set() == "4"
    assert turns_set("--config", "config.yaml") == "5"


def turns_set(*options: str) -> str:
    shown = json.loads(command(*options, "settings", "--json").stdout)
    return next(one["value"] for one in shown if one["name"] == "max_context_turns")
