"""Scores of facts: what counts, what does not, and what is the same every time."""

import time
from statistics import median

import numpy as np
import pytest

from recall_facts import count, fact, facts, recall, said, statements
from roomlore.core.recall.ranking import FactSet, Topic, amount, confidence_of, fill, rank, topic_of
from roomlore.core.recall.recollection import RecallOptions


def test_a_confidence_of_0_is_0_and_none_is_the_default():
    assert confidence_of(fact(1, "tea", 0.0)) == 0.0
    assert confidence_of(fact(1, "tea", None)) == 0.5
    known = FactSet([fact(1, "likes tea", 0.0), fact(2, "likes tea", None), fact(3, "likes tea", 0.3)], count=count)
    assert [one.confidence for one in recall(known, ["tea?"]).facts] == [0.5, 0.3, 0.0]


def test_without_context_confidence_alone_decides():
    known = FactSet([fact(n, f"fact {n}", n / 10) for n in range(5)], count=count)
    ranking = rank(known, Topic(), RecallOptions())
    assert ranking.score.tolist() == known.confidence.tolist()
    assert statements(recall(known, [])) == [f"fact {n}" for n in (4, 3, 2, 1, 0)]


def test_equal_facts_stand_in_the_same_order_however_they_came():
    many = [fact(n, "likes green tea", 0.5) for n in range(30)]
    orders = {
        tuple(one.memory.memory_id for one in recall(FactSet(given, count=count), ["tea"]).facts)
        for given in (many, many[::-1], many[7:] + many[:7])
    }
    assert len(orders) == 1


@pytest.mark.parametrize(
    ("texts", "nearest"),
    [(["Where does the cat sleep?"], "The cats are sleeping in the kitchen"), (["猫在哪里睡觉"], "小猫睡在厨房里")],
)
def test_words_are_found_in_other_forms_in_both_languages(texts, nearest):
    known = facts(
        "Has a red car", "The cats are sleeping in the kitchen", "开一辆红色的车", "小猫睡在厨房里", "likes tea"
    )
    assert statements(recall(known, texts))[0] == nearest


def test_a_long_answer_does_not_drown_the_question_after_it():
    known = facts("Is allergic to peanuts", *(f"Went to the harbour festival number {n}" for n in range(20)))
    long_answer = "The harbour festival has boats, music and fireworks at the harbour. " * 40
    topic = topic_of([*said("festival?"), *said(long_answer), *said("What is she allergic to?")], 3)
    best = rank(known, topic, RecallOptions()).order[0]
    assert known.memories[best].statement == "Is allergic to peanuts"


def test_the_literal_formula_is_the_cosine_and_the_confidence():
    known = FactSet([fact(1, "likes tea", 0.2), fact(2, "drinks coffee", 0.9)], count=count)
    ranking = rank(known, topic_of(said("tea"), 3), RecallOptions(scale="literal"))
    expected = 0.6 * ranking.similarity + 0.4 * known.confidence
    assert ranking.score == pytest.approx(expected)
    assert 0 < ranking.similarity.max() <= 1


def test_relevance_is_between_0_and_1_and_0_without_a_shared_word_or_topic():
    known = facts("likes tea", "plays chess", "喜欢喝茶", "green tea in the morning", "")
    ranking = rank(known, topic_of(said("tea"), 3), RecallOptions())
    assert ranking.relevance.min() >= 0
    assert ranking.relevance.max() <= 1
    assert {known.memories[place].statement for place in np.flatnonzero(ranking.relevance == 0)} == {
        "plays chess",
        "",
    }


@pytest.mark.parametrize("similarity", ["embedding", "hybrid"])
def test_cosines_that_lie_close_together_still_tell_facts_apart(similarity):
    known = facts(*(f"says nothing {n}" for n in range(40)))
    cosines = np.full(40, 0.85)
    cosines[11] = 0.93
    ranking = rank(known, topic_of(said("何时出发"), 3), RecallOptions(similarity=similarity), cosines)
    assert ranking.order[0] == 11
    assert ranking.relevance[11] > 0.9


def test_equal_cosines_tell_nothing():
    known = facts("a", "b", "c")
    ranking = rank(known, topic_of(said("x"), 3), RecallOptions(similarity="embedding"), np.full(3, 0.9))
    assert not ranking.relevance.any()


def test_smaller_facts_fill_what_a_large_one_leaves():
    assert fill(np.array([0, 1, 2, 3]), np.array([5, 50, 4, 2]), 10) == [0, 2]
    assert fill(np.array([0, 1, 2, 3]), np.array([5, 50, 4, 2]), 11) == [0, 2, 3]
    assert fill(np.array([1]), np.array([1, 1]), 0) == []


def test_what_was_made_ready_before_changes_nothing():
    first = facts("likes tea", "plays chess", "喜欢喝茶")
    memories = [fact(1, "plays the violin"), fact(2, "喜欢喝茶"), fact(5, "has tea at five")]
    again, anew = FactSet(memories, count=count, known=first), FactSet(memories, count=count)
    for text in ("tea", "chess and violin", "茶"):
        topic = topic_of(said(text), 3)
        assert rank(again, topic, RecallOptions()).score == pytest.approx(rank(anew, topic, RecallOptions()).score)
        assert rank(first, topic, RecallOptions()).score.size == 3
    assert again.tokens.tolist() == anew.tokens.tolist()


def test_no_fact_and_no_word():
    assert recall(facts(), ["tea?"]).text == ""
    assert recall(facts("", "  "), ["？！"]).considered == 2


def test_a_text_says_as_much_in_either_language():
    assert amount("Where does the cat sleep at night?") == pytest.approx(amount("小猫晚上睡在哪里？"), abs=1.5)
    assert amount("café Москва") == 2


def test_a_hundred_facts_take_a_few_times_as_long_as_a_hundred_thousand_squares():
    """Both are timed in turns, so that a busy processor slows both."""
    memories = [fact(n, f"On day {n} she spoke of tea, 说了第{n}次旅行 and of place {n % 7}") for n in range(100)]
    recalls, squares = [], []
    for n in range(30):
        question = f"What did she say of place {n % 7}, 旅行？"
        recalls.append(seconds(lambda: recall(FactSet(memories, count=count), [question])))  # noqa: B023 - called now
        squares.append(seconds(lambda: sum(n * n for n in range(100_000))))
    assert median(recalls) < 4 * median(squares)


def seconds(does) -> float:
    began = time.process_time()
    does()
    return time.process_time() - began
