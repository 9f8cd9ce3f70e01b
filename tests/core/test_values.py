"""The values that a message tells, each with the words of its clause."""

from itertools import permutations

import pytest

from roomlore.core.values import Value, clause_around, values_in, weight, without_values, words_of


def found(text: str) -> list[tuple[str, str, str]]:
    return [(value.kind, value.text, text[slice(*value.span)]) for value in values_in(text)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("her insulin is 14 units at night", [("unit", "14", "14 units")]),
        ("take half a tablet, then two", [("tablet", "0.5", "half a tablet")]),
        ("one and a half tablets", [("tablet", "1.5", "one and a half tablets")]),
        ("an eighth of a tablet", [("tablet", "0.125", "an eighth of a tablet")]),
        ("down to five reps", [("rep", "5", "five reps")]),
        ("make it five", [("number", "5", "five")]),
        ("2BHK Rs 3,200", [("bhk", "2", "2BHK"), ("rupee", "3200", "Rs 3,200")]),
        ("£34 an hour", [("pound", "34", "£34")]),
        ("15 ml and 0.5毫升", [("毫升", "15", "15 ml"), ("毫升", "0.5", "0.5毫升")]),
        ("incubator B at 30 °C", [("°c", "30", "30 °C")]),
        ("90 g of pasta", [("g", "90", "90 g")]),
        ("sunday 7:15pm", [("day", "sun", "sunday"), ("clock", "7:15pm", "7:15pm")]),
        ("tanker 6.15 am", [("clock", "6:15am", "6.15 am")]),
        ("half past nine", [("clock", "9:30", "half past nine")]),
        ("quarter to one", [("clock", "12:45", "quarter to one")]),
        ("quarter to 15", [("clock", "14:45", "quarter to 15")]),
        ("三四片", [("片", "三四", "三四片")]),
        ("四十片", [("片", "40", "四十片")]),
        ("毛肚6点40到", [("clock", "6:40", "6点40")]),
        ("晚上减成1片半", [("片", "1.5", "1片半")]),
        ("一个半小时", [("小时", "1.5", "一个半小时")]),
        ("软装压到4万5", [("number", "4万5", "4万5")]),
        ("今天血压55 医生说", [("number", "55", "55")]),
        ("room 307", [("numbered room", "307", "room 307")]),
        ("Saturday 7 November", [("day", "7november", "Saturday 7 November")]),
        ("L1 and 5x7, +1, <3", []),
        ("加了一点", []),
        ("one of us", []),
    ],
)
def test_values_have_their_kind_and_their_number(text, values):
    assert found(text) == values


def test_a_clause_has_the_words_beside_its_value():
    morning, evening = values_in("her insulin is 14 units in the morning and 8 units in the evening")
    assert morning.sides == {("time", "morning")}
    assert evening.sides == {("time", "evening")}
    assert "insulin" in morning.clause
    assert "insulin" not in evening.clause
    assert morning.contradicts(evening)


def test_a_clause_keeps_the_values_of_other_kinds_but_times():
    invites = values_in("raid invites wed 8:30pm and sun 6pm")
    clocks = [value for value in invites if value.kind == "clock"]
    assert ["wed" in clock.clause for clock in clocks] == [True, False]
    assert ["sun" in clock.clause for clock in clocks] == [False, True]


def test_the_left_leg_is_a_side_and_what_is_left_is_none():
    assert values_in("8 reps on the left leg")[0].sides == {("hand", "left")}
    assert values_in("8 reps are left")[0].sides == frozenset()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("at 9pm", "9:00", True),
        ("at 9pm", "9am", False),
        ("at 9pm", "at 9", True),
        ("三公斤", "3公斤", True),
        ("five reps", "5 reps", True),
        ("5 reps", "5 ml", False),
        ("make it 5", "5 ml", True),
    ],
)
def test_one_value_may_be_written_in_several_ways(one, other, same):
    assert values_in(one)[0].is_same(values_in(other)[0]) is same


def test_a_number_may_stand_for_an_amount_but_not_for_a_day():
    number, amount, day = (values_in(text)[0] for text in ("it's 6", "8 units", "on Sunday"))
    assert number.is_of_kind(amount)
    assert not number.is_of_kind(day)
    assert not amount.is_of_kind(day)


def test_the_old_value_is_denied():
    old, new = values_in("not 8 units but 6 units")
    assert (old.denied, new.denied) == (True, False)


def test_a_clause_covers_another_by_its_words():
    rye, loaf = values_in("country loaf 78 percent, seeded rye 84 percent")[::-1]
    later: Value = values_in("rye down to 80 percent")[0]
    assert later.covers(rye) > later.covers(loaf)


def test_words_name_a_subject():
    assert "B" in words_of("B goes to 25")
    assert "sun" in words_of("the Sunday rate")
    assert "take" not in words_of("take five")


def test_text_is_read_around_and_without_its_values():
    text = "tea at 5, coffee at 8 units"
    assert text[slice(*clause_around(text, (7, 8)))] == "tea at 5,"
    assert without_values(text, values_in(text)) == "tea at  , coffee at  "


def test_words_weigh_the_same_in_any_order():
    assert len({weight(words) for words in permutations(("甲", "乙", "丙", "boiler", "sun"))}) == 1
