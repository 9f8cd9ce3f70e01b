"""Whatever a model answers, evolution after evolution: the guards hold, and the log tells the whole story."""

import asyncio
from contextlib import AsyncExitStack
from itertools import count
from math import floor
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evolution_rig import CHINESE, ENGLISH, active, lines, mark, opened, remember, talk
from roomlore import Lore
from roomlore.core.evolution.prompt import comparison_form
from roomlore.core.memory import log
from roomlore.core.memory.memory import Action
from roomlore_testkit.model_server import ModelServer

MOST, SHARE = 6, 0.3
STATEMENTS = st.sampled_from([*CHINESE.known, *CHINESE.new, *ENGLISH.known[:2], "", "x" * 500, CHINESE.known[0] + "。"])
HANDLES = st.sampled_from(["m1", "m2", "M3", "m4", "m5", "m6", "m7", "m99", "ｍ1", "c1", "group:g"])
ROOMS = count()


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(fields)


EVIDENCE = st.lists(st.sampled_from(["c1", "c2", "c9", "m1"]), max_size=3)
OPERATIONS = st.one_of(
    some(action=st.just("keep"), old_id=HANDLES),
    some(action=st.just("delete"), old_id=HANDLES, change_reason=st.just("过时")),
    some(action=st.just("create"), statement=STATEMENTS, evidence=EVIDENCE),
    some(action=st.just("update"), old_id=HANDLES, statement=STATEMENTS, evidence=EVIDENCE),
    some(action=st.just("update"), old_ids=st.lists(HANDLES, min_size=1, max_size=4), statement=STATEMENTS),
    some(action=st.sampled_from(["destroy", "", None])),
)
ANSWERS = st.lists(OPERATIONS, min_size=1, max_size=12).map(lambda operations: lines(*operations))


async def evolves(lore: Lore, server: ModelServer, answers: list[str]) -> None:
    room = f"g{next(ROOMS)}"
    scope = f"group:{room}"
    await remember(lore, CHINESE.known[:4], scope=scope)
    for turn, answer in enumerate(answers):
        before, server.default = await active(lore, scope), answer
        await talk(lore, CHINESE, range(3 * turn, 3 * turn + 3), room=room)
        result = await lore.memories.evolve(room)
        after = await active(lore, scope)
        assert result.stats.deleted <= max(1, floor(SHARE * len(before)))
        assert len(after) <= max(MOST, len(before))
        assert len(set(map(comparison_form, after))) == len(after)
        assert (await mark(lore, room) or 0) + result.remaining == 3 * turn + 3
        assert await lore.memories.evolved(result.evolution_id) == result
        await tells_the_whole_story(lore, scope, result.changes)


async def tells_the_whole_story(lore: Lore, scope: str, latest: tuple[Any, ...]) -> None:
    changes = await lore.memories.changes(scope, limit=1000)
    assert [change.number for change in changes] == list(range(1, len(changes) + 1))
    assert tuple(changes[len(changes) - len(latest) :]) == latest
    assert all(change.action in (Action.UPDATE, Action.MERGE) for change in changes if change.closes)
    stored = await lore.memories.page(scope, limit=1000)
    assert {one.memory_id: one for one in log.active(log.replay(changes))} == {one.memory_id: one for one in stored}


def test_any_answers_leave_a_sound_memory():
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def begin() -> tuple[Lore, ModelServer]:
            server = await stack.enter_async_context(ModelServer())
            return await stack.enter_async_context(
                opened(server, most_memories=MOST, evolve_delete_share=SHARE, evolve_schedule="")
            ), server

        lore, server = runner.run(begin())

        @settings(max_examples=12)
        @given(st.lists(ANSWERS, min_size=1, max_size=3))
        def check(answers: list[str]) -> None:
            runner.run(evolves(lore, server, answers))

        try:
            check()
        finally:
            runner.run(stack.aclose())
