"""The promises of `lore.sessions.add_messages`: one transaction, turns, and a session if there was none."""

import asyncio
from datetime import UTC, datetime

import pytest

import roomlore
from roomlore import InvalidInput, Message, Role


def said(text: str, role: str = "user", **fields) -> Message:
    return Message(**{"id": "", "room_id": "", "sender_id": "", "role": Role(role), "text": text, **fields})


@pytest.fixture
async def lore(storage_url):
    async with roomlore.open(storage_url, settings=roomlore.Settings(max_text_chars=1_000)) as opened:
        yield opened


async def test_messages_and_session_are_there_at_once(lore):
    before = datetime.now(UTC)
    result = await lore.sessions.add_messages(
        "c", [said("早"), said("7", "tool"), said("Hello \x00\ud800", "assistant")], user_id="ann", agent_code="bot"
    )
    stored = await lore.sessions.messages("c")
    assert [(m.text, m.sender_id) for m in stored] == [("早", "ann"), ("7", "tool"), ("Hello \x00\ud800", "bot")]
    assert tuple(m.id for m in stored) == result.message_ids
    assert {m.turn_id for m in stored} == {result.turn_id}
    assert all(before <= m.at <= datetime.now(UTC) and not m.sent_at_estimated for m in stored)
    value = await lore.sessions.get_session("c")
    assert (value.meta.user_id, value.flow_context.current_agent_key, value.flow_context.turn_count) == (
        "ann",
        "bot",
        1,
    )
    assert [session.conversation_id for session in await lore.sessions.page()] == ["c"]


async def test_a_turn_goes_on_until_a_user_speaks(lore):
    first = await lore.sessions.add_messages("c", [said("A?")], user_id="ann")
    second = await lore.sessions.add_messages("c", [said("B?")])
    late = await lore.sessions.add_messages("c", [said("A!", "assistant")], turn_id=first.turn_id)
    newest = await lore.sessions.add_messages("c", [said("A!!", "assistant"), said("C?")])
    stored = await lore.sessions.messages("c")
    assert [m.turn_id for m in stored] == [first.turn_id, second.turn_id, late.turn_id, first.turn_id, newest.turn_id]
    assert len({m.turn_id for m in stored}) == 3
    assert {m.sender_id for m in stored if m.role is Role.USER} == {"ann"}


async def test_what_follows_a_message_without_a_turn_has_none_either(lore):
    await lore.messages.add(said("A?", id="1", room_id="c", sender_id="ann"))
    result = await lore.sessions.add_messages("c", [said("A!", "assistant")])
    assert result.turn_id == ""
    assert (await lore.sessions.query_context("c")).turns == 1


async def test_a_greeting_is_a_turn_of_its_own(lore):
    result = await lore.sessions.add_messages("c", [said("Hello!", "assistant")])
    await lore.sessions.reset("c")
    again = await lore.sessions.add_messages("c", [said("Hello!", "assistant")])
    assert "" != result.turn_id != again.turn_id != ""


async def test_with_ids_times_and_turns_of_ones_own_the_call_can_be_repeated(lore):
    at = datetime(2026, 5, 4, tzinfo=UTC)
    batch = [said("A?", id="1", sent_at=at, turn_id="t"), said("A!", "assistant", id="2", sent_at=at, turn_id="t")]
    results = [await lore.sessions.add_messages("c", batch, user_id="ann") for _ in range(2)]
    assert results[0].message_ids == results[1].message_ids == ("1", "2")
    assert len(await lore.sessions.messages("c")) == 2
    with pytest.raises(roomlore.Conflict):
        await lore.sessions.add_messages("c", [said("new"), said("other", id="1", sent_at=at)])
    assert len(await lore.sessions.messages("c")) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": []},
        {"messages": ["hi"]},
        {"messages": [said("ok"), said("x" * 1_001)]},
        {"messages": [said("ok"), said("x", room_id="d")]},
        {"messages": [said("ok")], "user_id": "x" * 513},
        {"messages": [said("ok")], "agent_code": 7},
        {"messages": [said("ok")], "conversation_id": ""},
    ],
)
async def test_what_cannot_be_stored_leaves_nothing_behind(lore, wrong):
    with pytest.raises(InvalidInput):
        await lore.sessions.add_messages(**{"conversation_id": "c", **wrong})
    assert await lore.sessions.page() == []
    with pytest.raises(roomlore.NotFound):
        await lore.sessions.get_session("c")


async def test_writers_at_once_lose_nothing(lore):
    async def write(name: str) -> None:
        for number in range(5):
            await lore.sessions.add_messages("c", [said(f"{name}{number}"), said("ok", "assistant")], user_id=name)

    await asyncio.gather(*map(write, "abcd"))
    stored = await lore.sessions.messages("c")
    assert sorted(m.text for m in stored if m.role is Role.USER) == sorted(f"{n}{i}" for n in "abcd" for i in range(5))
    assert (await lore.sessions.query_context("c")).turns == 20
