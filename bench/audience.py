"""Invented worlds in which something must not come out: how many leak, and how much of what must be known is known.

The cases lie in `bench/audience`. Each is played into a store of its own through the public verbs, and every read is
asked for its viewer: recall, searches, lists, histories, messages, digests and the prompt of a reply.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import roomlore
from roomlore import Lore, Member, Memory, MemoryKind, Message, NotFound, Role, Settings, Source
from roomlore.core.errors import Forbidden
from roomlore.wiring import resources
from roomlore_testkit import FrozenClock, SequentialIds
from roomlore_testkit.model_server import Asked, ModelServer, Says

CASES = Path(__file__).parent / "audience" / "leaks.jsonl"
_AGENT = "the-agent"
FOREVER = datetime(2000, 1, 1, tzinfo=UTC)
_IDS = re.compile(r"\bid-\d{6}\b")
Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a case. `leaks`: what came out. `missing`: what must be known and is not. `differs`: True if the
    answer is another one in the world without the secret."""

    case: Case
    leaks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    differs: bool = False

    @property
    def leaked(self) -> bool:
        return bool(self.leaks) or self.differs


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a viewer. `known`: the ids of memories that are listed, `text`: all that was told, for the
    comparison with the other world."""

    known: frozenset[str]
    recalled: frozenset[str]
    text: str


def cases() -> list[Case]:
    return [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", help="ids of cases; all by default")
    parser.add_argument("--show", action="store_true", help="tell every case that is not right")


async def run(arguments: argparse.Namespace) -> None:
    judged = [await judge(case) for case in cases() if not arguments.only or case["id"] in arguments.only]
    for judgement in judged:
        if arguments.show and (judgement.leaked or judgement.missing):
            print(line_of(judgement))
    print("| cases | worlds | leaks | must be known | known |\n|---|---|---|---|---|")
    for name, some in (
        ("decided by the specification", [one for one in judged if not one.case.get("reading")]),
        ("where it leaves a choice", [one for one in judged if one.case.get("reading")]),
    ):
        wanted = sum(len(one.case["must"]) for one in some)
        known = wanted - sum(len(one.missing) for one in some)
        print(f"| {name} | {len(some)} | {sum(one.leaked for one in some)} | {wanted} | {known} |")
    themes = Counter(one.case["theme"] for one in judged if one.leaked or one.missing)
    print("Not right: " + (", ".join(f"{theme} {count}" for theme, count in themes.most_common()) or "nothing"))


def line_of(judgement: Found) -> str:
    """Return a line about a case that is not right."""
    what = [f"leaks {', '.join(judgement.leaks)}"] if judgement.leaks else []
    what += [f"misses {', '.join(judgement.missing)}"] if judgement.missing else []
    what += ["differs from the world without the secret"] if judgement.differs else []
    case = judgement.case
    return f"{case['id']} ({case.get('reading') or case['theme']}): {'; '.join(what)}. {case['why']}"


async def judge(case: Case) -> Found:
    """Play the case and compare what its viewer is told with what it may be told."""
    answer = await _answer(case, case["events"])
    ids = {event["id"] for event in case["events"] if "id" in event} | {
        event["new_id"] for event in case["events"] if "new_id" in event
    }
    out = [
        name_there
        for name_there in case["must_not"]
        if (name_there in answer.known | answer.recalled if name_there in ids else name_there in answer.text)
    ]
    missing = [name_there for name_there in case["must"] if name_there not in answer.known & answer.recalled]
    twin = case.get("twin_events")
    differs = twin is not None and (await _answer(case, twin)).text != answer.text
    return Found(case, tuple(out), tuple(missing), differs)


async def _answer(case: Case, events: Sequence[Case]) -> Answer:
    first = _time(events[0]["at"]) - timedelta(hours=1)
    clock = FrozenClock(first)
    with (
        patch.object(resources, "SystemClock", lambda: clock),
        patch.object(resources, "TimeOrderedIds", SequentialIds),
    ):
        async with _opened() as (lore, server):
            world = World(lore, clock, server)
            await world.begin(case["rooms"])
            for event in events:
                clock.advance((_time(event["at"]) - clock.now()).total_seconds())
                await world.play(event)
            clock.advance((_time(case["events"][-1]["at"]) - clock.now()).total_seconds() + 60)
            scopes = sorted({one["scope"] for one in case["events"] if "scope" in one})
            return await world.ask(case["ask"]["viewer"], case["ask"]["query"], scopes)


@asynccontextmanager
async def _opened() -> AsyncIterator[tuple[Lore, ModelServer]]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ModelServer(lambda _: Says(text="ready")))
        settings = Settings(
            providers={"p": {"base_url": server.url}},
            models={"chat": {"providers": [{"name": "p", "model_id": "chat"}]}},
        )
        yield await stack.enter_async_context(roomlore.open("sqlite://", settings=settings, background=False)), server


class World:
    """A world that is played into a store."""

    def __init__(self, lore: Lore, clock: FrozenClock, server: ModelServer | None = None) -> None:
        self.lore = lore
        self._clock = clock
        self._server = server
        self._ids: dict[str, str] = {}
        """The stored memory of each id of the case."""
        self._later: list[tuple[str, str]] = []
        """Members of whom the platform does not say since when: they are told when it is asked."""

    async def begin(self, rooms: Sequence[Case]) -> None:
        for room in rooms:
            await self.lore.rooms.set_kind(room["room_id"], room["kind"])
            if room["members"] is not None:
                stays = [_member(member) for member in room["members"] if member.get("joined", "") is not None]
                await self.lore.rooms.set_members(room["room_id"], stays)
                untold = [member for member in room["members"] if member.get("joined", "") is None]
                self._later += [(room["room_id"], member["person"]) for member in untold]

    async def play(self, event: Case) -> None:
        """Do what the event tells."""
        kind = event["type"]
        if kind in ("fact", "hand_fact", "update", "share", "unshare"):
            await self._remember(kind, event)
        elif kind in ("join", "leave", "kind"):
            await self._move(kind, event)
        elif kind == "message":
            await self.lore.messages.add(_message(event))
        elif kind == "edit":
            await self.lore.messages.edit(event["room"], event["id"], text=event["text"])
        elif kind == "delete_message":
            await self.lore.messages.delete(event["room"], event["id"])
        elif kind == "forget_person":
            await self.lore.privacy.forget(event["person"])
        else:
            raise ValueError(f"No such event: {kind}")

    async def _remember(self, kind: str, event: Case) -> None:
        """Add, change or share a memory. A share that is refused changes nothing."""
        memories = self.lore.memories
        if kind == "update":
            before = await memories.get(self._ids[event["id"]])
            sources = [*before.sources, *await self._sources(event["message_ids"])]
            made = await memories.update(before.memory_id, statement=event["text"], sources=sources)
            self._ids[event["new_id"]] = made.memory_id
        elif kind in ("share", "unshare"):
            by = None if event.get("by") in (None, "admin") else event["by"]
            change = memories.share if kind == "share" else memories.unshare
            with suppress(Forbidden):
                await change(self._ids[event["id"]], event["with"], by=by)
        else:
            sources = await self._sources(event.get("message_ids", ()))
            wanted = MemoryKind.SHORT if event.get("kind") == "short" else MemoryKind.FACT
            await memories.add(event["scope"], event["text"], kind=wanted, sources=sources, memory_id=event["id"])
            self._ids[event["id"]] = event["id"]

    async def _move(self, kind: str, event: Case) -> None:
        rooms, room = self.lore.rooms, event["room"]
        if kind == "join":
            await rooms.add_members(room, [Member(event["person"], self._clock.now() if "at" in event else None)])
        elif kind == "leave":
            await rooms.remove_members(room, [event["person"]])
        else:
            await rooms.set_kind(room, event["kind"])

    async def _sources(self, message_ids: Sequence[str]) -> list[Source]:
        rooms = {room.room_id for room in await self.lore.rooms.page()}
        sources = []
        for name in message_ids:
            for room_id in sorted(rooms):
                with suppress(NotFound):
                    sources.append(Source(room_id, (await self.lore.messages.get(room_id, name)).message.id))
        return sources

    async def ask(self, viewer: str, query: str, scopes: Sequence[str]) -> Answer:
        """Return what every read tells the viewer."""
        for room_id, person in self._later:
            await self.lore.rooms.add_members(room_id, [person])
        lore, conversation = self.lore, [{"role": "user", "content": query}]
        answers: list[Any] = []
        recalled = await lore.recall.build(
            scopes, conversation, kinds=tuple(MemoryKind), viewer=viewer, max_tokens=4000
        )
        answers.append([recalled.text, recalled.tokens, recalled.considered, recalled.kept, recalled.degraded])
        answers.append([(_shown(fact.memory), fact.score, fact.similarity) for fact in recalled.facts])
        listed: list[Memory] = []
        for scope in scopes:
            page = await lore.memories.page(scope, status="all", viewer=viewer)
            listed += [memory for memory in page if memory.status == "active"]
            answers.append([list(map(_shown, page)), await lore.memories.count(scope, viewer=viewer)])
            answer = await lore.memories.search(scope, query, threshold=0, limit=50, viewer=viewer)
            answers.append([(_shown(hit.memory), hit.score, dict(hit.signals)) for hit in answer.hits])
        for name in sorted(self._ids):
            with suppress(NotFound):
                answers.append(
                    [_shown(memory) for memory in await lore.memories.history(self._ids[name], viewer=viewer)]
                )
        for room in sorted(room.room_id for room in await lore.rooms.page()):
            with suppress(NotFound):
                answers.append(await self._room(room, viewer, query))
        said_anywhere = await lore.messages.search(query=query, viewer=viewer, limit=50)
        answers.append([(hit.message, hit.score, dict(hit.signals)) for hit in said_anywhere.hits])
        answers.append(await self._prompt(viewer, query))
        names = {stored: name for name, stored in self._ids.items()}
        return Answer(
            known=frozenset(names[memory.memory_id] for memory in listed),
            recalled=frozenset(names[fact.memory.memory_id] for fact in recalled.facts),
            text=_IDS.sub("id", json.dumps(answers, ensure_ascii=False, default=str)),
        )

    async def _room(self, room_id: str, viewer: str, query: str) -> list[Any]:
        """Return what the viewer is told of a room: its messages, a search and a digest."""
        messages = self.lore.messages
        page = await messages.page(room_id, viewer=viewer, limit=200)
        hits = (await messages.search(room_id, query, viewer=viewer, limit=50)).hits
        made = await self.lore.digest(room_id, viewer=viewer, since=FOREVER, max_tokens=4000)
        return [page, [(hit.message, hit.score) for hit in hits], made.to_prompt(), made.messages]

    async def _prompt(self, viewer: str, query: str) -> str:
        """Return the prompt that a model gets in the viewer's room. In another room than the direct one a person has
        none of their own."""
        kind, _, name = viewer.partition(":")
        if kind == "user":
            return ""
        assert self._server is not None, "a world whose rooms are asked has a model"
        seen: list[Asked] = self._server.requests
        before = len(seen)
        people = sorted((await self.lore.rooms.people(name)).people) or ["somebody"]
        question = Message(id="the-question", room_id=name, sender_id=people[0], text=query, sent_at=self._clock.now())
        await self.lore.replies.reply(question, agent_id=_AGENT)
        return "\n".join(request.prompt for request in seen[before:])


def _shown(memory: Memory) -> dict[str, Any]:
    """Return the memory as a viewer is told it."""
    return asdict(replace(memory, sources=()))


def _message(event: Case) -> Message:
    return Message(
        id=event["id"],
        room_id=event["room"],
        sender_id=event["sender"],
        sender_name=event.get("sender_name", ""),
        role=Role(event["role"]),
        text=event["text"],
        reply_to=event.get("reply_to"),
        sent_at=_time(event["at"]),
    )


def _member(member: Case) -> Member:
    """Return a member; without times, one who is told now."""
    if "joined" not in member:
        return Member(member["person"])
    return Member(member["person"], _time(member["joined"]), member["left"] and _time(member["left"]))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
