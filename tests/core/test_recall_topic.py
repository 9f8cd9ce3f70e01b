"""The part of a conversation that facts are recalled for."""

import pytest

from recall_facts import facts, recall, statements
from roomlore.core.recall.ranking import topic_of
from roomlore.core.recall.recollection import ConversationMessage as Line

TALK = [
    Line("system", "You are a bot."),
    Line("user", "one"),
    Line("assistant", "calling", has_tool_calls=True),
    Line("tool", "result"),
    Line("assistant", "first answer"),
    Line("user", "two"),
    Line("assistant", "second answer"),
    Line("user", "three"),
]


def parts(messages, turns):
    return [(part.text, part.weight) for part in topic_of(messages, turns).parts]


def test_tools_and_what_calls_them_are_left_out():
    assert [text for text, _ in parts(TALK, 3)] == ["one", "first answer", "two", "second answer", "three"]


def test_only_the_last_turns_count_and_older_ones_less():
    assert parts(TALK, 2) == [("two", 0.25), ("second answer", 0.125), ("three", 1.0)]
    assert topic_of(TALK, 2).asked == "three"


def test_an_answer_after_the_last_question_counts():
    assert parts([*TALK, Line("assistant", "third answer")], 1) == [("three", 1.0), ("third answer", 0.5)]


def test_without_turns_there_is_no_topic():
    assert topic_of(TALK, 0).parts == ()
    assert topic_of([], 3).parts == ()


def test_blocks_that_were_injected_say_nothing():
    messages = [Line("user", "<memory>\n- likes Docker\n</memory>"), Line("user", "<memory>x</memory> 怎么写测试？")]
    assert parts(messages, 3) == [("怎么写测试？", 1.0)]
    header = "Why does #include <memory> give no unique_ptr?"
    assert parts([Line("user", f"<MEMORY_context>x</Memory_Context>{header}")], 3) == [(header, 1.0)]
    assert parts([Line("assistant", "[MEMORY_CHECKPOINT] so far"), Line("user", "hi")], 3) == [("hi", 1.0)]


@pytest.mark.parametrize(
    ("asked", "needed"),
    [
        ("Which recipe shall I take for Friday?", "The household eats no garlic"),
        ("推荐一张显卡", "电源是450瓦的"),
        ("草稿写好了，帮我回他一封", "Signs letters with initials"),
    ],
)
def test_a_fact_of_the_topic_comes_before_those_that_share_nothing(asked, needed):
    known = facts(needed, *(f"Owns a canoe and {n} paddles of ash" for n in range(8)))
    assert statements(recall(known, [asked]))[0] == needed


def test_a_limit_comes_before_a_taste_where_nothing_is_shared():
    known = facts("Never works past noon", "Likes pebbles", "Paints fences")
    assert statements(recall(known, ["xyzzy"])) == ["Never works past noon", "Paints fences", "Likes pebbles"]
