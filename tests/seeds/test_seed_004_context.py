"""Seed 004, sections 3.3, 5.1 and 10.1: building a context, and what happens where that fails."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from group_chat import GROUP, TALK, group, ids, said
from rig import command, served, strategy

import roomlore
from roomlore import StorageUnavailable, TimedOut

WINDOW = [f"m{number}" for number in range(6, 16)]
LONG_TALK = [said(number, f"u{number}", f"第{number}句") for number in range(1, 17)]


async def broken(*_more) -> None:
    raise KeyError("评分失败")


async def slow(*_more) -> None:
    await asyncio.Event().wait()


BROKEN, SLOW = {"broken": strategy(broken)}, {"slow": strategy(slow)}


def hide_tables(path: Path, like: str = "%") -> None:
    """What a damaged database is like: tables are not where they were."""
    with closing(sqlite3.connect(path)) as database:
        named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE ? AND name NOT LIKE 'sqlite_%'"
        found = [name for (name,) in database.execute(f"{named} AND sql NOT LIKE '%VIRTUAL%'", [like])]
        database.execute("PRAGMA legacy_alter_table = ON")
        for name in found:
            database.execute(f'ALTER TABLE "{name}" RENAME TO "hidden_{name}"')
    assert found


# 3.3, 5.1


async def test_a_context_is_built_for_the_last_message_over_http():
    async with group(*TALK) as lore, served(lore) as http:
        body = {"chat_id": GROUP, "message_id": "m7", "max_messages": 3}
        answer = (await http.post("/context", json=body)).json()
    assert [one["message"]["id"] for one in answer["messages"]] == ["m1", "m3", "m5"]
    assert (answer["message_id"], answer["room_id"], answer["degraded"]) == ("m7", GROUP, None)


async def test_a_context_is_given_as_role_and_content_for_a_model():
    async with group(*TALK) as lore:
        context = await lore.context.build(GROUP, "m7", max_messages=3)
    rendered = context.to_messages(query=TALK[-1])
    assert {one["role"] for one in rendered} == {"user"}
    text = "\n".join(one["content"] for one in rendered)
    assert next(line for line in text.splitlines() if "ann" in line) == "[09:01] ann: 怎么重置路由器的密码？"
    assert text.endswith("[09:07] bob (回复 ann 09:05): 密码在路由器背面的贴纸上")


async def test_with_intelligent_memory_off_the_last_ten_messages_are_the_context(monkeypatch):
    monkeypatch.setenv("MEMORY_ENABLE_INTELLIGENT_MEMORY", "false")
    async with roomlore.open("sqlite://") as lore:
        await lore.messages.add(LONG_TALK)
        context = await lore.context.build(GROUP, "m16")
    assert (ids(context), context.strategy, context.degraded) == (WINDOW, "recent", None)


async def test_what_it_costs_is_told_beside_the_plain_window():
    async with group(*TALK) as lore:
        context = await lore.context.build(GROUP, "m7", max_messages=3)
        tokens = {one.id: one.tokens for one in await lore.messages.page(GROUP)}
    assert context.tokens == tokens["m1"] + tokens["m3"] + tokens["m5"]
    assert context.window_tokens == sum(tokens[f"m{number}"] for number in range(1, 7))


# 10.1 智能记忆构建失败


async def test_where_building_fails_the_plain_window_is_given_and_says_so():
    async with group(*LONG_TALK, strategies=BROKEN) as lore:
        context = await lore.context.build(GROUP, "m16", strategy="broken")
    assert (ids(context), context.strategy) == (WINDOW, "recent")
    assert context.degraded.startswith("recent messages only (")


async def test_where_building_fails_the_log_and_the_metrics_say_so(caplog):
    async with group(*LONG_TALK, strategies=BROKEN) as lore:
        await lore.context.build(GROUP, "m16", strategy="broken")
        assert (lore.metrics()["degradation_rate"], lore.metrics()["error_rate"]) == (1.0, 1.0)
    told = [one for one in caplog.records if one.getMessage() == "context degraded"]
    assert [one.levelname for one in told] == ["WARNING"]


async def test_with_fallback_off_the_error_is_the_callers(monkeypatch):
    monkeypatch.setenv("MEMORY_FALLBACK_ON_ERROR", "false")
    async with roomlore.open("sqlite://", strategies=BROKEN) as lore:
        await lore.messages.add(LONG_TALK)
        with pytest.raises(KeyError, match="评分失败"):
            await lore.context.build(GROUP, "m16", strategy="broken")


async def test_a_message_that_is_not_there_is_an_error_and_no_fallback():
    async with group(*TALK) as lore, served(lore) as http:
        answer = await http.post("/context", json={"group_id": GROUP, "message_id": "m99"})
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:roomlore:not-found")


# 10.1 性能超时


async def test_a_slow_build_is_cut_off_and_the_plain_window_given():
    async with group(*LONG_TALK, strategies=SLOW, context_build_timeout_seconds=0.05) as lore:
        context = await asyncio.wait_for(lore.context.build(GROUP, "m16", strategy="slow"), 30)
    assert (ids(context), context.degraded) == (WINDOW, "recent messages only (timeout)")
    assert context.build_ms >= 50


async def test_with_fallback_off_a_time_out_is_a_503():
    async with group(*LONG_TALK, strategies=SLOW, context_build_timeout_seconds=0.05, fallback_on_error=False) as lore:
        await lore.rooms.configure(GROUP, {"strategy": "slow"})
        with pytest.raises(TimedOut, match="context_build_timeout_seconds"):
            await lore.context.build(GROUP, "m16")
        async with served(lore) as http:
            answer = await http.post("/context", json={"group_id": GROUP, "message_id": "m16"})
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:roomlore:unavailable")


# 10.1 数据库不可用


async def test_with_the_database_down_the_context_is_empty_and_says_so(tmp_path):
    path = tmp_path / "chat.db"
    async with group(*TALK, url=f"sqlite:///{path}", room_cache_mb=0) as lore:
        await asyncio.to_thread(hide_tables, path)
        context = await lore.context.build(GROUP, "m7")
    assert (context.messages, context.message_id) == ((), "m7")
    assert context.degraded


async def test_with_fallback_off_a_database_that_is_down_is_an_error(tmp_path):
    path = tmp_path / "chat.db"
    async with group(*TALK, url=f"sqlite:///{path}", room_cache_mb=0, fallback_on_error=False) as lore:
        await asyncio.to_thread(hide_tables, path)
        with pytest.raises(StorageUnavailable):
            await lore.context.build(GROUP, "m7")


async def test_where_nothing_can_be_recorded_contexts_go_on(tmp_path, caplog):
    path = tmp_path / "chat.db"
    async with group(*TALK, url=f"sqlite:///{path}") as lore:
        await asyncio.to_thread(hide_tables, path, "context_usage_records")
        context = await lore.context.build(GROUP, "m7", max_messages=3)
        assert (ids(context), context.degraded) == (["m1", "m3", "m5"], None)
        async with asyncio.timeout(30):
            while "roomlore_usage_records_lost_total 1.0" not in lore.prometheus().decode():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert ids(await lore.context.build(GROUP, "m7", max_messages=3)) == ["m1", "m3", "m5"]
    assert logging.ERROR not in {one.levelno for one in caplog.records}


async def test_a_context_does_not_wait_for_its_record(tmp_path):
    path = tmp_path / "chat.db"
    async with group(*TALK, url=f"sqlite:///{path}") as lore:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
        context = await asyncio.wait_for(lore.context.build(GROUP, "m7"), 2)
        assert other.execute("SELECT count(*) FROM context_usage_records").fetchone() == (0,)
        other.execute("COMMIT")
        other.close()
        assert (await lore.context.usage(context.context_id)).trigger_message_id == "m7"


async def test_recording_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("MEMORY_ENABLE_ASYNC_DATA_COLLECTION", "false")
    async with roomlore.open("sqlite://") as lore:
        await lore.messages.add(TALK)
        context = await lore.context.build(GROUP, "m7")
        with pytest.raises(roomlore.NotFound):
            await lore.context.usage(context.context_id)


# 10.1 配置错误 (a difference)


def test_a_bad_setting_stops_the_start_and_is_named(monkeypatch):
    monkeypatch.setenv("MEMORY_MAX_CONTEXT_MESSAGES", "0")
    shown = command("settings")
    assert shown.exit_code != 0
    said = " ".join(shown.output.split())
    assert (
        "max_context_messages is 0 (from MEMORY_MAX_CONTEXT_MESSAGES); it must be a whole number from 1 to 200." in said
    )


# 9.4, 11.1


async def test_groups_may_have_settings_of_their_own():
    async with group(*TALK) as lore, served(lore) as http:
        own = {"strategy": "recent", "max_context_messages": 2, "reply_chain_weight": 0.9}
        assert (await http.patch(f"/rooms/{GROUP}/settings", json=own)).status_code == 200
        assert ids(await lore.context.build(GROUP, "m7")) == ["m5", "m6"]


async def test_a_part_of_the_groups_may_be_switched_over():
    arms = {"plain": {"enable_intelligent_memory": False}, "smart": {"enable_intelligent_memory": True}}
    async with group(experiment=arms) as lore:
        seen = {}
        for number in range(16):
            await lore.messages.add(roomlore.Message(id="m1", room_id=f"g{number}", sender_id="ann", text="几点？"))
            context = await lore.context.build(f"g{number}", "m1")
            assert (await lore.context.build(f"g{number}", "m1")).arm == context.arm
            seen.setdefault(context.arm, set()).add(context.strategy)
    assert seen == {"plain": {"recent"}, "smart": {"threaded"}}


async def test_weights_are_tuned_on_what_mattered_and_tested_on_the_rest():
    """Here only who speaks tells, and the weights come to say so."""
    monologues = [said(number, ("ann", "bob")[number % 2], f"第{number}句", minute=number) for number in range(1, 61)]
    labels = [
        {"room_id": GROUP, "message_id": f"m{number}", "relevant": [f"m{number - 2}", f"m{number - 4}"]}
        for number in range(10, 61)
    ]
    async with group(*monologues, strategy="weighted") as lore:
        report = await lore.tuning.run(labels, apply=True)
        own = await lore.rooms.settings(GROUP)
    assert (report.targets, report.improved, report.after.f1 > report.before.f1) == (51, True, True)
    weight, source = own["user_continuity_weight"]
    assert (weight, source) == (pytest.approx(report.weights.user_continuity, abs=0.001), "room")
    assert weight > 0.15


async def test_feedback_is_what_weights_are_tuned_on_where_nothing_else_is_given():
    async with group(*LONG_TALK, strategy="weighted", relevance_threshold=0.1) as lore:
        for number in range(5, 17):
            context = await lore.context.build(GROUP, f"m{number}")
            await lore.context.feedback(context.context_id, score=float(number % 2))
        assert (await lore.tuning.run()).targets == 12


# 1.1 上下文断裂


async def test_a_room_of_a_few_messages_is_shown_whole():
    async with group(*TALK) as lore:
        assert ids(await lore.context.build(GROUP, "m7")) == [f"m{number}" for number in range(1, 7)]


async def test_who_asks_about_nothing_that_was_said_gets_the_newest_messages():
    others = [said(number, f"u{number % 5}", f"第{number}件别的事情", minute=3 * number) for number in range(1, 31)]
    async with group(*others, said(31, "zhao", "怎么样了？", minute=100)) as lore:
        assert len((await lore.context.build(GROUP, "m31")).messages) >= 8


async def test_a_prompt_keeps_to_max_tokens():
    async with group(*TALK) as lore:
        prompt = (await lore.context.build(GROUP, "m7", max_tokens=40, strategy="recent")).to_prompt()
        await lore.messages.add(said(1, "ann", prompt, room_id="prompts"))
        (stored,) = await lore.messages.page("prompts")
    assert 0 < stored.tokens <= 40


async def test_a_message_after_a_pause_has_what_was_said_before_it():
    tried = said(8, "ann", "试过了，还是不行", minute=7 + 24 * 60)
    async with group(*TALK, tried) as lore:
        assert "m7" in ids(await lore.context.build(GROUP, "m8"))
