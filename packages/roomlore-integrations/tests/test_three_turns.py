"""What a model is sent in three turns of which the last fails first: each message once and in order, the facts once."""

import agents
import pytest
from agents.models import _openai_shared as shared
from langchain.agents import create_agent
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.memory import InMemorySaver
from openai import APIStatusError, AsyncOpenAI
from scripted_chat import ScriptedChat

import roomlore
from roomlore_integrations.langchain import MemoryMiddleware, RecordingMiddleware, RoomloreChatMessageHistory
from roomlore_integrations.openai_agents import RoomloreSession
from roomlore_testkit.model_server import Fails, serve_models

agents.set_tracing_disabled(True)
QUESTIONS = ("要带什么零食？", "And to drink?", "谢谢")
TURNS = [("human", QUESTIONS[0]), ("ai", "ok"), ("human", QUESTIONS[1]), ("ai", "ok"), ("human", QUESTIONS[2])]
STORED = [turn for asked in QUESTIONS for turn in (("ann", asked), ("guide", "ok"))]
SYSTEM, FACT = ("system", "You help."), "安对花生过敏"
THREAD = {"configurable": {"thread_id": "trip", "session_id": "trip"}}


class Failing(ScriptedChat):
    """A model whose third call fails."""

    def _next(self, messages):
        answer = super()._next(messages)
        if len(self.sent) == len(QUESTIONS):
            raise ConnectionError("the model is away")
        return answer


@pytest.fixture
def sync():
    with roomlore.open_sync("sqlite://", background=False) as opened:
        opened.memories.add("user:ann", FACT)
        yield opened


def said(lore) -> list[tuple[str, str]]:
    return [(one.sender_id, one.text) for one in lore.messages.page("trip")]


@pytest.mark.parametrize("placement", ["system", "trailing"])
def test_an_agent_of_langchain(sync, placement):
    model = Failing()
    memory = MemoryMiddleware(sync, ["user:ann"], placement=placement)
    recording = RecordingMiddleware(sync, user_id="ann", agent_id="guide")
    agent = create_agent(
        model, [], system_prompt="You help.", middleware=[memory, recording], checkpointer=InMemorySaver()
    )
    for asked in QUESTIONS[:2]:
        agent.invoke({"messages": [("user", asked)]}, THREAD)
    with pytest.raises(ConnectionError):
        agent.invoke({"messages": [("user", QUESTIONS[2])]}, THREAD)
    agent.invoke(None, THREAD)  # as the page says
    for number, sent in enumerate([*model.sent[:2], *model.sent[-1:]]):
        at = 1 if placement == "system" else len(sent) - 2
        block = sent.pop(at)
        assert (block.name, block.text.count(FACT)) == ("memory_context", 1)
        assert [(one.type, one.text) for one in sent] == [SYSTEM, *TURNS[: 2 * number + 1]]
    assert said(sync) == STORED


def test_a_history_of_langchain(sync, recwarn):
    model = Failing()
    prompt = ChatPromptTemplate.from_messages([SYSTEM, MessagesPlaceholder("history"), ("human", "{asked}")])
    chain = RunnableWithMessageHistory(
        prompt | model,
        lambda name: RoomloreChatMessageHistory(name, sync, user_id="ann", agent_code="guide"),
        input_messages_key="asked",
        history_messages_key="history",
    )
    for asked in QUESTIONS[:2]:
        chain.invoke({"asked": asked}, THREAD)
    with pytest.raises(ConnectionError):
        chain.invoke({"asked": QUESTIONS[2]}, THREAD)
    chain.invoke({"asked": QUESTIONS[2]}, THREAD)
    sent = [[(one.type, one.text) for one in messages] for messages in model.sent]
    assert sent == [[SYSTEM, *TURNS[:n]] for n in (1, 3, 5, 5)]
    assert said(sync) == STORED


@pytest.mark.parametrize("fit_window", [False, True])
async def test_a_session_of_openais_agents(monkeypatch, fit_window):
    with serve_models(["ok", "ok", Fails(status=400), "ok"]) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0)
        monkeypatch.setattr(shared, "_default_openai_client", client)
        monkeypatch.setattr(shared, "_use_responses_by_default", False)
        async with client, roomlore.open("sqlite://", background=False) as lore:
            await lore.memories.add("user:ann", FACT)

            async def instructions(run, agent):
                return f"You help.\n{await lore.recall.memory_prompt(['user:ann'], [], viewer='user:ann')}"

            guide = agents.Agent(name="guide", instructions=instructions)

            async def run(given):
                session = RoomloreSession("trip", lore, user_id="ann", agent_code="guide", fit_window=fit_window)
                await agents.Runner.run(guide, given, session=session)

            for asked in QUESTIONS[:2]:
                await run(asked)
            with pytest.raises(APIStatusError):
                await run(QUESTIONS[2])
            await run([])  # as the page says
            stored = [(one.sender_id, one.text) for one in await lore.messages.page("trip")]
    kinds = {"user": "human", "assistant": "ai"}
    for asked, number in zip(server.requests, (1, 3, 5, 5), strict=True):
        system, *turns = asked.body["messages"]
        assert (system["role"], system["content"].count(FACT), system["content"][:9]) == ("system", 1, "You help.")
        assert [(kinds[one["role"]], one["content"]) for one in turns] == TURNS[:number]
    assert stored == STORED
