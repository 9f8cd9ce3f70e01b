"""The programs of the page about Pydantic AI, with a scripted model."""

import programs
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
SETTING_UP = ("import roomlore", 'await lore.memories.add("user:ann", "安对花生过敏")')


def scripted(asked):
    def answer(messages, info):
        asked.append(str(messages))
        return ModelResponse(parts=[TextPart("Noted.")])

    return FunctionModel(answer)


def run(program, asked, **names):
    named = program.replace('"openai:gpt-5.4-mini"', "scripted_model")
    assert named != program
    return programs.run(named, scripted_model=scripted(asked), **names)


def test_the_programs_of_the_page_go_and_the_first_has_three_lines_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    program, for_each = programs.blocks("pydantic-ai")
    run(BEFORE, asked)
    assert "花生" not in asked[-1]
    run(program, asked)
    assert "安对花生过敏" in asked[-1]
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    assert len(new) <= programs.MOST_CHANGED, new
    run(for_each, asked, roomlore=roomlore, Agent=Agent)
    assert "安对花生过敏" in asked[-1]
    with roomlore.open_sync("sqlite:///trips.db") as lore:
        assert [(one.sender_id, one.text) for one in lore.messages.page("rome")] == [
            ("ann", "要带什么零食？"),
            ("guide", "Noted."),
        ]
