"""Any sequence of turns, contexts and checkpoints that do not say what they cover: no turn is covered that the author
of the summary may not have seen, and none is lost."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roomlore import Conflict, InvalidInput, SessionContext, Settings
from session_rig import Rig, ScriptedSummarizer, open_rig

ROOM = "talk"
LARGE, SMALL = 16_000, 60
steps = st.one_of(
    st.tuples(st.just("say"), st.integers(1, 5)),
    st.tuples(st.just("look"), st.sampled_from([1.0, 0.0001])),
    st.tuples(st.just("window"), st.just(LARGE)),
    st.tuples(st.just("checkpoint"), st.sampled_from([None, 0, 1, 3])),
    st.tuples(st.just("summarise"), st.just(0)),
    st.tuples(st.just("reset"), st.just(0)),
)


@dataclass
class Talk:
    """What was said, as ids in order of arrival, and the contexts since the checkpoint in force."""

    rig: Rig
    said: list[str] = field(default_factory=list)
    covered: int = 0
    seen: list[tuple[int, bool]] = field(default_factory=list)

    async def do(self, what: str, value) -> None:
        await getattr(self, what)(value)

    async def say(self, turns: int) -> None:
        for _ in range(turns):
            result = await self.rig.sessions.write_turn(ROOM, "ann", "bot", f"question {len(self.said)}", "yes")
            self.said += result.message_ids

    async def look(self, threshold: float) -> None:
        context = await self.rig.sessions.query_context(ROOM, "", threshold, model_context_window=LARGE)
        self.seen.append((len(self.said), context.should_checkpoint_summary))

    async def window(self, window: int) -> None:
        await self.rig.sessions.query_window(ROOM, window)

    async def checkpoint(self, recent_turns: int | None) -> None:
        try:
            made = await self.rig.sessions.checkpoint(ROOM, "s", recent_turns)
        except (Conflict, InvalidInput):
            return
        asked = [end for end, asked in self.seen if asked]
        meant = asked[:1] or [end for end, _ in self.seen]
        assert all(made.covers_arrival <= max(end, self.covered) for end in meant)
        assert meant or made.covers_arrival == self.covered
        self.covered, self.seen = made.covers_arrival, []

    async def summarise(self, _) -> None:
        if await self.rig.sessions.summarise(ROOM):
            self.covered, self.seen = len(self.said), []

    async def reset(self, _) -> None:
        await self.rig.sessions.reset(ROOM)
        self.covered, self.seen = len(self.said), []

    async def check(self) -> None:
        """No turn after what the summary covers is missing, unless the context says so."""
        whole, cut = [await self.rig.sessions.preview_context(ROOM, "", 1, 0, window) for window in (LARGE, SMALL)]
        assert (whole.truncated, self.missing(whole)) == (False, set())
        assert cut.truncated == bool(self.missing(cut))

    def missing(self, context: SessionContext) -> set[str]:
        return set(self.said[self.covered :]) - set(context.message_ids)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, max_size=14))
def test_no_turn_is_lost_though_nobody_says_what_a_summary_covers(sequence):
    async def run() -> None:
        async with open_rig(settings=Settings(recent_turns=2), summarizer=ScriptedSummarizer()) as rig:
            talk = Talk(rig)
            await rig.sessions.create_session(ROOM, "ann")
            for what, value in sequence:
                await talk.do(what, value)
                await talk.check()

    asyncio.run(run())
