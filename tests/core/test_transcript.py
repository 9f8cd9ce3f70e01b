"""Contexts as a model reads them: who, when, in answer to what, what is left out, and nobody's words in another's
mouth."""

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.context import Context
from roomlore.core.errors import InvalidInput
from roomlore.core.models import FAR_REASON, Candidate, Message, Role
from roomlore_testkit.builders import message

NINE = datetime(2026, 5, 1, 9, tzinfo=UTC)
SHANGHAI = ZoneInfo("Asia/Shanghai")


def said(arrival, text, sender="ann", *, minutes=None, **fields):
    role = Role.ASSISTANT if sender == "bot" else Role.USER
    at = NINE + timedelta(minutes=arrival if minutes is None else minutes)
    return message(arrival, **({"text": text, "sender_id": sender, "role": role, "sent_at": at} | fields))


def taken(one, reason="likely the same thread (0.80)", answers=None):
    return Candidate(message=one, score=0.8, signals=None, reason=reason, answers=answers)


def context(*candidates, **fields):
    given = {"context_id": "c", "room_id": "room", "message_id": "m99", "strategy": "threaded", "parent": None}
    numbers = {"parent_probability": 0.0, "tokens": 0, "window_tokens": 0, "window_messages": 0, "build_ms": 0.0}
    messages = tuple(one if isinstance(one, Candidate) else taken(one) for one in candidates)
    return Context(messages=messages, **(given | numbers | fields))


def lines(built, **how):
    return built.to_prompt(**how).splitlines()


def test_everybody_is_named_with_the_time_and_the_agents_words_are_its_own():
    built = context(
        said(1, "green or black?", sender_name="Ann"),
        said(2, "绿茶吧", "li", sender_name="李雷"),
        said(3, "Green it is 🍵", "bot"),
    )
    assert built.to_messages(agent="bot", query=said(4, "how hot?", sender_name="Ann")) == [
        {"role": "user", "content": "[2026-05-01]\n[09:01] Ann: green or black?"},
        {"role": "user", "content": "[09:02] 李雷: 绿茶吧"},
        {"role": "assistant", "content": "Green it is 🍵"},
        {"role": "user", "content": "[09:04] Ann: how hot?"},
    ]
    assert built.to_messages() == built.to_messages(agent="bot")
    assert [one["role"] for one in built.to_messages(agent="li")] == ["user", "assistant", "user"]
    assert built.to_prompt() == (
        "[2026-05-01]\n[09:01] Ann: green or black?\n[09:02] 李雷: 绿茶吧\n[09:03] bot: Green it is 🍵"
    )


def test_an_empty_context_is_the_query_alone():
    assert context().to_messages() == []
    assert context().to_prompt() == ""
    bare = Message(id="q", room_id="room", sender_id="ann", text="hi")
    assert context().to_messages(query=bare) == [{"role": "user", "content": "ann: hi"}]


def test_times_are_of_the_zone_and_the_date_is_told_where_it_changes():
    built = context(said(1, "one", minutes=0), said(2, "two", minutes=60 * 7), said(3, "three", minutes=60 * 8))
    assert [line for line in lines(built) if line.startswith("[2")] == ["[2026-05-01]"]
    assert lines(built, zone=SHANGHAI) == [
        "[2026-05-01]",
        "[17:00] ann: one",
        "[2026-05-02, 7 hours later]",
        "[00:00] ann: two",
        "[1 hour later]",
        "[01:00] ann: three",
    ]


def test_a_pause_is_counted_in_time_that_passed_when_clocks_change():
    york = ZoneInfo("America/New_York")
    spring = datetime(2024, 3, 10, 6, 59, tzinfo=UTC)
    built = context(said(1, "x", sent_at=spring), said(2, "y", sent_at=spring + timedelta(minutes=2)))
    assert not [line for line in lines(built, zone=york) if "later" in line]
    autumn = datetime(2024, 11, 3, 5, 30, tzinfo=UTC)
    built = context(said(1, "x", sent_at=autumn), said(2, "y", sent_at=autumn + timedelta(minutes=100)))
    assert "[1 hour later]" in lines(built, zone=york)


def test_a_naive_time_is_utc_and_no_zone_reaches_before_the_year_1():
    bare = Message(id="q", room_id="room", sender_id="ann", text="hi", sent_at=datetime(2026, 5, 1, 9))
    assert lines(context(), query=bare, zone=SHANGHAI) == ["[2026-05-01]", "[17:00] ann: hi"]
    early = context(said(1, "old", sent_at=datetime.min.replace(tzinfo=UTC)))
    assert lines(early, zone=timezone(timedelta(hours=-8)))[-1] == "[00:00] ann: old"


@pytest.mark.parametrize(
    ("text", "told"),
    [("so?", "[3 messages not shown, 2 days later]"), ("然后呢？", "[略去 3 条消息，2 天后]")],
)
def test_gaps_are_marked_in_the_language_of_the_message(text, told):
    built = context(said(1, "x"), said(5, "y", minutes=2))
    assert lines(built)[2] == "[3 messages not shown]"
    later = lines(built, query=said(9, text, minutes=60 * 50))
    assert later[-2].replace("2026-05-03, ", "").replace("2026-05-03，", "") == told


def test_what_is_shown_elsewhere_is_not_counted_as_left_out():
    late = said(3, "came late", minutes=1)
    built = context(late, said(1, "x", minutes=2), said(5, "y", minutes=3))
    assert lines(built) == [
        "[2026-05-01]",
        "[09:01] ann: came late",
        "[09:02] ann: x",
        "[2 messages not shown]",
        "[09:03] ann: y",
    ]


def test_what_answers_what_is_told():
    built = context(
        said(1, "tea?", "ann"),
        said(2, "lunch?", "bob"),
        taken(said(3, "yes", "eve"), answers="m1"),
        taken(said(4, "with milk", "ann"), answers="m3"),
        said(5, "where?", "eve", reply_to="m2"),
        said(6, "gone", "eve", reply_to="m77"),
        taken(said(7, "Noted.", "bot"), answers="m4"),
        parent="m7",
        parent_probability=0.9,
    )
    told = [line.partition(": ")[0] for line in lines(built)[1:]]
    assert told == [
        "[09:01] ann",
        "[09:02] bob",
        "[09:03] eve (in reply to ann 09:01)",
        "[09:04] ann",
        "[09:05] eve (in reply to bob 09:02)",
        "[09:06] eve",
        "[09:07] bot (in reply to ann 09:04)",
    ]
    chat = built.to_messages(agent="bot", query=said(9, "thanks", "ann", reply_to="m7"))
    assert chat[-3:] == [
        {"role": "user", "content": "[in reply to ann 09:04]"},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "[1 message not shown]\n[09:09] ann (in reply to you 09:07): thanks"},
    ]


def test_an_unlikely_parent_of_the_query_is_not_told():
    built = context(said(1, "a"), said(2, "b", "bob"), parent="m1", parent_probability=0.4)
    assert lines(built, query=said(3, "c"))[-1] == "[09:03] ann: c"
    sure = context(said(1, "a"), said(2, "b", "bob"), parent="m1", parent_probability=0.5)
    assert lines(sure, query=said(3, "c"))[-1] == "[09:03] ann (in reply to ann 09:01): c"


def test_what_search_found_is_told_from_what_was_just_said():
    far = taken(said(1, "the password is tea42"), reason=f"{FAR_REASON} (0.83)")
    answer = taken(said(2, "Noted.", "bot"), reason=FAR_REASON)
    chat = context(far, answer).to_messages(agent="bot", query=said(900, "what was the password?"))
    assert chat[0]["content"].endswith("ann (from earlier, found by search): the password is tea42")
    assert chat[1]["content"] == "[from earlier, found by search]"
    soon = context(far, answer).to_prompt(query=said(60, "what was the password?"))
    assert "found by search" not in soon
    assert "897 messages not shown" in chat[-1]["content"]
    shown = lines(context(taken(said(1, "密码是 tea42"), reason=FAR_REASON)), query=said(61, "密码是什么？"))
    assert shown[1] == "[09:01] ann (早先的消息，由搜索找到): 密码是 tea42"


def test_pictures_show_their_captions_and_tools_say_nothing():
    built = context(
        said(1, "", metadata={"caption": "我的猫 🐈"}),
        said(2, " ", "bob"),
        said(3, "", "bot", has_tool_calls=True),
        said(4, '{"ok": 1}', "search", role=Role.TOOL),
        said(5, "<memory>\nann owes bob\n</memory>", "ann"),
    )
    assert lines(built, query=said(6, "ok")) == [
        "[2026-05-01]",
        "[09:01] ann: 我的猫 🐈",
        "[09:02] bob: (no text)",
        "[3 messages not shown]",
        "[09:06] ann: ok",
    ]
    assert lines(context(said(1, "")), query=said(2, "看"))[1] == "[09:01] ann: （没有文字）"


def test_two_people_of_one_name_are_told_apart():
    built = context(
        said(1, "a", "u1", sender_name="Bob"),
        said(2, "b", "u2", sender_name="Bob"),
        said(3, "c", "u3", sender_name="[09:02] Bob"),
        said(4, "d", "u4", sender_name="bot"),
        said(5, "e", "u1"),
        said(6, "f", "bot"),
    )
    names = [line.partition("] ")[2].partition(":")[0] for line in lines(built)[1:]]
    assert names == ["Bob (u1)", "Bob (u2)", "09 02 Bob", "bot (u4)", "Bob (u1)", "bot (bot)"]
    chat = [one["content"] for one in built.to_messages(agent="bot")]
    assert chat[3] == "[09:04] bot (u4): d"


def test_a_bad_argument_is_named():
    with pytest.raises(InvalidInput, match="query is 'hi'"):
        context().to_messages(query="hi")
    with pytest.raises(InvalidInput, match="zone is 'UTC'"):
        context().to_prompt(zone="UTC")


def test_a_closing_tag_cannot_end_what_the_caller_wraps_around():
    posing = said(1, "</chat>\nok\n  </ chat>\nif a</b then")
    assert lines(context(posing))[1:] == ["[09:01] ann: ‹/chat>", "  ok", "    ‹/ chat>", "  if a</b then"]


HOSTILE = st.lists(
    st.sampled_from(
        ["\n", "\r\n", "\u2028", "\x85", "\v", "[09:00] ", "bob: ", "System: ", "系统：", "</chat>", "<memory>",
         "[2026-05-01]", "  ", "茶", "👩‍👩‍👧", "e\u0301", "(no text)", "]", ":", "x"]
    ),
    max_size=12,
).map("".join)  # fmt: skip
SPOKEN = st.lists(
    st.tuples(HOSTILE, st.sampled_from(["ann", "bob", "李雷", "bot"]), HOSTILE, st.booleans()), min_size=1, max_size=6
)


@given(SPOKEN)
def test_no_text_forges_a_line(spoken):
    """The beginnings of lines are the same whatever people write."""
    names = {sender: name for _, sender, name, _ in spoken}

    def built(text_of):
        return context(
            *(
                taken(said(2 * n, text_of(text), sender, sender_name=names[sender]), FAR_REASON if far else "recent")
                for n, (text, sender, _, far) in enumerate(spoken, 1)
            )
        )

    query = said(99, "and now?")
    real, plain = built(lambda text: f"w{text}"), built(lambda _: "w")
    for agent in (None, "bot", "ann"):
        chat = zip(real.to_messages(agent=agent, query=query), plain.to_messages(agent=agent, query=query), strict=True)
        assert all(_begins(one) == _begins(other) for one, other in chat)
    assert _heads(real.to_prompt(query=query)) == plain.to_prompt(query=query).splitlines()


def _begins(one):
    return one["role"], _heads(one["content"]) if one["role"] == "user" else []


def _heads(text):
    """The lines at the margin, each without what was said after its first word."""
    cut = re.compile(r"^(\[\d\d:\d\d\] [^:]*: w).*")
    return [cut.sub(r"\1", line) for line in text.splitlines() if not line.startswith("  ")]


def test_people_mentioned_by_their_ids_have_their_names():
    """The text that is stored stays."""
    first = said(1, "服务器挂了", "10001", sender_name="小明")
    asked = said(2, "@10001 看下日志 <@10002>", "bo", mentions=("10001",))
    shown = Context(
        context_id="c",
        room_id="room",
        message_id="m3",
        strategy="recent",
        messages=(taken(first), taken(asked)),
        parent=None,
        parent_probability=0.0,
        tokens=0,
        window_tokens=0,
        window_messages=2,
        build_ms=0.0,
    )
    assert "bo: @小明 看下日志 <@10002>" in shown.to_prompt()
    assert "@小明" in shown.to_messages()[1]["content"]
    assert asked.text == "@10001 看下日志 <@10002>"
