"""The contract of durable work. Inherit it with a fixture `make` that gives new objects over one shared, empty store:
work that one enqueues, the others see. Their pauses between attempts must be short."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from structlog.contextvars import get_contextvars

from roomlore.core.errors import InvalidInput, ModelUnavailable, StorageUnavailable
from roomlore.ports.durable import Dropped, DurableWork, Json, Steps, Work, WorkState

Make = Callable[[], DurableWork]
LONG = 60.0
_ODD_TEXTS = ["花生过敏 🥜 e\u0301", "a\nb\\u0000", "'; drop table", "{}", "x" * 900]


@asynccontextmanager
async def opened(work: DurableWork, *, working: bool = True, **works: Work) -> AsyncIterator[DurableWork]:
    for name, does in works.items():
        work.define(name, does)
    await work.open(working=working)
    try:
        yield work
    finally:
        await work.close()


async def hand_in(
    work: DurableWork, work_id: str = "w", *, name: str = "does", partition: str = "", **given: object
) -> bool:
    return await work.start(name, work_id=work_id, partition=partition or work_id, arguments=given)


async def ended(work: DurableWork, work_id: str = "w") -> WorkState:
    state = await work.wait(work_id, seconds=LONG)
    assert state is not None
    assert state.status in ("done", "failed", "cancelled")
    return state


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not condition():  # noqa: ASYNC110 - what is waited for is no event of ours
            await asyncio.sleep(0.01)


class Diary:
    """Count the work done, and fail or hang on request."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.fails: dict[str, int] = {}
        self.held: dict[str, asyncio.Event] = {}

    def hold(self, name: str) -> asyncio.Event:
        return self.held.setdefault(name, asyncio.Event())

    def step(self, name: str) -> Callable[[], Awaitable[Json]]:
        async def do() -> Json:
            self.done[name] += 1
            if name in self.held:
                await self.held[name].wait()
            if self.done[name] <= self.fails.get(name, 0):
                raise ValueError("what somebody said")
            return {"by": name, "time": self.done[name]}

        return do

    def work(self, *names: str) -> Work:
        async def does(steps: Steps, arguments: Json) -> None:
            for name in names:
                await steps.once(name, self.step(name))

        return does


async def nothing(steps: Steps, arguments: Json) -> None:
    """Do nothing."""


class DurableWorkContract:
    @pytest.fixture
    def work(self, make: Make) -> DurableWork:
        return make()

    @pytest.fixture
    def diary(self) -> Diary:
        return Diary()

    async def test_work_is_done(self, work: DurableWork, diary: Diary) -> None:
        seen: list[Json] = []

        async def does(steps: Steps, arguments: Json) -> None:
            seen.append(arguments)
            seen.append(await steps.once("a", diary.step("a")))

        async with opened(work, does=does):
            assert await hand_in(work, "w", partition="room", number=7, text=_ODD_TEXTS[0])
            state = await ended(work)
        assert seen == [{"number": 7, "text": _ODD_TEXTS[0]}, {"by": "a", "time": 1}]
        assert (state.work_id, state.name, state.partition) == ("w", "does", "room")
        assert (state.status, state.attempts, state.error) == ("done", 1, "")
        assert state.arguments == seen[0]
        assert state.created_at.utcoffset() == timedelta(0)
        assert state.created_at <= state.updated_at

    async def test_it_begins_within_about_half_a_second(self, work: DurableWork) -> None:
        """Test the quickest of a few, with room for a busy machine."""
        now, took = asyncio.get_running_loop().time, list[float]()

        async def does(steps: Steps, arguments: Json) -> None:
            took.append(now() - arguments["handed_in"])

        async with opened(work, does=does):
            for work_id in ("first", "second", "third", "fourth", "fifth"):
                await hand_in(work, work_id, handed_in=now())
                await ended(work, work_id)
        assert min(took) < 2

    async def test_it_runs_on_the_loop_that_opened_it(self, work: DurableWork) -> None:
        loops: list[asyncio.AbstractEventLoop] = []

        async def step() -> Json:
            loops.append(asyncio.get_running_loop())
            return {}

        async def does(steps: Steps, arguments: Json) -> None:
            loops.append(asyncio.get_running_loop())
            await steps.once("a", step)

        async with opened(work, does=does):
            await hand_in(work)
            await ended(work)
        assert loops == [asyncio.get_running_loop()] * 2

    async def test_an_id_is_taken_once(self, work: DurableWork, diary: Diary) -> None:
        async with opened(work, does=diary.work("a"), other=nothing):
            answers = await asyncio.gather(*(hand_in(work) for _ in range(5)))
            assert sorted(answers) == [False] * 4 + [True]
            await ended(work)
            assert not await hand_in(work)
            assert not await hand_in(work, name="other", partition="elsewhere")
        assert diary.done["a"] == 1

    async def test_work_of_one_partition_is_done_one_at_a_time(self, work: DurableWork) -> None:
        running: Counter[str] = Counter()
        most: Counter[str] = Counter()

        async def does(steps: Steps, arguments: Json) -> None:
            room = arguments["room"]
            running[room] += 1
            running["all"] += 1
            for key in (room, "all"):
                most[key] = max(most[key], running[key])
            await asyncio.sleep(0.1)
            running[room] -= 1
            running["all"] -= 1

        async with opened(work, does=does):
            for number in range(9):
                await hand_in(work, f"w{number}", partition=f"room{number % 3}", room=f"room{number % 3}")
            for number in range(9):
                assert (await ended(work, f"w{number}")).status == "done"
        assert [most[f"room{number}"] for number in range(3)] == [1, 1, 1]
        assert most["all"] > 1

    async def test_an_attempt_that_fails_is_followed_by_others(self, work: DurableWork, diary: Diary) -> None:
        diary.fails = {"b": 2}
        async with opened(work, does=diary.work("a", "b", "c")):
            await hand_in(work)
            state = await ended(work)
        assert (state.status, state.attempts, state.error) == ("done", 3, "")
        assert diary.done == {"a": 1, "b": 3, "c": 1}

    async def test_three_attempts_and_it_has_failed(self, work: DurableWork, diary: Diary) -> None:
        diary.fails = {"b": 99}
        async with opened(work, does=diary.work("a", "b")):
            await hand_in(work)
            state = await ended(work)
            assert (state.status, state.attempts) == ("failed", 3)
            assert state.error == "ValueError", "the text of an error may quote a message"
            await asyncio.sleep(0.5)
        assert diary.done == {"a": 1, "b": 3}

    async def test_an_error_outside_every_step_counts_too(self, work: DurableWork, diary: Diary) -> None:
        async def does(steps: Steps, arguments: Json) -> None:
            await steps.once("a", diary.step("a"))
            diary.done["between"] += 1
            raise ModelUnavailable("No provider answers; try again.")

        async with opened(work, does=does):
            await hand_in(work)
            assert (await ended(work)).error == "ModelUnavailable: No provider answers; try again."
        assert diary.done == {"a": 1, "between": 3}

    async def test_a_steps_error_is_its_own(self, work: DurableWork, diary: Diary) -> None:
        """Work may catch it and take another path."""
        diary.fails = {"a": 99}

        async def does(steps: Steps, arguments: Json) -> None:
            try:
                await steps.once("a", diary.step("a"))
            except ValueError as error:
                diary.done[str(error)] += 1
                await steps.once("instead", diary.step("instead"))

        async with opened(work, does=does):
            await hand_in(work)
            assert (await ended(work)).status == "done"
        assert diary.done == {"a": 1, "what somebody said": 1, "instead": 1}

    async def test_a_step_that_is_too_late_is_a_failed_one(self, work: DurableWork, diary: Diary) -> None:
        diary.hold("slow")

        async def does(steps: Steps, arguments: Json) -> None:
            async def slow() -> Json:
                limit.reschedule(asyncio.get_running_loop().time())
                return await diary.step("slow")()

            try:
                async with asyncio.timeout(None) as limit:
                    await steps.once("slow", slow)
            except TimeoutError:
                await steps.once("instead", diary.step("instead"))

        async with opened(work, does=does):
            await hand_in(work)
            assert (await ended(work)).status == "done"
        assert diary.done == {"slow": 1, "instead": 1}

    async def test_a_step_may_be_too_late_before_it_begins(self, work: DurableWork, diary: Diary) -> None:
        diary.hold("slow")

        async def does(steps: Steps, arguments: Json) -> None:
            try:
                async with asyncio.timeout(0):
                    await steps.once("slow", diary.step("slow"))
            except TimeoutError:
                await steps.once("instead", diary.step("instead"))

        async with opened(work, does=does):
            await hand_in(work)
            assert (await ended(work)).status == "done"
        assert diary.done["instead"] == 1

    async def test_retried_it_keeps_the_steps_that_were_finished(self, work: DurableWork, diary: Diary) -> None:
        diary.fails = {"b": 4}
        async with opened(work, does=diary.work("a", "b", "c")):
            await hand_in(work)
            assert (await ended(work)).status == "failed"
            assert await work.retry("w")
            state = await ended(work)
        assert (state.status, state.attempts, state.error) == ("done", 5, "")
        assert diary.done == {"a": 1, "b": 5, "c": 1}

    async def test_retried_it_has_three_attempts_again(self, work: DurableWork, diary: Diary) -> None:
        diary.fails = {"b": 99}
        async with opened(work, does=diary.work("a", "b")):
            await hand_in(work)
            await ended(work)
            assert [await work.retry("w"), await work.retry("w")] == [True, False]
            state = await ended(work)
        assert (state.status, state.attempts) == ("failed", 6)
        assert diary.done == {"a": 1, "b": 6}

    async def test_only_what_failed_is_retried(self, work: DurableWork, diary: Diary) -> None:
        async with opened(work, does=diary.work("a")):
            assert not await work.retry("nobody")
            await hand_in(work)
            await ended(work)
            assert not await work.retry("w")
        assert diary.done["a"] == 1

    async def test_closing_lets_the_running_step_end_and_opening_goes_on(self, work: DurableWork, diary: Diary) -> None:
        held = diary.hold("b")
        async with opened(work, does=diary.work("a", "b", "c")):
            await hand_in(work)
            await until(lambda: diary.done["b"] == 1)
            asyncio.get_running_loop().call_later(0.2, held.set)
        assert diary.done == {"a": 1, "b": 1}
        async with opened(work):
            state = await ended(work)
        assert (state.status, state.error) == ("done", "")
        assert diary.done == {"a": 1, "b": 1, "c": 1}

    async def test_closing_breaks_off_what_is_no_step(self, work: DurableWork, diary: Diary) -> None:
        waiting = asyncio.Event()

        async def does(steps: Steps, arguments: Json) -> None:
            await steps.once("a", diary.step("a"))
            diary.done["body"] += 1
            await waiting.wait()

        async with asyncio.timeout(LONG), opened(work, does=does):
            await hand_in(work)
            await until(lambda: diary.done["body"] == 1)
        waiting.set()
        async with opened(work):
            assert (await ended(work)).status == "done"
        assert diary.done == {"a": 1, "body": 2}

    async def test_closed_before_any_of_it_runs_it_is_done_when_opened_again(
        self, work: DurableWork, diary: Diary
    ) -> None:
        async with asyncio.timeout(LONG):
            async with opened(work, does=diary.work("a")):
                for name in ("one", "two", "three"):
                    await hand_in(work, name, partition="room")
            async with opened(work):
                assert [(await ended(work, name)).status for name in ("one", "two", "three")] == ["done"] * 3

    async def test_who_does_no_work_hands_it_in_and_looks(self, work: DurableWork, diary: Diary) -> None:
        async with opened(work, working=False, does=diary.work("a")):
            assert await hand_in(work)
            state = await work.wait("w", seconds=0.3)
            assert state is not None
            assert (state.status, state.attempts) == ("waiting", 0)
        assert not diary.done
        async with opened(work):
            assert (await ended(work)).status == "done"

    async def test_progress_is_seen(self, work: DurableWork, diary: Diary) -> None:
        held = diary.hold("b")
        texts = [*_ODD_TEXTS, "half a pair \ud83e and a NUL \x00"]

        async def does(steps: Steps, arguments: Json) -> None:
            for text in texts:
                await steps.report(text)
                await steps.once("b", diary.step("b"))

        async with opened(work, does=does):
            await hand_in(work)
            await until(lambda: diary.done["b"] == 1)
            state = await work.find("w")
            assert state is not None
            assert (state.status, state.progress) == ("running", texts[0])
            held.set()
            assert (await ended(work)).progress.startswith("half a pair ")

    async def test_work_is_listed_the_newest_first(self, work: DurableWork, diary: Diary) -> None:
        diary.fails = {"bad": 99}
        async with opened(work, does=diary.work("a"), fails=diary.work("bad"), other=nothing):
            await hand_in(work, "old")
            await asyncio.sleep(1.1)
            await hand_in(work, "bad", name="fails")
            await hand_in(work, "other", name="other")
            for work_id in ("old", "bad", "other"):
                await ended(work, work_id)
            assert [state.work_id for state in await work.page()][-1] == "old"
            assert [state.work_id for state in await work.page(status="failed")] == ["bad"]
            assert {state.work_id for state in await work.page(names=["does", "other"])} == {"old", "other"}
            assert {state.work_id for state in await work.page(prefix="o")} == {"old", "other"}
            assert await work.page(prefix="o", status="failed") == await work.page(prefix="%") == []
            assert await work.page(prefix="O") == await work.page(names=["nobody"]) == []
            assert [state.work_id for state in await work.page(limit=5, offset=2)] == ["old"]
            assert len(await work.page(limit=2)) == 2
            assert await work.page(limit=0) == await work.page(status="waiting") == []

    async def test_what_nobody_handed_in_is_not_there(self, work: DurableWork) -> None:
        async with opened(work):
            assert await work.find("nobody") is None
            assert await work.wait("nobody", seconds=0) is None
            assert await work.page() == []

    @pytest.mark.parametrize("work_id", ["", "  "])
    async def test_an_id_has_letters(self, work: DurableWork, work_id: str) -> None:
        async with opened(work, does=nothing):
            with pytest.raises(InvalidInput):
                await hand_in(work, work_id, partition="room")

    async def test_what_is_logged_meanwhile_has_its_id(self, work: DurableWork) -> None:
        seen: list[Json] = []

        async def note() -> Json:
            return {"work_id": get_contextvars().get("work_id")}

        async def does(steps: Steps, _: Json) -> None:
            seen.extend((await note(), await steps.once("one", note)))

        async with opened(work, does=does):
            await hand_in(work, "extraction:茶")
            await ended(work, "extraction:茶")
        assert seen == [{"work_id": "extraction:茶"}] * 2

    async def test_what_is_given_is_plain(self, work: DurableWork) -> None:
        async def gives_an_object() -> Json:
            return {"who": object()}

        async def does(steps: Steps, arguments: Json) -> None:
            await steps.once("a", gives_an_object)

        async with opened(work, does=does):
            with pytest.raises(InvalidInput):
                await hand_in(work, who=object())
            assert await work.page() == []
            await hand_in(work, "w")
            assert (await ended(work)).error.startswith("InvalidInput: What a step gives must be plain JSON")

    async def test_steps_give_what_they_gave_as_json(self, work: DurableWork) -> None:
        given: list[Json] = []

        async def step() -> Json:
            values: dict[Any, Any] = {"pair": (1, 2), "text": _ODD_TEXTS[1], 3: "\ud83e"}
            return values

        async def does(steps: Steps, arguments: Json) -> None:
            given.append(await steps.once("a", step))
            if len(given) == 1:
                raise ValueError

        async with opened(work, does=does):
            await hand_in(work)
            await ended(work)
        assert given == [{"pair": [1, 2], "text": _ODD_TEXTS[1], "3": "\ud83e"}] * 2

    async def test_closed_it_says_so(self, work: DurableWork) -> None:
        for _ in range(2):
            async with opened(work):
                pass
            await work.close()
            for asking in (work.find("w"), hand_in(work)):
                with pytest.raises(StorageUnavailable):
                    await asking


def _tells(secret: str) -> Callable[[str], bool]:
    return lambda text: secret in text


async def _gives(steps: Steps, given: Json) -> None:
    async def answer() -> Json:
        return {"answer": [given.get("gives", "")]}

    await steps.once("answer", answer)
    await steps.report(str(given.get("reports", "")))


class ForgottenWorkContract:
    @pytest.mark.parametrize("gives", [{"left": ["花生 🥜", 1, None]}, None], ids=["a result", "none"])
    async def test_what_work_returns_is_kept_with_it_until_it_is_dropped(self, make: Make, gives: Json | None) -> None:
        async def returns(_steps: Steps, _given: Json) -> Json | None:
            return gives

        async with opened(make(), does=returns) as work:
            await hand_in(work, "a:1")
            assert (await ended(work, "a:1")).result == gives
            assert await work.drop(prefix="a:", tells=_tells("花生")) == Dropped(0 if gives is None else 1)

    @pytest.mark.parametrize("secret", ["blue tin", "蓝色的铁盒"], ids=["en", "zh"])
    @pytest.mark.parametrize("where", ["says", "gives", "reports"])
    async def test_done_work_that_tells_is_forgotten(self, make: Make, secret: str, where: str) -> None:
        async with opened(make(), does=_gives) as work:
            await hand_in(work, "a:1", **{where: f"in the {secret}!"})
            await hand_in(work, "a:2", **{where: "nothing"})
            await hand_in(work, "b:3", **{where: f"in the {secret}!"})
            for work_id in ("a:1", "a:2", "b:3"):
                await ended(work, work_id)
            assert await work.drop(prefix="a:", tells=_tells(secret)) == Dropped(1)
            assert await work.find("a:1") is None
            assert {done.work_id for done in await work.page()} == {"a:2", "b:3"}
            assert await work.drop(prefix="a:", tells=_tells(secret)) == Dropped(0)
            assert await hand_in(work, "a:1")
            await ended(work, "a:1")

    async def test_work_that_waits_is_never_begun(self, make: Make) -> None:
        begun: list[str] = []

        async def does(_steps: Steps, given: Json) -> None:
            begun.append(str(given["says"]))

        async with opened(make(), working=False, does=does) as work:
            await hand_in(work, "a:1", says="secret")
            await hand_in(work, "a:2", says="plain")
            assert await work.drop(prefix="a:", tells=_tells("secret")) == Dropped(1)
            await work.close()
            await work.open(working=True)
            await ended(work, "a:2")
        assert begun == ["plain"]

    async def test_work_that_runs_stays_and_is_named(self, make: Make) -> None:
        go_on, running = asyncio.Event(), asyncio.Event()

        async def waits(_steps: Steps, _given: Json) -> None:
            running.set()
            await go_on.wait()

        async with opened(make(), does=waits) as work:
            await hand_in(work, "a:1", says="secret")
            await until(running.is_set)
            assert await work.drop(prefix="a:", tells=_tells("secret")) == Dropped(0, ("a:1",))
            go_on.set()
            assert (await ended(work, "a:1")).status == "done"
            assert await work.drop(prefix="a:", tells=_tells("secret")) == Dropped(1)

    async def test_done_work_expires_and_failed_work_stays(self, make: Make) -> None:
        async def fails(_steps: Steps, _given: Json) -> None:
            raise RuntimeError

        async with opened(make(), does=_gives, fails=fails) as work:
            await hand_in(work, "done")
            await hand_in(work, "failed", name="fails")
            done = await ended(work, "done")
            assert done.status == "done"
            assert (await ended(work, "failed")).status == "failed"
            assert await work.expire(before=done.updated_at - timedelta(days=1)) == 0
            assert await work.expire(before=done.updated_at + timedelta(days=1)) == 1
            assert [work_done.work_id for work_done in await work.page()] == ["failed"]
            await work.compact()
            assert [work_done.work_id for work_done in await work.page()] == ["failed"]
