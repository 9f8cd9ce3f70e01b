"""Facts that must not be missed: what is recognised, what a conversation touches, and what comes first."""

from dataclasses import replace

import pytest

from recall_facts import USUAL, count, fact, facts, recall, statements
from roomlore.core.recall.ranking import FactSet
from roomlore.core.safety import is_safety
from roomlore.core.subjects import subjects

HOBBIES = [f"Likes the {thing} on the shelf of the living room, and says so often" for thing in "abcdefghijklmnopqrst"]
SMALL = replace(USUAL, max_tokens=60)


@pytest.mark.parametrize(
    "statement",
    [
        "Allergic to penicillin",
        "对青霉素过敏",
        "對磺胺類藥物過敏",
        "Takes warfarin every evening",
        "每天吃二甲双胍",
        "Must never be given insulin without a reading",
        "Never mix bleach with the descaler",
        "生产库禁止执行 KEYS",
        "女儿乳糖不耐受",
        "Has a pacemaker",
        "Ann injects 12 units at night",
        "Takes 5 ml of syrup",
        "Was given 0.5ml on Monday",
        "Uses 1,000 IU a day",
        "Lantus: 12 units before bed",
        "Insulin, 12 units",
        "Wears a patch of 25 µg",
        "每晚打12单位胰岛素",
        "注射了十二個單位",
        "每次5毫升",
        "維生素D 400國際單位",
    ],
)
def test_what_must_not_be_missed_is_recognised(statement):
    assert is_safety(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "Likes pasta",
        "Never gives up",
        "不得了的菜",
        "Is he allergic to nuts?",
        "Takes a day off on Fridays",
        "喜欢下雨天",
        "Rents 12 units in the block",
        "The bottle holds 5 ml",
        "Uses 3 united fronts",
        "有12个单位参加",
        "",
    ],
)
def test_ordinary_statements_are_not_safety(statement):
    assert not is_safety(statement)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("Allergic to penicillin", "the doctor gave me antibiotics"),
        ("Penicillin allergy", "医生开了阿莫西林"),
        ("对青霉素过敏", "can I take amoxicillin?"),
        ("Takes metformin", "明天做增强CT"),
        ("对碘过敏", "a CT scan is planned"),
        ("对虾过敏", "晚上去吃海鲜"),
        ("Allergic to shellfish", "一起去吃虾"),
        ("Nut allergy", "who is allergic to almonds?"),
    ],
)
def test_a_touched_subject_comes_first_whatever_the_similarity(statement, said):
    known = FactSet([fact(n, text, 1.0) for n, text in enumerate(HOBBIES)] + [fact(99, statement, 0.0)], count=count)
    assert statements(recall(known, [said], SMALL))[0] == statement


def test_a_dose_in_units_is_shown_among_forty_facts():
    hobbies = [f"{text}, shelf {number}" for number in range(2) for text in HOBBIES]
    known = FactSet(
        [fact(n, text, 1.0) for n, text in enumerate([*hobbies, "Ann injects 12 units at night"])], count=count
    )
    for said in ("what is on the shelf?", "should she see a doctor?"):
        assert "Ann injects 12 units at night" in statements(recall(known, [said], replace(USUAL, max_tokens=120)))


def test_a_declared_category_is_safety_without_its_words():
    quiet = replace(fact(99, "The cellar door sticks", 0.0), category="safety")
    known = FactSet([*(fact(n, text, 1.0) for n, text in enumerate(HOBBIES)), quiet], count=count)
    assert statements(recall(known, ["who has the key to the cellar?"], SMALL))[0] == quiet.statement


def test_a_pinned_fact_comes_first_without_a_conversation_too():
    pinned = replace(fact(0, "Answers in French", 0.0), tags=("pinned",))
    known = FactSet([pinned, *(fact(n, text, 1.0) for n, text in enumerate(HOBBIES, 1))], count=count)
    for texts in ([], ["what is on the shelf?"]):
        assert statements(recall(known, texts, SMALL))[0] == pinned.statement


def test_an_untouched_safety_fact_does_not_come_first_and_still_has_room():
    known = FactSet(
        [fact(n, text, 1.0) for n, text in enumerate(HOBBIES)] + [fact(99, "Allergic to bee stings", 0.0)], count=count
    )
    shown = statements(recall(known, ["what is on the shelf?"], replace(USUAL, max_tokens=100)))
    assert shown[-1] == "Allergic to bee stings"
    assert len(shown) > 1


def test_a_kept_block_gives_way_to_a_safety_fact():
    known = FactSet(
        [fact(n, text, 1.0) for n, text in enumerate(HOBBIES)] + [fact(99, "Penicillin allergy")], count=count
    )
    before = [f"f{n}" for n in (3, 2)]
    assert statements(recall(known, ["I take amoxicillin now"], SMALL, previous=before))[0] == "Penicillin allergy"


def test_inflections_meet():
    known = facts(*HOBBIES, "Is allergic to something in spring")
    assert statements(recall(known, ["any allergies?"], SMALL))[0] == "Is allergic to something in spring"


def test_a_category_is_searchable():
    known = FactSet([*map(fact, range(20), HOBBIES), replace(fact(99, "Blue", 0.0), category="colour")], count=count)
    assert statements(recall(known, ["which colour?"], SMALL))[0] == "Blue"


def test_the_example_of_the_seed_ranks_pytest_before_docker():
    known = facts(
        "Uses Docker for containerization", "Expert in Python and FastAPI", "Prefers pytest for testing", "Likes tea"
    )
    shown = statements(recall(known, ["我在做一个 Python 项目", "使用 FastAPI 和 SQLAlchemy", "怎么写测试？"]))
    assert shown.index("Prefers pytest for testing") < shown.index("Uses Docker for containerization")


def test_subjects_are_named_by_words_and_not_by_parts_of_others():
    assert "nuts" in subjects("Walnuts and almonds")
    assert "nuts" not in subjects("a nutritious doughnut")
    assert "dairy" not in subjects("奶奶来了")
    assert "medicine" not in subjects("active users")
