"""Stories whose messages have no times, told through each face: who is shown what was said.

The stories lie in `bench/audience/untimed.jsonl`. A small reading of the rule, which knows only who was where when each
thing was said, says what everybody may know; what they are shown is compared with it.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import patch

import roomlore
from bench.audience import FOREVER, Case, World
from roomlore import Lore, MemoryKind, Message, NotFound, Role, Settings
from roomlore.wiring import resources
from roomlore_testkit import START, FrozenClock, SequentialIds
from roomlore_testkit.model_server import ModelServer, Says

STORIES = Path(__file__).parent / "audience" / "untimed.jsonl"
STRANGER = "stranger"
_AGENT = "the-agent"
_PAUSE = timedelta(minutes=7).total_seconds()
Say = Callable[[Lore, Sequence[Case]], Awaitable[None]]
"""Gives messages of one room, in order, to a face."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a viewer of a story is shown. `leaks`: texts that they may not know; `missing`: of the `heard` ones, those
    that are not shown."""

    story: str
    viewer: str
    heard: tuple[str, ...]
    leaks: tuple[str, ...]
    missing: tuple[str, ...]


def stories() -> list[Case]:
    return [json.loads(line) for line in STORIES.read_text("utf-8").splitlines()]


async def played(story: Case, face: str) -> list[Shown]:
    """Tell a story through a face and return what each person, each room and a stranger are shown."""
    clock = FrozenClock(START)
    with (
        patch.object(resources, "SystemClock", lambda: clock),
        patch.object(resources, "TimeOrderedIds", SequentialIds),
    ):
        async with _opened() as lore:
            world, truth = World(lore, clock), Truth(alone=face == "mem0")
            await world.begin(story["rooms"])
            truth.begin(story["rooms"])
            for talk, events in groupby(story["events"], lambda one: one["type"] == "message" and one["room"]):
                its = [event_there for event_there in events if _can_tell(face, event_there)]
                for event in its:
                    truth.take(event)
                if talk and its:
                    clock.advance(_PAUSE)
                    await FACES[face](lore, its)
                for event in () if talk else its:
                    clock.advance(_PAUSE)
                    await world.play(event)
            clock.advance(_PAUSE)
            return [await _shown(lore, story, face, viewer, may) for viewer, may in truth.viewers()]


def _can_tell(face: str, event: Case) -> bool:
    """Return True if the face has words for it: facts name messages by their ids, and of what a client says only what
    a person said is certain to be stored as it was."""
    if event["type"] == "fact":
        return face == "messages"
    return event["type"] != "message" or event["role"] == "user" or face == "messages"


@asynccontextmanager
async def _opened() -> AsyncIterator[Lore]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ModelServer(lambda _: Says(text="ready")))
        settings = Settings(
            providers={"p": {"base_url": server.url}},
            models={"chat": {"providers": [{"name": "p", "model_id": "chat"}]}},
        )
        yield await stack.enter_async_context(roomlore.open("sqlite://", settings=settings, background=False))


@dataclass(slots=True)
class Truth:
    """Who was where, and who heard each text, None for everybody. `alone`: the face has no rooms; what a person says is
    between that person and agents."""

    alone: bool = False
    kinds: dict[str, str] = field(default_factory=dict)
    members: dict[str, set[str]] = field(default_factory=dict)
    heard: dict[str, frozenset[str] | None] = field(default_factory=dict)
    said_in: dict[str, str] = field(default_factory=dict)
    people: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)

    def begin(self, rooms: Iterable[Case]) -> None:
        for room in rooms:
            self.kinds[room["room_id"]] = room["kind"]
            self.members[room["room_id"]] = {member["person"] for member in room["members"]}
            self.people |= self.members[room["room_id"]]

    def take(self, event: Case) -> None:
        if event["type"] == "fact":
            (source,) = (self.texts[text_id] for text_id in event["message_ids"])
            self.heard[event["text"]], self.said_in[event["text"]] = self.heard[source], self.said_in[source]
            return
        room = event["room"]
        if event["type"] == "kind":
            self.kinds[room] = event["kind"]
        elif event["type"] == "join":
            self.members[room].add(event["person"])
            self.people.add(event["person"])
        elif event["type"] == "leave":
            self.members[room].discard(event["person"])
        else:
            text = event["text"]
            self.texts[event["id"]], self.said_in[text] = text, "" if self.alone else room
            there = None if self.kinds[room] == "public" else frozenset(self.members[room])
            self.heard[text] = frozenset({event["sender"]}) if self.alone else there

    def viewers(self) -> Iterable[tuple[str, frozenset[str]]]:
        """Yield the viewers and what each may know."""
        for person in sorted({*self.people, STRANGER}):
            yield f"user:{person}", frozenset(text for text, who in self.heard.items() if who is None or person in who)
        for room, members in self.members.items():
            all_of_them = members if self.kinds[room] != "public" and members else None
            yield (
                f"room:{room}",
                frozenset(
                    text
                    for text, who in self.heard.items()
                    if who is None or self.said_in[text] == room or (all_of_them and all_of_them <= who)
                ),
            )


async def _shown(lore: Lore, story: Case, face: str, viewer: str, may: frozenset[str]) -> Shown:
    answers = await _answers_of(lore, viewer, story["events"])
    texts = [event["text"] for event in story["events"] if "text" in event and _can_tell(face, event)]
    return Shown(
        story["id"],
        viewer,
        heard=tuple(text for text in texts if text in may),
        leaks=tuple(text for text in texts if text not in may and text in answers),
        missing=tuple(text for text in texts if text in may and text not in answers),
    )


async def _answers_of(lore: Lore, viewer: str, events: Sequence[Case]) -> str:
    """Return all that the reads of messages and memories tell a viewer."""
    answers: list[Any] = []
    queries = list(dict.fromkeys(event["text"] for event in events if "text" in event))
    for room in await lore.rooms.page():
        with suppress(NotFound):
            page = await lore.messages.page(room.room_id, viewer=viewer, limit=200)
            answers.append([message.text for message in page])
            digest = await lore.digest(room.room_id, viewer=viewer, since=FOREVER, max_tokens=4000)
            answers.append(digest.to_prompt())
            answers += [
                (await lore.messages.get(room.room_id, message.id, viewer=viewer)).message.text for message in page
            ]
    for query in queries:
        answer = await lore.messages.search(query=query, viewer=viewer, limit=50)
        answers.append([hit.message.text for hit in answer.hits])
    people = {event["sender"] for event in events if "sender" in event}
    scopes = {f"user:{person}" for person in people} | {f"group:{event['room']}" for event in events if "room" in event}
    scopes |= {event["scope"] for event in events if "scope" in event}
    for scope in sorted(scopes):
        answers += [memory.statement for memory in await lore.memories.page(scope, status="all", viewer=viewer)]
    conversation = [{"role": "user", "content": query} for query in queries[:3]]
    recalled = await lore.recall.build(
        sorted(scopes), conversation, kinds=tuple(MemoryKind), viewer=viewer, max_tokens=4000
    )
    return json.dumps([*answers, recalled.text], ensure_ascii=False)


async def _messages(lore: Lore, messages: Sequence[Case]) -> None:
    await lore.messages.add(
        [
            Message(
                id=message["id"],
                room_id=message["room"],
                sender_id=message["sender"],
                role=Role(message["role"]),
                text=message["text"],
            )
            for message in messages
        ]
    )


async def _chat_completions(lore: Lore, messages: Sequence[Case]) -> None:
    """One request, whose client brings along what was said before."""
    import httpx

    from roomlore_server.http import create_app

    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
    *_, message = messages
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.post(
            "/v1/chat/completions",
            json={
                "messages": [{"role": "user", "content": one["text"], "name": one["sender"]} for one in messages],
                "metadata": {"room_id": message["room"], "speaker_id": message["sender"], "agent": _AGENT},
            },
        )
    answer.raise_for_status()


async def _langchain(lore: Lore, messages: Sequence[Case]) -> None:
    from langchain_core.messages import HumanMessage

    from roomlore_integrations.langchain.history import RoomloreChatMessageHistory

    for message in messages:
        history = RoomloreChatMessageHistory(message["room"], lore, user_id=message["sender"], agent_code=_AGENT)
        await history.aadd_messages([HumanMessage(message["text"])])


async def _openai_agents(lore: Lore, messages: Sequence[Case]) -> None:
    from roomlore_integrations.openai_agents import RoomloreSession

    for message in messages:
        session = RoomloreSession(message["room"], lore, user_id=message["sender"], agent_code=_AGENT)
        await session.add_items([{"role": "user", "content": message["text"]}])


async def _mem0(lore: Lore, messages: Sequence[Case]) -> None:
    from roomlore_integrations.mem0 import AsyncMemory

    memory = AsyncMemory(lore=lore)
    for message in messages:
        await memory.add(message["text"], user_id=message["sender"], infer=False)


async def _mcp(lore: Lore, messages: Sequence[Case]) -> None:
    from roomlore_server.mcp import tools

    (add,) = (tool for tool in tools.TOOLS if tool.name == "add_memory")
    for message in messages:
        visitor = tools.Visitor(lore=lore, viewer=f"room:{message['room']}")
        await add.run(
            visitor, add.takes.model_validate({"scope": f"user:{message['sender']}", "statement": message["text"]})
        )


FACES: Mapping[str, Say] = {
    "messages": _messages,
    "chat-completions": _chat_completions,
    "langchain": _langchain,
    "openai-agents": _openai_agents,
    "mem0": _mem0,
    "mcp": _mcp,
}
