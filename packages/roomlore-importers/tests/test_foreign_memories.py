"""Memories of other systems: DeerFlow's memory.json and mem0's export, whole, damaged and again."""

import copy
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roomlore
from roomlore.core.errors import InvalidInput
from roomlore_importers.memories import FORMS, read_memories
from roomlore_testkit.case_table import all_cases

ANNA = "user:anna"
DEERFLOW = {
    "version": "1.0",
    "lastUpdated": "2026-02-03T10:00:00Z",
    "user": {
        "workContext": {"summary": "负责支付网关，正在迁移到 Go。", "updatedAt": "2026-02-01T08:00:00Z"},
        "personalContext": {"summary": "", "updatedAt": ""},
        "topOfMind": {"summary": "Wants the release out before the holidays.", "updatedAt": "2026-02-03T08:00:00Z"},
    },
    "history": {"recentMonths": {"summary": "Moved house.", "updatedAt": "not a time"}, "earlierContext": None},
    "facts": [
        {
            "id": "fact_1",
            "content": "Prefers pytest",
            "category": "preference",
            "confidence": 0,
            "createdAt": "2026-01-05T09:30:00Z",
            "source": "thread-7",
        },
        {"id": "fact_2", "content": "会说法语", "category": "knowledge", "confidence": 1, "source": "manual"},
        {"content": "Lives in Lyon"},
        {
            "id": "fact_4",
            "content": "用 uv，不用 pip",
            "category": "correction",
            "confidence": 0.95,
            "sourceError": "建议了 pip",
        },
    ],
}
MEM0 = {
    "results": [
        {
            "id": "2f0c",
            "memory": "对花生过敏",
            "hash": "ab12",
            "metadata": {"category": "health", "confidence": 0, "tags": ["diet", "health"]},
            "created_at": "2025-11-02T07:00:00-08:00",
            "updated_at": None,
            "user_id": "anna",
            "agent_id": "cook",
        },
        {"id": "2f0d", "memory": "Answers in French", "metadata": None, "agent_id": "cook", "score": 0.31},
        {"id": "2f0e", "memory": "Runs on Sundays", "categories": ["sport", "habits"], "run_id": "r1"},
        {"id": 7, "payload": {"data": "Has two cats", "user_id": "bob", "created_at": "2025-11-02T07:00:00Z"}},
    ],
    "relations": [],
}


def named(found):
    return dict(found.memories)


def test_a_memory_json_of_deerflow():
    found = read_memories(DEERFLOW, scope=ANNA)
    memories = named(found)
    assert (found.form, found.skipped) == ("deerflow", ())
    assert list(memories) == [
        "user.workContext",
        "user.topOfMind",
        "history.recentMonths",
        *(f"facts[{n}]" for n in range(4)),
    ]
    assert {memory.scope for memory in memories.values()} == {ANNA}
    first = memories["facts[0]"]
    assert (first.statement, first.confidence, first.category) == ("Prefers pytest", 0, "preference")
    assert first.created_at == datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    assert first.reason == "imported from DeerFlow; source: thread-7"
    assert memories["facts[1]"].confidence == 1
    assert memories["facts[2]"].confidence is None
    assert memories["facts[3]"].reason == "imported from DeerFlow; corrects: 建议了 pip"
    top = memories["user.topOfMind"]
    assert (top.category, top.tags, top.confidence) == ("top of mind", ("summary",), None)
    assert (top.updated_at, memories["history.recentMonths"].updated_at) == (datetime(2026, 2, 3, 8, tzinfo=UTC), None)
    assert len({memory.memory_id for memory in memories.values()}) == 7


def test_an_export_of_mem0():
    found = read_memories(MEM0, scope="group:rest")
    memories = named(found)
    assert (found.form, found.skipped) == ("mem0", ())
    assert [memory.scope for memory in memories.values()] == [ANNA, "agent:cook", "group:rest", "user:bob"]
    first, second, third, fourth = memories.values()
    assert (first.statement, first.confidence, first.category, first.tags) == ("对花生过敏", 0, "health", ("diet",))
    assert (first.created_at, first.updated_at) == (datetime(2025, 11, 2, 15, tzinfo=UTC), None)
    assert second.confidence is None, "how near it came to a question is not how sure it is"
    assert (third.category, third.tags) == ("sport", ("habits",))
    assert (fourth.statement, fourth.created_at) == ("Has two cats", datetime(2025, 11, 2, 7, tzinfo=UTC))


@pytest.mark.parametrize(
    "document",
    [MEM0["results"], {"memories": MEM0["results"]}, {"count": 4, "next": None, **MEM0}, {"data": MEM0["results"]}],
)
def test_mem0_in_other_wrappings(document):
    assert read_memories(document, scope=ANNA).memories == read_memories(MEM0, scope=ANNA).memories


def test_mem0_by_the_line(tmp_path):
    path = tmp_path / "mem0.jsonl"
    lines = [json.dumps(one, ensure_ascii=False) for one in MEM0["results"]]
    path.write_text("\ufeff" + "\n\n".join([*lines[:2], '{"memory": ', *lines[2:]]) + "\r\n", "utf-8")
    found = read_memories(path, scope=ANNA)
    assert [memory for _, memory in found.memories] == [one for _, one in read_memories(MEM0, scope=ANNA).memories]
    assert [place for place, _ in found.memories] == ["line 1", "line 3", "line 7", "line 9"]
    assert [(one.place, one.reason) for one in found.skipped] == [("line 5", "not an object")]


def test_a_file_is_read_as_its_values_are(tmp_path):
    path = tmp_path / "memory.json"
    path.write_text(json.dumps(DEERFLOW, ensure_ascii=False), "utf-8")
    for source in (path, str(path), path.read_bytes()):
        assert read_memories(source, scope=ANNA) == read_memories(DEERFLOW, scope=ANNA)


def test_what_is_damaged_is_named_and_skipped():
    document = copy.deepcopy(DEERFLOW)
    document["user"]["workContext"] = {"summary": 5}
    document["user"]["personalContext"] = "Speaks Welsh."
    document["history"] = ["gone"]
    document["facts"] += [None, {"content": " "}, {"content": ["x"]}, {"id": "fact_1", "content": "other"}, "text"]
    found = read_memories(document, scope=ANNA)
    assert [(one.place, one.reason) for one in found.skipped] == [
        ("user.workContext", "the summary is not a text"),
        ("history", "not an object"),
        ("facts[4]", "not an object"),
        ("facts[5]", "it has no content"),
        ("facts[6]", "it has no content"),
        ("facts[7]", "its id stands for facts[0] already"),
        ("facts[8]", "not an object"),
    ]
    assert named(found)["user.personalContext"].statement == "Speaks Welsh."
    assert len(found.memories) == 6
    entries = [
        *MEM0["results"],
        5,
        {"id": "x"},
        {"memory": "whose?"},
        {"memory": "ok", "user_id": "bob", "metadata": []},
    ]
    found = read_memories({"results": entries})
    assert [(one.place, one.reason.partition(" (")[0]) for one in found.skipped] == [
        ("results[2]", "it does not say whom it is about"),
        ("results[4]", "not an object"),
        ("results[5]", "it has no memory"),
        ("results[6]", "it does not say whom it is about"),
    ]
    assert read_memories({"facts": {"a": 1}, "user": {}}, scope=ANNA).skipped[0].place == "facts"


UNREADABLE = [
    (b"", {}, "not JSON"),
    (b"{", {}, "not JSON"),
    (b"\xff\xfe\x00", {}, "not UTF-8"),
    (b"[" * 100_000, {}, "nested too deeply"),
    ({}, {"scope": ANNA}, "name one of deerflow, mem0"),
    (5, {"scope": ANNA}, "name one of"),
    ({"messages": []}, {}, "name one of"),
    (DEERFLOW, {}, "name the scope"),
    ([], {"form": "deerflow", "scope": ANNA}, "not a JSON object"),
    (MEM0, {"form": "zep"}, "choose one of"),
    (MEM0, {"scope": "anna"}, "user:<id>"),
    ("nowhere.json", {}, "cannot be read"),
    (".", {}, "cannot be read"),
    ("a\x00b", {}, "no path"),
]


def test_what_nothing_can_be_read_of_is_refused():
    with all_cases() as case:
        for source, how, said in UNREADABLE:
            with case(repr(source)), pytest.raises(InvalidInput, match=said):
                read_memories(source, **how)


NAMES = (
    "facts",
    "user",
    "history",
    "results",
    "id",
    "memory",
    "content",
    "summary",
    "metadata",
    "confidence",
    "payload",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=150)
@given(JSON, st.sampled_from([None, *FORMS]), st.sampled_from([None, ANNA]))
def test_no_value_is_a_surprise(document, form, scope):
    try:
        found = read_memories(document if isinstance(document, dict | list) else [document], form=form, scope=scope)
    except InvalidInput:
        return
    assert all(memory.statement.strip() for _, memory in found.memories)


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", settings=roomlore.Settings(), background=False) as opened:
        yield opened


@pytest.mark.parametrize(("document", "count"), [(DEERFLOW, 7), (MEM0, 4)])
async def test_importing_again_changes_nothing(lore, document, count):
    planned = await lore.memories.import_facts(document, scope=ANNA, dry_run=True)
    assert (planned.added, planned.dry_run, await lore.memories.page(ANNA, status="all")) == (count, True, [])
    first = await lore.memories.import_facts(document, scope=ANNA)
    assert (first.added, first.updated, first.unchanged, first.skipped) == (count, 0, 0, ())
    again = await lore.memories.import_facts(json.dumps(document).encode(), scope=ANNA)
    assert (again.added, again.updated, again.unchanged, again.skipped) == (0, 0, count, ())
    elsewhere = await lore.for_tenant("other").memories.import_facts(document, scope=ANNA)
    assert elsewhere.added == count


async def test_an_import_keeps_confidence_and_time(lore):
    report = await lore.memories.import_facts(DEERFLOW, scope=ANNA)
    assert (report.form, report.scopes) == ("deerflow", (ANNA,))
    kept = {one.statement: one for one in await lore.memories.page(ANNA)}
    zero = kept["Prefers pytest"]
    assert (zero.confidence, zero.made_by) == (0.0, "import:deerflow")
    assert zero.created_at == zero.updated_at == datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    assert kept["会说法语"].confidence == 1.0
    log = await lore.memories.changes(ANNA)
    assert {one.actor for one in log} == {"import:deerflow"}
    assert "imported from DeerFlow; source: thread-7" in {one.reason for one in log}


async def test_what_changed_there_is_brought_in_unless_it_changed_here(lore):
    await lore.memories.import_facts(DEERFLOW, scope=ANNA)
    ids = {one.statement: one.memory_id for one in await lore.memories.page(ANNA)}
    await lore.memories.update(ids["会说法语"], confidence=0.2)
    await lore.memories.delete(ids["Lives in Lyon"])
    await lore.memories.add(ANNA, "Uses uv and nothing else")
    newer = copy.deepcopy(DEERFLOW)
    newer["user"]["topOfMind"] = {"summary": "On holiday.", "updatedAt": "2026-03-01T00:00:00Z"}
    newer["facts"][0]["confidence"] = 0.4
    newer["facts"][1]["content"] = "French and Italian"
    newer["facts"][3]["content"] = "uses UV and nothing else"
    newer["facts"].append({"id": "fact_9", "content": "likes  TEA", "confidence": 95})
    newer["facts"].append({"id": "fact_10", "content": "Drinks tea"})
    report = await lore.memories.import_facts(newer, scope=ANNA)
    assert (report.added, report.updated, report.unchanged) == (1, 2, 4 - 1)
    assert [(one.place, one.excerpt) for one in report.skipped] == [
        ("facts[4]", "likes  TEA"),
        ("facts[1]", "French and Italian"),
        ("facts[3]", "uses UV and nothing else"),
    ]
    assert "confidence is 95" in report.skipped[0].reason
    assert "stays as it is" in report.skipped[1].reason
    now = {one.statement: one for one in await lore.memories.page(ANNA)}
    assert (now["Prefers pytest"].confidence, now["Prefers pytest"].version) == (0.4, 2)
    assert now["On holiday."].version == 2
    assert now["会说法语"].confidence == 0.2
    assert "Lives in Lyon" not in now
    again = await lore.memories.import_facts(newer, scope=ANNA)
    assert (again.added, again.updated) == (0, 0)
    older = await lore.memories.import_facts(DEERFLOW, scope=ANNA)
    assert (older.added, older.updated) == (0, 0), "what was brought before is not news"


async def test_words_that_are_there_are_not_imported(lore):
    await lore.memories.add(ANNA, "tea")
    await lore.memories.add(ANNA, "PREFERS pytest")
    planned = await lore.memories.import_facts(DEERFLOW, scope=ANNA, dry_run=True)
    assert (planned.added, planned.unchanged) == (6, 1)
    report = await lore.memories.import_facts(DEERFLOW, scope=ANNA)
    assert (report.added, report.unchanged) == (6, 1)
