"""`roomlore search` and `roomlore reindex`: what they print, what they refuse, and what stops and goes on."""

import json
import signal
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

import embedding_server
from forked_process import ForkedProgram
from roomlore.core.dates import FAR_PAST, TimeSpan
from roomlore.samples import DEMO_ROOM
from roomlore.surfaces.cli import searching, show
from roomlore.surfaces.cli.app import app
from roomlore_testkit.case_table import all_cases


def said(number: int, room: str, sender: str, day: int, text: str, **more: object) -> dict:
    at = f"2024-05-{day:02}T12:00:00Z"
    return {"id": f"m{number}", "room_id": room, "sender_id": sender, "sent_at": at, "text": text, **more}


HOSTILE = "\x1b[2J [red]kettle\u202e \0 [/] :smile:"
CHAT = [
    said(1, "tea", "u_ann", 1, "The kettle is broken again", sender_name="Ann"),
    said(2, "tea", "u_bob", 2, "水壶昨天修好了"),
    said(3, "tea", "u_ann", 14, "Kettles everywhere", sender_name="Ann"),
    said(4, "tea", "u_cat", 15, "", metadata={"caption": "picture of a samovar"}),
    said(5, "odd", "\x1b[31mdan", 3, HOSTILE, sender_name="D\x1ban"),
    said(6, "odd", "u_eve", 3, "blah " * 300 + "the samovar sings " + "blah " * 300),
]


@pytest.fixture
def run():
    def invoke(*arguments: str, code: int = 0):
        result = CliRunner().invoke(app, ["--db", "chat.db", *arguments])
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture
def chat(run):
    Path("chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CHAT), encoding="utf-8")
    run("import", "chat.jsonl")
    return run


@pytest.fixture
def embeddings(monkeypatch):
    with embedding_server.serving() as server:
        for name, value in server.settings.items():
            monkeypatch.setenv(name, value)
        yield server


def ids(result) -> list[str]:
    return [hit["message"]["id"] for hit in json.loads(result.stdout)["hits"]]


def test_search_for_people(chat):
    shown = chat("search", "tea", "kettle", "-n", "1", "--sender", "u_ann", "--until", "2024-05-10").stdout
    head, text, reason, *_, footer = shown.splitlines()
    assert head.split() == ["1", head.split()[1], "2024-05-01", "12:00", "Ann", "m1"]
    assert 0 < float(head.split()[1]) <= 1
    assert text == "    The kettle is broken again"
    assert reason.strip()
    assert footer.startswith("1 message by words alone (lexical) · ")
    assert footer.endswith(" ms")
    assert "\x1b" not in shown


def test_the_words_of_the_query_are_marked():
    from io import StringIO

    from rich.console import Console

    import roomlore

    with roomlore.open_sync("sqlite://") as lore:
        lore.messages.add(roomlore.Message(id="1", room_id="r", sender_id="a", text="Kettles, 水壶 [red]"))
        answer = lore.messages.search("r", "kettle 水壶")
    terminal = StringIO()
    searching.hits(
        answer, Console(file=terminal, force_terminal=True, color_system="standard", width=80), ZoneInfo("UTC")
    )
    assert "\x1b[1;31mKettles\x1b[0m, \x1b[1;31m水壶\x1b[0m [red]" in terminal.getvalue()


def test_search_for_programs_and_its_filters(chat):
    answer = json.loads(chat("search", "tea", "kettle", "--json").stdout)
    assert set(answer) == {"room_id", "query", "mode", "hits", "times", "degraded", "hint", "search_ms"}
    assert {hit["message"]["id"] for hit in answer["hits"]} >= {"m1", "m3"}
    assert ids(chat("search", "tea", "kettle", "--json", "--since", "2024-05-10"))[0] == "m3"
    assert ids(chat("search", "tea", "kettle", "--json", "--until", "2024-05-10"))[0] == "m1"
    assert "m1" not in ids(chat("search", "tea", "kettle", "--json", "--sender", "u_bob", "--sender", "u_cat"))
    assert ids(chat("search", "tea", "水壶", "修好", "--mode", "lexical", "--json"))[0] == "m2"
    assert ids(chat("search", "tea", "samovar", "--json"))[0] == "m4"


def test_times_are_read_from_when_it_is_asked(chat):
    shown = chat("search", "tea", "kettle", "last", "week", "--asked-at", "2024-05-10").stdout
    assert "“last week” is 2024-04-29 to 2024-05-05" in shown
    assert "2024-05-06 to 2024-05-12" in chat("search", "tea", "kettle last week", "--asked-at", "newest").stdout


def test_times_are_given_and_told_in_the_zone_of_the_setting(chat, monkeypatch):
    assert ids(chat("search", "tea", "kettle", "--json", "--until", "2024-05-01T13:00")) == ["m1"]
    monkeypatch.setenv("MEMORY_TIME_ZONE", "Asia/Shanghai")
    assert ids(chat("search", "tea", "kettle", "--json", "--until", "2024-05-01T13:00")) == []
    assert ids(chat("search", "tea", "kettle", "--json", "--until", "2024-05-01T13:00Z")) == ["m1"]
    shown = chat("search", "tea", "kettle", "--until", "2024-05-01T20:01").stdout
    assert "2024-05-01 20:00  Ann" in shown
    assert " · times of Asia/Shanghai · " in shown


def test_the_ends_of_the_calendar_are_shown(run, monkeypatch):
    monkeypatch.setenv("MEMORY_TIME_ZONE", "Asia/Shanghai")
    row = {**said(1, "far", "ann", 1, "kettle"), "sent_at": "9999-12-31T23:59:00Z"}
    Path("far.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    run("import", "far.jsonl")
    assert "9999-12-31 23:59" in run("search", "far", "kettle last week", "--asked-at", "newest").stdout


@pytest.mark.parametrize(
    ("start", "end", "zone", "told"),
    [
        (datetime(2024, 5, 1), datetime(2024, 5, 8), "UTC", "2024-05-01 to 2024-05-07"),
        (datetime(2024, 5, 1), datetime(2024, 5, 2), "UTC", "2024-05-01"),
        (datetime(2024, 4, 30, 16), datetime(2024, 5, 1, 16), "Asia/Shanghai", "2024-05-01"),
        (datetime(2024, 5, 1, 3), datetime(2024, 5, 1, 6), "UTC", "2024-05-01 03:00 to 06:00"),
        (datetime(2024, 5, 1, 3), datetime(2024, 5, 1, 6), "Asia/Shanghai", "2024-05-01 11:00 to 14:00"),
        (datetime(2024, 5, 1, 22), datetime(2024, 5, 2, 4), "UTC", "2024-05-01 22:00 to 2024-05-02 04:00"),
        (FAR_PAST, datetime(2024, 5, 1), "UTC", "up to 2024-04-30"),
    ],
)
def test_a_time_is_told_in_the_days_of_the_zone(monkeypatch, start, end, zone, told):
    monkeypatch.setattr(show, "_zone", ZoneInfo(zone))
    span = TimeSpan(start=start.replace(tzinfo=UTC), end=end.replace(tzinfo=UTC), text="then", position=(0, 4))
    assert searching.spoken(span) == told


def test_a_text_an_id_and_a_name_cannot_steer_the_terminal(chat):
    shown = chat("search", "odd", "kettle").stdout
    assert "\ufffd[2J [red]kettle\ufffd \ufffd [/] :smile:" in shown
    assert not {"\x1b", "\u202e", "\0"} & set(shown)
    assert "\x1b" not in chat("search", "odd", "\x1b[31mkettle").stdout


def test_of_a_long_text_the_part_that_fits_is_shown(chat):
    shown = chat("search", "odd", "samovar", "-n", "1").stdout
    assert "samovar sings" in shown
    assert shown.count("…") == 2
    assert max(map(len, shown.splitlines())) <= show.PLAIN_WIDTH


def test_a_picture_is_shown_by_its_caption(chat):
    assert "    picture of a samovar" in chat("search", "tea", "samovar").stdout


def test_hits_of_other_times_stand_below_those_of_the_time_asked_for(chat):
    shown = chat("search", "tea", "kettle on 14 May 2024").stdout
    assert shown.index("Kettles everywhere") < shown.index("From other times:") < shown.index("\n    The kettle")
    assert "has your word: kettle · from “14 May 2024”" in shown
    shown = chat("ask", "tea", "kettle on 14 May 2024").stdout
    assert shown.index("Kettles everywhere") < shown.index("From other times:") < shown.index("The kettle")
    assert "has your word: kettle · from “14 May 2024”" in " ".join(shown.split())
    nothing = chat("search", "tea", "kettle in June 2023")
    assert "Nothing is from “June 2023” (2023-06-01 – 2023-06-30)." in nothing.stderr
    assert "From other times:" not in nothing.stdout, "it is said once"


def test_nothing_found_says_what_to_try(chat):
    for command in ("search", "ask"):
        plain = chat(command, "tea", "zebra").stdout
        assert plain.startswith("No message here has your words: zebra. Try other words, or fewer.\n")
        assert "filter" not in plain
        unknown = chat(command, "tea", "kettle", "--sender", "zoe", "--since", "2024-01-01", code=1).stderr
        assert unknown.startswith("roomlore: Nobody who wrote here has the id 'zoe'")
        assert unknown.count("zoe") == 1, "it is said once"
        near = chat(command, "tea", "kettle", "--sender", "u_anna", code=1).stderr
        assert "did you mean 'u_ann' ('Ann')?" in near
        filtered = chat(command, "tea", "zebra", "--since", "2024-05-14").stdout
        assert "of those that the filters leave" in " ".join(filtered.split())
    assert json.loads(chat("search", "tea", "zebra", "--json").stdout)["hits"] == []


BAD = [
    (("search", "nowhere", "x"), 1, "'nowhere'"),
    (("search",), 2, "QUERY"),
    (("search", "tea", " "), 1, "The query is empty"),
    (("search", "tea", "x", "--limit", "0"), 1, "from 1 to 200"),
    (("search", "tea", "x", "-n", "201"), 1, "from 1 to 200"),
    (("search", "tea", "x", "--mode", "fuzzy"), 1, "'hybrid' or 'lexical'"),
    (("search", "tea", "x", "--since", "soon"), 1, "--since is 'soon'; write one time"),
    (("search", "tea", "x", "--until", "2024-13-01"), 1, "--until"),
    (("search", "tea", "x", "--asked-at", "soon"), 1, "--asked-at"),
    (("search", "tea", "x" * 20_001), 1, "at most 20000"),
    (("reindex", "--vectors"), 1, "No embedder is configured"),
    (("reindex", "--pending", "--words"), 1, "give it alone"),
    (("reindex", "--status", "--resume"), 1, "give it alone"),
    (("reindex", "--links", "--words"), 1, "give it alone"),
    (("reindex", "--links", "--status"), 1, "give it alone"),
    (("reindex", "--links", "--pending"), 1, "give it alone"),
]


def test_bad_input_is_one_sentence_and_a_status(chat):
    with all_cases() as case:
        for arguments, code, says in BAD:
            with case(arguments):
                result = chat(*arguments, code=code)
                assert says in result.stderr
                assert "Traceback" not in result.stderr
                assert result.stdout == ""


def test_tenants_do_not_find_each_others_messages(chat):
    assert "'tea'" in chat("--tenant", "other", "search", "tea", "kettle", code=1).stderr


def test_reindex_without_an_embedder(chat):
    told = chat("reindex").stdout
    assert told == "indexed the words of 6 messages\nno vectors: `embeddings` is off, search goes by words alone\n"
    assert chat("reindex", "--words").stdout == "indexed the words of 6 messages\n"
    assert ids(chat("search", "tea", "samovar", "--json")) == ["m4"]
    status = json.loads(chat("reindex", "--status", "--json").stdout)
    assert status == {
        "vectors": "off",
        "words": "whole",
        "model": None,
        "waiting": 0,
        "rooms_to_link": 0,
        "problem": None,
    }
    assert [line.split()[:2] for line in chat("reindex", "--status").stdout.splitlines()[1:4]] == [
        ["words", "whole"],
        ["vectors", "off"],
        ["model", "–"],
    ]


def test_rooms_of_an_earlier_link_model_are_linked_anew(chat):
    assert chat("reindex", "--links").stdout == "nothing was waiting\n"
    for command in ("--links", "--pending"):
        with sqlite3.connect("chat.db") as database:
            database.execute("UPDATE rooms SET linked_by = 'earlier'")
            database.execute("UPDATE message_features SET thread = arrival, parent = NULL, link_kind = 'new'")
        database.close()
        told = chat("reindex", "--status").stdout
        assert "2 rooms to link anew" in told
        assert "--links" in told
        assert chat("reindex", command).stdout.splitlines()[0] == "linked anew 6 messages"
        assert "to link anew" not in chat("reindex", "--status").stdout
        with sqlite3.connect("chat.db") as database:
            linked = database.execute("SELECT count(*) FROM message_features WHERE parent IS NOT NULL").fetchone()
        database.close()
        assert linked[0] > 1


def test_with_an_embedder_import_makes_the_vectors(embeddings, chat):
    assert "Ann: The kettle is broken again" in embeddings.texts
    status = json.loads(chat("reindex", "--status", "--json").stdout)
    assert (status["vectors"], status["waiting"]) == ("whole", 0)
    assert status["model"] == {"name": "hash", "dimensions": 64}
    answer = json.loads(chat("search", "tea", "kettle", "--json").stdout)
    assert (answer["mode"], answer["degraded"]) == ("hybrid", None)
    assert "by words and meaning (hybrid)" in chat("search", "tea", "kettle").stdout
    assert "by words alone" in chat("search", "tea", "kettle", "--mode", "lexical").stdout


def test_messages_from_before_get_their_vectors_when_asked(run, chat, embeddings):
    degraded = run("search", "tea", "kettle").stdout
    assert "degraded: The vector index is not made yet" in degraded
    assert "--pending" in run("reindex", "--status").stdout
    assert run("reindex", "--pending").stdout == "made the vectors of 6 texts\n"
    assert run("reindex", "--pending").stdout == "nothing was waiting\n"
    assert json.loads(run("search", "tea", "kettle", "--json").stdout)["mode"] == "hybrid"
    assert run("reindex").stdout == "indexed the words of 6 messages\nmade the vectors of 6 texts\n"


def test_another_model_is_told_and_reindexed(embeddings, chat, monkeypatch):
    monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "other")
    assert "roomlore reindex" in chat("reindex", "--pending", code=1).stderr
    assert "was made with hash (64 dimensions), but other" in chat("search", "tea", "kettle").stdout
    assert "The messages are in, but have no vectors." in chat("import", "chat.jsonl").stderr
    chat("reindex", "--vectors")
    assert json.loads(chat("search", "tea", "kettle", "--json").stdout)["mode"] == "hybrid"


def test_a_server_that_refuses_costs_no_message(embeddings, run):
    embeddings.status = 401
    Path("chat.jsonl").write_text(json.dumps(CHAT[0]) + "\n", encoding="utf-8")
    result = run("import", "chat.jsonl")
    assert "1 added" in result.stdout
    assert "`roomlore reindex --pending` makes the vectors that are left" in result.stderr
    assert "embedding_api_key" in result.stderr
    assert "embedding_api_key" in run("reindex", "--pending", code=1).stderr
    assert "embedding_api_key" in run("reindex", code=1).stderr
    embeddings.status = 200
    assert run("reindex", "--vectors").stdout == "made the vectors of 1 text\n"


def stopped(*arguments: str, server: embedding_server.EmbeddingServer) -> subprocess.CompletedProcess[str]:
    """The program, stopped with Ctrl-C while the server holds its answer back."""
    server.hold.clear()
    server.waiting.clear()
    with Path("told.txt").open("w+b") as told:
        process = ForkedProgram("roomlore", "--db", "chat.db", *arguments, error=told.fileno())
        try:
            assert server.waiting.wait(120)
            process.send_signal(signal.SIGINT)
            out, status = process.stdout.read().decode(), process.wait(500)
        finally:
            process.close()
            server.hold.set()
        told.seek(0)
        return subprocess.CompletedProcess(arguments, status, out, told.read().decode())


def test_ctrl_c_says_how_to_go_on(embeddings, chat):
    rebuild = stopped("reindex", server=embeddings)
    assert (rebuild.returncode, rebuild.stdout) == (130, "")
    assert rebuild.stderr == "Stopped. `roomlore reindex --resume` goes on from here.\n"
    assert "rebuilding" in chat("reindex", "--status").stdout
    assert "made the vectors of 6 texts" in chat("reindex", "--resume").stdout
    assert json.loads(chat("search", "tea", "kettle", "--json").stdout)["degraded"] is None


def test_ctrl_c_leaves_the_vectors_of_an_import_for_later(embeddings, run):
    Path("chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CHAT), encoding="utf-8")
    imported = stopped("import", "chat.jsonl", server=embeddings)
    assert imported.returncode == 0
    assert "6 added" in imported.stdout
    assert "Stopped. The messages are in; `roomlore reindex --pending` makes the vectors" in imported.stderr
    assert run("reindex", "--pending").stdout == "made the vectors of 6 texts\n"


@pytest.mark.parametrize(("zone", "sent"), [("UTC", "06-17 01:17"), ("America/New_York", "06-16 21:17")])
def test_the_demo_shows_times_as_every_command_does_and_finds_the_same(run, monkeypatch, zone, sent):
    monkeypatch.setenv("MEMORY_TIME_ZONE", zone)
    lines = run("demo").stdout.splitlines()
    first = [lines[place + 1] for place, line in enumerate(lines) if line.startswith("Search: ")]
    assert f"{sent} Anna bit of both. A BOM costs us nothing though" in first[0]
    assert "那先不发公告，客服知道就行" in first[1]


def test_the_demo_searches_and_keeps_its_chat_where_told(run):
    shown = run("demo").stdout
    assert shown.count("by words alone (lexical)") == 2
    assert f"  roomlore --db chat.db ask {DEMO_ROOM} when is the web deploy" in shown
    assert "demo  " not in shown, "the chat is kept already"
    assert "129 messages" in run("demo").stdout
    for suggested in ("when is the web deploy", "web deploy 几点"):
        assert ids(run("search", DEMO_ROOM, suggested, "--json"))[0] == "m049"


def test_a_hit_is_shown_within_its_conversation(chat):
    more = [
        said(20, "tea", "u_bob", 20, "which filter fits the old percolator?"),
        said(21, "tea", "u_ann", 20, "the small white one", sender_name="Ann", reply_to="m20"),
    ]
    Path("more.jsonl").write_text("".join(json.dumps(row) + "\n" for row in more), encoding="utf-8")
    chat("import", "more.jsonl")
    shown = chat("search", "tea", "small white one", "--conversation", "-n", "1").output
    assert "u_bob: which filter fits the old percolator?" in shown
    assert "> the small white one" in shown
    assert "u_bob: which" not in chat("search", "tea", "small white one", "-n", "1").output
    told = json.loads(chat("search", "tea", "small white one", "--conversation", "-n", "1", "--json").output)
    assert [message["id"] for message in told["hits"][0]["conversation"]] == ["m20", "m21"]


def test_all_rooms_that_a_viewer_may_see_are_searched(chat):
    chat("audience", "odd", "--kind", "public")
    shown = chat("search", "samovar", "--viewer", "room:odd").output
    assert "in odd" in shown
    assert "in tea" not in shown
    everywhere = json.loads(chat("search", "--everywhere", "samovar", "--json").output)
    assert everywhere["room_id"] is None
    assert {hit["message"]["room_id"] for hit in everywhere["hits"]} == {"tea", "odd"}
    assert "has your words: giraffe" in chat("search", "giraffe", "--viewer", "room:odd").output
    alone = json.loads(chat("ask", "samovar", "--json").output)
    assert {hit["message"]["room_id"] for hit in alone["hits"]} == {"tea", "odd"}, "one argument is for all rooms"
    assert "viewer is room:" in chat("search", "tea", "--viewer", "someone", code=1).output


def test_a_room_may_be_given_by_its_name(chat):
    chat("rename", "tea", "Tea & Co")
    assert json.loads(chat("search", "tea & co", "kettle", "--json").output)["room_id"] == "tea"
    for name in ("threads", "digest", "visible"):
        assert chat(name, "tea & co", "--json").output == chat(name, "tea", "--json").output
    assert json.loads(chat("context", "Tea & Co", "--json").output)["message_id"] == "m4"
    assert "Kettles" in chat("links", "correct", "Tea & Co", "m3", "--answers", "m1").output
    assert "There is no room" in chat("digest", "Co", code=1).output


def test_a_viewer_may_be_a_room_by_its_name(chat):
    chat("rename", "tea", "Tea & Co")
    for words in (("digest", "tea"), ("search", "kettle")):
        named = json.loads(chat(*words, "--viewer", "room:tea & co", "--json").output)
        by_id = json.loads(chat(*words, "--viewer", "room:tea", "--json").output)
        assert {**named, "search_ms": 0} == {**by_id, "search_ms": 0}
        assert named.get("hits") or named["entries"]


def test_an_empty_list_is_no_table_without_lines(chat):
    assert chat("links", "log", "tea").output == "No corrections in tea.\n"
    assert chat("visible", "tea").output == "0 may be shown in tea, 0 not.\n"
