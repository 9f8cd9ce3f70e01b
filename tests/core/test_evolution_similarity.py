"""Statements that say the same in other words or in the other language, and what a plan makes of them."""

import json
from typing import Any

import pytest

from roomlore.core.evolution.guards import checked_answer
from roomlore.core.evolution.plan import PlanInput, plan
from roomlore.core.evolution.prompt import handles_of
from roomlore.core.evolution.requests import Answer, Operation, Plan, Rules, ScopeState
from roomlore.core.evolution.wording import (
    SAME,
    ParsedMessage,
    is_one_subject,
    rests_on_the_same,
    says_the_same,
    similarity,
)
from roomlore.core.memory.memory import Action, Memory, MemoryKind, Source
from roomlore_testkit import START, memory

SAME_IN_OTHER_WORDS = [
    ("The team holds its daily stand-up at 10", "Everybody joins the daily stand-up at 10"),
    ("The rota for the food bank is done by Vicky", "Vicky organises the food bank rota"),
    ("团建的预算是每人 12 元", "每人有 12 元团建预算"),
    ("每周三 18 点 yoga", "They do yoga on Wednesdays at 18"),
    ("生日礼物的预算是 50 元", "The birthday presents cost 50"),
]
DIFFERENT = [
    ("The team holds its stand-up at 10", "The team has lunch at 10"),
    ("The team holds its daily stand-up at 10", "Everybody joins the daily stand-up at 11"),
    ("Anna is allergic to peanuts and walnuts", "Bo is allergic to peanuts and walnuts"),
    ("Dogs are allowed in the garden house", "Dogs are not allowed in the garden house"),
    ("周三 18 点跑步", "They do yoga on Wednesdays at 18"),
    ("大家喜欢火锅", "They like hot pot"),
    ("摊位费每月 800", "摊位费月底前交，晚交罚 800 元"),
]


@pytest.mark.parametrize(("one", "other"), SAME_IN_OTHER_WORDS)
def test_the_same_in_other_words_is_recognised(one, other):
    assert says_the_same(one, other)
    assert says_the_same(other, one)
    assert similarity(one, other) >= SAME


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_in_a_number_a_name_or_a_denial_does_not_say_the_same(one, other):
    assert not says_the_same(one, other)
    assert not says_the_same(other, one)


def planned(memories: list[Memory], *operations: Operation, **more: Any) -> Plan:
    return plan(
        Answer(operations, ()),
        PlanInput(
            offered=handles_of(memories),
            **{"messages": {}, **more},
            similar=similarity,
            rules=Rules(),
            state=ScopeState(scope="group:g", number=0, active=len(memories)),
            kind=MemoryKind.GROUP,
            evolution_id="e",
            new_id=iter("abcdefgh").__next__,
            actor="model",
            now=START,
        ),
    )


@pytest.mark.parametrize(("one", "other"), SAME_IN_OTHER_WORDS)
def test_a_create_that_says_the_same_becomes_an_update(one, other):
    held = memory("a1", statement=one, scope="group:g")
    (change,) = planned([held], Operation(line=1, kind="create", statement=other)).changes
    assert (change.action, change.memory.lineage_id) == (Action.UPDATE, held.lineage_id)


@pytest.mark.parametrize(("one", "other"), SAME_IN_OTHER_WORDS)
def test_an_update_that_says_what_another_memory_says_merges_the_two(one, other):
    held = [memory("a1", statement=one, scope="group:g"), memory("a2", statement="They sing", scope="group:g")]
    (change,) = planned(held, Operation(line=1, kind="update", handles=("m2",), statement=other)).changes
    assert change.action is Action.MERGE
    assert {*change.closes} == {"a1", "a2"}


def test_a_memory_that_the_answer_deals_with_itself_is_not_merged_by_the_way():
    one, other = SAME_IN_OTHER_WORDS[0]
    held = [memory("a1", statement=one, scope="group:g"), memory("a2", statement="They sing", scope="group:g")]
    update = Operation(line=1, kind="update", handles=("m2",), statement=other)
    changes = planned(held, update, Operation(line=2, kind="delete", handles=("m1",))).changes
    assert {change.action for change in changes} == {Action.UPDATE, Action.DELETE}


@pytest.mark.parametrize(
    ("said", "kind"),
    [("from now on the daily stand-up is at 11", "update"), ("the daily stand-up at 11 was fun", "create")],
)
def test_a_create_replaces_what_it_contradicts_if_a_message_says_that_something_changed(said, kind):
    statement = "Everybody joins the daily stand-up at 11"
    held = memory("a1", statement="The team holds its daily stand-up at 10", scope="group:g")
    assert is_one_subject(statement, held.statement)
    line = {"action": "create", "evidence": ["c1"], "statement": statement, "change_reason": "said"}
    answer = checked_answer(
        json.dumps(line),
        template='{"action": "create", "evidence": ["c9"], "statement": "zz", "change_reason": "zz"}',
        offered={"m1": held},
        shown=f"c1 [Mon 2026-03-02 08:00] anna: {said}",
        silent=lambda one: False,
        repair=lambda text: text,
    )
    assert [one.kind for one in answer.operations] == [kind]


@pytest.mark.parametrize(
    ("statement", "said", "other", "heard"),
    [
        # Said again: two languages, two wordings.
        ("合唱团 15 点开始排练", "rehearsal starts at 15 now", "The choir begins at 15", "rehearsal starts at 15 now"),
        ("Lunch together is at 4", "我们以后 4 点一起吃午饭", "午饭时间定在 4 点", "我们以后 4 点一起吃午饭哦"),
        ("Fees are 9 pounds", "dues are 9 pounds a month", "会费每月 9 镑", "dues are 9 pounds a month"),
        # Said anew: the message says that it changed.
        ("羽毛球用 4 号场", "羽毛球改到 4 号场", "They play badminton on court 3", "羽毛球改到 3 号场"),
        (
            "Keep books 6 weeks",
            "books can be kept for 6 weeks now",
            "书可以借 3 周",
            "books can be kept for 3 weeks now",
        ),
    ],
)
def test_statements_that_rest_on_what_was_said_again_are_of_one_matter(statement, said, other, heard):
    assert rests_on_the_same(statement, [ParsedMessage("Bo", said)], other, [ParsedMessage("Anna", heard)])


@pytest.mark.parametrize(
    ("statement", "said", "other", "heard"),
    [
        ("Bo has the keys on 5 May", "keys on 5 May: me", "Anna has the keys on 5 May", "keys on 5 May: me"),
        ("Room 4 is free", "room 4 is free", "Room 3 is free", "room 3 is free"),
        ("羽毛球用 4 号场", "羽毛球在 4 号场", "They play badminton on court 3", "羽毛球在 3 号场"),
        ("The choir meets at 9", "choir at 9", "The bus leaves at 9", "the bus leaves at 9"),
        ("不要 9 点来", "come at 9", "They come at 9", "come at 9"),
        ("We like tea", "we like tea", "大家喜欢茶", "we like tea"),
    ],
)
def test_what_other_people_or_messages_say_is_another_matter(statement, said, other, heard):
    assert not rests_on_the_same(statement, [ParsedMessage("Bo", said)], other, [ParsedMessage("Anna", heard)])


def test_a_create_in_another_language_becomes_a_version_of_the_memory_whose_message_it_repeats():
    held, source = memory("a1", statement="The choir begins at 15", scope="group:g"), Source("g", "9")
    operation = Operation(line=1, kind="create", statement="合唱团 15 点开始排练", evidence=("c1",))
    said = {source: ParsedMessage("Bo", "rehearsal starts at 15 now")}
    heard = {"a1": [ParsedMessage("Anna", "rehearsal starts at 15 now")]}
    (change,) = planned([held], operation, messages={"c1": source}, said=said, heard=heard).changes
    assert change.action is Action.UPDATE
    assert change.closes == ("a1",)


def test_a_create_stays_one_if_two_memories_rest_on_the_message_that_it_repeats():
    held = [memory("a1", statement="Lunch is at 4", scope="group:g"), memory("a2", statement="4 come", scope="group:g")]
    source, words = Source("g", "9"), [ParsedMessage("Anna", "lunch at 4 for 4 people")]
    operation = Operation(line=1, kind="create", statement="午饭 4 点", evidence=("c1",))
    heard = {"a1": words, "a2": words}
    (change,) = planned(held, operation, messages={"c1": source}, said={source: words[0]}, heard=heard).changes
    assert change.action is Action.CREATE
