"""Scores of memories: what raises them, what does not, and that every model's mean the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.memory.scoring import (
    BACKGROUND,
    CHINESE,
    ENGLISH,
    BackgroundVectors,
    Cosines,
    Scores,
    StatementTerms,
    cosines_of,
    is_dense_script,
    nearness,
    read_question,
    score,
)
from roomlore.core.text import words

MEMORIES = [
    "Most members are front-end developers",
    "成员多为前端开发者",
    "The weekly meeting is on Friday",
    "每周五开例会",
    "👋🏽",
    "",
]


def shares(question: str, memories=MEMORIES, *, of_group: bool = False) -> list[float]:
    return StatementTerms(memories).met(read_question(question, of_group=of_group).terms).shares.tolist()


def flags(*texts: str) -> np.ndarray:
    return np.array([is_dense_script(text) for text in texts], bool)


def around(mean: float, deviation: float) -> Cosines:
    """A background with this mean and deviation in both languages."""
    wave = np.tile([1.0, -1.0], len(CHINESE) // 2)
    return Cosines(mean + deviation * np.concatenate([wave, wave]), flags(*BACKGROUND))


def near(*values: float, dense_script: bool = False, background: Cosines | None = None) -> list[float]:
    found = Cosines(np.array(values), np.full(len(values), dense_script))
    return nearness(found, background or around(0.0, 1.0)).tolist()


def test_the_background_says_the_same_in_both_languages():
    assert len(CHINESE) == len(ENGLISH) == len(set(CHINESE)) == len(set(ENGLISH))
    assert all(is_dense_script(text) for text in CHINESE)
    assert not any(is_dense_script(text) for text in ENGLISH)


@pytest.mark.parametrize(
    ("text", "dense"),
    [
        ("成员多为前端开发者", True),
        ("喜欢 React", True),
        ("They like 茶 very much, every afternoon", False),
        ("テントを直す", True),
        ("한국어로 말한다", True),
        ("Wir trinken Tee", False),
        ("", False),
        ("👋🏽 42", False),
    ],
)
def test_the_script_of_a_memory(text, dense):
    assert is_dense_script(text) is dense


@pytest.mark.parametrize(
    ("question", "place"), [("Who are the developers?", 0), ("谁是开发者？", 1), ("例会是哪天？", 3)]
)
def test_words_find_the_memory_that_has_them(question, place):
    found = shares(question)
    assert int(np.argmax(found)) == place
    assert found[place] > 0.4


def test_words_that_only_ask_say_nothing():
    assert shares("什么时候？谁？哪里？怎么样？")[:4] == shares("时候")[:4]
    assert shares("What is it? Who? Where? How?") == [0.0] * len(MEMORIES)


def test_what_all_have_is_worth_little():
    memories = [f"Ann likes {thing}" for thing in ("tea", "rain", "chess", "hills", "soup", "trains", "ink", "owls")]
    ann, tea = shares("Ann and tea", memories)[1], shares("Ann and tea", memories)[0]
    assert ann < 0.3
    assert tea == pytest.approx(1.0)


def test_words_that_no_memory_has_lower_the_share():
    assert shares("developers and zeppelins")[0] < shares("developers")[0] == pytest.approx(1.0)


HIVES = [
    "The queen in hive 3 has her left wing clipped",
    "三号车的担架锁扣松，抬之前先按两下",
    "Yan has the key of the store",
]


def best(question: str, memories=HIVES) -> float:
    return float(score(read_question(question, of_group=True), StatementTerms(memories)).total.max())


@pytest.mark.parametrize(
    ("question", "place"), [("I am locked out of the storeroom", 2), ("仓库的钥匙谁有", 2), ("担架锁不上怎么办", 1)]
)
def test_another_word_of_the_same_meaning_counts_in_any_language(question, place):
    scores = score(read_question(question, of_group=True), StatementTerms(HIVES))
    assert int(np.argmax(scores.total)) == place


@pytest.mark.parametrize(
    ("answered", "unanswered"),
    [
        ("Is the queen in hive 3 clipped?", "Is the queen in hive 7 clipped?"),
        ("三号车的担架怎么锁", "六号车的担架怎么锁"),
        ("Who has the key of the store?", "What colour is the key of the store?"),
        ("Who has the key of the store?", "How much is the key of the store?"),
    ],
)
def test_another_one_or_another_kind_of_thing_is_less_of_an_answer(answered, unanswered):
    assert best(answered) >= 0.7
    assert best(unanswered) < best(answered) - 0.03


def test_pairs_across_words_and_parts_of_known_words_are_not_asked_for():
    assert read_question("群组的技术背景是什么？", of_group=True).terms == ("成员", "技术", "背景")


def test_the_group_means_its_members_in_a_group_alone():
    assert read_question("群组的技术背景是什么？", of_group=True).embed == "成员的技术背景是什么？"
    assert read_question("What are this group's habits?", of_group=True).embed == "What are the members' habits?"
    assert read_question("background of the group", of_group=True).embed == "background of the members"
    for kept in ("群主是谁", "群规是什么", "怎么配置集群", "Who is the group owner?", "the group's name", "regroup"):
        assert read_question(kept, of_group=True).embed == kept
    assert read_question("群组的技术背景", of_group=False).embed == "群组的技术背景"


def test_a_long_question_is_cut():
    question = read_question("为什么部署失败了 because of the migration " * 400, of_group=True)
    assert len(question.embed) <= 1_500
    assert len(question.terms) <= 128


def test_nearness_counts_standard_deviations_of_what_is_unrelated():
    assert near(2.0) == pytest.approx([2.0])
    assert near(0.0, 0.0, 2.0)[2] > near(1.0, 1.5, 2.0)[2] > 0


def test_each_language_has_its_own_unrelated_statements():
    background = Cosines(np.where(flags(*BACKGROUND), 0.9, 0.5) + around(0, 0.01).values, flags(*BACKGROUND))
    chinese = near(0.92, dense_script=True, background=background)
    english = near(0.52, dense_script=False, background=background)
    assert chinese == pytest.approx(english)
    both = nearness(Cosines(np.array([0.92, 0.52]), np.array([True, False])), background)
    assert both.tolist() == pytest.approx([chinese[0], english[0]])


def test_a_memory_without_a_vector_goes_by_words_and_changes_no_other():
    found = near(1.0, np.nan, 2.0)
    assert np.isnan(found[1])
    assert [found[0], found[2]] == pytest.approx(near(1.0, 2.0))
    scores = score(read_question("developers", of_group=False), StatementTerms(MEMORIES[:3]), np.array(found))
    alone = score(read_question("developers", of_group=False), StatementTerms(MEMORIES[:3]))
    assert scores.total[1] == alone.total[1]
    assert scores.meaning[1] == 0


def test_of_a_large_scope_a_sample_stands_for_the_rest():
    sample = Cosines(np.array([5.0, 5.0, 7.0]), np.zeros(3, bool))
    found = Cosines(np.array([6.0]), np.zeros(1, bool))
    assert nearness(found, around(0, 1), sample)[0] < nearness(found, around(0, 1))[0]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.floats(0.05, 2), st.floats(-0.4, 0.4))
def test_models_that_spread_their_cosines_otherwise_give_the_same(values, spread, shift):
    """Cosines of one model are another's, squeezed and moved."""
    background = around(0.1, 0.2)
    moved = Cosines(background.values * spread + shift, background.dense_script)
    squeezed = [value * spread + shift for value in values]
    assert near(*squeezed, background=moved) == pytest.approx(near(*values, background=background), abs=1e-6)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.text(max_size=40))
def test_scores_are_shares_and_rise_with_nearness(values, text):
    question = read_question(text, of_group=True)
    scores = score(question, StatementTerms([""] * len(values)), np.array(values))
    assert ((scores.total >= 0) & (scores.total <= 1)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(scores.total[order]) >= 0).all()


@given(st.lists(st.sampled_from(MEMORIES), max_size=8), st.sampled_from(MEMORIES))
def test_scores_rise_with_words(memories, text):
    scores = score(read_question(text, of_group=False), StatementTerms(memories), np.zeros(len(memories)))
    order = np.argsort(scores.words, kind="stable")
    assert (np.diff(scores.total[order]) >= 0).all()
    assert ((scores.words >= 0) & (scores.words <= 1)).all()


@pytest.mark.parametrize("values", [(0.3, 0.3), (0.3,), ()])
def test_vectors_that_are_all_alike_say_nothing(values):
    flat = Cosines(np.full(len(BACKGROUND), 0.3), flags(*BACKGROUND))
    assert near(*values, background=flat) == pytest.approx([0.0] * len(values), abs=1e-6)


def test_one_that_stands_out_from_many_that_are_all_alike_says_much():
    flat = Cosines(np.zeros(len(BACKGROUND)), flags(*BACKGROUND))
    found = near(0.6, 0.0, 0.0, background=flat)
    assert found[0] > 10
    assert max(found[1:]) < 0


def test_the_best_come_first_and_equal_ones_as_they_stand():
    words_of = StatementTerms(["tea", "rain", "tea", "green tea"])
    scores = score(read_question("tea", of_group=False), words_of)
    assert scores.best(0.7, 9).tolist() == [0, 2, 3]
    assert scores.best(0.7, 2).tolist() == [0, 2]
    assert scores.best(0.0, 9).tolist() == [0, 2, 3, 1]
    assert scores.best(1.0, 9).size == 0


def test_nothing_remembered_has_no_scores():
    scores = score(read_question("tea", of_group=False), StatementTerms([]), np.zeros(0))
    assert scores.best(0.0, 5).size == 0
    assert scores.nothing(0.0, words_alone=True) == "There is no memory to search."


def test_an_answer_without_hits_says_how_near_the_best_came():
    scores = score(read_question("tea", of_group=False), StatementTerms(["rain", "snow"]))
    assert scores.nothing(0.7, words_alone=True) == (
        "The best of 2 memories scores 0.10; the threshold is 0.7. Words alone were compared: ask in the words of the "
        "memories, or give a lower threshold."
    )
    assert scores.nothing(0.7, words_alone=False).endswith("Ask in other words, or give a lower threshold.")
    assert scores.nothing(0.05, words_alone=True) is None


@given(st.floats(0, 1), st.lists(st.floats(0, 1), max_size=9))
def test_why_nothing_was_found_is_said_if_and_only_if_nothing_was(threshold, totals):
    values = np.array(totals)
    scores = Scores(values, values, values)
    nothing = scores.nothing(threshold, words_alone=False)
    assert (nothing is None) == (scores.best(threshold, 9).size > 0)


def test_cosines_do_not_depend_on_the_length_of_vectors():
    rng = np.random.default_rng(4)
    vectors, question = rng.standard_normal((len(BACKGROUND), 8)).astype(np.float32), np.ones(8, np.float32)
    found = BackgroundVectors(vectors).cosines(question)
    again = BackgroundVectors(vectors * 7).cosines(question * 3)
    assert again.values == pytest.approx(found.values, abs=1e-6)
    assert cosines_of(np.zeros((1, 8), np.float32), question).tolist() == [0.0]


def test_every_statement_of_the_background_has_words():
    assert all(words(statement) for statement in BACKGROUND)
