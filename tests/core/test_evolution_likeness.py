"""Which statements are so alike that one takes the place of the other, and which memories are offered."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.evolution.prompt import chosen
from roomlore.core.evolution.requests import Rules
from roomlore.core.evolution.wording import likeness
from roomlore.core.memory.memory import Memory
from roomlore_testkit.builders import START

SAME = Rules().same
TEXTS = st.text(st.sampled_from("abc 甲乙丙，.1"), max_size=12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The group discusses anime on Fridays", "The group discusses anime every Friday"),
        ("They discuss anime on Friday evenings", "They discuss new anime on Friday evenings"),
        ("每周五讨论新番动漫", "每周五晚上讨论新番动漫"),
        ("群里不讨论政治话题", "群里不讨论政治的话题。"),
        ("成员用 React 写前端", "成员都用React写前端"),
        ("Anna likes tea", "Anna liked tea!"),
    ],
)
def test_the_same_again_is_alike(one, other):
    assert likeness(one, other) >= SAME
    assert likeness(other, one) >= SAME


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna from the platform team is allergic to nuts", "Ben from the platform team is allergic to nuts"),
        ("Anna pays Ben every month", "Ben pays Anna every month"),
        ("小林对花生过敏，住在上海浦东", "小王对花生过敏，住在上海浦东"),
        ("老王请阿明吃饭", "阿明请老王吃饭"),
        ("每周五晚上讨论新番动漫", "每周六晚上讨论新番动漫"),
        ("Stand-up is at 9:30 in room 5", "Stand-up is at 9:30 in room 6"),
        ("成员主要是前端工程师", "群里不讨论政治话题"),
        ("Politics is off limits", "Newcomers are welcome"),
        ("喜欢茶", "喜欢咖啡"),
        ("", "anything"),
        ("。。。", "。。。"),
    ],
)
def test_what_is_said_of_somebody_else_is_not(one, other):
    assert likeness(one, other) < SAME
    assert likeness(other, one) < SAME


@given(TEXTS, TEXTS)
def test_it_is_a_share_and_the_same_both_ways(one, other):
    assert 0 <= likeness(one, other) <= 1
    assert likeness(one, other) == likeness(other, one)


def memory(name: str, statement: str, day: int = 0) -> Memory:
    return Memory(
        memory_id=name,
        lineage_id=name,
        scope="group:g",
        kind="group",
        statement=statement,
        created_at=START + timedelta(days=day),
        updated_at=START,
        supported_at=START,
    )


def test_where_there_are_few_all_are_offered_the_oldest_first():
    new, old = memory("a", "茶", 2), memory("b", "咖啡", 1)
    assert chosen([new, old], "", most=2) == [old, new]
    assert chosen([], "x", most=2) == []


@pytest.mark.parametrize(
    ("said", "statement"),
    [("周五继续聊新番吧", "每周五讨论新番"), ("shall we talk anime on Friday", "They talk anime on Fridays")],
)
def test_where_there_are_many_those_spoken_of_come_first(said, statement):
    others = [memory(f"o{n}", f"zebra 斑马 {n}", n) for n in range(9)]
    spoken_of = replace(memory("it", statement), updated_at=START - timedelta(days=99))
    found = chosen([*others, spoken_of], said, most=3)
    assert spoken_of in found
    assert {one.memory_id for one in found} == {"it", "o0", "o1"}


def test_long_statements_leave_room_for_others():
    long, short = [memory(f"l{n}", "长" * 4_000, n) for n in range(3)], memory("s", "每周五讨论新番", 9)
    assert chosen([*long, short], "", most=10) == [long[0], short]
    assert chosen([*long, short], "", most=50) == [*long, short]
