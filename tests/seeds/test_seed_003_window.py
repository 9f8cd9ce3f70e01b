"""Seed 003, the structures of a session, the modes, the threshold, and the calls with their parameters and results."""

import dataclasses
import inspect
import json
from datetime import UTC, datetime

import pytest
from clinic import AGENT, CONVERSATION, USER, due, numbers, speak, told
from rig import command, served

import roomlore
from roomlore import BudgetTooSmall, InvalidInput, NotFound, Settings

SMALL = Settings(model_context_window=400, recent_turns=2)
SESSION = {
    "meta": {"conversation_id", "user_id", "updated_at"},
    "flow_context": {"current_agent_key", "last_bot_message", "turn_count"},
    "message_context": {"summary", "window_messages", "mode", "checkpoint_message_id"},
    "global_state": {"shared", "entities", "agent_slots", "current_intent", "pending_action"},
    "user_snapshot": {"user_id", "name", "allergies", "history", "surgery_history", "preferences"},
}


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", settings=SMALL) as opened:
        yield opened


# 数据结构


@pytest.mark.parametrize("part", SESSION)
async def test_the_json_of_a_session_has_these_fields(lore, part):
    await lore.sessions.create_session(CONVERSATION, USER)
    async with served(lore) as http:
        shown = (await http.get(f"/sessions/{CONVERSATION}")).json()
    assert shown.keys() == SESSION.keys()
    assert shown[part].keys() == SESSION[part]


async def test_meta_names_conversation_user_and_time(lore):
    await lore.sessions.create_session(CONVERSATION, USER)
    meta = (await lore.sessions.get_session(CONVERSATION)).meta
    assert (meta.conversation_id, meta.user_id, type(meta.updated_at)) == (CONVERSATION, USER, int)
    assert abs(meta.updated_at - datetime.now(UTC).timestamp()) < 60


async def test_flow_context_follows_the_turns(lore):
    await speak(lore, 1, 2, 3)
    flow = (await lore.sessions.get_session(CONVERSATION)).flow_context
    assert (flow.current_agent_key, flow.turn_count) == (AGENT, 3)
    assert flow.last_bot_message == "第3答：先坐下休息，多喝水，注意测量血压"


async def test_message_context_has_the_last_turns_as_role_and_content(lore):
    await speak(lore, 1, 2, 3)
    async with served(lore) as http:
        shown = (await http.get(f"/sessions/{CONVERSATION}")).json()["message_context"]
    assert (shown["mode"], shown["summary"], shown["checkpoint_message_id"]) == ("FULL_HISTORY", "", "")
    assert shown["window_messages"][-2:] == [
        {"role": "user", "content": "第3问：我最近感觉头晕，应该怎么办？"},
        {"role": "assistant", "content": "第3答：先坐下休息，多喝水，注意测量血压"},
    ]


async def test_global_state_and_user_snapshot_are_kept_as_given(lore):
    state = {
        "global_state": {
            "shared": {"department": "心内科"},
            "entities": {"symptom": "头晕"},
            "agent_slots": {AGENT: {"level": 2}},
            "current_intent": "triage",
            "pending_action": {"name": "book", "at": "周五"},
        },
        "user_snapshot": {
            "user_id": USER,
            "name": "张三",
            "allergies": ["青霉素"],
            "history": ["高血压"],
            "surgery_history": ["阑尾切除"],
            "preferences": ["中医"],
        },
    }
    await lore.sessions.create_session(CONVERSATION, USER)
    async with served(lore) as http:
        await http.patch(f"/sessions/{CONVERSATION}/state", json=state)
        shown = (await http.get(f"/sessions/{CONVERSATION}")).json()
    assert {name: shown[name] for name in state} == state


async def test_a_field_of_a_newer_version_survives_a_round_trip(lore):
    newer = {"message_context": {"cached_checkpoint": "历史摘要: 旧"}, "flow_context": {"step": 4}, "trace": ["a"]}
    await lore.sessions.create_session(CONVERSATION, USER, session=newer)
    async with served(lore) as http:
        shown = (await http.get(f"/sessions/{CONVERSATION}")).json()
    assert (shown["message_context"]["cached_checkpoint"], shown["flow_context"]["step"]) == ("历史摘要: 旧", 4)
    assert shown["trace"] == ["a"]


RESULT = {
    "conversation_id",
    "mode",
    "session",
    "history",
    "full_history",
    "estimated_tokens",
    "token_ratio",
    "should_checkpoint_summary",
}


@pytest.mark.parametrize("field", sorted(RESULT))
async def test_a_context_has_this_field(lore, field):
    assert field in {one.name for one in dataclasses.fields(roomlore.SessionContext)}
    await speak(lore, 1)
    async with served(lore) as http:
        assert field in (await http.post(f"/sessions/{CONVERSATION}/context", json={"query": "新问题"})).json()


# 核心概念: 记忆模式, Checkpoint, Token阈值


async def test_full_history_shows_every_turn_until_the_first_checkpoint(lore):
    await speak(lore, 1, 2, 3)
    context = await lore.sessions.query_context(CONVERSATION, "还要注意什么？")
    assert (context.mode, numbers(context), context.should_checkpoint_summary) == ("FULL_HISTORY", [1, 2, 3], False)
    assert context.history == context.full_history
    assert context.history.startswith("用户: 第1问：")


async def test_summary_n_shows_the_summary_and_the_turns_after_it(lore):
    context = await due(lore)
    await told(lore, context, "用户咨询了头晕的处理", 0)
    last = numbers(context)[-1]
    await speak(lore, last + 1, last + 2)
    after = await lore.sessions.query_context(CONVERSATION, recent_turns=0)
    assert (after.mode, numbers(after)) == ("SUMMARY_N", [last + 1, last + 2])
    assert after.history.startswith("历史摘要: 用户咨询了头晕的处理\n")
    assert f"第{last}问" not in after.history


async def test_summary_n_shows_never_fewer_than_the_last_n_turns(lore):
    context = await due(lore)
    await told(lore, context, "用户咨询了头晕的处理")
    after = await lore.sessions.query_context(CONVERSATION, recent_turns=3)
    assert numbers(after) == numbers(context)[-3:]


async def test_at_exactly_the_threshold_a_checkpoint_is_asked_for(lore):
    await speak(lore, 1, 2)
    ratio = (await lore.sessions.query_context(CONVERSATION)).token_ratio
    for threshold, asked in ((ratio, True), (ratio + 1e-6, False)):
        context = await lore.sessions.query_context(CONVERSATION, token_threshold_ratio=threshold)
        assert context.should_checkpoint_summary is asked


async def test_the_query_counts_towards_the_tokens(lore):
    await speak(lore, 1)
    bare = await lore.sessions.query_context(CONVERSATION)
    asked = await lore.sessions.query_context(CONVERSATION, "头晕 dizzy")
    assert asked.estimated_tokens > bare.estimated_tokens
    assert (asked.history, asked.token_ratio) == (bare.history, asked.estimated_tokens / 400)


async def test_what_is_shown_never_exceeds_the_window_and_says_if_turns_are_left_out(lore):
    await speak(lore, *range(1, 20))
    context = await lore.sessions.query_context(CONVERSATION, "新问题")
    assert (context.truncated, context.should_checkpoint_summary) == (True, True)
    assert context.estimated_tokens <= 400
    assert numbers(context) == list(range(20 - len(numbers(context)), 20))
    assert "第1问" in context.full_history


# 配置参数

DEFAULTS = {"token_threshold_ratio": "0.75", "recent_turns": "8", "model_context_window": "16000"}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_default_is_as_in_the_document(name):
    shown = {one["name"]: one["value"] for one in json.loads(command("settings", "--json").stdout)}
    assert shown[name] == DEFAULTS[name]


async def test_the_defaults_are_in_force_where_a_call_gives_none():
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        await speak(lore, *range(1, 13))
        context = await lore.sessions.query_context(CONVERSATION)
        assert context.token_ratio == context.estimated_tokens / 16_000
        await told(lore, context, "用户咨询了头晕的处理")
        assert numbers(await lore.sessions.query_context(CONVERSATION)) == list(range(5, 13))


async def test_threshold_turns_and_window_are_given_with_a_call(lore):
    await speak(lore, *range(1, 13))
    wide = await lore.sessions.query_context(CONVERSATION, "新问题", 0.8, 10, 32_000)
    assert (wide.token_ratio, wide.should_checkpoint_summary) == (wide.estimated_tokens / 32_000, False)
    await told(lore, wide, "用户咨询了头晕的处理")
    assert len(numbers(await lore.sessions.query_context(CONVERSATION, "", 0.8, 10, 32_000))) == 10


@pytest.mark.parametrize("source", ["environment", "roomlore.yaml"])
async def test_the_defaults_are_changed_by_settings(monkeypatch, tmp_path, source):
    if source == "environment":
        monkeypatch.setenv("MEMORY_TOKEN_THRESHOLD_RATIO", "0.8")
        monkeypatch.setenv("MEMORY_RECENT_TURNS", "10")
        monkeypatch.setenv("MEMORY_MODEL_CONTEXT_WINDOW", "32000")
    else:
        own = {"token_threshold_ratio": 0.8, "recent_turns": 10, "model_context_window": 32_000}
        (tmp_path / "roomlore.yaml").write_text(json.dumps({"memory": own}))
    async with roomlore.open("sqlite://") as lore:
        await speak(lore, *range(1, 13))
        context = await lore.sessions.query_context(CONVERSATION)
        assert context.token_ratio == context.estimated_tokens / 32_000
        await told(lore, context, "用户咨询了头晕的处理")
        assert len(numbers(await lore.sessions.query_context(CONVERSATION))) == 10


# 核心接口


async def test_create_session_begins_a_conversation_in_full_history(lore):
    session = await lore.sessions.create_session(CONVERSATION, USER)
    assert (session.meta.user_id, session.message_context.mode, session.flow_context.turn_count) == (
        USER,
        "FULL_HISTORY",
        0,
    )


async def test_get_session_gives_mode_and_turn_count(lore):
    await speak(lore, 1, 2)
    session = await lore.sessions.get_session(CONVERSATION)
    assert (session.message_context.mode, session.flow_context.turn_count) == ("FULL_HISTORY", 2)


async def test_query_context_needs_only_the_conversation(lore):
    await speak(lore, 1)
    assert (await lore.sessions.query_context(CONVERSATION)).conversation_id == CONVERSATION
    needed = [
        name
        for name, one in inspect.signature(lore.sessions.query_context).parameters.items()
        if one.default is inspect.Parameter.empty
    ]
    assert needed == ["conversation_id"]


async def test_query_context_keeps_enterprise_and_patient_with_the_session(lore):
    await speak(lore, 1)
    async with served(lore) as http:
        body = {"query": "新问题", "enterprise_id": "hospital-1", "patient_id": "patient-7"}
        assert (await http.post(f"/sessions/{CONVERSATION}/context", json=body)).status_code == 200
        meta = (await http.get(f"/sessions/{CONVERSATION}")).json()["meta"]
    assert (meta["enterprise_id"], meta["patient_id"]) == ("hospital-1", "patient-7")


async def test_write_turn_answers_with_conversation_mode_and_time(lore):
    result = await lore.sessions.write_turn(
        conversation_id=CONVERSATION, user_id=USER, agent_code=AGENT, user_query="头晕", agent_response="这是AI的回复"
    )
    assert (result.conversation_id, result.mode, type(result.updated_at)) == (CONVERSATION, "FULL_HISTORY", int)
    assert abs(result.updated_at - datetime.now(UTC).timestamp()) < 60


async def test_write_turn_takes_the_answer_alone(lore):
    await lore.sessions.write_turn(CONVERSATION, agent_response="这是AI的回复")
    context = await lore.sessions.query_context(CONVERSATION)
    assert (context.history, context.turns) == ("助手: 这是AI的回复", 1)


async def test_checkpoint_stores_a_row_updates_the_session_and_changes_the_mode(lore):
    context = await due(lore)
    made = await lore.sessions.checkpoint(CONVERSATION, "用户咨询了高血压", 8, context.covers_through)
    session = (await lore.sessions.get_session(CONVERSATION)).message_context
    assert (session.mode, session.summary) == ("SUMMARY_N", "用户咨询了高血压")
    assert (session.checkpoint_message_id, made.recent_turns) == (made.checkpoint_id, 8)
    assert [one.checkpoint_id for one in await lore.sessions.checkpoints(CONVERSATION)] == [made.checkpoint_id]


@pytest.mark.parametrize(("language", "label"), [("zh", "历史摘要: "), ("en", "Summary: ")])
async def test_the_text_of_a_summary_begins_by_the_language_of_the_session(lore, language, label):
    texts = {"zh": "我最近感觉头晕，应该怎么办？", "en": "I feel dizzy, what should I do?"}
    await lore.sessions.write_turn(CONVERSATION, user_query=texts[language], agent_response="OK", turn_id="t1")
    await lore.sessions.checkpoint(CONVERSATION, "x", 0, "t1-answer")
    assert (await lore.sessions.query_context(CONVERSATION, recent_turns=0)).history == f"{label}x\n"


ROUTES = [
    ("POST", "", {"conversation_id": CONVERSATION, "user_id": USER}),
    ("GET", f"/{CONVERSATION}", None),
    ("POST", f"/{CONVERSATION}/turns", {"user_query": "头晕", "agent_response": "先坐下", "turn_id": "t1"}),
    ("POST", f"/{CONVERSATION}/context", {"query": "还有呢？"}),
    ("POST", f"/{CONVERSATION}/checkpoint", {"summary": "头晕", "recent_turns": 8, "covers_through": "t1-answer"}),
    ("POST", f"/{CONVERSATION}/reset", None),
]


async def test_every_call_of_the_document_is_a_route(lore):
    async with served(lore) as http:
        answers = [await http.request(method, f"/sessions{path}", json=body) for method, path, body in ROUTES]
    assert [one.status_code for one in answers] == [200] * 6


def test_every_call_of_the_document_is_a_command(monkeypatch):
    monkeypatch.setenv("MEMORY_DATABASE_URL", "sqlite:///clinic.db")
    command("session", "turn", CONVERSATION, "--user-query", "头晕", "--agent-response", "先坐下")
    shown = command("session", "context", CONVERSATION, "--query", "还有呢？", "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["history"]) == (0, "用户: 头晕\n助手: 先坐下"), shown.output
    through = json.loads(shown.stdout)["covers_through"]
    made = command("session", "checkpoint", CONVERSATION, "头晕", "--covers-through", through)
    assert (made.exit_code, "头晕" in command("session", "checkpoints", CONVERSATION).output) == (0, True), made.output


ERRORS = {
    "no conversation": ("GET", "/sessions/nobody", None, 404, "nobody"),
    "a context of no conversation": ("POST", "/sessions/nobody/context", {}, 404, "nobody"),
    "no conversation_id": ("POST", "/sessions", {"user_id": USER}, 422, "conversation_id"),
    "a turn without words": ("POST", f"/sessions/{CONVERSATION}/turns", {}, 422, "user_query"),
    "a blank summary": ("POST", f"/sessions/{CONVERSATION}/checkpoint", {"summary": " "}, 422, "summary"),
    "a threshold over 1": (
        "POST",
        f"/sessions/{CONVERSATION}/context",
        {"token_threshold_ratio": 1.5},
        422,
        "token_threshold_ratio",
    ),
    "negative turns": ("POST", f"/sessions/{CONVERSATION}/context", {"recent_turns": -1}, 422, "recent_turns"),
    "no window": (
        "POST",
        f"/sessions/{CONVERSATION}/context",
        {"model_context_window": 0},
        422,
        "model_context_window",
    ),
}


@pytest.mark.parametrize("row", ERRORS)
async def test_a_bad_request_is_refused_and_named(lore, row):
    method, path, body, status, names = ERRORS[row]
    await speak(lore, 1)
    async with served(lore) as http:
        refused = await http.request(method, path, json=body)
    assert (refused.status_code, names in refused.json()["detail"]) == (status, True), refused.text


async def test_the_library_raises_errors_of_its_own(lore):
    with pytest.raises(NotFound):
        await lore.sessions.get_session("nobody")
    await speak(lore, 1)
    with pytest.raises(InvalidInput):
        await lore.sessions.query_context(CONVERSATION, token_threshold_ratio=1.5)
    with pytest.raises(BudgetTooSmall):
        await lore.sessions.query_context(CONVERSATION, "头晕" * 1000)
