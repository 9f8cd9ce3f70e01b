"""`roomlore session`: the flow as a person types it, what is printed for whom, and what is refused."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roomlore
from roomlore.surfaces.cli.app import app
from roomlore_testkit.case_table import all_cases

ALL = ("--covers-through", "t2-answer")
HOSTILE = "\x1b[2J [red]tea\u202e \0 :smile:"


@pytest.fixture
def run():
    def invoke(*arguments: str, code: int = 0, given: bytes | None = None):
        result = CliRunner().invoke(app, ["--db", "chat.db", "session", *arguments], input=given)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture
def talk(run):
    """A conversation of two turns."""
    run("create", "tea", "--user", "ann")
    run(
        "turn",
        "tea",
        "--user-query",
        "Green or black?",
        "--agent-response",
        "Green.\n  - steep two minutes",
        "--turn-id",
        "t1",
    )
    run(
        "turn",
        "tea",
        "--user-query",
        "我对花生过敏",
        "--agent-response",
        "记住了",
        "--agent",
        "till",
        "--turn-id",
        "t2",
    )
    return run


def asked(run, *arguments: str) -> dict:
    return json.loads(run("context", "tea", "--json", *arguments).stdout)


def test_a_session_is_created_once_and_its_ids_are_filled_in(run):
    assert run("create", "tea", "--user", "ann").stdout.startswith("tea: FULL_HISTORY, 0 turns, user ann, changed 20")
    again = run("create", "tea", "--user", "eve", "--enterprise", "e1", "--patient", "p1").stdout
    assert "user ann, enterprise e1, patient p1" in again


def test_an_older_session_is_taken_over(run):
    older = {"meta": {"user_id": "u9"}, "global_state": {"current_intent": "refund"}, "newer": [1, None]}
    Path("older.json").write_text(json.dumps(older), encoding="utf-8")
    value = json.loads(run("create", "tea", "--from", "older.json", "--json").stdout)
    assert (value["meta"]["user_id"], value["newer"]) == ("u9", [1, None])
    piped = json.loads(run("create", "two", "--from", "-", "--json", given=json.dumps(value).encode()).stdout)
    assert piped["global_state"] == value["global_state"]


def test_context_for_people(talk):
    *history, _, gauge, through = talk("context", "tea").stdout.splitlines()
    assert history == [
        "用户: Green or black?",
        "助手: Green.",
        "  - steep two minutes",
        "用户: 我对花生过敏",
        "助手: 记住了",
    ]
    assert " of 16,000 tokens (0." in gauge
    assert gauge.endswith(" %), 2 turns, FULL_HISTORY")
    assert through == "history through message t2-answer, checkpoint in force: none"


def test_a_full_window_says_what_to_do(talk):
    full = asked(talk)["estimated_tokens"]
    shown = talk("context", "tea", "--window", str(full)).stdout
    assert f"{full} of {full} tokens (100.0 %), 2 turns" in shown
    assert "asks for a checkpoint: `roomlore session checkpoint tea` makes one" in shown
    assert "truncated" not in shown
    cut = talk("context", "tea", "--window", str(full - 1)).stdout
    assert "truncated: the oldest turns do not fit the window and are left out" in cut
    assert ", 1 turn, " in cut
    assert "asks for" not in talk("context", "tea", "--window", str(full + 1), "--ratio", "1").stdout


def test_what_a_summary_covers_and_still_does_not_fit_is_not_sent_to_another_checkpoint(talk):
    talk("checkpoint", "tea", "Tea.", *ALL)
    full = asked(talk)["estimated_tokens"]
    cut = talk("context", "tea", "--window", str(full - 1)).stdout
    assert "the last turns do not fit although a summary covers them; name a larger window (--window) or" in cut
    tight = talk("context", "tea", "--window", str(full)).stdout
    assert "the last turns fill the share of the window although a summary covers them" in tight
    assert "asks for a checkpoint" not in cut + tight
    talk("turn", "tea", "--user-query", "more")
    assert "asks for a checkpoint" in talk("context", "tea", "--window", str(full)).stdout


def test_the_query_counts_and_may_come_from_standard_input(talk):
    plain = asked(talk)["estimated_tokens"]
    assert asked(talk, "--query", "one two three")["estimated_tokens"] == plain + 3
    piped = json.loads(talk("context", "tea", "--query", "-", "--json", given=b"one two three\n").stdout)
    assert piped["estimated_tokens"] == plain + 3


def test_a_summary_stands_for_what_it_covers(talk):
    before = asked(talk)
    talk("turn", "tea", "--user-query", "more")
    shown = talk(
        "checkpoint", "tea", "Ann drinks green tea.", "--covers-through", before["covers_through"], "--expected", ""
    ).stdout
    assert shown.startswith("Ann drinks green tea.\n\ncheckpoint ")
    assert "(number 1, by caller): 5 tokens stand for 2 turns, through message t2-answer" in shown
    after = talk("context", "tea", "--turns", "0").stdout
    assert "Ann drinks green tea." in after.splitlines()[0]
    assert "1 turn, SUMMARY_N" in after
    stale = talk("checkpoint", "tea", "late", "--expected", "", code=1).stderr
    assert "The conversation has moved on" in stale


def test_a_summary_whose_coverage_is_assumed_says_so_until_it_is_told(talk):
    """Each command is a process of its own; which context asked is known to all."""
    assert talk("context", "tea", "--ratio", "0.0001").stdout.count("coverage assumed") == 0
    talk("turn", "tea", "--user-query", "more")
    shown = talk("checkpoint", "tea", "Ann drinks green tea.").stdout
    assert "through message t2-answer" in shown
    assert "coverage assumed: tell it with --covers-through or --token, else turns may be lost" in shown
    assert "coverage assumed: what the summary covers was not told" in talk("context", "tea").stdout
    token = asked(talk)["checkpoint_token"]
    assert "coverage assumed" not in talk("checkpoint", "tea", "Ann wants more green tea.", "--token", token).stdout
    assert "coverage assumed" not in talk("context", "tea").stdout
    assert "moved on" in talk("checkpoint", "tea", "late", "--token", token, code=1).stderr


def test_without_a_summary_one_is_made(talk):
    made = json.loads(talk("checkpoint", "tea", "--json").stdout)
    assert (made["made_by"], made["turns"]) == ("extract", 2)
    assert made["summary"]
    assert talk("checkpoint", "tea").stdout == ("Nothing was said in tea that no summary covers; nothing is changed.\n")
    assert json.loads(talk("checkpoint", "tea", "--json").stdout) is None


def test_a_summary_and_a_turn_may_come_from_standard_input(run):
    run(
        "turn",
        "tea",
        "--user-query",
        "-",
        "--agent-response",
        "short",
        "--turn-id",
        "t1",
        given="两行\n文字\n".encode(),
    )
    assert asked(run)["messages"][0]["content"] == "两行\n文字"
    run("checkpoint", "tea", "-", "--covers-through", "t1-answer", given=b"\xef\xbb\xbfTwo lines.\n")
    assert asked(run)["session"]["message_context"]["summary"] == "Two lines."


def test_a_reset_begins_anew_and_keeps_everything(talk):
    talk("checkpoint", "tea", "a summary", *ALL)
    assert "tea begins anew; what was said before stays stored" in talk("reset", "tea").stdout
    assert "(nothing is shown)" in talk("context", "tea").stdout
    shown = talk("checkpoints", "tea").stdout.splitlines()
    assert shown[0].split() == ["number", "made", "by", "turns", "tokens", "summary"]
    assert shown[1].rstrip().endswith("(reset: begun anew)")
    assert shown[2].rstrip().endswith("a summary")
    assert [one["number"] for one in json.loads(talk("checkpoints", "tea", "--json", "-n", "1").stdout)] == [2]


def test_a_conversation_without_checkpoints_says_so(talk):
    assert talk("checkpoints", "tea").stdout == "tea has no checkpoint yet.\n"


def test_state_is_patched_and_shown(talk):
    shown = talk("state", "tea", '{"global_state": {"current_intent": "refund"}, "mine": {"a": 1}}').stdout
    assert json.loads(shown.removeprefix("state\n")) == {
        "global_state": {"current_intent": "refund"},
        "mine": {"a": 1},
    }
    value = json.loads(talk("state", "tea", "-", "--json", given=b'{"mine": null}').stdout)
    assert "mine" not in value
    assert value["global_state"]["current_intent"] == "refund"


def test_a_session_is_shown_whole(talk):
    talk("checkpoint", "tea", "Ann drinks\ngreen tea.", *ALL)
    talk("state", "tea", '{"user_snapshot": {"allergies": ["花生"]}}')
    shown = talk("show", "tea").stdout
    assert shown.startswith("tea: SUMMARY_N, 2 turns, user ann, agent till, changed ")
    assert "Ann drinks\ngreen tea.\n" in shown
    assert "assistant: Green.\n  - steep two minutes\nuser: 我对花生过敏" in shown
    assert '"花生"' in shown
    value = json.loads(talk("show", "tea", "--json").stdout)
    assert value["flow_context"]["turn_count"] == 2
    assert "no state is kept with it" in talk("create", "bare").stdout + talk("show", "bare").stdout


def test_sessions_are_listed(talk):
    talk("create", "another")
    head, *lines = talk("list").stdout.splitlines()
    assert head.split() == ["conversation", "mode", "user", "changed", "checkpoint"]
    assert [line.split()[:3] for line in lines] == [["another", "FULL_HISTORY", "–"], ["tea", "FULL_HISTORY", "ann"]]
    assert [one["conversation_id"] for one in json.loads(talk("list", "--json").stdout)] == ["another", "tea"]


def test_without_sessions_the_list_says_where_it_looked(run):
    with roomlore.open_sync("chat.db"):
        """A new database."""
    told = "There are no sessions in chat.db; `roomlore session turn CONVERSATION` begins one.\n"
    assert run("list").stdout == told
    assert json.loads(run("list", "--json").stdout) == []


def test_a_turn_may_be_repeated_and_not_changed(talk):
    assert talk("turn", "tea", "--user-query", "a", "--turn-id", "t3").stdout == "turn t3 is in tea (FULL_HISTORY)\n"
    talk("turn", "tea", "--user-query", "a", "--turn-id", "t3")
    assert asked(talk)["turns"] == 3
    assert "Turn 't3' is stored already" in talk("turn", "tea", "--user-query", "b", "--turn-id", "t3", code=1).stderr


def test_times_are_of_the_setting_time_zone(run, monkeypatch):
    monkeypatch.setenv("MEMORY_TIME_ZONE", "Asia/Shanghai")
    run("turn", "tea", "--user-query", "a", "--sent-at", "2024-05-01T08:00")
    exported = CliRunner().invoke(app, ["--db", "chat.db", "export"]).stdout
    assert json.loads(exported.splitlines()[0])["sent_at"] == "2024-05-01T00:00:00+00:00"


def test_no_text_can_steer_the_terminal(run):
    name = f"n {HOSTILE}"
    run("create", name, "--user", HOSTILE)
    run(
        "turn",
        name,
        "--user-query",
        f"{HOSTILE}\n{HOSTILE}",
        "--agent-response",
        HOSTILE,
        "--agent",
        HOSTILE,
        "--turn-id",
        "t",
    )
    run("state", name, json.dumps({HOSTILE: HOSTILE}))
    shown = run("context", name, "--window", "30").stdout + run("show", name).stdout
    run("checkpoint", name, HOSTILE, "--covers-through", "t-answer")
    shown += "".join(
        run(*what).stdout for what in (("context", name), ("show", name), ("checkpoints", name), ("list",))
    )
    shown += run("reset", name).stdout + run("checkpoint", name).stdout + run("state", name, "{}").stdout
    assert "[red]tea" in shown
    assert ":smile:" in shown
    assert not {"\x1b", "\0", "\u202e"} & set(shown)


def test_a_conversation_that_cannot_be_typed_as_it_is_is_quoted_in_advice(run):
    run("turn", "my tea", "--user-query", "hello")
    assert "`roomlore session checkpoint 'my tea'`" in run("context", "my tea", "--ratio", "0.0001").stdout


BAD = [
    (
        ("show", "nowhere"),
        None,
        "There is no conversation 'nowhere'; create its session, or write a turn to it. Looked for in chat.db.",
    ),
    (("context", "nowhere"), None, "'nowhere'"),
    (("checkpoint", "nowhere"), None, "'nowhere'"),
    (("checkpoints", "nowhere"), None, "'nowhere'"),
    (("reset", "nowhere"), None, "'nowhere'"),
    (("state", "nowhere", "{}"), None, "'nowhere'"),
    (("create", "x" * 513), None, "at most 512"),
    (("create", "x", "--from", "missing.json"), None, "missing.json cannot be read"),
    (("create", "x", "--from", "-"), b"\xff", "Standard input is not UTF-8: byte 0"),
    (("create", "x", "--from", "-"), b"[]", "--from - is '[]'; write an object such as"),
    (("create", "x", "--from", "-"), b'{"meta": 3}', "meta is 3; it must be a JSON object."),
    (("state", "tea", "{"), None, "The patch is not JSON"),
    (("state", "tea", "[" * 100_000), None, "The patch is not JSON"),
    (("state", "tea", "3"), None, "The patch is '3'; write an object such as '{\"global_state\""),
    (("state", "tea", '{"x": NaN}'), None, "The patch is not JSON: NaN is no JSON value"),
    (("state", "tea", '{"meta": {"user_id": "x"}}'), None, "meta.user_id follows from what is stored"),
    (("state", "tea", json.dumps({"x": "x" * 300_000})), None, "at most 262144"),
    (("context", "tea", "--ratio", "2"), None, "token_threshold_ratio is 2.0; give a number above 0 and up to 1."),
    (("context", "tea", "--window", "0"), None, "model_context_window is 0"),
    (("context", "tea", "--turns", "-1"), None, "recent_turns is -1"),
    (("context", "tea", "--window", "2", "--query", "a b c d e"), None, "shorten it or name a larger window"),
    (("turn", "tea"), None, "A turn needs --user-query, --agent-response or both."),
    (("turn", "tea", "--user-query", "-"), b"", "A turn needs user_query, agent_response or both."),
    (("turn", "tea", "--user-query", "-", "--agent-response", "-"), b"x", "Standard input is one text"),
    (("turn", "tea", "--user-query", "x", "--sent-at", "soon"), None, "--sent-at is 'soon'; write a time such as"),
    (("checkpoint", "tea", " "), None, "a text that is not blank"),
    (("checkpoint", "tea", "--turns", "3"), None, "belong to a summary; give a SUMMARY with them, or leave them out."),
    (("checkpoint", "tea", "s", "--covers-through", "m0"), None, "has no message 'm0'"),
    (("checkpoint", "tea", "s"), None, "Pass covers_through"),
]


def test_bad_input_is_a_sentence_that_says_what_to_do(talk):
    with all_cases() as case:
        for arguments, given, says in BAD:
            with case(arguments):
                result = talk(*arguments, code=1, given=given)
                assert says in result.stderr
                assert result.stderr.startswith("roomlore: ")
                assert result.stdout == ""
                assert asked(talk)["turns"] == 2


def test_another_tenants_session_is_not_there(talk):
    result = CliRunner().invoke(app, ["--db", "chat.db", "--tenant", "theirs", "session", "show", "tea"])
    assert (result.exit_code, "There is no conversation 'tea'" in result.stderr) == (1, True)
