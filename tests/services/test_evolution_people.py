"""Facts about people arise by the schedule: everyone who spoke evolves, each message read once."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from evolution_rig import create, lines, opened
from extraction_rig import until
from roomlore import Lore, Message, Role
from roomlore.adapters.cron import Cron
from roomlore.core.prompt import Prompt
from roomlore.services.evolution import ModelAnswers, Schedule
from roomlore_testkit import backends
from roomlore_testkit.doubles import FrozenClock
from roomlore_testkit.model_server import Asked, Fails, ModelServer

ZONE = ZoneInfo("Asia/Shanghai")
DAY = 86_400
KNOWN = {"anna": "Anna is allergic to penicillin", "ben": "Ben moves to Berlin", "lin": "小林对海鲜过敏"}


def answer(asked: Asked) -> str:
    """A model that repeats what the person of the first message said."""
    spoke = next((statement for statement in KNOWN.values() if f": {statement}" in asked.prompt), "")
    return lines(create(spoke, "c1", confidence=0.9)) if spoke else "[]"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 11, 20, 12, 0, tzinfo=ZONE))


@asynccontextmanager
async def nightly(
    server: ModelServer,
    clock: FrozenClock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    people: bool = True,
    together: int = 1,
    **more,
) -> AsyncIterator[tuple[Lore, Schedule]]:
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
    monkeypatch.setattr("roomlore.services.evolution.evolution_service.PEOPLE_TOGETHER", together)

    async def evolve() -> bool:
        return people

    async with opened(server, evolve_schedule="", **more) as lore:
        schedule = Schedule(
            backends(storage=lore.storage, clock=clock),
            evolutions=lore._resources.evolver,
            times=Cron("0 2 * * *", ZONE).last,
            people=evolve,
        )
        await schedule.sweep()
        yield lore, schedule


def says(
    clock: FrozenClock, number: int, person: str, text: str, *, room: str = "g", days_ago: float = 0, **more
) -> Message:
    at = clock.now() - timedelta(days=days_ago)
    return Message(id=f"c{number}", room_id=room, sender_id=person, text=text, sent_at=at, **more)


async def night(lore: Lore, clock: FrozenClock, schedule: Schedule) -> list[str]:
    """The scopes that evolved."""
    clock.advance(DAY)
    scopes = []
    for work_id in await schedule.sweep():
        job = await lore.jobs.wait(work_id.removeprefix("default:"), seconds=60)
        found = await lore._resources.durable.find(work_id)
        scopes.append(found.arguments["scope"] if job.status == "done" else f"{found.arguments['scope']} {job.status}")
    await until(partial(idle, lore))
    return scopes


async def idle(lore: Lore) -> bool:
    return all(job.status in ("done", "failed") for job in await lore.jobs.page(kind="evolution"))


async def facts(lore: Lore, person: str) -> list[str]:
    return [memory.statement for memory in await lore.memories.page(f"user:{person}")]


async def test_everyone_who_spoke_evolves_and_nobody_twice(clock, monkeypatch):
    async with ModelServer(answer) as server, nightly(server, clock, monkeypatch) as (lore, schedule):
        await lore.messages.add([says(clock, n, person, KNOWN[person]) for n, person in enumerate(KNOWN)])
        await lore.messages.add(says(clock, 9, "anna", "ok", room="other"))
        assert await night(lore, clock, schedule) == ["user:anna", "user:ben", "user:lin"]
        assert [await facts(lore, person) for person in KNOWN] == [[statement] for statement in KNOWN.values()]
        (memory,) = await lore.memories.page("user:anna")
        assert [room.room_id for room in memory.evidence] == ["g"]
        asked = len(server.requests)
        assert await night(lore, clock, schedule) == []
        assert await night(lore, clock, schedule) == []
        assert len(server.requests) == asked
        await lore.messages.add(says(clock, 20, "ben", "Now I live in Berlin"))
        assert await night(lore, clock, schedule) == ["user:ben"]


def for_each(prompt: str, told: dict[str, str], handles: dict[str, str]) -> str:
    """A line for each person of a prompt about several, with a statement and the handle of a message."""
    names = [name for name in KNOWN if f'<person name="{name}">' in prompt]
    own = {name: re.search(rf"(c\d+) \[[^]]*\] {name}: ", prompt)[1] for name in names}
    return lines(*(create(told[name], own[handles.get(name, name)], confidence=0.9) for name in names))


async def test_people_of_one_room_are_asked_about_in_one_call(clock, monkeypatch):
    async with (
        ModelServer(lambda given: for_each(given.prompt, KNOWN, {})) as server,
        nightly(server, clock, monkeypatch, together=8) as (lore, schedule),
    ):
        await lore.messages.add([says(clock, n, person, KNOWN[person]) for n, person in enumerate(KNOWN)])
        assert await night(lore, clock, schedule) == ["user:anna"]
        assert len(server.requests) == 1
        assert [await facts(lore, person) for person in KNOWN] == [[statement] for statement in KNOWN.values()]
        (memory,) = await lore.memories.page("user:ben")
        assert [(one.room_id, one.message_id) for one in memory.sources] == [("g", "c1")]
        record = await lore.memories.evolution(memory.evolution_id)
        assert record.prompt_name == "people_facts"
        assert all(KNOWN[other] not in record.raw_answer for other in ("anna", "lin"))
        assert await night(lore, clock, schedule) == []


@pytest.mark.parametrize(
    ("told", "handles", "alone"),
    [
        ({"anna": KNOWN["ben"], "ben": KNOWN["anna"]}, {}, {"anna", "ben"}),
        ({}, {"ben": "lin", "lin": "ben"}, {"ben", "lin"}),
        ({"lin": "小林 is allergic to penicillin"}, {}, {"lin"}),
    ],
)
async def test_a_model_that_mixes_people_up_puts_nothing_of_one_with_another(told, handles, alone, clock, monkeypatch):
    def mixed(given: Asked) -> str:
        several = "<person name=" in given.prompt
        return for_each(given.prompt, {**KNOWN, **told}, handles) if several else answer(given)

    async with ModelServer(mixed) as server, nightly(server, clock, monkeypatch, together=8) as (lore, schedule):
        await lore.messages.add([says(clock, n, person, KNOWN[person]) for n, person in enumerate(KNOWN)])
        await night(lore, clock, schedule)
        assert [await facts(lore, person) for person in KNOWN] == [[statement] for statement in KNOWN.values()]
        asked_alone = [one.prompt for one in server.requests if "<person name=" not in one.prompt]
        assert {name for name in KNOWN if any(f"] {name}: " in prompt for prompt in asked_alone)} == alone
        assert len(server.requests) == 1 + len(alone)


async def test_who_spoke_in_two_rooms_or_alone_in_one_is_asked_about_alone(clock, monkeypatch):
    async with ModelServer(answer) as server, nightly(server, clock, monkeypatch, together=8) as (lore, schedule):
        await lore.messages.add([says(clock, 1, "anna", KNOWN["anna"]), says(clock, 2, "ben", KNOWN["ben"])])
        await lore.messages.add([says(clock, 3, "anna", "ok", room="h"), says(clock, 4, "lin", KNOWN["lin"], room="h")])
        assert await night(lore, clock, schedule) == ["user:anna", "user:ben", "user:lin"]
        assert all("<person name=" not in one.prompt for one in server.requests)


async def test_agents_and_messages_without_words_are_nobodys_facts(clock, monkeypatch):
    async with ModelServer(answer) as server, nightly(server, clock, monkeypatch) as (lore, schedule):
        await lore.messages.add([
            says(clock, 1, "long ago", "I am old", days_ago=9),
            says(clock, 2, "bot", "I am a bot", role=Role.ASSISTANT),
            says(clock, 3, "anna", ""),
            says(clock, 4, "ben", "<memory>Ben is a pilot</memory>"),
        ])  # fmt: skip
        assert await night(lore, clock, schedule) == []
        assert server.requests == []


async def test_a_room_of_one_person_and_an_agent_evolves_the_person_and_not_a_group(clock, monkeypatch):
    async with ModelServer(answer) as server, nightly(server, clock, monkeypatch) as (lore, schedule):
        talk = [says(clock, n, "lin", f"{KNOWN['lin']} {n}") for n in range(12)]
        await lore.messages.add([*talk, says(clock, 99, "bot", "好的", role=Role.ASSISTANT)])
        assert await night(lore, clock, schedule) == ["user:lin"]
        assert await lore.memories.page("group:g") == []
        await lore.messages.add([says(clock, 100 + n, "anna", "Hello there") for n in range(12)])
        assert "group:g" in await night(lore, clock, schedule)


async def test_off_by_a_setting(clock, monkeypatch):
    async with ModelServer(answer) as server, nightly(server, clock, monkeypatch, people=False) as (lore, schedule):
        await lore.messages.add(says(clock, 1, "anna", KNOWN["anna"]))
        assert await night(lore, clock, schedule) == []


@pytest.mark.parametrize(("people", "expected"), [(True, 1), (False, 0)])
async def test_the_setting_and_a_model_decide(people, expected, sqlite_url, monkeypatch):
    from test_evolution_schedule import seen_to_an_hour_ago

    async with (
        ModelServer(answer) as server,
        opened(server, url=sqlite_url, background=False, evolve_schedule="* * * * *", evolve_people=people) as lore,
    ):
        await seen_to_an_hour_ago(lore)
        await lore.messages.add(Message(id="c1", room_id="g", sender_id="anna", text=KNOWN["anna"]))
        assert await lore.jobs.catch_up() == expected
        assert len(await facts(lore, "anna")) == expected
    async with opened(url=sqlite_url, background=False, evolve_schedule="* * * * *") as lore:
        await lore.messages.add(Message(id="c2", room_id="g", sender_id="ben", text=KNOWN["ben"]))
        await seen_again(lore)
        assert await lore.jobs.catch_up() == 0


async def seen_again(lore: Lore) -> None:
    """The last night counts as an hour ago."""
    from roomlore.services.evolution.evolution_service import MARK

    async with lore.storage.writing("") as work:
        here = {"room_id": "", "name": MARK}
        was = (await work.progress.marks(room_id="", names=[MARK]))[MARK]
        assert await work.progress.move_mark(**here, arrival=was - 3600, was=was, now=lore._resources.clock.now())


@pytest.mark.usefixtures("quick_retries")
async def test_what_a_provider_that_was_down_did_not_read_is_read_the_next_night(clock, monkeypatch):
    async with (
        ModelServer(default=Fails(status=503)) as server,
        nightly(server, clock, monkeypatch) as (lore, schedule),
    ):
        await lore.messages.add(says(clock, 1, "anna", KNOWN["anna"]))
        assert await night(lore, clock, schedule) == ["user:anna failed"]
        server.answer = answer
        clock.advance(DAY)
        assert await night(lore, clock, schedule) == ["user:anna"]
        assert await facts(lore, "anna") == [KNOWN["anna"]]


@pytest.mark.parametrize(
    ("kept", "several"),
    [((), True), (("user_facts",), False), (("user_facts", "people_facts"), True), (("people_facts",), True)],
)
async def test_a_prompt_about_one_person_that_was_changed_elsewhere_is_used(kept, several, clock):
    class Server:
        async def find(self, name: str, *, language: str) -> Prompt:
            return Prompt(name, "{{person}}", "7" if name in kept else "")

    asking = ModelAnswers(models=None, prompts=Server(), clock=clock, options=None)
    assert await asking.asks_about_several("en") is several
