"""The promises of `lore.sessions` for turns, contexts and state, on each store where they could differ."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

import roomlore
from engines import ENGINES
from roomlore import BudgetTooSmall, Conflict, InvalidInput, Message, NotFound, Role, Settings, StorageUnavailable
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.sessions.window import LONG_TOKEN
from roomlore_testkit import FrozenClock, InMemorySessionCache
from roomlore_testkit.case_table import all_cases
from session_rig import beside, open_rig, summarise_all

ROOM = "conv-123"
NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)
count = EncodingTokens().count


@pytest.fixture
async def anywhere(storage_url: str) -> AsyncIterator[roomlore.Lore]:
    """An empty store on each backend in turn."""
    async with roomlore.open(storage_url, settings=Settings(), background=False) as opened:
        yield opened


async def talk(lore, turns: int, *, room: str = ROOM, zh: bool = False) -> None:
    for number in range(turns):
        query = f"第{number}问：血压怎么样？" if zh else f"question {number}: how is the backup?"
        answer = f"第{number}答：正常。" if zh else f"answer {number}: it is done."
        await lore.sessions.write_turn(room, "ann", "bot", query, answer)


# Turns


async def test_a_turn_is_two_messages_of_its_room(anywhere):
    result = await anywhere.sessions.write_turn(ROOM, "user-456", "triage", "我最近头晕", "多久了？")
    query, answer = await anywhere.messages.page(ROOM)
    assert (query.id, answer.id) == result.message_ids
    assert (query.role, query.sender_id, query.text) == (Role.USER, "user-456", "我最近头晕")
    assert (answer.role, answer.sender_id, answer.reply_to) == (Role.ASSISTANT, "triage", query.id)
    assert query.turn_id == answer.turn_id == result.turn_id
    assert (result.conversation_id, result.mode) == (ROOM, "FULL_HISTORY")
    assert abs(result.updated_at - query.at.timestamp()) < 5


async def test_the_answer_alone_and_the_query_alone(anywhere):
    alone = await anywhere.sessions.write_turn(ROOM, agent_response="您好，请问哪里不舒服？")
    asked = await anywhere.sessions.write_turn(ROOM, "ann", user_query="头晕")
    assert len(alone.message_ids) == len(asked.message_ids) == 1
    context = await anywhere.sessions.query_context(ROOM)
    assert context.history == "助手: 您好，请问哪里不舒服？\n用户: 头晕"
    assert context.session.flow_context.turn_count == context.turns == 2


@pytest.mark.parametrize("halves", [{}, {"user_query": "", "agent_response": ""}, {"user_query": None}])
async def test_a_turn_needs_one_half(lore, halves):
    with pytest.raises(InvalidInput, match="user_query"):
        await lore.sessions.write_turn(ROOM, **halves)
    with pytest.raises(NotFound):
        await lore.sessions.get_session(ROOM)


async def test_halves_that_come_apart_are_one_turn(anywhere):
    await anywhere.sessions.write_turn(ROOM, "ann", "bot", user_query="why?", turn_id="t1")
    await anywhere.sessions.write_turn(ROOM, "ann", "bot", user_query="and when?", turn_id="t2")
    await anywhere.sessions.write_turn(ROOM, "ann", "bot", agent_response="it rained", turn_id="t1")
    again = await anywhere.sessions.write_turn(ROOM, "ann", "bot", "why?", "it rained", turn_id="t1")
    assert again.message_ids == ("t1-query", "t1-answer")
    context = await anywhere.sessions.query_context(ROOM)
    assert context.turns == 2
    assert [one["content"] for one in context.messages] == ["why?", "and when?", "it rained"]
    assert (await anywhere.messages.get(ROOM, "t1-answer")).message.reply_to == "t1-query"


async def test_the_same_turn_again_changes_nothing(anywhere):
    first = await anywhere.sessions.write_turn(ROOM, "ann", "bot", "q", "a", turn_id="t")
    before = await anywhere.messages.page(ROOM)
    assert await anywhere.sessions.write_turn(ROOM, "ann", "bot", "q", "a", turn_id="t") == first
    assert await anywhere.messages.page(ROOM) == before


async def test_a_repeated_turn_may_leave_out_who_spoke(anywhere):
    """A retry comes when the session knows its user already."""
    await anywhere.sessions.write_turn(ROOM, user_query="q", agent_response="a", turn_id="t")
    await anywhere.sessions.write_turn(ROOM, "ann", "bot", "next", "yes")
    await anywhere.sessions.write_turn(ROOM, user_query="q", agent_response="a", turn_id="t")
    assert [message.text for message in await anywhere.messages.page(ROOM)] == ["q", "a", "next", "yes"]


@pytest.mark.parametrize("other", [{"user_query": "x"}, {"agent_response": "x"}, {"user_id": "eve"}])
async def test_the_same_turn_with_other_content_is_a_conflict(anywhere, other):
    given = {"user_id": "ann", "agent_code": "bot", "user_query": "q", "agent_response": "a", "turn_id": "t"}
    await anywhere.sessions.write_turn(ROOM, **given)
    before = await anywhere.sessions.get_session(ROOM)
    with pytest.raises(Conflict):
        await anywhere.sessions.write_turn(ROOM, **given | other)
    assert await anywhere.sessions.get_session(ROOM) == before
    assert len(await anywhere.messages.page(ROOM)) == 2


async def test_turns_with_ids_keep_the_time_at_which_they_were_said():
    clock = FrozenClock(NINE)
    async with open_rig(clock=clock) as rig:
        for number in range(3):
            await rig.sessions.write_turn(ROOM, "ann", "bot", "q", "a", turn_id=str(number))
            clock.advance(60)
        await rig.sessions.write_turn(ROOM, "ann", "bot", "q", "a", turn_id="0")
        messages = await rig.messages.page(ROOM)
        assert [message.at for message in messages[::2]] == [NINE + timedelta(minutes=n) for n in range(3)]
        assert not any(message.sent_at_estimated for message in messages)


async def test_a_turn_that_two_hand_in_at_once_is_there_once(storage_url):
    async with AsyncExitStack() as stack:
        lore = await stack.enter_async_context(roomlore.open(storage_url, background=False))
        rigs = [await beside(lore, stack, clock=FrozenClock(NINE + timedelta(seconds=n))) for n in range(6)]
        await asyncio.gather(*(rig.sessions.write_turn(ROOM, "ann", "bot", "q", "a", turn_id="t") for rig in rigs))
        assert [message.text for message in await lore.messages.page(ROOM)] == ["q", "a"]


async def test_a_turn_that_is_stored_is_reported_as_stored_whatever_the_cache_does():
    """Else the caller would write it twice."""
    clock = FrozenClock()
    async with open_rig(cache=InMemorySessionCache(clock), clock=clock) as rig:
        await talk(rig, 1)
        rig.storage.fail("messages.changed", StorageUnavailable())
        rig.storage.fail("messages.page", StorageUnavailable())
        await rig.sessions.write_turn(ROOM, "ann", "bot", "stored?", "yes")
        rig.storage.heal()
        assert (await rig.sessions.query_context(ROOM)).history.endswith("User: stored?\nAssistant: yes")


async def test_twenty_writers_lose_nothing(storage_url):
    async with roomlore.open(storage_url, background=False) as lore:
        await asyncio.gather(*(lore.sessions.write_turn(ROOM, f"user {n}", "bot", f"q{n}", f"a{n}") for n in range(20)))
        await assert_twenty(lore)


@pytest.fixture(params=ENGINES)
def shared_url(request) -> str:
    return str(request.getfixturevalue(request.param))


async def test_twenty_writers_on_two_stores_lose_nothing(shared_url):
    async with roomlore.open(shared_url, background=False) as one, roomlore.open(shared_url, background=False) as two:
        sides = [one, two]
        await asyncio.gather(
            *(sides[n % 2].sessions.write_turn(ROOM, f"user {n}", "bot", f"q{n}", f"a{n}") for n in range(20))
        )
        for side in sides:
            await assert_twenty(side)


async def assert_twenty(lore) -> None:
    context = await lore.sessions.query_context(ROOM, recent_turns=20)
    said = [one["content"] for one in context.messages]
    assert sorted(said) == sorted([f"{half}{n}" for n in range(20) for half in "qa"])
    assert all(said[said.index(f"q{n}") + 1] == f"a{n}" for n in range(20)), "the halves of a turn stand together"
    assert context.session.flow_context.turn_count == 20


# Contexts


async def test_the_whole_history_until_the_first_checkpoint_then_summary_and_turns(anywhere):
    await talk(anywhere, 12)
    whole = await anywhere.sessions.query_context(ROOM, "and now?")
    assert (whole.mode, whole.turns, whole.truncated) == ("FULL_HISTORY", 12, False)
    assert whole.history == whole.full_history
    assert whole.history.startswith("User: question 0: how is the backup?\nAssistant: answer 0: it is done.\n")
    await anywhere.sessions.checkpoint(ROOM, "twelve backups are done", covers_through=whole.covers_through)
    after = await anywhere.sessions.query_context(ROOM, "and now?")
    assert (after.mode, after.turns, after.truncated) == ("SUMMARY_N", 8, False)
    assert after.history.startswith("Summary: twelve backups are done\n\nUser: question 4:")
    assert after.messages[0] == {"role": "system", "content": "Summary: twelve backups are done"}
    assert after.full_history == "Summary: twelve backups are done\n"
    assert after.estimated_tokens == count([after.history])[0] + count(["and now?"])[0]


async def test_the_same_in_chinese(anywhere):
    await talk(anywhere, 12, zh=True)
    whole = await anywhere.sessions.query_context(ROOM)
    assert whole.language == "zh"
    assert whole.history.startswith("用户: 第0问：血压怎么样？\n助手: 第0答：正常。\n")
    await anywhere.sessions.checkpoint(ROOM, "历史摘要: 十二次血压都正常", 2, whole.covers_through)
    after = await anywhere.sessions.query_context(ROOM, recent_turns=2)
    assert after.history.startswith("历史摘要: 十二次血压都正常\n\n用户: 第10问")
    assert after.session.message_context.summary == "十二次血压都正常"


async def test_the_language_does_not_change_with_the_answers(lore):
    await talk(lore, 5, zh=True)
    await summarise_all(lore, ROOM, "an English summary of a Chinese talk")
    assert (await lore.sessions.query_context(ROOM)).history.startswith("历史摘要: an English summary")
    await talk(lore, 1)
    assert (await lore.sessions.query_context(ROOM)).history.startswith("历史摘要: an English summary")


async def test_names_tools_captions_and_systems(lore):
    await lore.messages.add(
        [
            Message(id="1", room_id=ROOM, sender_id="a", sender_name="Ann  Lee", text="look"),
            Message(id="2", room_id=ROOM, sender_id="b", sender_name="小李", metadata={"caption": "a cat"}),
            Message(id="3", room_id=ROOM, sender_id="s", role=Role.SYSTEM, text="be kind"),
            Message(id="4", room_id=ROOM, sender_id="t", role=Role.TOOL, text="7 results"),
        ]
    )
    context = await lore.sessions.query_context(ROOM)
    assert context.history == "Ann Lee: look\n小李: a cat\nSystem: be kind\nTool: 7 results"
    assert [one["role"] for one in context.messages] == ["user", "user", "system", "assistant"]


@pytest.mark.parametrize("summarised", [False, True])
async def test_the_threshold_asks_in_either_mode(anywhere, summarised):
    await talk(anywhere, 12)
    if summarised:
        await summarise_all(anywhere, ROOM, "twelve backups")
    tokens = (await anywhere.sessions.query_context(ROOM)).estimated_tokens
    window = tokens * 2
    just = tokens / window
    asked = await anywhere.sessions.query_context(ROOM, token_threshold_ratio=just, model_context_window=window)
    quiet = await anywhere.sessions.query_context(ROOM, token_threshold_ratio=just + 0.001, model_context_window=window)
    assert (asked.should_checkpoint_summary, quiet.should_checkpoint_summary) == (True, False)
    assert asked.token_ratio == 0.5
    longer = await anywhere.sessions.query_context(ROOM, "why?", just + 0.001, model_context_window=window)
    assert longer.should_checkpoint_summary, "the query counts"


async def test_the_defaults_are_those_of_the_specification(lore):
    await lore.sessions.write_turn(ROOM, "ann", "bot", " hello" * 11_999, None)
    below = await lore.sessions.query_context(ROOM)
    assert below.token_ratio == below.estimated_tokens / 16_000
    assert below.should_checkpoint_summary == (below.token_ratio >= 0.75)
    assert below.should_checkpoint_summary


async def test_the_hard_guard_drops_the_oldest_whole_turns_and_keeps_the_summary(anywhere):
    await talk(anywhere, 12)
    await summarise_all(anywhere, ROOM, "twelve backups")
    await talk(anywhere, 6)
    context = await anywhere.sessions.query_context(ROOM, "?", model_context_window=100)
    assert context.truncated
    assert context.should_checkpoint_summary
    assert context.estimated_tokens <= 100
    assert context.history.startswith("Summary: twelve backups\n\nUser: question")
    assert context.history.endswith("User: question 5: how is the backup?\nAssistant: answer 5: it is done.")
    assert len(context.messages) == 1 + 2 * context.turns
    assert context.full_history.count("User: ") > context.turns


async def test_a_newest_turn_that_is_too_long_leaves_the_summary_alone(lore):
    await talk(lore, 3)
    await summarise_all(lore, ROOM, "three backups")
    await lore.sessions.write_turn(ROOM, "ann", "bot", "word " * 500, "ok")
    context = await lore.sessions.query_context(ROOM, "?", model_context_window=50)
    assert (context.turns, context.truncated) == (0, True)
    assert context.history == "Summary: three backups\n"


async def test_what_alone_is_too_long_is_refused(anywhere):
    await talk(anywhere, 2)
    with pytest.raises(BudgetTooSmall, match="query"):
        await anywhere.sessions.query_context(ROOM, "word " * 60, model_context_window=50)
    await summarise_all(anywhere, ROOM, "word " * 60)
    with pytest.raises(BudgetTooSmall, match="summary"):
        await anywhere.sessions.query_context(ROOM, model_context_window=50)
    exact = count(["Summary: " + ("word " * 60).strip() + "\n"])[0]
    kept = await anywhere.sessions.query_context(ROOM, model_context_window=exact)
    assert kept.estimated_tokens == exact
    with pytest.raises(BudgetTooSmall):
        await anywhere.sessions.query_context(ROOM, model_context_window=exact - 1)


@pytest.mark.parametrize(
    "given",
    [
        {"token_threshold_ratio": 0},
        {"token_threshold_ratio": 1.01},
        {"token_threshold_ratio": float("nan")},
        {"token_threshold_ratio": "0.5"},
        {"recent_turns": -1},
        {"recent_turns": 2.0},
        {"recent_turns": True},
        {"model_context_window": 0},
        {"model_context_window": "16000"},
        {"query": 5},
        {"enterprise_id": 7},
        {"patient_id": "x" * 513},
    ],
)
async def test_options_that_make_no_sense_are_refused(lore, given):
    await talk(lore, 1)
    with pytest.raises(InvalidInput):
        await lore.sessions.query_context(ROOM, **given)


async def test_an_empty_conversation(anywhere):
    await anywhere.sessions.create_session(ROOM, "ann")
    context = await anywhere.sessions.query_context(ROOM)
    assert (context.history, context.messages, context.full_history) == ("", (), "")
    assert (context.estimated_tokens, context.turns, context.covers_through) == (0, 0, None)
    assert not context.should_checkpoint_summary


@pytest.mark.parametrize("verb", ["get_session", "query_context", "reset", "checkpoints", "messages", "summarise"])
async def test_nobody_knows_a_conversation_that_is_not_there(anywhere, verb):
    with pytest.raises(NotFound, match="no-such"):
        await getattr(anywhere.sessions, verb)("no-such")


async def test_a_conversation_id_is_a_text(lore):
    with all_cases() as case:
        for verb in ("create_session", "get_session", "query_context", "reset", "checkpoints", "messages"):
            for name in (None, 5, "", b"x", ["a"]):
                with case(verb, repr(name)), pytest.raises((InvalidInput, NotFound)):
                    await getattr(lore.sessions, verb)(name)


# Sessions and what is kept with them


async def test_a_session_begins_empty_and_is_made_once(anywhere):
    made = await anywhere.sessions.create_session(ROOM, "user-456")
    assert (made.meta.conversation_id, made.meta.user_id) == (ROOM, "user-456")
    assert (made.flow_context.turn_count, made.message_context.mode) == (0, "FULL_HISTORY")
    assert made.user_snapshot.user_id == "user-456"
    again = await anywhere.sessions.create_session(ROOM, "somebody else", enterprise_id="e1")
    assert (again.meta.user_id, again.meta.enterprise_id) == ("user-456", "e1")
    assert (await anywhere.sessions.page())[0].conversation_id == ROOM


async def test_the_seed_names_every_field(anywhere):
    await talk(anywhere, 9, zh=True)
    await summarise_all(anywhere, ROOM, "九次正常")
    data = (await anywhere.sessions.get_session(ROOM)).to_json()
    assert set(data) == {"meta", "flow_context", "message_context", "global_state", "user_snapshot"}
    assert set(data["flow_context"]) == {"current_agent_key", "last_bot_message", "turn_count"}
    assert data["flow_context"] == {"current_agent_key": "bot", "last_bot_message": "第8答：正常。", "turn_count": 9}
    context = data["message_context"]
    assert (context["summary"], context["mode"]) == ("九次正常", "SUMMARY_N")
    assert context["checkpoint_message_id"] == (await anywhere.sessions.checkpoints(ROOM))[0].checkpoint_id
    assert context["window_messages"][0] == {"role": "user", "content": "第1问：血压怎么样？"}
    assert len(context["window_messages"]) == 16
    json.dumps(data)


async def test_ids_are_kept_with_the_session(anywhere):
    await talk(anywhere, 1)
    context = await anywhere.sessions.query_context(ROOM, enterprise_id="医院", patient_id="p-7")
    assert (context.session.meta.enterprise_id, context.session.meta.patient_id) == ("医院", "p-7")
    assert context.history.startswith("User: question 0")
    kept = await anywhere.sessions.get_session(ROOM)
    assert (kept.meta.enterprise_id, kept.meta.patient_id) == ("医院", "p-7")
    changed = await anywhere.sessions.query_context(ROOM, patient_id="p-8")
    assert (changed.session.meta.enterprise_id, changed.session.meta.patient_id) == ("医院", "p-8")


async def test_ids_that_are_kept_while_somebody_resets_bring_nothing_back():
    """The answer is that of one moment: what a reset put away is not shown beside the boundary."""
    async with open_rig() as rig:
        await talk(rig, 3)
        visit, reset_once = rig.storage.visit, [True]

        async def resetting(name: str) -> None:
            if name == "writing" and reset_once:
                reset_once.clear()
                await rig.sessions.reset(ROOM)
            await visit(name)

        rig.storage.visit = resetting
        context = await rig.sessions.query_context(ROOM, patient_id="p")
        assert (context.turns, context.covers_through is None) in ((3, False), (0, True))
        assert (await rig.sessions.query_context(ROOM)).history == ""


UNKNOWN = {
    "new_part": {"a": [1, None, {"b": "二"}]},
    "empty_part": {},
    "nothing": None,
    "extra": "a field of this name",
    "meta": {"conversation_id": "elsewhere", "user_id": "小王", "trace": "t-1"},
    "flow_context": {"current_agent_key": "triage", "turn_count": 7, "depth": 2},
    "message_context": {"summary": "kept elsewhere", "mode": "SUMMARY_N", "cached_checkpoint": "x"},
    "global_state": {"shared": {"k": {"deep": []}}, "pending_action": {"name": "pay"}, "newer": None, "empty": {}},
    "user_snapshot": {"user_id": "u", "name": "王", "history": ["高血压"], "allergies": None, "blood": "A"},
}


async def test_unknown_fields_survive_at_every_level(anywhere):
    await anywhere.sessions.create_session(ROOM, session=UNKNOWN)
    await anywhere.sessions.write_turn(ROOM, "", "", "q", "a")
    await anywhere.sessions.patch_state(ROOM, {"global_state": {"current_intent": "ask"}, "fresh": {}})
    await summarise_all(anywhere, ROOM, "s")
    await anywhere.sessions.reset(ROOM)
    data = (await anywhere.sessions.get_session(ROOM)).to_json()
    for name in ("new_part", "empty_part", "nothing", "extra"):
        assert data[name] == UNKNOWN[name]
    assert data["fresh"] == {}
    assert data["meta"]["trace"] == "t-1"
    assert data["flow_context"]["depth"] == 2
    assert data["message_context"]["cached_checkpoint"] == "x"
    assert data["global_state"] == {
        **UNKNOWN["global_state"],
        "entities": {},
        "agent_slots": {},
        "current_intent": "ask",
    }
    assert data["user_snapshot"]["history"] == ["高血压"]
    assert data["user_snapshot"]["blood"] == "A"


async def test_an_old_session_without_a_checkpoint_id_is_a_full_history(anywhere):
    value = await anywhere.sessions.create_session(ROOM, session=UNKNOWN)
    assert (value.message_context.mode, value.message_context.summary) == ("FULL_HISTORY", "")
    assert value.meta.conversation_id == ROOM
    assert value.meta.user_id == "小王"
    assert value.flow_context.current_agent_key == "triage"
    assert value.flow_context.turn_count == 0
    await talk(anywhere, 2)
    assert (await anywhere.sessions.query_context(ROOM)).turns == 2


@pytest.mark.parametrize(
    "session",
    [
        [],
        "text",
        {"meta": 5},
        {"global_state": {"shared": []}},
        {"user_snapshot": {"history": "高血压"}},
        {"user_snapshot": {"history": [1]}},
        {"meta": {"user_id": "x" * 513}},
        {"flow_context": {"current_agent_key": "x" * 513}},
        {"own": float("nan")},
        {"own": object()},
        {"own": "x" * 300_000},
    ],
)
async def test_what_is_no_session_is_refused(lore, session):
    with pytest.raises(InvalidInput):
        await lore.sessions.create_session(ROOM, session=session)
    with pytest.raises(NotFound):
        await lore.sessions.get_session(ROOM)


async def test_patches_merge_and_null_removes(anywhere):
    await anywhere.sessions.create_session(ROOM)
    await anywhere.sessions.patch_state(ROOM, {"global_state": {"shared": {"a": 1, "b": {"c": 2, "d": 3}}}})
    await anywhere.sessions.patch_state(ROOM, {"global_state": {"shared": {"a": None, "b": {"c": "二"}}}})
    value = await anywhere.sessions.patch_state(ROOM, {"flow_context": {"current_agent_key": "billing"}})
    assert value.global_state.shared == {"b": {"c": "二", "d": 3}}
    assert value.flow_context.current_agent_key == "billing"
    await anywhere.sessions.write_turn(ROOM, "ann", "triage", "q", "a")
    assert (await anywhere.sessions.get_session(ROOM)).flow_context.current_agent_key == "triage"


async def test_patches_of_many_callers_are_all_kept(shared_url):
    async with roomlore.open(shared_url, background=False) as one, roomlore.open(shared_url, background=False) as two:
        await one.sessions.create_session(ROOM)
        calls = [
            side.sessions.patch_state(ROOM, {"global_state": {"agent_slots": {f"{place}-{n}": n}}})
            for place, side in enumerate([one, two])
            for n in range(10)
        ]
        turns = [side.sessions.write_turn(ROOM, "ann", "bot", f"q{n}", "a") for n, side in enumerate([one, two] * 5)]
        await asyncio.gather(*calls, *turns)
        value = await one.sessions.get_session(ROOM)
        assert len(value.global_state.agent_slots) == 20
        assert value.flow_context.turn_count == 10


def deep(levels: int) -> dict:
    nested: dict = {}
    for _ in range(levels):
        nested = {"a": nested}
    return nested


@pytest.mark.parametrize(
    "patch",
    [
        None,
        [],
        {"meta": None},
        {"meta": {"user_id": "eve"}},
        {"flow_context": {"turn_count": 5}},
        {"flow_context": {"current_agent_key": 5}},
        {"message_context": {"summary": "mine"}},
        {"global_state": {"shared": "text"}},
        {"user_snapshot": {"allergies": "nuts"}},
        {"own": {1: 2}},
        {"own": float("inf")},
        {"own": "x" * 300_000},
        {"own": deep(40)},
        {"own": deep(5_000)},
    ],
)
async def test_a_patch_that_cannot_be_kept_changes_nothing(lore, patch):
    await lore.sessions.create_session(ROOM, "ann", session={"own": {"kept": 1}})
    before = await lore.sessions.get_session(ROOM)
    with pytest.raises(InvalidInput):
        await lore.sessions.patch_state(ROOM, patch)
    assert await lore.sessions.get_session(ROOM) == before


async def test_changing_an_answer_changes_no_other_session(lore):
    await talk(lore, 1)
    mine = await lore.sessions.get_session(ROOM)
    mine.global_state.shared["secret"] = "mine"
    mine.extra["own"] = "mine"
    await talk(lore, 1, room="another")
    assert (await lore.sessions.get_session("another")).global_state.shared == {}
    assert (await lore.for_tenant("acme").sessions.create_session("third")).extra == {}


async def test_nul_and_lone_surrogates_survive(anywhere):
    odd = "a\x00b\ud800"
    await anywhere.sessions.create_session(ROOM, session={"user_snapshot": {"name": odd}})
    await anywhere.sessions.write_turn(ROOM, "ann", "bot", odd, "ok")
    context = await anywhere.sessions.query_context(ROOM, odd)
    assert odd.rstrip("\ud800") in context.history
    assert context.session.user_snapshot.name == odd


# Tenants


async def test_tenants_see_nothing_of_each_other(anywhere):
    ours, theirs = anywhere.sessions, anywhere.for_tenant("acme").sessions
    await talk(anywhere, 3)
    await ours.patch_state(ROOM, {"global_state": {"shared": {"secret": 1}}})
    made = await summarise_all(anywhere, ROOM, "our secret")
    for verb in ("get_session", "query_context", "reset", "checkpoints", "messages", "summarise"):
        with pytest.raises(NotFound):
            await getattr(theirs, verb)(ROOM)
    with pytest.raises(NotFound):
        await theirs.checkpoint(ROOM, "theirs")
    with pytest.raises(NotFound):
        await theirs.patch_state(ROOM, {})
    assert await theirs.page() == []
    await theirs.create_session(ROOM, "eve")
    await theirs.write_turn(ROOM, "eve", "spy", "q", "a")
    assert (await theirs.query_context(ROOM)).history == "User: q\nAssistant: a"
    assert (await theirs.get_session(ROOM)).global_state.shared == {}
    assert await theirs.checkpoints(ROOM) == []
    with pytest.raises(Conflict):
        await theirs.checkpoint(ROOM, "theirs", expected_checkpoint=made.checkpoint_id)
    with pytest.raises(NotFound):
        await theirs.checkpoint(ROOM, "theirs", covers_through=made.covers_through)
    await theirs.reset(ROOM)
    assert (await ours.query_context(ROOM)).mode == "SUMMARY_N"


async def test_two_databases_on_one_cache_see_nothing_of_each_other(sqlite_url):
    clock = FrozenClock()
    cache = InMemorySessionCache(clock)
    async with open_rig(sqlite_url, cache=cache, clock=clock) as one:
        await one.sessions.write_turn(ROOM, "ann", "bot", "of the first", "yes")
        async with open_rig(cache=cache, clock=clock) as two:
            for number in range(3):
                await two.sessions.write_turn(ROOM, "eve", "bot", f"of the second {number}", "yes")
            assert "first" not in (await two.sessions.query_context(ROOM)).history
            assert "second" not in (await one.sessions.query_context(ROOM)).history


# The cache


GARBLED = [
    {"start": -5},
    {"start": -(10**30)},
    {"revision": -(10**30)},
    {"revision": 0},
    {"revision": float("inf")},
    {"arrivals": [3, 2, 1, 0]},
    {"arrivals": [1]},
    {"form": 99},
    {"tenant": "acme"},
    {"roles": ["god"] * 4},
    {"messages": None, "texts": None},
]


@pytest.mark.parametrize("garbled", GARBLED)
async def test_no_rubbish_in_the_cache_reaches_a_caller(garbled):
    clock = FrozenClock()
    cache = InMemorySessionCache(clock)
    async with open_rig(cache=cache, clock=clock) as rig:
        await talk(rig, 2)
        before = await rig.sessions.query_context(ROOM)
        data = json.loads(str(await cache.get(tenant="default", conversation_id=ROOM)))
        data["roomlore"] |= garbled
        await cache.put(tenant="default", conversation_id=ROOM, value=json.dumps(data), seconds=60)
        assert await rig.sessions.query_context(ROOM) == before
        await cache.put(tenant="default", conversation_id=ROOM, value=json.dumps(data), seconds=60)
        await rig.sessions.write_turn(ROOM, "ann", "bot", "and then?", "fine")
        assert (await rig.sessions.query_context(ROOM)).turns == 3


async def test_edits_and_deletions_reach_a_cached_session():
    clock = FrozenClock()
    async with open_rig(cache=InMemorySessionCache(clock), clock=clock) as rig:
        await rig.sessions.write_turn(ROOM, "ann", "bot", "my password is hunter2", "noted: hunter2", turn_id="t")
        await rig.sessions.query_context(ROOM)
        await rig.messages.edit(ROOM, "t-query", text="my password is ***")
        await rig.messages.delete(ROOM, "t-answer")
        context = await rig.sessions.query_context(ROOM)
        assert context.history == "User: my password is ***"
        assert "hunter2" not in json.dumps(context.session.to_json())


async def test_a_whole_talk_costs_the_same_few_reads_with_the_cache():
    """The cache spares the messages: a second reading asks the database for the session alone."""
    clock = FrozenClock()
    async with open_rig(cache=InMemorySessionCache(clock), clock=clock) as rig:
        await talk(rig, 5)
        await rig.sessions.query_context(ROOM)
        rig.storage.calls.clear()
        await rig.sessions.query_context(ROOM)
        assert rig.storage.calls == ["reading", "sessions.find"]


async def test_messages_since_the_last_reset(anywhere):
    await talk(anywhere, 3)
    await anywhere.sessions.reset(ROOM)
    await talk(anywhere, 2)
    assert [one.text[:10] for one in await anywhere.sessions.messages(ROOM)] == [
        "question 0", "answer 0: ", "question 1", "answer 1: ",
    ]  # fmt: skip
    assert len(await anywhere.sessions.messages(ROOM, limit=3)) == 3
    assert len(await anywhere.sessions.messages(ROOM, limit=100)) == 4
    assert len(await anywhere.messages.page(ROOM)) == 10


# What a reply takes of a session


async def windows(lore, size: int) -> tuple[object, object]:
    """Return what `query_window` and `query_context` tell of the same messages."""
    context = await lore.sessions.query_context(ROOM, model_context_window=size)
    told = context.message_ids, context.session.message_context.summary, context.truncated
    part = await lore.sessions.query_window(ROOM, size)
    return (part.message_ids, part.summary, part.truncated), told


async def many(lore, messages: int, *, begin: int = 0, text: str = "line", answers: bool = False) -> None:
    """Add messages of three people, or questions with their answers."""
    await lore.messages.add(
        [
            Message(
                id=f"n{n}",
                room_id=ROOM,
                sender_id="bot" if answers and n % 2 else f"u{n % 3}",
                role=Role.ASSISTANT if answers and n % 2 else Role.USER,
                text=f"{text} {n}",
            )
            for n in range(begin, begin + messages)
        ]
    )


@pytest.fixture
def small_pages(monkeypatch) -> None:
    """A session is long with a fifth of the messages, and read in pages of a fifth."""
    for name, size in (("_PAGE", 200), ("_LONG", 400), ("_END_PAGE", 100)):
        monkeypatch.setattr(f"roomlore.services.sessions.reading.{name}", size)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("messages", [3, 140, 401])
@pytest.mark.parametrize("answers", [False, True])
async def test_a_window_is_what_the_context_shows(lore, messages, answers):
    async def shown() -> list[tuple]:
        """Return what a small, a middling and a large window show, each the same by both ways."""
        parts = [await windows(lore, size) for size in (60, 1_000, 100_000)]
        assert [part for part, _ in parts] == [told for _, told in parts]
        return [told for _, told in parts]

    await lore.sessions.create_session(ROOM, "ann")
    await many(lore, messages, answers=answers)
    await shown()
    covers = messages - 3 + messages % 2  # a question whose answer is not covered, if there are answers
    await lore.sessions.checkpoint(ROOM, "they counted", covers_through=f"n{covers}")
    await shown()
    await many(lore, 401, begin=messages, answers=answers)
    assert [told[1:] for told in await shown()] == [("they counted", size < 100_000) for size in (60, 1_000, 100_000)]


async def test_a_window_shows_the_last_turns_if_what_came_after_the_summary_is_gone(lore):
    await lore.sessions.create_session(ROOM, "ann")
    await many(lore, 2_100)
    await lore.sessions.checkpoint(ROOM, "they counted", covers_through="n50")
    for begin in range(60, 2_100, 510):
        await lore.messages.delete(ROOM, [f"n{number}" for number in range(begin, begin + 510)])
    part, told = await windows(lore, 16_000)
    assert part == told


@pytest.mark.parametrize("text", ["ok", "a longer line of words that people say to each other"])
async def test_of_a_long_session_only_the_end_is_read(lore, text):
    await lore.sessions.create_session(ROOM, "ann")
    await many(lore, 3_000, text=text)
    read = partial(lore.sessions._parts.reader.load, lore.sessions._tenant, ROOM, recent_turns=8)
    end, whole = await read(characters=LONG_TOKEN * 2_000), await read()
    assert (end.partial, whole.partial) == (True, False)
    assert len(end.messages) <= 1_000
    assert end.messages == whole.messages[-len(end.messages) :]
    part, told = await windows(lore, 2_000)
    assert part == told


async def test_a_window_of_what_is_too_small_or_not_there(lore):
    with pytest.raises(NotFound):
        await lore.sessions.query_window(ROOM)
    await lore.sessions.create_session(ROOM, "ann")
    await many(lore, 4)
    await lore.sessions.checkpoint(ROOM, "a summary of many words " * 20, covers_through="n1")
    with pytest.raises(BudgetTooSmall):
        await lore.sessions.query_window(ROOM, 20)
