"""The programs of the page about AutoGen, with AutoGen's own client that replays answers."""

import asyncio
import sys
from types import ModuleType

import programs
import pytest
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
QUESTIONS = ("要带什么零食？", "And to drink?", "谢谢")
SETTING_UP = ("import roomlore", 'await lore.memories.add("user:ann", "安对花生过敏")')


class Scripted(ReplayChatCompletionClient):
    """Answers "Noted." and keeps what it was asked."""

    asked: list[list[tuple[str, str]]] = []  # noqa: RUF012
    fails: list[Exception] = []  # noqa: RUF012

    def __init__(self, model=""):
        super().__init__(["Noted."] * 9)

    async def create(self, messages, **more):
        self.asked.append([(getattr(one, "source", one.type), one.content) for one in messages])
        if self.fails:
            raise self.fails.pop()
        return await super().create(messages, **more)


def test_the_programs_of_the_page_go_and_the_first_has_three_lines_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = ModuleType("autogen_ext.models.openai")
    module.OpenAIChatCompletionClient = Scripted
    monkeypatch.setitem(sys.modules, "autogen_ext.models.openai", module)
    program, for_each = programs.blocks("autogen")
    programs.run(BEFORE)
    assert "花生" not in str(Scripted.asked[-1])
    programs.run(program)
    (kind, instructions), asked = Scripted.asked[-1]
    assert (kind, asked) == ("SystemMessage", ("user", "Which snack shall I take along?"))
    assert instructions.startswith("You help travellers.\n")
    assert instructions.count("安对花生过敏") == 1
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    assert len(new) <= programs.MOST_CHANGED, new
    names = programs.run(for_each, roomlore=roomlore, AssistantAgent=AssistantAgent, client=Scripted())
    with roomlore.open_sync("sqlite:///trips.db") as lore:
        stored = [(message.sender_id, message.text) for message in lore.messages.page("rome")]
    assert stored == [turn for asked in QUESTIONS for turn in (("ann", asked), ("guide", "Noted."))]
    block = ("memory_context", Scripted.asked[-1][-2][1])
    assert block[1].count("安对花生过敏") == 1
    system = Scripted.asked[-1][:1]
    turns = [turn for asked in QUESTIONS for turn in (("user", asked), ("guide", "Noted."))]
    assert Scripted.asked[-3:] == [[*system, *turns[:n], block, turns[n]] for n in (0, 2, 4)]
    asyncio.run(after_a_failure(names["Remembered"], system, block))


async def after_a_failure(remembered, system, block):
    """As the page says: the question is in the context, and is asked once."""
    async with roomlore.open("sqlite:///trips.db") as lore:
        guide = AssistantAgent("guide", model_client=Scripted(), memory=[remembered(lore, "ann")])
        Scripted.fails.append(ConnectionError("the model is away"))
        with pytest.raises(ConnectionError):
            await guide.run(task=QUESTIONS[0])
        await guide.run()
    assert Scripted.asked[-2:] == [[*system, block, ("user", QUESTIONS[0])]] * 2
