"""A real `Memory` of LlamaIndex, in a chat engine and an agent, with the block of roomlore."""

import logging
import sys
from types import ModuleType

import programs
import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.memory import Memory

import roomlore
from roomlore_integrations.llama_index import RoomloreMemoryBlock

BEFORE = """
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import Memory
from llama_index.llms.openai import OpenAI

memory = Memory.from_defaults(session_id="trip-7")
engine = SimpleChatEngine.from_defaults(llm=OpenAI(model="gpt-5.4-mini"), memory=memory)
print(await engine.achat("Which snack shall I take along?"))
"""
SETTING_UP = ("import roomlore", 'await lore.memories.add("user:ann", "安对花生过敏")')
"""Lines that are of roomlore's own use."""


class Scripted(FunctionCallingLLM):
    """A model that answers "Noted." and keeps what it was asked."""

    model: str = ""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def prompts(self) -> list[str]:
        return ASKED

    def chat(self, messages, **kwargs):
        ASKED.append("\n".join(f"{one.role.value}: {one.content}" for one in messages))
        if FAILS:
            raise FAILS.pop()
        return ChatResponse(message=ChatMessage(role="assistant", content="Noted."))

    async def achat(self, messages, **kwargs):
        return self.chat(messages, **kwargs)

    def stream_chat(self, messages, **kwargs):
        yield self.chat(messages)

    async def astream_chat(self, messages, **kwargs):
        async def one():
            yield self.chat(messages)

        return one()

    async def astream_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        return await self.astream_chat(chat_history)

    async def achat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        return self.chat(chat_history)

    def complete(self, *_args, **_kwargs):
        raise NotImplementedError

    stream_complete = acomplete = astream_complete = complete

    def _prepare_chat_with_tools(self, *_args, **_kwargs):
        raise NotImplementedError

    def get_tool_calls_from_response(self, *_args, **_kwargs):
        return []


ASKED: list[str] = []
FAILS: list[Exception] = []
"""What the next calls of the model raise."""


@pytest.fixture(autouse=True)
def _asked():
    ASKED.clear()


def memory_of(*blocks, session="s1", tokens=80):
    return Memory.from_defaults(
        session_id=session,
        token_limit=tokens,
        token_flush_size=10,
        memory_blocks=list(blocks),
        tokenizer_fn=lambda text: text.split(),
    )


def engine_of(memory):
    return SimpleChatEngine.from_defaults(llm=Scripted(), memory=memory)


def test_the_program_of_the_page_is_the_usual_one_with_three_lines_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = ModuleType("llama_index.llms.openai")
    module.OpenAI = Scripted
    monkeypatch.setitem(sys.modules, "llama_index.llms.openai", module)
    program, options = programs.blocks("llama-index")
    programs.run(BEFORE)
    assert "花生" not in ASKED[-1]
    programs.run(program)
    assert "- 安对花生过敏" in ASKED[-1]
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    assert len(new) <= programs.MOST_CHANGED, new
    programs.run(options, roomlore=roomlore, RoomloreMemoryBlock=RoomloreMemoryBlock)


TURNS = ["user: 要带什么零食？", "assistant: Noted.", "user: And to drink?", "assistant: Noted.", "user: 谢谢"]


@pytest.mark.parametrize("kind", ["engine", "agent"])
async def test_what_the_model_is_sent_in_three_turns_of_which_the_last_fails(lore, kind):
    """The system prompt, the facts once behind it, and each message once and in order. LlamaIndex keeps a question that
    the model failed to answer."""
    await lore.memories.add("user:ann", "安对花生过敏")
    memory = memory_of(RoomloreMemoryBlock(lore, "ann"), tokens=4000)
    engine = SimpleChatEngine.from_defaults(llm=Scripted(), memory=memory, system_prompt="You help.")
    agent = FunctionAgent(tools=[], llm=Scripted(), system_prompt="You help.")

    async def ask(text):
        return await (engine.achat(text) if kind == "engine" else agent.run(text, memory=memory))

    for text in ("要带什么零食？", "And to drink?"):
        await ask(text)
    FAILS.append(ConnectionError("the model is away"))
    with pytest.raises(Exception, match="the model is away"):  # of another type in each version
        await ask("谢谢")
    for number, sent in enumerate(ASKED):
        turns = TURNS[: 2 * number + 1]
        lines = [line for line in sent.splitlines() if not line.endswith(">")]
        assert lines == ["system: You help.", "- 安对花生过敏", *turns]
    assert [one.content for one in await memory.aget_all()][-1] == "谢谢"


async def test_what_left_the_window_is_stored_and_found_when_it_is_asked_for(lore):
    engine = engine_of(memory_of(RoomloreMemoryBlock(lore, "ann")))
    for text in ("我住在京都，养了两只猫", "I work as a nurse at night", *(f"number {n} " * 8 for n in range(6))):
        await engine.achat(text)
    await engine.achat("你还记得我住在哪里吗")
    assert "Said earlier:" in ASKED[-1]
    assert "ann: 我住在京都，养了两只猫" in ASKED[-1]
    assert "nurse" not in ASKED[-1]
    said = await lore.messages.page("s1")
    assert [(one.sender_id, one.role.value, one.text) for one in said[:4]] == [
        ("ann", "user", "我住在京都，养了两只猫"),
        ("assistant", "assistant", "Noted."),
        ("ann", "user", "I work as a nurse at night"),
        ("assistant", "assistant", "Noted."),
    ]
    assert not [one for one in said if "Said earlier" in one.text]


async def test_a_message_in_the_window_is_not_shown_twice(lore):
    block = RoomloreMemoryBlock(lore, "ann", room_id="r")
    await block.aput([ChatMessage("I live in Kyoto"), ChatMessage("I live by the river")])
    asked = [ChatMessage("I live in Kyoto"), ChatMessage("Where do I live?")]
    found = await block.aget(asked)
    assert "river" in found
    assert "Kyoto" not in found


async def test_an_agent_takes_the_same_memory(lore):
    await lore.memories.add("user:ann", "Ann is vegetarian")
    agent = FunctionAgent(tools=[], llm=Scripted(), system_prompt="You cook.")
    await agent.run("What shall I cook?", memory=memory_of(RoomloreMemoryBlock(lore, "ann"), tokens=4000))
    assert "- Ann is vegetarian" in ASKED[-1]


async def test_what_others_may_not_know_is_not_recalled(lore):
    """The viewer decides: the user alone by default, and the room if the agent answers in one."""
    for name, text in (("ann", "I am ill and tell only you"), ("bob", "Hi")):
        room = "alone" if name == "ann" else "team"
        await lore.messages.add(roomlore.Message(id="1", room_id=room, sender_id=name, text=text))
    await lore.memories.add("user:ann", "Ann is ill", sources=[roomlore.Source("alone", "1")])
    asked = [ChatMessage("Is Ann ill?")]
    assert "ill" in await RoomloreMemoryBlock(lore, "ann", room_id="alone").aget(asked)
    shown = RoomloreMemoryBlock(lore, "bob", room_id="alone", scopes=["user:ann"], viewer="room:team")
    assert await shown.aget(asked) == ""
    assert await RoomloreMemoryBlock(lore, "bob", room_id="alone", scopes=["user:ann"]).aget(asked) == ""


async def test_messages_keep_to_their_sessions(lore):
    block = RoomloreMemoryBlock(lore, "ann")
    await block.aput([ChatMessage("I live in Kyoto")], session_id="s1")
    await block.aput([ChatMessage("I live in Rome"), ChatMessage("", role=MessageRole.TOOL)], session_id="s2")
    assert "Kyoto" not in await block.aget([ChatMessage("Where do I live?")], session_id="s2")
    assert "Rome" in await block.aget([ChatMessage("Where do I live?")], session_id="s2")
    with pytest.raises(roomlore.InvalidInput, match="room_id"):
        await block.aput([ChatMessage("Hm")])


async def test_a_trouble_of_the_memory_leaves_the_agent_alone(caplog):
    async with roomlore.open("sqlite://", background=False) as lore:
        engine = engine_of(memory_of(RoomloreMemoryBlock(lore, "ann"), tokens=20))
    with caplog.at_level(logging.WARNING):
        for n in range(4):
            assert str(await engine.achat(f"number {n} " * 5)) == "Noted."
    assert "without memory" in caplog.text
    assert "not stored" in caplog.text


def test_a_synchronous_roomlore_serves_a_program_that_is_not_async():
    with roomlore.open_sync("sqlite://", background=False) as lore:
        lore.memories.add("user:ann", "安不吃肉")
        engine_of(memory_of(RoomloreMemoryBlock(lore, "ann"))).chat("What shall I cook?")
        assert "安不吃肉" in ASKED[-1]


@pytest.mark.parametrize("bad", [{"viewer": "ann"}, {"max_messages": -1}, {"scopes": ["ann"]}, {"agent_id": ""}])
async def test_invalid_arguments_are_refused(lore, bad):
    with pytest.raises(roomlore.InvalidInput):
        RoomloreMemoryBlock(lore, "ann", **bad)
    with pytest.raises(roomlore.InvalidInput, match=r"roomlore\.open"):
        RoomloreMemoryBlock("sqlite://", "ann")
