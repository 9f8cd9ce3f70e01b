"""A real `Runner` of Google ADK with a scripted model over roomlore's session and memory services."""

import contextlib
import logging

import programs
import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event, EventActions
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import load_memory
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types

import roomlore
from roomlore_integrations.google_adk import RoomloreMemoryService, RoomloreSessionService

ANN = {"app_name": "trips", "user_id": "ann"}
BEFORE = """
from google.adk.agents import LlmAgent
from google.adk.memory import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory
from google.genai import types

agent = LlmAgent(name="guide", model="gemini-2.5-flash", instruction="You help travellers.", tools=[load_memory])
sessions = InMemorySessionService()
runner = Runner(agent=agent, app_name="trips", session_service=sessions, memory_service=InMemoryMemoryService())
await sessions.create_session(app_name="trips", user_id="ann", session_id="rome")
said = types.Content(role="user", parts=[types.Part(text="Which snack shall I take along?")])
async for event in runner.run_async(user_id="ann", session_id="rome", new_message=said):
    if event.is_final_response():
        print(event.content.parts[0].text)
"""
SETTING_UP = ("import roomlore", 'await lore.memories.add("user:ann", "安对花生过敏")')


class Listening(BaseLlm):
    """Answers "Noted." and keeps what it was asked."""

    model: str = "listening"
    asked: list = []  # noqa: RUF012
    fails: list = []  # noqa: RUF012

    async def generate_content_async(self, llm_request, stream=False):
        said = [(one.role, "".join(part.text or "" for part in one.parts)) for one in llm_request.contents]
        self.asked.append([("system", str(llm_request.config.system_instruction)), *said])
        if self.fails:
            raise self.fails.pop()
        yield LlmResponse(content=words("Noted.", "model"))


class Scripted(BaseLlm):
    """Searches the memory for what it is asked if it may, and then tells what it got."""

    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None and "load_memory" in llm_request.tools_dict:
            call = types.FunctionCall(name="load_memory", args={"query": last.text or ""})
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
            return
        told = str(last.function_response.response) if last.function_response else f"{len(llm_request.contents)}"
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=f"Heard: {told}")]))


def agent(**options):
    return LlmAgent(**{"name": "guide", "model": Scripted(), "instruction": "You help.", **options})


def words(text, role="user"):
    return types.Content(role=role, parts=[types.Part(text=text)])


def event(text, author="user", **more):
    return Event(author=author, content=words(text, "user" if author == "user" else "model"), **more)


async def answer(runner, text, session="s1", user="ann"):
    done = runner.run_async(user_id=user, session_id=session, new_message=words(text))
    return [one.content.parts[0].text async for one in done if one.is_final_response()][-1]


@pytest.fixture
def sessions(lore):
    return RoomloreSessionService(lore)


def runner_of(sessions, memory=None, **options):
    return Runner(agent=agent(**options), app_name="trips", session_service=sessions, memory_service=memory)


def test_the_program_of_the_page_is_the_usual_one_with_three_lines_changed(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    (program,) = programs.blocks("google-adk")
    printed = []
    for text in (BEFORE, program):
        programs.run(text.replace('model="gemini-2.5-flash"', "model=Scripted()"), Scripted=Scripted)
        printed.append(capsys.readouterr().out)
    before, after = printed
    assert "花生" not in before
    assert "安对花生过敏" in after
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    imports = [line for line in new if line.startswith("from roomlore")]
    assert len(new) - len(imports) <= programs.MOST_CHANGED, new
    with roomlore.open_sync("sqlite:///trips.db") as lore:
        (room,) = [one.room_id for one in lore.rooms.page() if "rome" in one.room_id]
        assert [(one.sender_id, one.role.value) for one in lore.messages.page(room)] == [
            ("ann", "user"),
            ("guide", "assistant"),
            ("guide", "tool"),
            ("guide", "assistant"),
        ]


async def test_what_the_model_is_sent_in_three_turns_and_after_a_failure(lore, sessions):
    """Each message once and in order. What is preloaded has the facts and other sessions, not what is being asked: a
    regression, the question was found as the best answer to itself."""
    await lore.memories.add("user:ann", "安对花生过敏")
    model = Listening()
    runner = runner_of(sessions, RoomloreMemoryService(lore), model=model, tools=[PreloadMemoryTool()])
    for session, text in (("old", "Snacks: I like rice crackers"), ("s1", "Which snacks?"), ("s1", "And to drink?")):
        if text != "And to drink?":
            await sessions.create_session(**ANN, session_id=session)
        await answer(runner, text, session)
    model.fails.append(ConnectionError("the model is away"))
    with contextlib.suppress(ConnectionError, AttributeError):
        await answer(runner, "谢谢")
    kept = await sessions.get_session(**ANN, session_id="s1")
    assert [one.content.parts[0].text for one in kept.events if one.content][-1] == "谢谢"
    turns = [("user", "Which snacks?"), ("model", "Noted."), ("user", "And to drink?"), ("model", "Noted.")]
    turns.append(("user", "谢谢"))
    for number, sent in enumerate(model.asked[-3:]):
        preloaded = [text for _, text in sent if "PAST_CONVERSATIONS" in text]
        said = [one for one in sent[1:] if one[1] not in preloaded]
        assert (sent[0][1].count("You help."), said) == (1, turns[: 2 * number + 1])
        assert str(sent).count("安对花生过敏") == 1
        assert not any(text in preloaded[0] for _, text in said)
    assert "rice crackers" in str(model.asked[1])


async def test_a_conversation_goes_on_after_a_restart(tmp_path):
    url = f"sqlite:///{tmp_path / 'adk.db'}"
    for number in (1, 3, 5):
        async with roomlore.open(url, background=False) as lore:
            sessions = RoomloreSessionService(lore)
            if number == 1:
                await sessions.create_session(**ANN, session_id="s1")
            assert await answer(runner_of(sessions), "你好") == f"Heard: {number}"


async def test_sessions_and_states_are_those_of_adk(sessions):
    """The same calls give the same as ADK's own service in memory."""
    seen = []
    for service in (InMemorySessionService(), sessions):
        first = await service.create_session(**ANN, session_id="a", state={"n": 1, "user:x": [1], "app:y": {"k": None}})
        other = await service.create_session(app_name="trips", user_id="bob", session_id="a")
        delta = {"n": None, "list": [1, {"茶": "绿"}], "user:x": {"a": 1}, "temp:t": 3}
        await service.append_event(first, event("Hi", actions=EventActions(state_delta=delta), timestamp=1.0))
        await service.append_event(first, event("晴", "guide", timestamp=2.0))
        await service.append_event(first, event("half", "guide", partial=True))
        found = await service.get_session(**ANN, session_id="a")
        last = await service.get_session(**ANN, session_id="a", config=GetSessionConfig(num_recent_events=1))
        late = await service.get_session(**ANN, session_id="a", config=GetSessionConfig(after_timestamp=1.5))
        listed = await service.list_sessions(app_name="trips", user_id="ann")
        again = await service.create_session(**ANN, session_id="b")
        texts = [[one.content.parts[0].text for one in which.events] for which in (found, last, late)]
        state = {name: value for name, value in found.state.items() if not name.startswith("temp:")}
        seen.append((state, texts, [one.id for one in listed.sessions]))
        await service.delete_session(**ANN, session_id="a")
        assert await service.get_session(**ANN, session_id="a") is None
        assert [one.id for one in (await service.list_sessions(**ANN)).sessions] == ["b"]
        fresh = await service.create_session(**ANN, session_id="a")
        assert (fresh.events, fresh.state.get("n")) == ([], None)
    # ADK's own service of some versions leaves the state of user and application out of what create_session returns.
    assert (other.state, again.state) == ({"app:y": {"k": None}}, {"user:x": {"a": 1}, "app:y": {"k": None}})
    assert seen[0] == seen[1]
    assert seen[1][0]["list"] == [1, {"茶": "绿"}]


async def test_events_come_back_as_they_were(sessions):
    session = await sessions.create_session(**ANN)
    parts = [
        types.Part(text="看", thought=True),
        types.Part(text="Look"),
        types.Part(function_call=types.FunctionCall(id="c1", name="look", args={"at": "茶"})),
        types.Part(inline_data=types.Blob(data=b"\0\xff", mime_type="image/png")),
    ]
    given = Event(author="guide", content=types.Content(role="model", parts=parts), invocation_id="i1", branch="a.b")
    await sessions.append_event(session, given)
    await sessions.append_event(session, given)
    found = await sessions.get_session(**ANN, session_id=session.id)
    assert found.events == [given]


async def test_an_existing_session_and_a_state_without_json_are_refused(sessions):
    session = await sessions.create_session(**ANN, session_id="a")
    with pytest.raises(roomlore.InvalidInput, match="exists"):
        await sessions.create_session(**ANN, session_id="a")
    with pytest.raises(roomlore.InvalidInput, match="no JSON"):
        await sessions.create_session(**ANN, state={"x": object()})
    await sessions.delete_session(**ANN, session_id="a")
    with pytest.raises(roomlore.NotFound):
        await sessions.append_event(session, event("Hi"))
    assert await sessions.get_session(**ANN, session_id="nothing") is None
    with pytest.raises(roomlore.InvalidInput, match=r"roomlore\.open"):
        RoomloreSessionService("sqlite://")


async def test_memory_finds_facts_and_what_was_said_in_other_sessions(lore, sessions):
    memory = RoomloreMemoryService(lore)
    runner = runner_of(sessions, memory, tools=[load_memory])
    await lore.memories.add("user:ann", "安对花生过敏")
    for name, text in (("old", "I live in Kyoto near the river"), ("new", "Where do I live?")):
        await sessions.create_session(**ANN, session_id=name)
        told = await answer(runner, text, name)
    assert "Kyoto" in told
    assert "花生" in told


async def test_a_session_of_another_service_is_added_once(lore):
    memory, own = RoomloreMemoryService(lore), InMemorySessionService()
    session = await own.create_session(**ANN, session_id="s")
    for text in ("我养了两只猫", "My cats are called Mo and Lu"):
        await own.append_event(session, event(text))
        session = await own.get_session(**ANN, session_id="s")
        await memory.add_session_to_memory(session)
    found = await memory.search_memory(**ANN, query="What are my cats called?")
    texts = [(one.author, one.content.parts[0].text) for one in found.memories]
    assert texts[0] == ("ann", "My cats are called Mo and Lu")
    assert len(texts) == len(set(texts))
    assert found.memories[0].timestamp.endswith("+00:00")
    await memory.add_memory(**ANN, memories=[MemoryEntry(content=words("安不吃肉"))])
    assert "安不吃肉" in [
        one.content.parts[0].text for one in (await memory.search_memory(**ANN, query="吃肉")).memories
    ]


async def test_nobody_finds_what_they_may_not_know(lore, sessions):
    """Not what others said to the agent, not what another application was told, and in a group only what all know."""
    secret = "The secret word is albatross"
    session = await sessions.create_session(**ANN, session_id="s")
    await sessions.append_event(session, event(secret))
    await lore.messages.add(roomlore.Message(id="1", room_id="team", sender_id="bob", text="The word is open"))
    await lore.rooms.set_members("team", [roomlore.Member("bob"), roomlore.Member("ann")])

    async def found(viewer=None, **who):
        memory = RoomloreMemoryService(lore, viewer=viewer)
        return [one.content.parts[0].text for one in (await memory.search_memory(**who, query="secret word")).memories]

    assert secret in await found(**ANN)
    assert secret not in await found(app_name="trips", user_id="bob")
    assert secret not in await found(app_name="other", user_id="ann")
    assert await found("room:team", **ANN) == ["The word is open"]


async def test_forgetting_a_person_leaves_what_is_kept_of_the_application(lore):
    service = RoomloreSessionService(lore)
    state = {"app:currency": "EUR", "user:home": "Oslo", "day": "Monday"}
    await service.create_session(**ANN, session_id="rome", state=state)
    await lore.privacy.forget("ann")
    assert await service.get_session(**ANN, session_id="rome") is None
    assert await service.get_user_state(**ANN) == {}
    assert (await service.create_session(app_name="trips", user_id="bo")).state == {"app:currency": "EUR"}


async def test_a_trouble_of_the_memory_leaves_the_agent_alone(caplog):
    async with roomlore.open("sqlite://", background=False) as lore:
        memory = RoomloreMemoryService(lore)
    with caplog.at_level(logging.WARNING):
        assert (await memory.search_memory(**ANN, query="x")).memories == []
    assert "not searched" in caplog.text


async def test_what_others_write_into_a_session_is_an_event(lore, sessions):
    session = await sessions.create_session(**ANN, session_id="s")
    room = '["trips","ann","s"]'
    await lore.messages.add(roomlore.Message(id="1", room_id=f"adk:{room}", sender_id="ann", text="from a bot"))
    await sessions.append_event(session, event("Hi"))
    found = await sessions.get_session(**ANN, session_id="s")
    assert [(one.author, one.content.parts[0].text) for one in found.events] == [("user", "from a bot"), ("user", "Hi")]
