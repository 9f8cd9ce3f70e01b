"""Which messages of a room belong to an agent's conversations."""

from datetime import timedelta

from roomlore.core.memory.extraction import conversations_of
from roomlore.core.memory.reading import as_conversation
from roomlore.core.models import LinkKind, MessageFeatures, Role
from roomlore_testkit.builders import START, entry, link


def of_bot(*entries, alone: bool = False) -> list[str]:
    return [message.id for message in conversations_of("bot", entries, alone=alone)]


def bot(arrival: int, **fields):
    return entry(arrival, **{"sender_id": "bot", "role": Role.ASSISTANT, **fields})


def at(minutes: float) -> dict:
    return {"sent_at": START + timedelta(minutes=minutes)}


def platform(parent: int):
    return link(1, parent, kind=LinkKind.PLATFORM, parent_probability=1.0)


def test_alone_everything_said_belongs_to_it_in_order():
    entries = [bot(3), entry(1), entry(2), entry(4, text=" "), entry(5, role=Role.TOOL), entry(6, role=Role.SYSTEM)]
    assert of_bot(*entries, alone=True) == ["m1", "m2", "m3"]
    assert of_bot(alone=True) == of_bot() == []


def test_what_it_answers_and_what_led_to_that():
    far = [entry(n, sender_id=f"p{n}", link=link(1, n - 1 or None), **at(n * 60)) for n in range(1, 9)]
    assert of_bot(*far, bot(9, link=link(1, 8), **at(540))) == [f"m{n}" for n in range(3, 10)]
    assert of_bot(*far) == []


def test_an_answer_is_found_by_the_platform_the_turn_and_the_link():
    asked = [entry(n, sender_id=f"p{n}", turn_id=f"t{n}", **at(n * 60)) for n in range(1, 5)]
    assert of_bot(*asked, bot(5, reply_to="m1", turn_id="t2", link=link(1, 3), **at(300))) == ["m1", "m2", "m5"]
    assert of_bot(*asked, bot(5, turn_id="t2", link=link(1, 3), **at(300))) == ["m2", "m5"]
    assert of_bot(*asked, bot(5, link=link(1, 3), **at(300))) == ["m3", "m5"]
    # It answers something in any case, even if the model rather thinks that it begins something new.
    unsure = link(5, 4, kind=LinkKind.NEW, parent_probability=0.3)
    assert of_bot(*asked, bot(5, link=unsure, **at(300))) == ["m4", "m5"]


def test_who_names_it_or_answers_it_speaks_to_it():
    others = [entry(1, sender_id="p1", **at(0)), entry(2, sender_id="p2", link=link(1, 1), **at(1))]
    named = entry(3, sender_id="p3", features=MessageFeatures(mentions=("bot",)), **at(100))
    addressed = entry(4, sender_id="p4", features=MessageFeatures(addressed=("bot",)), **at(200))
    assert of_bot(*others, named, addressed) == ["m3", "m4"]
    answer = entry(6, sender_id="p6", link=platform(5), reply_to="m5", **at(400))
    assert of_bot(*others, bot(5, **at(300)), answer) == ["m5", "m6"]


def test_who_answers_a_persons_question_to_it_joins_in():
    asked = entry(1, sender_id="anna", features=MessageFeatures(mentions=("bot",)), **at(0))
    too = entry(2, sender_id="ben", link=link(1, 1), **at(20))
    aside = entry(3, sender_id="cleo", link=link(1, 2), **at(40))
    assert of_bot(asked, too, aside) == ["m1", "m2"]


def test_a_person_goes_on_talking_to_it_for_a_while_and_to_nobody_else():
    before = entry(1, sender_id="anna", **at(0))
    other = entry(2, sender_id="ben", **at(1))
    asked = entry(3, sender_id="anna", **at(2))
    answer = bot(4, link=link(3, 3), **at(3))
    after = entry(5, sender_id="anna", **at(12))
    to_ben = entry(6, sender_id="anna", features=MessageFeatures(addressed=("ben",)), **at(4))
    back = entry(7, sender_id="anna", link=link(2, 2), **at(5))
    late = entry(8, sender_id="anna", **at(30))
    assert of_bot(before, other, asked, answer, after, to_ben, back, late) == ["m1", "m3", "m4", "m5"]


def test_another_agents_conversation_is_its_own():
    asked = entry(1, sender_id="anna", features=MessageFeatures(mentions=("bob",)), **at(0))
    bob = entry(2, sender_id="bob", role=Role.ASSISTANT, link=link(1, 1), **at(1))
    assert of_bot(asked, bob) == []
    assert [message.id for message in conversations_of("bob", [asked, bob], alone=False)] == ["m1", "m2"]


def test_people_who_are_mentioned_by_id_are_named():
    said = entry(1, sender_id="bo", sender_name="Bo", text="<@900> 带绳子, @901 drives, <@902> not", mentions=("901",))
    shown = as_conversation([said.message], quoted={}, people={"900": "Ann Lee", "901": "陈静", "902": ""})
    assert shown == "Bo: @Ann Lee 带绳子, @陈静 drives, <@902> not"
