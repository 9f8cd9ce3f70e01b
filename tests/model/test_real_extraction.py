"""From the replies in a room to a memory of the agent, with a real model: what holds whatever it says."""

import asyncio

import pytest
from talks import LANGUAGES, ROOM_TALK

import roomlore
from roomlore.core import DEFAULT_TENANT
from roomlore.core.memory.extraction import FALLBACK, SUMMARY_CHARACTERS, extraction_id
from roomlore.core.memory.memory import Action, Evolution
from roomlore.core.text import graphemes

AGENTS, EVERY, ROOM = ("helper", "小帮"), 3, "cabin"


def _messages(talk: list[tuple[str, str]]) -> list[roomlore.Message]:
    return [
        roomlore.Message(
            id=str(number),
            room_id=ROOM,
            sender_id=sender,
            text=text,
            role=roomlore.Role.ASSISTANT if sender in AGENTS else roomlore.Role.USER,
        )
        for number, (sender, text) in enumerate(talk, 1)
    ]


async def _record(lore: roomlore.Lore, agent: str, seconds: float) -> Evolution:
    """Return the record of the extraction, once the background has done it."""
    last = (await lore.messages.page(ROOM))[-1].arrival
    async with asyncio.timeout(seconds + 60):
        while True:
            try:
                return await lore.memories.evolution(extraction_id(DEFAULT_TENANT, agent, ROOM, last))
            except roomlore.NotFound:
                await asyncio.sleep(0.2)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_replies_become_a_short_memory_of_the_agent(real_model, listener, language):
    agent = ROOM_TALK[language][-1][0]
    async with roomlore.open("sqlite://", settings=real_model.settings(extract_every=EVERY)) as lore:
        await lore.messages.add(_messages(ROOM_TALK[language]))
        record = await _record(lore, agent, real_model.seconds)
        memories = await lore.memories.page(f"agent:{agent}")
        changes = await lore.memories.changes(f"agent:{agent}")
    listener.tell(f"extraction ({record.status})", record.raw_answer)
    listener.tell("kept", memories[0].statement if memories else None)
    listener.check_answers()
    assert record.messages == len(ROOM_TALK[language])
    assert record.status == ("applied" if memories else "nothing")
    assert [change.action for change in changes] == [Action.CREATE] * len(memories)
    for memory in memories:
        assert memory.kind == "short"
        assert {source.message_id for source in memory.sources} <= {
            str(place) for place in range(1, record.messages + 1)
        }
        assert memory.fallback == (memory.made_by == FALLBACK)
        if not memory.fallback:
            assert memory.made_by == record.model == real_model.name
            assert 5 <= graphemes(memory.statement) <= SUMMARY_CHARACTERS
