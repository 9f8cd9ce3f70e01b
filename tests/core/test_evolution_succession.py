"""Which statements are the next version of a memory, as far as words tell."""

import pytest
from evolution_updates import GOOD, Update
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.evolution.wording import (
    Names,
    ParsedMaterial,
    details,
    is_mentioned,
    is_related,
    loss_reason,
    negations,
    signals_change,
    still_says,
    without_details,
)
from roomlore_testkit.case_table import all_cases

NOBODY = Names([], [])


def talk_of(update: Update) -> ParsedMaterial:
    return ParsedMaterial(
        {f"c{n}": line.replace("：", ": ", 1) for n, line in enumerate(update.cited, 1)}, [update.memory]
    )


def test_a_memory_that_is_said_again_is_never_refused():
    with all_cases() as case:
        for update in GOOD:
            with case(update.memory):
                conversation = talk_of(update)
                assert loss_reason(conversation.of(update.memory), conversation.of(update.memory + "。"), []) == ""


NUMBERS = [
    ("每周五晚上九点半在3号楼", {("day", "fri"), ("number", "9"), ("number", "half"), ("number", "3")}),
    ("Fridays at 9:30, room 3", {("day", "fri"), ("number", "9"), ("number", "half"), ("number", "3")}),
    ("Fri at half past nine", {("day", "fri"), ("number", "9"), ("number", "half")}),
    ("一百五十块", {("number", "150")}),
    ("二零二六年", {("number", "2026")}),
    ("一万两千人", {("number", "12000")}),
    ("每周一次，一起去", set()),
    ("周末 or the weekend", {("day", "weekend")}),
    ("version 1.5, not v2", {("number", "1.5")}),
    ("one of them, once, a fourth", {("number", "4")}),
    ("今天十分高兴，百度一下", set()),
    ("", set()),
]


def test_numbers_and_days_are_the_same_in_both_languages():
    with all_cases() as case:
        for text, told in NUMBERS:
            with case(text):
                assert {(one.kind, one.value) for one in details(text, NOBODY)} == told


@pytest.mark.parametrize("run", ["二" * 24_000, "一" + "万" * 24_000, "十" * 24_000], ids=["digits", "powers", "tens"])
def test_a_message_of_numerals_alone_is_no_number_and_harms_nothing(run):
    assert details(f"{run}点，三点半", Names([], [])) == details("三点半", Names([], []))
    conversation = ParsedMaterial({"c1": f"Ann: {run}点"}, ["They meet at nine"])
    assert still_says(conversation.of("They meet at nine"), conversation.every) is False


def test_names_are_those_of_speakers_and_what_is_written_as_one():
    names = Names(["老蒋", "Anna Lee", "ben", "x"], ["we met Carla on Monday. Then Tom, and Uncle Jo"])
    assert names.within("老蒋 and Carla saw Anna Lee, ben, Carlas, Then") == ["Anna Lee", "Carla", "老蒋"]
    assert without_details("Carla rides on Mondays with two dogs", names).split() == [
        "rides", "on", "s", "with", "dogs",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("不戴头盔不能跟队", 2),
        ("不错，没错，不过也不少", 0),
        ("对榛子不过敏", 1),
        ("禁止宠物，别带", 2),
        ("别人的猫", 0),
        ("No sprays, and don't forget: never on Sundays", 2),
        ("Politics is off limits", 1),
        ("no doubt", 0),
    ],
)
def test_how_often_a_text_denies(text, times):
    assert negations(text) == times


@pytest.mark.parametrize("text", ["不再去了", "改到六点", "no longer at nine", "It moved to Friday", "Ben takes over"])
def test_what_calls_something_off(text):
    assert signals_change(text)


@pytest.mark.parametrize(
    ("memory", "message", "still"),
    [
        ("不戴头盔不能跟队", "思琪: 新来的同学也记得戴头盔，不戴不能跟队", True),
        ("No sprays in the garden", "Mira: No sprays in our garden, Stan", True),
        ("不戴头盔不能跟队", "老蒋: 以后不戴头盔也能跟队", True),
        ("群里可以发广告", "老蒋: 群里不可以发广告了", False),
        ("They meet at the shed", "Tom: we no longer meet at the shed", False),
        ("They meet at the shed", "Tom: what a match", False),
    ],
)
def test_whether_a_message_still_says_a_memory(memory, message, still):
    conversation = ParsedMaterial({"c1": message}, [memory])
    assert still_says(conversation.of(memory), conversation.every) is still


def test_what_is_cited_is_looked_up_as_handles_are():
    conversation = ParsedMaterial({"c1": "Ann: tea", "c2": "Ben: cake"}, [])
    assert [one.text for one in conversation.cited((" Ｃ２", "c9", "m1", "Ann: tea"))] == ["Ben: cake"]


TEXTS = st.text(st.sampled_from("abAB 不没周五三点半两9:1.，Fri no"), max_size=16)


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=3))
def test_any_texts_are_compared(memory, statement, lines):
    conversation = ParsedMaterial({f"c{n}": f"A: {line}" for n, line in enumerate(lines, 1)}, [memory])
    one, other = conversation.of(memory), conversation.of(statement)
    assert is_related(one, other) == is_related(other, one)
    assert isinstance(loss_reason(one, other, conversation.every), str)
    assert loss_reason(one, one, conversation.every) == ""
    kept = {p.kind for p in one.details - other.details}
    if not lines and kept and memory and statement and loss_reason(one, other, []) == "":
        raise AssertionError("something particular went, and nobody said so")
    assert is_mentioned(one, conversation.every) in (True, False)
