"""kill -9 of a server, again and again, while everything goes on: messages come alone and in batches, are edited and
deleted, sessions are summarised, facts are written, a group evolves, links of a long chain are corrected, and people of
many rooms are forgotten. What was acknowledged is there, what was forgotten is not, and `verify` finds nothing.

With ROOMLORE_FULL_LOAD=1 (see `make soak`) the server is killed 300 times, the chain has 10,000 messages, and each of
three people has 10,000 rooms.
"""

import asyncio
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, cycle, pairwise

import pytest
from clients import Clients, fill
from served import Servers

import roomlore
from relink_rig import ROOM
from roomlore import Message

FULL = bool(os.environ.get("ROOMLORE_FULL_LOAD"))
KILLS, CHAIN, PEOPLE, ROOMS = (300, 10_000, 3, 10_000) if FULL else (4, 600, 1, 150)
LONG = 7_200 if FULL else 600
OPENING_SECONDS, WORKING_SECONDS = 0.8, 2.5
SHARED, SECRET = "shared", "the key is under a pot"
CORRECTED = "m5"


def person(number: int) -> str:
    return f"maria-{number}-7f3a9c"


def secrets(number: int, rooms: int) -> list[Message]:
    places = [f"den-{number}-{place}" for place in range(rooms)]
    return [
        Message(id=f"{room}/secret-{number}", room_id=room, sender_id=person(number), text=f"{room}: {SECRET}")
        for room in (SHARED, *places)
    ]


@dataclass
class Everybody(Clients):
    """`over`: is set when they are to stop, each once its last request is answered. `said`: by room, the texts that
    are stored, by id. `summaries`, `facts`: the acknowledged ones."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    said: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    summaries: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    answered: str | None = "m4"
    corrections: int = 0
    forgotten: int = 0
    evolutions: int = 0

    def did_all(self) -> bool:
        """Return True if work of each kind was acknowledged; people are forgotten to the end anyway."""
        done = (self.corrections, self.evolutions, self.summaries, self.facts)
        return all((*done, self.took["edit"], self.took["delete"], self.took["context"]))

    def numbers(self) -> Iterator[int]:
        for number in count():
            if self.over.is_set():
                return
            yield number

    async def add(self, room: str, *messages: dict[str, object]) -> None:
        messages = tuple({"room_id": room, "sender_id": "ben"} | one for one in messages)
        await self.ask("add", "POST", "/messages", json={"messages": messages})
        self.said[room] |= {str(one["id"]): str(one["text"]) for one in messages}

    async def write(self, room: str) -> None:
        for number in self.numbers():
            await self.add(room, {"id": f"{room}/{number}", "text": f"Tea {number}, 茶"})
            await asyncio.sleep(0.02)

    async def write_batches(self) -> None:
        for number in self.numbers():
            batch = [{"id": f"hall/{number}.{place}", "text": f"Line {place} of {number}"} for place in range(20)]
            for before, after in pairwise(batch):
                after["reply_to"] = before["id"]
            await self.add("hall", *batch)
            await asyncio.sleep(0.05)

    async def edit(self) -> None:
        for number in self.numbers():
            name = f"desk-{number}"
            await self.add("desk", {"id": name, "text": f"Draft {number}"})
            if number % 4 == 3:
                await self.ask("delete", "DELETE", f"/messages/desk/{name}")
                del self.said["desk"][name]
            else:
                text = f"Final {number}"
                await self.ask("edit", "PATCH", f"/messages/desk/{name}", json={"text": text})
                self.said["desk"][name] = text
            await asyncio.sleep(0.02)

    async def talk(self) -> None:
        for number in self.numbers():
            turn = {"user_id": "cora", "agent_code": "bot", "turn_id": f"turn-{number}"}
            said = {"user_query": f"Question {number}?", "agent_response": f"Answer {number}."}
            await self.ask("turn", "POST", "/sessions/talk/turns", json=turn | said)
            self.said["talk"] |= {f"turn-{number}-query": said["user_query"]}
            self.said["talk"] |= {f"turn-{number}-answer": said["agent_response"]}
            context = (await self.ask("session", "POST", "/sessions/talk/context", json={})).json()
            if number % 5 == 4:
                summary = f"Summary up to {number}"
                made = await self.ask(
                    "checkpoint",
                    "POST",
                    "/sessions/talk/checkpoint",
                    refused=[409],
                    json={"summary": summary, "checkpoint_token": context["checkpoint_token"]},
                )
                if made.status_code == 200:
                    self.summaries.append(summary)
            await asyncio.sleep(0.02)

    async def write_facts(self) -> None:
        for number in self.numbers():
            fact = f"Cora keeps the {number}. {random.Random(number).randbytes(6).hex()}"
            await self.ask("fact", "POST", "/facts", json={"scope": "user:cora", "statement": fact})
            self.facts.append(fact)
            await asyncio.sleep(0.1)

    async def evolve(self) -> None:
        for number in self.numbers():
            lines = (f"Decided: club evening {number} is on May {number % 28 + 1}", "ok", f"I bring {number} cakes")
            await self.add("club", *({"id": f"club/{number}.{n}", "text": line} for n, line in enumerate(lines)))
            made = await self.ask("evolve", "POST", "/memory/evolve/club?mode=offline&days=30&wait=2", refused=[409])
            self.evolutions += made.is_success
            await asyncio.sleep(0.2)

    async def correct(self) -> None:
        path = f"/messages/{ROOM}/{CORRECTED}/link"
        for answers in cycle((None, "m3", "m1")):
            if self.over.is_set():
                return
            await self.ask("correct", "PUT", path, json={"answers": answers})
            self.answered = answers
            self.corrections += 1
            await self.settled("threads")

    async def forget(self) -> None:
        """One person after the other; of those with many rooms, none is left when the work of the others ends."""
        for number in count():
            if number >= PEOPLE:
                if self.over.is_set():
                    return
                await self.ask("add", "POST", "/messages", json={"messages": as_json(secrets(number, 20))})
            person_of = {"user_id": person(number), "confirm": True}
            while (
                await self.ask("forget", "POST", "/privacy/forget", refused=[503], json=person_of)
            ).status_code != 200:
                await self.settled("forgetting")
            self.forgotten += 1

    async def settled(self, kind: str) -> None:
        """Come back once no job of this kind waits or runs. A job that was killed fifty times fails, and waits for
        somebody who looks what killed it."""
        while True:
            jobs = (await self.ask("jobs", "GET", f"/jobs?kind={kind}")).json()["jobs"]
            for job in jobs:
                if job["status"] == "failed":
                    await self.ask("retry", "POST", f"/jobs/{job['job_id']}/retry", refused=[409])
            if not {job["status"] for job in jobs} & {"waiting", "running", "failed"}:
                return
            await asyncio.sleep(0.1)

    async def read(self) -> None:
        for number in self.numbers():
            await self.ask("live", "GET", "/health/live")
            room = ("tea-0", "hall", ROOM)[number % 3]
            await self.ask("context", "POST", "/context", json={"room_id": room}, refused=[404])
            await self.ask("search", "GET", f"/messages/search?q=tea+line&room_id={room}", refused=[404])
            await asyncio.sleep(0.1)


def as_json(messages: list[Message]) -> list[dict[str, str]]:
    return [{"id": m.id, "room_id": m.room_id, "sender_id": m.sender_id, "text": m.text} for m in messages]


async def kill_beside(everybody: Everybody, servers: Servers, chance: random.Random) -> tuple[int, int]:
    """Kill the server until everything was done beside it. Return how often, and how often as it opened the
    database. After `KILLS` of them each server is left alone for longer than the one before, so that one gets
    everything done however slow the machine is."""
    kills = opening = 0
    async with asyncio.TaskGroup() as group:
        work = (
            everybody.write("tea-0"),
            everybody.write(SHARED),
            everybody.write_batches(),
            everybody.edit(),
            everybody.talk(),
            everybody.write_facts(),
            everybody.evolve(),
            everybody.correct(),
            everybody.forget(),
            everybody.read(),
        )
        for number, one in enumerate(work):
            group.create_task(one, name=f"{number} {one.__name__}")
        while kills < KILLS or not everybody.did_all():
            kills += 1
            if chance.random() < 0.2:
                await servers.begin()
                await asyncio.sleep(chance.uniform(0, OPENING_SECONDS))
                opening += 1
            else:
                await everybody.start()
                await asyncio.sleep(chance.uniform(0.1, WORKING_SECONDS) * max(1, kills / KILLS))
            await everybody.kill()
        await everybody.start()
        everybody.over.set()
    return kills, opening


@pytest.mark.timeout(LONG)
async def test_nothing_is_lost(url, servers):
    await fill(url, CHAIN, [one for number in range(PEOPLE) for one in secrets(number, ROOMS)])
    everybody, chance = Everybody(servers), random.Random(20261129)
    async with everybody.within(LONG - 60):
        kills, opening = await kill_beside(everybody, servers, chance)
        for kind in ("threads", "forgetting", "evolution"):
            await everybody.settled(kind)
    failed = (await everybody.ask("jobs", "GET", "/jobs?status=failed")).json()["jobs"]
    await everybody.kill()
    sys.stdout.write(
        f"{kills} kills, {opening} of them of a server that opened the database; acknowledged: "
        f"{sum(map(len, everybody.said.values())):,} messages, {len(everybody.took['edit'])} edits, "
        f"{len(everybody.took['delete'])} deletions, {len(everybody.summaries)} summaries, "
        f"{len(everybody.facts)} facts, "
        f"{everybody.evolutions} evolutions, {everybody.corrections} corrections of a chain of {CHAIN:,}, "
        f"{everybody.forgotten} people forgotten, "
        f"{len(everybody.took['retry'])} failed jobs run again\n"
    )
    assert failed == []
    async with roomlore.open(url, background=False) as lore:
        await check(lore, everybody)


async def check(lore: roomlore.Lore, everybody: Everybody) -> None:
    report = await lore.privacy.verify()
    assert (report.sound, report.faults) == (True, ())
    rooms = {room.room_id: room.messages for room in await lore.rooms.page(limit=500)}
    assert rooms.keys() == {ROOM, *everybody.said}
    for room, texts in everybody.said.items():
        stored = [(m.id, m.text) async for m in lore.messages.export(room)]
        assert sorted(stored) == sorted(texts.items()), room
    assert rooms[ROOM] == CHAIN
    chain = await lore.messages.get(ROOM, CORRECTED)
    assert chain.link.parent == (None if everybody.answered is None else int(everybody.answered[1:]))
    async with lore.storage.reading(lore.tenant) as work:
        entries = await work.messages.tail(room_id=ROOM, limit=CHAIN)
    threads = {entry.link.thread for entry in entries if entry.message.arrival >= chain.message.arrival}
    assert threads == {5 if everybody.answered is None else 1}
    made = [one.summary for one in await lore.sessions.checkpoints("talk", limit=1_000)]
    assert set(everybody.summaries) <= set(made)
    stored: list[str] = []
    while page := await lore.memories.page("user:cora", offset=len(stored), limit=100):
        stored += [fact.statement for fact in page]
    assert sorted(everybody.facts) == sorted(stored)
    for number in range(everybody.forgotten):
        assert not (await lore.privacy.forget(person(number))).found
