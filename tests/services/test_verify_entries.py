"""Every entry of logs that roomlore writes says what it did, and one that says something else is named, whichever it
is."""

import asyncio
from dataclasses import replace

import pytest

import roomlore
from reply_rig import reply_settings
from roomlore import Message
from roomlore.core.integrity import Fault, ScopeCheck
from roomlore.core.memory.memory import Action, Change, Scope
from roomlore.core.privacy import mark
from roomlore_testkit.model_server import ModelServer

FIRST = """\
{"action": "create", "statement": "大家在办公室开会", "evidence": ["c1"], "change_reason": "大家说的"}
{"action": "create", "statement": "The group drinks green tea", "evidence": ["c1"], "change_reason": "Ann said so"}
{"action": "create", "statement": "Bob brings the cakes", "evidence": ["c1"]}
{"action": "create", "statement": "They like to sing", "evidence": ["c1"]}"""
SECOND = """\
{"action": "update", "old_ids": ["m1", "m2"], "statement": "大家在办公室开会，喝 green tea", "change_reason": "一件事"}
{"action": "update", "old_ids": ["m3"], "statement": "Bob brings the cakes", "evidence": ["c1"], "change_reason": "Yes"}
{"action": "delete", "old_id": "m4", "change_reason": "no longer"}"""
SCOPE = "group:tea"


@pytest.fixture(scope="module")
def log() -> list[Change]:
    return asyncio.run(written())


async def written() -> list[Change]:
    """The log of a scope in which everything happened that can: it evolved, was changed by hand, taken back, brought
    back, strengthened, and a person was forgotten."""
    async with (
        ModelServer([FIRST, SECOND]) as model,
        roomlore.open("sqlite://", settings=reply_settings(model, evolve_model="chat"), background=False) as lore,
    ):
        memories = lore.memories
        await say(lore, "m1", "ann", "谁去喝茶？在办公室开会")
        first = await memories.evolve("tea", mode="llm")
        mine = await memories.add(SCOPE, "安娜养了一只叫豆豆的猫", sources=[roomlore.Source("tea", "m1")])
        mine = await memories.update(mine.memory_id, statement="安娜有一只叫豆豆的猫", reason="说得更好")
        await memories.update(mine.memory_id, statement="安娜有两只猫")
        await say(lore, "m2", "bob", "在外面, and I bring the cakes, as I always do on Fridays")
        second = await memories.evolve("tea", mode="llm")
        assert await memories.revert(second.evolution_id, "不对")
        assert await memories.revert(first.evolution_id, "none of it")
        await memories.strength(mine.memory_id, 0.25, "rarely said")
        await memories.share(mine.memory_id, with_="everyone")
        gone = await memories.delete(mine.memory_id, "错了")
        await memories.restore(gone.memory_id, "没错")
        await memories.restore(mine.memory_id)
        other = await memories.add(SCOPE, "Plays go on Mondays", sources=[roomlore.Source("tea", "m2")])
        await memories.delete(other.memory_id)
        await memories.restore(other.memory_id)
        both = [roomlore.Source("tea", name) for name in ("m1", "m2")]
        await memories.add(SCOPE, "Everybody likes the cakes", sources=both)
        await lore.privacy.forget("bob")
        assert (await lore.privacy.verify()).faults == ()
        return await entries(lore)


async def say(lore: roomlore.Lore, message_id: str, sender: str, text: str) -> None:
    await lore.messages.add([Message(id=message_id, room_id="tea", sender_id=sender, text=text)])


async def entries(lore: roomlore.Lore) -> list[Change]:
    async with lore.storage.reading(lore.tenant) as work:
        return await work.memories.changes(scope=SCOPE, after=0, limit=1000)


def checked(log: list[Change]) -> list[Fault]:
    """Return the faults of the log entries themselves."""
    check = ScopeCheck(SCOPE)
    for change in log:
        check.add_change(change)
    scope = Scope(tenant="t", scope=SCOPE, changes=len(log), created_at=log[0].at)
    return [fault for fault in check.finish(scope) if fault.check == "log entries"]


def instead(log: list[Change], change: Change) -> list[Change]:
    return [change if one.number == change.number else one for one in log]


def test_everything_happened_and_every_entry_says_so(log):
    assert {one.action for one in log} == set(Action)
    assert any(one.old_statement == mark(one.old_statement or "") for one in log)
    assert checked(log) == []


def test_any_other_action_of_any_entry_is_named(log):
    for change in log:
        for action in set(Action) - {change.action}:
            faults = checked(instead(log, replace(change, action=action)))
            assert any(f"change {change.number}" in fault.where for fault in faults), (change, action)


def test_any_other_old_statement_is_named_unless_forgetting_took_it(log):
    found = 0
    for change in log:
        for said in {"茶", "", None} - {change.old_statement}:
            faults = checked(instead(log, replace(change, old_statement=said)))
            redacted = mark("a") in (change.old_statement or "") or mark("茶") in (change.old_statement or "")
            assert redacted or [fault.found for fault in faults] == ["What it says was said before is not what was."]
            found += bool(faults)
    assert found > len(log)


def test_another_reason_is_named_where_the_version_keeps_it_too(log):
    named = {change.action for change in log if checked(instead(log, replace(change, reason="别的")))}
    assert named == {Action.CREATE, Action.UPDATE, Action.MERGE, Action.DELETE, Action.REVERT}
    kept_once = {Action.STRENGTH, Action.RESTORE, Action.REDACT}
    assert not any(checked(instead(log, replace(one, reason="别的"))) for one in log if one.action in kept_once)
    lost = {change.action for change in log if checked(instead(log, replace(change, reason="")))}
    assert lost >= {Action.CREATE, Action.UPDATE, Action.MERGE, Action.DELETE}


def test_what_follows_a_gap_is_not_judged(log):
    assert checked([one for one in log if one.number != 2]) == []
