"""When a block stays as it is, and when it does not."""

import pytest

from recall_facts import count, fact, recall, statements
from roomlore.core.recall.ranking import FactSet
from roomlore.core.recall.recollection import RecallOptions

GAMES = ("chess", "draughts", "bridge", "poker", "backgammon")
PLACES = ("Lisbon", "Vienna", "Oslo", "Rome", "Madrid", "Prague", "Cairo", "Athens")
HOBBIES = [f"Once played the game of {name} with a cousin" for name in GAMES]
TRIPS = [f"Travelled to {name} by train with her friend" for name in PLACES]
FOOD = ["Is allergic to peanuts, which she found out at school", "喜欢吃辣的川菜", "养了一只叫豆豆的猫"]
KNOWN = FactSet([fact(n, text) for n, text in enumerate([*HOBBIES, *TRIPS, *FOOD])], count=count)
SMALL = RecallOptions(max_tokens=60)
TRAIN = "Which trips by train did she make?"


def ids(found):
    return [one.memory.memory_id for one in found.facts]


@pytest.fixture
def shown():
    return recall(KNOWN, [TRAIN], SMALL)


@pytest.mark.parametrize("chatter", ["haha, that is so true", "好的，谢谢你", "Ok!", "🎉", ""])
def test_chatter_keeps_the_block_byte_for_byte(shown, chatter):
    found = recall(KNOWN, [TRAIN, chatter], SMALL, ids(shown))
    assert found.kept
    assert found.text == shown.text


ANSWERED = [("What is she allergic to?", FOOD[0]), ("她喜欢吃什么菜？", FOOD[1]), ("猫叫什么名字？", FOOD[2])]


@pytest.mark.parametrize(("question", "answer"), ANSWERED)
def test_a_question_that_a_missing_fact_answers_changes_it(shown, question, answer):
    assert answer not in statements(shown)
    found = recall(KNOWN, [TRAIN, question], SMALL, ids(shown))
    assert not found.kept
    assert answer in statements(found)[:2]  # behind an allergy where food is talked of


def test_a_question_that_the_block_answers_keeps_it(shown):
    place = statements(shown)[0].split()[2]
    found = recall(KNOWN, [f"{place}?"], SMALL, ids(shown))
    assert found.kept
    assert found.text == shown.text


def test_a_short_request_that_a_missing_fact_covers_changes_it(shown):
    found = recall(KNOWN, ["peanuts, allergic"], SMALL, ids(shown))
    assert not found.kept
    assert FOOD[0] in statements(found)


def test_a_fact_that_is_gone_changes_it(shown):
    left = FactSet([memory for memory in KNOWN.memories if memory.memory_id != ids(shown)[1]], count=count)
    found = recall(left, ["haha"], SMALL, ids(shown))
    assert not found.kept
    assert ids(shown)[1] not in ids(found)


def test_a_smaller_budget_changes_it(shown):
    found = recall(KNOWN, ["haha"], RecallOptions(max_tokens=shown.tokens - 1), ids(shown))
    assert not found.kept
    assert found.tokens < shown.tokens


def test_where_everything_fits_a_new_fact_is_shown_at_once():
    few = FactSet(KNOWN.memories[:4], count=count)
    shown = recall(few, ["hello"])
    more = FactSet([*KNOWN.memories[:4], fact(99, "Moved to Bergen")], count=count)
    assert recall(few, ["lol"], previous=ids(shown)).kept
    assert "Moved to Bergen" in statements(recall(more, ["lol"], previous=ids(shown)))


def test_what_is_not_sticky_is_ranked_anew(shown):
    options = RecallOptions(max_tokens=60, sticky=False)
    assert not recall(KNOWN, [TRAIN, "haha"], options, ids(shown)).kept


@pytest.mark.parametrize("previous", [["f1", "f1"], ["nobody"]])
def test_what_cannot_have_been_shown_is_ranked_anew(previous):
    assert not recall(KNOWN, ["haha"], SMALL, previous).kept
