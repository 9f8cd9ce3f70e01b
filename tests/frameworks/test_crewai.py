"""The programs of the page about CrewAI, with a scripted model. Nothing is reported to anybody."""

import crewai
import programs
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
ASKED: list[str] = []


class Scripted(BaseLLM):
    """Answers "Noted." and keeps what it was asked."""

    def call(self, messages, *_args, **_kwargs):
        ASKED.append(str(messages))
        return "Thought: I know.\nFinal Answer: Noted."


def test_the_programs_of_the_page_go_and_the_first_has_three_lines_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crewai, "LLM", lambda model: Scripted(model=model))
    program, for_each = programs.blocks("crewai")
    programs.run(BEFORE)
    assert "花生" not in ASKED[-1]
    programs.run(program)
    assert "安对花生过敏" in ASKED[-1]
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    assert len(new) <= programs.MOST_CHANGED, new
    names = {"roomlore": roomlore, "Agent": Agent, "Crew": Crew, "Task": Task, "llm": Scripted(model="m")}
    programs.run(for_each, **names)
    assert "安对花生过敏" in ASKED[-1]
    with roomlore.open_sync("sqlite:///trips.db") as lore:
        said = [(one.sender_id, one.text) for one in lore.messages.page("rome")]
    assert said[0] == ("ann", "要带什么零食？")
    assert said[1][0] == "guide"
    assert "Noted." in said[1][1]
