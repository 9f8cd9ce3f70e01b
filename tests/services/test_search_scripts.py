"""Search of messages and memories in many scripts, with and without accents and marks."""

import pytest
from script_rooms import APART, MEET, ROOMS, ScriptRoom

import roomlore
from roomlore.core.text import terms


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.mark.parametrize("room", ROOMS.values(), ids=ROOMS)
async def test_what_holds_the_word_comes_first(url, room: ScriptRoom):
    async with roomlore.open(url, background=False) as lore:
        said = [roomlore.Message(id=key, room_id="r", sender_id="u1", text=text) for key, text in room.said.items()]
        await lore.messages.add(said)
        for text in room.said.values():
            await lore.memories.add("user:u", text)
        wrong = []
        for question, wanted in room.asked:
            hits = [hit.message.id for hit in (await lore.messages.search("r", question)).hits]
            facts = [hit.memory.statement for hit in (await lore.memories.search("user:u", question)).hits]
            if hits[:1] != [wanted]:
                wrong.append(("message", question, hits))
            if facts[:1] != [room.said[wanted]]:
                wrong.append(("fact", question, facts))
        assert not wrong


@pytest.mark.parametrize("pair", MEET)
def test_these_meet(pair):
    first, second = map(terms, pair)
    assert first
    assert first == second


@pytest.mark.parametrize("pair", APART)
def test_these_stay_apart(pair):
    first, second = map(terms, pair)
    assert first
    assert set(first).isdisjoint(set(second))
