"""Facts that a summary must not lose, and answers of a model that are no summary."""

import pytest

from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.errors import BadModelOutput
from roomlore.core.safety import DATE, DECISION, FACT, SAFETY, importance
from roomlore.core.summary import accepted, completed, echoes, extract
from roomlore.core.summary.corrections import corrected
from roomlore.core.summary.sentences import SpeakerText
from roomlore.core.values import GONE

count = EncodingTokens().count
CHATTER = [
    text
    for at in range(150)
    for text in (
        f"I love pasta number {at} with my sister, it was great",
        f"我昨天去了第{at}家店，买了两件衣服，很喜欢",
    )
]
NEEDED = [
    "Stop metformin 48 hours before and after the contrast.",
    "My father is allergic to penicillin.",
    "布洛芬每次4毫升，间隔六小时以上。",
    "谁都别碰配电箱，裸线还没包。",
]


@pytest.mark.parametrize("place", [0, 149, 299])
def test_what_must_not_be_lost_survives_much_talk(place):
    said = [SpeakerText("Ann", text) for text in CHATTER]
    said[place:place] = [SpeakerText("Dr Wu", text) for text in NEEDED]
    summary = extract("", said, max_tokens=512, count=count)
    assert [text for text in NEEDED if text not in summary] == []


def test_it_is_added_to_a_model_summary_that_drops_it():
    said = [SpeakerText("Ann", text) for text in (*NEEDED, *CHATTER[:20])]
    full = completed("They talked about food.", "", said, max_tokens=512, count=count)
    assert full.startswith("They talked about food.\nAnn: ")
    assert [text for text in NEEDED if text not in full] == []
    assert "pasta" not in full


def test_what_a_model_says_in_other_words_is_not_added_again():
    said = [SpeakerText("Ann", "My dad is allergic to penicillin.")]
    summary = "Her dad has a penicillin allergy."
    assert completed(summary, "", said, max_tokens=512, count=count) == summary


def test_what_the_earlier_summary_held_is_added_too():
    full = completed(
        "They talked.", "Ann: I am allergic to nuts.", [SpeakerText("Bo", "hello")], max_tokens=99, count=count
    )
    assert full == "They talked.\nAnn: I am allergic to nuts."


def test_a_summary_without_room_gives_way_to_what_must_not_be_lost():
    talk = " ".join(f"They talked about place {at} for a while." for at in range(60))
    full = completed(talk, "", [SpeakerText("Ann", NEEDED[0])], max_tokens=64, count=count)
    assert NEEDED[0] in full
    assert count([full])[0] <= 64


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't help with medical advice.",
        "As an AI language model I am unable to summarise this.",
        "I cannot assist with that request.",
        "抱歉，我无法总结这段对话。",
        "作为一个人工智能，我不能处理这些内容。",
        "好的！以上就是聊天内容，还有什么可以帮您？",
    ],
)
def test_a_refusal_is_no_summary(answer):
    with pytest.raises(BadModelOutput):
        accepted(answer, max_tokens=100, count=count)


@pytest.mark.parametrize(
    "answer",
    [
        "Ann is sorry that she cannot come on Friday. Bo takes her shift.",
        "用户说抱歉，周五不能来，改到周六。",
        "The nurse cannot give morphine before ten.",
    ],
)
def test_people_may_apologise_in_a_summary(answer):
    assert accepted(answer, max_tokens=100, count=count) == answer


def test_an_answer_that_repeats_its_instructions_is_known():
    asked = "Write one new summary in the place of both, for an assistant that goes on with the conversation."
    assert echoes(f"Sure. {asked}", asked)
    assert not echoes("Ann lives in Leeds and works as a nurse in the children's ward of the hospital.", asked)
    assert not echoes("", asked)


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("deposit is 250", "no, the deposit is 200", f"deposit is {GONE}"),
        ("raid sunday 20:00", "clocks change, so 21:00", f"raid sunday {GONE}"),
        ("Boiler man comes Wednesday", "Friday then, 8am", f"Boiler man comes {GONE}"),
        ("周五八点半开荒", "那改周六九点吧", f"{GONE}开荒"),
        ("那批货款28万", "不是28万 是26万8", f"那批货款{GONE}"),
    ],
)
def test_a_corrected_value_is_left_out(old, new, left):
    found = corrected([old, "ok", new])
    assert found.texts == [left, "ok", new]
    assert found.corrections == {2}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The report is due Monday", "decided: the team dinner is on Friday at the old harbour restaurant"),
        ("周五体检，空腹来", "大家的聚餐安排在江边那家饭店，定了，周六"),
        ("bring 3 chairs", "no, 4 tables are enough for the whole party of the school"),
        ("Friday at 8", "is it Saturday?"),
    ],
)
def test_values_of_other_subjects_stay(first, second):
    assert corrected([first, second]).texts == [first, second]


@pytest.mark.parametrize(
    ("told", "left"),
    [
        (["Mia: Court 4 again this week", "Desk: court 4 is flooded, you get court 7"], f"{GONE} again this week"),
        (["Tom: draft due 8 May", "Ann: could we push it to 12 May?", "Tom: ok, 12 May"], f"draft due {GONE}"),
        (["物业: 本周三停水", "业主: 能改到周五吗", "物业: 行 周五"], f"{GONE}停水"),
        (
            ["Ann: Bob drives the minibus", "Bob: sorry I can't, sprained my ankle", "Eve: I'll cover for him"],
            f"{GONE} drives the minibus",
        ),
        (["队长: 周日守门小李上", "小李: 发烧了 去不了", "小王: 我替他"], f"周日守门{GONE}上"),
        (
            ["Ann: games at my place on Saturday", "Eve: come to my place, it is bigger", "Ann: ok, Saturday at Eve's"],
            f"games at {GONE} on Saturday",
        ),
        (["Kim: Mr Li can have water now", "Doc: wait, he is not to have any water until the scan"], ""),
        (["护士: 3床可以喝水了", "医生: 等等 3床先别喝水 检查完再说"], ""),
    ],
)
def test_what_was_replaced_is_left_out(told, left):
    speakers, texts = zip(*(line.split(": ", 1) for line in told), strict=True)
    found = corrected(texts, speakers)
    assert found.texts == [left, *texts[1:]]
    assert found.corrections == {len(told) - 1}


@pytest.mark.parametrize(
    "told",
    [
        ["物业: 本周三停水", "业主: 周五聚餐行吗", "李: 好 周五"],
        ["Ann: games at my place on Saturday", "Eve: ok Saturday at Ann's place"],
        ["Ann: Bob drives the minibus", "Bob: I can't wait", "Eve: I'll cover the cake in chocolate"],
        ["王: 在我家打牌 周六", "李: 周六我去超市", "王: 好 周六李家的超市"],
        ["Ann: she can have peanuts again, the test was clear", "Bo: no milk for Mia though"],
        ["妈: 孩子可以吃鸡蛋了", "爸: 等等 先别关灯"],
    ],
)
def test_what_nothing_replaces_stays(told):
    speakers, texts = zip(*(line.split(": ", 1) for line in told), strict=True)
    assert corrected(texts, speakers).texts == list(texts)


def test_a_person_of_an_earlier_summary_is_replaced_but_not_the_label():
    said = [SpeakerText("Bob", "sorry I can't, sprained my ankle"), SpeakerText("Eve", "I'll cover for him")]
    text = extract("Bob: The minibus is blue.\nAnn: Bob drives the minibus.", said, max_tokens=200, count=count)
    assert "Bob: The minibus is blue." in text
    assert f"Ann: {GONE} drives the minibus." in text


def test_weights():
    assert importance("don't use the lift, someone got stuck") == SAFETY
    assert importance("12床的地西泮停掉 立刻停") == SAFETY
    assert importance("从下周起周二店休") == DECISION
    assert importance("I love pasta") == importance("me encanta la pasta") == 0
    assert importance("la entrega es el 5 de marzo") == importance("the handover is on march 5") == FACT
    assert importance("wir sehen uns morgen") == importance("see you tomorrow then") == DATE
    assert importance("is she allergic to nuts?") == 0


@pytest.mark.parametrize(
    ("told", "correction", "left"),
    [
        ("insulin 14 units in the morning, 8 units at night", "it's 6 at night now", "14 units in the morning, [...]"),
        (
            "tomatoes get 40 litres and cucumbers 25 litres",
            "cucumbers down to 15 litres",
            "40 litres and cucumbers [...]",
        ),
        ("incubator A at 37 °C, incubator B at 30 °C", "B goes to 25 °C", "at 37 °C, incubator B at [...]"),
        ("raid wed 8:30pm and sun 6pm", "sunday 7:15pm then, final", "8:30pm and sun [...]"),
        ("shirts cost 20 euros, coats cost 90 euros", "coats are 80 from today", "20 euros, coats cost [...]"),
        ("early boat 6:15 am, late boat 5.30 pm", "the evening boat will be 7 pm", "6:15 am, late boat [...]"),
        ("降压药早上吃1片，晚上吃2片", "医生让晚上减成1片半", "早上吃1片，晚上吃[...]"),
        ("软装留7万，硬装18万", "软装压到4万5", "软装留[...]，硬装18万"),
        ("周二晚上8点打，周五晚上9点打", "那周五改9点40开打", "周二晚上8点打，周五晚上[...]打"),
    ],
)
def test_only_the_value_whose_clause_has_the_subject_is_corrected(told, correction, left):
    kept = corrected([told, correction])
    assert left in kept.texts[0]
    assert kept.texts[1] == correction


@pytest.mark.parametrize(
    ("told", "later"),
    [
        ("oven 1 is 180 degrees, oven 2 is 220 degrees", "make it 200"),
        ("juniors pay 45 dollars", "yesterday I paid 70 dollars for a racket"),
        ("court B opens at 10am", "last week we were on court B at 11am"),
        ("the permit is 30 euros", "is the permit 40 euros?"),
        ("拿铁28元，美式22元", "我昨天在隔壁喝美式花了15元"),
        ("早班8点到", "我今天早班9点才到，对不起"),
    ],
)
def test_where_it_is_unsure_or_only_told_nothing_is_taken(told, later):
    assert corrected([told, later]).texts == [told, later]


def test_a_value_is_corrected_by_who_speaks_of_themselves():
    said = ["Bo's car takes 5 people, my car takes 4 people", "then my car takes 3 people, sorry"]
    assert "my car takes [...]" in corrected(said, ["Ann", "Ann"]).texts[0]


def test_a_correction_may_be_corrected():
    said = ["van 1 takes 12 crates, van 2 takes 18 crates", "van 2 only 15 crates", "van 2 can go up to 20 crates"]
    kept = corrected(said).texts
    assert kept == ["van 1 takes 12 crates, van 2 takes [...]", "van 2 only [...]", said[2]]
