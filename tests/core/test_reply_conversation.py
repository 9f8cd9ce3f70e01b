"""A client's conversation beside its room: nothing twice, nothing lost, and the same ids for the same request."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.replies.reply import MAX_EARLIER, Speaking, matched, read_conversation

WHO = Speaking(room_id="r", speaker_id="ann", agent_id="bot")
AT = datetime(2026, 5, 1, tzinfo=UTC)
TEXTS = st.sampled_from(["ok", "next", "好的", "再来一个 👍", "e\u0301"])


def kept(messages: list[Message]) -> list[StoredMessage]:
    fields = Message.__dataclass_fields__
    return [
        StoredMessage(**{name: getattr(m, name) for name in fields} | {"sent_at": AT, "arrival": number})
        for number, m in enumerate(messages, 1)
    ]


def talk(*texts: str) -> list[dict]:
    """People and the agent in turn, a person first."""
    return [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)]


def match(messages: list[dict], stored: list[Message] = (), **more):
    given = {"whole": True, "again": False} | more
    return matched(read_conversation(messages), kept(list(stored)), WHO, **given)


def reply_to(found, text: str) -> list[Message]:
    """Return the room's messages after the request was answered."""
    return [
        *found.new,
        found.asked,
        Message(id="a" + found.asked.id, room_id="r", sender_id="bot", role=Role.ASSISTANT, text=text),
    ]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8), st.data())
def test_a_growing_conversation_is_stored_once_however_much_of_it_is_sent(turns, data):
    stored: list[Message] = []
    sent: list[dict] = []
    for asked, answered in turns:
        sent = [*sent, {"role": "user", "content": asked}]
        window = data.draw(st.integers(min_value=0, max_value=len(sent) // 2)) * 2
        found = match(sent[window:], stored)
        assert found.new == ()
        assert found.asked.id not in {m.id for m in stored}
        again = match(sent[window:], [*stored, *reply_to(found, answered)], again=True)
        assert again.asked.id == found.asked.id
        stored += reply_to(found, answered)
        sent = [*sent, {"role": "assistant", "content": answered}]
    assert [m.text for m in stored] == [text for turn in turns for text in turn]


def test_ids_follow_from_what_was_said_before():
    first, second = match(talk("好", "yes", "ok")), match(talk("好", "yes", "ok"))
    assert [m.id for m in reply_to(first, "")] == [m.id for m in reply_to(second, "")]
    assert match(talk("bad", "yes", "ok")).asked.id != first.asked.id
    assert len({m.id for m in (*first.new, first.asked)}) == 3


def test_only_what_is_new_between_is_stored():
    stored = [replace(m) for m in reply_to(match(talk("one")), "two")]
    found = match(talk("one", "two", "three", "四", "five"), stored)
    assert [m.text for m in found.new] == ["three", "四"]
    assert [m.sender_id for m in found.new] == ["ann", "bot"]
    assert len(found.shown) == 4


def test_space_around_words_makes_no_other_message():
    stored = reply_to(match(talk("one  more\n")), " two ")
    assert match(talk(" one more", "two", "x"), stored).new == ()


def test_in_a_long_room_what_comes_before_the_first_known_message_counts_as_known():
    stored = reply_to(match(talk("three")), "four")
    found = match(talk("one", "two", "three", "four", "five"), stored, whole=False)
    assert (found.new, len(found.shown)) == ((), 2)


def test_texts_around_tool_calls_are_one_answer():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "等等", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "assistant", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "and done"}]},
        {"role": "user", "content": "!"},
    ]
    assert [sent.text for sent in read_conversation(messages).earlier] == ["?", "等等\n\nOne\nand done"]
    assert [(one.tool_call_id, one.content) for one in read_conversation(messages[:3]).results] == [("c", "1")]


@pytest.mark.parametrize("messages", [[], ["text"], [{"role": "user", "content": 1}], [{"role": "user", "name": 1}]])
def test_what_is_no_conversation_is_refused(messages):
    with pytest.raises(InvalidInput):
        read_conversation(messages)


def test_the_worst_history_takes_no_long_time():
    stored = kept([Message(id=f"m{n}", room_id="r", sender_id="ann", text="a") for n in range(1000)])
    many = read_conversation([{"role": "user", "content": "a"}] * (MAX_EARLIER + 1))
    begun = time.perf_counter()
    found = matched(many, stored, WHO, whole=True, again=False)
    assert time.perf_counter() - begun < 5
    assert len(found.shown) == MAX_EARLIER
