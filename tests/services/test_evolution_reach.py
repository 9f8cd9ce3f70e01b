"""Evolutions: what reaches a model and a memory, and what must not, whatever happens meanwhile."""

from datetime import UTC, datetime, timedelta

import pytest

from engines import ENGINES
from evolution_rig import ENGLISH, active, block, both, create, elsewhere, keep, lines, mark, opened, remember
from roomlore import Lore, Message
from roomlore.core.memory.memory import MemoryKind, Source
from roomlore.services.evolution import Applying, PieceReader
from roomlore_testkit.doubles import FrozenClock
from roomlore_testkit.model_server import ModelServer

MONDAY = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = 86_400


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture
def clock(monkeypatch) -> FrozenClock:
    clock = FrozenClock(MONDAY)
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
    return clock


async def say(lore: Lore, text: str, *, message_id: str, at: datetime, sender: str = "anna", room: str = "g") -> None:
    await lore.messages.add(Message(id=message_id, room_id=room, sender_id=sender, text=text, sent_at=at))


@pytest.mark.parametrize(
    "sign", ["a" + "\u0301" * 9_000, "👩‍👩‍👧‍👦" * 900, "群" * 9_000], ids=["marks", "joined", "han"]
)
async def test_a_prompt_is_bounded_whatever_people_write(sign):
    async with ModelServer(default="[]") as server, opened(server) as lore:
        await lore.messages.add(
            [Message(id=f"c{n}", room_id="g", sender_id="u", text=f"{n} {sign}") for n in range(200)]
        )
        await remember(lore, [f"{n} {sign[:3900]}" for n in range(12)])
        await lore.memories.evolve("g")
        assert len(server.requests[0].prompt) < 65_000


@both
async def test_a_message_deleted_while_it_is_read_leaves_no_trace(said, url, monkeypatch):
    shown, there = PieceReader._shown, ["c1"]

    async def deleted(self, *given):
        found = await shown(self, *given)
        if there:
            await elsewhere(url, lambda other: other.messages.delete("g", there.pop()))
        return found

    monkeypatch.setattr(PieceReader, "_shown", deleted)
    async with ModelServer(default=lines(create(said.new[0], "c1"))) as server, opened(server, url=url) as lore:
        for n in (1, 2):
            await say(lore, said.says.format(n), message_id=f"c{n}", at=datetime.now(UTC))
        result = await lore.memories.evolve("g")
        assert [len(block(asked, "messages")) for asked in server.requests] == [2, 1]
        assert result.changes[0].memory.sources == (Source("g", "c2"),)


@both
async def test_earlier_messages_deleted_while_rules_read_leave_no_trace(said, url, monkeypatch):
    by_rules, there = Applying._by_rules, [f"c{n}" for n in range(4)]

    async def deleted(self, *given):
        found = await by_rules(self, *given)
        while there:
            await elsewhere(url, lambda other: other.messages.delete("g", there.pop()))
        return found

    monkeypatch.setattr(Applying, "_by_rules", deleted)
    async with opened(url=url, evolve_schedule="") as lore:
        for n in range(5):
            at = datetime.now(UTC) - timedelta(days=5 - n)
            await say(lore, said.known[1], message_id=f"c{n}", at=at, sender=f"u{n % 3}")
        async with lore.storage.writing(lore.tenant) as work:
            here = {"room_id": "g", "name": "evolution"}
            assert await work.progress.move_mark(**here, arrival=4, was=0, now=MONDAY)
        result = await lore.memories.evolve("g", mode="offline")
        (change,) = result.changes
        assert (change.memory.sources, there) == ((Source("g", "c4"),), [])


async def test_what_is_redacted_while_the_model_thinks_does_not_live_on(url):
    secret = "Anna collects purple teapots in Lisbon"
    asked_for = []

    async def answer(asked):
        asked_for.append(block(asked, "memories"))
        if len(asked_for) > 1:
            return "[]"
        await elsewhere(url, lambda other: other.privacy.forget("anna"))
        return lines(keep("m1") | {"statement": secret}, create(f"They smile since {secret}", "c1"))

    async with ModelServer(answer) as server, opened(server, url=url) as lore:
        await say(lore, "I collect purple teapots in Lisbon", message_id="a", at=datetime.now(UTC) - timedelta(days=3))
        await say(lore, "good evening", message_id="b", at=datetime.now(UTC), sender="ben")
        sources = [Source("g", "a")]
        await lore.memories.add("group:g", secret, kind=MemoryKind.GROUP, sources=sources)
        result = await lore.memories.evolve("g")
        record = await lore.memories.evolution(result.evolution_id)
        assert [len(offered) for offered in asked_for] == [1, 0]
        assert (record.raw_answer, await active(lore)) == ("[]", [])


FACTS = {"zh": ("我住在根特", "我对坚果过敏", "大家早"), "en": ("I live in Ghent", "Nuts make me ill", "Good morning")}


@pytest.mark.parametrize("language", FACTS)
async def test_what_a_person_says_in_another_room_after_a_first_evolution_is_read(language, clock):
    first, second, third = FACTS[language]
    async with ModelServer(default="[]") as server, opened(server, evolve_schedule="") as lore:
        await say(lore, "long ago", message_id="old", at=MONDAY - timedelta(days=3), room="b")
        await say(lore, first, message_id="a", at=MONDAY, room="a")
        await lore.memories.evolve("user:anna")
        clock.advance(DAY)
        await say(lore, second, message_id="b", at=clock.now(), room="b")
        clock.advance(3 * DAY)
        await say(lore, third, message_id="c", at=clock.now(), room="b")
        await lore.memories.evolve("user:anna")
        read = [[line.split(": ", 1)[1] for line in block(asked, "messages")] for asked in server.requests]
        assert read == [[first], [second, third]]
        assert (await lore.privacy.verify()).faults == ()
        await lore.privacy.forget("anna")
        assert await mark(lore, "", "facts:anna") is None


@pytest.mark.parametrize(("scope", "name"), [("g", "evolution"), ("user:anna", "facts:anna")])
async def test_what_could_not_be_used_after_a_second_try_counts_as_read(scope, name, clock):
    async with ModelServer(default="Sorry.") as server, opened(server, evolve_schedule="") as lore:
        await say(lore, ENGLISH.says.format(1), message_id="c", at=MONDAY)
        result = await lore.memories.evolve(scope)
        assert (result.failed, result.remaining, await mark(lore, name=name)) == (True, 0, 1)
        assert (await lore.memories.evolve(scope)).messages == 0
        assert len(server.requests) == 2
