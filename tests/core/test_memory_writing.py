"""Adding a memory: accepted input, and the outcome."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import Action, MemoryKind, MemoryStatus, Source
from roomlore.core.memory.versions import Additions, InForce, Lineage, edited, first_version
from roomlore.core.memory.writing import (
    KEEP,
    MAX_LABEL,
    MAX_SOURCES,
    MAX_STATEMENT,
    MAX_TAGS,
    Edit,
    NewMemory,
    check_confidence,
    checked,
    checked_edit,
    normal,
)
from roomlore_testkit import START, change, memory
from roomlore_testkit.case_table import all_cases

FAMILY = "👨‍👩‍👧‍👦"
FACT = MemoryKind.FACT
DAY = timedelta(days=1)


def new(statement="likes tea", **fields):
    return checked(NewMemory(**({"scope": "user:ann", "statement": statement} | fields)))


@pytest.mark.parametrize("given", [0, 0.0, -0.0, 1, 1.0, 0.5, None])
def test_a_confidence_stays_what_it_is(given):
    kept = check_confidence(given)
    assert kept == given
    assert kept is None or (isinstance(kept, float) and math.copysign(1, kept) == 1)


@pytest.mark.parametrize("given", [-0.01, 1.01, math.nan, math.inf, True, False, "0.5", "", 10**400, [0.5]])
def test_what_is_no_confidence_is_refused(given):
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        check_confidence(given)


@pytest.mark.parametrize("character", ["a", "茶", FAMILY, "e\u0301"])
def test_a_statement_is_as_long_as_its_reader_says(character):
    assert new(character * MAX_STATEMENT).statement == character * MAX_STATEMENT
    with pytest.raises(InvalidInput, match="longer than 4000"):
        new(character * (MAX_STATEMENT + 1))


def test_one_character_of_a_million_marks_is_too_long():
    with pytest.raises(InvalidInput, match="longer than"):
        new("e" + "\u0301" * 1_000_000)


@pytest.mark.parametrize("text", ["a\x00b", "\ud800 lone", "x\ud83d", "\x1a0", "对 青霉素 过敏", "‮reversed"])
def test_odd_characters_stay(text):
    kept = new(text, category=text, tags=[text], memory_id="i", sources=[Source(text, text)])
    assert (kept.statement, kept.category, kept.tags, kept.sources) == (text, text, (text,), (Source(text, text),))


def test_what_is_stored_has_one_form():
    kept = new(
        "  tea \n", tags=["b", "a", "b "], sources=[Source("r", "1"), Source("r", "1")], kind="group", confidence=1
    )
    assert (kept.statement, kept.tags, kept.sources) == ("tea", ("b", "a"), (Source("r", "1"),))
    assert kept.kind is MemoryKind.GROUP
    assert repr(kept.confidence) == "1.0"


REFUSED = [
    {"statement": ""},
    {"statement": " \n　"},
    {"statement": 7},
    {"statement": None},
    {"scope": "ann"},
    {"scope": "user:"},
    {"scope": 5},
    {"kind": "long"},
    {"confidence": 2},
    {"category": None},
    {"category": "x" * (MAX_LABEL + 1)},
    {"tags": "tea"},
    {"tags": [""]},
    {"tags": [3]},
    {"tags": ["茶" * (MAX_LABEL + 1)]},
    {"tags": [str(n) for n in range(MAX_TAGS + 1)]},
    {"tags": None},
    {"sources": [("r", "m")]},
    {"sources": [Source("r", "")]},
    {"sources": [Source("r", 5)]},
    {"sources": [Source("r", "x" * 513)]},
    {"sources": [Source("r", str(n)) for n in range(MAX_SOURCES + 1)]},
    {"memory_id": ""},
    {"memory_id": "a\x00"},
    {"memory_id": 5},
    {"memory_id": "x" * 513},
    {"created_at": "yesterday"},
    {"created_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))},
    {"reason": "x" * 501},
]


def test_what_cannot_be_remembered_is_refused():
    with all_cases() as case:
        for fields in REFUSED:
            with case(fields):
                with pytest.raises(InvalidInput) as refused:
                    new(**fields)
                assert len(str(refused.value)) < 400


def test_an_edit_knows_nothing_from_none():
    head = memory(confidence=0.5, category="drink", tags=("a",), sources=(Source("r", "1"),))
    assert edited(head, checked_edit(Edit()), {}) == head
    assert edited(head, checked_edit(Edit(confidence=0)), {}).confidence == 0.0
    assert edited(head, checked_edit(Edit(confidence=None)), {}).confidence is None
    assert edited(replace(head, confidence=0.0), checked_edit(Edit(confidence=KEEP, category="")), {}).confidence == 0.0
    emptied = edited(head, checked_edit(Edit(category="", tags=[], sources=[])), {})
    assert (emptied.category, emptied.tags, emptied.sources) == ("", (), ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes TEA", "likes   tea"),
        ("喜欢喝茶", " 喜欢喝茶\n"),
        ("ＡＢＣ　１", "abc 1"),
        ("caf\u00e9", "cafe\u0301"),
        ("Straße", "STRASSE"),
    ],
)
def test_the_same_words_are_the_same(one, other):
    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    ("one", "other"), [("likes tea", "likes teas"), ("喜欢茶", "喜欢喝茶"), ("a", "b"), ("不喜欢", "喜欢")]
)
def test_other_words_are_others(one, other):
    assert normal(one) != normal(other)


@given(st.text(max_size=200))
def test_any_text_has_a_form_to_compare(text):
    once = normal(text)
    assert once == " ".join(once.split())
    assert normal(f" {text}\n") == once


def test_in_force_follows_the_log():
    a, b = memory("a", statement="Tea"), memory("b", statement="tea")
    a2 = memory("a2", statement="coffee", lineage_id="a", version=2, parents=("a",))
    there = InForce(FACT, 1, [a])
    other = there.copy()
    there.follow([change(1, a), change(2, b), change(3, a2, action=Action.UPDATE, closes=("a",))])
    assert there.number == 3
    assert there.saying(" TEA ", ()) == b
    assert there.saying("tea", (), beside="b") is None
    assert there.saying("coffee", ()) == a2
    there.follow([change(4, replace(b, status=MemoryStatus.DEPRECATED), action=Action.DELETE)])
    assert (there.saying("tea", ()), len(there)) == (None, 1)
    there.follow([change(2, b)])
    assert there.saying("tea", ()) is None, "what is past is passed over"
    assert other.saying("tea", ()) == a, "a copy goes its own way"
    there.follow([change(5, memory("g", kind=MemoryKind.GROUP, statement="tea"))])
    assert (there.saying("tea", ()), there.number) == (None, 5)


def additions(*memories, known=(), refresh=False, number=7):
    """The adder to a scope with these memories; `known`: (id, version named, head, newest)."""
    ids = count(1)
    return Additions(
        {kind: InForce(kind, number, [one for one in memories if one.kind is kind]) for kind in MemoryKind},
        {name: Lineage(*lineage) for name, *lineage in known},
        now=START,
        new_id=lambda: f"new{next(ids)}",
        number=number,
        refresh=refresh,
    )


def test_adding_goes_on_from_the_last_change():
    adder = additions(memory("a", statement="tea"))
    done = [adder.add(new(text)) for text in ("Tea", "coffee", "COFFEE", "水")]
    assert [one.outcome for one in done] == ["unchanged", "added", "unchanged", "added"]
    assert [one.memory.memory_id for one in done] == ["a", "new1", "new1", "new2"]
    assert [(one.number, one.action, one.memory.memory_id) for one in adder.changes] == [
        (8, Action.CREATE, "new1"),
        (9, Action.CREATE, "new2"),
    ]
    assert adder.add(new("tea", kind="group")).outcome == "added", "kinds do not mix"


def test_an_id_again():
    there = memory("a", statement="tea", confidence=0.0, sources=(Source("r", "1"), Source("r", "2")))
    head = memory("a2", statement="oolong", lineage_id="a", version=2, parents=("a",))
    adder = additions(head, known=[("a", there, head, 2)])
    same = new("tea", memory_id="a", confidence=0, sources=[Source("r", "1")])
    assert adder.add(same).outcome == "unchanged"
    assert adder.add(same).memory == head
    assert adder.add(new("oolong", memory_id="a")).outcome == "unchanged"
    for other in (replace(same, confidence=None), replace(same, statement="teas"), replace(same, tags=("x",))):
        assert adder.add(other).outcome == "conflict"
    assert adder.changes == []
    assert adder.add(new("x", memory_id="n")).outcome == "added"
    assert adder.add(new("x", memory_id="n")).outcome == "unchanged"
    assert adder.add(new("y", memory_id="n")).outcome == "conflict"


BROUGHT = {"memory_id": "a", "made_by": "import:mem0"}


@pytest.mark.parametrize(
    ("head", "given", "outcome"),
    [
        ({}, {}, "updated"),
        ({}, {"updated_at": START - DAY}, "conflict"),
        ({}, {"updated_at": START}, "updated"),
        ({"made_by": "caller"}, {}, "conflict"),
        ({"status": MemoryStatus.DEPRECATED}, {}, "conflict"),
        ({"kind": MemoryKind.GROUP}, {}, "conflict"),
        ({"scope": "user:bo"}, {}, "conflict"),
        ({}, {"statement": "THERE already"}, "conflict"),
        ({}, {"statement": "tea", "confidence": 0}, "updated"),
    ],
)
def test_an_importer_brings_in_what_has_changed(head, given, outcome):
    there = memory("a", statement="tea", **({"made_by": "import:mem0", "confidence": 0.5} | head))
    other = memory("b", statement="there already")
    adder = additions(there, other, known=[("a", there, there, 3)], refresh=True)
    done = adder.add(new(**({"statement": "coffee"} | BROUGHT | given)))
    assert done.outcome == outcome
    if outcome == "updated":
        [made] = adder.changes
        assert (made.number, made.action, made.closes, made.old_statement) == (8, Action.UPDATE, ("a",), "tea")
        assert (made.memory.version, made.memory.lineage_id, made.memory.parents) == (4, "a", ("a",))
        assert adder.add(new(**({"statement": "coffee"} | BROUGHT | given))).outcome == "unchanged"


def test_times_are_of_the_past_and_in_order():
    naive = START.replace(tzinfo=None) - 2 * DAY
    made = first_version(new(created_at=naive, updated_at=START - DAY), "a", START)
    assert (made.created_at, made.updated_at, made.supported_at) == (START - 2 * DAY, START - DAY, START - DAY)
    assert made.created_at.tzinfo is UTC
    future = first_version(new(created_at=START + DAY), "a", START)
    assert (future.created_at, future.updated_at) == (START, START)
    backwards = first_version(new(created_at=START, updated_at=START - DAY), "a", START)
    assert backwards.updated_at == START
