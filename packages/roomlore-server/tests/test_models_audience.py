"""Prompts of models, and the tools that they read with, in a room: the same whatever was said elsewhere."""

import json
import re
from typing import Any

import httpx
import pytest

from audience_rig import heard_in
from reply_rig import reply_settings
from roomlore import Lore, Message, Source
from roomlore.core.errors import RoomloreError
from roomlore_server.http import create_app
from roomlore_server.mcp.tools import TOOLS, Visitor
from roomlore_testkit import START
from roomlore_testkit.model_server import ModelServer

PEOPLE = {"dm": "ann", "team": "ann bo", "square": "ann eve"}
SECRET, NUTS = "Ann wants another job", "Ann is allergic to nuts"
ANN = {"scope": "user:ann"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search_memories", {**ANN, "query": "another job", "threshold": 0}),
    ("search_memories", {**ANN, "query": SECRET, "threshold": 0.9}),
    ("search_memories", {**ANN, "query": "nuts", "threshold": 0, "limit": 1}),
    ("search_memories", {"scope": "group:dm", "query": "job", "threshold": 0}),
    ("search_memories", {"scope": "agent:bot", "query": "job", "threshold": 0}),
    ("get_memories", ANN),
    ("get_memories", {**ANN, "status": "all"}),
    ("get_memories", {**ANN, "status": "deprecated"}),
    ("get_memories", {**ANN, "limit": 1, "offset": 1}),
    ("get_memories", {"scope": "group:dm"}),
    ("get_memory", {"memory_id": "nuts"}),
    ("get_memory", {"memory_id": "hidden-0"}),
    ("memory_history", {"memory_id": "nuts"}),
    ("memory_history", {"memory_id": "hidden-0"}),
    ("memory_prompt", {"scopes": ["user:ann", "group:dm", "agent:bot"], "query": "job"}),
    ("memory_prompt", {"scopes": ["user:ann"], "query": "", "max_tokens": 20}),
    ("memory_prompt", {"scopes": ["user:ann"], "query": SECRET, "max_tokens": 5}),
    ("room_context", {"room_id": "dm", "message_id": "dm-ann"}),
    ("room_context", {"room_id": "dm", "message_id": "said-0"}),
    ("room_context", {"room_id": "team", "message_id": "team-bo"}),
    ("room_context", {"room_id": "team", "message_id": "said-0"}),
    ("list_rooms", {}),
    ("list_rooms", {"after": "dm", "limit": 1}),
    ("add_memory", {**ANN, "statement": f"{SECRET} 0"}),
    ("add_memory", {**ANN, "statement": f"{SECRET} 0", "room_id": "dm", "message_ids": ["said-0"]}),
    ("add_memory", {**ANN, "statement": f"{SECRET} 0", "room_id": "team", "message_ids": ["team-bo"]}),
    ("update_memory", {"memory_id": "hidden-0", "statement": "x"}),
    ("update_memory", {"memory_id": "hidden-0", "statement": "x", "expected": "hidden-1"}),
    ("update_memory", {"memory_id": "nuts", "statement": f"{SECRET} 1"}),
    ("delete_memory", {"memory_id": "hidden-0"}),
    ("delete_memory", {"memory_id": "hidden-0", "expected": "nuts"}),
]
TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}
VARYING = re.compile(
    r'"(memory_id|created_at|updated_at|parent_id|updated)":"[^"]*"|"created":\d+|\b[0-9a-f-]{32,36}\b|\d{4}-\d\d-\d\dT[^"]*'
    r"|\d{4}-\d\d-\d\d \d\d:\d\d"  # the time now, which a prompt tells
)


async def tell(lore: Lore, secrets: int) -> None:
    """Say in the direct room so many secrets, which become memories of Ann, of the room and of the agent."""
    await lore.memories.add("user:ann", NUTS, sources=[Source("team", "team-ann")], memory_id="nuts")
    for number in range(secrets):
        text, at = f"{SECRET} {number}", Source("dm", f"said-{number}")
        said = Message(id=at.message_id, room_id="dm", sender_id="ann", text=text, sent_at=START)
        await lore.messages.add(said)
        await lore.memories.add("user:ann", text, sources=[at], memory_id=f"hidden-{number}")
        await lore.memories.add("group:dm", text, sources=[at])
        await lore.memories.add("agent:bot", text, sources=[at])
        if number > 2:
            await lore.memories.delete(f"hidden-{number}")


async def called(viewer: str, secrets: int) -> list[str]:
    """Return the answer or the error of each call of a tool: those that write, each in a store of its own."""
    reading = [call for call in CALLS if not TOOLS_BY_NAME[call[0]].writes]
    told: dict[str, str] = {}
    for calls in (reading, *([call] for call in CALLS if call not in reading)):
        async with heard_in(PEOPLE, direct="dm") as lore:
            await tell(lore, secrets)
            for name, given in calls:
                tool, visitor = TOOLS_BY_NAME[name], Visitor(lore=lore, viewer=viewer)
                try:
                    answer = await tool.run(visitor, tool.takes.model_validate(given))
                    told[str((name, given))] = json.dumps(answer.to_json(), separators=(",", ":"))
                except RoomloreError as error:
                    told[str((name, given))] = str(error)
    return [VARYING.sub("", told[str(call)]) for call in CALLS]


@pytest.mark.parametrize("viewer", ["room:team", "user:eve"])
async def test_each_tool_answers_the_same_whatever_was_said_elsewhere(viewer):
    without, with_secrets = await called(viewer, 0), await called(viewer, 5)
    for call, *told in zip(CALLS, without, with_secrets, strict=True):
        assert told[0] == told[1], call
    unasked = [one for (_, given), one in zip(CALLS, with_secrets, strict=True) if SECRET not in str(given)]
    assert SECRET not in str(unasked)


async def replied_in(room: str, secrets: int, server: ModelServer, path: str) -> list[str]:
    """Return the prompt of a reply and its events, as a key that may write is told them."""
    async with heard_in(PEOPLE, direct="dm", settings=reply_settings(server)) as lore:
        await tell(lore, secrets)
        _, key = await lore.keys.create("bot", scopes=("write",))
        transport, headers = httpx.ASGITransport(create_app(lore)), {"Authorization": f"Bearer {key}"}
        said = {
            "id": "q",
            "sender_id": "ann",
            "text": "Do I want another job? 我想换工作吗？",
            "sent_at": START.isoformat(),
        }
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http:
            if path == "/chat/sse":
                asked = {"room_id": room, "message": said, "agent_id": "bot"}
            else:
                metadata = {"room": room, "speaker_id": "ann", "agent_id": "bot", "message_id": "q"}
                messages = [{"role": "user", "content": said["text"]}]
                asked = {"messages": messages, "metadata": metadata, "stream": True}
            events = await http.post(path, json=asked)
        assert "done" in events.text.lower()
        return [VARYING.sub("", told) for told in (server.requests[-1].prompt, events.text)]


@pytest.mark.parametrize("path", ["/chat/sse", "/v1/chat/completions"])
@pytest.mark.parametrize(("room", "knows"), [("team", False), ("square", False), ("new", False), ("dm", True)])
async def test_a_reply_is_made_the_same_whatever_was_said_elsewhere(room, knows, path):
    async with ModelServer() as server:
        without, with_secrets = [await replied_in(room, secrets, server, path) for secrets in (0, 5)]
    assert (without == with_secrets) is not knows
    assert (SECRET in with_secrets[0]) is knows
