"""The load of `python -m bench session-load`, small: several processes, Redis killed, restarted and held still."""

from pathlib import Path
from types import ModuleType

import pytest

import roomlore
from bench_command import bench

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import session_checks

    return session_checks


def test_nothing_is_lost_and_no_error_reaches_a_caller_while_redis_comes_and_goes(sqlite_url: str) -> None:
    sizes = ("--conversations", "8", "--turns", "12", "--writers", "3", "--window", "1200", "--round", "0")
    printed = bench("session-load", *sizes, "--database", sqlite_url)
    assert "turns: 96 acknowledged, 96 found" in printed
    assert "errors that reached a caller: 0" in printed
    assert "Redis killed, " in printed
    assert "Redis paused, " in printed


async def test_the_checks_see_what_is_lost_changed_or_unknown(checks: ModuleType) -> None:
    async with roomlore.open("sqlite://", background=False) as lore:
        (query, answer), (asked, _) = checks.turns_of("a", 2)
        await lore.sessions.write_turn("a", "ann", "bot", query, answer, turn_id="turn-0")
        known = checks.Known("a", 2, ["turn-0"])
        assert (await checks.check(lore, lore, [known])).wrong == []
        known.acknowledged.append("turn-1")
        lost = await checks.check(lore, lore, [known])
        assert (lost.turns, lost.found) == (2, 1)
        assert "a: turn-1-answer was acknowledged and is lost" in lost.wrong
        await lore.sessions.write_turn("a", "ann", "bot", asked, "something else", turn_id="turn-1")
        await lore.sessions.checkpoint("a", "nobody knows of this one", covers_through="turn-0-answer")
        wrong = (await checks.check(lore, lore, [known])).wrong
        assert "a: turn-1-answer says something else" in wrong
        assert "a: 1 checkpoints are stored, 0 were acknowledged, or they differ" in wrong


async def test_the_checks_see_what_differs_with_redis(checks: ModuleType) -> None:
    async with (
        roomlore.open("sqlite://", background=False) as one,
        roomlore.open("sqlite://", background=False) as other,
    ):
        (query, answer), *_ = checks.turns_of("a", 1)
        for lore, agent in ((one, "bot"), (other, "another bot")):
            await lore.sessions.write_turn("a", "ann", agent, query, answer, turn_id="turn-0")
        wrong = (await checks.check(one, other, [checks.Known("a", 1, ["turn-0"])])).wrong
    assert "a: flow_context differs with Redis, first read" in wrong
