"""Applying a model's answer: the part that is done, and the reasons for refusing the rest."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.core.evolution.answers import MAX_OPERATIONS
from roomlore.core.evolution.plan import PlanInput, plan
from roomlore.core.evolution.prompt import clean_statement, comparison_form, handles_of, message_handles, most_deleted
from roomlore.core.evolution.requests import Answer, Operation, Rejected, Rules, ScopeState
from roomlore.core.memory.log import active, replay
from roomlore.core.memory.memory import Action, MemoryKind, MemoryStatus, Source
from roomlore.core.memory.writing import MAX_SOURCES, check_statement
from roomlore.storage.memory_log import RowPlan as Rows
from roomlore.storage.memory_log import VersionRow, check_numbers
from roomlore_testkit import START, memory
from roomlore_testkit.case_table import all_cases

SCOPE = "group:g"
NOW = START + timedelta(days=30)
MESSAGES = message_handles(Source("room", f"id{n}") for n in range(1, 5))
GROUP = MemoryKind.GROUP
TEXTS = (
    "每周五晚上讨论新番动漫",
    "Members mostly write Python.",
    "对新人友好，鼓励提问",
    "No politics here.",
    "群里喜欢猫",
)


def held(*texts, **fields):
    """Active memories that say this, the oldest first."""
    told = {"scope": SCOPE, "kind": GROUP, "strength": 0.5} | fields
    return [
        memory(f"id-{n}", statement=text, created_at=START + timedelta(hours=n), **told) for n, text in enumerate(texts)
    ]


def operation(kind, *handles, line=1, **fields):
    return Operation(line=line, kind=kind, handles=handles, **fields)


def planned(memories, *operations, similar=None, rules=None, rejected=(), taken=None, **state):
    """The plan of an answer with these operations, one a line."""
    new = (f"new-{n}" for n in count(1))
    return plan(
        Answer(tuple(replace(one, line=n) for n, one in enumerate(operations, start=1)), tuple(rejected)),
        PlanInput(
            offered=handles_of(memories),
            messages=MESSAGES,
            similar=similar,
            rules=rules or Rules(),
            state=ScopeState(**({"scope": SCOPE, "number": 7, "active": len(memories)} | state)),
            kind=GROUP,
            evolution_id="e1",
            new_id=lambda: next(new),
            actor="a-model",
            now=NOW,
            taken=taken,
        ),
    )


def after(memories, done):
    """Return the memories in force once the plan is applied, by the rules of the log."""
    rows = Rows(
        VersionRow(None, one.memory_id, one.lineage_id, one.version, one.status, True, None, newest=one.version)
        for one in memories
    )
    check_numbers(SCOPE, 7, done.changes)
    for change in done.changes:
        rows.add(change)
    versions = replay(done.changes, {one.memory_id: one for one in memories})
    assert {name for name, row in rows.rows.items() if row.status is MemoryStatus.ACTIVE} == {
        one.memory_id for one in active(versions)
    }
    assert rows.active == len(active(versions)) - len(memories)
    return active(versions)


def reasons(done):
    return [(one.line, one.reason) for one in done.rejected]


def actions(done):
    return [change.action for change in done.changes]


def test_keeping_is_no_change_and_what_is_not_mentioned_is_kept():
    done = planned(held(*TEXTS), operation("keep", "m2"))
    assert (done.changes, done.based_on, done.kept, done.rejected) == ((), (), 5, ())


def test_an_answer_without_a_valid_operation_changes_nothing():
    unread = Rejected(4, "这不是JSON", "It is no JSON.")
    done = planned(held(*TEXTS), operation("delete", "m9"), operation("create"), rejected=[unread])
    assert done.changes == ()
    assert done.kept == 5
    assert [one.line for one in done.rejected] == [1, 2, 4]
    assert done.rejected[-1] == unread


def test_an_update_is_a_new_version():
    old = held(*TEXTS, tags=("习惯",), sources=(Source("room", "id0"),), confidence=0.6)
    text = "每周五晚上讨论新番动漫，偏好科幻题材"
    done = planned(
        old, operation("update", "m1", statement=f" {text}\n", reason="新讨论明确了偏好", evidence=("c2", "c1"))
    )
    (change,) = done.changes
    assert (change.action, change.number, change.closes) == (Action.UPDATE, 8, ("id-0",))
    assert (change.old_statement, change.reason, change.evolution_id) == (TEXTS[0], "新讨论明确了偏好", "e1")
    assert change.memory == replace(
        old[0],
        memory_id="new-1",
        version=2,
        parents=("id-0",),
        statement=text,
        strength=pytest.approx(0.325),
        sources=(Source("room", "id0"), Source("room", "id2"), Source("room", "id1")),
        change_summary="新讨论明确了偏好",
        evolution_id="e1",
        made_by="a-model",
        updated_at=NOW,
        supported_at=NOW,
    )
    assert done.based_on == (old[0],)
    assert done.kept == 4
    assert {one.statement for one in after(old, done)} == {text, *TEXTS[1:]}


def test_a_version_follows_the_highest_of_its_lineage():
    """The one in force may be an earlier one that was restored."""
    (change,) = planned(held("a b"), operation("update", "m1", statement="c d"), latest={"id-0": 4}).changes
    assert change.memory.version == 5


def test_several_memories_become_one_of_the_oldest_lineage():
    old = held(*TEXTS, tags=("x",))
    old[2] = replace(old[2], tags=("y", "x"), confidence=0.4, sources=(Source("room", "id9"),), strength=0.9)
    done = planned(old, operation("update", "m3", "m1", "m3", statement="Fans meet on Fridays.", evidence=("c1",)))
    (change,) = done.changes
    assert (change.action, change.closes, change.old_statement) == (Action.MERGE, ("id-0", "id-2"), TEXTS[0])
    made = change.memory
    assert (made.lineage_id, made.version, made.parents) == ("id-0", 2, ("id-0", "id-2"))
    assert (made.tags, made.confidence, made.strength) == (("x", "y"), 0.4, pytest.approx(0.505))
    assert made.sources == (Source("room", "id9"), Source("room", "id1"))
    assert done.kept == 3
    assert len(after(old, done)) == 4


def test_a_merge_of_one_memory_is_an_update():
    assert actions(planned(held(*TEXTS), operation("update", "m1", "M1", statement="new text"))) == [Action.UPDATE]


def test_a_deletion_deprecates():
    old = held(*TEXTS)
    done = planned(old, operation("delete", "m4", reason="过时了"))
    (change,) = done.changes
    assert (change.action, change.closes, change.old_statement) == (Action.DELETE, (), TEXTS[3])
    assert change.memory == replace(old[3], status=MemoryStatus.DEPRECATED, change_summary="过时了")
    assert len(after(old, done)) == 4
    assert done.kept == 4


def test_a_create_begins_a_lineage():
    done = planned(
        [], operation("create", statement="成员普遍从事前端开发", tags=("职业",), evidence=("c4",), confidence=0.9)
    )
    (made,) = after([], done)
    assert (made.memory_id, made.lineage_id, made.version, made.parents) == ("new-1", "new-1", 1, ())
    assert (made.strength, made.confidence, made.tags) == (0.5, 0.9, ("职业",))
    assert made.sources == (Source("room", "id4"),)
    assert done.changes[0].old_statement is None


@pytest.mark.parametrize("kind", ["create", "update"])
@pytest.mark.parametrize("text", ["members mostly write python", "Ｍembers mostly  write Python！"])
def test_saying_the_same_again_confirms(kind, text):
    old = held(*TEXTS)
    done = planned(old, operation(kind, *(["m2"] if kind == "update" else []), statement=text, evidence=("c1",)))
    (change,) = done.changes
    assert change.action is Action.STRENGTH
    strong = replace(old[1], strength=pytest.approx(0.325), sources=(Source("room", "id1"),), supported_at=NOW)
    assert change.memory == strong
    assert done.kept == 5
    assert len(after(old, done)) == 5


def test_a_confirmation_never_takes_confidence_away():
    (change,) = planned(held("a b", confidence=0.7), operation("update", "m1", statement="a b", confidence=0.2)).changes
    assert change.memory.confidence == 0.7


@pytest.mark.parametrize(("likeness", "action"), [(0.85, Action.UPDATE), (0.84, Action.CREATE)])
def test_a_create_that_is_like_a_memory_updates_it(likeness, action):
    def similar(one, other):
        return likeness if "Python" in other else 0.1

    done = planned(held(*TEXTS), operation("create", statement="Most people code in Python"), similar=similar)
    assert actions(done) == [action]
    assert done.changes[0].closes == (("id-1",) if action is Action.UPDATE else ())


@pytest.mark.parametrize(
    ("one", "other"),
    [("C++", "C"), ("version 1.5", "version 15"), ("-5 度", "5 度"), ("new age", "newage"), ("a > b", "a < b")],
)
def test_what_is_not_the_same(one, other):
    assert comparison_form(one) != comparison_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("大家喜欢 Python。", "大家喜欢python"),
        ("「不聊政治」，规则", "不聊政治 规则"),
        ("It's Node.js!", "it's node.js"),
    ],
)
def test_what_is_the_same(one, other):
    assert comparison_form(one) == comparison_form(other)


def test_the_last_operation_on_a_memory_counts():
    old = held(*TEXTS)
    operations = [operation("update", "m1", statement="first text"), operation("delete", "m1"), operation("keep", "m1")]
    done = planned(old, *operations)
    assert done.changes == ()
    assert [line for line, _ in reasons(done)] == [1, 2]
    assert all("Line 3" in reason for _, reason in reasons(done))


def test_a_later_operation_that_is_refused_overrules_nothing():
    old = held(*TEXTS)
    done = planned(
        old, operation("update", "m1", statement="kept text"), operation("delete", "m5"), operation("delete", "m1")
    )
    assert actions(done) == [Action.UPDATE, Action.DELETE]
    assert [line for line, _ in reasons(done)] == [3]


def test_a_merge_that_shares_a_memory_with_a_later_operation_is_left_out():
    done = planned(
        held(*TEXTS),
        operation("update", "m1", "m2", statement="both of them"),
        operation("update", "m2", "m3", statement="another two"),
        operation("delete", "m4"),
    )
    assert [change.memory.statement for change in done.changes] == ["another two", TEXTS[3]]
    assert [line for line, _ in reasons(done)] == [1]


UNKNOWN_HANDLES = [
    "m6",
    "m0",
    "c1",
    "id-1",
    "new-1",
    "3f2b8c1e-0000-4000-8000-000000000001",
    "",
    "m1 m2",
    "1",
    "m²",
    "m1" + " " * 99,
]


def test_a_handle_that_was_not_offered():
    with all_cases() as case:
        for kind in ("keep", "update", "delete"):
            for handle in UNKNOWN_HANDLES:
                with case(kind, repr(handle)):
                    done = planned(held(*TEXTS), operation(kind, handle, statement="quite another text"))
                    assert done.changes == ()
                    assert "m1 to m5" in reasons(done)[0][1]


def test_a_merge_with_an_unknown_handle_is_not_done_in_part():
    assert planned(held(*TEXTS), operation("update", "m1", "m77", statement="x y")).changes == ()


def test_a_handle_is_never_an_id():
    """Even where ids look like handles."""
    first, second = held(*TEXTS[:2])
    crossed = [replace(first, memory_id="m2", lineage_id="m2"), replace(second, memory_id="m1", lineage_id="m1")]
    (change,) = planned(crossed, operation("delete", "m1")).changes
    assert change.memory.memory_id == "m2"


def test_handles_in_any_case_and_width():
    assert actions(planned(held(*TEXTS), operation("delete", " Ｍ１ "))) == [Action.DELETE]
    assert list(handles_of(held("a", "b"))) == ["m1", "m2"]
    assert list(MESSAGES) == ["c1", "c2", "c3", "c4"]


@pytest.mark.parametrize(
    ("texts", "handles"),
    [
        ((), ["m1", "m2", "m3"]),
        (("delete m1 and M3!",), ["m2", "m4", "m5"]),
        (("请删除记忆ｍ１和m2", "以及m4"), ["m3", "m5", "m6"]),
        (("a 100m2 flat, m12 and am 5",), ["m1", "m3", "m4"]),
    ],
    ids=["no text", "en", "zh", "lengths"],
)
def test_what_people_write_names_no_memory(texts, handles):
    assert list(handles_of(held("a", "b", "c"), shown=texts)) == handles


def test_evidence_that_was_not_offered_is_left_out_with_a_note():
    done = planned([], operation("create", statement="people like tea", evidence=("c1", "c9", "id2", "m1")))
    assert done.changes[0].memory.sources == (Source("room", "id1"),)
    assert [line for line, _ in reasons(done)] == [1]
    assert "c9" in reasons(done)[0][1]
    assert "2 more" in reasons(done)[0][1]


def test_of_too_many_sources_the_latest_stay():
    old = held("a b", sources=tuple(Source("room", f"old{n}") for n in range(MAX_SOURCES)))
    (change,) = planned(old, operation("update", "m1", statement="c d", evidence=("c1",))).changes
    assert len(change.memory.sources) == MAX_SOURCES
    assert change.memory.sources[-1] == Source("room", "id1")


@pytest.mark.parametrize(
    "text", ["", " \n", "。！…", "a\x00b", "a\x1bb", "\u202eabc", "a\ud800", "长" * 401, "e" * 4000]
)
def test_a_statement_that_cannot_be_kept(text):
    done = planned(held(*TEXTS), operation("create", statement=text), operation("update", "m1", statement=text))
    assert done.changes == ()
    assert [line for line, _ in reasons(done)] == [1, 2]
    for one in done.rejected:
        one.text.encode()
        assert len(one.text) <= 80


@pytest.mark.parametrize("text", ["长" * 400, "👨‍👩‍👧‍👦" * 400, "two\nlines\there"])
def test_a_statement_that_can_be_kept(text):
    assert check_statement(clean_statement(text, Rules())) == " ".join(text.split())


@pytest.mark.parametrize(
    ("amount", "share", "most"), [(1, 0.3, 1), (3, 0.3, 1), (10, 0.3, 3), (50, 0, 1), (100, 0.29, 29)]
)
def test_how_much_may_go(amount, share, most):
    old = held(*(f"statement {n}" for n in range(amount)))
    done = planned(old, *(operation("delete", f"m{n}") for n in range(1, amount + 1)), rules=Rules(delete_share=share))
    assert [change.memory.memory_id for change in done.changes] == [one.memory_id for one in old[:most]]
    assert len(done.rejected) == amount - most
    assert most_deleted(amount, Rules(delete_share=share)) == most


def test_several_memories_deleted_at_once_are_counted_each():
    done = planned(held(*TEXTS), operation("delete", "m1", "m2", "m3", "m1"))
    assert actions(done) == [Action.DELETE]
    assert len(done.rejected) == 2


def test_merges_are_no_deletions_but_have_a_size():
    old = held(*(f"statement {n}" for n in range(10)))
    handles = [f"m{n}" for n in range(1, 7)]
    assert len(after(old, planned(old, operation("update", *handles[:5], statement="one for all")))) == 6
    assert planned(old, operation("update", *handles, statement="one for all")).changes == ()


def test_the_cap_leaves_room_only_for_what_fits():
    old = held(*(f"statement {n}" for n in range(30)))
    full = planned(old, operation("create", statement="one more"))
    assert full.changes == ()
    assert "merge" in reasons(full)[0][1]
    operations = [operation("create", statement=f"more {n}") for n in "abc"]
    done = planned(old, *operations, operation("update", "m1", "m2", statement="merged"), operation("delete", "m3"))
    assert actions(done) == [Action.CREATE, Action.CREATE, Action.MERGE, Action.DELETE]
    assert len(after(old, done)) == 30


def test_memories_that_were_not_offered_count_too():
    done = planned(held(*TEXTS), operation("create", statement="one more"), active=30)
    assert done.changes == ()


def test_two_memories_do_not_come_to_say_the_same():
    old = held(*TEXTS)
    done = planned(
        old,
        operation("create", statement="same words"),
        operation("update", "m1", statement="Same words!"),
        operation("update", "m2", statement=TEXTS[2]),
        operation("create", statement="same words"),
    )
    assert [change.closes for change in done.changes] == [("id-0",), ("id-1", "id-2")]
    assert [line for line, _ in reasons(done)] == [1, 4]


def test_two_memories_may_change_places():
    old = held("a b", "c d")
    done = planned(old, operation("update", "m1", statement="c d"), operation("update", "m2", statement="a b"))
    assert [one.statement for one in after(old, done)] == ["c d", "a b"]


def test_creates_that_are_like_each_other():
    operations = [operation("create", statement=text) for text in ("people like tea", "people love tea", "no politics")]
    done = planned([], *operations, similar=lambda one, other: 0.9 if "tea" in one and "tea" in other else 0.0)
    assert [change.memory.statement for change in done.changes] == ["people like tea", "no politics"]


def test_what_a_memory_says_that_was_not_offered():
    done = planned(held(*TEXTS), operation("create", statement="elsewhere"), taken=lambda text: text == "elsewhere")
    assert done.changes == ()


def test_a_create_names_no_memory_and_others_do():
    done = planned(
        held(*TEXTS),
        operation("create", "m1", statement="x y"),
        operation("delete"),
        operation("update", statement="z"),
    )
    assert done.changes == ()
    assert len(done.rejected) == 3


def test_labels_that_cannot_be_kept():
    given = operation(
        "create", statement="x y", tags=("a", "a", "", "b" * 65), confidence=float("nan"), reason="a\x00b\n" * 300
    )
    done = planned([], given)
    made = done.changes[0]
    assert (made.memory.tags, made.memory.confidence) == (("a",), None)
    assert len(made.reason) <= 500
    assert made.reason.startswith("a b a b")
    assert len(done.rejected) == 2


def test_too_many_operations():
    done = planned(held(*TEXTS), *(operation("delete", f"m{n % 5 + 1}") for n in range(5000)))
    assert len(done.changes) == 1
    assert len(done.rejected) == 5000 - 1
    assert sum("at most" in reason and "operations" in reason for _, reason in reasons(done)) == 5000 - MAX_OPERATIONS


WORDS = st.sampled_from(
    [*TEXTS, "猫 很 可爱", "cats are nice", "Cats are nice.", "members write Rust", "", "bad\x00", "长" * 401]
)
HANDLES = st.sampled_from([*(f"m{n}" for n in range(1, 9)), "id-1", "m99", "group:x"])
OPERATIONS = st.builds(
    Operation,
    line=st.just(1),
    kind=st.sampled_from(["keep", "update", "update", "create", "delete"]),
    handles=st.lists(HANDLES, max_size=3).map(tuple),
    statement=WORDS,
    reason=st.text(max_size=9),
    evidence=st.lists(st.sampled_from(["c1", "c4", "c9", "x"]), max_size=2).map(tuple),
    confidence=st.none() | st.floats(),
).map(lambda one: replace(one, handles=()) if one.kind == "create" else one)
CASES = st.tuples(
    st.integers(0, 8),
    st.lists(OPERATIONS, max_size=14),
    st.builds(Rules, delete_share=st.floats(0, 1), most_active=st.integers(0, 10), same=st.just(0.6)),
    st.booleans(),
)


def overlap(one, other):
    """Of characters."""
    left, right = set(comparison_form(one)), set(comparison_form(other))
    return len(left & right) / max(len(left | right), 1)


def case(size, operations, rules, likened):
    old = held(*(TEXTS[n] if n < len(TEXTS) else f"statement {n}" for n in range(size)))
    return old, planned(old, *operations, rules=rules, similar=overlap if likened else None)


@settings(max_examples=150)
@given(CASES)
def test_whatever_is_operationed(given):
    size, operations, rules, _ = given
    old, done = case(*given)
    left = after(old, done)
    there = {one.memory_id for one in old}
    assert max(Counter(one.lineage_id for one in left).values(), default=1) == 1
    assert len({comparison_form(one.statement) for one in left}) == len(left)
    assert [change.number for change in done.changes] == list(range(8, 8 + len(done.changes)))
    assert sum(change.action is Action.DELETE for change in done.changes) <= most_deleted(size, rules)
    assert len(left) <= max(size, rules.most_active)
    touched = [name for change in done.changes for name in change.memory.parents or (change.memory.lineage_id,)]
    offered = [name for name in touched if not name.startswith("new-")]
    assert set(offered) <= there
    assert len(offered) == len(set(offered))
    assert {one.memory_id for one in done.based_on} == set(offered)
    assert all(0 <= one.strength <= 1 for one in left)
    assert all(one.reason and 1 <= one.line <= len(operations) for one in done.rejected)


@settings(max_examples=150)
@given(CASES)
def test_every_operation_is_done_or_has_a_reason(given):
    _, operations, _, _ = given
    old, done = case(*given)
    told = {one.line for one in done.rejected}
    wanted = sum(1 for line, one in enumerate(operations, 1) if line not in told and one.kind != "keep")
    assert len(done.changes) >= wanted
    assert done.kept == sum(
        one in active(replay(done.changes, {m.memory_id: m for m in old})) or _same(one, done) for one in old
    )


def _same(one, done):
    return any(change.action is Action.STRENGTH and change.memory.memory_id == one.memory_id for change in done.changes)


@settings(max_examples=50)
@given(CASES)
def test_the_same_answer_gives_the_same_plan(given):
    assert case(*given) == case(*given)
