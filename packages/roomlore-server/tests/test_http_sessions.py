"""`/sessions`: a bot's whole flow, what is kept as it came, for whom it is there, and what bad input is told."""

from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx
import pytest

import roomlore
from roomlore_server.http import create_app
from roomlore_testkit.case_table import all_cases

STARTED = {"conversation_id": "tea", "user_id": "ann"}


class Scripted:
    """A summarizer at the port: says what it is told to and keeps what it was given."""

    name = "scripted"

    def __init__(self) -> None:
        self.given: list[tuple[str, str]] = []

    async def summarise(self, *, previous: str, conversation: str, language: str, max_tokens: int) -> str:
        self.given.append((previous, conversation))
        return f"Ann drinks tea, as told {len(self.given)} times."

    async def close(self) -> None:
        pass


@asynccontextmanager
async def serving(lore):
    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def say(http, query: str | None, answer: str | None = None, *, to: str = "tea", **more: object) -> dict:
    turn = {"user_query": query, "agent_response": answer, **more}
    written = await http.post(f"/sessions/{to}/turns", json=turn)
    assert written.status_code == 200, written.text
    return written.json()


async def context(http, to: str = "tea", **asked: object) -> dict:
    answer = await http.post(f"/sessions/{to}/context", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_flow_of_a_bot(http):
    made = await http.post("/sessions", json=STARTED)
    assert (made.status_code, made.json()["meta"]["user_id"]) == (200, "ann")
    for number in range(3):
        written = await say(http, f"question {number}", f"answer {number}", agent_code="sommelier")
    assert set(written) == {"conversation_id", "mode", "updated_at", "turn_id", "message_ids"}
    assert written["message_ids"] == [f"{written['turn_id']}-query", f"{written['turn_id']}-answer"]
    assert isinstance(written["updated_at"], int)

    before = await context(http, query="and now?", model_context_window=60)
    assert set(before) == {
        "conversation_id", "mode", "session", "history", "messages", "full_history", "covers_through", "checkpoint_id",
        "checkpoint_token", "estimated_tokens", "token_ratio", "should_checkpoint_summary", "truncated",
        "coverage_assumed", "turns", "message_ids", "language",
    }  # fmt: skip
    assert (before["mode"], before["turns"], before["checkpoint_id"]) == ("FULL_HISTORY", 3, "")
    assert before["history"].splitlines()[0] == "User: question 0"
    assert before["messages"][1] == {"role": "assistant", "content": "answer 0"}
    assert before["token_ratio"] == before["estimated_tokens"] / 60
    assert before["covers_through"] == written["message_ids"][-1]

    await say(http, "said while the summary was made", "indeed")
    summary = {
        "summary": "Three questions were answered.",
        "covers_through": before["covers_through"],
        "expected_checkpoint": before["checkpoint_id"],
    }
    checkpoint = (await http.post("/sessions/tea/checkpoint", json=summary)).json()["checkpoint"]
    assert (checkpoint["turns"], checkpoint["made_by"], checkpoint["covers_through"]) == (
        3, "caller", before["covers_through"],
    )  # fmt: skip

    after = await context(http, recent_turns=0)
    assert (after["mode"], after["checkpoint_id"]) == ("SUMMARY_N", checkpoint["checkpoint_id"])
    assert after["history"].splitlines() == [
        "Summary: Three questions were answered.", "",
        "User: said while the summary was made", "Assistant: indeed",
    ]  # fmt: skip
    value = (await http.get("/sessions/tea")).json()
    assert value["flow_context"] == {
        "current_agent_key": "sommelier", "last_bot_message": "indeed", "turn_count": 4,
    }  # fmt: skip
    assert value["message_context"]["summary"] == "Three questions were answered."

    late = await http.post("/sessions/tea/checkpoint", json={**summary, "summary": "Too late."})
    assert (late.status_code, late.json()["type"]) == (409, "urn:roomlore:conflict")
    assert "read the context again" in late.json()["detail"]

    begun = (await http.post("/sessions/tea/reset")).json()
    assert (begun["message_context"]["mode"], begun["flow_context"]["turn_count"]) == ("FULL_HISTORY", 0)
    assert (await context(http))["history"] == ""
    assert len((await http.get("/messages?room_id=tea")).json()["messages"]) == 8


async def test_every_field_of_an_older_session_survives(http):
    older = {
        "meta": {"conversation_id": "elsewhere", "user_id": "u9", "patient_id": "p1", "shard": 3},
        "flow_context": {"current_agent_key": "triage", "turn_count": 40, "stage": "x"},
        "message_context": {"mode": "SUMMARY_N", "cached_checkpoint": "c"},
        "global_state": {"agent_slots": {"a": [1, None]}, "pending_action": {"kind": "book"}, "later": {"deep": [{}]}},
        "user_snapshot": {"allergies": ["花生"], "history": ["高血压"], "pets": 2},
        "of_a_newer_version": [1, {"two": None}],
    }
    await http.post("/sessions", json={"conversation_id": "tea", "session": older})
    value = (await http.get("/sessions/tea")).json()
    assert value["of_a_newer_version"] == [1, {"two": None}]
    assert (value["meta"]["shard"], value["meta"]["user_id"], value["meta"]["patient_id"]) == (3, "u9", "p1")
    assert value["meta"]["conversation_id"] == "tea"
    assert (value["flow_context"]["stage"], value["flow_context"]["current_agent_key"]) == ("x", "triage")
    assert (value["message_context"]["cached_checkpoint"], value["message_context"]["mode"]) == ("c", "FULL_HISTORY")
    assert value["global_state"]["later"] == {"deep": [{}]}
    assert value["global_state"]["agent_slots"] == {"a": [1, None]}
    assert value["user_snapshot"]["history"] == ["高血压"]
    assert value["user_snapshot"]["pets"] == 2
    assert (await context(http))["session"]["of_a_newer_version"] == [1, {"two": None}]
    again = await http.post("/sessions", json={"conversation_id": "copy", "session": value})
    assert again.json()["global_state"] == value["global_state"]


async def test_the_ids_of_a_session_are_kept_and_filled_in(http):
    await http.post("/sessions", json=STARTED)
    filled = await http.post("/sessions", json={**STARTED, "user_id": "eve", "enterprise_id": "e1"})
    assert (filled.json()["meta"]["user_id"], filled.json()["meta"]["enterprise_id"]) == ("ann", "e1")
    told = await context(http, patient_id="p2")
    assert told["session"]["meta"]["patient_id"] == "p2"
    assert (await http.get("/sessions/tea")).json()["meta"]["patient_id"] == "p2"


@pytest.mark.parametrize("kind", ["application/json", "application/merge-patch+json"])
async def test_state_is_patched_by_merging(http, kind):
    await http.post("/sessions", json=STARTED)
    patches = [
        b'{"global_state": {"current_intent": "buy", "shared": {"a": 1, "b": {"c": 2}}}}',
        b'{"global_state": {"shared": {"a": null, "b": {"d": 3}}}, "mine": {"kept": true},'
        b' "flow_context": {"current_agent_key": "till"}}',
    ]
    for patch in patches:
        answer = await http.patch("/sessions/tea/state", content=patch, headers={"Content-Type": kind})
        assert answer.status_code == 200, answer.text
    value = answer.json()
    assert value["global_state"]["shared"] == {"b": {"c": 2, "d": 3}}
    assert value["global_state"]["current_intent"] == "buy"
    assert value["mine"] == {"kept": True}
    assert value["flow_context"]["current_agent_key"] == "till"
    assert (await http.get("/sessions/tea")).json() == value


async def test_a_conversation_has_four_names(http):
    with all_cases() as case:
        for word in ("conversation_id", "room_id", "group_id", "chat_id"):
            with case(word):
                made = await http.post("/sessions", json={word: f"talk by {word}"})
                assert made.json()["meta"]["conversation_id"] == f"talk by {word}"


async def test_any_id_can_be_asked_for(http):
    body, made = b'{"user_query": "hello \\u0000 \\ud83d"}', set()
    with all_cases() as case:
        for name in ("a/b", "a b", "100%", "a%2Fb", "诊室", "?x=1#y", "x\0y", "context", "+"):
            with case(repr(name)):
                coded, made = quote(name, safe=""), {*made, name}
                await http.post(f"/sessions/{coded}/turns", content=body, headers={"Content-Type": "application/json"})
                assert (await context(http, coded))["messages"] == [{"role": "user", "content": "hello \0 \ud83d"}]
                assert (await http.get(f"/sessions/{coded}")).json()["meta"]["conversation_id"] == name
                listed = (await http.get("/sessions")).json()["sessions"]
                assert sorted(one["conversation_id"] for one in listed) == sorted(made)


async def test_a_turn_may_be_repeated_and_not_changed(http):
    first = await say(http, "green?", "black", turn_id="t1", sent_at="2024-05-01T12:30:00Z", user_id="bob")
    assert await say(http, "green?", "black", turn_id="t1", sent_at=1714566600, user_id="bob") == first
    stored = (await http.get("/messages?room_id=tea")).json()["messages"]
    assert [(one["id"], one["sender_id"], one["sent_at"]) for one in stored] == [
        ("t1-query", "bob", "2024-05-01T12:30:00+00:00"),
        ("t1-answer", "assistant", "2024-05-01T12:30:00+00:00"),
    ]
    other = await http.post("/sessions/tea/turns", json={"user_query": "white?", "turn_id": "t1"})
    assert other.status_code == 409
    assert "Turn 't1' is stored already" in other.json()["detail"]


async def test_a_turn_may_lack_its_query(http):
    written = await say(http, None, "an answer alone")
    assert written["message_ids"] == [f"{written['turn_id']}-answer"]
    assert (await context(http))["history"] == "Assistant: an answer alone"


async def test_without_a_summary_roomlore_makes_one():
    model = Scripted()
    async with roomlore.open("sqlite://", summarizer=model) as lore, serving(lore) as http:
        await http.post("/sessions", json=STARTED)
        assert (await http.post("/sessions/tea/checkpoint")).json() == {"checkpoint": None}
        await say(http, "green or black?", "green")
        made = (await http.post("/sessions/tea/checkpoint")).json()["checkpoint"]
        assert (made["summary"], made["made_by"]) == ("Ann drinks tea, as told 1 times.", "scripted")
        assert model.given == [("", "User: green or black?\nAssistant: green")]
        assert (await http.post("/sessions/tea/checkpoint", json={})).json() == {"checkpoint": None}
        await say(http, "and cake?", "yes")
        again = (await http.post("/sessions/tea/checkpoint", json={"summary": None})).json()["checkpoint"]
        assert again["turns"] == 2
        assert model.given[1] == (made["summary"], "User: and cake?\nAssistant: yes")


async def test_without_a_model_sentences_are_chosen(http):
    await say(http, "I am allergic to peanuts.", "Noted: no peanuts for you.")
    made = (await http.post("/sessions/tea/checkpoint")).json()["checkpoint"]
    assert made["made_by"] == "extract"
    assert "peanuts" in made["summary"]


async def test_a_summary_tells_what_it_covers_by_a_token_or_says_that_it_is_assumed(http):
    await say(http, "one", "two")
    first = await context(http, token_threshold_ratio=0.0001)
    await say(http, "three", "four")
    made = (await http.post("/sessions/tea/checkpoint", json={"summary": "Of the first."})).json()["checkpoint"]
    assert (made["covers_through"], made["coverage_assumed"]) == (first["covers_through"], True)
    second = await context(http)
    assert second["coverage_assumed"]
    assert "three" in second["history"]
    told = {"summary": "Of both.", "checkpoint_token": second["checkpoint_token"]}
    made = (await http.post("/sessions/tea/checkpoint", json=told)).json()["checkpoint"]
    assert (made["covers_through"], made["coverage_assumed"]) == (second["covers_through"], False)
    assert not (await context(http))["coverage_assumed"]
    for token, status in (("rubbish", 422), (first["checkpoint_token"], 409)):
        refused = await http.post("/sessions/tea/checkpoint", json={**told, "checkpoint_token": token})
        assert refused.status_code == status
    alone = await http.post("/sessions/tea/checkpoint", json={"checkpoint_token": second["checkpoint_token"]})
    assert (alone.status_code, "belong to a summary" in str(alone.json())) == (422, True)


async def test_a_summary_that_may_be_of_several_contexts_names_what_it_covers(http):
    await say(http, "one", "two")
    first = await context(http)
    await say(http, "three", "four")
    await context(http)
    summary = {"summary": "Of the first.", "recent_turns": 0}
    refused = await http.post("/sessions/tea/checkpoint", json=summary)
    assert (refused.status_code, "Pass covers_through" in refused.json()["detail"]) == (422, True)
    chinese = await http.post("/sessions/tea/checkpoint", json=summary, headers={"Accept-Language": "zh"})
    assert (chinese.headers["content-language"], "请传入 covers_through" in chinese.json()["detail"]) == ("zh", True)
    named = {**summary, "covers_through": first["covers_through"]}
    assert (await http.post("/sessions/tea/checkpoint", json=named)).status_code == 200
    assert "three" in (await context(http))["history"]


async def test_the_history_of_checkpoints_is_paged(http):
    written = await say(http, "one", "two")
    for number in range(4):
        summary = {"summary": f"summary {number}", "covers_through": written["message_ids"][-1]}
        await http.post("/sessions/tea/checkpoint", json=summary)
    await http.post("/sessions/tea/reset")
    seen, query = [], {"limit": 2}
    while True:
        page = (await http.get("/sessions/tea/checkpoints", params=query)).json()
        seen += [(one["number"], one["kind"], one["summary"]) for one in page["checkpoints"]]
        if page["next"] is None:
            break
        query["before"] = page["next"]
    assert seen == [(5, "reset", ""), *((n + 1, "summary", f"summary {n}") for n in (3, 2, 1, 0))]


async def test_sessions_are_paged_and_rooms_without_one_are_left_out(http, make_message):
    await http.post("/messages", json=make_message(room="no session"))
    for name in "cab":
        await http.post("/sessions", json={"conversation_id": name, "user_id": f"u{name}"})
    await http.post("/sessions/b/checkpoint", json={"summary": "s"})
    first = (await http.get("/sessions?limit=2")).json()
    assert ([one["conversation_id"] for one in first["sessions"]], first["next"]) == (["a", "b"], "b")
    assert set(first["sessions"][0]) == {
        "conversation_id", "mode", "user_id", "enterprise_id", "patient_id", "checkpoint_id", "updated_at",
    }  # fmt: skip
    assert [(one["mode"], bool(one["checkpoint_id"])) for one in first["sessions"]] == [
        ("FULL_HISTORY", False), ("SUMMARY_N", True),
    ]  # fmt: skip
    second = (await http.get("/sessions", params={"after": "b"})).json()
    assert ([one["user_id"] for one in second["sessions"]], second["next"]) == (["uc"], None)


async def test_a_room_of_messages_can_be_asked_for_as_a_session(http, make_message):
    await http.post("/messages", json={"messages": [make_message(1), make_message(2, role="assistant")]})
    assert (await context(http))["history"] == "User: word 1\nAssistant: word 2"


async def test_a_window_too_small_is_a_problem_that_says_so(http):
    await say(http, "hello there", "general")
    answer = await http.post("/sessions/tea/context", json={"query": "one two three four", "model_context_window": 2})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:roomlore:budget-too-small")
    assert "shorten it or name a larger window" in answer.json()["detail"]
    fits = await context(http, query="one two", model_context_window=2)
    assert (fits["history"], fits["truncated"], fits["should_checkpoint_summary"]) == ("", True, True)


def raw(content: bytes, kind: str = "application/json") -> dict:
    return {"content": content, "headers": {"Content-Type": kind}}


BAD = [
    ("POST", "/sessions", {"json": {}}, 422, "conversation_id is missing."),
    ("POST", "/sessions", {"json": []}, 422, "The body must be a JSON object."),
    ("POST", "/sessions", {"json": {"conversation_id": ""}}, 422, "conversation_id"),
    ("POST", "/sessions", {"json": {"conversation_id": "x" * 513}}, 422, "conversation_id"),
    ("POST", "/sessions", {"json": {"conversation_id": 7}}, 422, "conversation_id"),
    ("POST", "/sessions", {"json": {"conversation_id": "a", "room_id": "b"}}, 422, "name different rooms"),
    ("POST", "/sessions", {"json": {"conversation_id": "a", "user": "b"}}, 422, "user"),
    ("POST", "/sessions", {"json": {"conversation_id": "a", "session": "{}"}}, 422, "session must be a JSON object."),
    ("POST", "/sessions", {"json": {"conversation_id": "a", "session": {"meta": 3}}}, 422, "meta is 3; it must be"),
    (
        "POST",
        "/sessions",
        {"json": {"conversation_id": "a", "session": {"flow_context": {"turn_count": "3"}}}},
        422,
        "turn_count is '3'; it must be a whole number",
    ),
    ("GET", "/sessions?limit=0", {}, 422, "limit"),
    ("GET", "/sessions?limit=201", {}, 422, "limit is 201"),
    ("GET", "/sessions/nowhere", {}, 404, "There is no conversation 'nowhere'; create its session"),
    ("PATCH", "/sessions/nowhere/state", {"json": {}}, 404, "'nowhere'"),
    ("PATCH", "/sessions/tea/state", {"json": []}, 422, "A patch is a JSON object"),
    ("PATCH", "/sessions/tea/state", {"json": {"meta": {"user_id": "x"}}}, 422, "meta.user_id follows from what is"),
    ("PATCH", "/sessions/tea/state", {"json": {"global_state": {"shared": 3}}}, 422, "shared is 3; it must be"),
    ("PATCH", "/sessions/tea/state", raw(b"{}", "text/plain"), 415, "application/json"),
    ("PATCH", "/sessions/tea/state", raw(b"[]", "application/json-patch+json"), 415, "send a merge patch"),
    ("PATCH", "/sessions/tea/state", raw(b""), 400, "not JSON"),
    ("POST", "/sessions/nowhere/context", {}, 404, "'nowhere'"),
    ("POST", "/sessions/tea/context", {"json": {"recent_turns": -1}}, 422, "recent_turns"),
    ("POST", "/sessions/tea/context", {"json": {"recent_turns": True}}, 422, "recent_turns"),
    ("POST", "/sessions/tea/context", {"json": {"token_threshold_ratio": 0}}, 422, "token_threshold_ratio"),
    ("POST", "/sessions/tea/context", {"json": {"model_context_window": 1.5}}, 422, "model_context_window"),
    ("POST", "/sessions/tea/context", {"json": {"model_context_window": 10**9}}, 422, "model_context_window"),
    ("POST", "/sessions/tea/context", {"json": {"query": 3}}, 422, "query must be a text."),
    ("POST", "/sessions/tea/context", {"json": {"qeury": "x"}}, 422, "There is no field 'qeury'; did you mean query?"),
    ("POST", "/sessions/tea/context", raw(b"{"), 400, "not JSON"),
    ("POST", "/sessions/tea/context", {"content": b"{}"}, 415, "application/json"),
    ("POST", "/sessions/tea/turns", {"json": {}}, 422, "Give at least one of user_query, agent_response."),
    ("POST", "/sessions/tea/turns", {"json": {"user_query": ""}}, 422, "A turn needs user_query, agent_response"),
    ("POST", "/sessions/tea/turns", {"json": {"user_query": "x", "sent_at": "soon"}}, 422, "'soon' is no time"),
    ("POST", "/sessions/tea/turns", {"json": {"user_query": "x", "sent_at": True}}, 422, "True is no time"),
    ("POST", "/sessions/tea/turns", {"json": {"user_query": "x" * 20_001}}, 422, "max_text_chars"),
    (
        "POST",
        "/sessions/tea/turns",
        {"json": {"user_query": "x", "b": 1}},
        422,
        "There is no field 'b'; there are user_id, agent_code, user_query",
    ),
    ("POST", f"/sessions/{'x' * 513}/turns", {"json": {"user_query": "x"}}, 422, "at most 512"),
    ("POST", "/sessions/nowhere/checkpoint", {}, 404, "'nowhere'"),
    ("POST", "/sessions/nowhere/checkpoint", {"json": {"summary": "s"}}, 404, "'nowhere'"),
    ("POST", "/sessions/tea/checkpoint", {"json": {"summary": " "}}, 422, "a text that is not blank"),
    (
        "POST",
        "/sessions/tea/checkpoint",
        {"json": {"recent_turns": 3}},
        422,
        "belong to a summary; give a summary with them, or leave them out.",
    ),
    (
        "POST",
        "/sessions/tea/checkpoint",
        {"json": {"summary": "s", "covers_through": "nothing"}},
        404,
        "has no message 'nothing'; covers_through is",
    ),
    ("POST", "/sessions/tea/checkpoint", {"json": {"summary": "s", "expected_checkpoint": "c0"}}, 409, "moved on"),
    ("POST", "/sessions/nowhere/reset", {}, 404, "'nowhere'"),
    ("GET", "/sessions/nowhere/checkpoints", {}, 404, "'nowhere'"),
    ("GET", "/sessions/tea/checkpoints?before=0", {}, 422, "before"),
    ("GET", f"/sessions/tea/checkpoints?before={2**63}", {}, 422, "before"),
    ("DELETE", "/sessions/tea", {}, 405, "/openapi.json"),
]


async def test_bad_input_is_a_problem_that_says_what_to_do(http):
    await http.post("/sessions", json=STARTED)
    with all_cases() as case:
        for method, path, body, status, says in BAD:
            with case(method, path, body):
                answer = await http.request(method, path, **body)
                problem = answer.json()
                assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
                assert says in problem["detail"]
                assert (await http.get("/sessions/tea")).json()["flow_context"]["turn_count"] == 0


OURS = [
    ("GET", "/sessions/tea", None),
    ("PATCH", "/sessions/tea/state", {"mine": 1}),
    ("POST", "/sessions/tea/context", {"patient_id": "p"}),
    ("POST", "/sessions/tea/checkpoint", None),
    ("POST", "/sessions/tea/checkpoint", {"summary": "s", "covers_through": "t1-answer"}),
    ("POST", "/sessions/tea/reset", None),
    ("GET", "/sessions/tea/checkpoints", None),
]


@pytest.fixture
async def ours(lore):
    """A session of the tenant `ours`."""
    sessions = lore.for_tenant("ours").sessions
    await sessions.write_turn("tea", "ann", "till", "a secret", "kept", turn_id="t1")
    await sessions.checkpoint("tea", "secrets were told", covers_through="t1-answer")
    return sessions


@pytest.fixture
async def stranger(lore, connect):
    """A client of the tenant `theirs`."""
    _, secret = await lore.for_tenant("theirs").keys.create("theirs", scopes=("admin",))
    async with connect(key=secret) as client:
        yield client


async def test_no_path_shows_or_changes_another_tenants_session(ours, stranger):
    before = (await ours.get_session("tea"), await ours.checkpoints("tea"))
    with all_cases() as case:
        for method, path, body in OURS:
            with case(method, path, body):
                answer = await stranger.request(method, path, json=body)
                assert answer.status_code == 404
                assert "secret" not in answer.text
                assert (await ours.get_session("tea"), await ours.checkpoints("tea")) == before


async def test_the_same_id_is_another_tenants_own_conversation(ours, stranger):
    before = (await ours.get_session("tea"), await ours.messages("tea"))
    assert (await stranger.get("/sessions")).json() == {"sessions": [], "next": None}
    await say(stranger, "mine", turn_id="t1")
    await stranger.post("/sessions", json={**STARTED, "user_id": "eve"})
    assert (await context(stranger))["history"] == "User: mine"
    assert (await ours.get_session("tea"), await ours.messages("tea")) == before


async def test_a_reader_cannot_change_a_session(ours, lore, connect):
    _, secret = await lore.for_tenant("ours").keys.create("reader", scopes=("read",))
    async with connect(key=secret) as reader:
        reader.params = {"viewer": "room:tea"}
        assert (await context(reader))["mode"] == "SUMMARY_N"
        refused = await reader.post("/sessions/tea/context", json={"patient_id": "p"})
        elsewhere = await reader.post("/sessions/tea/context", params={"viewer": "room:other"})
        assert (elsewhere.status_code, "secret" in elsewhere.text) == (404, False)
    assert refused.status_code == 403
    assert "lacks the scope write" in refused.json()["detail"]
    assert (await ours.get_session("tea")).meta.patient_id is None
