"""Any history of replies, deletions, sweeps, restarts and failing models: every so many replies are one extraction, and
each message of a person to an agent is read by exactly one of them.

Durable work is a double here that runs what was handed in whenever the machine says so, in any order, and breaks it off
anywhere; stored is what a real database keeps.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import roomlore
from extraction_rig import mark, records, reply
from roomlore import Message, Settings
from roomlore.core.errors import StorageUnavailable
from roomlore.core.memory.extraction import MAX_MESSAGES
from roomlore.core.memory.memory import Evolution
from roomlore.ports.durable import Json, WorkState
from roomlore.services.extraction import EXTRACTION, Extracted, ExtractionService
from roomlore_testkit import FrozenClock, backends

PLACES = [("r", "bot"), ("群", "bot"), ("群", "bob")]
MAX_PIECES = 500
WENT = ["kept", "nothing", "fallback", "killed before", "killed after", "not stored"]
places = st.sampled_from(PLACES)


class _KilledError(Exception):
    """The process ends here."""


@dataclass
class Held:
    """The ports `DurableWork`, `Jobs` and `Telemetry`, as far as extraction asks: work waits until it is run, and an
    answer that was kept stays."""

    waiting: dict[str, Json] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    answers: dict[str, Json] = field(default_factory=dict)

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        new = work_id not in self.waiting and work_id not in self.done
        if new:
            self.waiting[work_id] = arguments
        return new

    async def retry(self, work_id: str) -> bool:
        return False

    async def find(self, work_id: str) -> WorkState | None:
        if work_id not in self.waiting and work_id not in self.done:
            return None
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return WorkState(
            work_id=work_id, name=EXTRACTION, partition="p", arguments={}, attempts=1, progress="", error="",
            status="done" if work_id in self.done else "waiting", created_at=at, updated_at=at,
        )  # fmt: skip

    async def page(self, **_: object) -> list[WorkState]:
        return []

    def ask(self, name: str) -> None: ...

    def count(self, name: str, amount: float = 1, **_: object) -> None: ...


@dataclass
class Once:
    """The port `Steps` of one attempt."""

    held: Held
    work_id: str
    went: str

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        if self.work_id not in self.held.answers:
            if self.went == "killed before":
                raise _KilledError
            self.held.answers[self.work_id] = await step()
        if self.went == "killed after":
            raise _KilledError
        return self.held.answers[self.work_id]

    async def report(self, progress: str) -> None: ...


class Summaries:
    def __init__(self) -> None:
        self.went = "kept"
        self.asked = 0

    async def of(self, conversation: str, tenant: str) -> Extracted:
        self.asked += 1
        if self.went == "fallback":
            return Extracted("对话摘要: 好", "fallback", raw_answer=conversation)
        kept = None if self.went == "nothing" else "好 good"
        return Extracted(kept, "first/tiny", prompt_hash="0", raw_answer=conversation)


class ExtractionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.replies: dict[tuple[str, str], int] = dict.fromkeys(PLACES, 0)
        self.deleted: dict[tuple[str, str], int] = dict.fromkeys(PLACES, 0)
        self.marks: dict[tuple[str, str], int] = dict.fromkeys(PLACES, 0)
        self.ids: list[tuple[str, str, str]] = []
        self.asked: dict[tuple[str, str], list[str]] = {place: [] for place in PLACES}
        self.answered: dict[tuple[str, str], dict[str, str]] = {place: {} for place in PLACES}
        self.numbers = 0
        self.held, self.summaries, self.clock = Held(), Summaries(), FrozenClock(datetime.now(UTC))

    @initialize(every=st.sampled_from([1, 2, 3, 5]))
    def open(self, every: int) -> None:
        self.every = every
        self.lore = self.runner.run(self.closing.enter_async_context(
            roomlore.open("sqlite://", settings=Settings(extract_every=every, durable_work="process"), background=False)
        ))  # fmt: skip
        self.restart()

    @rule()
    def restart(self) -> None:
        """Forget all that a process holds beside the database."""
        used = backends(self.lore.storage, jobs=self.held, clock=self.clock, telemetry=self.held)
        self.service = ExtractionService(used, durable=self.held, summaries=self.summaries, every=self.every, zone=UTC)

    @rule(place=places, count=st.integers(1, 7), questions=st.booleans())
    def talk(self, place: tuple[str, str], count: int, questions: bool) -> None:
        room, agent = place
        batch: list[Message] = []
        for _ in range(count):
            self.numbers += 1
            if questions:
                batch.append(self._question(room, "u"))
            batch.append(
                reply(self.numbers, f"答 {self.numbers}", room, agent, reply_to=batch[-1].id if questions else None)
            )
            self.ids.append((room, agent, batch[-1].id))
            if questions:
                self.answered[place][batch[-2].id] = batch[-1].id
        self.replies[place] += count
        self.runner.run(self.lore.messages.add(batch))

    def _question(self, room: str, person: str) -> Message:
        return Message(id=f"q{self.numbers}", room_id=room, sender_id=person, text=f"问 why «{self.numbers}»")

    @rule(place=places, person=st.sampled_from(["u", "v"]))
    def ask(self, place: tuple[str, str], person: str) -> None:
        """Not answered yet, and to nobody so far as can be seen."""
        self.numbers += 1
        self.runner.run(self.lore.messages.add(self._question(place[0], person)))
        self.asked[place].append(f"q{self.numbers}")

    @rule(place=places, data=st.data())
    def answer(self, place: tuple[str, str], data: st.DataObject) -> None:
        """Answer one of these, however long ago it was asked."""
        if self.asked[place]:
            self.numbers += 1
            question = data.draw(st.sampled_from(self.asked[place]))
            self.asked[place].remove(question)
            given = reply(self.numbers, f"答 {self.numbers}", *place, reply_to=question)
            self.ids.append((*place, given.id))
            self.replies[place] += 1
            self.answered[place][question] = given.id
            self.runner.run(self.lore.messages.add(given))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.ids:
            self._delete(*self.ids[data.draw(st.integers(0, len(self.ids) - 1))])

    @rule(data=st.data())
    def delete_what_waits(self, data: st.DataObject) -> None:
        """A reply that a piece of work was handed in for."""
        if self.held.waiting:
            work_id = data.draw(st.sampled_from(sorted(self.held.waiting)))
            given = self.held.waiting[work_id]
            page = self.runner.run(self.lore.messages.page(given["room_id"], after=given["after"], limit=500))
            about = [m for m in page if m.arrival <= given["last"] and m.sender_id == given["agent_id"]]
            if about:
                self._delete(given["room_id"], given["agent_id"], data.draw(st.sampled_from([m.id for m in about])))
            self.run(work_id, data.draw(st.sampled_from(["kept", "killed before"])))

    def _delete(self, room: str, agent: str, message_id: str) -> None:
        self.ids.remove((room, agent, message_id))
        self.deleted[room, agent] += 1
        self.answered[room, agent] = {q: a for q, a in self.answered[room, agent].items() if a != message_id}
        self.runner.run(self.lore.messages.delete(room, message_id))

    @rule()
    def sweep(self) -> None:
        self.clock.advance(31)
        self.runner.run(self.service.sweep())

    @rule(data=st.data(), went=st.sampled_from(WENT))
    def work(self, data: st.DataObject, went: str) -> None:
        if self.held.waiting:
            self.run(data.draw(st.sampled_from(sorted(self.held.waiting))), went)

    def run(self, work_id: str, went: str) -> None:
        self.summaries.went = went
        attempt = self._broken_off(work_id) if went == "not stored" else self._attempt(work_id, went)
        if self.runner.run(attempt):
            self.held.done.add(work_id)
            del self.held.waiting[work_id]

    async def _attempt(self, work_id: str, went: str) -> bool:
        try:
            await self.service.extract(Once(self.held, work_id, went), self.held.waiting[work_id])
        except (_KilledError, StorageUnavailable):
            return False
        return True

    async def _broken_off(self, work_id: str) -> bool:
        """The transaction that keeps the memory is not committed."""
        from roomlore.storage.work import DueRooms

        note = DueRooms.note_room

        async def fails(self: DueRooms, **_: object) -> None:
            raise StorageUnavailable

        DueRooms.note_room = fails  # type: ignore[method-assign, assignment]
        try:
            return await self._attempt(work_id, "not stored")
        finally:
            DueRooms.note_room = note  # type: ignore[method-assign]

    @invariant()
    def nothing_is_extracted_twice(self) -> None:
        for room, agent in PLACES:
            made = [record for record in self.runner.run(records(self.lore, agent)) if record.room_id == room]
            ends = [record.last_arrival for record in made]
            assert all(record.first_arrival <= record.last_arrival for record in made)
            assert all(before < after for before, after in pairwise(ends))
            assert all(count == 1 for count in _read(made).values())
            at = self.runner.run(mark(self.lore, room, agent)) or 0
            assert at >= self.marks[room, agent]
            assert not ends or at == ends[-1]
            self.marks[room, agent] = at

    def teardown(self) -> None:
        if hasattr(self, "lore"):
            self._finish()
            self.runner.run(self.closing.aclose())
        self.runner.close()

    def _finish(self) -> None:
        """Do the due work in the end, whatever happened before."""
        self.sweep()
        while self.held.waiting:
            assert len(self.held.done) < MAX_PIECES
            for work_id in sorted(self.held.waiting):
                self.run(work_id, "kept")
            self.sweep()
        self.nothing_is_extracted_twice()
        for place in PLACES:
            self._check(*place)
        kept = self.runner.run(self._kept())
        applied = [record for name in ("bot", "bob") for record in self.runner.run(records(self.lore, name))]
        assert kept == sum(record.status == "applied" for record in applied)

    def _check(self, room: str, agent: str) -> None:
        made = [record for record in self.runner.run(records(self.lore, agent)) if record.room_id == room]
        replied, gone = self.replies[room, agent], self.deleted[room, agent]
        cut = sum(record.messages == MAX_MESSAGES for record in made)
        assert (replied - gone) // self.every <= len(made) <= replied // self.every + cut
        assert self.runner.run(self._left(room, agent)) < self.every
        read, end = _read(made), self.runner.run(mark(self.lore, room, agent)) or 0
        for question, answer in self.answered[room, agent].items():
            at = self.runner.run(self.lore.messages.get(room, answer)).message.arrival
            assert read[f"«{question[1:]}»"] == (at <= end)

    async def _left(self, room: str, agent: str) -> int:
        after = await mark(self.lore, room, agent) or 0
        async with self.lore.storage.reading("default") as work:
            assert not await work.progress.any_noted(work=EXTRACTION)
            found = await work.messages.replies_of(room_id=room, agent_id=agent, after=after, limit=1000)
        return len(found)

    async def _kept(self) -> int:
        found = [await self.lore.memories.page(f"agent:{name}", status="all", limit=500) for name in ("bot", "bob")]
        return sum(map(len, found))


def _read(made: list[Evolution]) -> Counter[str]:
    """Return the number of times that a model read each question."""
    return Counter(question for record in made for question in re.findall("«[0-9]+»", record.raw_answer))


def test_every_so_many_replies_are_one_extraction():
    run_state_machine_as_test(
        ExtractionMachine,
        settings=settings(
            max_examples=10, phases=[Phase.generate], stateful_step_count=30, derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )  # fmt: skip


@contextmanager
def machine(every: int) -> Iterator[ExtractionMachine]:
    made = ExtractionMachine()
    made.open(every)
    yield made
    made.teardown()


def test_a_reply_deleted_while_its_work_waits_brings_back_none_that_was_read():
    with machine(2) as made:
        for _ in range(2):
            made.talk(PLACES[0], 2, False)
            made.sweep()
            if made.numbers == 4:
                made._delete("r", "bot", "a3-bot")
            made.run(*made.held.waiting, "kept")
        found = made.runner.run(records(made.lore))
        assert [(record.first_arrival, record.last_arrival) for record in found] == [(1, 2), (4, 4)]


def test_forty_messages_are_read_at_a_time_and_the_rest_later():
    with machine(3) as made:
        for _ in range(6):
            for _ in range(20):
                made.ask(PLACES[0], "u")
            made.talk(PLACES[0], 1, True)
        made.talk(PLACES[0], 2, True)
        made.sweep()
        while made.held.waiting:
            made.run(*made.held.waiting, "kept")
            made.sweep()
        found = made.runner.run(records(made.lore))
        assert [record.messages for record in found] == [40] * (len(found) - 1) + [found[-1].messages]
        assert found[-1].messages <= 40
        end = found[-1].last_arrival
        assert sum(record.messages for record in found) == end
        assert end > 120


def test_work_that_came_too_late_does_not_stand_in_the_way_of_what_is_due():
    """Two pieces that end with the same reply: the first was handed in for more than was left to it."""
    with machine(1) as made:
        made.talk(PLACES[0], 1, False)
        made.sweep()
        (first,) = made.held.waiting
        made._delete("r", "bot", "a1-bot")
        made.talk(PLACES[0], 1, False)
        made.sweep()
        (late,) = set(made.held.waiting) - {first}
        made.run(first, "kept")
        made.run(late, "kept")
        made.sweep()
        made.run(*made.held.waiting, "kept")
        assert [record.last_arrival for record in made.runner.run(records(made.lore))] == [1, 2]
