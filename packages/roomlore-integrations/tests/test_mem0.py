"""mem0's verbs over roomlore, beside the shapes of what mem0 2.2.1 answers (tests/golden/record_mem0.py)."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest

import roomlore
from evolution_rig import block, create, delete, lines, update
from golden.mem0_calls import INFERRED, VERBS, play, signatures
from golden.mem0_configs import CONFIGS
from roomlore.core.chat import EVOLVE_MODEL, ModelRegistry
from roomlore_integrations.mem0 import AsyncMemory, IgnoredSetting, Memory
from roomlore_integrations.mem0.config import Opening, read_config
from roomlore_integrations.mem0.messages import Owners
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.embedding import HashEmbedder
from roomlore_testkit.model_server import Fails, serve_models

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests/golden"
RECORDED = json.loads((GOLDEN / "mem0.json").read_text(encoding="utf-8"))
ANNA = {"user_id": "安娜"}


class Waited:
    """An `AsyncMemory` whose verbs are waited for."""

    def __init__(self, memory, loop):
        self._memory = memory
        self._loop = loop

    def __getattr__(self, verb):
        return lambda *given, **named: self._loop.run_until_complete(getattr(self._memory, verb)(*given, **named))


def with_model(server):
    """mem0's configuration of a model at this server."""
    return {"llm": {"provider": "ollama", "config": {"model": "tiny", "ollama_base_url": server.url[: -len("/v1")]}}}


@contextmanager
def a_sync_client(config=None, **more):
    with Memory(config, **more) as memory:
        yield memory


@contextmanager
def an_async_client(config=None, **more):
    loop = asyncio.new_event_loop()
    memory = Waited(AsyncMemory(config, **more), loop)
    try:
        yield memory
        memory.close()
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


@pytest.fixture(params=[a_sync_client, an_async_client], ids=["sync", "async"])
def client(request):
    return request.param


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'memories.db'}"


@pytest.fixture
def memory(url):
    with Memory(url=url) as opened:
        yield opened


def said(answer):
    return sorted(one["memory"] for one in answer["results"])


def events(answer):
    return [(one["event"], one["memory"]) for one in answer["results"]]


# Beside mem0


def test_answers_have_the_shapes_of_those_of_mem0(client, url):
    answers = [lines(create(INFERRED, "c1", confidence=0.9))]
    with serve_models(answers, default="[]") as server, client(with_model(server), url=url) as memory:
        assert play(memory) == RECORDED["answers"]
        assert len(server.requests) == 1


@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
def test_verbs_take_what_those_of_mem0_take(kind):
    ours, theirs = signatures(kind), RECORDED["signatures"]
    assert ours == theirs
    assert set(theirs) == set(VERBS)


def test_a_second_open_of_the_same_file_finds_the_same(client, url):
    with client(url=url) as memory:
        added = memory.add("对花生过敏", **ANNA, metadata={"来源": "问卷"}, infer=False)["results"][0]
        before = memory.get_all(filters=ANNA)
    with client(url=url) as memory:
        assert memory.get_all(filters=ANNA) == before
        assert memory.get(added["id"])["metadata"] == {"来源": "问卷"}
        memory.update(added["id"], "对花生和虾过敏")
        found = memory.search("花生", filters=ANNA)["results"]
        assert [(one["id"], one["memory"]) for one in found] == [(added["id"], "对花生和虾过敏")]


# Adding


def test_what_is_known_is_not_added_twice(memory):
    first = memory.add("Likes  Oolong", **ANNA, infer=False)["results"][0]
    again = memory.add("likes oolong", **ANNA, infer=False)["results"][0]
    assert (again["event"], again["id"], again["memory"]) == ("NONE", first["id"], "Likes  Oolong")
    noted = memory.add("likes oolong", **ANNA, metadata={"topic": "茶"}, infer=False)["results"][0]
    assert (noted["event"], noted["id"]) == ("UPDATE", first["id"])
    assert [one["metadata"] for one in memory.get_all(filters=ANNA)["results"]] == [{"topic": "茶"}]


@pytest.mark.parametrize("database", ["sqlite_url", "postgres_url"])
def test_a_memory_is_found_by_each_of_its_owners(database, request):
    with Memory(url=request.getfixturevalue(database)) as memory:
        _each_owner_finds_it(memory)


def _each_owner_finds_it(memory):
    memory.add("喜欢爬山", **ANNA, agent_id="guide", run_id="r1", infer=False)
    memory.add("喜欢爬山", **ANNA, run_id="r2", infer=False)
    memory.add("Speaks softly", agent_id="guide", infer=False)
    memory.add("Plays chess", user_id="ben", agent_id="guide", infer=False)
    assert said(memory.get_all(filters={"agent_id": "guide"})) == ["Plays chess", "Speaks softly", "喜欢爬山"]
    assert said(memory.get_all(filters={"run_id": "r1"})) == ["喜欢爬山"]
    assert said(memory.get_all(filters={"run_id": "r2"})) == ["喜欢爬山"]
    assert said(memory.get_all(filters={"agent_id": "guide", "run_id": "r2"})) == []
    assert said(memory.search("chess", filters={"agent_id": "guide"}, top_k=1)) == ["Plays chess"]
    memory.delete_all(agent_id="guide")
    assert [one["run_id"] for one in memory.get_all(filters=ANNA)["results"]] == ["r2"]
    memory.delete_all(**ANNA)
    assert memory.get_all(filters=ANNA) == memory.get_all(filters={"run_id": "r2"}) == {"results": []}


def test_what_is_known_keeps_what_is_kept_beside_it(memory):
    """A regression: the new call's metadata and expiry took the place of the first one's, and filters found nothing."""
    memory.add("爱喝乌龙茶", **ANNA, metadata={"topic": "茶"}, expiration_date="2999-01-01", infer=False)
    memory.add("爱喝乌龙茶", **ANNA, infer=False)
    noted = memory.add(
        "爱喝乌龙茶", **ANNA, metadata={"topic": "other", "n": 1}, expiration_date="2001-01-01", infer=False
    )
    assert noted["results"][0]["event"] == "UPDATE"
    (kept,) = memory.get_all(filters={**ANNA, "topic": "茶"})["results"]
    assert (kept["metadata"], kept["expiration_date"]) == ({"topic": "茶", "n": 1}, "2999-01-01")


def test_what_has_expired_and_is_said_again_is_shown_again(memory):
    memory.add("In Rome", **ANNA, expiration_date="2001-01-01", infer=False)
    memory.add("In Rome", **ANNA, run_id="r1", infer=False)
    assert said(memory.get_all(filters=ANNA)) == said(memory.get_all(filters={"run_id": "r1"})) == ["In Rome"]


def test_each_of_its_owners_has_metadata_of_their_own(memory):
    memory.add("Likes tea", **ANNA, metadata={"n": 1}, infer=False)
    name = memory.add("Likes tea", **ANNA, run_id="r1", metadata={"n": 2}, infer=False)["results"][0]["id"]
    assert said(memory.get_all(filters={**ANNA, "n": 1})) == ["Likes tea"]
    assert said(memory.get_all(filters={**ANNA, "run_id": "r1", "n": 2})) == ["Likes tea"]
    assert said(memory.search("tea", filters={"run_id": "r1", "n": 2})) == ["Likes tea"]
    assert memory.get_all(filters={"run_id": "r1", "n": 1}) == {"results": []}
    memory.update(name, metadata={"n": 3})
    assert said(memory.get_all(filters={"run_id": "r1", "n": 3})) == ["Likes tea"]
    assert said(memory.get_all(filters={**ANNA, "n": 3})) == ["Likes tea"]


def test_deleting_what_a_run_added_keeps_what_was_known_before(memory):
    """A regression: the user's memory went with the run in which it was said again."""
    memory.add("Likes tea", **ANNA, infer=False)
    for run in ("r1", "r2"):
        memory.add("Likes tea", **ANNA, run_id=run, infer=False)
    memory.add("Is in a hurry", **ANNA, run_id="r1", infer=False)
    memory.delete_all(run_id="r1")
    assert said(memory.get_all(filters=ANNA)) == ["Likes tea"]
    assert memory.get_all(filters={"run_id": "r1"}) == {"results": []}
    assert said(memory.get_all(filters={"run_id": "r2"})) == ["Likes tea"]
    memory.add("Likes tea", **ANNA, run_id="r1", infer=False)
    assert said(memory.get_all(filters={"run_id": "r1"})) == ["Likes tea"]


def test_a_run_that_was_first_hands_its_memory_on(memory):
    memory.add("Likes tea", **ANNA, run_id="r1", infer=False)
    memory.add("Likes tea", **ANNA, run_id="r2", metadata={"n": 2}, infer=False)
    memory.delete_all(run_id="r1")
    (kept,) = memory.get_all(filters=ANNA)["results"]
    assert (kept["run_id"], kept["metadata"]) == ("r2", {"n": 2})


def test_saying_it_again_in_many_runs_writes_the_memory_once(url):
    """A regression: each run made a version with the sources of all, in quadratic space and time."""
    with roomlore.open_sync(url, background=False) as lore:
        memory = Memory(lore=lore)
        for n in range(15):
            memory.add("Likes tea", **ANNA, run_id=f"r{n}", infer=False)
            memory.add("Likes tea", **ANNA, metadata={f"k{n}": n}, infer=False)
        assert len(memory.get_all(filters={"run_id": "r7"})["results"]) == 1
        assert len(lore.memories.changes("user:安娜")) == 1
        (one,) = lore.memories.page("user:安娜")
        assert len(one.sources) == 1


def test_without_a_model_what_the_user_said_is_kept_word_for_word(memory):
    talk = [
        {"role": "user", "content": "我搬到成都了 🌶️"},
        {"role": "assistant", "content": "Noted."},
        {"role": "assistant", "content": None},
    ]
    assert events(memory.add(talk, **ANNA)) == [("ADD", "我搬到成都了 🌶️")]
    assert events(memory.add(talk, agent_id="guide")) == [("ADD", "我搬到成都了 🌶️"), ("ADD", "Noted.")]


def test_parts_of_text_are_one_text(memory):
    parts = [{"type": "text", "text": "Two"}, {"type": "text", "text": "lines"}]
    assert said(memory.add({"role": "user", "content": parts}, **ANNA, infer=False)) == ["Two\nlines"]


NOT_TO_BE_ADDED = [
    ([{"content": "who says it"}], {}, "role"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], {}, "describe pictures"),
    ("  ", {}, "empty"),
    (7, {}, "give a text"),
    ("x", {"metadata": "topic"}, "mapping"),
    ("x", {"expiration_date": "soon"}, "2027-01-31"),
    ("x", {"prompt": "Only food."}, "prompts.md"),
    ("x", {"user_id": " "}, "user_id"),
    ("x", {"user_id": "*"}, "user_id"),
]


def test_what_cannot_be_added_says_why_and_leaves_nothing(memory):
    with all_cases() as case:
        for given, named, told in NOT_TO_BE_ADDED:
            with case(given, named):
                with pytest.raises(roomlore.InvalidInput, match=told):
                    memory.add(given, **{**ANNA, "infer": False, **named})
                assert memory.get_all(filters=ANNA) == {"results": []}


def test_owners_in_metadata_are_left_out(memory, caplog):
    memory.add("x", **ANNA, metadata={"user_id": "ben", "n": 1}, infer=False)
    assert memory.get_all(filters={"user_id": "ben"}) == {"results": []}
    assert memory.get_all(filters=ANNA)["results"][0]["metadata"] == {"n": 1}
    assert "whose" in caplog.text


# With a model


def handle_of(statement, asked):
    """Under which one the model was offered it."""
    return next(line.split(" ", 1)[0] for line in block(asked, "memories") if statement in line)


def first_learns_then_corrects(asked):
    if "花生" not in "".join(block(asked, "memories")):
        return lines(create("对花生过敏", "c1"), create("Lives in Rome", "c1"))
    home, nuts = (handle_of(one, asked) for one in ("Lives in Rome", "对花生过敏"))
    return lines(update(home, "Lives in Chengdu", "c1"), delete(nuts))


def test_a_model_changes_what_is_known_of_the_user(url):
    with serve_models(first_learns_then_corrects) as server, Memory(with_model(server), url=url) as memory:
        first = memory.add("我对花生过敏，住在罗马。", **ANNA, run_id="r1", metadata={"topic": "home"})
        assert sorted(events(first)) == [("ADD", "Lives in Rome"), ("ADD", "对花生过敏")]
        shown = [line for line in block(server.requests[0], "messages") if line]
        assert len(shown) == 1
        known = {one["memory"]: one for one in memory.get_all(filters={**ANNA, "run_id": "r1"})["results"]}
        assert known["Lives in Rome"]["metadata"] == {"topic": "home"}
        said_now = "I moved from Rome, I live in Chengdu now. 医生查过，我对花生不过敏了。"
        changed = memory.add([{"role": "user", "content": said_now}], **ANNA)["results"]
        assert {one["event"] for one in changed} == {"UPDATE", "DELETE"}
        moved = next(one for one in changed if one["event"] == "UPDATE")
        assert (moved["memory"], moved["previous_memory"]) == ("Lives in Chengdu", "Lives in Rome")
        assert known["Lives in Rome"]["id"] == moved["id"]
        assert said(memory.get_all(filters=ANNA)) == ["Lives in Chengdu"]


@pytest.mark.parametrize("answer", ["ready", lines(update("m9", "Lives in Chengdu", "c1"))], ids=["no line", "refused"])
def test_a_model_that_says_nothing_of_use_is_asked_once_more(url, answer):
    with serve_models([lines(create("住在成都", "c1"))], default=answer) as server:
        with Memory(with_model(server), url=url) as memory:
            memory.add("我住在成都", **ANNA)
            assert memory.add("I moved.", **ANNA) == {"results": []}
            assert len(server.requests) == 3
            memory.add("To Rome.", **ANNA)
        shown = block(server.requests[3], "messages")
        assert [line for line in shown if "To Rome." in line]
        assert not [line for line in shown if "I moved." in line]


def test_what_was_kept_word_for_word_is_not_read_again(url):
    with serve_models(default="[]") as server, Memory(with_model(server), url=url) as memory:
        memory.add("喜欢乌龙茶", **ANNA, infer=False)
        memory.update(memory.get_all(filters=ANNA)["results"][0]["id"], metadata={"n": 1})
        assert memory.add("How are you?", **ANNA) == {"results": []}
        assert memory.add([{"role": "assistant", "content": "Fine."}], **ANNA) == {"results": []}
        assert len(server.requests) == 1
        assert "How are you?" in "".join(block(server.requests[0], "messages"))
        assert "乌龙茶" not in "".join(block(server.requests[0], "messages"))


def test_what_no_model_could_read_is_read_by_the_next_call(url):
    broken = Fails(status=400)
    script = [broken, lines(create("住在成都", "c1"), create("Plays chess", "c2"))]
    with serve_models(script, default=broken) as server, Memory(with_model(server), url=url) as memory:
        with pytest.raises(roomlore.ModelUnavailable):
            memory.add("我住在成都", **ANNA)
        assert sorted(events(memory.add("I play chess", **ANNA))) == [("ADD", "Plays chess"), ("ADD", "住在成都")]


# Reading


FILTERS = [
    ({"n": 2}, ["二"]),
    ({"n": "2"}, ["text"]),
    ({"n": True}, []),
    ({"n": [1, 3]}, ["one", "three"]),
    ({"tags": ["茶", "x"]}, ["one"]),
    ({"n": {"gt": 1, "lte": 3}}, ["three", "二"]),
    ({"n": {"gte": "2"}}, ["three", "二"]),
    ({"open": {"gt": 0}}, []),
    ({"on": {"gte": "2026-03-05T09:00:00+08:00"}}, ["one", "three"]),
    ({"on": {"lt": "2026-03-05T01:00:00Z"}}, ["二"]),
    ({"on": {"gt": "2026-03-05"}}, ["one", "three", "二"]),
    ({"created_at": {"gte": "2020-01-01T00:00:00+14:00"}}, ["none", "one", "text", "three", "二"]),
    ({"created_at": {"lt": "2020-01-01"}}, []),
    ({"n": {"ne": 2}}, ["one", "text", "three"]),
    ({"tags": {"ne": "tea"}}, ["one"]),
    ({"gone": {"ne": 1}}, []),
    ({"n": {"in": [1, 3]}}, ["one", "three"]),
    ({"n": {"nin": [1, 3]}}, ["text", "二"]),
    ({"tags": "茶"}, ["one"]),
    ({"tags": {"contains": "茶"}}, ["one"]),
    ({"tags": {"icontains": "TEA"}}, ["one"]),
    ({"topic": {"icontains": "HOME"}}, ["three"]),
    ({"OR": [{"n": 1}, {"topic": "home"}]}, ["one", "three"]),
    ({"AND": [{"n": {"gte": 2}}, {"NOT": [{"topic": "home"}]}]}, ["二"]),
    ({"data": {"contains": "二"}}, ["二"]),
    ({"role": "user", "n": 1}, ["one"]),
]  # fmt: skip
"""Filters with what mem0 2.2.1 finds over Qdrant, its usual store."""
OUR_OWN = [
    ({"n": {"lt": "x"}}, ["text"]),
    ({"n": 2.0}, ["二"]),
    ({"n": "*"}, ["one", "text", "three", "二"]),
    ({"OR": [{"n": "*"}]}, ["one", "text", "three", "二"]),
    ({"tags": {"contains": "te"}}, ["one"]),
    ({"topic": {"contains": "ome"}}, ["three"]),
    ({"topic": {"contains": "HOME"}}, []),
    ({"topic": {"icontains": "OM"}}, ["three"]),
    ({"AND": [{"n": 1}, {"n": 2}]}, []),
    ({"n": {"gt": 1, "ne": 3}}, ["二"]),
    ({"tags": {"eq": ["茶", "tea"]}}, ["one"]),
    ({"open": {"ne": True}}, ["text"]),
    ({"memory": "二"}, ["二"]),
]
"""Filters that the table of the page says are read differently."""


def test_filters_on_metadata(memory):
    kept = {
        "one": {"n": 1, "tags": ["茶", "tea"], "on": "2026-03-05T01:00:00Z", "open": True},
        "二": {"n": 2, "on": "2026-03-05T08:59:00+08:00"},
        "three": {"n": 3, "topic": "home", "on": "2026-03-06"},
        "text": {"n": "2", "on": "in spring", "open": False},
        "none": {"gone": None},
    }
    for text, metadata in kept.items():
        memory.add(text, **ANNA, metadata=metadata, infer=False)
    with all_cases() as case:
        for rest, found in FILTERS + OUR_OWN:
            with case(rest):
                assert said(memory.get_all(filters={**ANNA, **rest})) == found
                searched = memory.search("one 二 three text none", filters={**ANNA, **rest}, threshold=0)
                assert said(searched) == found


NOT_TO_BE_ASKED = [
    ("get_all", (), {"filters": ["user_id"]}, "mapping"),
    ("get_all", (), {"filters": {**ANNA, "n": {"like": 1}}}, "there are eq"),
    ("get_all", (), {"filters": {**ANNA, "n": {"in": 1}}}, "a list"),
    ("get_all", (), {"filters": {**ANNA, "OR": []}}, "list of filters"),
    ("get_all", (), {"filters": ANNA, "limit": 5}, "top_k"),
    ("get_all", (), {"filters": ANNA, "top_k": -1}, "top_k"),
    ("search", ("x",), ANNA, "filters={'user_id'"),
    ("search", ("x",), {"filters": ANNA, "reference_date": "today"}, "reference_date"),
    ("delete_all", (), {}, "reset"),
]


def test_what_cannot_be_asked_says_what_to_do(memory):
    with all_cases() as case:
        for verb, given, named, told in NOT_TO_BE_ASKED:
            with case(verb, named), pytest.raises(roomlore.InvalidInput, match=told):
                getattr(memory, verb)(*given, **named)


def test_the_last_changed_come_first_and_no_more_than_asked_for(memory):
    ids = [memory.add(f"事实 {n}", **ANNA, infer=False)["results"][0]["id"] for n in range(5)]
    memory.update(ids[1], "changed")
    assert memory.get_all(filters=ANNA, top_k=1)["results"][0]["id"] == ids[1]
    assert len(memory.get_all(filters=ANNA, top_k=3)["results"]) == 3
    assert memory.get_all(filters=ANNA, top_k=0) == memory.search("x", filters=ANNA, top_k=0) == {"results": []}


def test_what_has_expired_is_not_shown_until_that_is_taken_back(memory):
    added = memory.add("In Rome", **ANNA, expiration_date="2001-01-01", metadata={"n": 1}, infer=False)
    name = added["results"][0]["id"]
    assert memory.search("Rome", filters=ANNA) == memory.get_all(filters=ANNA) == {"results": []}
    assert said(memory.search("Rome", filters=ANNA, show_expired=True)) == ["In Rome"]
    memory.update(name, expiration_date=None)
    shown = memory.get_all(filters=ANNA)["results"][0]
    assert (shown["memory"], shown["metadata"]) == ("In Rome", {"n": 1})
    assert "expiration_date" not in shown


def test_meaning_is_searched_where_there_is_an_embedder(url):
    with roomlore.open_sync(url, embedder=HashEmbedder(), background=False) as lore:
        memory = Memory(lore=lore)
        memory.add("喜欢乌龙茶", **ANNA, infer=False)
        assert [step.done for step in lore.index.drain()][-1] >= 1
        found = memory.search("喜欢乌龙茶", filters=ANNA, explain=True)["results"][0]
        assert found["score_details"]["meaning"] > 0


def test_an_embedder_of_ones_own_is_taken(url):
    with Memory(url=url, embedder=HashEmbedder(name="mine")) as memory:
        assert memory.wait(model_of) == "mine"


async def model_of(verbs):
    return (await verbs._lore.index.status()).model.name


# Beside the rest of roomlore


def test_facts_from_elsewhere_are_shown_with_what_is_known_of_them(url):
    with roomlore.open_sync(url) as lore:
        tea = lore.memories.add("user:安娜", "喜欢乌龙茶", confidence=0.9, category="preference", tags=["茶"])
        lore.memories.add("group:g", "They dine together", kind=roomlore.MemoryKind.GROUP)
        memory = Memory(lore=lore)
        shown = memory.get(tea.memory_id)
        assert shown["metadata"] == {"category": "preference", "tags": ["茶"], "confidence": 0.9}
        assert (shown["user_id"], shown["id"]) == ("安娜", tea.lineage_id)
        assert memory.get_all(filters={"run_id": "g"}) == {"results": []}
        memory.update(tea.memory_id, metadata={"category": "taste"})
        assert memory.get(tea.memory_id)["metadata"] == {"category": "taste", "tags": ["茶"], "confidence": 0.9}
        memory.add("From here", **ANNA, infer=False)
        memory.delete(tea.memory_id)
        lore.memories.add("user:安娜", "From elsewhere")
        memory.reset()
        assert said(memory.get_all(filters=ANNA)) == ["From elsewhere"]
        assert [one.statement for one in lore.memories.page("user:安娜")] == ["From elsewhere"]


def test_more_owners_and_more_facts_than_a_page_are_all_found(url):
    with roomlore.open_sync(url, background=False) as lore:
        names = [f"u{n:03}" for n in range(501)]
        rooms = [Owners(user_id=name, agent_id="guide").room_id for name in names]
        lore.messages.add([roomlore.Message(id="1", room_id=room_id, sender_id="u") for room_id in rooms])
        sources = [roomlore.Source(rooms[-1], "1")]
        facts = [f"事实 {n}" for n in range(501)]
        lore.memories.add_all(
            [roomlore.NewMemory(scope="user:u500", statement=fact, sources=sources) for fact in facts]
        )
        memory = Memory(lore=lore)
        assert said(memory.get_all(filters={"agent_id": "guide"}, top_k=1000)) == sorted(facts)


def test_owners_of_one_user_are_read_without_those_of_others(url, monkeypatch):
    """A regression: an update, and a question for a user's agent, read the owners of all users."""
    with roomlore.open_sync(url, background=False) as lore:
        others = [Owners(user_id=f"{name}{n}", agent_id="guide") for name in ("安娜", "a", "z") for n in range(20)]
        lore.messages.add([roomlore.Message(id="1", room_id=one.room_id, sender_id="u") for one in others])
        memory = Memory(lore=lore)
        (one,) = memory.add("Anna likes tea", user_id="安娜", agent_id="guide", infer=False)["results"]
        memory.add("Anna likes tea", user_id="安娜", agent_id="guide", run_id="r", infer=False)
        read: list[str] = []
        of_room = Owners.of_room
        monkeypatch.setattr(Owners, "of_room", lambda room_id: read.append(room_id) or of_room(room_id))
        both = {"user_id": "安娜", "agent_id": "guide"}
        assert said(memory.get_all(filters=both)) == said(memory.get_all(filters={**both, "run_id": "r"}))
        memory.update(one["id"], metadata={"kind": "drink"})
        memory.delete_all(**both)
        assert memory.get_all(filters=both) == {"results": []}
        assert set(read) == {Owners(**both).room_id, Owners(**both, run_id="r").room_id}


@pytest.mark.parametrize("name", ["{}", "[]", "{", '{"user_id": 5}', '{"user_id": ""}', '{"room_id": "g"}'])
def test_rooms_and_notes_of_others_do_no_harm(url, name):
    odd = [{"metadata": 5}, {"metadata": {}, "until": "soon"}, 5, {"metadata": {}, "role": 5, "until": "2001-01-01"}]
    with roomlore.open_sync(url) as lore:
        for n, note in enumerate(odd):
            for room_id in (f"mem0:{name}", Owners(user_id="安娜").room_id):
                lore.messages.add(roomlore.Message(id=f"{n}", room_id=room_id, sender_id="u", metadata={"mem0": note}))
                lore.memories.add("user:安娜", f"{room_id} {n}", sources=[roomlore.Source(room_id, f"{n}")])
        memory = Memory(lore=lore)
        assert len(memory.get_all(filters=ANNA)["results"]) == 7
        assert len(memory.get_all(filters=ANNA, show_expired=True)["results"]) == 8
        assert memory.get_all(filters={"agent_id": "guide"}) == {"results": []}


def test_a_history_tells_of_restoring(url):
    with roomlore.open_sync(url) as lore:
        memory = Memory(lore=lore)
        name = memory.add("Likes tea", **ANNA, infer=False)["results"][0]["id"]
        memory.delete(name)
        lore.memories.restore(name)
        rows = memory.history(name)
        assert [(one["event"], one["old_memory"], one["new_memory"], one["is_deleted"]) for one in rows] == [
            ("ADD", None, "Likes tea", False),
            ("DELETE", "Likes tea", None, True),
            ("ADD", None, "Likes tea", False),
        ]
        assert len({one["id"] for one in rows}) == 3


def test_a_history_ends_where_a_memory_was_merged_into_another(url):
    merge = {"action": "update", "old_ids": ["m1", "m2"], "statement": "Likes tea, 只喝茶", "evidence": ["c1"]}
    answers = [lines(create("Likes tea", "c1")), lines(create("只喝茶", "c1")), lines(merge)]
    with serve_models(answers) as server, Memory(with_model(server), url=url) as memory:
        names = [memory.add(text, **ANNA)["results"][0]["id"] for text in ("I like tea", "我只喝茶")]
        merged = memory.add("Tea and nothing else", **ANNA)["results"]
        assert events({"results": merged}) == [("UPDATE", "Likes tea, 只喝茶")]
        gone = next(name for name in names if name != merged[0]["id"])
        last = memory.history(gone)[-1]
        assert (last["event"], last["new_memory"], last["is_deleted"]) == ("DELETE", None, True)
        assert last["old_memory"] in ("Likes tea", "只喝茶")
        assert memory.history(merged[0]["id"])[-1]["event"] == "UPDATE"


def test_forgetting_a_person_reaches_what_was_added_here(url):
    with roomlore.open_sync(url) as lore:
        memory = Memory(lore=lore)
        name = memory.add("对花生过敏", **ANNA, metadata={"n": 1}, infer=False)["results"][0]["id"]
        memory.update(name, "对虾过敏", metadata={"secret": "虾"})
        memory.add([{"role": "assistant", "content": "好的"}], **ANNA, agent_id="guide", infer=False)
        memory.add("Likes tea", user_id="ben", infer=False)
        report = lore.privacy.forget("安娜")
        assert report.left == ()
        assert memory.get_all(filters=ANNA) == {"results": []}
        assert said(memory.get_all(filters={"user_id": "ben"})) == ["Likes tea"]
        assert "安娜" not in "".join(room.room_id for room in lore.rooms.page())
        assert lore.privacy.verify().sound


# Opening and closing


def test_a_closed_client_says_so(url):
    memory = Memory(url=url)
    memory.close()
    memory.close()
    with pytest.raises(roomlore.Unavailable):
        memory.get_all(filters=ANNA)


def test_a_client_that_nobody_closed_is_closed_wherever_it_is_collected(url):
    clients = [Memory(url=url), Memory(url=url)]
    loops = [memory._lore._loop._thread for memory in clients]
    collecting = threading.Thread(target=clients.pop)
    collecting.start()
    clients.pop()
    collecting.join()
    for loop in loops:
        loop.join(60)
    assert not any(loop.is_alive() for loop in loops)


def test_a_program_that_never_closes_its_client_ends_quietly(url):
    program = f"""
from roomlore_integrations.mem0 import Memory
memory = Memory(url={url!r})
print(memory.add("喜欢乌龙茶", user_id="anna", infer=False)["results"][0]["event"])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=500, check=True)
    assert (run.stdout, run.stderr) == ("ADD\n", "")
    with Memory(url=url) as memory:
        assert said(memory.get_all(filters={"user_id": "anna"})) == ["喜欢乌龙茶"]


async def test_an_async_client_may_be_opened_again(url):
    memory = AsyncMemory(url=url)
    await memory.add("喜欢乌龙茶", **ANNA, infer=False)
    await memory.close()
    async with memory:
        assert said(await memory.get_all(filters=ANNA)) == ["喜欢乌龙茶"]


async def test_clients_share_an_open_roomlore(lore):
    async with AsyncMemory(lore=lore) as memory:
        await memory.add("喜欢乌龙茶", **ANNA, infer=False)
    assert [one.statement for one in await lore.memories.page("user:安娜")] == ["喜欢乌龙茶"]
    with pytest.raises(roomlore.InvalidInput, match="open_sync"):
        Memory(lore=lore)
    with pytest.raises(roomlore.InvalidInput, match="url"):
        AsyncMemory(url="sqlite://", lore=lore)


# mem0's configuration

PGVECTOR = {"user": "u", "password": "p/w", "host": "db", "port": 5433, "dbname": "m"}


NOTHING_TAKEN = {"evolve_schedule": "", "extract_every": 0, "embeddings": "off", "vectors": "auto"}


def model_at(provider, model_id, **server):
    return {
        "models": {EVOLVE_MODEL: {"internal": True, "providers": [{"name": provider, "model_id": model_id}]}},
        "providers": {provider: server} if server else {},
    }


def vectors_at(url, model, length, key=""):
    return {
        "embeddings": "openai",
        "embedding_url": url,
        "embedding_model": model,
        "embedding_dimensions": length,
        "embedding_api_key": key,
    }


READ = {
    "qdrant-host": ({"vectors": "qdrant", "qdrant_url": "http://localhost:6333"}, []),
    "qdrant-cloud": ({"vectors": "qdrant", "qdrant_url": "https://q.example", "qdrant_api_key": "k"}, []),
    "qdrant-path": (NOTHING_TAKEN, [r"vector_store\.config\.path .*url='sqlite", "on_disk"]),
    "chroma": (NOTHING_TAKEN, [r"chroma \(path\) .*url='sqlite.*not read.*moving-from-mem0"]),
    "pgvector": ({"vectors": "pgvector"}, []),
    "pgvector-url": ({"vectors": "pgvector"}, ["hnsw"]),
    "supabase": ({"vectors": "pgvector"}, ["index_method", "index_measure"]),
    "faiss": (NOTHING_TAKEN, ["faiss .*url='sqlite"]),
    "redis": (NOTHING_TAKEN, ["redis .*url='sqlite"]),
    "pinecone": (NOTHING_TAKEN, ["pinecone .*url='sqlite"]),
    "milvus": (NOTHING_TAKEN, ["milvus .*url='sqlite"]),
    "openai-key": (model_at("openai", "gpt-4o-mini"), ["temperature", "max_tokens"]),
    "openai-elsewhere": (model_at("openai", "qwen", base_url="http://here:8000/v1"), []),
    "azure": (
        model_at(
            "azure_openai",
            "chat",
            base_url="https://me.openai.azure.com/openai/v1",
            key_variable="LLM_AZURE_OPENAI_API_KEY",
            limit_field="max_completion_tokens",
        ),
        ["api_version", "temperature", "max_tokens"],
    ),
    "anthropic": (
        model_at(
            "anthropic",
            "claude-sonnet-4-6",
            base_url="https://api.anthropic.com/v1",
            key_variable="ANTHROPIC_API_KEY",
        ),
        ["temperature", "max_tokens"],
    ),
    "groq": (
        model_at(
            "groq",
            "llama-3.3-70b-versatile",
            base_url="https://api.groq.com/openai/v1",
            key_variable="GROQ_API_KEY",
        ),
        ["temperature", "max_tokens"],
    ),
    "litellm": (
        model_at(
            "anthropic",
            "claude-sonnet-4-6",
            base_url="https://api.anthropic.com/v1",
            key_variable="ANTHROPIC_API_KEY",
        ),
        ["temperature"],
    ),
    "gemini": (
        model_at(
            "gemini",
            "gemini-2.0-flash-001",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_variable="GOOGLE_API_KEY",
        ),
        ["top_p"],
    ),
    "deepseek": (
        model_at("deepseek", "deepseek-chat", base_url="https://d.example"),
        [],
    ),
    "bedrock": ({"models": {EVOLVE_MODEL: None}}, ["aws_bedrock .*word for word.*openai_base_url"]),
    "ollama": (
        {
            "qdrant_url": "http://h:6333",
            **model_at("ollama", "llama3.1:latest", base_url="http://localhost:11434/v1"),
            **vectors_at("http://localhost:11434/v1", "nomic-embed-text:latest", 768),
        },
        ["temperature", "max_tokens"],
    ),
    "embedder-key": (vectors_at("https://api.openai.com/v1", "text-embedding-3-large", 3072, "k"), []),
    "embedder-azure": (vectors_at("https://me.openai.azure.com/openai/v1", "chat", 3072, "k"), ["api_version"]),
    "huggingface": ({"embeddings": "offline"}, ["huggingface .*on this machine"]),
    "huggingface-server": (vectors_at("http://localhost:3000/v1", "tei", 384), []),
    "custom": (
        NOTHING_TAKEN,
        [
            "history_db_path .*url='sqlite",
            "custom_instructions .*prompts.md",
            "custom_fact_extraction_prompt .*prompts.md",
            "reranker .*words and meaning",
            "graph_store .*not read",
        ],
    ),
}


def warned_of(config):
    """Return the configuration as read, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opening = read_config(config, None)
    assert {one.category for one in caught} <= {IgnoredSetting}
    return opening, [str(one.message) for one in caught]


@pytest.fixture
def _no_keys(monkeypatch):
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_ENDPOINT", "_DEPLOYMENT")):
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("_no_keys")
@pytest.mark.parametrize("shape", CONFIGS)
def test_the_usual_configurations_of_mem0_are_read_and_warn_of_the_rest(shape):
    found, told = READ[shape]
    opening, warned = warned_of(CONFIGS[shape])
    assert {name: getattr(opening.settings, name) for name in found} == found
    assert len(warned) == len(told)
    assert [text for text, pattern in zip(warned, told, strict=True) if not re.search(pattern, text)] == []
    assert not any("'k'" in text or "=k" in text for text in warned)


@pytest.mark.parametrize(
    ("config", "url", "tenant"),
    [
        (CONFIGS["pgvector"], "postgresql://u:p@127.0.0.1:5432/postgres", "default"),
        (CONFIGS["supabase"], "postgresql://u:p@db/m", "memories"),
        ({"vector_store": {"config": {"collection_name": "mem0", "host": "h"}}}, None, "default"),
        ({"vector_store": {"config": {"collection_name": "eins", "host": "h"}}}, None, "eins"),
        (
            {"vector_store": {"provider": "pgvector", "config": {**PGVECTOR, "sslmode": "require"}}},
            "postgresql://u:p%2Fw@db:5433/m?sslmode=require",
            "default",
        ),
    ],
)
def test_a_database_and_a_collection_of_mem0_are_taken(config, url, tenant):
    opening, _ = warned_of(config)
    assert (opening.url, opening.tenant) == (url, tenant)


def test_what_is_added_to_one_collection_is_not_found_in_another(url):
    def stored_in(name):
        config = {"vector_store": {"provider": "qdrant", "config": {"collection_name": name}}}
        return Memory.from_config(config, url=url)

    with stored_in("eins") as one, stored_in("zwei") as two:
        one.add("Plays chess", user_id="anna", infer=False)
        assert said(two.get_all(filters={"user_id": "anna"})) == []
        assert said(one.get_all(filters={"user_id": "anna"})) == ["Plays chess"]


@pytest.mark.usefixtures("_no_keys")
def test_a_key_of_the_configuration_is_sent_and_counts_before_the_environment(url, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    with serve_models(default=INFERRED) as server:
        llm = {"provider": "openai", "config": {"model": "m", "api_key": "of-mine", "openai_base_url": server.url}}
        with Memory.from_config({"llm": llm}, url=url) as memory:
            memory.add("I moved to Kyoto", **ANNA)
        assert {asked.key for asked in server.requests} == {"of-mine"}


@pytest.mark.usefixtures("_no_keys")
def test_no_other_model_is_asked_than_the_one_that_is_named(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    opening, _ = warned_of(CONFIGS["bedrock"])
    assert ModelRegistry.read(opening.settings.models, opening.settings.providers).find(EVOLVE_MODEL) is None


@pytest.mark.usefixtures("_no_keys")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"vectorstore": {}}, "did you mean vector_store"),
        ({"historydb_path": "h.db"}, "did you mean history_db_path"),
        ({"colour": "red"}, "'colour'"),
        ({"version": "v2"}, "v1.1"),
        ({"llm": {"provider": "openai", "config": {"api_key": "k", "temprature": 0}}}, "did you mean temperature"),
        ({"llm": {"provider": "openai", "config": {"api_key": "k"}, "model": "m"}}, "llm.model .*in its config"),
        ({"llm": {"provider": "openai"}}, "without a key .*OPENAI_API_KEY.*word for word"),
        ({"llm": {"provider": "litellm", "config": {"model": "bedrock/x"}}}, "litellm bedrock/x .*word for word"),
        ({"embedder": {"provider": "vertexai"}}, "vertexai .*words alone"),
        ({"embedder": {"provider": "ollama", "config": {"model": "m"}}}, "words alone.*embedding_dims"),
        ({"embedder": {"provider": "openai", "config": {"embedding_dims": 512}}}, "1536 numbers"),
    ],
)
def test_what_has_no_counterpart_is_warned_of_by_name(config, told):
    _, warned = warned_of(config)
    assert [text for text in warned if not re.search(told, text)] == []
    assert len(warned) == 1


def test_a_warning_points_at_the_line_that_opens_the_memory(url):
    with pytest.warns(IgnoredSetting) as caught, Memory.from_config({"reranker": {"provider": "cohere"}}, url=url):
        pass
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.usefixtures("_no_keys")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("openai", "mapping"),
        ({"llm": "openai"}, "mapping"),
        ({"llm": {"provider": "opanai"}}, "did you mean openai"),
        ({"llm": {"provider": "openai", "config": "m"}}, "mapping"),
        ({"llm": {"provider": "openai", "config": {"model": 5}}}, "a text"),
        ({"llm": {"provider": "azure_openai"}}, "LLM_AZURE_ENDPOINT"),
        ({"vector_store": {"provider": "pgvector"}}, "user, or a connection_string"),
        ({"vector_store": {"config": {"collection_name": ""}}}, "collection_name"),
    ],
)
def test_what_cannot_be_read_is_refused(config, told):
    with pytest.raises(roomlore.InvalidInput, match=told):
        read_config(config, None)


def test_settings_take_the_place_of_a_configuration():
    settings = roomlore.Settings(evolve_schedule="0 3 * * *")
    assert read_config(None, settings) == Opening(settings)
    with pytest.raises(roomlore.InvalidInput, match="not both"):
        read_config({"version": "v1.1"}, settings)
