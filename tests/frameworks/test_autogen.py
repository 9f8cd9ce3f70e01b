"""The programs of the page about AutoGen, with AutoGen's own client that replays answers."""

import sys
from types import ModuleType

import programs
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.replay import ReplayChatCompletionClient

import roomlore

BEFORE = """
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-5.4-mini")
agent = AssistantAgent("guide", model_client=client, system_message="You help travellers.")
result = await agent.run(task="Which snack shall I take along?")
print(result.messages[-1].content)
"""
SETTING_UP = ("import roomlore", 'await lore.memories.add("user:ann", "安对花生过敏")')


class Scripted(ReplayChatCompletionClient):
    """Answers "Noted." and keeps what it was asked."""

    asked: list[str] = []  # noqa: RUF012

    def __init__(self, model=""):
        super().__init__(["Noted."] * 9)

    async def create(self, messages, **more):
        self.asked.append(str(messages))
        return await super().create(messages, **more)


def test_the_programs_of_the_page_go_and_the_first_has_three_lines_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = ModuleType("autogen_ext.models.openai")
    module.OpenAIChatCompletionClient = Scripted
    monkeypatch.setitem(sys.modules, "autogen_ext.models.openai", module)
    program, for_each = programs.blocks("autogen")
    programs.run(BEFORE)
    assert "花生" not in Scripted.asked[-1]
    programs.run(program)
    assert "安对花生过敏" in Scripted.asked[-1]
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    assert len(new) <= programs.MOST_CHANGED, new
    programs.run(for_each, roomlore=roomlore, AssistantAgent=AssistantAgent, client=Scripted())
    assert "安对花生过敏" in Scripted.asked[-1]
    with roomlore.open_sync("sqlite:///trips.db") as lore:
        assert [(one.sender_id, one.text) for one in lore.messages.page("rome")] == [
            ("ann", "要带什么零食？"),
            ("guide", "Noted."),
        ]
