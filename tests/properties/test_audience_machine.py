"""Non-interference: two stores that differ in what the team cannot see give the team the same answers, byte for byte.

Both get what the team sees. One of them alone also gets what is said, edited, forgotten, remembered, shared and evolved
in other rooms. The model is a function of its prompt, so that a prompt that differs gives another answer. `make ci`
takes 1,000 steps, others in each run. Answers take most of the time, so they are compared after each 25th step and at
the end of a run. `make soak` takes 10,000 steps and compares after each tenth.
"""

import asyncio
import hashlib
import os
import re
from contextlib import AsyncExitStack
from dataclasses import fields
from datetime import timedelta
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from evolution_rig import create, delete, keep, lines, opened, update
from roomlore import Member, Memory, Message, NotFound, Source
from roomlore.core.evolution import audience
from roomlore.services.evolution import reading
from roomlore.services.memories import writer
from roomlore_server.http import create_app
from roomlore_server.mcp.tools import TOOLS, Visitor
from roomlore_testkit import FrozenClock
from roomlore_testkit.model_server import ModelServer

_SURFACES_EVERY = 20
"""HTTP and MCP are asked at about each twentieth comparison, as they take four times as long. Which ones follows from
the steps taken, so that Hypothesis can repeat what it found."""
_COMPARED_EVERY, _PARTS, _RUNS = (10, 8, 25) if os.environ.get("ROOMLORE_AUDIENCE_SOAK") else (25, 2, 10)
_STEPS = 50
VISIBLE, HIDDEN = ("team", "square"), ("dm", "board", "old")
SCOPES = ("user:ann", "user:bo", "group:team", "group:board", "agent:bot")
TEXTS = (
    "a job in the city 城里的工作",
    "an allergy to nuts 坚果过敏",
    "the deploy of node seven 部署",
    "moving house in May 五月搬家",
)
ASKED = [{"role": "user", "content": "Which job, which allergy, which deploy? 工作、过敏、部署？"}]

_COMPARED_FIELDS = {field.name for field in fields(Memory)} - {"memory_id", "lineage_id", "parents", "evolution_id"}

texts = st.sampled_from(TEXTS)
people = st.sampled_from(("ann", "bo"))
scopes = st.sampled_from(SCOPES)
lasting = st.sampled_from([scope for scope in SCOPES if scope != "group:board"])
"""If the only person who spoke in a room is forgotten, what callers noted of the room without a message goes too."""


def thought(asked: Any) -> str:
    """An answer that depends on every byte of the prompt."""
    memories = re.findall(r"\bm\d+\b", asked.prompt.rsplit("<memories>", 1)[-1].split("</memories>")[0])
    drawn = int.from_bytes(hashlib.sha256(asked.prompt.encode()).digest()[:4], "big")
    text = TEXTS[drawn // 7 % len(TEXTS)] + f" {drawn % 1000}"
    if not memories or drawn % 7 < 2:
        return lines(create(text, "c1"))
    handle = memories[drawn % len(memories)]
    if drawn % 7 == 2:
        return lines(delete(handle, "it ended"))
    return lines(update(handle, text, "c1")) if drawn % 7 < 6 else lines(keep(handle))


class Rooms(RuleBasedStateMachine):
    compared_every = _COMPARED_EVERY

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = FrozenClock()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("roomlore.wiring.resources.SystemClock", lambda: self.clock)
        self.stack = AsyncExitStack()
        self.number = 0
        self.steps = 0
        self.asks_surfaces = False
        self.apps: dict[int, Any] = {}
        self.lores = self.runner.run(self._open())

    async def _open(self) -> list[Any]:
        server = await self.stack.enter_async_context(ModelServer(thought))
        lores = [await self.stack.enter_async_context(opened(server)) for _ in range(2)]
        self.begun = at = self.clock.now() - timedelta(days=1)
        for lore in lores:
            await lore.rooms.set_members("team", [Member("ann", at), Member("bo", at)])
            await lore.rooms.set_kind("square", "public")
            await lore.rooms.set_kind("dm", "direct")
            await lore.rooms.set_members("board", [Member("ann", at), Member("eve", at)])
        return lores

    def teardown(self) -> None:
        """What has happened since the answers were last compared is compared too."""
        try:
            if (self.steps - 1) % self.compared_every:
                self.compare()
        finally:
            self.close()

    def close(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()
        self.patch.undo()

    def both(self, room: str) -> list[Any]:
        """The stores that get what happens in a room."""
        return self.lores if room in VISIBLE else self.lores[1:]

    def step(self) -> str:
        self.number += 1
        self.clock.advance(60)
        return f"n{self.number}"

    @rule(room=st.sampled_from((*VISIBLE, *HIDDEN)), who=people, text=texts)
    def say(self, room: str, who: str, text: str) -> None:
        who = who if room in VISIBLE else "ann"
        said = Message(id=self.step(), room_id=room, sender_id=who, text=text, sent_at=self.clock.now())
        for lore in self.both(room):
            self.runner.run(lore.messages.add(said))

    @rule(room=st.sampled_from((*VISIBLE, *HIDDEN)), scope=scopes, text=texts, shared=st.booleans())
    def remember(self, room: str, scope: str, text: str, shared: bool) -> None:
        name = self.step()
        said = Message(id=name, room_id=room, sender_id="ann", text=text, sent_at=self.clock.now())
        for lore in self.both(room):
            self.runner.run(lore.messages.add(said))
            source = [Source(room, name)]
            self.runner.run(lore.memories.add(scope, f"{text} {name}", sources=source, memory_id=name))
            if shared:
                target = "everyone" if room in VISIBLE else "room:board"
                self.runner.run(lore.memories.share(name, target))

    @rule(room=st.sampled_from(VISIBLE), text=texts, other=texts)
    def remember_and_change_alone(self, room: str, text: str, other: str) -> None:
        """Evolve Ann's memories from what she says alone, with a memory that others know."""
        self.remember(room, "user:ann", text, False)
        self.say("dm", "ann", other)
        self.evolve("user:ann")

    @rule(room=st.sampled_from(("dm", "board")), scope=lasting, text=texts, other=texts)
    def change_elsewhere(self, room: str, scope: str, text: str, other: str) -> None:
        """A caller's update rests on what the team did not hear; the same words are added where it hears them."""
        self.remember("team", scope, text, False)
        known, name = f"n{self.number}", self.step()
        lore, said = (
            self.lores[1],
            Message(id=name, room_id=room, sender_id="ann", text=other, sent_at=self.clock.now()),
        )
        self.runner.run(lore.messages.add(said))
        if self.runner.run(lore.memories.get(known)).status == "active":
            both = [Source("team", known), Source(room, name)]
            changed = f"{other} {name}"
            self.runner.run(lore.memories.update(known, statement=changed, sources=both, expected=known))
            self.runner.run(self._same_words(scope, changed))

    async def _same_words(self, scope: str, statement: str) -> None:
        name = self.step()
        for lore in self.lores:
            await lore.memories.add(scope, statement, memory_id=name)

    @rule(room=st.sampled_from(HIDDEN), who=st.sampled_from(("cai", "eve")), text=texts)
    def edit_and_forget(self, room: str, who: str, text: str) -> None:
        lore, name = self.lores[1], self.step()
        said = Message(id=name, room_id=room, sender_id=who, text=text, sent_at=self.clock.now())
        self.runner.run(lore.messages.add(said))
        self.runner.run(lore.messages.edit(room, name, text=f"{text} {name}"))
        if who == "cai":
            self.runner.run(lore.privacy.forget("cai"))

    @rule(who=st.sampled_from(("cy", "dan")), joins=st.booleans())
    def come_and_go(self, who: str, joins: bool) -> None:
        """Bo stays: if Ann were alone in the team, it could know what she says to the bot alone."""
        self.step()
        for lore in self.lores:
            rooms = lore.rooms
            self.runner.run(rooms.add_members("team", [who]) if joins else rooms.remove_members("team", [who]))

    @rule(scope=lasting, text=texts)
    def add(self, scope: str, text: str) -> None:
        name = self.step()
        for lore in self.lores:
            self.runner.run(lore.memories.add(scope, f"{text} {name}", memory_id=name))

    @rule(room=st.sampled_from(HIDDEN), who=st.sampled_from(("eve", "cai")), joins=st.booleans())
    def move(self, room: str, who: str, joins: bool) -> None:
        self.step()
        rooms = self.lores[1].rooms
        self.runner.run(rooms.add_members(room, [who]) if joins else rooms.remove_members(room, [who]))

    @rule(scope=st.sampled_from(("user:ann", "user:bo", "group:team")))
    def evolve(self, scope: str) -> None:
        self.step()
        for lore in self.lores:
            done = self.runner.run(lore.memories.evolve(scope, mode="llm"))
            while done.remaining and done.messages and not done.failed:
                done = self.runner.run(lore.memories.evolve(scope, mode="llm"))

    @rule()
    def evolve_hidden(self) -> None:
        self.step()
        self.runner.run(self.lores[1].memories.evolve("board", mode="llm"))

    @rule(kind=st.sampled_from(("public", "private", None)))
    def open_or_close_the_square(self, kind: str | None) -> None:
        self.step()
        for lore in self.lores:
            self.runner.run(lore.rooms.set_kind("square", kind))

    @rule(room=st.sampled_from(("board", "old")), kind=st.sampled_from(("direct", "private", None)))
    def change_the_kind_elsewhere(self, room: str, kind: str | None) -> None:
        self.step()
        self.runner.run(self.lores[1].rooms.set_kind(room, kind))

    @invariant()
    def the_team_cannot_tell(self) -> None:
        """This is called before the first step too, when there is nothing to compare."""
        if self.steps and self.steps % self.compared_every == 0:
            self.compare()
        self.steps += 1

    def compare(self) -> None:
        self.asks_surfaces = self.number % _SURFACES_EVERY == 0
        one, other = (self.runner.run(self._answers(lore)) for lore in self.lores)
        assert one == other

    async def _answers(self, lore: Any) -> list[Any]:
        found: list[Any] = []
        for viewer in ("room:team", "user:bo", "user:cy", "room:square"):
            recalled = await lore.recall.build(SCOPES, ASKED, viewer=viewer, conversation_id="talk", max_tokens=120)
            shown = [(fact.memory.statement, fact.score, fact.similarity) for fact in recalled.facts]
            found.append((recalled.text, recalled.tokens, recalled.considered, recalled.kept, recalled.degraded, shown))
            for scope in SCOPES:
                answer = await lore.memories.search(scope, "job and 部署", threshold=0, limit=50, viewer=viewer)
                found.append([(hit.memory.statement, hit.score, dict(hit.signals)) for hit in answer.hits])
                page = await lore.memories.page(scope, viewer=viewer, status="all")
                found.append([_without_ids(memory) for memory in page])
                found.append(await lore.memories.count(scope, viewer=viewer))
            said = await lore.messages.search(query="job 部署 peanuts", viewer=viewer, limit=50)
            found.append([(hit.message.id, hit.message.text, hit.score, dict(hit.signals)) for hit in said.hits])
            found.append(said.degraded)
            found += [await self._of_room(lore, room, viewer) for room in (*VISIBLE, *HIDDEN)]
            if self.asks_surfaces:
                found += await self._over_http(lore, viewer) + await self._over_mcp(lore, viewer)
        return [*found, await self._prompts(lore)]

    async def _of_room(self, lore: Any, room: str, viewer: str) -> list[Any]:
        """The messages, the search and the digest of one room."""
        try:
            page = await lore.messages.page(room, viewer=viewer, limit=200)
            said = await lore.messages.search(room, "job 部署", viewer=viewer)
            mode = "auto" if self.asks_surfaces else "offline"
            return [page, said.hits, await lore.digest(room, viewer=viewer, since=self.begun, mode=mode)]
        except NotFound as error:
            return [str(error)]

    async def _over_http(self, lore: Any, viewer: str) -> list[Any]:
        """Statuses and bodies, errors too. Ids and times that differ in each store are left out."""
        if id(lore) not in self.apps:
            self.apps[id(lore)] = create_app(lore)
        transport, found = httpx.ASGITransport(self.apps[id(lore)], client=("127.0.0.1", 1)), []
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", params={"viewer": viewer}
        ) as web:
            for scope in SCOPES:
                page = (await web.get(f"/memory/list/{scope}", params={"limit": 200})).json()
                statements = [(one["statement"], one["version"], one["evidence"]) for one in page["memories"]]
                found.append((page["total"], statements))
            for room in (*VISIBLE, *HIDDEN, ""):
                answer = await web.get("/messages/search", params={"room_id": room, "q": "job 部署"})
                texts = [(hit["message"]["text"], hit["score"]) for hit in answer.json().get("hits", ())]
                found.append((answer.status_code, texts))
            for known in range(1, self.number + 1, 1 + self.number // 5):
                answer = await web.get(f"/facts/n{known}")
                found.append((answer.status_code, answer.json().get("detail"), answer.json().get("statement")))
        return found

    async def _over_mcp(self, lore: Any, viewer: str) -> list[Any]:
        visitor, found = Visitor(lore=lore, viewer=viewer), []
        tools = {tool.name: tool for tool in TOOLS}
        messages = tools["search_messages"]
        said = (await messages.run(visitor, messages.takes.model_validate({"query": "job", "limit": 20}))).to_json()
        found.append([(one["message_id"], one["score"]) for one in said["messages"]])
        for scope in SCOPES:
            for name, given in (("search_memories", {"query": "job", "threshold": 0}), ("memory_prompt", {})):
                tool = tools[name]
                whose = {"scopes": [scope]} if name == "memory_prompt" else {"scope": scope}
                answer = (await tool.run(visitor, tool.takes.model_validate({**given, **whose}))).to_json()
                shown = [(one["statement"], one["score"]) for one in answer.get("memories", ())]
                found.append((shown, answer.get("text"), answer.get("considered"), answer.get("hint")))
        return found

    async def _prompts(self, lore: Any) -> list[str]:
        """Return the memories shown to a reply in each visible room."""
        known = next(one for one in lore._resources.recalls if one.name == "known")
        found = []
        for room in VISIBLE:
            try:
                said = await lore.messages.page(room)
            except NotFound:
                said = []
            found.append(
                await known.recall(tenant=lore.tenant, room_id=room, agent_id="bot", messages=said[-9:], max_tokens=300)
            )
        return found


def _without_ids(memory: Any) -> dict[str, Any]:
    """The memory without the ids that are drawn anew in each store."""
    return {name: getattr(memory, name) for name in _COMPARED_FIELDS}


class RoomsComparedAlways(Rooms):
    compared_every = 1


def played(
    steps: int, examples: int, machine: type[RuleBasedStateMachine] = Rooms, *, derandomize: bool = False
) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("part", range(_PARTS))
def test_the_team_sees_the_same_whatever_happens_elsewhere(part):
    played(_STEPS, _RUNS)


def test_the_team_sees_the_same_after_each_step():
    played(12, 4, RoomsComparedAlways)


@pytest.mark.parametrize("guard", ["offered", "replaced", "added"])
def test_the_machine_notices_a_guard_that_is_gone(guard, monkeypatch):
    """Evolutions are offered only what their room may know, and no memory is replaced for, or kept from, those who may
    not know why."""
    if guard == "offered":
        monkeypatch.setattr(reading, "shown", lambda memories, view: (list(memories), frozenset()))
    elif guard == "replaced":
        monkeypatch.setattr(audience, "may_replace", lambda *_: True)
    else:
        monkeypatch.setattr(writer, "may_replace", lambda *_: True)
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        played(12, 40, derandomize=True)
