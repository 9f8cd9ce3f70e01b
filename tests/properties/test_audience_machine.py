"""Non-interference: two stores that differ in what the team cannot see give the team the same answers, byte for byte.

Both get what the team sees. One of them alone also gets what is said, remembered, shared and evolved in other rooms.
The model is a function of its prompt, so that a prompt that differs gives another answer.
"""

import asyncio
import hashlib
import os
import re
from contextlib import AsyncExitStack
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from evolution_rig import create, delete, keep, lines, opened, update
from roomlore import Member, Message, Source
from roomlore.testing import FrozenClock
from roomlore.testing.model_server import ModelServer

VISIBLE, HIDDEN = ("team", "square"), ("dm", "board", "old")
SCOPES = ("user:ann", "user:bo", "group:team", "group:board", "agent:bot")
TEXTS = (
    "a job in the city 城里的工作",
    "an allergy to nuts 坚果过敏",
    "the deploy of node seven 部署",
    "moving house in May 五月搬家",
)
ASKED = [{"role": "user", "content": "Which job, which allergy, which deploy? 工作、过敏、部署？"}]

texts = st.sampled_from(TEXTS)
people = st.sampled_from(("ann", "bo"))
scopes = st.sampled_from(SCOPES)


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
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = FrozenClock()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("roomlore.wiring.resources.SystemClock", lambda: self.clock)
        self.stack = AsyncExitStack()
        self.number = 0
        self.lores = self.runner.run(self._open())

    async def _open(self) -> list[Any]:
        server = await self.stack.enter_async_context(ModelServer(thought))
        lores = [await self.stack.enter_async_context(opened(server)) for _ in range(2)]
        at = self.clock.now() - timedelta(days=1)
        for lore in lores:
            await lore.rooms.set_members("team", [Member("ann", at), Member("bo", at)])
            await lore.rooms.set_kind("square", "public")
            await lore.rooms.set_kind("dm", "direct")
            await lore.rooms.set_members("board", [Member("ann", at), Member("eve", at)])
        return lores

    def teardown(self) -> None:
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

    @rule(scope=scopes, text=texts)
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

    @invariant()
    def the_team_cannot_tell(self) -> None:
        one, other = (self.runner.run(self._answers(lore)) for lore in self.lores)
        assert one == other

    async def _answers(self, lore: Any) -> list[Any]:
        found: list[Any] = []
        for viewer in ("room:team", "user:bo", "room:square"):
            recalled = await lore.recall.build(SCOPES, ASKED, viewer=viewer, conversation_id="talk", max_tokens=120)
            shown = [(fact.memory.statement, fact.score, fact.similarity) for fact in recalled.facts]
            found.append((recalled.text, recalled.tokens, recalled.considered, recalled.kept, recalled.degraded, shown))
            for scope in SCOPES:
                answer = await lore.memories.search(scope, "job and 部署", threshold=0, limit=50, viewer=viewer)
                found.append([(hit.memory.statement, hit.score, dict(hit.signals)) for hit in answer.hits])
                page = await lore.memories.page(scope, viewer=viewer, status="all")
                found.append([_without_ids(memory) for memory in page])
                found.append(await lore.memories.count(scope, viewer=viewer))
        return found


def _without_ids(memory: Any) -> dict[str, Any]:
    """The memory without the ids that are drawn anew in each store."""
    left_out = {"memory_id", "lineage_id", "parents", "evolution_id"}
    return {name: value for name, value in asdict(memory).items() if name not in left_out}


def test_the_team_sees_the_same_whatever_happens_elsewhere():
    steps = int(os.environ.get("ROOMLORE_AUDIENCE_STEPS", "12"))
    examples = int(os.environ.get("ROOMLORE_AUDIENCE_EXAMPLES", "4"))
    run_state_machine_as_test(
        Rooms,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
