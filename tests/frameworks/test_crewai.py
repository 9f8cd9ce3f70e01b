"""The programs of the page about CrewAI, with a scripted model. Nothing is reported to anybody."""

import crewai
import programs
import pytest
from crewai import Agent, BaseLLM, Crew, Task

import roomlore

BEFORE = """
from crewai import LLM, Agent, Crew, Task

llm = LLM(model="openai/gpt-5.4-mini")
guide = Agent(role="guide", goal="Help travellers", backstory="You know Rome.", llm=llm)
task = Task(description="Which snack shall Ann take along?", expected_output="A snack", agent=guide)
print(Crew(agents=[guide], tasks=[task]).kickoff())
"""
SETTING_UP = ("import roomlore", 'lore.memories.add("user:ann", "安对花生过敏")')
QUESTIONS = ("要带什么零食？", "And to drink?", "谢谢")
ASKED: list[list[tuple[str, str]]] = []
FAILS: list[Exception] = []
"""What the next calls of the model raise."""


class Scripted(BaseLLM):
    """Answers "Noted." and keeps what it was asked."""

    def call(self, messages, *_args, **_kwargs):
        ASKED.append([(one["role"], one["content"]) for one in messages])
        if FAILS:
            raise FAILS.pop()
        return "Thought: I know.\nFinal Answer: Noted."


def test_the_programs_of_the_page_go_and_the_first_has_three_lines_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crewai, "LLM", lambda model: Scripted(model=model))
    program, for_each = programs.blocks("crewai")
    programs.run(BEFORE)
    assert "花生" not in str(ASKED[-1])
    programs.run(program)
    (role, instructions), (_, asked) = ASKED[-1]
    assert (role, instructions.count("安对花生过敏"), asked.count("Which snack")) == ("system", 1, 1)
    assert "花生" not in asked
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    assert len(new) <= programs.MOST_CHANGED, new
    names = {"roomlore": roomlore, "Agent": Agent, "Crew": Crew, "Task": Task, "llm": Scripted(model="m")}
    ask = programs.run(for_each, **names)["ask"]
    for number, (role, prompt) in enumerate(one[-1] for one in ASKED[-3:]):
        lines = [line for line in prompt.splitlines() if any(text in line for text in (*QUESTIONS, "Noted.", "花生"))]
        turns = [f"user: {text}" for text in QUESTIONS[:number]]
        earlier = [line for turn in turns for line in (turn, "assistant: Noted.")]
        assert (role, lines) == ("user", ["- 安对花生过敏", *earlier, f"Answer this: {QUESTIONS[number]}"])
    with roomlore.open_sync("sqlite:///trips.db") as lore:
        FAILS.extend([ConnectionError("the model is away")] * 9)
        with pytest.raises(ConnectionError):
            ask(lore, "ann", "Hello?")
        FAILS.clear()
        stored = [(message.sender_id, message.text) for message in lore.messages.page("rome")]
    assert stored == [turn for text in QUESTIONS for turn in (("ann", text), ("guide", "Noted."))]


@pytest.mark.parametrize("fact", ["writes {word} in templates", "says {input}, {known} and {}"])
def test_what_stands_between_braces_is_no_name_to_crewai(monkeypatch, tmp_path, fact):
    """A regression: a fact with `{word}` made a kick-off with inputs fail, and `{input}` put the task into it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crewai, "LLM", lambda model: Scripted(model=model))
    program, for_each = (page.replace("安对花生过敏", fact) for page in programs.blocks("crewai"))
    names = programs.run(program.replace("kickoff()", 'kickoff(inputs={"day": "Monday"})'))
    shown = fact.replace("{", "{ ")
    assert str(ASKED[-1]).count(shown) == 1
    ask = programs.run(for_each, **names)["ask"]
    with roomlore.open_sync("sqlite:///trips.db") as lore:
        ask(lore, "ann", "What is {known}?")
    assert str(ASKED[-1]).count(shown) == 1
    assert "What is { known}?" in ASKED[-1][-1][1]
