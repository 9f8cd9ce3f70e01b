"""Notes that are too long are shortened by clauses."""

import pytest

from roomlore.core.memory.extraction import kept, shortened
from roomlore.core.text import graphemes


@pytest.mark.parametrize(
    ("note", "most", "left"),
    [
        ("Ann likes tea.", 100, "Ann likes tea."),
        ("Ann likes tea. Ann sings. Ann is 42.", 33, "Ann likes tea; sings; is 42."),
        ("Ann's size is 42; Ann does not eat eggs", 34, "Ann's size is 42; doesn't eat eggs"),
        ("Ann likes tea. Bo sails. Ann is 42.", 34, "Ann likes tea. Ann is 42."),
        ("用户对花生过敏。用户周五出差。用户的女儿五岁。", 22, "用户对花生过敏；周五出差。用户的女儿五岁。"),
        ("小林养猫；小林不吃辣；小王唱歌", 14, "小林养猫；不吃辣；小王唱歌"),
    ],
)
def test_what_is_repeated_goes_first(note, most, left):
    assert shortened(note, most) == left


@pytest.mark.parametrize(
    ("note", "stays", "goes"),
    [
        (
            "The weather was nice and everybody had a good time, Mia is allergic to peanuts, the cake was large and "
            "sweet and all of it was eaten, bring 12 chairs on Friday",
            ("Mia is allergic to peanuts", "12 chairs on Friday"),
            "cake",
        ),
        (
            "今天大家聊得很开心，天气也特别好，公园里的花都开了，拍了好多照片发在群里面给大家看了又看，用户对青霉素过敏，周五下午三点复查，"
            "路上买了两杯奶茶，又甜又香，边走边喝，回家以后还看了一集电视剧，剧情实在是太拖沓了，看着看着就睡着了",
            ("用户对青霉素过敏", "周五下午三点复查"),
            "拖沓",
        ),
    ],
)
def test_clauses_that_matter_least_go_next(note, stays, goes):
    left = shortened(note, 100)
    assert graphemes(left) <= 100
    assert all(one in left for one in stays)
    assert goes not in left


@pytest.mark.parametrize("note", ["x" * 300, "长" * 300, "e\u0301" * 300, "。" * 300, "👩‍👩‍👧" * 300, ", " * 300])
def test_what_has_no_clause_is_cut_between_characters(note):
    left = shortened(note, 100)
    assert graphemes(left) <= 100
    assert note.startswith(left)


def test_a_models_note_is_shortened():
    first = "Tobias has choir on Thursday; Tobias wants physio on Friday"
    left = kept(f"{first}; Tobias cannot lift his left arm above the shoulder")
    assert left == "Tobias has choir on Thursday; wants physio on Friday; cannot lift his left arm above the shoulder"
