"""The programs of the page about Pydantic AI, with a scripted model."""

import asyncio

import programs
import pytest
from pydantic_ai import Agent, models
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

import roomlore

models.ALLOW_MODEL_REQUESTS = False
BEFORE = """
from pydantic_ai import Agent

agent = Agent("openai:gpt-5.4-mini", instructions="You help travellers.")
result = await agent.run("Which snack shall I take along?")
print(result.output)
"""
QUESTIONS = ("要带什么零食？", "And to drink?", "谢谢")
SETTING_UP = ("import roomlore", 'await lore.memories.add("user:ann", "安对花生过敏")')


FAILS: list[Exception] = []
"""What the next calls of the model raise."""


def scripted(asked):
    def answer(messages, info):
        parts = [(part.part_kind, part.content) for message in messages for part in message.parts]
        asked.append([("instructions", messages[-1].instructions), *parts])
        if FAILS:
            raise FAILS.pop()
        return ModelResponse(parts=[TextPart("Noted.")])

    return FunctionModel(answer)


def run(program, asked, **names):
    named = program.replace('"openai:gpt-5.4-mini"', "scripted_model")
    assert named != program
    return programs.run(named, scripted_model=scripted(asked), **names)


def test_the_programs_of_the_page_go_and_the_first_has_three_lines_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked: list[list[tuple[str, str]]] = []
    program, for_each = programs.blocks("pydantic-ai")
    run(BEFORE, asked)
    assert "花生" not in str(asked[-1])
    run(program, asked)
    (_, instructions), question = asked[-1]
    assert (instructions.count("安对花生过敏"), question) == (1, ("user-prompt", "Which snack shall I take along?"))
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    assert len(new) <= programs.MOST_CHANGED, new
    names = run(for_each, asked, roomlore=roomlore, Agent=Agent)
    turns = [turn for text in QUESTIONS for turn in (("user-prompt", text), ("text", "Noted."))]
    assert [one[1:] for one in asked[-3:]] == [turns[:1], turns[:3], turns[:5]]
    for (_, instructions), *_ in asked[-3:]:
        assert instructions.startswith("You help travellers.")
        assert instructions.count("安对花生过敏") == 1
    asyncio.run(after_a_failure(names, asked, turns))


async def after_a_failure(names, asked, turns):
    """A question that was not answered is not stored, and is sent once when it is asked again."""
    async with roomlore.open("sqlite:///trips.db") as lore:
        deps = names["Asked"](lore, "ann", "rome")
        FAILS.append(ConnectionError("the model is away"))
        with pytest.raises(ConnectionError):
            await names["ask"](deps, "Hello?")
        await names["ask"](deps, "Hello?")
        assert asked[-1][1:] == [*turns, ("user-prompt", "Hello?")]
        stored = [(message.sender_id, message.text) for message in await lore.messages.page("rome")]
    assert stored == [turn for text in (*QUESTIONS, "Hello?") for turn in (("ann", text), ("guide", "Noted."))]
