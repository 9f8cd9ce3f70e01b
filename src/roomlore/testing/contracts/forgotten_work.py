"""What forgetting durable work must do. Inherit it where `DurableWorkContract` can be."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from roomlore.ports.durable import Dropped, Json, Steps
from roomlore.testing.contracts.durable import Make, ended, hand_in, opened, until


def _said(secret: str) -> Callable[[str], bool]:
    return lambda text: secret in text


async def _gives(steps: Steps, given: Json) -> None:
    async def answer() -> Json:
        return {"answer": [given.get("gives", "")]}

    await steps.once("answer", answer)
    await steps.report(str(given.get("reports", "")))


class ForgottenWorkContract:
    @pytest.mark.parametrize("secret", ["blue tin", "蓝色的铁盒"], ids=["en", "zh"])
    @pytest.mark.parametrize("where", ["says", "gives", "reports"])
    async def test_done_work_that_tells_is_forgotten(self, make: Make, secret: str, where: str) -> None:
        async with opened(make(), does=_gives) as work:
            await hand_in(work, "a:1", **{where: f"in the {secret}!"})
            await hand_in(work, "a:2", **{where: "nothing"})
            await hand_in(work, "b:3", **{where: f"in the {secret}!"})
            for work_id in ("a:1", "a:2", "b:3"):
                await ended(work, work_id)
            assert await work.drop(prefix="a:", tells=_said(secret)) == Dropped(1)
            assert await work.find("a:1") is None
            assert {one.work_id for one in await work.page()} == {"a:2", "b:3"}
            assert await work.drop(prefix="a:", tells=_said(secret)) == Dropped(0)
            assert await hand_in(work, "a:1")
            await ended(work, "a:1")

    async def test_work_that_waits_is_never_begun(self, make: Make) -> None:
        begun: list[str] = []

        async def does(_steps: Steps, given: Json) -> None:
            begun.append(str(given["says"]))

        async with opened(make(), working=False, does=does) as work:
            await hand_in(work, "a:1", says="secret")
            await hand_in(work, "a:2", says="plain")
            assert await work.drop(prefix="a:", tells=_said("secret")) == Dropped(1)
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
            assert await work.drop(prefix="a:", tells=_said("secret")) == Dropped(0, ("a:1",))
            go_on.set()
            assert (await ended(work, "a:1")).status == "done"
            assert await work.drop(prefix="a:", tells=_said("secret")) == Dropped(1)

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
            assert [one.work_id for one in await work.page()] == ["failed"]
            await work.compact()
            assert [one.work_id for one in await work.page()] == ["failed"]
