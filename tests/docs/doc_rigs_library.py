"""Rigs of the pages about the library: what their fragments take as given."""

import importlib
import json
import sys
import warnings
from types import ModuleType

import pytest
from doc_page import Page
from doc_rigs import rig
from doc_rooms import said

import roomlore
import roomlore_integrations.mem0
from attachment_rig import PICTURE
from roomlore.core.chat import KNOWN_PROVIDERS, ToolCall
from roomlore_testkit.model_server import Asked, Says, serve_models


@rig("docs/explanation/short-memories.md")
def short_memories(page: Page):
    yield
    assert page.printed[1].endswith(" True\n")


@rig("docs/how-to/forget.md", "docs/how-to/forget.zh.md")
def forget(page: Page):
    lore = page.open("chat.db")
    page.wait(said(lore, "tea", "Green tea, please", "sure", senders=("u-1842", "bob")))
    yield
    (left,) = page.wait(lore.rooms.page())
    assert left.room_id == "tea"
    assert "Green" not in str(page.wait(lore.messages.page("tea")))


@rig("docs/how-to/delete-a-room.md", "docs/how-to/delete-a-room.zh.md")
def delete_a_room(page: Page):
    lore = page.open("chat.db")
    page.wait(said(lore, "tea", "Green tea, please", "sure"))
    yield
    assert page.wait(lore.rooms.page()) == []


@rig("docs/how-to/langchain.md")
def langchain(page: Page):
    with warnings.catch_warnings():
        import langchain_core  # noqa: F401 - first, since it sets filters of its own when imported

        warnings.filterwarnings("ignore", message="RunnableWithMessageHistory is deprecated")
        yield
    assert page.printed[-1] == "带防晒霜。\n"


@rig("docs/how-to/models.md")
def models(page: Page):
    with serve_models(default="茶。Tea.") as server:
        named = {name: {"base_url": server.url} for name in (*KNOWN_PROVIDERS, "here")}
        page.environment["MEMORY_PROVIDERS"] = json.dumps(named)
        yield
    assert page.printed[2] == "茶。Tea.\n茶。Tea."


def _sees_a_hut(asked: Asked) -> str:
    is_chinese = "群聊" in str(asked.body)
    return "湖边有一间红屋顶的小屋。" if is_chinese else "A hut with a red roof beside a lake."


@rig("docs/how-to/attachments.md", "docs/how-to/attachments.zh.md")
def attachments(page: Page):
    """A picture in the folder, and a model that sees what it shows."""
    (page.folder / "files").mkdir()
    (page.folder / "files" / "hut.png").write_bytes(PICTURE)
    with serve_models(_sees_a_hut) as server:
        page.environment["MEMORY_PROVIDERS"] = json.dumps({"here": {"base_url": server.url}})
        yield


@rig("docs/how-to/moving-from-mem0.md")
def moving_from_mem0(page: Page):
    """Replace the module mem0 by roomlore's clients, except for the platform's client, whose telemetry is off."""
    page.environment |= {"MEMORY_DATABASE_URL": "sqlite:///memories.db", "MEM0_TELEMETRY": "False"}
    with pytest.MonkeyPatch.context() as patching, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patching.setenv("MEM0_TELEMETRY", "False")
        patching.setenv("MEM0_DIR", str(page.folder))
        platform = importlib.import_module("mem0").MemoryClient
    before = sys.modules.get("mem0")
    ours = roomlore_integrations.mem0
    sys.modules["mem0"] = ModuleType("mem0")
    vars(sys.modules["mem0"]).update(Memory=ours.Memory, AsyncMemory=ours.AsyncMemory, MemoryClient=platform)
    try:
        yield
    finally:
        sys.modules.pop("mem0")
        if before is not None:
            sys.modules["mem0"] = before
    printed = "".join(page.printed).splitlines()
    server = [line for line in printed if line.startswith(("roomlore listens on", "Days begin as in"))]
    assert len(server) == 2
    assert server[1] == "Days begin as in UTC (the machine's own; time_zone sets another)."
    assert [line for line in printed if line not in server] == [
        "我对花生过敏 {'source': 'form'}",
        "['ADD', 'UPDATE']",
        "2",
        "['Plays chess', 'Drinks oolong and green tea', '我对花生过敏']",
        "['我对花生过敏']",
        "mem0's configuration: history_db_path has no effect here: the history lies in the database beside the "
        "memories; name that with url='sqlite:///memories.db'.",
        "3 ()",
        "Plays chess",
        "anna",
    ]


@rig("docs/how-to/openai-agents.md")
def openai_agents(page: Page):
    """The SDK asks the scripted server, in the protocol that it speaks, and reports to nobody."""
    import agents
    import httpx
    from agents.models import _openai_shared as shared
    from openai import AsyncOpenAI

    with serve_models(default="带防晒霜。") as server:
        agents.set_tracing_disabled(True)
        # Each program of the page has a loop of its own, and a connection of an earlier one is of no use there.
        own = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0))
        client = AsyncOpenAI(base_url=server.url, api_key="sk-test", http_client=own)
        agents.set_default_openai_client(client, use_for_tracing=False)
        agents.set_default_openai_api("chat_completions")
        try:
            page.names["lore"] = page.open("chat.db")
            yield
        finally:
            shared._default_openai_client, shared._use_responses_by_default = None, True
            agents.set_tracing_disabled(False)
    assert page.printed[2] == "带防晒霜。\n"
    assert "Ann burns easily in the sun" in server.requests[-1].prompt
    assert page.wait(page.names["session"].get_items(limit=1))


@rig("docs/how-to/recall.md")
def recall(page: Page):
    def several() -> str:
        lore = page.open("several.db")
        page.wait(lore.memories.add("group:tea", "Meets on Fridays"))
        return page.wait(lore.recall.memory_prompt(["user:ann", "group:tea", "agent:bot"], []))

    page.prints["- [group:tea]"] = several
    yield
    assert page.printed[2] == "True True\nTrue\n"
    assert page.printed[3] == "system \nuser memory_context\nuser \n"


@rig("docs/how-to/replies.md")
def replies(page: Page):
    wants = {
        "weather": Says(tool_calls=(ToolCall("call-1", "weather", '{"city": "Qingdao"}'),)),
        "search_chat": Says(tool_calls=(ToolCall("call-2", "search_chat", '{"query": "青岛要带什么"}'),)),
    }
    told, answers = {"tool": "Sunny in Qingdao. 晴。"}, []

    def answer(asked):
        last = asked.body["messages"][-1]
        if asked.body.get("tools") and last["role"] != "tool":
            return wants[asked.body["tools"][0]["function"]["name"]]
        if "绿茶还是红茶" in str(last):
            return Says(pieces=["绿茶", "。"])
        return told.get(last["role"], "绿茶。\u2028")

    with serve_models(answer) as server:
        lore = page.open("replies.db", **chat_at(server.url))
        page.environment |= {f"MEMORY_{name.upper()}": json.dumps(value) for name, value in chat_at(server.url).items()}
        page.names |= {"json": json, "lore": lore, "weather": weather, "run": run, "message": asks(1)}
        page.prints["<memory>"] = lambda: shown_memory(page, server)
        page.shell("git init -q . && git add replies.db && echo tea > tea.txt && git add -N tea.txt")
        page.before["past ="] = lambda: page.names.update(message=asks(3))
        page.before["waiting ="] = lambda: page.names.update(message=asks(2))
        page.before["import json"] = lambda: answers.append(page.names["reply"].text)
        page.typed = "which tea did Bob want?\n"
        yield
        check_client(page)
        found = [
            said["content"] for asked in server.requests for said in asked.body["messages"] if said["role"] == "tool"
        ]
        assert any("去青岛要带什么？" in one for one in found)
    assert page.printed[1] == "茉莉花茶，毛巾和水。\n"
    assert answers == ["Sunny in Qingdao. 晴。"]


def check_client(page: Page) -> None:
    """The client of the page hears what the server says, and a refusal in words."""
    url, message = f"http://localhost:{page.port}", {"id": "m9", "sender_id": "ann", "text": "And now? 现在呢？"}
    heard = list(page.names["reply"](url, "tea", message))
    assert "".join(data["text"] for name, data in heard if name == "text") == "绿茶。\u2028"
    assert heard[-1][0] == "done"
    with pytest.raises(RuntimeError, match="stored already with other content"):
        list(page.names["reply"](url, "tea", message | {"text": "?"}))


async def weather(city: str) -> str:
    return f"{city}: 28 °C, sunny"


async def run(call: ToolCall) -> str:
    return await weather(json.loads(call.arguments)["city"])


def asks(number: int) -> roomlore.Message:
    return roomlore.Message(id=f"w{number}", room_id="beach", sender_id="ann", text="去青岛要带什么？")


def chat_at(url: str) -> dict:
    """Settings with one model for replies, at this address."""
    return {
        "models": {"chat": {"providers": [{"name": "here", "model_id": "any"}]}},
        "providers": {"here": {"base_url": url}},
    }


def shown_memory(page: Page, server) -> str:
    """Return the prompt with facts about somebody and about her room."""
    lore = page.open("told.db", **chat_at(server.url))
    page.wait(lore.memories.add("user:a1", "Drinks green tea only"))
    page.wait(lore.memories.add("group:tea", "Meets for tea on Fridays"))
    message = roomlore.Message(id="m1", room_id="tea", sender_id="a1", sender_name="Ann", text="Is there green tea?")
    page.wait(lore.replies.reply(message))
    return server.requests[-1].prompt
