"""Whom a memory is about, who said it, and until when it holds."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import roomlore
from engines import ENGINES
from memory_rig import RULES, Rig
from roomlore import InvalidInput, Memory, MemoryKind, Message, NewMemory, Source
from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.plan import PlanInput, plan
from roomlore.core.evolution.requests import ScopeState
from roomlore.services import memory_search
from roomlore_testkit.doubles import FrozenClock

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)
AWAY = {
    "en": ("Anna is on holiday in Rome", "Where is Anna on holiday?"),
    "zh": ("安娜正在罗马度假", "安娜在哪里度假？"),
}
ANNA = "user:anna"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOW)


@pytest.fixture(params=ENGINES)
async def lore(request, clock: FrozenClock, monkeypatch) -> AsyncIterator[roomlore.Lore]:
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
    async with roomlore.open(request.getfixturevalue(request.param), settings=roomlore.Settings()) as opened:
        yield opened


async def listed(lore: roomlore.Lore, status: str = "active", **more: str) -> list[str]:
    found = await lore.memories.page(ANNA, status=status, **more)
    assert await lore.memories.count(ANNA, status=status, **more) == len(found)
    return [memory.statement for memory in found]


@pytest.mark.parametrize("viewer", [{}, {"viewer": ANNA}], ids=["everything", "a viewer"])
@pytest.mark.parametrize("language", AWAY)
async def test_what_has_ended_is_shown_only_to_who_asks_for_the_past(lore, clock, language, viewer):
    said, question = AWAY[language]
    await lore.memories.add(ANNA, said, valid_until=NOW + DAY)
    asked = [{"role": "user", "content": question}]

    async def shown(**more) -> tuple[bool, bool, bool]:
        found = await lore.memories.search(ANNA, question, threshold=0, **more, **viewer)
        recalled = await lore.recall.build([ANNA], asked, **more, **viewer)
        prompt = await lore.recall.memory_prompt([ANNA], asked, **more, **viewer)
        return bool(found.hits), bool(recalled.facts), said in prompt

    assert await shown() == (True, True, True)
    assert await listed(lore, **viewer) == [said]
    clock.advance(86_400)
    assert await shown() == (False, False, False), "nothing was written: time alone ended it"
    assert await shown(include_ended=True) == (True, True, True)
    assert "(until 2026-05-11 12:00 UTC)" in await lore.recall.memory_prompt([ANNA], asked, include_ended=True)
    assert await listed(lore, **viewer) == []
    assert await listed(lore, "ended", **viewer) == [said]
    assert await listed(lore, "deprecated", **viewer) == []
    assert await listed(lore, "all", **viewer) == [said]


async def test_what_is_kept_ready_follows_each_end(lore, clock):
    for number in range(1, 4):
        await lore.memories.add(ANNA, f"plan number {number}", valid_until=NOW + number * DAY)
    for left in (3, 2, 1, 0):
        assert len((await lore.memories.search(ANNA, "plan number", threshold=0)).hits) == left
        assert len((await lore.recall.build([ANNA], [])).facts) == left
        clock.advance(86_400)


async def test_a_search_that_is_given_up_leaves_no_end_behind(lore, clock, monkeypatch):
    """A regression: what had ended was found again where a search was given up while the rest was made ready."""
    monkeypatch.setattr(memory_search, "_INLINE", 0)
    await lore.memories.add(ANNA, "plan number 1", valid_until=NOW + DAY)
    await lore.memories.add(ANNA, "plan number 2")

    async def found() -> int:
        return len((await lore.memories.search(ANNA, "plan number", threshold=0)).hits)

    assert await found() == 2
    clock.advance(86_400)
    begun = asyncio.Event()

    async def never(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(memory_search.asyncio, "to_thread", never)
        searching = asyncio.ensure_future(found())
        await begun.wait()
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
    assert await found() == 1


async def test_a_time_of_the_past_shows_what_held_then(lore, clock):
    made = await lore.memories.add(ANNA, "rents a flat", valid_until=NOW + DAY)
    clock.advance(2 * 86_400)
    assert await lore.memories.as_of(ANNA, NOW) == [made]
    assert await lore.memories.as_of(ANNA, NOW + DAY) == []
    assert (await lore.memories.diff(ANNA, NOW)).removed == (made,)
    assert await lore.memories.history(made.memory_id) == [made]


async def test_the_same_may_hold_again(lore, clock):
    first = await lore.memories.add(ANNA, "is away", valid_until=NOW + DAY)
    assert await lore.memories.add(ANNA, "is away", valid_until=NOW + 9 * DAY) == first, "it still holds"
    clock.advance(86_400)
    again = await lore.memories.add(ANNA, "is away", valid_until=NOW + 9 * DAY)
    assert again.memory_id != first.memory_id
    assert [one.memory_id for one in await lore.memories.page(ANNA)] == [again.memory_id]
    other = await lore.memories.add(ANNA, "is ill")
    clock.advance(9 * 86_400)
    assert (await lore.memories.update(other.memory_id, statement="is away")).statement == "is away"


async def test_a_memory_can_be_ended_and_go_on(lore, clock):
    made = await lore.memories.add(ANNA, "takes ibuprofen 400 mg")
    ended = await lore.memories.update(made.memory_id, valid_until=lore.now())
    assert (ended.statement, ended.version) == (made.statement, 2)
    assert await listed(lore) == []
    await lore.memories.update(ended.memory_id, valid_until=None, valid_from=NOW - DAY)
    assert await listed(lore) == [made.statement]
    stays = await lore.memories.update(made.memory_id, category="health")
    assert (stays.valid_from, stays.valid_until) == (NOW - DAY, None)


async def test_a_block_shows_since_when_a_fact_holds_and_when_it_ends(lore):
    await lore.memories.add(ANNA, "is in Rome", valid_from=NOW + DAY, valid_until=NOW + 2 * DAY)
    begins, ends = (f"{at:%Y-%m-%d %H:%M} UTC" for at in (NOW + DAY, NOW + 2 * DAY))
    assert f"- is in Rome (from {begins} until {ends})\n" in await lore.recall.memory_prompt(
        [ANNA], [{"role": "user", "content": "Rome?"}]
    )


@pytest.mark.parametrize(
    ("zone", "first", "last", "begins", "ends"),
    [
        ("UTC", date(2027, 1, 1), date(2027, 1, 1), "2027-01-01T00", "2027-01-02T00"),
        ("Asia/Shanghai", date(2027, 1, 1), date(2027, 1, 3), "2026-12-31T16", "2027-01-03T16"),
        ("Europe/Berlin", date(2027, 3, 28), date(2027, 3, 28), "2027-03-27T23", "2027-03-28T22"),
        ("Asia/Shanghai", date.min, date.max, "0001-01-01T00", "9999-12-31T23"),
    ],
)
async def test_a_day_counts_whole_in_the_zone_of_the_room(zone, first, last, begins, ends):
    async with roomlore.open("sqlite://", settings=roomlore.Settings(time_zone=zone)) as lore:
        made = await lore.memories.add(ANNA, "is away", valid_from=first, valid_until=last)
        later = await lore.memories.update(made.memory_id, valid_from=None, valid_until=first)
    assert made.valid_from.isoformat().startswith(begins)
    assert made.valid_until.isoformat().startswith(ends)
    assert later.valid_until > made.valid_from


async def test_what_is_neither_a_day_nor_a_time_is_refused(lore):
    with pytest.raises(InvalidInput, match="valid_until is '2027-01-01'; it must be a datetime or a date, such as"):
        await lore.memories.add(ANNA, "is away", valid_until="2027-01-01")


@pytest.mark.parametrize("until", [NOW, NOW - DAY])
async def test_nothing_ends_before_it_begins(lore, until):
    with pytest.raises(InvalidInput, match="not after valid_from"):
        await lore.memories.add(ANNA, "is away", valid_from=NOW, valid_until=until)
    made = await lore.memories.add(ANNA, "is away", valid_until=until)
    with pytest.raises(InvalidInput, match="not after"):
        await lore.memories.update(made.memory_id, valid_from=NOW)


@pytest.mark.parametrize(
    ("given", "named"),
    [({"owner": 5}, "owner"), ({"said_by": "anna"}, "said_by"), ({"said_by": [""]}, "said_by"),
     ({"valid_from": "soon"}, "valid_from"), ({"said_by": [str(n) for n in range(101)]}, "said_by")],
)  # fmt: skip
async def test_what_cannot_be_kept_is_refused(lore, given, named):
    with pytest.raises(InvalidInput, match=named):
        await lore.memories.add(ANNA, "is away", **given)


async def test_who_said_it_and_whom_it_is_about(lore):
    await lore.messages.add([Message(id="m1", room_id="r", sender_id="ben", text="Anna hates coriander")])
    told = await lore.memories.add(ANNA, "hates coriander", sources=[Source("r", "m1")])
    assert (told.owner, told.said_by) == ("anna", ("ben",))
    group = await lore.memories.add("group:r", "Anna brings the cake", owner="anna", said_by=["carl", "carl"])
    assert (group.owner, group.said_by) == ("anna", ("carl",))
    assert (await lore.memories.add("group:r", "meets on Mondays")).owner == ""
    await lore.messages.add([Message(id="m2", room_id="r", sender_id="dora", text="true")])
    grown = await lore.memories.update(told.memory_id, sources=[Source("r", "m1"), Source("r", "m2")])
    assert grown.said_by == ("ben", "dora")
    assert (await lore.memories.head(told.memory_id)) == grown


async def test_a_forgotten_person_is_neither_owner_nor_said_it(lore):
    anna = "anna-7f3a9c"
    made = await lore.memories.add("group:r", "brings the cake", owner=anna, said_by=[anna, "ben"])
    report = await lore.privacy.forget(anna)
    assert report.left == ()
    left: Memory = await lore.memories.get(made.memory_id)
    assert (anna in left.owner, left.said_by, left.statement) == (False, ("ben",), "brings the cake")
    assert anna not in repr(await lore.memories.changes("group:r"))


LINE = '{"action": "create", "statement": "%s", "evidence": ["c1"], "valid_from": "2026-05-11", "valid_until": "%s"}'


@pytest.mark.parametrize(("until", "ends"), [("2026-05-20", datetime(2026, 5, 21, tzinfo=UTC)), ("2026-05-01", None)])
async def test_a_model_tells_the_days_and_those_that_are_over_are_left_out(lore, clock, until, ends):
    rig = Rig(lore.storage, lore, clock=clock)
    rig.thinking.answer = LINE % ("Anna is on holiday in Rome", until)
    await lore.messages.add(
        [Message(id="m1", room_id="r", sender_id="anna", text="I am on holiday in Rome", sent_at=NOW)]
    )
    done = await rig.memories.evolve("group:r", mode="llm")
    (made,) = await rig.memories.page("group:r")
    assert made.valid_until == ends
    assert (made.valid_from is None) == (ends is None)
    assert made.said_by == ("anna",)
    assert ("over" in " ".join(one.reason for one in done.rejected)) == (ends is None)


async def test_an_evolution_does_not_see_what_has_ended(lore, clock):
    rig = Rig(lore.storage, lore, clock=clock)
    await lore.memories.add("group:r", "Anna is on holiday in Rome", kind="group", valid_until=NOW + DAY)
    clock.advance(3 * 86_400)
    rig.thinking.answer = LINE % ("Anna is on holiday in Rome", "2026-05-20")
    sent = NOW + 3 * DAY
    await lore.messages.add(
        [Message(id="m1", room_id="r", sender_id="anna", text="on holiday in Rome again", sent_at=sent)]
    )
    await rig.memories.evolve("group:r", mode="llm")
    (made,) = await lore.memories.page("group:r")
    assert (made.version, made.valid_until) == (1, datetime(2026, 5, 21, tzinfo=UTC))


def test_days_of_a_model_are_those_of_the_time_zone():
    read = read_answer(LINE % ("x", "2026-05-20"))
    given = PlanInput(
        offered={}, messages={"c1": Source("r", "m1")}, state=ScopeState(scope="group:r", number=0, active=0),
        rules=RULES, similar=None, kind=MemoryKind.GROUP, evolution_id="e", actor="any", now=NOW, new_id=lambda: "id",
        zone=ZoneInfo("Asia/Shanghai"),
    )  # fmt: skip
    (change,) = plan(read, given).changes
    assert change.memory.valid_from == datetime(2026, 5, 10, 16, tzinfo=UTC)
    assert change.memory.valid_until == datetime(2026, 5, 20, 16, tzinfo=UTC)


async def test_several_are_added_with_their_times(lore):
    done = await lore.memories.add_all([NewMemory(scope=ANNA, statement="x", valid_until=datetime(2026, 6, 1))])
    assert done[0].memory.valid_until == datetime(2026, 6, 1, tzinfo=UTC), "a naive time is UTC"


@pytest.mark.parametrize(
    ("more", "replaced"),
    [
        ({"category": "safety"}, True),
        ({"tags": ["pinned"]}, True),
        ({"category": "safety", "valid_until": NOW + DAY}, False),
        ({"category": "safety", "valid_from": NOW + DAY}, False),
        ({}, False),
    ],
    ids=["as long", "pinned", "ends", "begins later", "not of safety"],
)
async def test_one_for_all_takes_no_place_that_it_does_not_fill(lore, more, replaced):
    await lore.messages.add(Message(id="m1", room_id="few", sender_id="anna", text="No nuts for me, 我对坚果过敏"))
    told = await lore.memories.add(ANNA, "对坚果过敏", category="safety", sources=[Source("few", "m1")])
    made = await lore.memories.add(ANNA, "对坚果过敏", **more)
    assert made != told
    left = {one.memory_id for one in await lore.memories.page(ANNA)}
    assert (told.memory_id in left) is not replaced
