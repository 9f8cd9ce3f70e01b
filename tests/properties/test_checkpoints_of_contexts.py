"""Whatever is written, in whatever order, with summaries of any age, told in any way: each message since the last reset
is in the summary or shown, or covered by a told summary that was made of one whose coverage was assumed, or the context
says `truncated` or `coverage_assumed`."""

import asyncio
import itertools
import os
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from roomlore import Checkpoint, Conflict, InvalidInput, NotFound, SessionContext, Settings
from session_rig import Rig, beside, open_rig

LARGE, SMALL = 16_000, 400
EXAMPLES = int(os.environ.get("ROOMLORE_GAP_EXAMPLES", "40"))
ages = st.integers(0, 5)
steps = st.one_of(
    st.tuples(st.just("say"), st.integers(1, 8)),
    st.tuples(st.just("look"), st.sampled_from([(1.0, LARGE), (0.0001, LARGE), (0.75, SMALL)])),
    st.tuples(st.just("look"), st.sampled_from([(0.0001, LARGE), (0.75, SMALL)])),
    st.tuples(st.just("preview"), st.sampled_from([(0.0001, LARGE), (0.75, SMALL)])),
    st.tuples(st.just("untold"), st.tuples(ages, st.booleans())),
    st.tuples(st.just("by_context"), st.tuples(ages, st.booleans())),
    st.tuples(st.just("by_message"), st.tuples(ages, st.booleans())),
    st.tuples(st.just("summarise"), st.none()),
    st.tuples(st.just("delete"), ages),
    st.tuples(st.just("reset"), st.none()),
)


def marks(text: str) -> set[str]:
    return set(re.findall(r"turn\d+", text))


class Remembering:
    """The port `Summarizer`: a summary names the turns that it was made of."""

    name = "remembering"

    async def summarise(self, *, previous: str, conversation: str, **_: object) -> str:
        return f"They spoke of {' '.join(sorted(marks(previous) | marks(conversation)))}."

    async def close(self) -> None: ...


@dataclass
class Seen:
    """A context, and the messages that no summary covered then."""

    context: SessionContext
    new: set[str]


@dataclass
class Talk:
    """One conversation, in two processes. `said`: the turn of each message, by its id, in order of arrival.
    `excused`: turns that are covered by a told summary which was made of one that may have lacked them."""

    sides: tuple[Rig, Rig]
    room: str
    said: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    boundary: int = 0
    in_force: Checkpoint | None = None
    first_asked: int | None = None
    excused: set[str] = field(default_factory=set)
    calls: int = 0

    @property
    def sessions(self):
        """Those of the process whose turn it is."""
        self.calls += 1
        return self.sides[self.calls % 2].sessions

    @property
    def covered(self) -> int:
        return self.in_force.covers_arrival if self.in_force else self.boundary

    def after(self, arrival: int) -> set[str]:
        return {one for one in list(self.said)[arrival:] if one not in self.gone}

    async def say(self, turns: int) -> None:
        for _ in range(turns):
            name = f"turn{len(self.said):03}"
            result = await self.sessions.write_turn(self.room, "ann", "bot", f"{name} is it so?", f"{name}: yes, it is")
            self.said |= dict.fromkeys(result.message_ids, name)

    async def look(self, how: tuple[float, int]) -> None:
        seen = await self._look(self.sessions.query_context, *how)
        if seen.context.should_checkpoint_summary and self.first_asked is None:
            new = [at for at, one in enumerate(self.said, 1) if one in seen.new]
            self.first_asked = new[-1] if new else self.covered

    async def preview(self, how: tuple[float, int]) -> None:
        await self._look(self.sessions.preview_context, *how)

    async def _look(self, look, threshold: float, window: int) -> Seen:
        seen = Seen(await look(self.room, "", threshold, 1, window), self.after(self.covered))
        self.seen.append(seen)
        return seen

    def _taken(self, age: int, *, whole: bool) -> tuple[Seen, str] | None:
        """Return a context, and the turns that its full history or its history tells of as a summary."""
        if not self.seen:
            return None
        seen = self.seen[max(0, len(self.seen) - 1 - age)]
        return seen, " ".join(sorted(marks(seen.context.full_history if whole else seen.context.history)))

    async def untold(self, how: tuple[int, bool]) -> None:
        taken = self._taken(how[0], whole=how[1])
        made = await self._put(taken, {})
        if made:
            assert self.first_asked is not None or not self.said
            assert made.coverage_assumed == (self.first_asked is not None)
            assert made.covers_arrival == (self.first_asked or 0)
            self._in_force(made)

    async def by_context(self, how: tuple[int, bool]) -> None:
        taken = self._taken(how[0], whole=how[1])
        if taken and (made := await self._put(taken, {"context": taken[0].context})):
            assert not taken[0].new & self.gone, "a message of it was removed"
            self._told(made, taken)

    async def by_message(self, how: tuple[int, bool]) -> None:
        """All of the full history, or its first half."""
        taken = self._taken(how[0], whole=True)
        new = [one for one in self.said if one in taken[0].new] if taken else []
        if taken and new:
            last = new[-1] if how[1] else new[len(new) // 2]
            left = {self.said[one] for one in self.after(list(self.said).index(last) + 1)} - {self.said[last]}
            taken = taken[0], " ".join(sorted(marks(taken[1]) - left))
            if made := await self._put(taken, {"covers_through": last}):
                assert made.covers_through == last
                self._told(made, taken)

    async def _put(self, taken: tuple[Seen, str] | None, told: dict) -> Checkpoint | None:
        try:
            return await self.sessions.checkpoint(self.room, f"of {taken[1]}", **told) if taken else None
        except (Conflict, InvalidInput, NotFound):
            return None

    def _told(self, made: Checkpoint, taken: tuple[Seen, str]) -> None:
        assert not made.coverage_assumed
        if taken[0].context.coverage_assumed or (self.in_force and self.in_force.coverage_assumed):
            self.excused |= {name for one, name in self.said.items() if one not in self.after(made.covers_arrival)}
        self._in_force(made)

    def _in_force(self, made: Checkpoint) -> None:
        self.in_force, self.first_asked = made, None

    async def summarise(self, _) -> None:
        if made := await self.sessions.summarise(self.room):
            self._told(made, (Seen(await self.sessions.preview_context(self.room), set()), ""))

    async def delete(self, age: int) -> None:
        new = [one for one in self.said if one in self.after(self.covered)]
        if new:
            one = new[max(0, len(new) - 1 - 3 * age)]
            await self.sides[0].messages.delete(self.room, one)
            self.gone.add(one)

    async def reset(self, _) -> None:
        await self.sessions.reset(self.room)
        self.boundary, self.in_force, self.first_asked = len(self.said), None, None

    async def check(self) -> None:
        assumed = self.in_force is not None and self.in_force.coverage_assumed
        for window in (LARGE, SMALL):
            context = await self.sessions.preview_context(self.room, "", 1, 0, window)
            assert context.coverage_assumed == assumed
            shown = {self.said[one] for one in context.message_ids} | marks(context.history) | self.excused
            lost = {self.said[one] for one in self.after(self.boundary)} - shown
            assert not lost or context.truncated or context.coverage_assumed, lost
            assert self.after(self.covered) <= set(context.message_ids) or context.truncated


def test_no_turn_is_lost_however_a_summary_is_handed_in():
    with asyncio.Runner() as runner:
        stack, numbers = AsyncExitStack(), itertools.count()

        async def opened() -> tuple[Rig, Rig]:
            own = Settings(recent_turns=2, model_context_window=LARGE)
            here = await stack.enter_async_context(open_rig(settings=own, summarizer=Remembering()))
            return here, await beside(here.lore, stack, summarizer=Remembering())

        sides = runner.run(opened())

        async def run(sequence) -> None:
            talk = Talk(sides, f"talk{next(numbers)}")
            await talk.sessions.create_session(talk.room, "ann")
            for what, value in sequence:
                await getattr(talk, what)(value)
                await talk.check()

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(steps, min_size=4, max_size=14))
        @example(
            [("say", 4), ("look", (1.0, LARGE)), ("say", 6), ("look", (0.0001, LARGE)), ("untold", (1, True))]
        ).via("a summary of an early context, after a later one asked")
        def holds(sequence) -> None:
            runner.run(run(sequence))

        try:
            holds()
        finally:
            runner.run(stack.aclose())
