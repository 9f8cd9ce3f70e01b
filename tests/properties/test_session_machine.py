"""Any history of turns, edits, checkpoints, races, resets, lost caches and restarts: nothing falls in the gap.

A plain list of what was said keeps the truth. After each step the answer of a process with the cache must equal that of
one without it, and both must equal what the list says.
"""

import asyncio
import itertools
import os
import shutil
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import roomlore
from roomlore import BudgetTooSmall, Checkpoint, Conflict, Message, NotFound, Role, SessionContext, Settings
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.prompt import neutral
from roomlore.core.text import language
from roomlore.services.sessions import reading, session_service
from roomlore_testkit import FrozenClock, InMemorySessionCache
from session_rig import Rig, ScriptedSummarizer, beside

ROOM = "talk"
RECENT = 2
LABELS = {
    "zh": {"user": "用户", "assistant": "助手", "system": "系统", "tool": "工具"},
    "en": {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"},
}
HEADS = {"zh": "历史摘要: ", "en": "Summary: "}
TEXTS = [
    "yes",
    "the deploy is stuck again on node seven",
    "谁在跑迁移？我这边超时了",
    "👩‍👩‍👧 ok\n\n",
    "行 fine 行",
    "  two\nlines ",
]
RUBBISH = ["", "null", "[]", "{", '{"roomlore": {"form": 1}}', '"roomlore"', "历史"]
count = EncodingTokens().count
PHASES = [
    Phase.explicit,
    Phase.reuse,
    Phase.generate,
    *([] if os.environ.get("ROOMLORE_MACHINE_QUICK") else [Phase.shrink]),
]

windows = st.sampled_from([25, 40, 60, 90, 140, 16_000])
recents = st.sampled_from([None, 0, 1, 2, 3, 5])
thresholds = st.sampled_from([None, 0.3, 1])
queries = st.sampled_from(["", "why?", "为什么又超时了？", "a rather long question about the deploy " * 2])
texts = st.sampled_from(TEXTS)


@dataclass
class Said:
    """A message as it should be stored."""

    id: str
    role: str
    text: str
    name: str = ""
    turn_id: str | None = None
    caption: str = ""
    gone: bool = False

    @property
    def shown(self) -> str:
        return self.text or self.caption

    def line(self, tongue: str) -> str:
        return f"{self.name or LABELS[tongue][self.role]}: {self.shown}"


@dataclass
class Held:
    """A context somebody holds and may summarise: what it saw, and the checkpoint it was made under."""

    context: SessionContext
    saw: int
    standing: str
    boundary: int
    texts: list[tuple[int, str]]
    at: float


@dataclass
class Truth:
    """The messages in order of arrival, and the checkpoint in force."""

    said: list[Said] = field(default_factory=list)
    boundary: int = 0
    checkpoint: Checkpoint | None = None
    marks: int = 0
    turns_before: int = 0
    state: dict[str, str] = field(default_factory=dict)

    @property
    def covered(self) -> int:
        return self.checkpoint.covers_arrival if self.checkpoint else self.boundary

    @property
    def in_force(self) -> str:
        return self.checkpoint.checkpoint_id if self.checkpoint else ""

    def there(self, after: int) -> list[int]:
        return [place for place, one in enumerate(self.said, 1) if place > after and not one.gone]

    def turns(self) -> list[list[int]]:
        """Turns since the last reset, as arrivals, in the order they began."""
        found: list[list[int]] = []
        for place in self.there(self.boundary):
            one = self.said[place - 1]
            if one.turn_id:
                own = [turn for turn in found if self.said[turn[0] - 1].turn_id == one.turn_id]
                own = own or [turn for turn in found if any(self.said[p - 1].turn_id == one.turn_id for p in turn)]
            else:
                own = found[-1:] if one.role != "user" else []
            if own:
                own[0].append(place)
            else:
                found.append([place])
        return found

    def tongue(self) -> str:
        return self.checkpoint.language if self.checkpoint else self.tongue_of_new() or "en"

    def tongue_of_new(self) -> str | None:
        new = self.there(self.covered)[:8]
        return language("\n".join(self.said[place - 1].shown for place in new)) if new else None

    def texts(self, saw: int) -> list[tuple[int, str]]:
        """What no summary covers up to this arrival."""
        return [(place, self.said[place - 1].shown) for place in self.there(self.covered) if place <= saw]

    def told(self, threshold: float, window: int) -> int:
        """The arrival up to which nothing is told again: covered turns are, while coverage is assumed."""
        first, room = self.covered + 1, int(threshold * window / 2)
        if self.checkpoint and self.checkpoint.coverage_assumed:
            for turn in reversed(self.turns()):
                part = [place for place in turn if place <= self.covered]
                said = [self.said[place - 1] for place in part]
                room -= sum(count([one.line(self.tongue()) + "\n" for one in said if one.shown]))
                if room < 0:
                    break
                first = min([first, *part])
        return first - 1

    def text(self, arrivals: list[int]) -> str:
        tongue, summary = self.tongue(), self.checkpoint.summary if self.checkpoint else ""
        head = [HEADS[tongue] + neutral(summary), ""] if summary else []
        said = [self.said[place - 1] for place in arrivals]
        return "\n".join([*head, *(one.line(tongue) for one in said if one.shown)])


def flat(turns: list[list[int]]) -> list[int]:
    return sorted(itertools.chain.from_iterable(turns))


class SessionMachine(RuleBasedStateMachine):
    """`here` and `there` are two processes on one database and one cache, `plain` is one without a cache."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(mkdtemp(prefix="roomlore-machine-"))
        self.url = f"sqlite:///{shutil.copy(self.template, self.folder / 'talk.db')}"
        self.clock = FrozenClock()
        self.cache = InMemorySessionCache(self.clock)
        self.truth = Truth()
        self.held: list[Held] = []
        self.first: Held | None = None
        self.touched: set[str] = set()
        self.seeds: list[Held] = []
        self.numbers = itertools.count()
        self.remembered: dict[tuple[str, str], tuple[str, float]] = {}
        self.stack = AsyncExitStack()
        self.do(self.open())

    def do(self, work):
        return self.loop.run_until_complete(work)

    async def open(self) -> None:
        own = Settings(recent_turns=RECENT, auto_checkpoint=False)
        lore = await self.stack.enter_async_context(roomlore.open(self.url, settings=own, background=False))
        self.model = ScriptedSummarizer()
        given = {"clock": self.clock, "summarizer": self.model}
        self.here = await beside(lore, self.stack, cache=self.cache, **given)
        self.there = await beside(lore, self.stack, cache=self.cache, **given)
        self.plain = await beside(lore, self.stack, **given)

    def teardown(self) -> None:
        self.do(self.stack.aclose())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.folder)

    def new(self, kind: str) -> str:
        return f"{kind}{next(self.numbers)}"

    def side(self, other: bool) -> Rig:
        return self.there if other else self.here

    @initialize()
    def begin(self) -> None:
        self.do(self.here.sessions.create_session(ROOM, "ann"))

    # What is said

    @rule(
        query=texts | st.none(),
        answer=texts | st.none(),
        user=st.sampled_from(["", "ann", "小李"]),
        named=st.booleans(),
        other=st.booleans(),
    )
    def write_turn(self, query, answer, user, named, other) -> None:
        if not query and not answer:
            return
        turn_id = self.new("t") if named else None
        self._write(turn_id, user, query, answer, other)

    def _write(self, turn_id, user, query, answer, other) -> None:
        result = self.do(self.side(other).sessions.write_turn(ROOM, user, "bot", query, answer, turn_id=turn_id))
        halves = [("user", query), ("assistant", answer)]
        said = [(role, text) for role, text in halves if text]
        assert len(result.message_ids) == len(said)
        for message_id, (role, text) in zip(result.message_ids, said, strict=True):
            if message_id not in {one.id for one in self.truth.said}:
                self.truth.said.append(Said(message_id, role, text, turn_id=result.turn_id))

    @rule(answer=texts, other=st.booleans())
    def answer_what_was_asked(self, answer, other) -> None:
        """The second half of the newest turn, by its id."""
        asked = next((one for one in reversed(self.truth.said[-3:]) if one.turn_id), None)
        if asked and asked.role == "user":
            ids = {one.id for one in self.truth.said}
            if f"{asked.turn_id}-answer" not in ids:
                self._write(asked.turn_id, "", None, answer, other)

    @rule(data=st.data(), other=st.booleans())
    def repeat_a_turn(self, data, other) -> None:
        before = len(self.truth.said)
        known = [(one, self.said_by(one.turn_id, "assistant")) for one in self.truth.said if one.role == "user"]
        known = [
            (one, answer) for one, answer in known if one.turn_id and answer and not self.touched & {one.id, answer.id}
        ]
        if not known:
            return
        query, answer = data.draw(st.sampled_from(known))
        self._write(query.turn_id, "", query.text, answer.text, other)
        assert len(self.truth.said) == before

    def said_by(self, turn_id: str | None, role: str) -> Said | None:
        return next((one for one in self.truth.said if one.turn_id == turn_id and one.role == role), None)

    @rule(
        batch=st.lists(
            st.tuples(st.sampled_from(list(Role)), st.sampled_from([*TEXTS, ""]), st.sampled_from(["", "Bob", "王姐"])),
            min_size=1,
            max_size=4,
        ),
        other=st.booleans(),
    )
    def add_messages(self, batch, other) -> None:
        said = [Said(self.new("m"), role.value, text, caption="" if text else "一张图") for role, text, _ in batch]
        names = [name for _, _, name in batch]
        messages = [
            Message(
                id=one.id,
                room_id=ROOM,
                sender_id=name or "x",
                sender_name=name,
                role=Role(one.role),
                text=one.text,
                metadata={"caption": one.caption} if one.caption else {},
            )
            for one, name in zip(said, names, strict=True)
        ]
        self.do(self.side(other).messages.add(messages))
        self.truth.said += [
            replace(one, name=name if one.role == "user" else "") for one, name in zip(said, names, strict=True)
        ]

    @rule(data=st.data(), text=texts)
    def edit(self, data, text) -> None:
        places = self.truth.there(0)
        if places:
            one = self.truth.said[data.draw(st.sampled_from(places[-6:])) - 1]
            self.do(self.here.messages.edit(ROOM, one.id, text=text))
            one.text = text
            self.touched.add(one.id)

    @rule(data=st.data())
    def delete(self, data) -> None:
        """Never the beginning of a turn that is covered in part: what is counted then is a matter of taste."""
        places = [place for place in self.truth.there(0) if place > self.truth.covered]
        if places:
            one = self.truth.said[data.draw(st.sampled_from(places[-6:])) - 1]
            self.do(self.here.messages.delete(ROOM, one.id))
            one.gone = True

    # Contexts and summaries

    @rule(query=queries, window=windows, recent=recents, threshold=thresholds)
    def ask(self, query, window, recent, threshold) -> None:
        """A context is taken, and kept for a summary that may come much later."""
        with suppress(BudgetTooSmall):
            context = self.do(self.here.sessions.query_context(ROOM, query, threshold, recent, window))
            new = self.truth.there(self.truth.covered)
            saw = new[-1] if new else self.truth.covered
            assert context.covers_through == self.id_at(saw)
            told = self.truth.told(threshold or 0.75, window)
            assert context.full_history == self.truth.text(self.truth.there(told))
            self.held = [*self.held[-3:], self.hold(context)]

    def hold(self, context: SessionContext) -> Held:
        """A context that `query_context` returned. The first that asks for a checkpoint is the one an untold summary is
        taken for; ten minutes later another is, if messages of it changed."""
        truth, now = self.truth, self.clock.monotonic()
        new = truth.there(truth.covered)
        saw = new[-1] if new else truth.covered
        held = Held(context, saw, truth.in_force, truth.boundary, truth.texts(saw), now)
        stale = self.first and now - self.first.at >= 600 and self.may_be_stale()
        if context.should_checkpoint_summary and (self.first is None or stale):
            self.first = held
        return held

    def id_at(self, arrival: int) -> str | None:
        new = self.truth.there(self.truth.covered)
        if new:
            return self.truth.said[arrival - 1].id
        return self.truth.checkpoint.covers_through if self.truth.checkpoint else None

    @precondition(lambda self: self.held)
    @rule(data=st.data(), says=st.sampled_from(["covers", "context", "token", "expected", "all"]), recent=recents)
    def checkpoint(self, data, says, recent) -> None:
        """A summary of any context that is still held, in force only where nobody was faster and nothing changed."""
        held = data.draw(st.sampled_from(self.held))
        covers = held.context.covers_through if says in ("covers", "expected", "all") else None
        context = {"context": held.context, "all": held.context, "token": held.context.checkpoint_token}.get(says)
        expected = held.context.checkpoint_id if says in ("expected", "all") else None
        if covers is None and context is None:
            return
        summary = self.new("summary ")
        call = self.here.sessions.checkpoint(ROOM, summary, recent, covers, context, expected)
        bound = context is not None or expected is not None
        overtaken = held.boundary != self.truth.boundary or (bound and held.standing != self.truth.in_force)
        changed = context is not None and held.texts != self.truth.texts(held.saw)
        covered, unsure = self.truth.covered, context is None and self.may_be_stale()
        try:
            made = self.do(call)
        except (Conflict, NotFound):
            gone = covers is not None and self.gone(covers)
            behind = covers is not None and held.saw < self.truth.covered
            assert overtaken or gone or behind or changed or unsure
            return
        except roomlore.InvalidInput:
            assert held.context.truncated
            assert covers is None
            return
        assert not overtaken
        assert not changed
        assert not unsure or made.covers_arrival <= covered
        assert (made.covers_arrival, made.coverage_assumed) == (held.saw, False)
        self._in_force(made, summary)

    def may_be_stale(self) -> bool:
        """Return True if a summary that names no context may be of one whose messages have changed since."""
        return self.first is not None and self.first.texts != self.truth.texts(self.first.saw)

    def gone(self, message_id: str) -> bool:
        return any(one.id == message_id and one.gone for one in self.truth.said)

    def _in_force(self, made: Checkpoint, summary: str) -> None:
        truth = self.truth
        assert truth.covered <= made.covers_arrival <= len(truth.said)
        assert made.summary == summary
        assert made.tokens == count([summary])[0]
        begun = [turn[0] for turn in truth.turns() if truth.covered < turn[0] <= made.covers_arrival]
        truth.turns_before += len(begun)
        assert made.turns == truth.turns_before
        before = truth.checkpoint.language if truth.checkpoint else None
        assert made.language == (before or truth.tongue_of_new() or language(summary))
        truth.checkpoint, truth.marks, self.first = made, truth.marks + 1, None

    @rule(query=queries, recent=recents, said=st.lists(texts, max_size=3))
    def ask_as_the_seed_does(self, query, recent, said) -> None:
        """A history is handed out, and turns are written and asked for while somebody summarises it."""
        context = self.do(self.here.sessions.query_context(ROOM, query, 0.0001, recent))
        held = self.hold(context)
        if context.should_checkpoint_summary:
            self.seeds.append(held)
        for text in said:
            self._write(None, "", text, text, other=False)
            self.hold(self.do(self.here.sessions.query_context(ROOM, text)))

    @precondition(lambda self: self.seeds)
    @rule(recent=recents)
    def summarise_as_the_seed_does(self, recent) -> None:
        """The summary comes at last, without a word about what it covers: it is taken for one of the first context that
        asked, whichever process returned that."""
        _, *self.seeds = self.seeds
        summary, first = self.new("seed "), self.first
        try:
            made = self.do(self.here.sessions.checkpoint(ROOM, summary, recent))
        except Conflict:
            assert self.truth.marks if first is None else self.may_be_stale()
            return
        except roomlore.InvalidInput:
            assert first.context.truncated if first else not self.truth.marks
            return
        assert first is not None
        assert not self.may_be_stale()
        assert (made.covers_arrival, made.coverage_assumed) == (first.saw, True)
        self._in_force(made, summary)

    @rule(data=st.data())
    def race(self, data) -> None:
        """Two summaries of one history: one wins, the other hears of it. Neither wins where both may be stale."""
        expected, new = self.truth.in_force, self.truth.there(self.truth.covered)
        if not new:
            return
        covers = self.truth.said[data.draw(st.sampled_from(new)) - 1].id
        names = [self.new("race "), self.new("race ")]

        async def both():
            sides = [self.here, self.there]
            calls = [
                side.sessions.checkpoint(ROOM, name, None, covers, None, expected)
                for side, name in zip(sides, names, strict=True)
            ]
            return await asyncio.gather(*calls, return_exceptions=True)

        refused = self.may_be_stale()
        results = self.do(both())
        won = [result for result in results if isinstance(result, Checkpoint)]
        lost = [result for result in results if isinstance(result, Conflict)]
        assert (len(won), len(lost)) == ((0, 2) if refused else (1, 1)), results
        if refused:
            return
        self._in_force(won[0], won[0].summary)
        assert won[0].summary in names

    @rule(bad=st.sampled_from(["unknown", "before", "stale", "blank"]))
    def fail_to_checkpoint(self, bad) -> None:
        before = self.do(self.plain.sessions.checkpoints(ROOM, limit=1))
        behind = [place for place in self.truth.there(0) if place <= self.truth.boundary]
        if bad == "unknown":
            call, error = self.here.sessions.checkpoint(ROOM, "s", covers_through="nobody said that"), NotFound
        elif bad == "stale":
            call, error = self.here.sessions.checkpoint(ROOM, "s", expected_checkpoint="not this one"), Conflict
        elif bad == "before" and behind:
            covers = self.truth.said[behind[-1] - 1].id
            call, error = self.here.sessions.checkpoint(ROOM, "s", covers_through=covers), Conflict
        else:
            call, error = self.here.sessions.checkpoint(ROOM, " \n"), roomlore.InvalidInput
        with pytest.raises(error):
            self.do(call)
        assert self.do(self.plain.sessions.checkpoints(ROOM, limit=1)) == before

    @rule()
    def let_it_summarise(self) -> None:
        new = self.truth.there(self.truth.covered)
        made = self.do(self.here.sessions.summarise(ROOM))
        if not new:
            assert made is None
            return
        assert made is not None
        assert made.covers_arrival == new[-1]
        assert self.model.calls[-1]["previous"] == (self.truth.checkpoint.summary if self.truth.checkpoint else "")
        self._in_force(made, made.summary)

    @rule(other=st.booleans())
    def reset(self, other) -> None:
        self.do(self.side(other).sessions.reset(ROOM))
        self.truth.boundary = len(self.truth.said)
        self.truth.checkpoint, self.truth.turns_before = None, 0
        self.truth.marks, self.first = self.truth.marks + 1, None

    @rule(name=st.sampled_from("abc"), value=st.sampled_from(["1", "二", None]), other=st.booleans())
    def patch_state(self, name, value, other) -> None:
        self.do(self.side(other).sessions.patch_state(ROOM, {"global_state": {"shared": {name: value}}}))
        self.truth.state.pop(name, None)
        if value is not None:
            self.truth.state[name] = value

    # What happens to the cache and the process

    @rule(what=st.sampled_from(["wipe", "down", "up", "rubbish", "remember", "older", "expired"]), data=st.data())
    def trouble_the_cache(self, what, data) -> None:
        self.clock.advance(2)
        kept = self.cache._kept
        if what == "wipe":
            self.cache.wipe()
        elif what in ("down", "up"):
            self.cache.down = what == "down"
        elif what == "rubbish":
            kept["default", ROOM] = (data.draw(st.sampled_from(RUBBISH)), 1e12)
        elif what == "remember":
            self.remembered = dict(kept)
        elif what == "older":
            kept.update({key: (text, 1e12) for key, (text, _) in self.remembered.items()})
        else:
            self.clock.advance(3_600)

    @rule()
    def restart(self) -> None:
        async def again() -> None:
            await self.stack.aclose()
            self.stack = AsyncExitStack()
            kept, self.cache = self.cache, InMemorySessionCache(self.clock)
            self.cache._kept = dict(self.remembered) if kept.down else dict(kept._kept)
            await self.open()

        self.do(again())

    # What must hold

    @invariant()
    def nothing_falls_in_the_gap(self) -> None:
        for query, window, recent in (("", 16_000, None), ("为什么 is it slow?", 60, 3), ("?", 30, 0)):
            answers = [self.answer(rig, query, window, recent) for rig in (self.there, self.plain)]
            assert answers[0] == answers[1], "the cache shows another conversation than the database"
            if answers[0] is None:
                assert count([query])[0] + count([self.head()])[0] > window
            else:
                self.check(answers[0], query, window, RECENT if recent is None else recent)

    def head(self) -> str:
        return self.truth.text([]) if self.truth.checkpoint else ""

    def answer(self, rig: Rig, query: str, window: int, recent: int | None) -> SessionContext | None:
        try:
            context = self.do(rig.sessions.query_context(ROOM, query, 0.5, recent, window))
        except BudgetTooSmall:
            return None
        self.hold(context)
        return context

    def check(self, context: SessionContext, query: str, window: int, recent: int) -> None:
        truth = self.truth
        turns = truth.turns()
        told = truth.told(0.5, window)
        open_at = next((n for n, turn in enumerate(turns) if turn[-1] > told), len(turns))
        wanted = turns[min(open_at, max(0, len(turns) - recent)) :]
        parts = [[place for place in turn if place <= truth.covered] for turn in wanted]
        parts += [[place for place in turn if place > truth.covered] for turn in wanted]
        parts = [part for part in parts if part]
        dropped = sum(truth.said[part[0] - 1].id not in context.message_ids for part in parts)
        shown = flat(parts[dropped:])
        asked = count([query])[0] if query else 0

        assert list(context.message_ids) == [truth.said[place - 1].id for place in shown]
        assert context.history == (truth.text(shown) if shown or truth.checkpoint else "")
        assert context.messages == self.chat(shown)
        assert context.estimated_tokens == asked + (count([context.history])[0] if context.history else 0) <= window
        assert context.token_ratio == context.estimated_tokens / window
        assert context.turns == sum(not set(turn).isdisjoint(shown) for turn in wanted)
        lost = not set(truth.there(truth.covered)) <= set(shown)
        few = sum(set(turn) <= set(shown) for turn in turns) < min(recent, len(turns))
        assert context.truncated == (lost or few)
        if dropped:
            one_more = truth.text(flat(parts[dropped - 1 :]))
            assert asked + (count([one_more])[0] if one_more else 0) > window, "what was dropped had room"
        assert context.should_checkpoint_summary == (context.token_ratio >= 0.5 or context.truncated)
        assert context.mode == ("SUMMARY_N" if truth.checkpoint else "FULL_HISTORY")
        assert context.checkpoint_id == truth.in_force
        assert context.coverage_assumed == (truth.checkpoint is not None and truth.checkpoint.coverage_assumed)
        self.check_session(context, turns)

    def chat(self, arrivals: list[int]):
        tongue, summary = self.truth.tongue(), self.truth.checkpoint.summary if self.truth.checkpoint else ""
        head = ({"role": "system", "content": HEADS[tongue] + neutral(summary)},) if summary else ()
        said = [self.truth.said[place - 1] for place in arrivals]
        roles = ["assistant" if one.role == "tool" else one.role for one in said]
        shown = [{"role": role, "content": one.shown} for role, one in zip(roles, said, strict=True) if one.shown]
        return (*head, *shown)

    def check_session(self, context: SessionContext, turns: list[list[int]]) -> None:
        value, truth = context.session, self.truth
        assert value.global_state.shared == truth.state
        assert value.message_context.summary == (truth.checkpoint.summary if truth.checkpoint else "")
        assert value.message_context.checkpoint_message_id == truth.in_force
        began = sum(turn[0] > truth.covered for turn in turns)
        assert value.flow_context.turn_count == truth.turns_before + began
        last = [truth.said[place - 1].shown for place in flat(turns[max(0, len(turns) - RECENT) :])]
        window = [text for text in last if text]
        assert [one["content"] for one in value.message_context.window_messages] == window


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that short conversations come to where long ones do."""
    monkeypatch.setattr(reading, "_PAGE", 3)
    monkeypatch.setattr(reading, "_KEPT_TURNS", 3)
    monkeypatch.setattr(session_service, "_INLINE_CHARACTERS", 1_000)


def test_nothing_falls_in_the_gap_whatever_happens(small_steps, sqlite_template):
    SessionMachine.template = sqlite_template
    run_state_machine_as_test(
        SessionMachine,
        settings=settings(
            max_examples=int(os.environ.get("ROOMLORE_MACHINE_EXAMPLES", "30")),
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
            phases=PHASES,
        ),
    )
