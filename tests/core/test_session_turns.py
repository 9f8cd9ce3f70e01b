"""A conversation as turns, and turns as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.models import Role
from roomlore.core.sessions.session import SessionMessage
from roomlore.core.sessions.window import as_chat, as_text, flat, language_of, shown, summary_line, turns_of
from roomlore.core.summary import without_label
from roomlore_testkit import message

ROLES = {"u": Role.USER, "a": Role.ASSISTANT, "s": Role.SYSTEM, "t": Role.TOOL}


def said(place: int, role: str = "u", text: str = "", *, turn: str | None = None, name: str = "") -> SessionMessage:
    return SessionMessage(
        arrival=place, id=f"m{place}", role=ROLES[role], name=name, text=text or f"text {place}", turn_id=turn
    )


def talk(plan: str) -> list[SessionMessage]:
    """`u` or `u1`: a message of that role, in turn 1 if it says so."""
    return [said(place, word[0], turn=word[1:] or None) for place, word in enumerate(plan.split(), 1)]


@pytest.mark.parametrize(
    ("plan", "arrivals"),
    [
        ("", []),
        ("u a u a", [[1, 2], [3, 4]]),
        ("u u a", [[1], [2, 3]]),
        ("a a u", [[1, 2], [3]]),
        ("u t t a s u", [[1, 2, 3, 4, 5], [6]]),
        ("u1 u2 a1 a2", [[1, 3], [2, 4]]),
        ("u1 u1 a1", [[1, 2, 3]]),
        ("u1 a u a1", [[1, 2, 4], [3]]),
        ("a1 u2 t1", [[1, 3], [2]]),
    ],
)
def test_what_belongs_together(plan, arrivals):
    turns = turns_of(talk(plan))
    assert [[one.arrival for one in turn.messages] for turn in turns] == arrivals
    assert [(turn.first, turn.last) for turn in turns] == [(turn[0], turn[-1]) for turn in arrivals]


words = st.builds(lambda role, turn: role + turn, st.sampled_from("uast"), st.sampled_from(["", "", "1", "2", "3"]))


@given(st.lists(words, max_size=30))
def test_every_message_is_in_one_turn_and_none_changes_place(plan):
    messages = talk(" ".join(plan))
    turns = turns_of(messages)
    assert flat(turns) == messages
    assert all(turn.messages for turn in turns)
    assert [turn.first for turn in turns] == sorted(turn.first for turn in turns)
    for turn_id in {one.turn_id for one in messages} - {None}:
        assert len({turn.first for turn in turns for one in turn.messages if one.turn_id == turn_id}) == 1


@given(st.lists(words, max_size=30), st.integers(0, 30))
def test_more_messages_only_add_to_turns(plan, first):
    """Shown turns keep their messages as a conversation goes on."""
    messages = talk(" ".join(plan))
    before, after = turns_of(messages[:first]), turns_of(messages)
    for early, late in zip(before, after, strict=False):
        assert late.messages[: len(early.messages)] == early.messages


@pytest.mark.parametrize(
    ("tongue", "text"),
    [
        ("en", "Summary: so far\n\nUser: hi\nAssistant: yes\n小李: 好\nTool: 7\nSystem: be kind"),
        ("zh", "历史摘要: so far\n\n用户: hi\n助手: yes\n小李: 好\n工具: 7\n系统: be kind"),
    ],
)
def test_the_text_form(tongue, text):
    messages = [said(1, "u", "hi"), said(2, "a", "yes"), said(3, "u", "好", name="小李"), said(4, "t", "7")]
    messages.append(said(5, "s", "be kind"))
    assert as_text("so far", messages, tongue) == text
    assert as_text("", messages, tongue) == text.partition("\n\n")[2]
    assert as_text("so far", [], tongue) == text.partition("\n\n")[0] + "\n"
    assert as_text("", [], tongue) == ""


@pytest.mark.parametrize("tongue", ["en", "zh"])
def test_the_chat_form_says_the_same(tongue):
    messages = [said(1, "u", "hi"), said(2, "t", "7"), said(3, "s", "be kind")]
    assert as_chat("so far", messages, tongue) == (
        {"role": "system", "content": summary_line("so far", tongue)},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "7"},
        {"role": "system", "content": "be kind"},
    )
    assert as_chat("", [], tongue) == ()


@pytest.mark.parametrize(
    ("given", "bare"),
    [
        ("Summary: all is well", "all is well"),
        ("历史摘要: 一切都好", "一切都好"),
        ("  Summary: 历史摘要: twice \n", "twice"),
        ("历史摘要:没有空格", "没有空格"),
        ("In Summary: no label", "In Summary: no label"),
        ("Summary:", ""),
        (" \n ", ""),
    ],
)
def test_a_label_is_not_repeated(given, bare):
    assert without_label(given) == bare


def test_captions_and_names():
    picture = message(3, text="", metadata={"caption": "一只猫"}, sender_name=" Ann\n Lee ")
    assert (shown(picture).text, shown(picture).name) == ("一只猫", "Ann Lee")
    assert shown(message(4, text="", metadata={"caption": 5})).text == ""
    assert shown(message(5, metadata={"caption": "no"})).text == "text 5"
    assert shown(message(6, role=Role.ASSISTANT, sender_name="Bot 3000")).name == ""


def test_the_language_is_that_of_the_first_messages():
    english = [said(n, text="the backup is done") for n in range(1, 9)]
    chinese = [said(n, text="备份已经完成了，谢谢大家") for n in range(9, 50)]
    assert language_of([*english, *chinese]) == "en"
    assert language_of([*chinese, *english]) == "zh"
    assert language_of([]) == "en"
