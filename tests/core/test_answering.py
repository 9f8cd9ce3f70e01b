"""If a statement answers a question: what is asked for, what a statement holds, and the comparison of vectors."""

import numpy as np
import pytest

from roomlore.adapters.weights import load_answer_model
from roomlore.core.memory.scoring import (
    EVIDENCE,
    KINDS,
    AnswerModel,
    MemoryMatches,
    StatementTerms,
    asked_for,
    held,
    read_question,
    score,
)
from roomlore_testkit.case_table import all_cases


def kinds(flags) -> set[str]:
    return {kind for kind, flag in zip(KINDS, flags, strict=True) if flag}


ASKED_FOR = [
    ("How much is the fee?", {"number", "money"}),
    ("会费多少钱", {"number", "money"}),
    ("When is the trip?", {"time"}),
    ("什么时候出发", {"time"}),
    ("几点集合？", {"number", "time", "clock"}),
    ("Who has the key?", {"person"}),
    ("鑰匙在誰那裡", {"person"}),
    ("Where is the depot?", {"place"}),
    ("会议室在哪里", {"place"}),
    ("React 还是 Vue？", set()),
    ("peanuts", set()),
    ("", set()),
]


def test_the_kind_of_thing_that_a_question_asks_for():
    with all_cases() as case:
        for question, asked in ASKED_FOR:
            with case(question):
                assert kinds(asked_for(question)) == asked


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("The fee is 18 pounds", "number"),
        ("每桌十二人", "number"),
        ("The trip is on Friday", "time"),
        ("週六上午十點集合", "time"),
        ("Ask Dr Farouk", "person"),
        ("钥匙由老林保管", "person"),
        ("The key is under the mat", "place"),
        ("水管总阀在楼梯间后面", "place"),
    ],
)
def test_what_a_statement_holds(statement, kind):
    assert kind in kinds(held([statement])[0])
    assert not held(["likes tea"]).any()
    assert held([]).shape == (0, len(KINDS))


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("How much is the locker?", "The locker costs twenty", "The locker is green"),
        ("柜子多少钱", "柜子要二十元", "柜子很结实"),
        ("When is the market?", "The market is on Sunday", "The market is small"),
        ("集市什么时候开", "集市周日开", "集市不大"),
    ],
)
def test_of_two_with_the_same_words_the_one_that_holds_what_is_asked_for_scores_higher(question, answer, other):
    scores = score(read_question(question, of_group=True), StatementTerms([answer, other]))
    assert scores.total[0] > scores.total[1]


def model(**changed) -> AnswerModel:
    """A model of vectors of two numbers: questions and statements meet crosswise."""
    arrays = {
        "model": "small",
        "questions": [[0, 0], [0.5, 0]],
        "statements": [[0, 0], [0, 0.5]],
        "left": [[1], [0]],
        "right": [[0], [2]],
        "same": 0.0,
        "weights": np.zeros(len(EVIDENCE)),
    }
    return AnswerModel.of(arrays | changed)


def test_a_match_is_the_learned_product_of_both_vectors_less_their_means():
    direction = model().direction(np.array([0.6, 0.8], np.float32), dense_script=False)
    assert direction.vector.tolist() == pytest.approx([0, 1])
    found = direction.of(np.array([0.0, 1.0, np.nan, 1.0]), np.array([False, False, False, True]))
    assert found[[0, 1, 3]].tolist() == pytest.approx([0, 1.2, 1.2 * 0.5])
    assert np.isnan(found[2])
    of_dense = model().direction(np.array([0.6, 0.8], np.float32), dense_script=True)
    assert of_dense.of(np.ones(1), np.zeros(1, bool)).tolist() == pytest.approx([0.2])
    plain = model(left=[[0], [0]], same=3.0).direction(np.array([0.6, 0.8], np.float32), dense_script=False)
    assert plain.of(np.array([0.5]), np.zeros(1, bool)).tolist() == pytest.approx([1.5])


def test_a_question_at_the_mean_has_no_direction():
    direction = model().direction(np.zeros(2, np.float32), dense_script=False)
    assert direction.of(np.array([0.3]), np.zeros(1, bool)).tolist() == [0.0]


def test_the_score_rises_with_the_match_and_falls_if_what_is_asked_for_is_missing():
    weights = load_answer_model().weights
    question = read_question("When is the market?", of_group=True)
    words = StatementTerms(["The market is on Sunday", "The market is small", "The market is on Sunday"])
    near, dense = np.array([1.0, 1.0, 1.0]), np.zeros(3, bool)
    scores = score(question, words, near, MemoryMatches(np.array([2.0, 2.0, 4.0]), dense, weights)).total
    assert scores[2] > scores[0] > scores[1]


def test_a_memory_without_a_vector_goes_by_words():
    question, words = read_question("market", of_group=True), StatementTerms(["The market is small", "likes tea"])
    weights = load_answer_model().weights
    matches = MemoryMatches(np.array([np.nan, 1.0]), np.zeros(2, bool), weights)
    scores = score(question, words, np.array([np.nan, 1.0]), matches)
    assert scores.total[0] == score(question, words).total[0]


def test_the_shipped_model_is_small_and_whole():
    shipped = load_answer_model()
    assert shipped is load_answer_model()
    assert shipped.weights.shape == (len(EVIDENCE),)
    assert shipped.questions.shape == shipped.statements.shape == (2, 384)
    assert np.isfinite(shipped.left).all()
    assert np.isfinite(shipped.right).all()
